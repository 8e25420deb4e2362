/*
 * communication.json and communication_matrix.json (torch_npu.md §3.8, §3.9), pulled token
 * by token: a cluster has gigabytes of them, and their trees would be ten times as large.
 *
 *   torch    {"step13": {"p2p" | "collective": {"op@group": entry, …}}, …}
 *   msprof   {"op@group": entry, …}
 */
#include <math.h>
#include <string.h>

#include "capture/comm_rows.h"
#include "capture/reader.h"
#include "io/json.h"

enum { MAX_MEMBERS = 16 };

struct comm_file {
	struct np_profile *profile;
	struct np_json *json;
	struct np_json *part; /* reads texts that np_json_members() has set aside; or NULL */
	struct np_input *part_input;
	struct np_err *err;
	bool matrix;
	uint64_t odd; /* entries that are not as in such a file */
	NP_VEC(double) packages;
	struct np_buf scratch;
};

/* ── pieces ── */

static enum np_status next(struct comm_file *self, struct np_json_token *token)
{
	return np_json_next(self->json, token, self->err);
}

/* Go into the object that the key just read has; false: it has none, and was skipped. */
static enum np_status enter(struct comm_file *self, bool *is_object)
{
	struct np_json_token token;
	NP_TRY(next(self, &token));
	*is_object = token.type == NP_JSON_OBJECT_BEGIN;
	return *is_object ? NP_OK : np_json_skip(self->json, NULL, NULL, self->err);
}

static np_str text_of(struct comm_file *self, np_str raw, bool escaped)
{
	return escaped ? np_json_unescape(raw, &self->scratch) : raw;
}

/* Numbers, also as texts; anything else is not available. */
static double number(const struct np_json_token *value)
{
	double d;
	if (value->type != NP_JSON_NUMBER && value->type != NP_JSON_STRING)
		return NAN;
	return np_num_double(value->text, &d) == NP_NUM_OK ? d : NAN;
}

/* A text that may be absent. false: out of memory. */
static bool intern_text(struct comm_file *self, const struct np_json_token *value, uint32_t *id)
{
	np_str text = value->type == NP_JSON_STRING ? text_of(self, value->text, value->escaped)
	                                            : (np_str){0};
	*id = text.len > 0 ? np_intern_add(&self->profile->strings, text) : NP_ID_NONE;
	return !self->scratch.failed && (text.len == 0 || *id != NP_ID_NONE);
}

/* values[i]: of the member names[i], null where it is not there. For small objects; the
 * names are in the order in which the exporter writes them. */
static enum np_status read_members(struct comm_file *self, const np_str *names, size_t n_names,
                                   struct np_json_token *values)
{
	struct np_json_member members[MAX_MEMBERS];
	size_t n;
	for (size_t i = 0; i < n_names; i++)
		values[i].type = NP_JSON_NULL;
	do {
		NP_TRY(np_json_members(self->json, members, MAX_MEMBERS, &n, self->err));
		for (size_t m = 0, i = 0; m < n; m++) {
			size_t tried = 0;
			while (tried < n_names && !np_str_eq(members[m].key, names[i])) {
				i = i + 1 < n_names ? i + 1 : 0;
				tried++;
			}
			if (tried == n_names)
				continue;
			values[i] = members[m].value;
			i = i + 1 < n_names ? i + 1 : 0;
		}
	} while (n == MAX_MEMBERS);
	return NP_OK;
}

/* ── communication.json: an op ── */

#define NAME(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}

static const np_str time_names[] = {NAME("Start Timestamp(us)"),      NAME("Elapse Time(ms)"),
                                    NAME("Transit Time(ms)"),         NAME("Wait Time(ms)"),
                                    NAME("Synchronization Time(ms)"), NAME("Idle Time(ms)")};
static const np_str link_names[] = {NAME("Transit Size(MB)"), NAME("Transit Time(ms)"),
                                    NAME("Bandwidth(GB/s)"), NAME("Large Packet Ratio"),
                                    NAME("Size Distribution")};

