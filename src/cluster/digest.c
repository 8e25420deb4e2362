#include "cluster/digest.h"

#include <string.h>

#include "base/mem.h"

struct np_digest *np_digest_new(void)
{
	struct np_digest *self = np_calloc(1, sizeof *self);
	if (self && !np_intern_init(&self->strings)) {
		np_digest_free(self);
		self = NULL;
	}
	return self;
}

static void free_table(struct np_digest_table *table)
{
	if (table->rows)
		np_rows_release(table->rows, table->desc);
	np_free(table->rows);
}

void np_digest_free(struct np_digest *self)
{
	if (!self)
		return;
	for (size_t i = 0; i < self->tables.n; i++)
		free_table(&self->tables.v[i]);
	np_vec_release(&self->tables);
	np_intern_release(&self->strings);
	np_free(self);
}

const void *np_digest_find(const struct np_digest *self, const struct np_table_desc *desc)
{
	for (size_t i = 0; self && i < self->tables.n; i++)
		if (self->tables.v[i].desc == desc)
			return self->tables.v[i].rows;
	return NULL;
}

/* np_rows, then one pointer per column: what NP_TABLE_STRUCT makes */
static size_t struct_size(const struct np_table_desc *desc)
{
	return sizeof(struct np_rows) + desc->n_columns * sizeof(void *);
}

void *np_digest_table(struct np_digest *self, const struct np_table_desc *desc)
{
	for (size_t i = 0; i < self->tables.n; i++)
		if (self->tables.v[i].desc == desc)
			return self->tables.v[i].rows;
	void *rows = np_calloc(1, struct_size(desc));
	if (rows && np_vec_push(&self->tables, (struct np_digest_table){desc, rows}))
		return rows;
	np_free(rows);
	return NULL;
}

bool np_digest_string(struct np_digest *self, const struct np_intern *from, uint32_t id, np_id *out)
{
	*out = id == NP_ID_NONE ? NP_ID_NONE
	                        : np_intern_add(&self->strings, np_intern_get(from, id));
	return id == NP_ID_NONE || *out != NP_ID_NONE;
}

static void *array_of(void *rows, const struct np_column_desc *column)
{
	void *array;
	memcpy(&array, (char *)rows + column->offset, sizeof array);
	return array;
}

static bool is_id(const struct np_column_desc *column)
{
	return strcmp(column->type, "np_id") == 0;
}

static void translate(struct np_digest_table *table, const np_id *new_ids)
{
	size_t n = ((struct np_rows *)table->rows)->n;
	for (size_t c = 0; c < table->desc->n_columns; c++) {
		const struct np_column_desc *column = &table->desc->columns[c];
		np_id *ids = array_of(table->rows, column);
		for (size_t i = 0; is_id(column) && i < n; i++)
			if (ids[i] != NP_ID_NONE)
				ids[i] = new_ids[ids[i]];
	}
}

bool np_digest_adopt(struct np_digest *self, struct np_intern *shared)
{
	size_t n = self->strings.strings.n;
	np_id *new_ids = np_realloc(NULL, n ? n : 1, sizeof *new_ids);
	for (size_t i = 0; new_ids && i < n; i++) {
		new_ids[i] = np_intern_add(shared, self->strings.strings.v[i]);
		if (new_ids[i] == NP_ID_NONE) {
			np_free(new_ids);
			new_ids = NULL;
		}
	}
	if (!new_ids)
		return false;
	for (size_t i = 0; i < self->tables.n; i++)
		translate(&self->tables.v[i], new_ids);
	np_free(new_ids);
	np_intern_release(&self->strings);
	self->strings = (struct np_intern){0};
	return true;
}

bool np_digest_move(struct np_digest *self, struct np_digest *from)
{
	bool own = from->strings.strings.n > 0;
	if (own && !np_digest_adopt(from, &self->strings))
		return false;
	for (size_t i = 0; i < from->tables.n; i++) {
		struct np_digest_table *table = &from->tables.v[i];
		if (np_digest_find(self, table->desc))
			continue;
		if (!np_vec_push(&self->tables, *table))
			return false;
		table->rows = NULL;
	}
	return true;
}

/* ── bytes ──────────────────────────────────────────────────────────────────
 *
 *   u32 strings, then per string: u32 length, bytes
 *   u32 tables, then per table: name (u32 length, bytes), u32 columns, u64 rows,
 *               per column: u32 element size, rows × elements
 */

static void put_u32(struct np_buf *out, size_t value)
{
	uint32_t v = (uint32_t)value;
	np_buf_add(out, &v, sizeof v);
}

static void put_text(struct np_buf *out, np_str text)
{
	put_u32(out, text.len);
	np_buf_add_str(out, text);
}

void np_digest_pack(const struct np_digest *self, struct np_buf *out)
{
	put_u32(out, self->strings.strings.n);
	for (size_t i = 0; i < self->strings.strings.n; i++)
		put_text(out, self->strings.strings.v[i]);
	put_u32(out, self->tables.n);
	for (size_t t = 0; t < self->tables.n; t++) {
		const struct np_table_desc *desc = self->tables.v[t].desc;
		uint64_t n = ((struct np_rows *)self->tables.v[t].rows)->n;
		put_text(out, np_str_of(desc->name));
		put_u32(out, desc->n_columns);
		np_buf_add(out, &n, sizeof n);
		for (size_t c = 0; c < desc->n_columns; c++) {
			const struct np_column_desc *column = &desc->columns[c];
			put_u32(out, column->elem_size);
			if (n > 0)
				np_buf_add(out, array_of(self->tables.v[t].rows, column),
				           (size_t)n * column->elem_size);
		}
	}
}

