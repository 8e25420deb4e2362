/*
 * The schedule of DualPipeV (cluster_and_advisor.md §2.24): which task is which micro-batch
 * of a pipeline of P stages that each hold two chunks of the model, with m ≥ 2P micro-batches.
 *
 *   phase 0 warm-up        forwards of chunk 0
 *         1 interleaved    forward of chunk 0, of chunk 1
 *         2 1b1w1f         backward and weights of chunk 1, forward of chunk 1
 *         3 overlap        forward of one chunk with backward of the other: "4F+10B"
 *         4 1b1overlap     backward of chunk 1, then an overlap
 *         5 interleaved    backwards, in turns
 *         6 cool-down      the backwards that are left
 *
 * Micro-batch k of chunk 0 is number k, of chunk 1 number m + k. Stage 0 computes "logits"
 * before each backward of chunk 1 that begins there.
 */
#ifndef NP_CLUSTER_DUALPIPEV_H
#define NP_CLUSTER_DUALPIPEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NP_PIPE_MAX_STAGES = 4096,
	NP_PIPE_MAX_BATCHES = 1 << 20,
	NP_PIPE_NAME_CHARS = 24,
};

struct np_pipe_task {
	char name[NP_PIPE_NAME_CHARS];
	uint8_t phase;
};

struct np_pipe_tasks {
	struct np_pipe_task *v;
	size_t n, cap;
};

/* Is there such a schedule: 1 ≤ stages, 2 · stages ≤ batches, within the limits? */
bool np_dualpipev_fits(int64_t stages, int64_t batches);

/*
 * The tasks of a stage, in order: 2m + 4P - 2i - 2 of them on stage i; m more on stage 0
 * (logits) and one more on the last stage, which begins its overlaps with the two halves of
 * one. false: out of memory. Freed by np_pipe_tasks_release().
 */
bool np_dualpipev(size_t stages, size_t batches, size_t stage, struct np_pipe_tasks *out);
void np_pipe_tasks_release(struct np_pipe_tasks *self);

#endif