static enum np_status read_times(struct comm_file *self, const struct np_comm_key *key)
{
	struct np_json_token v[6];
	NP_TRY(read_members(self, time_names, 6, v));
	struct np_comm_times times = {.start_us = number(&v[0]),
	                              .elapse_ms = number(&v[1]),
	                              .transit_ms = number(&v[2]),
	                              .wait_ms = number(&v[3]),
	                              .sync_ms = number(&v[4]),
	                              .idle_ms = number(&v[5])};
	return np_comm_add_time(self->profile, key, &times) ? NP_OK : np_err_nomem(self->err);
}

/* {"2.064384": [12, 1.57]} → three numbers per entry into self->packages */
static enum np_status read_package(struct comm_file *self, const struct np_json_token *key)
{
	double package[3];
	bool ok = np_num_double(key->text, &package[0]) == NP_NUM_OK;
	struct np_json_token token;
	NP_TRY(np_json_next(self->part, &token, self->err));
	if (token.type != NP_JSON_ARRAY_BEGIN) {
		self->odd++;
		return np_json_skip(self->part, NULL, NULL, self->err);
	}
	size_t n = 1;
	for (;;) {
		NP_TRY(np_json_next(self->part, &token, self->err));
		if (token.type == NP_JSON_ARRAY_END)
			break;
		if (n < 3)
			package[n] = number(&token);
		ok &= n >= 3 || !isnan(package[n]);
		n++;
		NP_TRY(np_json_skip(self->part, NULL, NULL, self->err));
	}
	if (!ok || n < 3) {
		self->odd++;
		return NP_OK;
	}
	for (size_t i = 0; i < 3; i++)
		if (!np_vec_push(&self->packages, package[i]))
			return np_err_nomem(self->err);
	return NP_OK;
}

static enum np_status open_part(struct comm_file *self, np_str text)
{
	NP_TRY(np_input_open_mem(text, "Size Distribution", 0, &self->part_input, self->err));
	return np_json_open(self->part_input, 0, &self->part, self->err);
}

static enum np_status read_packages(struct comm_file *self, const struct np_json_token *sizes)
{
	struct np_json_token token;
	self->packages.n = 0;
	if (sizes->type != NP_JSON_OBJECT_BEGIN || sizes->text.len <= 2)
		return NP_OK;
	if (!self->part)
		NP_TRY(open_part(self, sizes->text));
	else
		np_json_rewind(self->part, sizes->text, sizes->offset);
	NP_TRY(np_json_next(self->part, &token, self->err));
	for (;;) {
		NP_TRY(np_json_next(self->part, &token, self->err));
		if (token.type != NP_JSON_KEY)
			return NP_OK;
		NP_TRY(read_package(self, &token));
	}
}

static enum np_status read_link(struct comm_file *self, const struct np_comm_key *key,
                                np_str transport)
{
	struct np_json_token v[5];
	NP_TRY(read_members(self, link_names, 5, v));
	struct np_comm_link link = {.transit_mb = number(&v[0]),
	                            .transit_ms = number(&v[1]),
	                            .gbps = number(&v[2]),
	                            .large_ratio = number(&v[3])};
	uint64_t odd = self->odd;
	NP_TRY(read_packages(self, &v[4]));
	if (!np_comm_link_used(&link) && self->packages.n == 0 && self->odd == odd)
		return NP_OK;
	link.transport = np_intern_add(&self->profile->strings, transport);
	if (link.transport == NP_ID_NONE || !np_comm_add_bandwidth(self->profile, key, &link, NULL))
		return np_err_nomem(self->err);
	for (size_t i = 0; i < self->packages.n; i += 3)
		if (!np_comm_add_bandwidth(self->profile, key, &link, &self->packages.v[i]))
			return np_err_nomem(self->err);
	return NP_OK;
}

