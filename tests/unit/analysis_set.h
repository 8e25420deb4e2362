/* Small captures written row by row, and what np_analyze() says of them. */
#ifndef NP_TESTS_ANALYSIS_SET_H
#define NP_TESTS_ANALYSIS_SET_H

#include <math.h>

#include "analysis/analysis.h"
#include "synth_set.h"

#define ANALYSIS_DIR "x_ascend_pt"
#define ANALYSIS_OUT ANALYSIS_DIR "/ASCEND_PROFILER_OUTPUT/"
#define ANALYSIS_HEADER \
	"Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us)\n"
#define ANALYSIS_EPOCH INT64_C(1700000000000000) /* us */

struct set {
	char root[TREE_PATH];
	struct np_buf kernels, trace, step_trace;
	struct np_captures *all;
	struct np_report *report;
	struct np_analyze_options options;
	struct np_err err;
	enum np_status status;
};

static inline int set_open(void **state)
{
	struct set *self = calloc(1, sizeof *self);
	assert_non_null(self);
	(void)tree_new(self->root);
	self->options.threads = 1;
	np_buf_add_cstr(&self->kernels, ANALYSIS_HEADER);
	*state = self;
	return 0;
}

static inline int set_close(void **state)
{
	struct set *self = *state;
	np_mem_fail_after(0);
	np_report_free(self->report);
	np_captures_free(self->all);
	np_buf_release(&self->kernels);
	np_buf_release(&self->trace);
	np_buf_release(&self->step_trace);
	tree_remove(self->root);
	free(self);
	return 0;
}

/* Times in us from the epoch of these tests; step < 0: no step id. */
static inline void add_kernel(struct set *self, int step, const char *name, const char *type,
                              const char *core, int64_t start_us, int64_t dur_us)
{
	if (step >= 0)
		np_buf_printf(&self->kernels, "%d", step);
	np_buf_printf(&self->kernels, ",%s,%s,%s,%lld\t,%lld,0\n", name, type, core,
	              (long long)(ANALYSIS_EPOCH + start_us), (long long)dur_us);
}

/* An event of the framework: cat cpu_op, or CANN's when the name has an @. */
static inline void add_host(struct set *self, const char *name, int64_t start_us, int64_t dur_us)
{
	np_buf_printf(&self->trace,
	              "%s{\"ph\":\"X\",\"name\":\"%s\",\"pid\":7,\"tid\":7,\"ts\":\"%lld.000\","
	              "\"dur\":%lld,\"cat\":\"cpu_op\",\"args\":{}}",
	              self->trace.len ? "," : "[", name, (long long)(ANALYSIS_EPOCH + start_us),
	              (long long)dur_us);
}

/* Analyse what is at `path`; NULL: the rows added so far, written first. */
static inline void set_analyze_at(struct set *self, const char *path)
{
	np_report_free(self->report);
	np_captures_free(self->all);
	self->all = NULL;
	self->report = np_report_new("analyze");
	assert_non_null(self->report);
	assert_int_equal(np_discover(path, &self->all, &self->err), NP_OK);
	const struct np_capture *capture = NULL;
	for (size_t i = 0; i < self->all->captures.n && !capture; i++)
		if (np_capture_has_data(self->all->captures.v[i]))
			capture = self->all->captures.v[i];
	assert_non_null(capture);
	self->status = np_analyze(capture, &self->options, self->report, &self->err);
}

static inline void set_analyze(struct set *self)
{
	tree_put(self->root, ANALYSIS_OUT "kernel_details.csv", self->kernels.ptr);
	if (self->trace.len) {
		np_buf_add_cstr(&self->trace, "]");
		tree_put(self->root, ANALYSIS_OUT "trace_view.json", self->trace.ptr);
	}
	if (self->step_trace.len)
		tree_put(self->root, ANALYSIS_OUT "step_trace_time.csv", self->step_trace.ptr);
	set_analyze_at(self, tree_path(self->root, ANALYSIS_DIR));
	if (self->status != NP_OK)
		fail_msg("%s: %s", self->err.where, self->err.msg);
}

