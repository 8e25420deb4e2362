/* The csv files but kernel_details.csv. */
#include "synth/faults_ops.h"
#include "synth/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── small things that every file has ── */

static void put_time(struct np_out *out, np_ns ns)
{
	np_out_fixed(out, ns, 3);
	np_out_char(out, '\t');
}

static void put_mb(struct np_out *out, uint64_t bytes)
{
	np_out_short(out, (int64_t)(bytes / 1024) * 9765625, 10);
}

static void put_npu(struct np_out *out, const struct np_synth_run *run)
{
	np_out_lit(out, "NPU:");
	np_out_u64(out, run->device);
	np_out_char(out, '\n');
}

static void put_us(struct np_out *out, np_ns ns)
{
	if (ns == 0)
		np_out_char(out, '0');
	else
		np_out_short(out, ns, 3);
}

/* ── op_statistic, api_statistic ── */

enum { MAX_STATS = NP_OPS + 3 }; /* the ops, and the three calls of the runtime */

struct stat_row {
	const char *name, *group;
	int64_t count;
	np_ns total, min, max;
	uint64_t squares; /* of the distances to the average, second pass */
};

struct stat_table {
	struct stat_row v[MAX_STATS];
	size_t n;
};

static struct stat_row *stat_find(struct stat_table *table, const char *name, const char *group)
{
	for (size_t i = 0; i < table->n; i++)
		if (strcmp(table->v[i].name, name) == 0 && strcmp(table->v[i].group, group) == 0)
			return &table->v[i];
	struct stat_row *row = &table->v[table->n++];
	*row = (struct stat_row){.name = name, .group = group, .min = INT64_MAX, .max = INT64_MIN};
	return row;
}

/* rounded half away from zero; `by` > 0 */
static int64_t divide(int64_t value, int64_t by)
{
	return (value + (value < 0 ? -by : by) / 2) / by;
}

static np_ns stat_avg(const struct stat_row *row)
{
	return row->count ? divide(row->total, row->count) : 0;
}

/* in 1/1000 us², from ns² */
static int64_t stat_variance(const struct stat_row *row)
{
	uint64_t div = (uint64_t)row->count * 1000;
	return div ? (int64_t)((row->squares + div / 2) / div) : 0;
}

static void stat_add(struct stat_row *row, np_ns dur, bool second_pass)
{
	if (second_pass) {
		np_ns off = dur - stat_avg(row);
		row->squares += (uint64_t)(off * off);
		return;
	}
	row->count++;
	row->total += dur;
	row->min = dur < row->min ? dur : row->min;
	row->max = dur > row->max ? dur : row->max;
}

static int by_total(const void *a, const void *b)
{
	const struct stat_row *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	int name = strcmp(x->name, y->name);
	return name ? name : strcmp(x->group, y->group);
}

static int by_name(const void *a, const void *b)
{
	const struct stat_row *x = a, *y = b;
	int name = strcmp(x->name, y->name);
	return name ? name : strcmp(x->group, y->group);
}

static enum np_status write_op_statistic(const struct np_synth_run *run, const char *dir,
                                         const char *name, struct np_synth_stats *stats,
                                         struct np_err *err)
{
	struct stat_table table = {.n = 0};
	struct stat_row *rows[NP_OPS] = {NULL};
	np_ns sum = 0;
	for (size_t i = 0; i < run->order.n; i++) {
		const struct np_synth_item *item = &run->items.v[run->order.v[i]];
		if (item->kind != NP_ITEM_KERNEL)
			continue;
		const struct np_synth_op *op = &np_synth_ops[item->op];
		if (!rows[item->op])
			rows[item->op] = stat_find(&table, op->type, np_synth_core_name(op->core));
		stat_add(rows[item->op], np_synth_written_dur(item), false);
		sum += np_synth_written_dur(item);
	}
	qsort(table.v, table.n, sizeof *table.v, by_total);
	bool old =
		np_synth_has(run, NP_SYNTH_OLD_HEADER) || np_synth_has(run, NP_SYNTH_ASCEND_910A);
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, name, err));
	np_out_str(&out, old ? "" : "Device_id,");
	np_out_lit(&out, "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),"
	                 "Max Time(us),Ratio(%)\n");
	for (size_t i = 0; i < table.n; i++) {
		const struct stat_row *row = &table.v[i];
		if (!old) {
			np_out_u64(&out, run->device);
			np_out_char(&out, ',');
		}
		np_out_str(&out, row->name);
		np_out_char(&out, ',');
		np_out_str(&out, row->group);
		np_out_char(&out, ',');
		np_out_i64(&out, row->count);
		const np_ns cells[] = {row->total, row->min, stat_avg(row), row->max};
		for (int c = 0; c < 4; c++) {
			np_out_char(&out, ',');
			np_out_short(&out, cells[c], 3);
		}
		np_out_char(&out, ',');
		np_out_short(&out, sum > 0 ? divide(row->total * 100000, sum) : 0, 3);
		np_out_char(&out, '\n');
	}
	return np_synth_finish(&out, stats, err);
}

