/* What is odd about a set of collective logs. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "collect/comm_tell.h"

enum {
	PIECES = 12,        /* of evidence */
	OTHER_PERCENT = 20, /* R24: more than that outside of all stages is too much */
	LAYERS_PERCENT = 5, /* so much more below is worth a word */
	MARK = 42,
};

/* ── what could not be read ── */

static void judge_files(const struct np_clog_sum *sum, const struct np_clog_found *found,
                        struct np_report *report)
{
	struct np_finding *finding = NULL;
	for (size_t i = 0; i < sum->files.n; i++) {
		const struct np_clog_file *file = &sum->files.v[i];
		if (!file->problem || file->empty)
			continue;
		if (!finding)
			finding = np_report_finding(report, "COMM_LOG_UNREADABLE",
			                            sum->readable ? NP_WARNING : NP_ERROR,
			                            "some logs could not be read");
		report->exit_code = 4;
		np_finding_evidence(finding, file->path, NULL, NULL, "%s", file->problem);
	}
	for (size_t i = 0; i < found->problems.n; i++) {
		if (!finding)
			finding = np_report_finding(report, "COMM_LOG_UNREADABLE", NP_WARNING,
			                            "some logs could not be read");
		report->exit_code = 4;
		np_finding_evidence(finding, found->problems.v[i].path, NULL, NULL, "%s",
		                    found->problems.v[i].text);
	}
	if (finding)
		np_finding_detail(finding, "The others were read; sums lack what these hold.");
}

typedef uint64_t count_of(const struct np_clog_file *file);

static uint64_t overwritten_of(const struct np_clog_file *file)
{
	return file->overwritten;
}

static uint64_t lost_of(const struct np_clog_file *file)
{
	return file->lost;
}

static uint64_t damaged_of(const struct np_clog_file *file)
{
	return file->cut_off + file->damaged + file->implausible + file->faulted;
}

static uint64_t no_room_of(const struct np_clog_file *file)
{
	return file->no_room;
}

static uint64_t sum_of(const struct np_clog_sum *sum, count_of *count, uint64_t *files)
{
	uint64_t all = 0;
	*files = 0;
	for (size_t i = 0; i < sum->files.n; i++) {
		uint64_t n = sum->files.v[i].problem ? 0 : count(&sum->files.v[i]);
		np_clog_add(&all, n);
		*files += n > 0;
	}
	return all;
}

static void put_files(const struct np_clog_sum *sum, count_of *count, struct np_finding *finding)
{
	size_t told = 0;
	for (size_t i = 0; i < sum->files.n && told < PIECES; i++) {
		const struct np_clog_file *file = &sum->files.v[i];
		uint64_t n = file->problem ? 0 : count(file);
		if (n == 0)
			continue;
		told++;
		np_finding_evidence(finding, file->path, NULL, NULL, "%" PRIu64, n);
	}
}

static void judge_records(const struct np_clog_sum *sum, struct np_report *report)
{
	uint64_t files, n = sum_of(sum, overwritten_of, &files);
	struct np_finding *finding;
	if (n) {
		finding = np_report_finding(report, "COMM_OVERWRITTEN", NP_WARNING,
		                            "the oldest %" PRIu64 " records of %" PRIu64
		                            " logs were overwritten: the rings were full",
		                            n, files);
		np_finding_detail(finding, "All sums are of the last records only, and ranks with "
		                           "more calls lost more of them.");
		np_finding_advice(finding,
		                  "give the recorder room for more (NPUPROF_COMM_CAPACITY), "
		                  "or run fewer steps");
		put_files(sum, overwritten_of, finding);
	}
	n = sum_of(sum, lost_of, &files);
	if (n) {
		finding = np_report_finding(report, "COMM_LOST", NP_WARNING,
		                            "%" PRIu64 " calls could not be recorded", n);
		np_finding_detail(finding, "The recorder says so itself: the disk was full, or the "
		                           "call came from a signal handler.");
		put_files(sum, lost_of, finding);
	}
	n = sum_of(sum, damaged_of, &files);
	if (n) {
		finding = np_report_finding(
			report, "COMM_DAMAGED", NP_WARNING,
			"%" PRIu64 " records of %" PRIu64 " logs are missing or damaged", n, files);
		np_finding_detail(finding,
		                  "Cut off with the end of the file, without their number, "
		                  "or with values that cannot be. The rest was read.");
		np_finding_advice(finding, "copy the logs again and compare their sizes");
		put_files(sum, damaged_of, finding);
	}
	n = sum_of(sum, no_room_of, &files);
	if (n) {
		finding = np_report_finding(
			report, "COMM_NAMES_FULL", NP_INFO,
			"%" PRIu64 " records have no name of their group or stage", n);
		np_finding_detail(finding, "The log's room for names was used up; such a name is "
		                           "shown as (no room).");
		put_files(sum, no_room_of, finding);
	}
}

