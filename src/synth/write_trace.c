/* trace_view.json, and msprof_*.json which is its device half. One line, as the
 * exporters write it; the order of events and of keys is theirs (§3.10). */
#include "synth/faults_ops.h"
#include "synth/program.h"
#include "synth/write.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* processes of today's C++ exporter: pid = real pid << 10 | layer << 5 | device */
enum { LAYER_CANN = 7, LAYER_HARDWARE = 14, LAYER_FREQ = 15, LAYER_COMM = 16, LAYER_OVERLAP = 31 };
enum { HOST_DEVICE = 31, STREAM = 2, GROUP_TIDS = 16 };

struct trace {
	struct np_out out;
	const struct np_synth_run *run;
	bool any;                                     /* an event came before: a comma is due */
	uint64_t cann, hardware, freq, comm, overlap; /* pids */
};

static uint64_t layer_pid(const struct np_synth_run *run, uint64_t layer, uint64_t device)
{
	return (uint64_t)run->pid << 10 | layer << 5 | device;
}

static void sep(struct trace *t)
{
	if (t->any)
		np_out_lit(&t->out, ", ");
	t->any = true;
}

/* "pid": 1, "tid": 2, "ts": "3.000" */
static void put_where(struct np_out *out, uint64_t pid, uint64_t tid, np_ns ts)
{
	np_out_lit(out, "\"pid\": ");
	np_out_u64(out, pid);
	np_out_lit(out, ", \"tid\": ");
	np_out_u64(out, tid);
	np_out_lit(out, ", \"ts\": \"");
	np_out_fixed(out, ts, 3);
	np_out_char(out, '"');
}

static void put_dur(struct np_out *out, np_ns dur)
{
	np_out_lit(out, ", \"dur\": ");
	np_out_short(out, dur, 3);
}

/* ── framework half ── */

static void fw_slice(struct trace *t, const char *prefix, const char *name, uint64_t tid, np_ns ts,
                     np_ns dur)
{
	struct np_out *out = &t->out;
	sep(t);
	np_out_lit(out, "{\"ph\": \"X\", \"name\": \"");
	np_out_str(out, prefix);
	np_out_str(out, name);
	np_out_lit(out, "\", ");
	put_where(out, t->run->pid, tid, ts);
	put_dur(out, dur);
}

static void fw_flow(struct trace *t, char ph, const char *name, const char *cat, uint64_t id,
                    uint64_t pid, uint64_t tid, np_ns ts)
{
	struct np_out *out = &t->out;
	sep(t);
	np_out_lit(out, "{\"ph\": \"");
	np_out_char(out, ph);
	np_out_lit(out, "\", \"bp\": \"e\", \"name\": \"");
	np_out_str(out, name);
	np_out_lit(out, "\", \"id\": ");
	np_out_u64(out, id);
	np_out_lit(out, ", ");
	put_where(out, pid, tid, ts);
	np_out_lit(out, ", \"cat\": \"");
	np_out_str(out, cat);
	np_out_lit(out, "\"}");
}

static void put_dims(struct np_out *out, const char *shapes)
{
	for (; *shapes; shapes++) {
		if (*shapes == ';')
			np_out_lit(out, ";\\r\\n");
		else if (*shapes != '"')
			np_out_char(out, *shapes);
	}
}

static void fw_op(struct trace *t, const char *name, const char *shapes, np_ns ts, np_ns dur)
{
	struct np_out *out = &t->out;
	fw_slice(t, "", name, t->run->pid, ts, dur);
	np_out_lit(
		out,
		", \"cat\": \"cpu_op\", \"args\": {\"Sequence number\": -1, \"Fwd thread id\": 0");
	if (shapes) {
		np_out_lit(out, ", \"Input Dims\": \"");
		put_dims(out, shapes);
		np_out_char(out, '"');
	}
	np_out_lit(out, "}}");
}

static void fw_ops(struct trace *t)
{
	const struct np_synth_run *run = t->run;
	for (uint32_t s = 0; s < run->plan->options.steps; s++) {
		char name[32];
		const struct np_synth_step *step = &run->steps[s];
		(void)snprintf(name, sizeof name, "ProfilerStep#%u", step->id);
		fw_op(t, name, NULL, step->host_start_ns, step->host_end_ns - step->host_start_ns);
	}
	for (size_t i = 0; i < run->items.n; i++) {
		const struct np_synth_item *item = &run->items.v[i];
		char scratch[64];
		const char *shapes = item->kind == NP_ITEM_KERNEL
		                             ? np_synth_in_shapes(run, item, scratch)
		                             : NULL;
		fw_op(t, np_synth_inner_op(item), NULL, item->host_ns + NP_INNER_NS,
		      item->host_dur_ns - 2 * NP_INNER_NS);
		fw_op(t, np_synth_outer_op(item), shapes, item->host_ns, item->host_dur_ns);
	}
}

