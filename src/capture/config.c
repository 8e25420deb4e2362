/*
 * What the small files say: profiler_info (how it was collected), metadata
 * (groups), info.json (host and device), and for databases META_DATA and
 * HOST_INFO. Shapes: torch_npu.md §2.1, §2.2; raw_prof.md §1.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "capture/discover.h"
#include "capture/parallel.h"
#include "io/db.h"
#include "io/json.h"

/* aclprof's names → what users write in ExperimentalConfig */
static const struct {
	const char *recorded, *name;
} aic_metrics[] = {
	{"ACL_AICORE_NONE", "AiCoreNone"},
	{"ACL_AICORE_PIPE_UTILIZATION", "PipeUtilization"},
	{"ACL_AICORE_ARITHMETIC_UTILIZATION", "ArithmeticUtilization"},
	{"ACL_AICORE_MEMORY_BANDWIDTH", "Memory"},
	{"ACL_AICORE_L0B_AND_WIDTH", "MemoryL0"},
	{"ACL_AICORE_RESOURCE_CONFLICT_RATIO", "ResourceConflictRatio"},
	{"ACL_AICORE_MEMORY_UB", "MemoryUB"},
	{"ACL_AICORE_L2_CACHE", "L2Cache"},
	{"ACL_AICORE_MEMORY_ACCESS", "MemoryAccess"},
	{"PipeUtilizationExct", "PipeUtilization"},
};

static const char *keep(struct np_captures *all, np_str text)
{
	const char *copy = np_arena_cstr(&all->arena, text);
	all->out_of_memory |= !copy;
	return copy ? copy : "";
}

static const char *metrics_name(struct np_captures *all, np_str recorded)
{
	for (size_t i = 0; i < sizeof aic_metrics / sizeof *aic_metrics; i++)
		if (np_str_is(recorded, aic_metrics[i].recorded))
			return aic_metrics[i].name;
	return keep(all, recorded);
}

static int tri_state(const struct np_jval *value)
{
	bool on = false;
	return np_jbool(value, &on) ? on : -1;
}

static int64_t number(const struct np_jval *value, int64_t missing)
{
	int64_t out = missing;
	return np_ji64(value, &out) ? out : missing;
}

/* "a" or ["a", "b"] as "a,b"; a prefix such as "ProfilerActivity." is cut off. */
static const char *joined(struct np_captures *all, const struct np_jval *value)
{
	if (np_jstr(value).len)
		return keep(all, np_jstr(value));
	struct np_buf text = {0};
	for (size_t i = 0; value && value->type == NP_J_ARRAY && i < value->n; i++) {
		np_str item = np_jstr(&value->child[i]);
		np_str behind;
		np_str before = np_str_cut(item, '.', &behind);
		if (text.len)
			np_buf_add_char(&text, ',');
		np_buf_add_str(&text, behind.len ? behind : before);
	}
	all->out_of_memory |= text.failed;
	const char *copy = keep(all, text.failed ? NP_STR("") : np_buf_str(&text));
	np_buf_release(&text);
	return copy;
}

static void read_schedule(struct np_config *config, const struct np_jval *schedule)
{
	config->has_schedule = schedule && schedule->type == NP_J_OBJECT && schedule->n > 0;
	config->wait = number(np_jget(schedule, "wait"), 0);
	config->warmup = number(np_jget(schedule, "warmup"), 0);
	config->active = number(np_jget(schedule, "active"), NP_NO_I64);
	config->repeat = number(np_jget(schedule, "repeat"), 0);
	config->skip_first = number(np_jget(schedule, "skip_first"), 0);
	config->skip_first_wait = number(np_jget(schedule, "skip_first_wait"), 0);
}

/* The tree goes to `scratch`: it is many times as large as what is kept of it. */
static const struct np_jval *parse(struct np_captures *all, struct np_capture *capture,
                                   const char *path, struct np_arena *scratch)
{
	const struct np_jval *root = NULL;
	struct np_json_repairs repairs = {0};
	struct np_err err = {0};
	if (np_json_parse_file(scratch, path, NP_JSON_COMMENTS, &root, &repairs, &err) != NP_OK) {
		all->out_of_memory |= err.code == NP_E_NOMEM;
		np_problem_add(all, capture, "CONFIG_UNREADABLE", path, "%s (%s)", err.msg,
		               err.where);
		return NULL;
	}
	if (np_json_repairs_total(&repairs)) {
		struct np_buf text = {0};
		np_json_repairs_describe(&repairs, &text);
		np_problem_add(all, capture, "JSON_REPAIRED", path, "%s", text.ptr ? text.ptr : "");
		np_buf_release(&text);
	}
	return root;
}

