/*
 * Affinity API Issues (cluster_and_advisor.md §3.5): sequences of torch operators, and
 * optimizers, for which torch_npu has one fused call.
 *
 *   thread   aten::mul │ aten::softmax │ aten::masked_fill_ │ …      the outermost ones only
 *            └──── longest rule that fits; the next begins behind it ────┘
 */
#include <stdlib.h>
#include <string.h>

#include "advice/host.h"
#include "report/lang.h"

enum { MAX_STEPS = 10, SHOWN = 50 };

/* Steps in order; a/b: one of both, ?: may be absent. Taken greedily: no optional step of
 * a rule accepts what the rule needs next. */
static const struct rule {
	const char *api, *steps;
} rules[] = {
	{"torch_npu.npu_confusion_transpose", "permute/transpose contiguous? reshape/view"},
	{"torch_npu.npu_confusion_transpose", "reshape/view contiguous? permute/transpose"},
	{"torch_npu.fast_gelu", "gelu"},
	{"torch_npu.npu_scaled_masked_softmax", "softmax mul? masked_fill_/add"},
	{"optimizer.clip_grad_norm_fused_", "add reciprocal mul"},
	{"torch_npu.npu_fusion_attention",
         "matmul add? mul? masked_fill_/add? softmax dropout? matmul"},
	{"torch_npu.npu_rotary_mul", "chunk/slice neg cat mul? mul? add"},
	{"torch_npu.npu_rms_norm", "pow? mean? add? rsqrt mul type_as?"},
	{"torch_npu.npu_swiglu", "chunk/slice silu mul"},
	{"torch_npu.npu_swiglu", "chunk/slice mul silu"},
	{"torch_npu.npu_swiglu", "chunk/slice sigmoid mul mul"},
	{"torch_npu.npu_swiglu", "chunk/slice mul sigmoid mul"},
	{"torch_npu.npu_swiglu", "chunk/slice mul mul sigmoid"},
	{"torch_npu.npu_geglu", "chunk/slice gelu mul"},
	{"torch_npu.npu_geglu", "chunk/slice mul gelu"},
	{"torch_npu.npu_group_norm_silu", "group_norm silu"},
	{"torch.addmm", "mul mul add"},
	{"torch_npu.npu_add_layer_norm", "add layer_norm"},
};

static const struct optimizer {
	const char *of, *api;
} optimizers[] = {
	{"Adadelta", "torch_npu.optim.NpuFusedAdadelta"},
	{"Adam", "torch_npu.optim.NpuFusedAdam"},
	{"AdamP", "torch_npu.optim.NpuFusedAdamP"},
	{"AdamW", "torch_npu.optim.NpuFusedAdamW"},
	{"BertAdam", "torch_npu.optim.NpuFusedBertAdam"},
	{"Lamb", "torch_npu.optim.NpuFusedLamb"},
	{"RMSprop", "torch_npu.optim.NpuFusedRMSprop"},
	{"RMSpropTF", "torch_npu.optim.NpuFusedRMSpropTF"},
	{"SGD", "torch_npu.optim.NpuFusedSGD"},
};

static const struct np_column columns[] = {
	{"Affinity API", "", NP_COL_TEXT, "what to call instead"},
	{"Code stacks", "", NP_COL_TEXT, "call stack, where it was recorded"},
	{"Stack called counts", "", NP_COL_INT, "how often that stack did it"},
	{"host time(us)", "", NP_COL_REAL, "of the operators that it would replace, their sum"},
};

struct place {
	const char *api;
	uint32_t stack, order;
	size_t n;
	np_ns total;
};

struct step {
	np_str words; /* a/b */
	bool optional;
};

struct thread {
	np_ns end; /* of the last outermost operator */
	NP_VEC(uint32_t) rows;
};

struct search {
	struct np_advice *advice;
	struct step steps[sizeof rules / sizeof *rules][MAX_STEPS];
	struct np_map by_tid, by_place;
	NP_VEC(struct thread) threads;
	NP_VEC(struct place) places;
	struct np_host_calls calls;
	size_t matches;
};

enum { N_RULES = sizeof rules / sizeof *rules };