/* What idle faults leave on the host: an operator of the framework, or a collection. */
static void fw_stalls(struct trace *t)
{
	const struct np_synth_run *run = t->run;
	for (size_t i = 0; i < run->stalls.n; i++) {
		const struct np_synth_stall *stall = &run->stalls.v[i];
		const char *name = np_synth_stall_op(stall);
		np_ns dur = stall->end_ns - stall->start_ns;
		if (name)
			fw_op(t, name, NULL, stall->start_ns, dur);
		if (stall->fault != NP_SYNTH_IDLE_GC)
			continue;
		sep(t);
		np_out_lit(&t->out, "{\"ph\": \"X\", \"name\": \"GC\", ");
		put_where(&t->out, (uint64_t)run->pid << 10 | 1 << 5, run->pid, stall->start_ns);
		put_dur(&t->out, dur);
		np_out_lit(&t->out, ", \"cat\": \"GC\"}");
	}
}

static void fw_queue(struct trace *t)
{
	const struct np_synth_run *run = t->run;
	for (size_t i = 0; i < run->items.n; i++) {
		const struct np_synth_item *item = &run->items.v[i];
		if (item->kind == NP_ITEM_COPY)
			continue;
		np_ns enqueue = np_synth_enqueue_ns(item),
		      dequeue = item->launch_ns - NP_DEQUEUE_LEAD_NS;
		for (int side = 0; side < 2; side++) {
			uint64_t tid = side ? run->deq_tid : run->pid;
			fw_slice(t, side ? "Dequeue@" : "Enqueue@", np_synth_inner_op(item), tid,
			         side ? dequeue : enqueue,
			         side ? np_synth_dequeue_len(item) : NP_ENQUEUE_NS);
			np_out_str(
				&t->out,
				side ? ", \"cat\": \"dequeue\", \"args\": {\"correlation_id\": "
				     : ", \"cat\": \"enqueue\", \"args\": {\"correlation_id\": ");
			np_out_u64(&t->out, item->corr);
			np_out_lit(&t->out, "}}");
			fw_flow(t, side ? 'f' : 's', "enqueue_to_dequeue", "async_task_queue",
			        item->corr, run->pid, tid, side ? dequeue : enqueue);
		}
	}
}

/* ── metadata ── */

static void meta(struct trace *t, const char *what, uint64_t pid, uint64_t tid, const char *key,
                 const char *text)
{
	struct np_out *out = &t->out;
	sep(t);
	np_out_lit(out, "{\"name\": \"");
	np_out_str(out, what);
	np_out_lit(out, "\", \"pid\": ");
	np_out_u64(out, pid);
	np_out_lit(out, ", \"tid\": ");
	np_out_u64(out, tid);
	np_out_lit(out, ", \"args\": {\"");
	np_out_str(out, key);
	np_out_lit(out, "\": ");
	np_out_str(out, text);
	np_out_lit(out, "}, \"ph\": \"M\"}");
}

static void meta_process(struct trace *t, uint64_t pid, const char *name, const char *label,
                         unsigned sort)
{
	char text[64];
	(void)snprintf(text, sizeof text, "\"%s\"", name);
	meta(t, "process_name", pid, 0, "name", text);
	if (label[0] == 'N')
		(void)snprintf(text, sizeof text, "\"NPU %u\"", t->run->device);
	else
		(void)snprintf(text, sizeof text, "\"%s\"", label);
	meta(t, "process_labels", pid, 0, "labels", text);
	(void)snprintf(text, sizeof text, "%u", sort);
	meta(t, "process_sort_index", pid, 0, "sort_index", text);
}

static void meta_thread(struct trace *t, uint64_t pid, uint64_t tid, const char *name)
{
	char text[64];
	(void)snprintf(text, sizeof text, "\"%s\"", name);
	meta(t, "thread_name", pid, tid, "name", text);
	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)tid);
	meta(t, "thread_sort_index", pid, tid, "sort_index", text);
}

