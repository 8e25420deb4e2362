/*
 * Shell completion out of the option tables.
 */
#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"

static void print_words(const struct np_option *options, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (options[i].letter)
			(void)printf("-%c ", options[i].letter);
		(void)printf("--%s ", options[i].name);
	}
}

/* The verbs of a command, and the options of all of them. */
static void print_verbs(const struct np_cmd *cmd)
{
	for (size_t i = 0; i < cmd->n_verbs; i++) {
		(void)printf("%s ", strchr(cmd->verbs[i]->name, ' ') + 1);
		print_words(cmd->verbs[i]->options, cmd->verbs[i]->n_options);
	}
}

static void bash(void)
{
	(void)printf("_npuprof() {\n"
	             "  local cur=${COMP_WORDS[COMP_CWORD]} words verbs=\n"
	             "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    words=\"");
	for (size_t i = 0; i < np_n_cmds; i++)
		(void)printf("%s ", np_cmds[i]->name);
	(void)printf("\"\n  else\n    case ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; i < np_n_cmds; i++) {
		(void)printf("      %s) words=\"", np_cmds[i]->name);
		print_verbs(np_cmds[i]);
		print_words(np_cmds[i]->options, np_cmds[i]->n_options);
		print_words(np_common_options, np_n_common_options);
		(void)printf("\"%s ;;\n", np_cmds[i]->n_verbs ? " verbs=yes" : "");
	}
	(void)printf("    esac\n  fi\n"
	             "  if [[ $cur == -* || $COMP_CWORD -eq 1 || -n $verbs && $COMP_CWORD -eq 2 "
	             "]]; then\n"
	             "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n  fi\n"
	             "}\ncomplete -o default -F _npuprof npuprof\n");
}

static void fish_options(const char *command, const struct np_option *options, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		(void)printf("complete -c npuprof -n '__fish_seen_subcommand_from %s' -l %s",
		             command, options[i].name);
		if (options[i].letter)
			(void)printf(" -s %c", options[i].letter);
		(void)printf("%s -d \"%s\"\n", options[i].arg ? " -r" : "", options[i].help);
	}
}

static void fish_verbs(const struct np_cmd *cmd)
{
	for (size_t i = 0; i < cmd->n_verbs; i++) {
		(void)printf("complete -c npuprof -n '__fish_seen_subcommand_from %s' -a %s "
		             "-d \"%s\"\n",
		             cmd->name, strchr(cmd->verbs[i]->name, ' ') + 1,
		             cmd->verbs[i]->summary);
		fish_options(cmd->name, cmd->verbs[i]->options, cmd->verbs[i]->n_options);
	}
}

static void fish(void)
{
	for (size_t i = 0; i < np_n_cmds; i++) {
		(void)printf("complete -c npuprof -n __fish_use_subcommand -a %s -d \"%s\"\n",
		             np_cmds[i]->name, np_cmds[i]->summary);
		fish_options(np_cmds[i]->name, np_cmds[i]->options, np_cmds[i]->n_options);
		fish_verbs(np_cmds[i]);
		fish_options(np_cmds[i]->name, np_common_options, np_n_common_options);
	}
}

static int run(const struct np_call *call)
{
	const char *shell = call->argv[0];
	if (strcmp(shell, "bash") == 0) {
		bash();
	} else if (strcmp(shell, "zsh") == 0) {
		(void)printf("autoload -U +X bashcompinit && bashcompinit\n");
		bash();
	} else if (strcmp(shell, "fish") == 0) {
		fish();
	} else {
		(void)fprintf(stderr, "npuprof: unknown shell '%s': use bash, zsh or fish\n",
		              shell);
		return NP_EXIT_USAGE;
	}
	return NP_EXIT_OK;
}

static const char *const examples[] = {"source <(npuprof completion bash)",
                                       "npuprof completion fish | source", NULL};

const struct np_cmd np_cmd_completion = {
	.name = "completion",
	.summary = "print completion for a shell",
	.words = "bash|zsh|fish",
	.min_words = 1,
	.max_words = 1,
	.options_size = 1,
	.examples = examples,
	.run = run,
};
