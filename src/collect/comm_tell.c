#include "collect/comm_tell.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/lang.h"

static const struct np_column stage_columns[] = {
	{"stage", "", NP_COL_TEXT, "innermost stage whose anchor was running; other: none was"},
	{"layer", "", NP_COL_TEXT, "where it was recorded: torch.distributed, or HCCL below it"},
	{"entered", "", NP_COL_INT, "calls of the stage's anchor, all ranks"},
	{"ranks", "", NP_COL_INT, "processes with traffic in it"},
	{"calls", "", NP_COL_INT, "collectives, all ranks"},
	{"size_bytes", "bytes", NP_COL_BYTES, "payload of one rank (R27)"},
	{"moved~_bytes", "bytes", NP_COL_BYTES,
         "estimate of what one rank moves (R27), no counter of HCCL"},
	{"share", "", NP_COL_PERCENT, "of the payload of this layer"},
	{"host_ns", "ns", NP_COL_DUR_NS, "one rank's host in the calls: not the transfers' time"},
};

static const struct np_column collective_columns[] = {
	{"stage", "", NP_COL_TEXT, "stage; other: outside of all anchors"},
	{"op", "", NP_COL_TEXT, "operation"},
	{"layer", "", NP_COL_TEXT, "torch or hccl"},
	{"group", "", NP_COL_TEXT, "ranks or communicator; of several groups how many"},
	{"world", "", NP_COL_INT, "ranks of the group"},
	{"ranks", "", NP_COL_INT, "processes that call it"},
	{"calls", "", NP_COL_INT, "of all of them"},
	{"size_bytes", "bytes", NP_COL_BYTES, "payload of one rank (R27)"},
	{"moved~_bytes", "bytes", NP_COL_BYTES,
         "estimate for one rank: payload x (w-1)/w for all_to_all and broadcast, x 2(w-1)/w for "
         "all_reduce, x (w-1) for all_gather (R27)"},
	{"basis", "", NP_COL_TEXT, "of moved~: R27, derived (a formula of our own), or none"},
	{"share", "", NP_COL_PERCENT, "of the payload of this layer"},
};

static const struct np_column size_columns[] = {
	{"op", "", NP_COL_TEXT, "operation"},
	{"layer", "", NP_COL_TEXT, "torch or hccl"},
	{"dtype", "", NP_COL_TEXT, "element type"},
	{"world", "", NP_COL_INT, "ranks of the group"},
	{"calls", "", NP_COL_INT, "all ranks"},
	{"unsized", "", NP_COL_INT, "calls whose size is not known; they count as 0 bytes"},
	{"mean_bytes", "bytes", NP_COL_BYTES, "payload of a call"},
	{"max_bytes", "bytes", NP_COL_BYTES, "largest"},
	{"bus~_bytes", "bytes", NP_COL_BYTES,
         "one rank: whole buffer x bus factor, what bus bandwidth is computed from (another number "
         "than moved~)"},
	{"host_ns", "ns", NP_COL_DUR_NS, "mean host time of a call"},
};

static const struct np_column group_columns[] = {
	{"group", "", NP_COL_TEXT, "ranks or communicator"},
	{"layer", "", NP_COL_TEXT, "torch or hccl"},
	{"world", "", NP_COL_INT, "its ranks"},
	{"ranks", "", NP_COL_INT, "processes recorded"},
	{"calls", "", NP_COL_INT, "all ranks"},
	{"size_bytes", "bytes", NP_COL_BYTES, "payload of one rank"},
	{"moved~_bytes", "bytes", NP_COL_BYTES, "estimate for one rank (R27)"},
	{"total~_bytes", "bytes", NP_COL_BYTES, "moved~ of all recorded ranks together"},
	{"id", "", NP_COL_TEXT,
         "of HCCL's: what a capture calls it, @<hash of the communicator's name>"},
};

static const struct np_column slice_columns[] = {
	{"request", "", NP_COL_INT, "requests so far"},
	{"step", "", NP_COL_INT, "calls of the step's anchor so far"},
	{"stage", "", NP_COL_TEXT, "stage"},
	{"entered", "", NP_COL_INT, "calls of the stage's anchor, all ranks"},
	{"calls", "", NP_COL_INT, "collectives, all ranks"},
	{"size_bytes", "bytes", NP_COL_BYTES, "payload, all ranks"},
	{"start_ns", "ns", NP_COL_TIME_NS, "first record"},
};

