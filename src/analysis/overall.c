#include "analysis/overall.h"

#include <string.h>

const struct np_overall_info np_overall_infos[NP_OVERALL_ROWS] = {
#define X(id, depth, label) [NP_OVERALL_##id] = {label, depth},
	NP_OVERALL_MAP(X)
#undef X
};

/* ── operators of the framework that mean attention, convolution, matmul ── */

enum kind { KIND_NONE, KIND_FA, KIND_CONV, KIND_MATMUL };

struct cube_op {
	np_ns start, end, end_max; /* end_max: of this and all before it */
	uint8_t kind;
	bool backward;
};

struct cube_ops {
	NP_VEC(struct cube_op) ops; /* by start */
};

static bool has_any(np_str text, const char *const *words)
{
	for (; *words; words++)
		if (np_str_icontains(text, np_str_of(*words)))
			return true;
	return false;
}

static const char *const back_words[] = {"bwd", "back", "grad", NULL};

static enum kind kind_of_op(np_str name)
{
	static const char *const fa[] = {
		"flash_attention",     "fusion_attention", "flashattn", "xformers_flash",
		"efficient_attention", "flash2attn",       NULL};
	static const char *const conv[] = {"aten::conv", NULL};
	static const char *const matmul[] = {"aten::addmm", "aten::bmm", "aten::mm", "aten::matmul",
	                                     NULL};
	return has_any(name, fa)       ? KIND_FA
	       : has_any(name, conv)   ? KIND_CONV
	       : has_any(name, matmul) ? KIND_MATMUL
	                               : KIND_NONE;
}

static bool find_cube_ops(const struct np_profile *profile, struct cube_ops *out)
{
	const struct np_host_ops *host = &profile->host_ops;
	struct np_map known; /* name → kind * 2 + backward */
	np_map_init(&known);
	bool ok = true;
	np_ns end_max = 0;
	for (size_t i = 0; ok && i < host->n; i++) { /* ordered by start */
		if (host->layer[i] != NP_HOST_OP)
			continue;
		uint32_t code = np_map_get(&known, host->name[i], NP_NO_U32);
		if (code == NP_NO_U32) {
			np_str name = np_intern_get(&profile->strings, host->name[i]);
			code = (uint32_t)kind_of_op(name) * 2 + has_any(name, back_words);
			ok = np_map_put(&known, host->name[i], code);
		}
		if (!ok || code / 2 == KIND_NONE)
			continue;
		np_ns end = host->start_ns[i] + host->dur_ns[i];
		end_max = end > end_max ? end : end_max;
		struct cube_op op = {host->start_ns[i], end, end_max, (uint8_t)(code / 2),
		                     code & 1};
		ok = np_vec_push(&out->ops, op);
	}
	np_map_release(&known);
	return ok;
}

/* The innermost operator around a time, among the last few that began before it. */
static const struct cube_op *cube_op_at(const struct cube_ops *self, np_ns ts)
{
	enum { LOOK_BACK = 64 };
	size_t low = 0, high = self->ops.n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (self->ops.v[mid].start <= ts)
			low = mid + 1;
		else
			high = mid;
	}
	for (size_t i = low; i > 0 && low - i < LOOK_BACK; i--) {
		const struct cube_op *op = &self->ops.v[i - 1];
		if (op->end >= ts)
			return op;
		if (op->end_max < ts)
			return NULL;
	}
	return NULL;
}

/* Of the analysed device, as far as the capture tells devices apart. */
static bool is_ours(const struct np_analysis *analysis, uint32_t device)
{
	return device == analysis->device || device == NP_NO_U32 || analysis->device == NP_NO_U32;
}

/* ── kernels ── */

struct sums {
	const struct np_analysis *analysis;
	const struct np_metric *mac, *aicore;
	bool has_pmu;
	bool has_task_types;       /* the tasks tell the core, for want of anything else */
	struct np_map cube_starts; /* start of the tasks on a cube core */
	struct cube_ops cube_ops;
	np_ns *issued;
	struct np_overall *out;
};

static bool positive(const struct np_metric *metric, size_t row)
{
	return metric && metric->v[row] > 0; /* NaN is not */
}

