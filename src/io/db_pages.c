#include "io/db_pages.h"

#include <string.h>

#include "base/mem.h"

enum { PAGE_INTERIOR = 0x05, PAGE_LEAF = 0x0d };
enum { LEAF_HEADER = 8, INTERIOR_HEADER = 12, SMALLEST_CELL = 4 };

/* The page with this byte is for file locks and never part of a tree. */
#define LOCK_BYTE 0x40000000u

/* libsqlite3's own limit for one value, and far more than any row here has. */
#define MAX_RECORD 1000000000u

static inline uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t be32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return __builtin_bswap32(v);
}

static inline uint64_t be64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return __builtin_bswap64(v);
}

/* ── file header ── */

bool np_pages_header(const void *ptr, size_t len, struct np_pages_header *out)
{
	const uint8_t *h = ptr;
	*out = (struct np_pages_header){0};
	if (len < NP_PAGES_HEADER_SIZE || memcmp(h, "SQLite format 3", 16) != 0)
		return false;
	uint32_t size = be16(h + 16);
	if (size == 1)
		size = 65536;
	/* payload fractions: fixed since version 3.0 */
	if (size < 512 || (size & (size - 1)) != 0 || h[21] != 64 || h[22] != 32 || h[23] != 32)
		return false;
	out->page_size = size;
	out->write_version = h[18];
	out->read_version = h[19];
	out->reserved = h[20];
	/* the page count holds only if the same version wrote it and the change counter */
	if (be32(h + 24) == be32(h + 92))
		out->n_pages = be32(h + 28);
	out->schema_format = be32(h + 44);
	out->encoding = be32(h + 56);
	return true;
}

const char *np_pages_init(struct np_pages *self, const void *ptr, size_t len)
{
	struct np_pages_header header;
	*self = (struct np_pages){0};
	if (!np_pages_header(ptr, len, &header))
		return "not a database";
	if (header.write_version < 1 || header.write_version > 2 || header.read_version < 1 ||
	    header.read_version > 2)
		return "a newer file format";
	if (header.page_size - header.reserved < 480)
		return "too many reserved bytes";
	if (header.encoding != 1)
		return "text is not UTF-8";
	if (header.schema_format < 1 || header.schema_format > 4)
		return "unknown schema format";
	if (len % header.page_size != 0)
		return "not a whole number of pages";
	uint64_t in_file = len / header.page_size;
	if (in_file > UINT32_MAX - 1 || header.n_pages > in_file)
		return "the number of pages is wrong";
	self->base = ptr;
	self->page_size = header.page_size;
	self->usable = header.page_size - header.reserved;
	self->n_pages = header.n_pages ? header.n_pages : (uint32_t)in_file;
	return NULL;
}

/* ── integers ── */

const uint8_t *np_pages_varint(const uint8_t *ptr, const uint8_t *end, uint64_t *out)
{
	uint64_t v = 0;
	for (int i = 0; i < 8; i++) {
		if (ptr >= end)
			return NULL;
		v = v << 7 | (*ptr & 0x7f);
		if (*ptr++ < 0x80) {
			*out = v;
			return ptr;
		}
	}
	if (ptr >= end)
		return NULL;
	*out = v << 8 | *ptr;
	return ptr + 1;
}

/* Most are one byte. */
static inline const uint8_t *varint(const uint8_t *ptr, const uint8_t *end, uint64_t *out)
{
	if (ptr < end && *ptr < 0x80) {
		*out = *ptr;
		return ptr + 1;
	}
	return np_pages_varint(ptr, end, out);
}

/* ── the tree ── */

void np_pages_scan_init(struct np_pages_scan *self, const struct np_pages *pages, uint32_t root,
                        const struct np_pages_column *columns, size_t n_columns)
{
	*self = (struct np_pages_scan){
		.pages = *pages, .columns = columns, .n_columns = n_columns, .root = root};
}

void np_pages_scan_release(struct np_pages_scan *self)
{
	np_free(self->scratch);
	self->scratch = NULL;
	self->scratch_cap = 0;
}

static const uint8_t *page_of(const struct np_pages *pages, uint32_t number)
{
	/* page 1 is the schema's root, so never part of another tree */
	if (number < 2 || number > pages->n_pages || number == LOCK_BYTE / pages->page_size + 1)
		return NULL;
	return pages->base + (size_t)(number - 1) * pages->page_size;
}

