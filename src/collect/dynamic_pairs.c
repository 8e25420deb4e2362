/* What members say together, and what a capture made so can be used for. */
#include <string.h>

#include "collect/dynamic_check.h"
#include "report/lang.h"

enum { LONG_ACTIVE = 10 }; /* steps: above it several short captures tell more (R85) */

static bool has_level(const struct np_dyn_checking *self)
{
	np_str level = np_dyn_word(self->doc, NP_DYN_LEVEL);
	return np_str_is(level, "Level1") || np_str_is(level, "Level2");
}

static const struct np_jval *list_of(const struct np_dyn_checking *self, enum np_dyn_id id)
{
	const struct np_dyn_member *member = np_dyn_member(self->doc, id);
	return member && member->value->type == NP_J_ARRAY ? member->value : NULL;
}

/* Entries of rank_list that count. */
static size_t ranks_listed(const struct np_dyn_checking *self)
{
	const struct np_jval *list = list_of(self, NP_DYN_RANK_LIST);
	size_t n = 0;
	for (size_t i = 0; list && i < list->n; i++)
		n += np_dyn_accepts_entry(&np_dyn_fields[NP_DYN_RANK_LIST], &list->child[i]);
	return n;
}

/* ── ranks and analysis ── */

static void check_ranks(struct np_dyn_checking *self)
{
	const struct np_dyn_member *list = np_dyn_member(self->doc, NP_DYN_RANK_LIST);
	const struct np_dyn_member *is_rank = np_dyn_member(self->doc, NP_DYN_IS_RANK);
	bool filtered = np_dyn_bool(self->doc, NP_DYN_IS_RANK);
	struct np_finding *finding;
	if (filtered && ranks_listed(self) == 0) {
		finding = np_dyn_tell(self, "DYN_RANK_LIST_EMPTY", NP_ERROR, list ? list : is_rank,
		                      "is_rank is true and rank_list names no rank: nothing is "
		                      "collected");
		np_finding_advice(finding, "is_rank false collects all ranks (R82)");
		np_dyn_suggest(self, finding, NP_DYN_IS_RANK, "false");
	}
	if (!filtered && ranks_listed(self) > 0) {
		finding = np_dyn_tell(self, "DYN_RANK_LIST_IGNORED", NP_WARNING, list,
		                      "rank_list has no effect while is_rank is false: all ranks "
		                      "collect");
		np_dyn_suggest(self, finding, NP_DYN_IS_RANK, "true");
	}
}

static void check_analyse(struct np_dyn_checking *self)
{
	const struct np_dyn_member *async = np_dyn_member(self->doc, NP_DYN_ASYNC_MODE);
	const struct np_dyn_member *analyse = np_dyn_member(self->doc, NP_DYN_ANALYSE);
	bool on = np_dyn_bool(self->doc, NP_DYN_ANALYSE);
	bool is_async = np_dyn_bool(self->doc, NP_DYN_ASYNC_MODE);
	struct np_finding *finding;
	if (np_dyn_bool(self->doc, NP_DYN_IS_RANK) && on && !is_async) {
		finding = np_dyn_tell(self, "DYN_ANALYSE_OFF", NP_WARNING, analyse,
		                      "analyse is switched off silently: is_rank is true and "
		                      "async_mode is false");
		np_finding_detail(finding,
		                  "Some ranks that analyse at once would let the others wait in "
		                  "their collectives until HCCL times out. The dump stays raw and "
		                  "has to be exported afterwards (R82).");
		np_dyn_suggest(self, finding, NP_DYN_ASYNC_MODE, "true");
	}
	if (is_async && !on) {
		finding = np_dyn_tell(self, "DYN_ASYNC_WITHOUT_ANALYSE", NP_WARNING, async,
		                      "async_mode has no effect without analyse");
		np_finding_detail(finding, "\"When analyse is False, async_mode will not take "
		                           "effect!\": the dump stays raw.");
		np_dyn_suggest(self, finding, NP_DYN_ANALYSE, "true");
	}
}

/* ── start_step and the window ── */

static void tell_passed(struct np_dyn_checking *self, const struct np_dyn_member *member)
{
	struct np_finding *finding = np_dyn_tell(
		self, "DYN_START_PASSED", NP_ERROR, member,
		"start_step %lld is not after step %lld, which is done: the request is dropped",
		(long long)np_dyn_int(self->doc, NP_DYN_START_STEP),
		(long long)self->options->current_step);
	np_finding_detail(finding,
	                  "Ranks log \"Dynamic Profiler config is not effective\". The monitor "
	                  "looks every 2 s, later once per step time (1 to 50 s): a number has to "
	                  "be some steps ahead, -1 is the next step of each rank.");
	np_dyn_suggest(self, finding, NP_DYN_START_STEP, "-1");
}