/* By unit times where they were recorded, else by the core, else by the task. */
static bool is_cube(const struct sums *self, size_t row)
{
	const struct np_kernels *kernels = &self->analysis->profile->kernels;
	if (self->has_pmu)
		return positive(self->mac, row) || positive(self->aicore, row);
	if (self->has_task_types)
		return np_map_get(&self->cube_starts, (uint64_t)kernels->start_ns[row], 0);
	np_str core = np_text(self->analysis, kernels->core[row]);
	return np_str_is(core, "AI_CORE") || np_str_is(core, "MIX_AIC");
}

/*
 * A database of Level0 has no cores, but the types of its tasks: KERNEL_AICORE,
 * KERNEL_AIVEC. (A trace of Level0 says AI_CORE of both.)
 */
static bool read_task_types(struct sums *self)
{
	const struct np_analysis *analysis = self->analysis;
	const struct np_tasks *tasks = &analysis->profile->tasks;
	const struct np_intern *strings = &analysis->profile->strings;
	uint32_t cube = np_intern_find(strings, NP_STR("KERNEL_AICORE"));
	uint32_t mix = np_intern_find(strings, NP_STR("KERNEL_MIX_AIC"));
	uint32_t vector = np_intern_find(strings, NP_STR("KERNEL_AIVEC"));
	bool ok = true;
	for (size_t i = 0; ok && i < tasks->n; i++) {
		if (!is_ours(analysis, tasks->device[i]) || tasks->type[i] == NP_ID_NONE)
			continue;
		bool is = tasks->type[i] == cube || tasks->type[i] == mix;
		self->has_task_types = self->has_task_types || is || tasks->type[i] == vector;
		ok = !is || np_map_put(&self->cube_starts, (uint64_t)tasks->start_ns[i], 1);
	}
	return ok;
}

static bool is_mc2(np_str name)
{
	static const char *const words[] = {"allgathermatmul", "matmulreducescatter",
	                                    "matmulallreduce", NULL};
	for (const char *const *word = words; *word; word++)
		if (np_str_ieq(name, np_str_of(*word)))
			return true;
	return false;
}

static void add(struct np_overall *out, enum np_overall_id id, np_ns ns)
{
	out->ns[id] += ns;
	out->count[id]++;
}

/* The row of a kind; its cube part is the next, its vector part the one after. */
static enum np_overall_id row_of(enum kind kind, bool backward)
{
	switch (kind) {
	case KIND_FA:
		return backward ? NP_OVERALL_FA_BWD : NP_OVERALL_FA_FWD;
	case KIND_CONV:
		return backward ? NP_OVERALL_CONV_BWD : NP_OVERALL_CONV_FWD;
	default:
		return NP_OVERALL_MATMUL;
	}
}

static void add_kind(struct np_overall *out, enum kind kind, bool backward, bool cube, np_ns ns)
{
	enum np_overall_id id = row_of(kind, backward);
	add(out, id, ns);
	add(out, (enum np_overall_id)(id + (cube ? 1 : 2)), ns);
}

static enum kind kind_of_type(np_str type)
{
	static const char *const fa[] = {"flashattention", "fusedinferattention", NULL};
	static const char *const matmul[] = {"matmul", NULL};
	return has_any(type, fa)                      ? KIND_FA
	       : np_str_istarts(type, NP_STR("conv")) ? KIND_CONV
	       : has_any(type, matmul)                ? KIND_MATMUL
	                                              : KIND_NONE;
}

static void add_kernel(struct sums *self, size_t row)
{
	static const char *const page[] = {"pagedattention", NULL};
	static const char *const trans[] = {"cast", "transdata", "transpose", NULL};
	const struct np_kernels *kernels = &self->analysis->profile->kernels;
	np_str name = np_text(self->analysis, kernels->name[row]);
	np_str type = np_text(self->analysis, kernels->type[row]);
	np_ns ns = kernels->dur_ns[row];
	struct np_overall *out = self->out;
	const struct cube_op *op = NULL;
	if (has_any(type, page)) {
		add(out, NP_OVERALL_PAGE_ATTENTION, ns);
	} else if (np_str_istarts(name, NP_STR("aclnninplacecopy")) &&
	           np_str_icontains(name, NP_STR("tensormove"))) {
		add(out, NP_OVERALL_TENSOR_MOVE, ns);
	} else if (is_mc2(name)) {
		add(out, NP_OVERALL_MC2, ns);
	} else if (self->issued[row] != NP_NO_I64 &&
	           (op = cube_op_at(&self->cube_ops, self->issued[row])) != NULL) {
		bool backward = op->backward && op->kind != KIND_MATMUL;
		add_kind(out, (enum kind)op->kind, backward, is_cube(self, row), ns);
	} else if (kind_of_type(type) != KIND_NONE) {
		add_kind(out, kind_of_type(type), has_any(type, back_words), true, ns);
	} else if (is_cube(self, row)) {
		add(out, NP_OVERALL_CUBE, ns);
	} else {
		add(out, NP_OVERALL_VECTOR, ns);
		add(out,
		    has_any(name, trans) ? NP_OVERALL_VECTOR_TRANS : NP_OVERALL_VECTOR_NO_TRANS,
		    ns);
	}
}

