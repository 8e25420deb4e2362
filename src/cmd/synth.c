#include <stdio.h>
#include <string.h>

#include "cmd/cmd.h"
#include "synth/synth.h"

struct options {
	uint64_t ranks, steps, layers, ops, tp, pp, dp, ep, micro, comm_ops, cards;
	const char *format, *start, *seed, *level; /* 0 is a value of these two */
	struct np_opt_list faults;
	bool force, list_faults, set_mtimes, lite, comm_log;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"ranks", 0, NP_OPT_UINT, AT(ranks), "N", "ranks (default: 2)"},
	{"steps", 0, NP_OPT_UINT, AT(steps), "N", "recorded steps (default: 2)"},
	{"layers", 0, NP_OPT_UINT, AT(layers), "N", "layers per step (default: 4)"},
	{"ops", 0, NP_OPT_UINT, AT(ops), "N", "kernels per layer (default: 12)"},
	{"tp", 0, NP_OPT_UINT, AT(tp), "N",
         "ranks of a tensor-parallel group (default: 2 if even)"},
	{"pp", 0, NP_OPT_UINT, AT(pp), "N", "pipeline stages (default: 1)"},
	{"dp", 0, NP_OPT_UINT, AT(dp), "N", "data-parallel replicas (default: what is left)"},
	{"ep", 0, NP_OPT_UINT, AT(ep), "N",
         "ranks of an expert-parallel group, divides dp (default: 1)"},
	{"micro-batches", 0, NP_OPT_UINT, AT(micro), "N", "per step (default: as many as stages)"},
	{"ranks-per-host", 0, NP_OPT_UINT, AT(cards), "N", "1 to 8 (default: 8)"},
	{"lite", 0, NP_OPT_FLAG, AT(lite), NULL,
         "only the small files that an analysis across ranks reads"},
	{"comm-log", 0, NP_OPT_FLAG, AT(comm_log), NULL,
         "also what the collective recorder would have left, in DIR/comm"},
	{"comm-ops", 0, NP_OPT_UINT, AT(comm_ops), "N",
         "collectives of a rank per step, at least; sets the layers"},
	{"format", 'f', NP_OPT_STRING, AT(format), "LIST",
         "text, db, msprof or several (default: text)"},
	{"level", 0, NP_OPT_STRING, AT(level), "N", "profiler level 0, 1 or 2 (default: 1)"},
	{"seed", 0, NP_OPT_STRING, AT(seed), "N",
         "the same seed gives the same bytes (default: 1)"},
	{"start-epoch", 0, NP_OPT_STRING, AT(start), "SECONDS", "when the capture began"},
	{"set-mtimes", 0, NP_OPT_FLAG, AT(set_mtimes), NULL,
         "give files the time of the capture's end"},
	{"fault", 0, NP_OPT_LIST, AT(faults), "NAME[=ARG]",
         "plant a fault; may be given several times"},
	{"list-faults", 0, NP_OPT_FLAG, AT(list_faults), NULL,
         "tell all faults and what they plant"},
	{"force", 0, NP_OPT_FLAG, AT(force), NULL, "write over an earlier result of synth"},
};

static const struct np_column fault_columns[] = {
	{"fault", "", NP_COL_TEXT, "name for --fault"},
	{"argument", "", NP_COL_TEXT,
         "R a rank, [R] a rank or left out, A-B two ranks, H a host, S a stage"},
	{"code", "", NP_COL_TEXT, "finding that a checker should report"},
	{"plants", "", NP_COL_TEXT, "what it does"},
};

static void list_faults(struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "faults", "Faults", fault_columns);
	for (enum np_synth_fault_id id = 0; id < NP_SYNTH_FAULTS; id++) {
		const struct np_synth_fault_info *info = np_synth_fault_info(id);
		np_cell_cstr(table, info->name);
		np_cell_cstr(table, *info->argument ? info->argument : NULL);
		np_cell_cstr(table, *info->code ? info->code : NULL);
		np_cell_cstr(table, info->help);
	}
}

static void take(uint64_t given, uint32_t *out)
{
	if (given)
		*out = given > UINT32_MAX ? UINT32_MAX : (uint32_t)given;
}

