/*
 * The modules of a model, and what the operators in them have launched
 * (cluster_and_advisor.md §2.22): of mstx ranges in the domain "Module".
 *
 *   Module ranges ─┐                        ┌▶ rows: parent, module, operator, its kernels
 *   operators ─────┴─▶ tree by containment ─┤       total and number over all instances
 *   forward → backward connections ─────────┴▶ modules of the backward pass
 *
 * Instances of one module whose operators differ are kept apart by a suffix _0, _1, …
 * where they follow each other.
 */
#ifndef NP_CLUSTER_MODULES_H
#define NP_CLUSTER_MODULES_H

#include "base/time.h"
#include "cluster/launches.h"
#include "cluster/recipe.h"

/* In order of the first execution. */
#define NP_DIGEST_MODULES_COLUMNS(X)                                                      \
	X(np_id, parent, "names of the modules around it, from the outermost: \"a/b\"")   \
	X(np_id, module, "its name; \"[Backward]\" before one of the backward pass")      \
	X(np_id, op, "operator of the framework")                                         \
	X(np_id, kernels, "what it launched, \", \" between")                             \
	X(np_id, mfu, "\"39.42%,12.3%\": mean MFU by position in `kernels`, without NaN") \
	X(int64_t, total_ns, "time of the kernels, of all instances")                     \
	X(int64_t, count, "number of instances")

NP_TABLE_STRUCT(np_digest_modules, NP_DIGEST_MODULES_COLUMNS);
extern const struct np_table_desc np_digest_modules_desc;
/* the same with MFU: another table of the digest, the part of operator_mfu fills it */
extern const struct np_table_desc np_digest_module_mfu_desc;

enum { NP_MODULES_LOAD = NP_LAUNCHES_LOAD | NP_MSTX };

/*
 * Fill `rows` (described by `desc`, one of the two above) from the job's profile,
 * which has NP_MODULES_LOAD. `mfu`: one value per launch, NaN where there is none; or
 * NULL. Errors: E_NOMEM.
 */
enum np_status np_modules_map(const struct np_map_job *job, const struct np_launches *launches,
                              const double *mfu, const struct np_table_desc *desc,
                              struct np_err *err);

/* What to tell of ranks without modules. */
#define NP_MODULES_ABSENT                                                                          \
	NP_N("no rank has ranges of mstx in the domain \"Module\" around operators that launched " \
	     "something")
#define NP_MODULES_LACKING NP_N("ranges of mstx in the domain \"Module\"")

/* Fills np_digest_modules without MFU. */
extern const struct np_part np_part_modules;

#endif
