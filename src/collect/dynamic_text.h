/*
 * profiler_config.json as text: where its members stand, and editing some of them while
 * every other byte of the user's file stays as it is.
 */
#ifndef NP_COLLECT_DYNAMIC_TEXT_H
#define NP_COLLECT_DYNAMIC_TEXT_H

#include "collect/dynamic_fields.h"

enum { NP_DYN_MAX_BYTES = 1 << 20 }; /* of the shared memory; larger is refused by torch_npu */

struct np_dyn_member {
	np_str key;
	bool inside; /* of experimental_config */
	bool last;   /* of equal keys the one that counts, as in Python */
	const struct np_jval *value;
	size_t key_begin, begin, end; /* bytes of the text: of the key, of the value */
};

struct np_dyn_object {
	size_t open, close; /* bytes of `{` and `}` */
	size_t n;           /* members */
	size_t last_key, last_end,
		gap; /* of the last member; `gap`: where the space before it begins */
};

struct np_dyn_text {
	np_str text;
	const struct np_jval *root;           /* an object */
	NP_VEC(struct np_dyn_member) members; /* in the order of the file */
	struct np_dyn_object outer, inner; /* inner: experimental_config, where it is an object */
	bool has_inner;
	struct np_json_repairs repairs; /* what torch_npu would not accept */
};

/*
 * Read `text`, which stays borrowed; memory from the arena, but the members
 * (np_dyn_text_release()). `strict`: E_FORMAT for what Python's json module refuses, comments
 * above all; else it is repaired and counted. The outermost value is an object, else E_FORMAT.
 */
enum np_status np_dyn_text_read(struct np_arena *arena, np_str text, const char *name, bool strict,
                                struct np_dyn_text *out, struct np_err *err);
void np_dyn_text_release(struct np_dyn_text *self);

/* The member that counts, or NULL. */
const struct np_dyn_member *np_dyn_member(const struct np_dyn_text *self, enum np_dyn_id id);

/* The line of a byte, from 1. */
size_t np_dyn_line(np_str text, size_t at);

struct np_dyn_change {
	enum np_dyn_id id; /* not EXPERIMENTAL itself */
	const char *json;  /* the new value, one JSON value */
};

/*
 * Append the text with the changes to `out`, one per field at most. A member that has this
 * value already keeps its spelling; one that is not there is added behind the last one of its
 * object, with the same space in front. E_FORMAT when the text is not strict JSON; the
 * message says what and where.
 */
enum np_status np_dyn_text_edit(np_str text, const char *name, const struct np_dyn_change *changes,
                                size_t n, struct np_buf *out, struct np_err *err);

/* Append the text without `# …` and `// …` outside of strings, and without the space in front
 * of them; the lines stay. */
void np_dyn_strip_comments(np_str text, struct np_buf *out);

#endif
