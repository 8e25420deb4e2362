/*
 * Kernels and tasks: COMPUTE_TASK_INFO ⋈ TASK on globalTaskId, and TASK_PMU_INFO.
 */
#include <math.h>
#include <string.h>

#include "capture/db_load.h"

size_t np_dbl_add_kernel(struct np_dbl *self)
{
	struct np_kernels *k = &self->profile->kernels;
	struct np_kernel_shapes *s = &self->profile->kernel_shapes;
	/* shapes stay parallel to the kernels, also behind kernels of another file without */
	bool shapes = (self->what & NP_KERNEL_SHAPES) || s->n > 0;
	while (shapes && s->n <= k->n) {
		size_t r = np_profile_add(self->profile, kernel_shapes);
		if (r == SIZE_MAX)
			return SIZE_MAX;
		s->in_shapes[r] = s->in_dtypes[r] = s->in_formats[r] = NP_ID_NONE;
		s->out_shapes[r] = s->out_dtypes[r] = s->out_formats[r] = NP_ID_NONE;
	}
	size_t i = np_profile_add(self->profile, kernels);
	if (i == SIZE_MAX)
		return SIZE_MAX;
	k->step[i] = k->device[i] = k->stream[i] = k->task[i] = NP_NO_U32;
	k->context[i] = k->model[i] = k->conn[i] = NP_NO_U32;
	k->name[i] = k->type[i] = k->core[i] = k->op_state[i] = k->hf32[i] = NP_ID_NONE;
	k->start_ns[i] = k->wait_ns[i] = NP_NO_I64;
	k->dur_ns[i] = 0;
	k->block_num[i] = k->mix_block_num[i] = NP_NO_U32;
	return i;
}

/* ── COMPUTE_TASK_INFO ── */

/* The newest exporter also has a blockDim, which is something else: blockNum comes first. */
#define COMPUTE_COLUMNS(X)                      \
	X(ID, "globalTaskId")                   \
	X(NAME, "name")                         \
	X(BLOCK, "blockNum|blockDim")           \
	X(MIX_BLOCK, "mixBlockNum|mixBlockDim") \
	X(CORE, "taskType")                     \
	X(TYPE, "opType")                       \
	X(STATE, "opState")                     \
	X(HF32, "hf32Eligible")                 \
	X(IN_FORMATS, "inputFormats")           \
	X(IN_DTYPES, "inputDataTypes")          \
	X(IN_SHAPES, "inputShapes")             \
	X(OUT_FORMATS, "outputFormats")         \
	X(OUT_DTYPES, "outputDataTypes")        \
	X(OUT_SHAPES, "outputShapes")

enum {
#define X(id, name) C_##id,
	COMPUTE_COLUMNS(X)
#undef X
		N_COMPUTE,
};

static const char *const compute_columns[] = {
#define X(id, name) name,
	COMPUTE_COLUMNS(X)
#undef X
};

static void set_shapes(struct np_dbl *self, size_t i, const struct np_db_value *row)
{
	struct np_kernel_shapes *s = &self->profile->kernel_shapes;
	s->in_shapes[i] = np_dbl_string_na(self, &row[C_IN_SHAPES]);
	s->in_dtypes[i] = np_dbl_string_na(self, &row[C_IN_DTYPES]);
	s->in_formats[i] = np_dbl_string_na(self, &row[C_IN_FORMATS]);
	s->out_shapes[i] = np_dbl_string_na(self, &row[C_OUT_SHAPES]);
	s->out_dtypes[i] = np_dbl_string_na(self, &row[C_OUT_DTYPES]);
	s->out_formats[i] = np_dbl_string_na(self, &row[C_OUT_FORMATS]);
}

