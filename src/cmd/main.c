/*
 * The runner: find the command, parse, run. And the pages of help.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/legacy.h"
#include "report/lang.h"
#include "report/writer.h"

const struct np_cmd *const np_cmds[] = {
	&np_cmd_advise,  &np_cmd_advisor, &np_cmd_analyze, &np_cmd_check,      &np_cmd_cluster,
	&np_cmd_collect, &np_cmd_comm,    &np_cmd_compare, &np_cmd_completion, &np_cmd_deploy,
	&np_cmd_devices, &np_cmd_dynamic, &np_cmd_help,    &np_cmd_info,       &np_cmd_plan,
	&np_cmd_pull,    &np_cmd_report,  &np_cmd_run,     &np_cmd_synth,      &np_cmd_version,
};
const size_t np_n_cmds = sizeof np_cmds / sizeof *np_cmds;

const struct np_option np_common_options[] = {
	{"output", 'o', NP_OPT_STRING, offsetof(struct np_common, output), "FILE",
         "write the result to FILE instead of stdout"},
	{"format", 0, NP_OPT_STRING, offsetof(struct np_common, format), "FORMAT",
         "text, json, csv, md or html (default: text)"},
	{"json", 0, NP_OPT_FLAG, offsetof(struct np_common, json), NULL, "same as --format json"},
	{"table", 0, NP_OPT_STRING, offsetof(struct np_common, table), "ID",
         "csv: only this table of the result"},
	{"jobs", 'j', NP_OPT_UINT, offsetof(struct np_common, jobs), "N",
         "threads (default: all processors)"},
	{"lang", 0, NP_OPT_STRING, offsetof(struct np_common, lang), "LANG",
         "en or zh (default: from the environment)"},
	{"verbose", 'v', NP_OPT_FLAG, offsetof(struct np_common, verbose), NULL,
         "all evidence and details"},
	{"quiet", 'q', NP_OPT_FLAG, offsetof(struct np_common, quiet), NULL,
         "no talk on stderr, only the result"},
	{"color", 0, NP_OPT_STRING, offsetof(struct np_common, color), "WHEN",
         "auto, always or never (default: auto; NO_COLOR is honoured)"},
	{"no-progress", 0, NP_OPT_FLAG, offsetof(struct np_common, no_progress), NULL,
         "no progress line on long work"},
	{"help", 'h', NP_OPT_FLAG, offsetof(struct np_common, help), NULL, "this page"},
};
const size_t np_n_common_options = sizeof np_common_options / sizeof *np_common_options;

const struct np_cmd *np_cmd_find(const char *name)
{
	for (size_t i = 0; i < np_n_cmds; i++)
		if (strcmp(np_cmds[i]->name, name) == 0)
			return np_cmds[i];
	return NULL;
}

const struct np_cmd *np_cmd_verb(const struct np_cmd *cmd, const char *verb)
{
	for (size_t i = 0; i < cmd->n_verbs; i++)
		if (strcmp(strchr(cmd->verbs[i]->name, ' ') + 1, verb) == 0)
			return cmd->verbs[i];
	return NULL;
}

/* ── help ── */

/* A command's own option hides a common one of the same name, as in the parser. */
static bool is_hidden(const struct np_cmd *cmd, const struct np_option *option)
{
	for (size_t i = 0; i < cmd->n_options; i++)
		if (option != &cmd->options[i] && strcmp(cmd->options[i].name, option->name) == 0)
			return true;
	return false;
}

