/* What the diagnosis says: tables and findings. */
#include "cluster/diag_tell.h"

#include <stdlib.h>
#include <string.h>

#include "cluster/internal.h"
#include "report/lang.h"

const char *np_diag_group_name(const struct np_diagnosis *self, uint32_t group)
{
	const struct np_diag_group *g = &self->groups.v[group];
	np_str key = np_cluster_text(self->cluster, g->key);
	const char *name = g->recorded && *g->recorded->name ? g->recorded->name : NULL;
	np_str tail = np_str_from(key, key.len > 3 ? key.len - 3 : 0);
	const char *text =
		name ? np_arena_printf(&self->cluster->arena, "%s#%.*s", name, NP_FMT(tail))
		     : np_arena_printf(&self->cluster->arena, "#%.*s", NP_FMT(tail));
	return text ? text : "";
}

static int64_t rank_id(const struct np_diagnosis *self, uint32_t row)
{
	return self->cluster->ranks.v[row].rank;
}

static double share(const struct np_diagnosis *self, np_ns ns)
{
	return self->total > 0 ? (double)ns / (double)self->total : 0;
}

static double us_per_step(const struct np_diagnosis *self, np_ns ns)
{
	return self->n_steps > 0 ? (double)ns / 1000 / (double)self->n_steps : 0;
}

/* ── tables ── */

static const struct np_column cause_columns[] = {
	{"rank", "", NP_COL_INT, "who makes the others wait"},
	{"cause", "", NP_COL_TEXT, "in what it exceeds the median of its peers"},
	{"cost_us", "us", NP_COL_REAL, "last minus second last arrival, per step"},
	{"share", "", NP_COL_PERCENT, "of the step"},
	{"group", "", NP_COL_TEXT, "communicator in which it costs that"},
	{"late", "", NP_COL_INT, "collectives of that group that it delayed"},
	{"of", "", NP_COL_INT, "collectives of that group"},
	{"waits_us", "us", NP_COL_REAL, "waiting of all other ranks together, per step"},
	{"verdict", "", NP_COL_TEXT, "accused, or below the noise"},
};

/* One screen: what is accused, and a few of the rest that are worth a look. */
enum { SHOWN_CAUSES = 6 };
#define SHOWN_SHARE 0.001 /* of the step */

static void causes_table(const struct np_diagnosis *self, const struct np_diag_causes *causes)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "diagnose_causes",
	                                         "Who makes the others wait", cause_columns);
	for (size_t i = 0; i < causes->list.n && i < SHOWN_CAUSES; i++) {
		const struct np_diag_cause *cause = &causes->list.v[i];
		if (share(self, cause->cost) < SHOWN_SHARE)
			break;
		np_cell_int(table, rank_id(self, cause->rank));
		np_cell_word(table, np_cause_name((enum np_cause)cause->cause));
		np_cell_real(table, us_per_step(self, cause->cost));
		np_cell_real(table, share(self, cause->cost));
		np_cell_cstr(table, cause->group == NP_DIAG_NONE
		                            ? NULL
		                            : np_diag_group_name(self, cause->group));
		np_cell_int(table, (int64_t)cause->count);
		np_cell_int(table, (int64_t)cause->of);
		np_cell_real(table, us_per_step(self, cause->waits));
		np_cell_word(table, cause->accused ? NP_N("accused") : NP_N("noise"));
	}
}

static const struct np_column clock_columns[] = {
	{"clock", "", NP_COL_TEXT, "host, or rank whose host is not recorded"},
	{"ranks", "", NP_COL_INT, "ranks that go by it"},
	{"offset_us", "us", NP_COL_REAL, "ahead of the first clock, at the first collective"},
	{"drift_ppm", "", NP_COL_REAL, "change of the offset, us per second"},
	{"spread_us", "us", NP_COL_REAL, "median absolute deviation of the ends"},
	{"collectives", "", NP_COL_INT, "by which it was measured"},
};