static enum np_status compute_row(struct np_dbl *self, const struct np_db_value *row)
{
	int64_t id = np_dbl_i64(&row[C_ID]);
	uint32_t name = np_dbl_string_na(self, &row[C_NAME]);
	if (name != NP_ID_NONE && (self->what & (NP_TASKS | NP_HOST_OPS)) &&
	    !np_ids_put(&self->compute_name, id, name))
		return np_err_nomem(self->err);
	if (!(self->what & NP_KERNELS))
		return NP_OK;
	size_t i = np_dbl_add_kernel(self);
	if (i == SIZE_MAX || !np_ids_put(&self->kernel_of, id, (uint32_t)i))
		return np_err_nomem(self->err);
	struct np_kernels *k = &self->profile->kernels;
	k->name[i] = name;
	k->core[i] = np_dbl_string_na(self, &row[C_CORE]);
	k->type[i] = np_dbl_string_na(self, &row[C_TYPE]);
	k->op_state[i] = np_dbl_string_na(self, &row[C_STATE]);
	k->hf32[i] = np_dbl_string_na(self, &row[C_HF32]);
	k->block_num[i] = np_dbl_u32(&row[C_BLOCK]);
	k->mix_block_num[i] = np_dbl_u32(&row[C_MIX_BLOCK]);
	if (self->what & NP_KERNEL_SHAPES)
		set_shapes(self, i, row);
	return NP_OK;
}

/* ── TASK ── */

#define TASK_COLUMNS(X)         \
	X(START, "startNs")     \
	X(END, "endNs")         \
	X(DEVICE, "deviceId")   \
	X(CONN, "connectionId") \
	X(ID, "globalTaskId")   \
	X(TYPE, "taskType")     \
	X(CONTEXT, "contextId") \
	X(STREAM, "streamId")   \
	X(TASK, "taskId")       \
	X(MODEL, "modelId")

enum {
#define X(id, name) T_##id,
	TASK_COLUMNS(X)
#undef X
		N_TASK,
};

static const char *const task_columns[] = {
#define X(id, name) name,
	TASK_COLUMNS(X)
#undef X
};

struct task {
	int64_t id, conn;
	np_ns start, dur;
	uint32_t device, stream, task;
};

static void place_kernel(struct np_dbl *self, const struct task *task,
                         const struct np_db_value *row)
{
	uint32_t i = np_ids_get(&self->kernel_of, task->id);
	if (i == NP_IDS_NONE)
		return;
	struct np_kernels *k = &self->profile->kernels;
	if (k->start_ns[i] != NP_NO_I64) {
		self->duplicates++;
		return;
	}
	k->start_ns[i] = task->start;
	k->dur_ns[i] = task->dur;
	k->device[i] = task->device;
	k->stream[i] = task->stream;
	k->task[i] = task->task;
	k->context[i] = np_dbl_u32(&row[T_CONTEXT]);
	k->model[i] = np_dbl_u32(&row[T_MODEL]);
	k->conn[i] = np_dbl_u32(&row[T_CONN]);
}

static void place_comm_task(struct np_dbl *self, const struct task *task)
{
	uint32_t i = np_ids_get(&self->comm_task_of, task->id);
	if (i == NP_IDS_NONE)
		return;
	struct np_comm_tasks *c = &self->profile->comm_tasks;
	if (c->start_ns[i] != NP_NO_I64) {
		self->duplicates++;
		return;
	}
	c->start_ns[i] = task->start;
	c->dur_ns[i] = task->dur;
	c->device[i] = task->device;
	c->stream[i] = task->stream;
	c->task[i] = task->task;
}

static void place_schedule(struct np_dbl *self, const struct task *task,
                           const struct np_db_value *row)
{
	uint32_t i = np_ids_get(&self->schedule_of, task->id);
	if (i == NP_IDS_NONE)
		return;
	struct np_comm_schedule *s = &self->profile->comm_schedule;
	if (s->start_ns[i] != NP_NO_I64) {
		self->duplicates++;
		return;
	}
	s->start_ns[i] = task->start;
	s->dur_ns[i] = task->dur;
	s->device[i] = task->device;
	s->stream[i] = task->stream;
	s->task[i] = task->task;
	s->context[i] = np_dbl_u32(&row[T_CONTEXT]);
	s->model[i] = np_dbl_u32(&row[T_MODEL]);
	s->conn[i] = task->conn;
}

