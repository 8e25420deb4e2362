/* What is said of logs: of collectives, and of what the command printed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "collect/run_internal.h"
#include "gate/log_signs.h"
#include "npuprof/comm_log.h"
#include "report/lang.h"

/* operations of NP_COMM_OP_MAP from here on move nothing */
enum { FIRST_NO_COLLECTIVE = 40 };
enum { PIECE_BYTES = 1 << 16, OVERLAP = 1024, SHOWN_BYTES = 200 };

/* ── collectives ── */

/* Collectives in a log: records that are neither marks of stages nor of communicators. 0 when
 * it is no log. Linear in the file. Both layers see the same traffic, so they are two counts. */
static uint64_t collectives_of(const char *path, uint32_t *layer)
{
	struct np_comm_log_header header;
	struct np_comm_record record;
	uint64_t n = 0;
	FILE *file = fopen(path, "re");
	if (file && fread(&header, sizeof header, 1, file) == 1 &&
	    memcmp(header.magic, NP_COMM_LOG_MAGIC, sizeof header.magic) == 0 &&
	    header.record_bytes == sizeof record && header.string_capacity < 1u << 30 &&
	    fseek(file, (long)(NP_COMM_LOG_HEADER_BYTES + header.string_capacity), SEEK_SET) == 0) {
		*layer = header.layer;
		for (uint64_t i = 0; i < header.written && i < header.capacity &&
		                     fread(&record, sizeof record, 1, file) == 1;
		     i++)
			n += record.seq && record.op && record.op < FIRST_NO_COLLECTIVE;
	}
	if (file)
		(void)fclose(file);
	return n;
}

static bool is_placed(const struct np_run *run, const struct np_run_target *stage)
{
	for (size_t i = 0; i < run->events.all.n; i++) {
		const struct np_run_event *event = &run->events.all.v[i];
		if (strcmp(event->event, "collectives_stage") == 0 &&
		    strcmp(event->target, stage->text) == 0)
			return true;
	}
	return false;
}

/* Why nothing is in a stage: the reason of a process that had its module, if there is one. */
static void tell_stages(struct np_run *run)
{
	for (size_t i = 0; i < run->n_stages; i++) {
		const struct np_run_target *stage = &run->stages[i];
		struct np_target_facts facts;
		if (is_placed(run, stage))
			continue;
		np_target_facts(&run->events, stage->text, &facts);
		struct np_finding *finding =
			np_report_finding(run->report, "COMM_ANCHOR_NOT_FOUND", NP_WARNING,
		                          "the anchor %s was not found", stage->text);
		np_finding_detail(finding,
		                  "Stage %s has no traffic for that reason; what belongs to it "
		                  "is under other (R24).",
		                  stage->stage);
		if (*facts.reason)
			np_finding_evidence(finding, run->events_dir, NULL, NULL, "%s",
			                    facts.reason);
		else
			np_finding_evidence(finding, run->events_dir, NULL, NULL,
			                    NP_N("no process imported %s"), stage->module);
		if (*facts.near)
			np_finding_advice(finding, "names like it: %s", facts.near);
		np_finding_command(finding, "grep -rnE --include='*.py' '(class|def) %.*s' .",
		                   NP_FMT(np_run_first_name(stage)));
	}
}

void np_run_tell_collectives(struct np_run *run)
{
	struct np_dir dir = {0};
	size_t logs = 0;
	uint64_t torch = 0, hccl = 0;
	if (!run->options->collectives)
		return;
	(void)np_dir_list(&run->report->arena, run->comm_dir, &dir, NULL);
	for (size_t i = 0; i < dir.n; i++) {
		if (!np_str_ends(np_str_of(dir.v[i].name), NP_STR(".nplog")))
			continue;
		const char *path = np_path_join(&run->report->arena, run->comm_dir, dir.v[i].name);
		uint32_t layer = 0;
		uint64_t n = path ? collectives_of(path, &layer) : 0;
		torch += layer == NP_COMM_LAYER_TORCH ? n : 0;
		hccl += layer == NP_COMM_LAYER_HCCL ? n : 0;
		logs++;
	}
	if (torch || hccl) {
		tell_stages(run);
		np_report_note(run->report,
		               "%" PRIu64 " collectives at torch.distributed, %" PRIu64
		               " at HCCL, in %zu logs: npuprof comm %s",
		               torch, hccl, logs, np_shell_quote(run->report, run->dir));
		return;
	}
	run->failed = true;
	struct np_finding *finding = np_report_finding(run->report, "COLLECTIVES_MISSING", NP_ERROR,
	                                               "no collective was recorded");
	np_finding_detail(finding,
	                  "Neither torch.distributed nor HCCL was called in a process with "
	                  "the recorder, or no process had it.");
	np_finding_evidence(finding, run->comm_dir, NULL, NULL, "%zu logs", logs);
	np_finding_command(finding, "%s", np_run_again(run, NULL));
}