static np_ns magnitude(np_ns v)
{
	return v < 0 ? -v : v;
}

/* The first clock, to which the others are compared; then those that are off most. */
static int by_offset(const void *a, const void *b)
{
	const struct np_diag_domain *const *x = a, *const *y = b;
	np_ns u = magnitude((*x)->offset), v = magnitude((*y)->offset);
	if (u != v)
		return u > v ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

static void clock_row(const struct np_diag_domain *domain, struct np_table *table)
{
	np_cell_cstr(table, domain->name);
	np_cell_int(table, domain->ranks);
	if (domain->known && domain->n > 0) {
		np_cell_real(table, (double)domain->offset / 1000);
		np_cell_real(table, domain->drift_ppm);
		np_cell_real(table, (double)domain->spread / 1000);
	} else {
		np_cell_na(table);
		np_cell_na(table);
		np_cell_na(table);
	}
	np_cell_int(table, (int64_t)domain->n);
}

static bool clock_table(const struct np_diagnosis *self)
{
	size_t n = self->domains.n;
	if (n < 2)
		return true;
	const struct np_diag_domain **order = np_calloc(n, sizeof *order);
	struct np_table *table =
		NP_REPORT_TABLE(self->cluster->report, "diagnose_clocks",
	                        "Clocks, by the ends of collectives", clock_columns);
	for (size_t d = 0; order && d < n; d++)
		order[d] = &self->domains.v[d];
	if (order)
		qsort(&order[1], n - 1, sizeof *order, by_offset);
	for (size_t d = 0; order && d < n; d++)
		clock_row(order[d], table);
	np_free(order);
	return order != NULL;
}

static const struct np_column path_columns[] = {
	{"bound_by", "", NP_COL_TEXT, "what the step waits for on its critical path"},
	{"per_step_us", "us", NP_COL_REAL, "per step"},
	{"share", "", NP_COL_PERCENT, "of the step"},
};

static void path_table(const struct np_diagnosis *self, const struct np_path *path)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "diagnose_path",
	                                         "Critical path across ranks", path_columns);
	for (int b = 0; b < NP_N_BOUNDS; b++) {
		if (path->by_bound[b] == 0)
			continue;
		np_cell_word(table, np_path_bound_name((enum np_path_bound)b));
		np_cell_real(table, us_per_step(self, path->by_bound[b]));
		np_cell_real(table, share(self, path->by_bound[b]));
	}
}

static const struct np_column group_columns[] = {
	{"group", "", NP_COL_TEXT, "name and last digits of the communicator"},
	{"ranks", "", NP_COL_INT, "ranks with ops of it"},
	{"expected", "", NP_COL_INT, "recorded size"},
	{"collectives", "", NP_COL_INT, "matched across ranks"},
	{"wait_us", "us", NP_COL_REAL, "mean wait of a rank for the last, per collective"},
	{"transfer_us", "us", NP_COL_REAL, "mean from the last arrival to the first end"},
	{"most_often_last", "", NP_COL_INT, "rank that came last most often"},
	{"times", "", NP_COL_INT, "how often"},
};

enum { SHOWN_GROUPS = 6 };

struct group_sum {
	uint32_t group, last, times; /* the rank that came last most often, and how often */
	double wait_ns, transfer_ns;
};

static int by_wait(const void *a, const void *b)
{
	const struct group_sum *x = a, *y = b;
	if (x->wait_ns != y->wait_ns)
		return x->wait_ns > y->wait_ns ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

static int by_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* Runs of equal (group, last) in the sorted list: the longest of each group. */
static void count_last(struct group_sum *sums, const uint64_t *pairs, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t end = i;
		while (end < n && pairs[end] == pairs[i])
			end++;
		struct group_sum *sum = &sums[pairs[i] >> 32];
		if (end - i > sum->times) {
			sum->times = (uint32_t)(end - i);
			sum->last = (uint32_t)pairs[i];
		}
		i = end;
	}
}

