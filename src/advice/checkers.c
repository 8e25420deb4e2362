/* The checkers, by dimension. */
#include "advice/checker.h"

extern const struct np_checker np_checker_gc;

const struct np_checker *const np_checkers[] = {
	/* schedule */
	&np_checker_gc,
};
const size_t np_n_checkers = sizeof np_checkers / sizeof *np_checkers;