static void judge_ends(const struct np_clog_sum *sum, struct np_report *report)
{
	struct np_finding *finding = NULL;
	size_t n = 0, told = 0;
	for (size_t i = 0; i < sum->files.n; i++)
		n += !sum->files.v[i].problem && !sum->files.v[i].closed;
	if (n == 0)
		return;
	finding = np_report_finding(report, "COMM_NOT_CLOSED", NP_INFO,
	                            "%zu of %zu logs were not closed: killed, or still running", n,
	                            sum->readable);
	np_finding_detail(finding, "Nothing that was recorded is lost by that. The last steps of "
	                           "such ranks may be incomplete.");
	for (size_t i = 0; i < sum->files.n && told < PIECES; i++) {
		const struct np_clog_file *file = &sum->files.v[i];
		if (file->problem || file->closed)
			continue;
		told++;
		np_finding_evidence(finding, file->path, NULL, NULL, "%" PRIu64 " records",
		                    file->records);
	}
}

/* ── stages (R24, R26) ── */

static void judge_anchors(const struct np_clog_found *found, struct np_report *report)
{
	for (size_t i = 0; i < found->anchors.n; i++) {
		const struct np_clog_anchor *anchor = &found->anchors.v[i];
		struct np_finding *finding =
			np_report_finding(report, "COMM_ANCHOR_NOT_FOUND", NP_WARNING,
		                          "the anchor %s was not found", anchor->target);
		np_finding_detail(finding,
		                  "Stage %s has no traffic for that reason; what belongs to it "
		                  "is under other (R24).",
		                  anchor->stage);
		np_finding_evidence(finding, NULL, NULL, NULL, NP_N("%zu processes: %s"),
		                    anchor->processes, anchor->reason);
		if (*anchor->near)
			np_finding_advice(finding, "names like it: %s", anchor->near);
	}
}

static void judge_other(const struct np_clog_sum *sum, const struct np_clog_found *found,
                        struct np_report *report)
{
	uint64_t other = 0, all = 0;
	bool stages = found->anchors.n > 0;
	for (size_t i = 0; i < sum->cells.n; i++) {
		const struct np_clog_cell *cell = &sum->cells.v[i];
		stages = stages || (cell->counts && cell->stage);
		if (!np_clog_is_shown(cell) || sum->files.v[cell->file].beside)
			continue;
		np_clog_add(&all, cell->bytes);
		if (cell->stage == 0)
			np_clog_add(&other, cell->bytes);
	}
	if (!stages) {
		if (all)
			np_report_note(report,
			               "no stage has an anchor, so all traffic is under "
			               "other (npuprof run … --stage NAME=module:Class.forward)");
		return;
	}
	double share = all ? (double)other / (double)all : 0;
	if (share * 100 <= OTHER_PERCENT)
		return;
	struct np_finding *finding =
		np_report_finding(report, "COMM_STAGE_OTHER", NP_WARNING,
	                          "%.1f %% of the payload is outside of all stages", share * 100);
	np_finding_detail(finding, "An anchor is the model's entry of its stage; when another "
	                           "function is called, its traffic falls to other (R24).");
	np_finding_advice(finding, "look for the entry that is really called: of a text encoder it "
	                           "often is encode_ids or encode_prompt, of a VAE decode_latent");
	for (size_t i = 0; i < found->anchors.n && i < PIECES; i++)
		np_finding_evidence(finding, NULL, NULL, NULL,
		                    NP_N("not found: %s (names like it: %s)"),
		                    found->anchors.v[i].target,
		                    *found->anchors.v[i].near ? found->anchors.v[i].near : "-");
}

