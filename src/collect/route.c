/*
 * The walk and what a line says.
 */
#include "collect/route.h"

#include <string.h>

#include "base/fs.h"
#include "report/lang.h"

const char *np_route_kind_name(enum np_route_kind kind)
{
	static const char *const names[] = {
		NP_N("profiler_context"), NP_N("enable_profiler of the framework"),
		NP_N("switch"),           NP_N("configuration key"),
		NP_N("step in a loop"),   NP_N("step elsewhere"),
		NP_N("API of torch_npu"), NP_N("torch.profiler"),
		NP_N("in a comment"),
	};
	return names[kind];
}

/* ── text ── */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

/* Where `word` stands as a whole word; text.len when it does not. */
static size_t find_word(np_str text, const char *word)
{
	size_t len = strlen(word);
	for (size_t i = 0; i + len <= text.len; i++) {
		if (memcmp(text.ptr + i, word, len) != 0)
			continue;
		bool begins = i == 0 || !is_word(text.ptr[i - 1]);
		if (begins && (i + len == text.len || !is_word(text.ptr[i + len])))
			return i;
	}
	return text.len;
}

static bool has_word(np_str text, const char *word)
{
	return find_word(text, word) < text.len;
}

static bool has_component(const char *file, const char *const *names, size_t n)
{
	np_str rest = np_str_of(file);
	while (rest.len) {
		np_str part = np_str_cut(rest, '/', &rest);
		for (size_t i = 0; i < n; i++)
			if (np_str_is(part, names[i]) && rest.len)
				return true;
	}
	return false;
}

/* ── what a line says ── */

struct scan {
	struct np_route *route;
	const char *file;
	bool python, aside, recipes, npu; /* npu: the file names torch_npu */
	uint64_t line;
	char quote;           /* ' or " of the open triple-quoted string, else 0 */
	NP_VEC(size_t) loops; /* indents of the loops around the line */
	bool failed;
};

