#include "profile/columns.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

static void **array_of(void *table, const struct np_column_desc *column)
{
	return (void **)(void *)((char *)table + column->offset);
}

bool np_rows_reserve(void *table, const struct np_table_desc *desc, size_t need)
{
	struct np_rows *rows = table;
	if (need <= rows->cap)
		return true;
	if (need >= UINT32_MAX)
		return false;
	size_t cap = rows->cap + rows->cap / 2 + 16;
	if (cap < need)
		cap = need;
	for (size_t c = 0; c < desc->n_columns; c++) {
		void **array = array_of(table, &desc->columns[c]);
		void *bigger = np_realloc(*array, cap, desc->columns[c].elem_size);
		if (!bigger)
			return false; /* cap stays: the arrays already grown are merely roomier */
		*array = bigger;
	}
	rows->cap = cap;
	return true;
}

size_t np_rows_add(void *table, const struct np_table_desc *desc)
{
	struct np_rows *rows = table;
	return np_rows_reserve(table, desc, rows->n + 1) ? rows->n++ : SIZE_MAX;
}

bool np_rows_append(void *to, const void *from, const struct np_table_desc *desc)
{
	struct np_rows *rows = to;
	size_t more = ((const struct np_rows *)from)->n;
	if (more == 0)
		return true;
	if (!np_rows_reserve(to, desc, rows->n + more))
		return false;
	for (size_t c = 0; c < desc->n_columns; c++) {
		const struct np_column_desc *column = &desc->columns[c];
		void *source;
		memcpy(&source, (const char *)from + column->offset, sizeof source);
		memcpy((char *)*array_of(to, column) + rows->n * column->elem_size, source,
		       more * column->elem_size);
	}
	rows->n += more;
	return true;
}

/* Elements one by one, of a size that the compiler knows: a call of memcpy() for each
 * would be most of the work. */
#define GATHER_(type)                          \
	do {                                   \
		const type *v = from;          \
		type *out = to;                \
		for (size_t i = 0; i < n; i++) \
			out[i] = v[order[i]];  \
	} while (0)

static void gather(void *to, const void *from, size_t size, const unsigned *order, size_t n)
{
	switch (size) {
	case 1:
		GATHER_(uint8_t);
		break;
	case 4:
		GATHER_(uint32_t);
		break;
	case 8:
		GATHER_(uint64_t);
		break;
	default:
		for (size_t i = 0; i < n; i++)
			memcpy((char *)to + i * size, (const char *)from + order[i] * size, size);
	}
}

bool np_rows_permute(void *table, const struct np_table_desc *desc, const unsigned *order)
{
	size_t n = ((struct np_rows *)table)->n;
	if (n == 0)
		return true;
	char *copy = np_realloc(NULL, n, 16); /* no column is wider */
	if (!copy)
		return false;
	for (size_t c = 0; c < desc->n_columns; c++) {
		size_t size = desc->columns[c].elem_size;
		char *array = *array_of(table, &desc->columns[c]);
		gather(copy, array, size, order, n);
		memcpy(array, copy, n * size);
	}
	np_free(copy);
	return true;
}

void np_rows_release(void *table, const struct np_table_desc *desc)
{
	for (size_t c = 0; c < desc->n_columns; c++) {
		void **array = array_of(table, &desc->columns[c]);
		np_free(*array);
		*array = NULL;
	}
	struct np_rows *rows = table;
	rows->n = rows->cap = 0;
}
