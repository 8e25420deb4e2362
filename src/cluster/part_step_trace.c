/*
 * The step trace of a rank: what the exporter has written, or, for msprof and
 * MindSpore captures that have no such file, computed from kernels and collectives
 * (cluster_and_advisor.md §2.3, §2.4).
 */
#include <math.h>

#include "capture/reader.h"
#include "cluster/parts.h"
#include "profile/interval.h"

#define NP_TAG np_digest_step_trace
NP_TABLE_DESC(, np_digest_step_trace, "step_trace", NP_DIGEST_STEP_TRACE_COLUMNS)
#undef NP_TAG

static bool add(struct np_digest_step_trace *to, int64_t step, const double values[9])
{
	size_t r = np_rows_add(to, &np_digest_step_trace_desc);
	if (r == SIZE_MAX)
		return false;
	double *const columns[] = {to->computing,  to->comm_not_overlapped,
	                           to->overlapped, to->comm,
	                           to->free,       to->stage,
	                           to->bubble,     to->comm_not_overlapped_exclude_receive,
	                           to->preparing};
	to->step[r] = step;
	for (size_t c = 0; c < 9; c++)
		columns[c][r] = values[c];
	return true;
}

static bool copy(const struct np_step_trace *from, struct np_digest_step_trace *to)
{
	for (size_t i = 0; i < from->n; i++) {
		const double values[9] = {
			from->computing_us[i],  from->comm_not_overlapped_us[i],
			from->overlapped_us[i], from->comm_us[i],
			from->free_us[i],       from->stage_us[i],
			from->bubble_us[i],     from->comm_not_overlapped_exclude_receive_us[i],
			from->preparing_us[i]};
		if (!add(to, from->step[i], values))
			return false;
	}
	return true;
}

/* ── computed ── */

struct times {
	struct np_intervals computing, comm, alone, both;
	np_ns receive_ns;
};

static bool collect(const struct np_profile *profile, struct times *out)
{
	const struct np_kernels *k = &profile->kernels;
	const struct np_comm_ops *c = &profile->comm_ops;
	bool ok = true;
	for (size_t i = 0; ok && i < k->n; i++)
		if (!np_is_comm_core(np_intern_get(&profile->strings, k->core[i])))
			ok = np_intervals_add(&out->computing, k->start_ns[i],
			                      k->start_ns[i] + k->dur_ns[i]);
	for (size_t i = 0; ok && i < c->n; i++) {
		ok = np_intervals_add(&out->comm, c->start_ns[i], c->start_ns[i] + c->dur_ns[i]);
		if (np_str_istarts(np_intern_get(&profile->strings, c->name[i]),
		                   NP_STR("hcom_receive")))
			out->receive_ns += c->dur_ns[i];
	}
	np_intervals_merge(&out->computing);
	np_intervals_merge(&out->comm);
	return ok && np_intervals_subtract(&out->comm, &out->computing, &out->alone) &&
	       np_intervals_union(&out->comm, &out->computing, &out->both);
}

/* free: the holes between what computes or communicates */
static bool compute(const struct np_profile *profile, struct np_digest_step_trace *to)
{
	struct times t = {.receive_ns = 0};
	bool ok = collect(profile, &t);
	if (ok && t.both.n > 0) {
		np_ns computing = np_intervals_length(&t.computing);
		np_ns comm = np_intervals_length(&t.comm), alone = np_intervals_length(&t.alone);
		np_ns whole = t.both.v[t.both.n - 1].end - t.both.v[0].start;
		np_ns idle = whole - np_intervals_length(&t.both), bubble = t.receive_ns;
		const np_ns ns[9] = {computing,      alone,  comm - alone,   comm, idle,
		                     whole - bubble, bubble, alone - bubble, 0};
		double values[9];
		for (size_t i = 0; i < 9; i++)
			values[i] = (double)ns[i] / 1e3;
		ok = add(to, NP_NO_I64, values);
	}
	np_intervals_release(&t.computing);
	np_intervals_release(&t.comm);
	np_intervals_release(&t.alone);
	np_intervals_release(&t.both);
	return ok;
}

static bool is_computed(const struct np_capture *capture)
{
	return capture->framework == NP_FW_MSPROF || capture->framework == NP_FW_MINDSPORE;
}

static unsigned load_more(const struct np_capture *capture)
{
	return is_computed(capture) ? NP_KERNELS | NP_COMM : 0;
}

/*
 * A capture with both formats: the exporter wrote exact figures into analysis.db, and into
 * the csv what is left of them after sums of float64 epochs (810022.36 and 810022.25). The
 * profile has those of the csv.
 */
static enum np_status from_analysis_db(const struct np_capture *capture,
                                       struct np_digest_step_trace *to, struct np_err *err)
{
	const struct np_file *file = np_capture_file(capture, NP_ROLE_ANALYSIS_DB);
	if (!file || !file->readable || np_capture_count(capture, NP_ROLE_STEP_TRACE) == 0)
		return NP_OK;
	struct np_profile *profile = np_profile_new();
	if (!profile)
		return np_err_nomem(err);
	struct np_read read = {.profile = profile, .what = NP_STEP_TRACE, .threads = 1};
	enum np_status status = np_read_analysis_db(&read, file->path, err);
	bool ok = status != NP_E_NOMEM && (status != NP_OK || copy(&profile->step_trace, to));
	np_profile_free(profile); /* damage has been told by the one that was loaded */
	return ok ? NP_OK : np_err_nomem(err);
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	const struct np_profile *profile = job->profile;
	struct np_digest_step_trace *to = np_digest_table(job->digest, &np_digest_step_trace_desc);
	if (!to)
		return np_err_nomem(err);
	NP_TRY(from_analysis_db(job->capture, to, err));
	bool ok = to->n > 0 || copy(&profile->step_trace, to);
	if (ok && to->n == 0 && is_computed(job->capture))
		ok = compute(profile, to);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_step_trace_desc, NULL};

const struct np_part np_part_step_trace = {
	.name = "step_trace",
	.revision = 1,
	.load = NP_STEP_TRACE,
	.load_more = load_more,
	.tables = tables,
	.map = map,
};