static void add_hit(struct scan *self, enum np_route_kind kind, np_str line)
{
	enum { SHOWN = 160 };
	struct np_route *route = self->route;
	if (!self->aside)
		route->counts[kind]++;
	if (route->hits.n == NP_ROUTE_HITS_MAX)
		return;
	np_str text = np_str_trim(line);
	size_t len = text.len;
	if (len > SHOWN)
		len = SHOWN;
	while (len && len < text.len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
		len--; /* not in the middle of a character */
	struct np_route_hit hit = {
		.kind = kind, .file = self->file, .line = self->line, .aside = self->aside};
	hit.text = np_arena_cstr(&route->arena, np_str_sub(text, 0, len));
	if (!hit.text || !np_vec_push(&route->hits, hit))
		self->failed = true;
}

/* The line without its comment: a # outside of quotes. Follows triple-quoted strings over
 * lines, whose text is no code. */
static np_str code_of(struct scan *self, np_str line)
{
	size_t start = 0;
	char one = 0;
	for (size_t i = 0; i < line.len; i++) {
		char c = line.ptr[i];
		bool triple = (c == '"' || c == '\'') && i + 2 < line.len && line.ptr[i + 1] == c &&
		              line.ptr[i + 2] == c;
		if (self->quote) {
			if (triple && c == self->quote) {
				self->quote = 0;
				i += 2;
				start = i + 1;
			}
			continue;
		}
		if (!one && triple) {
			/* what stands before a string that goes on is the code of the line */
			self->quote = c;
			np_str rest = np_str_from(line, i + 3), close = {line.ptr + i, 3};
			if (!np_str_contains(rest, close))
				return np_str_sub(line, start, i - start);
			i += 2;
			continue;
		}
		if (one && c == '\\')
			i++;
		else if (one && c == one)
			one = 0;
		else if (!one && (c == '"' || c == '\''))
			one = c;
		else if (!one && c == '#')
			return np_str_sub(line, start, i - start);
	}
	return self->quote ? (np_str){line.ptr, 0} : np_str_from(line, start);
}

/* prof.step(, self.profiler_manager.step(: the name in front speaks of a profiler. */
static bool steps_profiler(np_str code)
{
	static const char call[] = ".step(";
	size_t len = sizeof call - 1;
	for (size_t i = 0; i + len <= code.len; i++) {
		if (memcmp(code.ptr + i, call, len) != 0)
			continue;
		size_t begin = i;
		while (begin && (is_word(code.ptr[begin - 1]) || code.ptr[begin - 1] == '.'))
			begin--;
		if (np_str_icontains(np_str_sub(code, begin, i - begin), NP_STR("prof")))
			return true;
	}
	return false;
}

static size_t indent_of(np_str line)
{
	size_t columns = 0;
	for (size_t i = 0; i < line.len && (line.ptr[i] == ' ' || line.ptr[i] == '\t'); i++)
		columns = line.ptr[i] == '\t' ? columns / 8 * 8 + 8 : columns + 1;
	return columns;
}

/* Keep track of the loops around the line; is it in one? */
static bool in_loop(struct scan *self, np_str line, np_str code)
{
	size_t indent = indent_of(line);
	np_str words = np_str_trim(code);
	while (self->loops.n && indent <= self->loops.v[self->loops.n - 1])
		self->loops.n--;
	bool inside = self->loops.n > 0;
	if (np_str_starts(words, NP_STR("async ")))
		words = np_str_trim(np_str_from(words, 6));
	if (np_str_starts(words, NP_STR("for ")) || np_str_starts(words, NP_STR("while "))) {
		if (!np_vec_push(&self->loops, indent))
			self->failed = true;
	}
	return inside;
}

static bool is_switch(np_str code)
{
	bool option = np_str_contains(code, NP_STR("add_argument")) &&
	              (has_word(code, "profile") || has_word(code, "profiling") ||
	               np_str_contains(code, NP_STR("enable-profiler")));
	return option || has_word(code, "enable_profiler") || has_word(code, "enable_profiling");
}

static void look_at_python(struct scan *self, np_str line)
{
	np_str code = code_of(self, line), words = np_str_trim(code);
	if (words.len == 0) {
		if (has_word(line, "enable_profiler"))
			add_hit(self, NP_ROUTE_COMMENT, line);
		return;
	}
	bool loop = in_loop(self, line, code);
	bool with = np_str_starts(words, NP_STR("with ")) &&
	            (np_str_contains(code, NP_STR("profiler.profile(")) ||
	             np_str_contains(code, NP_STR("create_profiler(")));
	if (self->recipes && has_word(code, "enable_profiler"))
		add_hit(self, NP_ROUTE_RECIPES, line);
	else if (steps_profiler(code))
		add_hit(self, loop ? NP_ROUTE_LOOP : NP_ROUTE_STEP, line);
	else if (with && loop)
		add_hit(self, NP_ROUTE_LOOP, line);
	else if (is_switch(code))
		add_hit(self, NP_ROUTE_SWITCH, line);
	bool handler = has_word(code, "tensorboard_trace_handler"); /* both have one */
	if (np_str_contains(code, NP_STR("torch_npu.profiler")) || (handler && self->npu))
		add_hit(self, NP_ROUTE_API, line);
	else if (np_str_contains(code, NP_STR("torch.profiler")) || handler)
		add_hit(self, NP_ROUTE_TORCH, line);
}

/* "key: value" of YAML, "key": value of JSON, key = value of the others. */
static void look_at_config(struct scan *self, np_str line)
{
	static const char *const keys[] = {"enable_profiler", "enable_profiling", "profiler",
	                                   "profiling", "profile"};
	np_str text = np_str_trim(line);
	if (text.len && (text.ptr[0] == '#' || text.ptr[0] == ';')) {
		if (has_word(line, "enable_profiler"))
			add_hit(self, NP_ROUTE_COMMENT, line);
		return;
	}
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		size_t at = find_word(text, keys[i]), end = at + strlen(keys[i]);
		if (at == text.len)
			continue;
		while (end < text.len && strchr("\"' \t", text.ptr[end]))
			end++;
		if (end == text.len || !strchr(":=", text.ptr[end]))
			continue;
		bool recipes = self->recipes && i == 0;
		add_hit(self, recipes ? NP_ROUTE_RECIPES : NP_ROUTE_KEY, line);
		return;
	}
}

static bool ends_with_any(const char *name, const char *const *ends, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (np_str_ends(np_str_of(name), np_str_of(ends[i])))
			return true;
	return false;
}

static bool is_config(const char *name)
{
	static const char *const ends[] = {".yaml", ".yml", ".json", ".toml", ".cfg", ".ini"};
	return ends_with_any(name, ends, sizeof ends / sizeof *ends);
}

static bool is_source(const char *name)
{
	static const char *const ends[] = {".py", ".pyi"};
	return is_config(name) || ends_with_any(name, ends, sizeof ends / sizeof *ends);
}

enum np_status np_route_scan(struct np_route *self, const char *file, np_str text,
                             struct np_err *err)
{
	static const char *const aside[] = {"test", "tests", "doc", "docs"};
	static const char *const recipes[] = {"executor", "models"};
	struct scan scan = {.route = self, .file = file, .python = !is_config(file)};
	static const char context[] = "executor/utils/profiler_context.py";
	scan.aside = has_component(file, aside, 4);
	scan.recipes = has_component(file, recipes, 2);
	scan.npu = np_str_contains(text, NP_STR("torch_npu"));
	np_str name = np_str_of(file), tail = {context, sizeof context - 1};
	bool whole = name.len == tail.len ||
	             (name.len > tail.len && name.ptr[name.len - tail.len - 1] == '/');
	if (np_str_ends(name, tail) && whole)
		add_hit(&scan, NP_ROUTE_CONTEXT, tail);
	while (text.len && !scan.failed) {
		np_str line = np_str_cut(text, '\n', &text);
		scan.line++;
		if (scan.python)
			look_at_python(&scan, line);
		else
			look_at_config(&scan, line);
	}
	np_vec_release(&scan.loops);
	return scan.failed ? np_err_nomem(err) : NP_OK;
}

