/* Written by ui/build.mjs: what the page's policy allows to run, base64 of SHA-256. */
#ifndef NP_REPORT_HTML_HASHES_H
#define NP_REPORT_HTML_HASHES_H

#define NP_HTML_SCRIPT_SHA256 "ttWq0R1N4ujCTpBedO686+oVk1n5o3aJA4/ChFZ9xGo="
#define NP_HTML_STYLE_SHA256  "Fqvl8ho9nQ4yj/VK6zUJsbbOQ+XUSWQIohNXY3P9F7s="

#endif
