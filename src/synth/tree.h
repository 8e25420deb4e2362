/* What happens to a whole directory: times for its files, and its removal. */
#ifndef NP_SYNTH_TREE_H
#define NP_SYNTH_TREE_H

#include "base/err.h"
#include "base/time.h"

/* Set the modification time of all files and directories below and at `path`.
 * Symbolic links are left alone. */
enum np_status np_tree_touch(const char *path, np_ns mtime_ns, struct np_err *err);

/* rm -r; links are removed, not followed. */
enum np_status np_tree_remove(const char *path, struct np_err *err);

#endif
