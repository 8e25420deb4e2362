/*
 * Collectives from messages of mstx (cluster_and_advisor.md §2.24), for captures that have
 * recorded none themselves: torch_npu marks each with one of
 *
 *   {"streamId": "9", "count": "4194304", "dataType": "bfp16", "groupName": "…",
 *    "opName": "Hcclop_allReduce"}
 *   comm:HcclAllReduce,<group>,<data type>,<count>
 *
 * Its time is that of the mark's task on the stream, by connection id.
 */
#include <stdlib.h>

#include "capture/capture.h"
#include "cluster/grouping.h"
#include "cluster/mstx.h"
#include "cluster/parts.h"
#include "io/json.h"

#define NP_TAG np_digest_commop
NP_TABLE_DESC(, np_digest_commop, "commop", NP_DIGEST_COMMOP_COLUMNS)
#undef NP_TAG
#define NP_TAG np_digest_commop_facts
NP_TABLE_DESC(, np_digest_commop_facts, "commop_facts", NP_DIGEST_COMMOP_FACTS_COLUMNS)
#undef NP_TAG

enum {
	MAX_COMPAT_ROWS = 4000000, /* the official join multiplies messages by tasks */
	MAX_MESSAGE = 1 << 16,     /* bytes of a message that is looked at */
};

/* What a message says; messages repeat, so each text is read once. */
struct said {
	np_id type, group, dtype;
	int64_t count, stream;
	bool json;
};

struct commop {
	const struct np_map_job *job;
	const struct np_profile *profile;
	struct np_conn_tasks tasks;
	struct np_map known; /* message → row of said, or said.n for none */
	NP_VEC(struct said) said;
	struct np_digest_commop *rows;
	int64_t messages, lone;
	bool cut;
};

/* ── messages ── */

static bool keep(struct commop *self, np_str text, np_id *out)
{
	*out = np_intern_add(&self->job->digest->strings, text);
	return *out != NP_ID_NONE;
}

static bool set(struct commop *self, struct said *said, np_str before, np_str op, np_str group,
                np_str dtype)
{
	struct np_buf type = {0};
	np_buf_add_str(&type, before);
	np_buf_add_str(&type, op);
	np_buf_add_char(&type, '_');
	bool ok = !type.failed && keep(self, np_buf_str(&type), &said->type) &&
	          keep(self, group, &said->group) && keep(self, dtype, &said->dtype);
	np_buf_release(&type);
	return ok;
}

/* Numbers stand there as texts, too. */
static np_str text_of(const struct np_jval *object, const char *key, bool *all)
{
	const struct np_jval *value = np_jget(object, key);
	*all &= value && (value->type == NP_J_STRING || value->type == NP_J_NUMBER);
	return value ? value->text : NP_STR("");
}

/* *found is false for what is none. */
static bool read_json(struct commop *self, np_str message, struct said *said, bool *found)
{
	struct np_arena arena;
	struct np_input *input = NULL;
	const struct np_jval *root = NULL;
	struct np_err err;
	bool ok = true;
	np_arena_init(&arena);
	enum np_status status = np_input_open_mem(message, "mstx", 0, &input, &err);
	if (status == NP_OK)
		status = np_json_parse(&arena, input, 0, &root, NULL, &err);
	if (status == NP_OK) {
		*found = true;
		np_str stream = text_of(root, "streamId", found);
		np_str count = text_of(root, "count", found);
		np_str dtype = text_of(root, "dataType", found);
		np_str group = text_of(root, "groupName", found);
		np_str op = text_of(root, "opName", found);
		said->json = true;
		said->count = said->stream = NP_NO_I64;
		(void)np_str_to_i64(count, &said->count);
		(void)np_str_to_i64(stream, &said->stream);
		ok = !*found || set(self, said, NP_STR(""), op, group, dtype);
	}
	np_input_close(input);
	np_arena_release(&arena);
	return ok && status != NP_E_NOMEM;
}

