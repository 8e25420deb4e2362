/* The modes, and what their digests may hold. */
#include "cluster/internal.h"
#include "cluster/parts.h"

extern const struct np_recipe np_recipe_all, np_recipe_communication_group_map,
	np_recipe_communication_matrix, np_recipe_communication_matrix_sum,
	np_recipe_communication_time, np_recipe_communication_time_sum;
extern const struct np_recipe np_recipe_diagnose;
extern const struct np_recipe np_recipe_hccl_sum;

const struct np_recipe *const np_recipes[] = {
	&np_recipe_all,
	&np_recipe_communication_group_map,
	&np_recipe_communication_matrix,
	&np_recipe_communication_matrix_sum,
	&np_recipe_communication_time,
	&np_recipe_communication_time_sum,
	&np_recipe_diagnose,
	&np_recipe_hccl_sum,
};
const size_t np_n_recipes = sizeof np_recipes / sizeof *np_recipes;

const struct np_recipe *np_recipe_find(np_str name)
{
	for (size_t i = 0; i < np_n_recipes; i++)
		if (np_str_is(name, np_recipes[i]->name))
			return np_recipes[i];
	return NULL;
}
