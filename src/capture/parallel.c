#include "capture/parallel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *keep(struct np_captures *all, np_str text)
{
	const char *copy = np_arena_cstr(&all->arena, text);
	all->out_of_memory |= !copy;
	return copy ? copy : "";
}

static int64_t number(const struct np_jval *value, int64_t missing)
{
	int64_t out = missing;
	return np_ji64(value, &out) ? out : missing;
}

static bool is_object(const struct np_jval *value)
{
	return value && value->type == NP_J_OBJECT && value->n > 0;
}

/* ── groups ── */

uint64_t np_group_hash(np_str comm_name)
{
	uint32_t h0 = 0, h1 = 0;
	for (size_t i = 0; i < comm_name.len; i++) {
		h0 = h0 * 29 + (unsigned char)comm_name.ptr[i];
		h1 = h1 * 131 + (unsigned char)comm_name.ptr[i];
	}
	return (uint64_t)h0 << 32 | h1;
}

void np_group_key(np_str group, char out[NP_GROUP_KEY_SIZE])
{
	uint64_t hash;
	if (group.len == 0 || group.len >= NP_GROUP_KEY_SIZE || !np_str_to_u64(group, &hash))
		hash = np_group_hash(group);
	(void)snprintf(out, NP_GROUP_KEY_SIZE, "%" PRIu64, hash);
}

static void read_group(struct np_captures *all, struct np_group *group, const struct np_jval *value)
{
	group->comm_name = keep(all, value->key);
	group->name = keep(all, np_jstr(np_jget(value, "group_name")));
	group->hash = np_group_hash(value->key);
	const struct np_jval *ranks = np_jget(value, "global_ranks");
	size_t n = ranks && ranks->type == NP_J_ARRAY ? ranks->n : 0;
	int64_t *list = np_arena_alloc(&all->arena, n * sizeof *list);
	all->out_of_memory |= !list;
	if (!list)
		return;
	for (size_t i = 0; i < n; i++)
		list[i] = number(&ranks->child[i], -1);
	group->ranks = list;
	group->n_ranks = n;
}

void np_parallel_groups(struct np_captures *all, struct np_capture *capture,
                        const struct np_jval *info)
{
	if (!is_object(info) || capture->n_groups)
		return;
	capture->groups = np_arena_zalloc(&all->arena, info->n * sizeof *capture->groups);
	all->out_of_memory |= !capture->groups;
	if (!capture->groups)
		return;
	capture->n_groups = info->n;
	for (size_t i = 0; i < info->n; i++) {
		struct np_group *group = &capture->groups[i];
		read_group(all, group, &info->child[i]);
		if (strcmp(group->name, "default_group") == 0 && capture->world_size == NP_NO_I64)
			capture->world_size = (int64_t)group->n_ranks;
	}
}

/* ── sizes ── */

/* The object as json.dumps() of Python writes it, without one of its members. */
static const char *dump(struct np_captures *all, const struct np_jval *object, const char *without)
{
	struct np_buf text = {0};
	np_json_dump(&text, object, without);
	all->out_of_memory |= text.failed;
	const char *copy = text.failed ? "" : keep(all, np_buf_str(&text));
	np_buf_release(&text);
	return copy;
}

void np_parallel_args(struct np_captures *all, struct np_capture *capture,
                      const struct np_jval *args)
{
	struct np_parallel *parallel = &capture->parallel;
	const struct {
		const char *key, *shown;
		int64_t *size;
	} sizes[] = {
		{"tensor_model_parallel_size", "tp", &parallel->tp},
		{"pipeline_model_parallel_size", "pp", &parallel->pp},
		{"data_parallel_size", "dp", &parallel->dp},
		{"context_parallel_size", "cp", &parallel->cp},
		{"expert_model_parallel_size", "ep", &parallel->ep},
	};
	if (!is_object(args) || *capture->distributed_args)
		return;
	const char *text = "";
	for (size_t i = 0; text && i < sizeof sizes / sizeof *sizes; i++) {
		int64_t size = number(np_jget(args, sizes[i].key), NP_NO_I64);
		*sizes[i].size = size;
		if (size != NP_NO_I64)
			text = np_arena_printf(&all->arena, "%s%s%s=%lld", text, *text ? " " : "",
			                       sizes[i].shown, (long long)size);
	}
	all->out_of_memory |= !text;
	capture->distributed = text ? text : "";
	capture->distributed_args = dump(all, args, "rank");
	parallel->world = number(np_jget(args, "world_size"), NP_NO_I64);
	if (parallel->world > 0)
		capture->world_size = parallel->world;
}

void np_parallel_pipeline(struct np_captures *all, struct np_capture *capture,
                          const struct np_jval *info)
{
	if (is_object(info) && !*capture->pp_info)
		capture->pp_info = dump(all, info, NULL);
}
