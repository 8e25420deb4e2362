#include "advice/beside.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/lang.h"

/* ── lines ── */

static struct np_beside_line *line_of(struct np_beside *self, np_str a, np_str b)
{
	uint32_t x = np_intern_add(&self->strings, a), y = np_intern_add(&self->strings, b);
	if (x == NP_ID_NONE || y == NP_ID_NONE)
		return NULL;
	uint64_t key = (uint64_t)x << 32 | y;
	uint32_t at = np_map_get(&self->keys, key, NP_NO_U32);
	if (at == NP_NO_U32) {
		struct np_beside_line fresh = {.a = x, .b = y};
		at = (uint32_t)self->lines.n;
		if (!np_vec_push(&self->lines, fresh) || !np_map_put(&self->keys, key, at))
			return NULL;
	}
	return &self->lines.v[at];
}

static void add(struct np_beside_sum *sum, np_ns dur)
{
	double ns = (double)dur;
	sum->max_ns = sum->calls == 0 ? ns : fmax(sum->max_ns, ns);
	sum->min_ns = sum->calls == 0 ? ns : fmin(sum->min_ns, ns);
	sum->total_ns += ns;
	sum->self_ns += ns;
	sum->calls++;
}

struct extent {
	np_ns start, end;
};

static void widen(struct extent *extent, np_ns start, np_ns dur)
{
	extent->start = extent->end == 0 || start < extent->start ? start : extent->start;
	extent->end = start + dur > extent->end ? start + dur : extent->end;
}

static void keep_span(struct np_beside *self, unsigned side, const struct extent *extent)
{
	if (side == NP_TARGET)
		self->span_ns = extent->end - extent->start;
}

/* ── kernels ── */

bool np_beside_kernels(struct np_beside *self, const struct np_profile *profile, uint32_t step_row,
                       unsigned side)
{
	const struct np_kernels *kernels = &profile->kernels;
	struct extent extent = {0};
	for (size_t i = 0; i < kernels->n; i++) {
		np_str core = np_intern_get(&profile->strings, kernels->core[i]);
		np_str type = np_intern_get(&profile->strings, kernels->type[i]);
		if ((step_row != NP_NO_U32 && kernels->step[i] != step_row) ||
		    np_is_comm_core(core))
			continue;
		if (kernels->type[i] == NP_ID_NONE || np_is_na(type)) /* level0 */
			type = np_intern_get(&profile->strings, kernels->name[i]);
		struct np_beside_line *line = line_of(self, type, core);
		if (!line)
			return false;
		add(&line->sum[side], kernels->dur_ns[i]);
		widen(&extent, kernels->start_ns[i], kernels->dur_ns[i]);
	}
	keep_span(self, side, &extent);
	return true;
}

/* ── operators of the framework ── */

/* Ranges that are open, one chain per thread. */
struct open {
	np_ns end;
	uint32_t line;  /* NP_NO_U32: not summed */
	uint32_t below; /* NP_NO_U32: none */
};

struct nest {
	NP_VEC(struct open) ranges;
	struct np_map tops; /* thread → innermost range */
};

static bool enter(struct np_beside *self, struct nest *nest, uint64_t thread, np_ns start,
                  np_ns dur, uint32_t line, unsigned side)
{
	uint32_t top = np_map_get(&nest->tops, thread, NP_NO_U32);
	while (top != NP_NO_U32 && nest->ranges.v[top].end <= start)
		top = nest->ranges.v[top].below;
	if (top != NP_NO_U32 && nest->ranges.v[top].line != NP_NO_U32)
		self->lines.v[nest->ranges.v[top].line].sum[side].self_ns -= (double)dur;
	struct open open = {start + dur, line, top};
	return nest->ranges.n < NP_NO_U32 - 1 && np_vec_push(&nest->ranges, open) &&
	       np_map_put(&nest->tops, thread, (uint32_t)nest->ranges.n - 1);
}

