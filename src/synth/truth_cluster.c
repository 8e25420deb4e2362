#include "synth/truth_cluster.h"

#include <string.h>

#include "synth/faults_cluster.h"

static void field(struct np_out *out, const char *key, int64_t value)
{
	np_out_lit(out, ", \"");
	np_out_str(out, key);
	np_out_lit(out, "\": ");
	np_out_i64(out, value);
}

/* ── costs ── */

struct cost {
	np_ns step, late, late_more, carried, wait, transfer;
};

/* The ranks that a fault makes late: of a link, its ends. */
static bool hits(const struct np_synth_plan *plan, const struct np_synth_fault *fault,
                 uint32_t rank)
{
	if (fault->id == NP_SYNTH_SLOW_LINK)
		return fault->a == rank || fault->b == rank;
	return np_synth_fault_hits(plan, fault, rank);
}

static bool group_hit(const struct np_synth_plan *plan, const struct np_synth_fault *fault,
                      const struct np_synth_group *group)
{
	for (uint32_t k = 0; k < group->count; k++)
		if (hits(plan, fault, np_synth_member_rank(group, k)))
			return true;
	return false;
}

static void sum_late(const struct np_synth_plan *plan, const struct np_synth_plan *without,
                     const struct np_synth_fault *fault, struct cost *cost)
{
	bool same = plan->instances.n == without->instances.n;
	uint32_t group = UINT32_MAX;
	bool hit = false;
	for (size_t i = 0; i < plan->instances.n; i++) {
		const struct np_synth_instance *now = &plan->instances.v[i];
		if (now->group != group)
			hit = group_hit(plan, fault, &plan->groups[now->group]);
		group = now->group;
		cost->wait += now->wait_ns;
		cost->transfer += now->transfer_ns;
		if (np_synth_is_p2p((enum np_synth_coll)now->coll))
			continue;
		if (hit && hits(plan, fault, now->last_rank))
			cost->late += now->late_ns;
		if (hit || !same)
			continue;
		np_ns more = now->late_ns - without->instances.v[i].late_ns;
		cost->carried += more > 0 ? more : 0;
	}
	for (size_t i = 0; i < without->instances.n; i++) {
		const struct np_synth_instance *then = &without->instances.v[i];
		cost->wait -= then->wait_ns;
		cost->transfer -= then->transfer_ns;
		if (!np_synth_is_p2p((enum np_synth_coll)then->coll) &&
		    hits(plan, fault, then->last_rank))
			cost->late_more -= then->late_ns;
	}
	cost->late_more += cost->late;
}

/* The same cluster without fault number `skip`. */
static enum np_status plan_without(const struct np_synth_plan *plan, size_t skip,
                                   struct np_synth_plan *out, struct np_err *err)
{
	struct np_synth_options options = plan->options;
	struct np_synth_fault *rest = np_calloc(options.n_faults, sizeof *rest);
	if (!rest)
		return np_err_nomem(err);
	size_t n = 0;
	for (size_t i = 0; i < options.n_faults; i++)
		if (i != skip)
			rest[n++] = options.faults[i];
	options.faults = rest;
	options.n_faults = n;
	enum np_status status = np_synth_plan_init(out, &options, err);
	out->options.faults = NULL;
	out->options.n_faults = 0;
	np_free(rest);
	return status;
}

static void put_scope(struct np_out *out, const struct np_synth_fault *fault)
{
	const struct np_synth_fault_info *info = np_synth_fault_info(fault->id);
	np_out_lit(out, "{\"fault\": \"");
	np_out_str(out, info->name);
	np_out_char(out, '"');
	if (fault->b >= 0) {
		np_out_lit(out, ", \"link\": [");
		np_out_i64(out, fault->a);
		np_out_lit(out, ", ");
		np_out_i64(out, fault->b);
		np_out_char(out, ']');
	} else if (fault->a >= 0) {
		field(out, np_synth_fault_scope(fault->id), fault->a);
	}
}

static enum np_status put_cost(struct np_out *out, const struct np_synth_plan *plan, size_t i,
                               struct np_err *err)
{
	const struct np_synth_fault *fault = &plan->options.faults[i];
	struct np_synth_plan without;
	struct cost cost = {0};
	NP_TRY(plan_without(plan, i, &without, err));
	cost.step = (plan->end_ns - plan->first_ns) - (without.end_ns - without.first_ns);
	sum_late(plan, &without, fault, &cost);
	np_synth_plan_release(&without);
	int64_t steps = plan->options.steps;
	put_scope(out, fault);
	field(out, "step_cost_ns", cost.step / steps);
	field(out, "late_ns", cost.late / steps);
	field(out, "late_more_ns", cost.late_more / steps);
	field(out, "carried_ns", cost.carried / steps);
	field(out, "wait_ns", cost.wait / steps);
	field(out, "transfer_ns", cost.transfer / steps);
	np_out_char(out, '}');
	return NP_OK;
}

