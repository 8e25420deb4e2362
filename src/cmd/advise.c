#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "advice/advice.h"
#include "base/fs.h"
#include "cmd/progress.h"
#include "report/lang.h"
#include "report/writer.h"

enum { SHOWN_ROWS = 10 };

struct options {
	const char *path, *output, *bp, *rules, *rank, *step, *language;
	const char *cann, *torch, *kind; /* of the official tool; nothing depends on them */
	bool force, no_cache, list_rules;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"profiling_path", 'd', NP_OPT_STRING, AT(path), "PATH", "the captures, as PATH"},
	{"output", 'o', NP_OPT_STRING, AT(output), "DIR",
         "write the report as html and xlsx into DIR (default: nothing is written)"},
	{"output_path", 0, NP_OPT_STRING, AT(output), "DIR", "the same, as msprof-analyze has it"},
	{"bp", 0, NP_OPT_STRING, AT(bp), "BASE", "compare with this capture"},
	{"benchmark_profiling_path", 0, NP_OPT_STRING, AT(bp), "BASE", "the same"},
	{"rules", 0, NP_OPT_STRING, AT(rules), "FILE", "other thresholds, JSON"},
	{"list-rules", 0, NP_OPT_FLAG, AT(list_rules), NULL, "tell all thresholds"},
	{"rank", 0, NP_OPT_STRING, AT(rank), "N", "only this rank (default: the worst)"},
	{"step", 0, NP_OPT_STRING, AT(step), "ID", "only this step"},
	{"language", 'l', NP_OPT_STRING, AT(language), "LANG", "cn or en, as --lang"},
	{"force", 0, NP_OPT_FLAG, AT(force), NULL, "go on with mixed batches and duplicate ranks"},
	{"no-cache", 0, NP_OPT_FLAG, AT(no_cache), NULL, "read everything anew, keep nothing"},
	{"cann_version", 0, NP_OPT_STRING, AT(cann), "V", "accepted and ignored"},
	{"torch_version", 0, NP_OPT_STRING, AT(torch), "V", "accepted and ignored"},
	{"profiling_type", 0, NP_OPT_STRING, AT(kind), "TYPE", "accepted and ignored"},
};

/* The words: a path, and a dimension before or behind it, as people type both. */
static enum np_status take_words(const struct np_call *call, const char **path,
                                 struct np_advise_options *how, struct np_err *err)
{
	const struct options *own = call->options;
	*path = own->path;
	for (int i = 0; i < call->argc; i++) {
		unsigned bit = np_dimension_parse(call->argv[i]);
		if (bit)
			how->dimensions |= bit;
		else if (*path)
			return np_err_set(err, NP_E_USAGE, NULL,
			                  "'%s' is neither the PATH nor all, overall, cluster, "
			                  "computation, schedule, communication, memory or "
			                  "comparison",
			                  call->argv[i]);
		else
			*path = call->argv[i];
	}
	if (!*path)
		return np_err_set(err, NP_E_USAGE, NULL, "a PATH is wanted: npuprof advise PATH");
	return NP_OK;
}

static enum np_status take_options(const struct np_call *call, struct np_advise_options *how,
                                   struct np_err *err)
{
	const struct options *own = call->options;
	how->rules_file = own->rules;
	how->force = own->force;
	how->no_cache = own->no_cache;
	how->threads = (unsigned)call->common->jobs;
	how->has_rank = own->rank != NULL;
	how->has_step = own->step != NULL;
	if (own->rank && !np_str_to_i64(np_str_of(own->rank), &how->rank))
		return np_err_set(err, NP_E_USAGE, NULL, "--rank wants a number, got '%s'",
		                  own->rank);
	if (own->step && !np_str_to_i64(np_str_of(own->step), &how->step))
		return np_err_set(err, NP_E_USAGE, NULL, "--step wants a number, got '%s'",
		                  own->step);
	return NP_OK;
}

/* ── files ── */

static enum np_status write_page(const struct np_report *report, const char *path,
                                 struct np_err *err)
{
	struct np_write_options how = {.format = NP_FORMAT_HTML, .max_bytes = 3 * NP_HTML_BYTES};
	struct np_buf text = {.max_bytes = SIZE_MAX / 4};
	struct np_outfile file;
	enum np_status status = np_report_write(report, &how, &text, err);
	if (status == NP_OK)
		status = np_outfile_begin(&file, path, err);
	if (status == NP_OK) {
		(void)fwrite(text.ptr, 1, text.len, file.file);
		status = np_outfile_commit(&file, err);
	}
	np_buf_release(&text);
	return status;
}

/* The operators for AOE, where there are any. */
static enum np_status write_tuning(struct np_report *report, const char *dir, const char *stamp,
                                   struct np_err *err)
{
	struct np_buf text = {.max_bytes = 1 << 24};
	struct np_outfile file;
	char path[4096];
	enum np_status status = NP_OK;
	int n = snprintf(path, sizeof path, "%s/operator_tuning_file_%s.cfg", dir, stamp);
	if (n < 0 || (size_t)n >= sizeof path)
		return np_err_set(err, NP_E_LIMIT, dir, "path too long");
	if (np_advise_tuning(report, &text)) {
		status = text.failed ? np_err_nomem(err) : np_outfile_begin(&file, path, err);
		if (status == NP_OK) {
			(void)fwrite(text.ptr, 1, text.len, file.file);
			status = np_outfile_commit(&file, err);
		}
		if (status == NP_OK)
			np_report_note(report, "written: %s", path);
	}
	np_buf_release(&text);
	return status;
}

