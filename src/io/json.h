/*
 * JSON, one tokenizer with two faces.
 *
 *   bytes ─▶ 64-byte blocks ─▶ bit masks of structure ─▶ np_json_next()   pull, any size
 *                (AVX2 | NEON | scalar)                └▶ np_json_parse()  a small tree
 *
 * The tokenizer finds, per 64-byte block, the quotes that are not escaped and
 * the structural characters outside strings. The pull reader walks those bits;
 * it keeps no tree and no nesting beyond one bit per level, so a file of any
 * size in one line streams in constant memory.
 *
 * Captures in the field are often not quite JSON. What is repaired is counted
 * in np_json_repairs with the offset of the first case, never silent:
 * commas too many, brackets never closed, control characters and invalid UTF-8
 * in strings, escapes that don't exist, NaN and Infinity, `#` and `//`
 * comments (those only with NP_JSON_COMMENTS). Everything else is an error
 * with its byte offset ("file:offset"). A NUL byte before the end of the
 * outermost value is always one, at once: it tells of a hole in the file.
 * Containers that are never closed get their END tokens all the same.
 *
 * Threads: a reader belongs to one thread at a time.
 */
#ifndef NP_IO_JSON_H
#define NP_IO_JSON_H

#include "base/mem.h"
#include "io/input.h"

enum np_json_type {
	NP_JSON_END, /* the document is complete */
	NP_JSON_OBJECT_BEGIN,
	NP_JSON_OBJECT_END,
	NP_JSON_ARRAY_BEGIN,
	NP_JSON_ARRAY_END,
	NP_JSON_KEY,
	NP_JSON_STRING,
	NP_JSON_NUMBER,
	NP_JSON_TRUE,
	NP_JSON_FALSE,
	NP_JSON_NULL,
};

struct np_json_token {
	enum np_json_type type;
	/* KEY, STRING: the raw bytes between the quotes; NUMBER: its text.
	 * Valid until the next call (for mapped and memory inputs: as long as the input). */
	np_str text;
	bool escaped;    /* text has a backslash: np_json_unescape() gives the value */
	uint32_t depth;  /* containers open around this token */
	uint64_t offset; /* of the token's first byte (the quote, for strings) */
};

struct np_json_repair {
	uint64_t count, first_offset;
};

struct np_json_repairs {
	struct np_json_repair trailing_comma; /* `,]`, `,}`, `,,`, a comma before the end */
	struct np_json_repair unclosed;       /* containers (not strings) open at the end;
	                                       * first_offset: of the outermost */
	struct np_json_repair control_char;   /* bytes 0x01 … 0x1F inside strings */
	struct np_json_repair bad_utf8;       /* invalid sequences inside strings */
	struct np_json_repair bad_escape;     /* `\x`, `\u12G4`, lone surrogates */
	struct np_json_repair bad_number;     /* NaN, Infinity, leading zeros or `+`; read as is */
	struct np_json_repair comment;
	struct np_json_repair trailing_bytes; /* NUL, VT, FF, ^Z behind the end, at most 64 KiB */
	struct np_json_repair bom;            /* a byte order mark in front */
};

/* The sum of all counts. */
uint64_t np_json_repairs_total(const struct np_json_repairs *repairs);

/* One line for people, e.g. "2 trailing commas (first at byte 120), 1 container
 * never closed (byte 0)"; empty when there were none. */
void np_json_repairs_describe(const struct np_json_repairs *repairs, struct np_buf *out);

enum np_json_flags {
	NP_JSON_STRICT = 1 << 0,   /* every repair is an error instead, comments too */
	NP_JSON_COMMENTS = 1 << 1, /* accept # and // to the end of the line outside strings;
	                            * reads byte by byte, for small files */
};

enum { NP_JSON_MAX_DEPTH = 1024 }; /* deeper is E_LIMIT */

struct np_json;

/* `input` is borrowed and must outlive the reader. */
enum np_status np_json_open(struct np_input *input, unsigned flags, struct np_json **out,
                            struct np_err *err);
void np_json_close(struct np_json *self);

/*
 * The next token; NP_JSON_END after the outermost value (again and again).
 * After an error the reader gives the same error again. Errors: E_FORMAT,
 * E_TRUNCATED (the input ends inside a string, a word, a number in a container,
 * or behind a key; the offset is where that began), E_EMPTY (no value at all),
 * E_LIMIT, and those of the input.
 */
enum np_status np_json_next(struct np_json *self, struct np_json_token *out, struct np_err *err);

/*
 * Skip what the last token began: the value of a KEY, the rest of an OBJECT or
 * ARRAY just opened; nothing after a scalar. Checks brackets and where strings
 * end, not the grammar between them nor what is inside strings, and is faster
 * for it. *raw (may be NULL) is the whole value, an opening bracket already
 * read included, for mapped and memory inputs (offset: *raw_offset), else empty.
 */
