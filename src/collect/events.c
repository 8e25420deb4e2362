#include "collect/events.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "base/fs.h"
#include "io/json.h"

enum { EVENTS_MAX_BYTES = 64 << 20 };

static const char *text_of(struct np_arena *arena, const struct np_jval *object, const char *key)
{
	np_str text = np_jstr(np_jget(object, key));
	const char *copy = text.len ? np_arena_cstr(arena, text) : "";
	return copy ? copy : "";
}

static int64_t number_of(const struct np_jval *object, const char *key)
{
	int64_t value = NP_NO_I64;
	return np_ji64(np_jget(object, key), &value) ? value : NP_NO_I64;
}

static const char *list_of(struct np_arena *arena, const struct np_jval *object, const char *key,
                           const char *between)
{
	const struct np_jval *list = np_jget(object, key);
	struct np_buf text = {.max_bytes = 1 << 16};
	const char *copy = "";
	if (list && list->type == NP_J_ARRAY)
		for (size_t i = 0; i < list->n; i++) {
			if (i)
				np_buf_add_cstr(&text, between);
			np_buf_add_str(&text, np_jstr(&list->child[i]));
		}
	if (text.len)
		copy = np_arena_cstr(arena, np_buf_str(&text));
	np_buf_release(&text);
	return copy ? copy : "";
}

static void fill(struct np_arena *arena, const struct np_jval *object, struct np_run_event *out)
{
	*out = (struct np_run_event){
		.event = text_of(arena, object, "event"),
		.target = text_of(arena, object, "target"),
		.dir = text_of(arena, object, "dir"),
		.error = text_of(arena, object, "error"),
		.reason = text_of(arena, object, "reason"),
		.kind = text_of(arena, object, "kind"),
		.python = text_of(arena, object, "executable"),
		.method = text_of(arena, object, "method"),
		.state = text_of(arena, object, "state"),
		.where = text_of(arena, object, "where"),
		.near = list_of(arena, object, "near", ", "),
		.argv = list_of(arena, object, "argv", " "),
		.overridden_by = list_of(arena, object, "overridden_by", ", "),
		.pid = number_of(object, "pid"),
		.ppid = number_of(object, "ppid"),
		.rank = number_of(object, "rank"),
		.call = number_of(object, "call"),
		.calls = number_of(object, "calls"),
		.time = NAN,
		.seconds = NAN,
	};
	(void)np_jdouble(np_jget(object, "time"), &out->time);
	(void)np_jdouble(np_jget(object, "seconds"), &out->seconds);
	(void)np_jbool(np_jget(object, "library"), &out->library);
}

enum np_status np_run_event_parse(struct np_arena *arena, np_str line, struct np_run_event *out,
                                  struct np_err *err)
{
	struct np_input *input = NULL;
	const struct np_jval *object = NULL;
	NP_TRY(np_input_open_mem(line, "event", 0, &input, err));
	enum np_status status = np_json_parse(arena, input, NP_JSON_STRICT, &object, NULL, err);
	np_input_close(input);
	if (status != NP_OK)
		return status;
	if (object->type != NP_J_OBJECT || np_jstr(np_jget(object, "event")).len == 0)
		return np_err_set(err, NP_E_FORMAT, "event", "it has no text `event`");
	fill(arena, object, out);
	return NP_OK;
}

static enum np_status read_file(struct np_arena *arena, const char *path, struct np_run_events *out,
                                struct np_err *err)
{
	np_str rest;
	NP_TRY(np_file_slurp(arena, path, EVENTS_MAX_BYTES, &rest, err));
	out->files++;
	while (rest.len) {
		struct np_run_event event;
		np_str line = np_str_trim(np_str_cut(rest, '\n', &rest));
		if (line.len == 0)
			continue;
		enum np_status status = np_run_event_parse(arena, line, &event, NULL);
		if (status == NP_E_NOMEM)
			return np_err_nomem(err);
		if (status != NP_OK)
			out->broken++;
		else if (!np_vec_push(&out->all, event))
			return np_err_nomem(err);
	}
	return NP_OK;
}

