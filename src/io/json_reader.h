/*
 * The inside of the JSON reader. Internal to src/io: json_batch.c keeps the
 * scanned batch ahead of the reader, json.c makes tokens of its bits.
 */
#ifndef NP_IO_JSON_READER_H
#define NP_IO_JSON_READER_H

#include "io/json.h"
#include "io/json_scan.h"

#define INLINE      static inline __attribute__((always_inline))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
	BATCH_BLOCKS = 512,      /* 32 KiB of text: its masks stay in the first-level cache */
	RELEASE_BYTES = 4 << 20, /* how often pages behind are given back */
	MAX_TRAILING = 64 << 10, /* more than this behind the end is a hole, not garbage */
	DEPTH_WORDS = NP_JSON_MAX_DEPTH / 64,
};

enum state {
	ROOT,    /* the outermost value is next */
	FIRST,   /* just behind `{` or `[` */
	AFTER,   /* behind a value inside a container */
	VALUE,   /* behind a key and its colon */
	CLOSING, /* the input has ended; containers are still open */
	ENDING,  /* behind the outermost value, the rest not looked at */
	ENDED,
};

enum stop {
	STOP_NOT,
	STOP_EOF,
	STOP_NUL, /* a NUL byte: nothing behind it is scanned */
	STOP_ERROR,
};

/*
 * Where things are, as offsets in the content:
 *
 *   window  |....keep=====token====.....|==== batch, scanned ====|.....|
 *                                       ^batch     ^block        ^scanned
 *
 * `bits` are the structure bits of the block at `block` that were not taken yet.
 */
struct np_json {
	uint64_t bits;
	uint64_t block;
	size_t index, n_blocks;
	uint64_t clean_end;  /* no odd byte between the last string and here */
	const char *ptr;     /* the window's bytes … */
	uint64_t ptr_offset; /* … and the offset of the first */
	enum state state;
	uint32_t depth;
	bool in_object;              /* of the innermost container */
	uint64_t kinds[DEPTH_WORDS]; /* one bit per level, 1: object */

	uint64_t batch, scanned;
	uint64_t looked; /* how far the scan has looked: `scanned`, but for a NUL byte */
	uint64_t keep;   /* bytes before this are not needed any more */
	uint64_t end;    /* of the last token */
	uint64_t key;    /* offset of the last key */
	uint64_t root;   /* offset of the outermost value */
	enum np_json_type last_type; /* what np_json_skip() would skip … */
	uint64_t last_offset;        /* … and where it begins */
	uint64_t last_bit;           /* offset of the last structure bit of earlier batches */
	enum stop stop;
	uint64_t released, moves;

	np_json_scan_fn *scan;
	struct np_json_scan scan_state;
	struct np_input *input;
	struct np_window window;
	bool whole; /* the window holds everything and never moves */
	bool strict, comments;
	enum np_status status;
	struct np_err err;
	struct np_json_repairs repairs;

	char *drip; /* np_json_test_windows(): the copy that is the window */
	size_t drip_step;
	struct np_window drip_source;

	uint64_t structure[BATCH_BLOCKS], brackets[BATCH_BLOCKS], odd[BATCH_BLOCKS];
};

/* Set and return the reader's error, which stays. The first one counts. */
enum np_status np_json_fail(struct np_json *self, enum np_status code, uint64_t offset,
                            const char *what) __attribute__((cold));

/* Count a repair; in strict mode it is an error. */
enum np_status np_json_repair(struct np_json *self, struct np_json_repair *which, uint64_t offset,
                              uint64_t count, const char *what) __attribute__((cold));

/* Fetch the next window. False: the error is set. */
bool np_json_next_window(struct np_json *self);

/* Scan the next batch. False at the end, at a NUL byte and on errors: see `stop`. */
bool np_json_refill(struct np_json *self);

/* Go on to the next block that has a structure bit. */
bool np_json_find_bits(struct np_json *self);

INLINE const char *at(const struct np_json *self, uint64_t offset)
{
	return self->ptr + (size_t)(offset - self->ptr_offset);
}

/* The offset of the next structure bit, without taking it. */
INLINE bool peek(struct np_json *self, uint64_t *offset)
{
	if (UNLIKELY(!self->bits) && !np_json_find_bits(self))
		return false;
	*offset = self->block + (unsigned)__builtin_ctzll(self->bits);
	return true;
}

INLINE bool take(struct np_json *self, uint64_t *offset)
{
	if (!peek(self, offset))
		return false;
	self->bits &= self->bits - 1;
	return true;
}

#endif
