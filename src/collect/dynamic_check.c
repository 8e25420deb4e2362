#include "collect/dynamic_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "collect/dynamic_store.h"
#include "report/lang.h"

const char *np_dyn_config_path(struct np_arena *arena, const char *path)
{
	struct np_file_stat st;
	if (np_file_stat(path, true, &st, NULL) == NP_OK && st.kind == NP_FILE_DIR)
		return np_path_join(arena, path, NP_DYN_FILE_NAME);
	return np_arena_cstr(arena, np_str_of(path));
}

const char *np_dyn_config_dir(struct np_arena *arena, const char *config)
{
	const char *slash = strrchr(config, '/');
	if (!slash)
		return ".";
	size_t len = slash == config ? 1 : (size_t)(slash - config);
	return np_arena_cstr(arena, (np_str){config, len});
}

struct np_finding *np_dyn_tell(struct np_dyn_checking *self, const char *code,
                               enum np_severity severity, const struct np_dyn_member *member,
                               const char *fmt, ...)
{
	char title[512];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(title, sizeof title, np_tr(fmt), ap);
	va_end(ap);
	struct np_finding *finding = np_report_finding(self->report, code, severity, "%s", title);
	if (!member || !self->doc)
		return finding;
	char line[32];
	(void)snprintf(line, sizeof line, np_tr("line %zu"),
	               np_dyn_line(self->doc->text, member->key_begin));
	np_str shown = np_str_sub(self->doc->text, member->begin, member->end - member->begin);
	char key[128];
	(void)snprintf(key, sizeof key, "%s%.*s", member->inside ? "experimental_config." : "",
	               NP_FMT(member->key));
	np_finding_evidence(finding, self->path, key, line, "%.*s%s",
	                    NP_FMT(np_str_sub(shown, 0, 120)), shown.len > 120 ? "…" : "");
	return finding;
}

void np_dyn_suggest(struct np_dyn_checking *self, struct np_finding *finding, enum np_dyn_id id,
                    const char *json)
{
	char word[512];
	(void)snprintf(word, sizeof word, "%s=%s", np_dyn_fields[id].key, json);
	np_finding_command(finding, "npuprof dynamic trigger %s --set %s",
	                   np_shell_quote(self->report, self->dir),
	                   np_shell_quote(self->report, word));
}

/* ── values as torch_npu takes them ── */

static const struct np_jval *accepted(const struct np_dyn_text *doc, enum np_dyn_id id)
{
	const struct np_dyn_member *member = np_dyn_member(doc, id);
	return member && np_dyn_accepts(&np_dyn_fields[id], member->value) ? member->value : NULL;
}

int64_t np_dyn_int(const struct np_dyn_text *doc, enum np_dyn_id id)
{
	const struct np_jval *value = accepted(doc, id);
	int64_t number = 0;
	if (!value || !np_ji64(value, &number))
		(void)np_str_to_i64(np_str_of(np_dyn_fields[id].instead), &number);
	return number;
}

bool np_dyn_bool(const struct np_dyn_text *doc, enum np_dyn_id id)
{
	const struct np_dyn_member *member = np_dyn_member(doc, id);
	const struct np_jval *value = accepted(doc, id);
	if (!member && id == NP_DYN_ANALYSE) /* only a wrong type ends as true */
		return false;
	return value ? value->type == NP_J_TRUE : strcmp(np_dyn_fields[id].instead, "true") == 0;
}

/* An entry of a list counts alone; without one that counts the default does. */
bool np_dyn_has_word(const struct np_dyn_text *doc, enum np_dyn_id id, const char *word)
{
	const struct np_dyn_member *member = np_dyn_member(doc, id);
	bool any = false;
	char quoted[64];
	if (member && member->value->type == NP_J_STRING && accepted(doc, id))
		return np_str_is(member->value->text, word);
	for (size_t i = 0; member && member->value->type == NP_J_ARRAY && i < member->value->n;
	     i++) {
		const struct np_jval *entry = &member->value->child[i];
		if (np_str_is(np_jstr(entry), word))
			return true;
		any = any || np_dyn_accepts_entry(&np_dyn_fields[id], entry);
	}
	(void)snprintf(quoted, sizeof quoted, "\"%s\"", word);
	return !any && strstr(np_dyn_fields[id].instead, quoted) != NULL;
}

np_str np_dyn_word(const struct np_dyn_text *doc, enum np_dyn_id id)
{
	const struct np_jval *value = accepted(doc, id);
	np_str word = value ? np_jstr(value) : np_str_of(np_dyn_fields[id].instead);
	if (word.len > 1 && word.ptr[0] == '"') /* the default, as JSON */
		word = np_str_sub(word, 1, word.len - 2);
	return word;
}

/* ── the text as JSON ── */

static void tell_comments(struct np_dyn_checking *self)
{
	const struct np_json_repair *comment = &self->doc->repairs.comment;
	struct np_finding *finding = np_report_finding(
		self->report, "DYN_JSON_COMMENTS", NP_ERROR,
		"the file has %llu comments, the first in line %zu: torch_npu cannot load it",
		(unsigned long long)comment->count,
		np_dyn_line(self->doc->text, (size_t)comment->first_offset));
	np_finding_detail(finding,
	                  "The samples of the guides have comments, JSON has none: the monitor "
	                  "logs \"load json failed\" and no capture ever starts (R78).");
	np_finding_evidence(finding, self->path, NULL, NULL, "%s", "# …, // …");
	np_finding_advice(finding, "take them out in place; the command also triggers a capture, "
	                           "with --start-step 0 it does not");
	np_finding_command(finding, "npuprof dynamic trigger %s --strip-comments",
	                   np_shell_quote(self->report, self->dir));
}

