#include "capture/trace_part.h"

#include "capture/trace_class.h"

enum np_status np_trace_part_init(struct np_trace_part *self, struct np_profile *profile,
                                  unsigned what, struct np_err *err)
{
	memset(self, 0, sizeof *self);
	self->profile = profile;
	self->what = what;
	np_trace_event_init(&self->event);
	np_map_init(&self->process_of);
	np_map_init(&self->thread_of);
	np_map_init(&self->odd_of);
	self->names = np_calloc(NP_TRACE_NAME_CACHE, sizeof *self->names);
	return self->names ? NP_OK : np_err_nomem(err);
}

void np_trace_part_release(struct np_trace_part *self)
{
	np_trace_event_release(&self->event);
	np_vec_release(&self->processes);
	np_vec_release(&self->threads);
	np_vec_release(&self->odd);
	np_vec_release(&self->marks);
	np_vec_release(&self->steps);
	np_map_release(&self->process_of);
	np_map_release(&self->thread_of);
	np_map_release(&self->odd_of);
	np_buf_release(&self->scratch);
	np_free(self->names);
	self->names = NULL;
}

enum np_status np_trace_part_reset(struct np_trace_part *self, struct np_err *err)
{
	struct np_profile *profile = self->profile;
#define CLEAR_(tag, COLUMNS, member) profile->member.n = 0;
	NP_TABLES(CLEAR_)
#undef CLEAR_
	profile->dropped_rows = 0;
	np_intern_release(&profile->strings);
	bool ok = np_intern_init(&profile->strings);
	self->processes.n = self->threads.n = self->odd.n = self->marks.n = self->steps.n = 0;
	np_map_release(&self->process_of);
	np_map_release(&self->thread_of);
	np_map_release(&self->odd_of);
	memset(&self->repairs, 0, sizeof self->repairs);
	self->bad_times = self->negative = self->not_events = 0;
	if (self->names) /* they hold ids of the old strings */
		memset(self->names, 0, NP_TRACE_NAME_CACHE * sizeof *self->names);
	memset(self->series, 0, sizeof self->series);
	memset(self->flow_ids, 0, sizeof self->flow_ids);
	return ok && self->names ? np_trace_part_status(self, err) : np_err_nomem(err);
}

/* ── strings and ids ── */

static uint32_t intern_text(struct np_trace_part *self, np_str text)
{
	uint32_t id = np_intern_add(&self->profile->strings, text);
	if (id == NP_ID_NONE)
		self->no_memory = true;
	return id;
}

/* Names come again and again. Length, first and last eight bytes spread them over
 * the cache, and up to 16 bytes they are the whole name. */
static uint32_t intern_cached(struct np_trace_part *self, struct np_trace_cached *cache,
                              unsigned cache_bits, np_str text)
{
	uint64_t head = 0, tail = 0;
	if (text.len >= 8) {
		memcpy(&head, text.ptr, 8);
		memcpy(&tail, text.ptr + text.len - 8, 8);
	} else {
		for (size_t i = 0; i < text.len; i++)
			head = head << 8 | (unsigned char)text.ptr[i];
	}
	uint64_t hash = (head ^ (tail << 21 | tail >> 43)) * 0x9e3779b97f4a7c15u + text.len;
	hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
	struct np_trace_cached *slot = &cache[hash >> (64 - cache_bits)];
	if (slot->head == head && slot->tail == tail && slot->len == text.len && slot->ptr &&
	    (text.len <= 16 || memcmp(slot->ptr + 8, text.ptr + 8, text.len - 16) == 0))
		return slot->id;
	uint32_t id = intern_text(self, text);
	if (id != NP_ID_NONE && text.len < UINT32_MAX)
		*slot = (struct np_trace_cached){head, tail,
		                                 np_intern_get(&self->profile->strings, id).ptr,
		                                 (uint32_t)text.len, id};
	return id;
}

static np_str value_text(struct np_trace_part *self, const struct np_trace_value *value)
{
	if (!value->raw)
		return value->text;
	np_str text = np_json_unescape(value->text, &self->scratch);
	if (self->scratch.failed)
		self->no_memory = true;
	return text;
}

uint32_t np_trace_intern(struct np_trace_part *self, const struct np_trace_value *value)
{
	if (value->raw)
		return intern_text(self, value_text(self, value));
	return intern_cached(self, self->names, NP_TRACE_NAME_BITS, value->text);
}

