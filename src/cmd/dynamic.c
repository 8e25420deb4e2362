#include <stdio.h>
#include <string.h>

#include "cmd/progress.h"
#include "collect/dynamic_check.h"
#include "collect/dynamic_clean.h"
#include "collect/dynamic_job.h"
#include "collect/dynamic_trigger.h"
#include "collect/dynamic_watch.h"

/* One struct for all verbs, so that their options are written once. */
struct options {
	const char *profile, *ranks, *prof_dir, *steps, *warmup, *start_step;
	const char *current_step, *max_step, *job_start, *shm_dir, *since, *timeout;
	double tolerance, poll;
	struct np_opt_list sets;
	bool dry_run, strip, force, logs;
};

#define AT(field) offsetof(struct options, field)

/* ── what verbs have in common ── */

static enum np_status parse_purpose(const struct options *own, enum np_dyn_purpose *out,
                                    struct np_err *err)
{
	*out = NP_DYN_FOR_CLUSTER;
	if (own->profile && !np_dyn_purpose_parse(own->profile, out))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "unknown profile '%s': use cluster or kernel", own->profile);
	return NP_OK;
}

static enum np_status parse_number(const char *name, const char *text, int64_t *out, bool *given,
                                   struct np_err *err)
{
	*given = text != NULL;
	if (text && !np_str_to_i64(np_str_of(text), out))
		return np_err_set(err, NP_E_USAGE, NULL, "--%s wants a whole number, got '%s'",
		                  name, text);
	return NP_OK;
}

static enum np_status put_set(struct np_arena *arena, const char *key, const char *value,
                              struct np_dyn_change *out, size_t *n, struct np_err *err)
{
	struct np_dyn_change change;
	const char *text = value ? np_arena_printf(arena, "%s=%s", key, value) : key;
	if (!text)
		return np_err_nomem(err);
	NP_TRY(np_dyn_change_parse(arena, text, &change, err));
	np_dyn_change_put(out, n, change.id, change.json);
	return NP_OK;
}

/* The fields that options name. */
static enum np_status collect_changes(const struct options *own, struct np_arena *arena,
                                      struct np_dyn_change *out, size_t *n, struct np_err *err)
{
	const struct {
		const char *key, *value;
	} named[] = {{"prof_dir", own->prof_dir},
	             {"active", own->steps},
	             {"warmup", own->warmup},
	             {"start_step", own->start_step}};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++)
		if (named[i].value)
			NP_TRY(put_set(arena, named[i].key, named[i].value, out, n, err));
	if (own->ranks)
		NP_TRY(np_dyn_change_ranks(arena, own->ranks, out, n, err));
	for (size_t i = 0; i < own->sets.n; i++)
		NP_TRY(put_set(arena, own->sets.v[i], NULL, out, n, err));
	return NP_OK;
}

static const struct np_option common_edits[] = {
	{"profile", 0, NP_OPT_STRING, AT(profile), "WHAT",
         "values for: cluster (communication, db) or kernel (unit utilisation, text)"},
	{"steps", 0, NP_OPT_STRING, AT(steps), "N", "recorded steps (active)"},
	{"warmup", 0, NP_OPT_STRING, AT(warmup), "N", "steps of warm-up before them"},
	{"ranks", 0, NP_OPT_STRING, AT(ranks), "LIST", "all, or a list like 0,3,8-11"},
	{"prof-dir", 0, NP_OPT_STRING, AT(prof_dir), "DIR", "where captures go; absolute is best"},
	{"set", 0, NP_OPT_LIST, AT(sets), "KEY=VALUE",
         "any field of the file; may be given several times"},
};

/* ── init ── */

static enum np_status init(const struct np_call *call, struct np_report *report, struct np_err *err)
{
	struct np_dyn_change changes[NP_DYN_N_FIELDS];
	enum np_dyn_purpose purpose;
	size_t n = 0;
	NP_TRY(parse_purpose(call->options, &purpose, err));
	NP_TRY(collect_changes(call->options, &report->arena, changes, &n, err));
	enum np_status status = np_dyn_init(call->argv[0], purpose, changes, n, report, err);
	if (status == NP_E_EXISTS) /* nothing has failed: the command was wrong */
		err->code = NP_E_USAGE;
	return status;
}

static int run_init(const struct np_call *call)
{
	return np_cmd_run_report(call, init);
}

