/*
 * Faults of single operators: kernels that are added, shapes and frequencies that
 * change. Without such a fault everything here says what a healthy run has.
 */
#ifndef NP_SYNTH_FAULTS_OPS_H
#define NP_SYNTH_FAULTS_OPS_H

#include "synth/model.h"

enum { NP_SYNTH_MAX_EXTRA = 2 + NP_OPS_CHAIN };

/* The kernels that the faults (bits of np_synth_fault_id) add to the end of a layer: rows
 * of np_synth_ops, in order. Returns how many. */
size_t np_synth_extra_ops(uint64_t faults, uint32_t ops[NP_SYNTH_MAX_EXTRA]);

/* Input shapes of a kernel; `scratch` is used where a fault changes them. */
const char *np_synth_in_shapes(const struct np_synth_run *run, const struct np_synth_item *item,
                               char scratch[64]);

struct np_synth_freq {
	np_ns ns;
	uint32_t mhz;
};
enum { NP_SYNTH_MAX_FREQ = 4 };

/* Samples of the AI core frequency, in order of time. Returns how many. */
size_t np_synth_freq(const struct np_synth_run *run,
                     struct np_synth_freq samples[NP_SYNTH_MAX_FREQ]);

#endif
