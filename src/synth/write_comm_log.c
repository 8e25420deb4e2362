#include "synth/write_comm_log.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "npuprof/comm_log.h"

enum { STRINGS = 4096, FP32 = 4, TEXT = 2048 };

static const struct {
	uint8_t op;
	bool gather, scatter; /* what it gets, or gives, is world times the payload */
} ops[NP_COLLS] = {
	[NP_COLL_ALLREDUCE] = {1, false, false},    [NP_COLL_ALLGATHER] = {3, true, false},
	[NP_COLL_REDUCESCATTER] = {4, false, true}, [NP_COLL_ALLTOALLV] = {6, false, false},
	[NP_COLL_SEND] = {10, false, false},        [NP_COLL_RECEIVE] = {11, false, false},
};

struct writer {
	const struct np_synth_run *run;
	uint32_t layer;
	struct np_out out;
	char strings[STRINGS];
	uint32_t used;
	uint64_t written;
	uint32_t *names;  /* by group: its string, 0 not yet */
	uint64_t *counts; /* by group: calls so far */
};

static uint32_t add_string(struct writer *self, const char *text)
{
	uint32_t len = (uint32_t)strlen(text), at = self->used, need = (4 + len + 1 + 3) / 4 * 4;
	if (at + need > STRINGS)
		return NP_COMM_LOG_NO_ROOM;
	memcpy(self->strings + at, &len, sizeof len);
	memcpy(self->strings + at + 4, text, len);
	self->used += need;
	return at;
}

/* HCCL names communicators, torch lists ranks. */
static uint32_t group_string(struct writer *self, uint32_t index)
{
	const struct np_synth_group *group = &self->run->plan->groups[index];
	char text[TEXT];
	if (self->names[index])
		return self->names[index];
	if (self->layer == NP_COMM_LAYER_HCCL) {
		np_synth_group_name(self->run->plan, group, text);
	} else {
		size_t len = 0;
		for (uint32_t k = 0; k < group->count && len + 12 < sizeof text; k++)
			len += (size_t)snprintf(text + len, sizeof text - len, "%s%u", k ? "," : "",
			                        np_synth_member_rank(group, k));
	}
	return self->names[index] = add_string(self, text);
}

/* As the recorders have it: of a reduce_scatter what the rank gives in. */
static uint64_t payload_of(const struct np_synth_run *run, const struct np_synth_item *item)
{
	bool scatter = ops[item->coll].scatter;
	return item->len_bytes * (scatter ? run->plan->groups[item->group].count : 1);
}

static bool is_first_step(const struct np_synth_run *run, const struct np_synth_item *item)
{
	return item->kind == NP_ITEM_COMM && item->step == 0 && run->steps;
}

static void put_record(struct writer *self, const struct np_synth_item *item, np_ns shift,
                       const uint32_t stages[2])
{
	const struct np_synth_group *group = &self->run->plan->groups[item->group];
	uint64_t bytes = item->len_bytes, all = bytes * group->count;
	uint64_t payload = payload_of(self->run, item);
	bool p2p = np_synth_is_p2p((enum np_synth_coll)item->coll);
	bool inner = item->dim == NP_DIM_TP || item->dim == NP_DIM_EP;
	uint32_t self_rank = np_synth_member(group, self->run->rank);
	uint32_t step = item->step < 0 ? NP_COMM_NO_U32 : (uint32_t)item->step + (shift ? 1 : 2);
	struct np_comm_record record = {
		.seq = ++self->written,
		.start_ns = item->host_ns - shift,
		.call_ns = (uint64_t)item->host_dur_ns,
		.count = payload / 4,
		.send_bytes = item->coll == NP_COLL_RECEIVE ? 0
	                      : ops[item->coll].scatter     ? all
	                                                    : bytes,
		.recv_bytes = item->coll == NP_COLL_SEND ? 0
	                      : ops[item->coll].gather   ? all
	                                                 : bytes,
		.tensor_bytes = payload,
		.comm_seq = self->counts[item->group]++,
		.comm_hash = self->layer == NP_COMM_LAYER_HCCL ? group->hash : 0,
		.comm_name = group_string(self, item->group),
		.stage = item->step < 0 ? 0 : stages[inner ? 0 : 1],
		.stage_path = item->step < 0 ? 0 : stages[inner ? 0 : 1],
		.step = step,
		.request = step,
		.rank = (int32_t)self_rank,
		.world = (int32_t)group->count,
		.peer = p2p ? 1 - (int32_t)self_rank : -1,
		.stream = -1,
		.device = (int32_t)self->run->device,
		.op = ops[item->coll].op,
		.dtype = FP32,
		.reduce = ops[item->coll].op == 1 || ops[item->coll].op == 4 ? 0
	                                                                     : NP_COMM_REDUCE_NONE,
	};
	np_out_bytes(&self->out, (const char *)&record, sizeof record);
}

static np_ns step_shift(const struct np_synth_run *run)
{
	return run->steps[0].host_end_ns - run->steps[0].host_start_ns + 1000000;
}