static void tell_beyond(struct np_dyn_checking *self, const struct np_dyn_member *member,
                        int64_t start, int64_t needs)
{
	const struct np_dyn_check_options *options = self->options;
	struct np_finding *finding;
	if (start > options->max_step)
		finding = np_dyn_tell(self, "DYN_START_BEYOND", NP_ERROR, member,
		                      "start_step %lld is beyond the last step, %lld",
		                      (long long)start, (long long)options->max_step);
	else
		finding = np_dyn_tell(self, "DYN_WINDOW_BEYOND", NP_ERROR, member,
		                      "the capture from step %lld on needs %lld steps; the job "
		                      "ends after step %lld",
		                      (long long)start, (long long)needs,
		                      (long long)options->max_step);
	np_finding_advice(finding, "an earlier start_step, or fewer steps: a job that ends while "
	                           "it records leaves incomplete data");
}

static void check_start(struct np_dyn_checking *self)
{
	const struct np_dyn_check_options *options = self->options;
	const struct np_dyn_member *member = np_dyn_member(self->doc, NP_DYN_START_STEP);
	int64_t start = np_dyn_int(self->doc, NP_DYN_START_STEP);
	int64_t active = np_dyn_int(self->doc, NP_DYN_ACTIVE);
	int64_t warmup = np_dyn_int(self->doc, NP_DYN_WARMUP);
	int64_t needs = active > INT64_MAX - warmup ? INT64_MAX : active + warmup;
	if (!member || !np_dyn_accepts(&np_dyn_fields[NP_DYN_START_STEP], member->value))
		return; /* told already */
	if (start == 0) {
		struct np_finding *finding =
			np_dyn_tell(self, "DYN_START_NEVER", NP_INFO, member,
		                    "start_step is 0: no capture is asked for");
		np_finding_command(finding, "npuprof dynamic trigger %s",
		                   np_shell_quote(self->report, self->dir));
		return;
	}
	if (start > 0 && options->has_current_step && start <= options->current_step) {
		tell_passed(self, member);
		return;
	}
	if (start > 0 && !options->has_current_step) {
		struct np_finding *finding =
			np_dyn_tell(self, "DYN_START_UNCHECKED", NP_WARNING, member,
		                    "whether start_step %lld is still to come cannot be told here",
		                    (long long)start);
		np_finding_advice(finding, "give --current-step, or use -1, which is the next step "
		                           "of every rank");
		self->unknown = true;
	}
	if (start < 0 && options->has_current_step)
		start = options->current_step + 1;
	if (start > 0 && options->has_max_step &&
	    (start > options->max_step || needs > options->max_step - start + 1))
		tell_beyond(self, member, start, needs);
}

static void check_window(struct np_dyn_checking *self)
{
	const struct np_dyn_member *active = np_dyn_member(self->doc, NP_DYN_ACTIVE);
	struct np_finding *finding;
	if (np_dyn_int(self->doc, NP_DYN_ACTIVE) > LONG_ACTIVE) {
		finding = np_dyn_tell(self, "DYN_ACTIVE_LONG", NP_WARNING, active,
		                      "%lld steps in one capture",
		                      (long long)np_dyn_int(self->doc, NP_DYN_ACTIVE));
		np_finding_advice(finding, "where the problem's step is not known, several short "
		                           "captures tell more than a long one (R85)");
		np_dyn_suggest(self, finding, NP_DYN_ACTIVE, "2");
	}
	if (np_dyn_int(self->doc, NP_DYN_WARMUP) == 0) {
		finding = np_dyn_tell(self, "DYN_WARMUP_NONE", NP_INFO,
		                      np_dyn_member(self->doc, NP_DYN_WARMUP),
		                      "no warm-up: the start of the profiler is in the first "
		                      "recorded step");
		np_finding_advice(finding, "one step of warm-up is recommended (R81); else look at "
		                           "the second step");
	}
}

/* ── what goes into the data ── */

