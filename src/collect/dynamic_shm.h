/*
 * The shared memory of dynamic_profile: /dev/shm/DynamicProfileNpuShm%Y%m%d%H (the local
 * hour of init), or `shm/` below the configuration's directory (Python 3.7). torch_npu.md §6.1,
 * R83. The first rank of a host creates it, writes the configuration into it by its monitor,
 * and removes it at its end; a job that is killed leaves it. A job that starts within the hour
 * of the name then finds it: older than 900 s is an error that switches dynamic profiling
 * off, a younger one is joined without a word, and no process has a monitor.
 */
#ifndef NP_COLLECT_DYNAMIC_SHM_H
#define NP_COLLECT_DYNAMIC_SHM_H

#include <sys/types.h>

#include "base/fs.h"

#define NP_DYN_SHM_PREFIX "DynamicProfileNpuShm"

enum { NP_DYN_SHM_OLD_SECONDS = 900, NP_DYN_SHM_PIDS = 8 };

struct np_dyn_shm {
	const char *path;
	np_ns mtime_ns;
	double age_seconds;
	unsigned uid;
	uint64_t size_bytes, inode;
	bool this_hour;            /* the name is that of a job which starts now */
	size_t n_users;            /* processes that have it mapped */
	int pids[NP_DYN_SHM_PIDS]; /* the first of them */
	int last_pid;              /* counted last */
	/* nobody seen, but not all Python processes of its user could be looked into */
	bool unknown_users;
};

struct np_dyn_shms {
	NP_VEC(struct np_dyn_shm) v;
};

/* The directory: `given`, else $NPUPROF_SHM_DIR, else /dev/shm. */
const char *np_dyn_shm_dir(const char *given);

/* All of them in `shm_dir` and in config_dir/shm (NULL: not looked at); names in the arena. A
 * directory that is not there has none. */
enum np_status np_dyn_shm_list(struct np_arena *arena, const char *shm_dir, const char *config_dir,
                               struct np_dyn_shms *out, struct np_err *err);
void np_dyn_shm_release(struct np_dyn_shms *self);

#endif
