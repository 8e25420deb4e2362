/*
 * Any bytes as a CSV file. The first byte chooses the window size; reading in small
 * windows, as one window, and in chunks must give the same rows.
 */
#include <stdlib.h>

#include "io/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct summary {
	uint64_t rows, hash;
};

static void add(struct summary *sum, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < len; i++)
		sum->hash = (sum->hash ^ p[i]) * UINT64_C(0x100000001b3);
	sum->hash = (sum->hash ^ len) * UINT64_C(0x100000001b3);
}

static void read_all(struct np_csv *csv, struct summary *sum)
{
	struct np_buf scratch = {0}, written = {0};
	struct np_csv_row row;
	bool got = false;
	while (np_csv_next(csv, &row, &got, NULL) == NP_OK && got) {
		sum->rows++;
		add(sum, &row.offset, sizeof row.offset);
		for (size_t i = 0; i < np_csv_n_columns(csv); i++) {
			int64_t number = 0;
			double ratio = 0;
			np_str text = np_csv_text(row.fields[i], &scratch);
			add(sum, text.ptr, text.len);
			np_buf_clear(&written);
			np_csv_write_text(&written, text);
			(void)np_csv_us_to_ns(row.fields[i], &number);
			(void)np_csv_i64(row.fields[i], &number);
			(void)np_csv_double(row.fields[i], &ratio);
		}
	}
	np_buf_release(&scratch);
	np_buf_release(&written);
}

static void read_chunks(const struct np_csv *header, struct summary *sum)
{
	np_str chunks[3];
	uint64_t offsets[3];
	size_t n = np_csv_split(header, 3, chunks, offsets);
	for (size_t i = 0; i < n; i++) {
		struct np_input *input = NULL;
		struct np_csv *csv = NULL;
		if (np_input_open_mem(chunks[i], "c", offsets[i], &input, NULL) == NP_OK &&
		    np_csv_open_chunk(header, input, &csv, NULL) == NP_OK)
			read_all(csv, sum);
		np_csv_close(csv);
		np_input_close(input);
	}
}

static bool read_bytes(np_str bytes, size_t window, struct summary *whole, struct summary *split)
{
	struct np_input *input = NULL;
	struct np_csv *csv = NULL;
	bool ok = np_input_open_mem(bytes, "fuzz", 0, &input, NULL) == NP_OK;
	if (ok)
		np_input_limit_window(input, window);
	ok = ok && np_csv_open(input, &csv, NULL) == NP_OK;
	if (ok) {
		read_all(csv, whole);
		read_chunks(csv, split);
	}
	np_csv_close(csv);
	np_input_close(input);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	np_str bytes = {(const char *)data + 1, size - 1};
	struct summary sums[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}};
	bool first = read_bytes(bytes, 0, &sums[0], &sums[1]);
	bool second = read_bytes(bytes, 1 + data[0], &sums[2], &sums[3]);
	if (first != second)
		abort();
	for (int i = 1; i < 4; i++)
		if (sums[i].rows != sums[0].rows || sums[i].hash != sums[0].hash)
			abort();
	return 0;
}
