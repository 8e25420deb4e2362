#include "collect/comm_find.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "io/json.h"

enum { EVENTS_BYTES_MAX = 64 << 20, NEAR_MAX = 5, ANCHORS_MAX = 100 };

/* ── the walk ── */

static bool is_log(const char *name)
{
	return np_str_ends(np_str_of(name), NP_STR(".nplog"));
}

static bool is_capture(const char *name)
{
	np_str text = np_str_of(name);
	return np_str_ends(text, NP_STR("_ascend_pt")) || np_str_ends(text, NP_STR("_ascend_ms")) ||
	       np_str_starts(text, NP_STR("PROF_"));
}

static void add_problem(struct np_clog_found *self, const char *path, const struct np_err *why)
{
	struct np_clog_problem problem = {path, np_arena_cstr(&self->arena, np_str_of(why->msg))};
	if (problem.text)
		(void)np_vec_push(&self->problems, problem);
}

static enum np_status walk(struct np_clog_found *self, const char *dir, int depth,
                           struct np_err *err);

static enum np_status take(struct np_clog_found *self, const char *dir, bool events,
                           const struct np_dir_entry *entry, int depth, struct np_err *err)
{
	const char *path = np_path_join(&self->arena, dir, entry->name);
	if (!path)
		return np_err_nomem(err);
	if (entry->kind == NP_FILE_DIR)
		return is_capture(entry->name) || depth >= NP_COMM_FIND_DEPTH
		               ? NP_OK
		               : walk(self, path, depth + 1, err);
	if (entry->kind != NP_FILE_REG)
		return NP_OK;
	bool pushed = true;
	if (is_log(entry->name))
		pushed = np_vec_push(&self->logs, path);
	else if (events && np_str_ends(np_str_of(entry->name), NP_STR(".jsonl")))
		pushed = np_vec_push(&self->events, path);
	if (self->logs.n > NP_COMM_FIND_MAX || self->events.n > NP_COMM_FIND_MAX)
		return np_err_set(err, NP_E_LIMIT, dir, "more than %d logs", NP_COMM_FIND_MAX);
	return pushed ? NP_OK : np_err_nomem(err);
}

/* A directory that cannot be listed is told, and the others are read. */
static enum np_status walk(struct np_clog_found *self, const char *dir, int depth,
                           struct np_err *err)
{
	struct np_dir entries;
	struct np_err why = {0};
	enum np_status status = np_dir_list(&self->arena, dir, &entries, &why);
	if (status == NP_E_NOMEM)
		return np_err_nomem(err);
	if (status != NP_OK) {
		add_problem(self, dir, &why);
		return NP_OK;
	}
	bool events = np_str_is(np_path_base(dir), "events");
	for (size_t i = 0; i < entries.n; i++)
		NP_TRY(take(self, dir, events, &entries.v[i], depth, err));
	return NP_OK;
}

/* <run>/comm was named: the events are beside it. */
static enum np_status walk_beside(struct np_clog_found *self, const char *word, struct np_err *err)
{
	struct np_file_stat stat;
	const char *path = np_path_join(&self->arena, word, "../events");
	if (!path)
		return np_err_nomem(err);
	if (!np_str_is(np_path_base(word), "comm") ||
	    np_file_stat(path, false, &stat, NULL) != NP_OK || stat.kind != NP_FILE_DIR)
		return NP_OK;
	return walk(self, path, NP_COMM_FIND_DEPTH, err);
}

static enum np_status look_at(struct np_clog_found *self, const char *word, struct np_err *err)
{
	struct np_file_stat stat;
	NP_TRY(np_file_stat(word, true, &stat, err));
	if (stat.kind == NP_FILE_NONE)
		return np_err_set(err, NP_E_NOTFOUND, word, "no such file or directory");
	if (stat.kind == NP_FILE_DIR) {
		NP_TRY(walk_beside(self, word, err));
		return walk(self, word, 0, err);
	}
	const char *path = np_arena_cstr(&self->arena, np_str_of(word));
	return path && np_vec_push(&self->logs, path) ? NP_OK : np_err_nomem(err);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t sort_unique(const char **v, size_t n)
{
	size_t kept = 0;
	if (n)
		qsort(v, n, sizeof *v, by_text);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || strcmp(v[kept - 1], v[i]) != 0)
			v[kept++] = v[i];
	return kept;
}

/* ── what the events say ── */

static const char *text_of(struct np_clog_found *self, const struct np_jval *object,
                           const char *key)
{
	const struct np_jval *value = np_jget(object, key);
	return np_arena_cstr(&self->arena, np_jstr(value));
}

static const char *near_of(struct np_clog_found *self, const struct np_jval *object)
{
	const struct np_jval *list = np_jget(object, "near");
	struct np_buf text = {.max_bytes = 4096};
	for (size_t i = 0; list && list->type == NP_J_ARRAY && i < list->n && i < NEAR_MAX; i++) {
		np_buf_add_cstr(&text, i ? ", " : "");
		np_buf_add_str(&text, np_jstr(&list->child[i]));
	}
	const char *copy = np_arena_cstr(&self->arena, np_buf_str(&text));
	np_buf_release(&text);
	return copy;
}

