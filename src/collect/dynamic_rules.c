/* What single members say. */
#include <string.h>

#include "collect/dynamic_check.h"
#include "report/lang.h"

static const char *const kind_text[] = {
	[NP_DYN_BOOL] = NP_N("true or false"),
	[NP_DYN_BOOL_OR_NULL] = NP_N("true, false or null"),
	[NP_DYN_INT] = NP_N("an integer"),
	[NP_DYN_NUMBER_OR_NULL] = NP_N("a number or null"),
	[NP_DYN_TEXT] = NP_N("a text"),
	[NP_DYN_WORD] = NP_N("one of"),
	[NP_DYN_WORDS] = NP_N("a list of"),
	[NP_DYN_WORD_OR_WORDS] = NP_N("a list of"),
	[NP_DYN_INTS] = NP_N("a list of integers"),
	[NP_DYN_TEXTS] = NP_N("a list of texts"),
	[NP_DYN_OBJECT] = NP_N("an object"),
};

/* "one of "text", "db"", "an integer of at least 1" */
static const char *wanted(struct np_dyn_checking *self, const struct np_dyn_field *field)
{
	struct np_buf text = {0};
	np_buf_add_cstr(&text, np_tr(kind_text[field->kind]));
	if (field->kind == NP_DYN_INT || field->kind == NP_DYN_INTS)
		np_buf_printf(&text, np_tr(" of at least %lld"), (long long)field->min);
	for (const char *const *word = field->words; word && *word; word++)
		np_buf_printf(&text, "%s \"%s\"", word == field->words ? "" : ",", *word);
	const char *copy = np_arena_cstr(&self->report->arena, np_buf_str(&text));
	np_buf_release(&text);
	return copy ? copy : "";
}

/* Is the JSON type right, so that only the value is wrong? */
static bool is_of_kind(const struct np_dyn_field *field, const struct np_jval *value)
{
	int64_t number;
	switch (field->kind) {
	case NP_DYN_INT:
		return value->type == NP_J_NUMBER && np_str_to_i64(value->text, &number);
	case NP_DYN_NUMBER_OR_NULL:
		return value->type == NP_J_NUMBER;
	case NP_DYN_WORD:
		return value->type == NP_J_STRING;
	case NP_DYN_WORDS:
	case NP_DYN_INTS:
	case NP_DYN_TEXTS:
		return value->type == NP_J_ARRAY;
	case NP_DYN_WORD_OR_WORDS:
		return value->type == NP_J_ARRAY || value->type == NP_J_STRING;
	default:
		return false;
	}
}

