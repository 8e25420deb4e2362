/*
 * A chrome trace of a GPU (PyTorch's own profiler) as a side.
 *
 *   cat kernel        kernels: nccl* is communication; cube by what the name says
 *   cat gpu_memcpy    tasks of type SDMA_SQE: copies
 *   cat cpu_op        operators of the framework
 *   cat cuda_runtime  launches, tied to kernels by args.correlation
 *
 * It becomes a profile, so that all that follows is the same. The whole trace is one
 * sample: its steps are not told apart.
 */
#include <string.h>

#include "analysis/compare_side.h"
#include "io/input.h"
#include "io/json.h"

bool np_is_gpu_trace(const char *path)
{
	struct np_input *input = NULL;
	struct np_window window = {0};
	np_str text = {NULL, 0};
	if (!np_str_ends(np_str_of(path), NP_STR(".json")) &&
	    !np_str_ends(np_str_of(path), NP_STR(".json.gz")))
		return false;
	if (np_input_open(path, &input, NULL) == NP_OK &&
	    np_input_next(input, 0, &window, NULL) == NP_OK)
		text = np_str_trim((np_str){window.ptr, window.len < 64 ? window.len : 64});
	bool object = text.len > 0 && text.ptr[0] == '{';
	np_input_close(input);
	return object;
}

struct gpu {
	struct np_profile *profile;
	uint32_t cube, vector, comm, copy; /* strings */
	size_t no_time;                    /* events without a readable time */
};

static bool contains_any(np_str text, const char *const *words)
{
	for (; *words; words++)
		if (np_str_icontains(text, np_str_of(*words)))
			return true;
	return false;
}

static uint32_t text_of(struct gpu *self, const struct np_jval *event, const char *key)
{
	return np_intern_add(&self->profile->strings, np_jstr(np_jget(event, key)));
}

/* A whole number that fits 31 bits, else 0 (as ids of threads may be texts). */
static uint32_t number_of(const struct np_jval *value)
{
	int64_t number = 0;
	return np_ji64(value, &number) && number >= 0 && number <= INT32_MAX ? (uint32_t)number : 0;
}

static bool time_of(struct gpu *self, const struct np_jval *event, np_ns *start, np_ns *dur)
{
	const struct np_jval *ts = np_jget(event, "ts"), *length = np_jget(event, "dur");
	if (ts && length && np_us_to_ns(ts->text, start) == NP_NUM_OK &&
	    np_us_to_ns(length->text, dur) == NP_NUM_OK && np_time_sane(*start, *dur))
		return true;
	self->no_time++;
	return false;
}

static bool add_kernel(struct gpu *self, const struct np_jval *event, np_ns start, np_ns dur)
{
	static const char *const cube[] = {"gemm", "conv", "cutlass", "wgrad", "gemvx", NULL};
	const struct np_jval *args = np_jget(event, "args");
	np_str name = np_jstr(np_jget(event, "name"));
	size_t i = np_profile_add(self->profile, kernels);
	if (i == SIZE_MAX)
		return false;
	struct np_kernels *k = &self->profile->kernels;
	k->step[i] = k->task[i] = k->context[i] = k->model[i] = NP_NO_U32;
	k->block_num[i] = k->mix_block_num[i] = NP_NO_U32;
	k->type[i] = k->op_state[i] = k->hf32[i] = NP_ID_NONE;
	k->device[i] = number_of(np_jget(args, "device"));
	k->stream[i] = number_of(np_jget(args, "stream"));
	k->conn[i] = number_of(np_jget(args, "correlation"));
	k->name[i] = np_intern_add(&self->profile->strings, name);
	k->core[i] = np_str_istarts(name, NP_STR("nccl")) ? self->comm
	             : contains_any(name, cube)           ? self->cube
	                                                  : self->vector;
	k->start_ns[i] = start;
	k->dur_ns[i] = dur;
	k->wait_ns[i] = NP_NO_I64;
	return k->name[i] != NP_ID_NONE;
}

static bool add_copy(struct gpu *self, const struct np_jval *event, np_ns start, np_ns dur)
{
	const struct np_jval *args = np_jget(event, "args");
	size_t i = np_profile_add(self->profile, tasks);
	if (i == SIZE_MAX)
		return false;
	struct np_tasks *t = &self->profile->tasks;
	t->name[i] = text_of(self, event, "name");
	t->type[i] = self->copy;
	t->device[i] = number_of(np_jget(args, "device"));
	t->stream[i] = number_of(np_jget(args, "stream"));
	t->task[i] = t->context[i] = NP_NO_U32;
	t->start_ns[i] = start;
	t->dur_ns[i] = dur;
	t->conn[i] = NP_NO_I64;
	t->compute[i] = 0;
	return t->name[i] != NP_ID_NONE;
}

static bool add_host(struct gpu *self, const struct np_jval *event, bool launch, np_ns start,
                     np_ns dur)
{
	int64_t correlation = 0;
	size_t i = np_profile_add(self->profile, host_ops);
	if (i == SIZE_MAX)
		return false;
	struct np_host_ops *h = &self->profile->host_ops;
	h->layer[i] = launch ? NP_HOST_NODE : NP_HOST_OP;
	h->name[i] = text_of(self, event, "name");
	h->item[i] = h->shapes[i] = h->dtypes[i] = h->stack[i] = NP_ID_NONE;
	h->pid[i] = number_of(np_jget(event, "pid"));
	h->tid[i] = number_of(np_jget(event, "tid"));
	h->start_ns[i] = start;
	h->dur_ns[i] = dur;
	h->seq[i] = NP_NO_I64;
	h->conn[i] = launch && np_ji64(np_jpath(event, "args.correlation"), &correlation)
	                     ? correlation
	                     : NP_NO_I64;
	return h->name[i] != NP_ID_NONE;
}

