#include "collect/comm_tally.h"

#include <string.h>

enum {
	MARK = 42,
	INIT = 40,
	/* what tells calls apart in a table or a finding */
	FLAGS = NP_COMM_COALESCED | NP_COMM_OBJECT | NP_COMM_FAILED | NP_COMM_CAPTURE,
};

/* ── reading ── */

static bool is_stage(const struct np_clog *log, uint32_t stage, const char *wish)
{
	np_str name = np_clog_string(log, stage);
	return np_str_is(name.len ? name : NP_STR("other"), wish);
}

static bool is_group(const struct np_clog *log, const struct np_comm_record *record,
                     const char *wish)
{
	uint64_t hash;
	np_str text = np_str_of(wish);
	if (np_str_eq(np_clog_string(log, record->comm_name), text))
		return true;
	text = np_str_starts(text, NP_STR("@")) ? np_str_from(text, 1) : text;
	return np_str_to_u64(text, &hash) && hash && hash == record->comm_hash;
}

bool np_clog_matches(const struct np_clog *log, const struct np_clog_options *options,
                     const struct np_comm_record *record)
{
	const char *name = np_clog_op_name(record->op);
	if (options->stage && !is_stage(log, record->stage, options->stage))
		return false;
	if (record->op == MARK)
		return true;
	return !(options->op && !(name && strcmp(name, options->op) == 0)) &&
	       !(options->group && !is_group(log, record, options->group));
}

static bool is_same(const struct np_clog_raw *raw, const struct np_comm_record *record)
{
	return raw->name == record->comm_name && raw->stage == record->stage &&
	       raw->hash == record->comm_hash && raw->world == record->world &&
	       raw->cell.op == record->op && raw->cell.dtype == record->dtype &&
	       raw->cell.flags == (record->flags & FLAGS);
}

static struct np_clog_raw *find_cell(struct np_clog_tally *self,
                                     const struct np_clog_options *options,
                                     const struct np_clog_file *file,
                                     const struct np_comm_record *record)
{
	uint32_t *recent = &self->recent[(record->comm_name + record->stage * 5 + record->op * 3u +
	                                  record->dtype) %
	                                 NP_CLOG_RECENT];
	if (*recent < self->cells.n && is_same(&self->cells.v[*recent], record))
		return &self->cells.v[*recent];
	uint16_t flags = record->flags & FLAGS;
	struct np_key key = {{record->comm_hash, np_key_pair(record->comm_name, record->stage),
	                      (uint32_t)record->world,
	                      record->op | (uint64_t)record->dtype << 8 | (uint64_t)flags << 16}};
	uint32_t i = np_keys_add(&self->cell_keys, &key);
	if (i == UINT32_MAX)
		return NULL;
	*recent = i;
	if (i < self->cells.n)
		return &self->cells.v[i];
	struct np_clog_raw raw = {.name = record->comm_name,
	                          .stage = record->stage,
	                          .hash = record->comm_hash,
	                          .world = record->world,
	                          .counts = file->shown &&
	                                    np_clog_matches(&self->log, options, record)};
	raw.cell = (struct np_clog_cell){.op = record->op,
	                                 .dtype = record->dtype,
	                                 .flags = flags,
	                                 .layer = (uint8_t)file->layer,
	                                 .first_ns = record->start_ns};
	return np_vec_push(&self->cells, raw) ? &self->cells.v[i] : NULL;
}

/* The slice of a record: mostly that of the one before. */
static struct np_clog_slice *find_slice(struct np_clog_tally *self,
                                        const struct np_comm_record *record)
{
	struct np_clog_slice *last = self->slices.n ? &self->slices.v[self->slices.n - 1] : NULL;
	if (last && last->step == record->step && last->stage == record->stage &&
	    last->request == record->request)
		return last;
	struct np_key key = {{np_key_pair(record->request, record->step), record->stage, 0, 0}};
	uint32_t i = np_keys_add(&self->slice_keys, &key);
	if (i < self->slices.n)
		return &self->slices.v[i];
	struct np_clog_slice fresh = {.request = record->request,
	                              .step = record->step,
	                              .stage = record->stage,
	                              .first_ns = record->start_ns};
	return i != UINT32_MAX && np_vec_push(&self->slices, fresh) ? &self->slices.v[i] : NULL;
}

static bool add_bucket(struct np_clog_tally *self, np_ns bucket_ns,
                       const struct np_comm_record *record)
{
	np_ns start = record->start_ns - record->start_ns % bucket_ns;
	struct np_key key = {{(uint64_t)start, record->stage, 0, 0}};
	uint32_t i = np_keys_add(&self->bucket_keys, &key);
	if (i == UINT32_MAX)
		return false;
	if (i == self->buckets.n &&
	    !np_vec_push(&self->buckets,
	                 (struct np_clog_bucket){.start_ns = start, .stage = record->stage}))
		return false;
	self->buckets.v[i].calls++;
	if (record->tensor_bytes != NP_COMM_NO_U64)
		np_clog_add(&self->buckets.v[i].bytes, record->tensor_bytes);
	return true;
}

