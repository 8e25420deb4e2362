/* The smaller tables of the built-in modes (cluster_and_advisor.md §2.3, §2.4, §2.6). */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_files.h"
#include "cluster/internal.h"

static bool is_there(const struct np_cluster *cluster, const char *id)
{
	return np_export_table(cluster, id) != NULL;
}

/* ── CommunicationGroupMapping ── */

static const struct np_column group_columns[] = {
	{"type", "", NP_COL_TEXT, "collective or p2p"},
	{"rank_set", "", NP_COL_TEXT,
         "its ranks: parallel_group_info's, else those with ops of it"},
	{"group_name", "", NP_COL_TEXT, "decimal hash of the communicator's name"},
	{"group_id", "", NP_COL_TEXT, "name of the communicator"},
	{"pg_name", "", NP_COL_TEXT, "what the framework calls it: tp, dp, pp …"},
};

void np_table_groups(struct np_cluster *cluster, const struct np_comm_groups *groups)
{
	if (is_there(cluster, "CommunicationGroupMapping"))
		return;
	struct np_table *table = NP_REPORT_TABLE(cluster->report, "CommunicationGroupMapping",
	                                         "Communicators and their ranks", group_columns);
	struct np_buf ranks = {0};
	for (size_t g = 0; g < groups->v.n; g++) {
		const struct np_comm_group *group = &groups->v.v[g];
		np_buf_clear(&ranks);
		struct np_ranks shown = {0};
		if (!group->shown_empty)
			shown = group->ranks;
		np_ranks_print(shown, false, &ranks);
		np_cell_cstr(table, group->p2p ? "p2p" : "collective");
		np_cell_text(table, np_buf_str(&ranks));
		np_cell_text(table, np_cluster_text(cluster, group->name));
		np_cell_cstr(table, group->info ? group->info->comm_name : "");
		np_cell_cstr(table, group->info ? group->info->name : "");
	}
	cluster->report->failed |= ranks.failed;
	np_buf_release(&ranks);
}

/* ── ClusterStepTraceTime ── */

static const struct np_column step_columns[] = {
	{"step", "", NP_COL_TEXT, "step"},
	{"type", "", NP_COL_TEXT, "rank, or stage: the largest value of its ranks"},
	{"index", "", NP_COL_TEXT, "the rank, or the ranks of the stage"},
	{"computing", "us", NP_COL_REAL, "computing"},
	{"communication_not_overlapped", "us", NP_COL_REAL, "communicating, not computing"},
	{"overlapped", "us", NP_COL_REAL, "communicating and computing"},
	{"communication", "us", NP_COL_REAL, "communicating"},
	{"free", "us", NP_COL_REAL, "neither"},
	{"stage", "us", NP_COL_REAL, "the step without its bubble"},
	{"bubble", "us", NP_COL_REAL, "in hcom_receive"},
	{"communication_not_overlapped_and_exclude_receive", "us", NP_COL_REAL,
         "communicating, not computing, not in hcom_receive"},
	{"preparing", "us", NP_COL_REAL, "before the first task of the step"},
	{"dp_index", "", NP_COL_TEXT, "data parallel position; NA: a stage"},
	{"pp_index", "", NP_COL_TEXT, "pipeline position"},
	{"tp_index", "", NP_COL_TEXT, "tensor parallel position"},
};

const char *const np_step_types[15] = {
	[3] = "NUMERIC",  [4] = "NUMERIC",  [5] = "NUMERIC",  [6] = "NUMERIC",
	[7] = "NUMERIC",  [8] = "NUMERIC",  [9] = "NUMERIC",  [10] = "NUMERIC",
	[11] = "NUMERIC", [12] = "INTEGER", [13] = "INTEGER", [14] = "INTEGER",
};

enum { N_TIMES = 9 };

struct step_row {
	int64_t step;
	size_t rank, stage; /* rows of the cluster, of the stages */
	double v[N_TIMES];
};

struct step_table {
	struct np_cluster *cluster;
	struct np_table *table;
	struct np_pipe stages;
	struct np_parallel sizes;
	enum np_position_state parallel;
	NP_VEC(struct step_row) rows;
	NP_VEC(struct step_row) maxima; /* of the stages, rank unused */
};

static void get_times(const struct np_digest_step_trace *t, size_t i, double v[N_TIMES])
{
	const double *const columns[N_TIMES] = {
		t->computing,  t->comm_not_overlapped,
		t->overlapped, t->comm,
		t->free,       t->stage,
		t->bubble,     t->comm_not_overlapped_exclude_receive,
		t->preparing};
	for (size_t c = 0; c < N_TIMES; c++)
		v[c] = columns[c][i];
}

