/*
 * What the files of compare share. Private to src/analysis/compare*.c.
 */
#ifndef NP_ANALYSIS_COMPARE_SIDE_H
#define NP_ANALYSIS_COMPARE_SIDE_H

#include "analysis/bootstrap.h"
#include "analysis/compare.h"
#include "analysis/normalise.h"
#include "analysis/overall.h"

/* ── a side ── */

/* One step of one run. */
struct np_cmp_sample {
	uint32_t run;
	int64_t step; /* NP_NO_I64 when the capture has no steps */
	np_ns span, computing, comm, exposed, overlapped, free;
	int64_t kernels, collectives, copies;
	np_ns copy_ns;
	size_t first; /* its kernels in np_cmp_side.kernels, `kernels` of them, by start */
};

#define NP_CMP_COMM (NP_NO_U32 - 1)

struct np_cmp_kernel {
	uint32_t name, type, shapes; /* common strings; name is normalised */
	uint32_t sample, stream;     /* NP_CMP_COMM: a collective; NP_NO_U32: unknown */
	uint32_t key_type, key_op;   /* numbers in np_cmp_pair.types and .ops */
	np_ns dur;
	uint8_t class;
	bool copy;
};

/* One observation: `ns` of group `key` in a sample. */
struct np_cmp_point {
	uint32_t key, sample;
	np_ns ns, self; /* self: api only */
};

struct np_cmp_points {
	struct np_cmp_point *v;
	size_t n, cap;
	size_t n_samples;
};

struct np_cmp_peak {
	uint32_t component;               /* common string */
	double allocated_mb, reserved_mb; /* NaN: not recorded */
};

/* A group of the overall metrics, its name a common string. */
struct np_cmp_group_time {
	uint32_t name;
	np_ns total, wait, transmit;
	bool has_wait;
};

struct np_cmp_side {
	const char *label, *source; /* source: the kernels' file of the first run */
	size_t n_runs;
	NP_VEC(struct np_cmp_sample) samples;
	NP_VEC(struct np_cmp_kernel) kernels; /* by sample */
	struct np_cmp_points api, comm;
	NP_VEC(struct np_cmp_peak) peaks;
	struct np_overall overall; /* of the first run; its groups are below */
	NP_VEC(struct np_cmp_group_time) group_times;
	/* of the first run, for comparability; texts live in the report's arena */
	const char *level, *chip, *host, *kind;
	int64_t world_size, rank;
	bool has_steps, has_types, has_shapes, has_streams, has_comm_ops, has_memory, has_api;
	bool has_db, is_gpu;
	unsigned classes; /* bit per enum np_class */
};

/* ── keys: dense numbers for (a, b, c) ── */

struct np_cmp_key {
	uint32_t a, b, c; /* common strings, or what the table needs */
};

/* Two ids as one map key, one to one, and spread over all bits: np_map wants that of keys
 * whose halves go together, as a name and a type that are one text do. */
static inline uint64_t np_cmp_pair_key(uint32_t a, uint32_t b)
{
	uint64_t key = (uint64_t)a << 32 | b;
	key ^= key >> 33;
	key *= UINT64_C(0xff51afd7ed558ccd);
	return key ^ key >> 33;
}

struct np_cmp_keys {
	struct np_map pairs, triples;
	NP_VEC(struct np_cmp_key) v;
};

void np_cmp_keys_init(struct np_cmp_keys *self);
void np_cmp_keys_release(struct np_cmp_keys *self);
/* The number of a key, new or known. NP_NO_U32: out of memory. */
uint32_t np_cmp_keys_add(struct np_cmp_keys *self, uint32_t a, uint32_t b, uint32_t c);

/* ── groups: what the two sides say about one key ── */

enum np_cmp_verdict {
	NP_CMP_NOISE,
	NP_CMP_SLOWER,
	NP_CMP_FASTER,
	NP_CMP_NEW,
	NP_CMP_REMOVED,
	NP_CMP_MINOR, /* too small on both sides to be judged */
};
const char *np_cmp_verdict_name(enum np_cmp_verdict verdict);

struct np_cmp_stat {
	np_ns median; /* over the samples, those without the group counting as 0 */
	np_ns self;   /* the same of the points' self times */
	double count; /* points per sample, the median */
	uint64_t n;   /* points in all; 0: the group is not on this side */
};

struct np_cmp_group {
	uint32_t key;
	struct np_cmp_stat base, target;
	bool has_interval;
	np_ns low, high; /* of target.median - base.median */
	enum np_cmp_verdict verdict;
};

struct np_cmp_groups {
	NP_VEC(struct np_cmp_group) v; /* by key */
};

/* ── the comparison ── */

struct np_compare {
	const struct np_compare_options *options;
	const struct np_rules *rules;
	struct np_report *report;
	struct np_intern strings;  /* common to all sides */
	struct np_cmp_keys joined; /* (normalised, raw name, rules): --show-normalised */
	struct np_cmp_keys api;    /* enum np_host_layer, name */
	struct np_cmp_keys comm;   /* group, normalised operator */
};

