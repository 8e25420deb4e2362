#include "collect/dynamic_trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "collect/dynamic_check.h"
#include "collect/dynamic_log.h"
#include "collect/dynamic_store.h"
#include "collect/dynamic_watch.h"
#include "report/lang.h"

#define SECOND 1000000000LL

/* ── changes ── */

void np_dyn_change_put(struct np_dyn_change *out, size_t *n, enum np_dyn_id id, const char *json)
{
	size_t i = 0;
	while (i < *n && out[i].id != id)
		i++;
	out[i] = (struct np_dyn_change){id, json};
	if (i == *n)
		++*n;
}

static const struct np_jval *parse_value(struct np_arena *arena, const char *json)
{
	struct np_input *input;
	const struct np_jval *value = NULL;
	if (np_input_open_mem(np_str_of(json), "value", 0, &input, NULL) != NP_OK)
		return NULL;
	if (np_json_parse(arena, input, NP_JSON_STRICT, &value, NULL, NULL) != NP_OK)
		value = NULL;
	np_input_close(input);
	return value;
}

/* A word without quotes where a text is wanted: profiler_level=Level1, export_type=db. */
static const char *quoted(struct np_arena *arena, enum np_dyn_kind kind, const char *word)
{
	struct np_buf text = {0};
	bool list = kind == NP_DYN_WORDS || kind == NP_DYN_WORD_OR_WORDS || kind == NP_DYN_TEXTS;
	np_str rest = np_str_of(word);
	if (list)
		np_buf_add_char(&text, '[');
	for (bool first = true; list && rest.len; first = false) {
		np_str part = np_str_cut(rest, ',', &rest);
		np_buf_add_cstr(&text, first ? "" : ", ");
		np_json_quote(&text, np_str_trim(part));
	}
	if (list)
		np_buf_add_char(&text, ']');
	else
		np_json_quote(&text, rest);
	const char *copy = text.failed ? NULL : np_arena_cstr(arena, np_buf_str(&text));
	np_buf_release(&text);
	return copy;
}

static bool takes_words(enum np_dyn_kind kind)
{
	return kind == NP_DYN_TEXT || kind == NP_DYN_WORD || kind == NP_DYN_WORDS ||
	       kind == NP_DYN_WORD_OR_WORDS || kind == NP_DYN_TEXTS;
}

enum np_status np_dyn_change_parse(struct np_arena *arena, const char *text,
                                   struct np_dyn_change *out, struct np_err *err)
{
	np_str value, key = np_str_cut(np_str_of(text), '=', &value);
	np_str prefix = NP_STR("experimental_config.");
	bool inside = np_str_starts(key, prefix);
	if (inside)
		key = np_str_from(key, prefix.len);
	enum np_dyn_id id = np_dyn_field_find(key, true);
	if (id == NP_DYN_N_FIELDS && !inside)
		id = np_dyn_field_find(key, false);
	if (id == NP_DYN_N_FIELDS || id == NP_DYN_EXPERIMENTAL || !strchr(text, '=')) {
		enum np_dyn_id near = np_dyn_field_near(key);
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--set wants KEY=VALUE with a key of profiler_config.json, got "
		                  "'%s'%s%s",
		                  text, near < NP_DYN_N_FIELDS ? "; there is " : "",
		                  near < NP_DYN_N_FIELDS ? np_dyn_fields[near].key : "");
	}
	const struct np_dyn_field *field = &np_dyn_fields[id];
	const char *json = np_arena_cstr(arena, np_str_trim(value));
	const struct np_jval *parsed = json ? parse_value(arena, json) : NULL;
	if (json && takes_words(field->kind) && (!parsed || !np_dyn_accepts(field, parsed))) {
		const char *words = quoted(arena, field->kind, json);
		const struct np_jval *again = words ? parse_value(arena, words) : NULL;
		if (again && np_dyn_accepts(field, again)) {
			json = words;
			parsed = again;
		}
	}
	if (!parsed || !np_dyn_accepts(field, parsed))
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "%s does not take '%.*s': torch_npu would take %s instead",
		                  field->key, NP_FMT(value), field->instead);
	*out = (struct np_dyn_change){id, json};
	return NP_OK;
}

void np_dyn_change_preset(struct np_dyn_change *out, size_t *n, enum np_dyn_purpose purpose)
{
	static const enum np_dyn_id ids[] = {
		NP_DYN_ACTIVITIES, NP_DYN_ANALYSE, NP_DYN_ASYNC_MODE, NP_DYN_RECORD_SHAPES,
		NP_DYN_LEVEL,      NP_DYN_METRICS, NP_DYN_OP_ATTR,    NP_DYN_EXPORT,
	};
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
		np_dyn_change_put(out, n, ids[i], np_dyn_preset(ids[i], purpose));
}

