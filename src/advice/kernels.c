#include "advice/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/evidence.h"

static int longest_first(const void *a, const void *b, void *ctx)
{
	const np_ns *dur = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (dur[x] != dur[y])
		return dur[x] > dur[y] ? -1 : 1;
	return (x > y) - (x < y);
}

bool np_kernels_where(struct np_advice *self, bool (*wanted)(const void *how, uint32_t row),
                      const void *how, struct np_kernel_list *out)
{
	const struct np_analysis *rank = self->rank;
	np_ns *dur = rank->profile->kernels.dur_ns;
	bool ok = true;
	*out = (struct np_kernel_list){.total = 0};
	for (size_t i = 0; ok && i < rank->n_rows; i++) {
		uint32_t row = rank->rows[i];
		if (!wanted(how, row))
			continue;
		ok = np_vec_push(&out->rows, row);
		out->total = np_ns_sum(out->total, dur[row]);
		out->longest = dur[row] > out->longest ? dur[row] : out->longest;
	}
	if (ok && out->rows.n > 1)
		qsort_r(out->rows.v, out->rows.n, sizeof *out->rows.v, longest_first, dur);
	self->oom |= !ok;
	return ok;
}

void np_kernel_list_release(struct np_kernel_list *self)
{
	np_vec_release(&self->rows);
}

void np_kernel_types(const struct np_advice *self, const struct np_kernel_list *list,
                     char out[NP_TYPES_SIZE])
{
	uint32_t seen[NP_TYPES_SHOWN];
	size_t n = 0, at = 0;
	out[0] = '\0';
	for (size_t i = 0; i < list->rows.n && n < NP_TYPES_SHOWN; i++) {
		uint32_t type = np_op_type(self->rank, list->rows.v[i]);
		size_t s = 0;
		while (s < n && seen[s] != type)
			s++;
		if (s < n)
			continue;
		np_str text = np_str_sub(np_text(self->rank, type), 0, 60);
		if (at + text.len + 3 > NP_TYPES_SIZE)
			return;
		at += (size_t)snprintf(out + at, NP_TYPES_SIZE - at, "%s%.*s", n ? ", " : "",
		                       NP_FMT(text));
		seen[n++] = type;
	}
}

/* ── where ── */

/* How far back the operator around a launch is looked for. */
enum { STACK_REACH = 2000 };

uint32_t np_kernel_stack(const struct np_advice *self, uint32_t row, uint32_t *op)
{
	const struct np_host_ops *ops = &self->rank->profile->host_ops;
	*op = NP_ID_NONE;
	if (!self->rank->launches)
		return NP_ID_NONE;
	const struct np_launch *launch = &self->rank->launches[row];
	uint32_t from = launch->enqueue != NP_NO_U32 ? launch->enqueue : launch->op;
	if (from >= ops->n)
		return NP_ID_NONE;
	np_ns at = ops->start_ns[from];
	for (uint32_t i = from; i > 0 && from - i < STACK_REACH; i--) {
		uint32_t outer = i - 1;
		if (ops->tid[outer] != ops->tid[from] || ops->layer[outer] != NP_HOST_OP ||
		    ops->start_ns[outer] + ops->dur_ns[outer] < at)
			continue;
		if (*op == NP_ID_NONE)
			*op = ops->name[outer];
		if (ops->stack[outer] != 0 && ops->stack[outer] != NP_ID_NONE)
			return ops->stack[outer];
	}
	return NP_ID_NONE;
}

static void place_of(const struct np_analysis *rank, uint32_t row, char *out, size_t size)
{
	const struct np_kernels *kernels = &rank->profile->kernels;
	int at = 0;
	out[0] = '\0';
	if (rank->span_of[row] < rank->spans.n && rank->spans.v[rank->span_of[row]].id != NP_NO_I64)
		at = snprintf(out, size, "step %lld, ",
		              (long long)rank->spans.v[rank->span_of[row]].id);
	if (kernels->stream[row] != NP_NO_U32)
		at += snprintf(out + at, size - (size_t)at, "stream %u, ", kernels->stream[row]);
	if (kernels->task[row] != NP_NO_U32)
		at += snprintf(out + at, size - (size_t)at, "task %u, ", kernels->task[row]);
	(void)snprintf(out + at, size - (size_t)at, "start %lld.%03lld us",
	               (long long)(kernels->start_ns[row] / 1000),
	               (long long)(kernels->start_ns[row] % 1000));
}

