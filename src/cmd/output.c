/*
 * From a report to the terminal or a file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fs.h"
#include "cmd/cmd.h"
#include "report/writer.h"

void np_cmd_complain(const char *where, const char *message)
{
	struct np_buf line = {0};
	np_buf_add_cstr(&line, "npuprof: ");
	if (*where) {
		np_text_safe(&line, np_str_of(where));
		np_buf_add_cstr(&line, ": ");
	}
	np_text_safe(&line, np_str_of(message));
	np_buf_add_char(&line, '\n');
	/* without memory for one line there is only one thing to say */
	(void)fputs(line.failed ? "npuprof: out of memory\n" : line.ptr, stderr);
	np_buf_release(&line);
}

int np_cmd_fail(const struct np_err *err)
{
	np_cmd_complain(err->where, err->msg);
	switch (err->code) {
	case NP_E_NOTFOUND:
	case NP_E_USAGE:
		return NP_EXIT_USAGE;
	default:
		return NP_EXIT_INPUT;
	}
}

/* Columns of the terminal on `fd`; 0 when it is none, so that nothing is cut. */
static unsigned terminal_width(int fd)
{
	struct winsize size;
	if (!isatty(fd))
		return 0;
	const char *columns = getenv("COLUMNS");
	int64_t wish = 0;
	if (columns && np_str_to_i64(np_str_of(columns), &wish) && wish >= 40 && wish < 10000)
		return (unsigned)wish;
	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
		return size.ws_col;
	return 100;
}

unsigned np_cmd_width(const struct np_common *common)
{
	bool text = !common->json && (!common->format || strcmp(common->format, "text") == 0);
	return text && !common->output ? terminal_width(STDOUT_FILENO) : 0;
}

static bool use_color(const struct np_common *common, int fd)
{
	const char *no_color = getenv("NO_COLOR");
	if (common->color && strcmp(common->color, "always") == 0)
		return true;
	if ((common->color && strcmp(common->color, "never") == 0) || (no_color && *no_color))
		return false;
	const char *term = getenv("TERM");
	return isatty(fd) && !(term && strcmp(term, "dumb") == 0);
}

static enum np_status choose(const struct np_common *common, bool no_terminal,
                             struct np_write_options *options, struct np_err *err)
{
	*options = (struct np_write_options){.format = NP_FORMAT_TEXT, .table = common->table};
	options->verbose = common->verbose;
	if (common->json)
		options->format = NP_FORMAT_JSON;
	else if (common->format && !np_format_parse(common->format, &options->format))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "unknown format '%s': use text, json, csv, md or html",
		                  common->format);
	if (common->color && strcmp(common->color, "auto") != 0 &&
	    strcmp(common->color, "always") != 0 && strcmp(common->color, "never") != 0)
		return np_err_set(err, NP_E_USAGE, NULL, "--color wants auto, always or never");
	int fd = common->output || no_terminal ? -1 : STDOUT_FILENO;
	options->width = terminal_width(fd);
	options->color = use_color(common, fd);
	return NP_OK;
}

static enum np_status write_out(const struct np_common *common, const struct np_buf *text,
                                struct np_err *err)
{
	if (!common->output) {
		(void)fwrite(text->ptr, 1, text->len, stdout);
		return NP_OK; /* np_main looks at stdout's state at the end */
	}
	struct np_outfile file;
	NP_TRY(np_outfile_begin(&file, common->output, err));
	(void)fwrite(text->ptr, 1, text->len, file.file);
	return np_outfile_commit(&file, err);
}

int np_cmd_finish(const struct np_call *call, const struct np_report *report)
{
	return np_cmd_finish_as(call, report, &(struct np_finish){0});
}

int np_cmd_finish_as(const struct np_call *call, const struct np_report *report,
                     const struct np_finish *how)
{
	struct np_write_options options;
	struct np_common common = *call->common;
	struct np_buf text = {.max_bytes = SIZE_MAX / 4};
	struct np_err err = {0};
	enum np_status status = np_report_ok(report, &err);
	if (!common.format)
		common.format = how->format;
	if (status == NP_OK)
		status = choose(&common, how->no_terminal, &options, &err);
	options.max_rows = how->max_rows;
	options.max_bytes = how->max_bytes;
	if (status == NP_OK)
		status = np_report_write(report, &options, &text, &err);
	bool rendered = status == NP_OK;
	if (rendered)
		status = write_out(&common, &text, &err);
	np_buf_release(&text);
	if (status == NP_OK)
		return report->exit_code;
	int exit_code = np_cmd_fail(&err);
	/* a result that cannot be put where it should go is the environment's failure */
	return rendered ? NP_EXIT_INPUT : exit_code;
}

int np_cmd_run_report(const struct np_call *call, np_cmd_fill *fill)
{
	struct np_err err = {0};
	struct np_report *report = np_report_new(call->cmd->name);
	enum np_status status = report ? fill(call, report, &err) : np_err_nomem(&err);
	int exit_code = status == NP_OK ? np_cmd_finish(call, report) : np_cmd_fail(&err);
	np_report_free(report);
	return exit_code;
}

void np_cmd_talk(const struct np_call *call, const struct np_report *report)
{
	struct np_write_options options = {.format = NP_FORMAT_TEXT};
	struct np_buf text = {0};
	if (call->common->quiet)
		return;
	options.width = terminal_width(STDERR_FILENO);
	options.color = use_color(call->common, STDERR_FILENO);
	if (np_report_write(report, &options, &text, NULL) == NP_OK)
		(void)fwrite(text.ptr, 1, text.len, stderr);
	np_buf_release(&text);
}