static const struct np_column request_columns[] = {
	{"request", "", NP_COL_INT, "requests so far"},
	{"stage", "", NP_COL_TEXT, "stage"},
	{"entered", "", NP_COL_INT, "calls of the stage's anchor, all ranks"},
	{"calls", "", NP_COL_INT, "collectives, all ranks"},
	{"size_bytes", "bytes", NP_COL_BYTES, "payload, all ranks"},
	{"start_ns", "ns", NP_COL_TIME_NS, "first record"},
};

static const struct np_column bucket_columns[] = {
	{"start_ns", "ns", NP_COL_TIME_NS, "begin of the stretch"},
	{"stage", "", NP_COL_TEXT, "stage"},
	{"calls", "", NP_COL_INT, "collectives issued, all ranks"},
	{"size_bytes", "bytes", NP_COL_BYTES, "payload, all ranks"},
};

static const struct np_column layer_columns[] = {
	{"op", "", NP_COL_TEXT, "operation and its kin (all_gather: _v and _object too)"},
	{"world", "", NP_COL_INT, "ranks of the group"},
	{"torch_calls", "", NP_COL_INT, "at torch.distributed, processes with both layers"},
	{"hccl_calls", "", NP_COL_INT, "at HCCL"},
	{"torch_bytes", "bytes", NP_COL_BYTES, "payload at torch.distributed"},
	{"hccl_bytes", "bytes", NP_COL_BYTES, "payload at HCCL"},
	{"why", "", NP_COL_TEXT, "what may make the difference (torch_npu.md §7.6)"},
};

static const struct np_column rank_columns[] = {
	{"rank", "", NP_COL_INT, "RANK of the process"},
	{"host", "", NP_COL_TEXT, "host"},
	{"pid", "", NP_COL_INT, "process"},
	{"tid", "", NP_COL_INT, "thread"},
	{"layer", "", NP_COL_TEXT, "torch or hccl"},
	{"records", "", NP_COL_INT, "records read"},
	{"comms", "", NP_COL_INT, "communicators made"},
	{"overwritten", "", NP_COL_INT, "oldest records, when the ring was full"},
	{"lost", "", NP_COL_INT, "calls that could not be recorded"},
	{"damaged", "", NP_COL_INT, "records cut off, broken, or with impossible values"},
	{"state", "", NP_COL_TEXT,
         "closed, not closed (killed, or still running), empty, unreadable"},
	{"file", "", NP_COL_TEXT, "log"},
};

enum { MARK = 42, LAYERS = 4 /* numbers of layers, with room */ };

#define TABLE(report, id, title, columns) NP_REPORT_TABLE(report, id, title, columns)

static void put_bytes(struct np_table *table, uint64_t bytes)
{
	np_cell_int(table, bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes);
}

/* of one rank, rounded */
static uint64_t each(uint64_t sum, uint64_t n)
{
	return n ? (sum + n / 2) / n : 0;
}

static void put_number(struct np_table *table, uint32_t number)
{
	if (number == NP_COMM_NO_U32)
		np_cell_na(table);
	else
		np_cell_int(table, number);
}

static void put_rank(struct np_table *table, int32_t rank)
{
	if (rank < 0)
		np_cell_na(table);
	else
		np_cell_int(table, rank);
}

static void put_stage(struct np_table *table, const struct np_clog_sum *sum, uint32_t stage)
{
	if (stage == 0)
		np_cell_word(table, NP_N("other"));
	else
		np_cell_text(table, np_intern_get(&sum->strings, stage));
}

static void put_op(struct np_table *table, uint8_t op)
{
	const char *name = np_clog_op_name(op);
	if (name)
		np_cell_cstr(table, name);
	else
		np_cell_printf(table, "op_%u", op);
}

static void put_moved(struct np_table *table, const struct np_clog_row *row)
{
	if (row->estimated)
		put_bytes(table, each(row->moved, row->processes));
	else
		np_cell_na(table);
}

static void put_group(struct np_table *table, const struct np_clog_sum *sum, uint32_t group)
{
	np_str name = np_clog_group_name(sum, &sum->groups.v[group]);
	if (name.len)
		np_cell_text(table, name);
	else if (sum->groups.v[group].hash)
		np_cell_printf(table, "@%" PRIu64, sum->groups.v[group].hash);
	else
		np_cell_na(table);
}

