#include "analysis/classify.h"

#include "base/map.h"

const char *np_class_name(enum np_class class)
{
	static const char *const names[] = {
#define X(id, name) name,
		NP_CLASS_MAP(X)
#undef X
	};
	return names[class];
}

static bool has_any(np_str text, const char *const *words)
{
	for (; *words; words++)
		if (np_str_icontains(text, np_str_of(*words)))
			return true;
	return false;
}

static bool starts_any(np_str text, const char *const *words)
{
	for (; *words; words++)
		if (np_str_istarts(text, np_str_of(*words)))
			return true;
	return false;
}

/* A wait is not work, whatever stream it stands on (requirements §2.4, method rules). */
static const char *const sync_words[] = {
	"notify_wait",   "notify wait",   "event_wait", "event_record",
	"notify_record", "notify record", NULL};
static const char *const comm_starts[] = {"hcom_", "hccl", "lccl", NULL};
static const char *const attention_words[] = {"attention", "flashattn", NULL};
static const char *const matmul_words[] = {"matmul", "gemm",   "conv2d", "conv3d", "convolution",
                                           "bmm",    "linear", "conv1d", NULL};
static const char *const transfer_words[] = {"cast",      "transdata",   "transpose", "tensormove",
                                             "memcpy",    "memset",      "viewcopy",  "inplacecopy",
                                             "slice",     "concat",      "split",     "contiguous",
                                             "asstrided", "broadcastto", NULL};

/* What a type or, for want of one, a name says. */
static enum np_class by_words(np_str text)
{
	if (starts_any(text, comm_starts))
		return NP_CLASS_COMM;
	if (has_any(text, sync_words))
		return NP_CLASS_SYNC;
	if (has_any(text, attention_words))
		return NP_CLASS_ATTENTION;
	if (has_any(text, matmul_words))
		return NP_CLASS_MATMUL;
	if (has_any(text, transfer_words))
		return NP_CLASS_TRANSFER;
	return NP_CLASS_OTHER;
}

enum np_class np_classify(np_str name, np_str type, np_str core)
{
	if (np_is_comm_core(core) || starts_any(name, comm_starts) || starts_any(type, comm_starts))
		return NP_CLASS_COMM;
	if (has_any(core, sync_words))
		return NP_CLASS_SYNC;
	if (np_str_ieq(core, NP_STR("AI_CPU")) || np_str_ieq(core, NP_STR("AICPU")))
		return NP_CLASS_AICPU;
	enum np_class class = by_words(type.len ? type : name);
	if (class != NP_CLASS_OTHER)
		return class;
	if (np_str_is(core, "AI_VECTOR_CORE") || np_str_is(core, "MIX_AIV"))
		return NP_CLASS_VECTOR;
	/* cube work of a type that no word names */
	if (np_str_is(core, "AI_CORE") || np_str_is(core, "MIX_AIC"))
		return NP_CLASS_MATMUL;
	/* Level0 of 2024 records neither type nor core: what is left is vector work */
	return core.len == 0 && type.len == 0 ? NP_CLASS_VECTOR : NP_CLASS_OTHER;
}

/* The dense number of a pair of ids; UINT32_MAX when memory is out. */
static uint32_t pair_number(struct np_map *pairs, uint32_t a, uint32_t b)
{
	uint64_t key = (uint64_t)a << 32 | b;
	uint32_t number = np_map_get(pairs, key, UINT32_MAX);
	if (number == UINT32_MAX && np_map_put(pairs, key, (uint32_t)pairs->n))
		number = (uint32_t)pairs->n - 1;
	return number;
}

bool np_classify_all(const struct np_profile *profile, uint8_t *out)
{
	const struct np_kernels *kernels = &profile->kernels;
	struct np_map pairs, known;
	bool ok = true;
	np_map_init(&pairs);
	np_map_init(&known);
	for (size_t i = 0; ok && i < kernels->n; i++) {
		uint32_t pair = pair_number(&pairs, kernels->type[i], kernels->core[i]);
		uint64_t key = (uint64_t)kernels->name[i] << 32 | pair;
		uint32_t class = np_map_get(&known, key, NP_N_CLASSES);
		if (class == NP_N_CLASSES) {
			class = np_classify(np_intern_get(&profile->strings, kernels->name[i]),
			                    np_intern_get(&profile->strings, kernels->type[i]),
			                    np_intern_get(&profile->strings, kernels->core[i]));
			ok = pair != UINT32_MAX && np_map_put(&known, key, class);
		}
		out[i] = (uint8_t) class;
	}
	np_map_release(&pairs);
	np_map_release(&known);
	return ok;
}
