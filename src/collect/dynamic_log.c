#include "collect/dynamic_log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profile/profile.h"
#include "report/lang.h"

#define SECOND 1000000000LL

const char *np_dyn_state_name(enum np_dyn_state state)
{
	static const char *const names[NP_DYN_N_STATES] = {
		[NP_DYN_UNSEEN] = NP_N("no log"),
		[NP_DYN_WAITING] = NP_N("waiting"),
		[NP_DYN_TRIGGERED] = NP_N("triggered"),
		[NP_DYN_RECORDING] = NP_N("recording"),
		[NP_DYN_STOPPED] = NP_N("recorded"),
		[NP_DYN_COMPLETE] = NP_N("complete"),
		[NP_DYN_EXCLUDED] = NP_N("not in rank_list"),
		[NP_DYN_REFUSED] = NP_N("refused"),
		[NP_DYN_BROKEN] = NP_N("no shared memory"),
		[NP_DYN_ENDED] = NP_N("ended while recording"),
	};
	return state < NP_DYN_N_STATES ? names[state] : "";
}

/* ── names ── */

/* Cut the number behind the last `sep` off. */
static bool cut_number(np_str *text, const char *sep, int64_t *out)
{
	size_t len = strlen(sep);
	for (size_t at = text->len; at-- > 0;) {
		if (at + len > text->len || memcmp(text->ptr + at, sep, len) != 0)
			continue;
		if (!np_str_to_i64(np_str_from(*text, at + len), out))
			return false;
		*text = np_str_sub(*text, 0, at);
		return true;
	}
	return false;
}

bool np_dyn_log_name(struct np_arena *arena, const char *name, struct np_dyn_log *out)
{
	np_str text = np_str_of(name);
	*out = (struct np_dyn_log){.start_step = -1, .stop_step = -1, .poll_seconds = -1};
	if (!np_str_ends(text, NP_STR(".log")))
		return false;
	text.len -= 4;
	out->is_monitor = np_str_starts(text, NP_STR("monitor_"));
	if (out->is_monitor)
		text = np_str_from(text, 8);
	if (!np_str_starts(text, NP_STR("dp_")))
		return false;
	text = np_str_from(text, 3);
	if (!cut_number(&text, "_rank_", &out->rank) || !cut_number(&text, "_", &out->pid))
		return false;
	out->host = np_arena_cstr(arena, text);
	return out->host != NULL;
}

/* ── lines ── */

/* "2025-01-31 12:34:56,789" (or a T, or a point) near the start of a line, in local time.
 * *until (may be NULL) is the end of what it may mean: without a fraction the whole second. */
static bool line_time(np_str line, np_ns *out, np_ns *until)
{
	int n = 0, ms = -1;
	char text[96];
	int y, mo, d, h, mi, s;
	size_t len = line.len < sizeof text - 1 ? line.len : sizeof text - 1;
	if (len && line.ptr)
		memcpy(text, line.ptr, len);
	text[len] = '\0';
	for (const char *at = text; (at = strpbrk(at, "0123456789")) != NULL;
	     at += strspn(at, "0123456789")) {
		if (strspn(at, "0123456789") != 4 || sscanf(at, "%4d-%2d-%2d%*1[ T]%2d:%2d:%2d%n",
		                                            &y, &mo, &d, &h, &mi, &s, &n) != 6)
			continue;
		if (sscanf(at + n, "%*1[.,]%3d", &ms) != 1)
			ms = -1;
		struct tm local = {.tm_year = y - 1900,
		                   .tm_mon = mo - 1,
		                   .tm_mday = d,
		                   .tm_hour = h,
		                   .tm_min = mi,
		                   .tm_sec = s,
		                   .tm_isdst = -1};
		time_t when = mktime(&local);
		if (when == (time_t)-1)
			return false;
		*out = (np_ns)when * SECOND + (ms > 0 ? ms : 0) * (SECOND / 1000);
		if (until)
			*until = *out + (ms < 0 ? SECOND : SECOND / 1000) - 1;
		return true;
	}
	return false;
}

bool np_dyn_output_time(const char *name, np_ns *out)
{
	int y, mo, d, h, mi, s, ms;
	np_str text = np_str_of(name), rank = NP_STR("_ascend_pt");
	if (!np_str_ends(text, rank) || text.len < rank.len + 18)
		return false;
	const char *at = name + text.len - rank.len - 17;
	if (at[-1] != '_' || strspn(at, "0123456789") != 17 ||
	    sscanf(at, "%4d%2d%2d%2d%2d%2d%3d", &y, &mo, &d, &h, &mi, &s, &ms) != 7)
		return false;
	struct tm local = {.tm_year = y - 1900,
	                   .tm_mon = mo - 1,
	                   .tm_mday = d,
	                   .tm_hour = h,
	                   .tm_min = mi,
	                   .tm_sec = s,
	                   .tm_isdst = -1};
	time_t when = mktime(&local);
	*out = (np_ns)when * SECOND + ms * (SECOND / 1000);
	return when != (time_t)-1;
}

