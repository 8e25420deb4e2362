#include "collect/dynamic_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/dynamic_check.h"
#include "collect/dynamic_store.h"
#include "report/lang.h"

/* ── ranks of the command line ── */

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

typedef NP_VEC(int64_t) numbers;

static bool add_range(void *to, np_str part)
{
	enum { MAX_RANKS = 1 << 20 };
	numbers *all = to;
	np_str last, first = np_str_cut(np_str_trim(part), '-', &last);
	int64_t from, until;
	if (!np_str_to_i64(first, &from) || from < 0)
		return false;
	until = from;
	if (np_str_contains(part, NP_STR("-")) && !np_str_to_i64(last, &until))
		return false;
	if (until < from || until - from >= MAX_RANKS || all->n >= MAX_RANKS)
		return false;
	for (int64_t rank = from; rank <= until; rank++)
		if (!np_vec_push(all, rank))
			return false;
	return true;
}

enum np_status np_dyn_ranks_parse(const char *text, int64_t **out, size_t *n, struct np_err *err)
{
	numbers all = {0};
	np_str rest = np_str_trim(np_str_of(text));
	int64_t count;
	bool good = rest.len > 0;
	char whole[32];
	if (np_str_to_i64(rest, &count) && count > 0) {
		(void)snprintf(whole, sizeof whole, "0-%lld", (long long)(count - 1));
		rest = np_str_of(whole);
	}
	while (good && rest.len) {
		np_str part = np_str_cut(rest, ',', &rest);
		good = add_range(&all, part);
	}
	if (!good || all.n == 0) {
		np_vec_release(&all);
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "ranks are a number of ranks or a list like 0,3,8-11, not '%s'",
		                  text);
	}
	qsort(all.v, all.n, sizeof *all.v, by_number);
	size_t kept = 0;
	for (size_t i = 0; i < all.n; i++)
		if (kept == 0 || all.v[kept - 1] != all.v[i])
			all.v[kept++] = all.v[i];
	*out = all.v;
	*n = kept;
	return NP_OK;
}

/* ── the configuration ── */

static void take_doc(struct np_dyn_watching *self, const struct np_dyn_text *doc)
{
	const struct np_dyn_member *list = np_dyn_member(doc, NP_DYN_RANK_LIST);
	const struct np_dyn_member *place = np_dyn_member(doc, NP_DYN_PROF_DIR);
	int64_t rank;
	self->is_rank = np_dyn_bool(doc, NP_DYN_IS_RANK);
	self->analyse = np_dyn_bool(doc, NP_DYN_ANALYSE) &&
	                (!self->is_rank || np_dyn_bool(doc, NP_DYN_ASYNC_MODE));
	self->triggered = np_dyn_int(doc, NP_DYN_START_STEP) != 0;
	self->profile = np_str_is(np_dyn_word(doc, NP_DYN_METRICS), "AiCoreNone") ? NP_GATE_CLUSTER
	                                                                          : NP_GATE_KERNEL;
	self->listed.n = 0;
	for (size_t i = 0; list && list->value->type == NP_J_ARRAY && i < list->value->n; i++)
		if (np_ji64(&list->value->child[i], &rank))
			(void)np_vec_push(&self->listed, rank);
	np_str dir = place ? np_jstr(place->value) : NP_STR("");
	if (self->options->prof_dir)
		dir = np_str_of(self->options->prof_dir);
	if (dir.len == 0)
		dir = NP_STR("./");
	self->relative = !self->options->prof_dir && dir.ptr[0] != '/';
	self->prof_dir = np_arena_cstr(&self->report->arena, dir);
}

