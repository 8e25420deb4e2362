/*
 * Tables as structs of arrays, described once.
 *
 * A table is an X-macro that lists its columns: X(type, name, what it means).
 * NP_TABLE_STRUCT makes the struct, NP_TABLE_DESC the description by which
 * generic code grows, clears and lists any table:
 *
 *    struct np_steps { size_t n, cap; int64_t *id; np_ns *start_ns; … }
 *                                     │            │
 *                         row i:  id[i]      start_ns[i]
 *
 * So a column that is not asked for costs nothing to scan past, and a new
 * column is one line.
 */
#ifndef NP_PROFILE_COLUMNS_H
#define NP_PROFILE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

struct np_column_desc {
	const char *name, *type, *help;
	size_t elem_size;
	size_t offset; /* of the array pointer in the table's struct */
};

struct np_table_desc {
	const char *name;
	const struct np_column_desc *columns;
	size_t n_columns;
};

/* The id of a string in the intern table that goes with the table. A column of this
 * type can be told from a plain number (np_column_desc.type is "np_id"). */
typedef unsigned np_id;

/* Every table begins with these two. */
struct np_rows {
	size_t n, cap;
};

#define NP_COLUMN_FIELD_(type, name, help) type *name;
#define NP_TABLE_STRUCT(tag, COLUMNS)     \
	struct tag {                      \
		size_t n, cap;            \
		COLUMNS(NP_COLUMN_FIELD_) \
	}

/*
 * The description of such a struct, as static data. NP_TAG names the struct, for
 * offsetof (a macro cannot define it for the user):
 *
 *    #define NP_TAG np_steps
 *    NP_TABLE_DESC(static, np_steps, "steps", NP_STEPS_COLUMNS)
 *    #undef NP_TAG
 */
#define NP_COLUMN_DESC_(type, name, help) \
	{#name, #type, help, sizeof(type), offsetof(struct NP_TAG, name)},
#define NP_TABLE_DESC(storage, tag, title, COLUMNS)                                      \
	static const struct np_column_desc tag##_columns[] = {COLUMNS(NP_COLUMN_DESC_)}; \
	storage const struct np_table_desc tag##_desc = {                                \
		title, tag##_columns, sizeof tag##_columns / sizeof *tag##_columns};

/*
 * Append one row with undefined contents and return its number, or SIZE_MAX
 * when memory is out (or the table holds 2^32 - 2 rows, since row numbers are
 * kept in 32 bits elsewhere). The caller sets every column.
 */
size_t np_rows_add(void *table, const struct np_table_desc *desc);

/* Room for `need` rows in all. */
bool np_rows_reserve(void *table, const struct np_table_desc *desc, size_t need);

/* Append all rows of `from` (same description) behind those of `to`. */
bool np_rows_append(void *to, const void *from, const struct np_table_desc *desc);

/* Reorder: new row i is old row order[i]. order has n entries, each row once. */
bool np_rows_permute(void *table, const struct np_table_desc *desc, const unsigned *order);

void np_rows_release(void *table, const struct np_table_desc *desc);

#endif
