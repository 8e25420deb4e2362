#include "capture/role.h"

#include "profile/profile.h"

const char *np_role_name(enum np_role role)
{
	static const char *const names[] = {"none",
#define X(id, name, loss) name,
	                                    NP_ROLE_MAP(X)
#undef X
	};
	return names[role];
}

const char *np_role_loss(enum np_role role)
{
	static const char *const losses[] = {"",
#define X(id, name, loss) loss,
	                                     NP_ROLE_MAP(X)
#undef X
	};
	return losses[role];
}

/* stem (the name without number, slice, time stamp and extension), extension, role;
 * the same product has other names in other exporters (R40, R42) */
static const struct {
	const char *stem, *ext;
	enum np_role role;
} known[] = {
	{"profiler_info", "json", NP_ROLE_PROFILER_INFO},
	{"profiler_metadata", "json", NP_ROLE_METADATA},
	{"trace_view", "json", NP_ROLE_TRACE},
	{"msprof", "json", NP_ROLE_TRACE},
	{"msprof_step_trace_full", "json", NP_ROLE_TRACE},
	{"kernel_details", "csv", NP_ROLE_KERNELS},
	{"op_summary", "csv", NP_ROLE_OP_SUMMARY},
	{"task_time", "csv", NP_ROLE_TASK_TIME},
	{"step_trace_time", "csv", NP_ROLE_STEP_TRACE},
	{"step_trace", "csv", NP_ROLE_STEP_TRACE_MSPROF},
	{"op_statistic", "csv", NP_ROLE_OP_STATISTIC},
	{"api_statistic", "csv", NP_ROLE_API_STATISTIC},
	{"operator_details", "csv", NP_ROLE_OPERATOR_DETAILS},
	{"operator_memory", "csv", NP_ROLE_OPERATOR_MEMORY},
	{"memory_record", "csv", NP_ROLE_MEMORY_RECORD},
	{"npu_module_mem", "csv", NP_ROLE_NPU_MODULE_MEM},
	{"static_op_mem", "csv", NP_ROLE_STATIC_OP_MEM},
	{"l2_cache", "csv", NP_ROLE_L2_CACHE},
	{"soc_pmu", "csv", NP_ROLE_SOC_PMU},
	{"data_preprocess", "csv", NP_ROLE_DATA_PREPROCESS},
	{"aicpu", "csv", NP_ROLE_DATA_PREPROCESS},
	{"communication", "json", NP_ROLE_COMM_JSON},
	{"communication_matrix", "json", NP_ROLE_COMM_MATRIX},
	{"communication_statistic", "csv", NP_ROLE_COMM_STATISTIC},
	{"nic", "csv", NP_ROLE_LINK_CSV},
	{"roce", "csv", NP_ROLE_LINK_CSV},
	{"pcie", "csv", NP_ROLE_LINK_CSV},
	{"hccs", "csv", NP_ROLE_LINK_CSV},
	{"ascend_pytorch_profiler", "db", NP_ROLE_PROFILER_DB},
	{"ascend_mindspore_profiler", "db", NP_ROLE_PROFILER_DB},
	{"msprof", "db", NP_ROLE_MSPROF_DB},
	{"analysis", "db", NP_ROLE_ANALYSIS_DB},
	{"communication_analyzer", "db", NP_ROLE_ANALYSIS_DB},
	{"cluster_analysis", "db", NP_ROLE_CLUSTER_DB},
	{"cluster_step_trace_time", "csv", NP_ROLE_CLUSTER_FILE},
	{"cluster_communication", "json", NP_ROLE_CLUSTER_FILE},
	{"cluster_communication_matrix", "json", NP_ROLE_CLUSTER_FILE},
	{"communication_group", "json", NP_ROLE_CLUSTER_FILE},
	{"sample", "json", NP_ROLE_SAMPLE_JSON},
	{"info", "json", NP_ROLE_INFO_JSON},
};

/* "name.ext" at its last point; no extension gives an empty one */
static np_str split_extension(np_str *name)
{
	for (size_t i = name->len; i-- > 0;)
		if (name->ptr[i] == '.') {
			np_str ext = np_str_from(*name, i + 1);
			name->len = i;
			return ext;
		}
	return (np_str){NULL, 0};
}