static void collect_apis(const struct np_synth_run *run, struct stat_table *table, bool second_pass)
{
	struct stat_row *acl[NP_OPS] = {NULL};
	struct stat_row *launch = NULL, *copy = NULL, *kernel = NULL;
	for (size_t i = 0; i < run->items.n; i++) {
		const struct np_synth_item *item = &run->items.v[i];
		if (item->kind == NP_ITEM_COPY) {
			copy = copy ? copy : stat_find(table, "aclrtMemcpyAsync", "acl");
			stat_add(copy, NP_COPY_API_NS, second_pass);
			continue;
		}
		if (item->kind == NP_ITEM_COMM && run->n_comms == 0)
			continue;
		launch = launch ? launch : stat_find(table, "launch", "node");
		stat_add(launch, np_synth_launch_len(item), second_pass);
		if (item->kind == NP_ITEM_COMM)
			continue;
		if (!acl[item->op])
			acl[item->op] = stat_find(table, np_synth_ops[item->op].acl, "acl");
		stat_add(acl[item->op], np_synth_acl_len(item), second_pass);
		if (run->level < 2)
			continue;
		kernel = kernel ? kernel : stat_find(table, NP_RUNTIME_CALL, "runtime");
		stat_add(kernel, np_synth_runtime_len(item), second_pass);
	}
}

static enum np_status write_api_statistic(const struct np_synth_run *run, const char *dir,
                                          const char *name, struct np_synth_stats *stats,
                                          struct np_err *err)
{
	struct stat_table table = {.n = 0};
	collect_apis(run, &table, false);
	collect_apis(run, &table, true);
	qsort(table.v, table.n, sizeof *table.v, by_name);
	bool old =
		np_synth_has(run, NP_SYNTH_OLD_HEADER) || np_synth_has(run, NP_SYNTH_ASCEND_910A);
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, name, err));
	np_out_str(&out, old ? "" : "Device_id,");
	np_out_lit(&out, "Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n");
	for (size_t i = 0; i < table.n; i++) {
		const struct stat_row *row = &table.v[i];
		np_out_str(&out, old ? "" : "host,");
		np_out_str(&out, row->group);
		np_out_char(&out, ',');
		np_out_str(&out, row->name);
		np_out_char(&out, ',');
		np_out_short(&out, row->total, 3);
		np_out_char(&out, ',');
		np_out_i64(&out, row->count);
		const np_ns cells[] = {stat_avg(row), row->min, row->max};
		for (int c = 0; c < 3; c++) {
			np_out_char(&out, ',');
			np_out_short(&out, cells[c], 3);
		}
		np_out_char(&out, ',');
		np_out_short(&out, stat_variance(row), 3);
		np_out_char(&out, '\n');
	}
	return np_synth_finish(&out, stats, err);
}

/* ── operator_details.csv ── */

