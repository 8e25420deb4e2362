/* Are two profiles the same, to the last id, byte and diagnostic? */
#ifndef NP_TESTS_SAME_PROFILE_H
#define NP_TESTS_SAME_PROFILE_H

#include <string.h>

#include "profile/profile.h"

static inline const char *other_table(const void *a, const void *b,
                                      const struct np_table_desc *desc)
{
	size_t n = ((const struct np_rows *)a)->n;
	if (n != ((const struct np_rows *)b)->n)
		return desc->name;
	for (size_t c = 0; c < desc->n_columns && n > 0; c++) {
		const struct np_column_desc *column = &desc->columns[c];
		const void *x, *y;
		memcpy(&x, (const char *)a + column->offset, sizeof x);
		memcpy(&y, (const char *)b + column->offset, sizeof y);
		if (memcmp(x, y, n * column->elem_size) != 0)
			return column->name;
	}
	return NULL;
}

/* NULL, or the name of what differs. */
static inline const char *other_profile(const struct np_profile *a, const struct np_profile *b)
{
	const char *what;
#define SAME_(tag, COLUMNS, member)                                            \
	if ((what = other_table(&a->member, &b->member, &tag##_desc)) != NULL) \
		return what;
	NP_TABLES(SAME_)
#undef SAME_
	if (a->strings.strings.n != b->strings.strings.n)
		return "number of strings";
	for (size_t i = 0; i < a->strings.strings.n; i++)
		if (!np_str_eq(a->strings.strings.v[i], b->strings.strings.v[i]))
			return "strings";
	if (a->dropped_rows != b->dropped_rows || a->loaded != b->loaded)
		return "counts";
	if (a->diags.n != b->diags.n)
		return "number of diagnostics";
	for (size_t i = 0; i < a->diags.n; i++)
		if (strcmp(a->diags.v[i].text, b->diags.v[i].text) != 0)
			return "diagnostics";
	return NULL;
}

#endif
