/* analysis.db: the step table by §3.12, and the communication tables, in which
 * the numbers are those of communication.json. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "synth/db_out.h"
#include "synth/write_comm.h"

static const struct np_db_table step_table = {
	"StepTraceTime",
	"deviceId INTEGER, step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, "
	"overlapped NUMERIC, "
	"communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, "
	"communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC"};
static const struct np_db_table step_table_old = {
	"StepTraceTime",
	"step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC, "
	"communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, "
	"communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC"};
static const struct np_db_table comm_tables[] = {
	{"CommAnalyzerBandwidth",
         "hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC, "
         "transit_time NUMERIC, "
         "bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count NUMERIC, "
         "total_duration NUMERIC, step TEXT, type TEXT"},
	{"CommAnalyzerMatrix",
         "hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, "
         "transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT, "
         "op_name TEXT"},
	{"CommAnalyzerTime", "hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, "
                             "elapse_time NUMERIC, transit_time NUMERIC, "
                             "wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, "
                             "step TEXT, type TEXT"},
};

struct analysis {
	struct np_db_out db;
	const struct np_synth_run *run;
	sqlite3_stmt *time, *bandwidth, *matrix;
	char step[24], group[24];
};

static void text(struct analysis *self, sqlite3_stmt *stmt, int at, const char *value)
{
	np_db_out_text(&self->db, stmt, at, value, strlen(value));
}

static void put_steps(struct analysis *self)
{
	const struct np_synth_run *run = self->run;
	bool old = np_synth_has(run, NP_SYNTH_OLD_HEADER);
	np_db_out_table(&self->db, old ? &step_table_old : &step_table);
	sqlite3_stmt *stmt = np_db_out_insert(&self->db, "StepTraceTime", old ? 10 : 11);
	for (uint32_t s = 0; s < run->plan->options.steps; s++) {
		const struct np_synth_step *step = &run->steps[s];
		if (!step->device)
			continue;
		const np_ns cells[] = {step->computing_ns,
		                       step->not_overlapped_ns,
		                       step->communication_ns - step->not_overlapped_ns,
		                       step->communication_ns,
		                       step->free_ns,
		                       step->stage_ns,
		                       step->bubble_ns,
		                       np_synth_exclude_receive(step),
		                       step->preparing_ns};
		int at = 1;
		if (!old)
			np_db_out_int(&self->db, stmt, at++, run->device);
		(void)snprintf(self->step, sizeof self->step, "%u", step->id);
		text(self, stmt, at++, self->step);
		for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
			np_db_out_real(&self->db, stmt, at++, (double)cells[i] / 1000);
		np_db_out_step(&self->db, stmt);
	}
	np_db_out_done(&self->db, stmt);
}

static const char *type_of(enum np_synth_coll coll)
{
	return np_synth_is_p2p(coll) ? "p2p" : "collective";
}

static void put_time(struct analysis *self, const char *name, enum np_synth_coll coll,
                     const struct np_synth_comm_info *info)
{
	sqlite3_stmt *stmt = self->time;
	const np_ns cells[] = {info->elapse_ns, info->transit_ns, info->wait_ns, info->sync_ns,
	                       info->idle_ns};
	text(self, stmt, 1, name);
	text(self, stmt, 2, self->group);
	np_db_out_real(&self->db, stmt, 3, (double)info->start_ns / 1000);
	for (int i = 0; i < 5; i++)
		np_db_out_real(&self->db, stmt, 4 + i, (double)cells[i] / 1e6);
	text(self, stmt, 9, self->step);
	text(self, stmt, 10, type_of(coll));
	np_db_out_step(&self->db, stmt);
}

/* One row per packet size; a link without packets has one row of zeros. */
static void put_bandwidth(struct analysis *self, const char *name, enum np_synth_coll coll,
                          int kind, const struct np_synth_bandwidth *link)
{
	sqlite3_stmt *stmt = self->bandwidth;
	for (uint32_t i = 0; i < link->n_buckets || i == 0; i++) {
		bool any = i < link->n_buckets;
		text(self, stmt, 1, name);
		text(self, stmt, 2, self->group);
		text(self, stmt, 3, np_synth_transport_names[kind]);
		np_db_out_real(&self->db, stmt, 4, (double)link->len_bytes / 1e6);
		np_db_out_real(&self->db, stmt, 5, (double)link->time_ns / 1e6);
		np_db_out_real(&self->db, stmt, 6,
		               (double)np_synth_gbps(link->len_bytes, link->time_ns) / 1e4);
		np_db_out_real(&self->db, stmt, 7,
		               link->count ? (double)link->large / link->count : 0);
		np_db_out_real(&self->db, stmt, 8,
		               any ? (double)link->bucket[i].len_bytes / 1e6 : 0);
		np_db_out_int(&self->db, stmt, 9, any ? link->bucket[i].count : 0);
		np_db_out_real(&self->db, stmt, 10,
		               any ? (double)link->bucket[i].time_ns / 1e6 : 0);
		text(self, stmt, 11, self->step);
		text(self, stmt, 12, type_of(coll));
		np_db_out_step(&self->db, stmt);
	}
}

