/* Commands to copy: the run again, with one thing changed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collect/run_internal.h"

static bool names_option(const char *with, const char *option)
{
	size_t len = strlen(option);
	return with && strncmp(with, option, len) == 0 && (with[len] == ' ' || with[len] == '\0');
}

static void add_option(struct np_run *run, struct np_buf *line, const char *with,
                       const char *option, const char *value)
{
	if (value && !names_option(with, option))
		np_buf_printf(line, " %s %s", option, np_shell_quote(run->report, value));
}

static void add_flag(struct np_buf *line, const char *option, bool given)
{
	if (given)
		np_buf_printf(line, " %s", option);
}

static void add_number(struct np_buf *line, const char *with, const char *option, double value)
{
	if (value > 0 && !names_option(with, option))
		np_buf_printf(line, " %s %.15g", option, value);
}

static void add_what(struct np_run *run, struct np_buf *line, const char *with)
{
	const struct np_run_options *options = run->options;
	add_option(run, line, with, "--preset", run->preset ? run->preset->name : NULL);
	for (size_t i = 0; i < run->n_targets; i++)
		add_option(run, line, with, "--target", run->targets[i].text);
	if (!names_option(with, "--call") && !names_option(with, "--warmup")) {
		add_option(run, line, with, "--warmup", options->warmup);
		add_option(run, line, with, "--call", options->call);
	}
	add_flag(line, "--compile", options->compile);
	add_option(run, line, with, "--active", options->active);
	add_option(run, line, with, "--ranks", options->ranks);
	add_option(run, line, with, "--phase", options->phase);
	add_option(run, line, with, "--level", options->level);
	add_option(run, line, with, "--aic-metrics", options->aic_metrics);
	add_flag(line, "--with-stack", options->with_stack);
	add_flag(line, "--no-shapes", options->no_shapes);
	add_flag(line, "--with-memory", options->with_memory);
	add_option(run, line, with, "--export-type", options->export_type);
	add_flag(line, "--collectives", options->collectives);
	for (size_t i = 0; i < run->n_stages; i++)
		np_buf_printf(
			line, " --stage %s",
			np_shell_quote(run->report,
		                       np_arena_printf(&run->report->arena, "%s=%s",
		                                       run->stages[i].stage, run->stages[i].text)));
	add_option(run, line, with, "--step-anchor", options->step_anchor);
	add_option(run, line, with, "--request-anchor", options->request_anchor);
}

static void add_how(struct np_run *run, struct np_buf *line, const char *with)
{
	const struct np_run_options *options = run->options;
	add_option(run, line, with, "--watch", options->watch);
	add_option(run, line, with, "--out", options->out);
	add_option(run, line, with, "--name", options->name);
	add_option(run, line, with, "--pre-check", options->pre_check);
	add_number(line, with, "--timeout", options->timeout_s);
	add_flag(line, "--stop-after-capture", options->stop_after_capture);
	add_number(line, with, "--grace", options->grace_s);
	add_option(run, line, with, "--python", options->python);
	add_number(line, with, "--export-timeout", options->export_timeout_s);
	add_option(run, line, with, "--profile", options->profile);
	add_flag(line, "--no-export", options->no_export);
	add_flag(line, "--no-check", options->no_check);
}

const char *np_run_again(struct np_run *run, const char *with)
{
	struct np_buf line = {0};
	np_buf_add_cstr(&line, "npuprof run");
	if (with)
		np_buf_printf(&line, " %s", with);
	add_what(run, &line, with);
	add_how(run, &line, with);
	np_buf_printf(&line, " -- %s", run->command);
	const char *text = np_arena_cstr(&run->report->arena, np_buf_str(&line));
	np_buf_release(&line);
	return text ? text : "";
}

const char *np_run_again_with_target(struct np_run *run, const char *old, const char *target)
{
	const char *line = "";
	for (size_t i = 0; i < run->n_targets; i++) {
		if (strcmp(run->targets[i].text, old) != 0)
			continue;
		run->targets[i].text = target;
		line = np_run_again(run, NULL);
		run->targets[i].text = old;
		break;
	}
	return line;
}

/* A word of the command: np_shell_quote() takes words for paths and protects their dashes. */
static void add_word(struct np_report *report, struct np_buf *line, const char *word)
{
	size_t dashes = strspn(word, "-");
	np_buf_add(line, word, dashes);
	if (dashes == 0 || word[dashes])
		np_buf_add_cstr(line, np_shell_quote(report, word + dashes));
}

const char *np_run_command_line(struct np_report *report, char *const *argv)
{
	struct np_buf text = {0};
	for (size_t i = 0; argv && argv[i]; i++) {
		if (i)
			np_buf_add_char(&text, ' ');
		add_word(report, &text, argv[i]);
	}
	const char *line = np_arena_cstr(&report->arena, np_buf_str(&text));
	np_buf_release(&text);
	return line ? line : "";
}
