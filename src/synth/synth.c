/* The driver: checks the options, lays out directories, calls the writers. */
#include "synth/synth.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "synth/faults_cluster.h"
#include "synth/program.h"
#include "synth/rng.h"
#include "synth/tree.h"
#include "synth/truth.h"
#include "synth/truth_cluster.h"
#include "synth/write.h"
#include "synth/write_comm.h"
#include "synth/write_comm_log.h"

enum { MAX_MEETS = 1 << 28 };
static const np_ns default_epoch_ns = 1748764800ll * 1000000000; /* 2025-06-01 08:00 UTC */
static const np_ns hour_ns = 3600ll * 1000000000;

/* ── options ── */

static enum np_status check_fault(const struct np_synth_options *options,
                                  const struct np_synth_fault *fault, struct np_err *err)
{
	if ((unsigned)fault->id >= NP_SYNTH_FAULTS)
		return np_err_set(err, NP_E_USAGE, NULL, "unknown fault");
	const struct np_synth_fault_info *info = np_synth_fault_info(fault->id);
	uint32_t cards = options->ranks_per_host ? options->ranks_per_host : NP_SYNTH_CARDS;
	const char *scope = np_synth_fault_scope(fault->id);
	uint32_t count = *scope == 'h'   ? (options->ranks + cards - 1) / cards
	                 : *scope == 's' ? options->pp
	                                 : options->ranks;
	if (fault->a >= (int64_t)count || fault->b >= (int64_t)count)
		return np_err_set(err, NP_E_RANGE, info->name, "there are %u %ss, from 0", count,
		                  scope);
	bool needs = info->argument[0] != '\0' && info->argument[0] != '[';
	bool link = fault->id == NP_SYNTH_SLOW_LINK;
	if ((needs && fault->a < 0) || (link && (fault->b < 0 || fault->a == fault->b)))
		return np_err_set(err, NP_E_USAGE, info->name, "needs an argument: %s=%s",
		                  info->name, info->argument);
	if (fault->id == NP_SYNTH_IDLE_RANK && options->ranks < 2)
		return np_err_set(err, NP_E_USAGE, info->name, "needs two ranks or more");
	const struct {
		enum np_synth_fault_id id;
		bool missing;
		const char *option;
	} needs_size[] = {
		{NP_SYNTH_EXPERT_IMBALANCE, options->ep < 2, "--ep"},
		{NP_SYNTH_STAGE_IMBALANCE, options->pp < 2, "--pp"},
		{NP_SYNTH_PIPELINE_BUBBLE, options->pp < 2, "--pp"},
		{NP_SYNTH_CARRIED_DELAY, options->tp < 2 || options->dp < 2, "--tp and --dp"}};
	for (size_t i = 0; i < sizeof needs_size / sizeof *needs_size; i++)
		if (needs_size[i].id == fault->id && needs_size[i].missing)
			return np_err_set(err, NP_E_USAGE, info->name, "needs %s above 1",
			                  needs_size[i].option);
	return NP_OK;
}

