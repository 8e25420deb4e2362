#include "cmd/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 96, FIRST_ID = 256 };

struct tables {
	struct option long_options[MAX_OPTIONS + 1];
	char letters[2 * MAX_OPTIONS + 3];
	const struct np_option *option[MAX_OPTIONS];
	void *values[MAX_OPTIONS];
	size_t n;
};

/* Both of getopt's views of our tables. */
static bool build(struct tables *tables, const struct np_option_set *sets, size_t n_sets)
{
	size_t len = 0;
	tables->letters[len++] = ':'; /* a missing value is told apart from an unknown option */
	for (size_t s = 0; s < n_sets; s++)
		for (size_t i = 0; i < sets[s].n; i++) {
			const struct np_option *option = &sets[s].options[i];
			if (tables->n == MAX_OPTIONS)
				return false;
			bool takes = option->type != NP_OPT_FLAG;
			tables->long_options[tables->n] = (struct option){
				option->name, takes ? required_argument : no_argument, NULL,
				FIRST_ID + (int)tables->n};
			if (option->letter) {
				tables->letters[len++] = option->letter;
				if (takes)
					tables->letters[len++] = ':';
			}
			tables->option[tables->n] = option;
			tables->values[tables->n++] = sets[s].values;
		}
	tables->letters[len] = '\0';
	return true;
}

static enum np_status set_number(const struct np_option *option, void *at, const char *text,
                                 struct np_err *err)
{
	char *end = NULL;
	errno = 0;
	if (option->type == NP_OPT_DOUBLE) {
		double value = strtod(text, &end);
		memcpy(at, &value, sizeof value);
	} else {
		uint64_t value = strtoull(text, &end, 10);
		memcpy(at, &value, sizeof value);
		if (text[0] == '-')
			errno = ERANGE;
	}
	if (errno || end == text || *end)
		return np_err_set(err, NP_E_USAGE, NULL, "--%s wants a number, got '%s'",
		                  option->name, text);
	return NP_OK;
}

static enum np_status set_value(const struct np_option *option, void *values, const char *text,
                                struct np_err *err)
{
	char *at = (char *)values + option->offset;
	bool yes = true;
	struct np_opt_list *list = (struct np_opt_list *)(void *)at;
	switch (option->type) {
	case NP_OPT_FLAG:
		memcpy(at, &yes, sizeof yes);
		return NP_OK;
	case NP_OPT_STRING:
		memcpy(at, &text, sizeof text);
		return NP_OK;
	case NP_OPT_LIST:
		if (list->n == NP_OPT_MAX_LIST)
			return np_err_set(err, NP_E_USAGE, NULL,
			                  "--%s was given more than %d times", option->name,
			                  NP_OPT_MAX_LIST);
		list->v[list->n++] = text;
		return NP_OK;
	case NP_OPT_UINT:
	case NP_OPT_DOUBLE:
		break;
	}
	return set_number(option, at, text, err);
}

static size_t index_of(const struct tables *tables, int got)
{
	if (got >= FIRST_ID)
		return (size_t)(got - FIRST_ID);
	for (size_t i = 0; i < tables->n; i++)
		if (tables->option[i]->letter == got)
			return i;
	return MAX_OPTIONS;
}

enum np_status np_options_parse(const struct np_option_set *sets, size_t n_sets, int argc,
                                char **argv, int *first, struct np_err *err)
{
	struct tables tables = {.n = 0};
	if (!build(&tables, sets, n_sets))
		return np_err_set(err, NP_E_LIMIT, NULL, "too many options in the tables");
	optind = 0; /* start over, and forget the last command line */
	opterr = 0;
	for (;;) {
		int got = getopt_long(argc, argv, tables.letters, tables.long_options, NULL);
		if (got == -1)
			break;
		const char *word = argv[optind - 1];
		if (got == ':')
			return np_err_set(err, NP_E_USAGE, NULL, "option %s wants a value", word);
		size_t i = got == '?' ? MAX_OPTIONS : index_of(&tables, got);
		if (i == MAX_OPTIONS && optopt > 0 && optopt < FIRST_ID)
			return np_err_set(err, NP_E_USAGE, NULL, "unknown option -%c", optopt);
		if (i == MAX_OPTIONS)
			return np_err_set(err, NP_E_USAGE, NULL, "unknown option %s", word);
		NP_TRY(set_value(tables.option[i], tables.values[i], optarg, err));
	}
	*first = optind;
	return NP_OK;
}

int np_options_end(const struct np_option_set *sets, size_t n_sets, int argc, char **argv)
{
	struct tables tables = {.n = 0};
	char letters[2 * MAX_OPTIONS + 4] = "+"; /* stop at the first word */
	if (!build(&tables, sets, n_sets))
		return argc;
	memcpy(letters + 1, tables.letters, sizeof tables.letters);
	optind = 0;
	opterr = 0;
	int got;
	do {
		got = getopt_long(argc, argv, letters, tables.long_options, NULL);
	} while (got != -1);
	/* getopt steps over the `--` that ends options */
	if (optind > 1 && strcmp(argv[optind - 1], "--") == 0)
		return optind - 1;
	return optind;
}

/* ── the way back ── */

static const char *one_word(const struct np_option *option, struct np_arena *arena, const char *at)
{
	const char *text = NULL;
	uint64_t number = 0;
	double real = 0;
	switch (option->type) {
	case NP_OPT_FLAG:
		return np_arena_printf(arena, "--%s", option->name);
	case NP_OPT_UINT:
		memcpy(&number, at, sizeof number);
		return np_arena_printf(arena, "--%s=%llu", option->name,
		                       (unsigned long long)number);
	case NP_OPT_DOUBLE:
		memcpy(&real, at, sizeof real);
		return np_arena_printf(arena, "--%s=%.17g", option->name, real);
	case NP_OPT_STRING:
	case NP_OPT_LIST:
		break;
	}
	memcpy(&text, at, sizeof text);
	return np_arena_printf(arena, "--%s=%s", option->name, text);
}

/* How many values were given, and where the first one is. */
static size_t given(const struct np_option *option, const char *values, const char **first)
{
	static const char zero[sizeof(uint64_t) + sizeof(double)];
	const char *at = values + option->offset;
	size_t size = option->type == NP_OPT_FLAG ? sizeof(bool) : sizeof(uint64_t);
	*first = at;
	if (option->type == NP_OPT_LIST)
		return ((const struct np_opt_list *)(const void *)at)->n;
	return memcmp(at, zero, size) != 0;
}

enum np_status np_options_words(const struct np_option_set *set, struct np_arena *arena,
                                const char **out, size_t *n, size_t max, struct np_err *err)
{
	for (size_t i = 0; i < set->n; i++) {
		const char *at = NULL;
		size_t count = given(&set->options[i], set->values, &at);
		for (size_t k = 0; k < count; k++) {
			if (*n == max)
				return np_err_set(err, NP_E_LIMIT, NULL, "too many options");
			out[*n] = one_word(&set->options[i], arena, at + k * sizeof(char *));
			if (!out[(*n)++])
				return np_err_nomem(err);
		}
	}
	return NP_OK;
}
