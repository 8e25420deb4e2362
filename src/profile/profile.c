#include "profile/profile.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* One description per table, known outside (profile.h declares them). */
#define DESC(tag, COLUMNS) NP_TABLE_DESC(, tag, &#tag[3], COLUMNS)

#define NP_TAG np_steps
DESC(np_steps, NP_STEPS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_kernels
DESC(np_kernels, NP_KERNELS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_kernel_shapes
DESC(np_kernel_shapes, NP_KERNEL_SHAPES_COLUMNS)
#undef NP_TAG
#define NP_TAG np_host_ops
DESC(np_host_ops, NP_HOST_OPS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_host_conns
DESC(np_host_conns, NP_HOST_CONNS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_mstx
DESC(np_mstx, NP_MSTX_COLUMNS)
#undef NP_TAG
#define NP_TAG np_tasks
DESC(np_tasks, NP_TASKS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_comm_ops
DESC(np_comm_ops, NP_COMM_OPS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_comm_tasks
DESC(np_comm_tasks, NP_COMM_TASKS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_comm_schedule
DESC(np_comm_schedule, NP_COMM_SCHEDULE_COLUMNS)
#undef NP_TAG
#define NP_TAG np_comm_time
DESC(np_comm_time, NP_COMM_TIME_COLUMNS)
#undef NP_TAG
#define NP_TAG np_comm_bandwidth
DESC(np_comm_bandwidth, NP_COMM_BANDWIDTH_COLUMNS)
#undef NP_TAG
#define NP_TAG np_comm_matrix
DESC(np_comm_matrix, NP_COMM_MATRIX_COLUMNS)
#undef NP_TAG
#define NP_TAG np_flows
DESC(np_flows, NP_FLOWS_COLUMNS)
#undef NP_TAG
#define NP_TAG np_step_trace
DESC(np_step_trace, NP_STEP_TRACE_COLUMNS)
#undef NP_TAG
#define NP_TAG np_op_memory
DESC(np_op_memory, NP_OP_MEMORY_COLUMNS)
#undef NP_TAG
#define NP_TAG np_memory
DESC(np_memory, NP_MEMORY_COLUMNS)
#undef NP_TAG
#define NP_TAG np_counters
DESC(np_counters, NP_COUNTERS_COLUMNS)
#undef NP_TAG

struct np_profile *np_profile_new(void)
{
	struct np_profile *self = np_calloc(1, sizeof *self);
	if (!self)
		return NULL;
	np_arena_init(&self->arena);
	if (!np_intern_init(&self->strings)) {
		np_profile_free(self);
		return NULL;
	}
	return self;
}

void np_profile_free(struct np_profile *self)
{
	if (!self)
		return;
#define RELEASE_(tag, COLUMNS, member) np_rows_release(&self->member, &tag##_desc);
	NP_TABLES(RELEASE_)
#undef RELEASE_
	for (size_t i = 0; i < self->metrics.n; i++)
		np_free(self->metrics.v[i].v);
	np_vec_release(&self->metrics);
	np_vec_release(&self->diags);
	np_map_release(&self->step_rows);
	np_intern_release(&self->strings);
	np_arena_release(&self->arena);
	np_free(self);
}

void np_profile_diag(struct np_profile *self, const char *code, const char *file, uint64_t count,
                     const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	struct np_diag diag = {.code = code, .count = count};
	diag.text = np_arena_cstr(&self->arena, np_str_of(text));
	diag.file = file ? np_arena_cstr(&self->arena, np_str_of(file)) : NULL;
	if (diag.text)
		(void)np_vec_push(&self->diags, diag);
}

const struct np_metric *np_profile_metric(const struct np_profile *self, const char *name)
{
	uint32_t id = np_intern_find(&self->strings, np_str_of(name));
	for (size_t i = 0; id != NP_ID_NONE && i < self->metrics.n; i++)
		if (self->metrics.v[i].name == id)
			return &self->metrics.v[i];
	return NULL;
}

struct np_metric *np_profile_metric_add(struct np_profile *self, np_str name)
{
	uint32_t id = np_intern_add(&self->strings, name);
	if (id == NP_ID_NONE)
		return NULL;
	for (size_t i = 0; i < self->metrics.n; i++)
		if (self->metrics.v[i].name == id)
			return &self->metrics.v[i];
	size_t rows = self->kernels.n;
	struct np_metric metric = {.name = id, .v = np_realloc(NULL, rows, sizeof(double))};
	if (!metric.v)
		return NULL;
	for (size_t i = 0; i < rows; i++)
		metric.v[i] = NAN;
	if (!np_vec_push(&self->metrics, metric)) {
		np_free(metric.v);
		return NULL;
	}
	return &self->metrics.v[self->metrics.n - 1];
}

bool np_profile_metric_adopt(struct np_profile *self, np_str name, double *v)
{
	uint32_t id = np_intern_add(&self->strings, name);
	bool known = false;
	for (size_t i = 0; i < self->metrics.n && !known; i++)
		known = self->metrics.v[i].name == id;
	if (id != NP_ID_NONE && !known && np_vec_push(&self->metrics, (struct np_metric){id, v}))
		return true;
	np_free(v);
	return id != NP_ID_NONE && known;
}

uint32_t np_profile_find_step(const struct np_profile *self, int64_t id)
{
	return np_map_get(&self->step_rows, (uint64_t)id, NP_NO_U32);
}

uint32_t np_profile_add_step(struct np_profile *self, int64_t id)
{
	uint32_t found = np_profile_find_step(self, id);
	if (found != NP_NO_U32)
		return found;
	size_t row = np_profile_add(self, steps);
	if (row == SIZE_MAX)
		return NP_NO_U32;
	struct np_steps *steps = &self->steps;
	steps->id[row] = id;
	steps->host_start_ns[row] = steps->host_end_ns[row] = NP_NO_I64;
	steps->start_ns[row] = steps->end_ns[row] = NP_NO_I64;
	steps->kernels[row] = 0;
	return np_map_put(&self->step_rows, (uint64_t)id, (uint32_t)row) ? (uint32_t)row
	                                                                 : NP_NO_U32;
}

uint32_t np_profile_comm_type(struct np_profile *self, uint32_t name)
{
	np_str text = np_intern_get(&self->strings, name);
	for (size_t i = 0; i + 1 < text.len; i++)
		if (text.ptr[i] == '_' && text.ptr[i + 1] == '_')
			return np_intern_add(&self->strings, np_str_sub(text, 0, i + 1));
	return name;
}

bool np_is_comm_core(np_str core)
{
	return np_str_is(core, "COMMUNICATION") || np_str_is(core, "HCCL");
}
