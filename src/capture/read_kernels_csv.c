/*
 * kernel_details*.csv, op_summary*.csv and task_time*.csv into `kernels`.
 *
 *   file ─▶ chunks at row borders ─▶ one part per thread ─▶ appended in order
 *
 * Names, types and shapes repeat: a small cache per column, keyed by the raw
 * bytes, saves the hash of nearly every cell. It may keep views only where the
 * bytes stay (mapped and memory inputs), so buffered inputs go without.
 */
#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "capture/kernel_header.h"
#include "capture/reader.h"

enum {
	CACHE_BITS = 6,
	CACHE_SLOTS = 1 << CACHE_BITS,
	MAX_METRICS = 256,
	PARALLEL_MIN_BYTES = 32 << 20,
	MAX_CHUNKS = 64
};

struct text_key {
	uint64_t head, tail, len;
};

struct text_cache {
	struct text_key key[CACHE_SLOTS]; /* len 0: empty */
	const char *raw[CACHE_SLOTS];
	uint32_t id[CACHE_SLOTS];
};

struct metric_column {
	size_t column;
	double *v;
	size_t cap;
};

/* What one thread fills. */
struct part {
	const struct np_read *read;
	const struct np_kernel_header *header;
	struct np_csv *csv;
	struct np_input *input;
	struct np_profile *profile; /* the reader's own when `direct`, else this part's */
	bool direct;
	struct np_buf scratch;
	struct text_cache cache[NP_N_KCOLS];
	bool may_cache;
	struct metric_column metrics[MAX_METRICS];
	size_t n_metrics;
	np_str last_step; /* raw text of the last Step Id cell, and its row */
	uint32_t last_step_row;
	uint64_t first_offset; /* of the first row */
	uint64_t bad_start, bad_duration, na_duration, negative, bad_step, bad_metric;
	enum np_status status;
	struct np_err err;
};

/* ── cells ── */

static np_str cell(const struct part *part, const struct np_csv_row *row, enum np_kcol column)
{
	int i = part->header->column[column];
	return i < 0 ? (np_str){NULL, 0} : row->fields[i];
}

/* Both ends of a text: for up to 16 bytes they are the whole of it. */
static struct text_key key_of(np_str raw)
{
	struct text_key key = {.len = raw.len};
	if (raw.len >= 8) {
		memcpy(&key.head, raw.ptr, 8);
		memcpy(&key.tail, raw.ptr + raw.len - 8, 8);
	} else {
		for (size_t i = 0; i < raw.len; i++)
			key.head = key.head << 8 | (unsigned char)raw.ptr[i];
	}
	return key;
}

static bool is_cached(const struct text_cache *cache, size_t slot, struct text_key key, np_str raw)
{
	const struct text_key *old = &cache->key[slot];
	if (old->len != key.len || old->head != key.head || old->tail != key.tail)
		return false;
	return key.len <= 16 || memcmp(cache->raw[slot] + 8, raw.ptr + 8, key.len - 16) == 0;
}

/* Id of a text cell; NP_ID_NONE for N/A and missing columns. */
static uint32_t text(struct part *part, const struct np_csv_row *row, enum np_kcol column)
{
	np_str raw = cell(part, row, column);
	if (raw.len == 0)
		return NP_ID_NONE;
	struct text_cache *cache = &part->cache[column];
	struct text_key key = key_of(raw);
	uint64_t hash = (key.head ^ (key.tail << 1) ^ key.len) * UINT64_C(0x9E3779B97F4A7C15);
	size_t slot = hash >> (64 - CACHE_BITS);
	if (part->may_cache && is_cached(cache, slot, key, raw))
		return cache->id[slot];
	np_str value = np_csv_text(raw, &part->scratch);
	uint32_t id = NP_ID_NONE;
	if (!np_is_na(value)) {
		id = np_intern_add(&part->profile->strings, value);
		if (id == NP_ID_NONE)
			part->status = NP_E_NOMEM;
	}
	cache->key[slot] = key;
	cache->raw[slot] = raw.ptr;
	cache->id[slot] = id;
	return id;
}

