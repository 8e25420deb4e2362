#include "cluster/comm_modes.h"

#include <string.h>

#include "cluster/internal.h"

const struct np_part *const np_comm_parts[] = {&np_part_comm_times, &np_part_comm_matrix, NULL};

static const struct np_recipe_file time_file = {.table = "ClusterCommunicationTime",
                                                .csv = "cluster_communication_time.csv"};
static const struct np_recipe_file bandwidth_file = {.table = "ClusterCommunicationBandwidth",
                                                     .csv = "cluster_communication_bandwidth.csv"};
static const struct np_recipe_file matrix_file = {.table = "ClusterCommunicationMatrix",
                                                  .csv = "cluster_communication_matrix.csv"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ── who has data ── */

static bool has_data(const struct np_cluster_rank *rank, unsigned what)
{
	return ((what & NP_COMM_SHOW_TIMES) && NP_DIGEST_ROWS(rank, np_digest_comm_times)->n > 0) ||
	       ((what & NP_COMM_SHOW_MATRIX) && NP_DIGEST_ROWS(rank, np_digest_comm_matrix)->n > 0);
}

static bool tell_lacking(struct np_cluster *cluster, const struct np_recipe *recipe, unsigned what,
                         bool *any)
{
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	*any = false;
	for (size_t r = 0; has && r < cluster->ranks.n; r++) {
		has[r] = has_data(&cluster->ranks.v[r], what);
		*any |= has[r];
	}
	if (has && *any)
		np_cluster_lacking(cluster, recipe, has,
		                   "communication.json, communication_matrix.json or "
		                   "CommAnalyzer tables");
	else if (has)
		np_cluster_nothing(cluster, recipe, "%s",
		                   "no rank has communication.json, communication_matrix.json or "
		                   "CommAnalyzer tables (captures of level1 and above have them)");
	np_free(has);
	return has != NULL;
}

/* ── per group ── */

static const struct np_column group_columns[] = {
	{"group", "", NP_COL_TEXT, "what the framework calls the group, else its hash"},
	{"type", "", NP_COL_TEXT, "collective or p2p"},
	{"ranks", "", NP_COL_INT, "ranks with ops of it"},
	{"ops", "", NP_COL_INT, "ops of all its ranks"},
	{"elapse", "ms", NP_COL_REAL, "from start to end, sum over ops and ranks"},
	{"transit", "ms", NP_COL_REAL, "of that on the links"},
	{"wait", "ms", NP_COL_REAL, "of that waiting for others"},
	{"synchronization", "ms", NP_COL_REAL, "of the waiting: before the first transit"},
	{"idle", "ms", NP_COL_REAL, "the rest"},
	{"wait_share", "", NP_COL_PERCENT, "wait / (wait + transit)"},
};

struct group_sum {
	struct np_comm_sums sums;
	int64_t ops;
};

static void group_row(struct np_table *table, const struct np_cluster *cluster,
                      const struct np_comm_group *group, const struct group_sum *sum)
{
	const struct np_comm_sums *s = &sum->sums;
	if (group->info && *group->info->name)
		np_cell_cstr(table, group->info->name);
	else
		np_cell_text(table, np_cluster_text(cluster, group->name));
	np_cell_cstr(table, group->p2p ? "p2p" : "collective");
	np_cell_int(table, (int64_t)group->seen.n);
	np_cell_int(table, sum->ops);
	np_cell_real(table, s->elapse);
	np_cell_real(table, s->transit);
	np_cell_real(table, s->wait);
	np_cell_real(table, s->sync);
	np_cell_real(table, s->idle);
	np_cell_real(table, np_comm_ratio(s->wait, s->transit));
}

static bool show_groups(struct np_cluster *cluster, const struct np_comm_groups *groups)
{
	struct group_sum *sums = np_calloc(groups->v.n + 1, sizeof *sums);
	for (size_t r = 0; sums && r < cluster->ranks.n; r++) {
		const struct np_digest_comm_times *t =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_comm_times);
		for (size_t i = 0; i < t->n; i++) {
			size_t g = np_comm_groups_find(groups, t->group[i], t->p2p[i]);
			sums[g].ops++;
			np_comm_sum(&sums[g].sums, t, i);
		}
	}
	struct np_table *table = NP_REPORT_TABLE(cluster->report, "communication_groups",
	                                         "Communication by group", group_columns);
	for (size_t g = 0; sums && g < groups->v.n; g++)
		if (sums[g].ops > 0)
			group_row(table, cluster, &groups->v.v[g], &sums[g]);
	np_free(sums);
	return sums != NULL;
}

