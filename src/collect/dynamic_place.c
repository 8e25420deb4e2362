/* Path, owners, times, shared memory: what surrounds the configuration. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "collect/dynamic_check.h"
#include "collect/dynamic_shm.h"
#include "collect/dynamic_store.h"
#include "report/lang.h"

#define SECOND 1000000000LL

/* ── the path (R72) ── */

static const char *absolute(struct np_dyn_checking *self, const char *path)
{
	char here[PATH_MAX];
	if (path[0] == '/')
		return path;
	if (!getcwd(here, sizeof here))
		return path;
	if (strcmp(path, ".") == 0)
		return np_arena_cstr(&self->report->arena, np_str_of(here));
	return np_path_join(&self->report->arena, here, path);
}

static void check_charset(struct np_dyn_checking *self, const char *path)
{
	bool dash = strchr(path, '-') != NULL;
	char odd[8] = "";
	for (const char *c = path; *c && !*odd; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		      (*c >= '0' && *c <= '9') || strchr("_-/", *c)))
			(void)snprintf(odd, sizeof odd, "%c", *c);
	if (*odd) {
		/* a dot is outside of the documented set, too, but common: not worth a failure */
		bool dot_only = strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		                             "0123456789_-/.") == strlen(path);
		struct np_finding *finding = np_report_finding(
			self->report, "DYN_PATH_CHARSET", dot_only ? NP_WARNING : NP_ERROR,
			"the path has characters that torch_npu does not allow");
		np_finding_evidence(finding, path, NULL, NULL, "%s",
		                    (signed char)odd[0] < 0 ? NP_N("byte above 127") : odd);
		np_finding_advice(finding, "letters, digits, _ and - only: \"The path '…' is "
		                           "invalid, and profiler will not be enabled.\"");
	} else if (dash) {
		struct np_finding *finding = np_report_finding(
			self->report, "DYN_PATH_DASH", NP_INFO,
			"the path has a -, which not every manual lists as allowed");
		np_finding_evidence(finding, path, NULL, NULL, "-");
		np_finding_advice(finding, "the current guide allows it; if an older release says "
		                           "that the path is invalid, choose one without");
	}
}

static void check_links(struct np_dyn_checking *self, const char *path)
{
	char part[PATH_MAX];
	struct stat st;
	size_t len = strlen(path);
	for (size_t i = 1; i <= len && len < sizeof part; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (lstat(part, &st) != 0 || !S_ISLNK(st.st_mode))
			continue;
		struct np_finding *finding =
			np_report_finding(self->report, "DYN_PATH_SYMLINK", NP_WARNING,
		                          "a part of the path is a symbolic link");
		np_finding_evidence(finding, part, NULL, NULL, "%s", np_tr(NP_N("a link")));
		np_finding_advice(finding, "give torch_npu the path without links: dynamic_profile "
		                           "does not support them (R72)");
		np_finding_command(finding, "export PROF_CONFIG_PATH=\"$(realpath %s)\"",
		                   np_shell_quote(self->report, self->dir));
	}
}

/* ── rights and owners ── */

static void tell_access(struct np_dyn_checking *self, const char *path, const char *right,
                        const char *chmod)
{
	struct np_finding *finding = np_report_finding(self->report, "DYN_PERMISSION", NP_ERROR,
	                                               "%s: no permission to %s", path, right);
	np_finding_evidence(finding, path, NULL, NULL, "%s", strerror(EACCES));
	np_finding_command(finding, "chmod %s %s", chmod, np_shell_quote(self->report, path));
}