static void group_row(const struct np_diagnosis *self, const struct group_sum *sum,
                      struct np_table *table)
{
	const struct np_diag_group *group = &self->groups.v[sum->group];
	double n = (double)group->n_instances;
	np_cell_cstr(table, np_diag_group_name(self, sum->group));
	np_cell_int(table, group->n_ranks);
	np_cell_int(table, group->expected);
	np_cell_int(table, (int64_t)group->n_instances);
	np_cell_real(table, sum->wait_ns / 1000 / n);
	np_cell_real(table, sum->transfer_ns / 1000 / n);
	np_cell_int(table, rank_id(self, sum->last));
	np_cell_int(table, sum->times);
}

/* The groups in which ranks wait most. */
static bool group_table(const struct np_diagnosis *self)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "diagnose_groups",
	                                         "Communicators by waiting", group_columns);
	struct group_sum *sums = np_calloc(self->groups.n + 1, sizeof *sums);
	uint64_t *pairs = np_realloc(NULL, self->instances.n + 1, sizeof *pairs);
	bool ok = sums && pairs;
	for (uint32_t g = 0; ok && g < self->groups.n; g++)
		sums[g].group = g;
	for (size_t i = 0; ok && i < self->instances.n; i++) {
		const struct np_diag_instance *k = &self->instances.v[i];
		sums[k->group].wait_ns += (double)k->waits / (k->n - 1);
		sums[k->group].transfer_ns += (double)k->transfer;
		pairs[i] = (uint64_t)k->group << 32 | k->last;
	}
	if (ok) {
		qsort(pairs, self->instances.n, sizeof *pairs, by_u64);
		count_last(sums, pairs, self->instances.n);
		qsort(sums, self->groups.n, sizeof *sums, by_wait);
	}
	for (size_t g = 0; ok && g < self->groups.n && g < SHOWN_GROUPS; g++)
		if (self->groups.v[sums[g].group].n_instances > 0)
			group_row(self, &sums[g], table);
	np_free(sums);
	np_free(pairs);
	return ok;
}

/* ── findings ── */

/* Half of the worst cases is enough to look closer at; the rest is told by its cause. */
enum { MAX_LOOKS = 3 };
#define GRAVE_SHARE 0.05 /* of the step */

static const char *cause_title(enum np_cause cause)
{
	switch (cause) {
	case NP_CAUSE_COMPUTE:
		return np_tr("it computes longer than its peers");
	case NP_CAUSE_IDLE:
		return np_tr("its device idles longer than those of its peers");
	case NP_CAUSE_TRANSFER:
		return np_tr("it is held by the transfer in another communicator");
	default:
		return np_tr("why is not in the capture");
	}
}

static void tell_cause(struct np_diagnosis *self, const struct np_diag_cause *cause,
                       const struct np_look *look)
{
	struct np_report *report = self->cluster->report;
	double part = share(self, cause->cost);
	struct np_finding *finding = np_report_finding(
		report, look->code, part >= GRAVE_SHARE ? NP_ERROR : NP_WARNING,
		"rank %lld makes the others wait %.1f us per step (%.1f %%): %s",
		(long long)rank_id(self, cause->rank), us_per_step(self, cause->cost), 100 * part,
		cause_title((enum np_cause)cause->cause));
	if (look->what)
		np_finding_detail(finding, "%s", look->what);
	const struct np_diag_instance *worst = &self->instances.v[cause->worst];
	np_finding_evidence(
		finding, NULL, "diagnose_causes", NULL,
		"late at %zu of %zu collectives of %s, at most %.1f us (number %u%s%s)",
		cause->count, cause->of, np_diag_group_name(self, worst->group),
		(double)worst->lateness / 1000, worst->seq,
		worst->step == NP_NO_I64 ? "" : np_tr(" of step "),
		worst->step == NP_NO_I64
			? ""
			: np_arena_printf(&self->cluster->arena, "%lld", (long long)worst->step));
	if (cause->depth > 0)
		np_finding_evidence(finding, NULL, "diagnose_causes", NULL,
		                    "the delay reaches others through %u communicators",
		                    cause->depth);
	if (look->advice)
		np_finding_advice(finding, "%s", np_tr(look->advice));
	np_finding_impact(finding, us_per_step(self, cause->cost), part);
	np_finding_command(
		finding, "npuprof analyze %s",
		np_shell_quote(report, self->cluster->ranks.v[cause->rank].capture->path));
}

