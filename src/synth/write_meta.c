/* What stands beside the measurements: profiler_info, profiler_metadata, logs, and
 * the raw directories that nobody exported. */
#include "synth/write.h"

#include <stdio.h>

enum np_status np_synth_finish(struct np_out *out, struct np_synth_stats *stats, struct np_err *err)
{
	NP_TRY(np_out_close(out, &stats->bytes, err));
	stats->files++;
	return NP_OK;
}

void np_synth_stamp(char out[32], np_ns ns)
{
	char date[32];
	(void)np_ns_format_date(date, sizeof date, ns);
	size_t n = 0;
	for (const char *p = date; *p; p++)
		if (*p >= '0' && *p <= '9')
			out[n++] = *p;
	out[n] = '\0';
}

void np_synth_groups_json(struct np_buf *out, const struct np_synth_run *run)
{
	const struct np_synth_plan *plan = run->plan;
	bool any = false;
	np_buf_add_char(out, '{');
	for (size_t i = 0; i < plan->n_groups; i++) {
		const struct np_synth_group *group = &plan->groups[i];
		uint32_t at = run->rank - group->first;
		if (run->rank < group->first || at % group->stride ||
		    at / group->stride >= group->count)
			continue;
		char name[NP_SYNTH_GROUP_NAME];
		np_synth_group_name(plan, group, name);
		np_buf_printf(out,
		              "%s\"%s\": {\"group_name\": \"%s\", \"group_rank\": %u, "
		              "\"global_ranks\": [",
		              any ? ", " : "", name, group->label, at / group->stride);
		for (uint32_t k = 0; k < group->count; k++)
			np_buf_printf(out, k ? ", %u" : "%u", group->first + k * group->stride);
		np_buf_add_cstr(out, "]}");
		any = true;
	}
	np_buf_add_char(out, '}');
}

const char *const np_synth_env_json =
	"{\"ASCEND_GLOBAL_LOG_LEVEL\": \"3\", \"HCCL_RDMA_TC\": \"\", \"HCCL_RDMA_SL\": \"\", "
	"\"ACLNN_CACHE_LIMIT\": \"\", \"HOST_CACHE_CAPACITY\": \"\", \"ASCEND_ENHANCE_ENABLE\": "
	"\"\", "
	"\"PYTORCH_NPU_ALLOC_CONF\": \"expandable_segments:True\", \"ASCEND_LAUNCH_BLOCKING\": "
	"\"\", "
	"\"HCCL_ALGO\": \"\"}";

static const char *boolean(bool value)
{
	return value ? "true" : "false";
}

static void config_json(struct np_buf *out, const struct np_synth_run *run, unsigned formats)
{
	uint32_t active =
		run->plan->options.steps + (np_synth_has(run, NP_SYNTH_UNCLOSED_STEP) ? 2 : 0);
	np_buf_printf(
		out,
		"{\n    \"config\": {\n        \"common_config\": {\n"
		"            \"activities\": [\n                \"ProfilerActivity.CPU\",\n"
		"                \"ProfilerActivity.NPU\"\n            ],\n"
		"            \"schedule\": {\n                \"wait\": 0,\n"
		"                \"active\": %u,\n                \"warmup\": 2,\n"
		"                \"repeat\": 1,\n                \"skip_first\": %u\n            "
		"},\n"
		"            \"record_shapes\": true,\n            \"profile_memory\": true,\n"
		"            \"with_stack\": false,\n            \"with_flops\": false,\n"
		"            \"with_modules\": false\n        },\n",
		active, run->plan->first_step - 2);
	np_buf_printf(out,
	              "        \"experimental_config\": {\n            \"_profiler_level\": "
	              "\"Level%d\",\n"
	              "            \"_aic_metrics\": \"%s\",\n            \"_l2_cache\": false,\n"
	              "            \"_msprof_tx\": %s,\n            \"_mstx\": %s,\n"
	              "            \"_data_simplification\": %s,\n            \"record_op_args\": "
	              "false,\n",
	              run->level, run->level ? "ACL_AICORE_PIPE_UTILIZATION" : "ACL_AICORE_NONE",
	              boolean(run->marks.n > 0), boolean(run->marks.n > 0),
	              boolean(!(formats & NP_SYNTH_MSPROF)));
	bool text = formats & (NP_SYNTH_TEXT | NP_SYNTH_MSPROF), db = formats & NP_SYNTH_DB;
	np_buf_printf(out, "            \"_export_type\": [\n%s%s%s            ],\n",
	              text ? "                \"text\"" : "", text ? db ? ",\n" : "\n" : "",
	              db ? "                \"db\"\n" : "");
	np_buf_add_cstr(
		out,
		"            \"_host_sys\": [],\n            \"_op_attr\": false,\n"
		"            \"_gc_detect_threshold\": null,\n"
		"            \"_mstx_domain_include\": [],\n            \"_mstx_domain_exclude\": "
		"[],\n"
		"            \"_sys_io\": false,\n            \"_sys_interconnection\": false\n"
		"        }\n    },\n");
}