/* ── rows ── */

enum by { BY_STAGE, BY_CALL, BY_CALL_AND_GROUP, BY_SIZE, BY_GROUP };

static struct np_key key_of(enum by by, const struct np_clog_sum *sum,
                            const struct np_clog_cell *cell)
{
	uint32_t world = (uint32_t)sum->groups.v[cell->group].world;
	switch (by) {
	case BY_STAGE:
		return (struct np_key){{cell->stage, cell->layer, 0, 0}};
	case BY_CALL:
		return (struct np_key){
			{np_key_pair(cell->stage, cell->layer), cell->op, world, UINT32_MAX}};
	case BY_CALL_AND_GROUP:
		return (struct np_key){
			{np_key_pair(cell->stage, cell->layer), cell->op, world, cell->group}};
	case BY_SIZE:
		return (struct np_key){{cell->op, cell->dtype, world, cell->layer}};
	default:
		return (struct np_key){{cell->group, 0, 0, 0}};
	}
}

static bool collect_one(const struct np_clog_sum *sum, enum by by, struct np_clog_rows *rows,
                        const struct np_clog_cell *cell)
{
	struct np_key key = key_of(by, sum, cell);
	return np_clog_rows_add(rows, sum, &key, cell);
}

/* Bytes of what is shown, by layer: 100 % of each. */
struct totals {
	uint64_t bytes[LAYERS];
};

static bool collect(const struct np_clog_sum *sum, enum by by, struct np_clog_rows *rows,
                    struct totals *total)
{
	*rows = (struct np_clog_rows){.v = {NULL, 0, 0}};
	*total = (struct totals){{0}};
	for (size_t i = 0; i < sum->cells.n; i++) {
		const struct np_clog_cell *cell = &sum->cells.v[i];
		if (by == BY_STAGE && cell->op == MARK && cell->counts) {
			/* a stage without traffic is one to be told, too */
			struct np_clog_cell none = *cell;
			none.calls = none.call_ns = none.bytes = none.unsized = 0;
			if (!collect_one(sum, by, rows, &none))
				return false;
		}
		if (!np_clog_is_shown(cell))
			continue;
		if (!collect_one(sum, by, rows, cell))
			return false;
		np_clog_add(&total->bytes[cell->layer % LAYERS], cell->bytes);
	}
	np_clog_rows_sort(rows);
	return true;
}

static double share_in(const struct np_clog_row *row, const struct totals *total)
{
	uint64_t whole = total->bytes[row->sum.layer % LAYERS];
	return whole ? (double)row->sum.bytes / (double)whole : NAN;
}

/* By stage: calls of its anchor. NULL: out of memory. */
static uint64_t *count_entered(const struct np_clog_sum *sum)
{
	uint64_t *entered = np_calloc(sum->strings.strings.n, sizeof *entered);
	for (size_t i = 0; entered && i < sum->slices.n; i++)
		entered[sum->slices.v[i].stage] += sum->slices.v[i].entered;
	return entered;
}

static bool tell_stages(const struct np_clog_sum *sum, const struct np_clog_rows *rows,
                        const struct totals *total, struct np_report *report)
{
	uint64_t *entered = count_entered(sum);
	if (!entered)
		return false;
	struct np_table *table =
		TABLE(report, "stages", "Stages: what one rank sends and gets", stage_columns);
	for (size_t i = 0; i < rows->v.n; i++) {
		const struct np_clog_row *row = &rows->v.v[i];
		uint64_t marks = entered[row->sum.stage];
		put_stage(table, sum, row->sum.stage);
		np_cell_cstr(table, np_clog_layer_name(row->sum.layer));
		if (marks)
			np_cell_int(table, (int64_t)marks);
		else
			np_cell_na(table);
		np_cell_int(table, row->processes);
		np_cell_int(table, (int64_t)row->sum.calls);
		put_bytes(table, each(row->sum.bytes, row->processes));
		put_moved(table, row);
		np_cell_real(table, share_in(row, total));
		put_bytes(table, each(row->sum.call_ns, row->processes));
	}
	np_free(entered);
	return true;
}

