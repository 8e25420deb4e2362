/* From options to a run directory. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/inject_files.h"
#include "collect/run_internal.h"

static const char *const levels[] = {"Level0", "Level1", "Level2", "Level_none", NULL};
static const char *const metrics[] = {"PipeUtilization", "ArithmeticUtilization",
                                      "Memory",          "MemoryL0",
                                      "MemoryUB",        "ResourceConflictRatio",
                                      "L2Cache",         "MemoryAccess",
                                      "AiCoreNone",      NULL};
static const char *const phases[] = {"both", "prefill", "decode", NULL};
static const char *const exports[] = {"text", "db", "text,db", "db,text", NULL};

/* ── names and lists ── */

/* A name of Python, dotted: what `import` and getattr() take. */
static bool is_dotted(np_str text)
{
	bool begin = true;
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];
		if (c == '.') {
			if (begin)
				return false;
			begin = true;
		} else if (c == '_' || isalpha(c) || c >= 0x80 || (!begin && isdigit(c))) {
			begin = false;
		} else {
			return false;
		}
	}
	return !begin;
}

enum np_status np_run_parse_target(struct np_arena *arena, const char *text, bool stage,
                                   struct np_run_target *out, struct np_err *err)
{
	const char *option = stage ? "--stage" : "--target";
	np_str rest = np_str_of(text), name = {NULL, 0};
	if (stage) {
		name = np_str_cut(rest, '=', &rest);
		if (name.len == 0 || rest.len == 0)
			return np_err_set(err, NP_E_USAGE, option,
			                  "wants NAME=MODULE:QUALNAME, got '%s'", text);
	}
	np_str whole = rest, module = np_str_cut(rest, ':', &rest);
	if (!is_dotted(module) || !is_dotted(rest))
		return np_err_set(err, NP_E_USAGE, option,
		                  "wants %sMODULE:QUALNAME, as mymodel.dit:DiT.forward, got '%s'",
		                  stage ? "NAME=" : "", text);
	*out = (struct np_run_target){.text = np_arena_cstr(arena, whole),
	                              .module = np_arena_cstr(arena, module),
	                              .qualname = np_arena_cstr(arena, rest),
	                              .stage = stage ? np_arena_cstr(arena, name) : NULL};
	return out->text && out->module && out->qualname && (!stage || out->stage)
	               ? NP_OK
	               : np_err_nomem(err);
}

static bool add_ranks(int64_t *ranks, size_t *n, int64_t first, int64_t last)
{
	for (int64_t rank = first; rank <= last; rank++) {
		bool known = false;
		for (size_t i = 0; i < *n; i++)
			known |= ranks[i] == rank;
		if (known)
			continue;
		if (*n == NP_RUN_MAX_RANKS)
			return false;
		ranks[(*n)++] = rank;
	}
	return true;
}

enum np_status np_run_parse_ranks(struct np_arena *arena, const char *text, int64_t **ranks,
                                  size_t *n, struct np_err *err)
{
	np_str rest = np_str_of(text);
	*ranks = NULL;
	*n = 0;
	if (strcmp(text, "all") == 0)
		return NP_OK;
	*ranks = np_arena_zalloc(arena, NP_RUN_MAX_RANKS * sizeof **ranks);
	if (!*ranks)
		return np_err_nomem(err);
	do {
		np_str end, part = np_str_cut(rest, ',', &rest),
			    begin = np_str_cut(part, '-', &end);
		int64_t first = -1, last = -1;
		bool good = np_str_to_i64(begin, &first) && first >= 0 && first < 1000000;
		last = first;
		if (good && begin.len < part.len)
			good = np_str_to_i64(end, &last) && last >= first && last < 1000000;
		if (!good || !add_ranks(*ranks, n, first, last))
			return np_err_set(err, NP_E_USAGE, "--ranks",
			                  "wants 0, all, or a list such as 0,2,4-7, got '%s'",
			                  text);
	} while (rest.len);
	return NP_OK;
}

