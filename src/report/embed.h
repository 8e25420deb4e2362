/*
 * Files that are part of the binary. Static memory.
 */
#ifndef NP_REPORT_EMBED_H
#define NP_REPORT_EMBED_H

#include "base/str.h"

np_str np_embedded_po(void);     /* po/zh_CN.po */
np_str np_embedded_script(void); /* html_bundle.js, made of ui/report/ by scripts/ui.sh */
np_str np_embedded_style(void);  /* html_bundle.css */

#endif
