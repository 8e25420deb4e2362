/*
 * msprof's matrix has a row per operator and link, torch's a few per kind of operator: this
 * makes the ones of the others (cluster_and_advisor.md §2.3, "msprof input adaptation").
 */
#ifndef NP_CLUSTER_COMM_KINDS_H
#define NP_CLUSTER_COMM_KINDS_H

#include "cluster/parts.h"

/* Is it a kind ("allreduce-top1", "send-total"), not an operator? */
bool np_comm_is_kind(np_str text);

/* What the name says: "allreduce", "reduce" (also of reduceScatter), "send" … */
np_str np_comm_kind_of(np_str op, struct np_buf *lower);

/*
 * The rows whose `kind` is an operator, as kinds: of each kind, group and link the fastest
 * (-top1), the middle, the slowest three (-bottom1 … -bottom3), and the sum (-total).
 * false: out of memory.
 */
bool np_comm_kinds_add(const struct np_comm_matrix *from, const struct np_intern *strings,
                       struct np_digest *digest, struct np_digest_comm_matrix *to);

#endif