/* The name is that of the kernel, else the type of the task, as on the timeline's
 * "Ascend Hardware" lanes; a collective's tasks have their own names in comm_tasks. */
static bool add_task(struct np_dbl *self, const struct task *task, uint32_t compute_name,
                     const struct np_db_value *row)
{
	size_t i = np_profile_add(self->profile, tasks);
	if (i == SIZE_MAX)
		return false;
	struct np_tasks *t = &self->profile->tasks;
	t->type[i] = np_dbl_string(self, &row[T_TYPE]);
	t->name[i] = compute_name != NP_ID_NONE ? compute_name : t->type[i];
	t->compute[i] = compute_name != NP_ID_NONE;
	t->device[i] = task->device;
	t->stream[i] = task->stream;
	t->task[i] = task->task;
	t->context[i] = np_dbl_u32(&row[T_CONTEXT]);
	t->start_ns[i] = task->start;
	t->dur_ns[i] = task->dur;
	t->conn[i] = task->conn;
	return true;
}

void np_dbl_note_device(struct np_dbl *self, uint32_t device)
{
	if (self->only_device == device || device == NP_NO_U32)
		return;
	self->only_device = self->only_device == NP_NO_U32 ? device : NP_DBL_MANY;
}

static enum np_status task_row(struct np_dbl *self, const struct np_db_value *row)
{
	struct task task = {.id = np_dbl_i64(&row[T_ID]), .start = np_dbl_i64(&row[T_START])};
	np_ns end = np_dbl_i64(&row[T_END]);
	if (!np_dbl_time(self, task.start, end, &task.dur))
		return NP_OK;
	task.conn = np_dbl_conn(&row[T_CONN]);
	task.device = np_dbl_u32(&row[T_DEVICE]);
	task.stream = np_dbl_u32(&row[T_STREAM]);
	task.task = np_dbl_u32(&row[T_TASK]);
	np_dbl_note_device(self, task.device);
	np_dbl_step_task(self, task.conn, task.start, end);
	if (!np_dbl_comm_device(self, task.conn, task.device))
		return np_err_nomem(self->err);
	place_kernel(self, &task, row);
	place_comm_task(self, &task);
	place_schedule(self, &task, row);
	uint32_t name = np_ids_get(&self->compute_name, task.id);
	if (name != NP_ID_NONE && (self->what & NP_HOST_OPS) && task.conn != NP_NO_I64 &&
	    np_ids_get(&self->launched, task.conn) == NP_IDS_NONE &&
	    !np_ids_put(&self->launched, task.conn, name))
		return np_err_nomem(self->err);
	if ((self->what & NP_TASKS) && !add_task(self, &task, name, row))
		return np_err_nomem(self->err);
	return NP_OK;
}

enum np_status np_dbl_read_tasks(struct np_dbl *self)
{
	bool compute = false, tasks = false;
	self->tasks_seen = true;
	if (self->what & NP_TASKS)
		np_dbl_expect(self, &self->profile->tasks, &np_tasks_desc, "TASK", NULL);
	if (self->what & NP_KERNELS)
		np_dbl_expect(self, &self->profile->kernels, &np_kernels_desc, "COMPUTE_TASK_INFO",
		              "COMMUNICATION_OP");
	if (self->what & (NP_KERNELS | NP_TASKS | NP_HOST_OPS))
		NP_TRY(np_dbl_scan(self, "COMPUTE_TASK_INFO", compute_columns, N_COMPUTE,
		                   compute_row, &compute));
	NP_TRY(np_dbl_scan(self, "TASK", task_columns, N_TASK, task_row, &tasks));
	struct np_profile *p = self->profile;
	if ((self->what & NP_KERNELS) && compute && tasks)
		p->loaded |= NP_KERNELS | (self->what & NP_KERNEL_SHAPES);
	if ((self->what & NP_TASKS) && tasks)
		p->loaded |= NP_TASKS;
	return NP_OK;
}

