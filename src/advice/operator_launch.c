/*
 * Operator Launch Issues: the device idles because the host had not launched what comes
 * next.
 *
 *   device   ████ g0               g1 ████
 *   host            │ launch  │
 *            └──────┴─────────┘            host's part: until the end of the launching call
 *
 * Idle time between two kernels of a step belongs to the kernel that ends it. What
 * comes behind the launch is latency or a dependency, and no matter of the host.
 */
#include <stdlib.h>

#include "advice/host.h"
#include "analysis/group.h"
#include "report/lang.h"

enum { SHOWN = 20 };

static const struct np_column columns[] = {
	{"op type", "", NP_COL_TEXT, "type of the kernel that the device waited for"},
	{"count", "", NP_COL_INT, "gaps of at least operator_launch_us before such kernels"},
	{"waited(us)", "", NP_COL_REAL, "idle time until the end of the launching call, their sum"},
	{"max waited(us)", "", NP_COL_REAL, "the longest of them"},
	{"launch time(us)", "", NP_COL_REAL, "the launching calls themselves, their sum"},
	{"share", "", NP_COL_PERCENT, "waited, of the steps"},
};

struct waits {
	uint32_t type, worst; /* row of the kernel with the longest wait */
	size_t n;
	np_ns waited, longest, launching;
};

struct all {
	NP_VEC(struct waits) of;
	struct np_map by_type;
	np_ns waited; /* all, short ones too */
	size_t linked, kernels;
};

static bool add(struct np_advice *self, struct all *all, uint32_t row, np_ns waited)
{
	const struct np_launch *launch = &self->rank->launches[row];
	uint32_t type = np_op_type(self->rank, row);
	uint32_t at = np_map_get(&all->by_type, type, NP_NO_U32);
	if (at == NP_NO_U32) {
		at = (uint32_t)all->of.n;
		if (!np_vec_push(&all->of, (struct waits){.type = type}) ||
		    !np_map_put(&all->by_type, type, at))
			return false;
	}
	struct waits *to = &all->of.v[at];
	to->n++;
	to->waited = np_ns_sum(to->waited, waited);
	to->launching = np_ns_sum(to->launching, launch->end - launch->start);
	if (waited > to->longest) {
		to->longest = waited;
		to->worst = row;
	}
	return true;
}

/* Kernels are in order of start: what was busy so far ends the gap's beginning. */
static bool collect(struct np_advice *self, struct all *all)
{
	const struct np_analysis *rank = self->rank;
	const struct np_kernels *kernels = &rank->profile->kernels;
	double least = np_rule_value(self, "operator_launch_us") * 1000;
	np_ns busy_until = NP_NO_I64;
	uint32_t span = NP_NO_U32;
	for (size_t i = 0; i < rank->n_rows; i++) {
		uint32_t row = rank->rows[i];
		const struct np_launch *launch = &rank->launches[row];
		np_ns start = kernels->start_ns[row], end = start + kernels->dur_ns[row];
		bool same_step = span == rank->span_of[row];
		span = rank->span_of[row];
		all->kernels++;
		all->linked += launch->how != NP_LAUNCH_NONE;
		if (same_step && start > busy_until && launch->how != NP_LAUNCH_NONE) {
			np_ns until = launch->end < start ? launch->end : start;
			np_ns waited = until > busy_until ? until - busy_until : 0;
			all->waited = np_ns_sum(all->waited, waited);
			if (waited > 0 && (double)waited >= least && !add(self, all, row, waited))
				return false;
		}
		busy_until = !same_step || end > busy_until ? end : busy_until;
	}
	return true;
}

static int most_waited(const void *a, const void *b)
{
	const struct waits *x = a, *y = b;
	if (x->waited != y->waited)
		return x->waited > y->waited ? -1 : 1;
	return (x->worst > y->worst) - (x->worst < y->worst);
}

/* Who issued the kernels with the longest waits. */
static void tell_who(struct np_advice *self, const struct all *all, struct np_finding *finding)
{
	enum { TOLD = 3 };
	const struct np_analysis *rank = self->rank;
	for (size_t i = 0; i < all->of.n && i < TOLD; i++) {
		const struct waits *one = &all->of.v[i];
		np_str name = np_text(rank, rank->profile->kernels.name[one->worst]);
		np_finding_evidence(finding, np_kernel_source(rank), "Start Time(us)", NULL,
		                    "%.1f us before %.*s, start %lld ns",
		                    (double)one->longest / 1e3, NP_FMT(np_str_sub(name, 0, 120)),
		                    (long long)rank->profile->kernels.start_ns[one->worst]);
	}
}

static void tell(struct np_advice *self, const struct np_checker *checker, struct all *all)
{
	struct np_problem_text text = {
		.code = "ADVICE_OPERATOR_LAUNCH",
		.count = 0,
		.total_us = np_per_step_us(self, all->waited),
		.gain_us = np_per_step_us(self, all->waited),
		.advice =
			NP_N("Let the host run ahead: TASK_QUEUE_ENABLE=2, CPU_AFFINITY_CONF=1, no "
	                     "synchronising calls in the loop; fewer and larger operators: fused "
	                     "operators, graph mode."),
		.command = NULL,
	};
	if (all->of.n > 1)
		qsort(all->of.v, all->of.n, sizeof *all->of.v, most_waited);
	for (size_t i = 0; i < all->of.n; i++)
		text.count += all->of.v[i].n;
	struct np_finding *finding =
		np_advice_problem(self, checker, &text,
	                          "the device waits %.1f us per step for launches: the host is "
	                          "slower than the device",
	                          text.gain_us);
	tell_who(self, all, finding);
	np_finding_command(finding, "npuprof analyze %s",
	                   np_shell_quote(self->report, self->rank->capture->path));
	if (all->of.n == 0)
		return;
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	for (size_t i = 0; i < all->of.n && i < SHOWN; i++) {
		const struct waits *one = &all->of.v[i];
		np_cell_text(table, np_text(self->rank, one->type));
		np_cell_int(table, (int64_t)one->n);
		np_cell_real(table, (double)one->waited / 1e3);
		np_cell_real(table, (double)one->longest / 1e3);
		np_cell_real(table, (double)one->launching / 1e3);
		np_cell_real(table, np_share(self->rank, one->waited));
	}
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct all all = {.waited = 0};
	np_map_init(&all.by_type);
	if (!collect(self, &all))
		self->oom = true;
	/* where most launches are unknown it says nothing */
	else if (all.linked * 2 >= all.kernels &&
	         np_share(self->rank, all.waited) >= np_rule_value(self, "operator_launch_share"))
		tell(self, checker, &all);
	np_map_release(&all.by_type);
	np_vec_release(&all.of);
}

const struct np_checker np_checker_operator_launch = {
	.name = "operator_launch",
	.dimension = NP_DIM_SCHEDULE,
	.category = "Operator Launch Issues",
	.category_zh = "算子启动延迟问题",
	.run = run,
};