static enum np_status choose(const char *option, const char *const *values, const char *given,
                             const char *of_preset, const char **out, struct np_err *err)
{
	*out = given ? given : of_preset ? of_preset : *out;
	for (size_t i = 0; values[i]; i++)
		if (strcmp(values[i], *out) == 0)
			return NP_OK;
	struct np_buf list = {0};
	for (size_t i = 0; values[i]; i++)
		np_buf_printf(&list, i ? ", %s" : "%s", values[i]);
	enum np_status status =
		np_err_set(err, NP_E_USAGE, option, "unknown value '%s': use one of %s", *out,
	                   list.ptr ? list.ptr : "");
	np_buf_release(&list);
	return status;
}

/* ── resolve ── */

/* An anchor is the name of a stage. */
static enum np_status check_anchor(const struct np_run *run, const char *option, const char *name,
                                   struct np_err *err)
{
	struct np_buf list = {0};
	bool known = !name;
	for (size_t i = 0; i < run->n_stages; i++) {
		known |= name && strcmp(run->stages[i].stage, name) == 0;
		np_buf_printf(&list, i ? ", %s" : "%s", run->stages[i].stage);
	}
	enum np_status status =
		known ? NP_OK
		: run->n_stages
			? np_err_set(err, NP_E_USAGE, option,
	                             "no --stage is named '%s': use one of %s", name,
	                             list.ptr ? list.ptr : "")
			: np_err_set(err, NP_E_USAGE, option,
	                             "names a stage: give --stage %s=MODULE:QUALNAME", name);
	np_buf_release(&list);
	return status;
}

static enum np_status resolve_targets(struct np_run *run, struct np_err *err)
{
	const struct np_run_options *options = run->options;
	struct np_arena *arena = &run->report->arena;
	if (options->n_targets > NP_RUN_MAX_TARGETS || options->n_stages > NP_RUN_MAX_TARGETS)
		return np_err_set(err, NP_E_USAGE, NULL, "too many targets");
	for (size_t i = 0; i < options->n_targets; i++)
		NP_TRY(np_run_parse_target(arena, options->targets[i], false,
		                           &run->targets[run->n_targets++], err));
	for (size_t i = 0; options->n_targets == 0 && run->preset && i < NP_PRESET_TARGETS; i++)
		if (run->preset->targets[i])
			NP_TRY(np_run_parse_target(arena, run->preset->targets[i], false,
			                           &run->targets[run->n_targets++], err));
	for (size_t i = 0; i < options->n_stages; i++)
		NP_TRY(np_run_parse_target(arena, options->stages[i], true,
		                           &run->stages[run->n_stages++], err));
	if (run->n_stages && !options->collectives)
		return np_err_set(err, NP_E_USAGE, "--stage", "belongs to --collectives");
	run->step_anchor = options->step_anchor;
	if (!run->step_anchor && run->n_stages)
		run->step_anchor = run->stages[0].stage;
	run->request_anchor = options->request_anchor;
	NP_TRY(check_anchor(run, "--step-anchor", options->step_anchor, err));
	return check_anchor(run, "--request-anchor", options->request_anchor, err);
}

static enum np_status nothing_to_do(const struct np_run *run, struct np_err *err)
{
	const struct np_preset *preset = run->preset;
	if (!preset)
		return np_err_set(
			err, NP_E_USAGE, NULL,
			"nothing to record: give --target MODULE:QUALNAME, --collectives, or "
			"--watch DIR for a command that profiles by itself "
			"(npuprof run --list-presets)");
	if (preset->watch)
		return np_err_set(err, NP_E_USAGE, "--preset", "%s wants --watch DIR: %s",
		                  preset->name, preset->choose);
	return np_err_set(err, NP_E_USAGE, "--preset",
	                  "with %s the class depends on the model, give --target MODULE:QUALNAME: "
	                  "%s%s%s",
	                  preset->name, preset->choose, preset->hints[0].target ? "; e.g. " : "",
	                  preset->hints[0].target ? preset->hints[0].target : "");
}