enum np_status np_dyn_change_ranks(struct np_arena *arena, const char *ranks,
                                   struct np_dyn_change *out, size_t *n, struct np_err *err)
{
	int64_t *list;
	size_t count;
	struct np_buf text = {0};
	if (strcmp(ranks, "all") == 0) {
		np_dyn_change_put(out, n, NP_DYN_IS_RANK, "false");
		return NP_OK;
	}
	/* here one number is that rank, not so many */
	const char *as_list = np_arena_printf(arena, "%s,", ranks);
	if (!as_list)
		return np_err_nomem(err);
	NP_TRY(np_dyn_ranks_parse(as_list, &list, &count, err));
	for (size_t i = 0; i < count; i++)
		np_buf_printf(&text, "%s%lld", i ? ", " : "[", (long long)list[i]);
	np_buf_add_char(&text, ']');
	np_free(list);
	const char *json = text.failed ? NULL : np_arena_cstr(arena, np_buf_str(&text));
	np_buf_release(&text);
	if (!json)
		return np_err_nomem(err);
	np_dyn_change_put(out, n, NP_DYN_IS_RANK, "true");
	np_dyn_change_put(out, n, NP_DYN_RANK_LIST, json);
	return NP_OK;
}

/* ── init ── */

static enum np_status write_new(const char *path, np_str text, struct np_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0 && errno == EEXIST)
		return np_err_set(err, NP_E_EXISTS, path,
		                  "is there already, and stays as it is (npuprof dynamic check)");
	if (fd < 0)
		return np_err_sys(err, errno, path, "create");
	ssize_t put = write(fd, text.ptr, text.len);
	int failed = put < 0 ? errno : (size_t)put != text.len ? ENOSPC : 0;
	if (!failed && fsync(fd) != 0)
		failed = errno;
	if (close(fd) != 0 && !failed)
		failed = errno;
	if (!failed)
		return NP_OK;
	(void)unlink(path);
	return np_err_sys(err, failed, path, "write");
}

static void tell_use(struct np_report *report, const char *dir)
{
	char real[PATH_MAX];
	const char *shown = np_shell_quote(report, realpath(dir, real) ? real : dir);
	np_report_note(report,
	               "without a change of code (training, torch's own Optimizer.step(), never "
	               "step 0), on every host before the job starts:  export PROF_CONFIG_PATH=%s",
	               shown);
	np_report_note(report,
	               "inference, or steps of one's own:  from torch_npu.profiler import "
	               "dynamic_profile as dp;  dp.init(\"%s\");  dp.step() at the end of every "
	               "iteration",
	               shown);
	np_report_note(report,
	               "one fragment of code only: besides, dp.start(\"FILE\") before it, with a "
	               "complete configuration of its own");
	np_report_note(report,
	               "then, while the job runs:  npuprof dynamic trigger %s && npuprof "
	               "dynamic watch %s",
	               shown, shown);
}

enum np_status np_dyn_init(const char *dir, enum np_dyn_purpose purpose,
                           const struct np_dyn_change *changes, size_t n, struct np_report *report,
                           struct np_err *err)
{
	static const struct np_column columns[] = {
		{"file", "", NP_COL_TEXT, "the configuration"},
		{"profile", "", NP_COL_TEXT, "what it is for"},
	};
	const char *values[NP_DYN_N_FIELDS] = {[NP_DYN_START_STEP] = "0"};
	struct np_buf text = {0};
	const char *path = np_path_join(&report->arena, dir, NP_DYN_FILE_NAME);
	if (!path)
		return np_err_nomem(err);
	for (size_t i = 0; i < n; i++)
		values[changes[i].id] = changes[i].json;
	np_dyn_template(&text, purpose, values);
	enum np_status status = text.failed ? np_err_nomem(err) : np_mkdirs(dir, err);
	if (status == NP_OK)
		status = write_new(path, np_buf_str(&text), err);
	np_buf_release(&text);
	NP_TRY(status);
	struct np_table *table = NP_REPORT_TABLE(report, "written", "Written", columns);
	np_cell_cstr(table, path);
	np_cell_cstr(table, np_dyn_purpose_name(purpose));
	tell_use(report, dir);
	return NP_OK;
}

/* ── trigger ── */

struct wish {
	const char *path;
	const struct np_dyn_change *changes;
	size_t n;
	bool strip;
};

static enum np_status transform(void *context, np_str old, struct np_buf *out, struct np_err *err)
{
	const struct wish *wish = context;
	struct np_buf plain = {0};
	if (!wish->strip)
		return np_dyn_text_edit(old, wish->path, wish->changes, wish->n, out, err);
	np_dyn_strip_comments(old, &plain);
	enum np_status status = plain.failed ? np_err_nomem(err)
	                                     : np_dyn_text_edit(np_buf_str(&plain), wish->path,
	                                                        wish->changes, wish->n, out, err);
	np_buf_release(&plain);
	return status;
}

