/* Figures of ranks folded into elements, and who made the others wait. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cluster/parallel.h"

enum { LEVELS = 3 };

static const double slow_share = 0.05;

/* ── folds ── */

/* NaN only if both are. */
static double larger(double a, double b)
{
	return isnan(a) || b > a ? b : a;
}

static double smaller(double a, double b)
{
	return isnan(a) || b < a ? b : a;
}

/* Sum of the maxima of the stages that have figures. */
static double sum_of_stages(const struct np_strategy *self, size_t element, const double *by_rank)
{
	struct np_element e;
	uint32_t *digit = e.digit;
	double sum = NAN;
	np_view_element(self, NP_VIEW_DP, element, &e);
	for (digit[NP_DIM_PP] = 0; digit[NP_DIM_PP] < self->size[NP_DIM_PP]; digit[NP_DIM_PP]++) {
		double max = NAN;
		for (digit[NP_DIM_CP] = 0; digit[NP_DIM_CP] < self->size[NP_DIM_CP];
		     digit[NP_DIM_CP]++)
			for (digit[NP_DIM_TP] = 0; digit[NP_DIM_TP] < self->size[NP_DIM_TP];
			     digit[NP_DIM_TP]++)
				max = larger(max, by_rank[np_strategy_rank(self, digit)]);
		if (!isnan(max))
			sum = isnan(sum) ? max : sum + max;
	}
	return sum;
}

void np_fold_times(const struct np_strategy *self, enum np_view view, const double *by_rank,
                   struct np_fold *out)
{
	size_t world = np_strategy_world(self), n = np_view_count(self, view);
	for (size_t i = 0; i < n; i++)
		out[i] = (struct np_fold){
			.max = view == NP_VIEW_DP ? sum_of_stages(self, i, by_rank) : NAN,
			.min = NAN};
	for (size_t rank = 0; rank < world && view != NP_VIEW_DP; rank++) {
		struct np_fold *fold = &out[np_view_of_rank(self, view, rank)];
		if (isnan(by_rank[rank]))
			continue;
		fold->max = larger(fold->max, by_rank[rank]);
		fold->min = smaller(fold->min, by_rank[rank]);
	}
}

void np_fold_mean(const struct np_strategy *self, enum np_view view, const double *by_rank,
                  double *out)
{
	size_t n = np_view_count(self, view), ranks = np_view_ranks(self, view);
	for (size_t i = 0; i < n; i++) {
		struct np_element e;
		double sum = 0;
		size_t counted = 0;
		np_view_element(self, view, i, &e);
		for (size_t r = 0; r < ranks && view != NP_VIEW_DP; r++) {
			uint32_t digit[NP_N_DIMS];
			memcpy(digit, e.digit, sizeof digit);
			digit[NP_DIM_TP] +=
				(uint32_t)(view >= NP_VIEW_CP ? r % self->size[NP_DIM_TP] : 0);
			digit[NP_DIM_CP] +=
				(uint32_t)(view >= NP_VIEW_PP ? r / self->size[NP_DIM_TP] : 0);
			double value = by_rank[np_strategy_rank(self, digit)];
			counted += isnan(value) ? 0 : 1;
			sum += isnan(value) ? 0 : value;
		}
		out[i] = counted > 0 ? sum / (double)counted : NAN;
	}
}

/* ── slow elements ── */

/* One level of the descent: a view and the domain whose groups are its neighbours. */
struct level {
	enum np_view view;
	enum np_dim dim;
	size_t n;
	bool has;
	double *sync;  /* by element; 0 where it is not slow */
	double *score; /* with the levels above */
	bool *kept;    /* looked into by the next level */
};

static void release(struct level *levels)
{
	for (int l = 0; l < LEVELS; l++) {
		np_free(levels[l].sync);
		np_free(levels[l].score);
		np_free(levels[l].kept);
	}
}

/* The element of the same group whose digit is 0: the group's number. */
static size_t group_of(const struct np_strategy *self, const struct level *level, size_t i)
{
	struct np_element e;
	np_view_element(self, level->view, i, &e);
	e.digit[level->dim] = 0;
	return np_view_of_rank(self, level->view, np_strategy_rank(self, e.digit));
}

/* From means to sync, group by group; `longest` is for n figures. */
static void waits(const struct np_strategy *self, struct level *level, const double *mean,
                  double *longest)
{
	for (size_t i = 0; i < level->n; i++)
		longest[i] = NAN;
	for (size_t i = 0; i < level->n; i++) {
		double *group = &longest[group_of(self, level, i)];
		*group = larger(*group, mean[i]);
	}
	for (size_t i = 0; i < level->n; i++) {
		double max = longest[group_of(self, level, i)], sync = max - mean[i];
		level->sync[i] = sync > slow_share * max ? sync : 0;
	}
}

