/*
 * Model FLOPs utilisation of kernels (cluster_and_advisor.md §2.23): the operations that a
 * range "<flops>-<operator>" of the mstx domain "mfu_flops" claims, against the peak of
 * the chip over the time of the kernels that were launched in it.
 *
 *   host    ├─ 8589934592-MatMul ─┤         operations of the range
 *              op      op                   launch
 *   device       k1       k2                ours: each kernel has flops · dur / (dur1 + dur2),
 *                                           so the range's MFU; official: flops, twice
 */
#include <math.h>
#include <stdlib.h>

#include "capture/capture.h"
#include "cluster/modules.h"
#include "cluster/parts.h"

#define NP_TAG np_digest_op_mfu
NP_TABLE_DESC(, np_digest_op_mfu, "op_mfu", NP_DIGEST_OP_MFU_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_mfu_facts
NP_TABLE_DESC(, np_digest_mfu_facts, "mfu_facts", NP_DIGEST_MFU_FACTS_COLUMNS)
#undef NP_TAG

struct flops_range {
	np_ns start, end;
	double flops;
	np_str name;
	uint32_t first; /* row of its first kernel */
	np_ns total;    /* time of its kernels */
	double peak;    /* operations per second; 0: not known for its data type */
};

struct mfu {
	const struct np_map_job *job;
	const struct np_profile *profile;
	struct np_launches launches;
	NP_VEC(struct flops_range) ranges;
	uint32_t *range_of; /* by row of kernels, or NP_NO_U32 */
	double *by_launch;  /* NaN where there is none */
};

/* ── ranges ── */

static int by_start(const void *a, const void *b)
{
	const struct flops_range *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end);
}

static bool collect_ranges(struct mfu *self)
{
	const struct np_mstx *m = &self->profile->mstx;
	const struct np_intern *strings = &self->profile->strings;
	uint32_t domain = np_intern_find(strings, NP_STR("mfu_flops"));
	bool ok = true;
	for (size_t i = 0; ok && domain != NP_ID_NONE && i < m->n; i++) {
		struct flops_range range = {
			.start = m->start_ns[i], .end = m->end_ns[i], .first = NP_NO_U32};
		if (m->event_type[i] != NP_MSTX_START_END || m->domain[i] != domain)
			continue;
		np_str flops = np_str_cut(np_intern_get(strings, m->message[i]), '-', &range.name);
		if (np_str_to_double(flops, &range.flops) && range.flops > 0 &&
		    isfinite(range.flops))
			ok = np_vec_push(&self->ranges, range);
	}
	if (ok && self->ranges.n > 0)
		qsort(self->ranges.v, self->ranges.n, sizeof *self->ranges.v, by_start);
	return ok;
}

/* Without shapes the official tool leaves a kernel out. */
static bool counts(const struct mfu *self, uint32_t kernel)
{
	const struct np_kernel_shapes *s = &self->profile->kernel_shapes;
	return !self->job->options->compat ||
	       (kernel < s->n && s->in_shapes[kernel] != NP_ID_NONE &&
	        s->out_shapes[kernel] != NP_ID_NONE);
}

/* Each kernel into the innermost range around the start of its operator. */
static bool assign(struct mfu *self)
{
	const struct np_kernels *k = &self->profile->kernels;
	NP_VEC(uint32_t) open = {0};
	size_t next = 0;
	bool ok = (self->range_of = np_realloc(NULL, k->n + 1, sizeof(uint32_t))) != NULL;
	for (size_t i = 0; ok && i < k->n; i++)
		self->range_of[i] = NP_NO_U32;
	for (size_t i = 0; ok && i < self->launches.n; i++) {
		const struct np_launch *launch = &self->launches.v[i];
		if (launch->kind != NP_LAUNCH_COMPUTE)
			break; /* they come first */
		while (ok && next < self->ranges.n &&
		       self->ranges.v[next].start <= launch->op_start_ns)
			ok = np_vec_push(&open, (uint32_t)next++);
		while (open.n > 0 && self->ranges.v[open.v[open.n - 1]].end < launch->op_start_ns)
			open.n--;
		if (!ok || open.n == 0 || self->range_of[launch->row] != NP_NO_U32 ||
		    !counts(self, launch->row))
			continue;
		struct flops_range *range = &self->ranges.v[open.v[open.n - 1]];
		self->range_of[launch->row] = open.v[open.n - 1];
		range->total += launch->end_ns - launch->start_ns;
		range->first = range->first == NP_NO_U32 ? launch->row : range->first;
	}
	np_vec_release(&open);
	return ok;
}

/* ── the chip ── */

/* Operations per cycle and core: a cube of 16 × 16 × 16 multiply-adds, twice as many for
 * bytes; 0: not known. */
static double per_cycle(np_str dtype)
{
	static const char *const half[] = {"FLOAT16", "FP16", "BF16", "BFLOAT16", "FLOAT"};
	if (np_str_istarts(dtype, NP_STR("DT_")))
		dtype = np_str_from(dtype, 3);
	for (size_t i = 0; i < sizeof half / sizeof *half; i++)
		if (np_str_ieq(dtype, np_str_of(half[i])))
			return 8192;
	if (np_str_ieq(dtype, NP_STR("INT8")))
		return 16384;
	return dtype.len == 0 ? 8192 : 0; /* nothing recorded: what training uses */
}

static double cycles(const struct np_capture *capture)
{
	const struct np_chip *chip = &capture->chip;
	bool known = chip->recorded && chip->ai_cores > 0 && chip->aic_mhz > 0;
	return known ? (double)chip->ai_cores * chip->aic_mhz * 1e6 : 0;
}