static void value_cell(struct np_table *table, np_str text, enum np_dyn_id id)
{
	struct np_arena arena;
	struct np_dyn_text doc;
	np_arena_init(&arena);
	if (np_dyn_text_read(&arena, text, "", false, &doc, NULL) == NP_OK) {
		const struct np_dyn_member *member = np_dyn_member(&doc, id);
		if (member)
			np_cell_text(table,
			             np_str_sub(text, member->begin, member->end - member->begin));
		else
			np_cell_na(table);
		np_dyn_text_release(&doc);
	} else {
		np_cell_na(table);
	}
	np_arena_release(&arena);
}

static void tell_changes(struct np_report *report, const struct wish *wish,
                         const struct np_dyn_rewrite *done)
{
	static const struct np_column columns[] = {
		{"key", "", NP_COL_TEXT, "of profiler_config.json"},
		{"old", "", NP_COL_TEXT, "its text"},
		{"new", "", NP_COL_TEXT, "its text"},
	};
	struct np_table *table = NP_REPORT_TABLE(report, "changes", "Changes", columns);
	for (size_t i = 0; i < wish->n; i++) {
		np_cell_printf(table, "%s%s",
		               np_dyn_fields[wish->changes[i].id].inside ? "experimental_config."
		                                                         : "",
		               np_dyn_fields[wish->changes[i].id].key);
		value_cell(table, np_buf_str(&done->old_text), wish->changes[i].id);
		value_cell(table, np_buf_str(&done->new_text), wish->changes[i].id);
	}
}

/* ── the difference, by lines ── */

static np_str cut_line(np_str *text)
{
	np_str rest, line = np_str_cut(*text, '\n', &rest);
	*text = rest;
	return line;
}

/* After how many lines of `in` `line` comes; `limit` when not before. */
static size_t lines_until(np_str in, np_str line, size_t limit)
{
	size_t n = 0;
	while (n < limit && in.len && !np_str_eq(cut_line(&in), line))
		n++;
	return in.len || n == 0 ? n : limit;
}

static void diff_row(struct np_table *table, const char *sign, np_str line)
{
	np_cell_cstr(table, sign);
	np_cell_text(table, line);
}

static void tell_diff(struct np_report *report, np_str old, np_str new)
{
	enum { AHEAD = 40 };
	static const struct np_column columns[] = {
		{"change", "", NP_COL_TEXT, "- removed, + added"},
		{"text", "", NP_COL_TEXT, "line of profiler_config.json"},
	};
	struct np_table *table = NP_REPORT_TABLE(report, "diff", "Difference", columns);
	while (old.len || new.len) {
		np_str a_rest = old, b_rest = new;
		np_str a = cut_line(&a_rest), b = cut_line(&b_rest);
		if (old.len && new.len && np_str_eq(a, b)) {
			old = a_rest;
			new = b_rest;
			continue;
		}
		/* of two ways to meet again the shorter one */
		size_t added = new.len ? lines_until(b_rest, a, AHEAD) : AHEAD;
		size_t removed = old.len ? lines_until(a_rest, b, AHEAD) : AHEAD;
		if (old.len && (removed <= added || new.len == 0)) {
			diff_row(table, "-", a);
			old = a_rest;
		}
		if (new.len && (added <= removed || old.len == 0)) {
			diff_row(table, "+", b);
			new = b_rest;
		}
	}
}

/* ── what the user should know ── */

static void tell_running(struct np_report *report, const char *dir, struct np_err *err)
{
	struct np_dyn_logs logs;
	size_t running = 0, jobs = 0;
	if (np_dyn_logs_read(&report->arena, dir, 0, NULL, &logs, err) != NP_OK)
		return;
	const struct np_dyn_log *first = NULL;
	for (size_t i = 0; i < logs.v.n; i++) {
		const struct np_dyn_log *log = &logs.v.v[i];
		if (log->is_monitor || np_dyn_log_is_dead(log) ||
		    np_dyn_log_of(&logs, log->rank) != log)
			continue;
		jobs++;
		if (log->state != NP_DYN_RECORDING)
			continue;
		first = running++ ? first : log;
	}
	if (first) {
		struct np_finding *finding = np_report_finding(
			report, "DYN_CAPTURE_RUNNING", NP_WARNING,
			"%zu ranks seem to be recording: the last change is taken when they have "
			"finished",
			running);
		np_finding_evidence(finding, first->path, NULL, NULL,
		                    "Start Dynamic Profiler at "
		                    "%lld step, no stop",
		                    (long long)first->start_step);
		np_finding_detail(finding,
		                  "Of several changes meanwhile only the last one counts, and "
		                  "its start_step must still be to come then (R73).");
	}
	if (jobs == 0)
		np_report_note(report,
		               "no process has a log in %s/log yet: if none uses this directory, "
		               "nothing will happen",
		               dir);
	np_dyn_logs_release(&logs);
}

