/*
 * Thresholds of the checkers: rules/advice.json, which is part of the binary,
 * with units and sources; a file of the user's may give other values.
 *
 *   {"aicpu_us": 50, "gc_us": {"value": 500}}
 *
 * A key that is not in rules/advice.json is an error, and so is anything but a number.
 */
#ifndef NP_ADVICE_RULES_H
#define NP_ADVICE_RULES_H

#include "base/err.h"
#include "base/mem.h"

struct np_advice_rule {
	const char *name, *unit, *source;
	double value;
	bool changed; /* by the user's file */
};

struct np_advice_rules {
	struct np_arena arena;
	NP_VEC(struct np_advice_rule) list; /* as in the file */
};

/* The built-in ones, and then those of `path` (NULL: none). Errors: those of reading the
 * file; E_FORMAT, E_USAGE (unknown key, no number); E_NOMEM. Release in every case. */
enum np_status np_advice_rules_load(struct np_advice_rules *self, const char *path,
                                    struct np_err *err);
void np_advice_rules_release(struct np_advice_rules *self);

/* The value of a rule; NaN when there is none of that name (a test looks that all names in
 * the sources are there). */
double np_advice_rule(const struct np_advice_rules *self, const char *name);

#endif