static bool prepare(const struct np_strategy *self, struct level *level, const double *by_rank)
{
	size_t world = np_strategy_world(self);
	level->n = np_view_count(self, level->view);
	level->sync = np_calloc(level->n, sizeof *level->sync);
	level->score = np_calloc(level->n, sizeof *level->score);
	level->kept = np_calloc(level->n, sizeof *level->kept);
	double *mean = np_calloc(2 * level->n, sizeof *mean);
	if (!level->sync || !level->score || !level->kept || !mean) {
		np_free(mean);
		return false;
	}
	for (size_t r = 0; by_rank && r < world; r++)
		level->has |= !isnan(by_rank[r]);
	if (level->has) {
		np_fold_mean(self, level->view, by_rank, mean);
		waits(self, level, mean, mean + level->n);
	}
	np_free(mean);
	return true;
}

/* The element of the level above that element i belongs to. */
static size_t parent_of(const struct np_strategy *self, const struct level *level, size_t i)
{
	struct np_element e;
	np_view_element(self, level->view, i, &e);
	return np_view_of_rank(self, level->view + 1, np_strategy_rank(self, e.digit));
}

static size_t best(const struct level *level, const bool *taken)
{
	size_t found = SIZE_MAX;
	for (size_t i = 0; i < level->n; i++)
		if (taken[i] && (found == SIZE_MAX || level->score[i] > level->score[found]))
			found = i;
	return found;
}

/*
 * kept: the three worst of those that are slow here and lie in what the level above
 * kept, or all that lie there if none is slow.
 */
static bool descend(const struct np_strategy *self, struct level *level, const struct level *above)
{
	bool *slow = np_calloc(level->n, sizeof *slow);
	size_t n_slow = 0;
	for (size_t i = 0; slow && i < level->n; i++) {
		size_t parent = above ? parent_of(self, level, i) : 0;
		level->kept[i] = !above || above->kept[parent];
		level->score[i] = level->sync[i] + (above ? above->score[parent] : 0);
		slow[i] = level->kept[i] && level->sync[i] > 0;
		n_slow += slow[i];
	}
	if (slow && n_slow > 0) {
		memset(level->kept, 0, level->n * sizeof *level->kept);
		for (int top = 0; top < NP_SLOW_TOP; top++) {
			size_t i = best(level, slow);
			if (i == SIZE_MAX)
				break;
			level->kept[i] = true;
			slow[i] = false;
		}
	}
	np_free(slow);
	return slow != NULL;
}

/* The worst of the deepest level: what lies in the elements that the level above kept. */
static void list(const struct np_strategy *self, struct level *levels, int last,
                 struct np_slow_list *out)
{
	struct level *level = &levels[last];
	bool *left = level->kept; /* not needed any more */
	out->view = level->view;
	for (size_t i = 0; i < level->n; i++)
		left[i] = (last == 0 || levels[last - 1].kept[parent_of(self, level, i)]) &&
		          level->score[i] > 0;
	while (out->n < NP_SLOW_TOP) {
		size_t i = best(level, left);
		if (i == SIZE_MAX)
			break;
		left[i] = false;
		struct np_slow *slow = &out->v[out->n++];
		*slow = (struct np_slow){.element = i, .total = level->score[i]};
		for (int l = last; l >= 0; l--) {
			slow->sync[levels[l].dim] = levels[l].sync[i];
			i = l > 0 ? parent_of(self, &levels[l], i) : 0;
		}
	}
}

bool np_slow_elements(const struct np_strategy *self, const double *const by_rank[NP_N_DIMS],
                      struct np_slow_list *out)
{
	struct level levels[LEVELS] = {{.view = NP_VIEW_PP, .dim = NP_DIM_DP},
	                               {.view = NP_VIEW_CP, .dim = NP_DIM_CP},
	                               {.view = NP_VIEW_TP, .dim = NP_DIM_TP}};
	int last = -1;
	bool ok = true;
	*out = (struct np_slow_list){.view = NP_VIEW_PP};
	for (int l = 0; ok && l < LEVELS; l++) {
		ok = prepare(self, &levels[l], by_rank[levels[l].dim]);
		last = ok && levels[l].has ? l : last;
	}
	for (int l = 0; ok && l <= last; l++)
		ok = descend(self, &levels[l], l > 0 ? &levels[l - 1] : NULL);
	if (ok && last >= 0)
		list(self, levels, last, out);
	release(levels);
	return ok;
}
