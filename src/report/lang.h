/*
 * The reader's language.
 *
 * What is said is written in English in the sources; po/zh_CN.po (GNU gettext's
 * format, embedded in the binary) holds the Chinese. np_report_*() look up the
 * English format string where a text is made, so no call site knows of
 * languages. What has no translation stays English. JSON keys, finding codes
 * and what stands in a capture are never translated.
 *
 * A translation whose conversions (%s, %zu, …) are not those of its English is
 * refused when the catalogue is read: it could not be printed safely.
 *
 * Threads: np_lang_use() before any other thread runs; then everything here may
 * be called from any thread.
 */
#ifndef NP_REPORT_LANG_H
#define NP_REPORT_LANG_H

#include "base/err.h"
#include "base/str.h"

enum np_lang { NP_LANG_EN, NP_LANG_ZH };

/* "en", "zh" (or what begins so, as zh_CN.UTF-8); false when it is another. */
bool np_lang_parse(const char *name, enum np_lang *out);

/* The language from now on. E_NOMEM: it stays English. Frees what the last one held. */
enum np_status np_lang_use(enum np_lang lang, struct np_err *err);
enum np_lang np_lang(void);

/* The text in the reader's language, or the text itself; static memory. A format stays a
 * format with the same conversions. NULL gives NULL. */
const char *np_tr(const char *text) __attribute__((format_arg(1)));

/* The heading of the column `name`, or NULL when it has none in the reader's language. */
const char *np_tr_column(const char *name);

/* Marks a text in a table of constants for scripts/i18n.py; it is looked up where it is used. */
#define NP_N(text) text

/* Do two formats take the same arguments? */
bool np_format_equal(const char *a, const char *b);

/*
 * Read a catalogue: calls `entry` for each msgid with a translation, context (msgctxt) ""
 * when there is none. The texts live until the call returns. false: `entry` gave false, or
 * memory ran out. What is malformed is left out. Linear.
 */
bool np_po_read(np_str po, bool (*entry)(void *to, np_str context, np_str id, np_str text),
                void *to);

#endif
