/* Slow Dataloader Issues (cluster_and_advisor.md §3.5): the host waits for its data. */
#include <stdlib.h>

#include "advice/host.h"
#include "report/lang.h"

enum { SHOWN = 20 };

static const struct np_column columns[] = {
	{"name", "", NP_COL_TEXT, "range of the framework"},
	{"timestamp", "us", NP_COL_INT, "start"},
	{"duration(us)", "", NP_COL_REAL, "how long it took"},
};

static int longest_first(const void *a, const void *b, void *ctx)
{
	const struct np_host_ops *ops = ctx;
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
	if (ops->dur_ns[x] != ops->dur_ns[y])
		return ops->dur_ns[x] > ops->dur_ns[y] ? -1 : 1;
	return (x > y) - (x < y);
}

/* Each distinct name is looked at once: 1 it is one, 2 it isn't. */
static bool is_loader(const struct np_advice *self, uint8_t *known, uint32_t name)
{
	if (name == NP_ID_NONE)
		return false;
	if (known[name] == 0)
		known[name] =
			np_str_icontains(np_text(self->rank, name), NP_STR("dataloader")) ? 1 : 2;
	return known[name] == 1;
}

static bool collect(struct np_advice *self, struct np_host_calls *calls)
{
	const struct np_profile *profile = self->rank->profile;
	const struct np_host_ops *ops = &profile->host_ops;
	double least = np_rule_value(self, "dataloader_us");
	uint8_t *known = np_calloc(profile->strings.strings.n + 1, sizeof *known);
	bool ok = known != NULL;
	for (uint32_t i = 0; ok && i < ops->n; i++)
		if (ops->layer[i] == NP_HOST_OP && (double)ops->dur_ns[i] >= least * 1000 &&
		    is_loader(self, known, ops->name[i]))
			ok = np_host_calls_add(calls, ops, i);
	np_free(known);
	return ok;
}

static void tell(struct np_advice *self, const struct np_checker *checker,
                 struct np_host_calls *calls)
{
	struct np_host_ops *ops = &self->rank->profile->host_ops;
	np_str name = np_text(self->rank, ops->name[calls->longest]);
	struct np_problem_text text = {
		.code = "ADVICE_DATALOADER",
		.advice =
			np_str_icontains(name, NP_STR("singleprocess"))
				? NP_N("Load in other processes: num_workers > 0; check the disk's "
	                               "throughput.")
				: NP_N("More num_workers, pin_memory=True, prefetch_factor; check "
	                               "the "
	                               "disk's throughput; move preprocessing out of the training "
	                               "process.")};
	np_host_calls_worth(self, calls, &text);
	struct np_finding *finding = np_advice_problem(
		self, checker, &text, "the data loader held the host %zu times, %.1f ms at most",
		calls->rows.n, (double)ops->dur_ns[calls->longest] / 1e6);
	np_host_calls_evidence(self, calls, finding);
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	qsort_r(calls->rows.v, calls->rows.n, sizeof *calls->rows.v, longest_first, ops);
	for (size_t i = 0; i < calls->rows.n && i < SHOWN; i++) {
		uint32_t row = calls->rows.v[i];
		np_cell_text(table, np_text(self->rank, ops->name[row]));
		np_cell_int(table, ops->start_ns[row] / 1000);
		np_cell_real(table, (double)ops->dur_ns[row] / 1e3);
	}
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct np_host_calls calls = {.total = 0};
	if (!collect(self, &calls))
		self->oom = true;
	else if (calls.rows.n > 0)
		tell(self, checker, &calls);
	np_host_calls_release(&calls);
}

const struct np_checker np_checker_dataloader = {
	.name = "dataloader",
	.dimension = NP_DIM_SCHEDULE,
	.category = "Slow Dataloader Issues",
	.category_zh = "数据加载慢问题",
	.run = run,
	.load = NP_HOST_ARGS,
};