static enum np_status check_options(const struct np_synth_options *options, struct np_err *err)
{
	const unsigned all = NP_SYNTH_TEXT | NP_SYNTH_DB | NP_SYNTH_MSPROF;
	if (options->formats == 0 || options->formats & ~all)
		return np_err_set(err, NP_E_USAGE, "formats", "choose from text, db and msprof");
	if (options->lite && options->formats & NP_SYNTH_MSPROF)
		return np_err_set(err, NP_E_USAGE, "lite", "there is text and db, no msprof");
	if (options->level < 0 || options->level > 2)
		return np_err_set(err, NP_E_USAGE, "level", "levels are 0, 1 and 2");
	const struct {
		const char *name;
		uint32_t value, max;
	} counts[] = {{"ranks", options->ranks, NP_SYNTH_MAX_RANKS},
	              {"steps", options->steps, NP_SYNTH_MAX_STEPS},
	              {"layers", options->layers, NP_SYNTH_MAX_LAYERS},
	              {"ops", options->ops, NP_SYNTH_MAX_OPS}};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		if (counts[i].value < 1 || counts[i].value > counts[i].max)
			return np_err_set(err, NP_E_USAGE, counts[i].name, "must be 1 to %u",
			                  counts[i].max);
	if (!options->layout && options->tp && options->ranks % options->tp)
		return np_err_set(err, NP_E_USAGE, "tp", "must divide the number of ranks, %u",
		                  options->ranks);
	if (options->start_epoch_ns < 0 || options->start_epoch_ns > 4000000000ll * 1000000000)
		return np_err_set(err, NP_E_USAGE, "start", "must be ns since 1970, up to 2096");
	uint64_t per_layer = options->ops + 1;
	if (options->layout)
		per_layer = (options->ops + 12u) * 2 * options->micro_batches;
	uint64_t per_step = options->layers * per_layer + 16;
	if (per_step * options->steps > NP_SYNTH_MAX_KERNELS)
		return np_err_set(err, NP_E_LIMIT, "steps", "more than %d kernels per rank",
		                  NP_SYNTH_MAX_KERNELS);
	uint64_t meets = options->layers + 1;
	if (options->layout)
		meets = (uint64_t)options->layers * 8 * options->micro_batches / options->pp + 16;
	if (options->steps * meets * options->ranks > MAX_MEETS)
		return np_err_set(err, NP_E_LIMIT, "ranks", "more than %d collectives in all",
		                  MAX_MEETS);
	for (size_t i = 0; i < options->n_faults; i++)
		NP_TRY(check_fault(options, &options->faults[i], err));
	return NP_OK;
}

static bool wants_layout(const struct np_synth_options *options)
{
	if (options->layout || options->lite || options->pp || options->dp || options->ep ||
	    options->micro_batches || options->comm_ops || options->ranks_per_host)
		return true;
	for (size_t i = 0; i < options->n_faults; i++)
		if (np_synth_needs_layout(options->faults[i].id))
			return true;
	return false;
}

/* ── the target ── */

static bool is_ours(const char *name)
{
	np_str text = np_str_of(name);
	return np_str_ends(text, NP_STR("_ascend_pt")) || np_str_starts(text, NP_STR("PROF_")) ||
	       (np_str_starts(text, NP_STR("log_")) && np_str_ends(text, NP_STR(".log"))) ||
	       np_str_is(text, "truth.json") || np_str_is(text, "comm");
}

/* Is there a truth.json that we wrote? Its first bytes tell. */
static bool made_by_synth(struct np_arena *arena, const char *dir)
{
	np_str text;
	const char *path = np_path_join(arena, dir, "truth.json");
	if (!path || np_file_slurp(arena, path, 1 << 30, &text, NULL) != NP_OK)
		return false;
	return np_str_starts(text, NP_STR(NP_SYNTH_TRUTH_HEAD));
}

static enum np_status empty_dir(struct np_arena *arena, const char *dir, bool force,
                                struct np_err *err)
{
	struct np_dir entries;
	NP_TRY(np_mkdirs(dir, err));
	NP_TRY(np_dir_list(arena, dir, &entries, err));
	if (entries.n == 0)
		return NP_OK;
	if (!force)
		return np_err_set(err, NP_E_EXISTS, dir, "the directory is not empty");
	if (!made_by_synth(arena, dir))
		return np_err_set(err, NP_E_EXISTS, dir,
		                  "the directory is not one that synth made");
	for (size_t i = 0; i < entries.n; i++) {
		const char *path = np_path_join(arena, dir, entries.v[i].name);
		if (!path)
			return np_err_nomem(err);
		if (is_ours(entries.v[i].name))
			NP_TRY(np_tree_remove(path, err));
	}
	return NP_OK;
}

/* ── one rank ── */

struct rank_job {
	const char *root;
	struct np_synth_run *run;
	struct np_synth_stats *stats;
	unsigned formats;
	char stamp[32];
	char name[160], path[NP_SYNTH_PATH]; /* the rank's directory; msprof alone: the PROF_* */
};

/* path + "/" + name made as a directory; its path in out. */
static enum np_status sub_dir(const char *path, const char *name, char out[NP_SYNTH_PATH],
                              struct np_err *err)
{
	int n = snprintf(out, NP_SYNTH_PATH, "%s/%s", path, name);
	if (n < 0 || n >= NP_SYNTH_PATH)
		return np_err_set(err, NP_E_LIMIT, path, "path is too long");
	return np_mkdirs(out, err);
}