static enum np_status read_links(struct comm_file *self, const struct np_comm_key *key)
{
	struct np_json_token token;
	for (;;) {
		NP_TRY(next(self, &token));
		if (token.type != NP_JSON_KEY)
			return NP_OK;
		np_str transport = token.text; /* the next token may move a window */
		char name[32];
		size_t len = transport.len < sizeof name ? transport.len : sizeof name;
		memcpy(name, transport.ptr, len);
		bool is_object;
		NP_TRY(enter(self, &is_object));
		if (is_object)
			NP_TRY(read_link(self, key, (np_str){name, len}));
	}
}

static enum np_status read_op(struct comm_file *self, const struct np_comm_key *key)
{
	struct np_json_token token;
	bool has_times = false;
	for (;;) {
		NP_TRY(next(self, &token));
		if (token.type != NP_JSON_KEY)
			break;
		bool times = np_str_is(token.text, "Communication Time Info"), is_object;
		bool links = np_str_is(token.text, "Communication Bandwidth Info");
		NP_TRY(enter(self, &is_object));
		if (!is_object)
			continue;
		has_times |= times;
		if (times)
			NP_TRY(read_times(self, key));
		else if (links)
			NP_TRY(read_links(self, key));
		else
			NP_TRY(np_json_skip(self->json, NULL, NULL, self->err));
	}
	self->odd += !has_times;
	return NP_OK;
}

/* ── communication_matrix.json: the links of a kind of op ── */

static const np_str pair_names[] = {NAME("Transport Type"), NAME("Transit Size(MB)"),
                                    NAME("Transit Time(ms)"), NAME("Bandwidth(GB/s)"),
                                    NAME("Op Name")};

static enum np_status read_pair(struct comm_file *self, const struct np_comm_key *key, uint32_t src,
                                uint32_t dst)
{
	struct np_json_token v[5];
	uint32_t op;
	NP_TRY(read_members(self, pair_names, 5, v));
	struct np_comm_link link = {
		.transit_mb = number(&v[1]), .transit_ms = number(&v[2]), .gbps = number(&v[3])};
	if (!intern_text(self, &v[0], &link.transport) || !intern_text(self, &v[4], &op) ||
	    !np_comm_add_matrix(self->profile, key, src, dst, &link, op))
		return np_err_nomem(self->err);
	return NP_OK;
}

static enum np_status read_pairs(struct comm_file *self, const struct np_comm_key *key)
{
	struct np_json_token token;
	for (;;) {
		NP_TRY(next(self, &token));
		if (token.type != NP_JSON_KEY)
			return NP_OK;
		np_str to, from = np_str_cut(token.text, '-', &to);
		uint32_t src = np_comm_u32(from), dst = np_comm_u32(to);
		bool is_object;
		NP_TRY(enter(self, &is_object));
		if (is_object && src != NP_NO_U32 && dst != NP_NO_U32) {
			NP_TRY(read_pair(self, key, src, dst));
			continue;
		}
		self->odd++;
		if (is_object)
			NP_TRY(np_json_skip(self->json, NULL, NULL, self->err));
	}
}

/* ── both ── */

/* The value of the key "op@group" just read. */
static enum np_status read_entry(struct comm_file *self, struct np_comm_key *key,
                                 const struct np_json_token *name)
{
	bool is_object;
	if (!np_comm_name(self->profile, text_of(self, name->text, name->escaped), key))
		return np_err_nomem(self->err);
	NP_TRY(enter(self, &is_object));
	if (!is_object) {
		self->odd++;
		return NP_OK;
	}
	return self->matrix ? read_pairs(self, key) : read_op(self, key);
}

static enum np_status read_class(struct comm_file *self, struct np_comm_key *key)
{
	struct np_json_token token;
	for (;;) {
		NP_TRY(next(self, &token));
		if (token.type != NP_JSON_KEY)
			return NP_OK;
		NP_TRY(read_entry(self, key, &token));
	}
}