/* Step into a page: it becomes the leaf at hand or the top of the stack. */
static bool enter(struct np_pages_scan *self, uint32_t number, bool is_root)
{
	const uint8_t *page = page_of(&self->pages, number);
	if (!page || ++self->n_visited > self->pages.n_pages)
		return false;
	bool leaf = page[0] == PAGE_LEAF;
	if (!leaf && page[0] != PAGE_INTERIOR)
		return false;
	uint32_t n_cells = be16(page + 3);
	uint32_t first_byte = (leaf ? LEAF_HEADER : INTERIOR_HEADER) + 2 * n_cells;
	if (first_byte > self->pages.usable || n_cells > (self->pages.page_size - 8) / 6 ||
	    (n_cells == 0 && !(is_root && leaf)))
		return false;
	if (leaf) {
		self->leaf = page;
		self->cell = 0;
		self->n_cells = n_cells;
		self->first_byte = first_byte;
		return true;
	}
	if (self->depth == NP_PAGES_MAX_DEPTH - 1)
		return false;
	self->stack[self->depth++] = (struct np_pages_frame){.page = page, .n_cells = n_cells};
	return true;
}

/* The frame's next child; 0 when its cell is not sound. The key in the cell is
 * not needed: a full scan takes all children in turn. */
static uint32_t next_child(const struct np_pages_scan *self, struct np_pages_frame *frame)
{
	uint32_t i = frame->next++;
	if (i == frame->n_cells)
		return be32(frame->page + 8);
	uint32_t at = be16(frame->page + INTERIOR_HEADER + 2 * i);
	uint64_t key;
	if (at < INTERIOR_HEADER + 2 * frame->n_cells ||
	    at > self->pages.usable - SMALLEST_CELL - 1 ||
	    !varint(frame->page + at + 4, frame->page + self->pages.usable, &key))
		return 0;
	return be32(frame->page + at);
}

static enum np_pages_step next_leaf(struct np_pages_scan *self)
{
	self->leaf = NULL;
	self->cell = self->n_cells = 0;
	if (self->root) {
		uint32_t root = self->root;
		self->root = 0;
		if (!enter(self, root, true))
			return NP_PAGES_DOUBT;
	} else if (self->n_visited == 0) {
		return NP_PAGES_DOUBT; /* there is no page 0 */
	}
	while (!self->leaf) {
		if (self->depth == 0)
			return NP_PAGES_END;
		struct np_pages_frame *top = &self->stack[self->depth - 1];
		if (top->next > top->n_cells)
			self->depth--;
		else if (!enter(self, next_child(self, top), false))
			return NP_PAGES_DOUBT;
	}
	return NP_PAGES_ROW;
}

enum np_pages_step np_pages_count(const struct np_pages *pages, uint32_t root, int64_t *out)
{
	struct np_pages_scan scan;
	np_pages_scan_init(&scan, pages, root, NULL, 0);
	int64_t n = 0;
	enum np_pages_step step;
	while ((step = next_leaf(&scan)) == NP_PAGES_ROW)
		n += scan.n_cells;
	*out = n;
	return step;
}

/* ── records ── */

/*
 * Serial types below 12, so that integers need no branch: the eight bytes that
 * end where the value ends are loaded (those before it are the record's or the
 * page's header), and what is not the value is shifted out with its sign kept.
 *
 *     record  .. .. .. .. [v0 v1 v2] ..        24 bits, shift 40
 *             └────── 8 bytes ─────┘
 */
static const struct serial {
	uint8_t len, shift, type, one;
	bool is_word; /* as described; not 7 (a double) and 10, 11 (reserved) */
	int64_t mask;
} serial[12] = {
	{0, 0, NP_DB_NULL, 0, true, 0},  {1, 56, NP_DB_INT, 0, true, -1},
	{2, 48, NP_DB_INT, 0, true, -1}, {3, 40, NP_DB_INT, 0, true, -1},
	{4, 32, NP_DB_INT, 0, true, -1}, {6, 16, NP_DB_INT, 0, true, -1},
	{8, 0, NP_DB_INT, 0, true, -1},  {8, 0, NP_DB_REAL, 0, false, -1},
	{0, 0, NP_DB_INT, 0, true, 0},   {0, 0, NP_DB_INT, 1, true, 0},
	{0, 0, NP_DB_NULL, 0, false, 0}, {0, 0, NP_DB_NULL, 0, false, 0},
};

static inline void word_value(const struct serial *s, const uint8_t *end, struct np_db_value *out)
{
	int64_t v = (int64_t)(be64(end - 8) << s->shift) >> s->shift;
	out->type = (enum np_db_type)s->type;
	out->i = (v & s->mask) | s->one;
}