enum np_status np_json_skip(struct np_json *self, np_str *raw, uint64_t *raw_offset,
                            struct np_err *err);

struct np_json_member {
	np_str key;
	struct np_json_token value; /* containers: type OBJECT_BEGIN or ARRAY_BEGIN and the
	                             * text of all of it, skipped as by np_json_skip() */
	uint64_t key_offset;
	bool key_escaped;
};

/*
 * The members of the object just opened (or the rest of them), up to `max`: one
 * call for what would be some twenty of np_json_next(), the fast way to read
 * arrays of small objects. *n < max: the object is closed (its OBJECT_END is
 * consumed); *n == max: call again for the rest, which may be none. All of
 * out[0 … *n) is valid until the next call. On an error *n members before it
 * are good. E_USAGE when the reader is not inside an object.
 */
enum np_status np_json_members(struct np_json *self, struct np_json_member *out, size_t max,
                               size_t *n, struct np_err *err);

/*
 * Read another text in memory with this reader, from its start: e.g. the `args`
 * that np_json_members() gave, only where they are wanted. `offset` is what its
 * first byte counts as; flags and the name in messages stay, repairs begin anew.
 * The reader's own input is done with.
 */
void np_json_rewind(struct np_json *self, np_str text, uint64_t offset);

const struct np_json_repairs *np_json_repairs(const struct np_json *self);

/* Bytes of content consumed so far, for progress. */
uint64_t np_json_offset(const struct np_json *self);

/* Test hook, directly after np_json_open() of a memory input: see it through
 * windows that grow by `bytes`, as those of gzip inputs do. */
void np_json_test_windows(struct np_json *self, size_t bytes);

/*
 * The value of a raw string: escapes resolved to UTF-8, invalid bytes and lone
 * surrogates as U+FFFD, unknown escapes as the character behind the backslash.
 * The result is `raw` itself when there is nothing to do, else in `scratch`
 * (cleared first; scratch->failed tells of too little memory).
 */
np_str np_json_unescape(np_str raw, struct np_buf *scratch);

/* Read and check the whole document to its last byte, keeping nothing. *elements
 * (may be NULL): elements of the outermost array, or of its `traceEvents`. */
enum np_status np_json_validate(struct np_input *input, struct np_json_repairs *repairs,
                                uint64_t *elements, struct np_err *err);

/* ── the small tree, for files of KB to MB ─────────────────────────────────── */

enum np_jtype {
	NP_J_NULL,
	NP_J_FALSE,
	NP_J_TRUE,
	NP_J_NUMBER,
	NP_J_STRING,
	NP_J_ARRAY,
	NP_J_OBJECT
};

/* A node. Children of arrays and objects are an array of their own, in order;
 * an object's child has its key. All memory belongs to the arena. */
struct np_jval {
	enum np_jtype type;
	np_str key;  /* unescaped; empty in arrays */
	np_str text; /* STRING: unescaped value; NUMBER: its text, exactly as written */
	const struct np_jval *child;
	size_t n; /* children */
};

enum { NP_JSON_TREE_MAX_BYTES = 512 << 20 };

/* Parse a whole document. *repairs may be NULL. */
enum np_status np_json_parse(struct np_arena *arena, struct np_input *input, unsigned flags,
                             const struct np_jval **out, struct np_json_repairs *repairs,
                             struct np_err *err);
/* The same for a path (gz too). */
enum np_status np_json_parse_file(struct np_arena *arena, const char *path, unsigned flags,
                                  const struct np_jval **out, struct np_json_repairs *repairs,
                                  struct np_err *err);

/* Accessors take NULL and the wrong type and then answer NULL, empty, false. */
const struct np_jval *np_jget(const struct np_jval *object, const char *key);
/* "config.common_config.schedule" */
const struct np_jval *np_jpath(const struct np_jval *root, const char *dotted);
np_str np_jstr(const struct np_jval *value);               /* STRING only */
bool np_ji64(const struct np_jval *value, int64_t *out);   /* NUMBER or numeric STRING */
bool np_jdouble(const struct np_jval *value, double *out); /* NUMBER or numeric STRING */
bool np_jbool(const struct np_jval *value, bool *out);

/* ── writing ───────────────────────────────────────────────────────────────── */

/* Append `text` as a quoted JSON string; invalid UTF-8 becomes U+FFFD, and
 * `<`, `>`, `&`, U+2028/9 are escaped so that it may stand in HTML. */
void np_json_quote(struct np_buf *out, np_str text);
/* Append a tree as json.dumps() of Python does, `{"a": [1, 2]}`, numbers as they were
 * written, without the member `without` (may be NULL) of an outermost object. */
void np_json_dump(struct np_buf *out, const struct np_jval *value, const char *without);
/* Append a double so that it reads back the same; NaN and infinities as null. */
void np_json_number(struct np_buf *out, double value);

#endif
