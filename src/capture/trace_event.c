#include "capture/trace_event.h"

static const struct {
	np_str text;
	enum np_trace_key id;
} key_names[] = {
#define X(id, text) {{text, sizeof(text) - 1}, NP_EV_##id},
	NP_EV_KEYS(X)
#undef X
#define X(id, text) {{text, sizeof(text) - 1}, NP_ARG_##id},
		NP_ARG_KEYS(X)
#undef X
};

/* Length, first and last byte tell nearly all keys apart. */
static inline unsigned key_hash(np_str text)
{
	unsigned first = (unsigned char)text.ptr[0], last = (unsigned char)text.ptr[text.len - 1];
	return (first * 5 + last * 3 + (unsigned)text.len * 11) & (NP_TRACE_KEY_SLOTS - 1);
}

void np_trace_event_init(struct np_trace_event *self)
{
	memset(self, 0, sizeof *self);
	for (int place = 0; place < NP_TRACE_N_PLACES; place++) {
		/* the end of an object is always seen before a gap is looked for */
		self->gaps[place][0].bytes[0] = '}';
		self->gaps[place][0].len = 1;
		self->gaps[place][0].mask = 1;
	}
	for (int level = 0; level < 2; level++)
		for (int i = 0; i < NP_TRACE_KEY_SLOTS; i++)
			self->keys[level][i].id = NP_TRACE_N_KEYS;
	for (size_t i = 0; i < sizeof key_names / sizeof *key_names; i++) {
		np_str text = key_names[i].text;
		struct np_trace_key_slot *slots = self->keys[key_names[i].id > NP_EV_ARGS];
		unsigned at = key_hash(text);
		while (slots[at].id != NP_TRACE_N_KEYS)
			at = (at + 1) & (NP_TRACE_KEY_SLOTS - 1);
		slots[at] = (struct np_trace_key_slot){text.ptr, (uint8_t)text.len,
		                                       (uint8_t)key_names[i].id};
	}
}

void np_trace_event_release(struct np_trace_event *self)
{
	np_vec_release(&self->numbers);
}

static inline unsigned find_key(const struct np_trace_key_slot *slots, np_str text)
{
	if (text.len == 0)
		return NP_TRACE_N_KEYS;
	for (unsigned at = key_hash(text);; at = (at + 1) & (NP_TRACE_KEY_SLOTS - 1)) {
		const struct np_trace_key_slot *slot = &slots[at];
		if (slot->id == NP_TRACE_N_KEYS ||
		    (slot->len == text.len && memcmp(slot->text, text.ptr, text.len) == 0))
			return slot->id;
	}
}

static inline void add_number(struct np_trace_event *self, const struct np_trace_value *key,
                              const struct np_trace_value *value)
{
	if (!np_vec_reserve(&self->numbers, self->numbers.n + 1)) {
		self->no_memory = true;
		return;
	}
	/* member by member: a copy of the struct would wait for its halves to be stored */
	struct np_trace_number *number = &self->numbers.v[self->numbers.n++];
	number->key.ptr = key->text.ptr;
	number->key.len = key->text.len;
	number->key_raw = key->raw;
	number->text.ptr = value->text.ptr;
	number->text.len = value->text.len;
}

static void clear(struct np_trace_event *self)
{
	self->have = 0;
	self->numbers.n = 0;
}

/* ── gaps ── */

/* 32 bytes at p are readable. */
static inline bool gap_matches(const struct np_trace_gap *gap, const char *p)
{
#if defined(__SSE2__)
	const __m128i *want = (const __m128i *)(const void *)gap->bytes;
	const __m128i *have = (const __m128i *)(const void *)p;
	__m128i low = _mm_cmpeq_epi8(_mm_loadu_si128(want), _mm_loadu_si128(have));
	__m128i high = _mm_cmpeq_epi8(_mm_loadu_si128(want + 1), _mm_loadu_si128(have + 1));
	uint32_t same = (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high) << 16;
	return (~same & gap->mask) == 0;
#else
	return memcmp(gap->bytes, p, gap->len) == 0;
#endif
}

static inline struct np_trace_gap *predict(struct np_trace_gap *gaps, struct np_trace_gap *last,
                                           const char *p)
{
	if (gap_matches(&gaps[last->next[0]], p))
		return &gaps[last->next[0]];
	for (unsigned i = 1; i < NP_TRACE_NEXT; i++) {
		uint8_t other = last->next[i];
		if (!gap_matches(&gaps[other], p))
			continue;
		last->next[i] = last->next[i - 1];
		last->next[i - 1] = other;
		return &gaps[other];
	}
	return NULL;
}