/* Ids are short runs of digits; whatever else stands there goes the long way. */
static uint32_t number(const struct part *part, const struct np_csv_row *row, enum np_kcol column)
{
	np_str raw = cell(part, row, column);
	if (raw.len == 0)
		return NP_NO_U32;
	uint64_t plain = 0;
	size_t i = 0;
	for (; i < raw.len && i < 11 && (unsigned char)(raw.ptr[i] - '0') <= 9; i++)
		plain = plain * 10 + (uint64_t)(raw.ptr[i] - '0');
	int64_t value = (int64_t)plain;
	if (i != raw.len && np_csv_i64(raw, &value) != NP_NUM_OK)
		return NP_NO_U32;
	return value < 0 || value >= NP_NO_U32 ? NP_NO_U32 : (uint32_t)value;
}

static uint32_t step(struct part *part, const struct np_csv_row *row)
{
	np_str raw = cell(part, row, NP_KCOL_STEP);
	if (raw.len == 0)
		return NP_NO_U32;
	if (part->may_cache && np_str_eq(raw, part->last_step))
		return part->last_step_row;
	int64_t id = 0;
	enum np_num got = np_csv_i64(raw, &id);
	uint32_t found = NP_NO_U32;
	if (got == NP_NUM_OK) {
		found = np_profile_add_step(part->profile, id);
		if (found == NP_NO_U32)
			part->status = NP_E_NOMEM;
	}
	part->bad_step += got != NP_NUM_OK && got != NP_NUM_NA;
	part->last_step = raw;
	part->last_step_row = found;
	return found;
}

/* Start and duration decide whether the row is one; why not is counted. */
static bool times(struct part *part, const struct np_csv_row *row, np_ns *start, np_ns *dur)
{
	if (np_csv_us_to_ns(cell(part, row, NP_KCOL_START), start) != NP_NUM_OK || *start < 0 ||
	    *start >= NP_TIME_MAX) {
		part->bad_start++;
		return false;
	}
	enum np_num got = np_csv_us_to_ns(cell(part, row, NP_KCOL_DURATION), dur);
	if (got == NP_NUM_OK && np_time_sane(*start, *dur))
		return true;
	if (got == NP_NUM_NA)
		part->na_duration++;
	else if (got == NP_NUM_OK && *dur < 0)
		part->negative++;
	else
		part->bad_duration++;
	return false;
}

/* ── rows ── */

static void add_shapes(struct part *part, const struct np_csv_row *row)
{
	struct np_profile *profile = part->profile;
	struct np_kernel_shapes *shapes = &profile->kernel_shapes;
	size_t at = np_profile_add(profile, kernel_shapes);
	if (at == SIZE_MAX) {
		part->status = NP_E_NOMEM;
		return;
	}
	shapes->in_shapes[at] = text(part, row, NP_KCOL_IN_SHAPES);
	shapes->in_dtypes[at] = text(part, row, NP_KCOL_IN_DTYPES);
	shapes->in_formats[at] = text(part, row, NP_KCOL_IN_FORMATS);
	shapes->out_shapes[at] = text(part, row, NP_KCOL_OUT_SHAPES);
	shapes->out_dtypes[at] = text(part, row, NP_KCOL_OUT_DTYPES);
	shapes->out_formats[at] = text(part, row, NP_KCOL_OUT_FORMATS);
}

/*
 * A metric cell: up to 15 digits and a point, as nearly all are, in one loop. 15
 * digits fit a double exactly, so the division rounds once, correctly.
 */
