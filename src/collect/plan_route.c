#include "collect/route.h"

#include <string.h>

#include "report/lang.h"

static const struct np_column route_columns[] = {
	{"path", "", NP_COL_TEXT, "A: the framework's own profiler; B: inject one"},
	{"why", "", NP_COL_TEXT, "what decided it"},
	{"files", "", NP_COL_INT, "sources and configurations that were read"},
	{"hits", "", NP_COL_INT, "lines that speak of profiling"},
};

static const char *why(const struct np_route *route, enum np_route_path path)
{
	const uint64_t *n = route->counts;
	if (n[NP_ROUTE_CONTEXT])
		return NP_N("executor/utils/profiler_context.py is there");
	if (path == NP_ROUTE_A_RECIPES)
		return NP_N("executor/ or models/ know enable_profiler");
	if (path == NP_ROUTE_A_OTHER)
		return n[NP_ROUTE_LOOP]
		               ? NP_N("a profiler of torch_npu is stepped in a loop")
		               : NP_N("a profiler of torch_npu is stepped behind a switch");
	if (n[NP_ROUTE_API])
		return NP_N("the API is used, but not in a loop that steps it");
	if (n[NP_ROUTE_TORCH])
		return NP_N("torch.profiler only, which records no NPU by itself: put "
		            "torch_npu.profiler in "
		            "its place");
	if (n[NP_ROUTE_COMMENT])
		return NP_N("enable_profiler stands in comments only");
	return NP_N("nothing speaks of a profiler");
}

static void add_route(struct np_report *report, const struct np_route *route,
                      enum np_route_path path)
{
	struct np_table *table = NP_REPORT_TABLE(report, "route", "Route", route_columns);
	np_cell_cstr(table, path == NP_ROUTE_B ? "B" : "A");
	np_cell_word(table, why(route, path));
	np_cell_int(table, (int64_t)route->files);
	np_cell_int(table, (int64_t)route->hits.n);
}

static const struct np_column evidence_columns[] = {
	{"kind", "", NP_COL_TEXT, "what the line is"},
	{"file", "", NP_COL_TEXT, "below the given directory"},
	{"line", "", NP_COL_INT, "from 1"},
	{"text", "", NP_COL_TEXT, "the line"},
};

/* By kind, the telling ones first; of each at most so many. */
static void add_evidence(struct np_report *report, const struct np_route *route)
{
	enum { OF_A_KIND = 50 };
	struct np_table *table = NP_REPORT_TABLE(report, "evidence", "Evidence", evidence_columns);
	size_t left_out = 0;
	for (enum np_route_kind kind = 0; kind < NP_ROUTE_KINDS; kind++) {
		size_t shown = 0;
		for (size_t i = 0; i < route->hits.n; i++) {
			const struct np_route_hit *hit = &route->hits.v[i];
			if (hit->kind != kind)
				continue;
			if (shown++ >= OF_A_KIND) {
				left_out++;
				continue;
			}
			np_cell_word(table, np_route_kind_name(kind));
			np_cell_cstr(table, hit->file);
			if (hit->line)
				np_cell_int(table, (int64_t)hit->line);
			else
				np_cell_na(table);
			np_cell_cstr(table, hit->text);
		}
	}
	if (left_out)
		np_report_note(report,
		               "%zu more lines of evidence are left out, %d of each kind are "
		               "shown",
		               left_out, OF_A_KIND);
}

/* ── what to do ── */

struct task {
	const char *what, *command; /* the command may hold %s: the root, quoted */
};

static const struct task recipes_tasks[] = {
	{NP_N("switch it on in the model's YAML: model_config.enable_profiler: True"),
         "npuprof plan snippet --for path-a"},
	{NP_N("enough decode steps: raise scheduler_config.max_new_tokens together with active"),
         "npuprof plan schedule --skip-first 3 --active 3 --repeat 1"},
	{NP_N("run it; do not inject anything"),
         "cd %s && bash executor/scripts/infer.sh --model MODEL --yaml YAML"},
	{NP_N("name the result, beside log_0.log"), "RES=models/MODEL/res/DATE/CASE"},
	{NP_N("no parser failed: 0"), "grep -c 'run failed' $RES/log_0.log"},
	{NP_N("each phase has its output"),
         "find $RES/prof/prefill $RES/prof/decode -name ASCEND_PROFILER_OUTPUT"},
	{NP_N("about 47 columns; 9 or 8: no configuration; 1 or none: not parsed"),
         "find $RES/prof -name kernel_details.csv -exec head -1 {} \\; | awk -F, '{print NF}'"},
	{NP_N("op_statistic.csv and api_statistic.csv are there"),
         "find $RES/prof -name op_statistic.csv -o -name api_statistic.csv"},
	{NP_N("trace_view.json is whole, values are there"),
         "npuprof check --profile framework $RES"},
};

