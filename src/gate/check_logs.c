/*
 * Signs in the parsers' logs. They only ever add to what the files say (R108):
 * a log without complaints proves nothing.
 */
#include <string.h>

#include "base/fs.h"
#include "gate/context.h"
#include "gate/log_signs.h"
#include "report/lang.h"

enum { LOG_MAX_BYTES = 64 << 20 };

static void tell_sign(struct np_gate *gate, const char *path, const struct np_log_sign *sign,
                      np_str line)
{
	struct np_finding *finding =
		np_report_finding(gate->report, sign->fatal ? "RUN_FAILED" : "LOG_WARNING",
	                          sign->fatal ? NP_ERROR : NP_WARNING, "%s", sign->meaning);
	np_finding_evidence(finding, path, NULL, NULL, "%.*s",
	                    (int)(line.len < 200 ? line.len : 200), line.ptr);
	if (sign->fatal)
		np_finding_advice(finding, "%s", np_log_fatal_advice);
	else if (sign->advice)
		np_finding_advice(finding, "%s", sign->advice);
	if (sign->command)
		np_finding_command(finding, "%s", sign->command);
}

static void scan_log(struct np_gate *gate, struct np_check_result *out, const char *path)
{
	struct np_arena arena;
	np_arena_init(&arena);
	np_str text = {NULL, 0};
	struct np_err err = {0};
	const char *shown = np_gate_short_path(gate, path);
	if (np_file_slurp(&arena, path, LOG_MAX_BYTES, &text, &err) != NP_OK) {
		np_check_unknown(out, "%s: %s", shown, err.msg);
		np_arena_release(&arena);
		return;
	}
	char *copy = np_arena_alloc(&arena, text.len + 1);
	if (copy && text.len)
		memcpy(copy, text.ptr, text.len);
	np_str rest = {copy, copy ? np_log_strip_ansi(copy, text.len) : 0};
	uint64_t told = 0;
	while (rest.len) {
		np_str line = np_str_cut(rest, '\n', &rest);
		size_t which = np_log_sign_of(line);
		if (which == np_log_n_signs())
			continue;
		const struct np_log_sign *sign = np_log_sign(which);
		gate->run_failed |= strcmp(sign->text, "run failed") == 0;
		if (sign->fatal)
			np_check_fail(out, "%s: %s", shown, sign->text);
		else
			np_check_pass(out, "%s: %s", shown, sign->text);
		if (!(told & (UINT64_C(1) << which)))
			tell_sign(gate, path, sign, np_str_trim(line));
		told |= UINT64_C(1) << which;
	}
	if (!told)
		np_check_pass(out, "%s", shown);
	np_arena_release(&arena);
}

static bool belongs_to_capture(const struct np_gate *gate, const char *path)
{
	for (size_t c = 0; c < gate->all->captures.n; c++)
		for (size_t i = 0; i < gate->all->captures.v[c]->files.n; i++)
			if (strcmp(gate->all->captures.v[c]->files.v[i].path, path) == 0)
				return true;
	return false;
}

static void scan_logs_in(struct np_gate *gate, struct np_check_result *out, const char *where)
{
	struct np_dir dir;
	if (np_dir_list(&gate->report->arena, where, &dir, NULL) != NP_OK)
		return; /* a single file */
	for (size_t i = 0; i < dir.n; i++) {
		if (dir.v[i].kind != NP_FILE_REG ||
		    !np_str_ends(np_str_of(dir.v[i].name), NP_STR(".log")))
			continue;
		const char *path = np_path_join(&gate->report->arena, where, dir.v[i].name);
		gate->oom |= !path;
		if (path && !belongs_to_capture(gate, path))
			scan_log(gate, out, path);
	}
}

static bool is_below(const char *path, const char *dir, size_t len)
{
	return strncmp(path, dir, len) == 0 && path[len] == '/';
}

/* Was the directory path[0 … len) on the way to an earlier capture, too? */
static bool was_scanned(const struct np_gate *gate, size_t captures, const char *path, size_t len)
{
	for (size_t i = 0; i < captures; i++)
		if (np_gate_counts(gate->all->captures.v[i]) &&
		    is_below(gate->all->captures.v[i]->path, path, len))
			return true;
	return false;
}

/* What the job itself printed lies above its captures: RES/log_0.log beside RES/prof (R61). From
 * the root that was asked for down to each capture that counts. */
static void scan_logs_above(struct np_gate *gate, struct np_check_result *out)
{
	const char *root = gate->all->root;
	size_t from = strlen(root);
	scan_logs_in(gate, out, root);
	for (size_t c = 0; c < gate->all->captures.n; c++) {
		const char *path = gate->all->captures.v[c]->path;
		if (!np_gate_counts(gate->all->captures.v[c]) || !is_below(path, root, from))
			continue;
		for (size_t at = from + 1; path[at]; at++) {
			if (path[at] != '/' || was_scanned(gate, c, path, at))
				continue;
			const char *dir =
				np_arena_printf(&gate->report->arena, "%.*s", (int)at, path);
			gate->oom |= !dir;
			if (dir)
				scan_logs_in(gate, out, dir);
		}
	}
}

void np_check_logs(struct np_gate *gate, struct np_check_result *out)
{
	for (size_t c = 0; c < gate->all->captures.n; c++) {
		const struct np_capture *capture = gate->all->captures.v[c];
		for (size_t i = 0; np_gate_counts(capture) && i < capture->files.n; i++)
			if (capture->files.v[i].role == NP_ROLE_LOG)
				scan_log(gate, out, capture->files.v[i].path);
	}
	scan_logs_above(gate, out);
	if (out->verdict == NP_VERDICT_NONE)
		np_check_pass(out, "there are no log files");
}
