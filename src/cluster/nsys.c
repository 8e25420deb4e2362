#include "cluster/nsys.h"

#include <stdlib.h>

#include "base/map.h"
#include "cluster/grouping.h"
#include "io/db.h"

enum { PUSH_POP = 59 };

/* globalTid and globalPid are pid << 24, with the thread's id in the lowest bits. */
#define PROCESS_OF(tid) ((int64_t)((uint64_t)(tid) & ~(uint64_t)0xffffff))

struct range {
	int64_t tid;
	np_ns start, end;
	uint32_t name;
	bool is_module, is_op;
};

struct call {
	int64_t pid, correlation, tid;
	np_ns start;
};

struct launch {
	int64_t tid;
	np_ns at, dur;
	uint32_t device, kernel;
};

struct reader {
	struct np_nsys *out;
	struct np_db *db;
	struct np_map texts; /* StringIds.id → id */
	NP_VEC(struct range) ranges;
	NP_VEC(struct call) calls;
	NP_VEC(struct launch) launches;
	bool has_pid;
};

/* ── tables ── */

typedef bool take_row(struct reader *self, const struct np_db_value *row);
/* Told of the open scan before its first row. */
typedef void take_head(struct reader *self, const struct np_db_scan *rows);

static enum np_status scan(struct reader *self, const char *table, const char *const *columns,
                           size_t n, take_head *begin, take_row *take, struct np_err *err)
{
	struct np_db_scan *rows;
	struct np_db_value row[8];
	bool got;
	enum np_status status = np_db_scan_open(self->db, table, columns, n, 0, &rows, err);
	if (status == NP_E_NOTFOUND)
		return np_err_set(err, NP_E_FORMAT, NULL,
		                  "not a database of Nsight Systems: it has no table %s", table);
	NP_TRY(status);
	if (begin)
		begin(self, rows);
	status = np_db_scan_next(rows, row, &got, err);
	while (status == NP_OK && got) {
		status =
			take(self, row) ? np_db_scan_next(rows, row, &got, err) : np_err_nomem(err);
	}
	np_db_scan_close(rows);
	return status;
}

static bool take_string(struct reader *self, const struct np_db_value *row)
{
	int64_t id;
	if (!np_db_i64(&row[0], &id) || row[1].type != NP_DB_TEXT) {
		self->out->dropped++;
		return true;
	}
	uint32_t text = np_intern_add(&self->out->strings, np_db_text(&row[1]));
	return text != NP_ID_NONE && np_map_put(&self->texts, (uint64_t)id, text);
}