static bool is_encoder(np_str name)
{
	static const char *const parts[] = {"text", "encod", "prompt", "clip", "t5", "token"};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (np_str_icontains(name, np_str_of(parts[i])))
			return true;
	return false;
}

struct stage_requests {
	uint32_t first, last; /* requests with traffic */
	uint64_t calls;
};

static void judge_one_stage(const struct np_clog_sum *sum, uint32_t stage, uint32_t requests,
                            const struct stage_requests *of, struct np_report *report)
{
	np_str name = np_intern_get(&sum->strings, stage);
	bool encoder = is_encoder(name);
	struct np_finding *finding = np_report_finding(
		report, "COMM_FIRST_REQUEST_ONLY", encoder ? NP_WARNING : NP_INFO,
		"stage %.*s has traffic in the first request only, of %u", NP_FMT(name), requests);
	np_finding_detail(finding,
	                  "The same prompt gives the same output of the text encoder, which "
	                  "is then taken from a cache: its traffic is that of one request, "
	                  "and is missing from the others (R26).");
	np_finding_advice(finding, "send another prompt with every request, and record again");
	np_finding_evidence(finding, NULL, NULL, NULL, NP_N("request %u: %" PRIu64 " calls"),
	                    of->first, of->calls);
}

/* R26. Requests without any traffic of a stage do not count, nor what comes before the first. */
static bool judge_requests(const struct np_clog_sum *sum, struct np_report *report)
{
	struct stage_requests *of = np_calloc(sum->strings.strings.n, sizeof *of);
	uint32_t first = NP_COMM_NO_U32, last = 0, n = 0, previous = NP_COMM_NO_U32;
	if (!of)
		return false;
	for (size_t i = 0; i < sum->slices.n; i++) {
		const struct np_clog_slice *slice = &sum->slices.v[i];
		if (slice->request == NP_COMM_NO_U32 || slice->stage == 0 || slice->calls == 0)
			continue;
		struct stage_requests *stage = &of[slice->stage];
		if (stage->calls == 0)
			stage->first = slice->request;
		stage->calls += slice->calls;
		stage->last = slice->request;
		first = first == NP_COMM_NO_U32 ? slice->request : first;
		last = slice->request;
		n += slice->request != previous;
		previous = slice->request;
	}
	for (uint32_t s = 1; s < sum->strings.strings.n && n > 1; s++)
		if (of[s].calls && of[s].first == first && of[s].last == first && last > first)
			judge_one_stage(sum, s, n, &of[s], report);
	np_free(of);
	return true;
}

/* ── ranks of a group that do not do the same ── */

struct tally {
	uint32_t process;
	uint64_t calls;
};

struct unit { /* a group × operation */
	uint32_t group;
	uint8_t op;
	NP_VEC(struct tally) ranks;
};

static bool is_symmetric(uint8_t op)
{
	return np_clog_op_moves(op) && np_clog_family(op) != 10; /* send, recv */
}

static bool add_to_unit(struct unit *unit, uint32_t process, uint64_t calls)
{
	for (size_t i = unit->ranks.n; i-- > 0;)
		if (unit->ranks.v[i].process == process) {
			unit->ranks.v[i].calls += calls;
			return true;
		}
	return np_vec_push(&unit->ranks, (struct tally){process, calls});
}