static void read_profiler_info(struct np_captures *all, struct np_capture *capture,
                               const char *path, struct np_arena *scratch)
{
	const struct np_jval *root = parse(all, capture, path, scratch);
	if (!root)
		return;
	struct np_config *config = &capture->config;
	const struct np_jval *common = np_jpath(root, "config.common_config");
	const struct np_jval *special = np_jpath(root, "config.experimental_config");
	config->recorded = common || special;
	config->level = keep(all, np_jstr(np_jget(special, "_profiler_level")));
	config->aic_metrics = metrics_name(all, np_jstr(np_jget(special, "_aic_metrics")));
	config->export_types = joined(all, np_jget(special, "_export_type"));
	config->activities = joined(all, np_jget(common, "activities"));
	config->torch_npu_version = keep(all, np_jstr(np_jget(root, "torch_npu_version")));
	config->cann_version = keep(all, np_jstr(np_jget(root, "cann_version")));
	config->with_stack = tri_state(np_jget(common, "with_stack"));
	config->record_shapes = tri_state(np_jget(common, "record_shapes"));
	config->profile_memory = tri_state(np_jget(common, "profile_memory"));
	config->l2_cache = tri_state(np_jget(special, "_l2_cache"));
	config->data_simplification = tri_state(np_jget(special, "_data_simplification"));
	config->end_ns = number(np_jpath(root, "end_info.collectionTimeEnd"), NP_NO_I64);
	read_schedule(config, np_jget(common, "schedule"));
	int64_t rank = 0;
	if (np_ji64(np_jget(root, "rank_id"), &rank) && rank >= 0) {
		capture->rank = rank;
		capture->rank_source = NP_RANK_INFO_CONTENT;
	}
}

/* ENV_VARIABLES: {"ASCEND_LAUNCH_BLOCKING": "1", …}. The first that lists any counts. */
static void read_variables(struct np_captures *all, struct np_capture *capture,
                           const struct np_jval *root)
{
	if (!root || root->type != NP_J_OBJECT || root->n == 0 || capture->n_variables > 0)
		return;
	struct np_variable *list = np_arena_alloc(&all->arena, root->n * sizeof *list);
	all->out_of_memory |= !list;
	if (!list)
		return;
	for (size_t i = 0; i < root->n; i++) {
		list[i].name = keep(all, root->child[i].key);
		list[i].value = keep(all, np_jstr(&root->child[i]));
	}
	capture->variables = list;
	capture->n_variables = root->n;
}

static void read_metadata(struct np_captures *all, struct np_capture *capture, const char *path,
                          struct np_arena *scratch)
{
	const struct np_jval *root = parse(all, capture, path, scratch);
	np_parallel_args(all, capture, np_jget(root, "distributed_args"));
	np_parallel_groups(all, capture, np_jget(root, "parallel_group_info"));
	np_parallel_pipeline(all, capture, np_jget(root, "pp_info"));
	read_variables(all, capture, np_jget(root, "ENV_VARIABLES"));
}

/* ── msprof ── */

/* Of the first device of the first file that lists one: host/info.json has none. */
static void read_device_info(struct np_capture *capture, const struct np_jval *root)
{
	const struct np_jval *list = np_jget(root, "DeviceInfo");
	if (!list || list->type != NP_J_ARRAY || list->n == 0 || capture->chip.recorded)
		return;
	struct np_chip *chip = &capture->chip;
	const struct np_jval *device = &list->child[0];
	double mhz;
	chip->recorded = true;
	chip->ai_cores = number(np_jget(device, "ai_core_num"), NP_NO_I64);
	chip->vector_cores = number(np_jget(device, "aiv_num"), NP_NO_I64);
	chip->aic_mhz = np_jdouble(np_jget(device, "aic_frequency"), &mhz) ? mhz : NAN;
	chip->rank = number(np_jget(root, "rank_id"), NP_NO_I64);
}

