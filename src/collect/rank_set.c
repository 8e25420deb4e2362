#include "collect/rank_set.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static bool parse_range(np_str text, uint64_t *first, uint64_t *last)
{
	np_str end, begin = np_str_cut(np_str_trim(text), '-', &end);
	if (!np_str_to_u64(begin, first))
		return false;
	*last = *first;
	return (begin.len == np_str_trim(text).len || np_str_to_u64(end, last)) &&
	       *first <= *last && *last <= INT32_MAX;
}

enum np_status np_rank_set_parse(struct np_arena *arena, const char *text, struct np_rank_set *out,
                                 struct np_err *err)
{
	NP_VEC(int64_t) all = {0};
	np_str rest = np_str_of(text);
	enum np_status status = rest.len ? NP_OK : NP_E_USAGE;
	do {
		uint64_t first = 0, last = 0;
		if (!parse_range(np_str_cut(rest, ',', &rest), &first, &last))
			status = NP_E_USAGE;
		else if (last - first >= NP_RANK_SET_MAX || all.n > NP_RANK_SET_MAX)
			status = NP_E_LIMIT;
		for (; status == NP_OK && first <= last; first++)
			if (!np_vec_push(&all, (int64_t)first))
				status = NP_E_NOMEM;
	} while (status == NP_OK && rest.len);
	int64_t *kept = status == NP_OK ? np_arena_alloc(arena, all.n * sizeof *kept) : NULL;
	if (status == NP_OK && !kept)
		status = NP_E_NOMEM;
	if (status == NP_OK) {
		size_t n = 0;
		qsort(all.v, all.n, sizeof *all.v, by_value);
		for (size_t i = 0; i < all.n; i++)
			if (n == 0 || kept[n - 1] != all.v[i])
				kept[n++] = all.v[i];
		*out = (struct np_rank_set){kept, n};
	}
	np_vec_release(&all);
	if (status == NP_E_NOMEM)
		return np_err_nomem(err);
	return status == NP_OK
	               ? NP_OK
	               : np_err_set(err, status, NULL, "no list of ranks: '%s' (e.g. 0,4-7)", text);
}
