/*
 * The strategy of a run from what it recorded: the sizes of distributed_args, and
 * the process groups with their members, checked against each other.
 */
#include <string.h>

#include "cluster/internal.h"
#include "cluster/parallel.h"
#include "report/lang.h"

/* Names of groups, and the digits in which their members differ. */
static const struct alias {
	const char *name;
	unsigned dims;
} aliases[] = {
	{"tp", 1U << NP_DIM_TP},
	{"cp", 1U << NP_DIM_CP},
	{"pp", 1U << NP_DIM_PP},
	{"dp", 1U << NP_DIM_DP},
	{"dp_cp", 1U << NP_DIM_DP | 1U << NP_DIM_CP},
};

/* What is gathered from all ranks. */
struct finder {
	struct np_cluster *cluster;
	struct np_parallel_plan *plan;
	int64_t args[NP_N_DIMS], args_ep, world; /* NP_NO_I64: not recorded */
	int64_t of_groups[NP_N_DIMS], dp_cp, ep; /* sizes of the groups of that name */
	int64_t last;                            /* highest rank anywhere */
	bool has_groups, has_args, dispute;
};

static unsigned dims_of(const struct np_group *group)
{
	for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
		if (strcmp(group->name, aliases[i].name) == 0)
			return aliases[i].dims;
	return 0;
}

static bool is_expert(const struct np_group *group)
{
	return strcmp(group->name, "exp") == 0 || strcmp(group->name, "ep") == 0;
}

/* "" when memory is out: then the report has failed as well. */
#define problem(self, ...) \
	keep_problem((self)->plan, np_arena_printf(&(self)->cluster->arena, __VA_ARGS__))

static void keep_problem(struct np_parallel_plan *plan, const char *text)
{
	if (plan->n_problems < sizeof plan->problems / sizeof *plan->problems)
		plan->problems[plan->n_problems++] = text ? text : "";
}

static size_t index_in(const struct np_group *group, int64_t rank)
{
	for (size_t i = 0; i < group->n_ranks; i++)
		if (group->ranks[i] == rank)
			return i;
	return SIZE_MAX;
}

/* ── gathering ── */

/* Beyond any world all are alike, so that nothing overflows. */
static void see(struct finder *self, int64_t rank)
{
	rank = rank > NP_WORLD_MAX ? NP_WORLD_MAX : rank;
	self->last = rank > self->last ? rank : self->last;
}

/* The size, or what another rank said before if that differs. */
static void agree(struct finder *self, int64_t *known, int64_t size, const char *what,
                  const struct np_cluster_rank *rank)
{
	if (size == NP_NO_I64)
		return;
	if (size < 1 || size > NP_WORLD_MAX) {
		problem(self, "rank %lld records %s = %lld, which no run can have",
		        (long long)rank->rank, what, (long long)size);
		self->dispute = true;
	} else if (*known == NP_NO_I64) {
		*known = size;
	} else if (*known != size) {
		problem(self, "rank %lld records %s = %lld, others %lld", (long long)rank->rank,
		        what, (long long)size, (long long)*known);
		self->dispute = true;
	}
}

static void gather_args(struct finder *self, const struct np_cluster_rank *rank)
{
	const struct np_parallel *args = &rank->capture->parallel;
	self->has_args |= args->tp != NP_NO_I64 || args->pp != NP_NO_I64 || args->dp != NP_NO_I64;
	agree(self, &self->args[NP_DIM_TP], args->tp, "tensor_model_parallel_size", rank);
	agree(self, &self->args[NP_DIM_PP], args->pp, "pipeline_model_parallel_size", rank);
	agree(self, &self->args[NP_DIM_DP], args->dp, "data_parallel_size", rank);
	agree(self, &self->args[NP_DIM_CP], args->cp, "context_parallel_size", rank);
	agree(self, &self->args_ep, args->ep, "expert_model_parallel_size", rank);
	agree(self, &self->world, args->world, "world_size", rank);
}

