/*
 * Collectives with what is known of their launch, step and payload: the ops recorded
 * one by one, else those of communication.json or analysis.db.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/grouping.h"
#include "cluster/parts.h"
#include "cluster/steps.h"

#define NP_TAG np_digest_comm_calls
NP_TABLE_DESC(, np_digest_comm_calls, "comm_calls", NP_DIGEST_COMM_CALLS_COLUMNS)
#undef NP_TAG

static const double NS_PER_MS = 1e6, NS_PER_US = 1e3, BYTES_PER_MB = 1e6;
static const double MAX_EXACT = 9e18; /* a double below it fits int64 */

bool np_is_p2p_name(np_str name)
{
	static const char *const marks[] = {"send", "Send", "receive", "Receive", "recv", "Recv"};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (np_str_contains(name, np_str_of(marks[i])))
			return true;
	return false;
}

bool np_is_comm_op_name(np_str name)
{
	return !np_str_starts(name, NP_STR("Total")) && !np_str_starts(name, NP_STR("total"));
}

/* ── launches ── */

/* Put in the place of a row: the connection is wanted, and its call was not met yet. */
#define UNSEEN (NP_NO_U32 - 1)

bool np_cann_calls_init(struct np_cann_calls *self, const struct np_profile *profile, bool all)
{
	const struct np_host_ops *ops = &profile->host_ops;
	const struct np_comm_ops *wanted = &profile->comm_ops;
	bool ok = true;
	*self = (struct np_cann_calls){.ops = ops};
	np_map_init(&self->row_of);
	for (size_t i = 0; ok && !all && i < wanted->n; i++)
		if (wanted->conn[i] != NP_NO_I64)
			ok = np_map_put(&self->row_of, (uint64_t)wanted->conn[i], UNSEEN);
	for (size_t i = 0; ok && i < ops->n; i++) {
		if (!np_is_cann_layer(ops->layer[i]) || ops->conn[i] == NP_NO_I64)
			continue;
		uint64_t conn = (uint64_t)ops->conn[i];
		if (np_map_get(&self->row_of, conn, NP_NO_U32) == (all ? NP_NO_U32 : UNSEEN))
			ok = np_map_put(&self->row_of, conn, (uint32_t)i);
	}
	return ok;
}

void np_cann_calls_release(struct np_cann_calls *self)
{
	np_map_release(&self->row_of);
}

np_ns np_cann_call_start(const struct np_cann_calls *self, int64_t conn)
{
	uint32_t row = NP_NO_U32;
	if (conn != NP_NO_I64)
		row = np_map_get(&self->row_of, (uint64_t)conn, NP_NO_U32);
	return row < UNSEEN ? self->ops->start_ns[row] : NP_NO_I64;
}

/* ── the map ── */

struct mapping {
	const struct np_map_job *job;
	const struct np_profile *profile;
	struct np_digest_comm_calls *rows;
	struct np_cann_calls launches;
	struct np_step_finder steps;
	int64_t *summary_bytes;    /* per row of comm_time */
	struct np_map summary_row; /* name → row of comm_time */
};

static np_str text_of(const struct mapping *self, uint32_t id)
{
	return np_intern_get(&self->profile->strings, id);
}

static bool add_text(struct mapping *self, np_str text, np_id *out)
{
	*out = np_intern_add(&self->job->digest->strings, text);
	return *out != NP_ID_NONE;
}

np_str np_comm_domain(np_str name)
{
	for (size_t i = 0; i + 1 < name.len; i++)
		if (name.ptr[i] == '_' && name.ptr[i + 1] == '_') {
			np_str rest, domain = np_str_cut(np_str_from(name, i + 2), '_', &rest);
			return domain;
		}
	return (np_str){"", 0};
}

bool np_is_lane_number(np_str group)
{
	enum { LONGEST_LANE = 4 };
	uint64_t number;
	return group.len <= LONGEST_LANE && np_str_to_u64(group, &number);
}

/* The group of an op; that of the summary where the op itself has none that means something. */
static uint32_t group_of(const struct mapping *self, uint32_t name, uint32_t group)
{
	np_str text = text_of(self, group);
	if (group != NP_ID_NONE && !np_is_lane_number(text))
		return group;
	uint32_t row = np_map_get(&self->summary_row, name, NP_NO_U32);
	return row != NP_NO_U32 ? self->profile->comm_time.group[row] : NP_ID_NONE;
}

