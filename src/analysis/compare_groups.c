/*
 * Medians by group and sample, their difference, and what to call it.
 */
#include <math.h>
#include <string.h>

#include "analysis/compare_side.h"

/* ── keys ── */

void np_cmp_keys_init(struct np_cmp_keys *self)
{
	memset(self, 0, sizeof *self);
	np_map_init(&self->pairs);
	np_map_init(&self->triples);
}

void np_cmp_keys_release(struct np_cmp_keys *self)
{
	np_map_release(&self->pairs);
	np_map_release(&self->triples);
	np_vec_release(&self->v);
}

uint32_t np_cmp_keys_add(struct np_cmp_keys *self, uint32_t a, uint32_t b, uint32_t c)
{
	uint64_t ab = np_cmp_pair_key(a, b);
	uint32_t pair = np_map_get(&self->pairs, ab, NP_NO_U32);
	if (pair == NP_NO_U32) {
		pair = (uint32_t)self->pairs.n;
		if (!np_map_put(&self->pairs, ab, pair))
			return NP_NO_U32;
	}
	uint64_t abc = np_cmp_pair_key(pair, c);
	uint32_t key = np_map_get(&self->triples, abc, NP_NO_U32);
	struct np_cmp_key fresh = {a, b, c};
	if (key == NP_NO_U32 && np_vec_push(&self->v, fresh)) {
		key = (uint32_t)self->v.n - 1;
		if (!np_map_put(&self->triples, abc, key))
			return NP_NO_U32;
	}
	return key;
}

/* ── verdicts ── */

const char *np_cmp_verdict_name(enum np_cmp_verdict verdict)
{
	static const char *const names[] = {"within noise", "slower",  "faster",
	                                    "new",          "removed", "minor"};
	return names[verdict];
}

double np_cmp_change(double base, double target)
{
	return base > 0 ? target / base - 1 : NAN;
}

enum np_cmp_verdict np_cmp_judge(const struct np_rules *rules, np_ns base, np_ns target,
                                 bool has_interval, np_ns low, np_ns high)
{
	if (base <= 0 && target <= 0)
		return NP_CMP_NOISE;
	double change = np_cmp_change((double)base, (double)target);
	if (fabs(change) <= rules->compare_warn || (has_interval && low <= 0 && high >= 0))
		return NP_CMP_NOISE;
	return target > base ? NP_CMP_SLOWER : NP_CMP_FASTER;
}

/* ── one side's points by key ── */

struct grouped {
	const struct np_cmp_points *points;
	uint32_t *start; /* of each key in order; one more at the end */
	uint32_t *order;
	np_ns *sums, *selfs; /* by sample, while a key is looked at */
	int64_t *counts;
	uint32_t *touched;
	int64_t *sorted; /* n_samples */
};

static bool group_by_key(const struct np_cmp_points *points, size_t n_keys, struct grouped *out)
{
	size_t n = points->n_samples + 1;
	*out = (struct grouped){.points = points};
	out->start = np_calloc(n_keys + 2, sizeof *out->start);
	out->order = np_realloc(NULL, points->n + 1, sizeof *out->order);
	out->sums = np_calloc(n, sizeof *out->sums);
	out->selfs = np_calloc(n, sizeof *out->selfs);
	out->counts = np_calloc(n, sizeof *out->counts);
	out->touched = np_realloc(NULL, n, sizeof *out->touched);
	out->sorted = np_realloc(NULL, n, sizeof *out->sorted);
	if (!out->start || !out->order || !out->sums || !out->selfs || !out->counts ||
	    !out->touched || !out->sorted)
		return false;
	for (size_t i = 0; i < points->n; i++)
		out->start[points->v[i].key + 2]++;
	for (size_t k = 2; k < n_keys + 2; k++)
		out->start[k] += out->start[k - 1];
	for (size_t i = 0; i < points->n; i++)
		out->order[out->start[points->v[i].key + 1]++] = (uint32_t)i;
	return true;
}

static void grouped_release(struct grouped *self)
{
	np_free(self->start);
	np_free(self->order);
	np_free(self->sums);
	np_free(self->selfs);
	np_free(self->counts);
	np_free(self->touched);
	np_free(self->sorted);
}

/* The median of k values in `by_sample` at `touched` and of 0 for all other samples. */
static int64_t median_of(struct grouped *self, const int64_t *by_sample, size_t k)
{
	size_t n = self->points->n_samples, zeros = n - k;
	for (size_t i = 0; i < k; i++)
		self->sorted[zeros + i] = by_sample[self->touched[i]];
	np_sort_i64(self->sorted + zeros, k);
	/* the zeros stand in front; only the middle is looked at */
	size_t low = (n - 1) / 2, high = n / 2;
	int64_t x = low < zeros ? 0 : self->sorted[low];
	int64_t y = high < zeros ? 0 : self->sorted[high];
	return x + (y - x) / 2;
}

