#include "collect/comm_against.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture.h"

static const struct np_column columns[] = {
	{"rank", "", NP_COL_INT, "rank"},
	{"group", "", NP_COL_TEXT, "as the capture calls it, or the log"},
	{"op", "", NP_COL_TEXT, "operation and its kin"},
	{"log_calls", "", NP_COL_INT, "issued within the capture's window"},
	{"device_calls", "", NP_COL_INT, "records of the device"},
	{"log_bytes", "bytes", NP_COL_BYTES, "payload of these calls"},
	{"device_bytes", "bytes", NP_COL_BYTES, "elements x size, where the capture has them"},
	{"moved~_bytes", "bytes", NP_COL_BYTES, "estimate from the log (R27)"},
	{"transit_bytes", "bytes", NP_COL_BYTES, "what the device says it moved over links"},
	{"verdict", "", NP_COL_TEXT, "equal, differ, cannot tell, not in log, not on device"},
	{"why", "", NP_COL_TEXT, "what may make the difference"},
};

struct line {
	uint64_t group; /* hash of the communicator; 0 unknown */
	uint8_t family;
	np_str name; /* of the group, for people */
	uint64_t log_calls, log_bytes, moved, device_calls, device_bytes;
	double transit_mb;
	unsigned flags;
	int32_t world;
	bool device_sized, estimated, cast, barriers, transit;
};

struct against {
	const struct np_clog_sum *sum;
	struct np_report *report;
	struct np_table *table;
	const struct np_capture *capture;
	struct np_profile *profile;
	struct np_keys keys; /* group, family */
	NP_VEC(struct line) lines;
	np_ns from, to;
	bool by_steps; /* the window is that of the host's steps */
	bool torch;    /* the log's layer */
	size_t equal, differ, unsure, one_sided, ranks;
	struct np_arena arena;
};

static struct line *find_line(struct against *self, uint64_t group, uint8_t family)
{
	struct np_key key = {{group, family, 0, 0}};
	uint32_t i = np_keys_add(&self->keys, &key);
	if (i == UINT32_MAX)
		return NULL;
	if (i == self->lines.n &&
	    !np_vec_push(&self->lines,
	                 (struct line){.group = group, .family = family, .world = -1}))
		return NULL;
	return &self->lines.v[i];
}

/* ── the device's side ── */

/* "hcom_allReduce_", "hcom_allReduce__865_0_1" to a family; 0: unknown. */
static uint8_t family_of(np_str type)
{
	static const struct {
		const char *name;
		uint8_t family;
	} names[] = {{"allreduce", 1},     {"broadcast", 2},     {"allgather", 3},
	             {"allgatherv", 3},    {"reducescatter", 4}, {"reducescatterv", 4},
	             {"alltoall", 5},      {"alltoallv", 5},     {"alltoallvc", 5},
	             {"reduce", 7},        {"scatter", 8},       {"gather", 9},
	             {"send", 10},         {"receive", 10},      {"recv", 10},
	             {"batchsendrecv", 10}};
	np_str rest;
	if (np_str_istarts(type, NP_STR("hcom_")))
		type = np_str_from(type, 5);
	type = np_str_cut(type, '_', &rest);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (np_str_ieq(type, np_str_of(names[i].name)))
			return names[i].family;
	return 0;
}

/* "FP16", "BFP16", "INT8", "FP8E4M3": the first number is that of the bits. */
static unsigned bytes_of(np_str dtype)
{
	unsigned bits = 0;
	for (size_t i = 0; i < dtype.len && i < 16; i++) {
		char c = dtype.ptr[i];
		if (c >= '0' && c <= '9')
			bits = bits * 10 + (unsigned)(c - '0');
		else if (bits)
			break;
	}
	return bits % 8 == 0 && bits <= 128 ? bits / 8 : 0;
}

static uint64_t group_id(np_str group)
{
	char key[NP_GROUP_KEY_SIZE];
	uint64_t id = 0;
	np_group_key(group, key);
	return group.len && np_str_to_u64(np_str_of(key), &id) ? id : 0;
}

static int32_t world_of(const struct np_capture *capture, uint64_t group)
{
	for (size_t i = 0; i < capture->n_groups; i++)
		if (capture->groups[i].hash == group)
			return (int32_t)capture->groups[i].n_ranks;
	return -1;
}