/* Name, group and type of row r. */
static bool set_names(struct mapping *self, size_t r, uint32_t name, uint32_t group, np_str type)
{
	struct np_digest_comm_calls *rows = self->rows;
	char key[NP_GROUP_KEY_SIZE];
	np_str text = text_of(self, name);
	group = group_of(self, name, group);
	rows->p2p[r] = self->job->options->compat ? np_str_contains(text, NP_STR("send")) ||
	                                                    np_str_contains(text, NP_STR("receive"))
	                                          : np_is_p2p_name(text);
	if (group != NP_ID_NONE)
		np_group_key(text_of(self, group), key);
	return add_text(self, text, &rows->name[r]) && add_text(self, type, &rows->type[r]) &&
	       np_digest_string(self->job->digest, &self->profile->strings, group,
	                        &rows->group[r]) &&
	       add_text(self, group != NP_ID_NONE ? np_str_of(key) : np_comm_domain(text),
	                &rows->key[r]);
}

static int64_t dtype_bytes(np_str dtype)
{
	static const struct {
		const char *name;
		int bytes;
	} sizes[] = {{"INT8", 1},  {"UINT8", 1},  {"INT16", 2}, {"UINT16", 2}, {"FP16", 2},
	             {"BFP16", 2}, {"BF16", 2},   {"INT32", 4}, {"UINT32", 4}, {"FP32", 4},
	             {"INT64", 8}, {"UINT64", 8}, {"FP64", 8},  {"INT128", 16}};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (np_str_is(dtype, sizes[i].name))
			return sizes[i].bytes;
	return 0;
}

static int64_t size_of(const struct mapping *self, size_t i)
{
	const struct np_comm_ops *ops = &self->profile->comm_ops;
	int64_t bytes = dtype_bytes(text_of(self, ops->dtype[i]));
	if (bytes > 0 && ops->count[i] >= 0 && ops->count[i] <= INT64_MAX / bytes)
		return ops->count[i] * bytes;
	if (self->job->options->compat)
		return NP_NO_I64;
	uint32_t row = np_map_get(&self->summary_row, ops->name[i], NP_NO_U32);
	return row != NP_NO_U32 ? self->summary_bytes[row] : NP_NO_I64;
}

static enum np_status add_recorded(struct mapping *self, size_t i, struct np_err *err)
{
	const struct np_comm_ops *ops = &self->profile->comm_ops;
	struct np_digest_comm_calls *rows = self->rows;
	size_t r = np_rows_add(rows, &np_digest_comm_calls_desc);
	if (r == SIZE_MAX)
		return np_err_nomem(err);
	np_ns launch = np_cann_call_start(&self->launches, ops->conn[i]);
	np_ns at = launch != NP_NO_I64 ? launch : ops->start_ns[i];
	rows->start_ns[r] = ops->start_ns[i];
	rows->dur_ns[r] = ops->dur_ns[i];
	rows->conn[r] = ops->conn[i];
	rows->launch_ns[r] = launch;
	rows->step[r] = np_step_find(&self->steps, at);
	rows->within[r] = at >= self->job->from_ns && at <= self->job->to_ns;
	rows->size_bytes[r] = size_of(self, i);
	rows->nth[r] = 0;
	if (!set_names(self, r, ops->name[i], ops->group[i], text_of(self, ops->type[i])) ||
	    !np_digest_string(self->job->digest, &self->profile->strings, ops->dtype[i],
	                      &rows->dtype[r]))
		return np_err_nomem(err);
	return NP_OK;
}

/* "hcom_allReduce__865_0_1" → "hcom_allReduce_". */
static np_str type_of(np_str name)
{
	for (size_t i = 0; i + 1 < name.len; i++)
		if (name.ptr[i] == '_' && name.ptr[i + 1] == '_')
			return np_str_sub(name, 0, i + 1);
	return name;
}

static bool is_time(double value)
{
	return value >= 0 && value < MAX_EXACT; /* false for NaN */
}

static enum np_status add_summary(struct mapping *self, size_t i, struct np_err *err)
{
	const struct np_comm_time *t = &self->profile->comm_time;
	const struct np_cluster_options *options = self->job->options;
	struct np_digest_comm_calls *rows = self->rows;
	double start = t->start_us[i] * NS_PER_US, dur = t->elapse_ms[i] * NS_PER_MS;
	np_str name = text_of(self, t->op[i]);
	if (!np_is_comm_op_name(name) || !is_time(start) || !is_time(dur))
		return NP_OK;
	size_t r = np_rows_add(rows, &np_digest_comm_calls_desc);
	if (r == SIZE_MAX)
		return np_err_nomem(err);
	rows->start_ns[r] = llround(start);
	rows->dur_ns[r] = llround(dur);
	rows->conn[r] = rows->launch_ns[r] = NP_NO_I64;
	rows->step[r] = t->step[i];
	rows->within[r] =
		!options->has_step || t->step[i] == options->step || t->step[i] == NP_NO_I64;
	rows->size_bytes[r] = self->summary_bytes[i];
	rows->nth[r] = 0;
	rows->dtype[r] = NP_ID_NONE;
	if (!set_names(self, r, t->op[i], t->group[i], type_of(name)))
		return np_err_nomem(err);
	return NP_OK;
}

