#include "collect/comm_sum.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/pool.h"
#include "collect/comm_tally.h"

enum { BUCKETS = 60 };

/* ── names ── */

const char *np_clog_stage_name(const struct np_clog_sum *self, uint32_t stage)
{
	return stage ? np_intern_get(&self->strings, stage).ptr : "other";
}

np_str np_clog_group_name(const struct np_clog_sum *self, const struct np_clog_group *group)
{
	return np_intern_get(&self->strings, group->name);
}

bool np_clog_is_shown(const struct np_clog_cell *cell)
{
	return cell->counts && np_clog_op_moves(cell->op);
}

size_t np_clog_ranks(np_str text, int64_t *out, size_t max)
{
	size_t n = 0;
	while (text.len) {
		np_str to, from = np_str_cut(np_str_cut(text, ',', &text), '-', &to);
		int64_t a, b;
		if (!np_str_to_i64(from, &a) || a < 0)
			return 0;
		b = a;
		if (to.len && (!np_str_to_i64(to, &b) || b < a || b - a > 1 << 24))
			return 0;
		for (; a <= b; a++, n++)
			if (n < max)
				out[n] = a;
	}
	return n;
}

/* ── which files, of which process ── */

static uint32_t add_process(struct np_clog_sum *self, struct np_keys *keys, const char *path,
                            const struct np_comm_log_header *header)
{
	np_str base = np_path_base(path);
	np_str dir = {path, (size_t)(base.ptr - path)};
	uint32_t host = np_intern_add(&self->strings, np_str_of(header->host));
	uint32_t where = np_intern_add(&self->strings, dir);
	struct np_key key = {{np_key_pair(host, where), (uint32_t)header->pid, 0, 0}};
	uint32_t i = np_keys_add(keys, &key);
	if (host == NP_ID_NONE || where == NP_ID_NONE || i == UINT32_MAX)
		return UINT32_MAX;
	if (i == self->processes.n &&
	    !np_vec_push(&self->processes, (struct np_clog_process){.host = host,
	                                                            .dir = where,
	                                                            .pid = header->pid,
	                                                            .rank = -1,
	                                                            .world = -1,
	                                                            .local_rank = -1,
	                                                            .device = -1}))
		return UINT32_MAX;
	struct np_clog_process *process = &self->processes.v[i];
	process->rank = process->rank < 0 ? header->rank : process->rank;
	process->world = process->world < 0 ? header->world : process->world;
	process->local_rank = process->local_rank < 0 ? header->local_rank : process->local_rank;
	process->device = process->device < 0 ? header->device : process->device;
	return i;
}

struct span {
	np_ns first, last;
};

/* The times of the first and the last record. */
static void add_span(struct np_clog *log, struct span *span)
{
	struct np_comm_record record;
	for (int end = 0; end < 2; end++) {
		if (end && log->last > log->first)
			log->next = log->last;
		if (!np_clog_next(log, &record) || record.start_ns == 0)
			continue;
		if (span->first == 0 || record.start_ns < span->first)
			span->first = record.start_ns;
		if (record.start_ns > span->last)
			span->last = record.start_ns;
	}
}

/* Its header: layer and process. */
static enum np_status look_at(struct np_clog_sum *self, struct np_keys *keys, const char *path,
                              struct span *span, struct np_err *err)
{
	struct np_clog log;
	struct np_err why = {0};
	struct np_clog_file file = {.path = path, .process = UINT32_MAX};
	enum np_status status = np_clog_open(path, &log, &why);
	if (status == NP_E_NOMEM)
		return np_err_nomem(err);
	if (status != NP_OK) {
		file.empty = status == NP_E_EMPTY;
		file.problem = np_arena_cstr(&self->arena, np_str_of(why.msg));
		if (!file.problem)
			return np_err_nomem(err);
	} else {
		file.layer = log.header.layer;
		file.closed = log.header.closed == 1;
		file.tid = log.header.tid;
		file.lost = log.header.lost;
		file.process = add_process(self, keys, path, &log.header);
		add_span(&log, span);
		np_clog_close(&log);
		if (file.process == UINT32_MAX)
			return np_err_nomem(err);
	}
	return np_vec_push(&self->files, file) ? NP_OK : np_err_nomem(err);
}