/* ── the walk ── */

struct walk {
	struct np_route *route;
	const char *root;
	struct np_arena files; /* what one file holds, released behind it */
};

static enum np_status visit_file(struct walk *self, const char *path, const char *shown,
                                 struct np_err *err)
{
	struct np_route *route = self->route;
	np_str text = {0};
	struct np_err quiet = {0};
	np_arena_init(&self->files);
	enum np_status status = np_file_slurp(&self->files, path, NP_ROUTE_FILE_MAX, &text, &quiet);
	route->files++;
	if (status == NP_OK && text.len && memchr(text.ptr, '\0', text.len))
		route->binary++;
	else if (status == NP_OK)
		status = np_route_scan(route, shown, text, err);
	else if (status == NP_E_LIMIT)
		route->large++;
	else if (status != NP_E_NOMEM)
		route->unreadable++;
	np_arena_release(&self->files);
	return status == NP_E_NOMEM ? np_err_nomem(err) : NP_OK;
}

static bool is_skipped_dir(const char *name)
{
	static const char *const names[] = {"__pycache__", "node_modules", "site-packages",
	                                    "ASCEND_PROFILER_OUTPUT"};
	if (name[0] == '.') /* .git, .venv, … */
		return true;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return np_str_ends(np_str_of(name), NP_STR("_ascend_pt"));
}

/* `shown` is "" for the root. */
static enum np_status visit_dir(struct walk *self, const char *shown, unsigned depth,
                                struct np_err *err)
{
	struct np_route *route = self->route;
	struct np_arena *arena = &route->arena;
	struct np_dir dir = {0};
	struct np_err quiet = {0};
	const char *path = *shown ? np_path_join(arena, self->root, shown) : self->root;
	if (!path)
		return np_err_nomem(err);
	if (depth > NP_ROUTE_DEPTH_MAX) {
		route->cut = true;
		return NP_OK;
	}
	enum np_status status = np_dir_list(arena, path, &dir, depth ? &quiet : err);
	if (status != NP_OK && depth && status != NP_E_NOMEM)
		route->unreadable++;
	if (status != NP_OK)
		return depth && status != NP_E_NOMEM ? NP_OK : status;
	for (size_t i = 0; i < dir.n; i++) {
		const struct np_dir_entry *entry = &dir.v[i];
		const char *inner = *shown ? np_path_join(arena, shown, entry->name) : entry->name;
		if (!inner)
			return np_err_nomem(err);
		route->links += entry->kind == NP_FILE_LINK;
		if (entry->kind == NP_FILE_DIR && !is_skipped_dir(entry->name))
			NP_TRY(visit_dir(self, inner, depth + 1, err));
		if (entry->kind != NP_FILE_REG || !is_source(entry->name))
			continue;
		if (route->files == NP_ROUTE_FILES_MAX) {
			route->cut = true;
			return NP_OK;
		}
		const char *full = np_path_join(arena, self->root, inner);
		if (!full)
			return np_err_nomem(err);
		NP_TRY(visit_file(self, full, inner, err));
	}
	return NP_OK;
}

enum np_status np_route_walk(struct np_route *self, const char *root, struct np_err *err)
{
	struct np_file_stat stat;
	struct walk walk = {.route = self, .root = root};
	*self = (struct np_route){0};
	np_arena_init(&self->arena);
	NP_TRY(np_file_stat(root, true, &stat, err));
	if (stat.kind == NP_FILE_NONE)
		return np_err_set(err, NP_E_NOTFOUND, root, "no such directory");
	if (stat.kind != NP_FILE_DIR)
		return np_err_set(err, NP_E_USAGE, root, "is no directory: give the source tree");
	return visit_dir(&walk, "", 0, err);
}

void np_route_release(struct np_route *self)
{
	np_vec_release(&self->hits);
	np_arena_release(&self->arena);
}

enum np_route_path np_route_choose(const struct np_route *self)
{
	const uint64_t *n = self->counts;
	if (n[NP_ROUTE_CONTEXT] || n[NP_ROUTE_RECIPES])
		return NP_ROUTE_A_RECIPES;
	bool own_switch = n[NP_ROUTE_SWITCH] || n[NP_ROUTE_KEY];
	if (n[NP_ROUTE_API] && (n[NP_ROUTE_LOOP] || (n[NP_ROUTE_STEP] && own_switch)))
		return NP_ROUTE_A_OTHER;
	return NP_ROUTE_B;
}
