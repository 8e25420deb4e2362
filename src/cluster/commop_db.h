/*
 * A copy of a rank's profiler database with a table COMMUNICATION_OP of the collectives
 * that its messages of mstx describe. Private to mstx2commop.
 */
#ifndef NP_CLUSTER_COMMOP_DB_H
#define NP_CLUSTER_COMMOP_DB_H

#include "cluster/parts.h"

/* `from` stays as it is; `to` appears when it is complete. Errors: those of
 * np_db_file_begin_copy(), E_FORMAT (no STRING_IDS, or ids that leave no room), E_LIMIT. */
enum np_status np_commop_db_write(const char *from, const char *to, const struct np_intern *strings,
                                  const struct np_digest_commop *rows, struct np_err *err);

#endif