/* Quotes may be escaped once more: {\"streamId\": … */
static bool read_escaped(struct commop *self, np_str message, struct said *said, bool *found)
{
	struct np_buf text = {0};
	if (!np_str_contains(message, NP_STR("\\\"")))
		return read_json(self, message, said, found);
	for (size_t i = 0; i < message.len; i++)
		if (message.ptr[i] != '\\' || i + 1 == message.len || message.ptr[i + 1] != '"')
			np_buf_add_char(&text, message.ptr[i]);
	bool ok = !text.failed && read_json(self, np_buf_str(&text), said, found);
	np_buf_release(&text);
	return ok;
}

/* comm:HcclAllReduce,group,type,count; the official tool never gets to see these. */
static bool read_fields(struct commop *self, np_str message, struct said *said, bool *found)
{
	np_str field[4], rest = message;
	for (size_t i = 0; i < 3; i++)
		field[i] = np_str_cut(rest, ',', &rest);
	field[3] = rest;
	*found = !self->job->options->compat && np_str_starts(field[0], NP_STR("comm:Hccl")) &&
	         field[0].len > 9 && np_str_to_i64(field[3], &said->count);
	said->stream = NP_NO_I64;
	said->json = false;
	return !*found ||
	       set(self, said, NP_STR("hcom_"), np_str_from(field[0], 9), field[1], field[2]);
}

/* *out: row of said, NP_NO_U32 for a message that describes no collective. */
static bool read_message(struct commop *self, uint32_t id, uint32_t *out)
{
	np_str message = np_intern_get(&self->profile->strings, id);
	const uint32_t unknown = UINT32_MAX - 1, nothing = UINT32_MAX - 2;
	bool found = false, ok = true;
	struct said said;
	*out = np_map_get(&self->known, id, unknown);
	if (*out != unknown) {
		*out = *out == nothing ? NP_NO_U32 : *out;
		return true;
	}
	if (message.len > MAX_MESSAGE)
		found = false;
	else if (np_str_starts(message, NP_STR("{")) &&
	         np_str_contains(message, NP_STR("streamId")))
		ok = read_escaped(self, message, &said, &found);
	else if (np_str_starts(message, NP_STR("comm:")))
		ok = read_fields(self, message, &said, &found);
	*out = found ? (uint32_t)self->said.n : NP_NO_U32;
	return ok && (!found || np_vec_push(&self->said, said)) &&
	       np_map_put(&self->known, id, found ? *out : nothing);
}

/* ── rows; `name` holds the row of said until all are there ── */

static bool add_row(struct commop *self, uint32_t said, np_ns start, np_ns end, int64_t conn)
{
	if (self->rows->n >= MAX_COMPAT_ROWS && self->job->options->compat) {
		self->cut = true;
		return true;
	}
	size_t r = np_rows_add(self->rows, &np_digest_commop_desc);
	if (r == SIZE_MAX)
		return false;
	const struct said *what = &self->said.v[said];
	self->rows->name[r] = NP_ID_NONE;
	self->rows->type[r] = what->type;
	self->rows->group[r] = what->group;
	self->rows->dtype[r] = what->dtype;
	self->rows->count[r] = what->count;
	self->rows->start_ns[r] = start;
	self->rows->end_ns[r] = end;
	self->rows->conn[r] = conn;
	return true;
}

static bool add_task(struct commop *self, uint32_t said, uint32_t task)
{
	const struct np_tasks *t = &self->profile->tasks;
	return add_row(self, said, t->start_ns[task], t->start_ns[task] + t->dur_ns[task],
	               t->conn[task]);
}

/* Every task of the connection or of the stream that the message names. */
static bool add_official(struct commop *self, size_t mstx, uint32_t said)
{
	const struct np_tasks *t = &self->profile->tasks;
	int64_t conn = self->profile->mstx.conn[mstx], stream = self->said.v[said].stream;
	bool ok = true;
	for (uint32_t i = 0; ok && !self->cut && i < t->n; i++)
		if ((conn != NP_NO_I64 && t->conn[i] == conn) ||
		    (t->stream[i] != NP_NO_U32 && (int64_t)t->stream[i] == stream))
			ok = add_task(self, said, i);
	return ok;
}

