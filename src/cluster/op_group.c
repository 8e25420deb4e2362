#include "cluster/op_group.h"

enum { DOMAIN = 1000, NUMBER_DIGITS = 6 }; /* longer numbers are hashes */

/* 909 of "hcom_allReduce__909_4_1" */
static bool domain_of(np_str name, uint64_t *out)
{
	for (size_t i = 0; i + 5 < name.len; i++) {
		if (name.ptr[i] != '_' || name.ptr[i + 1] != '_')
			continue;
		return name.ptr[i + 5] == '_' && np_str_to_u64(np_str_sub(name, i + 2, 3), out);
	}
	return false;
}

static bool is_number_of_lane(np_str group)
{
	uint64_t number;
	return group.len == 0 || (group.len <= NUMBER_DIGITS && np_str_to_u64(group, &number));
}

uint64_t np_op_group(const struct np_capture *capture, np_str group, np_str op_name)
{
	uint64_t domain, found = UINT64_MAX;
	char key[NP_GROUP_KEY_SIZE];
	if (!is_number_of_lane(group)) {
		np_group_key(group, key);
		(void)np_str_to_u64(np_str_of(key), &found);
		return found;
	}
	if (!domain_of(op_name, &domain))
		return UINT64_MAX;
	for (size_t g = 0; g < capture->n_groups; g++) {
		uint64_t hash = capture->groups[g].hash;
		if (hash % DOMAIN != domain || hash == found)
			continue;
		if (found != UINT64_MAX)
			return domain; /* two with the same digits */
		found = hash;
	}
	return found != UINT64_MAX ? found : domain;
}