/* The middle of a count may be a half. */
static double count_median(struct grouped *self, size_t k)
{
	size_t n = self->points->n_samples, zeros = n - k;
	(void)median_of(self, self->counts, k);
	size_t low = (n - 1) / 2, high = n / 2;
	double x = low < zeros ? 0 : (double)self->sorted[low];
	double y = high < zeros ? 0 : (double)self->sorted[high];
	return (x + y) / 2;
}

/* Leaves the sums of the key in self->sorted, ascending, zeros included when `expand`. */
static void stat_of(struct grouped *self, size_t key, struct np_cmp_stat *out)
{
	size_t k = 0, n = self->points->n_samples;
	for (size_t i = self->start[key]; i < self->start[key + 1]; i++) {
		const struct np_cmp_point *point = &self->points->v[self->order[i]];
		if (self->counts[point->sample]++ == 0)
			self->touched[k++] = point->sample;
		self->sums[point->sample] += point->ns;
		self->selfs[point->sample] += point->self;
	}
	out->n = self->start[key + 1] - self->start[key];
	out->count = n > 0 ? count_median(self, k) : 0;
	out->self = n > 0 ? median_of(self, self->selfs, k) : 0;
	out->median = n > 0 ? median_of(self, self->sums, k) : 0;
	for (size_t i = 0; i < k; i++) {
		uint32_t sample = self->touched[i];
		self->counts[sample] = self->sums[sample] = self->selfs[sample] = 0;
	}
	self->touched[0] = (uint32_t)(n - k); /* zeros in front, for fill_zeros() */
}

static const int64_t *with_zeros(struct grouped *self)
{
	for (size_t i = 0; i < self->touched[0]; i++)
		self->sorted[i] = 0;
	return self->sorted;
}

/* ── both sides ── */

static bool is_minor(const struct np_cmp_pair *pair, const struct np_cmp_group *group)
{
	double share = pair->compare->rules->compare_minor;
	return (double)group->base.median < share * (double)pair->base_span &&
	       (double)group->target.median < share * (double)pair->target_span;
}

static void judge(struct np_cmp_pair *pair, struct grouped *base, struct grouped *target,
                  struct np_cmp_group *group)
{
	bool minor = is_minor(pair, group);
	if (!minor && np_bootstrap_usable(&pair->samples)) {
		np_bootstrap_difference(&pair->samples, with_zeros(base), with_zeros(target),
		                        &group->low, &group->high);
		group->has_interval = true;
	}
	if (group->base.n == 0 || group->target.n == 0)
		group->verdict = group->base.n == 0 ? NP_CMP_NEW : NP_CMP_REMOVED;
	else if (minor)
		group->verdict = NP_CMP_MINOR;
	else
		group->verdict =
			np_cmp_judge(pair->compare->rules, group->base.median, group->target.median,
		                     group->has_interval, group->low, group->high);
}

bool np_cmp_group(struct np_cmp_pair *pair, const struct np_cmp_points *base,
                  const struct np_cmp_points *target, size_t n_keys, struct np_cmp_groups *out)
{
	struct grouped b = {0}, t = {0};
	bool ok = group_by_key(base, n_keys, &b) && group_by_key(target, n_keys, &t);
	for (size_t key = 0; ok && key < n_keys; key++) {
		struct np_cmp_group group = {.key = (uint32_t)key};
		stat_of(&b, key, &group.base);
		stat_of(&t, key, &group.target);
		if (group.base.n + group.target.n == 0)
			continue;
		judge(pair, &b, &t, &group);
		ok = np_vec_push(&out->v, group);
	}
	grouped_release(&b);
	grouped_release(&t);
	return ok;
}

/* ── the samples as a whole ── */

static np_ns total_of(const struct np_cmp_sample *sample, int id)
{
	const np_ns fields[] = {
#define X(id, name, field, what) sample->field,
		NP_CMP_TOTAL_MAP(X)
#undef X
	};
	return fields[id];
}

static int64_t count_of(const struct np_cmp_sample *sample, int id)
{
	const int64_t fields[] = {
#define X(id, name, field, what) sample->field,
		NP_CMP_COUNT_MAP(X)
#undef X
	};
	return fields[id];
}

static void sort_samples(const struct np_cmp_side *side, int id, bool counts, int64_t *out)
{
	for (size_t i = 0; i < side->samples.n; i++)
		out[i] = counts ? count_of(&side->samples.v[i], id)
		                : total_of(&side->samples.v[i], id);
	np_sort_i64(out, side->samples.n);
}