/* Remember a gap and that it followed `last`; another one may have to go. */
static struct np_trace_gap *remember(struct np_trace_gap *gaps, struct np_trace_gap *last,
                                     const struct np_trace_gap *gap)
{
	unsigned hash = gap->len;
	for (unsigned i = 0; i < gap->key_len; i++)
		hash = hash * 31 + (unsigned char)gap->bytes[gap->key_at + i];
	hash += gap->kind;
	uint8_t at = (uint8_t)(1 + hash % (NP_TRACE_GAPS - 1));
	struct np_trace_gap *slot = &gaps[at];
	if (slot->len != gap->len || memcmp(slot->bytes, gap->bytes, gap->len) != 0)
		*slot = *gap;
	memmove(last->next + 1, last->next, NP_TRACE_NEXT - 1);
	last->next[0] = at;
	return slot;
}

/*
 * Take the gap at p apart. Returns what is behind it; a value begins there. NULL:
 * not exactly right. *gap has a len of 0 when it is not to be remembered.
 */
static const char *read_gap(struct np_trace_event *self, bool first, bool is_arg, const char *p,
                            const char *end, struct np_trace_gap *gap, struct np_trace_value *key)
{
	const char *start = p;
	p = np_trace_skip_space(p, end);
	if (!first) {
		if (p == end || *p != ',')
			return NULL;
		p = np_trace_skip_space(p + 1, end);
	}
	if (p == end || *p != '"' || !(p = np_trace_string(p + 1, end, key)))
		return NULL;
	p = np_trace_skip_space(p, end);
	if (p == end || *p != ':')
		return NULL;
	p = np_trace_skip_space(p + 1, end);
	if (p == end)
		return NULL;
	memset(gap, 0, sizeof *gap);
	gap->key = (uint8_t)find_key(self->keys[is_arg], key->text);
	if (*p == '"')
		gap->kind = NP_TRACE_GAP_STRING;
	else if (*p == '{' && !is_arg && gap->key == NP_EV_ARGS)
		gap->kind = NP_TRACE_GAP_ARGS;
	p += gap->kind != NP_TRACE_GAP_VALUE;
	/* args that are no object: its gap would match in front of those that are */
	bool odd_args = !is_arg && gap->key == NP_EV_ARGS && gap->kind != NP_TRACE_GAP_ARGS;
	if (p - start > NP_TRACE_GAP_BYTES || odd_args)
		return p;
	gap->len = (uint8_t)(p - start);
	gap->mask = (uint32_t)(((uint64_t)1 << gap->len) - 1);
	gap->key_at = (uint8_t)(key->text.ptr - start);
	gap->key_len = (uint8_t)key->text.len;
	gap->key_raw = key->raw;
	memcpy(gap->bytes, start, gap->len);
	return p;
}

/*
 * The members of an object behind its brace. Both levels share this code: the
 * compiler makes one copy of it for each, since `is_arg` is known there.
 */
static inline __attribute__((always_inline)) const char *members(
	struct np_trace_event *self, bool is_arg, const char *p, const char *end,
	const char *(*args)(struct np_trace_event *, const char *, const char *))
{
	unsigned place = is_arg ? NP_TRACE_ARGS_FIRST : NP_TRACE_EVENT_FIRST;
	struct np_trace_gap *last = &self->gaps[place][0], *gap, fresh;
	struct np_trace_value key = {{NULL, 0}, NP_JSON_STRING, false};
	if (p < end && *p == '}')
		return p + 1;
	for (bool first = true;; first = false) {
		struct np_trace_gap *gaps = self->gaps[place + !first];
		gap = end - p >= NP_TRACE_GAP_BYTES ? predict(gaps, last, p) : NULL;
		if (gap) {
			key.text = (np_str){p + gap->key_at, gap->key_len};
			key.raw = gap->key_raw;
			p += gap->len;
			last = gap;
		} else {
			const char *q = np_trace_skip_space(p, end);
			if (q < end && *q == '}')
				return q + 1;
			p = read_gap(self, first, is_arg, p, end, &fresh, &key);
			if (!p)
				return NULL;
			gap = &fresh;
			if (fresh.len > 0)
				last = gap = remember(gaps, last, &fresh);
		}
		/* straight to its place, right or not: without a key in the last slot */
		struct np_trace_value *value = &self->value[gap->key];
		if (gap->kind == NP_TRACE_GAP_ARGS)
			p = args(self, p, end);
		else if (gap->kind == NP_TRACE_GAP_STRING)
			p = np_trace_string(p, end, value);
		else
			p = np_trace_any_value(p, end, value);
		if (!p)
			return NULL;
		self->have |= (uint64_t)1 << gap->key;
		if (is_arg && value->type == NP_JSON_NUMBER)
			add_number(self, &key, value);
		if (p < end && *p == '}')
			return p + 1;
	}
}