static void meta_host_thread(struct trace *t, uint64_t pid, uint64_t tid)
{
	char name[48];
	(void)snprintf(name, sizeof name, "Thread %llu", (unsigned long long)tid);
	meta_thread(t, pid, tid, name);
}

static void meta_framework(struct trace *t)
{
	meta_process(t, t->run->pid, "Python", "CPU", 0);
	meta_host_thread(t, t->run->pid, t->run->pid);
	meta_host_thread(t, t->run->pid, t->run->deq_tid);
}

static void meta_device(struct trace *t)
{
	static const char *const lanes[] = {"Computing", "Communication",
	                                    "Communication(Not Overlapped)", "Free"};
	char name[64];
	if (t->run->level > 0) {
		meta_process(t, t->cann, "CANN", "CPU", LAYER_CANN);
		meta_host_thread(t, t->cann, t->run->pid);
		meta_host_thread(t, t->cann, t->run->deq_tid);
	}
	meta_process(t, t->hardware, "Ascend Hardware", "NPU", LAYER_HARDWARE);
	(void)snprintf(name, sizeof name, "Stream %d", STREAM);
	meta_thread(t, t->hardware, STREAM, name);
	meta_process(t, t->freq, "AI Core Freq", "NPU", LAYER_FREQ);
	if (t->run->n_comms > 0) {
		meta_process(t, t->comm, "Communication", "NPU", LAYER_COMM);
		const struct np_synth_plan *plan = t->run->plan;
		bool layout = plan->options.layout;
		for (unsigned g = 0; g < (layout ? NP_DIMS : 2); g++) {
			if (layout && !np_synth_has_dim(plan, t->run->rank, (enum np_synth_dim)g))
				continue;
			(void)snprintf(name, sizeof name, "Group %u Communication", g);
			meta_thread(t, t->comm, g * GROUP_TIDS, name);
			for (unsigned p = 0; p < NP_SYNTH_MAX_LINKS; p++) {
				(void)snprintf(name, sizeof name, "Plane %u", p);
				meta_thread(t, t->comm, g * GROUP_TIDS + 1 + p, name);
			}
		}
	}
	meta_process(t, t->overlap, "Overlap Analysis", "NPU", LAYER_OVERLAP);
	for (unsigned i = 0; i < 4; i++)
		meta_thread(t, t->overlap, i, lanes[i]);
}

/* ── device half ── */

static void dev_slice(struct trace *t, const char *name, uint64_t pid, uint64_t tid, np_ns ts,
                      np_ns dur)
{
	struct np_out *out = &t->out;
	sep(t);
	np_out_lit(out, "{\"name\": ");
	np_out_json(out, name);
	np_out_lit(out, ", ");
	put_where(out, pid, tid, ts);
	put_dur(out, dur);
}

/* HostToDevice<connection << 32>: ids beyond 2^53, hence strings */
static void dev_flow(struct trace *t, bool start, uint32_t conn, uint64_t pid, uint64_t tid,
                     np_ns ts)
{
	struct np_out *out = &t->out;
	uint64_t id = (uint64_t)conn << 32;
	sep(t);
	np_out_lit(out, "{\"name\": \"HostToDevice");
	np_out_u64(out, id);
	np_out_str(out, start ? "\", \"ph\": \"s\", \"cat\": \"HostToDevice\", \"id\": \""
	                      : "\", \"ph\": \"f\", \"cat\": \"HostToDevice\", \"id\": \"");
	np_out_u64(out, id);
	np_out_lit(out, "\", ");
	put_where(out, pid, tid, ts);
	np_out_str(out, start ? "}" : ", \"bp\": \"e\"}");
}

static void cann_args(struct trace *t, uint64_t tid, const char *mode, const char *level,
                      const char *id, const char *item_id, uint32_t conn)
{
	struct np_out *out = &t->out;
	np_out_lit(out, ", \"args\": {\"Thread Id\": ");
	np_out_u64(out, tid);
	np_out_lit(out, ", \"Mode\": \"");
	np_out_str(out, mode);
	np_out_lit(out, "\", \"level\": \"");
	np_out_str(out, level);
	np_out_lit(out, "\", \"id\": \"");
	np_out_str(out, id);
	np_out_lit(out, "\", \"item_id\": ");
	np_out_json(out, item_id);
	np_out_lit(out, ", \"connection_id\": ");
	np_out_u64(out, conn);
	np_out_lit(out, "}, \"ph\": \"X\"}");
}