static inline uint32_t intern_key(struct np_trace_part *self, enum np_trace_key key)
{
	const struct np_trace_value *value = &self->event.value[key];
	bool text = np_trace_has(&self->event, key) &&
	            (value->type == NP_JSON_STRING || value->type == NP_JSON_NUMBER);
	return text ? np_trace_intern(self, value) : NP_ID_NONE;
}

/* Decimal digits only, at most 19 of them. */
static inline bool small_u64(np_str text, uint64_t *out)
{
	uint64_t value = 0;
	size_t i = 0;
	if (text.len == 0 || text.len > 19)
		return false;
	if (text.len >= 8 && np_trace_eight_digits(text.ptr, &value))
		i = 8;
	for (; i < text.len; i++) {
		if (!np_trace_is_digit(text.ptr[i]))
			return false;
		value = value * 10 + (uint64_t)(text.ptr[i] - '0');
	}
	*out = value;
	return true;
}

uint32_t np_trace_odd_id(struct np_trace_part *self, uint32_t string)
{
	uint32_t at = np_map_get(&self->odd_of, string, NP_NO_U32);
	if (at != NP_NO_U32 || string == NP_ID_NONE)
		return at == NP_NO_U32 ? at : NP_TRACE_ODD + at;
	if (self->odd.n >= NP_TRACE_MAX_ODD) {
		self->too_many_ids = true;
		return NP_NO_U32;
	}
	at = (uint32_t)self->odd.n;
	if (!np_vec_push(&self->odd, string) || !np_map_put(&self->odd_of, string, at)) {
		self->no_memory = true;
		return NP_NO_U32;
	}
	return NP_TRACE_ODD + at;
}

/* pid or tid, NP_NO_U32 without one */
static inline uint32_t id_of(struct np_trace_part *self, enum np_trace_key key)
{
	uint64_t number;
	np_str text = np_trace_text(&self->event, key);
	if (text.len == 0)
		return NP_NO_U32;
	if (small_u64(text, &number) && number < NP_TRACE_ODD)
		return (uint32_t)number;
	return np_trace_odd_id(self, np_trace_intern(self, &self->event.value[key]));
}

static inline uint32_t u32_of(const struct np_trace_event *event, enum np_trace_key key)
{
	uint64_t number;
	return small_u64(np_trace_text(event, key), &number) && number < NP_NO_U32
	               ? (uint32_t)number
	               : NP_NO_U32;
}

static inline int64_t i64_of(const struct np_trace_event *event, enum np_trace_key key)
{
	uint64_t number;
	int64_t value;
	np_str text = np_trace_text(event, key);
	if (small_u64(text, &number) && number <= INT64_MAX)
		return (int64_t)number;
	return np_str_to_i64(text, &value) ? value : NP_NO_I64;
}

/* ── times ── */

static bool drop(struct np_trace_part *self, uint64_t *counter)
{
	++*counter;
	self->profile->dropped_rows++;
	return false;
}

static inline bool time_of(struct np_trace_part *self, np_ns *ts_ns)
{
	if (!np_trace_us(np_trace_text(&self->event, NP_EV_TS), ts_ns) || !np_time_sane(*ts_ns, 0))
		return drop(self, &self->bad_times);
	return true;
}

static inline bool times_of(struct np_trace_part *self, np_ns *start_ns, np_ns *dur_ns)
{
	if (!np_trace_us(np_trace_text(&self->event, NP_EV_TS), start_ns) ||
	    !np_trace_us(np_trace_text(&self->event, NP_EV_DUR), dur_ns))
		return drop(self, &self->bad_times);
	if (*dur_ns < 0)
		return drop(self, &self->negative);
	if (!np_time_sane(*start_ns, *dur_ns))
		return drop(self, &self->bad_times);
	return true;
}

/* ── rows ── */

/* np_profile_add() without the call while there is room */
#define new_row(self, member)                                    \
	((self)->profile->member.n < (self)->profile->member.cap \
	         ? (self)->profile->member.n++                   \
	         : np_profile_add((self)->profile, member))