static enum np_status fill(const struct options *own, struct np_synth_options *out,
                           struct np_synth_fault *faults, struct np_err *err)
{
	double start = 0;
	np_synth_options_init(out);
	take(own->ranks, &out->ranks);
	take(own->steps, &out->steps);
	take(own->layers, &out->layers);
	take(own->ops, &out->ops);
	take(own->tp, &out->tp);
	take(own->pp, &out->pp);
	take(own->dp, &out->dp);
	take(own->ep, &out->ep);
	take(own->micro, &out->micro_batches);
	take(own->comm_ops, &out->comm_ops);
	take(own->cards, &out->ranks_per_host);
	out->lite = own->lite;
	out->comm_log = own->comm_log;
	/* the sizes of a layout give the number of ranks */
	uint64_t product = (own->tp ? own->tp : 1) * (own->pp ? own->pp : 1) * own->dp;
	if (own->ranks == 0 && own->dp < UINT32_MAX && own->tp < 65536 && own->pp < 65536)
		take(product, &out->ranks);
	uint64_t level = 0;
	if (own->seed && !np_str_to_u64(np_str_of(own->seed), &out->seed))
		return np_err_set(err, NP_E_USAGE, NULL, "--seed wants a number, got '%s'",
		                  own->seed);
	if (own->level && (!np_str_to_u64(np_str_of(own->level), &level) || level > 2))
		return np_err_set(err, NP_E_USAGE, NULL, "--level wants 0, 1 or 2, got '%s'",
		                  own->level);
	if (own->level)
		out->level = (int)level;
	out->force = own->force;
	out->set_mtimes = own->set_mtimes;
	if (own->format)
		NP_TRY(np_synth_parse_formats(own->format, &out->formats, err));
	if (own->start) {
		if (!np_str_to_double(np_str_of(own->start), &start) || start < 0 || start > 4e9)
			return np_err_set(err, NP_E_USAGE, NULL,
			                  "--start-epoch wants seconds, got '%s'", own->start);
		out->start_epoch_ns = (np_ns)(start * 1e9);
	}
	for (size_t i = 0; i < own->faults.n; i++)
		NP_TRY(np_synth_parse_fault(own->faults.v[i], &faults[i], err));
	out->faults = faults;
	out->n_faults = own->faults.n;
	return NP_OK;
}

static const struct np_column written_columns[] = {
	{"directories", "", NP_COL_INT, "captures written"},
	{"files", "", NP_COL_INT, "files written"},
	{"size_bytes", "bytes", NP_COL_BYTES, "their size"},
	{"kernels", "", NP_COL_INT, "kernels over all ranks"},
	{"collectives", "", NP_COL_INT, "collectives over all ranks"},
};

static enum np_status write_set(const struct np_call *call, struct np_report *report,
                                struct np_err *err)
{
	struct np_synth_options synth;
	struct np_synth_fault faults[NP_OPT_MAX_LIST];
	struct np_synth_stats stats = {0};
	if (call->argc == 0)
		return np_err_set(err, NP_E_USAGE, NULL, "no DIR was given (npuprof help synth)");
	NP_TRY(fill(call->options, &synth, faults, err));
	NP_TRY(np_synth_write(call->argv[0], &synth, &stats, err));
	struct np_table *table = NP_REPORT_TABLE(report, "written", "Written", written_columns);
	np_cell_int(table, (int64_t)stats.directories);
	np_cell_int(table, (int64_t)stats.files);
	np_cell_int(table, (int64_t)stats.bytes);
	np_cell_int(table, (int64_t)stats.kernels);
	np_cell_int(table, (int64_t)stats.collectives);
	np_report_note(report, "the answers are in %s/truth.json", call->argv[0]);
	return NP_OK;
}

static int run(const struct np_call *call)
{
	const struct options *own = call->options;
	struct np_err err = {0};
	struct np_report *report = np_report_new("synth");
	enum np_status status = report ? NP_OK : np_err_nomem(&err);
	int exit_code = NP_EXIT_INPUT;
	if (report && own->list_faults)
		list_faults(report);
	else if (report)
		status = write_set(call, report, &err);
	if (status == NP_OK)
		exit_code = np_cmd_finish(call, report);
	else if (status == NP_E_RANGE || status == NP_E_LIMIT || status == NP_E_EXISTS)
		(void)np_cmd_fail(&err), exit_code = NP_EXIT_USAGE;
	else
		exit_code = np_cmd_fail(&err);
	np_report_free(report);
	return exit_code;
}

static const char *const examples[] = {
	"npuprof synth demo --ranks 8 --format text,db --fault slow-rank=5",
	"npuprof synth demo --lite --tp 8 --pp 4 --dp 32 --fault slow-node=3",
	"npuprof synth --list-faults",
	NULL,
};

const struct np_cmd np_cmd_synth = {
	.name = "synth",
	.summary = "make captures of any size with planted faults and known answers",
	.words = "DIR",
	.max_words = 1,
	.detail = "--format tells the formats of the capture here; the result is text, or JSON "
		  "with --json.\n"
		  "The same options give the same bytes. DIR/truth.json holds the planted faults "
		  "and the\n"
		  "true totals of every rank and step.",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