/* A configuration that is being changed may be unreadable for a moment: *err is set then. */
static enum np_status read_config(struct np_dyn_watching *self, struct np_err *err)
{
	struct np_dyn_text doc;
	struct np_file_stat st;
	np_str text;
	NP_TRY(np_file_stat(self->config, true, &st, err));
	if (st.kind == NP_FILE_NONE)
		return np_err_set(err, NP_E_NOTFOUND, self->config, "no such file");
	if (self->prof_dir && st.mtime_ns == self->config_time)
		return NP_OK; /* read already */
	self->config_time = st.mtime_ns;
	NP_TRY(np_dyn_read(&self->report->arena, self->config, &text, err));
	NP_TRY(np_dyn_text_read(&self->report->arena, text, self->config, false, &doc, err));
	take_doc(self, &doc);
	np_dyn_text_release(&doc);
	if (!self->options->has_since)
		self->since = st.mtime_ns - (np_ns)(self->options->gate.tolerance_seconds * 1e9);
	return self->prof_dir ? NP_OK : np_err_nomem(err);
}

/* ── who is expected ── */

static struct np_dyn_rank *rank_of(struct np_dyn_watching *self, int64_t rank)
{
	for (size_t i = 0; i < self->ranks.n; i++)
		if (self->ranks.v[i].rank == rank)
			return &self->ranks.v[i];
	if (!np_vec_push(&self->ranks, (struct np_dyn_rank){.rank = rank}))
		return NULL;
	return &self->ranks.v[self->ranks.n - 1];
}

static bool is_listed(const struct np_dyn_watching *self, int64_t rank)
{
	for (size_t i = 0; i < self->listed.n; i++)
		if (self->listed.v[i] == rank)
			return true;
	return false;
}