static bool collect_steps(struct step_table *self)
{
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_cluster_rank *rank = &self->cluster->ranks.v[r];
		const struct np_digest_step_trace *t = NP_DIGEST_ROWS(rank, np_digest_step_trace);
		for (size_t i = 0; i < t->n; i++) {
			struct step_row row = {.step = t->step[i],
			                       .rank = r,
			                       .stage = np_pipe_of(&self->stages, rank->rank)};
			get_times(t, i, row.v);
			if (!np_vec_push(&self->rows, row))
				return false;
		}
	}
	return true;
}

static int by_stage(const void *a, const void *b)
{
	const struct step_row *x = a, *y = b;
	if (x->stage != y->stage)
		return x->stage < y->stage ? -1 : 1;
	return (x->step > y->step) - (x->step < y->step);
}

/* The column-wise maximum of the ranks of each stage and step. */
static bool find_maxima(struct step_table *self)
{
	if (self->stages.v.n == 0)
		return true;
	if (!np_vec_reserve(&self->maxima, self->rows.n))
		return false;
	for (size_t i = 0; i < self->rows.n; i++)
		self->maxima.v[i] = self->rows.v[i];
	if (self->rows.n > 0)
		qsort(self->maxima.v, self->rows.n, sizeof *self->maxima.v, by_stage);
	for (size_t i = 0; i < self->rows.n; i++) {
		struct step_row *row = &self->maxima.v[i];
		struct step_row *last = self->maxima.n ? &self->maxima.v[self->maxima.n - 1] : NULL;
		if (!last || by_stage(last, row) != 0) {
			self->maxima.v[self->maxima.n++] = *row;
			continue;
		}
		for (size_t c = 0; c < N_TIMES; c++)
			last->v[c] = isnan(last->v[c]) || row->v[c] > last->v[c] ? row->v[c]
			                                                         : last->v[c];
	}
	return true;
}

static void put_index(struct step_table *self, bool stage, int64_t rank)
{
	if (self->parallel != NP_POSITIONS_OK) {
		/* not known is not 0, as the official tool would have it */
		for (size_t i = 0; i < 3; i++)
			np_cell_cstr(self->table, self->cluster->options->compat ? "0" : NULL);
		return;
	}
	struct np_position at = np_position_of(&self->sizes, rank);
	const int64_t index[] = {at.dp, at.pp, at.tp};
	for (size_t i = 0; i < 3; i++) {
		if (stage)
			np_cell_cstr(self->table, "NA");
		else
			np_cell_printf(self->table, "%lld", (long long)index[i]);
	}
}

static void put_row(struct step_table *self, const struct step_row *row, bool stage)
{
	struct np_buf ranks = {0};
	int64_t rank = self->cluster->ranks.v[row->rank].rank;
	if (row->step == NP_NO_I64)
		np_cell_cstr(self->table, "");
	else
		np_cell_printf(self->table, "%lld", (long long)row->step);
	np_cell_cstr(self->table, stage ? "stage" : "rank");
	if (stage) {
		struct np_ranks shown = {0};
		if (row->stage != SIZE_MAX)
			shown = self->stages.v.v[row->stage];
		np_ranks_print(shown, false, &ranks);
		np_cell_text(self->table, np_buf_str(&ranks));
	} else {
		np_cell_printf(self->table, "%lld", (long long)rank);
	}
	for (size_t c = 0; c < N_TIMES; c++)
		np_cell_real(self->table, row->v[c]);
	put_index(self, stage, rank);
	self->cluster->report->failed |= ranks.failed;
	np_buf_release(&ranks);
}

static void tell_mismatch(struct step_table *self)
{
	const struct np_parallel *p = &self->sizes;
	struct np_finding *finding = np_report_finding(
		self->cluster->report, "CLUSTER_PARALLEL_MISMATCH", NP_WARNING,
		"the recorded parallel sizes do not fit: tp %lld, pp %lld, dp %lld, cp %lld, "
		"world %lld",
		(long long)p->tp, (long long)p->pp, (long long)p->dp, (long long)p->cp,
		(long long)p->world);
	np_finding_detail(finding, "%s",
	                  "The world must be their product and larger than every rank; the "
	                  "positions of the ranks are left out.");
	np_cluster_exit(self->cluster, 3);
}

bool np_table_steps(struct np_cluster *cluster, const struct np_comm_groups *groups)
{
	struct step_table self = {.cluster = cluster};
	if (is_there(cluster, "ClusterStepTraceTime"))
		return true;
	bool ok = np_pipe_make(&self.stages, groups) && collect_steps(&self) && find_maxima(&self);
	if (ok && self.rows.n > 0) {
		self.parallel = np_positions_of(cluster, &self.sizes);
		if (self.parallel == NP_POSITIONS_MISMATCH)
			tell_mismatch(&self);
		self.table = NP_REPORT_TABLE(cluster->report, "ClusterStepTraceTime",
		                             "Steps of the ranks", step_columns);
	}
	for (size_t i = 0; ok && i < self.rows.n; i++)
		put_row(&self, &self.rows.v[i], false);
	for (size_t i = 0; ok && i < self.maxima.n; i++)
		put_row(&self, &self.maxima.v[i], true);
	np_vec_release(&self.rows);
	np_vec_release(&self.maxima);
	np_pipe_release(&self.stages);
	return ok;
}