static const char *const init_examples[] = {
	"npuprof dynamic init /shared/dyn --prof-dir /data/prof",
	"npuprof dynamic init /shared/dyn --profile kernel --ranks 0,8",
	NULL,
};

static const struct np_cmd verb_init = {
	.name = "dynamic init",
	.summary = "make a directory with a profiler_config.json that captures nothing yet",
	.words = "DIR",
	.min_words = 1,
	.max_words = 1,
	.detail = "An existing file is never overwritten. Tells how a job is made to use it.",
	.examples = init_examples,
	.options = common_edits,
	.n_options = sizeof common_edits / sizeof *common_edits,
	.options_size = sizeof(struct options),
	.run = run_init,
};

/* ── check ── */

static const struct np_option check_options[] = {
	{"profile", 0, NP_OPT_STRING, AT(profile), "WHAT",
         "fail unless a capture made so can pass: cluster or kernel"},
	{"current-step", 0, NP_OPT_STRING, AT(current_step), "N", "steps that the job has done"},
	{"max-step", 0, NP_OPT_STRING, AT(max_step), "N", "steps of the whole job"},
	{"job-start", 0, NP_OPT_STRING, AT(job_start), "PID|SECONDS",
         "a process of the job, or when it began (epoch)"},
	{"shm-dir", 0, NP_OPT_STRING, AT(shm_dir), "DIR",
         "where shared memory is (default: $NPUPROF_SHM_DIR or /dev/shm)"},
};

static enum np_status check(const struct np_call *call, struct np_report *report,
                            struct np_err *err)
{
	const struct options *own = call->options;
	struct np_dyn_check_options options = {.shm_dir = own->shm_dir,
	                                       .has_purpose = own->profile != NULL};
	NP_TRY(parse_purpose(own, &options.purpose, err));
	NP_TRY(parse_number("current-step", own->current_step, &options.current_step,
	                    &options.has_current_step, err));
	NP_TRY(parse_number("max-step", own->max_step, &options.max_step, &options.has_max_step,
	                    err));
	options.has_job_start = own->job_start != NULL;
	if (own->job_start)
		NP_TRY(np_dyn_job_start(own->job_start, &options.job_start_ns, err));
	return np_dyn_check(call->argv[0], &options, report, err);
}

static int run_check(const struct np_call *call)
{
	return np_cmd_run_report(call, check);
}

static const char *const check_examples[] = {
	"npuprof dynamic check /shared/dyn",
	"npuprof dynamic check /shared/dyn --current-step 1200 --max-step 2000 --job-start 4711",
	NULL,
};

static const struct np_cmd verb_check = {
	.name = "dynamic check",
	.summary = "judge a profiler_config.json, its directory and what killed jobs left",
	.words = "FILE|DIR",
	.min_words = 1,
	.max_words = 1,
	.detail = "torch_npu resets or ignores what it does not accept, mostly without a word; "
		  "every\nsuch value is a finding with the line and what to do. Exit status: 0 "
		  "pass, 1 fail,\n3 nothing failed but something cannot be judged.",
	.examples = check_examples,
	.options = check_options,
	.n_options = sizeof check_options / sizeof *check_options,
	.options_size = sizeof(struct options),
	.run = run_check,
};

/* ── trigger ── */

static const struct np_option trigger_options[] = {
	{"profile", 0, NP_OPT_STRING, AT(profile), "WHAT",
         "values for: cluster (communication, db) or kernel (unit utilisation, text)"},
	{"steps", 0, NP_OPT_STRING, AT(steps), "N", "recorded steps (active)"},
	{"warmup", 0, NP_OPT_STRING, AT(warmup), "N", "steps of warm-up before them"},
	{"start-step", 0, NP_OPT_STRING, AT(start_step), "S",
         "first step; -1 (the default): the next one of each rank; 0: no capture"},
	{"ranks", 0, NP_OPT_STRING, AT(ranks), "LIST", "all, or a list like 0,3,8-11"},
	{"prof-dir", 0, NP_OPT_STRING, AT(prof_dir), "DIR", "where captures go; absolute is best"},
	{"set", 0, NP_OPT_LIST, AT(sets), "KEY=VALUE",
         "any field of the file; may be given several times"},
	{"strip-comments", 0, NP_OPT_FLAG, AT(strip), NULL,
         "take # and // comments out, which torch_npu cannot read"},
	{"dry-run", 'n', NP_OPT_FLAG, AT(dry_run), NULL, "show the difference, write nothing"},
	{"force", 0, NP_OPT_FLAG, AT(force), NULL,
         "write also what torch_npu would reset or ignore"},
};