static void tell_written(struct np_report *report, const struct wish *wish, const char *dir,
                         const struct np_dyn_rewrite *done)
{
	char when[32];
	np_ns now = np_time_now();
	struct np_finding *finding;
	np_ns_format_date(when, sizeof when, done->mtime_after);
	np_report_note(report, "written in place: inode %llu, mtime %s UTC",
	               (unsigned long long)done->inode, when);
	if (!done->leased)
		np_report_note(
			report,
			"the file system has no leases: a reader may have seen the text while "
			"it was replaced");
	for (size_t i = 0; i < wish->n; i++)
		if (wish->changes[i].id == NP_DYN_START_STEP &&
		    strcmp(wish->changes[i].json, "-1") == 0)
			np_report_note(report,
			               "start_step -1 is the next step after a rank has seen it, "
			               "so it is never over; ranks of several hosts may start some "
			               "steps apart (--start-step N, far enough ahead, does not)");
	if (done->overwritten) {
		finding = np_report_finding(report, "DYN_OVERWRITTEN", NP_ERROR,
		                            "somebody else wrote the file right after us");
		np_finding_evidence(finding, wish->path, NULL, NULL, "%s",
		                    np_tr(NP_N("it does not hold what was written")));
		np_finding_advice(finding, "close other editors, look at the file, trigger again");
		report->exit_code = 1;
	}
	if (done->mtime_after / SECOND > now / SECOND + 1 ||
	    done->mtime_after / SECOND <= done->mtime_before / SECOND) {
		finding = np_report_finding(report, "DYN_MTIME_SKEW", NP_ERROR,
		                            "the file system's clock is not ours: ranks may ignore "
		                            "the change");
		np_finding_evidence(finding, wish->path, NULL, NULL, "mtime %s UTC, %+.1f s", when,
		                    (double)(done->mtime_after - now) / 1e9);
		np_finding_advice(finding,
		                  "trigger on the host that has the file, or set the clocks "
		                  "right");
		report->exit_code = 1;
	}
	np_report_note(report, "next:  npuprof dynamic watch %s", np_shell_quote(report, dir));
}

/* Findings of a text that cannot be edited, or that would be written. true: refused. */
static bool is_refused(const struct wish *wish, np_str text, bool force, struct np_report *report,
                       struct np_err *err)
{
	const struct np_dyn_check_options none = {
		/* whether a given step is over is for `check`, which can be told the current one */
		.has_current_step = true,
		.current_step = -1,
		.no_purposes = true};
	if (np_dyn_check_text(wish->path, text, &none, report, err) != NP_OK)
		return true;
	return !force && np_report_count(report, NP_ERROR) > 0;
}

enum np_status np_dyn_trigger(const char *path, const struct np_dyn_change *changes, size_t n,
                              const struct np_dyn_trigger_options *options,
                              struct np_report *report, struct np_err *err)
{
	const char *file = np_dyn_config_path(&report->arena, path);
	const char *dir = file ? np_dyn_config_dir(&report->arena, file) : NULL;
	struct wish wish = {file, changes, n, options->strip_comments};
	struct np_dyn_rewrite trial = {.dry_run = true}, real = {0};
	if (!dir)
		return np_err_nomem(err);
	np_report_input(report, file);
	enum np_status status = np_dyn_rewrite(file, transform, &wish, &trial, err);
	bool unreadable = status == NP_E_FORMAT && trial.old_text.len > 0;
	if (status == NP_OK || unreadable) {
		np_str text = np_buf_str(unreadable ? &trial.old_text : &trial.new_text);
		bool refused = is_refused(&wish, text, options->force, report, err) || unreadable;
		status = np_report_ok(report, err);
		if (refused) {
			report->exit_code = 2;
			np_report_note(report, "nothing was written");
			np_dyn_rewrite_release(&trial);
			return status;
		}
	}
	if (status == NP_OK && options->dry_run) {
		tell_diff(report, np_buf_str(&trial.old_text), np_buf_str(&trial.new_text));
		np_report_note(report, "nothing was written (--dry-run)");
	} else if (status == NP_OK) {
		status = np_dyn_rewrite(file, transform, &wish, &real, err);
		if (status == NP_OK) {
			tell_changes(report, &wish, &real);
			tell_written(report, &wish, dir, &real);
		}
	}
	if (status == NP_OK)
		tell_running(report, dir, err);
	np_dyn_rewrite_release(&trial);
	np_dyn_rewrite_release(&real);
	return status;
}