static void gather_group(struct finder *self, const struct np_cluster_rank *rank,
                         const struct np_group *group)
{
	unsigned dims = dims_of(group);
	int64_t n = (int64_t)group->n_ranks;
	for (size_t i = 0; i < group->n_ranks; i++)
		see(self, group->ranks[i]);
	if (strcmp(group->name, "default_group") == 0)
		agree(self, &self->world, n, "the size of default_group", rank);
	if (is_expert(group))
		agree(self, &self->ep, n, "the size of its expert group", rank);
	if (dims == 0)
		return;
	self->has_groups = true;
	if (index_in(group, rank->rank) == SIZE_MAX) {
		problem(self, "rank %lld records a group %s without itself", (long long)rank->rank,
		        group->name);
		self->dispute = true;
	}
	for (int d = 0; d < NP_N_DIMS; d++)
		if (dims == 1U << d)
			agree(self, &self->of_groups[d], n, group->name, rank);
	if (dims == (1U << NP_DIM_DP | 1U << NP_DIM_CP))
		agree(self, &self->dp_cp, n, group->name, rank);
}

static void gather(struct finder *self)
{
	self->args_ep = self->world = self->dp_cp = self->ep = NP_NO_I64;
	self->last = -1;
	for (int d = 0; d < NP_N_DIMS; d++)
		self->args[d] = self->of_groups[d] = NP_NO_I64;
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_cluster_rank *rank = &self->cluster->ranks.v[r];
		see(self, rank->rank);
		gather_args(self, rank);
		for (size_t g = 0; g < rank->capture->n_groups; g++)
			gather_group(self, rank, &rank->capture->groups[g]);
	}
	if (self->world == NP_NO_I64)
		self->world = self->last + 1;
}

/* ── sizes ── */

/* Groups are what ran, so they go before the arguments. */
static uint32_t choose(struct finder *self, enum np_dim dim)
{
	int64_t arg = self->args[dim], group = self->of_groups[dim];
	if (arg != NP_NO_I64 && group != NP_NO_I64 && arg != group) {
		problem(self,
		        "distributed_args has %s = %lld, the groups called %s have %lld ranks",
		        np_dim_name(dim), (long long)arg, np_dim_name(dim), (long long)group);
		self->dispute = true;
	}
	int64_t size = group != NP_NO_I64 ? group : arg;
	return size == NP_NO_I64 ? 0 : (uint32_t)size;
}

/* What is not recorded follows from the others: cp from dp_cp, dp from the world. */
static void choose_sizes(struct finder *self, struct np_strategy *out)
{
	for (int d = 0; d < NP_N_DIMS; d++)
		out->size[d] = choose(self, (enum np_dim)d);
	uint32_t *dp = &out->size[NP_DIM_DP], *cp = &out->size[NP_DIM_CP];
	if (self->dp_cp != NP_NO_I64) {
		uint32_t both = (uint32_t)self->dp_cp;
		if (*dp == 0 && *cp > 0 && both % *cp == 0)
			*dp = both / *cp;
		else if (*cp == 0 && *dp > 0 && both % *dp == 0)
			*cp = both / *dp;
		if (*dp > 0 && *cp > 0 && (uint64_t)*dp * *cp != both) {
			problem(self, "the groups called dp_cp have %u ranks, dp = %u, cp = %u",
			        both, *dp, *cp);
			self->dispute = true;
		}
	}
	for (int d = 0; d < NP_N_DIMS; d++)
		if (out->size[d] == 0 && d != NP_DIM_DP)
			out->size[d] = 1;
	uint64_t model = (uint64_t)out->size[NP_DIM_TP] * *cp;
	model = model > NP_WORLD_MAX ? model : model * out->size[NP_DIM_PP];
	if (*dp == 0)
		*dp = self->world % (int64_t)model == 0 && self->world > 0
		              ? (uint32_t)(self->world / (int64_t)model)
		              : 1;
}

