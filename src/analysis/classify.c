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
/* As kernel_details.csv and, with KERNEL_, as task_time and the db's tasks spell them. */
static const char *const vector_cores[] = {"AI_VECTOR_CORE", "MIX_AIV", "KERNEL_AIVEC",
                                           "KERNEL_MIX_AIV", NULL};
static const char *const cube_cores[] = {"AI_CORE", "MIX_AIC", "KERNEL_AICORE", "KERNEL_MIX_AIC",
                                         NULL};
static const char *const aicpu_cores[] = {"AI_CPU", "AICPU", "KERNEL_AICPU", NULL};

static bool is_any(np_str text, const char *const *words)
{
	for (; *words; words++)
		if (np_str_ieq(text, np_str_of(*words)))
			return true;
	return false;
}

/*
 * The operator type at the end of a name of the aclnn libraries:
 * aclnnMatmul_TransData_TransData is a TransData, whatever called it. Other
 * names are returned whole.
 */
static np_str type_in_name(np_str name)
{
	if (!np_str_starts(name, NP_STR("aclnn")))
		return name;
	size_t at = name.len;
	while (at > 0 && name.ptr[at - 1] != '_')
		at--;
	return at > 0 && at < name.len ? np_str_from(name, at) : name;
}

/* What a type or, for want of one, a name says. A vector core multiplies no
 * matrices: UpsampleBilinear2d holds the word "linear" only by chance. */
static enum np_class by_words(np_str text, bool vector_core)
{
	if (starts_any(text, comm_starts))
		return NP_CLASS_COMM;
	if (has_any(text, sync_words))
		return NP_CLASS_SYNC;
	if (has_any(text, attention_words))
		return NP_CLASS_ATTENTION;
	if (!vector_core && !np_str_icontains(text, NP_STR("bilinear")) &&
	    has_any(text, matmul_words))
		return NP_CLASS_MATMUL;
	if (has_any(text, transfer_words))
		return NP_CLASS_TRANSFER;
	return NP_CLASS_OTHER;
}

/* `split`: the chip has vector cores of their own. On a 910A all work is AI_CORE. */
static enum np_class classify(np_str name, np_str type, np_str core, bool split)
{
	if (np_is_comm_core(core) || starts_any(name, comm_starts) || starts_any(type, comm_starts))
		return NP_CLASS_COMM;
	if (has_any(core, sync_words))
		return NP_CLASS_SYNC;
	if (is_any(core, aicpu_cores) || (core.len == 0 && np_str_contains(name, NP_STR("Aicpu_"))))
		return NP_CLASS_AICPU;
	bool vector_core = is_any(core, vector_cores);
	enum np_class class = by_words(type.len ? type : type_in_name(name), vector_core);
	if (class != NP_CLASS_OTHER)
		return class;
	if (vector_core)
		return NP_CLASS_VECTOR;
	/* cube work of a type that no word names */
	if (is_any(core, cube_cores))
		return split ? NP_CLASS_MATMUL : NP_CLASS_VECTOR;
	/* Level0 of 2024 records neither type nor core: what is left is vector work */
	return core.len == 0 && type.len == 0 ? NP_CLASS_VECTOR : NP_CLASS_OTHER;
}

enum np_class np_classify(np_str name, np_str type, np_str core)
{
	return classify(name, type, core, true);
}

/* Does any kernel run on a vector core or on both kinds? */
static bool has_split_cores(const struct np_profile *profile)
{
	const struct np_kernels *kernels = &profile->kernels;
	uint32_t last = NP_ID_NONE;
	for (size_t i = 0; i < kernels->n; i++) {
		if (kernels->core[i] == last)
			continue;
		last = kernels->core[i];
		np_str core = np_intern_get(&profile->strings, last);
		if (is_any(core, vector_cores) || np_str_icontains(core, NP_STR("MIX_")))
			return true;
	}
	return false;
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
	bool ok = true, split = has_split_cores(profile);
	np_map_init(&pairs);
	np_map_init(&known);
	for (size_t i = 0; ok && i < kernels->n; i++) {
		uint32_t pair = pair_number(&pairs, kernels->type[i], kernels->core[i]);
		uint64_t key = (uint64_t)kernels->name[i] << 32 | pair;
		uint32_t class = np_map_get(&known, key, NP_N_CLASSES);
		if (class == NP_N_CLASSES) {
			class = classify(np_intern_get(&profile->strings, kernels->name[i]),
			                 np_intern_get(&profile->strings, kernels->type[i]),
			                 np_intern_get(&profile->strings, kernels->core[i]), split);
			ok = pair != UINT32_MAX && np_map_put(&known, key, class);
		}
		out[i] = (uint8_t) class;
	}
	np_map_release(&pairs);
	np_map_release(&known);
	return ok;
}