/* "a,b;c" with its quotes as the framework has it: no quotes, ";\r\n" between */
static void put_dims(struct np_out *out, const char *shapes)
{
	np_out_char(out, '"');
	for (; *shapes; shapes++) {
		if (*shapes == ';')
			np_out_lit(out, ";\r\n");
		else if (*shapes != '"')
			np_out_char(out, *shapes);
	}
	np_out_char(out, '"');
}

static void put_op_row(struct np_out *out, const char *name, const char *shapes, np_ns self,
                       np_ns total, const np_ns device[4])
{
	np_out_csv(out, name);
	np_out_char(out, ',');
	if (shapes)
		put_dims(out, shapes);
	np_out_lit(out, ",,");
	np_out_short(out, self, 3);
	np_out_char(out, ',');
	np_out_short(out, total, 3);
	for (int i = 0; i < 4; i++) {
		np_out_char(out, ',');
		put_us(out, device[i]);
	}
	np_out_lit(out, "\r\n");
}

static enum np_status write_operator_details(const struct np_synth_run *run, const char *dir,
                                             struct np_synth_stats *stats, struct np_err *err)
{
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, "operator_details.csv", err));
	np_out_lit(
		&out,
		"Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),"
		"Device Self Duration(us),Device Total Duration(us),"
		"Device Self Duration With AICore(us),Device Total Duration With AICore(us)\r\n");
	bool device = !np_synth_has(run, NP_SYNTH_HOST_ONLY);
	bool comm = run->n_comms > 0;
	for (size_t i = 0; i < run->items.n; i++) {
		const struct np_synth_item *item = &run->items.v[i];
		bool kernel = item->kind == NP_ITEM_KERNEL;
		bool counts = device && (kernel || (item->kind == NP_ITEM_COMM && comm));
		np_ns dur = counts ? np_synth_written_dur(item) : 0;
		np_ns cube = kernel && np_synth_ops[item->op].core == NP_CORE_CUBE ? dur : 0;
		np_ns inner = item->host_dur_ns - 2 * NP_INNER_NS;
		char scratch[64];
		put_op_row(&out, np_synth_outer_op(item),
		           kernel ? np_synth_in_shapes(run, item, scratch) : NULL, 2 * NP_INNER_NS,
		           item->host_dur_ns, (np_ns[4]){0, dur, 0, cube});
		put_op_row(&out, np_synth_inner_op(item), NULL, inner, inner,
		           (np_ns[4]){dur, dur, cube, cube});
	}
	return np_synth_finish(&out, stats, err);
}

/* ── step_trace_time.csv ── */

enum np_status np_synth_write_step_trace(const struct np_synth_run *run, const char *dir,
                                         struct np_synth_stats *stats, struct np_err *err)
{
	bool old =
		np_synth_has(run, NP_SYNTH_OLD_HEADER) || np_synth_has(run, NP_SYNTH_ASCEND_910A);
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, "step_trace_time.csv", err));
	np_out_str(&out, old ? "" : "Device_id,");
	np_out_lit(&out,
	           "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,"
	           "Stage,Bubble,Communication(Not Overlapped and Exclude Receive),Preparing\r\n");
	for (uint32_t s = 0; s < run->plan->options.steps; s++) {
		const struct np_synth_step *step = &run->steps[s];
		if (!step->device)
			continue;
		if (!old) {
			np_out_u64(&out, run->device);
			np_out_char(&out, ',');
		}
		np_out_u64(&out, step->id);
		const np_ns cells[] = {step->computing_ns,
		                       step->not_overlapped_ns,
		                       step->communication_ns - step->not_overlapped_ns,
		                       step->communication_ns,
		                       step->free_csv_ns,
		                       step->stage_csv_ns,
		                       step->bubble_ns,
		                       np_synth_exclude_receive(step),
		                       step->preparing_ns};
		for (size_t c = 0; c < sizeof cells / sizeof *cells; c++) {
			np_out_char(&out, ',');
			put_us(&out, cells[c]);
		}
		np_out_lit(&out, "\r\n");
	}
	return np_synth_finish(&out, stats, err);
}

/* ── memory ── */

