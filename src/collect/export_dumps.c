#include "collect/export_dumps.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"

extern char **environ;

enum { PROBE_SECONDS = 60 };

/* Only looks whether it is installed: importing it takes seconds and may want a card. */
static const char probe_code[] = "import importlib.util, sys; "
				 "sys.exit(0 if importlib.util.find_spec('torch_npu') else 3)";

static const char analyse_code[] = "import sys; from torch_npu.profiler.profiler import analyse; "
				   "analyse(sys.argv[1], max_process_number=8)";

/* Below the decorator that swallows exceptions (R36); the constant is misspelt there, too. */
static const char parser_code[] =
	"import sys; "
	"from torch_npu.profiler.analysis._profiling_parser import ProfilingParser; "
	"from torch_npu.profiler.analysis.prof_common_func._constant import Constant; "
	"ProfilingParser(sys.argv[1], Constant.TENSORBORAD_TRACE_HANDLER, None, "
	"{}).analyse_profiling_data()";

static bool has_torch_npu(const struct np_run *run, const char *python)
{
	char *argv[] = {(char *)(uintptr_t)python, (char[]){"-c"}, (char *)(uintptr_t)probe_code,
	                NULL};
	struct np_spawn spec = {.argv = argv,
	                        .env = environ,
	                        .log = NULL,
	                        .out_fd = -1,
	                        .err_fd = -1,
	                        .no_stdin = true,
	                        .timeout_s = PROBE_SECONDS,
	                        .grace_s = 1};
	struct np_spawn_end end;
	(void)run;
	return python && *python && np_spawn_run(&spec, &end, NULL) == NP_OK &&
	       end.exit_status == 0;
}

static bool is_python(np_str path)
{
	np_str name = path;
	for (size_t i = path.len; i > 0; i--)
		if (path.ptr[i - 1] == '/') {
			name = np_str_from(path, i);
			break;
		}
	return np_str_starts(name, NP_STR("python")) || np_str_starts(name, NP_STR("pypy"));
}

/* The interpreter in the first line of a script: of `torchrun`, `vllm` and their like. */
static const char *interpreter_of(struct np_arena *arena, const char *script)
{
	char line[512];
	FILE *file = strchr(script, '/') ? fopen(script, "re") : NULL;
	if (!file)
		return NULL;
	size_t n = fread(line, 1, sizeof line - 1, file);
	(void)fclose(file);
	line[n] = '\0';
	np_str rest, first = np_str_trim(np_str_cut((np_str){line, n}, '\n', &rest));
	if (!np_str_starts(first, NP_STR("#!")))
		return NULL;
	np_str path = np_str_trim(np_str_from(first, 2));
	if (np_str_starts(path, NP_STR("/usr/bin/env ")))
		path = np_str_trim(np_str_from(path, strlen("/usr/bin/env ")));
	path = np_str_cut(path, ' ', &rest);
	return is_python(path) ? np_arena_cstr(arena, path) : NULL;
}

/* argv[0] of the command as a path, looked up in PATH. */
static const char *find_program(struct np_arena *arena, const char *name)
{
	const char *path = getenv("PATH");
	if (strchr(name, '/') || !path)
		return name;
	np_str rest = np_str_of(path);
	while (rest.len) {
		np_str dir = np_str_cut(rest, ':', &rest);
		const char *file = np_arena_printf(arena, "%.*s/%s", NP_FMT(dir), name);
		if (file && access(file, X_OK) == 0)
			return file;
	}
	return name;
}

const char *np_run_find_python(struct np_run *run)
{
	struct np_arena *arena = &run->report->arena;
	if (run->options->python)
		return has_torch_npu(run, run->options->python) ? run->options->python : NULL;
	for (size_t i = run->events.all.n; i > 0; i--) {
		const struct np_run_event *event = &run->events.all.v[i - 1];
		/* a run has one Python as a rule: the last process tells, the others agree */
		if (*event->python && has_torch_npu(run, event->python))
			return event->python;
		if (*event->python)
			break;
	}
	const char *first = run->argv && run->argv[0] ? run->argv[0] : "";
	if (is_python(np_str_of(first)) && has_torch_npu(run, first))
		return first;
	const char *of_script = *first ? interpreter_of(arena, find_program(arena, first)) : NULL;
	if (of_script && has_torch_npu(run, of_script))
		return of_script;
	return has_torch_npu(run, "python3") ? "python3" : NULL;
}

