/*
 * slow link (cluster_and_advisor.md §3.2): ranks whose bandwidth in a step is more than 5 %
 * below the mean of the ranks, by kind of link.
 *
 * Each operator counts once; the official tool adds its "Total Op Info" or its packet sizes
 * once more, so its sizes and times are multiples of ours (docs/differences.md).
 */
#include <math.h>

#include "advice/cluster_rows.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"step", "", NP_COL_INT, "step id"},
	{"rank_id", "", NP_COL_INT, "rank"},
	{"RDMA bandwidth(GB/s)", "", NP_COL_REAL, "size by time"},
	{"RDMA size(mb)", "", NP_COL_REAL, "sum of the transit sizes, each operator once"},
	{"RDMA time(ms)", "", NP_COL_REAL, "sum of the transit times, each operator once"},
	{"SDMA bandwidth(GB/s)", "", NP_COL_REAL, "size by time"},
	{"SDMA size(mb)", "", NP_COL_REAL, "sum of the transit sizes, each operator once"},
	{"SDMA time(ms)", "", NP_COL_REAL, "sum of the transit times, each operator once"},
};

static const char *const kind_names[NP_N_LINK_KINDS] = {"RDMA", "SDMA"};

struct gap {
	const struct np_link_row *row; /* furthest below the mean of its step */
	double share, mean;            /* how far, and that mean */
	double gain_us;                /* of all steps: the slowest of each at the mean */
	size_t steps, found;
};

/* rows[0…n) are the ranks of one step; those that send nothing over the link don't count. */
static void judge(const struct np_advice *self, const struct np_link_row *rows, size_t n,
                  enum np_link_kind kind, struct gap *gap)
{
	const struct np_link_row *min = NULL;
	double sum = 0;
	size_t senders = 0;
	for (size_t i = 0; i < n; i++) {
		double gbps = np_link_gbps(&rows[i], kind);
		if (!(gbps > 0))
			continue;
		min = !min || gbps < np_link_gbps(min, kind) ? &rows[i] : min;
		sum += gbps;
		senders++;
	}
	if (senders < 2)
		return;
	double mean = sum / (double)senders, share = 1 - np_link_gbps(min, kind) / mean;
	gap->steps++;
	if (!(share > np_rule_value(self, "slow_link_gap")))
		return;
	gap->found++;
	gap->gain_us += (min->ms[kind] - min->mb[kind] / mean) * 1000;
	if (share > gap->share) {
		gap->share = share;
		gap->mean = mean;
		gap->row = min;
	}
}

static void tell(struct np_advice *self, const struct np_checker *checker, enum np_link_kind kind,
                 const struct gap *gap)
{
	const struct np_cluster_rank *slow = &self->cluster->ranks.v[gap->row->rank];
	char name[NP_STEP_NAME_SIZE];
	struct np_problem_text text = {
		.code = "ADVICE_SLOW_LINK",
		.count = gap->found,
		.total_us = gap->row->ms[kind] * 1000,
		.gain_us = gap->gain_us / (double)gap->steps,
		.advice = NP_N(
			"Which link is it? The modes slow_link and communication_matrix of npuprof "
			"cluster tell. Then look at cable, port, switch, retransmissions and "
			"other traffic there."),
		.command = NULL};
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"%s: rank %lld has %.3f GB/s in %s, the mean of the ranks is %.3f GB/s",
		kind_names[kind], (long long)slow->rank, np_link_gbps(gap->row, kind),
		np_step_name(gap->row->step, name), gap->mean);
	np_finding_evidence(finding, slow->capture->path, NULL, np_step_name(gap->row->step, name),
	                    "rank %lld: %.3f MB in %.3f ms", (long long)slow->rank,
	                    gap->row->mb[kind], gap->row->ms[kind]);
	np_finding_command(finding, "npuprof cluster -m slow_link,communication_matrix %s",
	                   np_shell_quote(self->report, self->all->input));
}

static void fill(struct np_advice *self, const struct np_checker *checker,
                 const struct np_link_rows *rows)
{
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	for (size_t i = 0; i < rows->n; i++) {
		const struct np_link_row *row = &rows->v[i];
		if (row->step == NP_NO_I64)
			np_cell_na(table);
		else
			np_cell_int(table, row->step);
		np_cell_int(table, self->cluster->ranks.v[row->rank].rank);
		for (unsigned k = 0; k < NP_N_LINK_KINDS; k++) {
			np_cell_real(table, round(np_link_gbps(row, k) * 1e4) / 1e4);
			np_cell_real(table, row->mb[k]);
			np_cell_real(table, row->ms[k]);
		}
	}
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_link_rows rows;
	struct gap gaps[NP_N_LINK_KINDS] = {{0}};
	self->oom |= !np_advice_link_rows(self, &rows);
	for (size_t i = 0, end; i < rows.n; i = end) {
		for (end = i + 1; end < rows.n && rows.v[end].step == rows.v[i].step;)
			end++;
		for (unsigned k = 0; k < NP_N_LINK_KINDS; k++)
			judge(self, &rows.v[i], end - i, k, &gaps[k]);
	}
	for (unsigned k = 0; !self->oom && k < NP_N_LINK_KINDS; k++)
		if (gaps[k].row)
			tell(self, checker, k, &gaps[k]);
	if (!self->oom && rows.n > 0)
		fill(self, checker, &rows);
	np_vec_release(&rows);
}

const struct np_checker np_checker_slow_link = {
	.name = "slow_link",
	.dimension = NP_DIM_CLUSTER,
	.category = NP_N("slow link"),
	.category_zh = "慢链路分析",
	.run = run,
};
