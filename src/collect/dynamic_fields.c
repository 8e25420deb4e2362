#include "collect/dynamic_fields.h"

#include <string.h>

static const char *const activities[] = {"CPU", "NPU", NULL};
static const char *const levels[] = {"Level_none", "Level0", "Level1", "Level2", NULL};
static const char *const metrics[] = {
	"PipeUtilization", "ArithmeticUtilization",
	"Memory",          "MemoryL0",
	"MemoryUB",        "ResourceConflictRatio",
	"L2Cache",         "MemoryAccess",
	"AiCoreNone",      NULL,
};
static const char *const exports[] = {"text", "db", NULL};
static const char *const host_sys[] = {"cpu", "mem", "disk", "network", "osrt", "numa", NULL};

const struct np_dyn_field np_dyn_fields[NP_DYN_N_FIELDS] = {
#define X(id, key, inside, kind, min, words, instead, cluster, kernel) \
	{key, inside, NP_DYN_##kind, min, words, instead, cluster, kernel},
	NP_DYN_FIELD_MAP(X)
#undef X
};

enum np_dyn_id np_dyn_field_find(np_str key, bool inside)
{
	size_t id = 0;
	while (id < NP_DYN_N_FIELDS &&
	       (np_dyn_fields[id].inside != inside || !np_str_is(key, np_dyn_fields[id].key)))
		id++;
	return (enum np_dyn_id)id;
}

/* Letters to change, add or drop, by the usual table of one row; 99 for long words. */
static size_t distance(np_str a, np_str b)
{
	enum { MAX = 40 };
	size_t row[MAX + 1];
	if (a.len > MAX || b.len > MAX)
		return 99;
	for (size_t k = 0; k <= b.len; k++)
		row[k] = k;
	for (size_t i = 1; i <= a.len; i++) {
		size_t corner = row[0];
		row[0] = i;
		for (size_t k = 1; k <= b.len; k++) {
			bool same = np_str_ieq(np_str_sub(a, i - 1, 1), np_str_sub(b, k - 1, 1));
			size_t best = corner + (same ? 0 : 1);
			corner = row[k];
			if (row[k] + 1 < best)
				best = row[k] + 1;
			if (row[k - 1] + 1 < best)
				best = row[k - 1] + 1;
			row[k] = best;
		}
	}
	return row[b.len];
}

enum np_dyn_id np_dyn_field_near(np_str key)
{
	size_t best = NP_DYN_N_FIELDS, least = 3;
	for (size_t id = 0; id < NP_DYN_N_FIELDS; id++) {
		size_t d = distance(key, np_str_of(np_dyn_fields[id].key));
		if (d < least) {
			least = d;
			best = id;
		}
	}
	return (enum np_dyn_id)best;
}

static bool is_word(const struct np_dyn_field *field, const struct np_jval *value)
{
	if (value->type != NP_J_STRING)
		return false;
	for (const char *const *word = field->words; *word; word++)
		if (np_str_is(value->text, *word))
			return true;
	return false;
}

static bool is_int(const struct np_dyn_field *field, const struct np_jval *value)
{
	int64_t number;
	return value->type == NP_J_NUMBER && np_str_to_i64(value->text, &number) &&
	       number >= field->min;
}

bool np_dyn_accepts_entry(const struct np_dyn_field *field, const struct np_jval *entry)
{
	if (field->kind == NP_DYN_INTS)
		return is_int(field, entry);
	return field->kind == NP_DYN_TEXTS ? entry->type == NP_J_STRING : is_word(field, entry);
}

static bool is_list(const struct np_dyn_field *field, const struct np_jval *value)
{
	if (value->type != NP_J_ARRAY)
		return false;
	for (size_t i = 0; i < value->n; i++)
		if (!np_dyn_accepts_entry(field, &value->child[i]))
			return false;
	return true;
}

bool np_dyn_accepts(const struct np_dyn_field *field, const struct np_jval *value)
{
	bool is_bool = value->type == NP_J_TRUE || value->type == NP_J_FALSE;
	double number;
	switch (field->kind) {
	case NP_DYN_BOOL:
		return is_bool;
	case NP_DYN_BOOL_OR_NULL:
		return is_bool || value->type == NP_J_NULL;
	case NP_DYN_INT:
		return is_int(field, value);
	case NP_DYN_NUMBER_OR_NULL:
		return value->type == NP_J_NULL ||
		       (value->type == NP_J_NUMBER && np_jdouble(value, &number) &&
		        number >= (double)field->min);
	case NP_DYN_TEXT:
		return value->type == NP_J_STRING;
	case NP_DYN_WORD:
		return is_word(field, value);
	case NP_DYN_WORD_OR_WORDS:
		return is_word(field, value) || (is_list(field, value) && value->n > 0);
	case NP_DYN_WORDS:
	case NP_DYN_INTS:
	case NP_DYN_TEXTS:
		return is_list(field, value);
	case NP_DYN_OBJECT:
		return value->type == NP_J_OBJECT;
	}
	return false;
}

bool np_dyn_purpose_parse(const char *name, enum np_dyn_purpose *out)
{
	bool kernel = strcmp(name, "kernel") == 0;
	*out = kernel ? NP_DYN_FOR_KERNEL : NP_DYN_FOR_CLUSTER;
	return kernel || strcmp(name, "cluster") == 0;
}

const char *np_dyn_purpose_name(enum np_dyn_purpose purpose)
{
	return purpose == NP_DYN_FOR_KERNEL ? "kernel" : "cluster";
}

const char *np_dyn_preset(enum np_dyn_id id, enum np_dyn_purpose purpose)
{
	const struct np_dyn_field *field = &np_dyn_fields[id];
	return purpose == NP_DYN_FOR_KERNEL ? field->kernel : field->cluster;
}

static void add_members(struct np_buf *out, enum np_dyn_purpose purpose,
                        const char *const values[NP_DYN_N_FIELDS], bool inside)
{
	bool first = true;
	for (size_t id = 0; id < NP_DYN_N_FIELDS; id++) {
		const char *value = values[id];
		if (!value)
			value = np_dyn_preset((enum np_dyn_id)id, purpose);
		if (np_dyn_fields[id].inside != inside || id == NP_DYN_EXPERIMENTAL || !value)
			continue;
		np_buf_printf(out, "%s%s\"%s\": %s", first ? "" : ",\n", inside ? "    " : "  ",
		              np_dyn_fields[id].key, value);
		first = false;
	}
}

void np_dyn_template(struct np_buf *out, enum np_dyn_purpose purpose,
                     const char *const values[NP_DYN_N_FIELDS])
{
	np_buf_add_cstr(out, "{\n");
	add_members(out, purpose, values, false);
	np_buf_add_cstr(out, ",\n  \"experimental_config\": {\n");
	add_members(out, purpose, values, true);
	np_buf_add_cstr(out, "\n  }\n}\n");
}