/* false: the sizes are not those of a run of these ranks. */
static bool check_sizes(struct finder *self, struct np_strategy *s)
{
	const char *why;
	int64_t ep = self->ep != NP_NO_I64 ? self->ep : self->args_ep;
	if (!np_strategy_sound(s, &why)) {
		problem(self, "tp = %u, cp = %u, pp = %u, dp = %u: %s", s->size[NP_DIM_TP],
		        s->size[NP_DIM_CP], s->size[NP_DIM_PP], s->size[NP_DIM_DP], why);
		return false;
	}
	if (self->ep != NP_NO_I64 && self->args_ep != NP_NO_I64 && self->ep != self->args_ep) {
		self->dispute = true;
		problem(self, "distributed_args has ep = %lld, the expert groups have %lld ranks",
		        (long long)self->args_ep, (long long)self->ep);
	}
	struct np_strategy with = *s;
	uint64_t shared = (uint64_t)s->size[NP_DIM_TP] * s->size[NP_DIM_CP] * s->size[NP_DIM_DP];
	with.ep = ep == NP_NO_I64 ? 1 : (uint32_t)ep;
	if (np_strategy_sound(&with, &why))
		*s = with;
	else if (self->ep == NP_NO_I64 || shared % with.ep != 0) /* else over tp as well as dp */
		problem(self, "ep = %lld: %s (with dp = %u)", (long long)ep, why,
		        s->size[NP_DIM_DP]);
	int64_t world = (int64_t)np_strategy_world(s);
	if (world != self->world) {
		problem(self, "tp x cp x pp x dp = %lld, but the run has %lld ranks",
		        (long long)world, (long long)self->world);
		return false;
	}
	int64_t first = self->cluster->ranks.n > 0 ? self->cluster->ranks.v[0].rank : 0;
	if (first < 0)
		problem(self, "rank %lld is there", (long long)first);
	if (self->last >= world)
		problem(self, "rank %lld is there, but the run has %lld ranks",
		        (long long)self->last, (long long)world);
	return self->last < world && first >= 0;
}

/* ── layout ── */

/* The members are exactly the ranks that differ from `rank` in the digits `dims` only. */
static bool explains(const struct np_strategy *s, const struct np_group *group, int64_t rank,
                     unsigned dims)
{
	struct np_place own, other;
	size_t expected = 1, world = np_strategy_world(s);
	for (int d = 0; d < NP_N_DIMS; d++)
		expected *= dims & (1U << d) ? s->size[d] : 1;
	if (group->n_ranks != expected)
		return false;
	np_strategy_place(s, (size_t)rank, &own);
	for (size_t i = 0; i < group->n_ranks; i++) {
		if (group->ranks[i] < 0 || (uint64_t)group->ranks[i] >= world ||
		    (i > 0 && group->ranks[i] <= group->ranks[i - 1]))
			return false;
		np_strategy_place(s, (size_t)group->ranks[i], &other);
		for (int d = 0; d < NP_N_DIMS; d++)
			if (!(dims & (1U << d)) && own.digit[d] != other.digit[d])
				return false;
	}
	return true;
}

static bool explains_all(const struct np_cluster *cluster, const struct np_strategy *s)
{
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_cluster_rank *rank = &cluster->ranks.v[r];
		for (size_t g = 0; g < rank->capture->n_groups; g++) {
			const struct np_group *group = &rank->capture->groups[g];
			unsigned dims = dims_of(group);
			if (dims != 0 && !explains(s, group, rank->rank, dims))
				return false;
		}
	}
	return true;
}

/* The first layout that explains the groups; false: none does. */
static bool choose_layout(const struct np_cluster *cluster, struct np_strategy *s)
{
	static const enum np_layout tried[] = {NP_LAYOUT_MEGATRON, NP_LAYOUT_MEGATRON_PP,
	                                       NP_LAYOUT_VLLM};
	const char *why;
	for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
		struct np_strategy with = *s;
		with.layout = tried[i];
		if (!np_strategy_sound(&with, &why) || !explains_all(cluster, &with))
			continue;
		*s = with;
		return true;
	}
	return false;
}

/* ── places ── */

static void place_by_groups(const struct np_cluster_rank *rank, struct np_place *out)
{
	for (size_t g = 0; g < rank->capture->n_groups; g++) {
		const struct np_group *group = &rank->capture->groups[g];
		size_t index = index_in(group, rank->rank);
		if (index == SIZE_MAX)
			continue;
		for (int d = 0; d < NP_N_DIMS; d++)
			if (dims_of(group) == 1U << d)
				out->digit[d] = (uint32_t)index;
		if (is_expert(group))
			out->ep = (uint32_t)index;
	}
}

