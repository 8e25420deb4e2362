/* inject.json for the hook, run.json for whoever looks later. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/run_internal.h"
#include "io/json.h"

static void quote(struct np_buf *out, const char *text)
{
	if (text)
		np_json_quote(out, np_str_of(text));
	else
		np_buf_add_cstr(out, "null");
}

static void member(struct np_buf *out, const char *name, const char *text)
{
	np_buf_printf(out, ",\n  \"%s\": ", name);
	quote(out, text);
}

static void flag(struct np_buf *out, const char *name, bool value)
{
	np_buf_printf(out, ",\n  \"%s\": %s", name, value ? "true" : "false");
}

static void number(struct np_buf *out, const char *name, int64_t value)
{
	np_buf_printf(out, ",\n  \"%s\": %" PRId64, name, value);
}

static void seconds(struct np_buf *out, const char *name, np_ns ns)
{
	if (ns)
		np_buf_printf(out, ",\n  \"%s\": %" PRId64 ".%09" PRId64, name, ns / 1000000000,
		              ns % 1000000000);
	else
		np_buf_printf(out, ",\n  \"%s\": null", name);
}

static void targets(struct np_buf *out, const struct np_run_target *list, size_t n)
{
	np_buf_add_char(out, '[');
	for (size_t i = 0; i < n; i++) {
		np_buf_add_cstr(out, i ? ", {" : "{");
		if (list[i].stage) {
			np_buf_add_cstr(out, "\"name\": ");
			quote(out, list[i].stage);
			np_buf_add_cstr(out, ", ");
		}
		np_buf_add_cstr(out, "\"module\": ");
		quote(out, list[i].module);
		np_buf_add_cstr(out, ", \"qualname\": ");
		quote(out, list[i].qualname);
		np_buf_add_char(out, '}');
	}
	np_buf_add_char(out, ']');
}

static void ranks(struct np_buf *out, const struct np_run *run)
{
	np_buf_add_cstr(out, ",\n  \"ranks\": ");
	if (!run->ranks) {
		np_buf_add_cstr(out, "null");
		return;
	}
	np_buf_add_char(out, '[');
	for (size_t i = 0; i < run->n_ranks; i++)
		np_buf_printf(out, i ? ", %" PRId64 : "%" PRId64, run->ranks[i]);
	np_buf_add_char(out, ']');
}

/* What both documents say of the configuration. */
static void configuration(struct np_buf *out, const struct np_run *run)
{
	np_buf_add_cstr(out, ",\n  \"targets\": ");
	targets(out, run->targets, run->n_targets);
	number(out, "call", (int64_t)run->call);
	number(out, "warmup", (int64_t)run->warmup);
	number(out, "active", (int64_t)run->active);
	ranks(out, run);
	member(out, "level", run->level);
	member(out, "aic_metrics", run->aic_metrics);
	flag(out, "with_stack", run->options->with_stack);
	flag(out, "record_shapes", !run->options->no_shapes);
	flag(out, "profile_memory", run->options->with_memory);
	np_buf_printf(out, ",\n  \"export_type\": [%s%s%s]", run->text ? "\"text\"" : "",
	              run->text && run->db ? ", " : "", run->db ? "\"db\"" : "");
	member(out, "phase", run->phase);
	np_buf_add_cstr(out, ",\n  \"collectives\": ");
	if (!run->options->collectives) {
		np_buf_add_cstr(out, "null");
		return;
	}
	np_buf_add_cstr(out, "{\"dir\": ");
	quote(out, run->comm_dir);
	np_buf_add_cstr(out, ", \"capacity\": 262144, \"stages\": ");
	targets(out, run->stages, run->n_stages);
	np_buf_add_cstr(out, ", \"step\": ");
	quote(out, run->step_anchor);
	np_buf_add_cstr(out, ", \"request\": ");
	quote(out, run->request_anchor);
	np_buf_add_char(out, '}');
}

