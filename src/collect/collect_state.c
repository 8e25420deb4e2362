/* How far a leg is: OUT/[ARM/]HOST/collect.json, strict JSON, written after each stage. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "collect/collect_internal.h"
#include "io/json.h"

static void text(struct np_buf *out, const char *name, const char *value)
{
	np_buf_printf(out, ",\n  \"%s\": ", name);
	if (value)
		np_json_quote(out, np_str_of(value));
	else
		np_buf_add_cstr(out, "null");
}

static void flag(struct np_buf *out, const char *name, bool value)
{
	np_buf_printf(out, ",\n  \"%s\": %s", name, value ? "true" : "false");
}

void collect_state_json(const struct leg *leg, struct np_buf *out)
{
	np_buf_add_cstr(out, "{\n  \"version\": 1");
	text(out, "host", leg->host);
	text(out, "arm", leg->arm->name);
	text(out, "workspace", leg->workspace);
	text(out, "npuprof", leg->npuprof);
	text(out, "cwd", leg->cwd);
	text(out, "devices", leg->devices);
	text(out, "job", leg->job);
	text(out, "run_dir", leg->run_dir);
	text(out, "gate_profile", leg->gate_profile);
	flag(out, "set_env", leg->has_set_env);
	flag(out, "launched", leg->launched);
	flag(out, "run_over", leg->run_over);
	flag(out, "exported", leg->exported);
	flag(out, "stopped", leg->stopped);
	np_buf_printf(out, ",\n  \"run_exit\": %" PRId64 ",\n  \"command_exit\": %" PRId64,
	              leg->run_exit, leg->command_exit);
	text(out, "run_verdict", np_verdict_name(leg->run_verdict));
	np_buf_add_cstr(out, ",\n  \"stages\": [");
	for (int i = 0; i < N_STAGES; i++) {
		const struct stage_result *stage = &leg->stages[i];
		np_buf_printf(
			out,
			"%s\n    {\"name\": \"%s\", \"verdict\": \"%s\", \"environment\": %s, "
			"\"took_ns\": %" PRId64 ", \"detail\": ",
			i ? "," : "", collect_stage_names[i], np_verdict_name(stage->verdict),
			stage->environment ? "true" : "false", stage->took_ns);
		np_json_quote(out, np_str_of(stage->detail));
		np_buf_add_char(out, '}');
	}
	np_buf_add_cstr(out, "\n  ]\n}\n");
}

enum np_status collect_state_write(const struct leg *leg, struct np_err *err)
{
	struct np_buf json = {0};
	struct np_outfile file;
	char path[4096];
	if (!leg->dir)
		return NP_OK;
	NP_TRY(np_mkdirs(leg->dir, err));
	(void)snprintf(path, sizeof path, "%s/collect.json", leg->dir);
	collect_state_json(leg, &json);
	enum np_status status =
		json.failed ? np_err_nomem(err) : np_outfile_begin(&file, path, err);
	if (status == NP_OK) {
		(void)fwrite(json.ptr, 1, json.len, file.file);
		status = np_outfile_commit(&file, err);
	}
	np_buf_release(&json);
	return status;
}

/* ── reading ── */

static const char *get_text(struct leg *leg, const struct np_jval *root, const char *name)
{
	const struct np_jval *value = np_jget(root, name);
	return value && value->type == NP_J_STRING ? np_arena_cstr(&leg->arena, value->text) : NULL;
}

static bool get_flag(const struct np_jval *root, const char *name)
{
	bool value = false;
	return np_jbool(np_jget(root, name), &value) && value;
}

static enum np_verdict get_verdict(const struct np_jval *value)
{
	for (int v = NP_VERDICT_PASS; v <= (int)NP_VERDICT_UNKNOWN; v++)
		if (np_str_is(np_jstr(value), np_verdict_name((enum np_verdict)v)))
			return (enum np_verdict)v;
	return NP_VERDICT_NONE;
}

static void get_stages(struct leg *leg, const struct np_jval *list)
{
	for (size_t k = 0; list && list->type == NP_J_ARRAY && k < list->n; k++) {
		const struct np_jval *one = &list->child[k];
		for (int i = 0; i < N_STAGES; i++) {
			if (!np_str_is(np_jstr(np_jget(one, "name")), collect_stage_names[i]))
				continue;
			const char *detail = get_text(leg, one, "detail");
			leg->stages[i] = (struct stage_result){
				.verdict = get_verdict(np_jget(one, "verdict")),
				.environment = get_flag(one, "environment"),
				.detail = detail ? detail : ""};
			(void)np_ji64(np_jget(one, "took_ns"), &leg->stages[i].took_ns);
		}
	}
}

enum np_status collect_state_parse(struct leg *leg, struct np_input *input, struct np_err *err)
{
	const struct np_jval *root = NULL;
	int64_t version = 0;
	NP_TRY(np_json_parse(&leg->arena, input, NP_JSON_STRICT, &root, NULL, err));
	if (!np_ji64(np_jget(root, "version"), &version) || version != 1)
		return np_err_set(err, NP_E_FORMAT, leg->dir, "this is no state of a collect");
	leg->workspace = get_text(leg, root, "workspace");
	leg->npuprof = get_text(leg, root, "npuprof");
	leg->cwd = get_text(leg, root, "cwd");
	leg->devices = get_text(leg, root, "devices");
	leg->run_dir = get_text(leg, root, "run_dir");
	leg->gate_profile = get_text(leg, root, "gate_profile");
	const char *job = get_text(leg, root, "job");
	leg->job = job ? job : leg->job;
	leg->has_set_env = get_flag(root, "set_env");
	leg->launched = get_flag(root, "launched");
	leg->run_over = get_flag(root, "run_over");
	leg->exported = get_flag(root, "exported");
	leg->stopped = get_flag(root, "stopped");
	(void)np_ji64(np_jget(root, "run_exit"), &leg->run_exit);
	(void)np_ji64(np_jget(root, "command_exit"), &leg->command_exit);
	leg->run_verdict = get_verdict(np_jget(root, "run_verdict"));
	get_stages(leg, np_jget(root, "stages"));
	if ((leg->launched || leg->run_over) &&
	    (!leg->job || !leg->devices || !leg->cwd || !leg->npuprof || !leg->workspace))
		return np_err_set(err, NP_E_FORMAT, leg->dir,
		                  "the state of the collect is not whole");
	if (leg->run_over && !leg->gate_profile)
		leg->gate_profile = "kernel";
	return NP_OK;
}

enum np_status collect_state_read(struct leg *leg, struct np_err *err)
{
	struct np_file_stat stat;
	struct np_input *input = NULL;
	const char *path = np_path_join(&leg->arena, leg->dir, "collect.json");
	if (!path)
		return np_err_nomem(err);
	NP_TRY(np_file_stat(path, true, &stat, err));
	if (stat.kind == NP_FILE_NONE)
		return NP_OK;
	NP_TRY(np_input_open(path, &input, err));
	enum np_status status = collect_state_parse(leg, input, err);
	np_input_close(input);
	return status;
}
