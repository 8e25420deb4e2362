/*
 * Operator sequences for which a fused operator is known (requirements §2.4 layer
 * 3c, cluster_and_advisor.md §3.4 and §3.5).
 */
#include <string.h>

#include "analysis/fusion.h"
#include "report/lang.h"

/* id, types that belong to it, each between blanks; a suffix of version or flavour
 * ("V2", "D") is cut off before the comparison */
#define WORD_MAP(X)                                                     \
	X(ADD, " Add Adds AddN BiasAdd Axpy ")                          \
	X(SUB, " Sub Subs ")                                            \
	X(MUL, " Mul Muls ")                                            \
	X(DIV, " RealDiv Div Divs ")                                    \
	X(POW, " Pow Pows Square ")                                     \
	X(MEAN, " ReduceMean Mean ReduceMeanWithCount ")                \
	X(RSQRT, " Rsqrt ")                                             \
	X(SQRT, " Sqrt ")                                               \
	X(RECIP, " Reciprocal ")                                        \
	X(NEG, " Neg ")                                                 \
	X(SLICE, " Slice StridedSlice Split SplitV Chunk ")             \
	X(CONCAT, " Concat Pack ")                                      \
	X(CAST, " Cast ")                                               \
	X(TANH, " Tanh ")                                               \
	X(ERF, " Erf ")                                                 \
	X(GELU, " Gelu FastGelu ")                                      \
	X(SILU, " Swish Silu Sigmoid ")                                 \
	X(SOFTMAX, " Softmax ")                                         \
	X(MASK, " MaskedFill Masked_Fill MaskedFillScalar SelectMask ") \
	X(DROPOUT, " DropOutDoMask Dropout ")                           \
	X(MATMUL, " MatMul BatchMatMul ")                               \
	X(LAYERNORM, " LayerNorm LayerNormWithImplMode ")               \
	X(RMSNORM, " RmsNorm ")                                         \
	X(GROUPNORM, " GroupNorm GroupNormCustom ")                     \
	X(TRANSPOSE, " Transpose ")                                     \
	X(RELU, " Relu ")                                               \
	X(ADDCMUL, " Addcmul ")                                         \
	X(ADDCDIV, " Addcdiv ")                                         \
	X(LERP, " Lerp ")

enum word {
#define X(id, types) WORD_##id,
	WORD_MAP(X)
#undef X
		N_WORDS,
};

static const char *const word_types[N_WORDS] = {
#define X(id, types) types,
	WORD_MAP(X)
#undef X
};

enum { MAX_STEPS = 10 };

#define ONE(id)   (1u << WORD_##id)
#define MAYBE(id) (ONE(id) | OPTIONAL)
#define OPTIONAL  (1u << 31)

_Static_assert(N_WORDS < 31, "words and OPTIONAL share 32 bits");

struct known {
	struct np_pattern pattern;
	uint32_t steps[MAX_STEPS]; /* bits of words, 0 behind the last */
};

#define P(name, advice, high)                  \
	{                                      \
		name, advice, (high) / 2, high \
	}