static bool add_api(struct np_beside *self, const struct np_profile *profile, struct nest *nest,
                    uint32_t step_row, unsigned side)
{
	const struct np_host_ops *host = &profile->host_ops;
	bool all = step_row == NP_NO_U32;
	np_ns from = all ? 0 : profile->steps.host_start_ns[step_row];
	np_ns to = all ? NP_TIME_MAX : profile->steps.host_end_ns[step_row];
	struct extent extent = {0};
	for (size_t i = 0; i < host->n; i++) { /* ordered by start, the longer first */
		np_str name = np_intern_get(&profile->strings, host->name[i]);
		if (host->layer[i] != NP_HOST_OP || np_str_starts(name, NP_STR("ProfilerStep")))
			continue;
		uint32_t line = NP_NO_U32;
		if (host->start_ns[i] >= from && host->start_ns[i] < to) {
			struct np_beside_line *found = line_of(self, name, NP_STR(""));
			if (!found)
				return false;
			add(&found->sum[side], host->dur_ns[i]);
			widen(&extent, host->start_ns[i], host->dur_ns[i]);
			line = (uint32_t)(found - self->lines.v);
		}
		if (!enter(self, nest, (uint64_t)host->pid[i] << 32 | host->tid[i],
		           host->start_ns[i], host->dur_ns[i], line, side))
			return false;
	}
	keep_span(self, side, &extent);
	return true;
}

bool np_beside_api(struct np_beside *self, const struct np_profile *profile, uint32_t step_row,
                   unsigned side)
{
	struct nest nest = {.ranges = {0}};
	np_map_init(&nest.tops);
	bool ok = add_api(self, profile, &nest, step_row, side);
	for (size_t i = 0; i < self->lines.n; i++) /* children that outlast their parent */
		self->lines.v[i].sum[side].self_ns = fmax(0, self->lines.v[i].sum[side].self_ns);
	np_vec_release(&nest.ranges);
	np_map_release(&nest.tops);
	return ok;
}

/* ── the pair ── */

static void name_side(char *out, size_t size, const struct np_choice *choice)
{
	if (choice->has_step)
		(void)snprintf(out, size, "Rank%lld Step%lld", (long long)choice->rank,
		               (long long)choice->step);
	else
		(void)snprintf(out, size, "Rank%lld", (long long)choice->rank);
}

/* As the official tool calls its sheets. */
static void name_pair(struct np_advice *advice, const struct np_checker *checker,
                      const struct np_choice *target, const struct np_choice *benchmark,
                      struct np_beside *out)
{
	char text[200], left[64], right[64];
	name_side(left, sizeof left, target);
	name_side(right, sizeof right, benchmark);
	if (!advice->options->base)
		(void)snprintf(text, sizeof text, "%s of %s and %s", checker->category, left,
		               right);
	else if (advice->many)
		(void)snprintf(text, sizeof text, "%s of %s and Benchmark", checker->category,
		               left);
	else
		(void)snprintf(text, sizeof text, "%s of Target and Benchmark", checker->category);
	out->title = np_arena_cstr(&advice->report->arena, np_str_of(text));
	advice->oom |= !out->title;
}

/* The same rank of --bp; the first of one that has a single rank. */
static const struct np_capture *in_base(const struct np_captures *base, int64_t rank)
{
	const struct np_capture *first = NULL;
	size_t n = 0;
	for (size_t i = 0; i < base->captures.n; i++) {
		const struct np_capture *capture = base->captures.v[i];
		if (!np_advice_has_kernels(capture))
			continue;
		if (capture->rank == rank)
			return capture;
		first = first ? first : capture;
		n++;
	}
	return n == 1 ? first : NULL;
}

