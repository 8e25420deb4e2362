/*
 * The writers: each puts one family of files of one filled run into a directory
 * that exists. All return E_IO, E_ACCESS, E_LIMIT or E_NOMEM, and count into
 * *stats what they wrote.
 */
#ifndef NP_SYNTH_WRITE_H
#define NP_SYNTH_WRITE_H

#include "synth/model.h"
#include "synth/out.h"

/* Names of files are short; a path that is longer than this is E_LIMIT. */
enum { NP_SYNTH_PATH = 4096 };

/* Close what np_out_open() opened and count it. */
enum np_status np_synth_finish(struct np_out *out, struct np_synth_stats *stats,
                               struct np_err *err);

/* kernel_details.csv (write_kernels.c), and op_summary for the msprof format. */
enum np_status np_synth_write_kernels(const struct np_synth_run *run, const char *dir,
                                      struct np_synth_stats *stats, struct np_err *err);
enum np_status np_synth_write_op_summary(const struct np_synth_run *run, const char *dir,
                                         const char *stamp, struct np_synth_stats *stats,
                                         struct np_err *err);

/* The metrics of one kernel: times in ns, cycles, ratios in 1/1000. */
enum np_synth_pmu {
	NP_PMU_AIC_TIME,
	NP_PMU_AIC_CYCLES,
	NP_PMU_AIC_MAC,
	NP_PMU_AIC_SCALAR,
	NP_PMU_AIC_MTE1,
	NP_PMU_AIC_MTE2,
	NP_PMU_AIC_FIXPIPE,
	NP_PMU_AIC_ICACHE,
	NP_PMU_AIV_TIME,
	NP_PMU_AIV_CYCLES,
	NP_PMU_AIV_VEC,
	NP_PMU_AIV_SCALAR,
	NP_PMU_AIV_MTE2,
	NP_PMU_AIV_MTE3,
	NP_PMU_AIV_ICACHE,
	NP_PMU_VALUES
};
void np_synth_pmu(const struct np_synth_run *run, const struct np_synth_item *item,
                  int64_t pmu[NP_PMU_VALUES]);

/* Component memory of CANN, sampled: the same in csv and db. */
enum { NP_SYNTH_MODULES = 4, NP_SYNTH_MAX_SAMPLES = 10000 };
enum { NP_SYNTH_SAMPLE_NS = 20000000, NP_SYNTH_FIRST_SAMPLE_NS = 300000 };
extern const struct np_synth_module {
	const char *name;
	uint32_t id, kb;
} np_synth_modules[NP_SYNTH_MODULES];

/* The csv files but kernel_details (write_text.c). Statistics come with level 1 and up. */
enum np_status np_synth_write_tables(const struct np_synth_run *run, const char *dir,
                                     struct np_synth_stats *stats, struct np_err *err);
/* step_trace_time.csv alone. */
enum np_status np_synth_write_step_trace(const struct np_synth_run *run, const char *dir,
                                         struct np_synth_stats *stats, struct np_err *err);
/* op_statistic, api_statistic, task_time as msprof names them: with _<stamp>. */
enum np_status np_synth_write_msprof_tables(const struct np_synth_run *run, const char *dir,
                                            const char *stamp, struct np_synth_stats *stats,
                                            struct np_err *err);

/* trace_view.json; `name` is another name, and no host part, for msprof_<stamp>.json. */
enum np_status np_synth_write_trace(const struct np_synth_run *run, const char *dir,
                                    const char *name, struct np_synth_stats *stats,
                                    struct np_err *err);

/* ascend_pytorch_profiler_<rank>.db and analysis.db (write_db.c, write_analysis.c). */
enum np_status np_synth_write_dbs(const struct np_synth_run *run, const char *dir,
                                  struct np_synth_stats *stats, struct np_err *err);

/* profiler_info*.json and profiler_metadata.json (write_meta.c). */
enum np_status np_synth_write_meta(const struct np_synth_run *run, const char *dir,
                                   unsigned formats, struct np_synth_stats *stats,
                                   struct np_err *err);
/* {"group_name_0": {...}, ...} of one rank, as in profiler_metadata.json */
void np_synth_groups_json(struct np_buf *out, const struct np_synth_run *run);
/* {"tensor_model_parallel_size": …} */
void np_synth_distributed_json(struct np_buf *out, const struct np_synth_run *run);
extern const char *const np_synth_env_json;
/* One file of the parser's, in logs/. */
enum np_status np_synth_write_log(const struct np_synth_run *run, const char *dir,
                                  struct np_synth_stats *stats, struct np_err *err);
/* log_<rank>.log beside the captures: what the job printed. */
enum np_status np_synth_write_run_log(const struct np_synth_run *run, const char *root,
                                      struct np_synth_stats *stats, struct np_err *err);
/* info.json of PROF_*: in host/ and device_<n>/. */
enum np_status np_synth_write_prof_info(const struct np_synth_run *run, const char *host,
                                        const char *device, struct np_synth_stats *stats,
                                        struct np_err *err);
/* Placeholders of raw data, into directories that exist. */
enum np_status np_synth_write_raw(const struct np_synth_run *run, const char *framework,
                                  const char *host_data, const char *device_data,
                                  struct np_synth_stats *stats, struct np_err *err);

/* "20250601080000000" of a time, UTC. */
void np_synth_stamp(char out[32], np_ns ns);

#endif