static void put_records(struct writer *self)
{
	const struct np_synth_run *run = self->run;
	uint32_t stages[2] = {add_string(self, "dit"), add_string(self, "sync")};
	for (size_t i = 0; i < run->items.n; i++)
		if (is_first_step(run, &run->items.v[i]))
			put_record(self, &run->items.v[i], step_shift(run), stages);
	for (size_t i = 0; i < run->items.n; i++)
		if (run->items.v[i].kind == NP_ITEM_COMM)
			put_record(self, &run->items.v[i], 0, stages);
}

void np_synth_comm_log_truth(const struct np_synth_run *run, uint64_t *calls, uint64_t *bytes)
{
	*calls = *bytes = 0;
	for (size_t i = 0; i < run->items.n; i++) {
		const struct np_synth_item *item = &run->items.v[i];
		uint64_t times = item->kind != NP_ITEM_COMM ? 0 : is_first_step(run, item) ? 2 : 1;
		*calls += times;
		*bytes += times * (times ? payload_of(run, item) : 0);
	}
}

static void fill_header(const struct writer *self, uint64_t calls,
                        struct np_comm_log_header *header)
{
	const struct np_synth_run *run = self->run;
	*header = (struct np_comm_log_header){
		.magic = NP_COMM_LOG_MAGIC,
		.version = NP_COMM_LOG_VERSION,
		.layer = self->layer,
		.header_bytes = NP_COMM_LOG_HEADER_BYTES,
		.record_bytes = sizeof(struct np_comm_record),
		.string_capacity = STRINGS,
		.capacity = calls ? calls : 1,
		.written = calls,
		.string_bytes = self->used,
		.start_ns = run->session_start_ns,
		.start_monotonic_ns = run->session_start_ns,
		.pid = (int32_t)run->pid,
		.tid = (int32_t)(self->layer == NP_COMM_LAYER_HCCL ? run->deq_tid : run->pid),
		.parent_pid = 1,
		.rank = (int32_t)run->rank,
		.world = (int32_t)run->plan->options.ranks,
		.local_rank = (int32_t)run->device,
		.device = (int32_t)run->device,
		.closed = 1,
		.command = "python3 train.py",
		.recorder = "npuprof synth",
	};
	(void)snprintf(header->host, sizeof header->host, "node%u", run->host);
}

/* Header and strings come first in the file, and are known last: so twice the records. */
static enum np_status write_layer(struct writer *self, const char *dir, uint64_t calls,
                                  struct np_synth_stats *stats, struct np_err *err)
{
	static const char zeros[NP_COMM_LOG_HEADER_BYTES];
	struct np_comm_log_header header;
	char name[128];
	uint32_t tid = self->layer == NP_COMM_LAYER_HCCL ? self->run->deq_tid : self->run->pid;
	(void)snprintf(name, sizeof name, "comm-%s-node%u-%u-%u.nplog",
	               self->layer == NP_COMM_LAYER_HCCL ? "hccl" : "torch", self->run->host,
	               self->run->pid, tid);
	NP_TRY(np_out_open(&self->out, dir, name, err));
	size_t groups = self->run->plan->n_groups;
	self->used = NP_COMM_LOG_FIRST_STRING;
	(void)add_string(self, "dit");
	(void)add_string(self, "sync");
	for (size_t i = 0; i < self->run->items.n; i++)
		if (self->run->items.v[i].kind == NP_ITEM_COMM)
			(void)group_string(self, self->run->items.v[i].group);
	fill_header(self, calls, &header);
	np_out_bytes(&self->out, (const char *)&header, sizeof header);
	np_out_bytes(&self->out, zeros, sizeof zeros - sizeof header);
	np_out_bytes(&self->out, self->strings, sizeof self->strings);
	self->used = NP_COMM_LOG_FIRST_STRING;
	put_records(self);
	if (calls == 0)
		np_out_bytes(&self->out, zeros, sizeof(struct np_comm_record));
	memset(self->counts, 0, groups * sizeof *self->counts);
	return np_synth_finish(&self->out, stats, err);
}

enum np_status np_synth_write_comm_log(const struct np_synth_run *run, const char *root,
                                       struct np_synth_stats *stats, struct np_err *err)
{
	static const uint32_t layers[] = {NP_COMM_LAYER_TORCH, NP_COMM_LAYER_HCCL};
	uint64_t calls, bytes;
	char dir[NP_SYNTH_PATH];
	size_t groups = run->plan->n_groups + 1;
	if ((size_t)snprintf(dir, sizeof dir, "%s/comm", root) >= sizeof dir)
		return np_err_set(err, NP_E_LIMIT, root, "path is too long");
	NP_TRY(np_mkdirs(dir, err));
	np_synth_comm_log_truth(run, &calls, &bytes);
	enum np_status status = NP_OK;
	for (size_t i = 0; i < 2 && status == NP_OK; i++) {
		struct writer *self = np_calloc(1, sizeof *self);
		uint32_t *names = np_calloc(groups, sizeof *names);
		uint64_t *counts = np_calloc(groups, sizeof *counts);
		if (self && names && counts) {
			self->run = run;
			self->layer = layers[i];
			self->names = names;
			self->counts = counts;
			status = write_layer(self, dir, calls, stats, err);
		} else {
			status = np_err_nomem(err);
		}
		np_free(self);
		np_free(names);
		np_free(counts);
	}
	return status;
}