bool np_trace_add_host_op(struct np_profile *profile, const struct np_trace_range *range)
{
	size_t i = profile->host_ops.n;
	if (i < profile->host_ops.cap)
		profile->host_ops.n++;
	else if ((i = np_profile_add(profile, host_ops)) == SIZE_MAX)
		return false;
	struct np_host_ops *t = &profile->host_ops;
	t->layer[i] = range->layer;
	t->name[i] = range->name;
	t->item[i] = range->item;
	t->pid[i] = range->pid;
	t->tid[i] = range->tid;
	t->start_ns[i] = range->start_ns;
	t->dur_ns[i] = range->dur_ns;
	t->conn[i] = range->conn;
	t->seq[i] = range->seq;
	t->shapes[i] = range->shapes;
	t->dtypes[i] = range->dtypes;
	t->stack[i] = range->stack;
	return true;
}

size_t np_trace_add_mstx(struct np_profile *profile, const struct np_trace_range *range)
{
	size_t i = np_profile_add(profile, mstx);
	if (i == SIZE_MAX)
		return i;
	struct np_mstx *t = &profile->mstx;
	t->start_ns[i] = range->start_ns;
	t->end_ns[i] = range->start_ns + range->dur_ns;
	t->event_type[i] = NP_MSTX_UNKNOWN;
	t->message[i] = range->name;
	t->domain[i] = NP_ID_NONE;
	t->range_id[i] = t->category[i] = NP_NO_I64;
	t->pid[i] = range->pid;
	t->tid[i] = t->end_tid[i] = range->tid;
	t->conn[i] = range->conn;
	return i;
}

/* Everything but the times. */
static void fill_range(struct np_trace_part *self, enum np_host_layer layer, size_t prefix,
                       struct np_trace_range *out)
{
	const struct np_trace_event *event = &self->event;
	struct np_trace_value name = event->value[NP_EV_NAME];
	out->layer = (uint8_t)layer;
	out->name = NP_ID_NONE;
	if (np_trace_has(event, NP_EV_NAME)) {
		name.text = np_str_from(name.text, prefix);
		out->name = np_trace_intern(self, &name);
	}
	out->item = NP_ID_NONE;
	if (layer == NP_HOST_NODE && !np_str_is(np_trace_text(event, NP_ARG_ITEM), "0"))
		out->item = intern_key(self, NP_ARG_ITEM);
	out->pid = id_of(self, NP_EV_PID);
	out->tid = id_of(self, NP_EV_TID);
	out->conn = i64_of(event, NP_ARG_CONNECTION);
	if (out->conn == NP_NO_I64)
		out->conn = i64_of(event, NP_ARG_CORRELATION);
	out->seq = i64_of(event, NP_ARG_SEQUENCE);
	if (out->seq < 0)
		out->seq = NP_NO_I64;
	bool args = self->what & NP_HOST_ARGS;
	out->shapes = args ? intern_key(self, NP_ARG_SHAPES) : NP_ID_NONE;
	out->dtypes = args ? intern_key(self, NP_ARG_DTYPES) : NP_ID_NONE;
	out->stack = args ? intern_key(self, NP_ARG_STACK) : NP_ID_NONE;
}

bool np_trace_add_step(struct np_trace_part *self, const struct np_trace_range *range)
{
	static const np_str prefix = {"ProfilerStep#", 13};
	struct np_trace_step step = {0, range->start_ns, range->start_ns + range->dur_ns,
	                             range->layer};
	np_str name = np_intern_get(&self->profile->strings, range->name);
	if (!(self->what & NP_STEPS) || !np_str_starts(name, prefix) ||
	    !np_str_to_i64(np_str_from(name, prefix.len), &step.id) || step.id == NP_NO_I64)
		return true;
	return np_vec_push(&self->steps, step);
}

bool np_trace_wants_host(const struct np_trace_part *self, uint8_t layer)
{
	unsigned wanted = NP_HOST_OPS;
	if (layer == NP_HOST_OTHER)
		wanted |= NP_TASKS | NP_COMM_OPS | NP_MSTX;
	return self->what & wanted;
}

static void add_mstx(struct np_trace_part *self, const struct np_trace_range *range)
{
	size_t i = np_trace_add_mstx(self->profile, range);
	if (i == SIZE_MAX) {
		self->no_memory = true;
		return;
	}
	const struct np_trace_event *event = &self->event;
	struct np_mstx *t = &self->profile->mstx;
	t->event_type[i] = (uint8_t)np_trace_mstx_type(np_trace_text(event, NP_ARG_EVENT_TYPE));
	t->category[i] = i64_of(event, NP_ARG_CATEGORY);
	t->domain[i] = intern_key(self, NP_ARG_DOMAIN);
	if (t->event_type[i] == NP_MSTX_MARKER || t->event_type[i] == NP_MSTX_MARKER_EX)
		t->end_ns[i] = t->start_ns[i];
}