static enum np_status save(const struct np_run *run, const char *name, struct np_buf *text,
                           struct np_err *err)
{
	struct np_outfile out;
	const char *path = np_path_join(&run->report->arena, run->dir, name);
	enum np_status status =
		text->failed || !path ? np_err_nomem(err) : np_outfile_begin(&out, path, err);
	if (status == NP_OK) {
		(void)fwrite(text->ptr, 1, text->len, out.file);
		status = np_outfile_commit(&out, err);
	}
	np_buf_release(text);
	return status;
}

enum np_status np_run_write_inject(const struct np_run *run, struct np_err *err)
{
	struct np_buf text = {0};
	np_buf_add_cstr(&text, "{\n  \"version\": 1");
	member(&text, "run_dir", run->dir);
	member(&text, "prof_dir", run->prof_dir);
	member(&text, "events_dir", run->events_dir);
	configuration(&text, run);
	np_buf_add_cstr(&text, "\n}\n");
	return save(run, "inject.json", &text, err);
}

/* ── run.json ── */

/* When a process began, in ticks since the boot: with its number it names one process. */
static int64_t start_ticks(int64_t pid)
{
	char path[64], text[1024];
	(void)snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	/* the name may hold anything, so look behind its last parenthesis; field 22 is asked for */
	const char *at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		return -1;
	np_str rest;
	int64_t ticks = -1;
	return np_str_to_i64(np_str_cut(np_str_of(at + 1), ' ', &rest), &ticks) ? ticks : -1;
}

static void how_it_ended(struct np_buf *out, const struct np_run *run)
{
	const struct np_spawn_end *end = &run->end;
	np_buf_add_cstr(out, ",\n  \"command_status\": ");
	if (run->command_state != NP_RUN_ENDED) {
		np_buf_add_cstr(out, "null");
		return;
	}
	np_buf_add_cstr(out, "{\"exit\": ");
	if (end->exit_status >= 0)
		np_buf_printf(out, "%d", end->exit_status);
	else
		np_buf_add_cstr(out, "null");
	np_buf_add_cstr(out, ", \"signal\": ");
	if (end->signal)
		np_buf_printf(out, "%d", end->signal);
	else
		np_buf_add_cstr(out, "null");
	np_buf_printf(out,
	              ", \"seconds\": %.3f, \"timed_out\": %s, \"stopped_after_capture\": %s, "
	              "\"succeeded\": %s}",
	              end->seconds, end->timed_out ? "true" : "false",
	              end->enough ? "true" : "false", np_spawn_succeeded(end) ? "true" : "false");
}

static void captures(struct np_buf *out, const struct np_run *run)
{
	np_buf_add_cstr(out, ",\n  \"captures\": [");
	for (size_t i = 0; i < run->dumps.all.n; i++) {
		const struct np_dump *dump = &run->dumps.all.v[i];
		np_buf_add_cstr(out, i ? ", {\"path\": " : "{\"path\": ");
		quote(out, dump->path);
		np_buf_printf(out, ", \"complete\": %s, \"exported\": ",
		              dump->complete ? "true" : "false");
		quote(out, dump->how);
		np_buf_add_char(out, '}');
	}
	np_buf_add_char(out, ']');
}

static void outcome(struct np_buf *out, const struct np_run *run)
{
	captures(out, run);
	np_buf_printf(out, ",\n  \"gate\": {\"profile\": \"%s\", \"verdict\": ",
	              np_gate_profile_name(run->profile));
	quote(out, run->gated ? np_verdict_name(run->gate_verdict) : NULL);
	np_buf_add_char(out, '}');
	member(out, "verdict", np_verdict_name(run->report->verdict));
	number(out, "exit_code", run->report->exit_code);
}