static void read_info_json(struct np_captures *all, struct np_capture *capture, const char *path,
                           struct np_arena *scratch)
{
	const struct np_jval *root = parse(all, capture, path, scratch);
	int64_t rank = number(np_jget(root, "rank_id"), -1);
	read_device_info(capture, root);
	if (rank >= 0 && capture->rank == NP_NO_I64) {
		capture->rank = rank;
		capture->rank_source = NP_RANK_INFO_CONTENT;
	}
	if (np_jstr(np_jget(root, "hostname")).len)
		capture->host = keep(all, np_jstr(np_jget(root, "hostname")));
	if (np_jstr(np_jget(root, "hostUid")).len)
		capture->host_uid = keep(all, np_jstr(np_jget(root, "hostUid")));
	if (np_jstr(np_jget(root, "cannVersion")).len && !*capture->config.cann_version)
		capture->config.cann_version = keep(all, np_jstr(np_jget(root, "cannVersion")));
	if (capture->pid == NP_NO_I64)
		capture->pid = number(np_jget(root, "pid"), NP_NO_I64);
}

static void read_sample_json(struct np_captures *all, struct np_capture *capture, const char *path,
                             struct np_arena *scratch)
{
	static const char *const levels[] = {"Level0", "Level1", "Level2", "Level2"};
	const struct np_jval *root = parse(all, capture, path, scratch);
	struct np_config *config = &capture->config;
	np_str level = np_jstr(np_jget(root, "prof_level"));
	if (level.len == 2 && level.ptr[0] == 'l' && level.ptr[1] >= '0' && level.ptr[1] <= '3' &&
	    !*config->level)
		config->level = levels[level.ptr[1] - '0'];
	np_str metrics = np_jstr(np_jget(root, "ai_core_metrics"));
	if (metrics.len && !*config->aic_metrics)
		config->aic_metrics = metrics_name(all, metrics);
	config->recorded |= root != NULL;
}

/* ── databases ── */

static const struct {
	const char *key;
	void (*read)(struct np_captures *all, struct np_capture *capture,
	             const struct np_jval *value);
} meta_data[] = {
	{"ENV_VARIABLES", read_variables},
	{"parallel_group_info", np_parallel_groups},
	{"distributed_args", np_parallel_args},
	{"pp_info", np_parallel_pipeline},
};
enum { N_META_DATA = sizeof meta_data / sizeof *meta_data };

static void read_meta_data(struct np_captures *all, struct np_capture *capture, struct np_db *db,
                           const char *path, struct np_arena *scratch)
{
	static const char *const columns[] = {"name", "value"};
	struct np_db_scan *scan = NULL;
	struct np_db_value row[2];
	bool got = false;
	if (np_db_scan_open(db, "META_DATA", columns, 2, 0, &scan, NULL) != NP_OK)
		return;
	while (np_db_scan_next(scan, row, &got, NULL) == NP_OK && got) {
		np_str name = np_db_text(&row[0]);
		size_t key = 0;
		while (key < N_META_DATA && !np_str_is(name, meta_data[key].key))
			key++;
		if (key == N_META_DATA)
			continue;
		/* the tree refers to the text, which the next row overwrites */
		np_str text = np_arena_dup(scratch, np_db_text(&row[1]));
		struct np_input *input = NULL;
		const struct np_jval *root = NULL;
		if (np_input_open_mem(text, path, 0, &input, NULL) == NP_OK &&
		    np_json_parse(scratch, input, 0, &root, NULL, NULL) == NP_OK)
			meta_data[key].read(all, capture, root);
		np_input_close(input);
	}
	np_db_scan_close(scan);
}

/* The first row of a table with two columns. */
static bool first_row(struct np_db *db, const char *table, const char *const *columns,
                      struct np_db_value *row, struct np_db_scan **scan)
{
	bool got = false;
	*scan = NULL;
	return np_db_scan_open(db, table, columns, 2, 0, scan, NULL) == NP_OK &&
	       np_db_scan_next(*scan, row, &got, NULL) == NP_OK && got;
}

static int64_t id_or_none(const struct np_db_value *value)
{
	int64_t id = 0;
	return np_db_i64(value, &id) && id >= 0 ? id : NP_NO_I64;
}

/* The first row is this capture's own. */
static void use_own_rank(struct np_captures *all, struct np_capture *capture,
                         struct np_rank_device own)
{
	if (own.rank != NP_NO_I64) {
		if (capture->rank_source == NP_RANK_INFO_CONTENT && capture->rank != own.rank)
			np_problem_add(all, capture, "RANK_CONTRADICTION", capture->path,
			               "RANK_DEVICE_MAP says rank %lld, rank_id says %lld; "
			               "the first is used",
			               (long long)own.rank, (long long)capture->rank);
		capture->rank = own.rank;
		capture->rank_source = NP_RANK_DEVICE_MAP;
	}
	if (own.device != NP_NO_I64)
		capture->device = own.device;
}

