/*
 * Sequences of 3 to 8 operator types that a capture repeats.
 *
 * Names instead of hashes, so that equal numbers mean equal sequences:
 *
 *   length 1   A  B  C  A  B  C       the type's id
 *   length 2   0  1  2  0  1          number of (name of length 1 here, type behind it)
 *   length 3   0  1  2  0             number of (name of length 2 here, type behind it)
 *
 * A sequence can only be frequent when its beginning is, so most positions drop
 * out early. Linear in kernels for each length.
 *
 * A sequence holds at most one matmul (no double cube: requirements §2.10), and
 * is no repetition of a shorter one: independent calls in a row, as an optimizer
 * makes them, are not producer and consumer.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/fusion.h"

enum { CANDIDATES = 512, LENGTHS = NP_GRAM_MAX + 1 };

struct gram {
	uint32_t length, at, count;
	uint32_t end;  /* of the last occurrence that counts */
	uint32_t rank; /* among the candidates, UINT32_MAX: none */
	np_ns save;
};

struct grams {
	NP_VEC(struct gram) of;
	uint32_t *name[LENGTHS]; /* [length][i]: number of the gram that starts at i, UINT32_MAX */
	uint32_t *last;          /* the names of the length before */
};

static void release(struct grams *self)
{
	np_vec_release(&self->of);
	for (int length = 0; length < LENGTHS; length++)
		np_free(self->name[length]);
}

static void count(struct gram *gram, const struct np_chain *chain, uint32_t at)
{
	if (gram->count > 0 && at < gram->end)
		return;
	gram->count++;
	gram->end = at + gram->length;
	gram->save = np_ns_sum(gram->save, np_chain_save(chain, at, gram->length));
}

/* May a gram of this length start here? */
static bool fits(const struct np_chain *chain, size_t i, uint32_t length)
{
	return chain->run[i] >= length && !chain->used[i + length - 1] &&
	       chain->cubes[i + length] - chain->cubes[i] <= 1;
}

static bool name_length(const struct np_analysis *self, const struct np_chain *chain,
                        struct grams *grams, uint32_t length)
{
	uint32_t *before = grams->name[length - 1];
	uint32_t *names = np_realloc(NULL, chain->n, sizeof *names);
	struct np_map numbers;
	np_map_init(&numbers);
	bool ok = names != NULL;
	grams->name[length] = names;
	for (size_t i = 0; ok && i < chain->n; i++) {
		names[i] = UINT32_MAX;
		if (before[i] == UINT32_MAX || !fits(chain, i, length) ||
		    (length > 2 && grams->of.v[before[i]].count < self->rules->fusion_count))
			continue;
		uint64_t key = (uint64_t)before[i] << 32 | chain->type[i + length - 1];
		uint32_t number = np_map_get(&numbers, key, UINT32_MAX);
		if (number == UINT32_MAX) {
			number = (uint32_t)grams->of.n;
			ok = np_vec_push(&grams->of, (struct gram){.length = length,
			                                           .at = (uint32_t)i,
			                                           .rank = UINT32_MAX}) &&
			     np_map_put(&numbers, key, number);
		}
		if (!ok || !grams->of.v)
			break;
		names[i] = number;
		count(&grams->of.v[number], chain, (uint32_t)i);
	}
	np_map_release(&numbers);
	return ok;
}

static bool name_all(const struct np_analysis *self, const struct np_chain *chain,
                     struct grams *grams)
{
	grams->name[1] = np_realloc(NULL, chain->n, sizeof *grams->name[1]);
	if (!grams->name[1])
		return false;
	for (size_t i = 0; i < chain->n; i++)
		grams->name[1][i] = chain->run[i] && !chain->used[i] ? chain->type[i] : UINT32_MAX;
	for (uint32_t length = 2; length <= NP_GRAM_MAX; length++)
		if (!name_length(self, chain, grams, length))
			return false;
	return true;
}

/* Is it "AAA", "ABAB", "ABABA", …? */
static bool repeats(const uint32_t *types, uint32_t length)
{
	for (uint32_t period = 1; period <= length / 2; period++)
		if (memcmp(types, types + period, (length - period) * sizeof *types) == 0)
			return true;
	return false;
}

