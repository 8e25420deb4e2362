/*
 * What runs inside the user's process, as this program carries it: the Python
 * package and the library for LD_PRELOAD (docs/formats/inject.md). Static memory.
 */
#ifndef NP_COLLECT_INJECT_FILES_H
#define NP_COLLECT_INJECT_FILES_H

#include "base/err.h"
#include "base/str.h"

#define NP_INJECT_LIBRARY_NAME "libnpuprof_collectives.so"

struct np_inject_file {
	const char *name; /* relative: "npuprof_inject/hook.py" */
	np_str bytes;
};

size_t np_inject_n_files(void);
struct np_inject_file np_inject_file(size_t i);

/* Write all of them below `dir`, which is made. E_EXISTS when one is there already. */
enum np_status np_inject_unpack(const char *dir, struct np_err *err);

#endif