static int by_calls(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;
	if (x->calls != y->calls)
		return x->calls < y->calls ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static const char *rank_text(const struct np_clog_sum *sum, uint32_t process, char out[32])
{
	const struct np_clog_process *p = &sum->processes.v[process];
	if (p->rank >= 0)
		(void)snprintf(out, 32, "rank %d", p->rank);
	else
		(void)snprintf(out, 32, "pid %d", p->pid);
	return out;
}

/* A difference says something only where no record is missing. */
static bool is_complete(const struct np_clog_sum *sum, const struct unit *unit, bool *killed)
{
	*killed = false;
	for (size_t i = 0; i < unit->ranks.n; i++) {
		const struct np_clog_process *p = &sum->processes.v[unit->ranks.v[i].process];
		*killed = *killed || p->killed;
		if (p->incomplete)
			return false;
	}
	return true;
}

static void tell_unit(const struct np_clog_sum *sum, const struct unit *unit, bool killed,
                      struct np_report *report)
{
	char a[32], b[32];
	const struct np_clog_group *group = &sum->groups.v[unit->group];
	const struct tally *least = &unit->ranks.v[0], *most = &unit->ranks.v[unit->ranks.n - 1];
	const char *op = np_clog_op_name(unit->op);
	np_str name = np_clog_group_name(sum, group);
	struct np_finding *finding = np_report_finding(
		report, "COMM_COUNTS_DIFFER", killed ? NP_INFO : NP_WARNING,
		"ranks of group %.*s call %s different numbers of times: %" PRIu64 " to %" PRIu64,
		NP_FMT(name), op ? op : "?", least->calls, most->calls);
	if (killed)
		np_finding_detail(finding,
		                  "Some of these processes were killed, or still run: they "
		                  "may just have ended at different places.");
	else
		np_finding_detail(finding,
		                  "A collective is one call of every rank of its group; the "
		                  "ranks did different work, or some calls were not seen.");
	np_finding_evidence(finding, NULL, NULL, NULL,
	                    NP_N("%s: %" PRIu64 " calls, %s: %" PRIu64 " calls"),
	                    rank_text(sum, least->process, a), least->calls,
	                    rank_text(sum, most->process, b), most->calls);
}

/* Processes of the group that do not call this at all count with 0. */
static bool add_silent(const struct np_clog_sum *sum, struct np_keys *members, struct unit *unit)
{
	bool kept = true;
	for (size_t i = 0; i < members->keys.n && kept; i++) {
		const struct np_key *key = &members->keys.v[i];
		if ((uint32_t)key->w[0] == unit->group &&
		    (uint32_t)(key->w[0] >> 32) < sum->processes.n)
			kept = add_to_unit(unit, (uint32_t)(key->w[0] >> 32), 0);
	}
	return kept;
}

static bool judge_unit(const struct np_clog_sum *sum, struct np_keys *members, struct unit *unit,
                       size_t *told, struct np_report *report)
{
	bool killed;
	if (!add_silent(sum, members, unit))
		return false;
	qsort(unit->ranks.v, unit->ranks.n, sizeof *unit->ranks.v, by_calls);
	if (unit->ranks.v[0].calls == unit->ranks.v[unit->ranks.n - 1].calls ||
	    !is_complete(sum, unit, &killed))
		return true;
	if ((*told)++ < PIECES)
		tell_unit(sum, unit, killed, report);
	return true;
}

static bool judge_counts(const struct np_clog_sum *sum, struct np_report *report)
{
	struct np_keys keys = {.mask = 0}, members = {.mask = 0};
	NP_VEC(struct unit) units = {NULL, 0, 0};
	bool kept = true;
	size_t told = 0;
	for (size_t i = 0; i < sum->cells.n && kept; i++) {
		const struct np_clog_cell *cell = &sum->cells.v[i];
		const struct np_clog_group *group = &sum->groups.v[cell->group];
		uint32_t process = sum->files.v[cell->file].process;
		if (!np_clog_is_shown(cell) || !is_symmetric(cell->op) ||
		    (group->name == 0 && group->hash == 0))
			continue;
		struct np_key member = {{np_key_pair(cell->group, process), 0, 0, 0}};
		struct np_key key = {{np_key_pair(cell->group, cell->op), 0, 0, 0}};
		uint32_t at = np_keys_add(&keys, &key);
		kept = at != UINT32_MAX && np_keys_add(&members, &member) != UINT32_MAX &&
		       (at < units.n ||
		        np_vec_push(&units, (struct unit){.group = cell->group, .op = cell->op})) &&
		       add_to_unit(&units.v[at], process, cell->calls);
	}
	for (size_t i = 0; i < units.n; i++) {
		if (kept && !sum->options.stage)
			kept = judge_unit(sum, &members, &units.v[i], &told, report);
		np_vec_release(&units.v[i].ranks);
	}
	if (told > PIECES)
		np_report_note(report, "%zu more groups and operations have different counts",
		               told - PIECES);
	np_vec_release(&units);
	np_keys_release(&keys);
	np_keys_release(&members);
	return kept;
}

/* ── calls ── */

static void judge_calls(const struct np_clog_sum *sum, struct np_report *report)
{
	uint64_t failed = 0, captured = 0, unsized = 0;
	for (size_t i = 0; i < sum->cells.n; i++) {
		const struct np_clog_cell *cell = &sum->cells.v[i];
		if (!np_clog_is_shown(cell))
			continue;
		failed += cell->flags & NP_COMM_FAILED ? cell->calls : 0;
		captured += cell->flags & NP_COMM_CAPTURE ? cell->calls : 0;
		unsized += cell->unsized;
	}
	if (failed) {
		struct np_finding *finding = np_report_finding(
			report, "COMM_CALL_FAILED", NP_WARNING,
			"%" PRIu64 " calls failed: they raised, or returned an error", failed);
		np_finding_detail(finding, "They count with their sizes, as the others do.");
		np_finding_command(finding, "npuprof comm %s --export jsonl | grep failed",
		                   report->inputs.n ? np_shell_quote(report, report->inputs.v[0])
		                                    : "LOG");
	}
	if (captured) {
		struct np_finding *finding = np_report_finding(
			report, "COMM_CAPTURED", NP_WARNING,
			"%" PRIu64 " calls were issued while a graph was captured", captured);
		np_finding_detail(finding,
		                  "They count once. Replays of the graph send the same again "
		                  "each time, and no log sees that.");
		np_finding_advice(finding,
		                  "multiply by the number of replays, or take a capture and "
		                  "compare: --against");
	}
	if (unsized)
		np_report_note(report, "%" PRIu64 " calls have no known size and count as 0 bytes",
		               unsized);
}

static void judge_layers(const struct np_clog_sum *sum, struct np_report *report)
{
	const unsigned both = 1u << NP_COMM_LAYER_TORCH | 1u << NP_COMM_LAYER_HCCL;
	uint64_t bytes[2] = {0, 0};
	for (size_t i = 0; i < sum->cells.n; i++) {
		const struct np_clog_cell *cell = &sum->cells.v[i];
		const struct np_clog_process *process =
			&sum->processes.v[sum->files.v[cell->file].process];
		if (!np_clog_op_moves(cell->op) || (process->layers & both) != both ||
		    process->incomplete)
			continue;
		np_clog_add(&bytes[cell->layer == NP_COMM_LAYER_HCCL], cell->bytes);
	}
	if (bytes[0] == 0 && bytes[1] == 0)
		return;
	if (sum->options.show == NP_COMM_SHOW_AUTO)
		np_report_note(report,
		               "of processes with both layers torch is shown, which knows "
		               "stages and ranks; --layer hccl shows what HCCL was asked for");
	if (bytes[1] <= bytes[0] ||
	    (double)(bytes[1] - bytes[0]) * 100 <= (double)bytes[1] * LAYERS_PERCENT)
		return;
	struct np_finding *finding = np_report_finding(
		report, "COMM_LAYERS_DIFFER", NP_WARNING,
		"%.1f %% of what HCCL was asked for did not pass through torch.distributed",
		(double)(bytes[1] - bytes[0]) * 100 / (double)bytes[1]);
	np_finding_detail(finding,
	                  "Gradients that DDP's reducer sends from C++ are so, and "
	                  "reductions of uint8 and bool, which are made int32. Tables of the "
	                  "torch layer lack it.");
	np_finding_advice(finding, "see the table layers, and --layer hccl");
}

static void judge_names(const struct np_clog_sum *sum, struct np_report *report)
{
	if (sum->overflow)
		np_report_note(report,
		               "more than %d steps and stages: the rest is in no row of steps",
		               NP_COMM_MAX_SLICES);
	if (sum->out_of_order)
		np_report_note(report,
		               "the clock was set back %" PRIu64 " times while it was recorded",
		               sum->out_of_order);
	np_report_note(report,
	               "moved~ is an estimate from sizes (R27), no counter of HCCL, and not the "
	               "bus factor (bus~)");
	np_report_note(report,
	               "not seen: replays of graphs, GE graph mode, fused operators (MC2), LCCL");
}

enum np_status np_clog_judge(const struct np_clog_sum *sum, const struct np_clog_found *found,
                             struct np_report *report, struct np_err *err)
{
	judge_files(sum, found, report);
	judge_records(sum, report);
	judge_anchors(found, report);
	judge_other(sum, found, report);
	bool kept = judge_requests(sum, report) && judge_counts(sum, report);
	judge_layers(sum, report);
	judge_calls(sum, report);
	judge_ends(sum, report);
	judge_names(sum, report);
	return kept ? np_report_ok(report, err) : np_err_nomem(err);
}