/* ── TASK_PMU_INFO: one row per kernel and metric ── */

/*
 * "aic_mac_time" → "aic_mac_time(us)": the naming rules of kernel_details.csv
 * (torch_npu.md §3.1), so that both formats have the same columns.
 */
static bool metric_name(np_str name, struct np_buf *out, double *scale)
{
	bool time = np_str_contains(name, NP_STR("time"));
	*scale = time ? 1e-3 : 1; /* ns to us */
	if (np_str_is(name, "aic_total_time") || np_str_is(name, "total_time")) {
		np_buf_add_cstr(out, "aicore_time(us)");
	} else if (np_str_is(name, "aiv_total_time")) {
		np_buf_add_cstr(out, "aiv_time(us)");
	} else {
		if (np_str_ends(name, NP_STR("_extra")))
			name.len -= strlen("_extra");
		np_buf_add_str(out, name);
		if (time)
			np_buf_add_cstr(out, "(us)");
		else if (np_str_contains(name, NP_STR("bw")))
			np_buf_add_cstr(out, "(GB/s)");
		else if (np_str_contains(name, NP_STR("datas")))
			np_buf_add_cstr(out, "(KB)");
	}
	return !out->failed && out->ptr;
}

/* The column of this string id into its place; NULL for one too many. */
static bool choose_metric(struct np_dbl *self, uint32_t name, struct np_dbl_metric *out)
{
	struct np_profile *p = self->profile;
	struct np_buf text = {.max_bytes = 1 << 20};
	*out = (struct np_dbl_metric){.name = name};
	bool ok = metric_name(np_intern_get(&p->strings, name), &text, &out->scale);
	if (ok && (p->metrics.n < NP_DBL_MAX_METRICS || np_profile_metric(p, text.ptr))) {
		struct np_metric *metric = np_profile_metric_add(p, np_buf_str(&text));
		ok = metric != NULL;
		if (metric)
			out->v = metric->v;
	}
	np_buf_release(&text);
	return ok;
}

static enum np_status pmu_row(struct np_dbl *self, const struct np_db_value *row)
{
	uint32_t name = np_dbl_string(self, &row[1]);
	if (name == NP_ID_NONE)
		return NP_OK;
	struct np_dbl_metric *metric =
		&self->metrics[name % (sizeof self->metrics / sizeof *self->metrics)];
	if (name != metric->name && !choose_metric(self, name, metric))
		return np_err_nomem(self->err);
	uint32_t kernel = np_ids_get(&self->kernel_of, np_dbl_i64(&row[0]));
	double value;
	if (kernel != NP_IDS_NONE && metric->v && np_db_double(&row[2], &value))
		metric->v[kernel] = value * metric->scale;
	return NP_OK;
}

/* Metrics of an earlier file reach to all kernels that exist now. */
static bool extend_metrics(struct np_profile *profile, size_t have)
{
	for (size_t m = 0; m < profile->metrics.n; m++) {
		double *v = np_realloc(profile->metrics.v[m].v, profile->kernels.n, sizeof *v);
		if (!v)
			return false;
		profile->metrics.v[m].v = v;
		for (size_t i = have; i < profile->kernels.n; i++)
			v[i] = NAN;
	}
	return true;
}

static enum np_status read_metrics(struct np_dbl *self)
{
	static const char *const columns[] = {"globalTaskId", "name", "value"};
	bool found;
	if (self->profile->kernels.n == 0)
		return NP_OK;
	if (!extend_metrics(self->profile, self->first_kernel))
		return np_err_nomem(self->err);
	if (!(self->what & NP_KERNEL_METRICS))
		return NP_OK;
	for (size_t i = 0; i < sizeof self->metrics / sizeof *self->metrics; i++)
		self->metrics[i].name = NP_ID_NONE;
	NP_TRY(np_dbl_scan(self, "TASK_PMU_INFO", columns, 3, pmu_row, &found));
	if (found)
		self->profile->loaded |= NP_KERNEL_METRICS;
	return NP_OK;
}