static void print_options(const struct np_cmd *cmd, const char *title,
                          const struct np_option *options, size_t n)
{
	enum { LEFT = 30 }; /* columns of the names */
	if (n == 0)
		return;
	(void)printf("\n%s\n", title);
	for (size_t i = 0; i < n; i++) {
		if (is_hidden(cmd, &options[i]))
			continue;
		char left[64];
		char letter[8] = "    ";
		if (options[i].letter)
			(void)snprintf(letter, sizeof letter, "-%c, ", options[i].letter);
		(void)snprintf(left, sizeof left, "%s--%s%s%s", letter, options[i].name,
		               options[i].arg ? " " : "", options[i].arg ? options[i].arg : "");
		int width = (int)np_text_width(np_str_of(left));
		if (width > LEFT) /* the help on a line of its own */
			(void)printf("  %s\n  %*s %s\n", left, LEFT, "", options[i].help);
		else
			(void)printf("  %s%*s %s\n", left, LEFT - width, "", options[i].help);
	}
}

static void print_overview(void)
{
	(void)printf("npuprof %s: profiles of Ascend NPUs, from the capture to what to fix\n\n"
	             "usage: npuprof COMMAND [options] …\n\ncommands\n",
	             NPUPROF_VERSION);
	for (size_t i = 0; i < np_n_cmds; i++)
		if (!np_cmds[i]->hidden)
			(void)printf("  %-12s %s\n", np_cmds[i]->name, np_cmds[i]->summary);
	(void)printf(
		"\nnpuprof help COMMAND tells its options. Exit status: 0 done or passed, 1 judged "
		"and failed,\n2 usage, 3 could not be judged, 4 the input could not be read.\n");
}

void np_cmd_print_help(const struct np_cmd *cmd)
{
	if (!cmd) {
		print_overview();
		return;
	}
	(void)printf("usage: npuprof %s%s [options]%s%s\n\n%s.\n", cmd->name,
	             cmd->n_verbs ? " VERB" : "", *cmd->words ? " " : "", cmd->words, cmd->summary);
	if (cmd->detail)
		(void)printf("\n%s\n", cmd->detail);
	if (cmd->n_verbs)
		(void)printf("\nverbs (npuprof help %s VERB tells their options)\n", cmd->name);
	for (size_t i = 0; i < cmd->n_verbs; i++)
		(void)printf("  %-12s %s\n", strchr(cmd->verbs[i]->name, ' ') + 1,
		             cmd->verbs[i]->summary);
	print_options(cmd, "options", cmd->options, cmd->n_options);
	print_options(cmd, "common options", np_common_options, np_n_common_options);
	if (cmd->examples)
		(void)printf("\nexamples\n");
	for (const char *const *line = cmd->examples; line && *line; line++)
		(void)printf("  %s\n", *line);
}

/* ── running ── */

static int usage_error(const struct np_cmd *cmd, const char *message)
{
	np_cmd_complain("", message);
	(void)fprintf(stderr, "usage: npuprof %s%s [options]%s%s (npuprof help %s)\n", cmd->name,
	              cmd->n_verbs ? " VERB" : "", *cmd->words ? " " : "", cmd->words, cmd->name);
	return NP_EXIT_USAGE;
}

/* As gettext finds it: the locale decides, and unless that is C, LANGUAGE is preferred. */
static enum np_lang env_lang(void)
{
	static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
	const char *locale = NULL, *wish = getenv("LANGUAGE");
	for (size_t i = 0; i < sizeof names / sizeof *names && !(locale && *locale); i++)
		locale = getenv(names[i]);
	if (!locale || !*locale || locale[0] == 'C' || strcmp(locale, "POSIX") == 0)
		return NP_LANG_EN;
	enum np_lang lang = NP_LANG_EN;
	(void)np_lang_parse(wish && *wish ? wish : locale, &lang);
	return lang;
}

/* Where the command line to run begins, its `--` included; argc when there is none. */
static int find_command(const struct np_cmd *cmd, const struct np_option_set *sets, size_t n_sets,
                        int argc, char **argv)
{
	if (cmd->max_words == 0)
		return np_options_end(sets, n_sets, argc, argv);
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return i;
	return argc;
}