static enum np_status trigger(const struct np_call *call, struct np_report *report,
                              struct np_err *err)
{
	const struct options *own = call->options;
	struct np_dyn_change changes[NP_DYN_N_FIELDS];
	size_t n = 0;
	enum np_dyn_purpose purpose;
	const struct np_dyn_trigger_options how = {
		.dry_run = own->dry_run, .strip_comments = own->strip, .force = own->force};
	NP_TRY(parse_purpose(own, &purpose, err));
	if (own->profile)
		np_dyn_change_preset(changes, &n, purpose);
	np_dyn_change_put(changes, &n, NP_DYN_START_STEP, "-1");
	NP_TRY(collect_changes(own, &report->arena, changes, &n, err));
	return np_dyn_trigger(call->argv[0], changes, n, &how, report, err);
}

static int run_trigger(const struct np_call *call)
{
	return np_cmd_run_report(call, trigger);
}

static const char *const trigger_examples[] = {
	"npuprof dynamic trigger /shared/dyn --steps 2 --warmup 1",
	"npuprof dynamic trigger /shared/dyn --profile kernel --ranks 0,8 --dry-run",
	"npuprof dynamic trigger /shared/dyn --set with_stack=true --set profiler_level=Level2",
	NULL,
};

static const struct np_cmd verb_trigger = {
	.name = "dynamic trigger",
	.summary = "ask the running job for a capture, by changing the file in place",
	.words = "DIR",
	.min_words = 1,
	.max_words = 1,
	.detail = "Changes the fields named and nothing else, on the same inode; a reader sees the "
		  "old\ntext or the new one. Refused (exit 2) while the file is not JSON, or when "
		  "the result\nis not what torch_npu accepts.",
	.examples = trigger_examples,
	.options = trigger_options,
	.n_options = sizeof trigger_options / sizeof *trigger_options,
	.options_size = sizeof(struct options),
	.run = run_trigger,
};

/* ── watch ── */

static const struct np_option watch_options[] = {
	{"ranks", 0, NP_OPT_STRING, AT(ranks), "N|LIST",
         "ranks to wait for: so many, or a list (default: those with a log)"},
	{"timeout", 0, NP_OPT_STRING, AT(timeout), "SECONDS",
         "give up after (default: 600; 0: never)"},
	{"prof-dir", 0, NP_OPT_STRING, AT(prof_dir), "DIR",
         "where captures appear (default: that of the file)"},
	{"profile", 0, NP_OPT_STRING, AT(profile), "WHAT",
         "judge for: cluster, kernel or framework (default: by the file)"},
	{"since", 0, NP_OPT_STRING, AT(since), "SECONDS",
         "when the trigger was (epoch; default: mtime of the file)"},
	{"freshness-tolerance", 0, NP_OPT_DOUBLE, AT(tolerance), "SECONDS",
         "how much older than the trigger a file may be (default: 0)"},
	{"poll", 0, NP_OPT_DOUBLE, AT(poll), "SECONDS", "time between two looks (default: 0.5)"},
};

static enum np_status fill_watch(const struct np_call *call, struct np_dyn_watch_options *out,
                                 struct np_err *err)
{
	const struct options *own = call->options;
	double since = 0;
	*out = (struct np_dyn_watch_options){.prof_dir = own->prof_dir,
	                                     .timeout_seconds = 600,
	                                     .poll_seconds = own->poll,
	                                     .has_since = own->since != NULL,
	                                     .has_profile = own->profile != NULL,
	                                     .gate.tolerance_seconds = own->tolerance,
	                                     .gate.threads = (unsigned)call->common->jobs};
	if (own->profile && !np_gate_profile_parse(own->profile, &out->gate.profile))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "unknown profile '%s': use cluster, kernel or framework",
		                  own->profile);
	if (own->timeout && (!np_str_to_double(np_str_of(own->timeout), &out->timeout_seconds) ||
	                     out->timeout_seconds < 0 || out->timeout_seconds > 1e8))
		return np_err_set(err, NP_E_USAGE, NULL, "--timeout wants seconds, got '%s'",
		                  own->timeout);
	if (own->since &&
	    (!np_str_to_double(np_str_of(own->since), &since) || since < 0 || since > 9e9))
		return np_err_set(err, NP_E_USAGE, NULL, "--since wants seconds, got '%s'",
		                  own->since);
	out->since = (np_ns)(since * 1e9);
	return NP_OK;
}