/* Are both ends of a slow link in the group? Then the link is what to tell. */
static bool has_slow_link(const struct np_diagnosis *self, uint32_t group,
                          const struct np_links *links)
{
	const struct np_diag_group *g = &self->groups.v[group];
	for (size_t i = 0; i < links->slow.n; i++) {
		bool src = false, dst = false;
		for (uint32_t r = 0; r < g->n_ranks; r++) {
			src |= rank_id(self, g->ranks[r]) == links->slow.v[i].src;
			dst |= rank_id(self, g->ranks[r]) == links->slow.v[i].dst;
		}
		if (src && dst)
			return true;
	}
	return false;
}

/* A slow group is one finding, whichever of its ranks the delay was seen at. */
static bool is_told(const struct np_diag_causes *causes, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (causes->list.v[i].accused && causes->list.v[i].cause == NP_CAUSE_TRANSFER &&
		    causes->list.v[i].group == causes->list.v[at].group)
			return true;
	return false;
}

static void tell_slow_group(struct np_diagnosis *self, const struct np_diag_cause *cause,
                            const struct np_look *look)
{
	double part = share(self, cause->cost);
	struct np_finding *finding = np_report_finding(
		self->cluster->report, look->code, part >= GRAVE_SHARE ? NP_ERROR : NP_WARNING,
		"transfers of %s delay others %.1f us per step (%.1f %%)",
		np_diag_group_name(self, cause->group), us_per_step(self, cause->cost), 100 * part);
	np_finding_evidence(finding, NULL, "diagnose_causes", NULL,
	                    "its ranks come late to %zu of %zu collectives of %s", cause->count,
	                    cause->of,
	                    np_diag_group_name(self, self->instances.v[cause->worst].group));
	np_finding_advice(finding, "%s", np_tr(look->advice));
	np_finding_impact(finding, us_per_step(self, cause->cost), part);
}

static bool tell_causes(struct np_diagnosis *self, const struct np_diag_causes *causes,
                        const struct np_links *links)
{
	int looks = 0;
	for (size_t i = 0; i < causes->list.n; i++) {
		const struct np_diag_cause *cause = &causes->list.v[i];
		struct np_look look;
		if (!cause->accused)
			continue;
		if (cause->cause == NP_CAUSE_TRANSFER) {
			(void)np_diag_look_by_cause(cause, &look);
			if (!is_told(causes, i) && !has_slow_link(self, cause->group, links))
				tell_slow_group(self, cause, &look);
			continue;
		}
		if (looks++ < MAX_LOOKS ? !np_diag_look(self, cause, &look)
		                        : !np_diag_look_by_cause(cause, &look))
			return false;
		tell_cause(self, cause, &look);
	}
	return true;
}

static const struct np_column link_columns[] = {
	{"src", "", NP_COL_INT, "rank that sends"},
	{"dst", "", NP_COL_INT, "rank that receives"},
	{"transport", "", NP_COL_TEXT, "HCCS, RDMA, PCIE, SIO"},
	{"op", "", NP_COL_TEXT, "operator"},
	{"group", "", NP_COL_TEXT, "name of the communicator"},
	{"gbps", "GB/s", NP_COL_REAL, "bandwidth"},
	{"typical_gbps", "GB/s", NP_COL_REAL, "median of links of the same kind"},
	{"ratio", "", NP_COL_REAL, "time per byte against the median; slow above 1.3"},
	{"z", "", NP_COL_REAL, "robust z of the time per byte; slow above 3.5"},
	{"extra_us", "us", NP_COL_REAL, "beyond what a typical link takes, per step"},
};

