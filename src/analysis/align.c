#include "analysis/align.h"

#include <string.h>

#include "base/map.h"

enum {
	MAX_PATIENCE = 4,  /* levels of blocks within blocks */
	MIN_PATIENCE = 16, /* elements for which anchors are worth looking for */
	WIDTH = 2 * NP_ALIGN_COST + 5,
	UNREACHED = -1,
};

struct block {
	size_t a, n, b, m;
	int level; /* of patience */
};

struct aligner {
	const uint32_t *a, *b;
	NP_VEC(struct block) stack;
	int64_t *forward, *backward; /* furthest x by diagonal, WIDTH each */
	struct np_alignment *out;
};

static bool push(struct aligner *self, struct block block)
{
	return block.n + block.m == 0 || np_vec_push(&self->stack, block);
}

/* a[…] was replaced by b[…]: join with the run before when they touch */
static bool emit(struct aligner *self, const struct block *block)
{
	struct np_alignment *out = self->out;
	if (block->n + block->m == 0)
		return true;
	if (out->runs.n > 0) {
		struct np_align_run *last = &out->runs.v[out->runs.n - 1];
		if (last->a + last->n_a == block->a && last->b + last->n_b == block->b) {
			last->n_a += block->n;
			last->n_b += block->m;
			return true;
		}
	}
	struct np_align_run run = {block->a, block->n, block->b, block->m};
	return np_vec_push(&out->runs, run);
}

static void trim(const struct aligner *self, struct block *block)
{
	while (block->n && block->m && self->a[block->a] == self->b[block->b]) {
		block->a++;
		block->b++;
		block->n--;
		block->m--;
	}
	while (block->n && block->m &&
	       self->a[block->a + block->n - 1] == self->b[block->b + block->m - 1]) {
		block->n--;
		block->m--;
	}
}

/* ── patience ── */

struct anchor {
	uint32_t a, b;   /* offsets in the block */
	uint32_t before; /* index of the anchor before it in the longest chain */
};

#define MANY (UINT32_MAX - 1)
#define NONE UINT32_MAX

static bool count_places(const uint32_t *v, size_t n, struct np_map *places)
{
	for (size_t i = 0; i < n; i++) {
		bool seen = np_map_get(places, v[i], NONE) != NONE;
		if (!np_map_put(places, v[i], seen ? MANY : (uint32_t)i))
			return false;
	}
	return true;
}

/* Elements that occur once on both sides, in the order of a; false: out of memory. */
static bool find_anchors(const struct aligner *self, const struct block *block,
                         struct anchor *anchors, size_t *n_anchors)
{
	struct np_map in_a, in_b;
	np_map_init(&in_a);
	np_map_init(&in_b);
	bool ok = count_places(self->a + block->a, block->n, &in_a) &&
	          count_places(self->b + block->b, block->m, &in_b);
	*n_anchors = 0;
	for (size_t i = 0; ok && i < block->n; i++) {
		uint32_t id = self->a[block->a + i];
		uint32_t at = np_map_get(&in_b, id, NONE);
		if (at < MANY && np_map_get(&in_a, id, NONE) == i)
			anchors[(*n_anchors)++] = (struct anchor){(uint32_t)i, at, NONE};
	}
	np_map_release(&in_a);
	np_map_release(&in_b);
	return ok;
}

/* The longest chain that rises on both sides; `tails` has n entries. Marks the chain by
 * moving it to the front; returns its length. */
static size_t longest_chain(struct anchor *anchors, size_t n, uint32_t *tails)
{
	size_t length = 0;
	for (size_t i = 0; i < n; i++) {
		size_t low = 0, high = length;
		while (low < high) {
			size_t mid = low + (high - low) / 2;
			if (anchors[tails[mid]].b < anchors[i].b)
				low = mid + 1;
			else
				high = mid;
		}
		anchors[i].before = low > 0 ? tails[low - 1] : NONE;
		tails[low] = (uint32_t)i;
		if (low == length)
			length++;
	}
	uint32_t at = length > 0 ? tails[length - 1] : NONE;
	for (size_t k = length; k > 0; k--) {
		tails[k - 1] = at;
		at = anchors[at].before;
	}
	for (size_t k = 0; k < length; k++) /* tails rise, so nothing is overwritten early */
		anchors[k] = anchors[tails[k]];
	return length;
}

/* Split the block at its anchors onto the stack, the last part first. */
static bool split_patience(struct aligner *self, const struct block *block, bool *done)
{
	size_t most = block->n < block->m ? block->n : block->m, n = 0;
	struct anchor *anchors = np_realloc(NULL, block->n, sizeof *anchors);
	uint32_t *tails = np_realloc(NULL, most, sizeof *tails);
	bool ok = anchors && tails && find_anchors(self, block, anchors, &n);
	if (ok)
		n = longest_chain(anchors, n, tails);
	*done = ok && n > 0;
	size_t end_a = block->n, end_b = block->m;
	for (size_t k = n; ok && k > 0; k--) {
		/* the part from this anchor on: trim() takes the anchor itself off */
		const struct anchor *from = &anchors[k - 1];
		ok = push(self,
		          (struct block){block->a + from->a, end_a - from->a, block->b + from->b,
		                         end_b - from->b, block->level + 1});
		end_a = from->a;
		end_b = from->b;
	}
	if (ok && n > 0)
		ok = push(self, (struct block){block->a, end_a, block->b, end_b, block->level + 1});
	np_free(anchors);
	np_free(tails);
	return ok;
}

/* ── Myers ── */

/*
 * One half of the search: from the begin of both, or (back) from their ends.
 * v[k] is the furthest x on diagonal k = x - y, UNREACHED when there is none.
 */