const char *np_run_export_command(struct np_run *run, const char *python, const char *dump)
{
	const char *line = np_arena_printf(&run->report->arena, "%s -c '%s' %s",
	                                   np_shell_quote(run->report, python ? python : "python3"),
	                                   "import sys; from torch_npu.profiler.profiler import "
	                                   "analyse; analyse(sys.argv[1], max_process_number=8)",
	                                   np_shell_quote(run->report, dump));
	return line ? line : "";
}

/* What lies there, whether whole or not. */
static bool has_deliverables(const struct np_run *run, const struct np_dump *dump)
{
	if (dump->msprof)
		return np_dump_msprof_is_complete(dump->path, run->start_ns);
	bool kernels = strcmp(run->level, "Level_none") != 0;
	/* a command that records by itself has its own configuration */
	if (run->search != run->prof_dir && run->n_targets == 0)
		return np_dump_is_complete(dump->path, run->start_ns, true, false, false) ||
		       np_dump_is_complete(dump->path, run->start_ns, false, true, false);
	return np_dump_is_complete(dump->path, run->start_ns, run->text, run->db, kernels);
}

bool np_run_is_complete(const struct np_run *run, const struct np_dump *dump)
{
	/* without the raw data nothing better can be made of it */
	return has_deliverables(run, dump) &&
	       (dump->msprof || !dump->raw || np_dump_is_finished(dump->path, run->start_ns));
}

/* true: interrupted, nothing more is to be started. *well: it came to its own end. */
static bool export_once(struct np_run *run, const char *code, const char *path, double *seconds,
                        bool *well)
{
	char *argv[] = {(char *)(uintptr_t)run->export_python, (char[]){"-c"},
	                (char *)(uintptr_t)code, (char *)(uintptr_t)path, NULL};
	double limit = run->options->export_timeout_s;
	struct np_spawn spec = {
		.argv = argv,
		.env = environ,
		.log = np_path_join(&run->report->arena, run->log_dir, "export.log"),
		.out_fd = -1,
		.err_fd = -1,
		.no_stdin = true,
		.timeout_s = limit > 0 ? limit : 1800,
		.grace_s = 5};
	struct np_spawn_end end;
	*well = false;
	if (np_spawn_run(&spec, &end, NULL) != NP_OK)
		return false;
	*seconds += end.seconds;
	*well = end.exit_status == 0 && !end.timed_out;
	return end.interrupted != 0;
}

/* Several dumps of one directory, and nothing old beside them: the parser works on them in
 * parallel when it is given the directory. */
static bool may_go_together(const struct np_run *run)
{
	size_t todo = 0;
	for (size_t i = 0; i < run->dumps.all.n; i++) {
		const struct np_dump *dump = &run->dumps.all.v[i];
		size_t len = strlen(run->prof_dir);
		if (strncmp(dump->path, run->prof_dir, len) != 0 ||
		    strchr(dump->path + len + 1, '/') || dump->complete || !dump->raw)
			return false;
		todo++;
	}
	return todo > 1 && run->dumps.old == 0;
}

static void look_again(struct np_run *run, const char *how)
{
	for (size_t i = 0; i < run->dumps.all.n; i++) {
		struct np_dump *dump = &run->dumps.all.v[i];
		if (dump->complete)
			continue;
		dump->complete = np_run_is_complete(run, dump);
		if (dump->complete)
			dump->how = how;
	}
}

enum np_status np_run_export(struct np_run *run, struct np_err *err)
{
	static const struct {
		const char *code, *how;
	} ways[] = {{analyse_code, "analyse"}, {parser_code, "parser"}};
	bool stop = false, well = false;
	double seconds = 0;
	if (may_go_together(run)) {
		stop = export_once(run, analyse_code, run->prof_dir, &seconds, &well);
		look_again(run, "analyse");
	}
	for (size_t w = 0; w < sizeof ways / sizeof *ways && !stop; w++)
		for (size_t i = 0; i < run->dumps.all.n && !stop; i++) {
			struct np_dump *dump = &run->dumps.all.v[i];
			if (dump->complete || !dump->raw)
				continue;
			stop = export_once(run, ways[w].code, dump->path, &dump->seconds, &well);
			/* the mark is analyse()'s; below it an exception ends the process */
			if (well && ways[w].code == parser_code && has_deliverables(run, dump))
				np_dump_set_finished(dump->path);
			look_again(run, ways[w].how);
		}
	return run->report->failed ? np_err_nomem(err) : NP_OK;
}