static int run_command(const struct np_cmd *cmd, int argc, char **argv, void *values)
{
	struct np_common common = {0};
	const struct np_option_set sets[] = {
		{cmd->options, cmd->n_options, values},
		{np_common_options, np_n_common_options, &common},
	};
	struct np_err err = {0};
	int end = cmd->takes_command ? find_command(cmd, sets, 2, argc, argv) : argc;
	int first = end;
	if (np_options_parse(sets, 2, end, argv, &first, &err) != NP_OK)
		return usage_error(cmd, err.msg);
	if (common.help) {
		np_cmd_print_help(cmd);
		return NP_EXIT_OK;
	}
	enum np_lang lang = env_lang();
	if (common.lang && !np_lang_parse(common.lang, &lang))
		return usage_error(cmd, "--lang wants en or zh");
	if (np_lang_use(lang, &err) != NP_OK)
		return np_cmd_fail(&err);
	struct np_call call = {.cmd = cmd,
	                       .common = &common,
	                       .options = values,
	                       .argc = end - first,
	                       .argv = argv + first};
	if (end < argc && strcmp(argv[end], "--") == 0)
		end++;
	call.n_command = argc - end;
	call.command = argv + end;
	if (call.argc < cmd->min_words)
		return usage_error(cmd, "something is missing on the command line");
	if (call.argc > cmd->max_words)
		return usage_error(cmd, "too many words on the command line");
	return cmd->run(&call);
}

/* The verb of a command that has some; NULL after help or a complaint, with *status. */
static const struct np_cmd *choose_verb(const struct np_cmd *cmd, int argc, char **argv,
                                        int *status)
{
	const char *word = argc > 1 ? argv[1] : "";
	const struct np_cmd *verb = np_cmd_verb(cmd, word);
	if (verb)
		return verb;
	bool asked = strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
	*status = asked ? NP_EXIT_OK : NP_EXIT_USAGE;
	if (asked)
		np_cmd_print_help(cmd);
	else
		(void)usage_error(cmd, *word ? "unknown verb" : "a verb is missing");
	return NULL;
}

static int run_by_name(const char *name, int argc, char **argv)
{
	int status = NP_EXIT_USAGE;
	const struct np_cmd *cmd = np_cmd_find(name);
	if (!cmd) {
		np_cmd_complain(name, "unknown command; npuprof help lists them");
		return NP_EXIT_USAGE;
	}
	if (cmd->n_verbs) {
		cmd = choose_verb(cmd, argc, argv, &status);
		if (!cmd)
			return status;
		argc--;
		argv++;
	}
	void *values = np_calloc(1, cmd->options_size);
	if (!values) {
		(void)fprintf(stderr, "npuprof: out of memory\n");
		return NP_EXIT_INPUT;
	}
	status = run_command(cmd, argc, argv, values);
	(void)np_lang_use(NP_LANG_EN, NULL);
	np_free(values);
	return status;
}

static int run_words(int argc, char **argv)
{
	int status = NP_EXIT_USAGE;
	if (argc < 2) {
		print_overview();
		return NP_EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0)
		status = run_by_name("version", argc - 1, argv + 1);
	else if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		status = run_by_name("help", argc - 1, argv + 1);
	else
		status = run_by_name(argv[1], argc - 1, argv + 1);
	/* a result that did not reach its reader is a failure */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		(void)fprintf(stderr, "npuprof: cannot write to stdout\n");
		status = NP_EXIT_INPUT;
	}
	return status;
}

int np_main(int argc, char **argv)
{
	if (argc < 1 || !np_legacy_is(argv[0]))
		return run_words(argc, argv);
	char **words = np_calloc((size_t)argc + NP_LEGACY_EXTRA, sizeof *words);
	if (!words) {
		(void)fprintf(stderr, "npuprof: out of memory\n");
		return NP_EXIT_INPUT;
	}
	int status = run_words(np_legacy_words(argc, argv, words), words);
	np_free(words);
	return status;
}
