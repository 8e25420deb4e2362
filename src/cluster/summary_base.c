/* The run as a whole, its parallel strategy, and what each rank computed and sent. */
#include <math.h>

#include "cluster/summary.h"

/* ── the run ── */

static const struct np_column base_columns[] = {
	{"start_ns", "", NP_COL_TIME_NS, "first start of a collective, else of a kernel"},
	{"duration_ms", "ms", NP_COL_REAL,
         "the longer of: first to last start of a collective; stage + preparing of a rank"},
	{"ranks", "", NP_COL_INT, "ranks with data"},
	{"steps", "", NP_COL_TEXT, "step ids"},
	{"data_bytes", "bytes", NP_COL_BYTES, "size of all files below the input"},
};

struct times {
	double first_us, last_us; /* starts of collectives */
	np_ns kernel;             /* first start */
	double total_us;          /* of the rank with the most */
};

static void starts(const struct np_summary *self, struct times *out)
{
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_cluster_rank *rank = &self->cluster->ranks.v[r];
		const struct np_digest_insight_time *in =
			NP_DIGEST_ROWS(rank, np_digest_insight_time);
		const struct np_digest_summary_comm *kernels =
			NP_DIGEST_ROWS(rank, np_digest_summary_comm);
		for (size_t i = 0; i < in->n; i++) {
			if (!np_insight_wants(&self->steps, in->step[i]) || !(in->start_us[i] > 0))
				continue;
			out->first_us = fmin(in->start_us[i], out->first_us);
			out->last_us = fmax(in->start_us[i], out->last_us);
		}
		for (size_t i = 0; i < kernels->n; i++)
			if (np_insight_wants(&self->steps, kernels->step[i]) &&
			    kernels->start_ns[i] < out->kernel)
				out->kernel = kernels->start_ns[i];
	}
}

static bool totals(const struct np_summary *self, struct times *out)
{
	double *by_rank = np_calloc(self->cluster->ranks.n + 1, sizeof *by_rank);
	for (size_t i = 0; by_rank && i < self->rows.n; i++) {
		const struct np_sum_row *row = &self->rows.v[i];
		double preparing = row->v[NP_SUM_PREPARING];
		double us = isnan(row->stage) ? row->v[NP_SUM_E2E]
		                              : row->stage + (preparing > 0 ? preparing : 0);
		by_rank[row->rank] += isnan(us) ? 0 : us;
		out->total_us = fmax(out->total_us, by_rank[row->rank]);
	}
	np_free(by_rank);
	return by_rank != NULL;
}

static bool steps(const struct np_summary *self, struct np_buf *out)
{
	for (size_t i = 0; i < self->rows.n; i = np_summary_end(self, i))
		if (self->rows.v[i].step != NP_NO_I64)
			np_buf_printf(out, "%s%lld", out->len > 0 ? "," : "",
			              (long long)self->rows.v[i].step);
	return !out->failed;
}

bool np_summary_base(const struct np_summary *self)
{
	struct np_table *table =
		NP_REPORT_TABLE(self->cluster->report, "SummaryBase", "The run", base_columns);
	struct times times = {.first_us = INFINITY, .last_us = -INFINITY, .kernel = INT64_MAX};
	struct np_buf text = {0};
	starts(self, &times);
	bool ok = totals(self, &times) && steps(self, &text);
	if (times.first_us < (double)NP_TIME_MAX / 1e3)
		np_cell_int(table, (int64_t)(times.first_us * 1e3));
	else if (times.kernel < INT64_MAX)
		np_cell_int(table, times.kernel);
	else
		np_cell_na(table);
	double between = times.last_us - times.first_us;
	np_cell_real(table, fmax(between, times.total_us) / 1e3);
	np_cell_int(table, (int64_t)self->cluster->ranks.n);
	if (text.len > 0)
		np_cell_text(table, np_buf_str(&text));
	else
		np_cell_na(table);
	np_cell_int(table, (int64_t)self->cluster->all->bytes);
	np_buf_release(&text);
	return ok;
}

/* ── strategy ── */

static const struct np_column strategy_columns[] = {
	{"algorithm", "", NP_COL_TEXT, "placement that explains the recorded groups"},
	{"tp", "", NP_COL_INT, "tensor parallel size"},
	{"cp", "", NP_COL_INT, "context parallel size"},
	{"pp", "", NP_COL_INT, "pipeline parallel size"},
	{"dp", "", NP_COL_INT, "data parallel size"},
	{"ep", "", NP_COL_INT, "expert parallel size, inside of dp"},
	{"known_from", "", NP_COL_TEXT, "how it was found"},
};

void np_summary_strategy(const struct np_summary *self)
{
	const struct np_strategy *s = &self->plan.strategy;
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "SummaryStrategy",
	                                         "Parallel strategy", strategy_columns);
	if (self->plan.regular) {
		np_cell_cstr(table, np_layout_name(s->layout));
		np_cell_int(table, s->size[NP_DIM_TP]);
		np_cell_int(table, s->size[NP_DIM_CP]);
		np_cell_int(table, s->size[NP_DIM_PP]);
		np_cell_int(table, s->size[NP_DIM_DP]);
		np_cell_int(table, s->ep);
	} else {
		for (int i = 0; i < 6; i++)
			np_cell_na(table);
	}
	np_cell_word(table, np_parallel_how(&self->plan));
}

/* ── kernels ── */

static const struct np_column core_columns[] = {
	{"step", "", NP_COL_INT, "step"},
	{"rank", "", NP_COL_INT, "rank"},
	{"accelerator_core", "", NP_COL_TEXT, "core of the kernels"},
	{"kernels", "", NP_COL_INT, "how many"},
	{"duration_us", "us", NP_COL_REAL, "sum of their durations"},
};

static const struct np_column comm_columns[] = {
	{"step", "", NP_COL_INT, "step"},
	{"rank", "", NP_COL_INT, "rank"},
	{"not_overlapped_us", "us", NP_COL_REAL, "collectives while no kernel computes"},
	{"overlapped_us", "us", NP_COL_REAL, "collectives beside computing kernels"},
};

static double us(np_ns ns)
{
	return (double)ns / 1e3;
}

static void cores(const struct np_summary *self)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "SummaryComputing",
	                                         "Computing by accelerator core", core_columns);
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_cluster_rank *rank = &self->cluster->ranks.v[r];
		const struct np_digest_summary_core *in =
			NP_DIGEST_ROWS(rank, np_digest_summary_core);
		for (size_t i = 0; i < in->n; i++) {
			if (!np_insight_wants(&self->steps, in->step[i]))
				continue;
			np_cell_step(table, in->step[i]);
			np_cell_int(table, rank->rank);
			np_cell_text(table, np_cluster_text(self->cluster, in->core[i]));
			np_cell_int(table, in->kernels[i]);
			np_cell_real(table, us(in->dur_ns[i]));
		}
	}
}

void np_summary_detail(const struct np_summary *self)
{
	cores(self);
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "SummaryCommunication",
	                                         "Communication of the kernels", comm_columns);
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_cluster_rank *rank = &self->cluster->ranks.v[r];
		const struct np_digest_summary_comm *in =
			NP_DIGEST_ROWS(rank, np_digest_summary_comm);
		for (size_t i = 0; i < in->n; i++) {
			if (!np_insight_wants(&self->steps, in->step[i]))
				continue;
			np_cell_step(table, in->step[i]);
			np_cell_int(table, rank->rank);
			np_cell_real(table, us(in->alone_ns[i]));
			np_cell_real(table, us(in->beside_ns[i]));
		}
	}
}
