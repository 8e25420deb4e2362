#include "collect/comm_log.h"

#include <stddef.h>
#include <string.h>

enum { RANK_MAX = 1 << 24 };

/* ── opening ── */

static bool all_zero(np_str bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		if (bytes.ptr[i])
			return false;
	return true;
}

static void end_texts(struct np_comm_log_header *header)
{
	header->host[sizeof header->host - 1] = '\0';
	header->command[sizeof header->command - 1] = '\0';
	header->recorder[sizeof header->recorder - 1] = '\0';
}

static enum np_status check_header(const char *name, np_str bytes,
                                   const struct np_comm_log_header *header, struct np_err *err)
{
	if (memcmp(header->magic, NP_COMM_LOG_MAGIC, sizeof header->magic) != 0)
		return np_err_set(err, NP_E_FORMAT, name, "is no log of collectives");
	if (header->version != NP_COMM_LOG_VERSION)
		return np_err_set(err, NP_E_UNSUPPORTED, name,
		                  "is of version %u, and this program reads %d", header->version,
		                  NP_COMM_LOG_VERSION);
	if (header->header_bytes != NP_COMM_LOG_HEADER_BYTES ||
	    header->record_bytes != sizeof(struct np_comm_record) || header->capacity == 0 ||
	    header->capacity > UINT32_MAX || header->written > (uint64_t)1 << 62)
		return np_err_set(err, NP_E_FORMAT, name, "its header makes no sense");
	if (header->string_capacity > bytes.len - NP_COMM_LOG_HEADER_BYTES ||
	    bytes.len - NP_COMM_LOG_HEADER_BYTES - header->string_capacity <
	            sizeof(struct np_comm_record))
		return np_err_set(err, NP_E_TRUNCATED, name,
		                  "ends before its first record: %zu bytes", bytes.len);
	return NP_OK;
}

static uint64_t seq_at(const struct np_clog *self, uint64_t slot)
{
	uint64_t seq;
	memcpy(&seq, self->records + slot * sizeof(struct np_comm_record), sizeof seq);
	return seq;
}

/* Does its slot hold record number n? Not where the file ends before it. */
static bool is_there(const struct np_clog *self, uint64_t n)
{
	uint64_t slot = (n - 1) % self->header.capacity;
	return slot < self->slots && seq_at(self, slot) == n;
}

/* The greatest number that is in its slot, of all slots. */
static uint64_t search_last(const struct np_clog *self)
{
	uint64_t last = 0;
	for (uint64_t slot = 0; slot < self->slots; slot++) {
		uint64_t seq = seq_at(self, slot);
		if (seq > last && (seq - 1) % self->header.capacity == slot)
			last = seq;
	}
	return last;
}

/*
 * header.written says where to look; a writer that was killed had one record more. When what
 * it says is not so (a damaged header), all slots are looked at. Of a cut file, what lies
 * beyond its end cannot be looked at, and is believed.
 */
static void find_range(struct np_clog *self)
{
	uint64_t capacity = self->header.capacity, last = self->header.written;
	bool beyond = last && (last - 1) % capacity >= self->slots;
	if (last && !beyond && !is_there(self, last))
		last = search_last(self);
	if (beyond && last > capacity && !is_there(self, last - (last - 1) % capacity))
		last = search_last(self);
	for (uint64_t i = 0; i < capacity && is_there(self, last + 1); i++)
		last++;
	self->last = last;
	self->first = last > capacity ? last - capacity + 1 : 1;
	/* The slot of the oldest is the next to be written; a writer begins with seq 0. */
	if (last >= capacity && self->first <= last && (self->first - 1) % capacity < self->slots &&
	    seq_at(self, (self->first - 1) % capacity) == 0)
		self->first++;
	self->overwritten = self->first - 1;
	self->next = self->first;
}

static enum np_status open_input(struct np_clog *self, struct np_err *err)
{
	struct np_window window;
	struct np_comm_log_header *header = &self->header;
	const char *name = np_input_name(self->input);
	if (np_input_is_gzip(self->input))
		return np_err_set(err, NP_E_UNSUPPORTED, name, "is compressed: gunzip it first");
	NP_TRY(np_input_next(self->input, 0, &window, err));
	self->bytes = (np_str){window.ptr, window.len};
	/* the magic is stored last: a writer that was killed before has nothing to tell */
	if (all_zero(np_str_sub(self->bytes, 0, sizeof header->magic)))
		return np_err_set(err, NP_E_EMPTY, name,
		                  "holds nothing: its header was never completed");
	if (self->bytes.len < NP_COMM_LOG_HEADER_BYTES)
		return np_err_set(err, NP_E_TRUNCATED, name,
		                  "is no log of collectives, or only its first %zu bytes",
		                  self->bytes.len);
	memcpy(header, self->bytes.ptr, sizeof *header);
	NP_TRY(check_header(name, self->bytes, header, err));
	end_texts(header);
	self->strings = self->bytes.ptr + NP_COMM_LOG_HEADER_BYTES;
	self->string_capacity = header->string_capacity;
	self->records = self->strings + header->string_capacity;
	self->slots = (self->bytes.len - NP_COMM_LOG_HEADER_BYTES - header->string_capacity) /
	              sizeof(struct np_comm_record);
	if (self->slots > header->capacity)
		self->slots = header->capacity;
	find_range(self);
	return NP_OK;
}

