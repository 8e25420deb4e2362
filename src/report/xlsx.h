/*
 * Pieces of the workbook writer. Private to src/report/ and its tests.
 */
#ifndef NP_REPORT_XLSX_H
#define NP_REPORT_XLSX_H

#include "base/err.h"
#include "base/mem.h"
#include "report/write_xlsx.h"

/*
 * Append text as a workbook can carry it, at most `max_units` UTF-16 units of it, with
 * "…" at the end when it is cut. There is no NUL in it. "_x0041_", which a spreadsheet
 * would read as "A", is escaped the way it is specified: "_x005F_x0041_".
 */
void np_xlsx_text(struct np_buf *out, np_str text, size_t max_units);

/* The names that are taken. Zeroed memory is a valid empty list. */
struct np_xlsx_names {
	struct np_arena arena;
	NP_VEC(const char *) folded;
};

void np_xlsx_names_release(struct np_xlsx_names *self);

/* A name for a sheet that no other has, made from `wanted`; NULL: out of memory. */
const char *np_xlsx_name(struct np_xlsx_names *self, const char *wanted);

/* Would the name without quotes be something else in a formula ("A1", "2024")? The
 * filter of a sheet is such a formula, and libxlsxwriter quotes only what has blanks
 * and the like. */
bool np_xlsx_name_is_ambiguous(const char *name);

/*
 * Does the finished file have that many cells and shared strings, and do all parts end
 * where they should? libxlsxwriter does not see when its temporary files cannot grow.
 * Errors: E_IO, E_NOMEM.
 */
enum np_status np_xlsx_verify(const char *file, const char *path, uint64_t cells, uint64_t strings,
                              struct np_err *err);

#endif
