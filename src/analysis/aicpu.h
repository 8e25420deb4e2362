/* What can hide the work of the AI CPU. */
#ifndef NP_ANALYSIS_AICPU_H
#define NP_ANALYSIS_AICPU_H

#include "analysis/analysis.h"

/* When kernels of any other core, or collectives, ran; merged. false: out of memory. The caller
 * releases it in every case. */
bool np_aicpu_others(const struct np_analysis *self, struct np_intervals *out);

#endif