/* Of "hcom_allReduce__865_0_1": the only group whose hash ends in these digits; 0: none. */
static uint64_t group_by_digits(const struct np_capture *capture, np_str name)
{
	uint64_t digits, found = 0;
	np_str rest = {NULL, 0};
	for (size_t i = 0; i + 2 < name.len && !rest.len; i++)
		if (name.ptr[i] == '_' && name.ptr[i + 1] == '_')
			rest = np_str_from(name, i + 2);
	if (!np_str_to_u64(np_str_cut(rest, '_', &rest), &digits) || digits > 999)
		return 0;
	for (size_t i = 0; i < capture->n_groups; i++) {
		if (capture->groups[i].hash % 1000 != digits || capture->groups[i].hash == found)
			continue;
		if (found)
			return 0;
		found = capture->groups[i].hash;
	}
	return found;
}

/* A trace numbers its groups; communication.json, or the operation's name, tells which they are. */
static uint64_t group_of_op(const struct against *self, const struct np_map *times, size_t row)
{
	const struct np_profile *profile = self->profile;
	const struct np_comm_ops *ops = &profile->comm_ops;
	uint64_t group = group_id(np_intern_get(&profile->strings, ops->group[row]));
	if (world_of(self->capture, group) >= 0)
		return group;
	uint32_t time = np_map_get(times, ops->name[row], UINT32_MAX);
	if (time != UINT32_MAX)
		return group_id(np_intern_get(&profile->strings, profile->comm_time.group[time]));
	uint64_t other =
		group_by_digits(self->capture, np_intern_get(&profile->strings, ops->name[row]));
	return other ? other : group;
}

static bool index_times(const struct np_profile *profile, struct np_map *out)
{
	bool kept = true;
	np_map_init(out);
	for (size_t i = 0; i < profile->comm_time.n && kept; i++)
		kept = np_map_put(out, profile->comm_time.op[i], (uint32_t)i);
	return kept;
}

static void widen(struct against *self, np_ns start, np_ns end)
{
	if (self->by_steps || start < 0)
		return;
	self->from = self->from == 0 || start < self->from ? start : self->from;
	self->to = end > self->to ? end : self->to;
}

static bool add_device_ops(struct against *self, const struct np_map *times)
{
	const struct np_comm_ops *ops = &self->profile->comm_ops;
	const struct np_intern *strings = &self->profile->strings;
	for (size_t i = 0; i < ops->n; i++) {
		uint8_t family = family_of(np_intern_get(strings, ops->type[i]));
		uint64_t group = group_of_op(self, times, i);
		unsigned bytes = bytes_of(np_intern_get(strings, ops->dtype[i]));
		struct line *line = family ? find_line(self, group, family) : NULL;
		widen(self, ops->start_ns[i], ops->start_ns[i] + ops->dur_ns[i]);
		if (!family)
			continue;
		if (!line)
			return false;
		int32_t world = world_of(self->capture, group);
		line->device_calls++;
		if (ops->count[i] < 0 || ops->count[i] > (int64_t)1 << 48 || bytes == 0 ||
		    (family == 4 && world < 0))
			continue;
		/* HCCL counts what a rank of a reduce_scatter gets, the log what it gives */
		line->device_sized = true;
		np_clog_add(&line->device_bytes,
		            (uint64_t)ops->count[i] * bytes * (family == 4 ? (uint64_t)world : 1));
	}
	return true;
}

/* Sets that have no records of operations have times of them, in communication.json. */
static bool add_device_times(struct against *self)
{
	const struct np_comm_time *times = &self->profile->comm_time;
	const struct np_intern *strings = &self->profile->strings;
	for (size_t i = 0; i < times->n; i++) {
		uint8_t family = family_of(np_intern_get(strings, times->op[i]));
		if (!family)
			continue;
		struct line *line =
			find_line(self, group_id(np_intern_get(strings, times->group[i])), family);
		if (!line)
			return false;
		line->device_calls++;
		if (times->start_us[i] > 0 && times->start_us[i] < 4e15 && times->elapse_ms[i] >= 0)
			widen(self, (np_ns)(times->start_us[i] * 1000),
			      (np_ns)(times->start_us[i] * 1000 + times->elapse_ms[i] * 1e6));
	}
	return true;
}