static bool choose(struct np_advice *advice, const struct np_checker *checker,
                   enum np_dimension dimension, struct np_choice *target,
                   struct np_choice *benchmark, double *gap_us)
{
	*gap_us = NAN;
	if (!advice->options->base)
		return np_advice_choose_pair(advice, dimension, target, benchmark, gap_us);
	np_advice_choose(advice, dimension, target);
	*benchmark = *target;
	benchmark->capture = in_base(advice->options->base, target->rank);
	if (!benchmark->capture)
		np_advice_unknown(advice, checker, "the capture of --bp has no rank %lld",
		                  (long long)target->rank);
	return target->capture && benchmark->capture;
}

static unsigned count_steps(const struct np_profile *profile)
{
	unsigned n = 0;
	for (size_t s = 0; s < profile->steps.n; s++)
		n += profile->steps.kernels[s] > 0 || profile->steps.host_start_ns[s] != NP_NO_I64;
	return n > 0 ? n : 1;
}

static bool load_side(struct np_advice *advice, const struct np_choice *choice, unsigned load,
                      np_beside_fn *sum, unsigned side, struct np_beside *out)
{
	struct np_profile *profile = NULL;
	struct np_err err = {0};
	if (np_capture_load(choice->capture, load | NP_STEPS, advice->options->threads, &profile,
	                    &err) != NP_OK) {
		advice->oom = true; /* the only error */
		return false;
	}
	uint32_t step = choice->has_step ? np_profile_find_step(profile, choice->step) : NP_NO_U32;
	out->steps[side] = step == NP_NO_U32 ? count_steps(profile) : 1;
	advice->oom |= !sum(out, profile, step, side);
	np_profile_free(profile);
	return !advice->oom;
}

static int longer_first(const void *a, const void *b, void *ctx)
{
	const struct np_beside *self = ctx;
	const struct np_beside_line *x = a, *y = b;
	double u = np_beside_ns(self, x, NP_TARGET) - np_beside_ns(self, x, NP_BENCHMARK);
	double v = np_beside_ns(self, y, NP_TARGET) - np_beside_ns(self, y, NP_BENCHMARK);
	if (u != v)
		return u > v ? -1 : 1;
	int order = np_str_cmp(np_intern_get(&self->strings, x->a),
	                       np_intern_get(&self->strings, y->a));
	return order ? order
	             : np_str_cmp(np_intern_get(&self->strings, x->b),
	                          np_intern_get(&self->strings, y->b));
}

bool np_beside_make(struct np_advice *advice, const struct np_checker *checker,
                    enum np_dimension dimension, unsigned load, np_beside_fn *sum,
                    struct np_beside *out)
{
	struct np_choice sides[NP_N_SIDES];
	*out = (struct np_beside){.steps = {1, 1}};
	np_map_init(&out->keys);
	if (!np_intern_init(&out->strings)) {
		advice->oom = true;
		return false;
	}
	if (!choose(advice, checker, dimension, &sides[NP_TARGET], &sides[NP_BENCHMARK],
	            &out->gap_us))
		return false;
	name_pair(advice, checker, &sides[NP_TARGET], &sides[NP_BENCHMARK], out);
	for (unsigned s = 0; s < NP_N_SIDES; s++)
		if (!load_side(advice, &sides[s], load, sum, s, out))
			return false;
	/* where no rank was looked at, its own length is what the target is weighed by */
	if (!(advice->step_us > 0))
		advice->step_us = (double)out->span_ns / 1000 / out->steps[NP_TARGET];
	if (out->lines.n > 1)
		qsort_r(out->lines.v, out->lines.n, sizeof *out->lines.v, longer_first, out);
	return out->lines.n > 0;
}

void np_beside_release(struct np_beside *self)
{
	np_intern_release(&self->strings);
	np_map_release(&self->keys);
	np_vec_release(&self->lines);
}

void np_beside_ratio(struct np_table *table, double target, double benchmark)
{
	np_cell_real(table,
	             target > 0 && benchmark > 0 ? round(target / benchmark * 1e4) / 1e4 : NAN);
}