static void parse(struct search *self)
{
	for (size_t r = 0; r < N_RULES; r++) {
		np_str rest = np_str_of(rules[r].steps);
		for (size_t s = 0; rest.len && s < MAX_STEPS; s++) {
			np_str word = np_str_cut(rest, ' ', &rest);
			struct step *step = &self->steps[r][s];
			step->optional = np_str_ends(word, NP_STR("?"));
			step->words = np_str_sub(word, 0, word.len - step->optional);
		}
	}
}

static bool accepts(np_str words, np_str name)
{
	while (words.len)
		if (np_str_eq(np_str_cut(words, '/', &words), name))
			return true;
	return false;
}

/* "aten::mul" → "mul"; of other operators, which only stand between, the whole name. */
static np_str word_at(const struct search *self, uint32_t row)
{
	const struct np_analysis *rank = self->advice->rank;
	np_str name = np_text(rank, rank->profile->host_ops.name[row]);
	return np_str_starts(name, NP_STR("aten::")) ? np_str_from(name, 6) : name;
}

static size_t match(const struct search *self, const struct step *steps,
                    const struct thread *thread, size_t at)
{
	size_t length = 0;
	for (size_t s = 0; s < MAX_STEPS && steps[s].words.len; s++) {
		bool fits = at + length < thread->rows.n &&
		            accepts(steps[s].words, word_at(self, thread->rows.v[at + length]));
		if (!fits && !steps[s].optional)
			return 0;
		length += fits;
	}
	return length;
}

/* ── what was found ── */

static bool add_place(struct search *self, const char *api, uint32_t number, const uint32_t *rows,
                      size_t n)
{
	const struct np_host_ops *ops = &self->advice->rank->profile->host_ops;
	uint32_t stack = ops->stack[rows[0]];
	uint64_t key = (uint64_t)number << 32 | stack;
	uint32_t at = np_map_get(&self->by_place, key, NP_NO_U32);
	if (at == NP_NO_U32) {
		at = (uint32_t)self->places.n;
		struct place place = {.api = api, .stack = stack, .order = at};
		if (!np_vec_push(&self->places, place) || !np_map_put(&self->by_place, key, at))
			return false;
	}
	self->places.v[at].n++;
	self->matches++;
	for (size_t i = 0; i < n; i++) {
		np_ns *total = &self->places.v[at].total, dur = ops->dur_ns[rows[i]];
		*total = *total > NP_TIME_MAX - dur ? NP_TIME_MAX : *total + dur;
		if (!np_host_calls_add(&self->calls, ops, rows[i]))
			return false;
	}
	return true;
}

/* Rules of one API share its number, whatever the sequence. */
static uint32_t number_of(size_t rule)
{
	size_t first = 0;
	while (strcmp(rules[first].api, rules[rule].api) != 0)
		first++;
	return (uint32_t)first;
}

static bool search_thread(struct search *self, const struct thread *thread)
{
	for (size_t i = 0; i < thread->rows.n;) {
		size_t best = 0, longest = 0;
		for (size_t r = 0; r < N_RULES; r++) {
			size_t length = match(self, self->steps[r], thread, i);
			if (length > longest) {
				longest = length;
				best = r;
			}
		}
		if (longest > 0 &&
		    !add_place(self, rules[best].api, number_of(best), &thread->rows.v[i], longest))
			return false;
		i += longest > 0 ? longest : 1;
	}
	return true;
}

static bool add_optimizer(struct search *self, np_str name, uint32_t row)
{
	np_str class = np_str_from(name, strlen("Optimizer.step#"));
	for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
		size_t len = strlen(optimizers[i].of);
		if (np_str_eq(np_str_sub(class, 0, len), np_str_of(optimizers[i].of)) &&
		    np_str_is(np_str_from(class, len), ".step"))
			return add_place(self, optimizers[i].api, (uint32_t)(N_RULES + i), &row, 1);
	}
	return true;
}

static bool add_op(struct search *self, uint32_t row)
{
	const struct np_host_ops *ops = &self->advice->rank->profile->host_ops;
	uint32_t at = np_map_get(&self->by_tid, ops->tid[row], NP_NO_U32);
	if (at == NP_NO_U32) {
		at = (uint32_t)self->threads.n;
		if (!np_vec_push(&self->threads, (struct thread){.end = NP_NO_I64}) ||
		    !np_map_put(&self->by_tid, ops->tid[row], at))
			return false;
	}
	struct thread *thread = &self->threads.v[at];
	if (ops->start_ns[row] < thread->end)
		return true; /* inside of another one */
	thread->end = ops->start_ns[row] + ops->dur_ns[row];
	return np_vec_push(&thread->rows, row);
}