/* SDMA is the sum of HCCS, PCIE and SIO (torch_npu.md §3.8). */
static bool add_transit(struct against *self)
{
	const struct np_comm_bandwidth *rows = &self->profile->comm_bandwidth;
	const struct np_intern *strings = &self->profile->strings;
	for (size_t i = 0; i < rows->n; i++) {
		np_str link = np_intern_get(strings, rows->transport[i]);
		uint8_t family = family_of(np_intern_get(strings, rows->op[i]));
		if (!family || !isnan(rows->package_mb[i]) || isnan(rows->transit_mb[i]) ||
		    !(np_str_is(link, "SDMA") || np_str_is(link, "RDMA")))
			continue;
		struct line *line =
			find_line(self, group_id(np_intern_get(strings, rows->group[i])), family);
		if (!line)
			return false;
		line->transit = true;
		line->transit_mb += rows->transit_mb[i];
	}
	return true;
}

static void find_window(struct against *self)
{
	const struct np_steps *steps = &self->profile->steps;
	self->from = self->to = 0;
	self->by_steps = false;
	for (size_t i = 0; i < steps->n; i++) {
		np_ns start = steps->host_start_ns[i], end = steps->host_end_ns[i];
		if (start == NP_NO_I64 || end == NP_NO_I64 || end <= start)
			return;
		self->from = i == 0 || start < self->from ? start : self->from;
		self->to = end > self->to ? end : self->to;
	}
	self->by_steps = steps->n > 0;
}

/* ── the log's side ── */

/* The communicator of a record, as the capture knows it; 0: it does not. */
static uint64_t match_group(const struct against *self, const struct np_clog *log,
                            const struct np_comm_record *record)
{
	enum { MOST = 4096 };
	int64_t ranks[MOST];
	const struct np_capture *capture = self->capture;
	if (log->header.layer == NP_COMM_LAYER_HCCL && record->comm_hash)
		return record->comm_hash;
	size_t n = np_clog_ranks(np_clog_string(log, record->comm_name), ranks, MOST);
	for (size_t i = 0; i < capture->n_groups && n && n <= MOST; i++)
		if (capture->groups[i].n_ranks == n &&
		    memcmp(capture->groups[i].ranks, ranks, n * sizeof *ranks) == 0)
			return capture->groups[i].hash;
	return record->comm_hash;
}

struct names { /* group names of a log, by offset, to hashes: looked up once each */
	struct np_keys known;
	NP_VEC(uint64_t) hashes;
};

static bool group_of(struct against *self, const struct np_clog *log, struct names *names,
                     const struct np_comm_record *record, uint64_t *out)
{
	struct np_key key = {{record->comm_name, record->comm_hash, 0, 0}};
	uint32_t at = np_keys_add(&names->known, &key);
	if (at == UINT32_MAX ||
	    (at == names->hashes.n && !np_vec_push(&names->hashes, match_group(self, log, record))))
		return false;
	*out = names->hashes.v[at];
	return true;
}

static bool add_log_record(struct against *self, const struct np_clog *log, struct names *names,
                           const struct np_comm_record *record)
{
	uint64_t group, moved;
	if (!np_clog_op_moves(record->op) || record->start_ns < self->from ||
	    record->start_ns > self->to)
		return true;
	if (!group_of(self, log, names, record, &group))
		return false;
	struct line *line = find_line(self, group, np_clog_family(record->op));
	if (!line)
		return false;
	if (line->name.len == 0)
		line->name = np_arena_dup(&self->arena, np_clog_string(log, record->comm_name));
	line->log_calls++;
	line->world = record->world;
	line->flags |= record->flags;
	line->barriers = line->barriers || record->op == 13;
	line->cast = line->cast || (record->op == 1 &&
	                            (record->dtype == 7 || record->dtype == NP_COMM_DTYPE_BOOL));
	if (record->tensor_bytes == NP_COMM_NO_U64)
		return true;
	np_clog_add(&line->log_bytes, record->tensor_bytes);
	if (np_clog_moved(record->op, record->world, record->tensor_bytes,
	                  record->send_bytes == NP_COMM_NO_U64 ? 0 : record->send_bytes,
	                  &moved) != NP_COMM_NO_ESTIMATE) {
		line->estimated = true;
		np_clog_add(&line->moved, moved);
	}
	return true;
}

static enum np_status add_log(struct against *self, const char *path, struct np_err *err)
{
	struct np_clog log;
	struct np_comm_record record;
	struct names names = {.hashes = {NULL, 0, 0}};
	enum np_status status = np_clog_open(path, &log, NULL);
	bool kept = true;
	if (status != NP_OK)
		return status == NP_E_NOMEM ? np_err_nomem(err) : NP_OK;
	while (kept && np_clog_next(&log, &record))
		kept = add_log_record(self, &log, &names, &record);
	np_keys_release(&names.known);
	np_vec_release(&names.hashes);
	np_clog_close(&log);
	return kept ? NP_OK : np_err_nomem(err);
}

