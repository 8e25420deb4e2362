/* Faults that only a comparison with a set without them shows. */
#ifndef NP_SYNTH_FAULTS_COMPARE_H
#define NP_SYNTH_FAULTS_COMPARE_H

#include "synth/model.h"

/* The duration of a kernel `op` on a rank with these faults (bit per id). */
np_ns np_synth_regressed(uint64_t faults, uint32_t op, np_ns dur);

/* Does kernel `index` of layer `layer` of `layers` have one more behind it? *op is that. */
bool np_synth_inserts(uint64_t faults, uint32_t layers, uint32_t layer, uint32_t index,
                      uint32_t *op);

#endif