static bool is_module(np_str name)
{
	static const char *const words[] = {"Qwen",      "Attention", "Linear", "RMSNorm",
	                                    "Embedding", "Sampler",   "Logits"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (np_str_contains(name, np_str_of(words[i])))
			return true;
	return false;
}

/* start, end, eventType, text, textId, globalTid */
static bool take_range(struct reader *self, const struct np_db_value *row)
{
	int64_t type, start, end, id, tid;
	if (!np_db_i64(&row[2], &type) || type != PUSH_POP)
		return true;
	if (!np_db_i64(&row[0], &start) || !np_db_i64(&row[1], &end) || !np_db_i64(&row[5], &tid) ||
	    start < 0 || end < start) {
		self->out->dropped++;
		return true;
	}
	np_str name = np_db_text(&row[3]);
	if (name.len == 0 && np_db_i64(&row[4], &id))
		name = np_intern_get(&self->out->strings,
		                     np_map_get(&self->texts, (uint64_t)id, NP_ID_NONE));
	struct range range = {.tid = tid,
	                      .start = start,
	                      .end = end,
	                      .is_module = is_module(name),
	                      .is_op = np_str_contains(name, NP_STR("::"))};
	if (!range.is_module && !range.is_op)
		return true;
	range.name = np_intern_add(&self->out->strings, name);
	return range.name != NP_ID_NONE && np_vec_push(&self->ranges, range);
}

/* start, correlationId, globalTid */
static bool take_call(struct reader *self, const struct np_db_value *row)
{
	struct call call = {0};
	if (!np_db_i64(&row[0], &call.start) || !np_db_i64(&row[1], &call.correlation) ||
	    !np_db_i64(&row[2], &call.tid) || call.start < 0) {
		self->out->dropped++;
		return true;
	}
	call.pid = PROCESS_OF(call.tid);
	return np_vec_push(&self->calls, call);
}

static int by_correlation(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

/* Old exports do not tell the process of a kernel: there is one then. */
static void begin_kernels(struct reader *self, const struct np_db_scan *rows)
{
	self->has_pid = np_db_scan_has_column(rows, 4);
	for (size_t i = 0; !self->has_pid && i < self->calls.n; i++)
		self->calls.v[i].pid = 0;
	if (self->calls.n > 1)
		qsort(self->calls.v, self->calls.n, sizeof *self->calls.v, by_correlation);
}

/* start, end, deviceId, correlationId, globalPid, shortName, demangledName */
static bool take_kernel(struct reader *self, const struct np_db_value *row)
{
	int64_t start, end, device, name;
	struct call key = {0};
	self->out->kernels++;
	bool ok = np_db_i64(&row[0], &start) && np_db_i64(&row[1], &end) &&
	          np_db_i64(&row[2], &device) && np_db_i64(&row[3], &key.correlation) &&
	          start >= 0 && end >= start && device >= 0 && device < UINT32_MAX;
	if (ok && self->has_pid)
		ok = np_db_i64(&row[4], &key.pid);
	key.pid = PROCESS_OF(key.pid);
	const struct call *call = ok && self->calls.n > 0
	                                  ? bsearch(&key, self->calls.v, self->calls.n,
	                                            sizeof *self->calls.v, by_correlation)
	                                  : NULL;
	if (!call) {
		self->out->dropped++;
		return true;
	}
	uint32_t text = NP_ID_NONE;
	for (int c = 5; c <= 6 && text == NP_ID_NONE; c++)
		if (np_db_i64(&row[c], &name))
			text = np_map_get(&self->texts, (uint64_t)name, NP_ID_NONE);
	struct launch launch = {.tid = call->tid,
	                        .at = call->start,
	                        .dur = end - start,
	                        .device = (uint32_t)device,
	                        .kernel = text == NP_ID_NONE ? 0 : text};
	return np_vec_push(&self->launches, launch);
}

static enum np_status read_tables(struct reader *self, struct np_err *err)
{
	static const char *const strings[] = {"id", "value"};
	static const char *const ranges[] = {"start", "end",    "eventType",
	                                     "text",  "textId", "globalTid"};
	static const char *const calls[] = {"start", "correlationId", "globalTid"};
	static const char *const kernels[] = {"start",         "end",       "deviceId",
	                                      "correlationId", "globalPid", "shortName",
	                                      "demangledName"};
	NP_TRY(scan(self, "StringIds", strings, 2, NULL, take_string, err));
	NP_TRY(scan(self, "NVTX_EVENTS", ranges, 6, NULL, take_range, err));
	NP_TRY(scan(self, "CUPTI_ACTIVITY_KIND_RUNTIME", calls, 3, NULL, take_call, err));
	return scan(self, "CUPTI_ACTIVITY_KIND_KERNEL", kernels, 7, begin_kernels, take_kernel,
	            err);
}

/* ── modules around the launches ── */

static int by_thread(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end < y->end) - (x->end > y->end); /* the outer one first */
}

static int by_launch(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* An open range: what a launch in it belongs to. */
struct open {
	np_ns end;
	uint32_t parent, module, op, depth;
};

/* "a/b" and "c" give "a/b/c". */
static uint32_t join(struct np_intern *strings, uint32_t path, uint32_t name)
{
	struct np_buf text = {0};
	np_str last = np_intern_get(strings, name);
	np_buf_add_str(&text, np_intern_get(strings, path));
	np_buf_add_cstr(&text, text.len > 0 ? "/" : "");
	np_buf_add_str(&text, np_str_sub(last, 0, NP_NSYS_NAME_BYTES));
	uint32_t id = text.failed ? NP_ID_NONE : np_intern_add(strings, np_buf_str(&text));
	np_buf_release(&text);
	return id;
}

static bool enter(struct np_intern *strings, const struct range *range, struct open *now)
{
	np_str rest;
	now->end = range->end;
	if (range->is_op)
		now->op = np_intern_add(
			strings,
			np_str_trim(np_str_cut(np_intern_get(strings, range->name), ',', &rest)));
	if (range->is_module && now->depth < NP_NSYS_MAX_DEPTH) {
		now->parent = now->depth > 0 ? join(strings, now->parent, now->module) : 0;
		now->module = range->name;
		now->depth++;
	}
	return now->parent != NP_ID_NONE && now->op != NP_ID_NONE;
}

struct columns {
	uint32_t *device, *parent, *module, *op, *kernel;
};

static bool place(struct reader *self, struct columns *out)
{
	NP_VEC(struct open) stack = {0};
	size_t next = 0;
	bool ok = true;
	for (size_t i = 0; ok && i < self->launches.n; i++) {
		const struct launch *launch = &self->launches.v[i];
		if (i > 0 && launch[-1].tid != launch->tid)
			stack.n = 0;
		while (ok && next < self->ranges.n &&
		       (self->ranges.v[next].tid < launch->tid ||
		        (self->ranges.v[next].tid == launch->tid &&
		         self->ranges.v[next].start <= launch->at))) {
			const struct range *range = &self->ranges.v[next++];
			if (range->tid != launch->tid || range->end < launch->at)
				continue; /* closed before: nothing was launched in it */
			while (stack.n > 0 && stack.v[stack.n - 1].end < range->start)
				stack.n--;
			struct open now = stack.n > 0 ? stack.v[stack.n - 1] : (struct open){0};
			ok = enter(&self->out->strings, range, &now) && np_vec_push(&stack, now);
		}
		while (stack.n > 0 && stack.v[stack.n - 1].end < launch->at)
			stack.n--;
		struct open in = stack.n > 0 ? stack.v[stack.n - 1] : (struct open){0};
		out->device[i] = in.depth > 0 ? launch->device : UINT32_MAX;
		out->parent[i] = in.parent;
		out->module[i] = in.module;
		out->op[i] = in.op;
		out->kernel[i] = launch->kernel;
	}
	np_vec_release(&stack);
	return ok;
}

static bool add_up(struct reader *self, const struct columns *c)
{
	const uint32_t *const keys[] = {c->device, c->parent, c->module, c->op, c->kernel};
	struct np_groups groups;
	bool ok = np_group_rows(self->launches.n, keys, 5, &groups);
	for (size_t g = 0; ok && g < groups.n; g++) {
		uint32_t at = np_group_row(&groups, g);
		struct np_nsys_row row = {c->device[at],
		                          c->parent[at],
		                          c->module[at],
		                          c->op[at],
		                          c->kernel[at],
		                          0,
		                          np_group_size(&groups, g)};
		if (row.device == UINT32_MAX) {
			self->out->outside += row.count;
			continue;
		}
		for (size_t i = 0; i < row.count; i++) {
			np_ns dur = self->launches.v[groups.order[groups.start[g] + i]].dur;
			if (__builtin_add_overflow(row.total_ns, dur, &row.total_ns))
				row.total_ns = INT64_MAX;
		}
		ok = np_vec_push(&self->out->rows, row);
	}
	np_groups_release(&groups);
	return ok;
}

static bool attribute(struct reader *self)
{
	size_t n = self->launches.n;
	uint32_t *memory = np_calloc(n + 1, 5 * sizeof *memory);
	if (!memory)
		return false;
	struct columns columns = {memory, memory + n, memory + 2 * n, memory + 3 * n,
	                          memory + 4 * n};
	if (self->ranges.n > 1)
		qsort(self->ranges.v, self->ranges.n, sizeof *self->ranges.v, by_thread);
	if (n > 1)
		qsort(self->launches.v, n, sizeof *self->launches.v, by_launch);
	bool ok = place(self, &columns) && add_up(self, &columns);
	np_free(memory);
	return ok;
}

enum np_status np_nsys_read(const char *path, struct np_nsys *out, struct np_err *err)
{
	struct reader self = {.out = out};
	*out = (struct np_nsys){0};
	np_map_init(&self.texts);
	enum np_status status = np_intern_init(&out->strings) ? NP_OK : np_err_nomem(err);
	if (status == NP_OK)
		status = np_db_open(path, &self.db, err);
	if (status == NP_OK)
		status = read_tables(&self, err);
	if (status == NP_OK && !attribute(&self))
		status = np_err_nomem(err);
	np_db_close(self.db);
	np_map_release(&self.texts);
	np_vec_release(&self.ranges);
	np_vec_release(&self.calls);
	np_vec_release(&self.launches);
	return status;
}

void np_nsys_release(struct np_nsys *self)
{
	np_intern_release(&self->strings);
	np_vec_release(&self->rows);
}