static const struct task other_tasks[] = {
	{NP_N("switch it on as the evidence shows, with Level1 and PipeUtilization"),
         "npuprof plan snippet --for torch_npu"},
	{NP_N("its schedule and its calls of step() fit"),
         "npuprof plan schedule --warmup 1 --active 3 --repeat 1 --steps K"},
	{NP_N("run it, with a mark of the start"), "touch .start"},
	{NP_N("accept it: values, columns, trace, freshness"),
         "npuprof check PROF_DIR --start-marker .start"},
};

static const struct task inject_tasks[] = {
	{NP_N("a script of one's own: the code to fill in"),
         "npuprof plan snippet --for torch_npu --phase decode -o profile_run.py"},
	{NP_N("or a hook for a program that stays as it is"),
         "npuprof plan snippet --for vllm -o sitecustomize.py"},
	{NP_N("or a whole program with msprof"),
         "npuprof plan snippet --for msprof -o run_msprof.sh"},
	{NP_N("the schedule and the calls of step() fit"),
         "npuprof plan schedule --active 10 --repeat 1 --steps K"},
	{NP_N("one step works without the profiler (output not empty, shape right): then mark "
              "the start, and run"),
         "touch .start"},
	{NP_N("accept it: 40 columns or more, trace whole, steps as many as active"),
         "npuprof check PROF_DIR --start-marker .start"},
};

/* One finding each: their commands are never cut, and can be copied. */
static void tell_tasks(struct np_report *report, enum np_route_path path, const struct task *tasks,
                       size_t n, const char *root)
{
	for (size_t i = 0; i < n; i++) {
		const char *slot = strstr(tasks[i].command, "%s");
		struct np_finding *finding = np_report_finding(
			report, "ROUTE_STEP", NP_INFO, "%c%zu. %s", path == NP_ROUTE_B ? 'B' : 'A',
			i + 1, np_tr(tasks[i].what));
		if (slot)
			np_finding_command(finding, "%.*s%s%s", (int)(slot - tasks[i].command),
			                   tasks[i].command, root, slot + 2);
		else
			np_finding_command(finding, "%s", tasks[i].command);
	}
}

static void tell_failure(struct np_report *report)
{
	static const struct task tasks[] = {
		{NP_N("If all parsers 'run failed', there is no CSV and the trace ends midway, it "
	              "is the file system of the output: parse a copy elsewhere to prove it"),
	         "cp -r X_ascend_pt LOCAL_DISK && python3 -c \"from torch_npu.profiler.profiler "
	         "import analyse; analyse('LOCAL_DISK/X_ascend_pt')\""},
		{NP_N("Then put res on a local disk and run again (WORK_DIR is overwritten by "
	              "function.sh); move what is in its place aside"),
	         "mv models/MODEL/res models/MODEL/res.old; mkdir -p LOCAL_DISK/recipes_res; "
	         "ln -sfn LOCAL_DISK/recipes_res models/MODEL/res"},
		{NP_N("Try several disks; if none will do, take path B"),
	         "npuprof plan snippet --for torch_npu -o profile_run.py"},
	};
	for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
		struct np_finding *finding = np_report_finding(report, "ROUTE_FAILURE", NP_INFO,
		                                               "%s", np_tr(tasks[i].what));
		np_finding_command(finding, "%s", tasks[i].command);
	}
}