void np_run_json(const struct np_run *run, struct np_buf *out)
{
	char host[256] = "", here[4096] = "";
	bool finished = strcmp(run->state, "finished") == 0;
	(void)gethostname(host, sizeof host - 1);
	np_buf_printf(out, "{\n  \"version\": 1,\n  \"npuprof\": \"%s\"", NPUPROF_VERSION);
	member(out, "state", run->state);
	member(out, "name", run->name);
	member(out, "host", host);
	number(out, "launcher_pid", (int64_t)getpid());
	number(out, "launcher_start_ticks", start_ticks((int64_t)getpid()));
	if (run->end.pid)
		number(out, "command_pid", (int64_t)run->end.pid);
	seconds(out, "started", run->started_ns);
	seconds(out, "start_marker", run->start_ns);
	seconds(out, "ended", run->ended_ns);
	np_buf_add_cstr(out, ",\n  \"command\": [");
	for (size_t i = 0; run->argv && run->argv[i]; i++) {
		if (i)
			np_buf_add_cstr(out, ", ");
		quote(out, run->argv[i]);
	}
	np_buf_add_char(out, ']');
	member(out, "cwd", getcwd(here, sizeof here));
	member(out, "preset", run->preset ? run->preset->name : NULL);
	member(out, "search", run->search);
	member(out, "python", run->export_python);
	member(out, "gate_profile", np_gate_profile_name(run->profile));
	configuration(out, run);
	how_it_ended(out, run);
	if (finished)
		outcome(out, run);
	np_buf_add_cstr(out, "\n}\n");
}

enum np_status np_run_write_json(const struct np_run *run, struct np_err *err)
{
	struct np_buf text = {0};
	np_run_json(run, &text);
	return save(run, "run.json", &text, err);
}

/* ── reading it again ── */

static const char *text_of(struct np_run *run, const struct np_jval *root, const char *key,
                           const char *otherwise)
{
	np_str text = np_jstr(np_jget(root, key));
	const char *copy = text.len ? np_arena_cstr(&run->report->arena, text) : NULL;
	return copy ? copy : otherwise;
}

/* Targets, or stages: those have a name. */
static enum np_status read_list(struct np_run *run, const struct np_jval *list, bool stage,
                                struct np_run_target *out, size_t *n, struct np_err *err)
{
	struct np_arena *arena = &run->report->arena;
	for (size_t i = 0; list && i < list->n && i < NP_RUN_MAX_TARGETS; i++) {
		np_str name = np_jstr(np_jget(&list->child[i], "name"));
		np_str module = np_jstr(np_jget(&list->child[i], "module"));
		np_str qualname = np_jstr(np_jget(&list->child[i], "qualname"));
		const char *text = stage ? np_arena_printf(arena, "%.*s=%.*s:%.*s", NP_FMT(name),
		                                           NP_FMT(module), NP_FMT(qualname))
		                         : np_arena_printf(arena, "%.*s:%.*s", NP_FMT(module),
		                                           NP_FMT(qualname));
		if (!text)
			return np_err_nomem(err);
		NP_TRY(np_run_parse_target(arena, text, stage, &out[(*n)++], err));
	}
	return NP_OK;
}

static enum np_status read_targets(struct np_run *run, struct np_run_options *options,
                                   const struct np_jval *root, struct np_err *err)
{
	const struct np_jval *collectives = np_jget(root, "collectives");
	NP_TRY(read_list(run, np_jget(root, "targets"), false, run->targets, &run->n_targets, err));
	options->collectives = collectives && collectives->type == NP_J_OBJECT;
	if (!options->collectives)
		return NP_OK;
	run->step_anchor = options->step_anchor = text_of(run, collectives, "step", NULL);
	run->request_anchor = options->request_anchor = text_of(run, collectives, "request", NULL);
	return read_list(run, np_jget(collectives, "stages"), true, run->stages, &run->n_stages,
	                 err);
}

