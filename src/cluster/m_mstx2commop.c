/*
 * mstx2commop (cluster_and_advisor.md §2.24): collectives from messages of mstx, where the
 * capture has recorded none. With -o each database is copied, with a COMMUNICATION_OP.
 */
#include <string.h>

#include "cluster/commop_db.h"
#include "cluster/export.h"
#include "cluster/internal.h"
#include "cluster/parts.h"

#define COPIES "Mstx2Commop"

static const struct np_column columns[] = {
	{"rank", "", NP_COL_INT, "rank"},
	{"opName", "", NP_COL_TEXT, "type, last digits of the group's hash, number in the group"},
	{"startNs", "", NP_COL_INT, "start of the mark's task"},
	{"endNs", "", NP_COL_INT, "its end"},
	{"connectionId", "", NP_COL_INT, "connection of mark and task"},
	{"groupName", "", NP_COL_TEXT, "communicator"},
	{"dataType", "", NP_COL_TEXT, "data type"},
	{"count", "", NP_COL_INT, "elements"},
	{"opType", "", NP_COL_TEXT, "type of collective"},
};

static const struct np_digest_commop *rows_of(const struct np_cluster *cluster, size_t rank)
{
	return NP_DIGEST_ROWS(&cluster->ranks.v[rank], np_digest_commop);
}

static void int_or_na(struct np_table *table, int64_t value)
{
	if (value == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, value);
}

static void rank_rows(const struct np_cluster *cluster, size_t rank, struct np_table *table)
{
	const struct np_digest_commop *rows = rows_of(cluster, rank);
	for (size_t i = 0; i < rows->n; i++) {
		np_cell_int(table, cluster->ranks.v[rank].rank);
		np_cell_text(table, np_cluster_text(cluster, rows->name[i]));
		np_cell_int(table, rows->start_ns[i]);
		np_cell_int(table, rows->end_ns[i]);
		int_or_na(table, rows->conn[i]);
		np_cell_text(table, np_cluster_text(cluster, rows->group[i]));
		np_cell_text(table, np_cluster_text(cluster, rows->dtype[i]));
		int_or_na(table, rows->count[i]);
		np_cell_text(table, np_cluster_text(cluster, rows->type[i]));
	}
}

/* ── what there is not ── */

struct seen {
	size_t recorded, lone, cut; /* ranks; messages; ranks */
};

static struct seen look(const struct np_cluster *cluster, bool *has)
{
	struct seen seen = {0};
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_commop_facts *facts =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_commop_facts);
		has[r] = rows_of(cluster, r)->n > 0;
		if (facts->n == 0)
			continue;
		seen.recorded += facts->recorded[0] > 0;
		seen.lone += (size_t)facts->lone[0];
		seen.cut += facts->cut[0];
		has[r] |= facts->recorded[0] > 0;
	}
	return seen;
}

static void tell(struct np_cluster *cluster, const struct np_recipe *self, const struct seen *seen,
                 const bool *has)
{
	if (seen->recorded > 0)
		np_report_note(cluster->report,
		               "mstx2commop: %zu of %zu ranks have recorded collectives themselves "
		               "and are left as they are",
		               seen->recorded, cluster->ranks.n);
	if (seen->lone > 0)
		(void)np_report_finding(cluster->report, "CLUSTER_COMMOP_NO_TASK", NP_WARNING,
		                        "%zu messages describe a collective, but have no task on "
		                        "a stream: they are left out",
		                        seen->lone);
	if (seen->cut > 0)
		(void)np_report_finding(cluster->report, "CLUSTER_COMMOP_CUT", NP_WARNING,
		                        "the official join of messages with streams makes more "
		                        "rows than can be kept on %zu ranks: without --compat "
		                        "each message is one row",
		                        seen->cut);
	np_cluster_lacking(cluster, self, has, "messages of mstx that describe a collective");
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	size_t n = 0;
	for (size_t r = 0; has && r < cluster->ranks.n; r++)
		n += rows_of(cluster, r)->n;
	if (!has)
		return np_err_nomem(err);
	struct seen seen = look(cluster, has);
	if (n == 0 && seen.recorded > 0)
		np_cluster_nothing(cluster, self,
		                   "the captures have recorded their collectives themselves");
	else if (n == 0)
		np_cluster_nothing(cluster, self, "no message of mstx describes a collective");
	if (n > 0) {
		struct np_table *table =
			NP_REPORT_TABLE(cluster->report, COPIES, "Collectives from mstx", columns);
		for (size_t r = 0; r < cluster->ranks.n; r++)
			rank_rows(cluster, r, table);
		tell(cluster, self, &seen, has);
	}
	np_free(has);
	return NP_OK;
}

/* ── copies ── */

static const char *database_of(const struct np_capture *capture)
{
	const struct np_file *file = np_capture_file(capture, NP_ROLE_PROFILER_DB);
	if (!file)
		file = np_capture_file(capture, NP_ROLE_MSPROF_DB);
	return file ? file->path : NULL;
}

/* "rank_0/ASCEND_PROFILER_OUTPUT" of /data/run/rank_0/ASCEND_PROFILER_OUTPUT/x.db */
static const char *directory_below(struct np_cluster *cluster, const char *path)
{
	const char *root = cluster->all->root, *name = strrchr(path, '/');
	size_t len = root ? strlen(root) : 0;
	while (len > 0 && root[len - 1] == '/')
		len--;
	const char *from = len > 0 && strncmp(path, root, len) == 0 && path[len] == '/'
	                           ? path + len + 1
	                           : path;
	if (!name || name <= from || *from == '/' || strstr(from, "../"))
		return "";
	np_str below = {from, (size_t)(name - from)};
	return np_arena_cstr(&cluster->arena, below);
}

static enum np_status copy_rank(struct np_export *out, const struct np_cluster_rank *rank,
                                const struct np_digest_commop *rows, struct np_err *err)
{
	const char *from = database_of(rank->capture);
	if (!from) {
		np_report_note(out->cluster->report,
		               "mstx2commop: rank %lld has no database to be copied",
		               (long long)rank->rank);
		return NP_OK;
	}
	const char *below = directory_below(out->cluster, from);
	const char *sub = below ? np_path_join(&out->cluster->arena, COPIES, below) : NULL;
	const char *name = strrchr(from, '/') ? strrchr(from, '/') + 1 : from;
	if (!sub)
		return np_err_nomem(err);
	const char *to = np_export_path(out, sub, name, err);
	if (!to)
		return err ? err->code : NP_E_IO;
	return np_commop_db_write(from, to, &out->cluster->strings, rows, err);
}

static enum np_status export(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_export *out, struct np_err *err) {
	(void)self; if (out->type != NP_EXPORT_DB) return NP_OK;
	for (size_t r = 0; r < cluster->ranks.n; r++) if (rows_of(cluster, r)->n > 0)
		NP_TRY(copy_rank(out, &cluster->ranks.v[r], rows_of(cluster, r), err));
	return NP_OK;
}

static const struct np_part *const parts[] = {&np_part_commop, NULL};

static const struct np_recipe_file files[] = {
	{.table = COPIES, .csv = "mstx2commop.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_mstx2commop = {
	.name = "mstx2commop",
	.dir = COPIES,
	.summary = NP_N("collectives from messages of mstx, where none are recorded"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
	.export = export,
};
