/* What the tests of the operator analyses share: a capture analysed, a look into the
 * report, and profiles made by hand. */
#ifndef NP_TESTS_OPS_UNIT_H
#define NP_TESTS_OPS_UNIT_H

#include <math.h>

#include "synth_unit.h"

#include "analysis/analysis.h"

/* ── looking into a report ── */

static inline const struct np_finding *finding_of(const struct np_report *report, const char *code)
{
	for (size_t i = 0; i < report->findings.n; i++)
		if (strcmp(report->findings.v[i]->code, code) == 0)
			return report->findings.v[i];
	return NULL;
}

static inline const struct np_table *table_of(const struct np_report *report, const char *id)
{
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, id) == 0)
			return report->tables.v[i];
	return NULL;
}

static inline bool has_note(const struct np_report *report, const char *part)
{
	for (size_t i = 0; i < report->notes.n; i++)
		if (strstr(report->notes.v[i], part))
			return true;
	return false;
}

static inline size_t column_of(const struct np_table *table, const char *name)
{
	for (size_t c = 0; c < table->n_columns; c++)
		if (strcmp(table->columns[c].name, name) == 0)
			return c;
	fail_msg("table %s has no column %s", table->id, name);
	return 0;
}

static inline const struct np_cell *cell_of(const struct np_table *table, size_t row,
                                            const char *name)
{
	return np_table_cell(table, row, column_of(table, name));
}

/* The row with these texts in its column `a` and (NULL: any) `b`, SIZE_MAX when absent. */
static inline size_t row_of(const struct np_table *table, const char *a, const char *a_text,
                            const char *b, const char *b_text)
{
	for (size_t r = 0; table && r < np_table_rows(table); r++) {
		if (np_str_is(cell_of(table, r, a)->s, a_text) &&
		    (!b || np_str_is(cell_of(table, r, b)->s, b_text)))
			return r;
	}
	return SIZE_MAX;
}

/* ── a capture analysed ── */

