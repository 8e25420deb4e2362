/* A set of captures made by synth, with its faults named as on the command line. */
#ifndef NP_TESTS_SYNTH_SET_H
#define NP_TESTS_SYNTH_SET_H

#include "synth/synth.h"
#include "temp_tree.h"

enum { SYNTH_START = 1748764800, SYNTH_FAULTS_MAX = 4 };

/* "idle-rank=1 stale" or "": the set goes to `dir`, which is made. Two ranks, two steps. */
static inline void synth_set(const char *dir, unsigned formats, uint32_t ranks, int level,
                             const char *faults)
{
	struct np_synth_fault list[SYNTH_FAULTS_MAX];
	struct np_synth_options options;
	struct np_err err = {0};
	np_synth_options_init(&options);
	options.formats = formats;
	options.ranks = ranks;
	options.level = level;
	options.start_epoch_ns = INT64_C(1000000000) * SYNTH_START;
	options.set_mtimes = true;
	options.faults = list;
	char text[256], *rest = NULL;
	(void)snprintf(text, sizeof text, "%s", faults);
	for (char *name = strtok_r(text, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		if (np_synth_parse_fault(name, &list[options.n_faults++], &err) != NP_OK)
			fail_msg("%s", err.msg);
	if (np_synth_write(dir, &options, NULL, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
}

#endif
