#include "cluster/export.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cluster/internal.h"
#include "report/writer.h"

#define OUTPUT_DIR "cluster_analysis_output"
#define OUTPUT_DB  "cluster_analysis.db"

const struct np_table *np_export_table(const struct np_cluster *cluster, const char *id)
{
	const struct np_report *report = cluster->report;
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, id) == 0)
			return report->tables.v[i];
	return NULL;
}

const char *np_export_path(struct np_export *self, const char *sub, const char *name,
                           struct np_err *err)
{
	struct np_arena *arena = &self->cluster->arena;
	const char *dir = sub ? np_path_join(arena, self->dir, sub) : self->dir;
	if (!dir) {
		(void)np_err_nomem(err);
		return NULL;
	}
	if (sub && np_mkdirs(dir, err) != NP_OK)
		return NULL;
	const char *path = np_path_join(arena, dir, name);
	if (!path)
		(void)np_err_nomem(err);
	else
		np_report_note(self->cluster->report, "written: %s", path);
	return path;
}

enum np_status np_export_write(const char *path, const struct np_buf *text, struct np_err *err)
{
	struct np_outfile file;
	if (text->failed)
		return np_err_nomem(err);
	NP_TRY(np_outfile_begin(&file, path, err));
	(void)fwrite(text->ptr, 1, text->len, file.file);
	return np_outfile_commit(&file, err);
}

/* ── csv ── */

/* As Python's csv: quoted only where it must be. */
void np_export_csv_text(struct np_buf *out, np_str text)
{
	bool plain = true;
	for (size_t i = 0; i < text.len && plain; i++)
		plain = !strchr(",\"\r\n", text.ptr[i]) || text.ptr[i] == '\0';
	if (plain) {
		np_buf_add_str(out, text);
		return;
	}
	np_buf_add_char(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '"')
			np_buf_add_char(out, '"');
		np_buf_add_char(out, text.ptr[i]);
	}
	np_buf_add_char(out, '"');
}

static void csv_real(struct np_buf *out, double value)
{
	char digits[NP_PYTHON_CHARS];
	np_buf_add(out, digits, np_format_python(value, digits));
}

static bool is_ns(const struct np_column *column)
{
	return column->type != NP_COL_TEXT && np_str_ends(np_str_of(column->name), NP_STR("Ns"));
}

static double divisor_of(const struct np_recipe_file *file)
{
	return file->ns_divisor > 0 ? file->ns_divisor : 1000;
}

static void csv_cell(struct np_buf *out, const struct np_column *column, const struct np_cell *cell,
                     const struct np_recipe_file *file)
{
	double divisor = divisor_of(file);
	bool ns = is_ns(column) || (file->also_ns && strcmp(column->name, file->also_ns) == 0);
	if (cell->na)
		return;
	switch (column->type) {
	case NP_COL_TEXT:
		np_export_csv_text(out, cell->s);
		break;
	case NP_COL_REAL:
	case NP_COL_PERCENT:
		csv_real(out, ns ? cell->r / divisor : cell->r);
		break;
	case NP_COL_BOOL:
		np_buf_add_cstr(out, cell->b ? "True" : "False");
		break;
	default:
		if (ns)
			csv_real(out, (double)cell->i / divisor);
		else
			np_buf_printf(out, "%lld", (long long)cell->i);
	}
}

void np_export_csv_head(const struct np_table *table, const struct np_recipe_file *file,
                        struct np_buf *out)
{
	const char *unit = divisor_of(file) > 1000 ? "(Ms)" : "(Us)";
	if (file->headings) {
		np_buf_add_cstr(out, file->headings);
		np_buf_add_char(out, '\n');
		return;
	}
	for (size_t c = 0; c < table->n_columns; c++) {
		np_str name = np_str_of(table->columns[c].name);
		if (c > 0)
			np_buf_add_char(out, ',');
		if (is_ns(&table->columns[c])) {
			np_buf_add_str(out, np_str_sub(name, 0, name.len - 2));
			np_buf_add_cstr(out, unit);
		} else {
			np_export_csv_text(out, name);
		}
	}
	np_buf_add_char(out, '\n');
}

void np_export_csv_row(const struct np_table *table, const struct np_recipe_file *file,
                       const struct np_cell *cells, struct np_buf *out)
{
	for (size_t c = 0; c < table->n_columns; c++) {
		csv_cell(out, &table->columns[c], &cells[c], file);
		np_buf_add_char(out, c + 1 < table->n_columns ? ',' : '\n');
	}
}

