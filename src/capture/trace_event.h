/*
 * One event of a trace: the values of the keys that matter, found once.
 *
 *   {"ph": "X", "name": …, "args": {"Task Type": …, …}}
 *      │                              │
 *      ▼                              ▼
 *   value[NP_EV_PH] …             value[NP_ARG_TASK_TYPE] …      have: one bit per key
 *
 * Values are views into the bytes that were read. A key that comes twice has
 * its last value. `numbers` are all numeric args in order, for counters.
 *
 * Threads: an event, and the key table inside it, belong to one thread.
 */
#ifndef NP_CAPTURE_TRACE_EVENT_H
#define NP_CAPTURE_TRACE_EVENT_H

#include "base/mem.h"
#include "capture/trace_scan.h"

/* Keys of the event itself, then those of its args. */
#define NP_EV_KEYS(X)   \
	X(PH, "ph")     \
	X(NAME, "name") \
	X(CAT, "cat")   \
	X(ID, "id")     \
	X(PID, "pid")   \
	X(TID, "tid")   \
	X(TS, "ts")     \
	X(DUR, "dur")   \
	X(ARGS, "args")
#define NP_ARG_KEYS(X)                   \
	X(CONNECTION, "connection_id")   \
	X(CORRELATION, "correlation_id") \
	X(SEQUENCE, "Sequence number")   \
	X(ITEM, "item_id")               \
	X(TASK_TYPE, "Task Type")        \
	X(STREAM, "Physic Stream Id")    \
	X(TASK, "Task Id")               \
	X(SUBTASK, "Subtask Id")         \
	X(ALGORITHM, "alg_type")         \
	X(DATA_TYPE, "data_type")        \
	X(COUNT, "count")                \
	X(NOTIFY, "notify_id")           \
	X(SRC_RANK, "src rank")          \
	X(DST_RANK, "dst rank")          \
	X(TRANSPORT, "transport type")   \
	X(LINK, "link type")             \
	X(SIZE, "size(Byte)")            \
	X(COMM_STREAM, "stream id")      \
	X(COMM_TASK, "task id")          \
	X(NAME, "name")                  \
	X(LABELS, "labels")              \
	X(SHAPES, "Input Dims")          \
	X(DTYPES, "Input type")          \
	X(STACK, "Call stack")           \
	X(EVENT_TYPE, "event_type")      \
	X(CATEGORY, "Category")          \
	X(DOMAIN, "domain")

enum np_trace_key {
#define X(id, text) NP_EV_##id,
	NP_EV_KEYS(X)
#undef X
#define X(id, text) NP_ARG_##id,
		NP_ARG_KEYS(X)
#undef X
			NP_TRACE_N_KEYS,
};

enum { NP_TRACE_KEY_SLOTS = 128 };

struct np_trace_key_slot {
	const char *text;
	uint8_t len, id; /* id NP_TRACE_N_KEYS: empty */
};

/*
 * What stands between two values, as this file writes it: `, "name": "`. Files
 * repeat few of them in few orders, so the next one is predicted and compared
 * as a whole, instead of being taken apart: blanks, comma, key, colon, quote.
 *
 *   value │, "pid": │value │, "tid": │value │, "ts": "│value
 *         └─ gap ───┘next[0] ─▶ gap ─┘next[0] ─▶ gap ─┘
 */
enum { NP_TRACE_GAP_BYTES = 32, NP_TRACE_GAPS = 128, NP_TRACE_NEXT = 4 };

enum np_trace_gap_kind {
	NP_TRACE_GAP_VALUE,  /* any value follows */
	NP_TRACE_GAP_STRING, /* the gap ends with the opening quote of a string */
	NP_TRACE_GAP_ARGS,   /* it ends with the opening brace of the args */
};

struct np_trace_gap {
	char bytes[NP_TRACE_GAP_BYTES];
	uint32_t mask;           /* the low `len` bits */
	uint8_t len, kind, key;  /* key: enum np_trace_key, NP_TRACE_N_KEYS for others */
	uint8_t key_at, key_len; /* where the key is in bytes */
	bool key_raw;
	uint8_t next[NP_TRACE_NEXT]; /* numbers of those that followed lately; 0 matches nothing */
};

/* Where an object is: gaps of one place are never valid in another. */
enum {
	NP_TRACE_EVENT_FIRST,
	NP_TRACE_EVENT_NEXT,
	NP_TRACE_ARGS_FIRST,
	NP_TRACE_ARGS_NEXT,
	NP_TRACE_N_PLACES
};

struct np_trace_number {
	np_str key, text;
	bool key_raw;
};

struct np_trace_event {
	uint64_t have;                                    /* bit k: value[k] is set */
	struct np_trace_value value[NP_TRACE_N_KEYS + 1]; /* the last one: of keys nobody wants */
	NP_VEC(struct np_trace_number) numbers;
	struct np_trace_key_slot keys[2][NP_TRACE_KEY_SLOTS]; /* of the event, of its args */
	struct np_trace_gap gaps[NP_TRACE_N_PLACES][NP_TRACE_GAPS];
	struct np_json *json; /* of np_trace_event_read_exact(), NULL before its first use */
	struct np_input *json_input;
	bool no_memory; /* `numbers` could not grow */
};

void np_trace_event_init(struct np_trace_event *self);
void np_trace_event_release(struct np_trace_event *self);

static inline bool np_trace_has(const struct np_trace_event *self, enum np_trace_key key)
{
	return (self->have >> key) & 1;
}

/* The value's text when it is a string or a number, else empty. */
static inline np_str np_trace_text(const struct np_trace_event *self, enum np_trace_key key)
{
	return np_trace_has(self, key) ? self->value[key].text : (np_str){"", 0};
}

/* The object whose brace is at p, which must be exactly right; NULL otherwise. */
const char *np_trace_event_read(struct np_trace_event *self, const char *p, const char *end);

/*
 * The same by io/json.h for any value: `text` is all of it, `offset` where it is
 * in the content. What was repaired is added to *repairs. *is_event is false
 * when it is no object. Views are into `text`. Errors: those of np_json_next().
 */
enum np_status np_trace_event_read_exact(struct np_trace_event *self, np_str text, const char *file,
                                         uint64_t offset, struct np_json_repairs *repairs,
                                         bool *is_event, struct np_err *err);

/* Add counts; the earlier offset wins. */
void np_trace_repairs_add(struct np_json_repairs *to, const struct np_json_repairs *from);
void np_trace_repair(struct np_json_repair *to, uint64_t offset);

#endif
