#include "cluster/parts.h"

#define NP_TAG np_digest_comm_ops
NP_TABLE_DESC(, np_digest_comm_ops, "comm_ops", NP_DIGEST_COMM_OPS_COLUMNS)
#undef NP_TAG

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
		    !np_digest_string(job->digest, strings, ops->group[i], &rows->group[r]) ||
		    !np_digest_string(job->digest, strings, ops->dtype[i], &rows->dtype[r]))
			return np_err_nomem(err);
	}
	return NP_OK;
}

static const struct np_table_desc *const tables[] = {&np_digest_comm_ops_desc, NULL};

const struct np_part np_part_comm_ops = {
	.name = "comm_ops",
	.revision = 2,
	.load = NP_COMM_OPS,
	.tables = tables,
	.map = map,
};
