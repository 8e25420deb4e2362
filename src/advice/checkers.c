/* The checkers, by dimension. */
#include "advice/checker.h"

extern const struct np_checker np_checker_affinity, np_checker_conjectured_gc,
	np_checker_dataloader, np_checker_dispatch, np_checker_fusible_host, np_checker_fusible_mte,
	np_checker_gc, np_checker_operator_launch, np_checker_sync_batch_norm,
	np_checker_synchronize;
extern const struct np_checker np_checker_memory_ops, np_checker_memory_peak;

const struct np_checker *const np_checkers[] = {
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
	/* memory */
	&np_checker_memory_ops,
	&np_checker_memory_peak,
};
const size_t np_n_checkers = sizeof np_checkers / sizeof *np_checkers;
