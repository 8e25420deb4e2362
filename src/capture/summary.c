#include "capture/summary.h"

#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "capture/kernel_header.h"
#include "profile/interval.h"

bool np_is_judged_core(np_str core)
{
	return np_str_is(core, "AI_CORE") || np_str_is(core, "AI_VECTOR_CORE") ||
	       np_str_starts(core, NP_STR("MIX_"));
}

/* Metric columns that are unit ratios, and which units they cover. */
static size_t unit_columns(const struct np_profile *profile, const double **columns, size_t max,
                           unsigned *units)
{
	size_t n = 0;
	for (size_t m = 0; m < profile->metrics.n; m++) {
		np_str name = np_intern_get(&profile->strings, profile->metrics.v[m].name);
		enum np_unit unit = np_unit_of(name);
		if (unit == NP_N_UNITS)
			continue;
		*units |= 1u << unit;
		if (n < max)
			columns[n++] = profile->metrics.v[m].v;
	}
	return n;
}

static bool has_value(const double *const *columns, size_t n, size_t row)
{
	for (size_t c = 0; c < n; c++)
		if (!isnan(columns[c][row]))
			return true;
	return false;
}

/* The cores by string id, so that each name is looked at once and not per row. */
enum core_class { CORE_OTHER, CORE_JUDGED, CORE_COMM };

static enum core_class class_of(const struct np_profile *profile, uint32_t core)
{
	np_str name = np_intern_get(&profile->strings, core);
	if (np_is_comm_core(name))
		return CORE_COMM;
	return np_is_judged_core(name) ? CORE_JUDGED : CORE_OTHER;
}

static bool sum_kernels(struct np_summary *out)
{
	const struct np_profile *profile = out->profile;
	const struct np_kernels *kernels = &profile->kernels;
	const double *columns[16];
	size_t n_columns = unit_columns(profile, columns, 16, &out->units);
	struct np_intervals busy = {0};
	uint32_t last_core = NP_ID_NONE;
	enum core_class class = CORE_OTHER;
	bool ok = true;
	out->kernels = kernels->n;
	for (size_t i = 0; ok && i < kernels->n; i++) {
		if (kernels->core[i] != last_core) {
			last_core = kernels->core[i];
			class = class_of(profile, last_core);
		}
		np_ns end = kernels->start_ns[i] + kernels->dur_ns[i];
		if (out->first_ns == NP_NO_I64 || kernels->start_ns[i] < out->first_ns)
			out->first_ns = kernels->start_ns[i];
		if (end > out->last_ns)
			out->last_ns = end;
		out->outside_steps += kernels->step[i] == NP_NO_U32 && profile->steps.n > 0;
		out->zero_duration += kernels->dur_ns[i] == 0;
		if (class == CORE_COMM) {
			out->comm_kernels++;
			continue;
		}
		ok = np_intervals_add(&busy, kernels->start_ns[i], end);
		if (class == CORE_JUDGED) {
			out->judged_kernels++;
			out->with_units += has_value(columns, n_columns, i);
		}
	}
	np_intervals_merge(&busy);
	out->busy_ns = np_intervals_length(&busy);
	np_intervals_release(&busy);
	return ok;
}

static bool copy_steps(struct np_summary *out)
{
	/* step ids of the kernels, else those of the exporter's step rows */
	const struct np_profile *profile = out->profile;
	size_t n = profile->steps.n ? profile->steps.n : profile->step_trace.n;
	const int64_t *ids = profile->steps.n ? profile->steps.id : profile->step_trace.step;
	out->steps = np_realloc(NULL, n, sizeof *out->steps);
	if (!out->steps)
		return false;
	for (size_t i = 0; i < n; i++)
		if (ids[i] != NP_NO_I64 &&
		    (out->n_steps == 0 || out->steps[out->n_steps - 1] != ids[i]))
			out->steps[out->n_steps++] = ids[i];
	return true;
}

struct job {
	const struct np_captures *all;
	struct np_summary *out;
	unsigned what, threads_each;
	struct np_progress *progress;
};

static void summarize(struct job *job, size_t i)
{
	struct np_summary *out = &job->out[i];
	const struct np_capture *capture = job->all->captures.v[i];
	out->first_ns = out->last_ns = NP_NO_I64;
	if (!np_capture_has_data(capture))
		return;
	out->status =
		np_capture_load(capture, job->what, job->threads_each, &out->profile, &out->err);
	if (out->status != NP_OK)
		return;
	out->loaded = out->profile->loaded;
	out->dropped_rows = out->profile->dropped_rows;
	if (!sum_kernels(out) || !copy_steps(out))
		out->status = np_err_nomem(&out->err);
}

static void summarize_one(void *ctx, size_t i)
{
	struct job *job = ctx;
	summarize(job, i);
	np_progress_step(job->progress);
}

enum np_status np_summarize(const struct np_captures *all, unsigned what, unsigned threads,
                            struct np_progress *progress, struct np_summary **out,
                            struct np_err *err)
{
	size_t n = all->captures.n;
	*out = np_calloc(n, sizeof **out);
	if (!*out)
		return np_err_nomem(err);
	/* many ranks keep the cores busy by themselves; one may use them all */
	struct job job = {all, *out, what, n > 1 ? 1 : threads, progress};
	np_progress_begin(progress, "reading captures", n);
	np_pool_run(threads, n, summarize_one, &job);
	for (size_t i = 0; i < n; i++)
		if ((*out)[i].status == NP_E_NOMEM) {
			np_summaries_free(*out, n);
			*out = NULL;
			return np_err_nomem(err);
		}
	return NP_OK;
}

void np_summaries_free(struct np_summary *self, size_t n)
{
	for (size_t i = 0; self && i < n; i++) {
		np_free(self[i].steps);
		np_profile_free(self[i].profile);
	}
	np_free(self);
}