static void check_mode(struct np_dyn_checking *self, const char *path, const struct stat *st,
                       const char *wanted)
{
	struct np_finding *finding;
	if (st->st_mode & (S_IWGRP | S_IWOTH)) {
		finding = np_report_finding(self->report, "DYN_MODE", NP_WARNING,
		                            "others may write to it: torch_npu warns, and anyone "
		                            "can start captures");
		np_finding_evidence(finding, path, NULL, NULL, "mode %04o",
		                    (unsigned)(st->st_mode & 07777U));
		np_finding_command(finding, "chmod %s %s", wanted,
		                   np_shell_quote(self->report, path));
	}
	if (st->st_uid != geteuid()) {
		finding = np_report_finding(self->report, "DYN_OWNER", NP_WARNING,
		                            "it belongs to user %u, you are user %u",
		                            (unsigned)st->st_uid, (unsigned)geteuid());
		np_finding_evidence(finding, path, NULL, NULL, "uid %u", (unsigned)st->st_uid);
		np_finding_advice(finding,
		                  "torch_npu warns when the job's user is not the owner; user and "
		                  "container that differ are the most frequent reason");
	}
}

static void check_rights(struct np_dyn_checking *self)
{
	struct stat st;
	if (access(self->dir, R_OK | W_OK | X_OK) != 0)
		tell_access(self, self->dir, np_tr(NP_N("read and write")), "u+rwx");
	if (stat(self->dir, &st) == 0)
		check_mode(self, self->dir, &st, "0750");
	if (stat(self->path, &st) != 0)
		return;
	if (access(self->path, R_OK) != 0)
		tell_access(self, self->path, np_tr(NP_N("read")), "u+r");
	check_mode(self, self->path, &st, "0640");
}

/* ── times ── */

static void check_times(struct np_dyn_checking *self, bool asks)
{
	struct np_file_stat st;
	struct np_finding *finding;
	np_ns now = np_time_now();
	char when[32];
	if (np_file_stat(self->path, true, &st, NULL) != NP_OK || st.kind == NP_FILE_NONE)
		return;
	np_ns_format_date(when, sizeof when, st.mtime_ns);
	if (st.mtime_ns / SECOND > now / SECOND) {
		finding = np_report_finding(self->report, "DYN_MTIME_FUTURE", NP_ERROR,
		                            "the time of the file lies %.0f s in the future",
		                            (double)(st.mtime_ns - now) / 1e9);
		np_finding_evidence(finding, self->path, NULL, NULL, "mtime %s UTC", when);
		np_finding_detail(finding,
		                  "A rank that has taken it ignores every later change until "
		                  "its clock has passed that time. Two clocks differ, or a "
		                  "tool has set it.");
		np_finding_command(finding, "touch %s", np_shell_quote(self->report, self->path));
	}
	if (!self->options->has_job_start ||
	    st.mtime_ns / SECOND > self->options->job_start_ns / SECOND)
		return;
	finding = np_report_finding(self->report, "DYN_MTIME_OLD", asks ? NP_ERROR : NP_INFO,
	                            "the file was last changed before the job began: the job has "
	                            "not loaded it");
	np_finding_evidence(finding, self->path, NULL, NULL, "mtime %s UTC, job + %.0f s", when,
	                    (double)(self->options->job_start_ns - st.mtime_ns) / 1e9);
	np_finding_detail(finding, "What is there at dp.init() is taken as known; only a later "
	                           "mtime is loaded. cp -p, rsync -t, mv and git checkout bring "
	                           "old times along.");
	np_finding_command(finding, "npuprof dynamic trigger %s",
	                   np_shell_quote(self->report, self->dir));
}

/* ── prof_dir (R87, R88) ── */