static void add_to_cell(struct np_clog_cell *cell, const struct np_comm_record *record)
{
	uint64_t bytes = record->tensor_bytes;
	cell->calls++;
	cell->last_ns = record->start_ns;
	np_clog_add(&cell->call_ns, record->call_ns);
	if (bytes == NP_COMM_NO_U64) {
		cell->unsized++;
		return;
	}
	np_clog_add(&cell->bytes, bytes);
	np_clog_add(&cell->send_bytes,
	            record->send_bytes != NP_COMM_NO_U64 ? record->send_bytes : 0);
	np_clog_add(&cell->recv_bytes,
	            record->recv_bytes != NP_COMM_NO_U64 ? record->recv_bytes : 0);
	if (bytes > cell->max_bytes)
		cell->max_bytes = bytes;
}

/* Of the log as a whole; false: memory is out. */
static bool add_record(struct np_clog_tally *self, const struct np_clog_options *options,
                       np_ns bucket_ns, struct np_clog_file *file,
                       const struct np_comm_record *record)
{
	struct np_clog_raw *raw = find_cell(self, options, file, record);
	bool moves = np_clog_op_moves(record->op);
	if (!raw)
		return false;
	add_to_cell(&raw->cell, record);
	self->moves += moves;
	file->communicators += record->op == INIT;
	file->no_room +=
		record->stage == NP_COMM_LOG_NO_ROOM || record->comm_name == NP_COMM_LOG_NO_ROOM;
	if (!raw->counts || !(moves || record->op == MARK))
		return true;
	struct np_clog_slice *slice = find_slice(self, record);
	if (!slice)
		return false;
	slice->last_ns = record->start_ns;
	if (!moves) {
		slice->entered += !(record->flags & NP_COMM_STAGE_END);
		return true;
	}
	slice->calls++;
	if (record->tensor_bytes != NP_COMM_NO_U64)
		np_clog_add(&slice->bytes, record->tensor_bytes);
	return !bucket_ns || add_bucket(self, bucket_ns, record);
}

void np_clog_tally_read(struct np_clog_tally *self, const struct np_clog_options *options,
                        np_ns bucket_ns, struct np_clog_file *file)
{
	struct np_comm_record record;
	*self = (struct np_clog_tally){.moves = 0};
	enum np_status status = np_clog_open(file->path, &self->log, NULL);
	if (status != NP_OK) { /* it could be opened a moment ago */
		file->problem = "was there, and cannot be read any more";
		self->failed = status == NP_E_NOMEM;
		return;
	}
	self->open = true;
	while (!self->failed && np_clog_next(&self->log, &record)) {
		file->records++;
		self->out_of_order += file->last_ns > record.start_ns;
		file->first_ns = file->first_ns ? file->first_ns : record.start_ns;
		file->last_ns = record.start_ns;
		self->failed = !add_record(self, options, bucket_ns, file, &record);
	}
	file->overwritten = self->log.overwritten;
	file->cut_off = self->log.cut_off;
	file->damaged = self->log.damaged;
	file->implausible = self->log.implausible;
	file->faulted = np_clog_faulted(&self->log);
}

void np_clog_tally_release(struct np_clog_tally *self)
{
	if (self->open)
		np_clog_close(&self->log);
	np_keys_release(&self->cell_keys);
	np_keys_release(&self->slice_keys);
	np_keys_release(&self->bucket_keys);
	np_vec_release(&self->cells);
	np_vec_release(&self->slices);
	np_vec_release(&self->buckets);
	*self = (struct np_clog_tally){.moves = 0};
}

/* ── putting together ── */

static uint32_t intern(struct np_clog_merge *self, const struct np_clog *log, uint32_t offset)
{
	return np_intern_add(&self->sum->strings, np_clog_string(log, offset));
}

static uint32_t find_group(struct np_clog_merge *self, const struct np_clog_tally *tally,
                           const struct np_clog_raw *raw)
{
	struct np_clog_group group = {.name = intern(self, &tally->log, raw->name),
	                              .hash = raw->hash,
	                              .world = raw->world,
	                              .layer = raw->cell.layer};
	if (group.name == NP_ID_NONE)
		return UINT32_MAX;
	struct np_key key = {
		{group.hash, np_key_pair(group.name, (uint32_t)group.world), group.layer, 0}};
	uint32_t i = np_keys_add(&self->group_keys, &key);
	if (i == self->sum->groups.n && !np_vec_push(&self->sum->groups, group))
		return UINT32_MAX;
	return i;
}

