/* Written by ui/build.mjs: what the page's policy allows to run, base64 of SHA-256. */
#ifndef NP_REPORT_HTML_HASHES_H
#define NP_REPORT_HTML_HASHES_H

#define NP_HTML_SCRIPT_SHA256 "DupaHBSjj89ZTTXXdxWGEM6zy2Z+biGhNuz4iat9y4o="
#define NP_HTML_STYLE_SHA256  "Fqvl8ho9nQ4yj/VK6zUJsbbOQ+XUSWQIohNXY3P9F7s="

#endif