static void place_all(struct np_parallel_plan *plan, const struct np_cluster *cluster)
{
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		struct np_place *place = &plan->places[r];
		const struct np_cluster_rank *rank = &cluster->ranks.v[r];
		*place = (struct np_place){.ep = plan->strategy.ep == 1 ? 0 : NP_NO_INDEX};
		for (int d = 0; d < NP_N_DIMS; d++)
			place->digit[d] = plan->strategy.size[d] == 1 ? 0 : NP_NO_INDEX;
		if (plan->regular)
			np_strategy_place(&plan->strategy, (size_t)rank->rank, place);
		place_by_groups(rank, place);
	}
}

/* ── all of it ── */

/* Nobody knows, or it cannot be: all ranks beside each other. */
static struct np_strategy flat(int64_t world)
{
	bool sane = world > 0 && world <= NP_WORLD_MAX;
	return (struct np_strategy){
		.size = {1, 1, 1, sane ? (uint32_t)world : 1}, .ep = 1, .moe_tp = 1};
}

static enum np_parallel_source source_of(const struct finder *self)
{
	if (self->dispute)
		return NP_PARALLEL_DISPUTE;
	if (self->has_groups)
		return self->has_args ? NP_PARALLEL_BOTH : NP_PARALLEL_GROUPS;
	return self->has_args ? NP_PARALLEL_ARGS : NP_PARALLEL_UNKNOWN;
}

static void find(struct finder *self, struct np_parallel_plan *plan)
{
	struct np_strategy s = {.ep = 1, .moe_tp = 1};
	gather(self);
	plan->strategy = flat(self->last + 1);
	if (!self->has_args && !self->has_groups)
		return;
	choose_sizes(self, &s);
	if (!check_sizes(self, &s)) {
		self->dispute = true;
	} else if (choose_layout(self->cluster, &s)) {
		plan->strategy = s;
		plan->regular = true;
	} else {
		problem(self, "the recorded groups fit none of the known placements of ranks");
		self->dispute = true;
	}
	plan->source = source_of(self);
}

enum np_status np_parallel_of(struct np_cluster *cluster, struct np_parallel_plan *out,
                              struct np_err *err)
{
	struct finder finder = {.cluster = cluster, .plan = out};
	*out = (struct np_parallel_plan){.source = NP_PARALLEL_UNKNOWN};
	out->places = np_calloc(cluster->ranks.n + 1, sizeof *out->places);
	if (!out->places)
		return np_err_nomem(err);
	find(&finder, out);
	place_all(out, cluster);
	for (size_t i = 0; i < out->n_problems; i++)
		if (!*out->problems[i])
			return np_err_nomem(err);
	return NP_OK;
}

void np_parallel_release(struct np_parallel_plan *self)
{
	np_free(self->places);
	self->places = NULL;
}

const char *np_parallel_how(const struct np_parallel_plan *self)
{
	static const char *const how[] = {
		[NP_PARALLEL_UNKNOWN] =
			NP_N("not recorded: neither distributed_args nor process groups"),
		[NP_PARALLEL_ARGS] = NP_N("distributed_args; no process groups are recorded"),
		[NP_PARALLEL_GROUPS] = NP_N("the recorded process groups; no distributed_args"),
		[NP_PARALLEL_BOTH] =
			NP_N("distributed_args, and the recorded process groups agree"),
		[NP_PARALLEL_DISPUTE] =
			NP_N("contradictory records; the process groups are believed"),
	};
	if (self->source == NP_PARALLEL_DISPUTE && !self->regular)
		return NP_N("contradictory records, and no known placement fits them");
	return how[self->source];
}

void np_parallel_tell(const struct np_parallel_plan *self, struct np_cluster *cluster)
{
	if (self->n_problems == 0)
		return;
	struct np_finding *finding = np_report_finding(
		cluster->report, "PARALLEL_CONTRADICTION", self->regular ? NP_INFO : NP_WARNING,
		"what is recorded of the parallel strategy does not fit together");
	for (size_t i = 0; i < self->n_problems; i++)
		np_finding_evidence(finding, NULL, NULL, NULL, "%s", self->problems[i]);
	np_finding_advice(finding, "Compare profiler_metadata.json of the ranks with the launch "
	                           "command; captures of two runs may be mixed.");
}
