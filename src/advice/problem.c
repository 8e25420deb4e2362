/* What checkers say: findings, the overview, tables. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "advice/checker.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"category", "", NP_COL_TEXT, "the checker"},
	{"description", "", NP_COL_TEXT, "what was found"},
	{"suggestion", "", NP_COL_TEXT, "what to change"},
	{"problem count", "", NP_COL_INT, "occurrences"},
	{"total_time(us)", "", NP_COL_REAL, "time of what is affected, per step"},
	{"time ratio", "", NP_COL_PERCENT, "of the step"},
	{"income(us)", "", NP_COL_REAL, "upper bound of the gain, per step"},
	{"income ratio", "", NP_COL_PERCENT, "of the step"},
};

struct np_table *np_advice_overview(struct np_report *report)
{
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, "problems") == 0)
			return report->tables.v[i];
	return NP_REPORT_TABLE(report, "problems", "Problems", columns);
}

static enum np_severity severity_of(const struct np_advice *self, double us)
{
	double share = isnan(us) ? 0 : np_step_share(self, us);
	if (share >= np_rule_value(self, "priority_high"))
		return NP_ERROR;
	return share >= np_rule_value(self, "priority_medium") ? NP_WARNING : NP_INFO;
}

static void add_row(struct np_advice *self, const struct np_checker *checker,
                    const struct np_problem_text *text, const char *description)
{
	struct np_table *table = np_advice_overview(self->report);
	if (self->many && self->rank)
		np_cell_printf(table, "RANK %lld %s", (long long)self->rank_id, checker->category);
	else
		np_cell_word(table, checker->category);
	np_cell_cstr(table, description);
	np_cell_cstr(table, text->advice ? np_tr(text->advice) : NULL);
	if (text->count > 0)
		np_cell_int(table, (int64_t)text->count);
	else
		np_cell_na(table);
	np_cell_real(table, text->total_us);
	np_cell_real(table, isnan(text->total_us) ? NAN : np_step_share(self, text->total_us));
	np_cell_real(table, text->gain_us);
	np_cell_real(table, isnan(text->gain_us) ? NAN : np_step_share(self, text->gain_us));
}

struct np_finding *np_advice_problem(struct np_advice *self, const struct np_checker *checker,
                                     const struct np_problem_text *text, const char *fmt, ...)
{
	char description[600];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(description, sizeof description, np_tr(fmt), args);
	va_end(args);
	double worth = isnan(text->gain_us) ? text->total_us : text->gain_us;
	struct np_finding *finding;
	if (self->many && self->rank)
		finding = np_report_finding(self->report, text->code, severity_of(self, worth),
		                            "rank %lld: %s", (long long)self->rank_id, description);
	else
		finding = np_report_finding(self->report, text->code, severity_of(self, worth),
		                            "%s", description);
	if (text->advice)
		np_finding_advice(finding, "%s", np_tr(text->advice));
	if (text->command)
		np_finding_command(finding, "%s", text->command);
	if (!isnan(worth))
		np_finding_impact(finding, worth, np_step_share(self, worth));
	add_row(self, checker, text, description);
	return finding;
}

void np_advice_unknown(struct np_advice *self, const struct np_checker *checker, const char *fmt,
                       ...)
{
	char text[400];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, np_tr(fmt), args);
	va_end(args);
	np_report_note(self->report, "%s was not judged: %s", np_tr(checker->category), text);
	if (self->report->exit_code == 0)
		self->report->exit_code = 3;
}

static bool has_table(const struct np_report *report, const char *id)
{
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, id) == 0)
			return true;
	return false;
}

struct np_table *np_advice_table(struct np_advice *self, const struct np_checker *checker,
                                 const struct np_column *of, size_t n)
{
	char id[80], title[120];
	if (!self->many || !self->rank || !has_table(self->report, checker->name))
		return np_report_table(self->report, checker->name, checker->category, of, n);
	/* a second rank: of another stage of the pipeline */
	(void)snprintf(id, sizeof id, "%s_rank%lld", checker->name, (long long)self->rank_id);
	(void)snprintf(title, sizeof title, np_tr(NP_N("%s, rank %lld")), np_tr(checker->category),
	               (long long)self->rank_id);
	return np_report_table(self->report, id, title, of, n);
}