/* ── ClusterBaseInfo, HostInfo, RankDeviceMap ── */

static const struct np_column base_columns[] = {
	{"key", "", NP_COL_TEXT, "distributed_args"},
	{"value", "", NP_COL_TEXT, "parallel sizes as the training has recorded them, JSON"}};
static const struct np_column host_columns[] = {{"hostUid", "", NP_COL_TEXT, "id of the host"},
                                                {"hostName", "", NP_COL_TEXT, "its name"}};
static const struct np_column device_columns[] = {
	{"rankId", "", NP_COL_INT, "rank"},
	{"deviceId", "", NP_COL_INT, "device on its host"},
	{"hostUid", "", NP_COL_TEXT, "id of its host"},
	{"profilePath", "", NP_COL_TEXT, "where its capture lies"}};

static void base_info(struct np_cluster *cluster)
{
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const char *args = cluster->ranks.v[r].capture->distributed_args;
		if (!*args)
			continue;
		struct np_table *table =
			NP_REPORT_TABLE(cluster->report, "ClusterBaseInfo",
		                        "What the training recorded", base_columns);
		np_cell_cstr(table, "distributed_args");
		np_cell_cstr(table, args);
		return;
	}
}

/* The official tool knows hosts from HOST_INFO only, we also from info.json. */
static bool has_host(const struct np_cluster *cluster, const struct np_capture *capture)
{
	if (cluster->options->compat && !(capture->formats & NP_HAS_DB))
		return false;
	return capture->host_uid && *capture->host_uid &&
	       (capture->n_rank_devices > 0 || capture->device != NP_NO_I64);
}

static int by_host(const void *a, const void *b)
{
	const struct np_capture *x = *(const struct np_capture *const *)a;
	const struct np_capture *y = *(const struct np_capture *const *)b;
	int order = strcmp(x->host_uid, y->host_uid);
	return order ? order : strcmp(x->host, y->host);
}

static bool hosts(struct np_cluster *cluster)
{
	NP_VEC(const struct np_capture *) all = {0};
	bool ok = true;
	for (size_t r = 0; ok && r < cluster->ranks.n; r++)
		if (has_host(cluster, cluster->ranks.v[r].capture))
			ok = np_vec_push(&all, cluster->ranks.v[r].capture);
	if (all.n > 0) {
		qsort(all.v, all.n, sizeof *all.v, by_host);
		struct np_table *table =
			NP_REPORT_TABLE(cluster->report, "HostInfo", "Hosts", host_columns);
		for (size_t i = 0; i < all.n; i++) {
			if (i > 0 && by_host(&all.v[i - 1], &all.v[i]) == 0)
				continue;
			np_cell_cstr(table, all.v[i]->host_uid);
			np_cell_cstr(table, all.v[i]->host);
		}
	}
	np_vec_release(&all);
	return ok;
}

static void device_row(struct np_table *table, const struct np_capture *capture, int64_t rank,
                       int64_t device)
{
	char path[PATH_MAX];
	np_cell_int(table, rank);
	if (device == NP_NO_I64)
		np_cell_na(table);
	else
		np_cell_int(table, device);
	np_cell_cstr(table, capture->host_uid);
	np_cell_cstr(table, realpath(capture->path, path) ? path : capture->path);
}

static void devices(struct np_cluster *cluster)
{
	struct np_table *table = NULL;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_capture *capture = cluster->ranks.v[r].capture;
		if (!has_host(cluster, capture))
			continue;
		if (!table)
			table = NP_REPORT_TABLE(cluster->report, "RankDeviceMap",
			                        "Ranks and devices", device_columns);
		for (size_t i = 0; i < capture->n_rank_devices; i++) {
			const struct np_rank_device *row = &capture->rank_devices[i];
			device_row(table, capture,
			           row->rank == NP_NO_I64 ? cluster->ranks.v[r].rank : row->rank,
			           row->device);
		}
		if (capture->n_rank_devices == 0)
			device_row(table, capture, cluster->ranks.v[r].rank, capture->device);
	}
}

void np_table_identity(struct np_cluster *cluster)
{
	if (!is_there(cluster, "ClusterBaseInfo"))
		base_info(cluster);
	if (is_there(cluster, "RankDeviceMap"))
		return;
	cluster->report->failed |= !hosts(cluster);
	devices(cluster);
}
