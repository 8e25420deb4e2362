#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "cmd/progress.h"
#include "collect/comm_against.h"
#include "collect/comm_export.h"
#include "collect/comm_tell.h"

struct options {
	const char *stage, *op, *group, *rank, *layer, *export, *against;
	double bucket;
	bool timeline, each_group;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"stage", 0, NP_OPT_STRING, AT(stage), "NAME", "only this stage; other: outside of all"},
	{"op", 0, NP_OPT_STRING, AT(op), "NAME", "only this operation: all_reduce, …"},
	{"group", 0, NP_OPT_STRING, AT(group), "NAME",
         "only this group: its ranks, communicator or @hash"},
	{"rank", 0, NP_OPT_STRING, AT(rank), "N", "only this rank"},
	{"layer", 0, NP_OPT_STRING, AT(layer), "WHICH",
         "torch, hccl or both (default: torch where a process has it)"},
	{"each-group", 0, NP_OPT_FLAG, AT(each_group), NULL,
         "a row for each group, not for all of one size"},
	{"against", 0, NP_OPT_STRING, AT(against), "CAPTURE",
         "compare with what the device recorded in a capture of the same run"},
	{"export", 0, NP_OPT_STRING, AT(export), "FORMAT",
         "all records in order of time, jsonl or csv, to -o or stdout"},
	{"timeline", 0, NP_OPT_FLAG, AT(timeline), NULL, "calls and bytes over time"},
	{"bucket", 0, NP_OPT_DOUBLE, AT(bucket), "SECONDS",
         "length of a row of the timeline (default: 60 rows at most)"},
};

static enum np_status comm_options(const struct np_call *call, struct np_clog_options *out,
                                   struct np_err *err)
{
	static const char *const layers[] = {"torch", "hccl", "both"};
	const struct options *own = call->options;
	*out = (struct np_clog_options){.stage = own->stage,
	                                .op = own->op,
	                                .group = own->group,
	                                .rank = -1,
	                                .timeline = own->timeline || own->bucket > 0,
	                                .each_group = own->each_group,
	                                .threads = (unsigned)call->common->jobs};
	if (own->op && !np_clog_op_find(np_str_of(own->op)))
		return np_err_set(err, NP_E_USAGE, NULL, "unknown operation '%s'", own->op);
	if (own->rank && (!np_str_to_i64(np_str_of(own->rank), &out->rank) || out->rank < 0))
		return np_err_set(err, NP_E_USAGE, NULL, "--rank wants a number, got '%s'",
		                  own->rank);
	if (own->bucket < 0 || own->bucket > 1e6)
		return np_err_set(err, NP_E_USAGE, NULL, "--bucket wants seconds, up to 1e6");
	out->bucket_ns = (np_ns)(own->bucket * 1e9);
	for (size_t i = 0; own->layer && i < sizeof layers / sizeof *layers; i++)
		if (strcmp(own->layer, layers[i]) == 0)
			out->show = NP_COMM_SHOW_TORCH + (unsigned)i;
	if (own->layer && out->show == NP_COMM_SHOW_AUTO)
		return np_err_set(err, NP_E_USAGE, NULL, "--layer wants torch, hccl or both");
	return NP_OK;
}

static enum np_status tell(const struct np_call *call, const struct np_clog_options *comm,
                           const struct np_clog_found *found, struct np_report *report,
                           struct np_err *err)
{
	struct np_clog_sum sum;
	const struct options *own = call->options;
	enum np_status status = np_clog_sum_up(found, comm, &sum, err);
	if (status == NP_OK)
		status = np_clog_judge(&sum, found, report, err);
	if (status == NP_OK && own->against)
		status = np_clog_against(&sum, own->against, report, err);
	if (status == NP_OK)
		status = np_clog_tell(&sum, report, err);
	np_clog_sum_release(&sum);
	return status;
}

