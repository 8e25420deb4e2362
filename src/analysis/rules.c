#include "analysis/rules.h"

#include <stddef.h>
#include <string.h>

const struct np_rules np_default_rules = {
#define X(name, value, unit, source) .name = value,
	NP_RULE_MAP(X)
#undef X
};

const struct np_rule_info np_rule_infos[] = {
#define X(name, value, unit, source) {#name, unit, source, offsetof(struct np_rules, name)},
	NP_RULE_MAP(X)
#undef X
};
const size_t np_n_rules = sizeof np_rule_infos / sizeof *np_rule_infos;

enum np_status np_rules_set(struct np_rules *rules, const char *assignment, struct np_err *err)
{
	np_str value;
	np_str name = np_str_cut(np_str_of(assignment), '=', &value);
	for (size_t i = 0; i < np_n_rules; i++) {
		if (!np_str_is(name, np_rule_infos[i].name))
			continue;
		double number = 0;
		if (!np_str_to_double(value, &number))
			return np_err_set(err, NP_E_USAGE, NULL,
			                  "rule %s wants a number, got '%.*s'",
			                  np_rule_infos[i].name, NP_FMT(value));
		memcpy((char *)rules + np_rule_infos[i].offset, &number, sizeof number);
		return NP_OK;
	}
	return np_err_set(err, NP_E_USAGE, NULL, "unknown rule '%.*s'", NP_FMT(name));
}