static void add_cell(struct np_clog_cell *to, const struct np_clog_cell *from)
{
	to->calls += from->calls;
	to->unsized += from->unsized;
	np_clog_add(&to->bytes, from->bytes);
	np_clog_add(&to->send_bytes, from->send_bytes);
	np_clog_add(&to->recv_bytes, from->recv_bytes);
	np_clog_add(&to->call_ns, from->call_ns);
	if (from->max_bytes > to->max_bytes)
		to->max_bytes = from->max_bytes;
	if (from->first_ns < to->first_ns)
		to->first_ns = from->first_ns;
	if (from->last_ns > to->last_ns)
		to->last_ns = from->last_ns;
}

/* Two strings of a log may be equal, so its cells are looked up again. */
static bool merge_cell(struct np_clog_merge *self, uint32_t file, const struct np_clog_tally *tally,
                       const struct np_clog_raw *raw)
{
	struct np_clog_cell cell = raw->cell;
	cell.file = file;
	cell.group = find_group(self, tally, raw);
	cell.stage = intern(self, &tally->log, raw->stage);
	if (cell.group == UINT32_MAX || cell.stage == NP_ID_NONE)
		return false;
	struct np_key key = {{np_key_pair(file, cell.group), np_key_pair(cell.stage, raw->counts),
	                      cell.op | (uint64_t)cell.dtype << 8 | (uint64_t)cell.flags << 16, 0}};
	uint32_t i = np_keys_add(&self->cell_keys, &key);
	if (i == UINT32_MAX)
		return false;
	cell.counts = raw->counts;
	if (i == self->sum->cells.n)
		return np_vec_push(&self->sum->cells, cell);
	add_cell(&self->sum->cells.v[i], &cell);
	return true;
}

static bool merge_slice(struct np_clog_merge *self, const struct np_clog_tally *tally,
                        const struct np_clog_slice *from)
{
	struct np_clog_sum *sum = self->sum;
	struct np_clog_slice slice = *from;
	slice.stage = intern(self, &tally->log, from->stage);
	struct np_key key = {{np_key_pair(slice.request, slice.step), slice.stage, 0, 0}};
	if (slice.stage == NP_ID_NONE)
		return false;
	if (sum->slices.n >= NP_COMM_MAX_SLICES &&
	    np_keys_find(&self->slice_keys, &key) == UINT32_MAX) {
		sum->overflow = true;
		return true;
	}
	uint32_t i = np_keys_add(&self->slice_keys, &key);
	if (i == UINT32_MAX)
		return false;
	if (i == sum->slices.n)
		return np_vec_push(&sum->slices, slice);
	struct np_clog_slice *to = &sum->slices.v[i];
	to->entered += slice.entered;
	to->calls += slice.calls;
	np_clog_add(&to->bytes, slice.bytes);
	to->first_ns = slice.first_ns < to->first_ns ? slice.first_ns : to->first_ns;
	to->last_ns = slice.last_ns > to->last_ns ? slice.last_ns : to->last_ns;
	return true;
}

static bool merge_bucket(struct np_clog_merge *self, const struct np_clog_tally *tally,
                         const struct np_clog_bucket *from)
{
	struct np_clog_bucket bucket = *from;
	bucket.stage = intern(self, &tally->log, from->stage);
	struct np_key key = {{(uint64_t)bucket.start_ns, bucket.stage, 0, 0}};
	uint32_t i =
		bucket.stage == NP_ID_NONE ? UINT32_MAX : np_keys_add(&self->bucket_keys, &key);
	if (i == UINT32_MAX)
		return false;
	if (i == self->sum->buckets.n)
		return np_vec_push(&self->sum->buckets, bucket);
	self->sum->buckets.v[i].calls += bucket.calls;
	np_clog_add(&self->sum->buckets.v[i].bytes, bucket.bytes);
	return true;
}

enum np_status np_clog_merge(struct np_clog_merge *self, uint32_t file, struct np_clog_tally *tally,
                             struct np_err *err)
{
	bool kept = !tally->failed;
	for (size_t i = 0; i < tally->cells.n && kept; i++)
		kept = merge_cell(self, file, tally, &tally->cells.v[i]);
	/* requests, steps and the timeline are of all layers: the same traffic once */
	bool beside = self->sum->files.v[file].beside;
	for (size_t i = 0; i < tally->slices.n && kept && !beside; i++)
		kept = merge_slice(self, tally, &tally->slices.v[i]);
	for (size_t i = 0; i < tally->buckets.n && kept && !beside; i++)
		kept = merge_bucket(self, tally, &tally->buckets.v[i]);
	return kept ? NP_OK : np_err_nomem(err);
}

void np_clog_merge_release(struct np_clog_merge *self)
{
	np_keys_release(&self->group_keys);
	np_keys_release(&self->cell_keys);
	np_keys_release(&self->slice_keys);
	np_keys_release(&self->bucket_keys);
}
