/* kernel_details.csv in its dialects, and op_summary: one table of columns. */
#include "synth/write.h"

#include <stdio.h>

#include "synth/faults_ops.h"
#include "synth/rng.h"

enum layout {
	NOW = 1 << 0,      /* 47 columns: Step Id and Device_id */
	OLD = 1 << 1,      /* 46: no Device_id, Block Dim */
	LEVEL0 = 1 << 2,   /* 9 */
	A910 = 1 << 3,     /* 36 */
	SUMMARY = 1 << 4,  /* op_summary: 46, no Step Id, names of CANN */
	SUMMARY0 = 1 << 5, /* the same without metrics: 21 */
	A2 = NOW | OLD | SUMMARY,
	ALL = A2 | LEVEL0 | A910 | SUMMARY0,
	LONG = A2 | A910 | SUMMARY0, /* all that have shapes */
};

struct row {
	const struct np_synth_run *run;
	const struct np_synth_item *item;
	const struct np_synth_op *op; /* NULL: a collective */
	enum layout layout;
	np_ns wait_ns;
	bool first, no_pmu;
	int64_t pmu[NP_PMU_VALUES];
};

struct column {
	const char *name, *old_name, *summary_name; /* old and summary: NULL, the same */
	unsigned layouts;
	void (*put)(struct np_out *out, const struct row *row, int arg);
	int arg;
};

static void put_na(struct np_out *out)
{
	np_out_lit(out, "N/A");
}

static void put_step(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	if (row->item->step >= 0)
		np_out_u64(out, row->run->steps[row->item->step].id);
}

static void put_device(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	np_out_u64(out, row->run->device);
}

static void put_model(struct np_out *out, const struct row *row, int arg)
{
	(void)row;
	(void)arg;
	np_out_lit(out, "4294967295");
}

static void put_task(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	if (row->op)
		np_out_u64(out, row->item->task);
	else
		put_na(out);
}

static void put_stream(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	np_out_str(out, row->op ? "2" : "N/A");
}

static void put_name(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	char scratch[64];
	np_out_csv(out, np_synth_item_name(row->run, row->item, scratch));
}

static void put_type(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	char scratch[32];
	np_out_str(out, row->op ? row->op->type : np_synth_comm_type(row->item, scratch));
}

static void put_state(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	np_out_str(out, row->op ? "dynamic" : "N/A");
}

static void put_core(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	if (row->op)
		np_out_str(out, np_synth_core_name(row->op->core));
	else
		np_out_str(out, row->layout & (OLD | A910) ? "HCCL" : "COMMUNICATION");
}

static void put_start(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	np_out_fixed(out, row->item->start_ns, 3);
	np_out_char(out, '\t');
}

static void put_dur(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	np_out_fixed(out, np_synth_written_dur(row->item), 3);
}

/* today's exporter prints %.6f, the old one what is needed (§3.1) */
static void put_wait(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	if (row->first)
		np_out_char(out, '0');
	else if (row->layout & (OLD | A910))
		np_out_short(out, row->wait_ns, 3);
	else
		np_out_fixed(out, row->wait_ns * 1000, 6);
}

static void put_blocks(struct np_out *out, const struct row *row, int arg)
{
	if (!row->op)
		np_out_str(out, arg ? "N/A" : "0");
	else
		np_out_u64(out, arg ? row->op->mix_blocks : row->op->blocks);
}

static void put_hf32(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	np_out_str(out, !row->op ? "N/A" : row->op->hf32 ? "YES" : "NO");
}

static void put_shape(struct np_out *out, const struct row *row, int arg)
{
	if (!row->op) {
		put_na(out);
		return;
	}
	char scratch[64];
	const char *in_shapes = np_synth_in_shapes(row->run, row->item, scratch);
	const char *const cells[] = {in_shapes,           row->op->in_types,  row->op->in_formats,
	                             row->op->out_shapes, row->op->out_types, row->op->out_formats};
	np_out_csv(out, cells[arg]);
}

static void put_context(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	np_out_str(out, row->op && row->op->core == NP_CORE_MIX ? "0" : "N/A");
}

static void put_raw(struct np_out *out, const struct row *row, int arg)
{
	if (row->no_pmu)
		put_na(out);
	else if (arg == NP_PMU_AIC_CYCLES || arg == NP_PMU_AIV_CYCLES)
		np_out_i64(out, row->pmu[arg]);
	else
		np_out_short(out, row->pmu[arg], 3);
}

