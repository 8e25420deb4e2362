/*
 * truth.json: what was planted and what an analysis must find.
 *
 *   {"tool": "npuprof synth", "version": 1, "options": {…},
 *    "faults": [{"fault", "code", "ranks": [r] | null (all), "link": [a, b]}],
 *    "ranks": [{"rank", "device", "host", "directory" (null: not written), "kernels",
 *               "collectives", "types": [{"type", "core", "count", "total_ns"}],
 *               "steps": [{"step", …_ns}]}]}
 *
 * Times are ns. Step sums: computing, communication and not_overlapped are the
 * same in every format; free and stage are between the step's first and last
 * device work (analysis.db), free_csv and stage_csv are those of step_trace_time.csv.
 */
#ifndef NP_SYNTH_TRUTH_H
#define NP_SYNTH_TRUTH_H

#include "synth/write.h"

#define NP_SYNTH_TRUTH_HEAD "{\"tool\": \"npuprof synth\", \"version\": 1"

/* Up to the ranks: options and faults. What the plan as a whole has (truth_cluster.h)
 * and the opening of "ranks" stand between this and np_synth_truth_rank(). */
void np_synth_truth_begin(struct np_out *out, const struct np_synth_plan *plan);
/* One rank; `directory` is NULL when it was not written. */
void np_synth_truth_rank(struct np_out *out, const struct np_synth_run *run, const char *directory);
void np_synth_truth_end(struct np_out *out);

#endif
