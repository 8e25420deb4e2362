/*
 * Removing what killed jobs left: shared memory, and old logs on request.
 */
#ifndef NP_COLLECT_DYNAMIC_CLEAN_H
#define NP_COLLECT_DYNAMIC_CLEAN_H

#include "report/report.h"

struct np_dyn_clean_options {
	const char *shm_dir; /* NULL: np_dyn_shm_dir() */
	bool logs;           /* also logs of processes that are gone, or untouched for a day */
	bool force;          /* also what others own, or what may be in use */
	bool dry_run;
};

/*
 * Without `force` only shared memory that no process has mapped, and that belongs to us. The
 * table `files` tells what was done with each and why. Exit code 4 when something could not be
 * removed, else 0. Errors: E_NOTFOUND (no such directory), E_NOMEM.
 */
enum np_status np_dyn_clean(const char *dir, const struct np_dyn_clean_options *options,
                            struct np_report *report, struct np_err *err);

#endif
