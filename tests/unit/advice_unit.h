/* A checker of `advise`, alone, on a profile made by hand. */
#ifndef NP_TESTS_ADVICE_UNIT_H
#define NP_TESTS_ADVICE_UNIT_H

#include "ops_unit.h"

#include "advice/checker.h"

struct advice {
	struct hand h;
	struct np_advise_options options;
	struct np_advice_rules rules;
	struct np_advice self;
};

static inline void advice_init(struct advice *a)
{
	memset(a, 0, sizeof *a);
	struct np_err err;
	hand_init(&a->h);
	a->h.capture.framework = NP_FW_TORCH;
	a->h.capture.config.cann_version = "";
	assert_int_equal(np_advice_rules_load(&a->rules, NULL, &err), NP_OK);
}

/* All kernels are there. */
static inline void advice_ready(struct advice *a)
{
	hand_ready(&a->h);
	struct np_span *span = &a->h.self.spans.v[0];
	span->host_start = span->host_end = NP_NO_I64;
	a->self = (struct np_advice){.options = &a->options,
	                             .rules = &a->rules,
	                             .rank = &a->h.self,
	                             .rank_id = 0,
	                             .report = a->h.self.report,
	                             .steps = 1,
	                             .step_us = (double)a->h.self.total_ns / 1000};
}

static inline void advice_release(struct advice *a)
{
	np_advice_rules_release(&a->rules);
	hand_release(&a->h);
}

static inline const struct np_checker *checker_named(const char *name)
{
	for (size_t i = 0; i < np_n_checkers; i++)
		if (strcmp(np_checkers[i]->name, name) == 0)
			return np_checkers[i];
	fail_msg("no checker %s", name);
	return NULL;
}

/* Run it into a fresh report; its finding, or NULL. */
static inline const struct np_finding *advised(struct advice *a, const char *name)
{
	const struct np_checker *checker = checker_named(name);
	np_report_free(a->h.self.report);
	a->h.self.report = a->self.report = np_report_new("advise");
	assert_non_null(a->self.report);
	checker->run(&a->self, checker);
	assert_false(a->self.oom);
	assert_false(a->self.report->failed);
	assert_false(a->self.report->mistaken);
	assert_true(a->self.report->findings.n <= 1);
	return a->self.report->findings.n ? a->self.report->findings.v[0] : NULL;
}

static inline const struct np_table *advice_table_of(const struct advice *a, const char *name)
{
	return table_of(a->self.report, name);
}

/* Each allocation fails once: the checker says so, or its report does. */
static inline void assert_checker_survives_no_memory(struct advice *a, const char *name)
{
	const struct np_checker *checker = checker_named(name);
	for (uint64_t n = 1; n < 10000; n++) {
		np_report_free(a->h.self.report);
		a->h.self.report = a->self.report = np_report_new("advise");
		a->self.oom = false;
		np_mem_fail_after(n);
		checker->run(&a->self, checker);
		np_mem_fail_after(0);
		bool told = a->self.oom || a->self.report->failed;
		a->self.oom = false;
		if (!told) {
			assert_true(n > 1);
			assert_true(a->self.report->findings.n == 1);
			return;
		}
	}
	fail_msg("it never has enough memory");
}

#endif