static enum np_status watch(const struct np_call *call, struct np_report *report,
                            struct np_err *err)
{
	const struct options *own = call->options;
	struct np_dyn_watch_options options;
	int64_t *ranks = NULL;
	NP_TRY(fill_watch(call, &options, err));
	if (own->ranks)
		NP_TRY(np_dyn_ranks_parse(own->ranks, &ranks, &options.n_ranks, err));
	options.ranks = ranks;
	struct np_progress_line *line = np_progress_show(call->common);
	options.gate.progress = np_progress_of(line);
	enum np_status status = np_dyn_watch(call->argv[0], &options, report, err);
	np_progress_hide(line);
	np_free(ranks);
	return status;
}

static int run_watch(const struct np_call *call)
{
	return np_cmd_run_report(call, watch);
}

static const char *const watch_examples[] = {
	"npuprof dynamic watch /shared/dyn --ranks 64 --timeout 900",
	"npuprof dynamic watch /shared/dyn --prof-dir /data/prof --json > verdict.json",
	NULL,
};

static const struct np_cmd verb_watch = {
	.name = "dynamic watch",
	.summary = "follow the capture of every rank, then judge the outputs",
	.words = "DIR",
	.min_words = 1,
	.max_words = 1,
	.detail =
		"Reads the logs in DIR/log and waits until every expected rank has a complete new "
		"output,\nthen runs the gate over these. Exit status: that of npuprof check; 3 "
		"when time is over,\n1 when no rank can become complete any more.",
	.examples = watch_examples,
	.options = watch_options,
	.n_options = sizeof watch_options / sizeof *watch_options,
	.options_size = sizeof(struct options),
	.run = run_watch,
};

/* ── clean ── */

static const struct np_option clean_options[] = {
	{"logs", 0, NP_OPT_FLAG, AT(logs), NULL,
         "also logs of processes that are gone, or untouched for a day"},
	{"force", 0, NP_OPT_FLAG, AT(force), NULL, "also what is in use or of another user"},
	{"dry-run", 'n', NP_OPT_FLAG, AT(dry_run), NULL, "only tell what would be removed"},
	{"shm-dir", 0, NP_OPT_STRING, AT(shm_dir), "DIR",
         "where shared memory is (default: $NPUPROF_SHM_DIR or /dev/shm)"},
};

static enum np_status clean(const struct np_call *call, struct np_report *report,
                            struct np_err *err)
{
	const struct options *own = call->options;
	const struct np_dyn_clean_options options = {.shm_dir = own->shm_dir,
	                                             .logs = own->logs,
	                                             .force = own->force,
	                                             .dry_run = own->dry_run};
	return np_dyn_clean(call->argv[0], &options, report, err);
}

static int run_clean(const struct np_call *call)
{
	return np_cmd_run_report(call, clean);
}

static const struct np_cmd verb_clean = {
	.name = "dynamic clean",
	.summary = "remove the shared memory that killed jobs left",
	.words = "DIR",
	.min_words = 1,
	.max_words = 1,
	.detail = "Only what belongs to you and no process has mapped, unless --force.",
	.options = clean_options,
	.n_options = sizeof clean_options / sizeof *clean_options,
	.options_size = sizeof(struct options),
	.run = run_clean,
};

/* ── the command ── */

static const struct np_cmd *const verbs[] = {
	&verb_check, &verb_clean, &verb_init, &verb_trigger, &verb_watch,
};

const struct np_cmd np_cmd_dynamic = {
	.name = "dynamic",
	.summary = "captures of a running job: profiler_config.json made, judged, changed, watched",
	.words = "DIR",
	.detail = "dynamic_profile of torch_npu captures from a running job when its "
		  "profiler_config.json\nchanges. init → start the job with PROF_CONFIG_PATH → "
		  "trigger → watch.",
	.options_size = 1,
	.verbs = verbs,
	.n_verbs = sizeof verbs / sizeof *verbs,
};