static void prof_name(const struct rank_job *job, char out[96])
{
	const struct np_synth_run *run = job->run;
	char id[17];
	uint64_t noise = np_noise(run->plan->options.seed ^ 0x9f0f, run->rank);
	for (int i = 0; i < 16; i++, noise = noise / 26 + noise * 31)
		id[i] = (char)('A' + noise % 26);
	id[16] = '\0';
	bool alone = job->formats == NP_SYNTH_MSPROF;
	(void)snprintf(out, 96, "PROF_%06u_%.17s_%s", alone ? run->rank + 1 : 1, job->stamp, id);
}

/* Which formats this rank has, and whether as another one by fault. */
static unsigned formats_of(const struct np_synth_run *run)
{
	unsigned formats = run->plan->options.formats;
	if (!np_synth_has(run, NP_SYNTH_MIXED_FORMAT))
		return formats;
	return formats & NP_SYNTH_TEXT ? NP_SYNTH_DB : NP_SYNTH_TEXT;
}

static enum np_status write_text(const struct rank_job *job, const char *dir, struct np_err *err)
{
	const struct np_synth_run *run = job->run;
	bool device = !np_synth_has(run, NP_SYNTH_HOST_ONLY);
	if (device && !np_synth_has(run, NP_SYNTH_NO_KERNELS))
		NP_TRY(np_synth_write_kernels(run, dir, job->stats, err));
	NP_TRY(np_synth_write_tables(run, dir, job->stats, err));
	if (device)
		NP_TRY(np_synth_write_comm(run, dir, job->stats, err));
	return np_synth_write_trace(run, dir, NULL, job->stats, err);
}

static enum np_status write_msprof(const struct rank_job *job, const char *prof, struct np_err *err)
{
	const struct np_synth_run *run = job->run;
	char host[NP_SYNTH_PATH], device[NP_SYNTH_PATH], dir[NP_SYNTH_PATH], name[64];
	(void)snprintf(name, sizeof name, "device_%u", run->device);
	NP_TRY(sub_dir(prof, "host", host, err));
	NP_TRY(sub_dir(prof, name, device, err));
	NP_TRY(np_synth_write_prof_info(run, host, device, job->stats, err));
	NP_TRY(sub_dir(prof, "mindstudio_profiler_output", dir, err));
	char stamp[16];
	(void)snprintf(stamp, sizeof stamp, "%.14s", job->stamp);
	if (!np_synth_has(run, NP_SYNTH_HOST_ONLY)) {
		if (!np_synth_has(run, NP_SYNTH_NO_KERNELS))
			NP_TRY(np_synth_write_op_summary(run, dir, stamp, job->stats, err));
		NP_TRY(np_synth_write_msprof_tables(run, dir, stamp, job->stats, err));
	}
	(void)snprintf(name, sizeof name, "msprof_%s.json", stamp);
	return np_synth_write_trace(run, dir, name, job->stats, err);
}

static enum np_status write_raw(const struct rank_job *job, struct np_err *err)
{
	const struct np_synth_run *run = job->run;
	char framework[NP_SYNTH_PATH], prof[NP_SYNTH_PATH], host[NP_SYNTH_PATH],
		device[NP_SYNTH_PATH];
	char host_data[NP_SYNTH_PATH], device_data[NP_SYNTH_PATH], name[96];
	prof_name(job, name);
	NP_TRY(sub_dir(job->path, "FRAMEWORK", framework, err));
	NP_TRY(sub_dir(job->path, name, prof, err));
	(void)snprintf(name, sizeof name, "device_%u", run->device);
	NP_TRY(sub_dir(prof, "host", host, err));
	NP_TRY(sub_dir(prof, name, device, err));
	NP_TRY(sub_dir(host, "data", host_data, err));
	NP_TRY(sub_dir(device, "data", device_data, err));
	NP_TRY(np_synth_write_prof_info(run, host, device, job->stats, err));
	return np_synth_write_raw(run, framework, host_data, device_data, job->stats, err);
}

