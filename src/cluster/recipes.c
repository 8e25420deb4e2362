/* The modes, and what their digests may hold. */
#include "cluster/internal.h"
#include "cluster/parts.h"

extern const struct np_recipe np_recipe_all;
extern const struct np_recipe np_recipe_calibrate_npu_gpu;
extern const struct np_recipe np_recipe_cann_api_sum;
extern const struct np_recipe np_recipe_cluster_time_compare_summary;
extern const struct np_recipe np_recipe_cluster_time_summary;
extern const struct np_recipe np_recipe_communication;
extern const struct np_recipe np_recipe_communication_bottleneck;
extern const struct np_recipe np_recipe_communication_group_map;
extern const struct np_recipe np_recipe_communication_matrix;
extern const struct np_recipe np_recipe_communication_matrix_sum;
extern const struct np_recipe np_recipe_communication_time;
extern const struct np_recipe np_recipe_communication_time_sum;
extern const struct np_recipe np_recipe_computational_op_masking;
extern const struct np_recipe np_recipe_compute_op_sum;
extern const struct np_recipe np_recipe_diagnose;
extern const struct np_recipe np_recipe_ep_load_balance;
extern const struct np_recipe np_recipe_export_summary;
extern const struct np_recipe np_recipe_free_analysis;
extern const struct np_recipe np_recipe_freq_analysis;
extern const struct np_recipe np_recipe_hccl_sum;
extern const struct np_recipe np_recipe_module_statistic;
extern const struct np_recipe np_recipe_mstx2commop;
extern const struct np_recipe np_recipe_mstx_sum;
extern const struct np_recipe np_recipe_operator_mfu;
extern const struct np_recipe np_recipe_p2p_pairing;
extern const struct np_recipe np_recipe_pp_chart;
extern const struct np_recipe np_recipe_slow_link;
extern const struct np_recipe np_recipe_slow_rank;
extern const struct np_recipe np_recipe_summary;

const struct np_recipe *const np_recipes[] = {
	&np_recipe_all,
	&np_recipe_calibrate_npu_gpu,
	&np_recipe_cann_api_sum,
	&np_recipe_cluster_time_compare_summary,
	&np_recipe_cluster_time_summary,
	&np_recipe_communication,
	&np_recipe_communication_bottleneck,
	&np_recipe_communication_group_map,
	&np_recipe_communication_matrix,
	&np_recipe_communication_matrix_sum,
	&np_recipe_communication_time,
	&np_recipe_communication_time_sum,
	&np_recipe_computational_op_masking,
	&np_recipe_compute_op_sum,
	&np_recipe_diagnose,
	&np_recipe_ep_load_balance,
	&np_recipe_export_summary,
	&np_recipe_free_analysis,
	&np_recipe_freq_analysis,
	&np_recipe_hccl_sum,
	&np_recipe_module_statistic,
	&np_recipe_mstx2commop,
	&np_recipe_mstx_sum,
	&np_recipe_operator_mfu,
	&np_recipe_p2p_pairing,
	&np_recipe_pp_chart,
	&np_recipe_slow_link,
	&np_recipe_slow_rank,
	&np_recipe_summary,
};
const size_t np_n_recipes = sizeof np_recipes / sizeof *np_recipes;

const struct np_recipe *np_recipe_find(np_str name)
{
	for (size_t i = 0; i < np_n_recipes; i++)
		if (np_str_is(name, np_recipes[i]->name))
			return np_recipes[i];
	return NULL;
}
