/*
 * A log of collectives of any bytes: the reader ends, gives no more records than there are
 * slots, in order, and strings that lie inside.
 */
#include <stdio.h>
#include <stdlib.h>

#include "collect/comm_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                              \
	do {                                                                          \
		if (!(condition)) {                                                   \
			(void)fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			abort();                                                      \
		}                                                                     \
	} while (0)

static void check_text(const struct np_clog *log, uint32_t offset)
{
	np_str text = np_clog_string(log, offset);
	size_t sum = 0;
	CHECK(text.len <= NP_CLOG_TEXT_MAX);
	for (size_t i = 0; i < text.len; i++)
		sum += (unsigned char)text.ptr[i];
	CHECK(sum <= text.len * 255);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct np_clog log;
	struct np_comm_record record;
	uint64_t last = 0, n = 0;
	if (np_clog_open_mem((np_str){(const char *)data, size}, "fuzz", &log, NULL) != NP_OK)
		return 0;
	while (np_clog_next(&log, &record)) {
		CHECK(record.seq > last);
		CHECK(record.start_ns >= 0 && record.world >= -1);
		last = record.seq;
		check_text(&log, record.comm_name);
		check_text(&log, record.stage);
		check_text(&log, record.stage_path);
		check_text(&log, record.shape);
		n++;
	}
	CHECK(n <= size / sizeof record);
	np_clog_close(&log);
	return 0;
}