static enum np_status finish_open(struct np_clog *self, enum np_status status, struct np_err *err)
{
	if (status == NP_OK)
		status = open_input(self, err);
	if (status != NP_OK)
		np_clog_close(self);
	return status;
}

enum np_status np_clog_open(const char *path, struct np_clog *out, struct np_err *err)
{
	*out = (struct np_clog){.next = 1};
	return finish_open(out, np_input_open(path, &out->input, err), err);
}

enum np_status np_clog_open_mem(np_str bytes, const char *name, struct np_clog *out,
                                struct np_err *err)
{
	*out = (struct np_clog){.next = 1};
	return finish_open(out, np_input_open_mem(bytes, name, 0, &out->input, err), err);
}

void np_clog_close(struct np_clog *self)
{
	np_input_close(self->input);
	self->input = NULL;
}

bool np_clog_faulted(const struct np_clog *self)
{
	return np_input_faulted(self->input);
}

/* ── records ── */

static bool tame_size(uint64_t *bytes)
{
	if (*bytes == NP_COMM_NO_U64 || *bytes < NP_COMM_BYTES_MAX)
		return false;
	*bytes = NP_COMM_NO_U64;
	return true;
}

static bool tame_rank(int32_t *rank)
{
	if (*rank >= -1 && *rank < RANK_MAX)
		return false;
	*rank = -1;
	return true;
}

/* What cannot be becomes unknown. */
static void tame(struct np_clog *self, struct np_comm_record *record)
{
	bool odd = false;
	odd |= tame_size(&record->count);
	odd |= tame_size(&record->send_bytes);
	odd |= tame_size(&record->recv_bytes);
	odd |= tame_size(&record->tensor_bytes);
	odd |= tame_rank(&record->rank);
	odd |= tame_rank(&record->world);
	odd |= tame_rank(&record->peer);
	if (record->call_ns >= NP_COMM_BYTES_MAX) {
		record->call_ns = 0;
		odd = true;
	}
	if (record->start_ns < 0 || record->start_ns >= (int64_t)1 << 62) {
		record->start_ns = 0;
		odd = true;
	}
	self->implausible += odd;
}

/* The rest of this lap lies beyond the end of the file. */
static void skip_cut_off(struct np_clog *self, uint64_t slot)
{
	uint64_t lap = self->header.capacity - slot, left = self->last - self->next + 1;
	uint64_t skip = lap < left ? lap : left;
	self->cut_off += skip;
	self->next += skip;
}

/* The copy may be of two records when the writer came round meanwhile: then its seq is
 * another one by now. */
static bool was_overwritten(const struct np_clog *self, uint64_t slot, uint64_t n)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return seq_at(self, slot) != n;
}

bool np_clog_next(struct np_clog *self, struct np_comm_record *out)
{
	while (self->next <= self->last) {
		uint64_t n = self->next, slot = (n - 1) % self->header.capacity;
		if (slot >= self->slots) {
			skip_cut_off(self, slot);
			continue;
		}
		self->next++;
		memcpy(out, self->records + slot * sizeof *out, sizeof *out);
		if (out->seq != n) {
			self->damaged++;
			continue;
		}
		if (was_overwritten(self, slot, n)) {
			self->overwritten++;
			continue;
		}
		tame(self, out);
		return true;
	}
	return false;
}

np_str np_clog_string(const struct np_clog *self, uint32_t offset)
{
	uint32_t len;
	if (offset == 0)
		return (np_str){.ptr = ""};
	if (offset == NP_COMM_LOG_NO_ROOM)
		return NP_STR("(no room)");
	if (offset < NP_COMM_LOG_FIRST_STRING || self->string_capacity < sizeof len ||
	    offset > self->string_capacity - sizeof len)
		return NP_STR("(damaged)");
	memcpy(&len, self->strings + offset, sizeof len);
	if (len > self->string_capacity - sizeof len - offset || len > NP_CLOG_TEXT_MAX)
		return NP_STR("(damaged)");
	return (np_str){self->strings + offset + sizeof len, len};
}