static bool search(struct search *self)
{
	const struct np_analysis *rank = self->advice->rank;
	const struct np_host_ops *ops = &rank->profile->host_ops;
	bool ok = true;
	parse(self);
	for (uint32_t i = 0; ok && i < ops->n; i++) {
		if (ops->layer[i] != NP_HOST_OP)
			continue;
		np_str name = np_text(rank, ops->name[i]);
		if (np_str_starts(name, NP_STR("aten::")) || np_str_starts(name, NP_STR("npu::")))
			ok = add_op(self, i);
		else if (np_str_starts(name, NP_STR("Optimizer.step#")))
			ok = add_optimizer(self, name, i);
	}
	for (size_t t = 0; ok && t < self->threads.n; t++)
		ok = search_thread(self, &self->threads.v[t]);
	return ok;
}

/* ── the result ── */

static int most_time(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static size_t count_apis(const struct search *self)
{
	size_t n = 0;
	for (size_t i = 0; i < self->places.n; i++) {
		size_t first = 0;
		while (strcmp(self->places.v[first].api, self->places.v[i].api) != 0)
			first++;
		n += first == i;
	}
	return n;
}

static void put(const struct search *self, struct np_table *table, const struct place *place)
{
	np_cell_cstr(table, place->api);
	if (place->stack == NP_ID_NONE || np_text(self->advice->rank, place->stack).len == 0)
		np_cell_na(table);
	else
		np_cell_text(table, np_text(self->advice->rank, place->stack));
	np_cell_int(table, (int64_t)place->n);
	np_cell_real(table, (double)place->total / 1e3);
}

static void tell(struct search *self, const struct np_checker *checker)
{
	enum { TOLD = 3 };
	struct np_advice *advice = self->advice;
	struct np_buf frames = {0};
	struct np_problem_text text = {
		.code = "ADVICE_AFFINITY_API",
		.advice =
			NP_N("Call the fused functions of the table \"affinity\" at the places it "
	                     "names, and check the result: some compute in another order or "
	                     "approximate."),
	};
	np_host_calls_worth(advice, &self->calls, &text);
	text.count = self->matches;
	qsort(self->places.v, self->places.n, sizeof *self->places.v, most_time);
	struct np_finding *finding =
		np_advice_problem(advice, checker, &text,
	                          "%zu functions of torch_npu could replace operators in %zu calls",
	                          count_apis(self), self->matches);
	for (size_t i = 0; i < self->places.n && i < TOLD; i++) {
		const struct place *place = &self->places.v[i];
		np_buf_clear(&frames);
		if (place->stack != NP_ID_NONE)
			np_user_frames(np_text(advice->rank, place->stack), 2, &frames);
		np_finding_evidence(finding, NULL, NULL, NULL, "%s: %zu times%s%.*s", place->api,
		                    place->n, frames.len ? ", at " : "",
		                    NP_FMT(np_buf_str(&frames)));
	}
	struct np_table *table = NP_ADVICE_TABLE(advice, checker, columns);
	for (size_t i = 0; i < self->places.n && i < SHOWN; i++)
		put(self, table, &self->places.v[i]);
	advice->oom |= frames.failed;
	np_buf_release(&frames);
}

static void run(struct np_advice *advice, const struct np_checker *checker)
{
	struct search self = {.advice = advice};
	np_map_init(&self.by_tid);
	np_map_init(&self.by_place);
	if (!search(&self))
		advice->oom = true;
	else if (self.places.n > 0)
		tell(&self, checker);
	for (size_t t = 0; self.threads.v && t < self.threads.n; t++)
		np_vec_release(&self.threads.v[t].rows);
	np_vec_release(&self.threads);
	np_vec_release(&self.places);
	np_host_calls_release(&self.calls);
	np_map_release(&self.by_tid);
	np_map_release(&self.by_place);
}

const struct np_checker np_checker_affinity = {
	.name = "affinity",
	.dimension = NP_DIM_SCHEDULE,
	.category = "Affinity API Issues",
	.category_zh = "亲和API接口",
	.run = run,
	.load = NP_HOST_ARGS,
};