/* Can a kernel's core be told? */
static bool knows_cores(const struct sums *self)
{
	const struct np_analysis *analysis = self->analysis;
	for (size_t i = 0; i < analysis->n_rows; i++) {
		size_t row = analysis->rows[i];
		if (analysis->class[row] == NP_CLASS_COMM)
			continue;
		np_str core = np_text(analysis, analysis->profile->kernels.core[row]);
		if (core.len > 0 && !np_is_na(core))
			return true;
	}
	return false;
}

static bool has_values(const struct np_metric *metric, size_t n)
{
	for (size_t i = 0; metric && i < n; i++)
		if (metric->v[i] > 0)
			return true;
	return false;
}

static bool is_chosen(const struct np_analysis *analysis, size_t row)
{
	return analysis->options->has_step
	               ? analysis->span_of[row] != NP_NO_U32
	               : analysis->profile->kernels.device[row] == analysis->device &&
	                         analysis->class[row] != NP_CLASS_SYNC;
}

static bool sum_kernels(struct sums *self)
{
	const struct np_profile *profile = self->analysis->profile;
	self->mac = np_profile_metric(profile, "aic_mac_time(us)");
	if (!self->mac)
		self->mac = np_profile_metric(profile, "mac_time(us)");
	self->aicore = np_profile_metric(profile, "aicore_time(us)");
	self->has_pmu = has_values(self->mac, profile->kernels.n) ||
	                has_values(self->aicore, profile->kernels.n);
	bool cores = knows_cores(self);
	np_map_init(&self->cube_starts);
	bool ok = self->has_pmu || cores || read_task_types(self);
	self->out->split = self->has_pmu || cores || self->has_task_types;
	self->issued = ok ? np_issue_times(profile) : NULL;
	ok = self->issued && find_cube_ops(profile, &self->cube_ops);
	for (size_t i = 0; ok && i < profile->kernels.n; i++) {
		if (!is_chosen(self->analysis, i) || self->analysis->class[i] == NP_CLASS_COMM)
			continue;
		self->out->count[NP_OVERALL_COMPUTING]++;
		if (self->out->split)
			add_kernel(self, i);
	}
	np_free(self->issued);
	np_map_release(&self->cube_starts);
	np_vec_release(&self->cube_ops.ops);
	return ok;
}

/* ── the whole ── */

/* From the first to the last of what counts as E2E. */
static struct np_interval extent(const struct np_analysis *analysis, bool wide)
{
	static const char *const kernel_types[] = {
		"KERNEL_AICORE",  "KERNEL_AIVEC",     "FFTS_PLUS",        "KERNEL_MIX_AIC",
		"KERNEL_MIX_AIV", "PROFILING_ENABLE", "PROFILING_DISABLE"};
	const struct np_profile *profile = analysis->profile;
	struct np_interval all = {INT64_MAX, INT64_MIN};
	for (size_t i = 0; i < profile->kernels.n; i++) {
		if (!is_chosen(analysis, i))
			continue;
		np_ns start = profile->kernels.start_ns[i],
		      end = start + profile->kernels.dur_ns[i];
		all.start = start < all.start ? start : all.start;
		all.end = end > all.end ? end : all.end;
	}
	uint32_t skip[sizeof kernel_types / sizeof *kernel_types];
	for (size_t k = 0; k < sizeof skip / sizeof *skip; k++)
		skip[k] = np_intern_find(&profile->strings, np_str_of(kernel_types[k]));
	const struct np_tasks *tasks = &profile->tasks;
	for (size_t i = 0; wide && i < tasks->n; i++) {
		bool skipped = !is_ours(analysis, tasks->device[i]);
		for (size_t k = 0; k < sizeof skip / sizeof *skip; k++)
			skipped = skipped || (skip[k] != NP_ID_NONE && tasks->type[i] == skip[k]);
		if (skipped)
			continue;
		np_ns start = tasks->start_ns[i], end = start + tasks->dur_ns[i];
		all.start = start < all.start ? start : all.start;
		all.end = end > all.end ? end : all.end;
	}
	return all;
}