static void add_host(struct np_trace_part *self, enum np_host_layer layer, size_t prefix)
{
	struct np_trace_range range;
	bool wanted = np_trace_wants_host(self, (uint8_t)layer);
	bool mstx = layer == NP_HOST_MSTX && (self->what & NP_MSTX);
	np_str name = np_trace_text(&self->event, NP_EV_NAME);
	bool step = name.len > 13 && name.ptr[0] == 'P' && (self->what & NP_STEPS) &&
	            memcmp(name.ptr, "ProfilerStep#", 13) == 0;
	if (!step && !wanted && !mstx)
		return;
	if (!times_of(self, &range.start_ns, &range.dur_ns))
		return;
	fill_range(self, layer, prefix, &range);
	if (step && !np_trace_add_step(self, &range))
		self->no_memory = true;
	if (wanted && !np_trace_add_host_op(self->profile, &range))
		self->no_memory = true;
	if (mstx)
		add_mstx(self, &range);
}

static void add_task(struct np_trace_part *self)
{
	const struct np_trace_event *event = &self->event;
	np_ns start_ns, dur_ns;
	if (!times_of(self, &start_ns, &dur_ns))
		return;
	size_t i = new_row(self, tasks);
	if (i == SIZE_MAX) {
		self->no_memory = true;
		return;
	}
	struct np_tasks *t = &self->profile->tasks;
	t->name[i] = intern_key(self, NP_EV_NAME);
	t->type[i] = intern_key(self, NP_ARG_TASK_TYPE);
	t->device[i] = id_of(self, NP_EV_PID);
	t->stream[i] = u32_of(event, NP_ARG_STREAM);
	t->task[i] = u32_of(event, NP_ARG_TASK);
	t->context[i] = u32_of(event, NP_ARG_SUBTASK);
	t->start_ns[i] = start_ns;
	t->dur_ns[i] = dur_ns;
	t->conn[i] = i64_of(event, NP_ARG_CONNECTION);
	t->compute[i] = np_trace_is_compute(np_trace_text(event, NP_ARG_TASK_TYPE));
}

static void add_comm_op(struct np_trace_part *self)
{
	const struct np_trace_event *event = &self->event;
	np_ns start_ns, dur_ns;
	if (!times_of(self, &start_ns, &dur_ns))
		return;
	size_t i = new_row(self, comm_ops);
	if (i == SIZE_MAX) {
		self->no_memory = true;
		return;
	}
	struct np_comm_ops *t = &self->profile->comm_ops;
	t->name[i] = intern_key(self, NP_EV_NAME);
	t->type[i] = NP_ID_NONE;
	t->group[i] = id_of(self, NP_EV_TID);
	t->algorithm[i] = intern_key(self, NP_ARG_ALGORITHM);
	t->dtype[i] = intern_key(self, NP_ARG_DATA_TYPE);
	t->count[i] = i64_of(event, NP_ARG_COUNT);
	t->device[i] = id_of(self, NP_EV_PID);
	t->start_ns[i] = start_ns;
	t->dur_ns[i] = dur_ns;
	t->conn[i] = i64_of(event, NP_ARG_CONNECTION);
	t->step[i] = NP_NO_U32;
}

static void add_comm_task(struct np_trace_part *self)
{
	const struct np_trace_event *event = &self->event;
	np_ns start_ns, dur_ns;
	if (!times_of(self, &start_ns, &dur_ns))
		return;
	size_t i = new_row(self, comm_tasks);
	if (i == SIZE_MAX) {
		self->no_memory = true;
		return;
	}
	struct np_comm_tasks *t = &self->profile->comm_tasks;
	t->op[i] = NP_NO_U32;
	t->name[i] = intern_key(self, NP_EV_NAME);
	t->plane[i] = id_of(self, NP_EV_TID);
	t->device[i] = id_of(self, NP_EV_PID);
	t->stream[i] = u32_of(event, NP_ARG_COMM_STREAM);
	t->task[i] = u32_of(event, NP_ARG_COMM_TASK);
	t->start_ns[i] = start_ns;
	t->dur_ns[i] = dur_ns;
	t->src_rank[i] = u32_of(event, NP_ARG_SRC_RANK);
	t->dst_rank[i] = u32_of(event, NP_ARG_DST_RANK);
	t->transport[i] = intern_key(self, NP_ARG_TRANSPORT);
	t->link[i] = intern_key(self, NP_ARG_LINK);
	t->size_bytes[i] = i64_of(event, NP_ARG_SIZE);
	uint64_t notify;
	np_str text = np_trace_text(event, NP_ARG_NOTIFY);
	t->notify[i] =
		small_u64(text, &notify) || np_str_to_u64(text, &notify) ? notify : UINT64_MAX;
}