static void check_level(struct np_dyn_checking *self)
{
	const struct np_dyn_member *metrics = np_dyn_member(self->doc, NP_DYN_METRICS);
	const struct np_dyn_member *level = np_dyn_member(self->doc, NP_DYN_LEVEL);
	np_str name = np_dyn_word(self->doc, NP_DYN_METRICS);
	struct np_finding *finding;
	if (!has_level(self) && metrics && !np_str_is(name, "AiCoreNone")) {
		finding = np_dyn_tell(self, "DYN_METRICS_LEVEL0", NP_ERROR, metrics,
		                      "%.*s is reset to none at %.*s", NP_FMT(name),
		                      NP_FMT(np_dyn_word(self->doc, NP_DYN_LEVEL)));
		np_finding_detail(finding, "\"Please use level1 or level2 if you want to collect "
		                           "aic metrics, reset aic metrics to None!\"");
		np_dyn_suggest(self, finding, NP_DYN_LEVEL, "\"Level1\"");
	}
	if (np_str_is(np_dyn_word(self->doc, NP_DYN_LEVEL), "Level_none") &&
	    !np_dyn_bool(self->doc, NP_DYN_MSTX)) {
		finding =
			np_dyn_tell(self, "DYN_LEVEL_NONE", NP_WARNING, level,
		                    "Level_none records marks of mstx only, and switches mstx on");
		np_dyn_suggest(self, finding, NP_DYN_LEVEL, "\"Level1\"");
	}
}

static void check_mstx(struct np_dyn_checking *self)
{
	const struct np_jval *include = list_of(self, NP_DYN_MSTX_INCLUDE);
	const struct np_jval *exclude = list_of(self, NP_DYN_MSTX_EXCLUDE);
	const struct np_dyn_member *tx = np_dyn_member(self->doc, NP_DYN_MSPROF_TX);
	bool has_include = include && include->n, has_exclude = exclude && exclude->n;
	bool on = np_dyn_bool(self->doc, NP_DYN_MSTX) || np_dyn_bool(self->doc, NP_DYN_MSPROF_TX);
	struct np_finding *finding;
	if (has_include && has_exclude) {
		finding = np_dyn_tell(self, "DYN_MSTX_DOMAINS", NP_WARNING,
		                      np_dyn_member(self->doc, NP_DYN_MSTX_EXCLUDE),
		                      "mstx_domain_exclude has no effect beside "
		                      "mstx_domain_include");
		np_dyn_suggest(self, finding, NP_DYN_MSTX_EXCLUDE, "[]");
	}
	if ((has_include || has_exclude) && !on) {
		finding = np_dyn_tell(self, "DYN_MSTX_OFF", NP_WARNING,
		                      np_dyn_member(self->doc, has_include ? NP_DYN_MSTX_INCLUDE
		                                                           : NP_DYN_MSTX_EXCLUDE),
		                      "domains of mstx are chosen and mstx is off");
		np_dyn_suggest(self, finding, NP_DYN_MSTX, "true");
	}
	if (tx && np_dyn_bool(self->doc, NP_DYN_MSPROF_TX)) {
		finding = np_dyn_tell(self, "DYN_MSPROF_TX", NP_INFO, tx,
		                      "msprof_tx is the old name of mstx");
		np_dyn_suggest(self, finding, NP_DYN_MSTX, "true");
	}
}

static void check_needs(struct np_dyn_checking *self)
{
	bool npu = np_dyn_has_word(self->doc, NP_DYN_ACTIVITIES, "NPU");
	bool cpu = np_dyn_has_word(self->doc, NP_DYN_ACTIVITIES, "CPU");
	const struct np_dyn_member *gc = np_dyn_member(self->doc, NP_DYN_GC);
	struct np_finding *finding;
	if (np_dyn_bool(self->doc, NP_DYN_OP_ATTR) &&
	    !np_dyn_has_word(self->doc, NP_DYN_EXPORT, "db")) {
		finding = np_dyn_tell(self, "DYN_OP_ATTR_DB", NP_ERROR,
		                      np_dyn_member(self->doc, NP_DYN_OP_ATTR),
		                      "op_attr is reset to false: it needs db in export_type");
		np_dyn_suggest(self, finding, NP_DYN_EXPORT, "[\"text\", \"db\"]");
	}
	if (!npu) {
		finding = np_dyn_tell(
			self, "DYN_NO_NPU", NP_ERROR, np_dyn_member(self->doc, NP_DYN_ACTIVITIES),
			"activities has no NPU: nothing of the device is recorded and "
			"experimental_config is ignored");
		np_dyn_suggest(self, finding, NP_DYN_ACTIVITIES, "[\"CPU\", \"NPU\"]");
	}
	if (!cpu && gc && gc->value->type == NP_J_NUMBER) {
		finding =
			np_dyn_tell(self, "DYN_GC_CPU", NP_WARNING, gc,
		                    "gc_detect_threshold has no effect without CPU in activities");
		np_dyn_suggest(self, finding, NP_DYN_ACTIVITIES, "[\"CPU\", \"NPU\"]");
	}
	if (np_dyn_has_word(self->doc, NP_DYN_HOST_SYS, "disk") ||
	    np_dyn_has_word(self->doc, NP_DYN_HOST_SYS, "osrt"))
		np_dyn_tell(self, "DYN_HOST_SYS", NP_INFO,
		            np_dyn_member(self->doc, NP_DYN_HOST_SYS),
		            "disk and osrt need iotop, perf, ltrace or strace on the host, and the "
		            "rights of root");
}

