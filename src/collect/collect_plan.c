/* What was asked for: arms, hosts, the command of a leg, and OUT/collect.json for --resume. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/fs.h"
#include "collect/collect_internal.h"
#include "io/json.h"

/* ── placeholders ── */

static bool put_value(const struct leg *leg, np_str name, struct np_buf *out)
{
	const struct np_hosts *hosts = &leg->all->hosts;
	if (np_str_is(name, "host"))
		np_buf_add_cstr(out, hosts->v.v[leg->index].name);
	else if (np_str_is(name, "index"))
		np_buf_printf(out, "%zu", leg->index);
	else if (np_str_is(name, "n"))
		np_buf_printf(out, "%zu", hosts->v.n);
	else if (np_str_is(name, "master"))
		np_buf_add_cstr(out, hosts->v.v[0].name);
	else if (np_str_is(name, "arm") && leg->arm->name)
		np_buf_add_cstr(out, leg->arm->name);
	else
		return false;
	return true;
}

/* A word with {host}, {index}, {n}, {master} and {arm} replaced; all else stays. */
static const char *fill_in(struct leg *leg, const char *word)
{
	struct np_buf out = {0};
	for (const char *at = word; *at;) {
		const char *end = *at == '{' ? strchr(at, '}') : NULL;
		if (end && put_value(leg, (np_str){at + 1, (size_t)(end - at - 1)}, &out))
			at = end + 1;
		else
			np_buf_add_char(&out, *at++);
	}
	const char *text = out.failed ? NULL : np_arena_cstr(&leg->arena, np_buf_str(&out));
	np_buf_release(&out);
	return text;
}

static size_t count(const char *const *list)
{
	size_t n = 0;
	while (list && list[n])
		n++;
	return n;
}

const char *const *collect_command(struct leg *leg)
{
	const char *const *command = leg->all->options->command;
	size_t n = 0, words = count(leg->arm->words);
	const char **out =
		np_arena_zalloc(&leg->arena, (count(command) * (words + 1) + 1) * sizeof *out);
	if (!out)
		return NULL;
	for (size_t i = 0; command[i]; i++) {
		if (leg->arm->name && strcmp(command[i], "{options}") == 0) {
			for (size_t k = 0; k < words; k++)
				out[n++] = leg->arm->words[k];
			continue;
		}
		out[n] = fill_in(leg, command[i]);
		if (!out[n++])
			return NULL;
	}
	return out;
}

/* ── arms ── */

/* NAME=VALUE with a name that a shell takes. */
static bool is_assignment(np_str word)
{
	size_t n = 0;
	while (n < word.len && (word.ptr[n] == '_' || isalnum((unsigned char)word.ptr[n])))
		n++;
	return n > 0 && n < word.len && word.ptr[n] == '=' && !isdigit((unsigned char)word.ptr[0]);
}

/* Assignments first, then options. */
static enum np_status split_arm(struct collect *self, np_str text, struct arm *out,
                                struct np_err *err)
{
	size_t most = text.len / 2 + 2, n_env = 0, n_words = 0;
	const char **env = np_arena_zalloc(self->arena, most * sizeof *env);
	const char **words = np_arena_zalloc(self->arena, most * sizeof *words);
	if (!env || !words)
		return np_err_nomem(err);
	while (text.len) {
		np_str word = np_str_trim(np_str_cut(text, ' ', &text));
		if (!word.len)
			continue;
		const char *copy = np_arena_cstr(self->arena, word);
		if (!copy)
			return np_err_nomem(err);
		if (n_words == 0 && is_assignment(word))
			env[n_env++] = copy;
		else
			words[n_words++] = copy;
	}
	out->env = env;
	out->words = words;
	return NP_OK;
}

static bool is_name(np_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!isalnum((unsigned char)text.ptr[i]) && !strchr("_.+-", text.ptr[i]))
			return false;
	return text.len > 0 && text.len < 100 && text.ptr[0] != '.' && text.ptr[0] != '-';
}