/* id, name, field of struct np_cmp_sample, what */
#define NP_CMP_TOTAL_MAP(X)                                                                  \
	X(SPAN, "total", span, "first start to last end of the kernels of a step")           \
	X(COMPUTING, "computing", computing, "union of the compute kernels")                 \
	X(COMM, "comm", comm, "union of the collectives")                                    \
	X(EXPOSED, "not_overlapped", exposed, "communication while nothing is computed")     \
	X(OVERLAPPED, "overlapped", overlapped, "communication while something is computed") \
	X(FREE, "free", free, "neither")
enum np_cmp_total {
#define X(id, name, field, what) NP_CMP_TOTAL_##id,
	NP_CMP_TOTAL_MAP(X)
#undef X
		NP_CMP_TOTALS
};

#define NP_CMP_COUNT_MAP(X)                                       \
	X(KERNELS, "kernels", kernels, "kernels and collectives") \
	X(COLLECTIVES, "collectives", collectives, "collectives") \
	X(COPIES, "copies", copies, "copies: InplaceCopy, ViewCopy, TensorMove …")
enum np_cmp_count {
#define X(id, name, field, what) NP_CMP_COUNT_##id,
	NP_CMP_COUNT_MAP(X)
#undef X
		NP_CMP_COUNTS
};

struct np_cmp_total_row {
	np_ns base, target; /* medians of the samples */
	bool has_interval;
	np_ns low, high; /* of target - base */
	enum np_cmp_verdict verdict;
};

/* BASE and one TARGET. */
struct np_cmp_pair {
	struct np_compare *compare;
	struct np_cmp_side *base, *target;
	int64_t number;              /* of the target, from 1 */
	struct np_bootstrap samples; /* for the sides' sample counts */
	struct np_cmp_keys types;    /* a: type */
	struct np_cmp_keys ops;      /* type, normalised name, shapes */
	struct np_cmp_groups by_class, by_type, by_op;
	np_ns base_span, target_span; /* medians of the samples */
	bool comparable;
	struct np_cmp_total_row totals[NP_CMP_TOTALS];
	struct {
		double base, target;
	} counts[NP_CMP_COUNTS];
	np_ns net_new;        /* new less removed work per sample */
	bool failed, unknown; /* what the checks said */
};

/* compare_load.c: read the runs of a side. np_cmp_side_release() in every case. */
enum np_status np_cmp_side_load(struct np_compare *self, const struct np_compare_input *input,
                                struct np_cmp_side *side, struct np_err *err);
void np_cmp_side_release(struct np_cmp_side *side);
/*
 * compare_gpu.c: a chrome trace of a GPU as an analysis; `out` has its capture, options and
 * report. np_analysis_release() in every case. E_FORMAT, E_EMPTY when it is none.
 */
enum np_status np_cmp_gpu_read(const char *path, struct np_analysis *out, struct np_err *err);
/* compare_host.c: the api and comm points, memory peaks and group times of one run, whose
 * samples begin at `first`. false: out of memory. */
bool np_cmp_load_more(struct np_compare *self, const struct np_analysis *analysis, uint32_t run,
                      size_t first, struct np_cmp_side *side);

/* compare_groups.c. Each gives false when memory is out. */
bool np_cmp_group(struct np_cmp_pair *pair, const struct np_cmp_points *base,
                  const struct np_cmp_points *target, size_t n_keys, struct np_cmp_groups *out);
/* Verdict of two medians; low and high count with has_interval only. */
enum np_cmp_verdict np_cmp_judge(const struct np_rules *rules, np_ns base, np_ns target,
                                 bool has_interval, np_ns low, np_ns high);
bool np_cmp_totals(struct np_cmp_pair *pair);
bool np_cmp_kernel_groups(struct np_cmp_pair *pair);

/* target / base - 1; NaN when base is 0. */
double np_cmp_change(double base, double target);

/* compare_tables.c and others: tables of a pair into the report. */
void np_cmp_table_totals(struct np_cmp_pair *pair);
void np_cmp_table_overall(struct np_cmp_pair *pair);
bool np_cmp_table_groups(struct np_cmp_pair *pair);
bool np_cmp_table_more(struct np_cmp_pair *pair);
/* The same group under two names, one of them on each side, becomes one. */
bool np_cmp_pair_groups(struct np_cmp_pair *pair);
bool np_cmp_table_alignment(struct np_cmp_pair *pair);
void np_cmp_table_normalised(struct np_compare *self);

/* compare_check.c: may the sides be compared at all? Sets pair->comparable. */
void np_cmp_check_sides(struct np_cmp_pair *pair);
/* compare_verdict.c: the checks, by thresholds or --fail-on. Findings of what changed. */
enum np_status np_cmp_checks(struct np_cmp_pair *pair, struct np_err *err);
/* E_USAGE when --fail-on cannot be read; without looking at any data. */
enum np_status np_cmp_parse_fail_on(const char *text, struct np_err *err);

static inline np_str np_cmp_text(const struct np_compare *self, uint32_t id)
{
	return np_intern_get(&self->strings, id);
}

/* The table `id` of this comparison: made by the first target, continued by the others. */
struct np_table *np_cmp_table(struct np_compare *self, const char *id, const char *title,
                              const struct np_column *columns, size_t n_columns);
#define NP_CMP_TABLE(self, id, title, columns) \
	np_cmp_table((self), (id), (title), (columns), sizeof(columns) / sizeof *(columns))

#endif
