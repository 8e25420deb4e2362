#include "advice/rules.h"

#include <math.h>
#include <string.h>

#include "io/json.h"

#ifndef NP_ROOT
#define NP_ROOT "" /* for tools that do not know the build */
#endif

/* As report/embed.c does it: the file is in the binary as it is. */
__asm__(".pushsection .rodata\n"
        ".hidden np_file_advice_begin\n.global np_file_advice_begin\nnp_file_advice_begin:\n"
        ".incbin \"" NP_ROOT "rules/advice.json\"\n"
        ".hidden np_file_advice_end\n.global np_file_advice_end\nnp_file_advice_end:\n.byte 0\n"
        ".popsection\n");
extern const char np_file_advice_begin[] __attribute__((visibility("hidden")));
extern const char np_file_advice_end[] __attribute__((visibility("hidden")));

static struct np_advice_rule *find(const struct np_advice_rules *self, np_str name)
{
	for (size_t i = 0; i < self->list.n; i++)
		if (np_str_is(name, self->list.v[i].name))
			return &self->list.v[i];
	return NULL;
}

/* 50, or {"value": 50, …} */
static bool value_of(const struct np_jval *entry, double *out)
{
	return entry->type == NP_J_NUMBER ? np_jdouble(entry, out)
	                                  : np_jdouble(np_jget(entry, "value"), out);
}

static enum np_status add_builtin(struct np_advice_rules *self, const struct np_jval *root,
                                  struct np_err *err)
{
	for (size_t i = 0; i < root->n; i++) {
		const struct np_jval *entry = &root->child[i];
		struct np_advice_rule rule = {
			.name = np_arena_cstr(&self->arena, entry->key),
			.unit = np_arena_cstr(&self->arena, np_jstr(np_jget(entry, "unit"))),
			.source = np_arena_cstr(&self->arena, np_jstr(np_jget(entry, "source"))),
			.value = NAN,
		};
		(void)value_of(entry, &rule.value);
		if (!rule.name || !rule.unit || !rule.source || !np_vec_push(&self->list, rule))
			return np_err_nomem(err);
	}
	return NP_OK;
}

static enum np_status change(struct np_advice_rules *self, const struct np_jval *root,
                             const char *path, struct np_err *err)
{
	if (root->type != NP_J_OBJECT)
		return np_err_set(err, NP_E_FORMAT, path, "wants an object: {\"aicpu_us\": 50}");
	for (size_t i = 0; i < root->n; i++) {
		const struct np_jval *entry = &root->child[i];
		struct np_advice_rule *rule = find(self, entry->key);
		if (!rule)
			return np_err_set(err, NP_E_USAGE, path,
			                  "there is no rule \"%.*s\"; npuprof advise --list-rules "
			                  "tells all",
			                  NP_FMT(entry->key));
		if (!value_of(entry, &rule->value))
			return np_err_set(err, NP_E_USAGE, path, "rule \"%s\" wants a number",
			                  rule->name);
		rule->changed = true;
	}
	return NP_OK;
}

enum np_status np_advice_rules_load(struct np_advice_rules *self, const char *path,
                                    struct np_err *err)
{
	struct np_arena arena;
	struct np_json_repairs repairs;
	const struct np_jval *root = NULL;
	struct np_input *input = NULL;
	*self = (struct np_advice_rules){.list = {0}};
	np_arena_init(&self->arena);
	np_arena_init(&arena);
	size_t size = (size_t)((uintptr_t)np_file_advice_end - (uintptr_t)np_file_advice_begin);
	enum np_status status = np_input_open_mem((np_str){np_file_advice_begin, size},
	                                          "rules/advice.json", 0, &input, err);
	if (status == NP_OK)
		status = np_json_parse(&arena, input, NP_JSON_STRICT, &root, &repairs, err);
	if (status == NP_OK)
		status = add_builtin(self, root, err);
	if (status == NP_OK && path)
		status = np_json_parse_file(&arena, path, NP_JSON_COMMENTS, &root, &repairs, err);
	if (status == NP_OK && path)
		status = change(self, root, path, err);
	np_input_close(input);
	np_arena_release(&arena);
	return status;
}

void np_advice_rules_release(struct np_advice_rules *self)
{
	np_vec_release(&self->list);
	np_arena_release(&self->arena);
}

double np_advice_rule(const struct np_advice_rules *self, const char *name)
{
	const struct np_advice_rule *rule = find(self, np_str_of(name));
	return rule ? rule->value : NAN;
}