/* Copies on the streams that compute: part of the free time. */
static bool sum_sdma(const struct np_analysis *analysis, struct np_overall *out)
{
	const struct np_profile *profile = analysis->profile;
	const struct np_tasks *tasks = &profile->tasks;
	uint32_t sdma = np_intern_find(&profile->strings, NP_STR("SDMA_SQE"));
	uint32_t pcie = np_intern_find(&profile->strings, NP_STR("PCIE_DMA_SQE"));
	uint32_t wait = np_intern_find(&profile->strings, NP_STR("EVENT_WAIT_SQE"));
	if (sdma == NP_ID_NONE && pcie == NP_ID_NONE)
		return true;
	struct np_map compute, waits;
	np_map_init(&compute);
	np_map_init(&waits);
	bool ok = true;
	for (size_t i = 0; ok && i < profile->kernels.n; i++)
		if (is_chosen(analysis, i) && analysis->class[i] != NP_CLASS_COMM)
			ok = np_map_put(&compute, profile->kernels.stream[i], 1);
	for (size_t i = 0; ok && wait != NP_ID_NONE && i < tasks->n; i++)
		if (tasks->type[i] == wait)
			ok = np_map_put(&waits, tasks->stream[i], 1);
	for (size_t i = 0; ok && i < tasks->n; i++)
		if ((tasks->type[i] == sdma || tasks->type[i] == pcie) &&
		    is_ours(analysis, tasks->device[i]) &&
		    np_map_get(&compute, tasks->stream[i], 0) &&
		    (waits.n == 0 || np_map_get(&waits, tasks->stream[i], 0)))
			out->ns[NP_OVERALL_SDMA] += tasks->dur_ns[i];
	np_map_release(&compute);
	np_map_release(&waits);
	return ok;
}

static void finish(struct np_overall *out, np_ns computing, np_ns uncovered, np_ns e2e)
{
	np_ns parts = 0, groups = 0;
	for (int id = NP_OVERALL_COMPUTING + 1; id < NP_OVERALL_OTHER; id++)
		parts += np_overall_infos[id].depth == 1 ? out->ns[id] : 0;
	for (size_t i = 0; i < out->groups.n; i++)
		groups += out->groups.v[i].total;
	out->ns[NP_OVERALL_COMPUTING] = computing;
	out->ns[NP_OVERALL_OTHER] = computing > parts ? computing - parts : 0;
	out->ns[NP_OVERALL_UNCOVERED] = uncovered;
	out->ns[NP_OVERALL_UNCOVERED_OVERLAPPED] = groups > uncovered ? groups - uncovered : 0;
	out->ns[NP_OVERALL_E2E] = e2e;
	out->ns[NP_OVERALL_FREE_TIME] = e2e - computing - uncovered;
	out->ns[NP_OVERALL_FREE] = out->ns[NP_OVERALL_FREE_TIME] - out->ns[NP_OVERALL_SDMA];
	for (int id = NP_OVERALL_OTHER; id < NP_OVERALL_ROWS; id++)
		out->count[id] = NP_NO_I64;
}

bool np_overall_compute(const struct np_analysis *analysis, bool wide, struct np_overall *out)
{
	memset(out, 0, sizeof *out);
	struct np_intervals exposed = {0}, clipped = {0}, busy = {0};
	struct sums sums = {.analysis = analysis, .out = out};
	struct np_interval window = extent(analysis, wide);
	const struct np_intervals one = {&window, 1, 1};
	bool ok = sum_kernels(&sums) &&
	          np_intervals_subtract(&analysis->comm, &analysis->compute, &clipped) &&
	          np_intervals_intersect(&clipped, &one, &exposed) &&
	          np_intervals_intersect(&analysis->compute, &one, &busy) &&
	          np_overall_groups(analysis, &exposed, out) && sum_sdma(analysis, out);
	if (ok)
		finish(out, np_intervals_length(&busy), np_intervals_length(&exposed),
		       window.end > window.start ? window.end - window.start : 0);
	np_intervals_release(&exposed);
	np_intervals_release(&clipped);
	np_intervals_release(&busy);
	return ok;
}

void np_overall_release(struct np_overall *self)
{
	np_vec_release(&self->groups);
	memset(self, 0, sizeof *self);
}