static void dev_cann(struct trace *t, const struct np_synth_item *item, const char *name)
{
	uint32_t deq = t->run->deq_tid, main_tid = t->run->pid;
	if (item->kind == NP_ITEM_COPY) {
		if (t->run->level > 0) {
			dev_slice(t, "AscendCL@aclrtMemcpyAsync", t->cann, main_tid,
			          item->launch_ns, NP_COPY_API_NS);
			cann_args(t, main_tid, "ACL_RTS", "acl", "aclrtMemcpyAsync", "0",
			          item->conn);
		}
		dev_flow(t, true, item->conn, t->cann, main_tid, item->launch_ns);
		return;
	}
	if (t->run->level > 0) {
		if (item->kind == NP_ITEM_KERNEL) {
			char api[96];
			(void)snprintf(api, sizeof api, "AscendCL@%s", np_synth_ops[item->op].acl);
			dev_slice(t, api, t->cann, deq, item->launch_ns - NP_ACL_LEAD_NS,
			          np_synth_acl_len(item));
			cann_args(t, deq, "ACL_OP", "acl", np_synth_ops[item->op].acl, "0",
			          item->conn + 1);
		}
		dev_slice(t, "Node@launch", t->cann, deq, item->launch_ns,
		          np_synth_launch_len(item));
		cann_args(t, deq, "launch", "node", "0", name, item->conn);
	}
	if (t->run->level > 1 && item->kind == NP_ITEM_KERNEL) {
		dev_slice(t, "Runtime@" NP_RUNTIME_CALL, t->cann, deq,
		          item->launch_ns + NP_RUNTIME_LEAD_NS, np_synth_runtime_len(item));
		cann_args(t, deq, NP_RUNTIME_CALL, "runtime", "0", "0", item->conn + 2);
	}
	dev_flow(t, true, item->conn, t->cann, deq, item->launch_ns);
}

static void dev_kernel(struct trace *t, const struct np_synth_item *item, const char *name)
{
	struct np_out *out = &t->out;
	bool copy = item->kind == NP_ITEM_COPY;
	const struct np_synth_op *op = &np_synth_ops[item->op];
	dev_slice(t, name, t->hardware, STREAM, item->start_ns, np_synth_written_dur(item));
	np_out_lit(out, ", \"args\": {\"Model Id\": 4294967295, \"Task Type\": \"");
	np_out_str(out, copy ? "MEMCPY_ASYNC" : np_synth_core_name(op->core));
	np_out_lit(out, "\", \"Physic Stream Id\": 2, \"Task Id\": ");
	np_out_u64(out, item->task);
	np_out_str(out,
	           !copy && op->core == NP_CORE_MIX
	                   ? ", \"Batch Id\": 0, \"Subtask Id\": 0, \"connection_id\": "
	                   : ", \"Batch Id\": 0, \"Subtask Id\": 4294967295, \"connection_id\": ");
	np_out_u64(out, item->conn);
	if (copy) {
		uint64_t bytes = item->op ? 4 : 65536;
		np_out_lit(out, ", \"size(B)\": ");
		np_out_u64(out, bytes);
		np_out_lit(out, ", \"bandwidth(GB/s)\": ");
		np_out_short(out, (int64_t)bytes * 10000 / item->dur_ns, 4);
		np_out_str(out, item->op ? ", \"operation\": \"device to host\""
		                         : ", \"operation\": \"host to device\"");
	}
	np_out_lit(out, "}, \"ph\": \"X\"}");
	dev_flow(t, false, item->conn, t->hardware, STREAM, item->start_ns);
}