/* ── per kind of link ── */

static const struct np_column link_columns[] = {
	{"transport", "", NP_COL_TEXT, "LOCAL, HCCS, PCIE, RDMA, SIO"},
	{"links", "", NP_COL_INT, "pairs of ranks in a group that use it"},
	{"size", "MB", NP_COL_REAL, "moved, sum over links and steps"},
	{"time", "ms", NP_COL_REAL, "time of that"},
	{"bandwidth", "GB/s", NP_COL_REAL, "size / time"},
	{"slowest", "", NP_COL_TEXT, "link with the lowest bandwidth in a step: from-to"},
	{"slowest_bandwidth", "GB/s", NP_COL_REAL, "of that link"},
};

struct transport_sum {
	np_id transport;
	int64_t links;
	double mb, ms, least;
	const struct np_comm_link_sum *slowest;
};

enum { MAX_TRANSPORTS = 16 };

static size_t sum_transports(const struct np_comm_matrix_sums *sums, struct transport_sum *out)
{
	size_t n = 0;
	for (size_t i = 0; i < sums->v.n; i++) {
		const struct np_comm_link_sum *link = &sums->v.v[i];
		size_t t = 0;
		if (link->kind != NP_ID_NONE)
			continue;
		while (t < n && out[t].transport != link->transport)
			t++;
		if (t == MAX_TRANSPORTS)
			continue;
		if (t == n)
			out[n++] = (struct transport_sum){.transport = link->transport};
		out[t].links++;
		out[t].mb += link->mb;
		out[t].ms += link->ms;
		double gbps = np_comm_gbps(link->mb, link->ms);
		if (link->mb > 0 && link->ms > 0 && (!out[t].slowest || gbps < out[t].least)) {
			out[t].least = gbps;
			out[t].slowest = link;
		}
	}
	return n;
}

static void show_links(struct np_cluster *cluster, const struct np_comm_matrix_sums *sums)
{
	struct transport_sum of[MAX_TRANSPORTS];
	size_t n = sum_transports(sums, of);
	struct np_table *table = NP_REPORT_TABLE(cluster->report, "communication_links",
	                                         "Communication by kind of link", link_columns);
	for (size_t t = 0; t < n; t++) {
		np_cell_text(table, np_cluster_text(cluster, of[t].transport));
		np_cell_int(table, of[t].links);
		np_cell_real(table, of[t].mb);
		np_cell_real(table, of[t].ms);
		np_cell_real(table, np_comm_gbps(of[t].mb, of[t].ms));
		if (!of[t].slowest) {
			np_cell_na(table);
			np_cell_na(table);
			continue;
		}
		np_cell_printf(table, "%lld-%lld", (long long)of[t].slowest->src,
		               (long long)of[t].slowest->dst);
		np_cell_real(table, of[t].least);
	}
	if (sums->unmapped == 0)
		return;
	(void)np_report_finding(
		cluster->report, "CLUSTER_LINK_UNMAPPED", NP_WARNING,
		"%llu rows of the matrix are left out: nothing tells which rank of the cluster a "
		"rank of their group is",
		(unsigned long long)sums->unmapped);
	np_cluster_exit(cluster, 3);
}

/* ── the full tables in the report ── */

static bool is_full(const struct np_cluster *cluster)
{
	return cluster->options->full_tables && cluster->ranks.n <= NP_FULL_TABLES_RANKS;
}

static void tell_left_out(struct np_cluster *cluster)
{
	if (cluster->options->full_tables && !is_full(cluster))
		np_report_note(cluster->report,
		               "more than %d ranks: the tables ClusterCommunication… are in the "
		               "files of -o only",
		               NP_FULL_TABLES_RANKS);
}

static enum np_status full_times(struct np_cluster *cluster, const struct np_comm_groups *groups,
                                 struct np_err *err)
{
	struct np_sink sink;
	np_sink_report(&sink,
	               NP_REPORT_TABLE(cluster->report, time_file.table, "Collectives of all ranks",
	                               np_comm_time_columns),
	               err);
	NP_TRY(np_comm_time_rows(cluster, groups, &sink, err));
	np_sink_report(&sink,
	               NP_REPORT_TABLE(cluster->report, bandwidth_file.table,
	                               "Bandwidth of all ranks", np_comm_bandwidth_columns),
	               err);
	return np_comm_bandwidth_rows(cluster, &sink, err);
}

