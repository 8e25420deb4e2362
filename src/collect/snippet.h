/*
 * `plan snippet`: code, a command line or a configuration to copy, right for what the
 * capture is for (R111).
 *
 *   for         is           what
 *   torch_npu   Python       create_profiler() and the loops of a phase (R63–R68)
 *   msprof      shell        the command line of the utilisation tier (R20, R28)
 *   vllm        Python       a hook for sitecustomize, and the server's own way (R12, R29)
 *   dynamic     strict JSON  profiler_config.json of dynamic_profile (R76–R78)
 *   path-a      YAML         the switch of cann-recipes, what to tune, acceptance (R57–R61)
 *
 *   profile     kernel: units' utilisation of one rank (Level1, PipeUtilization, text);
 *               cluster: all ranks, communication, small (Level1, AiCoreNone, db)
 *
 * What makes no sense together is refused with what is legal. Text that a user gave
 * (the directory) holds only characters that torch_npu accepts in a path, so that it needs
 * no quoting in any of these languages but for blanks.
 */
#ifndef NP_COLLECT_SNIPPET_H
#define NP_COLLECT_SNIPPET_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

enum np_snippet_for {
	NP_SNIPPET_TORCH_NPU,
	NP_SNIPPET_MSPROF,
	NP_SNIPPET_VLLM,
	NP_SNIPPET_DYNAMIC,
	NP_SNIPPET_PATH_A,
	NP_SNIPPET_TARGETS,
};

enum np_snippet_phase { NP_PHASE_PREFILL, NP_PHASE_DECODE, NP_PHASE_BOTH, NP_PHASE_SEPARATE };

/* As on the command line; NULL where nothing was given. */
struct np_snippet_words {
	const char *target, *phase, *profile, *active, *warmup, *out_dir, *rank_list, *level,
		*aic_metrics;
};

enum { NP_SNIPPET_RANKS_MAX = 65536 };

struct np_snippet {
	enum np_snippet_for target;
	enum np_snippet_phase phase;
	bool cluster;
	int64_t active, warmup;
	const char *out_dir;
	int level; /* 1 or 2 */
	const char *aic_metrics;
	NP_VEC(uint32_t) ranks; /* ascending; empty: all where `all_ranks`, else rank 0 */
	bool all_ranks;
};

/* Release with np_snippet_release() whatever this returns. E_USAGE tells what is legal. */
enum np_status np_snippet_choose(const struct np_snippet_words *words, struct np_snippet *out,
                                 struct np_err *err);
void np_snippet_release(struct np_snippet *self);

/* Append the snippet to `code`, and to `talk` what to do with it: lines for people. */
void np_snippet_write(const struct np_snippet *self, struct np_buf *code, struct np_buf *talk);

/* Parts of it, private to snippet*.c. */
void np_snippet_torch(const struct np_snippet *self, struct np_buf *out);
void np_snippet_profiler(const struct np_snippet *self, const char *handler, struct np_buf *out);
void np_snippet_python_ranks(const struct np_snippet *self, struct np_buf *out);
void np_snippet_vllm(const struct np_snippet *self, struct np_buf *out);
void np_snippet_msprof(const struct np_snippet *self, struct np_buf *out);
void np_snippet_dynamic(const struct np_snippet *self, struct np_buf *out);
void np_snippet_path_a(const struct np_snippet *self, struct np_buf *out);

#endif
