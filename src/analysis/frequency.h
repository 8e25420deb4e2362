/* Samples of the AI cores' frequency. */
#ifndef NP_ANALYSIS_FREQUENCY_H
#define NP_ANALYSIS_FREQUENCY_H

#include "analysis/analysis.h"

/* Holds until the next one. */
struct np_freq_sample {
	np_ns start;
	double mhz;
};

struct np_freq_samples {
	NP_VEC(struct np_freq_sample) of; /* in order of time */
};

/* Those of the analysed device; none where none were collected. false: out of memory. The
 * caller releases out->of in every case. */
bool np_freq_samples_read(const struct np_analysis *self, struct np_freq_samples *out);

#endif