static void dev_comm_task(struct trace *t, const struct np_synth_item *item, uint32_t self,
                          uint64_t group_tid, const struct np_synth_comm_task *task,
                          unsigned context)
{
	static const char *const names[] = {"Notify_Record", "Notify_Wait", "Memcpy",
	                                    "Reduce_Inline", "RDMASend"};
	struct np_out *out = &t->out;
	bool notify = task->name == NP_COMM_NOTIFY_WAIT || task->name == NP_COMM_NOTIFY_RECORD;
	dev_slice(t, names[task->name], t->comm, group_tid + 1 + task->plane, task->start_ns,
	          task->dur_ns);
	np_out_lit(out, ", \"args\": {\"notify_id\": \"");
	np_out_u64(out, notify ? ((uint64_t)task->dst << 32) + 84 + task->plane : UINT64_MAX);
	np_out_lit(out, "\", \"duration estimated(us)\": ");
	np_out_short(out, notify ? 20 : task->dur_ns, 3);
	np_out_lit(out, ", \"stream id\": 4, \"task id\": ");
	np_out_u64(out, item->task);
	np_out_lit(out, ", \"context id\": ");
	np_out_u64(out, context);
	np_out_lit(out, ", \"task type\": \"");
	np_out_str(out, names[task->name]);
	np_out_lit(out, "\", \"src rank\": ");
	np_out_u64(out, self);
	np_out_lit(out, ", \"dst rank\": ");
	np_out_u64(out, task->name == NP_COMM_REDUCE && task->on_chip ? UINT32_MAX : task->dst);
	np_out_lit(out, ", \"transport type\": \"");
	np_out_str(out, task->rdma ? "RDMA" : task->name == NP_COMM_NOTIFY_WAIT ? "LOCAL" : "SDMA");
	np_out_lit(out, "\", \"size(Byte)\": ");
	np_out_u64(out, task->len_bytes);
	np_out_lit(out, ", \"data type\": \"");
	np_out_str(out, task->name == NP_COMM_REDUCE ? "FP32" : "INVALID_TYPE");
	np_out_lit(out, "\", \"link type\": \"");
	np_out_str(out, task->on_chip    ? "ON_CHIP"
	                : !task->payload ? "INVALID_TYPE"
	                : task->rdma     ? "ROCE"
	                                 : "HCCS");
	np_out_lit(out, "\", \"bandwidth(GB/s)\": ");
	np_out_short(out, task->payload ? (int64_t)task->len_bytes * 10000 / task->dur_ns : 0, 4);
	np_out_lit(out, ", \"model id\": 4294967295}, \"ph\": \"X\"}");
}

static void dev_comm(struct trace *t, const struct np_synth_item *item, const char *name)
{
	struct np_out *out = &t->out;
	const struct np_synth_group *group = &t->run->plan->groups[item->group];
	struct np_synth_comm_task tasks[NP_SYNTH_MAX_COMM_TASKS];
	uint64_t tid = (uint64_t)item->dim * GROUP_TIDS;
	dev_slice(t, name, t->comm, tid, item->start_ns, item->dur_ns);
	np_out_lit(out, ", \"args\": {\"connection_id\": ");
	np_out_u64(out, item->conn);
	np_out_lit(out, ", \"model id\": 4294967295, \"data_type\": \"FP32\", \"alg_type\": "
	                "\"MESH-RING\", \"count\": ");
	np_out_u64(out, item->len_bytes / 4);
	np_out_lit(out, ", \"rank_size\": ");
	np_out_u64(out, group->count);
	np_out_lit(out, ", \"relay\": \"no\", \"retry\": \"no\"}, \"ph\": \"X\"}");
	dev_flow(t, false, item->conn, t->comm, tid, item->start_ns);
	size_t n = np_synth_comm_tasks(t->run, item, tasks);
	for (size_t i = 0; i < n; i++)
		dev_comm_task(t, item, np_synth_member(group, t->run->rank), tid, &tasks[i],
		              (unsigned)i);
}

static void dev_freq(struct trace *t)
{
	struct np_synth_freq samples[NP_SYNTH_MAX_FREQ];
	size_t n = np_synth_freq(t->run, samples);
	for (size_t i = 0; i < n; i++) {
		sep(t);
		np_out_lit(&t->out, "{\"name\": \"AI Core Freq\", ");
		put_where(&t->out, t->freq, 0, samples[i].ns);
		np_out_lit(&t->out, ", \"args\": {\"MHz\": ");
		np_out_u64(&t->out, samples[i].mhz);
		np_out_lit(&t->out, "}, \"ph\": \"C\"}");
	}
}

