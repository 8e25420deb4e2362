/*
 * The SQLite file format, as far as a full scan of one table needs it.
 *
 * Pure functions over (ptr, len): no I/O, no global state, and no trust in the
 * bytes. Layout: https://sqlite.org/fileformat2.html and docs/formats/sqlite.md.
 *
 *   image    [page 1: header][page 2][page 3] ...
 *   b-tree   root ─▶ interior pages (child numbers) ─▶ leaf pages (cells)
 *   cell     [payload size][rowid][record ............][overflow page]
 *   record   [header size][type][type]...[value][value]...
 *
 * Whatever is not exactly as a sound file has it is a *doubt*, not an error:
 * the caller then asks libsqlite3, which knows whether it is damage or merely
 * a feature that is not known here. A row that was given is what libsqlite3
 * would have given in its place, because both walk the pages in the same order.
 *
 * A walk ends for any input: rowids must ascend, a leaf but the root is never
 * empty, the depth and the number of visited pages are bounded.
 *
 * Threads: a np_pages may be shared, a scan belongs to one thread at a time.
 */
#ifndef NP_IO_DB_PAGES_H
#define NP_IO_DB_PAGES_H

#include "io/db.h"

struct np_pages_header {
	uint32_t page_size; /* bytes; 512…65536 */
	uint32_t reserved;  /* bytes at the end of each page that belong to an extension */
	uint32_t write_version, read_version; /* 1 rollback journal, 2 WAL */
	uint32_t n_pages;       /* 0 when the file does not know (written by SQLite < 3.7) */
	uint32_t schema_format; /* 1…4; 0 in a database that never had a table */
	uint32_t encoding;      /* 1 UTF-8, 2 UTF-16le, 3 UTF-16be; 0 as above */
};

enum { NP_PAGES_HEADER_SIZE = 100 };

/* false: these are not the first bytes of a database. */
bool np_pages_header(const void *ptr, size_t len, struct np_pages_header *out);

struct np_pages {
	const uint8_t *base;
	uint32_t page_size;
	uint32_t usable; /* page_size without the reserved bytes */
	uint32_t n_pages;
};

/* NULL when scans may be tried, else why not (a literal). `ptr` is borrowed. */
const char *np_pages_init(struct np_pages *self, const void *ptr, size_t len);

/* What becomes of the i-th value of a record. */
enum np_pages_rule {
	NP_PAGES_SKIP,
	NP_PAGES_PLAIN,
	NP_PAGES_REAL,  /* REAL affinity: stored integers are read back as REAL */
	NP_PAGES_ROWID, /* INTEGER PRIMARY KEY: it is the rowid, whatever is stored */
};

struct np_pages_column {
	uint16_t out;     /* index into the row; not used with SKIP */
	uint8_t rule;     /* enum np_pages_rule */
	bool has_default; /* not NULL in records that are older than the column: a doubt */
};

enum { NP_PAGES_MAX_DEPTH = 20, NP_PAGES_MAX_COLUMNS = 2000 };

enum np_pages_step { NP_PAGES_ROW, NP_PAGES_END, NP_PAGES_DOUBT, NP_PAGES_NOMEM };

struct np_pages_scan {
	struct np_pages pages;
	const struct np_pages_column *columns; /* borrowed; by position in the record */
	size_t n_columns;
	uint64_t n_given;   /* rows so far */
	int64_t last_rowid; /* of the last row given */

	/* the leaf at hand */
	const uint8_t *leaf;
	uint32_t cell, n_cells, first_byte;

	/* the way down to it; frame.next is the child that comes next */
	struct np_pages_frame {
		const uint8_t *page;
		uint32_t next, n_cells;
	} stack[NP_PAGES_MAX_DEPTH];
	uint32_t depth, root, n_visited;

	/* a record gathered from overflow pages; 8 bytes of room in front */
	uint8_t *scratch;
	size_t scratch_cap;
};

/* Columns behind n_columns are not looked at. Cannot fail: a bad root is a
 * doubt at the first step. */
void np_pages_scan_init(struct np_pages_scan *self, const struct np_pages *pages, uint32_t root,
                        const struct np_pages_column *columns, size_t n_columns);
void np_pages_scan_release(struct np_pages_scan *self);

/* The next row into row[columns[i].out]. TEXT and BLOB point into the image or
 * into the scan's own memory, good until the next step. After anything but ROW
 * the row is undefined and the scan is over. */
enum np_pages_step np_pages_scan_next(struct np_pages_scan *self, struct np_db_value *row);

/* The number of rows, from the page headers alone. END when it was found. */
enum np_pages_step np_pages_count(const struct np_pages *pages, uint32_t root, int64_t *out);

/* A variable-length integer of 1…9 bytes that must end before `end`: the byte
 * behind it, or NULL. */
const uint8_t *np_pages_varint(const uint8_t *ptr, const uint8_t *end, uint64_t *out);

#endif