/* The decision, with the lines that tell most. */
static void tell_path(struct np_report *report, const struct np_route *route,
                      enum np_route_path path)
{
	enum { LINES = 20 };
	struct np_finding *finding = NULL;
	if (path == NP_ROUTE_B)
		finding =
			np_report_finding(report, "ROUTE_B", NP_INFO,
		                          "path B, inject a profiler: %s", np_tr(why(route, path)));
	else
		finding = np_report_finding(report, "ROUTE_A", NP_INFO,
		                            "path A, use the profiler that is there: %s",
		                            np_tr(why(route, path)));
	size_t told = 0;
	for (enum np_route_kind kind = 0; kind < NP_ROUTE_KINDS; kind++)
		for (size_t i = 0; i < route->hits.n && told < LINES; i++) {
			const struct np_route_hit *hit = &route->hits.v[i];
			if (hit->kind != kind)
				continue;
			told++;
			if (hit->line)
				np_finding_evidence(finding, hit->file, NULL, NULL, "%llu: %s",
				                    (unsigned long long)hit->line, hit->text);
			else
				np_finding_evidence(finding, hit->file, NULL, NULL, "%s", "");
		}
}

/* The directory that holds executor/: that of the first telling hit. */
static const char *recipes_root(struct np_report *report, const struct np_route *route,
                                const char *root)
{
	static const char context[] = "executor/utils/profiler_context.py";
	for (size_t i = 0; i < route->hits.n; i++) {
		const struct np_route_hit *hit = &route->hits.v[i];
		size_t before = strlen(hit->file) - (sizeof context - 1);
		if (hit->kind != NP_ROUTE_CONTEXT || before == 0)
			continue;
		const char *inner = np_arena_printf(&report->arena, "%s/%.*s", root,
		                                    (int)(before - 1), hit->file);
		return np_shell_quote(report, inner ? inner : root);
	}
	return np_shell_quote(report, root);
}

#define TASKS(tasks) tasks, sizeof(tasks) / sizeof *(tasks)

static void tell_plan(struct np_report *report, const struct np_route *route,
                      enum np_route_path path, const char *root)
{
	switch (path) {
	case NP_ROUTE_A_RECIPES:
		tell_tasks(report, path, TASKS(recipes_tasks), recipes_root(report, route, root));
		tell_failure(report);
		break;
	case NP_ROUTE_A_OTHER:
		tell_tasks(report, path, TASKS(other_tasks), root);
		break;
	case NP_ROUTE_B:
		tell_tasks(report, path, TASKS(inject_tasks), root);
		break;
	}
}

static void tell_left_out(struct np_report *report, const struct np_route *route,
                          enum np_route_path path, const char *root)
{
	uint64_t unread = route->unreadable + route->large;
	if (route->links)
		np_report_note(report, "links that were not followed: %llu",
		               (unsigned long long)route->links);
	if (route->binary)
		np_report_note(report, "binary files among the sources: %llu",
		               (unsigned long long)route->binary);
	if (unread == 0 && !route->cut)
		return;
	bool open = path == NP_ROUTE_B;
	struct np_finding *finding = np_report_finding(
		report, "ROUTE_PARTIAL", NP_WARNING,
		"the tree was not read completely: %llu unreadable, %llu too large%s",
		(unsigned long long)route->unreadable, (unsigned long long)route->large,
		route->cut ? np_tr(", and more files or levels than are looked at") : "");
	if (open)
		np_finding_detail(finding, "A profiler may be wired in where it was not seen.");
	np_finding_advice(finding, "give the directory of the inference program itself, with "
	                           "permission to read it");
	np_finding_command(finding, "grep -rnE 'enable_profiler|torch_npu.profiler' %s",
	                   np_shell_quote(report, root));
	if (open)
		report->exit_code = 3;
}

enum np_status np_plan_route(const char *root, struct np_report *report, struct np_err *err)
{
	struct np_route route;
	enum np_status status = np_route_walk(&route, root, err);
	if (status == NP_OK) {
		enum np_route_path path = np_route_choose(&route);
		np_report_input(report, root);
		tell_path(report, &route, path);
		tell_left_out(report, &route, path, root);
		tell_plan(report, &route, path, root);
		add_route(report, &route, path);
		add_evidence(report, &route);
		if (route.hits.n == NP_ROUTE_HITS_MAX)
			np_report_note(report, "only the first %d lines of evidence were kept",
			               NP_ROUTE_HITS_MAX);
		if (path == NP_ROUTE_A_RECIPES)
			np_report_note(report,
			               "ask first which phase and how many decode steps (at "
			               "least 10 say most): prefill has one step per request");
	}
	np_route_release(&route);
	return status;
}