static void add_range(struct np_trace_part *self)
{
	size_t prefix = 0;
	enum np_host_layer layer = NP_HOST_OTHER;
	switch (np_trace_classify(&self->event, &layer, &prefix)) {
	case NP_TRACE_TASK:
		if (self->what & NP_TASKS)
			add_task(self);
		break;
	case NP_TRACE_COMM_OP:
		if (self->what & NP_COMM_OPS)
			add_comm_op(self);
		break;
	case NP_TRACE_COMM_TASK:
		if (self->what & NP_COMM)
			add_comm_task(self);
		break;
	case NP_TRACE_HOST:
		add_host(self, layer, prefix);
		break;
	}
}

static void add_mark(struct np_trace_part *self, bool begin)
{
	struct np_trace_mark mark = {.begin = begin, .below = NP_NO_U32};
	size_t prefix = 0;
	enum np_host_layer layer = NP_HOST_OTHER;
	if (!(self->what & (NP_HOST_OPS | NP_STEPS | NP_MSTX)) ||
	    !time_of(self, &mark.range.start_ns))
		return;
	(void)np_trace_classify(&self->event, &layer, &prefix);
	np_ns start_ns = mark.range.start_ns;
	fill_range(self, layer, prefix, &mark.range);
	mark.range.start_ns = start_ns;
	if (!np_vec_push(&self->marks, mark))
		self->no_memory = true;
}

static void add_flow(struct np_trace_part *self, uint8_t flow_end)
{
	np_ns ts_ns;
	if (!(self->what & NP_FLOWS) || !time_of(self, &ts_ns))
		return;
	size_t i = new_row(self, flows);
	if (i == SIZE_MAX) {
		self->no_memory = true;
		return;
	}
	struct np_flows *t = &self->profile->flows;
	const struct np_trace_value *id = &self->event.value[NP_EV_ID];
	t->end[i] = flow_end;
	t->cat[i] = intern_key(self, NP_EV_CAT);
	/* an id comes twice, mostly soon: a small cache that names don't share */
	t->id[i] = NP_ID_NONE;
	if (np_trace_text(&self->event, NP_EV_ID).len && id->raw)
		t->id[i] = intern_text(self, value_text(self, id));
	else if (np_trace_text(&self->event, NP_EV_ID).len)
		t->id[i] = intern_cached(self, self->flow_ids, NP_TRACE_FLOW_BITS, id->text);
	t->pid[i] = id_of(self, NP_EV_PID);
	t->tid[i] = id_of(self, NP_EV_TID);
	t->ts_ns[i] = ts_ns;
}

/* "counter series" */
static uint32_t series_name(struct np_trace_part *self, uint32_t name, uint32_t key)
{
	uint64_t pair = (uint64_t)name << 32 | key;
	struct np_trace_series *slot =
		&self->series[(name * 31u + key * 7u) & (NP_TRACE_SERIES_CACHE - 1)];
	if (slot->key == pair && pair != 0)
		return slot->id;
	np_str a = np_intern_get(&self->profile->strings, name);
	np_str b = np_intern_get(&self->profile->strings, key);
	np_buf_clear(&self->scratch);
	np_buf_add_str(&self->scratch, a);
	np_buf_add_char(&self->scratch, ' ');
	np_buf_add_str(&self->scratch, b);
	if (self->scratch.failed) {
		self->no_memory = true;
		return NP_ID_NONE;
	}
	*slot = (struct np_trace_series){pair, intern_text(self, np_buf_str(&self->scratch))};
	return slot->id;
}