static bool add_event(struct gpu *self, const struct np_jval *event)
{
	np_str cat = np_jstr(np_jget(event, "cat"));
	bool kernel = np_str_is(cat, "kernel"), copy = np_str_is(cat, "gpu_memcpy");
	bool op = np_str_is(cat, "cpu_op"), launch = np_str_is(cat, "cuda_runtime");
	np_ns start = 0, dur = 0;
	if ((!kernel && !copy && !op && !launch) || !time_of(self, event, &start, &dur))
		return true;
	return kernel ? add_kernel(self, event, start, dur)
	       : copy ? add_copy(self, event, start, dur)
	              : add_host(self, event, launch, start, dur);
}

/* ── the profile as an analysis: one span ── */

static bool add_rows(struct np_analysis *out, struct np_span *span)
{
	const struct np_kernels *kernels = &out->profile->kernels;
	for (size_t i = 0; i < kernels->n; i++) {
		np_ns start = kernels->start_ns[i], end = start + kernels->dur_ns[i];
		bool comm = out->class[i] == NP_CLASS_COMM;
		if (!np_intervals_add(comm ? &out->comm : &out->compute, start, end))
			return false;
		span->start = i == 0 || start < span->start ? start : span->start;
		span->end = i == 0 || end > span->end ? end : span->end;
		span->kernels++;
		span->comm_kernels += comm;
		out->span_of[i] = 0;
		out->rows[out->n_rows++] = (uint32_t)i;
	}
	return true;
}

static bool make_analysis(struct np_analysis *out)
{
	size_t n = out->profile->kernels.n;
	struct np_span span = {.id = NP_NO_I64, .step_row = NP_NO_U32};
	struct np_intervals exposed = {0};
	span.host_start = span.host_end = span.preparing = NP_NO_I64;
	out->device = n > 0 ? out->profile->kernels.device[0] : NP_NO_U32;
	out->rows = np_realloc(NULL, n + 1, sizeof *out->rows);
	out->class = np_realloc(NULL, n + 1, sizeof *out->class);
	out->span_of = np_realloc(NULL, n + 1, sizeof *out->span_of);
	bool ok = out->rows && out->class && out->span_of &&
	          np_classify_all(out->profile, out->class) && add_rows(out, &span);
	if (ok) {
		np_intervals_merge(&out->compute);
		np_intervals_merge(&out->comm);
		ok = np_intervals_subtract(&out->comm, &out->compute, &exposed);
	}
	if (ok) {
		span.computing = np_intervals_length(&out->compute);
		span.comm = np_intervals_length(&out->comm);
		span.comm_not_overlapped = np_intervals_length(&exposed);
		span.overlapped = span.comm - span.comm_not_overlapped;
		span.free = span.end - span.start - span.computing - span.comm_not_overlapped;
		out->total_ns = span.end - span.start;
		ok = np_vec_push(&out->spans, span);
	}
	np_intervals_release(&exposed);
	return ok;
}

static enum np_status read_events(struct gpu *self, const char *path, struct np_err *err)
{
	const struct np_jval *root = NULL;
	struct np_arena arena;
	np_arena_init(&arena);
	enum np_status status = np_json_parse_file(&arena, path, 0, &root, NULL, err);
	const struct np_jval *events = np_jget(root, "traceEvents");
	if (status == NP_OK && (!events || events->type != NP_J_ARRAY))
		status = np_err_set(err, NP_E_FORMAT, path,
		                    "no traceEvents: neither a capture nor a trace of a GPU");
	for (size_t i = 0; status == NP_OK && i < events->n; i++)
		if (!add_event(self, &events->child[i]))
			status = np_err_nomem(err);
	np_arena_release(&arena);
	if (status == NP_OK && self->profile->kernels.n == 0)
		status = np_err_set(err, NP_E_EMPTY, path, "no events of category kernel");
	return status;
}

enum np_status np_cmp_gpu_read(const char *path, struct np_analysis *out, struct np_err *err)
{
	struct gpu self = {.profile = np_profile_new()};
	out->profile = self.profile;
	if (!self.profile)
		return np_err_nomem(err);
	struct np_intern *strings = &self.profile->strings;
	self.cube = np_intern_add(strings, NP_STR("AI_CORE"));
	self.vector = np_intern_add(strings, NP_STR("AI_VECTOR_CORE"));
	self.comm = np_intern_add(strings, NP_STR("COMMUNICATION"));
	self.copy = np_intern_add(strings, NP_STR("SDMA_SQE"));
	if (self.cube == NP_ID_NONE || self.vector == NP_ID_NONE || self.comm == NP_ID_NONE ||
	    self.copy == NP_ID_NONE)
		return np_err_nomem(err);
	NP_TRY(read_events(&self, path, err));
	if (self.no_time > 0)
		np_report_note(out->report, "%s: %zu events without a readable time left out", path,
		               self.no_time);
	if (!np_profile_finish_kernels(self.profile) || !np_profile_sort_host_ops(self.profile) ||
	    !np_profile_sort_tasks(self.profile) || !make_analysis(out))
		return np_err_nomem(err);
	return NP_OK;
}