void np_export_csv(const struct np_table *table, const struct np_recipe_file *file,
                   struct np_buf *out)
{
	np_export_csv_head(table, file, out);
	for (size_t r = 0; r < np_table_rows(table); r++)
		for (size_t c = 0; c < table->n_columns; c++) {
			csv_cell(out, &table->columns[c], np_table_cell(table, r, c), file);
			np_buf_add_char(out, c + 1 < table->n_columns ? ',' : '\n');
		}
}

static enum np_status text_files(struct np_export *self, const struct np_recipe *recipe,
                                 struct np_err *err)
{
	for (const struct np_recipe_file *file = recipe->files; file && file->table; file++) {
		const struct np_table *table = np_export_table(self->cluster, file->table);
		if (!table || !file->csv || np_table_rows(table) == 0)
			continue;
		const char *path = np_export_path(self, recipe->dir, file->csv, err);
		if (!path)
			return err ? err->code : NP_E_IO;
		struct np_buf text = {.max_bytes = SIZE_MAX / 4};
		struct np_recipe_file form = *file;
		if (self->cluster->options->compat)
			form.also_ns = NULL;
		np_export_csv(table, &form, &text);
		enum np_status status = np_export_write(path, &text, err);
		np_buf_release(&text);
		NP_TRY(status);
	}
	return NP_OK;
}

/* ── html: the recipe's tables as one page ── */

static enum np_status html_file(struct np_export *self, const struct np_recipe *recipe,
                                struct np_err *err)
{
	struct np_report page = *self->cluster->report; /* a view: other tables, no findings */
	struct np_buf text = {.max_bytes = SIZE_MAX / 4};
	page.tables.v = NULL;
	page.tables.n = page.tables.cap = page.findings.n = page.notes.n = 0;
	bool ok = true;
	for (const struct np_recipe_file *file = recipe->files; file && file->table; file++)
		for (size_t i = 0; i < self->cluster->report->tables.n; i++)
			if (strcmp(self->cluster->report->tables.v[i]->id, file->table) == 0)
				ok &= np_vec_push(&page.tables, self->cluster->report->tables.v[i]);
	enum np_status status = ok ? NP_OK : np_err_nomem(err);
	const char *path = NULL;
	if (status == NP_OK && page.tables.n > 0) {
		path = np_export_path(self, recipe->dir, "stats.html", err);
		status = path ? NP_OK : NP_E_IO;
	}
	struct np_write_options options = {.format = NP_FORMAT_HTML};
	if (path)
		status = np_report_write(&page, &options, &text, err);
	if (path && status == NP_OK)
		status = np_export_write(path, &text, err);
	np_buf_release(&text);
	np_vec_release(&page.tables);
	return status;
}

/* ── db ── */

static enum np_status db_tables(struct np_export *self, const struct np_recipe *recipe,
                                struct np_err *err)
{
	for (const struct np_recipe_file *file = recipe->files; file && file->table; file++) {
		const struct np_table *table = np_export_table(self->cluster, file->table);
		struct np_db_form form = {.n_index_columns = file->n_index, .types = file->types};
		if (table && np_table_rows(table) > 0)
			NP_TRY(np_db_file_table(self->db, table, &form, err));
	}
	return NP_OK;
}

static enum np_export_type type_of(const struct np_cluster *cluster, const struct np_recipe *recipe,
                                   enum np_export_type wish)
{
	if (wish != NP_EXPORT_AUTO)
		return wish;
	return recipe->builtin && !cluster->is_db ? NP_EXPORT_TEXT : NP_EXPORT_DB;
}

