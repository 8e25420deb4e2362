/*
 * Which captures make the cluster: one per rank, the newest where there are
 * several and --force allows it.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/lint.h"
#include "cluster/internal.h"

static bool has_any_data(const struct np_capture *capture)
{
	return capture->framework != NP_FW_CLUSTER &&
	       (np_capture_has_data(capture) || (capture->formats & NP_HAS_ANALYSIS));
}

/* The newer batch, else the later path: the same choice on every machine. */
static bool is_newer(const struct np_capture *a, const struct np_capture *b)
{
	int order = strcmp(a->batch, b->batch);
	return order != 0 ? order > 0 : strcmp(a->path, b->path) > 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct np_cluster_rank *x = a, *y = b;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return is_newer(x->capture, y->capture) ? -1 : 1;
}

static bool add(struct np_cluster *self, const struct np_capture *capture)
{
	return np_vec_push(&self->ranks,
	                   (struct np_cluster_rank){.capture = capture, .rank = capture->rank});
}

static enum np_status collect(struct np_cluster *self, struct np_err *err)
{
	size_t unknown = 0;
	const struct np_capture *last = NULL;
	for (size_t i = 0; i < self->all->captures.n; i++) {
		const struct np_capture *capture = self->all->captures.v[i];
		if (!has_any_data(capture))
			continue;
		if (capture->rank == NP_NO_I64) {
			unknown++;
			last = capture;
		} else if (!add(self, capture)) {
			return np_err_nomem(err);
		}
	}
	if (unknown == 0)
		return NP_OK;
	struct np_finding *finding = np_report_finding(
		self->report, "CLUSTER_RANK_UNKNOWN", NP_WARNING,
		"%zu captures do not say which rank they are, and are left out", unknown);
	np_finding_evidence(finding, last->path, NULL, NULL, "%s", "");
	np_finding_advice(finding,
	                  "keep profiler_info_<rank>.json beside the deliverables, or name "
	                  "the directory rank_<N>_ascend_pt");
	np_cluster_exit(self, 3);
	return NP_OK;
}

/* ── --rank_list ── */

static bool in_list(const char *list, int64_t rank)
{
	np_str rest = np_str_of(list);
	int64_t wanted;
	do {
		np_str one = np_str_trim(np_str_cut(rest, ',', &rest));
		if (np_str_to_i64(one, &wanted) && wanted == rank)
			return true;
	} while (rest.len > 0);
	return false;
}

static enum np_status check_list(struct np_cluster *self, const char *list, struct np_err *err)
{
	np_str rest = np_str_of(list);
	int64_t wanted;
	do {
		np_str one = np_str_trim(np_str_cut(rest, ',', &rest));
		if (!np_str_to_i64(one, &wanted))
			return np_err_set(err, NP_E_USAGE, NULL,
			                  "--rank_list wants numbers like 0,1,5 or all, got '%s'",
			                  list);
		if (np_cluster_find_rank(self, wanted) != SIZE_MAX)
			continue;
		(void)np_report_finding(self->report, "CLUSTER_RANK_ABSENT", NP_WARNING,
		                        "rank %lld of --rank_list is not there", (long long)wanted);
		np_cluster_exit(self, 3);
	} while (rest.len > 0);
	return NP_OK;
}

static enum np_status filter(struct np_cluster *self, struct np_err *err)
{
	const char *list = self->options->rank_list;
	if (!list || strcmp(list, "all") == 0)
		return NP_OK;
	NP_TRY(check_list(self, list, err));
	size_t kept = 0;
	for (size_t i = 0; i < self->ranks.n; i++)
		if (in_list(list, self->ranks.v[i].rank))
			self->ranks.v[kept++] = self->ranks.v[i];
	self->ranks.n = kept;
	if (kept == 0)
		return np_err_set(err, NP_E_NOTFOUND, self->all->input,
		                  "none of the ranks of --rank_list is there");
	return NP_OK;
}

/* ── the gate ── */

