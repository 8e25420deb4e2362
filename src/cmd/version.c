#include <stdio.h>

#include "base/simd.h"
#include "cmd/cmd.h"

static int run(const struct np_call *call)
{
	(void)call;
	(void)printf("npuprof %s\n", NPUPROF_VERSION);
	if (call->common->verbose)
		(void)printf("vector instructions: %s\n", np_simd_name(np_simd_level()));
	return NP_EXIT_OK;
}

const struct np_cmd np_cmd_version = {
	.name = "version",
	.summary = "tell the version",
	.words = "",
	.options_size = 1,
	.run = run,
};