static void add_counter(struct np_trace_part *self)
{
	np_ns ts_ns;
	if (!(self->what & NP_COUNTERS) || !time_of(self, &ts_ns))
		return;
	uint32_t name = intern_key(self, NP_EV_NAME), pid = id_of(self, NP_EV_PID);
	for (size_t k = 0; k < self->event.numbers.n; k++) {
		const struct np_trace_number *number = &self->event.numbers.v[k];
		double value;
		if (!np_trace_double(number->text, &value))
			continue; /* NaN, Infinity: not available */
		size_t i = new_row(self, counters);
		if (i == SIZE_MAX) {
			self->no_memory = true;
			return;
		}
		struct np_counters *t = &self->profile->counters;
		t->process[i] = pid;
		struct np_trace_value key = {number->key, NP_JSON_STRING, number->key_raw};
		t->name[i] = series_name(self, name, np_trace_intern(self, &key));
		t->device[i] = NP_NO_U32;
		t->ts_ns[i] = ts_ns;
		t->value[i] = value;
	}
}

/* ── names ── */

static struct np_trace_process *process_at(struct np_trace_part *self, uint32_t pid)
{
	uint32_t at = np_map_get(&self->process_of, pid, NP_NO_U32);
	if (at != NP_NO_U32)
		return &self->processes.v[at];
	struct np_trace_process process = {pid, NP_ID_NONE, NP_ID_NONE};
	at = (uint32_t)self->processes.n;
	if (!np_vec_push(&self->processes, process) || !np_map_put(&self->process_of, pid, at)) {
		self->no_memory = true;
		return NULL;
	}
	return &self->processes.v[at];
}

void np_trace_name_process(struct np_trace_part *self, uint32_t pid, uint32_t name, uint32_t labels)
{
	struct np_trace_process *process = process_at(self, pid);
	if (process && name != NP_ID_NONE)
		process->name = name;
	if (process && labels != NP_ID_NONE)
		process->labels = labels;
}

void np_trace_name_thread(struct np_trace_part *self, uint32_t pid, uint32_t tid, uint32_t name)
{
	uint64_t key = (uint64_t)pid << 32 | tid;
	uint32_t at = np_map_get(&self->thread_of, key, NP_NO_U32);
	if (at != NP_NO_U32) {
		self->threads.v[at].name = name;
		return;
	}
	struct np_trace_thread thread = {pid, tid, name};
	at = (uint32_t)self->threads.n;
	if (!np_vec_push(&self->threads, thread) || !np_map_put(&self->thread_of, key, at))
		self->no_memory = true;
}

static void add_meta(struct np_trace_part *self)
{
	np_str name = np_trace_text(&self->event, NP_EV_NAME);
	if (np_str_is(name, "process_name"))
		np_trace_name_process(self, id_of(self, NP_EV_PID), intern_key(self, NP_ARG_NAME),
		                      NP_ID_NONE);
	else if (np_str_is(name, "process_labels"))
		np_trace_name_process(self, id_of(self, NP_EV_PID), NP_ID_NONE,
		                      intern_key(self, NP_ARG_LABELS));
	else if (np_str_is(name, "thread_name"))
		np_trace_name_thread(self, id_of(self, NP_EV_PID), id_of(self, NP_EV_TID),
		                     intern_key(self, NP_ARG_NAME));
}

enum np_status np_trace_part_status(const struct np_trace_part *self, struct np_err *err)
{
	if (self->no_memory || self->event.no_memory)
		return np_err_nomem(err);
	if (self->too_many_ids)
		return np_err_set(err, NP_E_LIMIT, NULL,
		                  "more than %d process and thread ids that are no small numbers",
		                  NP_TRACE_MAX_ODD);
	return NP_OK;
}

enum np_status np_trace_part_add(struct np_trace_part *self, struct np_err *err)
{
	np_str ph = np_trace_text(&self->event, NP_EV_PH);
	if (ph.len != 1)
		return NP_OK;
	switch (ph.ptr[0]) {
	case 'X':
		add_range(self);
		break;
	case 'B':
	case 'E':
		add_mark(self, ph.ptr[0] == 'B');
		break;
	case 's':
	case 'f':
		add_flow(self, ph.ptr[0] == 'f');
		break;
	case 'C':
		add_counter(self);
		break;
	case 'M':
		add_meta(self);
		break;
	default:
		break; /* instants, async and object events carry nothing that a table holds */
	}
	return np_trace_part_status(self, err);
}