/* "ACL_AICORE_PIPE_UTILIZATION", as profiler_info stores it: the name that is meant. */
static const char *metrics_name(np_str stored)
{
	static const char *const names[][2] = {
		{"ACL_AICORE_PIPE_UTILIZATION", "PipeUtilization"},
		{"ACL_AICORE_ARITHMETIC_UTILIZATION", "ArithmeticUtilization"},
		{"ACL_AICORE_MEMORY_BANDWIDTH", "Memory"},
		{"ACL_AICORE_L0B_AND_WIDTH", "MemoryL0"},
		{"ACL_AICORE_MEMORY_UB", "MemoryUB"},
		{"ACL_AICORE_RESOURCE_CONFLICT_RATIO", "ResourceConflictRatio"},
		{"ACL_AICORE_L2_CACHE", "L2Cache"},
		{"ACL_AICORE_MEMORY_ACCESS", "MemoryAccess"},
		{"ACL_AICORE_NONE", "AiCoreNone"},
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (np_str_is(stored, names[i][0]))
			return names[i][1];
	return NULL;
}

/* A word in another case, or one of ACL's. */
static const char *meant(const struct np_dyn_field *field, const struct np_jval *value)
{
	const char *metrics = metrics_name(np_jstr(value));
	if (field == &np_dyn_fields[NP_DYN_METRICS] && metrics)
		return metrics;
	for (const char *const *word = field->words; word && *word; word++)
		if (value->type == NP_J_STRING && np_str_ieq(value->text, np_str_of(*word)))
			return *word;
	return NULL;
}

static void suggest_value(struct np_dyn_checking *self, struct np_finding *finding,
                          enum np_dyn_id id, const struct np_jval *value)
{
	const struct np_dyn_field *field = &np_dyn_fields[id];
	const char *word = meant(field, value);
	const char *json = np_dyn_preset(id, NP_DYN_FOR_CLUSTER);
	if (word)
		json = np_arena_printf(&self->report->arena,
		                       field->kind == NP_DYN_WORD ? "\"%s\"" : "[\"%s\"]", word);
	if (json && id != NP_DYN_EXPERIMENTAL)
		np_dyn_suggest(self, finding, id, json);
}

static void tell_metrics_name(struct np_dyn_checking *self, const struct np_dyn_member *member)
{
	const char *name = metrics_name(member->value->text);
	struct np_finding *finding =
		np_dyn_tell(self, "DYN_METRICS_NAME", NP_ERROR, member,
	                    "aic_metrics wants the name %s, not what profiler_info stores", name);
	np_finding_detail(finding, "torch_npu takes its default instead: at Level0 none, else "
	                           "PipeUtilization.");
	suggest_value(self, finding, NP_DYN_METRICS, member->value);
}

static void tell_analyse(struct np_dyn_checking *self, const struct np_dyn_member *member)
{
	struct np_finding *finding =
		np_dyn_tell(self, "DYN_ANALYSE_NOT_BOOL", NP_ERROR, member,
	                    "analyse is neither true nor false, which counts as true");
	np_finding_detail(finding, "It is passed on, and the handler resets what is no bool to "
	                           "its own default, true (\"analyse_flag is not bool\"): also "
	                           "\"false\", 0 and null analyse.");
	np_dyn_suggest(self, finding, NP_DYN_ANALYSE, "true");
}

/* Entries that are dropped one by one. */
static void tell_entries(struct np_dyn_checking *self, enum np_dyn_id id,
                         const struct np_dyn_member *member)
{
	const struct np_dyn_field *field = &np_dyn_fields[id];
	size_t wrong = 0;
	for (size_t i = 0; i < member->value->n; i++)
		wrong += !np_dyn_accepts_entry(field, &member->value->child[i]);
	struct np_finding *finding;
	if (id == NP_DYN_RANK_LIST)
		finding = np_dyn_tell(self, "DYN_RANK_LIST_ENTRY", NP_ERROR, member,
		                      "%zu of %zu entries of rank_list are ignored: ranks are "
		                      "integers of at least 0",
		                      wrong, member->value->n);
	else
		finding = np_dyn_tell(self, "DYN_VALUE", NP_ERROR, member,
		                      "%zu of %zu entries of %s are not accepted: it wants %s",
		                      wrong, member->value->n, field->key, wanted(self, field));
	if (id == NP_DYN_RANK_LIST)
		np_finding_advice(finding, "write the numbers without quotes: [0, 1]");
	else
		suggest_value(self, finding, id, member->value);
}

static void tell_value(struct np_dyn_checking *self, enum np_dyn_id id,
                       const struct np_dyn_member *member)
{
	const struct np_dyn_field *field = &np_dyn_fields[id];
	bool of_kind = is_of_kind(field, member->value);
	struct np_finding *finding = np_dyn_tell(
		self, of_kind ? "DYN_VALUE" : "DYN_TYPE", NP_ERROR, member,
		"%s is not what it has to be, and torch_npu takes %s instead: it wants %s",
		field->key, field->instead, wanted(self, field));
	if (id == NP_DYN_START_STEP)
		np_finding_detail(finding, "start_step 0 never fires: nothing is collected (R80).");
	suggest_value(self, finding, id, member->value);
}

static void check_member(struct np_dyn_checking *self, const struct np_dyn_member *member)
{
	enum np_dyn_id id = np_dyn_field_find(member->key, member->inside);
	const struct np_jval *value = member->value;
	const struct np_dyn_field *field;
	if (!member->last || id == NP_DYN_N_FIELDS)
		return;
	field = &np_dyn_fields[id];
	bool list = field->kind == NP_DYN_WORDS || field->kind == NP_DYN_INTS ||
	            field->kind == NP_DYN_TEXTS || field->kind == NP_DYN_WORD_OR_WORDS;
	if (np_dyn_accepts(field, value))
		return;
	if (id == NP_DYN_METRICS && value->type == NP_J_STRING && metrics_name(value->text))
		tell_metrics_name(self, member);
	else if (id == NP_DYN_ANALYSE)
		tell_analyse(self, member);
	else if (list && value->type == NP_J_ARRAY && value->n)
		tell_entries(self, id, member);
	else
		tell_value(self, id, member);
}

/* ── keys ── */

static void check_unknown(struct np_dyn_checking *self, const struct np_dyn_member *member)
{
	if (np_dyn_field_find(member->key, member->inside) != NP_DYN_N_FIELDS)
		return;
	enum np_dyn_id near = np_dyn_field_near(member->key);
	struct np_finding *finding = np_dyn_tell(
		self, "DYN_KEY_UNKNOWN", near < NP_DYN_N_FIELDS ? NP_ERROR : NP_WARNING, member,
		"torch_npu does not know the key %.*s%s and ignores it", NP_FMT(member->key),
		member->inside ? np_tr(" of experimental_config") : "");
	if (near == NP_DYN_N_FIELDS)
		np_finding_advice(finding, "there are no wait, repeat and skip_first here: the "
		                           "schedule is warmup + active from start_step on");
	else if (np_dyn_fields[near].inside != member->inside)
		np_finding_advice(finding,
		                  np_dyn_fields[near].inside ? "move %s into experimental_config"
		                                             : "move %s out of experimental_config",
		                  np_dyn_fields[near].key);
	else
		np_finding_advice(finding, "it is written %s", np_dyn_fields[near].key);
}

static void check_duplicate(struct np_dyn_checking *self, const struct np_dyn_member *member)
{
	if (member->last)
		return;
	if (member->inside) /* of an experimental_config that does not count: told once, outside */
		for (size_t i = 0; i < self->doc->members.n; i++) {
			const struct np_dyn_member *other = &self->doc->members.v[i];
			if (!other->inside && !other->last && other->begin < member->begin &&
			    other->end > member->end)
				return;
		}
	struct np_finding *finding = np_dyn_tell(
		self, "DYN_KEY_DUPLICATE", NP_WARNING, member,
		"the key %.*s is there more than once; the last one counts", NP_FMT(member->key));
	np_finding_advice(finding, "remove this line");
}

static void check_missing(struct np_dyn_checking *self)
{
	struct np_buf keys = {0};
	size_t n = 0;
	for (size_t i = 0; i < NP_DYN_N_FIELDS; i++) {
		enum np_dyn_id id = (enum np_dyn_id)i;
		if (np_dyn_member(self->doc, id) || !np_dyn_fields[i].cluster ||
		    id == NP_DYN_START_STEP)
			continue;
		if (np_dyn_fields[i].inside && !self->doc->has_inner)
			continue; /* told as a whole */
		np_buf_printf(&keys, "%s%s", n++ ? ", " : "", np_dyn_fields[i].key);
	}
	if (n) {
		struct np_finding *finding = np_report_finding(
			self->report, "DYN_KEY_MISSING", NP_INFO,
			"%zu keys are not there: torch_npu takes its defaults", n);
		np_finding_evidence(finding, self->path, NULL, NULL, "%s",
		                    keys.ptr ? keys.ptr : "");
	}
	np_buf_release(&keys);
	if (!np_dyn_member(self->doc, NP_DYN_START_STEP)) {
		struct np_finding *finding =
			np_report_finding(self->report, "DYN_KEY_MISSING", NP_ERROR,
		                          "start_step is not there: nothing is collected");
		np_finding_evidence(finding, self->path, "start_step", NULL, "not there");
		np_dyn_suggest(self, finding, NP_DYN_START_STEP, "-1");
	}
	if (!np_dyn_member(self->doc, NP_DYN_EXPERIMENTAL)) {
		struct np_finding *finding = np_report_finding(
			self->report, "DYN_KEY_MISSING", NP_WARNING,
			"experimental_config is not there: Level0 as text, no communication, no "
			"unit utilisation");
		np_finding_evidence(finding, self->path, "experimental_config", NULL, "not there");
		np_dyn_suggest(self, finding, NP_DYN_LEVEL, "\"Level1\"");
	}
}

void np_dyn_check_fields(struct np_dyn_checking *self)
{
	for (size_t i = 0; i < self->doc->members.n; i++) {
		check_unknown(self, &self->doc->members.v[i]);
		check_duplicate(self, &self->doc->members.v[i]);
		check_member(self, &self->doc->members.v[i]);
	}
	check_missing(self);
}
