#include "collect/comm_export.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "collect/comm_tally.h"
#include "io/csv.h"
#include "io/json.h"
#include "report/writer.h"

enum { FLUSH_BYTES = 1 << 20 };

struct source {
	struct np_clog log;
	struct np_comm_record record;
	bool open;
};

struct merge {
	struct source *sources;
	size_t *heap, n; /* the source with the earliest record first; of equals the first one */
	const struct np_clog_options *options;
	enum np_clog_format format;
	struct np_buf text;
	FILE *out;
	uint64_t rows;
};

/* ── the heap ── */

static bool is_earlier(const struct merge *self, size_t a, size_t b)
{
	np_ns x = self->sources[a].record.start_ns, y = self->sources[b].record.start_ns;
	return x != y ? x < y : a < b;
}

static void sink(struct merge *self, size_t at)
{
	for (size_t child; (child = 2 * at + 1) < self->n; at = child) {
		if (child + 1 < self->n &&
		    is_earlier(self, self->heap[child + 1], self->heap[child]))
			child++;
		if (!is_earlier(self, self->heap[child], self->heap[at]))
			break;
		size_t other = self->heap[child];
		self->heap[child] = self->heap[at];
		self->heap[at] = other;
	}
}

static void start(struct merge *self, size_t sources)
{
	for (size_t i = 0; i < sources; i++)
		if (self->sources[i].open &&
		    np_clog_next(&self->sources[i].log, &self->sources[i].record))
			self->heap[self->n++] = i;
	for (size_t i = self->n / 2; i-- > 0;)
		sink(self, i);
}

static void step(struct merge *self)
{
	struct source *first = &self->sources[self->heap[0]];
	if (!np_clog_next(&first->log, &first->record))
		self->heap[0] = self->heap[--self->n];
	sink(self, 0);
}

/* ── a row ── */

struct row {
	struct merge *merge;
	bool begun;
};

static void begin_field(struct row *row, const char *name)
{
	struct np_buf *out = &row->merge->text;
	if (row->merge->format == NP_COMM_CSV) {
		np_buf_add_cstr(out, row->begun ? "," : "");
	} else {
		np_buf_add_cstr(out, row->begun ? ", \"" : "{\"");
		np_buf_add_cstr(out, name);
		np_buf_add_cstr(out, "\": ");
	}
	row->begun = true;
}

static void put_unknown(struct row *row, const char *name)
{
	begin_field(row, name);
	if (row->merge->format == NP_COMM_JSONL)
		np_buf_add_cstr(&row->merge->text, "null");
}

static void put_int(struct row *row, const char *name, int64_t value)
{
	begin_field(row, name);
	np_buf_printf(&row->merge->text, "%" PRId64, value);
}

static void put_u32(struct row *row, const char *name, uint32_t value)
{
	if (value == NP_COMM_NO_U32)
		put_unknown(row, name);
	else
		put_int(row, name, value);
}

static void put_u64(struct row *row, const char *name, uint64_t value)
{
	if (value == NP_COMM_NO_U64) {
		put_unknown(row, name);
		return;
	}
	begin_field(row, name);
	np_buf_printf(&row->merge->text, "%" PRIu64, value);
}

/* -1: unknown */
static void put_rank(struct row *row, const char *name, int32_t value)
{
	if (value < 0)
		put_unknown(row, name);
	else
		put_int(row, name, value);
}

static void put_text(struct row *row, const char *name, np_str text)
{
	struct np_buf safe = {0};
	if (text.len == 0) {
		put_unknown(row, name);
		return;
	}
	begin_field(row, name);
	if (row->merge->format == NP_COMM_JSONL) {
		np_json_quote(&row->merge->text, text);
		return;
	}
	np_text_safe(&safe, text);
	np_csv_write_text(&row->merge->text, np_buf_str(&safe));
	row->merge->text.failed |= safe.failed;
	np_buf_release(&safe);
}

static void put_flags(struct row *row, uint16_t flags)
{
	static const char *const names[] = {"async",  "coalesced", "object",
	                                    "failed", "stage_end", "capture"};
	char text[64];
	size_t len = 0;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (flags & 1u << i)
			len += (size_t)snprintf(text + len, sizeof text - len, "%s%s",
			                        len ? "|" : "", names[i]);
	put_text(row, "flags", (np_str){text, len});
}

static void put_op(struct row *row, uint8_t op)
{
	char text[16];
	const char *name = np_clog_op_name(op);
	(void)snprintf(text, sizeof text, "op_%u", op);
	put_text(row, "op", np_str_of(name ? name : text));
}

static void put_hash(struct row *row, uint64_t hash)
{
	char text[32];
	(void)snprintf(text, sizeof text, "%" PRIu64, hash);
	put_text(row, "group_hash", hash ? np_str_of(text) : NP_STR(""));
}

static void put_call(struct row *row, const struct np_comm_record *r)
{
	put_text(row, "dtype", np_str_of(np_clog_dtype_name(r->dtype)));
	put_u64(row, "count", r->count);
	put_u64(row, "size_bytes", r->tensor_bytes);
	put_u64(row, "send_bytes", r->send_bytes);
	put_u64(row, "recv_bytes", r->recv_bytes);
	put_text(row, "reduce", np_str_of(np_clog_reduce_name(r->reduce)));
	put_int(row, "call_ns", (int64_t)r->call_ns);
	put_rank(row, "stream", r->stream);
	put_rank(row, "device", r->device);
	put_int(row, "rc", r->rc);
	put_flags(row, r->flags);
}