/* ── clocks ── */

static void put_hosts(struct np_out *out, const struct np_synth_plan *plan)
{
	uint32_t hosts = (plan->options.ranks + plan->cards - 1) / plan->cards;
	np_out_lit(out, ",\n\"hosts\": [");
	for (uint32_t host = 0; host < hosts; host++) {
		struct np_synth_run run = {.plan = plan, .rank = host * plan->cards, .host = host};
		np_synth_run_clock(&run, 0);
		np_out_str(out, host ? ",\n {\"host\": " : "\n {\"host\": ");
		np_out_u64(out, host);
		np_out_lit(out, ", \"name\": \"node");
		np_out_u64(out, host);
		np_out_char(out, '"');
		field(out, "offset_ns", run.shift_ns);
		field(out, "drift_ppb", run.drift_ppb);
		np_out_char(out, '}');
	}
	np_out_char(out, ']');
}

/* ── collectives ── */

enum column { STEP, LAST_RANK, LATE, WAIT, TRANSFER, COLUMNS };

static int64_t value_of(const struct np_synth_instance *instance, enum column column)
{
	switch (column) {
	case STEP:
		return instance->step;
	case LAST_RANK:
		return instance->last_rank;
	case LATE:
		return instance->late_ns;
	case WAIT:
		return instance->wait_ns;
	default:
		return instance->transfer_ns;
	}
}

static void put_instances(struct np_out *out, const struct np_synth_plan *plan, size_t from,
                          size_t to)
{
	static const char *const keys[COLUMNS] = {"step", "last_rank", "late_ns", "wait_ns",
	                                          "transfer_ns"};
	np_out_lit(out, ",\n  \"kind\": [");
	for (size_t i = from; i < to; i++) {
		np_out_str(out, i > from ? ", \"" : "\"");
		np_out_str(out, np_synth_colls[plan->instances.v[i].coll].op);
		np_out_char(out, '"');
	}
	for (int column = 0; column < COLUMNS; column++) {
		np_out_lit(out, "],\n  \"");
		np_out_str(out, keys[column]);
		np_out_lit(out, "\": [");
		for (size_t i = from; i < to; i++) {
			if (i > from)
				np_out_lit(out, ", ");
			np_out_i64(out, value_of(&plan->instances.v[i], (enum column)column));
		}
	}
	np_out_char(out, ']');
}

static void put_groups(struct np_out *out, const struct np_synth_plan *plan)
{
	np_out_lit(out, ",\n\"groups\": [");
	for (size_t g = 0, at = 0; g < plan->n_groups; g++) {
		const struct np_synth_group *group = &plan->groups[g];
		char name[NP_SYNTH_GROUP_NAME];
		size_t from = at;
		while (at < plan->instances.n && plan->instances.v[at].group == g)
			at++;
		np_synth_group_name(plan, group, name);
		np_out_str(out, g ? ",\n {\"name\": \"" : "\n {\"name\": \"");
		np_out_str(out, name);
		np_out_lit(out, "\", \"hash\": \"");
		np_out_u64(out, group->hash);
		np_out_lit(out, "\", \"label\": \"");
		np_out_str(out, group->label);
		np_out_lit(out, "\", \"ranks\": [");
		np_out_u64(out, group->first);
		np_out_lit(out, ", ");
		np_out_u64(out, group->stride);
		np_out_lit(out, ", ");
		np_out_u64(out, group->count);
		np_out_char(out, ']');
		put_instances(out, plan, from, at);
		np_out_char(out, '}');
	}
	np_out_char(out, ']');
}

enum np_status np_synth_truth_cluster(struct np_out *out, const struct np_synth_plan *plan,
                                      struct np_err *err)
{
	np_out_lit(out, "\"run\": {\"first_ns\": ");
	np_out_i64(out, plan->first_ns);
	field(out, "end_ns", plan->end_ns);
	field(out, "step_ns", (plan->end_ns - plan->first_ns) / plan->options.steps);
	np_out_lit(out, "},\n\"costs\": [");
	for (size_t i = 0; i < plan->options.n_faults; i++) {
		np_out_str(out, i ? ",\n " : "");
		NP_TRY(put_cost(out, plan, i, err));
	}
	np_out_char(out, ']');
	put_hosts(out, plan);
	put_groups(out, plan);
	np_out_lit(out, ",\n");
	return NP_OK;
}