static void put_matrix(void *ctx, const struct np_synth_matrix_row *row)
{
	struct analysis *self = ctx;
	sqlite3_stmt *stmt = self->matrix;
	char name[64], group[24], src[16], dst[16];
	(void)snprintf(name, sizeof name, "%s-%s", np_synth_colls[row->coll].matrix, row->place);
	(void)snprintf(group, sizeof group, "%llu",
	               (unsigned long long)self->run->plan->groups[row->group].hash);
	(void)snprintf(src, sizeof src, "%u", row->src);
	(void)snprintf(dst, sizeof dst, "%u", row->dst);
	const char *const keys[] = {name, group, src, dst, row->transport};
	for (int i = 0; i < 5; i++)
		text(self, stmt, 1 + i, keys[i]);
	np_db_out_real(&self->db, stmt, 6, (double)row->len_bytes / 1e6);
	np_db_out_real(&self->db, stmt, 7, (double)row->time_ns / 1e6);
	np_db_out_real(&self->db, stmt, 8,
	               (double)np_synth_gbps(row->len_bytes, row->time_ns) / 1e4);
	text(self, stmt, 9, self->step);
	text(self, stmt, 10, type_of(row->coll));
	char scratch[64];
	if (row->item)
		text(self, stmt, 11, np_synth_item_name(self->run, row->item, scratch));
	else
		np_db_out_int(&self->db, stmt, 11, NP_DB_NULL);
	np_db_out_step(&self->db, stmt);
}

static enum np_status put_comm(struct analysis *self, struct np_err *err)
{
	const struct np_synth_run *run = self->run;
	for (int i = 0; i < 3; i++)
		np_db_out_table(&self->db, &comm_tables[i]);
	self->bandwidth = np_db_out_insert(&self->db, comm_tables[0].name, 12);
	self->matrix = np_db_out_insert(&self->db, comm_tables[1].name, 11);
	self->time = np_db_out_insert(&self->db, comm_tables[2].name, 10);
	enum np_status status = NP_OK;
	for (uint32_t s = 0; s < run->plan->options.steps && status == NP_OK; s++) {
		size_t from, to;
		(void)snprintf(self->step, sizeof self->step, "step%u", run->steps[s].id);
		np_synth_step_items(run, s, &from, &to);
		for (size_t i = from; i < to; i++) {
			const struct np_synth_item *item = &run->items.v[i];
			struct np_synth_comm_info info;
			char scratch[64];
			if (item->kind != NP_ITEM_COMM)
				continue;
			(void)snprintf(self->group, sizeof self->group, "%llu",
			               (unsigned long long)run->plan->groups[item->group].hash);
			np_synth_comm_info(run, item, &info);
			const char *name = np_synth_item_name(run, item, scratch);
			enum np_synth_coll coll = (enum np_synth_coll)item->coll;
			put_time(self, name, coll, &info);
			for (int k = 0; k < NP_LINK_TYPES; k++)
				put_bandwidth(self, name, coll, k, &info.links[k]);
		}
		status = np_synth_matrix(run, s, put_matrix, self, err);
	}
	np_db_out_done(&self->db, self->bandwidth);
	np_db_out_done(&self->db, self->matrix);
	np_db_out_done(&self->db, self->time);
	return status;
}

enum np_status np_synth_write_analysis_db(const struct np_synth_run *run, const char *dir,
                                          struct np_synth_stats *stats, struct np_err *err)
{
	struct analysis self = {.run = run};
	NP_TRY(np_db_out_open(&self.db, dir, "analysis.db", err));
	put_steps(&self);
	enum np_status status = NP_OK;
	if (run->level > 0 && run->n_comms > 0)
		status = put_comm(&self, err);
	enum np_status closed = np_db_out_close(&self.db, stats, status == NP_OK ? err : NULL);
	return status != NP_OK ? status : closed;
}