static double half_median(const int64_t *sorted, size_t n)
{
	size_t low = (n - 1) / 2, high = n / 2; /* one and the same when n is odd */
	return ((double)sorted[low] + (double)sorted[high]) / 2;
}

bool np_cmp_totals(struct np_cmp_pair *pair)
{
	size_t nb = pair->base->samples.n, nt = pair->target->samples.n;
	int64_t *base = np_realloc(NULL, nb, sizeof *base);
	int64_t *target = np_realloc(NULL, nt, sizeof *target);
	bool ok = base && target && np_bootstrap_init(&pair->samples, nb, nt);
	for (int id = 0; ok && id < NP_CMP_TOTALS; id++) {
		sort_samples(pair->base, id, false, base);
		sort_samples(pair->target, id, false, target);
		struct np_cmp_total_row *row = &pair->totals[id];
		row->base = np_median_sorted(base, nb);
		row->target = np_median_sorted(target, nt);
		row->has_interval = np_bootstrap_usable(&pair->samples);
		if (row->has_interval)
			np_bootstrap_difference(&pair->samples, base, target, &row->low,
			                        &row->high);
		row->verdict = np_cmp_judge(pair->compare->rules, row->base, row->target,
		                            row->has_interval, row->low, row->high);
	}
	for (int id = 0; ok && id < NP_CMP_COUNTS; id++) {
		sort_samples(pair->base, id, true, base);
		sort_samples(pair->target, id, true, target);
		pair->counts[id].base = half_median(base, nb);
		pair->counts[id].target = half_median(target, nt);
	}
	pair->base_span = pair->totals[NP_CMP_TOTAL_SPAN].base;
	pair->target_span = pair->totals[NP_CMP_TOTAL_SPAN].target;
	np_free(base);
	np_free(target);
	return ok;
}

/* ── kernels ── */

enum by { BY_CLASS, BY_TYPE, BY_OP };

/* Give every kernel its keys. What one side does not record parts nothing. */
static bool set_keys(struct np_cmp_pair *pair, struct np_cmp_side *side)
{
	bool types = pair->base->has_types && pair->target->has_types;
	bool shapes = pair->base->has_shapes && pair->target->has_shapes;
	for (size_t i = 0; i < side->kernels.n; i++) {
		struct np_cmp_kernel *kernel = &side->kernels.v[i];
		uint32_t type = kernel->stream == NP_CMP_COMM ? kernel->name
		                : types && kernel->type       ? kernel->type
		                                              : kernel->name;
		kernel->key_type = np_cmp_keys_add(&pair->types, type, 0, 0);
		kernel->key_op = np_cmp_keys_add(&pair->ops, type, kernel->name,
		                                 shapes ? kernel->shapes : 0);
		if (kernel->key_type == NP_NO_U32 || kernel->key_op == NP_NO_U32)
			return false;
	}
	return true;
}

static bool points_of(const struct np_cmp_side *side, enum by by, struct np_cmp_points *out)
{
	out->n = 0;
	out->n_samples = side->samples.n;
	if (!np_vec_reserve(out, side->kernels.n))
		return false;
	for (size_t i = 0; i < side->kernels.n; i++) {
		const struct np_cmp_kernel *kernel = &side->kernels.v[i];
		uint32_t key = by == BY_CLASS  ? kernel->class
		               : by == BY_TYPE ? kernel->key_type
		                               : kernel->key_op;
		out->v[out->n++] = (struct np_cmp_point){key, kernel->sample, kernel->dur, 0};
	}
	return true;
}

static bool group_kernels(struct np_cmp_pair *pair, enum by by, size_t n_keys,
                          struct np_cmp_points scratch[2], struct np_cmp_groups *out)
{
	return points_of(pair->base, by, &scratch[0]) && points_of(pair->target, by, &scratch[1]) &&
	       np_cmp_group(pair, &scratch[0], &scratch[1], n_keys, out);
}

bool np_cmp_kernel_groups(struct np_cmp_pair *pair)
{
	struct np_cmp_points scratch[2] = {{0}, {0}};
	bool ok = set_keys(pair, pair->base) && set_keys(pair, pair->target) &&
	          group_kernels(pair, BY_CLASS, NP_N_CLASSES, scratch, &pair->by_class) &&
	          group_kernels(pair, BY_TYPE, pair->types.v.n, scratch, &pair->by_type) &&
	          group_kernels(pair, BY_OP, pair->ops.v.n, scratch, &pair->by_op);
	np_vec_release(&scratch[0]);
	np_vec_release(&scratch[1]);
	return ok;
}
