#include "cluster/summary_files.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cluster/export.h"
#include "cluster/grouping.h"
#include "cluster/task_links.h"

static void add_real(struct np_buf *out, double value)
{
	char digits[NP_PYTHON_CHARS];
	np_buf_add(out, digits, np_format_python(value, digits));
}

/* ── api_statistic.csv ── */

struct api {
	uint32_t name;
	np_ns total, min, max;
	size_t n, order;
};

static int by_total(const void *a, const void *b)
{
	const struct api *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->order > y->order) - (x->order < y->order);
}

static void measure(const struct np_tasks *tasks, const uint32_t *rows, size_t n, struct api *out)
{
	out->n = n;
	for (size_t i = 0; i < n; i++) {
		np_ns dur = tasks->dur_ns[rows[i]];
		out->total += dur;
		out->min = i == 0 || dur < out->min ? dur : out->min;
		out->max = i == 0 || dur > out->max ? dur : out->max;
	}
}

static void put_api(const struct np_profile *profile, const struct api *api, struct np_buf *out)
{
	np_export_csv_text(out, np_intern_get(&profile->strings, api->name));
	np_buf_printf(out, ",%" PRId64 ",%zu,", api->total, api->n);
	add_real(out, (double)api->total / (double)api->n);
	np_buf_printf(out, ",%" PRId64 ",%" PRId64 "\n", api->min, api->max);
}

/* Tasks without a call have the name NP_ID_NONE and are left out. */
static bool group_apis(const struct np_profile *profile, const uint32_t *names, struct np_buf *out)
{
	const struct np_tasks *tasks = &profile->tasks;
	const uint32_t *const keys[] = {names};
	struct np_groups groups;
	bool ok = np_group_rows(tasks->n, keys, 1, &groups);
	struct api *apis = ok ? np_calloc(groups.n + 1, sizeof *apis) : NULL;
	size_t n = 0;
	for (size_t g = 0; apis && g < groups.n; g++) {
		uint32_t name = names[np_group_row(&groups, g)];
		if (name == NP_ID_NONE)
			continue;
		apis[n] = (struct api){.name = name, .order = n};
		measure(tasks, &groups.order[groups.start[g]], np_group_size(&groups, g),
		        &apis[n++]);
	}
	if (apis)
		qsort(apis, n, sizeof *apis, by_total);
	for (size_t i = 0; apis && i < n; i++)
		put_api(profile, &apis[i], out);
	ok = apis != NULL;
	np_free(apis);
	np_groups_release(&groups);
	return ok;
}

bool np_summary_apis(const struct np_profile *profile, struct np_buf *out)
{
	struct np_task_links links;
	uint32_t *names = np_realloc(NULL, profile->tasks.n + 1, sizeof *names);
	bool ok = np_task_links_build(profile, &links) && names;
	for (size_t i = 0; ok && i < profile->tasks.n; i++)
		names[i] = links.cann[i] == NP_NO_U32 ? NP_ID_NONE
		                                      : profile->host_ops.name[links.cann[i]];
	np_buf_add_cstr(out, "API Name,Total Time(ns),Count,Avg Time(ns),Min Time(ns),"
	                     "Max Time(ns)\n");
	ok = ok && group_apis(profile, names, out);
	np_task_links_release(&links);
	np_free(names);
	return ok && !out->failed;
}

/* ── kernel_details.csv ── */

/* A kernel, or a task of the CPU that unfolds a collective. */
struct row {
	np_ns start, dur;
	uint32_t at;
	bool scheduled;
};

struct column {
	const struct np_metric *metric;
	np_str heading;
	np_str key; /* the column's name in TASK_PMU_INFO, by which they are sorted */
};

struct details {
	const struct np_profile *profile;
	bool compat, has_state;
	struct row *rows;
	size_t n, first_kernel; /* the first row that is neither a collective nor of one */
	struct column *columns;
	size_t n_columns;
	struct np_buf *out;
};

static int by_start(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->scheduled != y->scheduled)
		return x->scheduled - y->scheduled;
	return (x->at > y->at) - (x->at < y->at);
}