static void tell_collectives(const struct np_clog_sum *sum, const struct np_clog_rows *rows,
                             const struct totals *total, struct np_report *report)
{
	struct np_table *table =
		TABLE(report, "collectives", "Collectives: by stage, operation and group",
	              collective_columns);
	for (size_t i = 0; i < rows->v.n; i++) {
		const struct np_clog_row *row = &rows->v.v[i];
		put_stage(table, sum, row->sum.stage);
		put_op(table, row->sum.op);
		np_cell_cstr(table, np_clog_layer_name(row->sum.layer));
		if (row->groups == 1)
			put_group(table, sum, row->sum.group);
		else
			np_cell_printf(table, np_tr("(%u groups)"), row->groups);
		put_rank(table, sum->groups.v[row->sum.group].world);
		np_cell_int(table, row->processes);
		np_cell_int(table, (int64_t)row->sum.calls);
		put_bytes(table, each(row->sum.bytes, row->processes));
		put_moved(table, row);
		np_cell_word(table, !row->estimated ? NP_N("none")
		                    : row->derived  ? NP_N("derived")
		                                    : "R27");
		np_cell_real(table, share_in(row, total));
	}
}

static void tell_sizes(const struct np_clog_sum *sum, const struct np_clog_rows *rows,
                       struct np_report *report)
{
	struct np_table *table =
		TABLE(report, "sizes", "Sizes: of a call, by element type", size_columns);
	for (size_t i = 0; i < rows->v.n; i++) {
		const struct np_clog_row *row = &rows->v.v[i];
		uint64_t sized = row->sum.calls - row->sum.unsized;
		put_op(table, row->sum.op);
		np_cell_cstr(table, np_clog_layer_name(row->sum.layer));
		np_cell_cstr(table, np_clog_dtype_name(row->sum.dtype));
		put_rank(table, sum->groups.v[row->sum.group].world);
		np_cell_int(table, (int64_t)row->sum.calls);
		np_cell_int(table, (int64_t)row->sum.unsized);
		if (sized)
			put_bytes(table, each(row->sum.bytes, sized));
		else
			np_cell_na(table);
		if (sized)
			put_bytes(table, row->sum.max_bytes);
		else
			np_cell_na(table);
		if (row->has_bus && sized)
			put_bytes(table, each(row->bus, row->processes));
		else
			np_cell_na(table);
		put_bytes(table, each(row->sum.call_ns, row->sum.calls));
	}
}

static void tell_groups(const struct np_clog_sum *sum, const struct np_clog_rows *rows,
                        struct np_report *report)
{
	struct np_table *table = TABLE(report, "groups", "Groups", group_columns);
	for (size_t i = 0; i < rows->v.n; i++) {
		const struct np_clog_row *row = &rows->v.v[i];
		const struct np_clog_group *group = &sum->groups.v[row->sum.group];
		put_group(table, sum, row->sum.group);
		np_cell_cstr(table, np_clog_layer_name(group->layer));
		put_rank(table, group->world);
		np_cell_int(table, row->processes);
		np_cell_int(table, (int64_t)row->sum.calls);
		put_bytes(table, each(row->sum.bytes, row->processes));
		put_moved(table, row);
		if (row->estimated)
			put_bytes(table, row->moved);
		else
			np_cell_na(table);
		/* torch's own name of a group is none that a capture has */
		if (group->hash && group->layer == NP_COMM_LAYER_HCCL)
			np_cell_printf(table, "@%" PRIu64, group->hash);
		else
			np_cell_na(table);
	}
}

static bool tell_rows(const struct np_clog_sum *sum, enum by by, struct np_report *report)
{
	struct np_clog_rows rows;
	struct totals total;
	bool kept = collect(sum, by, &rows, &total);
	if (kept && rows.v.n) {
		if (by == BY_STAGE)
			kept = tell_stages(sum, &rows, &total, report);
		else if (by == BY_SIZE)
			tell_sizes(sum, &rows, report);
		else if (by == BY_GROUP)
			tell_groups(sum, &rows, report);
		else
			tell_collectives(sum, &rows, &total, report);
	}
	np_clog_rows_release(&rows);
	return kept;
}

/* ── requests, steps, time ── */

/* A stage that only ends in a step was told in the one where it began. */
static bool happens(const struct np_clog_slice *slice)
{
	return slice->entered || slice->calls;
}

