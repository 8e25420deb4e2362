/* Opening a reader, and the batches of masks ahead of it. */
#include <string.h>

#include "io/json_reader.h"
#include "io/json_text.h"

/* ── errors and repairs ─────────────────────────────────────────────────────── */

enum np_status np_json_fail(struct np_json *self, enum np_status code, uint64_t offset,
                            const char *what)
{
	const char *name = np_input_name(self->input);
	if (self->status != NP_OK)
		return self->status;
	if (np_input_faulted(self->input)) {
		code = NP_E_IO;
		what = "the file became shorter while it was read";
	}
	self->status = np_err_at(&self->err, code, name, offset, "%s", what);
	return self->status;
}

enum np_status np_json_repair(struct np_json *self, struct np_json_repair *which, uint64_t offset,
                              uint64_t count, const char *what)
{
	np_json_repair_add(which, offset, count);
	return self->strict ? np_json_fail(self, NP_E_FORMAT, offset, what) : NP_OK;
}

/* ── windows and batches ────────────────────────────────────────────────────── */

static void set_window(struct np_json *self, struct np_window window)
{
	self->window = window;
	self->ptr = window.ptr;
	self->ptr_offset = window.offset;
	self->moves++;
}

/* A window of np_json_test_windows(): what is kept and a few bytes more, in memory
 * of its own so that a stale pointer is caught. */
static bool drip_next(struct np_json *self, size_t consumed)
{
	struct np_window now = self->window;
	size_t start = (size_t)(now.offset - self->drip_source.offset) + consumed;
	size_t stop = (size_t)(now.offset - self->drip_source.offset) + now.len + self->drip_step;
	if (stop > self->drip_source.len)
		stop = self->drip_source.len;
	char *copy = np_alloc(stop > start ? stop - start : 1);
	if (!copy)
		return false;
	if (stop > start)
		memcpy(copy, self->drip_source.ptr + start, stop - start);
	np_free(self->drip);
	self->drip = copy;
	set_window(self, (struct np_window){copy, stop - start, now.offset + consumed,
	                                    stop == self->drip_source.len});
	return true;
}

bool np_json_next_window(struct np_json *self)
{
	uint64_t keep = self->keep < self->scanned ? self->keep : self->scanned;
	size_t consumed = keep > self->window.offset ? (size_t)(keep - self->window.offset) : 0;
	if (self->drip_step) {
		if (drip_next(self, consumed))
			return true;
		self->status = np_err_nomem(&self->err);
		return false;
	}
	struct np_window window;
	self->status = np_input_next(self->input, consumed, &window, &self->err);
	if (self->status != NP_OK)
		return false;
	set_window(self, window);
	return true;
}

static void note_last_bit(struct np_json *self)
{
	for (size_t i = self->n_blocks; i-- > 0;) {
		if (self->structure[i]) {
			self->last_bit = self->batch + i * NP_JSON_BLOCK + 63 -
			                 (unsigned)__builtin_clzll(self->structure[i]);
			return;
		}
	}
}

/* Nothing from a NUL byte on is structure. */
static void cut_at_nul(struct np_json *self, const char *bytes, size_t len)
{
	const char *nul = memchr(bytes, 0, len);
	if (!nul)
		return;
	size_t keep = (size_t)(nul - bytes), i = keep / NP_JSON_BLOCK;
	uint64_t below = (1ull << keep % NP_JSON_BLOCK) - 1;
	self->structure[i] &= below;
	self->brackets[i] &= below;
	self->n_blocks = i + 1;
	self->scanned = self->batch + keep;
	self->stop = STOP_NUL;
}

static void scan(struct np_json *self, const char *bytes, size_t blocks, size_t avail)
{
	struct np_json_masks out = {self->structure, self->brackets, self->odd};
	bool nul;
	self->n_blocks = blocks;
	self->looked = self->scanned;
	if (self->comments) {
		struct np_json_scan *state = &self->scan_state;
		nul = np_json_scan_comments(state, bytes, blocks, avail, self->batch, out);
		self->repairs.comment =
			(struct np_json_repair){state->comments, state->first_comment};
	} else {
		nul = self->scan(&self->scan_state, bytes, blocks, out);
	}
	if (UNLIKELY(nul))
		cut_at_nul(self, bytes, blocks * NP_JSON_BLOCK);
}

