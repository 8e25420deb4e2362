/*
 * What JSON's strings and numbers look like inside: the checks that the reader
 * makes on each. Internal to src/io. Pure functions.
 */
#ifndef NP_IO_JSON_TEXT_H
#define NP_IO_JSON_TEXT_H

#include "io/json.h"

/*
 * Check the raw bytes of a string and count what is wrong with control bytes,
 * UTF-8 and escapes. `offset` is that of text.ptr[0]. *escaped: it has a backslash.
 */
void np_json_check_string(np_str text, uint64_t offset, struct np_json_repairs *repairs,
                          bool *escaped);

enum np_json_numeric {
	NP_JSON_NUMERIC_OK,
	NP_JSON_NUMERIC_REPAIR, /* NaN, Infinity, leading zeros or `+` */
	NP_JSON_NUMERIC_BAD,
};
enum np_json_numeric np_json_check_number(np_str text);

/* Could `text` become a number or one of the words if more bytes followed? */
bool np_json_is_unfinished(np_str text);

/* Count one (or `count`) more at `offset`. */
void np_json_repair_add(struct np_json_repair *repair, uint64_t offset, uint64_t count);

#endif