/* By the first input of the first kernel. */
static void set_peaks(struct mfu *self)
{
	const struct np_kernel_shapes *s = &self->profile->kernel_shapes;
	for (size_t i = 0; i < self->ranges.n; i++) {
		struct flops_range *range = &self->ranges.v[i];
		np_str types = {0}, rest;
		if (range->first != NP_NO_U32 && range->first < s->n)
			types = np_intern_get(&self->profile->strings, s->in_dtypes[range->first]);
		types = np_str_cut(types, ';', &rest);
		range->peak = cycles(self->job->capture) * per_cycle(np_str_trim(types));
	}
}

/* ── rows ── */

static np_str without_quotes(np_str text)
{
	while (text.len > 0 && (text.ptr[0] == '"' || text.ptr[0] == '\''))
		text = np_str_from(text, 1);
	while (text.len > 0 && (text.ptr[text.len - 1] == '"' || text.ptr[text.len - 1] == '\''))
		text.len--;
	return text;
}

static bool keep(struct mfu *self, np_str text, np_id *out)
{
	*out = np_intern_add(&self->job->digest->strings, text);
	return *out != NP_ID_NONE;
}

static bool keep_shapes(struct mfu *self, const uint32_t *column, uint32_t kernel, np_id *out)
{
	*out = NP_ID_NONE;
	if (kernel >= self->profile->kernel_shapes.n || column[kernel] == NP_ID_NONE)
		return true;
	return keep(self, without_quotes(np_intern_get(&self->profile->strings, column[kernel])),
	            out);
}

static bool add_row(struct mfu *self, size_t i, const struct flops_range *range)
{
	const struct np_launch *launch = &self->launches.v[i];
	const struct np_kernel_shapes *s = &self->profile->kernel_shapes;
	const struct np_intern *strings = &self->profile->strings;
	struct np_digest_op_mfu *rows = np_digest_table(self->job->digest, &np_digest_op_mfu_desc);
	size_t r = rows ? np_rows_add(rows, &np_digest_op_mfu_desc) : SIZE_MAX;
	if (r == SIZE_MAX)
		return false;
	np_ns dur = launch->end_ns - launch->start_ns;
	bool compat = self->job->options->compat;
	double seconds = (double)(compat ? dur : range->total) * 1e-9;
	rows->start_ns[r] = launch->start_ns;
	rows->end_ns[r] = launch->end_ns;
	rows->peak[r] = range->peak;
	rows->mfu[r] = self->by_launch[i] = range->flops / seconds / range->peak;
	rows->flops_per_s[r] = range->flops / seconds;
	rows->flops[r] =
		compat ? range->flops : range->flops * ((double)dur / (double)range->total);
	return keep(self, np_intern_get(strings, self->profile->host_ops.name[launch->op]),
	            &rows->op[r]) &&
	       keep(self, np_intern_get(strings, launch->name), &rows->kernel[r]) &&
	       keep(self, range->name, &rows->flops_op[r]) &&
	       keep_shapes(self, s->in_shapes, launch->row, &rows->in_shapes[r]) &&
	       keep_shapes(self, s->out_shapes, launch->row, &rows->out_shapes[r]);
}

static bool add_rows(struct mfu *self)
{
	self->by_launch = np_realloc(NULL, self->launches.n + 1, sizeof *self->by_launch);
	for (size_t i = 0; self->by_launch && i < self->launches.n; i++) {
		const struct np_launch *launch = &self->launches.v[i];
		self->by_launch[i] = NAN;
		uint32_t at =
			launch->kind == NP_LAUNCH_COMPUTE ? self->range_of[launch->row] : NP_NO_U32;
		if (at == NP_NO_U32 || self->ranges.v[at].peak <= 0 ||
		    launch->end_ns <= launch->start_ns)
			continue;
		if (!add_row(self, i, &self->ranges.v[at]))
			return false;
	}
	return self->by_launch != NULL;
}

static bool add_facts(const struct mfu *self)
{
	struct np_digest_mfu_facts *facts =
		np_digest_table(self->job->digest, &np_digest_mfu_facts_desc);
	size_t r = facts ? np_rows_add(facts, &np_digest_mfu_facts_desc) : SIZE_MAX;
	if (r == SIZE_MAX)
		return false;
	facts->ranges[r] = (int64_t)self->ranges.n;
	facts->launches[r] = (int64_t)self->launches.n;
	facts->chip[r] = cycles(self->job->capture) > 0;
	return true;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct mfu self = {.job = job, .profile = job->profile};
	bool ok = np_launches_collect(job->profile, &self.launches) && collect_ranges(&self) &&
	          add_facts(&self) && assign(&self);
	enum np_status status = NP_OK;
	if (ok)
		set_peaks(&self);
	ok = ok && add_rows(&self);
	if (ok)
		status = np_modules_map(job, &self.launches, self.by_launch,
		                        &np_digest_module_mfu_desc, err);
	np_launches_release(&self.launches);
	np_vec_release(&self.ranges);
	np_free(self.range_of);
	np_free(self.by_launch);
	return ok ? status : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {
	&np_digest_op_mfu_desc, &np_digest_mfu_facts_desc, &np_digest_module_mfu_desc, NULL};

const struct np_part np_part_op_mfu = {
	.name = "op_mfu",
	.revision = 1,
	.load = NP_MODULES_LOAD | NP_KERNEL_SHAPES,
	.tables = tables,
	.map = map,
};
