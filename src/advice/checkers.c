/* The checkers, by dimension. */
#include "advice/checker.h"

extern const struct np_checker np_checker_affinity;
extern const struct np_checker np_checker_aicpu;
extern const struct np_checker np_checker_alignment;
extern const struct np_checker np_checker_api_compare;
extern const struct np_checker np_checker_block_dim;
extern const struct np_checker np_checker_conjectured_gc;
extern const struct np_checker np_checker_contention;
extern const struct np_checker np_checker_dataloader;
extern const struct np_checker np_checker_dispatch;
extern const struct np_checker np_checker_dynamic_shape;
extern const struct np_checker np_checker_environment;
extern const struct np_checker np_checker_frequency;
extern const struct np_checker np_checker_fusible_host;
extern const struct np_checker np_checker_fusible_mte;
extern const struct np_checker np_checker_gc;
extern const struct np_checker np_checker_kernel_compare;
extern const struct np_checker np_checker_memory_ops;
extern const struct np_checker np_checker_memory_peak;
extern const struct np_checker np_checker_no_bound;
extern const struct np_checker np_checker_operator_launch;
extern const struct np_checker np_checker_overall;
extern const struct np_checker np_checker_packet;
extern const struct np_checker np_checker_perf_cube;
extern const struct np_checker np_checker_perf_fa;
extern const struct np_checker np_checker_perf_vector;
extern const struct np_checker np_checker_retransmission;
extern const struct np_checker np_checker_slow_link;
extern const struct np_checker np_checker_slow_rank;
extern const struct np_checker np_checker_sync_batch_norm;
extern const struct np_checker np_checker_synchronize;

const struct np_checker *const np_checkers[] = {
	/* computation */
	&np_checker_dynamic_shape,
	&np_checker_aicpu,
	&np_checker_block_dim,
	&np_checker_no_bound,
	&np_checker_frequency,
	&np_checker_perf_cube,
	&np_checker_perf_fa,
	&np_checker_perf_vector,
	/* schedule */
	&np_checker_sync_batch_norm,
	&np_checker_dispatch,
	&np_checker_synchronize,
	&np_checker_affinity,
	&np_checker_dataloader,
	&np_checker_gc,
	&np_checker_conjectured_gc,
	&np_checker_fusible_host,
	&np_checker_fusible_mte,
	&np_checker_operator_launch,
	/* communication */
	&np_checker_packet,
	&np_checker_contention,
	&np_checker_alignment,
	/* overall */
	&np_checker_environment,
	&np_checker_overall,
	/* cluster */
	&np_checker_slow_rank,
	&np_checker_slow_link,
	&np_checker_retransmission,
	/* memory */
	&np_checker_memory_ops,
	&np_checker_memory_peak,
	/* comparison */
	&np_checker_kernel_compare,
	&np_checker_api_compare,
};
const size_t np_n_checkers = sizeof np_checkers / sizeof *np_checkers;