static const char *read_args(struct np_trace_event *self, const char *p, const char *end)
{
	return members(self, true, p, end, NULL);
}

const char *np_trace_event_read(struct np_trace_event *self, const char *p, const char *end)
{
	clear(self);
	return members(self, false, p + 1, end, read_args);
}

/* ── by the tolerant reader ── */

void np_trace_repair(struct np_json_repair *to, uint64_t offset)
{
	if (to->count++ == 0 || offset < to->first_offset)
		to->first_offset = offset;
}

void np_trace_repairs_add(struct np_json_repairs *to, const struct np_json_repairs *from)
{
	/* a struct of nothing but np_json_repair */
	struct np_json_repair *a = (struct np_json_repair *)to;
	const struct np_json_repair *b = (const struct np_json_repair *)from;
	for (size_t i = 0; i < sizeof *to / sizeof *a; i++) {
		if (b[i].count == 0)
			continue;
		if (a[i].count == 0 || b[i].first_offset < a[i].first_offset)
			a[i].first_offset = b[i].first_offset;
		a[i].count += b[i].count;
	}
}

/* Members until the object ends; the key token comes from next(). */
static enum np_status exact_members(struct np_trace_event *self, int level, struct np_json *json,
                                    struct np_err *err)
{
	struct np_json_token token;
	for (;;) {
		NP_TRY(np_json_next(json, &token, err));
		if (token.type != NP_JSON_KEY)
			return NP_OK; /* OBJECT_END */
		struct np_trace_value key = {token.text, NP_JSON_STRING, true};
		unsigned id = find_key(self->keys[level], key.text);
		NP_TRY(np_json_next(json, &token, err));
		if (id == NP_EV_ARGS && token.type == NP_JSON_OBJECT_BEGIN) {
			NP_TRY(exact_members(self, 1, json, err));
			continue;
		}
		struct np_trace_value *value = &self->value[id];
		bool scalar = token.type == NP_JSON_STRING || token.type == NP_JSON_NUMBER;
		*value = (struct np_trace_value){scalar ? token.text : (np_str){NULL, 0},
		                                 token.type, token.type == NP_JSON_STRING};
		self->have |= (uint64_t)1 << id;
		if (level == 1 && token.type == NP_JSON_NUMBER)
			add_number(self, &key, value);
		if (token.type == NP_JSON_OBJECT_BEGIN || token.type == NP_JSON_ARRAY_BEGIN)
			NP_TRY(np_json_skip(json, NULL, NULL, err));
	}
}

static enum np_status exact(struct np_trace_event *self, struct np_json *json, bool *is_event,
                            struct np_err *err)
{
	struct np_json_token token;
	NP_TRY(np_json_next(json, &token, err));
	*is_event = token.type == NP_JSON_OBJECT_BEGIN;
	if (*is_event)
		NP_TRY(exact_members(self, 0, json, err));
	do
		NP_TRY(np_json_next(json, &token, err));
	while (token.type != NP_JSON_END);
	return NP_OK;
}

enum np_status np_trace_event_read_exact(struct np_trace_event *self, np_str text, const char *file,
                                         uint64_t offset, struct np_json_repairs *repairs,
                                         bool *is_event, struct np_err *err)
{
	struct np_input *input = NULL;
	struct np_json *json = NULL;
	clear(self);
	*is_event = false;
	enum np_status status = np_input_open_mem(text, file, offset, &input, err);
	if (status == NP_OK)
		status = np_json_open(input, 0, &json, err);
	if (status == NP_OK)
		status = exact(self, json, is_event, err);
	if (status == NP_OK)
		np_trace_repairs_add(repairs, np_json_repairs(json));
	np_json_close(json);
	np_input_close(input);
	return status;
}