void np_dyn_check_pairs(struct np_dyn_checking *self)
{
	check_ranks(self);
	check_analyse(self);
	check_start(self);
	check_window(self);
	check_level(self);
	check_mstx(self);
	check_needs(self);
}

/* ── purposes ── */

static const struct np_column purpose_columns[] = {
	{"profile", "", NP_COL_TEXT, "of the gate: npuprof check --profile"},
	{"possible", "", NP_COL_TEXT, "can a capture of this configuration pass it?"},
	{"why", "", NP_COL_TEXT, "what is in the way, or to be done first"},
};

/* Why a capture made so cannot pass; NULL: it can. */
static const char *in_the_way(const struct np_dyn_checking *self, enum np_dyn_purpose purpose)
{
	if (!np_dyn_has_word(self->doc, NP_DYN_ACTIVITIES, "NPU"))
		return NP_N("activities has no NPU");
	if (!has_level(self))
		return NP_N("profiler_level below Level1: no communication, no metrics");
	if (purpose == NP_DYN_FOR_KERNEL &&
	    !np_str_is(np_dyn_word(self->doc, NP_DYN_METRICS), "PipeUtilization"))
		return NP_N("aic_metrics is not PipeUtilization");
	return NULL;
}

static void purpose_row(struct np_dyn_checking *self, struct np_table *table, const char *name,
                        const char *why_not)
{
	bool analyse = np_dyn_bool(self->doc, NP_DYN_ANALYSE) &&
	               (np_dyn_bool(self->doc, NP_DYN_ASYNC_MODE) ||
	                !np_dyn_bool(self->doc, NP_DYN_IS_RANK));
	np_cell_cstr(table, name);
	np_cell_word(table, why_not ? NP_N("no") : analyse ? NP_N("yes") : NP_N("after an export"));
	if (why_not)
		np_cell_word(table, why_not);
	else if (!analyse)
		np_cell_word(table, NP_N("analyse is off: the dump stays raw"));
	else if (strcmp(name, "cluster") == 0 && np_dyn_bool(self->doc, NP_DYN_IS_RANK))
		np_cell_word(table, NP_N("for the ranks of rank_list; the others will be told as "
		                         "missing"));
	else
		np_cell_na(table);
}

void np_dyn_check_purposes(struct np_dyn_checking *self)
{
	struct np_table *table = NP_REPORT_TABLE(self->report, "purposes",
	                                         "What it can be used for", purpose_columns);
	const char *cluster = in_the_way(self, NP_DYN_FOR_CLUSTER);
	const char *kernel = in_the_way(self, NP_DYN_FOR_KERNEL);
	const char *framework = kernel;
	if (!framework && !np_dyn_has_word(self->doc, NP_DYN_EXPORT, "text"))
		framework = NP_N("export_type has no text");
	purpose_row(self, table, "cluster", cluster);
	purpose_row(self, table, "kernel", kernel);
	purpose_row(self, table, "framework", framework);
	const char *asked = self->options->purpose == NP_DYN_FOR_KERNEL ? kernel : cluster;
	bool none = cluster && kernel;
	if (self->options->has_purpose ? asked == NULL : !none)
		return;
	struct np_finding *finding;
	if (self->options->has_purpose)
		finding = np_report_finding(self->report, "DYN_PURPOSE", NP_ERROR,
		                            "a capture made so cannot pass the profile %s: %s",
		                            np_dyn_purpose_name(self->options->purpose),
		                            np_tr(asked));
	else
		finding = np_report_finding(self->report, "DYN_PURPOSE", NP_WARNING,
		                            "a capture made so passes no profile of the gate: %s",
		                            np_tr(cluster));
	np_finding_evidence(finding, self->path, "experimental_config", NULL, "%.*s, %.*s",
	                    NP_FMT(np_dyn_word(self->doc, NP_DYN_LEVEL)),
	                    NP_FMT(np_dyn_word(self->doc, NP_DYN_METRICS)));
	np_finding_command(finding, "npuprof dynamic trigger %s --profile %s",
	                   np_shell_quote(self->report, self->dir),
	                   np_dyn_purpose_name(self->options->purpose));
}
