/*
 * The smaller text files of the built-in modes: communication_group.json,
 * cluster_communication_matrix.json, cluster_step_trace_time.csv
 * (cluster_and_advisor.md §2.3).
 */
#include "base/number.h"
#include "cluster/cluster_files.h"
#include "cluster/py_text.h"
#include "io/json.h"

/* ── communication_group.json ── */

static void list(struct np_buf *out, struct np_ranks ranks)
{
	np_buf_add_char(out, '[');
	for (size_t i = 0; i < ranks.n; i++)
		np_buf_printf(out, "%s%lld", i ? ", " : "", (long long)ranks.v[i]);
	np_buf_add_char(out, ']');
}

static void lists(struct np_buf *out, const struct np_comm_groups *groups, bool p2p)
{
	bool any = false;
	np_buf_add_char(out, '[');
	for (size_t g = 0; g < groups->v.n; g++) {
		if (groups->v.v[g].p2p != p2p)
			continue;
		if (any)
			NP_PY_ADD(out, ", ");
		any = true;
		list(out, groups->v.v[g].seen);
	}
	np_buf_add_char(out, ']');
}

static void group_entry(struct np_buf *out, const struct np_cluster *cluster,
                        const struct np_comm_group *group)
{
	NP_PY_ADD(out, "{\"type\": ");
	np_buf_add_cstr(out, group->p2p ? "\"p2p\"" : "\"collective\"");
	NP_PY_ADD(out, ", \"rank_set\": ");
	list(out, group->ranks);
	NP_PY_ADD(out, ", \"group_name\": ");
	np_json_quote(out, np_cluster_text(cluster, group->name));
	NP_PY_ADD(out, ", \"group_id\": ");
	np_json_quote(out, np_str_of(group->info ? group->info->comm_name : ""));
	NP_PY_ADD(out, ", \"pg_name\": ");
	np_json_quote(out, np_str_of(group->info ? group->info->name : ""));
	np_buf_add_char(out, '}');
}

enum np_status np_write_group_json(struct np_export *out, const struct np_comm_groups *groups,
                                   struct np_err *err)
{
	const char *path = np_export_path(out, NULL, "communication_group.json", err);
	struct np_stream stream;
	if (!path)
		return err ? err->code : NP_E_IO;
	NP_TRY(np_stream_begin(&stream, path, err));
	struct np_buf *text = &stream.text;
	NP_PY_ADD(text, "{\"collective\": ");
	lists(text, groups, false);
	NP_PY_ADD(text, ", \"p2p\": ");
	lists(text, groups, true);
	NP_PY_ADD(text, ", \"comm_group_parallel_info\": [");
	for (size_t g = 0; g < groups->v.n; g++) {
		if (g > 0)
			NP_PY_ADD(text, ", ");
		group_entry(text, out->cluster, &groups->v.v[g]);
		np_stream_flush(&stream);
	}
	NP_PY_ADD(text, "]}");
	return np_stream_end(&stream, NP_OK, err);
}

/* ── cluster_communication_matrix.json ── */

static void matrix_link(struct np_buf *out, const struct np_cluster *cluster,
                        const struct np_comm_link_sum *link)
{
	np_buf_printf(out, "\"%lld-%lld\": {\"Transport Type\": ", (long long)link->src,
	              (long long)link->dst);
	np_json_quote(out, np_cluster_text(cluster, link->transport));
	np_py_member(out, ", \"Transit Time(ms)\": ", link->ms);
	np_py_member(out, ", \"Transit Size(MB)\": ", link->mb);
	NP_PY_ADD(out, ", \"Op Name\": ");
	np_json_quote(out, np_cluster_text(cluster, link->op));
	np_py_member(out, ", \"Bandwidth(GB/s)\": ", np_comm_gbps(link->mb, link->ms));
	np_buf_add_char(out, '}');
}

static void matrix_levels(struct np_buf *out, const struct np_comm_groups *groups,
                          const struct np_comm_link_sum *last, const struct np_comm_link_sum *link,
                          struct np_buf *scratch)
{
	const struct np_cluster *cluster = groups->cluster;
	bool label = !last || last->label != link->label;
	bool step = label || last->step != link->step;
	if (!step && last->kind == link->kind && last->group == link->group) {
		NP_PY_ADD(out, ", ");
		return;
	}
	if (last)
		np_buf_add_cstr(out, label ? "}}}, " : step ? "}}, " : "}, ");
	if (label) {
		size_t g = np_comm_groups_find(groups, link->group, false);
		if (g >= groups->v.n || groups->v.v[g].label != link->label)
			g = np_comm_groups_find(groups, link->group, true);
		np_buf_add_char(out, '"');
		np_ranks_print(groups->v.v[g].seen, true, out);
		NP_PY_ADD(out, "\": {");
	}
	if (step) {
		char text[32];
		np_comm_step_text(link->step, text);
		np_buf_printf(out, "\"%s\": {", text);
	}
	np_py_op_key(out,
	             link->kind == NP_ID_NONE ? NP_STR("Total Op Info")
	                                      : np_cluster_text(cluster, link->kind),
	             np_cluster_text(cluster, link->group), scratch);
	np_buf_add_char(out, '{');
}