static bool add_anchor(struct np_clog_found *self, struct np_clog_anchor anchor)
{
	if (!anchor.stage || !anchor.target || !anchor.reason || !anchor.near)
		return false;
	for (size_t i = 0; i < self->anchors.n; i++) {
		struct np_clog_anchor *old = &self->anchors.v[i];
		if (strcmp(old->stage, anchor.stage) == 0 &&
		    strcmp(old->target, anchor.target) == 0 &&
		    strcmp(old->reason, anchor.reason) == 0) {
			old->processes += old->file != anchor.file;
			old->file = anchor.file;
			return true;
		}
	}
	return self->anchors.n >= ANCHORS_MAX || np_vec_push(&self->anchors, anchor);
}

static const char *place_of(struct np_arena *arena, const char *stage, const char *target)
{
	return np_arena_printf(arena, "%s %s", stage, target);
}

static bool add_placed(struct np_clog_found *self, const char *place)
{
	if (!place)
		return false;
	for (size_t i = 0; i < self->placed.n; i++)
		if (strcmp(self->placed.v[i], place) == 0)
			return true;
	return self->placed.n >= ANCHORS_MAX || np_vec_push(&self->placed, place);
}

static bool take_event(struct np_clog_found *self, size_t file, const struct np_jval *root)
{
	np_str event = np_jstr(np_jget(root, "event"));
	bool missing = np_str_is(event, "not_found");
	/* a target of the profiler has no stage */
	if (np_jstr(np_jget(root, "stage")).len == 0 ||
	    !(missing || np_str_is(event, "collectives_stage")))
		return true;
	const char *stage = text_of(self, root, "stage"), *target = text_of(self, root, "target");
	if (!stage || !target)
		return false;
	if (!missing)
		return add_placed(self, place_of(&self->arena, stage, target));
	return add_anchor(self, (struct np_clog_anchor){.stage = stage,
	                                                .target = target,
	                                                .reason = text_of(self, root, "reason"),
	                                                .near = near_of(self, root),
	                                                .processes = 1,
	                                                .file = file});
}

static bool read_line(struct np_clog_found *self, size_t file, np_str line)
{
	struct np_input *input;
	const struct np_jval *root = NULL;
	struct np_arena scratch;
	bool kept = true;
	if (!np_str_contains(line, NP_STR("not_found")) &&
	    !np_str_contains(line, NP_STR("collectives_stage")))
		return true;
	if (np_input_open_mem(line, "event", 0, &input, NULL) != NP_OK)
		return false;
	np_arena_init(&scratch);
	if (np_json_parse(&scratch, input, 0, &root, NULL, NULL) == NP_OK)
		kept = take_event(self, file, root);
	np_arena_release(&scratch);
	np_input_close(input);
	return kept;
}

/* One process that found it is enough: see np_clog_anchor. */
static void drop_placed(struct np_clog_found *self)
{
	size_t kept = 0;
	for (size_t i = 0; i < self->anchors.n; i++) {
		const struct np_clog_anchor *anchor = &self->anchors.v[i];
		const char *place = place_of(&self->arena, anchor->stage, anchor->target);
		bool placed = false;
		for (size_t k = 0; place && k < self->placed.n && !placed; k++)
			placed = strcmp(self->placed.v[k], place) == 0;
		if (!placed)
			self->anchors.v[kept++] = *anchor;
	}
	self->anchors.n = kept;
}

static enum np_status read_events(struct np_clog_found *self, size_t file, struct np_err *err)
{
	struct np_arena arena;
	struct np_err why = {0};
	np_str text, line;
	const char *path = self->events.v[file];
	np_arena_init(&arena);
	bool kept = true;
	if (np_file_slurp(&arena, path, EVENTS_BYTES_MAX, &text, &why) != NP_OK)
		add_problem(self, path, &why);
	else
		while (text.len && kept) {
			line = np_str_cut(text, '\n', &text);
			kept = read_line(self, file, line);
		}
	np_arena_release(&arena);
	return kept ? NP_OK : np_err_nomem(err);
}

enum np_status np_clog_find(char *const *words, size_t n, struct np_clog_found *out,
                            struct np_err *err)
{
	*out = (struct np_clog_found){.logs = {NULL, 0, 0}};
	np_arena_init(&out->arena);
	for (size_t i = 0; i < n; i++)
		NP_TRY(look_at(out, words[i], err));
	out->logs.n = sort_unique(out->logs.v, out->logs.n);
	out->events.n = sort_unique(out->events.v, out->events.n);
	for (size_t i = 0; i < out->events.n; i++)
		NP_TRY(read_events(out, i, err));
	drop_placed(out);
	if (out->logs.n == 0)
		return np_err_set(err, NP_E_NOTFOUND, words[0],
		                  "no log of collectives (*.nplog) below it; npuprof run writes "
		                  "them into <run>/comm");
	return NP_OK;
}

void np_clog_found_release(struct np_clog_found *self)
{
	np_vec_release(&self->logs);
	np_vec_release(&self->events);
	np_vec_release(&self->anchors);
	np_vec_release(&self->placed);
	np_vec_release(&self->problems);
	np_arena_release(&self->arena);
}