static void put_row(struct merge *self, const struct source *source)
{
	const struct np_comm_record *r = &source->record;
	const struct np_clog *log = &source->log;
	const struct np_comm_log_header *header = &log->header;
	struct row row = {.merge = self};
	put_int(&row, "time_ns", r->start_ns);
	put_rank(&row, "rank", header->rank);
	put_text(&row, "host", np_str_of(header->host));
	put_int(&row, "pid", header->pid);
	put_int(&row, "tid", header->tid);
	put_text(&row, "layer", np_str_of(np_clog_layer_name(header->layer)));
	put_u64(&row, "seq", r->seq);
	put_text(&row, "stage", np_clog_string(log, r->stage));
	put_text(&row, "stage_path", np_clog_string(log, r->stage_path));
	put_u32(&row, "request", r->request);
	put_u32(&row, "step", r->step);
	put_op(&row, r->op);
	put_text(&row, "group", np_clog_string(log, r->comm_name));
	put_hash(&row, r->comm_hash);
	put_u64(&row, "group_seq", r->comm_seq);
	put_rank(&row, "group_rank", r->rank);
	put_rank(&row, "world", r->world);
	put_rank(&row, "peer", r->peer);
	put_text(&row, "shape", np_clog_string(log, r->shape));
	put_call(&row, r);
	np_buf_add_cstr(&self->text, self->format == NP_COMM_CSV ? "\r\n" : "}\n");
	self->rows++;
}

static void put_heading(struct merge *self)
{
	np_buf_add_cstr(&self->text,
	                "time_ns,rank,host,pid,tid,layer,seq,stage,stage_path,request,step,op,"
	                "group,group_hash,group_seq,group_rank,world,peer,shape,dtype,count,"
	                "size_bytes,send_bytes,recv_bytes,reduce,call_ns,stream,device,rc,flags"
	                "\r\n");
}

static enum np_status flush(struct merge *self, size_t at_least, struct np_err *err)
{
	if (self->text.failed)
		return np_err_nomem(err);
	if (self->text.len < at_least)
		return NP_OK;
	if (fwrite(self->text.ptr, 1, self->text.len, self->out) != self->text.len)
		return np_err_sys(err, errno, NULL, "write the records");
	np_buf_clear(&self->text);
	return NP_OK;
}

static bool is_wanted(const struct np_clog_options *options, const struct np_comm_log_header *of)
{
	if (options->rank >= 0 && of->rank != options->rank)
		return false;
	return options->show == NP_COMM_SHOW_TORCH  ? of->layer == NP_COMM_LAYER_TORCH
	       : options->show == NP_COMM_SHOW_HCCL ? of->layer == NP_COMM_LAYER_HCCL
	                                            : true;
}

static enum np_status open_all(struct merge *self, struct np_clog_found *found,
                               struct np_clog_exported *result, struct np_err *err)
{
	for (size_t i = 0; i < found->logs.n; i++) {
		struct np_err why = {0};
		struct source *source = &self->sources[i];
		enum np_status status = np_clog_open(found->logs.v[i], &source->log, &why);
		if (status == NP_E_NOMEM)
			return np_err_nomem(err);
		source->open = status == NP_OK;
		if (source->open && !is_wanted(self->options, &source->log.header)) {
			np_clog_close(&source->log);
			source->open = false;
		}
		if (status == NP_OK || status == NP_E_EMPTY)
			continue;
		result->unreadable++;
		if (!result->first_problem)
			result->first_problem =
				np_arena_printf(&found->arena, "%s: %s", why.where, why.msg);
	}
	return NP_OK;
}

static enum np_status write_all(struct merge *self, size_t sources, struct np_err *err)
{
	enum np_status status = NP_OK;
	if (self->format == NP_COMM_CSV)
		put_heading(self);
	for (start(self, sources); self->n && status == NP_OK; step(self)) {
		const struct source *source = &self->sources[self->heap[0]];
		if (!np_clog_matches(&source->log, self->options, &source->record))
			continue;
		put_row(self, source);
		status = flush(self, FLUSH_BYTES, err);
	}
	return status == NP_OK ? flush(self, 0, err) : status;
}

enum np_status np_clog_export(struct np_clog_found *found, const struct np_clog_options *options,
                              enum np_clog_format format, FILE *out,
                              struct np_clog_exported *result, struct np_err *err)
{
	size_t n = found->logs.n;
	struct merge self = {.options = options, .format = format, .out = out};
	*result = (struct np_clog_exported){.rows = 0};
	self.sources = np_calloc(n, sizeof *self.sources);
	self.heap = np_calloc(n, sizeof *self.heap);
	enum np_status status =
		self.sources && self.heap ? open_all(&self, found, result, err) : np_err_nomem(err);
	if (status == NP_OK)
		status = write_all(&self, n, err);
	for (size_t i = 0; self.sources && i < n; i++)
		if (self.sources[i].open)
			np_clog_close(&self.sources[i].log);
	result->rows = self.rows;
	np_free(self.sources);
	np_free(self.heap);
	np_buf_release(&self.text);
	return status;
}