/* … and in CANN, or on the stream. */
static void dev_stalls(struct trace *t)
{
	const struct np_synth_run *run = t->run;
	for (size_t i = 0; i < run->stalls.n; i++) {
		const struct np_synth_stall *stall = &run->stalls.v[i];
		np_ns dur = stall->end_ns - stall->start_ns;
		if (stall->fault == NP_SYNTH_IDLE_SYNC && run->level > 0) {
			dev_slice(t, "AscendCL@" NP_STALL_SYNC_CALL, t->cann, run->pid,
			          stall->start_ns + NP_INNER_NS, dur - 2 * NP_INNER_NS);
			cann_args(t, run->pid, "ACL_RTS", "acl", NP_STALL_SYNC_CALL, "0",
			          stall->conn);
		} else if (stall->fault == NP_SYNTH_IDLE_DEPENDENCY) {
			dev_slice(t, "EVENT_WAIT", t->hardware, STREAM, stall->start_ns, dur);
			np_out_lit(&t->out,
			           ", \"args\": {\"Model Id\": 4294967295, \"Task Type\": "
			           "\"EVENT_WAIT_SQE\", \"Physic Stream Id\": 2, \"Task Id\": ");
			np_out_u64(&t->out, stall->task);
			np_out_lit(&t->out, ", \"Batch Id\": 0, \"Subtask Id\": 4294967295, "
			                    "\"connection_id\": ");
			np_out_u64(&t->out, stall->conn);
			np_out_lit(&t->out, "}, \"ph\": \"X\"}");
		}
	}
}

static void dev_overlap(struct trace *t)
{
	static const char *const lanes[] = {"Computing", "Communication",
	                                    "Communication(Not Overlapped)", "Free"};
	for (size_t i = 0; i < t->run->spans.n; i++) {
		const struct np_synth_span *span = &t->run->spans.v[i];
		dev_slice(t, lanes[span->lane], t->overlap, span->lane, span->start_ns,
		          span->end_ns - span->start_ns);
		np_out_lit(&t->out, ", \"ph\": \"X\"}");
	}
}

static void dev_all(struct trace *t)
{
	const struct np_synth_run *run = t->run;
	meta_device(t);
	dev_freq(t);
	for (size_t i = 0; i < run->items.n; i++) {
		const struct np_synth_item *item = &run->items.v[i];
		char scratch[64];
		const char *name = np_synth_item_name(run, item, scratch);
		if (item->kind == NP_ITEM_COMM && run->n_comms == 0)
			continue;
		dev_cann(t, item, name);
		if (item->kind == NP_ITEM_COMM)
			dev_comm(t, item, name);
		else
			dev_kernel(t, item, name);
	}
	dev_stalls(t);
	dev_overlap(t);
}

static void fw_to_npu(struct trace *t)
{
	const struct np_synth_run *run = t->run;
	for (size_t i = 0; i < run->items.n; i++) {
		const struct np_synth_item *item = &run->items.v[i];
		bool comm = item->kind == NP_ITEM_COMM;
		if (item->kind == NP_ITEM_COPY || (comm && run->n_comms == 0))
			continue;
		uint64_t id = (uint64_t)item->start_ns;
		fw_flow(t, 's', "torch_to_npu", "async_npu", id, run->pid, run->pid,
		        item->host_ns + NP_INNER_NS);
		fw_flow(t, 'f', "torch_to_npu", "async_npu", id, comm ? t->comm : t->hardware,
		        comm ? (uint64_t)item->dim * GROUP_TIDS : STREAM, item->start_ns);
	}
}

enum np_status np_synth_write_trace(const struct np_synth_run *run, const char *dir,
                                    const char *name, struct np_synth_stats *stats,
                                    struct np_err *err)
{
	bool framework = name == NULL, device = !np_synth_has(run, NP_SYNTH_HOST_ONLY);
	struct trace t = {.run = run};
	t.cann = layer_pid(run, LAYER_CANN, HOST_DEVICE);
	t.hardware = layer_pid(run, LAYER_HARDWARE, run->device);
	t.freq = layer_pid(run, LAYER_FREQ, run->device);
	t.comm = layer_pid(run, LAYER_COMM, run->device);
	t.overlap = layer_pid(run, LAYER_OVERLAP, run->device);
	NP_TRY(np_out_open(&t.out, dir, framework ? "trace_view.json" : name, err));
	np_out_char(&t.out, '[');
	if (framework) {
		fw_ops(&t);
		fw_stalls(&t);
		fw_queue(&t);
		meta_framework(&t);
	}
	if (device)
		dev_all(&t);
	if (framework && device)
		fw_to_npu(&t);
	np_out_str(&t.out, np_synth_has(run, NP_SYNTH_TRACE_COMMA) ? ",]" : "]");
	if (np_synth_has(run, NP_SYNTH_TRUNCATED)) {
		np_out_flush(&t.out);
		t.out.total_bytes -= t.out.total_bytes / 3;
		if (t.out.errnum == 0 && ftruncate(t.out.fd, (off_t)t.out.total_bytes) != 0)
			t.out.errnum = errno;
	}
	return np_synth_finish(&t.out, stats, err);
}
