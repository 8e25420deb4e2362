/*
 * The members of profiler_config.json, as torch_npu's dynamic_profile reads them
 * (torch_npu.md §6.1): what each may be, and what torch_npu takes instead of a value
 * that it does not accept. It says nothing aloud about that, so we do.
 */
#ifndef NP_COLLECT_DYNAMIC_FIELDS_H
#define NP_COLLECT_DYNAMIC_FIELDS_H

#include "io/json.h"

#define NP_DYN_FILE_NAME "profiler_config.json"

enum np_dyn_kind {
	NP_DYN_BOOL,
	NP_DYN_BOOL_OR_NULL,
	NP_DYN_INT,            /* at least `min` */
	NP_DYN_NUMBER_OR_NULL, /* at least `min` */
	NP_DYN_TEXT,
	NP_DYN_WORD,          /* one of `words` */
	NP_DYN_WORDS,         /* a list of them */
	NP_DYN_WORD_OR_WORDS, /* either */
	NP_DYN_INTS,          /* a list of integers, each at least `min` */
	NP_DYN_TEXTS,
	NP_DYN_OBJECT,
};

/* id, key, inside of experimental_config, kind, min, words, what torch_npu takes instead,
 * value for the purpose cluster (R76), value for the purpose kernel */
#define NP_DYN_FIELD_MAP(X)                                                                     \
	X(ACTIVITIES, "activities", false, WORDS, 0, activities, "[\"CPU\", \"NPU\"]",          \
	  "[\"CPU\", \"NPU\"]", "[\"CPU\", \"NPU\"]")                                           \
	X(PROF_DIR, "prof_dir", false, TEXT, 0, NULL, "\"./\"", "\"./cluster_profile_output\"", \
	  "\"./kernel_profile_output\"")                                                        \
	X(ANALYSE, "analyse", false, BOOL, 0, NULL, "true", "true", "true")                     \
	X(ASYNC_MODE, "async_mode", false, BOOL, 0, NULL, "false", "true", "true")              \
	X(RECORD_SHAPES, "record_shapes", false, BOOL, 0, NULL, "false", "false", "true")       \
	X(PROFILE_MEMORY, "profile_memory", false, BOOL, 0, NULL, "false", "false", "false")    \
	X(WITH_STACK, "with_stack", false, BOOL, 0, NULL, "false", "false", "false")            \
	X(WITH_FLOPS, "with_flops", false, BOOL, 0, NULL, "false", "false", "false")            \
	X(WITH_MODULES, "with_modules", false, BOOL, 0, NULL, "false", "false", "false")        \
	X(ACTIVE, "active", false, INT, 1, NULL, "1", "2", "1")                                 \
	X(WARMUP, "warmup", false, INT, 0, NULL, "0", "0", "1")                                 \
	X(START_STEP, "start_step", false, INT, -1, NULL, "0", "-1", "-1")                      \
	X(IS_RANK, "is_rank", false, BOOL, 0, NULL, "false", "false", "false")                  \
	X(RANK_LIST, "rank_list", false, INTS, 0, NULL, "[]", "[]", "[]")                       \
	X(EXPERIMENTAL, "experimental_config", false, OBJECT, 0, NULL, "null", NULL, NULL)      \
	X(LEVEL, "profiler_level", true, WORD, 0, levels, "\"Level0\"", "\"Level1\"",           \
	  "\"Level1\"")                                                                         \
	X(METRICS, "aic_metrics", true, WORD, 0, metrics, "\"AiCoreNone\"", "\"AiCoreNone\"",   \
	  "\"PipeUtilization\"")                                                                \
	X(L2_CACHE, "l2_cache", true, BOOL, 0, NULL, "false", "false", "false")                 \
	X(OP_ATTR, "op_attr", true, BOOL, 0, NULL, "false", "false", "false")                   \
	X(GC, "gc_detect_threshold", true, NUMBER_OR_NULL, 0, NULL, "null", "null", "null")     \
	X(SIMPLIFY, "data_simplification", true, BOOL_OR_NULL, 0, NULL, "true", "true", "true") \
	X(OP_ARGS, "record_op_args", true, BOOL, 0, NULL, "false", "false", "false")            \
	X(EXPORT, "export_type", true, WORD_OR_WORDS, 0, exports, "[\"text\"]", "[\"db\"]",     \
	  "[\"text\"]")                                                                         \
	X(MSPROF_TX, "msprof_tx", true, BOOL, 0, NULL, "false", NULL, NULL)                     \
	X(MSTX, "mstx", true, BOOL, 0, NULL, "false", "false", "false")                         \
	X(MSTX_INCLUDE, "mstx_domain_include", true, TEXTS, 0, NULL, "[]", "[]", "[]")          \
	X(MSTX_EXCLUDE, "mstx_domain_exclude", true, TEXTS, 0, NULL, "[]", "[]", "[]")          \
	X(HOST_SYS, "host_sys", true, WORDS, 0, host_sys, "[]", "[]", "[]")                     \
	X(SYS_IO, "sys_io", true, BOOL, 0, NULL, "false", "false", "false")                     \
	X(SYS_LINK, "sys_interconnection", true, BOOL, 0, NULL, "false", "false", "false")      \
	X(METADATA, "metadata", false, OBJECT, 0, NULL, "{}", NULL, NULL)

enum np_dyn_id {
#define X(id, ...) NP_DYN_##id,
	NP_DYN_FIELD_MAP(X)
#undef X
		NP_DYN_N_FIELDS,
};

struct np_dyn_field {
	const char *key;
	bool inside; /* of experimental_config */
	enum np_dyn_kind kind;
	int64_t min;
	const char *const *words; /* NULL-terminated; NULL */
	const char *instead; /* JSON: what torch_npu takes for a value it refuses, or for none */
	const char *cluster, *kernel; /* JSON: values of the two purposes; NULL: not written */
};

extern const struct np_dyn_field np_dyn_fields[NP_DYN_N_FIELDS];

/* By key and place; NP_DYN_N_FIELDS: torch_npu knows no such key there. */
enum np_dyn_id np_dyn_field_find(np_str key, bool inside);

/* Where would this key be right? For a key that is misspelt or in the wrong place: the
 * field of that name elsewhere, else one that differs in up to two letters (any case). */
enum np_dyn_id np_dyn_field_near(np_str key);

/* Is the value one that torch_npu takes as it is? false: it takes `instead` (lists: drops
 * the entries that it does not know). 1.0 is no integer, true is no number. */
bool np_dyn_accepts(const struct np_dyn_field *field, const struct np_jval *value);

/* Is one entry of a list right? Lists only. */
bool np_dyn_accepts_entry(const struct np_dyn_field *field, const struct np_jval *entry);

enum np_dyn_purpose {
	NP_DYN_FOR_CLUSTER, /* communication of all ranks, db: R76 */
	NP_DYN_FOR_KERNEL,  /* unit utilisation of kernels, text: R20, R63 */
};

bool np_dyn_purpose_parse(const char *name, enum np_dyn_purpose *out);
const char *np_dyn_purpose_name(enum np_dyn_purpose purpose);
const char *np_dyn_preset(enum np_dyn_id id, enum np_dyn_purpose purpose);

/* Append a whole profiler_config.json for the purpose, strict JSON (R78); values[id] (JSON)
 * goes before the preset, NULL: the preset. */
void np_dyn_template(struct np_buf *out, enum np_dyn_purpose purpose,
                     const char *const values[NP_DYN_N_FIELDS]);

#endif