static int by_saving(const void *a, const void *b)
{
	const struct gram *x = *(struct gram *const *)a, *y = *(struct gram *const *)b;
	if (x->save != y->save)
		return x->save < y->save ? 1 : -1;
	if (x->length != y->length)
		return x->length < y->length ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

struct ranking {
	struct gram **best;
	size_t n;
	uint32_t *start, *places; /* occurrences of candidate c: places[start[c]…start[c + 1]) */
};

static bool rank(const struct np_analysis *self, const struct np_chain *chain, struct grams *grams,
                 struct ranking *out)
{
	out->best = np_realloc(NULL, grams->of.n + 1, sizeof *out->best);
	if (!out->best)
		return false;
	for (size_t g = 0; g < grams->of.n; g++) {
		struct gram *gram = &grams->of.v[g];
		if (gram->length >= NP_GRAM_MIN && gram->save > 0 &&
		    gram->count >= self->rules->fusion_count &&
		    !repeats(chain->type + gram->at, gram->length))
			out->best[out->n++] = gram;
	}
	if (out->n)
		qsort(out->best, out->n, sizeof *out->best, by_saving);
	out->n = out->n < CANDIDATES ? out->n : CANDIDATES;
	for (size_t c = 0; c < out->n; c++)
		out->best[c]->rank = (uint32_t)c;
	return true;
}

static uint32_t rank_at(const struct grams *grams, uint32_t length, size_t i)
{
	uint32_t name = grams->name[length][i];
	return name == UINT32_MAX ? UINT32_MAX : grams->of.v[name].rank;
}

/* Where the candidates are: counted, then filled in. */
static bool find_places(const struct np_chain *chain, const struct grams *grams,
                        struct ranking *out)
{
	out->start = np_calloc(out->n + 2, sizeof *out->start);
	if (!out->start)
		return false;
	for (uint32_t length = NP_GRAM_MIN; length <= NP_GRAM_MAX; length++) {
		for (size_t i = 0; i < chain->n; i++) {
			uint32_t c = rank_at(grams, length, i);
			if (c != UINT32_MAX)
				out->start[c + 2]++;
		}
	}
	for (size_t c = 2; c < out->n + 2; c++)
		out->start[c] += out->start[c - 1];
	out->places = np_realloc(NULL, (size_t)out->start[out->n + 1] + 1, sizeof *out->places);
	if (!out->places)
		return false;
	for (uint32_t length = NP_GRAM_MIN; length <= NP_GRAM_MAX; length++) {
		for (size_t i = 0; i < chain->n; i++) {
			uint32_t c = rank_at(grams, length, i);
			if (c != UINT32_MAX)
				out->places[out->start[c + 1]++] = (uint32_t)i;
		}
	}
	return true;
}

static bool is_free(const struct np_chain *chain, uint32_t at, uint32_t length)
{
	for (uint32_t i = at; i < at + length; i++)
		if (chain->used[i])
			return false;
	return true;
}

/* Occurrences that no better candidate took; with `take` they become its own. */
static struct np_candidate gather(struct np_chain *chain, const struct ranking *ranking, size_t c,
                                  bool take)
{
	const struct gram *gram = ranking->best[c];
	struct np_candidate out = {.length = gram->length};
	uint32_t end = 0;
	for (uint32_t p = ranking->start[c]; p < ranking->start[c + 1]; p++) {
		uint32_t at = ranking->places[p];
		if (at < end || !is_free(chain, at, gram->length))
			continue;
		end = at + gram->length;
		out.at = out.count++ ? out.at : at;
		out.total = np_ns_sum(out.total, np_chain_dur(chain, at, gram->length));
		out.high = np_ns_sum(out.high, np_chain_save(chain, at, gram->length));
		for (uint32_t i = at; take && i < end; i++)
			chain->used[i] = true;
	}
	out.low = out.high / 2;
	return out;
}

bool np_fusion_grams(const struct np_analysis *self, struct np_chain *chain,
                     struct np_candidates *out)
{
	struct grams grams = {0};
	struct ranking ranking = {0};
	bool ok = name_all(self, chain, &grams) && rank(self, chain, &grams, &ranking) &&
	          find_places(chain, &grams, &ranking);
	for (size_t c = 0; ok && c < ranking.n; c++) {
		struct np_candidate one = gather(chain, &ranking, c, false);
		if (one.count < self->rules->fusion_count || one.high == 0)
			continue;
		ok = np_vec_push(&out->of, gather(chain, &ranking, c, true));
	}
	np_free(ranking.best);
	np_free(ranking.start);
	np_free(ranking.places);
	release(&grams);
	return ok;
}