static void tell_invalid(struct np_dyn_checking *self, np_str text, const struct np_err *strict)
{
	struct np_finding *finding =
		np_report_finding(self->report, "DYN_JSON_INVALID", NP_ERROR,
	                          "the file is not JSON: torch_npu cannot load it");
	const char *colon = strrchr(strict->where, ':');
	uint64_t at = 0;
	char line[48] = "";
	if (colon && np_str_to_u64(np_str_of(colon + 1), &at))
		(void)snprintf(line, sizeof line, np_tr("line %zu"), np_dyn_line(text, (size_t)at));
	np_finding_evidence(finding, self->path, NULL, *line ? line : NULL, "%s", strict->msg);
	np_finding_detail(finding,
	                  "The monitor logs \"Dynamic profiler process load json failed\", and "
	                  "nothing starts; the old content stays in force in no rank.");
	np_finding_advice(finding, "repair the line in place; python3 -m json.tool FILE tells "
	                           "the same");
}

static void check_text(struct np_dyn_checking *self, struct np_arena *arena, np_str text)
{
	struct np_dyn_text doc;
	struct np_err strict = {0}, loose;
	enum np_status status = np_dyn_text_read(arena, text, self->path, true, &doc, &strict);
	bool valid = status == NP_OK;
	if (!valid && np_dyn_text_read(arena, text, self->path, false, &doc, &loose) != NP_OK) {
		tell_invalid(self, text, &strict);
		return;
	}
	self->doc = &doc;
	if (!valid && doc.repairs.comment.count)
		tell_comments(self);
	if (!valid && np_json_repairs_total(&doc.repairs) > doc.repairs.comment.count)
		tell_invalid(self, text, &strict);
	np_dyn_check_fields(self);
	np_dyn_check_pairs(self);
	if (!self->options->no_purposes)
		np_dyn_check_purposes(self);
	self->doc = NULL;
	np_dyn_text_release(&doc);
}

static void tell_absent(struct np_dyn_checking *self)
{
	struct np_finding *finding = np_report_finding(self->report, "DYN_NO_CONFIG", NP_ERROR,
	                                               "there is no %s", NP_DYN_FILE_NAME);
	np_finding_evidence(finding, self->path, NULL, NULL, "not there");
	np_finding_detail(finding, "The job writes a template at its start; before that, or with "
	                           "another PROF_CONFIG_PATH, there is nothing to edit.");
	np_finding_command(finding, "npuprof dynamic init %s",
	                   np_shell_quote(self->report, self->dir));
}

static void tell_too_large(struct np_dyn_checking *self, uint64_t size_bytes)
{
	struct np_finding *finding =
		np_report_finding(self->report, "DYN_TOO_LARGE", NP_ERROR,
	                          "the file has %llu bytes; the shared memory holds 1 MiB",
	                          (unsigned long long)size_bytes);
	np_finding_evidence(finding, self->path, NULL, NULL, "%llu > 1048576",
	                    (unsigned long long)size_bytes);
	np_finding_advice(finding, "torch_npu logs \"Load json failed, because cfg bytes size "
	                           "over …\": shorten metadata");
}

static enum np_status check_file(struct np_dyn_checking *self, struct np_arena *arena)
{
	struct np_file_stat st;
	NP_TRY(np_file_stat(self->path, true, &st, self->err));
	if (st.kind == NP_FILE_NONE) {
		tell_absent(self);
		return NP_OK;
	}
	/* four bytes of the memory are the time */
	if (st.size_bytes > NP_DYN_MAX_BYTES - 4) {
		tell_too_large(self, st.size_bytes);
		return NP_OK;
	}
	np_str text;
	enum np_status status = np_dyn_read(arena, self->path, &text, self->err);
	if (status == NP_E_ACCESS) { /* its rights are told with the place */
		self->unknown = true;
		return NP_OK;
	}
	NP_TRY(status);
	check_text(self, arena, text);
	return NP_OK;
}

static void set_verdict(struct np_dyn_checking *self)
{
	bool failed = np_report_count(self->report, NP_ERROR) > 0;
	self->report->verdict = failed          ? NP_VERDICT_FAIL
	                        : self->unknown ? NP_VERDICT_UNKNOWN
	                                        : NP_VERDICT_PASS;
	self->report->exit_code = failed ? 1 : self->unknown ? 3 : 0;
}

enum np_status np_dyn_check_text(const char *path, np_str text,
                                 const struct np_dyn_check_options *options,
                                 struct np_report *report, struct np_err *err)
{
	struct np_dyn_checking self = {
		.options = options, .path = path, .report = report, .err = err};
	self.dir = np_dyn_config_dir(&report->arena, path);
	if (!self.dir)
		return np_err_nomem(err);
	check_text(&self, &report->arena, text);
	return np_report_ok(report, err);
}

enum np_status np_dyn_check(const char *path, const struct np_dyn_check_options *options,
                            struct np_report *report, struct np_err *err)
{
	struct np_arena *arena = &report->arena;
	struct np_dyn_checking self = {.options = options,
	                               .path = np_dyn_config_path(arena, path),
	                               .report = report,
	                               .err = err};
	struct np_file_stat st;
	self.dir = self.path ? np_dyn_config_dir(arena, self.path) : NULL;
	if (!self.dir)
		return np_err_nomem(err);
	NP_TRY(np_file_stat(self.dir, true, &st, err));
	if (st.kind != NP_FILE_DIR)
		return np_err_set(err, NP_E_NOTFOUND, self.dir, "no such directory");
	np_report_input(report, self.path);
	NP_TRY(check_file(&self, arena));
	NP_TRY(np_dyn_check_place(&self));
	set_verdict(&self);
	return np_report_ok(report, err);
}