/* npuprof_advisor_<time>.html and .xlsx in DIR. */
static enum np_status write_files(const struct np_call *call, struct np_report *report,
                                  struct np_err *err)
{
	const struct options *own = call->options;
	char stamp[32], path[4096];
	time_t now = time(NULL);
	struct tm parts;
	if (!own->output)
		return NP_OK;
	(void)strftime(stamp, sizeof stamp, "%Y%m%d%H%M%S", localtime_r(&now, &parts));
	for (int xlsx = 0; xlsx < 2; xlsx++) {
		int n = snprintf(path, sizeof path, "%s/npuprof_advisor_%s.%s", own->output, stamp,
		                 xlsx ? "xlsx" : "html");
		if (n < 0 || (size_t)n >= sizeof path)
			return np_err_set(err, NP_E_LIMIT, own->output, "path too long");
		NP_TRY(xlsx ? np_advise_xlsx(report, np_lang() == NP_LANG_ZH, path, err)
		            : write_page(report, path, err));
		np_report_note(report, "written: %s", path);
	}
	return write_tuning(report, own->output, stamp, err);
}

/* ── the run ── */

static enum np_status advise(const struct np_call *call, struct np_report *report,
                             struct np_err *err)
{
	const struct options *own = call->options;
	struct np_advise_options how = {.dimensions = 0};
	struct np_captures *all = NULL, *base = NULL;
	const char *path;
	enum np_lang lang;
	if (own->list_rules)
		return np_advise_list_rules(own->rules, report, err);
	if (own->language &&
	    !np_lang_parse(strcmp(own->language, "cn") == 0 ? "zh" : own->language, &lang))
		return np_err_set(err, NP_E_USAGE, NULL, "--language wants cn or en");
	if (own->language)
		NP_TRY(np_lang_use(lang, err));
	NP_TRY(take_words(call, &path, &how, err));
	NP_TRY(take_options(call, &how, err));
	NP_TRY(np_discover(path, &all, err));
	enum np_status status = own->bp ? np_discover(own->bp, &base, err) : NP_OK;
	if (status == NP_OK && own->output) /* rather now than after minutes of work */
		status = np_mkdirs(own->output, err);
	np_report_input(report, path);
	if (own->bp)
		np_report_input(report, own->bp);
	how.base = base;
	struct np_progress_line *line = np_progress_show(call->common);
	how.progress = np_progress_of(line);
	if (status == NP_OK)
		status = np_advise(all, &how, report, err);
	np_progress_hide(line);
	np_captures_free(all);
	np_captures_free(base);
	return status == NP_OK ? write_files(call, report, err) : status;
}

static int run(const struct np_call *call)
{
	struct np_err err = {0};
	struct np_common common = *call->common;
	struct np_call quiet_output = *call;
	struct np_report *report = np_report_new("advise");
	enum np_status status = report ? advise(call, report, &err) : np_err_nomem(&err);
	struct np_finish how = {.max_rows = SHOWN_ROWS};
	common.output = NULL; /* -o is a directory here */
	quiet_output.common = &common;
	int exit_code =
		status == NP_OK ? np_cmd_finish_as(&quiet_output, report, &how) : np_cmd_fail(&err);
	np_report_free(report);
	return exit_code;
}

static const char *const examples[] = {
	"npuprof advise capture_ascend_pt",
	"npuprof advise cluster_root -o advice/ --lang zh",
	"npuprof advisor computation -d capture_ascend_pt -o advice/",
	NULL,
};

#define DETAIL                                                                                    \
	"Reads a rank or a whole cluster, text or db, and tells what to change, dearest first.\n" \
	"With -o DIR the result is also written as npuprof_advisor_<time>.html and .xlsx.\n"      \
	"A dimension (computation, schedule, communication, memory, overall, cluster,\n"          \
	"comparison) limits what is looked at. Exit status: 0 done, 1 refused (mixed batches\n"   \
	"or duplicate ranks, see --force), 2 usage, 3 something could not be judged, 4 the\n"     \
	"input could not be read."

const struct np_cmd np_cmd_advise = {
	.name = "advise",
	.summary = "what to change, and what it is worth: html and xlsx",
	.words = "PATH [all|DIMENSION]",
	.min_words = 0,
	.max_words = 8,
	.detail = DETAIL,
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};

const struct np_cmd np_cmd_advisor = {
	.name = "advisor",
	.summary = "advise, as msprof-analyze calls it",
	.words = "all|DIMENSION [PATH]",
	.min_words = 0,
	.max_words = 8,
	.detail = DETAIL,
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
	.hidden = true,
};