static bool list_rows(struct details *self)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	const struct np_comm_schedule *scheduled = &self->profile->comm_schedule;
	bool sorted = true;
	self->rows = np_realloc(NULL, kernels->n + scheduled->n + 1, sizeof *self->rows);
	if (!self->rows)
		return false;
	for (size_t i = 0; i < kernels->n; i++) {
		self->has_state |= kernels->op_state[i] != NP_ID_NONE;
		self->rows[self->n++] =
			(struct row){kernels->start_ns[i], kernels->dur_ns[i], (uint32_t)i, false};
	}
	for (size_t i = 0; i < scheduled->n; i++)
		self->rows[self->n++] = (struct row){scheduled->start_ns[i], scheduled->dur_ns[i],
		                                     (uint32_t)i, true};
	for (size_t i = 1; i < self->n && sorted; i++)
		sorted = self->rows[i - 1].start <= self->rows[i].start;
	if (!sorted)
		qsort(self->rows, self->n, sizeof *self->rows, by_start);
	return true;
}

static int by_key(const void *a, const void *b)
{
	return np_str_cmp(((const struct column *)a)->key, ((const struct column *)b)->key);
}

static bool list_columns(struct details *self)
{
	const struct np_profile *profile = self->profile;
	self->columns = np_realloc(NULL, profile->metrics.n + 1, sizeof *self->columns);
	for (size_t i = 0; self->columns && i < profile->metrics.n; i++) {
		np_str name = np_intern_get(&profile->strings, profile->metrics.v[i].name);
		if (np_str_ends(name, NP_STR("(us)")))
			name = np_str_sub(name, 0, name.len - 4);
		np_str key = np_str_is(name, "aicore_time") ? NP_STR("aic_total_time")
		             : np_str_is(name, "aiv_time")  ? NP_STR("aiv_total_time")
		                                            : name;
		self->columns[self->n_columns++] =
			(struct column){&profile->metrics.v[i], name, key};
	}
	if (self->columns)
		qsort(self->columns, self->n_columns, sizeof *self->columns, by_key);
	return self->columns != NULL;
}

static void put_head(const struct details *self)
{
	np_buf_add_cstr(self->out, "op_name,block_dim,mix_block_dim,op_type,task_type,"
	                           "input_formats,input_shapes,input_data_types,output_shapes,"
	                           "output_formats,output_data_types,");
	np_buf_add_cstr(self->out, self->has_state ? "op_state," : "");
	np_buf_add_cstr(self->out, "task_start_time,task_duration,device_id,model_id,stream_id,"
	                           "context_id,task_id,");
	for (size_t c = 0; c < self->n_columns; c++) {
		np_export_csv_text(self->out, self->columns[c].heading);
		np_buf_add_char(self->out, ',');
	}
	np_buf_add_cstr(self->out, "task_wait_time\n");
}

static void text_cell(const struct details *self, uint32_t id)
{
	if (id == NP_ID_NONE)
		np_buf_add_cstr(self->out, "N/A");
	else
		np_export_csv_text(self->out, np_intern_get(&self->profile->strings, id));
	np_buf_add_char(self->out, ',');
}

static void number_cell(const struct details *self, uint32_t value, bool known)
{
	if (known)
		np_buf_printf(self->out, "%" PRIu32 ",", value);
	else
		np_buf_add_cstr(self->out, "N/A,");
}

static void time_cells(const struct details *self, const struct row *row)
{
	char text[32];
	if (self->compat) {
		add_real(self->out, (double)row->start / 1000);
	} else {
		(void)np_ns_format_us(text, sizeof text, row->start);
		np_buf_add_cstr(self->out, text);
	}
	np_buf_add_char(self->out, ',');
	add_real(self->out, (double)row->dur / 1000);
	np_buf_add_char(self->out, ',');
}

static bool is_comm(const struct details *self, const struct row *row)
{
	const struct np_profile *profile = self->profile;
	return !row->scheduled &&
	       np_is_comm_core(np_intern_get(&profile->strings, profile->kernels.core[row->at]));
}

/* To the end of the row before; the official tool counts from its start to this end, and
 * has nothing in the first row and 0 in the first one of a kernel. */
static void wait_cell(const struct details *self, size_t i)
{
	const struct row *row = &self->rows[i];
	double wait = 0;
	if (i == 0 && self->compat && self->first_kernel != 0) {
		np_buf_add_char(self->out, '\n');
		return;
	}
	if (i > 0 && i != self->first_kernel && self->compat)
		wait = (double)(row->start + row->dur) - (double)row[-1].start;
	else if (i > 0 && !self->compat && row->start > row[-1].start + row[-1].dur)
		wait = (double)(row->start - row[-1].start - row[-1].dur);
	add_real(self->out, wait / 1000);
	np_buf_add_char(self->out, '\n');
}