static np_str next_line(np_str *text)
{
	const char *end = text->len && text->ptr ? memchr(text->ptr, '\n', text->len) : NULL;
	if (!end) /* not complete yet */
		return *text = (np_str){NULL, 0};
	np_str line = {text->ptr, (size_t)(end - text->ptr)};
	*text = np_str_from(*text, line.len + 1);
	return line;
}

np_ns np_dyn_log_shift(np_str text, np_ns mtime_ns)
{
	enum { QUARTER = 900 };
	np_ns last = 0, when;
	bool any = false;
	while (text.len && text.ptr && memchr(text.ptr, '\n', text.len)) {
		if (line_time(next_line(&text), &when, NULL)) {
			last = when;
			any = true;
		}
	}
	if (!any)
		return 0;
	np_ns seconds = (mtime_ns - last) / SECOND;
	return (seconds + (seconds < 0 ? -QUARTER / 2 : QUARTER / 2)) / QUARTER * QUARTER * SECOND;
}

/* The number in front of what follows `mark`: "… at 12 step." */
static int64_t number_after(np_str line, const char *mark)
{
	const char *at =
		line.len && line.ptr ? memmem(line.ptr, line.len, mark, strlen(mark)) : NULL;
	int64_t number = 0;
	if (!at)
		return -1;
	at += strlen(mark);
	const char *end = line.ptr + line.len, *first = at;
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return np_str_to_i64((np_str){first, (size_t)(at - first)}, &number) ? number : -1;
}

enum event {
	EV_NONE,
	EV_START_SET,
	EV_START,
	EV_STOP,
	EV_EXIT,
	EV_EXCLUDED,
	EV_ANALYSE_OFF,
	EV_REFUSED,
	EV_BROKEN,
	EV_LOADED,
	EV_NOT_LOADED,
	EV_POLL,
};