static void link_table(const struct np_diagnosis *self, const struct np_links *links)
{
	if (links->slow.n == 0)
		return;
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "diagnose_links",
	                                         "Links slower than their like", link_columns);
	for (size_t i = 0; i < links->slow.n; i++) {
		const struct np_slow_link *link = &links->slow.v[i];
		np_cell_int(table, link->src);
		np_cell_int(table, link->dst);
		np_cell_text(table, np_cluster_text(self->cluster, link->transport));
		np_cell_text(table, np_cluster_text(self->cluster, link->kind));
		np_cell_cstr(table, *link->group ? link->group : NULL);
		np_cell_real(table, link->gbps);
		np_cell_real(table, link->typical_gbps);
		np_cell_real(table, link->ratio);
		np_cell_real(table, link->z);
		np_cell_real(table, link->extra_us);
	}
}

static int64_t lower(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t higher(int64_t a, int64_t b)
{
	return a < b ? b : a;
}

static void tell_links(const struct np_diagnosis *self, const struct np_links *links)
{
	if (links->slow.n == 0)
		return;
	const struct np_slow_link *worst = &links->slow.v[0];
	double part = self->total > 0
	                      ? links->cost_us * 1000 * (double)self->n_steps / (double)self->total
	                      : 0;
	enum np_severity severity = part >= GRAVE_SHARE       ? NP_ERROR
	                            : part >= NP_ACCUSE_SHARE ? NP_WARNING
	                                                      : NP_INFO;
	struct np_finding *finding;
	struct np_report *report = self->cluster->report;
	if (links->share == NP_SHARE_HOST)
		finding = np_report_finding(report, "CLUSTER_SLOW_NODE", severity,
		                            "%zu links are slow, all at host %s", links->slow.n,
		                            links->host);
	else if (links->share == NP_SHARE_PAIR)
		finding = np_report_finding(report, "CLUSTER_SLOW_LINK", severity,
		                            "the link between %lld and %lld is slow: %.2f GB/s "
		                            "against %.2f GB/s",
		                            (long long)lower(worst->src, worst->dst),
		                            (long long)higher(worst->src, worst->dst), worst->gbps,
		                            worst->typical_gbps);
	else if (links->share == NP_SHARE_RANK)
		finding = np_report_finding(report, "CLUSTER_SLOW_NODE", severity,
		                            "%zu links are slow, all at rank %lld", links->slow.n,
		                            (long long)links->rank);
	else
		finding = np_report_finding(
			report, "CLUSTER_SLOW_LINK", severity,
			"link %lld to %lld (%s) is slow: %.2f GB/s against %.2f GB/s",
			(long long)worst->src, (long long)worst->dst,
			np_cluster_text(self->cluster, worst->transport).ptr, worst->gbps,
			worst->typical_gbps);
	np_finding_detail(finding, "Links of the same transport and traffic are compared by time "
	                           "per byte: robust z above 3.5 and ratio above 1.3, in half of "
	                           "the steps or more.");
	np_finding_evidence(finding, NULL, "diagnose_links", NULL,
	                    "%zu of %zu links; the worst takes %.1f us longer per step",
	                    links->slow.n, links->n_links, links->cost_us);
	np_finding_advice(finding, "Check cable, port and switch of these links (hccn_tool, "
	                           "npu-smi info -t hccs), retransmissions and other traffic.");
	np_finding_impact(finding, links->cost_us, part);
}

static void tell_clocks(const struct np_diagnosis *self)
{
	if (!self->by_duration)
		return;
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "CLUSTER_CLOCKS", NP_WARNING,
		"clocks of %zu ranks do not fit the ends of their collectives", self->n_off);
	np_finding_detail(finding,
	                  "A collective ends nearly at once on all its ranks. Here the ends differ "
	                  "by more than 50 us although host clocks were aligned, so who came last "
	                  "is told by durations alone: who waited least came last.");
	for (uint32_t r = 0, shown = 0; r < self->n_ranks && shown < 3; r++) {
		const struct np_diag_fit *fit = &self->fits[r];
		if (fit->n == 0 ||
		    (fit->spread <= 50000 && fit->median <= 50000 && fit->median >= -50000))
			continue;
		shown++;
		np_finding_evidence(finding, self->cluster->ranks.v[r].capture->path, NULL, NULL,
		                    "ends %.1f us after the others, ± %.1f us",
		                    (double)fit->median / 1000, (double)fit->spread / 1000);
	}
	np_finding_advice(finding, "Are all captures of one run? Are the hosts' clocks stepped by "
	                           "NTP while they were taken?");
}