/* The logs of the rank: those of one layer. Of several processes with that rank (two runs) all
 * are read; the window is the capture's. */
static enum np_status add_logs(struct against *self, size_t *found, struct np_err *err)
{
	const struct np_clog_sum *sum = self->sum;
	bool hccl = false;
	for (size_t i = 0; i < sum->processes.n; i++)
		if (sum->processes.v[i].rank == self->capture->rank)
			hccl = hccl || sum->processes.v[i].layers & 1u << NP_COMM_LAYER_HCCL;
	self->torch = !hccl;
	*found = 0;
	for (size_t i = 0; i < sum->files.n; i++) {
		const struct np_clog_file *file = &sum->files.v[i];
		if (file->problem || file->process == UINT32_MAX ||
		    sum->processes.v[file->process].rank != self->capture->rank ||
		    (file->layer == NP_COMM_LAYER_HCCL) != hccl)
			continue;
		(*found)++;
		NP_TRY(add_log(self, file->path, err));
	}
	return NP_OK;
}

/* ── the verdict ── */

static const char *group_text(struct against *self, const struct line *line)
{
	for (size_t i = 0; i < self->capture->n_groups; i++)
		if (line->group && self->capture->groups[i].hash == line->group)
			return self->capture->groups[i].name;
	if (line->name.len)
		return line->name.ptr;
	if (line->group == 0)
		return "-";
	const char *text = np_arena_printf(&self->arena, "@%" PRIu64, line->group);
	return text ? text : "-";
}

static const char *why_of(const struct against *self, const struct line *line)
{
	bool more_below =
		line->device_calls > line->log_calls || line->device_bytes > line->log_bytes;
	if (line->log_calls == 0)
		return NP_N("nothing in the log for this group and operation");
	if (line->device_calls == 0)
		return NP_N(
			"no record of the device: level0 has none, or it ended after the window");
	if (!self->by_steps)
		return NP_N("no steps in the capture: its window has no exact ends");
	if (self->torch)
		return np_clog_why(line->family, line->flags, line->cast, line->barriers,
		                   more_below);
	return more_below ? NP_N("a replayed graph, a fused operator, or a call before the window")
	                  : NP_N("issued in the window, and not recorded or run after it");
}

static void put_sum(struct np_table *table, bool known, uint64_t bytes)
{
	if (known)
		np_cell_int(table, (int64_t)bytes);
	else
		np_cell_na(table);
}

static void put_line(struct against *self, const struct line *line)
{
	struct np_table *table = self->table;
	bool both = line->log_calls && line->device_calls;
	bool same = both && line->log_calls == line->device_calls &&
	            (!line->device_sized || line->log_bytes == line->device_bytes);
	const char *unequal = self->by_steps ? NP_N("differ") : NP_N("cannot tell");
	self->equal += same;
	self->differ += both && !same && self->by_steps;
	self->unsure += both && !same && !self->by_steps;
	self->one_sided += !both;
	np_cell_int(table, self->capture->rank);
	np_cell_cstr(table, group_text(self, line));
	if (line->family == 10)
		np_cell_word(table, NP_N("send, recv"));
	else
		np_cell_cstr(table, np_clog_op_name(line->family));
	np_cell_int(table, (int64_t)line->log_calls);
	np_cell_int(table, (int64_t)line->device_calls);
	put_sum(table, line->log_calls, line->log_bytes);
	put_sum(table, line->device_sized, line->device_bytes);
	put_sum(table, line->estimated, line->moved);
	put_sum(table, line->transit,
	        (uint64_t)(line->transit_mb > 0 && line->transit_mb < 1e12
	                           ? line->transit_mb * 1e6 + 0.5
	                           : 0));
	np_cell_word(table, same              ? NP_N("equal")
	                    : both            ? unequal
	                    : line->log_calls ? NP_N("not on device")
	                                      : NP_N("not in log"));
	np_cell_word(table, same ? "" : why_of(self, line));
}

static int by_group(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->family - y->family;
}

static void tell_lines(struct against *self)
{
	if (self->lines.n)
		qsort(self->lines.v, self->lines.n, sizeof *self->lines.v, by_group);
	for (size_t i = 0; i < self->lines.n; i++)
		if (self->lines.v[i].log_calls || self->lines.v[i].device_calls)
			put_line(self, &self->lines.v[i]);
}