static enum np_status read_command(struct np_run *run, const struct np_jval *root,
                                   struct np_err *err)
{
	const struct np_jval *list = np_jget(root, "command");
	size_t n = list && list->type == NP_J_ARRAY ? list->n : 0;
	char **argv = np_arena_zalloc(&run->report->arena, (n + 1) * sizeof *argv);
	if (!argv)
		return np_err_nomem(err);
	for (size_t i = 0; i < n; i++) {
		argv[i] = (char *)(uintptr_t)np_arena_cstr(&run->report->arena,
		                                           np_jstr(&list->child[i]));
		if (!argv[i])
			return np_err_nomem(err);
	}
	run->argv = argv;
	run->command = np_run_command_line(run->report, argv);
	return NP_OK;
}

static void read_status(struct np_run *run, const struct np_jval *root)
{
	const struct np_jval *status = np_jget(root, "command_status");
	int64_t value = 0;
	run->end = (struct np_spawn_end){.exit_status = -1};
	if (!status || status->type != NP_J_OBJECT)
		return;
	run->command_state = NP_RUN_ENDED;
	if (np_ji64(np_jget(status, "exit"), &value) && value >= 0 && value < 256)
		run->end.exit_status = (int)value;
	if (np_ji64(np_jget(status, "signal"), &value) && value > 0 && value < 128)
		run->end.signal = (int)value;
	(void)np_jdouble(np_jget(status, "seconds"), &run->end.seconds);
	(void)np_jbool(np_jget(status, "timed_out"), &run->end.timed_out);
	(void)np_jbool(np_jget(status, "stopped_after_capture"), &run->end.enough);
}

/* Was this process started by the run in `dir`? Its environment tells. */
static bool is_of_run(struct np_arena *arena, int64_t pid, const char *dir)
{
	char path[64];
	np_str rest;
	(void)snprintf(path, sizeof path, "/proc/%" PRId64 "/environ", pid);
	const char *wanted = np_arena_printf(arena, "NPUPROF_INJECT=%s/inject.json", dir);
	FILE *file = fopen(path, "re");
	char text[1 << 16];
	size_t n = file ? fread(text, 1, sizeof text, file) : 0;
	if (file)
		(void)fclose(file);
	for (rest = (np_str){text, n}; wanted && rest.len;)
		if (np_str_is(np_str_cut(rest, '\0', &rest), wanted))
			return true;
	return false;
}

/* Does the launcher that wrote this still run, here? Or its command? */
static enum np_status check_over(struct np_arena *arena, const struct np_jval *root,
                                 const char *dir, struct np_err *err)
{
	char host[256] = "";
	int64_t pid = 0, ticks = 0;
	(void)gethostname(host, sizeof host - 1);
	if (!np_str_is(np_jstr(np_jget(root, "host")), host) ||
	    np_str_is(np_jstr(np_jget(root, "state")), "finished"))
		return NP_OK;
	if (np_ji64(np_jget(root, "launcher_pid"), &pid) && pid > 0 &&
	    np_ji64(np_jget(root, "launcher_start_ticks"), &ticks) && ticks >= 0 &&
	    start_ticks(pid) == ticks)
		return np_err_set(err, NP_E_USAGE, dir, "it still runs: npuprof with pid %" PRId64,
		                  pid);
	if (np_ji64(np_jget(root, "command_pid"), &pid) && pid > 0 &&
	    is_of_run(arena, pid, np_run_absolute(arena, dir)))
		return np_err_set(err, NP_E_USAGE, dir,
		                  "npuprof is gone, but its command still runs: wait for it, or "
		                  "kill -- -%" PRId64,
		                  pid);
	return NP_OK;
}

/* As an option of a command to copy: NULL where it is the default. */
static const char *unless(const char *text, const char *is_default)
{
	return text && strcmp(text, is_default) != 0 ? text : NULL;
}

static int64_t count_of(const struct np_jval *root, const char *key, int64_t otherwise)
{
	int64_t value = 0;
	return np_ji64(np_jget(root, key), &value) && value > 0 ? value : otherwise;
}

