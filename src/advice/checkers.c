/* The checkers, by dimension. */
#include "advice/checker.h"

extern const struct np_checker np_checker_alignment;
extern const struct np_checker np_checker_api_compare;
extern const struct np_checker np_checker_contention;
extern const struct np_checker np_checker_environment;
extern const struct np_checker np_checker_gc;
extern const struct np_checker np_checker_kernel_compare;
extern const struct np_checker np_checker_overall;
extern const struct np_checker np_checker_packet;
extern const struct np_checker np_checker_retransmission;
extern const struct np_checker np_checker_slow_link;
extern const struct np_checker np_checker_slow_rank;

const struct np_checker *const np_checkers[] = {
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