static void tell_unmatched(const struct np_diagnosis *self)
{
	size_t all = self->first_op[self->n_ranks];
	size_t lost = self->n_unmatched + self->n_no_group + self->n_p2p_unmatched;
	if (lost == 0 || all == 0)
		return;
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "CLUSTER_UNMATCHED", NP_INFO,
		"%zu of %zu operations have no partner on another rank", lost, all);
	np_finding_evidence(finding, NULL, NULL, NULL,
	                    "%zu without counterpart, %zu without a group, %zu point-to-point in "
	                    "groups of more than two ranks",
	                    self->n_unmatched, self->n_no_group, self->n_p2p_unmatched);
}

/* ── stages ── */

static const struct np_column stage_columns[] = {
	{"stage", "", NP_COL_INT, "index in the pipeline"},
	{"ranks", "", NP_COL_INT, "of this stage"},
	{"work_us", "us", NP_COL_REAL, "computing per step, median of its ranks"},
	{"waits_us", "us", NP_COL_REAL, "in sends and receives per step, mean of its ranks"},
	{"bubble", "", NP_COL_PERCENT, "waits of the step"},
};

enum { SHOWN_STAGES = 16 };
#define IMBALANCE_SHARE 0.05 /* of the step: work of a stage beyond the others */
/* Waiting for neighbours, share of the step, mean of all ranks: too much with fewer
 * micro-batches than stages; too much in any case. */
#define BUBBLE_SHARE 0.25
#define BUBBLE_GRAVE 0.50

static void stage_table(const struct np_diagnosis *self, const struct np_stages *stages)
{
	if (stages->list.n < 2)
		return;
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "diagnose_stages",
	                                         "Stages of the pipeline", stage_columns);
	for (size_t s = 0; s < stages->list.n && s < SHOWN_STAGES; s++) {
		const struct np_stage *stage = &stages->list.v[s];
		np_cell_int(table, (int64_t)s);
		np_cell_int(table, stage->ranks);
		np_cell_real(table, (double)stage->work / 1000);
		np_cell_real(table, (double)stage->wait / 1000);
		np_cell_real(table, share(self, stage->wait * (np_ns)self->n_steps));
	}
}