static void clocks_json(struct np_buf *out, const struct np_synth_run *run)
{
	/* the machine was up for ten days; CLOCK_MONOTONIC and its 100 MHz counter agree */
	np_ns up = run->plan->options.start_epoch_ns - 864000ll * 1000000000 + run->shift_ns;
	np_buf_printf(
		out,
		"    \"start_info\": {\n        \"syscnt_enable\": true,\n        \"freq\": 100,\n"
		"        \"start_cnt\": %lld,\n        \"start_monotonic\": %lld\n    },\n"
		"    \"end_info\": {\n        \"collectionTimeEnd\": %lld,\n"
		"        \"MonotonicTimeEnd\": %lld\n    }",
		(long long)((run->session_start_ns - up) / 10),
		(long long)(run->session_start_ns - up), (long long)run->session_end_ns,
		(long long)(run->session_end_ns - up));
	if (!np_synth_has(run, NP_SYNTH_OLD_HEADER) && !np_synth_has(run, NP_SYNTH_ASCEND_910A))
		np_buf_add_cstr(out, ",\n    \"torch_npu_version\": \"2.7.1\",\n    "
		                     "\"cann_version\": \"8.3.RC1\"");
	if (!np_synth_has(run, NP_SYNTH_RANK_UNKNOWN))
		np_buf_printf(out, ",\n    \"rank_id\": \"%u\"", run->rank);
	np_buf_add_cstr(out, "\n}");
}

/* A whole file from a buffer, which is released. */
static enum np_status write_buf(struct np_buf *text, const char *dir, const char *name,
                                struct np_synth_stats *stats, struct np_err *err)
{
	struct np_out out;
	enum np_status status =
		text->failed ? np_err_nomem(err) : np_out_open(&out, dir, name, err);
	if (status == NP_OK) {
		np_out_bytes(&out, text->ptr, text->len);
		status = np_synth_finish(&out, stats, err);
	}
	np_buf_release(text);
	return status;
}

void np_synth_distributed_json(struct np_buf *out, const struct np_synth_run *run)
{
	const struct np_synth_plan *plan = run->plan;
	np_buf_printf(out,
	              "{\"tensor_model_parallel_size\": %u, "
	              "\"pipeline_model_parallel_size\": %u, \"data_parallel_size\": %u, "
	              "\"context_parallel_size\": 1, \"expert_model_parallel_size\": %u, "
	              "\"sequence_parallel\": false, \"rank\": %u, \"world_size\": %u}",
	              plan->tp, plan->pp, plan->dp, plan->ep, run->rank, plan->options.ranks);
}

static void metadata_json(struct np_buf *out, const struct np_synth_run *run)
{
	np_buf_add_cstr(out, "{\"distributed_args\": ");
	np_synth_distributed_json(out, run);
	np_buf_add_cstr(out, ", \"ENV_VARIABLES\": ");
	np_buf_add_cstr(out, np_synth_env_json);
	np_buf_add_cstr(out, ", \"parallel_group_info\": ");
	np_synth_groups_json(out, run);
	np_buf_add_char(out, '}');
}

enum np_status np_synth_write_meta(const struct np_synth_run *run, const char *dir,
                                   unsigned formats, struct np_synth_stats *stats,
                                   struct np_err *err)
{
	char name[64] = "profiler_info.json";
	struct np_buf text = {.ptr = NULL};
	config_json(&text, run, formats);
	clocks_json(&text, run);
	if (!np_synth_has(run, NP_SYNTH_RANK_UNKNOWN))
		(void)snprintf(name, sizeof name, "profiler_info_%u.json", run->rank);
	NP_TRY(write_buf(&text, dir, name, stats, err));
	struct np_buf metadata = {.ptr = NULL};
	metadata_json(&metadata, run);
	return write_buf(&metadata, dir, "profiler_metadata.json", stats, err);
}

enum np_status np_synth_write_log(const struct np_synth_run *run, const char *dir,
                                  struct np_synth_stats *stats, struct np_err *err)
{
	char stamp[32], name[96];
	np_synth_stamp(stamp, run->session_end_ns);
	bool failed = np_synth_has(run, NP_SYNTH_RUN_FAILED);
	struct np_buf text = {.ptr = NULL};
	static const char *const parsers[] = {"TorchOpParser", "CANNExportParser",
	                                      "KernelViewParser"};
	for (int i = 0; i < 3; i++)
		np_buf_printf(&text, "[2025-06-01-08:00:0%d.%03d] [%s] [AscendProfiler_%s:%d] %s\n",
		              i, i * 31, failed && i == 2 ? "ERROR" : "INFO", parsers[i], 40 + i,
		              failed && i == 2 ? "Failed to generate kernel_details.csv."
		                               : "finished.");
	(void)snprintf(name, sizeof name, "profiler_%s_%u_KernelViewParser.log", stamp, run->pid);
	return write_buf(&text, dir, name, stats, err);
}