static int by_layer(const void *a, const void *b)
{
	const struct np_clog_file *x = a, *y = b;
	bool torch_x = x->layer == NP_COMM_LAYER_TORCH, torch_y = y->layer == NP_COMM_LAYER_TORCH;
	return torch_x != torch_y ? torch_y - torch_x : strcmp(x->path, y->path);
}

/* Only the process that is asked for; torch first, so that of the other layer it is known
 * whether a process has both. */
static void choose_files(struct np_clog_sum *self)
{
	size_t kept = 0;
	for (size_t i = 0; i < self->files.n; i++) {
		const struct np_clog_file *file = &self->files.v[i];
		if (self->options.rank >= 0 && file->process != UINT32_MAX &&
		    self->processes.v[file->process].rank != self->options.rank)
			continue;
		self->files.v[kept++] = *file;
	}
	self->files.n = kept;
	if (kept)
		qsort(self->files.v, kept, sizeof *self->files.v, by_layer);
}

static enum np_status look_at_all(struct np_clog_sum *self, const struct np_clog_found *found,
                                  struct span *span, struct np_err *err)
{
	struct np_keys keys = {.mask = 0};
	enum np_status status = NP_OK;
	for (size_t i = 0; i < found->logs.n && status == NP_OK; i++)
		status = look_at(self, &keys, found->logs.v[i], span, err);
	np_keys_release(&keys);
	choose_files(self);
	return status;
}

/* 1, 2 or 5 times a power of ten, so that the span has at most BUCKETS of them. */
static np_ns nice_bucket(np_ns span)
{
	static const int steps[] = {2, 5, 10};
	np_ns power = 1000;
	if (span / power < BUCKETS)
		return power;
	for (;; power *= 10)
		for (size_t i = 0; i < 3; i++)
			if (span / (power * steps[i]) < BUCKETS)
				return power * steps[i];
}

/* ── what the files hold ── */

/* Is it the layer of its process that is shown where one is? Files of torch are read first. */
static bool is_first(const struct np_clog_sum *self, const struct np_clog_file *file)
{
	return file->layer == NP_COMM_LAYER_TORCH ||
	       !(self->processes.v[file->process].layers & 1u << NP_COMM_LAYER_TORCH);
}

static bool wants(const struct np_clog_sum *self, const struct np_clog_file *file)
{
	switch (self->options.show) {
	case NP_COMM_SHOW_TORCH:
		return file->layer == NP_COMM_LAYER_TORCH;
	case NP_COMM_SHOW_HCCL:
		return file->layer == NP_COMM_LAYER_HCCL;
	case NP_COMM_SHOW_AUTO:
		return is_first(self, file);
	default:
		return true;
	}
}

struct batch {
	struct np_clog_sum *sum;
	size_t first;
	struct np_clog_tally *tallies;
};

static void read_one(void *ctx, size_t i)
{
	struct batch *batch = ctx;
	struct np_clog_file *file = &batch->sum->files.v[batch->first + i];
	if (file->process != UINT32_MAX)
		np_clog_tally_read(&batch->tallies[i], &batch->sum->options, batch->sum->bucket_ns,
		                   file);
	np_progress_step(batch->sum->options.progress);
}

static enum np_status merge_file(struct np_clog_merge *merge, size_t i, struct np_clog_tally *tally,
                                 struct np_err *err)
{
	struct np_clog_sum *self = merge->sum;
	struct np_clog_file *file = &self->files.v[i];
	if (file->process == UINT32_MAX || file->problem)
		return NP_OK;
	struct np_clog_process *process = &self->processes.v[file->process];
	self->readable++;
	self->out_of_order += tally->out_of_order;
	process->killed = process->killed || !file->closed;
	process->incomplete = process->incomplete || file->overwritten || file->cut_off ||
	                      file->damaged || file->lost || file->faulted;
	if (tally->moves && file->layer < 32)
		process->layers |= 1u << file->layer;
	return np_clog_merge(merge, (uint32_t)i, tally, err);
}

