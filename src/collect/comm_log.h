/*
 * Reading one log of the collective recorder (include/npuprof/comm_log.h,
 * docs/formats/comm_log.md).
 *
 *   np_clog_open() ─▶ { header, first … last } ─np_clog_next()─▶ record … ─▶ np_clog_close()
 *
 * The file is mapped and read where it lies; nothing of a record is kept. It may be written
 * while it is read, be cut, or be anything else: every length is checked, a record counts
 * only when its number is the one of its slot, and what cannot be believed is made unknown
 * and counted. Sizes beyond NP_COMM_BYTES_MAX are such, so sums of a file's records do not
 * overflow by accident; np_clog_add() takes care of the rest.
 *
 * Threads: a log belongs to one thread at a time.
 */
#ifndef NP_COLLECT_COMM_LOG_H
#define NP_COLLECT_COMM_LOG_H

#include "base/time.h"
#include "io/input.h"
#include "npuprof/comm_log.h"

#define NP_COMM_BYTES_MAX (1ull << 56)

enum { NP_CLOG_TEXT_MAX = 4096 }; /* bytes of a string that are believed */

struct np_clog {
	struct np_comm_log_header header; /* numbers as in the file; its texts end in NUL */
	uint64_t first, last;             /* numbers of the records that should be there */
	uint64_t overwritten;             /* the oldest, when the ring was full */
	uint64_t cut_off;                 /* records beyond the end of the file */
	uint64_t damaged;                 /* slots without their number, so far */
	uint64_t implausible;             /* records with values that were made unknown, so far */
	uint64_t next;                    /* number of the next record */
	/* inside */
	struct np_input *input;
	np_str bytes; /* the whole file */
	const char *strings, *records;
	uint64_t string_capacity, slots; /* slots: those that the file holds entirely */
};

/*
 * Errors: those of np_input_open(); E_EMPTY (no magic but zeros: the writer was killed before),
 * E_FORMAT (something else), E_UNSUPPORTED (another version, a compressed file),
 * E_TRUNCATED (it ends before the first record). A cut file that has records is NP_OK with
 * `cut_off`.
 */
enum np_status np_clog_open(const char *path, struct np_clog *out, struct np_err *err);
/* The same of bytes in memory, which must outlive it. */
enum np_status np_clog_open_mem(np_str bytes, const char *name, struct np_clog *out,
                                struct np_err *err);
void np_clog_close(struct np_clog *self);

/* The next record, oldest first; false at the end. */
bool np_clog_next(struct np_clog *self, struct np_comm_record *out);

/* A string of a record: empty for none, "(no room)" and "(damaged)" where that is so.
 * A view into the file; any bytes. */
np_str np_clog_string(const struct np_clog *self, uint32_t offset);

/* Did the file shrink under the map? What was read is then not to be trusted. */
bool np_clog_faulted(const struct np_clog *self);

/* Names for people: "all_reduce"; NULL for an unknown id. */
const char *np_clog_op_name(uint8_t op);
/* The id of a name; 0: none. */
uint8_t np_clog_op_find(np_str name);
/* "fp16", "bool"; "unknown". And the bytes of one element, 0 unknown. */
const char *np_clog_dtype_name(uint8_t dtype);
unsigned np_clog_dtype_bytes(uint8_t dtype);
const char *np_clog_reduce_name(uint8_t reduce); /* "sum"; "" for none */
const char *np_clog_layer_name(uint32_t layer);  /* "torch", "hccl"; "unknown" */

/* Is it a collective or a transfer? (comm_init, comm_destroy and mark are not.) */
bool np_clog_op_moves(uint8_t op);

/* *sum += value, and stays at INT64_MAX. */
static inline void np_clog_add(uint64_t *sum, uint64_t value)
{
	uint64_t all = *sum + value;
	*sum = all < value || all > INT64_MAX ? INT64_MAX : all;
}

#endif
