#include "collect/dynamic_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *np_dyn_shm_dir(const char *given)
{
	const char *env = getenv("NPUPROF_SHM_DIR");
	return given ? given : env && *env ? env : "/dev/shm";
}

void np_dyn_shm_release(struct np_dyn_shms *self)
{
	np_vec_release(&self->v);
}

static bool is_this_hour(const char *name)
{
	char hour[16];
	time_t now = time(NULL);
	struct tm local;
	return localtime_r(&now, &local) && strftime(hour, sizeof hour, "%Y%m%d%H", &local) &&
	       strcmp(name + sizeof NP_DYN_SHM_PREFIX - 1, hour) == 0;
}

static enum np_status list_dir(struct np_arena *arena, const char *dir, struct np_dyn_shms *out,
                               struct np_err *err)
{
	struct np_dir entries = {0};
	struct np_err mine;
	enum np_status status = np_dir_list(arena, dir, &entries, &mine);
	if (status == NP_E_NOTFOUND)
		return NP_OK;
	if (status != NP_OK)
		return np_err_set(err, status, mine.where, "%s", mine.msg);
	for (size_t i = 0; i < entries.n; i++) {
		struct stat st;
		struct np_dyn_shm shm = {.path = np_path_join(arena, dir, entries.v[i].name)};
		if (!np_str_starts(np_str_of(entries.v[i].name), NP_STR(NP_DYN_SHM_PREFIX)))
			continue;
		if (!shm.path)
			return np_err_nomem(err);
		if (lstat(shm.path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		shm.mtime_ns = (np_ns)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		shm.age_seconds = (double)(np_time_now() - shm.mtime_ns) / 1e9;
		shm.uid = st.st_uid;
		shm.size_bytes = (uint64_t)st.st_size;
		shm.inode = st.st_ino;
		shm.this_hour = is_this_hour(entries.v[i].name);
		if (!np_vec_push(&out->v, shm))
			return np_err_nomem(err);
	}
	return NP_OK;
}

/* A line of /proc/PID/maps: is it one of the files? By inode and name: a container may see
 * the same file below another path. */
static struct np_dyn_shm *mapped(struct np_dyn_shms *all, const char *line)
{
	const char *name = strstr(line, NP_DYN_SHM_PREFIX);
	unsigned long long inode = 0;
	if (!name || sscanf(line, "%*s %*s %*s %*s %llu", &inode) != 1)
		return NULL;
	size_t len = strcspn(name, " \n");
	for (size_t i = 0; i < all->v.n; i++) {
		np_str base = np_path_base(all->v.v[i].path);
		if (all->v.v[i].inode == inode && np_str_eq(base, (np_str){name, len}))
			return &all->v.v[i];
	}
	return NULL;
}

static void count_user(struct np_dyn_shm *shm, int pid)
{
	if (shm->last_pid == pid) /* mapped twice */
		return;
	if (shm->n_users < NP_DYN_SHM_PIDS)
		shm->pids[shm->n_users] = pid;
	shm->last_pid = pid;
	shm->n_users++;
}

/* Does its command line name Python, as that of every job does? Readable for everyone. */
static bool may_be_job(const char *process)
{
	char path[64], text[4096];
	(void)snprintf(path, sizeof path, "%s/cmdline", process);
	FILE *file = fopen(path, "re");
	if (!file)
		return errno != ENOENT && errno != ESRCH;
	size_t got = fread(text, 1, sizeof text, file);
	(void)fclose(file);
	return np_str_icontains((np_str){text, got}, NP_STR("python"));
}

/* A job that cannot be looked into may have what belongs to its user. */
static void is_closed(struct np_dyn_shms *all, const char *process)
{
	struct stat st;
	bool known = stat(process, &st) == 0 && may_be_job(process);
	for (size_t i = 0; known && i < all->v.n; i++)
		if (all->v.v[i].uid == st.st_uid)
			all->v.v[i].unknown_users = true;
}

static void look_into(struct np_dyn_shms *all, int pid)
{
	char process[32], path[64], line[4608];
	(void)snprintf(process, sizeof process, "/proc/%d", pid);
	(void)snprintf(path, sizeof path, "%s/maps", process);
	FILE *maps = fopen(path, "re");
	if (!maps) {
		if (errno != ENOENT && errno != ESRCH)
			is_closed(all, process);
		return;
	}
	while (fgets(line, sizeof line, maps)) {
		struct np_dyn_shm *shm = mapped(all, line);
		if (shm)
			count_user(shm, pid);
	}
	(void)fclose(maps);
}

static void find_users(struct np_arena *arena, struct np_dyn_shms *all)
{
	struct np_dir processes = {0};
	bool looked = np_dir_list(arena, "/proc", &processes, NULL) == NP_OK;
	for (size_t i = 0; i < processes.n; i++) {
		int64_t pid;
		if (np_str_to_i64(np_str_of(processes.v[i].name), &pid) && pid > 0 &&
		    pid < INT32_MAX)
			look_into(all, (int)pid);
	}
	for (size_t i = 0; i < all->v.n; i++) {
		struct np_dyn_shm *shm = &all->v.v[i];
		shm->unknown_users = shm->n_users == 0 && (shm->unknown_users || !looked);
	}
}

enum np_status np_dyn_shm_list(struct np_arena *arena, const char *shm_dir, const char *config_dir,
                               struct np_dyn_shms *out, struct np_err *err)
{
	*out = (struct np_dyn_shms){0};
	NP_TRY(list_dir(arena, shm_dir, out, err));
	const char *below = config_dir ? np_path_join(arena, config_dir, "shm") : NULL;
	if (config_dir && !below)
		return np_err_nomem(err);
	if (below)
		NP_TRY(list_dir(arena, below, out, err));
	if (out->v.n)
		find_users(arena, out);
	return NP_OK;
}