void np_kernel_evidence(const struct np_advice *self, const struct np_kernel_list *list,
                        struct np_finding *finding)
{
	enum { PLACES = 3 };
	const struct np_analysis *rank = self->rank;
	for (size_t i = 0; i < list->rows.n && i < PLACES; i++) {
		uint32_t row = list->rows.v[i], op;
		np_str name = np_str_sub(np_text(rank, rank->profile->kernels.name[row]), 0, 120);
		np_str stack = np_text(rank, np_kernel_stack(self, row, &op));
		char where[160], by[240] = "";
		place_of(rank, row, where, sizeof where);
		stack = np_str_sub(stack.len ? stack : np_text(rank, op), 0, 200);
		if (stack.len)
			(void)snprintf(by, sizeof by, ", %.*s", NP_FMT(stack));
		np_finding_evidence(finding, np_kernel_source(rank), np_time_columns(rank), where,
		                    "%.*s: %.3f us%s", NP_FMT(name),
		                    (double)rank->profile->kernels.dur_ns[row] / 1e3, by);
	}
}

/* ── rows of a table ── */

static bool same_shapes(const struct np_kernel_shapes *s, uint32_t a, uint32_t b)
{
	return a >= s->n || b >= s->n ||
	       (s->in_shapes[a] == s->in_shapes[b] && s->in_dtypes[a] == s->in_dtypes[b] &&
	        s->in_formats[a] == s->in_formats[b] && s->out_shapes[a] == s->out_shapes[b] &&
	        s->out_dtypes[a] == s->out_dtypes[b] && s->out_formats[a] == s->out_formats[b]);
}

/* Not the PMU: kernels of equal name, shapes and duration to the ns are told once. */
static bool same_row(const struct np_profile *profile, uint32_t a, uint32_t b)
{
	const struct np_kernels *k = &profile->kernels;
	return k->dur_ns[a] == k->dur_ns[b] && k->name[a] == k->name[b] &&
	       k->type[a] == k->type[b] && k->core[a] == k->core[b] &&
	       k->block_num[a] == k->block_num[b] && k->mix_block_num[a] == k->mix_block_num[b] &&
	       same_shapes(&profile->kernel_shapes, a, b);
}

static uint64_t key_of(const struct np_profile *profile, uint32_t row)
{
	const struct np_kernel_shapes *shapes = &profile->kernel_shapes;
	uint64_t key = (uint64_t)profile->kernels.dur_ns[row] * 0x9e3779b97f4a7c15u;
	key ^= (uint64_t)profile->kernels.name[row] << 32;
	return row < shapes->n ? key ^ shapes->in_shapes[row] : key;
}

void np_kernel_rows(struct np_advice *self, const struct np_kernel_list *list,
                    struct np_table *table,
                    void (*put)(const void *how, struct np_table *table, uint32_t row),
                    const void *how)
{
	const struct np_profile *profile = self->rank->profile;
	size_t most = (size_t)np_rule_value(self, "table_rows"), n = 0, i = 0;
	struct np_map seen;
	bool ok = true;
	np_map_init(&seen);
	for (; ok && i < list->rows.n && n < most; i++) {
		uint32_t row = list->rows.v[i];
		uint32_t before = np_map_get(&seen, key_of(profile, row), UINT32_MAX);
		if (before != UINT32_MAX && same_row(profile, before, row))
			continue;
		ok = np_map_put(&seen, key_of(profile, row), row);
		put(how, table, row);
		n++;
	}
	if (i < list->rows.n)
		np_report_note(self->report,
		               "table %s: the %zu longest; %zu kernels more are not in it",
		               table->id, n, list->rows.n - i);
	np_map_release(&seen);
	self->oom |= !ok;
}

/* ── cells ── */

void np_cell_id(const struct np_analysis *rank, struct np_table *table, uint32_t id)
{
	np_str text = np_text(rank, id);
	if (text.len)
		np_cell_text(table, text);
	else
		np_cell_na(table);
}

void np_cells_kernel_name(const struct np_analysis *rank, struct np_table *table, uint32_t row)
{
	np_cell_id(rank, table, rank->profile->kernels.name[row]);
	np_cell_id(rank, table, np_op_type(rank, row));
}

void np_cell_kernel_us(const struct np_analysis *rank, struct np_table *table, uint32_t row)
{
	np_cell_real(table, (double)rank->profile->kernels.dur_ns[row] / 1e3);
}

void np_cells_kernel_shapes(const struct np_analysis *rank, struct np_table *table, uint32_t row)
{
	const struct np_kernel_shapes *s = &rank->profile->kernel_shapes;
	bool have = row < s->n;
	np_cell_id(rank, table, have ? s->in_shapes[row] : NP_ID_NONE);
	np_cell_id(rank, table, have ? s->in_dtypes[row] : NP_ID_NONE);
	np_cell_id(rank, table, have ? s->in_formats[row] : NP_ID_NONE);
	np_cell_id(rank, table, have ? s->out_shapes[row] : NP_ID_NONE);
	np_cell_id(rank, table, have ? s->out_dtypes[row] : NP_ID_NONE);
	np_cell_id(rank, table, have ? s->out_formats[row] : NP_ID_NONE);
}
