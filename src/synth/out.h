/*
 * A file being written: one buffer, own number formats, one look at the end
 * whether all of it worked. Appending never fails; the first failure is kept
 * and np_out_close() tells it.
 */
#ifndef NP_SYNTH_OUT_H
#define NP_SYNTH_OUT_H

#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/time.h"

enum { NP_OUT_BUFFER = 1 << 18, NP_OUT_MARGIN = 64 };

struct np_out {
	char *buf;
	size_t len;
	int fd, errnum;
	uint64_t total_bytes; /* flushed */
	char path[4096];
};

/* Errors: E_LIMIT (path too long), E_NOMEM, those of open(2). */
enum np_status np_out_open(struct np_out *self, const char *dir, const char *name,
                           struct np_err *err);
/* *bytes is increased by the file's size. Releases everything, also on failure. */
enum np_status np_out_close(struct np_out *self, uint64_t *bytes, struct np_err *err);
/* Release without caring: for error paths. A closed or zeroed one is fine. */
void np_out_abandon(struct np_out *self);

void np_out_flush(struct np_out *self);
void np_out_bytes(struct np_out *self, const char *bytes, size_t len);

static inline void np_out_char(struct np_out *self, char c)
{
	if (self->len >= NP_OUT_BUFFER)
		np_out_flush(self);
	self->buf[self->len++] = c;
}

static inline void np_out_str(struct np_out *self, const char *text)
{
	np_out_bytes(self, text, strlen(text));
}

/* a literal, its length known to the compiler */
#define np_out_lit(self, literal) np_out_bytes((self), "" literal, sizeof(literal) - 1)

void np_out_u64(struct np_out *self, uint64_t value);
void np_out_i64(struct np_out *self, int64_t value);
/* value / 10^digits with exactly that many decimals: (1234567, 3) is 1234.567 */
void np_out_fixed(struct np_out *self, int64_t value, unsigned digits);
/* the same as a float's repr: zeros at the end dropped, at least one decimal */
void np_out_short(struct np_out *self, int64_t value, unsigned digits);
/* A CSV field: quoted when it holds , " CR LF; quotes doubled. */
void np_out_csv(struct np_out *self, const char *text);
/* A JSON string with its quotes. Bytes beyond ASCII go through as they are. */
void np_out_json(struct np_out *self, const char *text);

#endif