enum np_status np_write_matrix_json(struct np_export *out, const struct np_comm_groups *groups,
                                    const struct np_comm_matrix_sums *sums, struct np_err *err)
{
	struct np_stream stream;
	struct np_buf scratch = {0};
	if (sums->v.n == 0)
		return NP_OK;
	const char *path = np_export_path(out, NULL, "cluster_communication_matrix.json", err);
	if (!path)
		return NP_E_IO;
	NP_TRY(np_stream_begin(&stream, path, err));
	np_buf_add_char(&stream.text, '{');
	for (size_t i = 0; i < sums->v.n; i++) {
		matrix_levels(&stream.text, groups, i > 0 ? &sums->v.v[i - 1] : NULL, &sums->v.v[i],
		              &scratch);
		matrix_link(&stream.text, out->cluster, &sums->v.v[i]);
		np_stream_flush(&stream);
	}
	NP_PY_ADD(&stream.text, "}}}}");
	np_buf_release(&scratch);
	return np_stream_end(&stream, NP_OK, err);
}

/* ── cluster_step_trace_time.csv ── */

static const char *const step_headings[] = {
	"Computing",  "Communication(Not Overlapped)",
	"Overlapped", "Communication",
	"Free",       "Stage",
	"Bubble",     "Communication(Not Overlapped and Exclude Receive)",
	"Preparing",
};
enum { FIRST_TIME = 3, N_TIMES = 9, FIRST_INDEX = FIRST_TIME + N_TIMES };

/* The columns that the first rank's file has; the positions only where they are known. */
static bool has_column(const struct np_table *table, bool indexed, size_t column)
{
	return column >= FIRST_INDEX ? indexed : !np_table_cell(table, 0, column)->na;
}

static void step_index(struct np_buf *out, np_str index)
{
	bool stage = np_str_starts(index, NP_STR("("));
	if (!stage) {
		np_buf_add_str(out, index);
		return;
	}
	np_buf_add_char(out, '"');
	size_t commas = 0;
	for (size_t i = 0; i < index.len; i++) {
		if (index.ptr[i] == ')' && commas == 0 && index.len > 2)
			np_buf_add_char(out, ',');
		np_buf_add_char(out, index.ptr[i]);
		if (index.ptr[i] == ',') {
			np_buf_add_char(out, ' ');
			commas++;
		}
	}
	np_buf_add_char(out, '"');
}

static void step_line(struct np_buf *out, const struct np_table *table, bool indexed, size_t row)
{
	np_buf_add_str(out, np_table_cell(table, row, 0)->s);
	np_buf_add_char(out, ',');
	np_buf_add_str(out, np_table_cell(table, row, 1)->s);
	np_buf_add_char(out, ',');
	step_index(out, np_table_cell(table, row, 2)->s);
	for (size_t c = FIRST_TIME; c < table->n_columns; c++) {
		const struct np_cell *cell = np_table_cell(table, row, c);
		if (!has_column(table, indexed, c))
			continue;
		np_buf_add_char(out, ',');
		if (cell->na)
			continue;
		if (c >= FIRST_INDEX) {
			np_buf_add_str(out, cell->s);
			continue;
		}
		char digits[NP_PYTHON_CHARS];
		np_buf_add(out, digits, np_format_python(cell->r, digits));
	}
	np_buf_add_char(out, '\n');
}

enum np_status np_write_steps_csv(struct np_export *out, struct np_err *err)
{
	const struct np_table *table = np_export_table(out->cluster, "ClusterStepTraceTime");
	struct np_stream stream;
	if (!table || np_table_rows(table) == 0)
		return NP_OK;
	const char *path = np_export_path(out, NULL, "cluster_step_trace_time.csv", err);
	if (!path)
		return NP_E_IO;
	struct np_parallel sizes;
	bool indexed = np_positions_of(out->cluster, &sizes) == NP_POSITIONS_OK;
	NP_TRY(np_stream_begin(&stream, path, err));
	NP_PY_ADD(&stream.text, "Step,Type,Index");
	for (size_t c = 0; c < N_TIMES; c++)
		if (has_column(table, indexed, FIRST_TIME + c)) {
			np_buf_add_char(&stream.text, ',');
			np_buf_add_cstr(&stream.text, step_headings[c]);
		}
	if (indexed)
		NP_PY_ADD(&stream.text, ",DP Index,PP Index,TP Index");
	np_buf_add_char(&stream.text, '\n');
	for (size_t r = 0; r < np_table_rows(table); r++) {
		step_line(&stream.text, table, indexed, r);
		np_stream_flush(&stream);
	}
	return np_stream_end(&stream, NP_OK, err);
}