static void put_mem_row(struct np_out *out, const struct np_synth_run *run,
                        const struct np_synth_mem *mem)
{
	np_out_str(out, np_synth_ops[mem->op].aten);
	np_out_char(out, ',');
	np_out_short(out, (int64_t)mem->size_bytes * 10 / 1024, 1);
	np_out_char(out, ',');
	put_time(out, mem->alloc_ns);
	np_out_char(out, ',');
	if (mem->free_ns) {
		put_time(out, mem->free_ns);
		np_out_char(out, ',');
		put_time(out, mem->free_ns);
		np_out_char(out, ',');
		put_time(out, mem->free_ns - mem->alloc_ns);
		np_out_char(out, ',');
		put_time(out, mem->free_ns - mem->alloc_ns);
	} else {
		np_out_lit(out, ",,,");
	}
	for (int i = 0; i < 2; i++) {
		uint64_t total = i ? mem->free_total_bytes : mem->alloc_total_bytes;
		np_out_char(out, ',');
		if (i && !mem->free_ns) {
			np_out_lit(out, ",,");
			continue;
		}
		put_mb(out, total);
		np_out_char(out, ',');
		put_mb(out, NP_MEM_RESERVED_BYTES);
		np_out_char(out, ',');
		put_mb(out, total);
	}
	np_out_lit(out, ",2,");
	put_npu(out, run);
}

static enum np_status write_operator_memory(const struct np_synth_run *run, const char *dir,
                                            struct np_synth_stats *stats, struct np_err *err)
{
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, "operator_memory.csv", err));
	np_out_lit(&out,
	           "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),"
	           "Duration(us),Active Duration(us),Allocation Total Allocated(MB),"
	           "Allocation Total Reserved(MB),Allocation Total Active(MB),"
	           "Release Total Allocated(MB),Release Total Reserved(MB),"
	           "Release Total Active(MB),Stream Ptr,Device Type\n");
	for (size_t i = 0; i < run->mem.n; i++)
		put_mem_row(&out, run, &run->mem.v[i]);
	return np_synth_finish(&out, stats, err);
}

static enum np_status write_memory_record(const struct np_synth_run *run, const char *dir,
                                          struct np_synth_stats *stats, struct np_err *err)
{
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, "memory_record.csv", err));
	np_out_lit(&out, "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),"
	                 "Total Active(MB),Stream Ptr,Device Type\n");
	np_ns at = run->session_start_ns;
	for (int i = 0; i < NP_SYNTH_MAX_SAMPLES && at < run->session_end_ns;
	     i++, at += NP_SYNTH_SAMPLE_NS) {
		np_out_lit(&out, "APP,");
		put_time(&out, at);
		np_out_lit(&out, ",,");
		put_mb(&out, NP_MEM_RESERVED_BYTES + (512u << 20));
		np_out_lit(&out, ",,,");
		put_npu(&out, run);
	}
	for (size_t i = 0; i < run->mem_events.n; i++) {
		const struct np_synth_mem_event *event = &run->mem_events.v[i];
		for (int sum = 0; sum < 2; sum++) {
			np_out_str(&out, sum ? "PTA+GE," : "PTA,");
			put_time(&out, event->ns);
			np_out_char(&out, ',');
			put_mb(&out, event->total_bytes);
			np_out_char(&out, ',');
			put_mb(&out, NP_MEM_RESERVED_BYTES);
			np_out_char(&out, ',');
			put_mb(&out, event->total_bytes);
			np_out_lit(&out, ",2,");
			put_npu(&out, run);
		}
	}
	return np_synth_finish(&out, stats, err);
}

const struct np_synth_module np_synth_modules[NP_SYNTH_MODULES] = {
	{"SLOG", 0, 162458}, {"HCCL", 3, 413760}, {"RUNTIME", 7, 286112}, {"APP", 33, 1835008}};