static void put_slice(struct np_table *table, const struct np_clog_sum *sum,
                      const struct np_clog_slice *slice, bool with_step)
{
	put_number(table, slice->request);
	if (with_step)
		put_number(table, slice->step);
	put_stage(table, sum, slice->stage);
	if (slice->entered)
		np_cell_int(table, (int64_t)slice->entered);
	else
		np_cell_na(table);
	np_cell_int(table, (int64_t)slice->calls);
	put_bytes(table, slice->bytes);
	np_cell_int(table, slice->first_ns);
}

static void tell_steps(const struct np_clog_sum *sum, struct np_report *report)
{
	bool known = false;
	for (size_t i = 0; i < sum->slices.n && !known; i++)
		known = sum->slices.v[i].step != NP_COMM_NO_U32 && sum->slices.v[i].step > 0;
	if (!known)
		return;
	struct np_table *table = TABLE(report, "steps", "Steps: all ranks together", slice_columns);
	for (size_t i = 0; i < sum->slices.n; i++)
		if (happens(&sum->slices.v[i]))
			put_slice(table, sum, &sum->slices.v[i], true);
}

/* Slices are sorted by request first, so a request is a stretch of them. */
static bool tell_requests(const struct np_clog_sum *sum, struct np_report *report)
{
	struct np_keys keys = {.mask = 0};
	NP_VEC(struct np_clog_slice) rows = {NULL, 0, 0};
	bool kept = true;
	for (size_t i = 0; i < sum->slices.n && kept; i++) {
		const struct np_clog_slice *slice = &sum->slices.v[i];
		struct np_key key = {{slice->request, slice->stage, 0, 0}};
		if (slice->request == NP_COMM_NO_U32)
			continue;
		uint32_t at = np_keys_add(&keys, &key);
		if (!rows.v || at >= rows.n) {
			kept = at != UINT32_MAX && np_vec_push(&rows, *slice);
			continue;
		}
		rows.v[at].entered += slice->entered;
		rows.v[at].calls += slice->calls;
		np_clog_add(&rows.v[at].bytes, slice->bytes);
		if (slice->first_ns < rows.v[at].first_ns)
			rows.v[at].first_ns = slice->first_ns;
	}
	struct np_table *table = NULL;
	if (rows.n && kept)
		table = TABLE(report, "requests", "Requests: all ranks together", request_columns);
	for (size_t i = 0; table && i < rows.n; i++)
		if (happens(&rows.v[i]))
			put_slice(table, sum, &rows.v[i], false);
	np_keys_release(&keys);
	np_vec_release(&rows);
	return kept;
}

static void tell_timeline(const struct np_clog_sum *sum, struct np_report *report)
{
	if (!sum->options.timeline)
		return;
	struct np_table *table = TABLE(report, "timeline", "Timeline", bucket_columns);
	for (size_t i = 0; i < sum->buckets.n; i++) {
		const struct np_clog_bucket *bucket = &sum->buckets.v[i];
		np_cell_int(table, bucket->start_ns);
		put_stage(table, sum, bucket->stage);
		np_cell_int(table, (int64_t)bucket->calls);
		put_bytes(table, bucket->bytes);
	}
}

/* ── layers ── */

struct pair {
	uint64_t calls[2], bytes[2]; /* torch, hccl */
	unsigned flags;
	bool cast, barriers;
};

static void add_to_pair(struct pair *pair, const struct np_clog_cell *cell)
{
	bool below = cell->layer == NP_COMM_LAYER_HCCL;
	pair->calls[below] += cell->calls;
	np_clog_add(&pair->bytes[below], cell->bytes);
	if (below)
		return;
	pair->flags |= cell->flags;
	pair->barriers = pair->barriers || cell->op == 13;
	/* UINT8 is 7 */
	pair->cast = pair->cast ||
	             (cell->op == 1 && (cell->dtype == 7 || cell->dtype == NP_COMM_DTYPE_BOOL));
}

static bool has_both(const struct np_clog_sum *sum, const struct np_clog_cell *cell)
{
	const unsigned both = 1u << NP_COMM_LAYER_TORCH | 1u << NP_COMM_LAYER_HCCL;
	const struct np_clog_process *process = &sum->processes.v[sum->files.v[cell->file].process];
	return (process->layers & both) == both && !process->incomplete &&
	       np_clog_op_moves(cell->op);
}

