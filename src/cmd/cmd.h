/*
 * Commands: one file and one struct each, in one sorted table.
 *
 * A command is options → calls → a report → a writer; it holds no logic of its
 * own. The runner parses the options, checks the number of words, prints usage
 * errors, and renders the report that the command made.
 */
#ifndef NP_CMD_CMD_H
#define NP_CMD_CMD_H

#include <stdbool.h>

#include "cmd/options.h"
#include "report/report.h"

/* Exit status of every command (DESIGN.md §2.4). */
enum np_exit {
	NP_EXIT_OK = 0,
	NP_EXIT_FAILED = 1,  /* judged and failed */
	NP_EXIT_USAGE = 2,   /* usage, or a precondition is missing */
	NP_EXIT_UNKNOWN = 3, /* nothing failed, but something could not be judged */
	NP_EXIT_INPUT = 4,   /* the input could not be read, or the environment failed */
};

/* The options that every command has. */
struct np_common {
	const char *output, *format, *color, *table, *lang;
	uint64_t jobs;
	bool json, quiet, verbose, no_progress, help;
};

struct np_call {
	const struct np_cmd *cmd;
	const struct np_common *common;
	const void *options; /* the command's own struct */
	int argc;            /* words that are no options */
	char **argv;
	int n_command; /* words of the command line to run: what stands behind `--` */
	char **command;
};

struct np_cmd {
	const char *name, *summary; /* of a verb both words: "plan schedule" */
	const char *words;          /* "PATH", "BASE TARGET…", "" */
	int min_words, max_words;
	const char *detail;          /* paragraphs for --help; NULL */
	const char *const *examples; /* command lines, NULL-terminated; NULL */
	const struct np_option *options;
	size_t n_options, options_size;
	int (*run)(const struct np_call *call);
	bool hidden; /* not in the list of `npuprof help` */
	/* What stands behind `--` is a command line for call->command. A command that has no
	 * words of its own (max_words 0) takes it from the first word that is no option, too. */
	bool takes_command;
	/* A command of verbs: the next word chooses one, which has the options and run(). */
	const struct np_cmd *const *verbs;
	size_t n_verbs;
};

extern const struct np_cmd np_cmd_advise, np_cmd_advisor, np_cmd_analyze, np_cmd_check,
	np_cmd_cluster, np_cmd_collect, np_cmd_comm, np_cmd_compare, np_cmd_completion,
	np_cmd_deploy, np_cmd_devices, np_cmd_dynamic, np_cmd_help, np_cmd_info, np_cmd_plan,
	np_cmd_pull, np_cmd_report, np_cmd_run, np_cmd_synth, np_cmd_version;

/* Sorted by name. */
extern const struct np_cmd *const np_cmds[];
extern const size_t np_n_cmds;
const struct np_cmd *np_cmd_find(const char *name);
/* The verb of a command, by its second word; NULL. */
const struct np_cmd *np_cmd_verb(const struct np_cmd *cmd, const char *verb);

/* The table of options that every command has. */
extern const struct np_option np_common_options[];
extern const size_t np_n_common_options;

/* --help of one command, or of the program (cmd NULL), to stdout. */
void np_cmd_print_help(const struct np_cmd *cmd);

/* One line on stderr: "npuprof: where: message", `where` may be "". Names of files and
 * words of the command line may be in both: what is not to be shown is escaped. */
void np_cmd_complain(const char *where, const char *message);

/* An error as one line on stderr; returns the exit status that fits it. */
int np_cmd_fail(const struct np_err *err);

/*
 * Render the report by the common options to -o or stdout. Returns the report's
 * exit_code, or that of what went wrong in writing it.
 */
int np_cmd_finish(const struct np_call *call, const struct np_report *report);

/*
 * The run() of most commands: `fill` puts the result into a new report, which
 * np_cmd_finish() renders, or says why not. Returns the exit status.
 */
typedef enum np_status np_cmd_fill(const struct np_call *call, struct np_report *report,
                                   struct np_err *err);
int np_cmd_run_report(const struct np_call *call, np_cmd_fill *fill);

/* np_cmd_finish() with limits for the writers (0: theirs) and a format for want of another. */
struct np_finish {
	const char *format; /* NULL: text */
	size_t max_rows, max_bytes;
	bool no_terminal; /* whatever stdout looks like: no colours, nothing cut */
};
int np_cmd_finish_as(const struct np_call *call, const struct np_report *report,
                     const struct np_finish *how);

/* Columns of the terminal that the text goes to; 0 when it goes elsewhere, or is no text. */
unsigned np_cmd_width(const struct np_common *common);

/* Also show the report as text on stderr (check --json, R49), unless -q. */
void np_cmd_talk(const struct np_call *call, const struct np_report *report);

int np_main(int argc, char **argv);

#endif