/* ── pending rows ── */

/* Keep the rows before `first`, and those behind it that have a start. *kept: their old
 * numbers, malloc'ed, NULL when all rows stay. */
static bool choose_rows(const np_ns *start_ns, size_t first, size_t n, uint32_t **kept,
                        size_t *n_kept)
{
	size_t gone = 0;
	for (size_t i = first; i < n; i++)
		gone += start_ns[i] == NP_NO_I64;
	*kept = NULL;
	*n_kept = n - gone;
	if (gone == 0)
		return true;
	*kept = np_realloc(NULL, n, sizeof **kept);
	if (!*kept)
		return false;
	size_t at = 0;
	for (size_t i = 0; i < n; i++)
		if (i < first || start_ns[i] != NP_NO_I64)
			(*kept)[at++] = (uint32_t)i;
	return true;
}

/* kept[] rises, so rows can move down in place. */
static void keep_values(void *array, size_t size, const uint32_t *kept, size_t n_kept)
{
	char *bytes = array;
	for (size_t i = 0; i < n_kept; i++)
		if (kept[i] != i)
			memcpy(bytes + i * size, bytes + kept[i] * size, size);
}

static void keep_rows(void *table, const struct np_table_desc *desc, const uint32_t *kept,
                      size_t n_kept)
{
	for (size_t c = 0; c < desc->n_columns; c++) {
		void *array;
		memcpy(&array, (char *)table + desc->columns[c].offset, sizeof array);
		keep_values(array, desc->columns[c].elem_size, kept, n_kept);
	}
	((struct np_rows *)table)->n = n_kept;
}

static bool drop_pending_kernels(struct np_dbl *self)
{
	struct np_profile *p = self->profile;
	uint32_t *kept;
	size_t n = p->kernels.n, n_kept;
	if (!choose_rows(p->kernels.start_ns, self->first_kernel, n, &kept, &n_kept))
		return false;
	if (kept) {
		keep_rows(&p->kernels, &np_kernels_desc, kept, n_kept);
		if (p->kernel_shapes.n == n)
			keep_rows(&p->kernel_shapes, &np_kernel_shapes_desc, kept, n_kept);
		for (size_t m = 0; m < p->metrics.n; m++)
			keep_values(p->metrics.v[m].v, sizeof(double), kept, n_kept);
	}
	self->orphans += n - n_kept;
	np_free(kept);
	return true;
}

/* Of a table whose rows nothing else refers to. */
static bool drop_pending(struct np_dbl *self, void *table, const struct np_table_desc *desc,
                         const np_ns *start_ns, size_t first)
{
	uint32_t *kept;
	size_t n = ((struct np_rows *)table)->n, n_kept;
	if (!choose_rows(start_ns, first, n, &kept, &n_kept))
		return false;
	if (kept)
		keep_rows(table, desc, kept, n_kept);
	self->orphans += n - n_kept;
	np_free(kept);
	return true;
}

enum np_status np_dbl_close_tasks(struct np_dbl *self)
{
	if (self->what & NP_KERNELS)
		NP_TRY(read_metrics(self));
	struct np_profile *p = self->profile;
	if (!drop_pending_kernels(self) ||
	    !drop_pending(self, &p->comm_tasks, &np_comm_tasks_desc, p->comm_tasks.start_ns,
	                  self->first_comm_task) ||
	    !drop_pending(self, &p->comm_schedule, &np_comm_schedule_desc,
	                  p->comm_schedule.start_ns, self->first_schedule))
		return np_err_nomem(self->err);
	return NP_OK;
}