/* ── payloads of the summary ── */

/* summary_bytes: what all links of the op have moved; and summary_row. */
static bool look_at_summary(struct mapping *self)
{
	const struct np_comm_time *t = &self->profile->comm_time;
	const struct np_comm_bandwidth *b = &self->profile->comm_bandwidth;
	size_t n = t->n + b->n;
	struct np_groups groups = {0};
	uint32_t *op = np_realloc(NULL, n + 1, sizeof *op);
	uint32_t *group = np_realloc(NULL, n + 1, sizeof *group);
	uint32_t *step = np_realloc(NULL, n + 1, sizeof *step);
	self->summary_bytes = np_realloc(NULL, t->n + 1, sizeof *self->summary_bytes);
	bool ok = op && group && step && self->summary_bytes;
	for (size_t i = 0; ok && i < n; i++) {
		op[i] = i < t->n ? t->op[i] : b->op[i - t->n];
		group[i] = i < t->n ? t->group[i] : b->group[i - t->n];
		step[i] = (uint32_t)(i < t->n ? t->step[i] : b->step[i - t->n]);
	}
	const uint32_t *const keys[] = {op, group, step};
	ok = ok && np_group_rows(n, keys, 3, &groups);
	for (size_t g = 0; ok && g < groups.n; g++) {
		double mb = 0;
		for (size_t i = groups.start[g]; i < groups.start[g + 1]; i++)
			if (groups.order[i] >= t->n && isnan(b->package_mb[groups.order[i] - t->n]))
				mb += b->transit_mb[groups.order[i] - t->n];
		double bytes = mb * BYTES_PER_MB;
		for (size_t i = groups.start[g]; i < groups.start[g + 1]; i++)
			if (groups.order[i] < t->n)
				self->summary_bytes[groups.order[i]] =
					is_time(bytes) && bytes > 0 ? llround(bytes) : NP_NO_I64;
	}
	for (size_t i = t->n; ok && i-- > 0;)
		ok = np_map_put(&self->summary_row, t->op[i], (uint32_t)i);
	np_groups_release(&groups);
	np_free(op);
	np_free(group);
	np_free(step);
	return ok;
}

/* ── occurrences ── */

/* Rows are in order of time, and groups keep it. */
static bool number_occurrences(struct np_digest_comm_calls *rows)
{
	struct np_groups groups = {0};
	uint32_t *step = np_realloc(NULL, rows->n + 1, sizeof *step);
	for (size_t i = 0; step && i < rows->n; i++)
		step[i] = (uint32_t)rows->step[i];
	const uint32_t *const keys[] = {rows->name, rows->key, step};
	bool ok = step && np_group_rows(rows->n, keys, 3, &groups);
	np_free(step);
	for (size_t g = 0; ok && g < groups.n; g++)
		for (size_t i = 0; i < np_group_size(&groups, g); i++)
			rows->nth[groups.order[groups.start[g] + i]] = (uint32_t)i;
	np_groups_release(&groups);
	return ok;
}

static enum np_status fill(struct mapping *self, struct np_err *err)
{
	const struct np_profile *profile = self->profile;
	if (!np_cann_calls_init(&self->launches, profile, false) ||
	    !np_step_finder_init(&self->steps, &profile->steps) || !look_at_summary(self))
		return np_err_nomem(err);
	for (size_t i = 0; i < profile->comm_ops.n; i++)
		NP_TRY(add_recorded(self, i, err));
	for (size_t i = 0; profile->comm_ops.n == 0 && i < profile->comm_time.n; i++)
		NP_TRY(add_summary(self, i, err));
	return number_occurrences(self->rows) ? NP_OK : np_err_nomem(err);
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct mapping self = {.job = job,
	                       .profile = job->profile,
	                       .rows = np_digest_table(job->digest, &np_digest_comm_calls_desc)};
	np_map_init(&self.launches.row_of);
	np_map_init(&self.summary_row);
	enum np_status status = fill(&self, err);
	np_cann_calls_release(&self.launches);
	np_step_finder_release(&self.steps);
	np_map_release(&self.summary_row);
	np_free(self.summary_bytes);
	return status;
}

static const struct np_table_desc *const tables[] = {&np_digest_comm_calls_desc, NULL};

const struct np_part np_part_comm_calls = {
	.name = "comm_calls",
	.revision = 1,
	.load = NP_COMM_OPS | NP_HOST_CANN | NP_STEPS | NP_COMM_SUMMARY,
	.by_options = true,
	.tables = tables,
	.map = map,
};