/* Length of the digits that the text ends in. */
static size_t trailing_digits(np_str text)
{
	size_t n = 0;
	while (n < text.len && (unsigned char)(text.ptr[text.len - 1 - n] - '0') <= 9)
		n++;
	return n;
}

/* Take "_<digits>" off the end; the digits, or empty. */
static np_str take_number(np_str *stem)
{
	size_t n = trailing_digits(*stem);
	if (n == 0 || n >= stem->len || stem->ptr[stem->len - 1 - n] != '_')
		return (np_str){NULL, 0};
	np_str digits = np_str_from(*stem, stem->len - n);
	stem->len -= n + 1;
	return digits;
}

/* "_slice_<N>" stands at the end or before the time stamp. */
static void take_slice_and_stamp(np_str *stem, struct np_name *out)
{
	for (int round = 0; round < 2; round++) {
		np_str before = *stem;
		np_str digits = take_number(stem);
		if (digits.len == 0)
			return;
		int64_t value = 0;
		if (np_str_ends(*stem, NP_STR("_slice")) && np_str_to_i64(digits, &value) &&
		    value < INT32_MAX) {
			out->slice = (int)value;
			stem->len -= sizeof "_slice" - 1;
		} else if (digits.len >= 8 && out->timestamp.len == 0) {
			out->timestamp = digits;
		} else {
			*stem = before;
			return;
		}
	}
}

static enum np_role look_up(np_str stem, np_str ext)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (np_str_is(stem, known[i].stem) && np_str_is(ext, known[i].ext))
			return known[i].role;
	return NP_ROLE_NONE;
}

/* Families of names that are not a stem and a number. */
static enum np_role look_up_odd(np_str name, np_str stem, np_str ext)
{
	if (np_str_is(ext, "db")) {
		if (np_str_ends(stem, NP_STR("mindstudio_insight_data")) ||
		    np_str_is(stem, "cluster"))
			return NP_ROLE_INSIGHT_DB;
		if (np_str_starts(stem, NP_STR("msmonitor_")))
			return NP_ROLE_MSMONITOR_DB;
	}
	if (np_str_starts(name, NP_STR("info.json.")) && trailing_digits(name) == ext.len)
		return NP_ROLE_INFO_JSON;
	/* host_start.log and dev_start.log of a raw dump are clocks, not messages */
	if (np_str_is(ext, "log") && !np_str_ends(stem, NP_STR("_start")))
		return NP_ROLE_LOG;
	if (np_str_ends(stem, NP_STR(".pt.trace")) && np_str_is(ext, "json"))
		return NP_ROLE_TRACE;
	/* kernel_details_rank0.csv, op_summary_new.csv: what people make of them */
	if (np_str_is(ext, "csv") && np_str_starts(stem, NP_STR("kernel_details")))
		return NP_ROLE_KERNELS;
	if (np_str_is(ext, "csv") && np_str_starts(stem, NP_STR("op_summary")))
		return NP_ROLE_OP_SUMMARY;
	if (np_str_is(ext, "csv"))
		return NP_ROLE_OTHER_CSV;
	return NP_ROLE_NONE;
}

struct np_name np_name_parse(np_str file_name)
{
	struct np_name out = {.slice = -1, .rank = NP_NO_I64};
	np_str name = file_name;
	if (np_str_ends(name, NP_STR(".gz"))) {
		out.gzip = true;
		name.len -= 3;
	}
	np_str stem = name;
	np_str ext = split_extension(&stem);
	np_str plain = stem;
	take_slice_and_stamp(&plain, &out);
	out.role = look_up(plain, ext);
	if (out.role == NP_ROLE_NONE) {
		np_str unranked = plain;
		np_str digits = take_number(&unranked);
		enum np_role role = look_up(unranked, ext);
		if ((role == NP_ROLE_PROFILER_INFO || role == NP_ROLE_PROFILER_DB) &&
		    np_str_to_i64(digits, &out.rank))
			out.role = role;
	}
	if (out.role == NP_ROLE_NONE)
		out.role = look_up_odd(name, stem, ext);
	return out;
}