static void full_matrix(struct np_cluster *cluster, const struct np_comm_matrix_sums *sums,
                        struct np_err *err)
{
	struct np_sink sink;
	np_sink_report(&sink,
	               NP_REPORT_TABLE(cluster->report, matrix_file.table, "Links of all ranks",
	                               np_comm_matrix_columns),
	               err);
	np_comm_matrix_rows(cluster, sums, &sink);
}

static bool is_shown(const struct np_cluster *cluster, const char *id)
{
	return np_export_table(cluster, id) != NULL;
}

enum np_status np_comm_reduce(struct np_cluster *cluster, const struct np_recipe *recipe,
                              const struct np_comm_groups *groups, unsigned what, bool *any,
                              struct np_err *err)
{
	if (!tell_lacking(cluster, recipe, what, any))
		return np_err_nomem(err);
	if (!*any)
		return NP_OK;
	if ((what & NP_COMM_SHOW_TIMES) && !is_shown(cluster, "communication_groups")) {
		if (!show_groups(cluster, groups))
			return np_err_nomem(err);
		if (is_full(cluster))
			NP_TRY(full_times(cluster, groups, err));
		tell_left_out(cluster);
	}
	if (!(what & NP_COMM_SHOW_MATRIX) || is_shown(cluster, "communication_links"))
		return NP_OK;
	struct np_comm_matrix_sums sums;
	bool ok = np_comm_matrix_sum(&sums, cluster, groups, false);
	if (ok)
		show_links(cluster, &sums);
	if (ok && is_full(cluster))
		full_matrix(cluster, &sums, err);
	np_comm_matrix_release(&sums);
	return ok ? NP_OK : np_err_nomem(err);
}

/* ── the full tables in files ── */

static enum np_status open_sink(struct np_export *out, const struct np_recipe *recipe,
                                const struct np_recipe_file *file, const struct np_column *columns,
                                size_t n_columns, struct np_sink *sink, struct np_err *err)
{
	if (out->type == NP_EXPORT_DB) {
		np_sink_db(sink, out->db, file, columns, n_columns, err);
		return sink->status;
	}
	const char *path = np_export_path(out, recipe->dir, file->csv, err);
	if (!path)
		return NP_E_IO;
	np_sink_csv(sink, path, file, columns, n_columns, err);
	return sink->status;
}

static enum np_status close_sink(struct np_sink *sink, enum np_status made)
{
	if (made != NP_OK && sink->status == NP_OK)
		sink->status = made;
	return np_sink_end(sink);
}

static enum np_status export_times(struct np_export *out, const struct np_recipe *recipe,
                                   const struct np_comm_groups *groups, struct np_err *err)
{
	struct np_sink sink;
	NP_TRY(open_sink(out, recipe, &time_file, np_comm_time_columns, COUNT(np_comm_time_columns),
	                 &sink, err));
	NP_TRY(close_sink(&sink, np_comm_time_rows(out->cluster, groups, &sink, err)));
	NP_TRY(open_sink(out, recipe, &bandwidth_file, np_comm_bandwidth_columns,
	                 COUNT(np_comm_bandwidth_columns), &sink, err));
	return close_sink(&sink, np_comm_bandwidth_rows(out->cluster, &sink, err));
}

static enum np_status export_matrix(struct np_export *out, const struct np_recipe *recipe,
                                    const struct np_comm_groups *groups, struct np_err *err)
{
	struct np_comm_matrix_sums sums;
	struct np_sink sink;
	enum np_status status =
		np_comm_matrix_sum(&sums, out->cluster, groups, false) ? NP_OK : np_err_nomem(err);
	if (status == NP_OK && sums.v.n > 0) {
		status = open_sink(out, recipe, &matrix_file, np_comm_matrix_columns,
		                   COUNT(np_comm_matrix_columns), &sink, err);
		if (status == NP_OK) {
			np_comm_matrix_rows(out->cluster, &sums, &sink);
			status = np_sink_end(&sink);
		}
	}
	np_comm_matrix_release(&sums);
	return status;
}

enum np_status np_comm_export(struct np_export *out, const struct np_recipe *recipe,
                              const struct np_comm_groups *groups, unsigned what,
                              struct np_err *err)
{
	bool times = false, matrix = false;
	for (size_t r = 0; r < out->cluster->ranks.n; r++) {
		times |= has_data(&out->cluster->ranks.v[r], what & NP_COMM_SHOW_TIMES);
		matrix |= has_data(&out->cluster->ranks.v[r], what & NP_COMM_SHOW_MATRIX);
	}
	if (times)
		NP_TRY(export_times(out, recipe, groups, err));
	return matrix ? export_matrix(out, recipe, groups, err) : NP_OK;
}