/* A number that counts from 1; `out` stays what it is where none is given. */
static enum np_status from_one(const char *option, const char *given, uint64_t *out,
                               struct np_err *err)
{
	if (given && (!np_str_to_u64(np_str_of(given), out) || *out == 0 || *out > 1000000000))
		return np_err_set(err, NP_E_USAGE, option,
		                  "wants a number from 1 on (the first call is 1), got '%s'",
		                  given);
	return NP_OK;
}

static enum np_status resolve_numbers(struct np_run *run, struct np_err *err)
{
	const struct np_run_options *options = run->options;
	const struct np_preset *preset = run->preset;
	run->warmup = options->compile ? preset ? preset->compile_warmup : 10
	              : preset         ? preset->warmup
	                               : 5;
	if (options->warmup &&
	    (!np_str_to_u64(np_str_of(options->warmup), &run->warmup) || run->warmup > 1000000000))
		return np_err_set(err, NP_E_USAGE, "--warmup", "wants a number, got '%s'",
		                  options->warmup);
	run->active = 1;
	run->call = run->warmup + 1;
	NP_TRY(from_one("--active", options->active, &run->active, err));
	NP_TRY(from_one("--call", options->call, &run->call, err));
	if (options->compile && run->call < 11)
		np_report_note(run->report,
		               "the compiler may run in up to 8 calls: with --compile the first 10 "
		               "should be warm-up (R6), and call %llu is recorded",
		               (unsigned long long)run->call);
	return NP_OK;
}

static enum np_status resolve_profile(struct np_run *run, struct np_err *err)
{
	const char *wish = run->options->profile ? run->options->profile
	                   : run->preset         ? run->preset->profile
	                                         : NULL;
	bool no_units = strcmp(run->aic_metrics, "AiCoreNone") == 0 ||
	                strcmp(run->level, "Level0") == 0 || strcmp(run->level, "Level_none") == 0;
	run->profile = no_units ? NP_GATE_CLUSTER : NP_GATE_KERNEL;
	if (wish && !np_gate_profile_parse(wish, &run->profile))
		return np_err_set(err, NP_E_USAGE, "--profile",
		                  "unknown profile '%s': use kernel, framework or cluster", wish);
	return NP_OK;
}

/* "/usr/bin/python3 -u train.py" → "train", "python3 -m pkg.train" → "pkg.train". */
static np_str name_of_command(char *const *argv)
{
	np_str name = np_path_base(argv[0]);
	for (size_t i = 1; argv[i]; i++) {
		if (strcmp(argv[i], "-m") == 0 && argv[i + 1])
			return np_str_of(argv[i + 1]);
		if (np_str_ends(np_str_of(argv[i]), NP_STR(".py"))) {
			name = np_path_base(argv[i]);
			return np_str_sub(name, 0, name.len - 3);
		}
	}
	return name;
}

/* What every file system and torch_npu's check of paths take. */
static const char *clean_name(struct np_arena *arena, np_str wish)
{
	char out[64];
	size_t n = 0;
	for (size_t i = 0; i < wish.len && n + 1 < sizeof out; i++) {
		unsigned char c = (unsigned char)wish.ptr[i];
		bool good = isalnum(c) || c == '.' || c == '_' || (c == '-' && n > 0);
		out[n++] = good ? (char)c : '_';
	}
	out[n] = '\0';
	while (n && out[0] == '.')
		memmove(out, out + 1, n--);
	return np_arena_cstr(arena, np_str_of(n ? out : "run"));
}