/* Several captures of one rank: the newest stays. */
static void drop_older(struct np_cluster *self)
{
	size_t kept = 0;
	for (size_t i = 0; i < self->ranks.n; i++) {
		struct np_cluster_rank *rank = &self->ranks.v[i];
		if (kept > 0 && self->ranks.v[kept - 1].rank == rank->rank) {
			np_report_note(self->report, "rank %lld: %s is used, %s is left out",
			               (long long)rank->rank, self->ranks.v[kept - 1].capture->path,
			               rank->capture->path);
		} else {
			self->ranks.v[kept++] = *rank;
		}
	}
	self->ranks.n = kept;
}

/* What makes figures across ranks meaningless. Missing ranks do not: what is there is
 * compared, and the finding stands. */
static bool forbids(const char *code)
{
	return strcmp(code, "BATCH_MIXED") == 0 || strcmp(code, "RANK_DUP") == 0;
}

/* The linter's findings, and what follows from them. */
static void gate(struct np_cluster *self)
{
	struct np_report *report = self->report;
	const char *forbidden = NULL;
	size_t before = np_report_count(report, NP_WARNING);
	(void)np_lint(self->all, NULL, report);
	for (size_t i = 0; i < report->findings.n && !forbidden; i++)
		if (forbids(report->findings.v[i]->code))
			forbidden = report->findings.v[i]->code;
	if (np_report_count(report, NP_WARNING) > before)
		np_cluster_exit(self, 3);
	before = np_report_count(report, NP_ERROR);
	np_lint_problems(self->all, report);
	if (np_report_count(report, NP_ERROR) > before)
		np_cluster_exit(self, 3); /* what cannot be opened may be a part of a rank */
	if (forbidden && self->options->force)
		np_report_note(report,
		               "--force: %s is ignored, the newest capture of each rank is used",
		               forbidden);
	if (!forbidden || self->options->force)
		return;
	self->refused = true;
	report->verdict = NP_VERDICT_FAIL;
	np_cluster_exit(self, 1);
	struct np_finding *finding = np_report_finding(
		report, "CLUSTER_REFUSED", NP_ERROR,
		"not one batch with one capture per rank (%s): nothing was analysed", forbidden);
	np_finding_advice(finding, "Give the directory of one batch. --force takes the newest "
	                           "capture of each rank and says so.");
}

static enum np_status choose(struct np_cluster *self, struct np_err *err)
{
	NP_TRY(collect(self, err));
	if (self->ranks.n == 0)
		return np_err_set(
			err, NP_E_EMPTY, self->all->input,
			"no capture with a rank and data (npuprof info tells what is there)");
	gate(self);
	if (self->refused)
		return NP_OK;
	qsort(self->ranks.v, self->ranks.n, sizeof *self->ranks.v, by_rank);
	drop_older(self);
	NP_TRY(filter(self, err));
	for (size_t i = 0; i < self->ranks.n; i++)
		self->is_db |=
			(self->ranks.v[i].capture->formats & (NP_HAS_DB | NP_HAS_ANALYSIS)) != 0;
	return np_cluster_choose_parts(self, err);
}

enum np_status np_cluster_open(struct np_cluster *self, const struct np_captures *all,
                               const struct np_cluster_options *options, struct np_report *report,
                               struct np_err *err)
{
	*self = (struct np_cluster){
		.all = all, .options = options, .report = report, .sole = np_cluster_is_root()};
	np_arena_init(&self->arena);
	enum np_status status =
		np_intern_init(&self->strings) ? choose(self, err) : np_err_nomem(err);
	return np_share_agree(self, status, err);
}

void np_cluster_close(struct np_cluster *self)
{
	for (size_t i = 0; i < self->ranks.n; i++)
		np_digest_free(self->ranks.v[i].digest);
	np_vec_release(&self->ranks);
	np_vec_release(&self->parts);
	np_intern_release(&self->strings);
	np_arena_release(&self->arena);
}

/* Ranks are unique and ascending. */
size_t np_cluster_find_rank(const struct np_cluster *self, int64_t rank)
{
	size_t low = 0, high = self->ranks.n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (self->ranks.v[mid].rank < rank)
			low = mid + 1;
		else
			high = mid;
	}
	return low < self->ranks.n && self->ranks.v[low].rank == rank ? low : SIZE_MAX;
}
