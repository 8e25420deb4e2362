/* The checkers, by dimension. */
#include "advice/checker.h"

extern const struct np_checker np_checker_aicpu;
extern const struct np_checker np_checker_block_dim;
extern const struct np_checker np_checker_dynamic_shape;
extern const struct np_checker np_checker_frequency;
extern const struct np_checker np_checker_gc;
extern const struct np_checker np_checker_no_bound;
extern const struct np_checker np_checker_perf_cube;
extern const struct np_checker np_checker_perf_fa;
extern const struct np_checker np_checker_perf_vector;

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
};
const size_t np_n_checkers = sizeof np_checkers / sizeof *np_checkers;