static void put_metrics(const struct details *self, size_t kernel, bool comm)
{
	for (size_t c = 0; c < self->n_columns; c++) {
		double value = self->columns[c].metric->v[kernel];
		if (isnan(value) && self->compat && !comm)
			value = 0;
		if (isnan(value) || comm)
			np_buf_add_cstr(self->out, "N/A");
		else
			add_real(self->out, value);
		np_buf_add_char(self->out, ',');
	}
}

static void put_kernel(const struct details *self, size_t r)
{
	const struct np_kernels *k = &self->profile->kernels;
	const struct np_kernel_shapes *s = &self->profile->kernel_shapes;
	size_t i = self->rows[r].at;
	bool comm = is_comm(self, &self->rows[r]);
	bool shapes = s->n > i && !comm;
	text_cell(self, k->name[i]);
	number_cell(self, k->block_num[i], !comm && k->block_num[i] != NP_NO_U32);
	number_cell(self, k->mix_block_num[i], !comm && k->mix_block_num[i] != NP_NO_U32);
	text_cell(self, k->type[i]);
	text_cell(self, k->core[i]);
	text_cell(self, shapes ? s->in_formats[i] : NP_ID_NONE);
	text_cell(self, shapes ? s->in_shapes[i] : NP_ID_NONE);
	text_cell(self, shapes ? s->in_dtypes[i] : NP_ID_NONE);
	text_cell(self, shapes ? s->out_shapes[i] : NP_ID_NONE);
	text_cell(self, shapes ? s->out_formats[i] : NP_ID_NONE);
	text_cell(self, shapes ? s->out_dtypes[i] : NP_ID_NONE);
	if (self->has_state)
		text_cell(self, k->op_state[i]);
	time_cells(self, &self->rows[r]);
	number_cell(self, k->device[i], k->device[i] != NP_NO_U32);
	/* 4294967295 is what the exporters write for "none" */
	number_cell(self, k->model[i], true);
	number_cell(self, k->stream[i], !comm && k->stream[i] != NP_NO_U32);
	number_cell(self, k->context[i], !comm);
	number_cell(self, k->task[i], !comm && k->task[i] != NP_NO_U32);
	put_metrics(self, i, comm);
}

static void put_scheduled(const struct details *self, size_t r)
{
	const struct np_comm_schedule *s = &self->profile->comm_schedule;
	size_t i = self->rows[r].at;
	text_cell(self, s->name[i]);
	np_buf_add_cstr(self->out, "N/A,N/A,");
	text_cell(self, s->type[i]);
	text_cell(self, s->core[i]);
	for (int c = 0; c < 6 + self->has_state; c++)
		np_buf_add_cstr(self->out, "N/A,");
	time_cells(self, &self->rows[r]);
	number_cell(self, s->device[i], s->device[i] != NP_NO_U32);
	number_cell(self, s->model[i], true);
	number_cell(self, s->stream[i], s->stream[i] != NP_NO_U32);
	number_cell(self, s->context[i], true);
	number_cell(self, s->task[i], s->task[i] != NP_NO_U32);
	for (size_t c = 0; c < self->n_columns; c++)
		np_buf_add_cstr(self->out, "N/A,");
}

bool np_summary_kernels(const struct np_profile *profile, bool compat, struct np_buf *out)
{
	struct details self = {.profile = profile, .compat = compat, .out = out};
	bool ok = list_rows(&self) && list_columns(&self);
	if (ok)
		put_head(&self);
	while (ok && self.first_kernel < self.n &&
	       (self.rows[self.first_kernel].scheduled ||
	        is_comm(&self, &self.rows[self.first_kernel])))
		self.first_kernel++;
	for (size_t r = 0; ok && r < self.n; r++) {
		if (self.rows[r].scheduled)
			put_scheduled(&self, r);
		else
			put_kernel(&self, r);
		wait_cell(&self, r);
	}
	np_free(self.rows);
	np_free(self.columns);
	return ok && !out->failed;
}