/* PROF_* with what it says of the device, beside an export that cleaned up the rest. */
static enum np_status write_prof_info(const struct rank_job *job, struct np_err *err)
{
	char prof[NP_SYNTH_PATH], host[NP_SYNTH_PATH], device[NP_SYNTH_PATH], name[96];
	prof_name(job, name);
	NP_TRY(sub_dir(job->path, name, prof, err));
	(void)snprintf(name, sizeof name, "device_%u", job->run->device);
	NP_TRY(sub_dir(prof, "host", host, err));
	NP_TRY(sub_dir(prof, name, device, err));
	return np_synth_write_prof_info(job->run, host, device, job->stats, err);
}

/* What an analysis across ranks reads, and no more. */
static enum np_status write_lite(const struct rank_job *job, struct np_err *err)
{
	const struct np_synth_run *run = job->run;
	char dir[NP_SYNTH_PATH];
	NP_TRY(np_synth_write_meta(run, job->path, job->formats, job->stats, err));
	NP_TRY(sub_dir(job->path, "ASCEND_PROFILER_OUTPUT", dir, err));
	if (np_synth_has(run, NP_SYNTH_EMPTY_DIR))
		return NP_OK;
	if (job->formats & NP_SYNTH_TEXT) {
		NP_TRY(np_synth_write_step_trace(run, dir, job->stats, err));
		NP_TRY(np_synth_write_comm(run, dir, job->stats, err));
	}
	if (job->formats & NP_SYNTH_DB)
		NP_TRY(np_synth_write_dbs(run, dir, job->stats, err));
	return NP_OK;
}

/* The *_ascend_pt directory. */
static enum np_status write_capture(const struct rank_job *job, struct np_err *err)
{
	const struct np_synth_run *run = job->run;
	char dir[NP_SYNTH_PATH], name[96];
	if (run->plan->options.lite)
		return write_lite(job, err);
	NP_TRY(np_synth_write_meta(run, job->path, job->formats, job->stats, err));
	NP_TRY(sub_dir(job->path, "logs", dir, err));
	NP_TRY(np_synth_write_log(run, dir, job->stats, err));
	if (np_synth_has(run, NP_SYNTH_RAW_ONLY))
		return write_raw(job, err);
	NP_TRY(sub_dir(job->path, "ASCEND_PROFILER_OUTPUT", dir, err));
	if (np_synth_has(run, NP_SYNTH_EMPTY_DIR))
		return NP_OK;
	if (job->formats & NP_SYNTH_TEXT)
		NP_TRY(write_text(job, dir, err));
	if (job->formats & NP_SYNTH_DB)
		NP_TRY(np_synth_write_dbs(run, dir, job->stats, err));
	if (!(job->formats & NP_SYNTH_MSPROF))
		return run->plan->options.layout ? write_prof_info(job, err) : NP_OK;
	prof_name(job, name);
	NP_TRY(sub_dir(job->path, name, dir, err));
	return write_msprof(job, dir, err);
}

static enum np_status write_rank(struct rank_job *job, struct np_err *err)
{
	const struct np_synth_run *run = job->run;
	job->formats = formats_of(run);
	np_synth_stamp(job->stamp, run->session_start_ns + (np_ns)(run->rank % 17) * 3000000);
	bool alone = job->formats == NP_SYNTH_MSPROF;
	if (alone)
		prof_name(job, job->name);
	else
		(void)snprintf(job->name, sizeof job->name, "node%u_%u_%.17s_ascend_pt", run->host,
		               run->pid, job->stamp);
	NP_TRY(sub_dir(job->root, job->name, job->path, err));
	NP_TRY(alone ? write_msprof(job, job->path, err) : write_capture(job, err));
	if (run->plan->options.comm_log)
		NP_TRY(np_synth_write_comm_log(run, job->root, job->stats, err));
	if (np_synth_has(run, NP_SYNTH_RUN_FAILED) || np_synth_has(run, NP_SYNTH_UNCLOSED_STEP))
		NP_TRY(np_synth_write_run_log(run, job->root, job->stats, err));
	job->stats->directories++;
	job->stats->kernels += run->n_kernels;
	job->stats->collectives += run->n_comms;
	if (np_synth_has(run, NP_SYNTH_STALE))
		return np_tree_touch(job->path, run->session_start_ns - hour_ns, err);
	if (run->plan->options.set_mtimes)
		return np_tree_touch(job->path, run->session_end_ns, err);
	return NP_OK;
}