const char *np_dyn_network_fs(long type)
{
	static const struct {
		unsigned long magic;
		const char *name;
	} known[] = {
		{0x6969, "NFS"},        {0x0BD00BD0, "Lustre"},   {0xFF534D42, "CIFS"},
		{0xFE534D42, "SMB"},    {0x00C36400, "Ceph"},     {0x47504653, "GPFS"},
		{0x19830326, "BeeGFS"}, {0x65735546, "FUSE"},     {0x01021997, "9P"},
		{0x5346414F, "AFS"},    {0x20030528, "OrangeFS"}, {0x013111A8, "IBRIX"},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if ((unsigned long)type == known[i].magic ||
		    ((unsigned long)type & 0xFFFFFFFFUL) == known[i].magic)
			return known[i].name;
	return NULL;
}

/* The nearest directory above that is there. */
static void existing(char *path)
{
	struct stat st;
	while (stat(path, &st) != 0) {
		char *slash = strrchr(path, '/');
		if (!slash || slash == path) {
			path[1] = '\0';
			return;
		}
		*slash = '\0';
	}
}

static void check_prof_dir_place(struct np_dyn_checking *self, const struct np_dyn_member *member,
                                 const char *dir)
{
	char base[PATH_MAX];
	struct statfs fs;
	struct stat st;
	struct np_finding *finding;
	if ((size_t)snprintf(base, sizeof base, "%s", dir) >= sizeof base)
		return;
	existing(base);
	const char *network = statfs(base, &fs) == 0 ? np_dyn_network_fs((long)fs.f_type) : NULL;
	if (network) {
		finding = np_dyn_tell(self, "DYN_PROF_DIR_SHARED", NP_WARNING, member,
		                      "prof_dir is on shared storage (%s)", network);
		np_finding_detail(finding,
		                  "Many ranks that write there at once slow each other, and "
		                  "the capture grows longer than the job's steps (R88).");
		np_finding_advice(finding, "a local directory of the same name on every host, and "
		                           "copy it afterwards");
	}
	bool is_dir = stat(base, &st) == 0 && S_ISDIR(st.st_mode);
	int failed = !is_dir ? ENOTDIR : access(base, W_OK | X_OK) != 0 ? errno : 0;
	if (failed) {
		finding = np_dyn_tell(self, "DYN_PROF_DIR_UNWRITABLE", NP_ERROR, member,
		                      "nothing can be written to prof_dir: %s", strerror(failed));
		np_finding_evidence(finding, base, NULL, NULL, "%s", strerror(failed));
		np_finding_advice(finding,
		                  "another prof_dir, or the rights for it; on the hosts of "
		                  "the job, if this is another one");
	}
}

static void check_prof_dir(struct np_dyn_checking *self)
{
	struct np_arena *arena = &self->report->arena;
	struct np_dyn_text doc;
	np_str text;
	if (np_dyn_read(arena, self->path, &text, NULL) != NP_OK ||
	    np_dyn_text_read(arena, text, self->path, false, &doc, NULL) != NP_OK)
		return; /* told already */
	// cppcheck-suppress autoVariables ; taken back below
	self->doc = &doc;
	const struct np_dyn_member *member = np_dyn_member(&doc, NP_DYN_PROF_DIR);
	np_str value = member ? np_jstr(member->value) : NP_STR("./");
	const char *dir = np_arena_cstr(arena, value);
	if (!member || member->value->type == NP_J_STRING) {
		if (value.len == 0 || value.ptr[0] != '/') {
			struct np_finding *finding =
				np_dyn_tell(self, "DYN_PROF_DIR_RELATIVE", NP_WARNING, member,
			                    "prof_dir is relative: to where the job was started, "
			                    "not to this file");
			np_finding_detail(finding,
			                  "Looking below the configuration finds nothing, and "
			                  "ranks of several hosts may write to several places "
			                  "(R87).");
			np_finding_advice(finding, "an absolute path: npuprof dynamic trigger DIR "
			                           "--prof-dir /path");
		} else if (dir) {
			check_prof_dir_place(self, member, dir);
		}
	}
	bool asks = np_dyn_int(&doc, NP_DYN_START_STEP) != 0;
	check_times(self, asks);
	self->doc = NULL;
	np_dyn_text_release(&doc);
}

/* ── shared memory (R83) ── */

static void tell_left(struct np_dyn_checking *self, const struct np_dyn_shm *shm)
{
	bool old = shm->age_seconds >= NP_DYN_SHM_OLD_SECONDS;
	struct np_finding *finding;
	if (!shm->this_hour)
		finding = np_report_finding(self->report, "DYN_SHM_LEFT", NP_INFO,
		                            "a killed job left its shared memory, of another hour");
	else if (old)
		finding =
			np_report_finding(self->report, "DYN_SHM_STALE", NP_ERROR,
		                          "shared memory of a killed job: a job that starts within "
		                          "this hour has no dynamic profiling");
	else
		finding = np_report_finding(self->report, "DYN_SHM_STALE", NP_ERROR,
		                            "shared memory of a killed job: a job that starts now "
		                            "joins it and is never triggered");
	np_finding_evidence(finding, shm->path, NULL, NULL, "%.0f s old, no process has it mapped",
	                    shm->age_seconds);
	if (shm->this_hour)
		np_finding_detail(
			finding,
			old ? "The name holds the hour. Older than 900 s, it is an error "
			      "at dp.init(): \"There may exist shared memory before this "
			      "task\"."
			    : "The name holds the hour. Younger than 900 s, it is joined "
			      "without a word, but the monitor that would write to it died "
			      "with its job.");
	np_finding_command(finding, "npuprof dynamic clean %s",
	                   np_shell_quote(self->report, self->dir));
}

static void tell_used(struct np_dyn_checking *self, const struct np_dyn_shm *shm)
{
	struct np_finding *finding =
		np_report_finding(self->report, "DYN_SHM_USED", NP_INFO,
	                          "%zu processes use dynamic profiling on this host", shm->n_users);
	np_finding_evidence(finding, shm->path, NULL, NULL, "pid %d%s", shm->pids[0],
	                    shm->n_users > 1 ? ", …" : "");
	np_finding_detail(finding, "A second job that starts here within the hour of this name "
	                           "shares it: an edit for one triggers both.");
}

static enum np_status check_shm(struct np_dyn_checking *self)
{
	struct np_dyn_shms all;
	size_t used = 0;
	const char *dir = np_dyn_shm_dir(self->options->shm_dir);
	struct np_err err;
	enum np_status status = np_dyn_shm_list(&self->report->arena, dir, self->dir, &all, &err);
	if (status == NP_E_NOMEM)
		return np_err_nomem(self->err);
	for (size_t i = 0; i < all.v.n; i++) {
		const struct np_dyn_shm *shm = &all.v.v[i];
		used += shm->n_users > 0;
		if (shm->n_users)
			tell_used(self, shm);
		else if (!shm->unknown_users)
			tell_left(self, shm);
	}
	for (size_t i = 0; i < all.v.n; i++)
		if (all.v.v[i].unknown_users || status != NP_OK) {
			np_report_note(self->report,
			               "%s: whether a process uses it cannot be told; look as the "
			               "job's user",
			               all.v.v[i].path);
			self->unknown = true;
		}
	if (used > 1) {
		struct np_finding *finding =
			np_report_finding(self->report, "DYN_SHM_SPLIT", NP_WARNING,
		                          "%zu shared memories are in use at once", used);
		np_finding_evidence(finding, dir, NULL, NULL, NP_DYN_SHM_PREFIX "*");
		np_finding_detail(finding,
		                  "Two jobs; or one whose ranks started on both sides of a "
		                  "full hour: then the late ones have no monitor and are "
		                  "never triggered.");
		np_finding_advice(finding,
		                  "if it is one job, start it again, away from the full hour");
	}
	np_dyn_shm_release(&all);
	return NP_OK;
}

enum np_status np_dyn_check_place(struct np_dyn_checking *self)
{
	const char *path = absolute(self, self->path);
	if (!path)
		return np_err_nomem(self->err);
	const char *dir = np_dyn_config_dir(&self->report->arena, path);
	if (dir)
		check_charset(self, dir);
	check_links(self, path);
	check_rights(self);
	check_prof_dir(self);
	return check_shm(self);
}