static enum np_status read_step(struct comm_file *self, struct np_comm_key *key)
{
	struct np_json_token token;
	for (;;) {
		NP_TRY(next(self, &token));
		if (token.type != NP_JSON_KEY)
			return NP_OK;
		bool p2p = np_str_is(token.text, "p2p"), is_object;
		bool known = p2p || np_str_is(token.text, "collective");
		NP_TRY(enter(self, &is_object));
		key->p2p = p2p;
		if (is_object && known) {
			NP_TRY(read_class(self, key));
			continue;
		}
		self->odd++;
		if (is_object)
			NP_TRY(np_json_skip(self->json, NULL, NULL, self->err));
	}
}

static enum np_status read_root(struct comm_file *self)
{
	struct np_json_token token;
	NP_TRY(next(self, &token));
	if (token.type != NP_JSON_OBJECT_BEGIN)
		return np_err_set(self->err, NP_E_FORMAT, NULL, "not an object of steps");
	for (;;) {
		NP_TRY(next(self, &token));
		if (token.type == NP_JSON_END)
			return NP_OK;
		if (token.type != NP_JSON_KEY)
			continue;
		struct np_comm_key key = {.step = np_comm_step(token.text)};
		bool is_object;
		if (np_comm_is_op(token.text)) { /* msprof: no steps, no classes */
			key.p2p = np_comm_is_p2p(token.text);
			NP_TRY(read_entry(self, &key, &token));
			continue;
		}
		bool step = np_str_starts(token.text, NP_STR("step"));
		NP_TRY(enter(self, &is_object));
		if (is_object && step) {
			NP_TRY(read_step(self, &key));
			continue;
		}
		self->odd++;
		if (is_object)
			NP_TRY(np_json_skip(self->json, NULL, NULL, self->err));
	}
}

/* ── the file ── */

static void tell(struct comm_file *self, const char *path)
{
	const struct np_json_repairs *repairs = np_json_repairs(self->json);
	struct np_buf text = {.max_bytes = 4096};
	np_json_repairs_describe(repairs, &text);
	if (np_json_repairs_total(repairs) > 0)
		np_profile_diag(self->profile, "JSON_REPAIRED", path,
		                np_json_repairs_total(repairs), "%s", text.ptr ? text.ptr : "");
	np_buf_release(&text);
	if (self->odd > 0)
		np_profile_diag(self->profile, "COMM_ENTRY_UNKNOWN", path, self->odd,
		                "%llu entries are not as in a communication file, left out",
		                (unsigned long long)self->odd);
}

/* All or nothing: where the file is damaged, a database may have the tables. */
static enum np_status read_all(struct comm_file *self, const char *path)
{
	struct np_profile *profile = self->profile;
	size_t times = profile->comm_time.n, bandwidth = profile->comm_bandwidth.n;
	size_t matrix = profile->comm_matrix.n;
	enum np_status status = read_root(self);
	if (status == NP_OK) {
		tell(self, path);
		profile->loaded |= NP_COMM_SUMMARY;
		return NP_OK;
	}
	profile->comm_time.n = times;
	profile->comm_bandwidth.n = bandwidth;
	profile->comm_matrix.n = matrix;
	return status;
}

static enum np_status read_file(const struct np_read *read, const char *path, bool matrix,
                                struct np_err *err)
{
	struct comm_file self = {.profile = read->profile, .matrix = matrix, .err = err};
	struct np_input *input = NULL;
	if (!(read->what & NP_COMM_SUMMARY))
		return NP_OK;
	enum np_status status = np_input_open(path, &input, err);
	if (status == NP_OK)
		status = np_json_open(input, 0, &self.json, err);
	if (status == NP_OK)
		status = read_all(&self, path);
	np_json_close(self.part);
	np_input_close(self.part_input);
	np_json_close(self.json);
	np_input_close(input);
	np_vec_release(&self.packages);
	np_buf_release(&self.scratch);
	return status;
}

enum np_status np_read_comm_json(const struct np_read *read, const char *path, struct np_err *err)
{
	return read_file(read, path, false, err);
}

enum np_status np_read_comm_matrix(const struct np_read *read, const char *path, struct np_err *err)
{
	return read_file(read, path, true, err);
}
