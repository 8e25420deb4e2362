#include <stdio.h>
#include <string.h>

#include "synth/synth.h"

static const struct np_synth_fault_info faults[NP_SYNTH_FAULTS] = {
#define X(id, name, argument, code, help) [NP_SYNTH_##id] = {name, argument, code, help},
	NP_SYNTH_FAULT_MAP(X)
#undef X
};

const struct np_synth_fault_info *np_synth_fault_info(enum np_synth_fault_id id)
{
	return &faults[id];
}

const char *np_synth_fault_scope(enum np_synth_fault_id id)
{
	const char *argument = faults[id].argument;
	return strchr(argument, 'H') ? "host" : strchr(argument, 'S') ? "stage" : "rank";
}

static enum np_status parse_argument(np_str text, const struct np_synth_fault_info *info,
                                     struct np_synth_fault *out, struct np_err *err)
{
	np_str rest;
	bool pair = strchr(info->argument, '-') != NULL;
	if (info->argument[0] == '\0')
		return np_err_set(err, NP_E_USAGE, info->name, "takes no argument");
	np_str first = pair ? np_str_cut(text, '-', &rest) : text;
	if (!np_str_to_i64(first, &out->a) || out->a < 0 ||
	    (pair && (!np_str_to_i64(rest, &out->b) || out->b < 0)))
		return np_err_set(
			err, NP_E_USAGE, info->name, "\"%.*s\" is not %s%s", NP_FMT(text),
			pair ? "two ranks like 0-1" : "a ",
			pair ? "" : np_synth_fault_scope((enum np_synth_fault_id)(info - faults)));
	if (pair && out->a == out->b)
		return np_err_set(err, NP_E_USAGE, info->name, "a link needs two different ranks");
	return NP_OK;
}

enum np_status np_synth_parse_fault(const char *text, struct np_synth_fault *out,
                                    struct np_err *err)
{
	np_str all = np_str_of(text), argument = {NULL, 0};
	np_str name = np_str_cut(all, '=', &argument);
	bool has_argument = name.len < all.len;
	for (int i = 0; i < NP_SYNTH_FAULTS; i++) {
		const struct np_synth_fault_info *info = &faults[i];
		if (!np_str_is(name, info->name))
			continue;
		*out = (struct np_synth_fault){.id = (enum np_synth_fault_id)i, .a = -1, .b = -1};
		if (has_argument)
			return parse_argument(argument, info, out, err);
		if (info->argument[0] != '\0' && info->argument[0] != '[')
			return np_err_set(err, NP_E_USAGE, info->name, "needs an argument: %s=%s",
			                  info->name, info->argument);
		return NP_OK;
	}
	return np_err_set(err, NP_E_USAGE, NULL, "no fault is called \"%.*s\"", NP_FMT(name));
}

enum np_status np_synth_parse_formats(const char *text, unsigned *out, struct np_err *err)
{
	static const struct {
		const char *name;
		unsigned bits;
	} names[] = {{"text", NP_SYNTH_TEXT},
	             {"db", NP_SYNTH_DB},
	             {"msprof", NP_SYNTH_MSPROF},
	             {"all", NP_SYNTH_TEXT | NP_SYNTH_DB | NP_SYNTH_MSPROF}};
	*out = 0;
	np_str rest = np_str_of(text);
	do {
		np_str one = np_str_cut(rest, ',', &rest);
		size_t i = 0;
		while (i < 4 && !np_str_is(one, names[i].name))
			i++;
		if (i == 4)
			return np_err_set(
				err, NP_E_USAGE, NULL,
				"no format is called \"%.*s\"; there are text, db, msprof, all",
				NP_FMT(one));
		*out |= names[i].bits;
	} while (rest.len > 0);
	return NP_OK;
}

void np_synth_options_init(struct np_synth_options *self)
{
	*self = (struct np_synth_options){.ranks = 2,
	                                  .steps = 2,
	                                  .layers = 4,
	                                  .ops = 12,
	                                  .formats = NP_SYNTH_TEXT,
	                                  .level = 1,
	                                  .seed = 1};
}
