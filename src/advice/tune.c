/* The list of operators for AOE, out of the tables of block dim and no bound. */
#include <string.h>

#include "advice/advice.h"
#include "io/json.h"

enum { OF_EACH = 10, MOST = 200 };

struct names {
	np_str of[MOST];
	size_t n;
};

/* The first ten names of its column op_name, each once. */
static void collect(const struct np_table *table, struct names *out)
{
	size_t rows = np_table_rows(table), taken = 0;
	if (table->n_columns == 0 || strcmp(table->columns[0].name, "op_name") != 0)
		return;
	np_str seen[OF_EACH];
	for (size_t r = 0; r < rows && taken < OF_EACH; r++) {
		const struct np_cell *cell = np_table_cell(table, r, 0);
		size_t s = 0, o = 0;
		if (cell->na)
			continue;
		while (s < taken && !np_str_eq(seen[s], cell->s))
			s++;
		if (s < taken)
			continue;
		seen[taken++] = cell->s;
		while (o < out->n && !np_str_eq(out->of[o], cell->s))
			o++;
		if (o == out->n && out->n < MOST)
			out->of[out->n++] = cell->s;
	}
}

bool np_advise_tuning(const struct np_report *report, struct np_buf *out)
{
	static const char *const tables[] = {"block_dim", "no_bound"};
	struct names names = {.n = 0};
	for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
		for (size_t t = 0; t < report->tables.n; t++)
			if (strncmp(report->tables.v[t]->id, tables[k], strlen(tables[k])) == 0)
				collect(report->tables.v[t], &names);
	if (names.n == 0)
		return false;
	np_buf_add_cstr(out, "{\"tune_ops_name\": [");
	for (size_t i = 0; i < names.n; i++) {
		np_buf_add_cstr(out, i ? ", " : "");
		np_json_quote(out, names.of[i]);
	}
	np_buf_add_cstr(out, "]}\n");
	return true;
}