/* the time of a share of the core's time */
static void put_part(struct np_out *out, const struct row *row, int arg)
{
	int total = arg < NP_PMU_AIV_TIME ? NP_PMU_AIC_TIME : NP_PMU_AIV_TIME;
	if (row->no_pmu)
		put_na(out);
	else
		np_out_short(out, row->pmu[total] * row->pmu[arg] / 1000, 3);
}

/* On a 910A one core has both kinds of units: take the kernel's own side. */
static void put_910a(struct np_out *out, const struct row *row, int arg)
{
	bool vector = row->op && row->op->core == NP_CORE_VECTOR;
	if (vector && arg == NP_PMU_AIC_TIME)
		arg = NP_PMU_AIV_TIME;
	else if (vector && arg == NP_PMU_AIC_CYCLES)
		arg = NP_PMU_AIV_CYCLES;
	put_raw(out, row, arg);
}

static void put_bound(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	int64_t busy = row->pmu[NP_PMU_AIC_MAC], mte2 = row->pmu[NP_PMU_AIC_MTE2];
	if (row->pmu[NP_PMU_AIV_VEC] > busy) {
		busy = row->pmu[NP_PMU_AIV_VEC];
		mte2 = row->pmu[NP_PMU_AIV_MTE2];
	}
	if (row->no_pmu)
		put_na(out);
	else
		np_out_short(out, busy ? (mte2 * 1000 + busy / 2) / busy : 0, 3);
}

/* cycles of all blocks of what 20 cores could do in the duration, in percent */
static void put_cube(struct np_out *out, const struct row *row, int arg)
{
	(void)arg;
	if (row->no_pmu)
		put_na(out);
	else
		np_out_fixed(out, row->pmu[NP_PMU_AIC_CYCLES] * 500000 / (row->item->dur_ns * 180),
		             3);
}

#define C(name, old, summary, layouts, put, arg)      \
	{                                             \
		name, old, summary, layouts, put, arg \
	}
#define PMU(name, put, arg)                    \
	{                                      \
		name, NULL, NULL, A2, put, arg \
	}
#define PMU910(name, put, arg)                   \
	{                                        \
		name, NULL, NULL, A910, put, arg \
	}
/* a pair of columns: the time of the share, and the share */
#define PAIR(prefix, arg) PMU(prefix "_time(us)", put_part, arg), PMU(prefix "_ratio", put_raw, arg)
#define PAIR910(prefix, arg) \
	PMU910(prefix "_time(us)", put_part, arg), PMU910(prefix "_ratio", put_raw, arg)

