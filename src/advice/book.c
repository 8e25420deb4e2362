/* The workbook: the overview, then each checker's table, under its official name. */
#include <string.h>

#include "advice/checker.h"
#include "report/write_xlsx.h"

static const struct np_checker *checker_of(const char *table)
{
	for (size_t i = 0; i < np_n_checkers; i++)
		if (strcmp(np_checkers[i]->name, table) == 0)
			return np_checkers[i];
	return NULL;
}

enum np_status np_advise_xlsx(const struct np_report *report, bool zh, const char *path,
                              struct np_err *err)
{
	NP_VEC(struct np_xlsx_sheet) sheets = {0};
	bool ok = true;
	for (size_t i = 0; ok && i < report->tables.n; i++) {
		const struct np_table *table = report->tables.v[i];
		const struct np_checker *checker = checker_of(table->id);
		struct np_xlsx_sheet sheet = {.table = table,
		                              .translate = zh,
		                              .header_fill = 0x187498,
		                              .header_color = 0xFFFFFF,
		                              .header_font = "Arial"};
		if (strcmp(table->id, "problems") == 0)
			sheet.name = zh ? "问题综述" : "problems";
		else if (checker && checker->dimension == NP_DIM_COMPARISON)
			sheet.name =
				table->title; /* tells the ranks; English in the official one too */
		else
			sheet.name = !checker ? table->id
			             : zh     ? checker->category_zh
			                      : checker->category;
		ok = np_vec_push(&sheets, sheet);
		/* the overview goes first, whenever it came to be */
		if (ok && strcmp(table->id, "problems") == 0 && sheets.n > 1) {
			memmove(&sheets.v[1], &sheets.v[0], (sheets.n - 1) * sizeof *sheets.v);
			sheets.v[0] = sheet;
		}
	}
	enum np_status status = ok ? NP_OK : np_err_nomem(err);
	if (status == NP_OK && sheets.n > 0)
		status = np_xlsx_write(path, sheets.v, sheets.n, err);
	np_vec_release(&sheets);
	return status;
}