static enum np_status export_db(struct np_export *self, enum np_export_type wish,
                                struct np_err *err)
{
	const struct np_cluster_options *options = self->cluster->options;
	struct np_db_file file;
	bool any = false, keep = true;
	for (size_t i = 0; i < options->n_recipes; i++)
		if (type_of(self->cluster, options->recipes[i], wish) == NP_EXPORT_DB) {
			any |= options->recipes[i]->files != NULL;
			keep &= !options->recipes[i]->builtin;
		}
	if (!any)
		return NP_OK;
	const char *path = np_export_path(self, NULL, OUTPUT_DB, err);
	if (!path)
		return NP_E_IO;
	NP_TRY(np_db_file_begin(&file, path, keep, err));
	self->db = &file; // cppcheck-suppress autoVariables; NULL again below
	self->type = NP_EXPORT_DB;
	enum np_status status = NP_OK;
	for (size_t i = 0; status == NP_OK && i < options->n_recipes; i++) {
		const struct np_recipe *recipe = options->recipes[i];
		if (type_of(self->cluster, recipe, wish) != NP_EXPORT_DB)
			continue;
		status = db_tables(self, recipe, err);
		if (status == NP_OK && recipe->export && recipe->files)
			status = recipe->export(self->cluster, recipe, self, err);
	}
	self->db = NULL;
	if (status == NP_OK)
		return np_db_file_commit(&file, err);
	np_db_file_abort(&file);
	return status;
}

/* ── the whole ── */

static enum np_status export_files(struct np_export *self, enum np_export_type wish,
                                   struct np_err *err)
{
	const struct np_cluster_options *options = self->cluster->options;
	NP_TRY(export_db(self, wish, err));
	for (size_t i = 0; i < options->n_recipes; i++) {
		const struct np_recipe *recipe = options->recipes[i];
		self->type = type_of(self->cluster, recipe, wish);
		if (self->type == NP_EXPORT_DB) {
			if (!recipe->files &&
			    recipe->export) /* it has no tables for the database */
				NP_TRY(recipe->export(self->cluster, recipe, self, err));
			continue;
		}
		NP_TRY(self->type == NP_EXPORT_HTML ? html_file(self, recipe, err)
		                                    : text_files(self, recipe, err));
		if (recipe->export && self->type == NP_EXPORT_TEXT)
			NP_TRY(recipe->export(self->cluster, recipe, self, err));
	}
	return NP_OK;
}

/* The part of `dir` that exists, without links: what is below it will be made there. */
static enum np_status existing_part(const char *dir, char out[PATH_MAX], struct np_err *err)
{
	char part[PATH_MAX];
	size_t len = strlen(dir);
	if (len == 0 || len >= sizeof part)
		return np_err_set(err, NP_E_USAGE, dir, "-o wants the name of a directory");
	memcpy(part, dir, len + 1);
	while (!realpath(part, out)) {
		int why = errno;
		while (len > 0 && part[len - 1] == '/')
			len--;
		while (len > 0 && part[len - 1] != '/')
			len--;
		if (why != ENOENT)
			return np_err_sys(err, why, dir, "write there");
		if (len == 0)
			return realpath(".", out) ? NP_OK : np_err_sys(err, errno, dir, "find it");
		part[len] = '\0';
	}
	return NP_OK;
}

/* Is `dir` (absolute) inside one of the captures? */
static bool is_in_capture(const struct np_cluster *self, const char *dir)
{
	char capture[PATH_MAX];
	for (size_t i = 0; i < self->all->captures.n; i++) {
		if (self->all->captures.v[i]->framework == NP_FW_CLUSTER ||
		    !realpath(self->all->captures.v[i]->path, capture))
			continue;
		size_t len = strlen(capture);
		if (strncmp(dir, capture, len) == 0 && (dir[len] == '/' || dir[len] == '\0'))
			return true;
	}
	return false;
}

enum np_status np_cluster_export_check(const struct np_cluster *self, const char *dir,
                                       struct np_err *err)
{
	char absolute[PATH_MAX];
	struct np_file_stat st;
	NP_TRY(existing_part(dir, absolute, err));
	if (is_in_capture(self, absolute))
		return np_err_set(err, NP_E_USAGE, dir,
		                  "is inside a capture, and captures are never written to: choose "
		                  "another directory for -o");
	NP_TRY(np_file_stat(absolute, true, &st, err));
	if (st.kind != NP_FILE_DIR)
		return np_err_set(err, NP_E_EXISTS, dir, "is not a directory");
	return access(absolute, W_OK) == 0 ? NP_OK : np_err_sys(err, errno, dir, "write there");
}

enum np_status np_cluster_export(struct np_cluster *self, const char *dir, enum np_export_type type,
                                 struct np_err *err)
{
	struct np_export out = {.cluster = self,
	                        .dir = np_path_join(&self->arena, dir, OUTPUT_DIR)};
	if (!out.dir)
		return np_err_nomem(err);
	NP_TRY(np_cluster_export_check(self, dir, err));
	NP_TRY(np_mkdirs(out.dir, err));
	return export_files(&out, type, err);
}
