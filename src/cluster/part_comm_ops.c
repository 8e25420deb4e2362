#include "cluster/parts.h"

#define NP_TAG np_digest_comm_ops
NP_TABLE_DESC(, np_digest_comm_ops, "comm_ops", NP_DIGEST_COMM_OPS_COLUMNS)
#undef NP_TAG

/* The group of an op; where the trace has only the number of its lane, which is another group
 * on another rank, the end of the hash that stands in the op's name. */
static bool set_group(const struct np_map_job *job, size_t i, np_id *out)
{
	const struct np_comm_ops *ops = &job->profile->comm_ops;
	const struct np_intern *strings = &job->profile->strings;
	np_str domain = np_comm_domain(np_intern_get(strings, ops->name[i]));
	if (ops->group[i] == NP_ID_NONE || domain.len == 0 ||
	    !np_is_lane_number(np_intern_get(strings, ops->group[i])))
		return np_digest_string(job->digest, strings, ops->group[i], out);
	*out = np_intern_add(&job->digest->strings, domain);
	return *out != NP_ID_NONE;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	const struct np_comm_ops *ops = &job->profile->comm_ops;
	const struct np_intern *strings = &job->profile->strings;
	struct np_digest_comm_ops *rows = np_digest_table(job->digest, &np_digest_comm_ops_desc);
	for (size_t i = 0; i < ops->n; i++) {
		if (ops->start_ns[i] < job->from_ns || ops->start_ns[i] > job->to_ns)
			continue;
		size_t r = np_rows_add(rows, &np_digest_comm_ops_desc);
		if (r == SIZE_MAX)
			return np_err_nomem(err);
		rows->start_ns[r] = ops->start_ns[i];
		rows->dur_ns[r] = ops->dur_ns[i];
		rows->count[r] = ops->count[i];
		if (!np_digest_string(job->digest, strings, ops->name[i], &rows->name[r]) ||
		    !np_digest_string(job->digest, strings, ops->type[i], &rows->type[r]) ||
		    !set_group(job, i, &rows->group[r]) ||
		    !np_digest_string(job->digest, strings, ops->dtype[i], &rows->dtype[r]))
			return np_err_nomem(err);
	}
	return NP_OK;
}

static const struct np_table_desc *const tables[] = {&np_digest_comm_ops_desc, NULL};

const struct np_part np_part_comm_ops = {
	.name = "comm_ops",
	.revision = 3,
	.load = NP_COMM_OPS,
	.tables = tables,
	.map = map,
};