static enum event event_of(np_str line)
{
	static const struct {
		const char *text;
		enum event event;
	} known[] = {
		{"Start step will be set to ", EV_START_SET},
		{"Start Dynamic Profiler at ", EV_START},
		{"Stop Dynamic Profiler at ", EV_STOP},
		{"Profiler stop when process exit", EV_EXIT},
		{"not in valid rank_list", EV_EXCLUDED},
		{"async_mode is false", EV_ANALYSE_OFF},
		{"config is not effective", EV_REFUSED},
		{"Share memory read error", EV_BROKEN},
		{"Share memory bytes to json error", EV_BROKEN},
		{"There may exist shared memory before this task", EV_BROKEN},
		{"load json success", EV_LOADED},
		{"load json failed", EV_NOT_LOADED},
		{"Load json failed", EV_NOT_LOADED},
		{"cfg json not exists", EV_NOT_LOADED},
		{"is not readable", EV_NOT_LOADED},
		{"poll interval time change to ", EV_POLL},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (np_str_contains(line, np_str_of(known[i].text)))
			return known[i].event;
	return EV_NONE;
}

/* The message without ESC sequences, for people. */
static void keep_why(struct np_dyn_log *self, np_str line)
{
	size_t n = 0;
	for (size_t i = 0; i < line.len && n + 1 < sizeof self->why; i++) {
		if (line.ptr[i] == '\033' && i + 1 < line.len && line.ptr[i + 1] == '[') {
			for (i += 2; i < line.len && (line.ptr[i] < '@' || line.ptr[i] > '~'); i++)
				;
			continue;
		}
		self->why[n++] = line.ptr[i];
	}
	self->why[n] = '\0';
}

static void fail(struct np_dyn_log *self, enum np_dyn_state state, np_str line)
{
	self->state = state;
	keep_why(self, line);
}

static void take_event(struct np_dyn_log *self, np_str line, bool fresh)
{
	enum event event = event_of(line);
	if (event == EV_POLL)
		self->poll_seconds = number_after(line, "poll interval time change to ");
	if (event == EV_BROKEN) /* whenever it was said: it lasts */
		fail(self, NP_DYN_BROKEN, line);
	if (!fresh)
		return;
	switch (event) {
	case EV_START_SET:
		self->state = NP_DYN_TRIGGERED;
		self->start_step = number_after(line, "Start step will be set to ");
		break;
	case EV_START:
		self->state = NP_DYN_RECORDING;
		self->start_step = number_after(line, "Start Dynamic Profiler at ");
		break;
	case EV_STOP:
		self->state = NP_DYN_STOPPED;
		self->stop_step = number_after(line, "Stop Dynamic Profiler at ");
		break;
	case EV_EXIT:
		fail(self, NP_DYN_ENDED, line);
		break;
	case EV_EXCLUDED:
		fail(self, NP_DYN_EXCLUDED, line);
		break;
	case EV_REFUSED:
		fail(self, NP_DYN_REFUSED, line);
		break;
	case EV_ANALYSE_OFF:
		self->analyse_off = true;
		break;
	case EV_LOADED:
		self->loads++;
		break;
	case EV_NOT_LOADED:
		self->failed_loads++;
		keep_why(self, line);
		break;
	default:
		break;
	}
}

void np_dyn_log_take(struct np_dyn_log *self, np_str text, np_ns since, np_ns shift_ns)
{
	np_ns when, until;
	bool fresh = true;
	if (self->state == NP_DYN_UNSEEN)
		self->state = NP_DYN_WAITING;
	while (text.len) {
		np_str line = next_line(&text);
		if (line_time(line, &when, &until))
			fresh = until + shift_ns >= since;
		take_event(self, line, fresh);
	}
}

/* ── files ── */

static void read_file(const char *path, struct np_buf *out, struct stat *st)
{
	char block[65536];
	size_t got;
	FILE *file = fopen(path, "re");
	*st = (struct stat){0};
	if (!file)
		return;
	if (fstat(fileno(file), st) == 0)
		while (out->len < (8U << 20) && (got = fread(block, 1, sizeof block, file)) > 0)
			np_buf_add(out, block, got);
	(void)fclose(file);
}

static void take_files(struct np_dyn_log *self, np_ns since)
{
	enum { TRIES = 3 };
	char older[4096];
	struct np_buf new_text = {0}, old_text = {0};
	struct stat st = {0}, old_st = {0};
	(void)snprintf(older, sizeof older, "%s.1", self->path);
	self->read_ns = np_time_now();
	/* the newer part first: when it was renamed meanwhile it would come twice, so again */
	for (int i = 0; i < TRIES; i++) {
		np_buf_clear(&new_text);
		np_buf_clear(&old_text);
		read_file(self->path, &new_text, &st);
		read_file(older, &old_text, &old_st);
		if (st.st_ino == 0 || st.st_ino != old_st.st_ino)
			break;
	}
	self->mtime_ns = (np_ns)st.st_mtim.tv_sec * SECOND + st.st_mtim.tv_nsec;
	np_ns shift = np_dyn_log_shift(np_buf_str(&new_text), self->mtime_ns);
	self->shift_ns = shift;
	np_dyn_log_take(self, np_buf_str(&old_text), since, shift);
	np_dyn_log_take(self, np_buf_str(&new_text), since, shift);
	np_buf_release(&new_text);
	np_buf_release(&old_text);
}

/* An earlier result is still right when the file was quiet before it was read: two writes
 * within a tick of the clock have the same time. */
static const struct np_dyn_log *known(const struct np_dyn_logs *previous, const char *path,
                                      np_ns mtime_ns)
{
	for (size_t i = 0; previous && i < previous->v.n; i++) {
		const struct np_dyn_log *log = &previous->v.v[i];
		if (strcmp(log->path, path) == 0)
			return log->mtime_ns == mtime_ns && log->read_ns - mtime_ns > SECOND ? log
			                                                                     : NULL;
	}
	return NULL;
}

enum np_status np_dyn_logs_read(struct np_arena *arena, const char *config_dir, np_ns since,
                                const struct np_dyn_logs *previous, struct np_dyn_logs *out,
                                struct np_err *err)
{
	struct np_dir entries = {0};
	*out = (struct np_dyn_logs){0};
	const char *dir = np_path_join(arena, config_dir, "log");
	if (!dir)
		return np_err_nomem(err);
	if (np_dir_list(arena, dir, &entries, NULL) == NP_E_NOMEM)
		return np_err_nomem(err);
	for (size_t i = 0; i < entries.n; i++) {
		struct np_dyn_log log;
		struct np_file_stat st;
		if (!np_dyn_log_name(arena, entries.v[i].name, &log))
			continue;
		log.path = np_path_join(arena, dir, entries.v[i].name);
		if (!log.path)
			return np_err_nomem(err);
		if (np_file_stat(log.path, true, &st, NULL) != NP_OK || st.kind != NP_FILE_REG)
			continue;
		const struct np_dyn_log *same = known(previous, log.path, st.mtime_ns);
		if (same) {
			const char *path = log.path, *host = log.host;
			log = *same;
			log.path = path;
			log.host = host;
		} else {
			take_files(&log, since);
		}
		if (!np_vec_push(&out->v, log))
			return np_err_nomem(err);
	}
	return NP_OK;
}

void np_dyn_logs_release(struct np_dyn_logs *self)
{
	np_vec_release(&self->v);
}

const struct np_dyn_log *np_dyn_log_of(const struct np_dyn_logs *self, int64_t rank)
{
	const struct np_dyn_log *best = NULL;
	for (size_t i = 0; i < self->v.n; i++) {
		const struct np_dyn_log *log = &self->v.v[i];
		if (!log->is_monitor && log->rank == rank &&
		    (!best || log->mtime_ns > best->mtime_ns))
			best = log;
	}
	return best;
}

bool np_dyn_log_is_dead(const struct np_dyn_log *self)
{
	char host[256];
	if (gethostname(host, sizeof host) != 0 || strcmp(host, self->host) != 0)
		return false;
	return self->pid > 0 && self->pid < INT32_MAX && kill((pid_t)self->pid, 0) != 0 &&
	       errno == ESRCH;
}
