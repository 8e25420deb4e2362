#include <stdio.h>

#include "cmd/cmd.h"

static int run(const struct np_call *call)
{
	if (call->argc == 0) {
		np_cmd_print_help(NULL);
		return NP_EXIT_OK;
	}
	const struct np_cmd *cmd = np_cmd_find(call->argv[0]);
	if (!cmd) {
		(void)fprintf(stderr, "npuprof: unknown command '%s'; npuprof help lists them\n",
		              call->argv[0]);
		return NP_EXIT_USAGE;
	}
	const struct np_cmd *verb = call->argc > 1 ? np_cmd_verb(cmd, call->argv[1]) : NULL;
	if (call->argc > 1 && !verb) {
		(void)fprintf(stderr,
		              "npuprof: '%s' has no verb '%s'; npuprof help %s lists them\n",
		              cmd->name, call->argv[1], cmd->name);
		return NP_EXIT_USAGE;
	}
	np_cmd_print_help(verb ? verb : cmd);
	return NP_EXIT_OK;
}

const struct np_cmd np_cmd_help = {
	.name = "help",
	.summary = "tell what a command does and its options",
	.words = "[COMMAND [VERB]]",
	.max_words = 2,
	.options_size = 1,
	.run = run,
};