/* false: a reserved type. */
static bool other_value(uint64_t type, const uint8_t *body, size_t len, struct np_db_value *out)
{
	if (type >= 12) {
		out->type = type & 1 ? NP_DB_TEXT : NP_DB_BLOB;
		out->text = (np_str){(const char *)body, len};
		return true;
	}
	if (type != 7)
		return false;
	uint64_t bits = be64(body);
	double r;
	memcpy(&r, &bits, sizeof r);
	/* a stored NaN reads as NULL, says libsqlite3 */
	out->type = r == r ? NP_DB_REAL : NP_DB_NULL;
	out->r = r == r ? r : 0;
	return true;
}

static void apply_rule(enum np_pages_rule rule, int64_t rowid, struct np_db_value *out)
{
	if (rule == NP_PAGES_ROWID) {
		out->type = NP_DB_INT;
		out->i = rowid;
	} else if (rule == NP_PAGES_REAL && out->type == NP_DB_INT) {
		out->type = NP_DB_REAL;
		out->r = (double)out->i;
	}
}

/* The record has no more values: the columns from `c` on were added later. */
static bool absent_columns(const struct np_pages_scan *self, size_t c, int64_t rowid,
                           struct np_db_value *row)
{
	for (; c < self->n_columns; c++) {
		const struct np_pages_column *column = &self->columns[c];
		if (column->rule == NP_PAGES_SKIP)
			continue;
		if (column->has_default && column->rule != NP_PAGES_ROWID)
			return false;
		row[column->out].type = NP_DB_NULL;
		row[column->out].i = 0;
		apply_rule(column->rule, rowid, &row[column->out]);
	}
	return true;
}

struct record {
	const uint8_t *ptr; /* 8 bytes before it are readable */
	size_t avail;       /* bytes at hand; the rest is in overflow pages */
	size_t size;        /* bytes in all */
	int64_t rowid;
};

/* How far a record is decoded. */
struct place {
	const uint8_t *type; /* the next one in the header */
	size_t at;           /* of its value, from the record's start */
	size_t column;
};

/* The first columns, as long as they are integers or NULL and taken as they are;
 * in most tables these are all. `n_types` bytes follow in the header. */
static inline void decode_words(const struct np_pages_scan *self, const struct record *record,
                                size_t n_types, struct place *place, struct np_db_value *row)
{
	const struct np_pages_column *columns = self->columns;
	const uint8_t *types = place->type, *ptr = record->ptr;
	size_t n = self->n_columns < n_types ? self->n_columns : n_types;
	size_t at = place->at, avail = record->avail, c;
	for (c = 0; c < n; c++) {
		uint32_t type = types[c];
		if (type > 9 || type == 7 || columns[c].rule != NP_PAGES_PLAIN)
			break;
		const struct serial *s = &serial[type];
		size_t end = at + s->len;
		if (end > avail)
			break;
		word_value(s, ptr + end, &row[columns[c].out]);
		at = end;
	}
	*place = (struct place){types + c, at, c};
}

/* 0: done. n > avail: decode again with n bytes at hand. SIZE_MAX: a doubt. */
static inline __attribute__((always_inline)) size_t decode(const struct np_pages_scan *self,
                                                           const struct record *record,
                                                           struct np_db_value *row)
{
	uint64_t header_size;
	const uint8_t *h = varint(record->ptr, record->ptr + record->avail, &header_size);
	if (!h || header_size > record->size || header_size < (size_t)(h - record->ptr))
		return SIZE_MAX;
	if (header_size > record->avail)
		return header_size;
	const uint8_t *const h_end = record->ptr + header_size;
	struct place place = {h, header_size, 0};
	size_t need = 0;
	decode_words(self, record, (size_t)(h_end - h), &place, row);
	for (; place.column < self->n_columns; place.column++) {
		const struct np_pages_column *column = &self->columns[place.column];
		uint64_t type;
		if (place.type == h_end) {
			if (!absent_columns(self, place.column, record->rowid, row))
				return SIZE_MAX;
			break;
		}
		place.type = varint(place.type, h_end, &type);
		if (!place.type || type > UINT32_MAX)
			return SIZE_MAX;
		size_t len = type < 12 ? serial[type].len : (type - 12) / 2;
		size_t begin = place.at;
		place.at += len;
		if (column->rule == NP_PAGES_SKIP)
			continue;
		if (place.at > record->avail) {
			need = place.at;
			continue;
		}
		struct np_db_value *out = &row[column->out];
		if (type < 12 && serial[type].is_word)
			word_value(&serial[type], record->ptr + place.at, out);
		else if (!other_value(type, record->ptr + begin, len, out))
			return SIZE_MAX;
		if (column->rule != NP_PAGES_PLAIN)
			apply_rule(column->rule, record->rowid, out);
	}
	/* behind the last value nothing may follow, as libsqlite3 has it */
	if (place.at > record->size || (place.type == h_end && place.at != record->size))
		return SIZE_MAX;
	return need;
}