static void tell_stages(const struct np_diagnosis *self, const struct np_stages *stages)
{
	struct np_report *report = self->cluster->report;
	double excess = share(self, stages->excess * (np_ns)self->n_steps);
	double bubble = share(self, stages->wait * (np_ns)self->n_steps);
	if (stages->list.n < 2)
		return;
	if (excess >= IMBALANCE_SHARE) {
		struct np_finding *finding = np_report_finding(
			report, "CLUSTER_STAGE_IMBALANCE", NP_WARNING,
			"pipeline stage %u computes %.1f us longer per step than the others",
			stages->slowest, (double)stages->excess / 1000);
		np_finding_evidence(finding, NULL, "diagnose_stages", NULL,
		                    "%.1f us of computing per step",
		                    (double)stages->list.v[stages->slowest].work / 1000);
		np_finding_advice(finding, "Move layers to other stages; embedding and loss are "
		                           "work, too.");
		np_finding_impact(finding, (double)stages->excess / 1000, excess);
	}
	bool few = stages->micro_batches > 0 && stages->micro_batches < stages->list.n;
	if (bubble >= BUBBLE_GRAVE || (bubble >= BUBBLE_SHARE && few)) {
		struct np_finding *finding = np_report_finding(
			report, "CLUSTER_PIPELINE_BUBBLE", NP_WARNING,
			"ranks wait for their neighbours in the pipeline %.1f %% of the step",
			100 * bubble);
		np_finding_evidence(finding, NULL, "diagnose_stages", NULL,
		                    "%.1f us per step, mean of %zu ranks; %u micro-batches (0: not "
		                    "known), %zu stages",
		                    (double)stages->wait / 1000, self->n_ranks,
		                    stages->micro_batches, stages->list.n);
		np_finding_advice(finding, "More micro-batches per step, interleaved (virtual) "
		                           "stages, or fewer stages.");
		np_finding_impact(finding, (double)stages->wait / 1000, bubble);
	}
}

/* ── a late start ── */

#define LATE_START_SHARE 0.05 /* of the step */

/* A rank whose very first collective all others had to wait for. Nothing of what it did
 * before is recorded, and the capture may merely have begun like that: told, not accused. */
static void tell_start(const struct np_diagnosis *self)
{
	const struct np_diag_instance *worst = NULL;
	for (size_t i = 0; i < self->instances.n; i++) {
		const struct np_diag_instance *k = &self->instances.v[i];
		if (k->p2p || k->cause != NP_CAUSE_START || k->culprit != k->last ||
		    np_diag_member_of(self, k, k->last)->row != 0)
			continue;
		if (!worst || k->lateness > worst->lateness)
			worst = k;
	}
	if (!worst || share(self, worst->lateness) * (double)self->n_steps < LATE_START_SHARE)
		return;
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "CLUSTER_LATE_START", NP_INFO,
		"rank %lld came %.1f us late to its first collective",
		(long long)rank_id(self, worst->last), (double)worst->lateness / 1000);
	np_finding_detail(finding, "What it did before is not recorded. If it is not how the "
	                           "capture began, look at what this rank does first: loading, "
	                           "compiling, a checkpoint.");
	np_finding_evidence(finding, self->cluster->ranks.v[worst->last].capture->path,
	                    "diagnose_causes", NULL, "collective of %s",
	                    np_diag_group_name(self, worst->group));
}

/* ── the whole ── */

static void tell_plan(const struct np_diagnosis *self, const struct np_stages *stages)
{
	const struct np_strategy *s = &stages->plan.strategy;
	if (stages->plan.source == NP_PARALLEL_UNKNOWN)
		return;
	np_report_note(self->cluster->report,
	               "parallel strategy: tp %u, cp %u, pp %u, dp %u, ep %u; %s",
	               s->size[NP_DIM_TP], s->size[NP_DIM_CP], s->size[NP_DIM_PP],
	               s->size[NP_DIM_DP], s->ep, np_tr(np_parallel_how(&stages->plan)));
}

bool np_diag_tell(struct np_diagnosis *self, const struct np_diag_result *result)
{
	struct np_report *report = self->cluster->report;
	size_t before = np_report_count(report, NP_WARNING);
	causes_table(self, &result->causes);
	path_table(self, &result->path);
	link_table(self, &result->links);
	stage_table(self, &result->stages);
	if (!clock_table(self) || !group_table(self) ||
	    !tell_causes(self, &result->causes, &result->links))
		return false;
	tell_links(self, &result->links);
	tell_stages(self, &result->stages);
	tell_clocks(self);
	tell_start(self);
	tell_unmatched(self);
	tell_plan(self, &result->stages);
	if (np_report_count(report, NP_WARNING) == before)
		np_report_note(report,
		               "no rank, link or clock is accused: nothing costs 1 %% of the "
		               "step");
	return true;
}
