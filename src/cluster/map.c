/*
 * The map: every rank's profile to a digest, on threads, in batches that are
 * adopted in order of rank, so that ids never depend on who was first.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "capture/lint.h"
#include "cluster/internal.h"

enum { BATCH = 64 }; /* ranks mapped between two adoptions */

void np_cluster_exit(struct np_cluster *self, int code)
{
	int now = self->report->exit_code;
	if (now == 1 || now == code || code == 0)
		return;
	if (now == 0 || code == 1 || code == 4)
		self->report->exit_code = code;
}

static bool knows(const struct np_cluster *self, const struct np_part *part)
{
	for (size_t i = 0; i < self->parts.n; i++)
		if (self->parts.v[i] == part)
			return true;
	return false;
}

enum np_status np_cluster_choose_parts(struct np_cluster *self, struct np_err *err)
{
	for (size_t r = 0; r < self->options->n_recipes; r++)
		for (const struct np_part *const *part = self->options->recipes[r]->parts; *part;
		     part++)
			if (!knows(self, *part) && !np_vec_push(&self->parts, *part))
				return np_err_nomem(err);
	return NP_OK;
}

/* ── what the readers noticed, as a table of the digest ── */

#define DIAG_COLUMNS(X)                                 \
	X(np_id, code, "UPPER_SNAKE, docs/findings.md") \
	X(np_id, file, "path")                          \
	X(np_id, text, "what was repaired or dropped")  \
	X(uint64_t, count, "how often")

NP_TABLE_STRUCT(np_digest_diags, DIAG_COLUMNS);
#define NP_TAG np_digest_diags
NP_TABLE_DESC(, np_digest_diags, "diags", DIAG_COLUMNS)
#undef NP_TAG

static bool keep_diags(struct np_digest *digest, const struct np_profile *profile)
{
	struct np_digest_diags *rows = np_digest_table(digest, &np_digest_diags_desc);
	for (size_t i = 0; rows && i < profile->diags.n; i++) {
		const struct np_diag *diag = &profile->diags.v[i];
		size_t r = np_rows_add(rows, &np_digest_diags_desc);
		if (r == SIZE_MAX)
			return false;
		rows->code[r] = np_intern_add(&digest->strings, np_str_of(diag->code));
		rows->file[r] = np_intern_add(&digest->strings, np_str_of(diag->file));
		rows->text[r] = np_intern_add(&digest->strings, np_str_of(diag->text));
		rows->count[r] = diag->count;
		if (rows->code[r] == NP_ID_NONE || rows->file[r] == NP_ID_NONE ||
		    rows->text[r] == NP_ID_NONE)
			return false;
	}
	return rows != NULL;
}

/* Codes must outlive the cluster: they are copied to where the report's texts are. */
static enum np_status tell_diags(struct np_cluster *self, const struct np_cluster_rank *rank,
                                 struct np_err *err)
{
	const struct np_digest_diags *rows = np_digest_find(rank->digest, &np_digest_diags_desc);
	struct np_profile *told = rows && rows->n > 0 ? np_profile_new() : NULL;
	for (size_t i = 0; told && i < rows->n; i++) {
		np_str file = np_cluster_text(self, rows->file[i]);
		const char *code =
			np_arena_cstr(&self->report->arena, np_cluster_text(self, rows->code[i]));
		if (code)
			np_profile_diag(told, code, file.len > 0 ? file.ptr : NULL, rows->count[i],
			                "%s", np_cluster_text(self, rows->text[i]).ptr);
	}
	if (told)
		np_lint_profile(told, self->report);
	np_profile_free(told);
	return rows && rows->n > 0 && !told ? np_err_nomem(err) : NP_OK;
}

const void *np_digest_rows(const struct np_digest *digest, const struct np_table_desc *desc)
{
	/* n, cap, and more column pointers than any table has, all zero */
	static const struct {
		struct np_rows rows;
		void *columns[64];
	} none;
	const void *rows = np_digest_find(digest, desc);
	return rows ? rows : &none;
}

/* ── one rank ── */

/* What a worker leaves: it writes to its slot only. */
struct slot {
	struct np_digest *digest;
	enum np_status status;
	struct np_err err;
};

struct batch {
	struct np_cluster *cluster;
	const size_t *rows; /* of the ranks */
	size_t n;
	struct slot *slots;
	unsigned threads_each;
};

/* [from, to] of the step, everything when it has none (§2.2). */
static bool step_range(const struct np_profile *profile, int64_t id, np_ns *from, np_ns *to)
{
	uint32_t row = np_profile_find_step(profile, id);
	*from = 0;
	*to = INT64_MAX;
	if (row == NP_NO_U32)
		return false;
	const struct np_steps *steps = &profile->steps;
	bool host = steps->host_start_ns[row] != NP_NO_I64;
	np_ns start = host ? steps->host_start_ns[row] : steps->start_ns[row];
	if (start == NP_NO_I64)
		return false;
	*from = start;
	*to = host ? steps->host_end_ns[row] : steps->end_ns[row];
	return true;
}