static enum np_status read_configuration(struct np_run *run, struct np_run_options *options,
                                         const struct np_jval *root, struct np_err *err)
{
	bool shapes = true;
	double started = 0;
	run->level = text_of(run, root, "level", "Level1");
	run->aic_metrics = text_of(run, root, "aic_metrics", "PipeUtilization");
	run->phase = text_of(run, root, "phase", "both");
	run->preset = np_preset_find(text_of(run, root, "preset", ""));
	const struct np_jval *types = np_jget(root, "export_type");
	for (size_t i = 0; types && i < types->n; i++) {
		run->text |= np_str_is(np_jstr(&types->child[i]), "text");
		run->db |= np_str_is(np_jstr(&types->child[i]), "db");
	}
	(void)np_gate_profile_parse(text_of(run, root, "gate_profile", "kernel"), &run->profile);
	run->warmup = (uint64_t)count_of(root, "warmup", 0);
	run->active = (uint64_t)count_of(root, "active", 1);
	run->call = (uint64_t)count_of(root, "call", 1);
	(void)np_jbool(np_jget(root, "with_stack"), &options->with_stack);
	(void)np_jbool(np_jget(root, "profile_memory"), &options->with_memory);
	(void)np_jbool(np_jget(root, "record_shapes"), &shapes);
	options->no_shapes = !shapes;
	options->level = unless(run->level, "Level1");
	options->aic_metrics = unless(run->aic_metrics, "PipeUtilization");
	options->phase = unless(run->phase, "both");
	options->call = unless(np_arena_printf(&run->report->arena, "%" PRIu64, run->call), "6");
	options->active =
		unless(np_arena_printf(&run->report->arena, "%" PRIu64, run->active), "1");
	if (np_jdouble(np_jget(root, "started"), &started) && started > 0 && started < 9e9)
		run->started_ns = (np_ns)(started * 1e9);
	const struct np_jval *list = np_jget(root, "ranks");
	if (!list || list->type != NP_J_ARRAY)
		return NP_OK;
	run->ranks = np_arena_zalloc(&run->report->arena, (list->n + 1) * sizeof *run->ranks);
	if (!run->ranks)
		return np_err_nomem(err);
	for (size_t i = 0; i < list->n; i++)
		run->n_ranks += np_ji64(&list->child[i], &run->ranks[run->n_ranks]);
	return NP_OK;
}

enum np_status np_run_read_json(struct np_run *run, struct np_run_options *options, const char *dir,
                                struct np_err *err)
{
	struct np_arena *arena = &run->report->arena;
	const struct np_jval *root = NULL;
	struct np_file_stat stat;
	const char *path = np_path_join(arena, dir, "run.json");
	if (!path)
		return np_err_nomem(err);
	NP_TRY(np_json_parse_file(arena, path, NP_JSON_STRICT, &root, NULL, err));
	if (root->type != NP_J_OBJECT || np_jstr(np_jget(root, "state")).len == 0)
		return np_err_set(err, NP_E_FORMAT, path, "this is no run.json of npuprof");
	NP_TRY(check_over(arena, root, dir, err));
	run->dir = np_run_absolute(arena, dir);
	if (!run->dir)
		return np_err_nomem(err);
	run->name = text_of(run, root, "name", "run");
	run->search = NULL;
	NP_TRY(np_run_paths(run, err));
	const char *search = text_of(run, root, "search", run->prof_dir);
	/* a run directory that was moved has its captures with it */
	if (np_file_stat(search, true, &stat, NULL) == NP_OK && stat.kind == NP_FILE_DIR)
		run->search = search;
	NP_TRY(read_configuration(run, options, root, err));
	NP_TRY(read_targets(run, options, root, err));
	NP_TRY(read_command(run, root, err));
	read_status(run, root);
	if (run->command_state != NP_RUN_ENDED)
		run->command_state = NP_RUN_LAUNCHER_DIED;
	NP_TRY(np_file_stat(run->marker, false, &stat, err));
	if (stat.kind == NP_FILE_NONE)
		return np_err_set(err, NP_E_NOTFOUND, run->marker, "the start marker is missing");
	run->start_ns = stat.mtime_ns;
	return NP_OK;
}
