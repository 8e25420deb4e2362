/*
 * What is known of frameworks (requirements R4–R16, R56–R60, R72): which call to profile, how
 * long to warm up, which variables a start wants. A table; a name that depends on the model
 * is a hint in `choose`, never a target that is taken silently.
 */
#ifndef NP_COLLECT_PRESETS_H
#define NP_COLLECT_PRESETS_H

#include <stdbool.h>
#include <stddef.h>

enum { NP_PRESET_TARGETS = 2, NP_PRESET_HINTS = 3, NP_PRESET_VARIABLES = 4 };

struct np_preset_hint {
	const char *model, *target; /* "MiniMax-H3", "module:qualname" */
};

struct np_preset {
	const char *name, *framework;
	const char *targets[NP_PRESET_TARGETS]; /* NULL: one is to be given */
	struct np_preset_hint hints[NP_PRESET_HINTS];
	const char *choose;                         /* which call, in words */
	unsigned warmup, compile_warmup;            /* calls before the profiled one (R6) */
	const char *level, *aic_metrics;            /* NULL: the defaults */
	bool server;                                /* ends by --stop-after-capture */
	bool watch;                                 /* profiles by itself: --watch DIR */
	const char *profile;                        /* of the gate; NULL: by the configuration */
	const char *variables[NP_PRESET_VARIABLES]; /* NAME=VALUE, unless NAME is set */
	const char *notes;
};

size_t np_n_presets(void);
const struct np_preset *np_preset(size_t i);          /* sorted by name; NULL beyond the end */
const struct np_preset *np_preset_find(const char *); /* NULL: unknown */

#endif