/* Longer ones first: the first that matches is taken. */
static const struct known patterns[] = {
	{P("attention",
           NP_N("use torch_npu.npu_fusion_attention (or scaled_dot_product_attention)"), 0.30),
         {ONE(MATMUL), MAYBE(MUL) | ONE(DIV) | ONE(ADD), MAYBE(MASK) | ONE(ADD), MAYBE(CAST),
          ONE(SOFTMAX), MAYBE(CAST), MAYBE(DROPOUT), ONE(MATMUL)}},
	{P("gelu (tanh)", NP_N("use torch.nn.functional.gelu or torch_npu.fast_gelu"), 0.20),
         {ONE(POW) | ONE(MUL), ONE(MUL), ONE(ADD), ONE(MUL), ONE(TANH), ONE(ADD), ONE(MUL),
          MAYBE(MUL)}},
	{P("gelu (erf)", NP_N("use torch.nn.functional.gelu or torch_npu.fast_gelu"), 0.20),
         {ONE(MUL) | ONE(DIV), ONE(ERF), ONE(ADD), ONE(MUL), MAYBE(MUL)}},
	{P("rms norm", NP_N("use torch_npu.npu_rms_norm"), 0.30),
         {MAYBE(CAST), ONE(POW) | ONE(MUL), ONE(MEAN), ONE(ADD), ONE(RSQRT), ONE(MUL), MAYBE(CAST),
          MAYBE(MUL)}},
	{P("adamw", NP_N("use torch_npu.optim.NpuFusedAdamW"), 0.25),
         {MAYBE(MUL), ONE(LERP) | ONE(ADD) | ONE(MUL), MAYBE(MUL), ONE(ADDCMUL), ONE(SQRT),
          MAYBE(DIV) | ONE(MUL), MAYBE(ADD), ONE(ADDCDIV)}},
	{P("rotary embedding", NP_N("use torch_npu.npu_rotary_mul"), 0.25),
         {MAYBE(MUL), ONE(SLICE), MAYBE(SLICE), ONE(NEG), ONE(CONCAT), ONE(MUL), MAYBE(MUL),
          ONE(ADD)}},
	{P("adaptive layer norm",
           NP_N("fuse scale and shift into the norm (adaln of the MindIE-SD "
                "compiler, npu_layer_norm_eval with modulated weights)"),
           0.25),
         {ONE(LAYERNORM), MAYBE(ADD), ONE(MUL), ONE(ADD)}},
	{P("masked softmax", NP_N("use torch_npu.npu_scaled_masked_softmax"), 0.20),
         {MAYBE(MUL), ONE(MASK), ONE(SOFTMAX)}},
	{P("swiglu", NP_N("use torch_npu.npu_swiglu"), 0.20),
         {MAYBE(SLICE), MAYBE(SLICE), ONE(SILU), ONE(MUL), MAYBE(MUL)}},
	{P("geglu", NP_N("use torch_npu.npu_geglu"), 0.20),
         {MAYBE(SLICE), MAYBE(SLICE), ONE(GELU), ONE(MUL)}},
	{P("group norm + silu", NP_N("use torch_npu.npu_group_norm_silu"), 0.20),
         {ONE(GROUPNORM), ONE(SILU)}},
	{P("add + rms norm", NP_N("use torch_npu.npu_add_rms_norm"), 0.20),
         {ONE(ADD), ONE(RMSNORM)}},
	{P("add + layer norm", NP_N("use torch_npu.npu_add_layer_norm"), 0.20),
         {ONE(ADD), ONE(LAYERNORM)}},
	{P("clip of gradients", NP_N("use clip_grad_norm_fused_ of the fused optimizers"), 0.15),
         {ONE(ADD), ONE(RECIP), ONE(MUL)}},
	{P("cast + relu + cast", NP_N("let the activation run in the type of its input"), 0.15),
         {ONE(CAST), ONE(RELU), ONE(CAST)}},
	{P("matmul + bias", NP_N("use torch.addmm or a linear layer with bias"), 0.15),
         {ONE(MATMUL), ONE(ADD)}},
	{P("matmul + cast", NP_N("let the matmul write the wanted type"), 0.10),
         {ONE(MATMUL), ONE(CAST)}},
	{P("two multiplications",
           NP_N("multiply the scalars first, or fuse both (mul of the MindIE-SD "
                "compiler)"),
           0.10),
         {ONE(MUL), ONE(MUL)}},
};

enum { N_PATTERNS = sizeof patterns / sizeof *patterns };

/* ── words of a type ── */

/* "StridedSliceD" → "StridedSlice", "MatMulV3" → "MatMul", "ConcatV2D" → "Concat" */
static np_str without_version(np_str type)
{
	if (type.len > 4 && type.ptr[type.len - 1] == 'D' && type.ptr[type.len - 2] != 'N')
		type.len--;
	if (type.len > 3 && type.ptr[type.len - 2] == 'V' && type.ptr[type.len - 1] >= '1' &&
	    type.ptr[type.len - 1] <= '9')
		type.len -= 2;
	return type;
}

static uint32_t words_of(np_str type)
{
	char padded[40];
	uint32_t words = 0;
	np_str core = without_version(type);
	if (core.len == 0 || core.len > sizeof padded - 3)
		return 0;
	padded[0] = ' ';
	memcpy(padded + 1, core.ptr, core.len);
	padded[core.len + 1] = ' ';
	np_str key = {padded, core.len + 2};
	for (int w = 0; w < N_WORDS; w++)
		if (np_str_icontains(np_str_of(word_types[w]), key))
			words |= 1u << w;
	return words;
}