static enum np_status fill(const struct np_call *call, struct np_report *report, struct np_err *err)
{
	struct np_clog_options comm;
	struct np_clog_found found;
	NP_TRY(comm_options(call, &comm, err));
	for (int i = 0; i < call->argc; i++)
		np_report_input(report, call->argv[i]);
	enum np_status status = np_clog_find(call->argv, (size_t)call->argc, &found, err);
	struct np_progress_line *line = np_progress_show(call->common);
	comm.progress = np_progress_of(line);
	if (status == NP_OK)
		status = tell(call, &comm, &found, report, err);
	np_progress_hide(line);
	np_clog_found_release(&found);
	return status;
}

/* ── --export ── */

static enum np_status export_to(FILE *file, const struct np_call *call,
                                struct np_clog_exported *result, struct np_err *err)
{
	const struct options *own = call->options;
	struct np_clog_options comm;
	struct np_clog_found found;
	bool csv = strcmp(own->export, "csv") == 0;
	NP_TRY(comm_options(call, &comm, err));
	enum np_status status = np_clog_find(call->argv, (size_t)call->argc, &found, err);
	if (status == NP_OK)
		status = np_clog_export(&found, &comm, csv ? NP_COMM_CSV : NP_COMM_JSONL, file,
		                        result, err);
	if (status == NP_OK && result->unreadable) /* the text goes with the arena */
		np_cmd_complain("", result->first_problem);
	np_clog_found_release(&found);
	return status;
}

static enum np_status export_all(const struct np_call *call, struct np_clog_exported *result,
                                 struct np_err *err)
{
	const struct options *own = call->options;
	struct np_outfile file;
	if (strcmp(own->export, "csv") != 0 && strcmp(own->export, "jsonl") != 0)
		return np_err_set(err, NP_E_USAGE, NULL, "--export wants jsonl or csv");
	if (!call->common->output)
		return export_to(stdout, call, result, err);
	NP_TRY(np_outfile_begin(&file, call->common->output, err));
	enum np_status status = export_to(file.file, call, result, err);
	if (status == NP_OK)
		return np_outfile_commit(&file, err);
	np_outfile_abort(&file);
	return status;
}

static int run_export(const struct np_call *call)
{
	struct np_err err = {0};
	struct np_clog_exported result = {.rows = 0};
	if (export_all(call, &result, &err) != NP_OK)
		return np_cmd_fail(&err);
	if (call->common->output && !call->common->quiet)
		(void)fprintf(stderr, "npuprof: %llu records\n", (unsigned long long)result.rows);
	return result.unreadable ? NP_EXIT_INPUT : NP_EXIT_OK;
}

static int run(const struct np_call *call)
{
	struct np_err err = {0};
	if (((const struct options *)call->options)->export)
		return run_export(call);
	struct np_report *report = np_report_new(call->cmd->name);
	enum np_status status = report ? fill(call, report, &err) : np_err_nomem(&err);
	/* steps and ranks may be thousands: a terminal gets the first of them */
	const struct np_finish how = {.max_rows = 24};
	int exit_code = status == NP_OK ? np_cmd_finish_as(call, report, &how) : np_cmd_fail(&err);
	np_report_free(report);
	return exit_code;
}

static const char *const examples[] = {
	"npuprof comm out/run_20250601",
	"npuprof comm out/run_20250601 --stage dit --op all_to_all",
	"npuprof comm out/run_20250601 --against out/run_20250601/prof",
	"npuprof comm out/run_20250601 --export csv -o calls.csv",
	"npuprof comm out/run_20250601/comm --layer hccl --each-group --json",
	NULL,
};

const struct np_cmd np_cmd_comm = {
	.name = "comm",
	.summary = "who sent what, in which stage: logs of the collective recorder",
	.words = "LOG…",
	.min_words = 1,
	.max_words = 1 << 20,
	.detail = "LOG is a run of `npuprof run --collectives`, a directory of logs, or a log "
		  "(*.nplog).\n"
		  "Sizes are the payload of one rank; moved~ is an estimate from it, no counter of "
		  "HCCL.\n"
		  "Exit status: 0 done, 2 no such path or no log in it, 4 a log could not be read "
		  "(the\nrest is still told).",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
