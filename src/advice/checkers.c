/* The checkers, by dimension. */
#include "advice/checker.h"

extern const struct np_checker np_checker_aicpu;
extern const struct np_checker np_checker_alignment;
extern const struct np_checker np_checker_api_compare;
extern const struct np_checker np_checker_block_dim;
extern const struct np_checker np_checker_contention;
extern const struct np_checker np_checker_dynamic_shape;
extern const struct np_checker np_checker_environment;
extern const struct np_checker np_checker_frequency;
extern const struct np_checker np_checker_gc;
extern const struct np_checker np_checker_kernel_compare;
extern const struct np_checker np_checker_no_bound;
extern const struct np_checker np_checker_overall;
extern const struct np_checker np_checker_packet;
extern const struct np_checker np_checker_perf_cube;
extern const struct np_checker np_checker_perf_fa;
extern const struct np_checker np_checker_perf_vector;
extern const struct np_checker np_checker_retransmission;
extern const struct np_checker np_checker_slow_link;
extern const struct np_checker np_checker_slow_rank;

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
	&np_checker_gc,
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
	/* comparison */
	&np_checker_kernel_compare,
	&np_checker_api_compare,
};
const size_t np_n_checkers = sizeof np_checkers / sizeof *np_checkers;