static enum np_status write_module_mem(const struct np_synth_run *run, const char *dir,
                                       struct np_synth_stats *stats, struct np_err *err)
{
	bool old =
		np_synth_has(run, NP_SYNTH_OLD_HEADER) || np_synth_has(run, NP_SYNTH_ASCEND_910A);
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, "npu_module_mem.csv", err));
	np_out_str(&out, old ? "" : "Device_id,");
	np_out_lit(&out, "Component,Timestamp(us),Total Reserved(MB),Device\n");
	for (size_t m = 0; m < NP_SYNTH_MODULES; m++) {
		np_ns at = run->session_start_ns + NP_SYNTH_FIRST_SAMPLE_NS;
		for (int i = 0; i < NP_SYNTH_MAX_SAMPLES && at < run->session_end_ns;
		     i++, at += NP_SYNTH_SAMPLE_NS) {
			if (!old) {
				np_out_u64(&out, run->device);
				np_out_char(&out, ',');
			}
			np_out_str(&out, np_synth_modules[m].name);
			np_out_char(&out, ',');
			put_time(&out, at);
			np_out_char(&out, ',');
			put_mb(&out, (uint64_t)np_synth_modules[m].kb * 1024);
			np_out_char(&out, ',');
			put_npu(&out, run);
		}
	}
	return np_synth_finish(&out, stats, err);
}

/* ── together ── */

enum np_status np_synth_write_tables(const struct np_synth_run *run, const char *dir,
                                     struct np_synth_stats *stats, struct np_err *err)
{
	bool device = !np_synth_has(run, NP_SYNTH_HOST_ONLY);
	NP_TRY(write_operator_details(run, dir, stats, err));
	NP_TRY(write_operator_memory(run, dir, stats, err));
	NP_TRY(write_memory_record(run, dir, stats, err));
	if (!device)
		return NP_OK;
	NP_TRY(np_synth_write_step_trace(run, dir, stats, err));
	NP_TRY(write_module_mem(run, dir, stats, err));
	if (run->level == 0)
		return NP_OK;
	NP_TRY(write_op_statistic(run, dir, "op_statistic.csv", stats, err));
	return write_api_statistic(run, dir, "api_statistic.csv", stats, err);
}

static enum np_status write_task_time(const struct np_synth_run *run, const char *dir,
                                      const char *name, struct np_synth_stats *stats,
                                      struct np_err *err)
{
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, name, err));
	np_out_lit(&out, "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),"
	                 "task_start(us),task_stop(us)\n");
	for (size_t i = 0; i < run->items.n && !np_synth_has(run, NP_SYNTH_HOST_ONLY); i++) {
		const struct np_synth_item *item = &run->items.v[i];
		char scratch[64];
		if (item->kind == NP_ITEM_COMM)
			continue;
		np_out_u64(&out, run->device);
		np_out_char(&out, ',');
		np_out_csv(&out, np_synth_item_name(run, item, scratch));
		np_out_char(&out, ',');
		np_out_str(&out, item->kind == NP_ITEM_COPY
		                         ? "MEMCPY_ASYNC"
		                         : np_synth_task_type(np_synth_ops[item->op].core));
		np_out_lit(&out, ",2,");
		np_out_u64(&out, item->task);
		np_out_char(&out, ',');
		np_out_fixed(&out, np_synth_written_dur(item), 3);
		np_out_char(&out, ',');
		put_time(&out, item->start_ns);
		np_out_char(&out, ',');
		put_time(&out, item->start_ns + np_synth_written_dur(item));
		np_out_char(&out, '\n');
	}
	return np_synth_finish(&out, stats, err);
}

enum np_status np_synth_write_msprof_tables(const struct np_synth_run *run, const char *dir,
                                            const char *stamp, struct np_synth_stats *stats,
                                            struct np_err *err)
{
	char name[96];
	(void)snprintf(name, sizeof name, "task_time_%s.csv", stamp);
	NP_TRY(write_task_time(run, dir, name, stats, err));
	if (run->level == 0)
		return NP_OK;
	(void)snprintf(name, sizeof name, "op_statistic_%s.csv", stamp);
	NP_TRY(write_op_statistic(run, dir, name, stats, err));
	(void)snprintf(name, sizeof name, "api_statistic_%s.csv", stamp);
	return write_api_statistic(run, dir, name, stats, err);
}
