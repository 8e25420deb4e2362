/*
 * ep_load_balance (cluster_and_advisor.md §2.17): tokens that each rank of an expert
 * parallel group got, from the shapes of GroupedMatmul.
 */
#include <stdlib.h>

#include "cluster/internal.h"

static const double IMBALANCE = 1.3; /* of the busiest rank over the group's mean */

enum { TOP_GROUPS = 20 };

/* ── the part ── */

#define TOKENS_COLUMNS(X)                           \
	X(int64_t, tokens, "of all calls together") \
	X(uint64_t, calls, "with shapes that tell")

NP_TABLE_STRUCT(np_digest_tokens, TOKENS_COLUMNS);
#define NP_TAG np_digest_tokens
NP_TABLE_DESC(static, np_digest_tokens, "tokens", TOKENS_COLUMNS)
#undef NP_TAG

/* `"4096,1024;4096,512;8,1024,512;8"` → 8192: the first dimensions but of the last two
 * inputs (weights and group list). false: the shapes don't tell. */
static bool tokens_of(np_str shapes, int64_t *out)
{
	enum { MAX_PARTS = 1024, NOT_TOKENS = 2 };
	np_str parts[MAX_PARTS], rest = shapes;
	size_t n = 0;
	while (rest.len > 0 && (rest.ptr[0] == '"' || rest.ptr[0] == '\''))
		rest = np_str_from(rest, 1);
	while (rest.len > 0 && (rest.ptr[rest.len - 1] == '"' || rest.ptr[rest.len - 1] == '\''))
		rest.len--;
	while (rest.len > 0) {
		np_str one = np_str_cut(rest, ';', &rest);
		if (one.len > 0 && n == MAX_PARTS)
			return false;
		if (one.len > 0)
			parts[n++] = one;
	}
	if (n < NOT_TOKENS)
		return false;
	*out = 0;
	for (size_t i = 0; i + NOT_TOKENS < n; i++) {
		np_str other;
		int64_t dim;
		if (!np_str_to_i64(np_str_trim(np_str_cut(parts[i], ',', &other)), &dim) ||
		    dim < 0 || dim > INT64_MAX - *out)
			return false;
		*out += dim;
	}
	return true;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	const struct np_profile *p = job->profile;
	const struct np_kernels *k = &p->kernels;
	struct np_digest_tokens *rows = np_digest_table(job->digest, &np_digest_tokens_desc);
	int64_t sum = 0, tokens;
	uint64_t calls = 0;
	for (size_t i = 0; i < k->n && i < p->kernel_shapes.n; i++) {
		if (!np_str_is(np_intern_get(&p->strings, k->type[i]), "GroupedMatmul") ||
		    k->start_ns[i] < job->from_ns || k->start_ns[i] + k->dur_ns[i] > job->to_ns ||
		    !tokens_of(np_intern_get(&p->strings, p->kernel_shapes.in_shapes[i]), &tokens))
			continue;
		sum = tokens > INT64_MAX - sum ? INT64_MAX : sum + tokens;
		calls++;
	}
	if (calls == 0)
		return NP_OK;
	size_t r = np_rows_add(rows, &np_digest_tokens_desc);
	if (r == SIZE_MAX)
		return np_err_nomem(err);
	rows->tokens[r] = sum;
	rows->calls[r] = calls;
	return NP_OK;
}

static const struct np_table_desc *const tables[] = {&np_digest_tokens_desc, NULL};

static const struct np_part part = {
	.name = "tokens",
	.revision = 1,
	.load = NP_KERNELS | NP_KERNEL_SHAPES,
	.tables = tables,
	.map = map,
};

/* ── the reduce ── */

static bool has_rank(const struct np_group *group, int64_t rank)
{
	for (size_t i = 0; i < group->n_ranks; i++)
		if (group->ranks[i] == rank)
			return true;
	return false;
}

/* The expert parallel group of a rank. The official tool takes the first "exp", in which
 * the rank need not be. */
static const struct np_group *ep_group(const struct np_cluster *cluster,
                                       const struct np_cluster_rank *rank)
{
	static const char *const names[] = {"exp", "ep"};
	const struct np_capture *capture = rank->capture;
	size_t n_names = cluster->options->compat ? 1 : sizeof names / sizeof *names;
	for (size_t n = 0; n < n_names; n++)
		for (size_t g = 0; g < capture->n_groups; g++)
			if (np_str_is(np_str_of(capture->groups[g].name), names[n]) &&
			    (cluster->options->compat || has_rank(&capture->groups[g], rank->rank)))
				return &capture->groups[g];
	return NULL;
}

/* A rank with tokens. */
struct load {
	const char *ep_ranks; /* "0,1,2,3" */
	int64_t rank, tokens;
};