/* One collective per message, over all tasks of its connection. */
static bool add(struct commop *self, size_t mstx, uint32_t said)
{
	const struct np_conn_tasks *t = &self->tasks;
	int64_t conn = self->profile->mstx.conn[mstx];
	size_t at = conn == NP_NO_I64 ? t->n : np_conn_tasks_find(t, conn);
	if (at == t->n) {
		self->lone++;
		return true;
	}
	np_ns start = t->tasks->start_ns[t->order[at]], end = start;
	for (; at < t->n && t->tasks->conn[t->order[at]] == conn; at++) {
		uint32_t task = t->order[at];
		np_ns stop = t->tasks->start_ns[task] + t->tasks->dur_ns[task];
		end = stop > end ? stop : end;
	}
	return add_row(self, said, start, end, conn);
}

static bool add_all(struct commop *self)
{
	const struct np_mstx *m = &self->profile->mstx;
	bool ok = true;
	for (size_t i = 0; ok && i < m->n; i++) {
		uint32_t said;
		if (m->start_ns[i] < self->job->from_ns || m->start_ns[i] > self->job->to_ns)
			continue;
		ok = read_message(self, m->message[i], &said);
		if (!ok || said == NP_NO_U32)
			continue;
		self->messages++;
		ok = self->job->options->compat ? add_official(self, i, said) : add(self, i, said);
	}
	return ok;
}

/* <type>_<last digits of the group's hash>_<number within the group and type>_1 */
static bool number(struct commop *self)
{
	struct np_digest_commop *rows = self->rows;
	const uint32_t *const keys[] = {rows->group, rows->type};
	struct np_groups groups;
	struct np_buf name = {0};
	bool ok = np_group_rows(rows->n, keys, 2, &groups);
	for (size_t g = 0; ok && g < groups.n; g++) {
		uint32_t first = np_group_row(&groups, g);
		const struct np_intern *strings = &self->job->digest->strings;
		uint64_t hash = np_group_hash(np_intern_get(strings, rows->group[first]));
		for (size_t i = 0; ok && i < np_group_size(&groups, g); i++) {
			np_buf_clear(&name);
			np_buf_add_str(&name, np_intern_get(strings, rows->type[first]));
			np_buf_printf(&name, "_%03u_%zu_1", (unsigned)(hash % 1000), i);
			ok = !name.failed && keep(self, np_buf_str(&name),
			                          &rows->name[groups.order[groups.start[g] + i]]);
		}
	}
	np_buf_release(&name);
	np_groups_release(&groups);
	return ok;
}

static bool add_facts(const struct commop *self)
{
	struct np_digest_commop_facts *facts =
		np_digest_table(self->job->digest, &np_digest_commop_facts_desc);
	size_t r = facts ? np_rows_add(facts, &np_digest_commop_facts_desc) : SIZE_MAX;
	if (r == SIZE_MAX)
		return false;
	facts->recorded[r] = (int64_t)self->profile->comm_ops.n;
	facts->messages[r] = self->messages;
	facts->lone[r] = self->lone;
	facts->cut[r] = self->cut;
	return true;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct commop self = {.job = job,
	                      .profile = job->profile,
	                      .rows = np_digest_table(job->digest, &np_digest_commop_desc)};
	np_map_init(&self.known);
	bool ok = self.rows && np_conn_tasks_make(job->profile, &self.tasks);
	if (ok && job->profile->comm_ops.n == 0)
		ok = add_all(&self) && number(&self);
	ok = ok && add_facts(&self);
	np_conn_tasks_release(&self.tasks);
	np_map_release(&self.known);
	np_vec_release(&self.said);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_commop_desc,
                                                     &np_digest_commop_facts_desc, NULL};

const struct np_part np_part_commop = {
	.name = "commop",
	.revision = 1,
	.load = NP_MSTX | NP_TASKS | NP_COMM_OPS,
	.tables = tables,
	.map = map,
};