/* ── matching ── */

/* Length of the match at i, 0 for none. Optional steps are taken when they fit. */
static uint32_t match(const struct known *known, const struct np_chain *chain,
                      const uint32_t *words, size_t i)
{
	uint32_t length = 0, room = chain->run[i];
	for (int s = 0; s < MAX_STEPS && known->steps[s]; s++) {
		bool fits = length < room && !chain->used[i + length] &&
		            words[i + length] & known->steps[s] & ~OPTIONAL;
		if (fits)
			length++;
		else if (!(known->steps[s] & OPTIONAL))
			return 0;
	}
	return length > 1 ? length : 0;
}

static void take(struct np_chain *chain, size_t at, uint32_t length, struct np_candidate *to,
                 const struct np_pattern *pattern)
{
	np_ns dur = np_chain_dur(chain, at, length), high = np_chain_save(chain, at, length);
	np_ns low = 0; /* half of the sum, in the end */
	if (!chain->measured) {
		high = (np_ns)((double)dur * pattern->high);
		low = (np_ns)((double)dur * pattern->low);
	}
	if (to->count++ == 0) {
		to->pattern = pattern;
		to->at = (uint32_t)at;
		to->length = length;
	}
	to->total = np_ns_sum(to->total, dur);
	to->low = np_ns_sum(to->low, low);
	to->high = np_ns_sum(to->high, high);
	for (size_t k = at; k < at + length; k++)
		chain->used[k] = true;
}

/* Words by position; each type is looked at once. NULL: out of memory. */
static uint32_t *words_by_position(const struct np_analysis *self, const struct np_chain *chain)
{
	uint32_t *words = np_realloc(NULL, chain->n, sizeof *words);
	struct np_map known;
	np_map_init(&known);
	for (size_t i = 0; words && i < chain->n; i++) {
		words[i] = np_map_get(&known, chain->type[i], UINT32_MAX);
		if (words[i] != UINT32_MAX)
			continue;
		words[i] = words_of(np_text(self, chain->type[i]));
		if (!np_map_put(&known, chain->type[i], words[i])) {
			np_free(words);
			words = NULL;
		}
	}
	np_map_release(&known);
	return words;
}

/* What a match can begin with; 0 when a word that it needs is nowhere in the capture. */
static uint32_t begins_with(const struct known *known, uint32_t present)
{
	uint32_t first = 0;
	bool open = true; /* only optional steps so far */
	for (int s = 0; s < MAX_STEPS && known->steps[s]; s++) {
		bool optional = known->steps[s] & OPTIONAL;
		if (open)
			first |= known->steps[s] & ~OPTIONAL;
		if (!optional && !(known->steps[s] & present))
			return 0;
		open = open && optional;
	}
	return first;
}

bool np_fusion_match(const struct np_analysis *self, struct np_chain *chain,
                     struct np_candidates *out)
{
	struct np_candidate found[N_PATTERNS] = {0};
	uint32_t *words = words_by_position(self, chain);
	if (!words)
		return false;
	uint32_t present = 0;
	for (size_t i = 0; i < chain->n; i++)
		present |= words[i];
	for (size_t p = 0; p < N_PATTERNS; p++) {
		uint32_t first = begins_with(&patterns[p], present);
		for (size_t i = 0; first && i < chain->n; i++) {
			if (!(words[i] & first))
				continue;
			uint32_t length = match(&patterns[p], chain, words, i);
			/* nothing to gain: a veto, or shapes that do not fit */
			if (length == 0 || np_chain_save(chain, i, length) == 0)
				continue;
			take(chain, i, length, &found[p], &patterns[p].pattern);
			i += length - 1;
		}
	}
	np_free(words);
	bool ok = true;
	for (size_t p = 0; ok && p < N_PATTERNS; p++) {
		if (chain->measured)
			found[p].low = found[p].high / 2;
		if (found[p].count)
			ok = np_vec_push(&out->of, found[p]);
	}
	return ok;
}