enum np_status np_run_events_read(struct np_arena *arena, const char *dir,
                                  struct np_run_events *out, struct np_err *err)
{
	struct np_dir list = {0};
	enum np_status status = np_dir_list(arena, dir, &list, err);
	*out = (struct np_run_events){.files = 0};
	if (status == NP_E_NOTFOUND)
		return NP_OK;
	for (size_t i = 0; status == NP_OK && i < list.n; i++) {
		if (list.v[i].kind != NP_FILE_REG ||
		    !np_str_ends(np_str_of(list.v[i].name), NP_STR(".jsonl")))
			continue;
		const char *path = np_path_join(arena, dir, list.v[i].name);
		status = path ? read_file(arena, path, out, err) : np_err_nomem(err);
	}
	if (status != NP_OK)
		np_run_events_release(out);
	return status;
}

void np_run_events_release(struct np_run_events *self)
{
	np_vec_release(&self->all);
}

void np_target_facts(const struct np_run_events *events, const char *target,
                     struct np_target_facts *out)
{
	*out = (struct np_target_facts){
		.most_calls = NP_NO_I64, .near = "", .reason = "", .overridden_by = ""};
	for (size_t i = 0; i < events->all.n; i++) {
		const struct np_run_event *one = &events->all.v[i];
		if (strcmp(one->target, target) != 0)
			continue;
		out->wrapped += strcmp(one->event, "wrapped") == 0;
		out->skipped += strcmp(one->event, "skipped_rank") == 0;
		out->profiling += strcmp(one->event, "profiling") == 0;
		out->profiled += strcmp(one->event, "profiled") == 0;
		if (strcmp(one->event, "not_found") == 0) {
			bool imported = !strstr(one->reason, "was not imported");
			out->not_found++;
			if (imported || !out->imported) {
				out->near = one->near;
				out->reason = one->reason;
			}
			out->imported |= imported;
		}
		out->imported |= strcmp(one->event, "wrapped") == 0;
		if (*one->overridden_by)
			out->overridden_by = one->overridden_by;
		if (strcmp(one->event, "calls") != 0 || one->calls == NP_NO_I64)
			continue;
		out->told_calls++;
		out->sum_calls += one->calls < INT32_MAX ? one->calls : INT32_MAX;
		if (out->most_calls == NP_NO_I64 || one->calls > out->most_calls)
			out->most_calls = one->calls;
	}
}

size_t np_run_events_count(const struct np_run_events *events, const char *name)
{
	size_t n = 0;
	for (size_t i = 0; i < events->all.n; i++)
		n += strcmp(events->all.v[i].event, name) == 0;
	return n;
}

static int64_t rank_of(const struct np_run_event *event)
{
	return event->rank == NP_NO_I64 ? 0 : event->rank;
}

bool np_run_events_recorded(const struct np_run_events *events, int64_t rank)
{
	for (size_t i = 0; i < events->all.n; i++)
		if (strcmp(events->all.v[i].event, "profiled") == 0 &&
		    rank_of(&events->all.v[i]) == rank)
			return true;
	return false;
}

static bool is_alive(int64_t pid)
{
	return pid > 0 && pid <= INT_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* Is some process in its window? Workers that learned their RANK after the target was wrapped all
 * look like rank 0 until they record. */
static bool is_any_recording(const struct np_run_events *events)
{
	for (size_t i = 0; i < events->all.n; i++) {
		const struct np_run_event *one = &events->all.v[i];
		bool over = strcmp(one->event, "profiling") != 0;
		for (size_t k = i + 1; k < events->all.n && !over; k++)
			over = events->all.v[k].pid == one->pid &&
			       strcmp(events->all.v[k].event, "profiled") == 0;
		if (!over && is_alive(one->pid))
			return true;
	}
	return false;
}

bool np_run_events_done(const struct np_run_events *events, const int64_t *ranks, size_t n_ranks)
{
	size_t done = 0;
	if (is_any_recording(events))
		return false;
	for (size_t i = 0; ranks && i < n_ranks; i++)
		if (!np_run_events_recorded(events, ranks[i]))
			return false;
	if (ranks)
		return n_ranks > 0;
	for (size_t i = 0; i < events->all.n; i++) {
		const struct np_run_event *one = &events->all.v[i];
		if (strcmp(one->event, "wrapped") != 0)
			continue;
		if (!np_run_events_recorded(events, rank_of(one)))
			return false;
		done++;
	}
	return done > 0;
}