static int by_rank(const void *a, const void *b)
{
	const struct np_dyn_rank *x = a, *y = b;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static enum np_status gather(struct np_dyn_watching *self)
{
	const struct np_dyn_watch_options *options = self->options;
	self->ranks.n = 0;
	for (size_t i = 0; i < options->n_ranks; i++) {
		struct np_dyn_rank *rank = rank_of(self, options->ranks[i]);
		if (!rank)
			return np_err_nomem(self->err);
		rank->expected = true;
	}
	for (size_t i = 0; i < self->logs.v.n; i++) {
		const struct np_dyn_log *log = &self->logs.v.v[i];
		if (log->is_monitor || np_dyn_log_of(&self->logs, log->rank) != log)
			continue;
		struct np_dyn_rank *rank = rank_of(self, log->rank);
		if (!rank)
			return np_err_nomem(self->err);
		rank->log = log;
		rank->state = log->state;
		/* a log of an earlier job says nothing */
		bool gone = np_dyn_log_is_dead(log) && log->mtime_ns < self->since;
		if (!options->ranks)
			rank->expected = !gone && (!self->is_rank || is_listed(self, log->rank));
	}
	if (self->ranks.n)
		qsort(self->ranks.v, self->ranks.n, sizeof *self->ranks.v, by_rank);
	return NP_OK;
}

/* ── outputs ── */

/* Whose output is it? By host and pid, else by its profiler_info. */
static struct np_dyn_rank *owner_of(struct np_dyn_watching *self, const char *name,
                                    const struct np_dir *inside)
{
	char start[512];
	for (size_t i = 0; i < self->ranks.n; i++) {
		const struct np_dyn_log *log = self->ranks.v[i].log;
		if (!log)
			continue;
		(void)snprintf(start, sizeof start, "%s_%lld_", log->host, (long long)log->pid);
		if (strncmp(name, start, strlen(start)) == 0)
			return &self->ranks.v[i];
	}
	for (size_t i = 0; i < inside->n; i++) {
		np_str file = np_str_of(inside->v[i].name);
		int64_t number;
		if (!np_str_starts(file, NP_STR("profiler_info_")) ||
		    !np_str_ends(file, NP_STR(".json")) ||
		    !np_str_to_i64(np_str_sub(file, 14, file.len - 19), &number))
			continue;
		for (size_t k = 0; k < self->ranks.n; k++)
			if (self->ranks.v[k].rank == number)
				return &self->ranks.v[k];
	}
	return NULL;
}

static bool is_there(struct np_arena *arena, const char *dir, const char *name)
{
	struct np_file_stat st;
	const char *path = np_path_join(arena, dir, name);
	return path && np_file_stat(path, true, &st, NULL) == NP_OK && st.kind != NP_FILE_NONE;
}

static bool is_complete(struct np_dyn_watching *self, const struct np_dyn_rank *rank,
                        const char *path, const struct np_dir *inside)
{
	bool raw = !self->analyse || (rank->log && rank->log->analyse_off);
	if (!raw)
		return is_there(&self->arena, path, "ASCEND_PROFILER_OUTPUT/analyse.done");
	bool ended = false;
	for (size_t i = 0; i < inside->n; i++)
		ended = ended ||
		        np_str_starts(np_str_of(inside->v[i].name), NP_STR("profiler_info"));
	return ended && (!rank->log || rank->state == NP_DYN_STOPPED);
}

static void look_at_output(struct np_dyn_watching *self, const char *name)
{
	struct np_file_stat st;
	struct np_dir inside = {0};
	const char *path = np_path_join(&self->arena, self->prof_dir, name);
	if (!path || np_file_stat(path, true, &st, NULL) != NP_OK || st.kind != NP_FILE_DIR ||
	    st.mtime_ns < self->since || np_dir_list(&self->arena, path, &inside, NULL) != NP_OK)
		return;
	struct np_dyn_rank *rank = owner_of(self, name, &inside);
	if (!rank)
		return;
	/* the analysis of an earlier capture may touch its directory now; its name stays */
	np_ns named;
	if (rank->log && np_dyn_output_time(name, &named) &&
	    named + rank->log->shift_ns < self->since)
		return;
	/* names end in the time: of several the last one is the newest */
	rank->output = name;
	bool failed = rank->state > NP_DYN_COMPLETE;
	if (!failed && is_complete(self, rank, path, &inside))
		rank->state = NP_DYN_COMPLETE;
}

/* One look at logs and outputs. */
static enum np_status look(struct np_dyn_watching *self)
{
	struct np_arena before = self->arena;
	struct np_dyn_logs previous = self->logs;
	struct np_dir outputs = {0};
	np_arena_init(&self->arena);
	enum np_status status = np_dyn_logs_read(&self->arena, self->dir, self->since, &previous,
	                                         &self->logs, self->err);
	np_dyn_logs_release(&previous);
	np_arena_release(&before);
	if (status == NP_OK)
		status = gather(self);
	if (status == NP_OK && np_dir_list(&self->arena, self->prof_dir, &outputs, NULL) == NP_OK)
		for (size_t i = 0; i < outputs.n; i++)
			if (np_str_ends(np_str_of(outputs.v[i].name), NP_STR("_ascend_pt")))
				look_at_output(self, outputs.v[i].name);
	return status;
}

/* ── the loop ── */

enum outcome { GOING_ON, ALL_COMPLETE, NOTHING_MORE };

static enum outcome outcome_of(const struct np_dyn_watching *self, size_t *complete,
                               size_t *expected)
{
	size_t failed = 0;
	*complete = *expected = 0;
	for (size_t i = 0; i < self->ranks.n; i++) {
		if (!self->ranks.v[i].expected)
			continue;
		++*expected;
		*complete += self->ranks.v[i].state == NP_DYN_COMPLETE;
		failed += self->ranks.v[i].state > NP_DYN_COMPLETE;
	}
	if (*expected && *complete == *expected)
		return ALL_COMPLETE;
	return *expected && *complete + failed == *expected ? NOTHING_MORE : GOING_ON;
}

/* What the rank that is furthest behind of those that have begun is doing. */
static void show(struct np_dyn_watching *self, size_t complete, size_t expected)
{
	struct np_progress *progress = self->options->gate.progress;
	const char *what = NP_N("waiting for the trigger");
	size_t seen[NP_DYN_N_STATES] = {0};
	if (!progress)
		return;
	for (size_t i = 0; i < self->ranks.n; i++)
		if (self->ranks.v[i].expected)
			seen[self->ranks.v[i].state]++;
	if (seen[NP_DYN_RECORDING])
		what = NP_N("recording");
	else if (seen[NP_DYN_STOPPED])
		what = NP_N("analysing");
	else if (seen[NP_DYN_COMPLETE])
		what = NP_N("waiting for the other ranks");
	else if (self->triggered)
		what = NP_N("waiting for the ranks to start");
	atomic_store(&progress->done, complete);
	atomic_store(&progress->total, expected);
	atomic_store(&progress->what, np_tr(what));
}

static void nap(double seconds)
{
	struct timespec pause = {(time_t)seconds,
	                         (long)((seconds - (double)(time_t)seconds) * 1e9)};
	(void)nanosleep(&pause, NULL);
}

static enum np_status follow(struct np_dyn_watching *self, enum outcome *outcome)
{
	const struct np_dyn_watch_options *options = self->options;
	np_ns until = np_time_now() + (np_ns)(options->timeout_seconds * 1e9);
	size_t complete = 0, expected = 0;
	for (;;) {
		/* not asked for yet: `since` is the time of the edit that asks */
		if (!self->triggered && !options->has_since)
			(void)read_config(self, NULL);
		NP_TRY(look(self));
		*outcome = outcome_of(self, &complete, &expected);
		show(self, complete, expected);
		if (*outcome != GOING_ON)
			return NP_OK;
		if (options->timeout_seconds > 0 && np_time_now() >= until)
			return NP_OK;
		nap(options->poll_seconds > 0 ? options->poll_seconds : 0.5);
	}
}

/* ── the gate over what is new ── */

static bool is_output(const struct np_dyn_watching *self, const struct np_capture *capture)
{
	for (size_t i = 0; i < self->ranks.n; i++)
		if (self->ranks.v[i].expected && self->ranks.v[i].output &&
		    strcmp(self->ranks.v[i].output, capture->name) == 0)
			return true;
	return false;
}

static enum np_status judge(struct np_dyn_watching *self)
{
	struct np_gate_options gate = self->options->gate;
	struct np_captures *all = NULL;
	size_t kept = 0;
	if (!self->options->has_profile)
		gate.profile = self->profile;
	gate.has_start_epoch = true;
	gate.start_epoch = (double)self->since / 1e9;
	NP_TRY(np_discover(self->prof_dir, &all, self->err));
	/* captures of earlier triggers in the same directory are not what was asked for: behind
	 * the end while the gate looks, back again to be freed */
	size_t total = all->captures.n;
	for (size_t i = 0; i < total; i++) {
		struct np_capture *capture = all->captures.v[i];
		if (!is_output(self, capture))
			continue;
		all->captures.v[i] = all->captures.v[kept];
		all->captures.v[kept++] = capture;
	}
	all->captures.n = kept;
	np_report_input(self->report, self->prof_dir);
	np_report_note(self->report, "judged as %s: %zu new captures",
	               np_gate_profile_name(gate.profile), kept);
	enum np_status status = np_gate_run(all, &gate, self->report, self->err);
	all->captures.n = total;
	np_captures_free(all);
	return status;
}

static enum np_status finish(struct np_dyn_watching *self, enum outcome outcome)
{
	np_dyn_tell_ranks(self);
	if (outcome == ALL_COMPLETE)
		return judge(self);
	np_dyn_tell_missing(self);
	bool over = outcome == NOTHING_MORE;
	self->report->verdict = over ? NP_VERDICT_FAIL : NP_VERDICT_UNKNOWN;
	self->report->exit_code = over ? 1 : 3;
	return NP_OK;
}

enum np_status np_dyn_watch(const char *dir, const struct np_dyn_watch_options *options,
                            struct np_report *report, struct np_err *err)
{
	struct np_dyn_watching self = {.options = options, .report = report, .err = err};
	enum outcome outcome = GOING_ON;
	self.config = np_dyn_config_path(&report->arena, dir);
	self.dir = self.config ? np_dyn_config_dir(&report->arena, self.config) : NULL;
	if (!self.dir)
		return np_err_nomem(err);
	self.since = options->since;
	np_arena_init(&self.arena);
	np_report_input(report, self.config);
	enum np_status status = read_config(&self, err);
	if (status == NP_OK)
		status = follow(&self, &outcome);
	if (status == NP_OK)
		status = finish(&self, outcome);
	np_dyn_logs_release(&self.logs);
	np_vec_release(&self.ranks);
	np_vec_release(&self.listed);
	np_arena_release(&self.arena);
	return status == NP_OK ? np_report_ok(report, err) : status;
}