static enum np_status compare_capture(struct against *self, struct np_err *err)
{
	size_t logs = 0;
	NP_TRY(np_capture_load(self->capture, NP_COMM_OPS | NP_COMM_SUMMARY | NP_STEPS,
	                       self->sum->options.threads, &self->profile, err));
	struct np_map times;
	find_window(self);
	bool kept = index_times(self->profile, &times) && add_device_ops(self, &times);
	np_map_release(&times);
	if (kept && self->profile->comm_ops.n == 0)
		kept = add_device_times(self);
	kept = kept && add_transit(self);
	if (!kept)
		return np_err_nomem(err);
	NP_TRY(add_logs(self, &logs, err));
	self->ranks++;
	if (logs == 0)
		np_report_note(self->report, "rank %" PRId64 " has no log", self->capture->rank);
	if (self->lines.n == 0)
		np_report_note(self->report,
		               "%s has no record of communication: level0 has none, and one rank "
		               "alone makes none",
		               self->capture->name);
	tell_lines(self);
	return NP_OK;
}

static enum np_status compare_all(struct against *self, const struct np_captures *all,
                                  struct np_err *err)
{
	enum np_status status = NP_OK;
	for (size_t i = 0; i < all->captures.n && status == NP_OK; i++) {
		self->capture = all->captures.v[i];
		if (!np_capture_has_data(self->capture) ||
		    (self->sum->options.rank >= 0 &&
		     self->capture->rank != self->sum->options.rank))
			continue;
		if (self->capture->rank == NP_NO_I64) {
			np_report_note(self->report, "%s does not say its rank, and is left out",
			               self->capture->name);
			continue;
		}
		status = compare_capture(self, err);
		np_profile_free(self->profile);
		self->profile = NULL;
		np_keys_release(&self->keys);
		np_vec_release(&self->lines);
	}
	return status;
}

static void judge(struct against *self, const char *path)
{
	struct np_report *report = self->report;
	struct np_finding *finding;
	report->verdict = self->differ                                      ? NP_VERDICT_FAIL
	                  : !self->equal || self->one_sided || self->unsure ? NP_VERDICT_UNKNOWN
	                                                                    : NP_VERDICT_PASS;
	int code = self->differ ? 1 : report->verdict == NP_VERDICT_UNKNOWN ? 3 : 0;
	report->exit_code = report->exit_code > code ? report->exit_code : code;
	if (self->differ) {
		finding = np_report_finding(report, "COMM_AGAINST_DIFFERS", NP_WARNING,
		                            "log and capture differ in %zu of %zu rows",
		                            self->differ, self->equal + self->differ);
		np_finding_detail(finding, "Both know these groups and operations, and count other "
		                           "calls or bytes: see the table against.");
		np_finding_evidence(finding, path, NULL, NULL, NP_N("%zu ranks compared"),
		                    self->ranks);
	}
	if (self->unsure)
		np_report_note(
			report,
			"a capture without steps has no exact window: %zu rows are not equal, "
			"perhaps for that reason",
			self->unsure);
	if (self->one_sided || (!self->equal && !self->unsure)) {
		finding = np_report_finding(report, "COMM_AGAINST_ONE_SIDED", NP_WARNING,
		                            "%zu rows are on one side only", self->one_sided);
		np_finding_detail(finding, "They could not be compared: another run's log, a group "
		                           "that was not recorded, or a capture without "
		                           "communication (level0).");
		np_finding_evidence(finding, path, NULL, NULL, NP_N("%zu ranks compared"),
		                    self->ranks);
	}
}

enum np_status np_clog_against(const struct np_clog_sum *sum, const char *path,
                               struct np_report *report, struct np_err *err)
{
	struct np_captures *all = NULL;
	struct against self = {.sum = sum, .report = report};
	NP_TRY(np_discover(path, &all, err));
	np_report_input(report, path);
	np_arena_init(&self.arena);
	self.table = NP_REPORT_TABLE(report, "against", "Log and device, in the capture's window",
	                             columns);
	enum np_status status = compare_all(&self, all, err);
	if (status == NP_OK)
		judge(&self, path);
	np_profile_free(self.profile);
	np_keys_release(&self.keys);
	np_vec_release(&self.lines);
	np_arena_release(&self.arena);
	np_captures_free(all);
	return status == NP_OK ? np_report_ok(report, err) : status;
}
