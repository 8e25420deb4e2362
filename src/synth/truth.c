#include "synth/truth.h"

#include "synth/write_comm_log.h"

static void field(struct np_out *out, const char *key, int64_t value)
{
	np_out_lit(out, ", \"");
	np_out_str(out, key);
	np_out_lit(out, "\": ");
	np_out_i64(out, value);
}

static void put_fault(struct np_out *out, const struct np_synth_plan *plan,
                      const struct np_synth_fault *fault)
{
	const struct np_synth_fault_info *info = np_synth_fault_info(fault->id);
	np_out_lit(out, "{\"fault\": \"");
	np_out_str(out, info->name);
	np_out_lit(out, "\", \"code\": \"");
	np_out_str(out, info->code);
	np_out_char(out, '"');
	if (fault->id == NP_SYNTH_SLOW_LINK) {
		np_out_lit(out, ", \"ranks\": null, \"link\": [");
		np_out_i64(out, fault->a);
		np_out_lit(out, ", ");
		np_out_i64(out, fault->b);
		np_out_lit(out, "]}");
		return;
	}
	int64_t rank = fault->a;
	const char *scope = np_synth_fault_scope(fault->id);
	if (*scope != 'r') {
		np_out_lit(out, ", \"ranks\": null");
		if (rank >= 0)
			field(out, scope, rank);
		np_out_char(out, '}');
		return;
	}
	if (rank < 0 && (fault->id == NP_SYNTH_MIXED_BATCH || fault->id == NP_SYNTH_MIXED_FORMAT))
		rank = (int64_t)plan->options.ranks - 1;
	if (rank < 0 && fault->id == NP_SYNTH_RANK_UNKNOWN)
		rank = 0;
	if (rank < 0) {
		np_out_lit(out, ", \"ranks\": null}");
		return;
	}
	np_out_lit(out, ", \"ranks\": [");
	np_out_i64(out, rank);
	np_out_lit(out, "]}");
}

void np_synth_truth_begin(struct np_out *out, const struct np_synth_plan *plan)
{
	const struct np_synth_options *options = &plan->options;
	np_out_lit(out, NP_SYNTH_TRUTH_HEAD ", \"options\": {\"seed\": ");
	np_out_u64(out, options->seed);
	field(out, "ranks", options->ranks);
	field(out, "steps", options->steps);
	field(out, "layers", options->layers);
	field(out, "ops", options->ops);
	field(out, "tp", plan->tp);
	field(out, "dp", plan->dp);
	if (options->layout) {
		field(out, "pp", plan->pp);
		field(out, "ep", plan->ep);
		field(out, "micro_batches", plan->micro_batches);
		field(out, "ranks_per_host", plan->cards);
		field(out, "lite", options->lite);
	}
	field(out, "level", options->level);
	field(out, "start_epoch_ns", options->start_epoch_ns);
	np_out_lit(out, ", \"formats\": [");
	static const char *const names[] = {"text", "db", "msprof"};
	for (int i = 0, n = 0; i < 3; i++) {
		if (!(options->formats >> i & 1))
			continue;
		np_out_str(out, n++ ? ", \"" : "\"");
		np_out_str(out, names[i]);
		np_out_char(out, '"');
	}
	np_out_lit(out, "]},\n\"faults\": [");
	for (size_t i = 0; i < options->n_faults; i++) {
		np_out_str(out, i ? ",\n " : "");
		put_fault(out, plan, &options->faults[i]);
	}
	np_out_lit(out, "],\n");
}

/* Kernels by type and core: rows of np_synth_ops that share both go together. */
static void put_types(struct np_out *out, const struct np_synth_run *run)
{
	int64_t count[NP_OPS] = {0}, total[NP_OPS] = {0};
	bool first = true;
	for (size_t i = 0; i < run->order.n; i++) {
		const struct np_synth_item *item = &run->items.v[run->order.v[i]];
		if (item->kind != NP_ITEM_KERNEL)
			continue;
		const struct np_synth_op *op = &np_synth_ops[item->op];
		uint32_t k = 0;
		while (np_synth_ops[k].core != op->core ||
		       !np_str_is(np_str_of(np_synth_ops[k].type), op->type))
			k++;
		count[k]++;
		total[k] += item->dur_ns;
	}
	np_out_lit(out, ", \"types\": [");
	for (uint32_t k = 0; k < NP_OPS; k++) {
		if (count[k] == 0)
			continue;
		np_out_str(out, first ? "{\"type\": \"" : ", {\"type\": \"");
		np_out_str(out, np_synth_ops[k].type);
		np_out_lit(out, "\", \"core\": \"");
		np_out_str(out, np_synth_core_name(np_synth_ops[k].core));
		np_out_char(out, '"');
		field(out, "count", count[k]);
		field(out, "total_ns", total[k]);
		np_out_char(out, '}');
		first = false;
	}
	np_out_char(out, ']');
}

void np_synth_truth_rank(struct np_out *out, const struct np_synth_run *run, const char *directory)
{
	np_out_str(out, run->rank ? ",\n {\"rank\": " : "\n {\"rank\": ");
	np_out_u64(out, run->rank);
	field(out, "device", run->device);
	field(out, "host", run->host);
	np_out_lit(out, ", \"directory\": ");
	if (directory)
		np_out_json(out, directory);
	else
		np_out_lit(out, "null");
	field(out, "kernels", (int64_t)run->n_kernels);
	field(out, "collectives", (int64_t)run->n_comms);
	if (run->plan->options.comm_log) {
		uint64_t calls, bytes;
		np_synth_comm_log_truth(run, &calls, &bytes);
		field(out, "comm_log_calls", (int64_t)calls);
		field(out, "comm_log_bytes", (int64_t)bytes);
	}
	if (run->stalls.n > 0) {
		field(out, "stalls", (int64_t)run->stalls.n);
		field(out, "stall_ns", np_synth_stall_sum(run));
	}
	put_types(out, run);
	np_out_lit(out, ", \"steps\": [");
	for (uint32_t s = 0; s < run->plan->options.steps; s++) {
		const struct np_synth_step *step = &run->steps[s];
		np_out_str(out, s ? ",\n  {\"step\": " : "\n  {\"step\": ");
		np_out_u64(out, step->id);
		field(out, "host_start_ns", step->host_start_ns);
		field(out, "host_end_ns", step->host_end_ns);
		field(out, "start_ns", step->start_ns);
		field(out, "end_ns", step->end_ns);
		field(out, "kernels", (int64_t)step->kernels);
		field(out, "collectives", (int64_t)step->collectives);
		field(out, "computing_ns", step->computing_ns);
		field(out, "communication_ns", step->communication_ns);
		field(out, "not_overlapped_ns", step->not_overlapped_ns);
		field(out, "free_ns", step->free_ns);
		field(out, "stage_ns", step->stage_ns);
		field(out, "free_csv_ns", step->free_csv_ns);
		field(out, "stage_csv_ns", step->stage_csv_ns);
		field(out, "preparing_ns", step->preparing_ns);
		if (run->plan->options.layout) {
			field(out, "bubble_ns", step->bubble_ns);
			field(out, "true_start_ns", step->true_start_ns);
			field(out, "true_end_ns", step->true_end_ns);
		}
		np_out_char(out, '}');
	}
	np_out_lit(out, "]}");
}

void np_synth_truth_end(struct np_out *out)
{
	np_out_lit(out, "]}\n");
}