static const struct column columns[] = {
	C("Step Id", NULL, NULL, NOW | OLD | LEVEL0 | A910, put_step, 0),
	C("Device_id", NULL, NULL, NOW | LEVEL0 | SUMMARY | SUMMARY0, put_device, 0),
	C("Model ID", NULL, NULL, LONG, put_model, 0),
	C("Task ID", NULL, NULL, LONG, put_task, 0),
	C("Stream ID", NULL, NULL, LONG, put_stream, 0),
	C("Name", NULL, "Op Name", ALL, put_name, 0),
	C("Type", NULL, "OP Type", ALL, put_type, 0),
	C("OP State", NULL, NULL, LONG, put_state, 0),
	C("Accelerator Core", NULL, "Task Type", ALL, put_core, 0),
	C("Start Time(us)", NULL, "Task Start Time(us)", ALL, put_start, 0),
	C("Duration(us)", NULL, "Task Duration(us)", ALL, put_dur, 0),
	C("Wait Time(us)", NULL, "Task Wait Time(us)", ALL, put_wait, 0),
	C("Block Num", "Block Dim", NULL, ALL, put_blocks, 0),
	C("Mix Block Num", "Mix Block Dim", NULL, A2 | SUMMARY0, put_blocks, 1),
	C("HF32 Eligible", NULL, NULL, LONG, put_hf32, 0),
	C("Input Shapes", NULL, NULL, LONG, put_shape, 0),
	C("Input Data Types", NULL, NULL, LONG, put_shape, 1),
	C("Input Formats", NULL, NULL, LONG, put_shape, 2),
	C("Output Shapes", NULL, NULL, LONG, put_shape, 3),
	C("Output Data Types", NULL, NULL, LONG, put_shape, 4),
	C("Output Formats", NULL, NULL, LONG, put_shape, 5),
	C("Context ID", NULL, NULL, A2 | SUMMARY0, put_context, 0),
	PMU("aicore_time(us)", put_raw, NP_PMU_AIC_TIME),
	PMU("aic_total_cycles", put_raw, NP_PMU_AIC_CYCLES),
	PAIR("aic_mac", NP_PMU_AIC_MAC),
	PAIR("aic_scalar", NP_PMU_AIC_SCALAR),
	PAIR("aic_mte1", NP_PMU_AIC_MTE1),
	PAIR("aic_mte2", NP_PMU_AIC_MTE2),
	PAIR("aic_fixpipe", NP_PMU_AIC_FIXPIPE),
	PMU("aic_icache_miss_rate", put_raw, NP_PMU_AIC_ICACHE),
	PMU("aiv_time(us)", put_raw, NP_PMU_AIV_TIME),
	PMU("aiv_total_cycles", put_raw, NP_PMU_AIV_CYCLES),
	PAIR("aiv_vec", NP_PMU_AIV_VEC),
	PAIR("aiv_scalar", NP_PMU_AIV_SCALAR),
	PAIR("aiv_mte2", NP_PMU_AIV_MTE2),
	PAIR("aiv_mte3", NP_PMU_AIV_MTE3),
	PMU("aiv_icache_miss_rate", put_raw, NP_PMU_AIV_ICACHE),
	PMU910("aicore_time(us)", put_910a, NP_PMU_AIC_TIME),
	PMU910("total_cycles", put_910a, NP_PMU_AIC_CYCLES),
	PAIR910("vec", NP_PMU_AIV_VEC),
	PAIR910("mac", NP_PMU_AIC_MAC),
	PAIR910("scalar", NP_PMU_AIC_SCALAR),
	PAIR910("mte1", NP_PMU_AIC_MTE1),
	PAIR910("mte2", NP_PMU_AIC_MTE2),
	PAIR910("mte3", NP_PMU_AIV_MTE3),
	PMU910("icache_miss_rate", put_raw, NP_PMU_AIC_ICACHE),
	PMU910("memory_bound", put_bound, 0),
	C("cube_utilization(%)", NULL, NULL, A2 | A910, put_cube, 0),
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static int64_t share(uint32_t permille, uint64_t noise)
{
	int64_t value = np_jitter(permille, 40, noise);
	return value > 999 ? 999 : value;
}

void np_synth_pmu(const struct np_synth_run *run, const struct np_synth_item *item,
                  int64_t pmu[NP_PMU_VALUES])
{
	for (int i = 0; i < NP_PMU_VALUES; i++)
		pmu[i] = 0;
	const struct np_synth_op *op = &np_synth_ops[item->op];
	uint64_t noise =
		np_noise(run->plan->options.seed ^ 0x9a7, ((uint64_t)run->rank << 32) + item->task);
	np_ns time = item->dur_ns - item->dur_ns / 16 - 400;
	if (op->core == NP_CORE_CUBE || op->core == NP_CORE_MIX) {
		pmu[NP_PMU_AIC_TIME] = time;
		pmu[NP_PMU_AIC_CYCLES] = time * 18 / 10 * op->blocks;
		pmu[NP_PMU_AIC_MAC] = share(op->mac, noise);
		pmu[NP_PMU_AIC_SCALAR] = share(210, noise >> 7);
		pmu[NP_PMU_AIC_MTE1] = share(op->mac * 3u / 4, noise >> 13);
		pmu[NP_PMU_AIC_MTE2] = share(op->mte2, noise >> 19);
		pmu[NP_PMU_AIC_FIXPIPE] = share(85, noise >> 25);
		pmu[NP_PMU_AIC_ICACHE] = (int64_t)(noise >> 31 & 7);
	}
	if (op->core == NP_CORE_VECTOR || op->core == NP_CORE_MIX) {
		uint32_t blocks = op->mix_blocks ? op->mix_blocks : op->blocks;
		pmu[NP_PMU_AIV_TIME] = time - 200;
		pmu[NP_PMU_AIV_CYCLES] = (time - 200) * 18 / 10 * blocks;
		pmu[NP_PMU_AIV_VEC] = share(op->vec, noise >> 5);
		pmu[NP_PMU_AIV_SCALAR] = share(120, noise >> 11);
		pmu[NP_PMU_AIV_MTE2] = share(op->mte2, noise >> 17);
		pmu[NP_PMU_AIV_MTE3] = share(op->mte3, noise >> 23);
		pmu[NP_PMU_AIV_ICACHE] = (int64_t)(noise >> 29 & 31);
	}
}

static void put_header(struct np_out *out, enum layout layout)
{
	bool first = true;
	for (int i = 0; i < COLUMNS; i++) {
		const struct column *column = &columns[i];
		if (!(column->layouts & layout))
			continue;
		const char *name = column->name;
		if (layout & (OLD | A910) && column->old_name)
			name = column->old_name;
		if (layout & (SUMMARY | SUMMARY0) && column->summary_name)
			name = column->summary_name;
		if (!first)
			np_out_char(out, ',');
		np_out_str(out, name);
		first = false;
	}
	np_out_char(out, '\n');
}

/* `cut` cells are left out at the end (a negative number: that many too much). */
static void put_row(struct np_out *out, const struct row *row, const uint8_t *used, int n_used,
                    int cut)
{
	for (int i = 0; i < n_used - (cut > 0 ? cut : 0); i++) {
		if (i)
			np_out_char(out, ',');
		columns[used[i]].put(out, row, columns[used[i]].arg);
	}
	for (; cut < 0; cut++)
		np_out_lit(out, ",surplus");
	np_out_char(out, '\n');
}

/* Rows [from, to) of the order. */
static void put_rows(struct np_out *out, const struct np_synth_run *run, enum layout layout,
                     size_t from, size_t to)
{
	uint8_t used[COLUMNS];
	int n_used = 0;
	for (int i = 0; i < COLUMNS; i++)
		if (columns[i].layouts & layout)
			used[n_used++] = (uint8_t)i;
	bool no_pmu = np_synth_has(run, NP_SYNTH_NA_METRICS);
	bool ragged = np_synth_has(run, NP_SYNTH_RAGGED);
	for (size_t i = from; i < to; i++) {
		struct row row = {.run = run, .layout = layout, .first = i == 0};
		row.item = &run->items.v[run->order.v[i]];
		row.op = row.item->kind == NP_ITEM_KERNEL ? &np_synth_ops[row.item->op] : NULL;
		if (i > 0) {
			const struct np_synth_item *last = &run->items.v[run->order.v[i - 1]];
			np_ns wait =
				row.item->start_ns - last->start_ns - np_synth_written_dur(last);
			row.wait_ns = wait > 0 ? wait : 0;
		}
		row.no_pmu = no_pmu || !row.op || row.op->core == NP_CORE_AICPU;
		if (!row.no_pmu)
			np_synth_pmu(run, row.item, row.pmu);
		int cut = !ragged ? 0 : i % 16 == 5 ? 3 : i % 16 == 11 ? -2 : 0;
		put_row(out, &row, used, n_used, cut);
	}
}

enum np_status np_synth_write_kernels(const struct np_synth_run *run, const char *dir,
                                      struct np_synth_stats *stats, struct np_err *err)
{
	enum layout layout = run->level == 0                           ? LEVEL0
	                     : np_synth_has(run, NP_SYNTH_ASCEND_910A) ? A910
	                     : np_synth_has(run, NP_SYNTH_OLD_HEADER)  ? OLD
	                                                               : NOW;
	struct np_out out;
	NP_TRY(np_out_open(&out, dir, "kernel_details.csv", err));
	put_header(&out, layout);
	if (!np_synth_has(run, NP_SYNTH_HEADER_ONLY))
		put_rows(&out, run, layout, 0, run->order.n);
	return np_synth_finish(&out, stats, err);
}

enum np_status np_synth_write_op_summary(const struct np_synth_run *run, const char *dir,
                                         const char *stamp, struct np_synth_stats *stats,
                                         struct np_err *err)
{
	enum layout layout = run->level == 0 ? SUMMARY0 : SUMMARY;
	size_t slices = np_synth_has(run, NP_SYNTH_SLICES) ? 3 : 1, n = run->order.n;
	for (size_t s = 0; s < slices; s++) {
		char name[96];
		if (slices > 1)
			(void)snprintf(name, sizeof name, "op_summary_%s_slice_%zu.csv", stamp, s);
		else
			(void)snprintf(name, sizeof name, "op_summary_%s.csv", stamp);
		struct np_out out;
		NP_TRY(np_out_open(&out, dir, name, err));
		put_header(&out, layout);
		if (!np_synth_has(run, NP_SYNTH_HEADER_ONLY))
			put_rows(&out, run, layout, n * s / slices, n * (s + 1) / slices);
		NP_TRY(np_synth_finish(&out, stats, err));
	}
	return NP_OK;
}