static void read_rank_devices(struct np_captures *all, struct np_capture *capture, struct np_db *db)
{
	enum { MAX_ROWS = 1 << 12 }; /* one, or one per device of a host */
	static const char *const columns[] = {"rankId", "deviceId"};
	NP_VEC(struct np_rank_device) rows = {0};
	struct np_db_scan *scan = NULL;
	struct np_db_value row[2];
	bool got = false, ok = true;
	if (np_db_scan_open(db, "RANK_DEVICE_MAP", columns, 2, 0, &scan, NULL) != NP_OK)
		return;
	while (ok && rows.n < MAX_ROWS && np_db_scan_next(scan, row, &got, NULL) == NP_OK && got) {
		struct np_rank_device next = {id_or_none(&row[0]), id_or_none(&row[1])};
		ok = np_vec_push(&rows, next);
	}
	np_db_scan_close(scan);
	if (rows.n)
		use_own_rank(all, capture, rows.v[0]);
	struct np_rank_device *list = np_arena_alloc(&all->arena, rows.n * sizeof *list);
	if (list && ok && rows.n) {
		memcpy(list, rows.v, rows.n * sizeof *list);
		capture->rank_devices = list;
		capture->n_rank_devices = rows.n;
	}
	all->out_of_memory |= !list || !ok;
	np_vec_release(&rows);
}

static void read_db_identity(struct np_captures *all, struct np_capture *capture, struct np_db *db)
{
	static const char *const host_columns[] = {"hostUid", "hostName"};
	struct np_db_value row[2];
	struct np_db_scan *scan;
	read_rank_devices(all, capture, db);
	if (first_row(db, "HOST_INFO", host_columns, row, &scan)) {
		if (np_db_text(&row[0]).len)
			capture->host_uid = keep(all, np_db_text(&row[0]));
		if (np_db_text(&row[1]).len)
			capture->host = keep(all, np_db_text(&row[1]));
	}
	np_db_scan_close(scan);
	static const char *const npu_columns[] = {"id", "name"};
	if (first_row(db, "NPU_INFO", npu_columns, row, &scan))
		capture->npu_name = keep(all, np_db_text(&row[1]));
	np_db_scan_close(scan);
}

static void read_db(struct np_captures *all, struct np_capture *capture, const char *path,
                    struct np_arena *scratch)
{
	struct np_db *db = NULL;
	struct np_err err = {0};
	if (np_db_open(path, &db, &err) != NP_OK) {
		all->out_of_memory |= err.code == NP_E_NOMEM;
		np_problem_add(all, capture, "DB_UNREADABLE", path, "%s", err.msg);
		return;
	}
	if (*np_db_note(db))
		np_problem_add(all, capture, "DB_NOTE", path, "%s", np_db_note(db));
	read_db_identity(all, capture, db);
	read_meta_data(all, capture, db, path, scratch);
	np_db_close(db);
}

/* ── the whole ── */

void np_config_read(struct np_captures *all, struct np_capture *capture)
{
	struct np_config *config = &capture->config;
	config->level = config->aic_metrics = config->export_types = config->activities = "";
	config->torch_npu_version = config->cann_version = "";
	config->end_ns = config->active = NP_NO_I64;
	config->with_stack = config->record_shapes = config->profile_memory = -1;
	config->l2_cache = config->data_simplification = -1;
	struct np_parallel *sizes = &capture->parallel;
	sizes->tp = sizes->pp = sizes->dp = sizes->cp = sizes->ep = sizes->world = NP_NO_I64;
	capture->distributed_args = capture->pp_info = "";
	capture->chip = (struct np_chip){false, NP_NO_I64, NP_NO_I64, NAN, NP_NO_I64};
	for (size_t i = 0; i < capture->files.n; i++) {
		const struct np_file *file = &capture->files.v[i];
		if (!file->readable)
			continue;
		struct np_arena scratch;
		np_arena_init(&scratch);
		if (file->role == NP_ROLE_PROFILER_INFO)
			read_profiler_info(all, capture, file->path, &scratch);
		else if (file->role == NP_ROLE_METADATA)
			read_metadata(all, capture, file->path, &scratch);
		else if (file->role == NP_ROLE_INFO_JSON)
			read_info_json(all, capture, file->path, &scratch);
		else if (file->role == NP_ROLE_SAMPLE_JSON)
			read_sample_json(all, capture, file->path, &scratch);
		else if (file->role == NP_ROLE_PROFILER_DB || file->role == NP_ROLE_MSPROF_DB)
			read_db(all, capture, file->path, &scratch);
		np_arena_release(&scratch);
	}
}
