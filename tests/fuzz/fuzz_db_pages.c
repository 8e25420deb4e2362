/*
 * The page scanner on arbitrary bytes: any page as the root of a table, wide
 * and narrow plans. It must end, and read no byte outside the image; every
 * byte of every text is read to let the sanitizers see it.
 */
#include "io/db_pages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_COLUMNS = 12, MAX_ROOTS = 24, MAX_ROWS = 100000 };

static volatile uint64_t sink;

static void read_row(const struct np_db_value *row)
{
	for (size_t i = 0; i < N_COLUMNS; i++) {
		uint64_t sum = (uint64_t)row[i].type;
		if (row[i].type == NP_DB_TEXT || row[i].type == NP_DB_BLOB)
			for (size_t k = 0; k < row[i].text.len; k++)
				sum += (unsigned char)row[i].text.ptr[k];
		else
			sum += (uint64_t)row[i].i;
		sink += sum;
	}
}

static void scan(const struct np_pages *pages, uint32_t root, const struct np_pages_column *plan)
{
	struct np_pages_scan scan;
	struct np_db_value row[N_COLUMNS] = {0};
	int64_t last = INT64_MIN;
	np_pages_scan_init(&scan, pages, root, plan, N_COLUMNS);
	for (int n = 0; np_pages_scan_next(&scan, row) == NP_PAGES_ROW; n++) {
		if ((n > 0 && scan.last_rowid <= last) || n > MAX_ROWS)
			__builtin_trap();
		last = scan.last_rowid;
		read_row(row);
	}
	np_pages_scan_release(&scan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct np_pages pages;
	struct np_pages_column all[N_COLUMNS], some[N_COLUMNS];
	if (size > 1 << 18 || np_pages_init(&pages, data, size) != NULL)
		return 0;
	for (uint16_t i = 0; i < N_COLUMNS; i++) {
		all[i] = (struct np_pages_column){.out = i, .rule = NP_PAGES_PLAIN};
		some[i] = (struct np_pages_column){
			.out = i, .rule = (uint8_t)(i % 4), .has_default = i > 8};
	}
	uint32_t n_roots = pages.n_pages < MAX_ROOTS ? pages.n_pages : MAX_ROOTS;
	for (uint32_t root = 0; root <= n_roots + 1; root++) {
		int64_t n = 0;
		(void)np_pages_count(&pages, root, &n);
		scan(&pages, root, all);
		scan(&pages, root, some);
	}
	return 0;
}