static enum np_status add_arm(struct collect *self, const char *text, struct np_err *err)
{
	np_str rest, name = np_str_cut(np_str_of(text), '=', &rest);
	struct arm *arm = &self->arms[self->n_arms];
	bool has_place = false;
	if (!is_name(name))
		return np_err_set(err, NP_E_USAGE, "--arm", "wants NAME=WORDS, got '%s'", text);
	arm->name = np_arena_cstr(self->arena, name);
	if (!arm->name)
		return np_err_nomem(err);
	NP_TRY(split_arm(self, rest, arm, err));
	for (size_t i = 0; i < self->n_arms; i++)
		if (strcmp(self->arms[i].name, arm->name) == 0)
			return np_err_set(err, NP_E_USAGE, "--arm", "'%s' is there twice",
			                  arm->name);
	for (size_t i = 0; self->options->command[i]; i++)
		has_place |= strcmp(self->options->command[i], "{options}") == 0;
	if (arm->words[0] && !has_place)
		return np_err_set(err, NP_E_USAGE, "--arm",
		                  "'%s' has options: the word {options} in the command says where "
		                  "they go",
		                  arm->name);
	self->n_arms++;
	return NP_OK;
}

/* ── resolve ── */

static bool names_others(const char *const *command)
{
	for (size_t i = 0; command[i]; i++)
		if (strstr(command[i], "{master}") || strstr(command[i], "{index}") ||
		    strstr(command[i], "{n}"))
			return true;
	return false;
}

enum np_status collect_plan_resolve(struct collect *self, struct np_err *err)
{
	const struct np_collect_options *options = self->options;
	for (size_t i = 0; options->hosts[i]; i++)
		NP_TRY(np_hosts_parse(&self->hosts, np_str_of(options->hosts[i]), "HOST", err));
	if (self->hosts.v.n == 0)
		return np_err_set(err, NP_E_USAGE, "HOST", "no host was named");
	if (!options->command || !options->command[0])
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "no command was given: npuprof collect HOST [options] -- CMD");
	size_t n = count(options->arms);
	if (n > NP_COLLECT_MAX_ARMS)
		return np_err_set(err, NP_E_USAGE, "--arm", "at most %d", NP_COLLECT_MAX_ARMS);
	for (size_t i = 0; i < n; i++)
		NP_TRY(add_arm(self, options->arms[i], err));
	if (n == 0)
		self->n_arms = 1;
	for (size_t i = 0; options->env && options->env[i]; i++)
		if (!is_assignment(np_str_of(options->env[i])))
			return np_err_set(err, NP_E_USAGE, "--env", "wants NAME=VALUE, got '%s'",
			                  options->env[i]);
	if (options->container) {
		NP_TRY(np_container_parse(options->container, &self->container, err));
		self->place.container = &self->container;
	}
	self->ssh =
		(struct np_ssh_options){.config = options->ssh_config,
	                                .options = options->ssh_options,
	                                .accept_unknown_host_key = options->accept_unknown_host_key,
	                                .cancel = options->cancel,
	                                .retry = options->retry};
	self->together = self->hosts.v.n > 1 && names_others(options->command);
	return NP_OK;
}

/* ── OUT/collect.json ── */

static void put_text(struct np_buf *out, const char *name, const char *value)
{
	np_buf_printf(out, ",\n  \"%s\": ", name);
	if (value)
		np_json_quote(out, np_str_of(value));
	else
		np_buf_add_cstr(out, "null");
}

static void put_list(struct np_buf *out, const char *name, const char *const *list)
{
	np_buf_printf(out, ",\n  \"%s\": [", name);
	for (size_t i = 0; list && list[i]; i++) {
		np_buf_add_cstr(out, i ? ", " : "");
		np_json_quote(out, np_str_of(list[i]));
	}
	np_buf_add_char(out, ']');
}

static void put_flag(struct np_buf *out, const char *name, bool value)
{
	np_buf_printf(out, ",\n  \"%s\": %s", name, value ? "true" : "false");
}