struct half {
	const uint32_t *a, *b;
	int64_t n, m;
	bool back;
	int64_t *v; /* v[0] is diagonal 0 */
};

static bool equal_at(const struct half *half, int64_t x, int64_t y)
{
	return half->back ? half->a[half->n - 1 - x] == half->b[half->m - 1 - y]
	                  : half->a[x] == half->b[y];
}

static void advance(struct half *half, int64_t d, int64_t k)
{
	int64_t *v = half->v, x = UNREACHED;
	if (d == 0) {
		x = 0;
	} else {
		/* diagonals beyond the corners are never written */
		bool left = k > -d && k - 1 >= -half->m, right = k < d && k + 1 <= half->n;
		if (left && v[k - 1] != UNREACHED && v[k - 1] < half->n)
			x = v[k - 1] + 1;
		if (right && v[k + 1] > x && v[k + 1] - k <= half->m)
			x = v[k + 1];
	}
	if (x != UNREACHED)
		while (x < half->n && x - k < half->m && equal_at(half, x, x - k))
			x++;
	v[k] = x;
}

/* Walk d edits on all diagonals; true when it meets `other` (with its reach) at *x, *y. */
static bool walk(struct half *half, const struct half *other, int64_t d, int64_t other_d,
                 int64_t *x, int64_t *y)
{
	int64_t delta = half->n - half->m;
	for (int64_t k = -d; k <= d; k += 2) {
		if (k < -half->m || k > half->n)
			continue;
		advance(half, d, k);
		int64_t there = delta - k;
		if (half->v[k] == UNREACHED || there < -other_d || there > other_d ||
		    ((there + other_d) & 1) || there < -half->m || there > half->n ||
		    other->v[there] == UNREACHED)
			continue;
		if (half->v[k] + other->v[there] >= half->n) {
			*x = half->back ? half->n - half->v[k] : half->v[k];
			*y = half->back ? half->m - (half->v[k] - k) : half->v[k] - k;
			return true;
		}
	}
	return false;
}

/* Where the half has come furthest: the diagonal with the largest x + y. */
static int64_t furthest(const struct half *half, int64_t d, int64_t *x, int64_t *y)
{
	int64_t best = -1;
	for (int64_t k = -d; k <= d; k += 2) {
		if (k < -half->m || k > half->n || half->v[k] == UNREACHED)
			continue;
		if (2 * half->v[k] - k > best) {
			best = 2 * half->v[k] - k;
			*x = half->back ? half->n - half->v[k] : half->v[k];
			*y = half->back ? half->m - (half->v[k] - k) : half->v[k] - k;
		}
	}
	return best;
}

/* A point of a shortest edit (or, when that is too long, of a good one). */
static void split_myers(struct aligner *self, const struct block *block, int64_t *x, int64_t *y)
{
	int64_t n = (int64_t)block->n, m = (int64_t)block->m;
	const uint32_t *a = self->a + block->a, *b = self->b + block->b;
	struct half fore = {a, b, n, m, false, self->forward + WIDTH / 2};
	struct half back = {a, b, n, m, true, self->backward + WIDTH / 2};
	for (int64_t d = 0; d <= NP_ALIGN_COST; d++) {
		/* after d edits ahead, the other side has made d - 1; then both d */
		if (walk(&fore, &back, d, d - 1, x, y) || walk(&back, &fore, d, d, x, y))
			return;
	}
	self->out->cut = true;
	int64_t bx = 0, by = 0;
	if (furthest(&back, NP_ALIGN_COST, &bx, &by) > furthest(&fore, NP_ALIGN_COST, x, y)) {
		*x = bx;
		*y = by;
	}
}

/* ── the whole ── */

static bool do_block(struct aligner *self, struct block block)
{
	trim(self, &block);
	if (block.n == 0 || block.m == 0)
		return emit(self, &block);
	bool done = false;
	if (block.level < MAX_PATIENCE && block.n + block.m >= MIN_PATIENCE) {
		if (!split_patience(self, &block, &done))
			return false;
		if (done)
			return true;
		block.level = MAX_PATIENCE; /* what has no anchor has none inside */
	}
	int64_t x = 0, y = 0;
	split_myers(self, &block, &x, &y);
	size_t n = (size_t)x, m = (size_t)y;
	if (n + m == 0 || n + m == block.n + block.m)
		return emit(self, &block);
	return push(self, (struct block){block.a + n, block.n - n, block.b + m, block.m - m,
	                                 block.level}) &&
	       push(self, (struct block){block.a, n, block.b, m, block.level});
}

bool np_align(const uint32_t *a, size_t n, const uint32_t *b, size_t m, struct np_alignment *out)
{
	*out = (struct np_alignment){0};
	if (n >= MANY || m >= MANY)
		return false;
	struct aligner self = {.a = a, .b = b, .out = out};
	self.forward = np_realloc(NULL, WIDTH, sizeof *self.forward);
	self.backward = np_realloc(NULL, WIDTH, sizeof *self.backward);
	bool ok = self.forward && self.backward && push(&self, (struct block){0, n, 0, m, 0});
	while (ok && self.stack.n > 0)
		ok = do_block(&self, self.stack.v[--self.stack.n]);
	size_t gone = 0;
	for (size_t i = 0; i < out->runs.n; i++)
		gone += out->runs.v[i].n_a;
	out->matched = n - gone;
	np_vec_release(&self.stack);
	np_free(self.forward);
	np_free(self.backward);
	return ok;
}

void np_alignment_release(struct np_alignment *self)
{
	np_vec_release(&self->runs);
	*self = (struct np_alignment){0};
}