/* What the training job's stdout would hold, colours and all. */
enum np_status np_synth_write_run_log(const struct np_synth_run *run, const char *root,
                                      struct np_synth_stats *stats, struct np_err *err)
{
	char name[64], date[32];
	(void)np_ns_format_date(date, sizeof date, run->session_end_ns);
	date[19] = '\0';
	struct np_buf text = {.ptr = NULL};
	const char *warn = "\x1b[33m[WARNING]\x1b[0m", *error = "\x1b[31m[ERROR]\x1b[0m";
	np_buf_printf(&text,
	              "step 11 loss 2.310\n[%s] [INFO] [%u] profiler.py: Start parsing profiling "
	              "data in sync mode\n",
	              date, run->pid);
	if (np_synth_has(run, NP_SYNTH_UNCLOSED_STEP) || np_synth_has(run, NP_SYNTH_RUN_FAILED))
		np_buf_printf(&text,
		              "[%s] %s [%u] profiler.py: Incorrect schedule: Stop profiler while "
		              "current state "
		              "is RECORD which may result in incomplete parsed data.\n",
		              date, warn, run->pid);
	if (np_synth_has(run, NP_SYNTH_RUN_FAILED))
		np_buf_printf(&text,
		              "[%s] %s [%u] profiler.py: Task [KernelViewParser] run failed.\n"
		              "[%s] %s [%u] profiler.py: Task [StepTraceTimeParser] run failed.\n",
		              date, error, run->pid, date, error, run->pid);
	np_buf_printf(&text,
	              "[%s] [INFO] [%u] profiler.py: All profiling data parsed in a total time of "
	              "0:00:12.345\n",
	              date, run->pid);
	(void)snprintf(name, sizeof name, "log_%u.log", run->rank);
	return write_buf(&text, root, name, stats, err);
}

/* A small file of bytes that look like records; nobody can export them. */
static enum np_status placeholder(const char *dir, const char *name, uint64_t key,
                                  struct np_synth_stats *stats, struct np_err *err)
{
	struct np_buf text = {.ptr = NULL};
	for (int i = 0; i < 128; i++)
		np_buf_add_char(&text, (char)(0x5a ^ (key * 31 + (uint64_t)i * 7)));
	return write_buf(&text, dir, name, stats, err);
}

static enum np_status raw_info(const struct np_synth_run *run, const char *dir, const char *name,
                               struct np_synth_stats *stats, struct np_err *err)
{
	struct np_buf text = {.ptr = NULL};
	np_buf_printf(&text,
	              "{\"jobInfo\": \"NA\", \"devices\": \"%u\", \"rank_id\": %u, "
	              "\"platform_version\": \"5\", "
	              "\"CPU\": [{\"Id\": 0, \"Name\": \"ARMv8\", \"Frequency\": \"100.000000\"}], "
	              "\"DeviceInfo\": [{\"id\": %u, \"hwts_frequency\": \"50\", "
	              "\"aic_frequency\": \"1800\", "
	              "\"ai_core_num\": 20}], \"pid\": \"%u\"}",
	              run->device, run->rank, run->device, run->pid);
	return write_buf(&text, dir, name, stats, err);
}

/* How msprof collected, as its sample.json tells. */
static enum np_status sample_info(const struct np_synth_run *run, const char *dir,
                                  struct np_synth_stats *stats, struct np_err *err)
{
	struct np_buf text = {.ptr = NULL};
	int level = np_synth_has(run, NP_SYNTH_NO_METRICS) ? 0 : run->plan->options.level;
	np_buf_printf(&text,
	              "{\"devices\": \"%u\", \"ai_core_profiling\": \"on\", "
	              "\"ai_core_profiling_mode\": \"task-based\", "
	              "\"ai_core_metrics\": \"PipeUtilization\", \"prof_level\": \"l%d\", "
	              "\"hcclTrace\": \"on\", \"taskTime\": \"on\"}",
	              run->device, level);
	return write_buf(&text, dir, "sample.json", stats, err);
}

enum np_status np_synth_write_prof_info(const struct np_synth_run *run, const char *host,
                                        const char *device, struct np_synth_stats *stats,
                                        struct np_err *err)
{
	char name[32];
	(void)snprintf(name, sizeof name, "info.json.%u", run->device);
	NP_TRY(raw_info(run, host, "info.json", stats, err));
	NP_TRY(sample_info(run, host, stats, err));
	NP_TRY(sample_info(run, device, stats, err));
	return raw_info(run, device, name, stats, err);
}

enum np_status np_synth_write_raw(const struct np_synth_run *run, const char *framework,
                                  const char *host_data, const char *device_data,
                                  struct np_synth_stats *stats, struct np_err *err)
{
	char name[64];
	NP_TRY(placeholder(framework, "torch.op_range", run->rank, stats, err));
	NP_TRY(placeholder(framework, "torch.op_mark", run->rank + 1u, stats, err));
	NP_TRY(placeholder(host_data, "aging.api_event.data.slice_0", run->rank + 2u, stats, err));
	(void)snprintf(name, sizeof name, "stars_soc.data.%u.slice_0", run->device);
	return placeholder(device_data, name, run->rank + 3u, stats, err);
}
