#include "capture/comm_rows.h"

#include <math.h>
#include <string.h>

int64_t np_comm_step(np_str text)
{
	int64_t step;
	if (np_str_starts(text, NP_STR("step")))
		text = np_str_from(text, strlen("step"));
	return np_str_to_i64(text, &step) ? step : NP_NO_I64;
}

bool np_comm_name(struct np_profile *profile, np_str text, struct np_comm_key *key)
{
	np_str group, name = np_str_cut(text, '@', &group);
	key->op = np_intern_add(&profile->strings, name);
	key->group = group.len > 0 ? np_intern_add(&profile->strings, group) : NP_ID_NONE;
	return key->op != NP_ID_NONE && (group.len == 0 || key->group != NP_ID_NONE);
}

bool np_comm_is_op(np_str key)
{
	return np_str_contains(key, NP_STR("@")) || np_str_istarts(key, NP_STR("hcom_")) ||
	       np_str_istarts(key, NP_STR("total"));
}

bool np_comm_is_p2p(np_str op)
{
	return np_str_istarts(op, NP_STR("hcom_send")) ||
	       np_str_istarts(op, NP_STR("hcom_receive")) ||
	       np_str_istarts(op, NP_STR("hcom_batchsendrecv"));
}

uint32_t np_comm_u32(np_str text)
{
	uint64_t value;
	return np_str_to_u64(text, &value) && value < NP_NO_U32 ? (uint32_t)value : NP_NO_U32;
}

bool np_comm_add_time(struct np_profile *profile, const struct np_comm_key *key,
                      const struct np_comm_times *times)
{
	size_t i = np_profile_add(profile, comm_time);
	if (i == SIZE_MAX)
		return false;
	struct np_comm_time *t = &profile->comm_time;
	t->step[i] = key->step;
	t->p2p[i] = key->p2p;
	t->op[i] = key->op;
	t->group[i] = key->group;
	t->start_us[i] = times->start_us;
	t->elapse_ms[i] = times->elapse_ms;
	t->transit_ms[i] = times->transit_ms;
	t->wait_ms[i] = times->wait_ms;
	t->sync_ms[i] = times->sync_ms;
	t->idle_ms[i] = times->idle_ms;
	return true;
}

bool np_comm_add_bandwidth(struct np_profile *profile, const struct np_comm_key *key,
                           const struct np_comm_link *link, const double *package)
{
	size_t i = np_profile_add(profile, comm_bandwidth);
	if (i == SIZE_MAX)
		return false;
	struct np_comm_bandwidth *b = &profile->comm_bandwidth;
	b->step[i] = key->step;
	b->p2p[i] = key->p2p;
	b->op[i] = key->op;
	b->group[i] = key->group;
	b->transport[i] = link->transport;
	b->transit_mb[i] = link->transit_mb;
	b->transit_ms[i] = link->transit_ms;
	b->gbps[i] = link->gbps;
	b->large_ratio[i] = link->large_ratio;
	b->package_mb[i] = package ? package[0] : NAN;
	b->package_count[i] = package ? package[1] : NAN;
	b->package_ms[i] = package ? package[2] : NAN;
	return true;
}

bool np_comm_add_matrix(struct np_profile *profile, const struct np_comm_key *key, uint32_t src,
                        uint32_t dst, const struct np_comm_link *link, uint32_t op_name)
{
	size_t i = np_profile_add(profile, comm_matrix);
	if (i == SIZE_MAX)
		return false;
	struct np_comm_matrix *m = &profile->comm_matrix;
	m->step[i] = key->step;
	m->p2p[i] = key->p2p;
	m->kind[i] = key->op;
	m->group[i] = key->group;
	m->src[i] = src;
	m->dst[i] = dst;
	m->transport[i] = link->transport;
	m->transit_mb[i] = link->transit_mb;
	m->transit_ms[i] = link->transit_ms;
	m->gbps[i] = link->gbps;
	m->op[i] = op_name;
	return true;
}

bool np_comm_link_used(const struct np_comm_link *link)
{
	return link->transit_mb > 0 || link->transit_ms > 0;
}
