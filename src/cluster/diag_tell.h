/*
 * What the diagnosis has found, and telling it: tables diagnose_* and findings
 * CLUSTER_* of the report.
 */
#ifndef NP_CLUSTER_DIAG_TELL_H
#define NP_CLUSTER_DIAG_TELL_H

#include "cluster/diag_cost.h"
#include "cluster/diag_link.h"
#include "cluster/diag_look.h"
#include "cluster/diag_path.h"
#include "cluster/diag_stage.h"

struct np_diag_result {
	struct np_path path;
	struct np_diag_causes causes;
	struct np_links links;
	struct np_stages stages;
};

/* false: out of memory. */
bool np_diag_tell(struct np_diagnosis *self, const struct np_diag_result *result);

#endif
