/* The modes, and what their digests may hold. */
#include "cluster/internal.h"
#include "cluster/parts.h"

extern const struct np_recipe np_recipe_cann_api_sum;
extern const struct np_recipe np_recipe_cluster_time_compare_summary;
extern const struct np_recipe np_recipe_cluster_time_summary;
extern const struct np_recipe np_recipe_compute_op_sum;
extern const struct np_recipe np_recipe_ep_load_balance;
extern const struct np_recipe np_recipe_freq_analysis;
extern const struct np_recipe np_recipe_hccl_sum;
extern const struct np_recipe np_recipe_slow_link;
extern const struct np_recipe np_recipe_slow_rank;

const struct np_recipe *const np_recipes[] = {
	&np_recipe_cann_api_sum,
	&np_recipe_cluster_time_compare_summary,
	&np_recipe_cluster_time_summary,
	&np_recipe_compute_op_sum,
	&np_recipe_ep_load_balance,
	&np_recipe_freq_analysis,
	&np_recipe_hccl_sum,
	&np_recipe_slow_link,
	&np_recipe_slow_rank,
};
const size_t np_n_recipes = sizeof np_recipes / sizeof *np_recipes;

const struct np_recipe *np_recipe_find(np_str name)
{
	for (size_t i = 0; i < np_n_recipes; i++)
		if (np_str_is(name, np_recipes[i]->name))
			return np_recipes[i];
	return NULL;
}