bool np_json_refill(struct np_json *self)
{
	if (self->stop != STOP_NOT)
		return false;
	note_last_bit(self);
	const size_t need = NP_JSON_BLOCK + (self->comments ? 1 : 0);
	size_t avail;
	while ((avail = (size_t)(self->window.offset + self->window.len - self->scanned)) < need &&
	       !self->window.eof) {
		if (!np_json_next_window(self)) {
			self->stop = STOP_ERROR;
			return false;
		}
	}
	if (avail == 0) {
		self->stop = STOP_EOF;
		self->n_blocks = 0;
		return false;
	}
	self->batch = self->scanned;
	self->clean_end = 0;
	const char *bytes = at(self, self->batch);
	size_t blocks = (self->window.eof ? avail : avail - (need - NP_JSON_BLOCK)) / NP_JSON_BLOCK;
	if (blocks > BATCH_BLOCKS)
		blocks = BATCH_BLOCKS;
	if (blocks) {
		self->scanned += blocks * NP_JSON_BLOCK;
		scan(self, bytes, blocks, avail);
	} else {
		char tail[NP_JSON_BLOCK];
		memset(tail, ' ', sizeof tail);
		memcpy(tail, bytes, avail);
		self->scanned += avail;
		scan(self, tail, 1, NP_JSON_BLOCK);
	}
	uint64_t behind = self->keep < self->batch ? self->keep : self->batch;
	if (self->whole && behind > self->released + RELEASE_BYTES) {
		self->released = behind;
		np_input_release_behind(self->input, behind);
	}
	return true;
}

bool np_json_find_bits(struct np_json *self)
{
	for (;;) {
		while (++self->index < self->n_blocks) {
			if (self->structure[self->index]) {
				self->bits = self->structure[self->index];
				self->block = self->batch + self->index * NP_JSON_BLOCK;
				return true;
			}
		}
		if (!np_json_refill(self)) {
			self->index = self->n_blocks;
			return false;
		}
		self->index = (size_t)-1;
	}
}

/* ── opening ────────────────────────────────────────────────────────────────── */

/* A byte order mark in front is stepped over. */
static enum np_status read_bom(struct np_json *self)
{
	while (self->window.len < 3 && !self->window.eof)
		if (!np_json_next_window(self))
			return self->status;
	if (self->window.len < 3 || memcmp(self->ptr, "\xef\xbb\xbf", 3) != 0)
		return NP_OK;
	self->scanned += 3;
	return np_json_repair(self, &self->repairs.bom, self->window.offset, 1,
	                      "a byte order mark");
}

/* Everything that belongs to one text, not to the reader. */
static void reset(struct np_json *self)
{
	self->bits = self->block = self->clean_end = self->key = self->last_bit = 0;
	self->index = (size_t)-1;
	self->n_blocks = 0;
	self->state = ROOT;
	self->depth = 0;
	self->in_object = false;
	self->last_type = NP_JSON_END;
	self->stop = STOP_NOT;
	self->status = NP_OK;
	self->err = (struct np_err){0};
	self->scan_state = (struct np_json_scan){0};
	self->repairs = (struct np_json_repairs){0};
}

static void start(struct np_json *self)
{
	self->scanned = self->keep = self->window.offset;
	(void)read_bom(self); /* what fails here is told by the first np_json_next() */
	self->batch = self->end = self->root = self->keep = self->scanned;
	self->looked = self->released = self->scanned;
}

enum np_status np_json_open(struct np_input *input, unsigned flags, struct np_json **out,
                            struct np_err *err)
{
	*out = NULL;
	struct np_json *self = np_calloc(1, sizeof *self);
	if (!self)
		return np_err_nomem(err);
	self->input = input;
	self->scan = np_json_scan_for(np_simd_level());
	self->strict = flags & NP_JSON_STRICT;
	self->comments = (flags & NP_JSON_COMMENTS) && !self->strict;
	self->whole = np_input_whole(input).len > 0;
	reset(self);
	if (!np_json_next_window(self)) {
		enum np_status status = self->status;
		if (err)
			*err = self->err;
		np_free(self);
		return status;
	}
	start(self);
	*out = self;
	return NP_OK;
}

void np_json_rewind(struct np_json *self, np_str text, uint64_t offset)
{
	reset(self);
	self->whole = true;
	self->drip_step = 0;
	set_window(self, (struct np_window){text.ptr ? text.ptr : "", text.len, offset, true});
	start(self);
	self->released = UINT64_MAX - RELEASE_BYTES; /* these pages are not the input's */
}

void np_json_test_windows(struct np_json *self, size_t bytes)
{
	self->drip_source = self->window;
	self->drip_step = bytes;
	self->whole = false;
	set_window(self, (struct np_window){at(self, self->scanned), 0, self->scanned, false});
}

void np_json_close(struct np_json *self)
{
	if (!self)
		return;
	np_free(self->drip);
	np_free(self);
}

const struct np_json_repairs *np_json_repairs(const struct np_json *self)
{
	return &self->repairs;
}

uint64_t np_json_offset(const struct np_json *self)
{
	return self->end;
}
