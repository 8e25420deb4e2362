/*
 * One profile behind another: what several threads, or several slices of a
 * table, read apart becomes one.
 *
 * Ids of strings and rows of steps mean something only inside their profile,
 * so every such column goes through a translation.
 */
#include <math.h>

#include "profile/profile.h"

struct translation {
	uint32_t *strings, *steps;
};

static bool translate_strings(struct np_profile *to, const struct np_profile *from,
                              struct translation *map)
{
	size_t n = from->strings.strings.n;
	map->strings = np_realloc(NULL, n, sizeof *map->strings);
	for (size_t i = 0; map->strings && i < n; i++) {
		map->strings[i] =
			np_intern_add(&to->strings, np_intern_get(&from->strings, (uint32_t)i));
		if (map->strings[i] == NP_ID_NONE)
			return false;
	}
	return map->strings != NULL;
}

static bool translate_steps(struct np_profile *to, const struct np_profile *from,
                            struct translation *map)
{
	size_t n = from->steps.n;
	map->steps = np_realloc(NULL, n, sizeof *map->steps);
	for (size_t i = 0; map->steps && i < n; i++) {
		map->steps[i] = np_profile_add_step(to, from->steps.id[i]);
		if (map->steps[i] == NP_NO_U32)
			return false;
	}
	return map->steps != NULL;
}

static void apply(uint32_t *column, size_t from, size_t n, const uint32_t *map)
{
	for (size_t i = from; i < n; i++)
		if (column[i] != UINT32_MAX)
			column[i] = map[column[i]];
}

static void fix_kernels(struct np_kernels *kernels, size_t from, const struct translation *map)
{
	uint32_t *const texts[] = {kernels->name, kernels->type, kernels->core, kernels->op_state,
	                           kernels->hf32};
	for (size_t c = 0; c < sizeof texts / sizeof *texts; c++)
		apply(texts[c], from, kernels->n, map->strings);
	apply(kernels->step, from, kernels->n, map->steps);
}

static void fix_shapes(struct np_kernel_shapes *shapes, size_t from, const struct translation *map)
{
	uint32_t *const texts[] = {shapes->in_shapes,  shapes->in_dtypes,  shapes->in_formats,
	                           shapes->out_shapes, shapes->out_dtypes, shapes->out_formats};
	for (size_t c = 0; c < sizeof texts / sizeof *texts; c++)
		apply(texts[c], from, shapes->n, map->strings);
}

/* Every metric has a value for every row: NaN for those of the other side. */
static bool append_metrics(struct np_profile *to, const struct np_profile *from, size_t old_n)
{
	for (size_t m = 0; m < to->metrics.n; m++) {
		double *v = np_realloc(to->metrics.v[m].v, to->kernels.n, sizeof *v);
		if (!v)
			return false;
		to->metrics.v[m].v = v;
		for (size_t i = old_n; i < to->kernels.n; i++)
			v[i] = NAN;
	}
	for (size_t m = 0; m < from->metrics.n; m++) {
		np_str name = np_intern_get(&from->strings, from->metrics.v[m].name);
		struct np_metric *metric = np_profile_metric_add(to, name);
		if (!metric)
			return false;
		for (size_t i = 0; i < from->kernels.n; i++)
			metric->v[old_n + i] = from->metrics.v[m].v[i];
	}
	return true;
}

/* Shapes exist for all rows or for none. */
static bool append_shapes(struct np_profile *to, const struct np_profile *from, size_t old_n,
                          const struct translation *map)
{
	if (from->kernel_shapes.n != from->kernels.n || to->kernel_shapes.n != old_n)
		return true;
	if (!np_rows_append(&to->kernel_shapes, &from->kernel_shapes, &np_kernel_shapes_desc))
		return false;
	fix_shapes(&to->kernel_shapes, old_n, map);
	return true;
}

bool np_profile_append_kernels(struct np_profile *self, const struct np_profile *from)
{
	struct translation map = {0};
	size_t old_n = self->kernels.n;
	bool ok = translate_strings(self, from, &map) && translate_steps(self, from, &map) &&
	          np_rows_append(&self->kernels, &from->kernels, &np_kernels_desc);
	if (ok) {
		fix_kernels(&self->kernels, old_n, &map);
		ok = append_shapes(self, from, old_n, &map) && append_metrics(self, from, old_n);
	}
	np_free(map.strings);
	np_free(map.steps);
	return ok;
}
