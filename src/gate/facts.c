/*
 * Facts: every CSV's header and first rows, every trace to its last byte, every
 * capture's kernels. Files are independent, so they share the cores.
 */
#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "gate/context.h"
#include "report/lang.h"

/* ── the start of the capture ── */

/* Seconds that fit into np_ns with room for sums. */
static bool sane_seconds(double seconds)
{
	return seconds >= -4e9 && seconds <= 4e9; /* false for NaN as well */
}

static void find_start(struct np_gate *gate)
{
	const struct np_gate_options *options = gate->options;
	if (!sane_seconds(options->tolerance_seconds) || options->tolerance_seconds < 0) {
		(void)snprintf(gate->start_reason, sizeof gate->start_reason,
		               np_tr("the tolerance is not a number of seconds"));
		return;
	}
	if (options->has_start_epoch && !sane_seconds(options->start_epoch)) {
		(void)snprintf(gate->start_reason, sizeof gate->start_reason,
		               np_tr("--start-epoch is not a number of seconds since 1970"));
		return;
	}
	if (options->has_start_epoch) {
		gate->start_known = true;
		gate->start_ns = (np_ns)(options->start_epoch * 1e9);
		(void)snprintf(gate->start_reason, sizeof gate->start_reason, "--start-epoch");
		return;
	}
	if (!options->start_marker) {
		(void)snprintf(gate->start_reason, sizeof gate->start_reason,
		               np_tr("no --start-marker or --start-epoch was given"));
		return;
	}
	struct np_file_stat st;
	struct np_err err = {0};
	if (np_file_stat(options->start_marker, true, &st, &err) != NP_OK ||
	    st.kind == NP_FILE_NONE) {
		(void)snprintf(gate->start_reason, sizeof gate->start_reason,
		               np_tr("the start marker %s does not exist"), options->start_marker);
		return;
	}
	gate->start_known = true;
	gate->start_ns = st.mtime_ns;
	(void)snprintf(gate->start_reason, sizeof gate->start_reason,
	               np_tr("time of the marker %s"), options->start_marker);
}

/* ── CSV ── */

static bool is_csv(enum np_role role)
{
	switch (role) {
	case NP_ROLE_KERNELS:
	case NP_ROLE_OP_SUMMARY:
	case NP_ROLE_TASK_TIME:
	case NP_ROLE_STEP_TRACE:
	case NP_ROLE_STEP_TRACE_MSPROF:
	case NP_ROLE_OP_STATISTIC:
	case NP_ROLE_API_STATISTIC:
	case NP_ROLE_OPERATOR_DETAILS:
	case NP_ROLE_OPERATOR_MEMORY:
	case NP_ROLE_MEMORY_RECORD:
	case NP_ROLE_NPU_MODULE_MEM:
	case NP_ROLE_STATIC_OP_MEM:
	case NP_ROLE_L2_CACHE:
	case NP_ROLE_SOC_PMU:
	case NP_ROLE_DATA_PREPROCESS:
	case NP_ROLE_COMM_STATISTIC:
	case NP_ROLE_LINK_CSV:
	case NP_ROLE_OTHER_CSV:
		return true;
	default:
		return false;
	}
}

/* A row on an AI core; where the core is not recorded (old Level0) every row counts. */
static bool is_judged(const struct np_kernel_header *header, const struct np_csv_row *row,
                      struct np_buf *scratch)
{
	int core = header->column[NP_KCOL_CORE];
	if (core < 0)
		return true;
	np_str text = np_csv_text(row->fields[core], scratch);
	return np_is_na(text) || np_is_judged_core(text);
}

static bool row_has_unit(const struct np_csv *csv, const struct np_csv_row *row)
{
	double value = 0;
	for (size_t i = 0; i < np_csv_n_columns(csv); i++)
		if (np_unit_of(np_csv_column_name(csv, i)) != NP_N_UNITS &&
		    np_csv_double(row->fields[i], &value) == NP_NUM_OK)
			return true;
	return false;
}