static void put_pair(struct np_table *table, const struct np_key *key, const struct pair *pair)
{
	bool same = pair->calls[0] == pair->calls[1] && pair->bytes[0] == pair->bytes[1];
	bool more = pair->calls[1] > pair->calls[0] || pair->bytes[1] > pair->bytes[0];
	uint8_t family = (uint8_t)key->w[0];
	if (family == 10)
		np_cell_word(table, NP_N("send, recv"));
	else
		put_op(table, family);
	put_rank(table, (int32_t)(uint32_t)key->w[1]);
	np_cell_int(table, (int64_t)pair->calls[0]);
	np_cell_int(table, (int64_t)pair->calls[1]);
	put_bytes(table, pair->bytes[0]);
	put_bytes(table, pair->bytes[1]);
	np_cell_word(table,
	             same ? NP_N("equal")
	                  : np_clog_why(family, pair->flags, pair->cast, pair->barriers, more));
}

static bool tell_layers(const struct np_clog_sum *sum, struct np_report *report)
{
	struct np_keys keys = {.mask = 0};
	NP_VEC(struct pair) pairs = {NULL, 0, 0};
	bool kept = true;
	for (size_t i = 0; i < sum->cells.n && kept; i++) {
		const struct np_clog_cell *cell = &sum->cells.v[i];
		if (!has_both(sum, cell))
			continue;
		struct np_key key = {{np_clog_family(cell->op),
		                      (uint32_t)sum->groups.v[cell->group].world, 0, 0}};
		uint32_t at = np_keys_add(&keys, &key);
		kept = at != UINT32_MAX &&
		       (at < pairs.n || np_vec_push(&pairs, (struct pair){.flags = 0}));
		if (kept)
			add_to_pair(&pairs.v[at], cell);
	}
	struct np_table *table = NULL;
	if (kept && pairs.n)
		table = TABLE(report, "layers",
		              "Layers: the same traffic at torch.distributed and at HCCL",
		              layer_columns);
	for (size_t i = 0; table && i < pairs.n; i++)
		put_pair(table, &keys.keys.v[i], &pairs.v[i]);
	np_keys_release(&keys);
	np_vec_release(&pairs);
	return kept;
}

/* ── ranks ── */

static const char *state_of(const struct np_clog_file *file)
{
	if (file->empty)
		return NP_N("empty");
	if (file->problem)
		return NP_N("unreadable");
	return file->closed ? NP_N("closed") : NP_N("not closed");
}

static void tell_ranks(const struct np_clog_sum *sum, struct np_report *report)
{
	struct np_table *table =
		TABLE(report, "ranks", "Ranks: one row per thread that was recorded", rank_columns);
	for (size_t i = 0; i < sum->files.n; i++) {
		const struct np_clog_file *file = &sum->files.v[i];
		bool known = file->process != UINT32_MAX;
		const struct np_clog_process *process =
			known ? &sum->processes.v[file->process] : NULL;
		put_rank(table, known ? process->rank : -1);
		np_cell_text(table,
		             known ? np_intern_get(&sum->strings, process->host) : NP_STR(""));
		put_rank(table, known ? process->pid : -1);
		put_rank(table, known ? file->tid : -1);
		np_cell_cstr(table, known ? np_clog_layer_name(file->layer) : NULL);
		np_cell_int(table, (int64_t)file->records);
		np_cell_int(table, (int64_t)file->communicators);
		put_bytes(table, file->overwritten);
		put_bytes(table, file->lost);
		put_bytes(table, file->damaged + file->cut_off + file->implausible);
		np_cell_word(table, state_of(file));
		np_cell_cstr(table, file->path);
	}
}

enum np_status np_clog_tell(const struct np_clog_sum *sum, struct np_report *report,
                            struct np_err *err)
{
	bool kept = tell_rows(sum, BY_STAGE, report) &&
	            tell_rows(sum, sum->options.each_group ? BY_CALL_AND_GROUP : BY_CALL, report) &&
	            tell_rows(sum, BY_SIZE, report) && tell_rows(sum, BY_GROUP, report) &&
	            tell_requests(sum, report);
	tell_steps(sum, report);
	tell_timeline(sum, report);
	kept = kept && tell_layers(sum, report);
	tell_ranks(sum, report);
	return kept ? np_report_ok(report, err) : np_err_nomem(err);
}