/* Bytes of a record that its leaf holds when the whole does not fit. */
static size_t local_size(uint32_t usable, size_t size)
{
	size_t most = usable - 35;
	size_t least = (usable - 12) * 32 / 255 - 23;
	size_t fitting = least + (size - least) % (usable - 4);
	return fitting <= most ? fitting : least;
}

/* Gather the first `need` bytes of a record; `page` is the first overflow page.
 * The chain has as many pages as `need` asks for, so it cannot turn for ever. */
static enum np_pages_step gather(struct np_pages_scan *self, struct record *record, uint32_t page,
                                 size_t need)
{
	if (need > record->size || need > MAX_RECORD ||
	    need > (uint64_t)self->pages.n_pages * self->pages.page_size)
		return NP_PAGES_DOUBT;
	if (need + 8 > self->scratch_cap &&
	    !np_vec_grow((void **)&self->scratch, &self->scratch_cap, need + 8, 1))
		return NP_PAGES_NOMEM;
	uint8_t *out = self->scratch + 8;
	memset(self->scratch, 0, 8);
	memcpy(out, record->ptr, record->avail);
	for (size_t have = record->avail; have < need;) {
		const uint8_t *from = page_of(&self->pages, page);
		if (!from)
			return NP_PAGES_DOUBT;
		size_t part = self->pages.usable - 4;
		if (part > need - have)
			part = need - have;
		memcpy(out + have, from + 4, part);
		have += part;
		page = be32(from);
	}
	record->ptr = out;
	record->avail = need;
	return NP_PAGES_ROW;
}

/* A record of which a part is in overflow pages. `local` bytes are at hand. Apart,
 * so that the common case keeps its registers. */
static __attribute__((noinline)) enum np_pages_step decode_long(struct np_pages_scan *self,
                                                                struct record record,
                                                                struct np_db_value *row)
{
	const struct record local = record;
	uint32_t overflow = be32(local.ptr + local.avail);
	size_t need;
	while ((need = decode(self, &record, row)) != 0) {
		if (need == SIZE_MAX || need <= record.avail)
			return NP_PAGES_DOUBT;
		record = local;
		enum np_pages_step step = gather(self, &record, overflow, need);
		if (step != NP_PAGES_ROW)
			return step;
	}
	return NP_PAGES_ROW;
}

enum np_pages_step np_pages_scan_next(struct np_pages_scan *self, struct np_db_value *row)
{
	if (self->cell == self->n_cells) {
		enum np_pages_step step = next_leaf(self);
		if (step != NP_PAGES_ROW)
			return step;
		if (self->n_cells == 0)
			return NP_PAGES_END; /* an empty table: its root is an empty leaf */
	}
	const uint32_t usable = self->pages.usable;
	const uint8_t *end = self->leaf + usable;
	uint32_t at = be16(self->leaf + LEAF_HEADER + 2 * self->cell);
	if (at < self->first_byte || at > usable - SMALLEST_CELL)
		return NP_PAGES_DOUBT;
	uint64_t size, rowid;
	const uint8_t *p = varint(self->leaf + at, end, &size);
	if (!p || !(p = varint(p, end, &rowid)) || size > MAX_RECORD)
		return NP_PAGES_DOUBT;
	struct record record = {p, size, size, (int64_t)rowid};
	if (self->n_given > 0 && record.rowid <= self->last_rowid)
		return NP_PAGES_DOUBT;
	if (size <= usable - 35) {
		if (size > (size_t)(end - p) || decode(self, &record, row) != 0)
			return NP_PAGES_DOUBT;
	} else {
		record.avail = local_size(usable, size);
		if (record.avail + 4 > (size_t)(end - p))
			return NP_PAGES_DOUBT;
		enum np_pages_step step = decode_long(self, record, row);
		if (step != NP_PAGES_ROW)
			return step;
	}
	self->cell++;
	self->n_given++;
	self->last_rowid = record.rowid;
	return NP_PAGES_ROW;
}
