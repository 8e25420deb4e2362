/*
 * What a checker sees, and what it says. Private to src/advice/.
 *
 * A checker reads the context, calls np_advice_problem() at most a few times and
 * fills at most one table, whose id is the checker's name and whose columns are
 * those of the official sheet. It prints nothing and has no state. What it cannot
 * judge (data not recorded) it says by np_advice_unknown().
 */
#ifndef NP_ADVICE_CHECKER_H
#define NP_ADVICE_CHECKER_H

#include "advice/advice.h"
#include "advice/rules.h"
#include "analysis/analysis.h"
#include "cluster/cluster.h"

struct np_advice;

struct np_checker {
	const char *name; /* "aicpu": id of its table */
	enum np_dimension dimension;
	const char *category;    /* in `problems`, and the sheet: the official English name */
	const char *category_zh; /* the official Chinese name */
	/* Sees one rank (self->rank is set), or the cluster (NP_DIM_CLUSTER: self->cluster set). */
	void (*run)(struct np_advice *self, const struct np_checker *checker);
	unsigned load; /* enum np_load bits beyond those of np_analysis_prepare() */
};

/* Sorted by dimension, then as the official tool runs them. */
extern const struct np_checker *const np_checkers[];
extern const size_t np_n_checkers;

struct np_advice {
	const struct np_advise_options *options;
	const struct np_captures *all;
	const struct np_advice_rules *rules;
	struct np_report *report;
	struct np_cluster *cluster; /* NULL for a single rank */
	struct np_analysis *rank;   /* the rank that is looked at, its steps and kernels chosen */
	int64_t rank_id;            /* NP_NO_I64: not known */
	double step_us;             /* length of what is looked at, per step */
	unsigned steps;             /* how many steps that are */
	bool many;                  /* several ranks: titles say which one */
	bool oom;
};

/* One problem. Texts as in the official overview; total and gain are of one step. */
struct np_problem_text {
	const char *code; /* of the finding, static */
	size_t count;     /* occurrences; 0: not counted */
	double total_us;  /* time of what is affected, per step; NaN: not known */
	double gain_us;   /* upper bound of what a change wins, per step; NaN: not known */
	const char *advice, *command; /* np_tr()able; NULL */
};

/*
 * A finding with severity by its share of the step (error ≥ priority_high, warning ≥
 * priority_medium, info below; by total where the gain is not known; info where neither is),
 * and its row in `problems`. The description is the title. Never NULL.
 */
struct np_finding *np_advice_problem(struct np_advice *self, const struct np_checker *checker,
                                     const struct np_problem_text *text, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The checker could not judge, and what would have to be recorded: a note, exit code 3. */
void np_advice_unknown(struct np_advice *self, const struct np_checker *checker, const char *fmt,
                       ...) __attribute__((format(printf, 3, 4)));

/* The table `problems`, made when it is not there yet. Never NULL. */
struct np_table *np_advice_overview(struct np_report *report);

/* Its table: id = checker->name, title = category; where several ranks are looked at (stages of
 * a pipeline), of all but the first "aicpu_rank4". Never NULL. */
struct np_table *np_advice_table(struct np_advice *self, const struct np_checker *checker,
                                 const struct np_column *columns, size_t n);
#define NP_ADVICE_TABLE(self, checker, columns) \
	np_advice_table((self), (checker), (columns), sizeof(columns) / sizeof *(columns))

/* The value of a rule. */
static inline double np_rule_value(const struct np_advice *self, const char *name)
{
	return np_advice_rule(self->rules, name);
}

/* Share of the step. */
static inline double np_step_share(const struct np_advice *self, double us)
{
	return self->step_us > 0 ? us / self->step_us : 0;
}

/* ns over all looked-at steps → us per step */
static inline double np_per_step_us(const struct np_advice *self, np_ns ns)
{
	return (double)ns / 1000 / (self->steps > 0 ? self->steps : 1);
}

#endif
