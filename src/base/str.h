/*
 * Text as (pointer, length): views that own nothing, and one growing buffer.
 *
 * An np_str need not end in NUL and may hold any byte; its bytes live in the
 * mapped file, an arena or a literal, and it is valid as long as those are.
 * ptr may be NULL when len is 0.
 */
#ifndef NP_BASE_STR_H
#define NP_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct np_str {
	const char *ptr;
	size_t len;
} np_str;

#define NP_STR(literal) ((np_str){"" literal, sizeof(literal) - 1})

/* printf("%.*s", NP_FMT(text)) */
#define NP_FMT(text) (int)(text).len, (text).ptr ? (text).ptr : ""

np_str np_str_of(const char *cstr); /* NULL gives the empty string */
bool np_str_eq(np_str a, np_str b);
bool np_str_is(np_str a, const char *cstr);
bool np_str_ieq(np_str a, np_str b); /* ASCII letters without case */
int np_str_cmp(np_str a, np_str b);  /* byte order, as memcmp */
bool np_str_starts(np_str text, np_str prefix);
bool np_str_ends(np_str text, np_str suffix);
bool np_str_istarts(np_str text, np_str prefix);
bool np_str_contains(np_str text, np_str part);
bool np_str_icontains(np_str text, np_str part);
np_str np_str_trim(np_str text); /* spaces, tabs, CR, LF at both ends */
np_str np_str_from(np_str text, size_t start);
np_str np_str_sub(np_str text, size_t start, size_t len);

/* Cut `text` at the first `sep`: returns what is before it, *rest is what is
 * behind it (empty when there is none). rest may be &text. */
np_str np_str_cut(np_str text, char sep, np_str *rest);

/* Whole text is a decimal integer in range (an optional sign, no spaces). */
bool np_str_to_i64(np_str text, int64_t *out);
bool np_str_to_u64(np_str text, uint64_t *out);

/* Whole text is a decimal or scientific number, correctly rounded; "inf" and
 * "nan" are not numbers here. */
bool np_str_to_double(np_str text, double *out);

/*
 * A growing byte buffer. Zeroed memory is a valid empty one; `max_bytes` caps
 * what input can make it grow to (0: 1 GiB). A failed append sets `failed` and
 * leaves the contents; so a writer may append freely and look once at the end.
 * `ptr` is NUL-terminated whenever it is not NULL.
 */
struct np_buf {
	char *ptr;
	size_t len, cap, max_bytes;
	bool failed;
};

void np_buf_release(struct np_buf *self);
void np_buf_clear(struct np_buf *self); /* keeps the memory, resets `failed` */
bool np_buf_reserve(struct np_buf *self, size_t more_bytes);
void np_buf_add(struct np_buf *self, const void *bytes, size_t len);
void np_buf_add_str(struct np_buf *self, np_str text);
void np_buf_add_cstr(struct np_buf *self, const char *text);
void np_buf_add_char(struct np_buf *self, char c);
void np_buf_printf(struct np_buf *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
np_str np_buf_str(const struct np_buf *self);

#endif