/* A digest with diagnostics is not cached: the next run must tell them again. */
static enum np_status map_part(struct np_map_job *job, const struct np_part *part,
                               struct slot *slot)
{
	job->digest = np_digest_new();
	enum np_status status = job->digest ? NP_OK : np_err_nomem(&slot->err);
	for (size_t t = 0; status == NP_OK && part->tables[t]; t++)
		if (!np_digest_table(job->digest, part->tables[t]))
			status = np_err_nomem(&slot->err);
	if (status == NP_OK)
		status = part->map(job, &slot->err);
	if (status == NP_OK && job->profile->diags.n == 0)
		np_cache_put(job->options, job->capture, part, job->digest);
	if (status == NP_OK && !np_digest_move(slot->digest, job->digest))
		status = np_err_nomem(&slot->err);
	np_digest_free(job->digest);
	return status;
}

/* The parts that the cache has; the others into missing[]. Returns how many are missing. */
static size_t from_cache(const struct np_cluster *self, const struct np_capture *capture,
                         struct slot *slot, const struct np_part **missing)
{
	size_t n = 0;
	for (size_t p = 0; p < self->parts.n; p++) {
		const struct np_part *part = self->parts.v[p];
		struct np_digest *cached = np_cache_get(self->options, capture, part);
		if (!cached || !np_digest_move(slot->digest, cached))
			missing[n++] = part;
		np_digest_free(cached);
	}
	return n;
}

static enum np_status map_profile(const struct np_cluster *self, const struct np_cluster_rank *rank,
                                  struct np_profile *profile, const struct np_part *const *missing,
                                  struct slot *slot)
{
	const struct np_cluster_options *options = self->options;
	struct np_map_job job = {.options = options,
	                         .capture = rank->capture,
	                         .rank = rank->rank,
	                         .profile = profile,
	                         .from_ns = 0,
	                         .to_ns = INT64_MAX};
	if (options->has_step && !step_range(profile, options->step, &job.from_ns, &job.to_ns) &&
	    (profile->loaded & NP_STEPS))
		np_profile_diag(profile, "CLUSTER_STEP_ABSENT", rank->capture->path, 1,
		                "step %lld is not there, all steps are taken",
		                (long long)options->step);
	for (; *missing; missing++)
		NP_TRY(map_part(&job, *missing, slot));
	return keep_diags(slot->digest, profile) ? NP_OK : np_err_nomem(&slot->err);
}

static enum np_status map_rank(const struct np_cluster *self, const struct np_cluster_rank *rank,
                               unsigned threads, struct slot *slot)
{
	const struct np_part **missing = np_calloc(self->parts.n + 1, sizeof *missing);
	struct np_profile *profile = NULL;
	slot->digest = np_digest_new();
	if (!missing || !slot->digest) {
		np_free(missing);
		return np_err_nomem(&slot->err);
	}
	size_t n = from_cache(self, rank->capture, slot, missing);
	unsigned load = self->options->has_step ? NP_STEPS : 0;
	bool text = (rank->capture->formats & NP_HAS_TEXT) || !(rank->capture->formats & NP_HAS_DB);
	for (size_t p = 0; p < n; p++) {
		load |= text && missing[p]->load_text ? missing[p]->load_text : missing[p]->load;
		if (missing[p]->load_more)
			load |= missing[p]->load_more(rank->capture);
	}
	enum np_status status = NP_OK;
	if (n > 0)
		status = np_capture_load(rank->capture, load, threads, &profile, &slot->err);
	if (n > 0 && status == NP_OK)
		status = map_profile(self, rank, profile, missing, slot);
	np_profile_free(profile);
	np_free(missing);
	return status;
}

static void job(void *ctx, size_t i)
{
	struct batch *batch = ctx;
	struct slot *slot = &batch->slots[i];
	slot->status = map_rank(batch->cluster, &batch->cluster->ranks.v[batch->rows[i]],
	                        batch->threads_each, slot);
	np_progress_step(batch->cluster->options->progress);
}

/* ── all ranks ── */

static enum np_status adopt(struct np_cluster *self, struct np_cluster_rank *rank,
                            struct slot *slot, struct np_err *err)
{
	if (slot->status == NP_E_NOMEM)
		return np_err_nomem(err);
	if (slot->status != NP_OK) {
		rank->why = np_arena_cstr(&self->arena, np_str_of(slot->err.msg));
		return rank->why ? NP_OK : np_err_nomem(err);
	}
	/* with several processes the strings travel with the digest and are adopted at the root */
	if (np_share_count() == 1 && !np_digest_adopt(slot->digest, &self->strings))
		return np_err_nomem(err);
	rank->digest = slot->digest;
	slot->digest = NULL;
	return NP_OK;
}