/* A made-up set of `steps` steps; the first capture is analysed. */
static inline void set_analyze_synth(struct set *self, unsigned formats, uint32_t ranks,
                                     uint32_t steps, uint32_t layers, const char *fault)
{
	struct np_synth_fault one;
	struct np_synth_options options;
	np_synth_options_init(&options);
	options.formats = formats;
	options.ranks = ranks;
	options.steps = steps;
	options.layers = layers;
	options.force = true;
	if (fault) {
		assert_int_equal(np_synth_parse_fault(fault, &one, &self->err), NP_OK);
		options.faults = &one;
		options.n_faults = 1;
	}
	char dir[2 * TREE_PATH];
	(void)snprintf(dir, sizeof dir, "%s/synth", self->root);
	if (np_synth_write(dir, &options, NULL, &self->err) != NP_OK)
		fail_msg("%s: %s", self->err.where, self->err.msg);
	set_analyze_at(self, dir);
	assert_int_equal(self->status, NP_OK);
}

/* false: the real captures are absent */
static inline bool set_analyze_shared(struct set *self, const char *relative)
{
	const char *path = shared_path(relative);
	if (!path)
		return false;
	set_analyze_at(self, path);
	assert_int_equal(self->status, NP_OK);
	return true;
}

/* ── what was said ── */

static inline const struct np_finding *find_code(const struct set *self, const char *code)
{
	for (size_t i = 0; i < self->report->findings.n; i++)
		if (strcmp(self->report->findings.v[i]->code, code) == 0)
			return self->report->findings.v[i];
	return NULL;
}

/* A finding that is there, with evidence that names a file. */
static inline const struct np_finding *expect(const struct set *self, const char *code,
                                              enum np_severity severity)
{
	const struct np_finding *finding = find_code(self, code);
	if (!finding)
		fail_msg("%s is not told", code);
	assert_int_equal(finding->severity, severity);
	assert_true(finding->evidence.n > 0);
	assert_non_null(finding->evidence.v[0].file);
	assert_non_null(finding->evidence.v[0].column);
	return finding;
}

static inline void expect_none(const struct set *self, const char *code)
{
	const struct np_finding *finding = find_code(self, code);
	if (finding)
		fail_msg("%s is told: %s", code, finding->title);
}

/* No P0 and no P1. */
static inline void expect_healthy(const struct set *self)
{
	for (size_t i = 0; i < self->report->findings.n; i++)
		if (self->report->findings.v[i]->severity != NP_INFO)
			fail_msg("%s: %s", self->report->findings.v[i]->code,
			         self->report->findings.v[i]->title);
}

static inline bool has_note(const struct set *self, const char *part)
{
	for (size_t i = 0; i < self->report->notes.n; i++)
		if (strstr(self->report->notes.v[i], part))
			return true;
	return false;
}

static inline const struct np_table *find_table(const struct set *self, const char *id)
{
	for (size_t i = 0; i < self->report->tables.n; i++)
		if (strcmp(self->report->tables.v[i]->id, id) == 0)
			return self->report->tables.v[i];
	return NULL;
}

/* The cell in the first row whose column `key` says `value` (any row for NULL). */
static inline const struct np_cell *find_cell(const struct set *self, const char *id,
                                              const char *key, const char *value,
                                              const char *column)
{
	const struct np_table *table = find_table(self, id);
	if (!table)
		fail_msg("no table %s", id);
	size_t at = 0, by = 0;
	while (at < table->n_columns && strcmp(table->columns[at].name, column) != 0)
		at++;
	while (key && by < table->n_columns && strcmp(table->columns[by].name, key) != 0)
		by++;
	assert_true(at < table->n_columns && by < table->n_columns);
	for (size_t row = 0; row < np_table_rows(table); row++) {
		const struct np_cell *cell = np_table_cell(table, row, by);
		if (!key || (!cell->na && np_str_is(cell->s, value)))
			return np_table_cell(table, row, at);
	}
	fail_msg("table %s has no row with %s = %s", id, key ? key : "?", value ? value : "?");
	return NULL;
}

#endif