static size_t batch_end(const struct np_clog_sum *self, size_t first, size_t most)
{
	size_t end = first;
	while (end < self->files.n && end - first < most &&
	       self->files.v[end].layer == self->files.v[first].layer)
		end++;
	return end;
}

static enum np_status read_all(struct np_clog_sum *self, struct np_clog_merge *merge,
                               struct np_err *err)
{
	unsigned threads = self->options.threads ? self->options.threads : np_cpu_count();
	size_t most = (size_t)threads * 4, end;
	enum np_status status = NP_OK;
	struct np_clog_tally *tallies = np_calloc(most, sizeof *tallies);
	if (!tallies)
		return np_err_nomem(err);
	np_progress_begin(self->options.progress, "reading logs", self->files.n);
	for (size_t first = 0; first < self->files.n && status == NP_OK; first = end) {
		struct batch batch = {self, first, tallies};
		end = batch_end(self, first, most);
		for (size_t i = first; i < end; i++)
			if (self->files.v[i].process != UINT32_MAX) {
				struct np_clog_file *file = &self->files.v[i];
				file->shown = wants(self, file);
				file->beside = self->options.show == NP_COMM_SHOW_BOTH &&
				               !is_first(self, file);
			}
		np_pool_run(threads, end - first, read_one, &batch);
		for (size_t i = first; i < end; i++) {
			if (status == NP_OK)
				status = merge_file(merge, i, &tallies[i - first], err);
			np_clog_tally_release(&tallies[i - first]);
		}
	}
	np_free(tallies);
	return status;
}

static int by_step(const void *a, const void *b)
{
	const struct np_clog_slice *x = a, *y = b;
	/* unknown comes first: + 1 makes it 0 */
	if (x->request != y->request)
		return x->request + 1 < y->request + 1 ? -1 : 1;
	if (x->step != y->step)
		return x->step + 1 < y->step + 1 ? -1 : 1;
	return x->stage < y->stage ? -1 : x->stage > y->stage;
}

static int by_start(const void *a, const void *b)
{
	const struct np_clog_bucket *x = a, *y = b;
	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->stage < y->stage ? -1 : x->stage > y->stage;
}

enum np_status np_clog_sum_up(const struct np_clog_found *found,
                              const struct np_clog_options *options, struct np_clog_sum *out,
                              struct np_err *err)
{
	struct span span = {0, 0};
	*out = (struct np_clog_sum){.options = *options};
	np_arena_init(&out->arena);
	if (!np_intern_init(&out->strings))
		return np_err_nomem(err);
	NP_TRY(look_at_all(out, found, &span, err));
	if (options->timeline)
		out->bucket_ns = options->bucket_ns > 0 ? options->bucket_ns
		                                        : nice_bucket(span.last - span.first);
	struct np_clog_merge merge = {.sum = out};
	enum np_status status = read_all(out, &merge, err);
	np_clog_merge_release(&merge);
	if (out->slices.n)
		qsort(out->slices.v, out->slices.n, sizeof *out->slices.v, by_step);
	if (out->buckets.n)
		qsort(out->buckets.v, out->buckets.n, sizeof *out->buckets.v, by_start);
	return status;
}

void np_clog_sum_release(struct np_clog_sum *self)
{
	np_vec_release(&self->files);
	np_vec_release(&self->processes);
	np_vec_release(&self->groups);
	np_vec_release(&self->cells);
	np_vec_release(&self->slices);
	np_vec_release(&self->buckets);
	np_intern_release(&self->strings);
	np_arena_release(&self->arena);
}