/* Rows of one table that are looked at to find the sample among them. */
enum { MAX_ROWS_SEARCHED = 100000 };

static void sample_rows(struct np_csv *csv, struct np_csv_facts *facts)
{
	struct np_csv_row row;
	struct np_buf scratch = {0};
	bool got = false;
	while (np_csv_next(csv, &row, &got, NULL) == NP_OK && got) {
		facts->has_rows = true;
		if (!facts->header.units || row.number > MAX_ROWS_SEARCHED ||
		    facts->sampled == NP_GATE_SAMPLE_ROWS)
			break;
		if (!is_judged(&facts->header, &row, &scratch))
			continue;
		facts->sampled++;
		facts->sampled_valued += row_has_unit(csv, &row);
	}
	np_buf_release(&scratch);
}

static void read_csv(void *ctx, size_t i)
{
	struct np_csv_facts *facts = &((struct np_gate *)ctx)->csv.v[i];
	struct np_input *input = NULL;
	struct np_csv *csv = NULL;
	facts->status = np_input_open(facts->file->path, &input, &facts->err);
	if (facts->status == NP_OK)
		facts->status = np_csv_open(input, &csv, &facts->err);
	if (facts->status == NP_OK) {
		np_kernel_header_read(csv, &facts->header);
		sample_rows(csv, facts);
	}
	np_csv_close(csv);
	np_input_close(input);
	np_progress_step(((struct np_gate *)ctx)->options->progress);
}

/* ── traces ── */

static void read_trace(void *ctx, size_t i)
{
	struct np_trace_facts *facts = &((struct np_gate *)ctx)->traces.v[i];
	struct np_input *input = NULL;
	facts->status = np_input_open(facts->file->path, &input, &facts->err);
	if (facts->status == NP_OK)
		facts->status =
			np_json_validate(input, &facts->repairs, &facts->events, &facts->err);
	if (facts->status == NP_OK && np_input_faulted(input))
		facts->status = np_err_set(&facts->err, NP_E_IO, facts->file->path,
		                           "the file shrank while it was read");
	np_input_close(input);
	np_progress_step(((struct np_gate *)ctx)->options->progress);
}

/* ── all ── */

static bool list_files(struct np_gate *gate)
{
	for (size_t c = 0; c < gate->all->captures.n; c++) {
		const struct np_capture *capture = gate->all->captures.v[c];
		if (!np_gate_counts(capture))
			continue;
		for (size_t i = 0; i < capture->files.n; i++) {
			const struct np_file *file = &capture->files.v[i];
			if (file->role == NP_ROLE_TRACE) {
				struct np_trace_facts facts = {.capture = capture, .file = file};
				if (!np_vec_push(&gate->traces, facts))
					return false;
			} else if (is_csv(file->role)) {
				struct np_csv_facts facts = {.capture = capture, .file = file};
				facts.is_kernel_table = file->role == NP_ROLE_KERNELS ||
				                        file->role == NP_ROLE_OP_SUMMARY;
				if (!np_vec_push(&gate->csv, facts))
					return false;
			}
		}
	}
	return true;
}

enum np_status np_gate_gather(struct np_gate *gate, struct np_err *err)
{
	find_start(gate);
	if (!list_files(gate))
		return np_err_nomem(err);
	np_progress_begin(gate->options->progress, "reading files", gate->csv.n + gate->traces.n);
	np_pool_run(gate->options->threads, gate->csv.n, read_csv, gate);
	np_pool_run(gate->options->threads, gate->traces.n, read_trace, gate);
	return np_summarize(gate->all, NP_KERNELS | NP_KERNEL_METRICS | NP_STEP_TRACE,
	                    gate->options->threads, gate->options->progress, &gate->summaries, err);
}

void np_gate_release(struct np_gate *gate)
{
	np_summaries_free(gate->summaries, gate->all->captures.n);
	np_vec_release(&gate->csv);
	np_vec_release(&gate->traces);
}