static int by_group(const void *a, const void *b)
{
	const struct load *x = a, *y = b;
	int order = np_str_cmp(np_str_of(x->ep_ranks), np_str_of(y->ep_ranks));
	if (order != 0)
		return order;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static const char *ranks_text(struct np_cluster *cluster, const struct np_group *group)
{
	struct np_buf text = {0};
	for (size_t i = 0; i < group->n_ranks; i++)
		np_buf_printf(&text, "%s%lld", i > 0 ? "," : "", (long long)group->ranks[i]);
	const char *copy = text.failed ? NULL : np_arena_cstr(&cluster->arena, np_buf_str(&text));
	np_buf_release(&text);
	return copy;
}

/* A group: loads[from … from + n). */
struct spread {
	size_t from, n;
	int64_t diff;
};

static int by_diff(const void *a, const void *b)
{
	const struct spread *x = a, *y = b;
	if (x->diff != y->diff)
		return x->diff < y->diff ? 1 : -1;
	return (x->from > y->from) - (x->from < y->from);
}

static const struct np_column summary_columns[] = {
	{"rank", "", NP_COL_INT, "rank"},
	{"epRanks", "", NP_COL_TEXT, "its expert parallel group"},
	{"inputShapesSummary", "", NP_COL_INT, "tokens of all its GroupedMatmul"},
};

static const struct np_column top_columns[] = {
	{"epRanks", "", NP_COL_TEXT, "expert parallel group"},
	{"tokensDiff", "", NP_COL_INT, "most tokens of a rank less the fewest"},
};

static void tell_spread(struct np_report *report, const struct load *loads, size_t n)
{
	const struct load *most = &loads[0];
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		most = loads[i].tokens > most->tokens ? &loads[i] : most;
		sum += (double)loads[i].tokens;
	}
	double mean = sum / (double)n;
	if (!(mean > 0) || !((double)most->tokens > IMBALANCE * mean))
		return;
	struct np_finding *finding = np_report_finding(
		report, "EP_IMBALANCE", NP_WARNING,
		"rank %lld has %.2f times the tokens of the mean of its expert parallel group",
		(long long)most->rank, (double)most->tokens / mean);
	np_finding_evidence(finding, NULL, "inputShapesSummary", most->ep_ranks,
	                    "%lld tokens, mean %.0f", (long long)most->tokens, mean);
	np_finding_advice(finding, "Look at the router's load balancing and the placement of "
	                           "the experts.");
}

static bool make_tables(struct np_cluster *cluster, const struct load *loads, size_t n)
{
	size_t n_spreads = 0;
	struct spread *spreads = np_realloc(NULL, n + 1, sizeof *spreads);
	if (!spreads)
		return false;
	struct np_table *table = NP_REPORT_TABLE(cluster->report, "EPTokensSummary",
	                                         "Tokens per rank", summary_columns);
	for (size_t i = 0, to; i < n; i = to) {
		int64_t min = loads[i].tokens, max = min;
		for (to = i; to < n && np_str_is(np_str_of(loads[to].ep_ranks), loads[i].ep_ranks);
		     to++) {
			min = loads[to].tokens < min ? loads[to].tokens : min;
			max = loads[to].tokens > max ? loads[to].tokens : max;
			np_cell_int(table, loads[to].rank);
			np_cell_cstr(table, loads[to].ep_ranks);
			np_cell_int(table, loads[to].tokens);
		}
		spreads[n_spreads++] = (struct spread){i, to - i, max - min};
	}
	qsort(spreads, n_spreads, sizeof *spreads, by_diff);
	table = NP_REPORT_TABLE(cluster->report, "TopEPTokensInfo",
	                        "Expert parallel groups by spread", top_columns);
	for (size_t i = 0; i < n_spreads && i < TOP_GROUPS; i++) {
		np_cell_cstr(table, loads[spreads[i].from].ep_ranks);
		np_cell_int(table, spreads[i].diff);
		tell_spread(cluster->report, &loads[spreads[i].from], spreads[i].n);
	}
	np_free(spreads);
	return true;
}

/* Why there is nothing to tell. */
static void tell_nothing(struct np_cluster *cluster, const struct np_recipe *recipe)
{
	bool groups = false, ep = false;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		groups |= cluster->ranks.v[r].capture->n_groups > 0;
		ep |= ep_group(cluster, &cluster->ranks.v[r]) != NULL;
	}
	if (!groups)
		np_cluster_nothing(cluster, recipe,
		                   "no capture tells its parallel groups (parallel_group_info in "
		                   "profiler_metadata.json or META_DATA)");
	else if (!ep)
		np_cluster_nothing(cluster, recipe,
		                   "there is no expert parallel group (exp, ep) among the "
		                   "parallel groups");
	else
		np_cluster_nothing(cluster, recipe,
		                   "no GroupedMatmul with input shapes was recorded (shapes need "
		                   "level 1 and above)");
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	size_t n = 0, n_ranks = cluster->ranks.n;
	struct load *loads = np_realloc(NULL, n_ranks + 1, sizeof *loads);
	bool *has = np_calloc(n_ranks + 1, sizeof *has), ok = loads && has;
	for (size_t r = 0; ok && r < n_ranks; r++) {
		const struct np_cluster_rank *rank = &cluster->ranks.v[r];
		const struct np_digest_tokens *tokens = NP_DIGEST_ROWS(rank, np_digest_tokens);
		const struct np_group *group = ep_group(cluster, rank);
		has[r] = !rank->digest || (group && tokens->n > 0);
		if (!group || tokens->n == 0)
			continue;
		loads[n] = (struct load){ranks_text(cluster, group), rank->rank, tokens->tokens[0]};
		ok = loads[n++].ep_ranks != NULL;
	}
	if (ok && n == 0) {
		tell_nothing(cluster, self);
	} else if (ok) {
		np_cluster_lacking(cluster, self, has,
		                   "expert parallel group, or no GroupedMatmul with shapes");
		qsort(loads, n, sizeof *loads, by_group);
		ok = make_tables(cluster, loads, n);
	}
	np_free(loads);
	np_free(has);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&part, NULL};

static const struct np_recipe_file files[] = {
	{.table = "EPTokensSummary", .csv = "ep_tokens_summary.csv"},
	{.table = "TopEPTokensInfo", .csv = "top_ep_tokens_info.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_ep_load_balance = {
	.name = "ep_load_balance",
	.dir = "EPLoadBalance",
	.summary = NP_N("tokens per rank of the expert parallel groups"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