static enum np_num metric_value(np_str raw, double *out)
{
	static const double pow10[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
	                               1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	uint64_t digits = 0;
	size_t i = 0, point = raw.len;
	for (; i < raw.len && i < 16; i++) {
		unsigned digit = (unsigned char)(raw.ptr[i] - '0');
		if (digit <= 9)
			digits = digits * 10 + digit;
		else if (raw.ptr[i] == '.' && point == raw.len)
			point = i;
		else
			break;
	}
	size_t fraction = point < raw.len ? raw.len - point - 1 : 0;
	if (i != raw.len || raw.len == 0 || raw.len - (fraction ? 1 : 0) > 15 || point == 0 ||
	    (point < raw.len && fraction == 0))
		return np_csv_double(raw, out);
	*out = (double)digits / pow10[fraction];
	return NP_NUM_OK;
}

static void add_metrics(struct part *part, const struct np_csv_row *row, size_t at)
{
	for (size_t m = 0; m < part->n_metrics; m++) {
		struct metric_column *metric = &part->metrics[m];
		if (at >= metric->cap &&
		    !np_vec_grow((void **)&metric->v, &metric->cap, part->profile->kernels.cap,
		                 sizeof *metric->v)) {
			part->status = NP_E_NOMEM;
			return;
		}
		double value = NAN;
		enum np_num got = metric_value(row->fields[metric->column], &value);
		part->bad_metric += got == NP_NUM_BAD || got == NP_NUM_RANGE;
		metric->v[at] = got == NP_NUM_OK ? value : NAN;
	}
}

static void add_row(struct part *part, const struct np_csv_row *row)
{
	np_ns start = 0, dur = 0, wait = 0;
	if (!times(part, row, &start, &dur)) {
		part->profile->dropped_rows++;
		return;
	}
	size_t at = np_profile_add(part->profile, kernels);
	if (at == SIZE_MAX) {
		part->status = NP_E_NOMEM;
		return;
	}
	struct np_kernels *kernels = &part->profile->kernels;
	enum np_num waited = np_csv_us_to_ns(cell(part, row, NP_KCOL_WAIT), &wait);
	kernels->start_ns[at] = start;
	kernels->dur_ns[at] = dur;
	kernels->wait_ns[at] = waited == NP_NUM_OK ? wait : NP_NO_I64;
	kernels->step[at] = step(part, row);
	kernels->device[at] = number(part, row, NP_KCOL_DEVICE);
	kernels->stream[at] = number(part, row, NP_KCOL_STREAM);
	kernels->task[at] = number(part, row, NP_KCOL_TASK);
	kernels->context[at] = number(part, row, NP_KCOL_CONTEXT);
	kernels->model[at] = number(part, row, NP_KCOL_MODEL);
	kernels->name[at] = text(part, row, NP_KCOL_NAME);
	kernels->type[at] = text(part, row, NP_KCOL_TYPE);
	kernels->core[at] = text(part, row, NP_KCOL_CORE);
	kernels->op_state[at] = text(part, row, NP_KCOL_STATE);
	kernels->block_num[at] = number(part, row, NP_KCOL_BLOCK);
	kernels->mix_block_num[at] = number(part, row, NP_KCOL_MIX_BLOCK);
	kernels->hf32[at] = text(part, row, NP_KCOL_HF32);
	kernels->conn[at] = NP_NO_U32;
	if (part->read->what & NP_KERNEL_SHAPES)
		add_shapes(part, row);
	add_metrics(part, row, at);
}

/* Columns behind the last one that is used need not be taken apart. */
static size_t wanted_columns(const struct part *part)
{
	int last = 0;
	for (size_t k = 0; k < NP_N_KCOLS; k++) {
		bool shape = k >= NP_KCOL_IN_SHAPES && k <= NP_KCOL_OUT_FORMATS;
		if (shape && !(part->read->what & NP_KERNEL_SHAPES))
			continue;
		if (part->header->column[k] > last)
			last = part->header->column[k];
	}
	for (size_t m = 0; m < part->n_metrics; m++)
		if ((int)part->metrics[m].column > last)
			last = (int)part->metrics[m].column;
	return (size_t)last + 1;
}

enum { RELEASE_EVERY_ROWS = 1 << 14, ESTIMATE_AFTER_ROWS = 1 << 10 };

/* The first rows tell how many there will be: arrays of that size need not grow. */
static void reserve_rows(struct part *part, const struct np_csv_row *row)
{
	size_t whole = np_input_whole(part->input).len;
	uint64_t read = row->offset - part->first_offset;
	if (whole == 0 || read == 0)
		return;
	double estimate = (double)whole / (double)read * (double)row->number * 1.02;
	struct np_profile *profile = part->profile;
	size_t rows = estimate < 1e9 ? (size_t)estimate : 0;
	/* only a hint: when memory is short the rows themselves will tell */
	(void)np_rows_reserve(&profile->kernels, &np_kernels_desc, profile->kernels.n + rows);
	if (part->read->what & NP_KERNEL_SHAPES)
		(void)np_rows_reserve(&profile->kernel_shapes, &np_kernel_shapes_desc,
		                      profile->kernel_shapes.n + rows);
}

static void read_rows(struct part *part)
{
	struct np_csv_row row;
	bool got = false;
	np_csv_want(part->csv, wanted_columns(part));
	while (part->status == NP_OK) {
		part->status = np_csv_next(part->csv, &row, &got, &part->err);
		if (part->status != NP_OK || !got)
			return;
		if (row.number == 1)
			part->first_offset = row.offset;
		if (row.number == ESTIMATE_AFTER_ROWS)
			reserve_rows(part, &row);
		add_row(part, &row);
		if (row.number % RELEASE_EVERY_ROWS == 0)
			np_input_release_behind(part->input, row.offset);
	}
	if (part->status == NP_E_NOMEM)
		(void)np_err_nomem(&part->err);
}

/* ── parts ── */

static bool part_init(struct part *part, const struct np_read *read, bool direct,
                      const struct np_kernel_header *header, const struct np_csv *csv)
{
	part->read = read;
	part->header = header;
	part->direct = direct;
	part->profile = direct ? read->profile : np_profile_new();
	part->last_step_row = NP_NO_U32;
	for (size_t i = 0; (read->what & NP_KERNEL_METRICS) && i < header->n_columns; i++)
		if (np_kernel_header_is_metric(header, i, np_csv_column_name(csv, i)) &&
		    part->n_metrics < MAX_METRICS)
			part->metrics[part->n_metrics++].column = i;
	return part->profile != NULL;
}

/* Hand the metric columns over to the part's profile. */
static bool part_close_metrics(struct part *part, const struct np_csv *csv)
{
	bool ok = true;
	for (size_t m = 0; m < part->n_metrics && part->profile->kernels.n; m++) {
		np_str name = np_csv_column_name(csv, part->metrics[m].column);
		ok &= np_profile_metric_adopt(part->profile, name, part->metrics[m].v);
		part->metrics[m].v = NULL;
	}
	return ok;
}

static void part_release(struct part *part)
{
	for (size_t m = 0; m < part->n_metrics; m++)
		np_free(part->metrics[m].v);
	np_buf_release(&part->scratch);
	if (!part->direct)
		np_profile_free(part->profile);
}

struct chunks {
	const struct np_csv *header_csv;
	const char *path;
	size_t n;
	np_str text[MAX_CHUNKS];
	uint64_t offset[MAX_CHUNKS];
	struct part *parts;
};

static void read_chunk(void *ctx, size_t i)
{
	struct chunks *chunks = ctx;
	struct part *part = &chunks->parts[i];
	struct np_input *input = NULL;
	part->status = np_input_open_mem(chunks->text[i], chunks->path, chunks->offset[i], &input,
	                                 &part->err);
	if (part->status == NP_OK)
		part->status = np_csv_open_chunk(chunks->header_csv, input, &part->csv, &part->err);
	if (part->status == NP_OK) {
		part->input = input;
		part->may_cache = true;
		read_rows(part);
	}
}

/* ── what was noticed ── */

static void tell_rows(struct np_profile *profile, const char *path, const char *code,
                      uint64_t count, const char *what)
{
	if (count)
		np_profile_diag(profile, code, path, count, "%llu rows %s",
		                (unsigned long long)count, what);
}

static void tell_all(struct np_profile *profile, const char *path, const struct part *sum,
                     const struct np_csv_health *health)
{
	tell_rows(profile, path, "NEGATIVE_DURATION", sum->negative,
	          "with a negative duration left out");
	tell_rows(profile, path, "BAD_TIME", sum->bad_start,
	          "without a readable start time left out");
	tell_rows(profile, path, "BAD_TIME", sum->bad_duration,
	          "without a readable duration left out");
	tell_rows(profile, path, "NA_DURATION", sum->na_duration, "whose duration is N/A left out");
	tell_rows(profile, path, "BAD_STEP_ID", sum->bad_step, "with a Step Id that is no number");
	tell_rows(profile, path, "BAD_METRIC", sum->bad_metric, "with a metric that is no number");
	tell_rows(profile, path, "RAGGED_ROWS", health->short_rows, "with too few fields");
	tell_rows(profile, path, "RAGGED_ROWS", health->long_rows, "with too many fields");
	tell_rows(profile, path, "OPEN_QUOTE", health->open_quotes,
	          "with a quote that never closes");
	tell_rows(profile, path, "NUL_BYTES", health->nul_bytes, "with NUL bytes");
	if (health->no_final_newline)
		np_profile_diag(profile, "NO_FINAL_NEWLINE", path, 1,
		                "the last line has no line break: the file may be cut");
}

static void add_counts(struct part *sum, struct np_csv_health *health, const struct part *part)
{
	sum->negative += part->negative;
	sum->bad_start += part->bad_start;
	sum->bad_duration += part->bad_duration;
	sum->na_duration += part->na_duration;
	sum->bad_step += part->bad_step;
	sum->bad_metric += part->bad_metric;
	if (!part->csv)
		return;
	const struct np_csv_health *h = np_csv_health(part->csv);
	health->short_rows += h->short_rows;
	health->long_rows += h->long_rows;
	health->open_quotes += h->open_quotes;
	health->nul_bytes += h->nul_bytes;
	health->no_final_newline = h->no_final_newline; /* the last part's */
}

/* ── the whole ── */

static size_t plan_chunks(const struct np_read *read, const struct np_input *input,
                          struct chunks *chunks)
{
	size_t threads = read->threads ? read->threads : np_cpu_count();
	if (np_input_whole(input).len < PARALLEL_MIN_BYTES || threads < 2)
		return 1;
	size_t n = threads * 2 > MAX_CHUNKS ? MAX_CHUNKS : threads * 2;
	return np_csv_split(chunks->header_csv, n, chunks->text, chunks->offset);
}

static enum np_status merge(const struct np_read *read, struct chunks *chunks, size_t n,
                            const char *path, struct np_err *err)
{
	struct part sum = {0};
	struct np_csv_health health = {0};
	enum np_status status = NP_OK;
	for (size_t i = 0; i < n; i++) {
		struct part *part = &chunks->parts[i];
		add_counts(&sum, &health, part);
		if (part->profile && !part->direct)
			read->profile->dropped_rows += part->profile->dropped_rows;
		if (part->status != NP_OK && status == NP_OK) {
			status = part->status;
			if (err)
				*err = part->err;
		}
		if (status == NP_E_NOMEM || !part->profile ||
		    !part_close_metrics(part, chunks->header_csv))
			return np_err_nomem(err);
		if (part->direct)
			continue;
		if (!np_profile_append_kernels(read->profile, part->profile))
			return np_err_nomem(err);
		/* now, so that no more than one part is there twice */
		np_profile_free(part->profile);
		part->profile = NULL;
	}
	tell_all(read->profile, path, &sum, &health);
	read->profile->loaded |= read->what & (NP_KERNELS | NP_KERNEL_SHAPES | NP_KERNEL_METRICS);
	return status;
}

static enum np_status read_table(const struct np_read *read, struct np_input *input,
                                 struct np_csv *csv, const char *path, struct np_err *err)
{
	struct np_kernel_header header;
	np_kernel_header_read(csv, &header);
	if (header.column[NP_KCOL_START] < 0 || header.column[NP_KCOL_DURATION] < 0)
		return np_err_set(err, NP_E_FORMAT, path, "no column %s: not a table of kernels",
		                  header.column[NP_KCOL_START] < 0 ? "Start Time(us)"
		                                                   : "Duration(us)");
	struct chunks chunks = {.header_csv = csv, .path = path};
	size_t n = plan_chunks(read, input, &chunks);
	/* the common case, one part and an empty profile, needs no copy at the end */
	bool direct = n == 1 && read->profile->kernels.n == 0;
	chunks.parts = np_calloc(n, sizeof *chunks.parts);
	bool ok = chunks.parts != NULL;
	for (size_t i = 0; ok && i < n; i++)
		ok = part_init(&chunks.parts[i], read, direct, &header, csv);
	if (ok && n == 1) {
		chunks.parts[0].csv = csv;
		chunks.parts[0].input = input;
		chunks.parts[0].may_cache = np_input_whole(input).len > 0;
		read_rows(&chunks.parts[0]);
	} else if (ok) {
		np_pool_run(read->threads, n, read_chunk, &chunks);
	}
	enum np_status status = ok ? merge(read, &chunks, n, path, err) : np_err_nomem(err);
	for (size_t i = 0; chunks.parts && i < n; i++) {
		if (n > 1) {
			np_csv_close(chunks.parts[i].csv);
			np_input_close(chunks.parts[i].input);
		}
		part_release(&chunks.parts[i]);
	}
	np_free(chunks.parts);
	return status;
}

enum np_status np_read_kernels_csv(const struct np_read *read, const char *path, struct np_err *err)
{
	struct np_input *input = NULL;
	struct np_csv *csv = NULL;
	enum np_status status = np_input_open(path, &input, err);
	if (status == NP_OK)
		status = np_csv_open(input, &csv, err);
	if (status == NP_OK)
		status = read_table(read, input, csv, path, err);
	if (input && np_input_faulted(input) && status == NP_OK)
		status = np_err_set(err, NP_E_IO, path, "the file shrank while it was read");
	np_csv_close(csv);
	np_input_close(input);
	return status;
}