static enum np_status map_batch(struct np_cluster *self, const size_t *rows, size_t n,
                                struct np_err *err)
{
	struct slot *slots = np_calloc(n, sizeof *slots);
	if (!slots)
		return np_err_nomem(err);
	unsigned cpus = self->options->threads ? self->options->threads : np_cpu_count();
	struct batch batch = {.cluster = self,
	                      .rows = rows,
	                      .n = n,
	                      .slots = slots,
	                      .threads_each = n < cpus ? cpus / (unsigned)n : 1};
	np_pool_run(cpus, n, job, &batch);
	enum np_status status = NP_OK;
	for (size_t i = 0; i < n; i++) {
		if (status == NP_OK)
			status = adopt(self, &self->ranks.v[rows[i]], &slots[i], err);
		np_digest_free(slots[i].digest);
	}
	np_free(slots);
	return status;
}

static enum np_status map_own(struct np_cluster *self, struct np_err *err)
{
	size_t rows[BATCH], n = 0;
	for (size_t i = np_share_index(); i < self->ranks.n; i += np_share_count()) {
		rows[n++] = i;
		if (n < BATCH && i + np_share_count() < self->ranks.n)
			continue;
		NP_TRY(map_batch(self, rows, n, err));
		n = 0;
	}
	return NP_OK;
}

static enum np_status tell_ranks(struct np_cluster *self, struct np_err *err)
{
	for (size_t i = 0; i < self->ranks.n; i++) {
		const struct np_cluster_rank *rank = &self->ranks.v[i];
		if (rank->digest) {
			NP_TRY(tell_diags(self, rank, err));
			continue;
		}
		struct np_finding *finding =
			np_report_finding(self->report, "CLUSTER_RANK_UNREADABLE", NP_ERROR,
		                          "rank %lld could not be read: %s", (long long)rank->rank,
		                          rank->why ? rank->why : "no reason is known");
		np_finding_evidence(finding, rank->capture->path, NULL, NULL, "%s", "");
		np_cluster_exit(self, 4);
	}
	return NP_OK;
}

enum np_status np_cluster_map(struct np_cluster *self, struct np_err *err)
{
	np_progress_begin(self->options->progress, "reading ranks", self->ranks.n);
	NP_TRY(map_own(self, err));
	NP_TRY(np_share_gather(self, err));
	return self->sole ? tell_ranks(self, err) : NP_OK;
}

enum np_status np_cluster_load(const struct np_cluster *self, size_t rank, unsigned what,
                               struct np_profile **out, struct np_err *err)
{
	return np_capture_load(self->ranks.v[rank].capture, what, self->options->threads, out, err);
}

/* ── the reduce ── */

enum np_status np_cluster_reduce(struct np_cluster *self, struct np_err *err)
{
	const struct np_cluster_options *options = self->options;
	np_progress_begin(options->progress, "putting ranks together", options->n_recipes);
	for (size_t r = 0; r < options->n_recipes; r++) {
		NP_TRY(options->recipes[r]->reduce(self, options->recipes[r], err));
		np_progress_step(options->progress);
	}
	return np_report_ok(self->report, err);
}

void np_cluster_nothing(struct np_cluster *self, const struct np_recipe *recipe, const char *fmt,
                        ...)
{
	char text[400];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	(void)np_report_finding(self->report, "CLUSTER_MODE_EMPTY", NP_WARNING,
	                        "%s has nothing to report: %s", recipe->name, text);
	np_cluster_exit(self, 3);
}

void np_cluster_lacking(struct np_cluster *self, const struct np_recipe *recipe, const bool *has,
                        const char *what)
{
	enum { SHOWN = 16 };
	struct np_buf list = {0};
	size_t n = 0;
	for (size_t i = 0; i < self->ranks.n; i++) {
		if (has[i] || n++ >= SHOWN)
			continue;
		np_buf_printf(&list, "%s%lld", list.len > 0 ? ", " : "",
		              (long long)self->ranks.v[i].rank);
	}
	if (n > 0) {
		struct np_finding *finding =
			np_report_finding(self->report, "CLUSTER_RANK_LACKING", NP_WARNING,
		                          "%s: %zu of %zu ranks are left out, they have no %s",
		                          recipe->name, n, self->ranks.n, what);
		np_finding_evidence(finding, NULL, NULL, NULL, "rank %.*s%s",
		                    NP_FMT(np_buf_str(&list)), n > SHOWN ? ", …" : "");
		np_cluster_exit(self, 3);
	}
	np_buf_release(&list);
}