static inline struct np_report *analyzed(const char *path, int64_t rank)
{
	struct np_captures *all = NULL;
	struct np_err err = {0};
	struct np_report *report = np_report_new("analyze");
	struct np_analyze_options options = {.top = 1000, .threads = 1};
	assert_non_null(report);
	if (np_discover(path, &all, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	const struct np_capture *capture = NULL;
	for (size_t i = 0; i < all->captures.n; i++)
		if (np_capture_has_data(all->captures.v[i]) && all->captures.v[i]->rank == rank)
			capture = all->captures.v[i];
	assert_non_null(capture);
	if (np_analyze(capture, &options, report, &err) != NP_OK)
		fail_msg("%s: %s", err.where, err.msg);
	assert_false(report->mistaken);
	np_captures_free(all);
	return report;
}

/* Rank 0 of a set with this fault (NULL: none). */
static inline struct np_report *analyzed_fault(struct fixture *f, const char *fault)
{
	write_set(f, fault);
	return analyzed(f->set, 0);
}

static inline bool same_cell(const struct np_cell *a, const struct np_cell *b,
                             enum np_col_type type)
{
	if (a->na || b->na)
		return a->na == b->na;
	if (type == NP_COL_TEXT)
		return np_str_eq(a->s, b->s);
	if (type == NP_COL_REAL || type == NP_COL_PERCENT)
		return !(a->r < b->r) && !(a->r > b->r);
	return type == NP_COL_BOOL ? a->b == b->b : a->i == b->i;
}

/* Two reports with the same tables and findings, but for paths. */
static inline void assert_same_report(const struct np_report *a, const struct np_report *b)
{
	assert_int_equal(a->tables.n, b->tables.n);
	for (size_t t = 0; t < a->tables.n; t++) {
		const struct np_table *x = a->tables.v[t], *y = b->tables.v[t];
		assert_string_equal(x->id, y->id);
		/* the exporters of text and db define some step times differently */
		if (strcmp(x->id, "step_trace") == 0 || strcmp(x->id, "advice") == 0)
			continue;
		if (np_table_rows(x) != np_table_rows(y))
			fail_msg("table %s: %zu and %zu rows", x->id, np_table_rows(x),
			         np_table_rows(y));
		for (size_t i = 0; i < x->cells.n; i++) {
			size_t c = i % x->n_columns;
			if (!same_cell(&x->cells.v[i], &y->cells.v[i], x->columns[c].type))
				fail_msg("table %s, row %zu, column %s", x->id, i / x->n_columns,
				         x->columns[c].name);
		}
	}
	for (size_t i = 0, k = 0;; i++, k++) {
		while (i < a->findings.n &&
		       strcmp(a->findings.v[i]->code, "STEP_TRACE_DIFFERS") == 0)
			i++;
		while (k < b->findings.n &&
		       strcmp(b->findings.v[k]->code, "STEP_TRACE_DIFFERS") == 0)
			k++;
		if (i >= a->findings.n || k >= b->findings.n) {
			assert_true(i >= a->findings.n && k >= b->findings.n);
			break;
		}
		assert_string_equal(a->findings.v[i]->code, b->findings.v[k]->code);
		assert_string_equal(a->findings.v[i]->title, b->findings.v[k]->title);
	}
}

/* Does the fault give the same report from text as from a database? */
static inline void assert_text_is_db(struct fixture *f, const char *fault)
{
	f->options.formats = NP_SYNTH_TEXT;
	struct np_report *text = analyzed_fault(f, fault);
	f->options.formats = NP_SYNTH_DB;
	struct np_report *db = analyzed_fault(f, fault);
	assert_same_report(text, db);
	np_report_free(text);
	np_report_free(db);
}

/* ── a profile made by hand: one step, device 0, stream 2 ── */

struct hand {
	struct np_capture capture;
	struct np_analyze_options options;
	struct np_analysis self;
	np_ns now;
};

static inline void hand_init(struct hand *h)
{
	memset(h, 0, sizeof *h);
	h->capture.path = "by hand";
	h->options.top = 100;
	h->self.capture = &h->capture;
	h->self.options = &h->options;
	h->self.rules = &np_default_rules;
	h->self.profile = np_profile_new();
	h->self.report = np_report_new("analyze");
	h->now = 1000000;
	assert_non_null(h->self.profile);
	assert_non_null(h->self.report);
}

static inline uint32_t hand_text(struct hand *h, const char *text)
{
	return text ? np_intern_add(&h->self.profile->strings, np_str_of(text)) : NP_ID_NONE;
}

/* A row of zeros, then what is given. It starts `gap` behind the end of the last. */
static inline size_t hand_kernel(struct hand *h, const char *type, const char *core, np_ns gap,
                                 np_ns dur, const char *in, const char *out)
{
	struct np_profile *p = h->self.profile;
	size_t row = np_profile_add(p, kernels);
	assert_int_equal(np_profile_add(p, kernel_shapes), row);
	for (size_t c = 0; c < np_kernels_desc.n_columns; c++) {
		const struct np_column_desc *column = &np_kernels_desc.columns[c];
		char *values;
		memcpy(&values, (char *)&p->kernels + column->offset, sizeof values);
		memset(values + row * column->elem_size, 0, column->elem_size);
	}
	h->now += gap;
	p->kernels.stream[row] = 2;
	p->kernels.name[row] = p->kernels.type[row] = hand_text(h, type);
	p->kernels.core[row] = hand_text(h, core);
	p->kernels.start_ns[row] = h->now;
	p->kernels.dur_ns[row] = dur;
	h->now += dur;
	struct np_kernel_shapes *shapes = &p->kernel_shapes;
	shapes->in_shapes[row] = hand_text(h, in);
	shapes->out_shapes[row] = hand_text(h, out);
	shapes->in_dtypes[row] = shapes->in_formats[row] = NP_ID_NONE;
	shapes->out_dtypes[row] = shapes->out_formats[row] = NP_ID_NONE;
	return row;
}

/* A metric of a row; the kernels are all there already. */
static inline void hand_metric(struct hand *h, size_t row, const char *name, double value)
{
	struct np_metric *metric = np_profile_metric_add(h->self.profile, np_str_of(name));
	assert_non_null(metric);
	metric->v[row] = value;
}

/* What np_analysis_prepare() derives, as far as the analyses need it. */
static inline void hand_ready(struct hand *h)
{
	struct np_analysis *self = &h->self;
	size_t n = self->profile->kernels.n;
	self->rows = np_alloc(n * sizeof *self->rows);
	self->class = np_alloc(n);
	self->span_of = np_calloc(n, sizeof *self->span_of);
	assert_true(np_classify_all(self->profile, self->class));
	for (size_t i = 0; i < n; i++) {
		np_ns start = self->profile->kernels.start_ns[i];
		self->rows[self->n_rows++] = (uint32_t)i;
		bool comm = self->class[i] == NP_CLASS_COMM;
		assert_true(np_intervals_add(comm ? &self->comm : &self->compute, start,
		                             start + self->profile->kernels.dur_ns[i]));
	}
	np_intervals_merge(&self->compute);
	np_intervals_merge(&self->comm);
	struct np_span span = {.id = 12, .start = 1000000, .end = h->now};
	assert_true(np_vec_push(&self->spans, span));
	self->total_ns = h->now - 1000000;
}

static inline void hand_release(struct hand *h)
{
	np_report_free(h->self.report);
	np_analysis_release(&h->self);
}

/* Every n-th allocation fails once: the analysis says so, or the report does. */
static inline void assert_survives_no_memory(struct hand *h, np_analysis_fn *analyze)
{
	for (uint64_t n = 1; n < 10000; n++) {
		struct np_report *report = np_report_new("analyze");
		struct np_report *kept = h->self.report;
		h->self.report = report;
		h->self.oom = false;
		np_mem_fail_after(n);
		analyze(&h->self);
		np_mem_fail_after(0);
		bool told = h->self.oom || report->failed;
		h->self.report = kept;
		h->self.oom = false;
		np_report_free(report);
		if (!told) {
			assert_true(n > 1);
			return;
		}
	}
	fail_msg("it never has enough memory");
}

#endif