enum np_status np_run_resolve(struct np_run *run, struct np_err *err)
{
	const struct np_run_options *options = run->options;
	struct np_arena *arena = &run->report->arena;
	if (options->preset) {
		run->preset = np_preset_find(options->preset);
		if (!run->preset)
			return np_err_set(err, NP_E_USAGE, "--preset",
			                  "unknown preset '%s' (npuprof run --list-presets)",
			                  options->preset);
	}
	NP_TRY(resolve_targets(run, err));
	run->hooked = run->n_targets || options->collectives;
	if (!run->hooked && !options->watch)
		return nothing_to_do(run, err);
	run->level = "Level1";
	run->aic_metrics = "PipeUtilization";
	run->phase = "both";
	run->export_type = "text";
	const char *of_level = run->preset ? run->preset->level : NULL;
	const char *of_metrics = run->preset ? run->preset->aic_metrics : NULL;
	NP_TRY(choose("--level", levels, options->level, of_level, &run->level, err));
	if (strcmp(run->level, "Level0") == 0 || strcmp(run->level, "Level_none") == 0)
		run->aic_metrics = "AiCoreNone";
	NP_TRY(choose("--aic-metrics", metrics, options->aic_metrics, of_metrics, &run->aic_metrics,
	              err));
	NP_TRY(choose("--phase", phases, options->phase, NULL, &run->phase, err));
	NP_TRY(choose("--export-type", exports, options->export_type, NULL, &run->export_type,
	              err));
	run->text = np_str_contains(np_str_of(run->export_type), NP_STR("text"));
	run->db = np_str_contains(np_str_of(run->export_type), NP_STR("db"));
	NP_TRY(np_run_parse_ranks(arena, options->ranks ? options->ranks : "0", &run->ranks,
	                          &run->n_ranks, err));
	NP_TRY(resolve_numbers(run, err));
	NP_TRY(resolve_profile(run, err));
	run->argv = options->command;
	run->command = np_run_command_line(run->report, run->argv);
	run->name = clean_name(arena, options->name ? np_str_of(options->name)
	                              : run->preset ? np_str_of(run->preset->name)
	                                            : name_of_command(run->argv));
	return run->name ? NP_OK : np_err_nomem(err);
}

/* ── the directory ── */

const char *np_run_absolute(struct np_arena *arena, const char *path)
{
	char here[4096];
	np_str text = np_str_of(path);
	while (text.len > 1 && text.ptr[text.len - 1] == '/')
		text.len--;
	const char *clean = np_arena_cstr(arena, text);
	if (!clean || path[0] == '/' || !getcwd(here, sizeof here))
		return clean;
	return np_path_join(arena, here, clean);
}

enum np_status np_run_paths(struct np_run *run, struct np_err *err)
{
	struct np_arena *arena = &run->report->arena;
	run->prof_dir = np_path_join(arena, run->dir, "prof");
	run->events_dir = np_path_join(arena, run->dir, "events");
	run->comm_dir = np_path_join(arena, run->dir, "comm");
	run->inject_dir = np_path_join(arena, run->dir, "inject");
	run->log_dir = np_path_join(arena, run->dir, "log");
	run->log = np_path_join(arena, run->dir, "log/run.log");
	run->marker = np_path_join(arena, run->dir, ".start_marker");
	if (!run->search)
		run->search = run->prof_dir;
	return run->prof_dir && run->events_dir && run->comm_dir && run->inject_dir &&
	                       run->log_dir && run->log && run->marker
	               ? NP_OK
	               : np_err_nomem(err);
}

/* A new directory `<name>_<UTC time>`, with a number when that exists (R21). */
static enum np_status make_own(struct np_run *run, const char *parent, struct np_err *err)
{
	char date[32], stamp[32];
	size_t n = 0;
	(void)np_ns_format_date(date, sizeof date, run->started_ns);
	for (const char *p = date; *p && *p != '.'; p++) {
		if (isdigit((unsigned char)*p))
			stamp[n++] = *p;
		else if (*p == ' ')
			stamp[n++] = 'T';
	}
	stamp[n] = '\0';
	for (int i = 1; i < 1000; i++) {
		char suffix[16] = "";
		if (i > 1)
			(void)snprintf(suffix, sizeof suffix, "-%d", i);
		run->dir = np_arena_printf(&run->report->arena, "%s/%s_%sZ%s", parent, run->name,
		                           stamp, suffix);
		if (!run->dir)
			return np_err_nomem(err);
		if (mkdir(run->dir, 0750) == 0) /* of two at the same time only one gets it */
			return NP_OK;
		if (errno != EEXIST)
			return np_err_sys(err, errno, run->dir, "create");
	}
	return np_err_set(err, NP_E_EXISTS, parent, "too many runs of one second");
}