struct unpack {
	np_str rest;
	const struct np_table_desc *const *known;
	size_t n_known, n_strings;
	struct np_digest *digest;
	struct np_err *err;
};

static enum np_status misfit(struct unpack *self, const char *what)
{
	return np_err_set(self->err, NP_E_FORMAT, "digest", "%s", what);
}

static bool take(struct unpack *self, void *out, size_t size)
{
	if (self->rest.len < size)
		return false;
	if (size > 0) {
		memcpy(out, self->rest.ptr, size);
		self->rest = np_str_from(self->rest, size);
	}
	return true;
}

static bool take_text(struct unpack *self, np_str *out)
{
	uint32_t len;
	if (!take(self, &len, sizeof len) || self->rest.len < len)
		return false;
	*out = np_str_sub(self->rest, 0, len);
	self->rest = np_str_from(self->rest, len);
	return true;
}

static enum np_status take_strings(struct unpack *self)
{
	uint32_t n;
	np_str text;
	if (!take(self, &n, sizeof n))
		return misfit(self, "ends in the strings");
	for (uint32_t i = 0; i < n; i++) {
		if (!take_text(self, &text))
			return misfit(self, "ends in the strings");
		uint32_t id = np_intern_add(&self->digest->strings, text);
		if (id == NP_ID_NONE)
			return np_err_nomem(self->err);
		if (id != i)
			return misfit(self, "has a string twice");
	}
	self->n_strings = n;
	return NP_OK;
}

static bool ids_are_sane(const np_id *ids, size_t n, size_t n_strings)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] != NP_ID_NONE && ids[i] >= n_strings)
			return false;
	return true;
}

/* Any other byte in a bool is undefined behaviour for who reads it. */
static bool bools_are_sane(const unsigned char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] > 1)
			return false;
	return true;
}

static enum np_status take_columns(struct unpack *self, const struct np_table_desc *desc,
                                   uint64_t n)
{
	uint32_t size;
	size_t row_bytes = 0;
	for (size_t c = 0; c < desc->n_columns; c++)
		row_bytes += desc->columns[c].elem_size;
	/* before memory is taken for them */
	if (row_bytes == 0 || n > self->rest.len / row_bytes)
		return misfit(self, "has more rows than bytes");
	void *rows = np_digest_table(self->digest, desc);
	if (!rows || (n > 0 && !np_rows_reserve(rows, desc, (size_t)n)))
		return np_err_nomem(self->err);
	for (size_t c = 0; c < desc->n_columns; c++) {
		const struct np_column_desc *column = &desc->columns[c];
		if (!take(self, &size, sizeof size) || size != column->elem_size)
			return misfit(self, "has a column of another size");
		void *array = array_of(rows, column);
		if (self->rest.len / size < n || !take(self, array, (size_t)n * size))
			return misfit(self, "ends in a column");
		if (strcmp(column->type, "bool") == 0 && !bools_are_sane(array, (size_t)n))
			return misfit(self, "has a truth that is neither");
		if (is_id(column) && !ids_are_sane(array, (size_t)n, self->n_strings))
			return misfit(self, "refers to a string that is not there");
	}
	((struct np_rows *)rows)->n = (size_t)n;
	return NP_OK;
}

static enum np_status take_tables(struct unpack *self)
{
	uint32_t n_tables, n_columns;
	uint64_t n;
	np_str name;
	if (!take(self, &n_tables, sizeof n_tables))
		return misfit(self, "ends before the tables");
	for (uint32_t t = 0; t < n_tables; t++) {
		if (!take_text(self, &name) || !take(self, &n_columns, sizeof n_columns) ||
		    !take(self, &n, sizeof n))
			return misfit(self, "ends before a table");
		size_t k = 0;
		while (k < self->n_known && !np_str_is(name, self->known[k]->name))
			k++;
		if (k == self->n_known || self->known[k]->n_columns != n_columns)
			return misfit(self, "has a table that is not known");
		if (np_digest_find(self->digest, self->known[k]))
			return misfit(self, "has a table twice");
		NP_TRY(take_columns(self, self->known[k], n));
	}
	return self->rest.len == 0 ? NP_OK : misfit(self, "has bytes behind its end");
}

enum np_status np_digest_unpack(np_str bytes, const struct np_table_desc *const *known,
                                size_t n_known, struct np_digest **out, struct np_err *err)
{
	struct unpack self = {.rest = bytes, .known = known, .n_known = n_known, .err = err};
	*out = NULL;
	self.digest = np_digest_new();
	if (!self.digest)
		return np_err_nomem(err);
	enum np_status status = take_strings(&self);
	if (status == NP_OK)
		status = take_tables(&self);
	if (status == NP_OK)
		*out = self.digest;
	else
		np_digest_free(self.digest);
	return status;
}