enum np_status collect_plan_write(const struct collect *self, struct np_err *err)
{
	const struct np_collect_options *options = self->options;
	struct np_buf json = {0};
	struct np_outfile file;
	const char *path = np_path_join(self->arena, options->out, "collect.json");
	np_buf_printf(&json, "{\n  \"version\": 1,\n  \"npuprof\": \"%s\"", NPUPROF_VERSION);
	put_text(&json, "id", self->id);
	put_list(&json, "hosts", options->hosts);
	put_text(&json, "container", options->container);
	put_text(&json, "workspace", options->workspace);
	put_text(&json, "deploy", options->deploy);
	put_text(&json, "chdir", options->chdir);
	put_text(&json, "devices", options->devices);
	put_text(&json, "set_env", options->set_env);
	put_text(&json, "port_range", options->port_range);
	put_text(&json, "remote_npuprof", options->remote_npuprof);
	put_text(&json, "ssh_config", options->ssh_config);
	put_list(&json, "ssh_options", options->ssh_options);
	put_flag(&json, "accept_unknown_host_key", options->accept_unknown_host_key);
	put_flag(&json, "span_groups", options->span_groups);
	put_flag(&json, "no_pull", options->no_pull);
	put_flag(&json, "no_check", options->no_check);
	put_flag(&json, "keep_raw", options->keep_raw);
	put_list(&json, "env", options->env);
	put_list(&json, "run", options->run);
	put_list(&json, "arms", options->arms);
	put_list(&json, "command", options->command);
	np_buf_add_cstr(&json, "\n}\n");
	enum np_status status =
		json.failed || !path ? np_err_nomem(err) : np_outfile_begin(&file, path, err);
	if (status == NP_OK) {
		(void)fwrite(json.ptr, 1, json.len, file.file);
		status = np_outfile_commit(&file, err);
	}
	np_buf_release(&json);
	return status;
}

static const char *get_text(struct np_arena *arena, const struct np_jval *root, const char *name)
{
	const struct np_jval *value = np_jget(root, name);
	return value && value->type == NP_J_STRING ? np_arena_cstr(arena, value->text) : NULL;
}

static const char *const *get_list(struct np_arena *arena, const struct np_jval *root,
                                   const char *name, bool *good)
{
	const struct np_jval *list = np_jget(root, name);
	size_t n = list && list->type == NP_J_ARRAY ? list->n : 0;
	const char **out = np_arena_zalloc(arena, (n + 1) * sizeof *out);
	*good &= out != NULL;
	for (size_t i = 0; out && i < n; i++) {
		out[i] = np_arena_cstr(arena, np_jstr(&list->child[i]));
		*good &= out[i] != NULL;
	}
	return out;
}

static bool get_flag(const struct np_jval *root, const char *name)
{
	bool value = false;
	return np_jbool(np_jget(root, name), &value) && value;
}

static bool take_plan(struct np_arena *arena, const struct np_jval *root,
                      struct np_collect_options *out)
{
	bool good = true;
	out->hosts = get_list(arena, root, "hosts", &good);
	out->container = get_text(arena, root, "container");
	out->workspace = get_text(arena, root, "workspace");
	out->deploy = get_text(arena, root, "deploy");
	out->chdir = get_text(arena, root, "chdir");
	out->devices = get_text(arena, root, "devices");
	out->set_env = get_text(arena, root, "set_env");
	out->port_range = get_text(arena, root, "port_range");
	out->remote_npuprof = get_text(arena, root, "remote_npuprof");
	out->ssh_config = get_text(arena, root, "ssh_config");
	out->ssh_options = get_list(arena, root, "ssh_options", &good);
	out->accept_unknown_host_key = get_flag(root, "accept_unknown_host_key");
	out->span_groups = get_flag(root, "span_groups");
	out->no_pull = get_flag(root, "no_pull");
	out->no_check = get_flag(root, "no_check");
	out->keep_raw = get_flag(root, "keep_raw");
	out->env = get_list(arena, root, "env", &good);
	out->run = get_list(arena, root, "run", &good);
	out->arms = get_list(arena, root, "arms", &good);
	out->command = get_list(arena, root, "command", &good);
	return good;
}

enum np_status collect_plan_read(struct collect *self, const char *dir,
                                 struct np_collect_options *out, struct np_err *err)
{
	const struct np_jval *root = NULL;
	struct np_file_stat stat;
	int64_t version = 0;
	const char *path = np_path_join(self->arena, dir, "collect.json");
	if (!path)
		return np_err_nomem(err);
	NP_TRY(np_file_stat(path, true, &stat, err));
	if (stat.kind != NP_FILE_REG)
		return np_err_set(err, NP_E_NOTFOUND, path, "there is no collect to go on with");
	NP_TRY(np_json_parse_file(self->arena, path, NP_JSON_STRICT, &root, NULL, err));
	self->id = get_text(self->arena, root, "id");
	if (!np_ji64(np_jget(root, "version"), &version) || version != 1 || !self->id)
		return np_err_set(err, NP_E_FORMAT, path, "this is no plan of a collect");
	out->out = dir;
	return take_plan(self->arena, root, out) ? NP_OK : np_err_nomem(err);
}