static enum np_status write_marker(struct np_run *run, struct np_err *err)
{
	struct np_file_stat stat;
	int fd = open(run->marker, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return np_err_sys(err, errno, run->marker, "write");
	char text[64];
	int n = snprintf(text, sizeof text, "%lld.%09lld\n",
	                 (long long)(run->started_ns / 1000000000),
	                 (long long)(run->started_ns % 1000000000));
	ssize_t written = write(fd, text, (size_t)n);
	int why = errno;
	(void)close(fd);
	if (written != n)
		return np_err_sys(err, written < 0 ? why : ENOSPC, run->marker, "write");
	NP_TRY(np_file_stat(run->marker, false, &stat, err));
	run->start_ns = stat.mtime_ns;
	return NP_OK;
}

/* Another file system has another clock: a file made there tells the time of the products. */
static void ask_clock_of_watched(struct np_run *run)
{
	struct np_file_stat stat;
	char path[4096];
	if ((size_t)snprintf(path, sizeof path, "%s/.npuprof_clock.%ld", run->search,
	                     (long)getpid()) >= sizeof path)
		return;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (np_file_stat(path, false, &stat, NULL) == NP_OK)
		run->start_ns = stat.mtime_ns;
	(void)close(fd);
	(void)unlink(path);
}

/* PYTHONPATH and LD_PRELOAD are lists: no path in them can hold what separates its items. */
static enum np_status check_parent(const struct np_run *run, const char *parent, struct np_err *err)
{
	if (run->hooked && strchr(parent, ':'))
		return np_err_set(
			err, NP_E_USAGE, parent,
			"a path with a colon cannot be in PYTHONPATH; give another --out");
	if (run->options->collectives && strpbrk(parent, " \t\n"))
		return np_err_set(
			err, NP_E_USAGE, parent,
			"a path with a space cannot be in LD_PRELOAD; give another --out");
	return NP_OK;
}

/* Whatever the reason, the directory cannot be written: that is told, and what to do. */
static enum np_status make_parent(const struct np_run *run, const char *parent, struct np_err *err)
{
	struct np_err why = {0};
	struct np_file_stat stat;
	enum np_status status = np_mkdirs(parent, &why);
	if (status == NP_OK)
		status = np_file_stat(parent, true, &stat, &why);
	if (status == NP_OK && access(parent, W_OK | X_OK) != 0)
		status = np_err_sys(&why, errno, parent, "write into it");
	if (status == NP_OK)
		return NP_OK;
	return np_err_set(err, status == NP_E_NOMEM ? status : NP_E_IO, why.where,
	                  "%s: give another parent for the run directory, as --out %s", why.msg,
	                  run->options->out ? "npuprof-runs" : "/tmp/npuprof-runs");
}

enum np_status np_run_make_dir(struct np_run *run, struct np_err *err)
{
	const struct np_run_options *options = run->options;
	const char *parent =
		np_run_absolute(&run->report->arena, options->out ? options->out : "npuprof-runs");
	if (options->watch)
		run->search = np_run_absolute(&run->report->arena, options->watch);
	if (!parent || (options->watch && !run->search))
		return np_err_nomem(err);
	run->started_ns = np_time_now();
	NP_TRY(check_parent(run, parent, err));
	NP_TRY(make_parent(run, parent, err));
	NP_TRY(make_own(run, parent, err));
	NP_TRY(np_run_paths(run, err));
	NP_TRY(np_mkdirs(run->prof_dir, err));
	NP_TRY(np_mkdirs(run->events_dir, err));
	NP_TRY(np_mkdirs(run->log_dir, err));
	if (options->collectives)
		NP_TRY(np_mkdirs(run->comm_dir, err));
	if (run->hooked) {
		NP_TRY(np_inject_unpack(run->inject_dir, err));
		NP_TRY(np_run_write_inject(run, err));
	}
	NP_TRY(write_marker(run, err));
	if (options->watch)
		ask_clock_of_watched(run);
	run->state = "running";
	return np_run_write_json(run, err);
}
