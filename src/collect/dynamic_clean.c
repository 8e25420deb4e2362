#include "collect/dynamic_clean.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/dynamic_log.h"
#include "collect/dynamic_shm.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"file", "", NP_COL_TEXT, "shared memory or log"},
	{"size_bytes", "bytes", NP_COL_BYTES, "its size"},
	{"age_s", "s", NP_COL_REAL, "since its last change"},
	{"done", "", NP_COL_TEXT, "removed, would be removed, kept or failed"},
	{"why", "", NP_COL_TEXT, "of it"},
};

struct cleaning {
	const struct np_dyn_clean_options *options;
	struct np_report *report;
	struct np_table *table;
};

static void handle(struct cleaning *self, const char *path, uint64_t size_bytes, double age_seconds,
                   bool remove, const char *why)
{
	const char *done = NP_N("kept");
	int failed = 0;
	if (remove && self->options->dry_run)
		done = NP_N("would be removed");
	else if (remove && unlink(path) == 0)
		done = NP_N("removed");
	else if (remove && (failed = errno) != 0)
		done = NP_N("failed");
	np_cell_cstr(self->table, path);
	np_cell_int(self->table, (int64_t)size_bytes);
	np_cell_real(self->table, age_seconds);
	np_cell_word(self->table, done);
	np_cell_word(self->table, why);
	if (!failed)
		return;
	struct np_finding *finding = np_report_finding(self->report, "DYN_CLEAN_FAILED", NP_ERROR,
	                                               "a file could not be removed");
	np_finding_evidence(finding, path, NULL, NULL, "%s", strerror(failed));
	np_finding_command(finding, "sudo rm %s", np_shell_quote(self->report, path));
	self->report->exit_code = 4;
}

static void clean_shm(struct cleaning *self, const struct np_dyn_shm *shm)
{
	bool force = self->options->force;
	bool ours = shm->uid == geteuid();
	const char *why = NP_N("no process uses it");
	if (shm->n_users)
		why = NP_N("in use");
	else if (!ours)
		why = NP_N("of another user");
	else if (shm->unknown_users)
		why = NP_N("whether a process uses it cannot be told");
	bool stale = shm->n_users == 0 && ours && !shm->unknown_users;
	handle(self, shm->path, shm->size_bytes, shm->age_seconds, stale || force, why);
}

static void clean_log(struct cleaning *self, const char *dir, const char *name)
{
	enum { DAY = 86400 };
	struct np_file_stat st;
	struct np_dyn_log log;
	np_str text = np_str_of(name);
	if (np_str_ends(text, NP_STR(".1")))
		text.len -= 2;
	const char *base = np_arena_cstr(&self->report->arena, text);
	const char *path = np_path_join(&self->report->arena, dir, name);
	if (!base || !path || !np_dyn_log_name(&self->report->arena, base, &log) ||
	    np_file_stat(path, false, &st, NULL) != NP_OK || st.kind != NP_FILE_REG)
		return;
	double age = (double)(np_time_now() - st.mtime_ns) / 1e9;
	bool dead = np_dyn_log_is_dead(&log), old = age > DAY;
	handle(self, path, st.size_bytes, age, dead || old || self->options->force,
	       dead  ? NP_N("its process is gone")
	       : old ? NP_N("untouched for a day")
	             : NP_N("its process may be running"));
}

static enum np_status clean_logs(struct cleaning *self, const char *dir, struct np_err *err)
{
	struct np_dir entries = {0};
	const char *logs = np_path_join(&self->report->arena, dir, "log");
	if (!logs)
		return np_err_nomem(err);
	if (np_dir_list(&self->report->arena, logs, &entries, NULL) == NP_E_NOMEM)
		return np_err_nomem(err);
	for (size_t i = 0; i < entries.n; i++)
		clean_log(self, logs, entries.v[i].name);
	return NP_OK;
}

enum np_status np_dyn_clean(const char *dir, const struct np_dyn_clean_options *options,
                            struct np_report *report, struct np_err *err)
{
	struct np_dyn_shms all;
	struct np_file_stat st;
	const char *shm_dir = np_dyn_shm_dir(options->shm_dir);
	NP_TRY(np_file_stat(dir, true, &st, err));
	if (st.kind != NP_FILE_DIR)
		return np_err_set(err, NP_E_NOTFOUND, dir, "no such directory");
	struct cleaning self = {options, report,
	                        NP_REPORT_TABLE(report, "files", "Left behind", columns)};
	np_report_input(report, dir);
	enum np_status status = np_dyn_shm_list(&report->arena, shm_dir, dir, &all, err);
	for (size_t i = 0; status == NP_OK && i < all.v.n; i++)
		clean_shm(&self, &all.v.v[i]);
	np_dyn_shm_release(&all);
	NP_TRY(status);
	if (options->logs)
		NP_TRY(clean_logs(&self, dir, err));
	if (np_table_rows(self.table) == 0)
		np_report_note(report, "nothing was left behind in %s and %s", shm_dir, dir);
	return np_report_ok(report, err);
}