/* ── all ranks ── */

static enum np_status write_ranks(struct rank_job *job, const struct np_synth_plan *plan,
                                  struct np_out *truth, struct np_err *err)
{
	struct np_synth_run *run = job->run;
	for (uint32_t rank = 0; rank < plan->options.ranks; rank++) {
		NP_TRY(np_synth_run_fill(run, plan, rank, 0, err));
		if (np_synth_has(run, NP_SYNTH_MIXED_BATCH))
			NP_TRY(np_synth_run_fill(run, plan, rank, -24 * hour_ns, err));
		bool written = !np_synth_has(run, NP_SYNTH_MISSING_RANK);
		if (written)
			NP_TRY(write_rank(job, err));
		np_synth_truth_rank(truth, run, written ? job->name : NULL);
		if (!np_synth_has(run, NP_SYNTH_DUPLICATE_RANK))
			continue;
		NP_TRY(np_synth_run_fill(run, plan, rank, -hour_ns, err));
		NP_TRY(write_rank(job, err));
	}
	return NP_OK;
}

static enum np_status write_plan_truth(struct np_out *truth, const struct np_synth_plan *plan,
                                       struct np_err *err)
{
	enum np_status status = NP_OK;
	if (plan->options.layout)
		status = np_synth_truth_cluster(truth, plan, err);
	np_out_lit(truth, "\"ranks\": [");
	return status;
}

static enum np_status write_all(const char *dir, const struct np_synth_plan *plan,
                                struct np_synth_stats *stats, struct np_err *err)
{
	struct np_synth_run run = {.plan = plan};
	struct np_out truth;
	NP_TRY(np_out_open(&truth, dir, "truth.json.part", err));
	struct rank_job *job = np_calloc(1, sizeof *job);
	enum np_status status = NP_E_NOMEM;
	if (job) {
		*job = (struct rank_job){.root = dir, .run = &run, .stats = stats};
		np_synth_truth_begin(&truth, plan);
		status = write_plan_truth(&truth, plan, err);
		if (status == NP_OK)
			status = write_ranks(job, plan, &truth, err);
		np_synth_truth_end(&truth);
	} else {
		(void)np_err_nomem(err);
	}
	np_free(job);
	np_synth_run_release(&run);
	enum np_status closed = np_synth_finish(&truth, stats, status == NP_OK ? err : NULL);
	status = status == NP_OK ? closed : status;
	if (status == NP_OK) {
		char final_path[NP_SYNTH_PATH + 16];
		(void)snprintf(final_path, sizeof final_path, "%s/truth.json", dir);
		if (rename(truth.path, final_path) != 0)
			status = np_err_set(err, NP_E_IO, truth.path,
			                    "cannot rename it to truth.json");
	} else {
		(void)remove(truth.path);
	}
	return status;
}

enum np_status np_synth_write(const char *dir, const struct np_synth_options *options,
                              struct np_synth_stats *stats, struct np_err *err)
{
	struct np_synth_stats own = {.files = 0};
	struct np_synth_options full = *options;
	full.layout = wants_layout(options);
	if (full.layout && full.ranks > 0)
		NP_TRY(np_synth_layout_options(&full, err));
	NP_TRY(check_options(&full, err));
	if (full.start_epoch_ns == 0)
		full.start_epoch_ns = default_epoch_ns;
	for (size_t i = 0; i < full.n_faults; i++)
		if (full.faults[i].id == NP_SYNTH_SLICES)
			full.formats |= NP_SYNTH_MSPROF;
	struct np_arena arena;
	np_arena_init(&arena);
	enum np_status status = empty_dir(&arena, dir, full.force, err);
	np_arena_release(&arena);
	if (status != NP_OK)
		return status;
	struct np_synth_plan plan;
	NP_TRY(np_synth_plan_init(&plan, &full, err));
	status = write_all(dir, &plan, &own, err);
	np_synth_plan_release(&plan);
	if (stats)
		*stats = own;
	return status;
}