/* ── the log ── */

static const struct np_column sign_columns[] = {
	{"line", "", NP_COL_INT, "of log/run.log, the first with this sign"},
	{"lines", "", NP_COL_INT, "with this sign"},
	{"sign", "", NP_COL_TEXT, "what the line holds"},
	{"meaning", "", NP_COL_TEXT, "what it means"},
};

struct seen_sign {
	size_t lines, first, last;
	np_str text;
};

static void tell_sign(struct np_run *run, const struct np_log_sign *sign,
                      const struct seen_sign *seen)
{
	char rows[32];
	struct np_finding *finding =
		np_report_finding(run->report, sign->fatal ? "RUN_FAILED" : "LOG_WARNING",
	                          sign->fatal ? NP_ERROR : NP_WARNING, "%s", sign->meaning);
	(void)snprintf(rows, sizeof rows, "%zu", seen->first);
	np_finding_evidence(finding, run->log, NULL, rows, "%.*s",
	                    (int)(seen->text.len < SHOWN_BYTES ? seen->text.len : SHOWN_BYTES),
	                    seen->text.ptr);
	if (sign->advice || sign->fatal)
		np_finding_advice(finding, "%s", sign->advice ? sign->advice : np_log_fatal_advice);
	if (sign->command)
		np_finding_command(finding, "%s", sign->command);
}

/* A log may have any length, and a progress bar makes one line of hours: it is read in pieces,
 * which overlap, so that no sign is cut in two. */
struct log_look {
	struct np_run *run;
	struct seen_sign *seen;
	size_t number;
	char bytes[PIECE_BYTES];
};

static void look_at_line(struct log_look *self, char *text, size_t len)
{
	np_str line = {text, np_log_strip_ansi(text, len)};
	size_t which = np_log_sign_of(line);
	if (which == np_log_n_signs() || self->seen[which].last == self->number)
		return;
	self->seen[which].last = self->number;
	if (self->seen[which].lines++)
		return;
	line = np_str_trim(line);
	const char *copy =
		np_arena_cstr(&self->run->report->arena,
	                      np_str_sub(line, 0, line.len < SHOWN_BYTES ? line.len : SHOWN_BYTES));
	self->seen[which].first = self->number;
	self->seen[which].text = np_str_of(copy ? copy : "");
}

/* The whole lines of what was read, or all of it; how much that was. */
static size_t look_at_piece(struct log_look *self, size_t len, bool all)
{
	size_t done = 0;
	for (char *end; (end = memchr(self->bytes + done, '\n', len - done)); self->number++) {
		size_t line = (size_t)(end - self->bytes) - done;
		look_at_line(self, self->bytes + done, line);
		done += line + 1;
	}
	if (done == 0 || all) {
		char last[OVERLAP];
		size_t kept = all || len < 2 * OVERLAP ? 0 : OVERLAP;
		memcpy(last, self->bytes + len - kept, kept); /* escapes are taken out in place */
		look_at_line(self, self->bytes + done, len - done);
		done = len - kept;
		memcpy(self->bytes + done, last, kept);
	}
	return done;
}

static void read_log(struct log_look *self)
{
	FILE *file = fopen(self->run->log, "re");
	size_t kept = 0, n;
	if (!file)
		return;
	while ((n = fread(self->bytes + kept, 1, sizeof self->bytes - kept, file)) > 0) {
		size_t len = kept + n, done = look_at_piece(self, len, false);
		kept = len - done;
		memmove(self->bytes, self->bytes + done, kept);
	}
	if (kept)
		(void)look_at_piece(self, kept, true);
	(void)fclose(file);
}

void np_run_tell_log(struct np_run *run)
{
	struct np_arena *arena = &run->report->arena;
	struct log_look *look = np_arena_zalloc(arena, sizeof *look);
	struct seen_sign *seen = np_arena_zalloc(arena, np_log_n_signs() * sizeof *seen);
	struct np_table *table = NULL;
	if (!look || !seen)
		return;
	look->run = run;
	look->seen = seen;
	look->number = 1;
	read_log(look);
	for (size_t i = 0; i < np_log_n_signs(); i++) {
		if (seen[i].lines == 0)
			continue;
		if (!table)
			table = NP_REPORT_TABLE(run->report, "log_signs", "Signs in the log",
			                        sign_columns);
		np_cell_int(table, (int64_t)seen[i].first);
		np_cell_int(table, (int64_t)seen[i].lines);
		np_cell_cstr(table, np_log_sign(i)->text);
		np_cell_word(table, np_log_sign(i)->meaning);
		tell_sign(run, np_log_sign(i), &seen[i]);
	}
}
