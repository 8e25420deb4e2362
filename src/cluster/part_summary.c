/* Of each rank: its steps, its kernels by core, its communication. */
#include <math.h>

#include "cluster/summary.h"
#include "profile/interval.h"

#define NP_TAG np_digest_summary_step
NP_TABLE_DESC(, np_digest_summary_step, "summary_step", NP_DIGEST_SUMMARY_STEP_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_summary_core
NP_TABLE_DESC(, np_digest_summary_core, "summary_core", NP_DIGEST_SUMMARY_CORE_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_summary_comm
NP_TABLE_DESC(, np_digest_summary_comm, "summary_comm", NP_DIGEST_SUMMARY_COMM_COLUMNS)
#undef NP_TAG

static const struct np_table_desc *const tables[] = {&np_digest_summary_step_desc,
                                                     &np_digest_summary_core_desc,
                                                     &np_digest_summary_comm_desc, NULL};

/* ── the exporter's rows ── */

static bool take_steps(const struct np_map_job *job)
{
	const struct np_step_trace *in = &job->profile->step_trace;
	struct np_digest_summary_step *out =
		np_digest_table(job->digest, &np_digest_summary_step_desc);
	for (size_t i = 0; out && i < in->n; i++) {
		size_t r = np_rows_add(out, &np_digest_summary_step_desc);
		if (r == SIZE_MAX)
			return false;
		out->step[r] = in->step[i];
		out->computing[r] = in->computing_us[i];
		out->comm_not_overlapped[r] = in->comm_not_overlapped_us[i];
		out->overlapped[r] = in->overlapped_us[i];
		out->comm[r] = in->comm_us[i];
		out->free[r] = in->free_us[i];
		out->stage[r] = in->stage_us[i];
		out->bubble[r] = in->bubble_us[i];
		out->preparing[r] = in->preparing_us[i];
		out->computed[r] = 0;
	}
	return out != NULL;
}

/* ── kernels ── */

/* The kernels of one step: the sets they cover, and from where to where. */
struct span {
	struct np_intervals compute, comm, beside, alone;
	np_ns start, end;
};

static void clear(struct span *self)
{
	self->compute.n = self->comm.n = 0;
	self->start = INT64_MAX;
	self->end = INT64_MIN;
}

static void release(struct span *self)
{
	np_intervals_release(&self->compute);
	np_intervals_release(&self->comm);
	np_intervals_release(&self->beside);
	np_intervals_release(&self->alone);
}

/* Steps of one core stand together: kernels are in order of time. */
static bool add_core(const struct np_map_job *job, struct np_digest_summary_core *out, int64_t step,
                     size_t kernel)
{
	const struct np_kernels *kernels = &job->profile->kernels;
	np_id core;
	if (!np_digest_string(job->digest, &job->profile->strings, kernels->core[kernel], &core))
		return false;
	size_t r = out->n;
	while (r > 0 && (out->step[r - 1] != step || out->core[r - 1] != core))
		r--;
	if (r > 0) {
		out->kernels[r - 1]++;
		out->dur_ns[r - 1] += kernels->dur_ns[kernel];
		return true;
	}
	r = np_rows_add(out, &np_digest_summary_core_desc);
	if (r == SIZE_MAX)
		return false;
	out->step[r] = step;
	out->core[r] = core;
	out->kernels[r] = 1;
	out->dur_ns[r] = kernels->dur_ns[kernel];
	return true;
}

/* Kernels of the step `row` (NP_NO_U32: all), which begin at order[0]. */
static bool measure(const struct np_map_job *job, const uint32_t *order, size_t n, int64_t step,
                    struct span *span, struct np_digest_summary_core *cores)
{
	const struct np_kernels *kernels = &job->profile->kernels;
	clear(span);
	for (size_t k = 0; k < n; k++) {
		uint32_t i = order[k];
		np_ns start = kernels->start_ns[i], end = start + kernels->dur_ns[i];
		bool comm =
			np_is_comm_core(np_intern_get(&job->profile->strings, kernels->core[i]));
		span->start = start < span->start ? start : span->start;
		span->end = end > span->end ? end : span->end;
		if (!np_intervals_add(comm ? &span->comm : &span->compute, start, end) ||
		    (!comm && !add_core(job, cores, step, i)))
			return false;
	}
	np_intervals_merge(&span->compute);
	np_intervals_merge(&span->comm);
	return np_intervals_intersect(&span->comm, &span->compute, &span->beside) &&
	       np_intervals_subtract(&span->comm, &span->compute, &span->alone);
}

static bool keep_comm(const struct np_map_job *job, int64_t step, const struct span *span)
{
	struct np_digest_summary_comm *out =
		np_digest_table(job->digest, &np_digest_summary_comm_desc);
	size_t r = out ? np_rows_add(out, &np_digest_summary_comm_desc) : SIZE_MAX;
	if (r == SIZE_MAX)
		return false;
	out->step[r] = step;
	out->start_ns[r] = span->start;
	out->alone_ns[r] = np_intervals_length(&span->alone);
	out->beside_ns[r] = np_intervals_length(&span->beside);
	return true;
}

static double us(np_ns ns)
{
	return (double)ns / 1e3;
}

/* What step_trace_time.csv would say, where there is none. */
static bool compute_step(const struct np_map_job *job, uint32_t row, int64_t step,
                         const struct span *span)
{
	const struct np_steps *steps = &job->profile->steps;
	struct np_digest_summary_step *out =
		np_digest_table(job->digest, &np_digest_summary_step_desc);
	size_t r = out ? np_rows_add(out, &np_digest_summary_step_desc) : SIZE_MAX;
	if (r == SIZE_MAX)
		return false;
	np_ns computing = np_intervals_length(&span->compute);
	np_ns alone = np_intervals_length(&span->alone);
	np_ns host = row < steps->n ? steps->host_start_ns[row] : NP_NO_I64;
	out->step[r] = step;
	out->computing[r] = us(computing);
	out->comm_not_overlapped[r] = us(alone);
	out->overlapped[r] = us(np_intervals_length(&span->beside));
	out->comm[r] = us(np_intervals_length(&span->comm));
	out->stage[r] = us(span->end - span->start);
	out->free[r] = us(span->end - span->start - computing - alone);
	out->bubble[r] = NAN;
	out->preparing[r] = host == NP_NO_I64 ? NAN : us(span->start - host);
	out->computed[r] = 1;
	return true;
}

/* One step after the other: rows of `order`, by step, in start[s] … start[s + 1]. */
static bool by_steps(const struct np_map_job *job, const uint32_t *order, const size_t *start,
                     size_t n_steps)
{
	const struct np_profile *profile = job->profile;
	struct np_digest_summary_core *cores =
		np_digest_table(job->digest, &np_digest_summary_core_desc);
	struct span span = {.start = 0};
	bool ok = cores != NULL, given = profile->step_trace.n > 0;
	for (size_t s = 0; ok && s < n_steps; s++) {
		size_t n = start[s + 1] - start[s];
		uint32_t row = s < profile->steps.n ? (uint32_t)s : NP_NO_U32;
		int64_t step = row == NP_NO_U32 ? NP_NO_I64 : profile->steps.id[s];
		if (n == 0)
			continue;
		ok = measure(job, order + start[s], n, step, &span, cores) &&
		     keep_comm(job, step, &span) && (given || compute_step(job, row, step, &span));
	}
	release(&span);
	return ok;
}

/* Counting sort of the kernels by step; those outside of every step are left out when
 * there are steps. */
static bool take_kernels(const struct np_map_job *job)
{
	const struct np_profile *profile = job->profile;
	const struct np_kernels *kernels = &profile->kernels;
	size_t n_steps = profile->steps.n > 0 ? profile->steps.n : 1;
	uint32_t *order = np_realloc(NULL, kernels->n + 1, sizeof *order);
	size_t *start = np_calloc(n_steps + 2, sizeof *start);
	bool ok = order && start;
	for (size_t i = 0; ok && i < kernels->n; i++) {
		size_t s = profile->steps.n > 0 ? kernels->step[i] : 0;
		start[(s < n_steps ? s : n_steps) + 1]++;
	}
	for (size_t s = 0; ok && s <= n_steps; s++)
		start[s + 1] += start[s];
	size_t *next = ok ? np_calloc(n_steps + 1, sizeof *next) : NULL;
	ok = ok && next;
	for (size_t i = 0; ok && i < kernels->n; i++) {
		size_t s = profile->steps.n > 0 ? kernels->step[i] : 0;
		s = s < n_steps ? s : n_steps;
		order[start[s] + next[s]++] = (uint32_t)i;
	}
	ok = ok && by_steps(job, order, start, n_steps);
	np_free(order);
	np_free(start);
	np_free(next);
	return ok;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	return take_steps(job) && take_kernels(job) ? NP_OK : np_err_nomem(err);
}

const struct np_part np_part_summary = {
	.name = "summary",
	.revision = 1,
	.load = NP_STEPS | NP_KERNELS | NP_STEP_TRACE,
	.tables = tables,
	.map = map,
};
