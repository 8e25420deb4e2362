/* What is made of the fetched files: the delivery list of an arm (R54), those of its hosts as one,
 * in OUT or OUT/ARM; and the findings of the runs. */
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "collect/collect_internal.h"
#include "collect/manifest.h"
#include "io/json.h"

static enum np_status add_host(struct np_manifest *whole, struct leg *leg, struct np_err *err)
{
	struct np_manifest part;
	np_str host = np_path_base(leg->dir);
	const char *dir = np_path_join(&leg->arena, leg->dir, "run");
	if (!dir)
		return np_err_nomem(err);
	np_manifest_init(&part);
	enum np_status status = np_manifest_read(&part, dir, err);
	for (size_t i = 0; status == NP_OK && i < part.files.n; i++) {
		struct np_manifest_file file = part.files.v[i];
		file.path = np_arena_printf(&leg->arena, "%.*s/run/%s", NP_FMT(host), file.path);
		if (!file.path || !np_manifest_put(whole, &file))
			status = np_err_nomem(err);
	}
	np_manifest_release(&part);
	return status;
}

enum np_status collect_list(struct collect *self, size_t arm, struct np_err *err)
{
	struct np_manifest whole;
	const char *name = self->arms[arm].name, *dir = self->options->out;
	size_t n = 0;
	if (name)
		dir = np_path_join(self->arena, dir, name);
	if (!dir)
		return np_err_nomem(err);
	np_manifest_init(&whole);
	enum np_status status = NP_OK;
	for (size_t h = 0; h < self->hosts.v.n && status == NP_OK; h++) {
		struct leg *leg = &self->legs[arm * self->hosts.v.n + h];
		if (leg->stages[STAGE_PULL].verdict != NP_VERDICT_PASS)
			continue;
		status = add_host(&whole, leg, err);
		n++;
	}
	whole.arm = name ? name : "";
	whole.created_ns = np_time_now();
	if (status == NP_OK && n > 0)
		status = np_manifest_write(&whole, dir, err);
	np_manifest_release(&whole);
	return status;
}

/* ── findings ── */

static const char *text_of(struct np_report *to, const struct np_jval *one, const char *name)
{
	np_str text = np_jstr(np_jget(one, name));
	return text.len ? np_arena_cstr(&to->arena, text) : NULL;
}

static bool is_code(np_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", text.ptr[i]))
			return false;
	return text.len > 0 && text.len < 64;
}

static void add_finding(struct leg *leg, const struct np_jval *one, struct np_report *to)
{
	np_str severity = np_jstr(np_jget(one, "severity"));
	bool error = np_str_is(severity, np_severity_name(NP_ERROR));
	if (!error && !np_str_is(severity, np_severity_name(NP_WARNING)))
		return;
	const char *code = text_of(to, one, "code"), *title = text_of(to, one, "title");
	const char *detail = text_of(to, one, "detail"), *advice = text_of(to, one, "advice");
	const char *command = text_of(to, one, "command");
	if (!code || !title || !is_code(np_str_of(code)))
		return;
	struct np_finding *finding = np_report_finding(to, code, error ? NP_ERROR : NP_WARNING,
	                                               "%s: %s", leg->host, title);
	if (detail)
		np_finding_detail(finding, "%s", detail);
	if (advice)
		np_finding_advice(finding, "%s", advice);
	if (command) /* it is about files there */
		np_finding_command(finding, "%s", command);
	const struct np_jval *list = np_jget(one, "evidence");
	for (size_t i = 0; list && list->type == NP_J_ARRAY && i < list->n && i < 20; i++) {
		const char *text = text_of(to, &list->child[i], "text");
		np_finding_evidence(finding, text_of(to, &list->child[i], "file"),
		                    text_of(to, &list->child[i], "column"),
		                    text_of(to, &list->child[i], "rows"), "%s", text ? text : "");
	}
}

void collect_far_findings(struct leg *leg, struct np_report *to)
{
	const struct np_jval *root = NULL;
	const char *dir = np_path_join(&leg->arena, leg->dir, "run");
	const char *path = dir ? np_path_join(&leg->arena, dir, "report.json") : NULL;
	if (!path || !leg->run_over ||
	    np_json_parse_file(&leg->arena, path, NP_JSON_STRICT, &root, NULL, NULL) != NP_OK)
		return;
	const struct np_jval *list = np_jget(root, "findings");
	for (size_t i = 0; list && list->type == NP_J_ARRAY && i < list->n; i++)
		add_finding(leg, &list->child[i], to);
}
