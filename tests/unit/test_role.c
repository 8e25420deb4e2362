#include "unit.h"

#include "capture/role.h"
#include "profile/profile.h"

static void file_names_tell_their_role(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum np_role role;
		int slice;
		const char *timestamp;
		int64_t rank;
	} cases[] = {
		{"kernel_details.csv", NP_ROLE_KERNELS, -1, "", NP_NO_I64},
		{"kernel_details_rank0.csv", NP_ROLE_KERNELS, -1, "", NP_NO_I64},
		{"op_summary_20250109084754.csv", NP_ROLE_OP_SUMMARY, -1, "20250109084754",
	         NP_NO_I64},
		{"op_summary_20250109084754_slice_3.csv", NP_ROLE_OP_SUMMARY, 3, "20250109084754",
	         NP_NO_I64},
		{"op_summary_slice_0_20250109084754.csv", NP_ROLE_OP_SUMMARY, 0, "20250109084754",
	         NP_NO_I64},
		{"msprof_20250109084754.json", NP_ROLE_TRACE, -1, "20250109084754", NP_NO_I64},
		{"msprof_slice_1_20250109084754.json", NP_ROLE_TRACE, 1, "20250109084754",
	         NP_NO_I64},
		{"msprof_20250109084754.db", NP_ROLE_MSPROF_DB, -1, "20250109084754", NP_NO_I64},
		{"msprof_step_trace_full.json", NP_ROLE_TRACE, -1, "", NP_NO_I64},
		{"trace_view.json", NP_ROLE_TRACE, -1, "", NP_NO_I64},
		{"trace_view.json.gz", NP_ROLE_TRACE, -1, "", NP_NO_I64},
		{"worker0.1736.pt.trace.json", NP_ROLE_TRACE, -1, "", NP_NO_I64},
		{"profiler_info.json", NP_ROLE_PROFILER_INFO, -1, "", NP_NO_I64},
		{"profiler_info_12.json", NP_ROLE_PROFILER_INFO, -1, "", 12},
		{"ascend_pytorch_profiler.db", NP_ROLE_PROFILER_DB, -1, "", NP_NO_I64},
		{"ascend_pytorch_profiler_0.db", NP_ROLE_PROFILER_DB, -1, "", 0},
		{"ascend_mindspore_profiler_3.db", NP_ROLE_PROFILER_DB, -1, "", 3},
		{"analysis.db", NP_ROLE_ANALYSIS_DB, -1, "", NP_NO_I64},
		{"communication.json", NP_ROLE_COMM_JSON, -1, "", NP_NO_I64},
		{"communication_matrix.json", NP_ROLE_COMM_MATRIX, -1, "", NP_NO_I64},
		{"communication_statistic_20250109084754.csv", NP_ROLE_COMM_STATISTIC, -1,
	         "20250109084754", NP_NO_I64},
		{"trace_view_mindstudio_insight_data.db", NP_ROLE_INSIGHT_DB, -1, "", NP_NO_I64},
		{"msmonitor_77_20250109084754123_-1.db", NP_ROLE_MSMONITOR_DB, -1, "", NP_NO_I64},
		{"info.json.0", NP_ROLE_INFO_JSON, -1, "", NP_NO_I64},
		{"info.json.0.done", NP_ROLE_NONE, -1, "", NP_NO_I64},
		{"cluster_analysis.db", NP_ROLE_CLUSTER_DB, -1, "", NP_NO_I64},
		{"profiler_20250109_77_CannExport.log", NP_ROLE_LOG, -1, "", NP_NO_I64},
		{"whatever.csv", NP_ROLE_OTHER_CSV, -1, "", NP_NO_I64},
		{"kernel_details", NP_ROLE_NONE, -1, "", NP_NO_I64},
		{"", NP_ROLE_NONE, -1, "", NP_NO_I64},
		{"_slice_", NP_ROLE_NONE, -1, "", NP_NO_I64},
		{"99999999.csv", NP_ROLE_OTHER_CSV, -1, "", NP_NO_I64},
		{".gz", NP_ROLE_NONE, -1, "", NP_NO_I64},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct np_name got = np_name_parse(np_str_of(cases[i].name));
		bool same = got.role == cases[i].role && got.slice == cases[i].slice &&
		            np_str_is(got.timestamp, cases[i].timestamp) &&
		            got.rank == cases[i].rank;
		if (!same)
			fail_msg("%s: role %s slice %d stamp %.*s rank %lld", cases[i].name,
			         np_role_name(got.role), got.slice, NP_FMT(got.timestamp),
			         (long long)got.rank);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_names_tell_their_role),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
