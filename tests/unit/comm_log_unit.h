/* Logs of collectives as a test wants them, in memory and as files. */
#ifndef NP_TESTS_COMM_LOG_UNIT_H
#define NP_TESTS_COMM_LOG_UNIT_H

#include "collect/comm_log.h"
#include "temp_tree.h"

enum { UNIT_STRINGS = 1024, UNIT_CAPACITY = 4096 };

struct unit_log {
	char *bytes;
	size_t len;
	struct np_comm_log_header *header;
	char *strings;
	struct np_comm_record *records;
};

/* Room for `capacity` records; a writer that is at work and has written none. */
static inline struct unit_log unit_log_new(uint64_t capacity, uint32_t layer, int rank)
{
	struct unit_log log;
	log.len =
		NP_COMM_LOG_HEADER_BYTES + UNIT_STRINGS + capacity * sizeof(struct np_comm_record);
	log.bytes = calloc(1, log.len);
	assert_non_null(log.bytes);
	log.header = (struct np_comm_log_header *)log.bytes;
	log.strings = log.bytes + NP_COMM_LOG_HEADER_BYTES;
	log.records = (struct np_comm_record *)(log.strings + UNIT_STRINGS);
	*log.header = (struct np_comm_log_header){.magic = NP_COMM_LOG_MAGIC,
	                                          .version = NP_COMM_LOG_VERSION,
	                                          .layer = layer,
	                                          .header_bytes = NP_COMM_LOG_HEADER_BYTES,
	                                          .record_bytes = sizeof(struct np_comm_record),
	                                          .string_capacity = UNIT_STRINGS,
	                                          .capacity = capacity,
	                                          .string_bytes = NP_COMM_LOG_FIRST_STRING,
	                                          .start_ns = 1000,
	                                          .pid = 100 + rank,
	                                          .tid = 100 + rank,
	                                          .rank = rank,
	                                          .world = 2,
	                                          .local_rank = rank,
	                                          .device = -1,
	                                          .host = "node"};
	return log;
}

static inline uint32_t unit_string(struct unit_log *log, const char *text)
{
	uint32_t at = (uint32_t)log->header->string_bytes, len = (uint32_t)strlen(text);
	assert_true(at + 4 + len + 1 <= UNIT_STRINGS);
	memcpy(log->strings + at, &len, 4);
	memcpy(log->strings + at + 4, text, len + 1);
	log->header->string_bytes = (at + 4 + len + 1 + 3) / 4 * 4;
	return at;
}

/* The next record, of one call; what is not given is as of an all_reduce of two ranks. */
static inline struct np_comm_record *unit_put(struct unit_log *log, uint8_t op, uint64_t bytes)
{
	uint64_t n = ++log->header->written;
	struct np_comm_record *record = &log->records[(n - 1) % log->header->capacity];
	*record = (struct np_comm_record){.seq = n,
	                                  .start_ns = 1000000 + (int64_t)n * 1000,
	                                  .call_ns = 10,
	                                  .count = bytes / 4,
	                                  .send_bytes = bytes,
	                                  .recv_bytes = bytes,
	                                  .tensor_bytes = bytes,
	                                  .step = NP_COMM_NO_U32,
	                                  .request = NP_COMM_NO_U32,
	                                  .rank = log->header->rank,
	                                  .world = 2,
	                                  .peer = -1,
	                                  .stream = -1,
	                                  .device = -1,
	                                  .op = op,
	                                  .dtype = 4,
	                                  .reduce = NP_COMM_REDUCE_NONE};
	return record;
}

static inline void unit_log_free(struct unit_log *log)
{
	free(log->bytes);
}

/* Written to root/name and freed. */
static inline void unit_log_write(struct unit_log *log, const char *root, const char *name)
{
	FILE *file = fopen(tree_path(root, name), "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(log->bytes, 1, log->len, file), log->len);
	assert_int_equal(fclose(file), 0);
	unit_log_free(log);
}

#endif
