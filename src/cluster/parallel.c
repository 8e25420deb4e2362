/* Places, elements and groups: arithmetic of mixed-radix counters. */
#include "cluster/parallel.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum { MAX_AXES = 6 };

/* Fast digit first. */
static const uint8_t orders[NP_N_LAYOUTS][NP_N_DIMS] = {
	[NP_LAYOUT_MEGATRON] = {NP_DIM_TP, NP_DIM_CP, NP_DIM_DP, NP_DIM_PP},
	[NP_LAYOUT_MEGATRON_PP] = {NP_DIM_TP, NP_DIM_CP, NP_DIM_PP, NP_DIM_DP},
	[NP_LAYOUT_MINDSPEED] = {NP_DIM_TP, NP_DIM_CP, NP_DIM_DP, NP_DIM_PP},
	[NP_LAYOUT_MINDIE] = {NP_DIM_TP, NP_DIM_CP, NP_DIM_DP, NP_DIM_PP},
	[NP_LAYOUT_VLLM] = {NP_DIM_TP, NP_DIM_CP, NP_DIM_PP, NP_DIM_DP},
};

/* Order of the digits in names. */
static const enum np_dim shown[NP_N_DIMS] = {NP_DIM_DP, NP_DIM_PP, NP_DIM_CP, NP_DIM_TP};

const char *np_layout_name(enum np_layout layout)
{
	static const char *const names[NP_N_LAYOUTS] = {
		"megatron-lm(tp-cp-ep-dp-pp)", "megatron-lm(tp-cp-pp-ep-dp)",
		"mindspeed(tp-cp-ep-dp-pp)", "mindie-llm(tp-dp-ep-pp-moetp)", "vllm(tp-pp-dp-ep)"};
	return names[layout];
}

const char *np_dim_name(enum np_dim dim)
{
	static const char *const names[NP_N_DIMS] = {"tp", "cp", "pp", "dp"};
	return names[dim];
}

const char *np_view_name(enum np_view view)
{
	static const char *const names[NP_N_VIEWS] = {"dp-pp-cp-tp", "dp-pp-cp", "dp-pp", "dp"};
	return names[view];
}

static unsigned bit(unsigned dim)
{
	return 1U << dim;
}

static bool is_folded(enum np_view view, enum np_dim dim)
{
	static const unsigned masks[NP_N_VIEWS] = {
		0, 1U << NP_DIM_TP, 1U << NP_DIM_TP | 1U << NP_DIM_CP,
		1U << NP_DIM_TP | 1U << NP_DIM_CP | 1U << NP_DIM_PP};
	return (masks[view] & bit(dim)) != 0;
}

size_t np_strategy_world(const struct np_strategy *self)
{
	size_t world = 1;
	for (int d = 0; d < NP_N_DIMS; d++)
		world *= self->size[d];
	return world;
}

static bool experts_fit(const struct np_strategy *self)
{
	uint64_t tp = self->size[NP_DIM_TP], dp = self->size[NP_DIM_DP];
	if (self->ep == 1 && self->moe_tp == 1)
		return true;
	if (self->layout == NP_LAYOUT_MINDIE)
		return self->size[NP_DIM_CP] == 1 && (uint64_t)self->moe_tp * self->ep == tp * dp;
	if (self->layout == NP_LAYOUT_VLLM)
		return self->moe_tp == 1 && tp * dp % self->ep == 0 && self->ep % tp == 0;
	return self->moe_tp == 1 && dp % self->ep == 0;
}

bool np_strategy_sound(const struct np_strategy *self, const char **why)
{
	uint64_t world = 1;
	for (int d = 0; d < NP_N_DIMS; d++) {
		*why = self->size[d] == 0 ? "a size is 0" : "more than 1048576 ranks";
		if (self->size[d] == 0 || self->size[d] > NP_WORLD_MAX)
			return false;
		world *= self->size[d];
		if (world > NP_WORLD_MAX)
			return false;
	}
	*why = "the size of the expert groups does not divide the ranks that share experts";
	if (self->ep == 0 || self->moe_tp == 0 || self->ep > NP_WORLD_MAX ||
	    self->moe_tp > NP_WORLD_MAX || !experts_fit(self))
		return false;
	*why = NULL;
	return true;
}

/* ── places ── */

static size_t stride_of(const struct np_strategy *self, enum np_dim dim)
{
	size_t stride = 1;
	for (const uint8_t *d = orders[self->layout]; *d != dim; d++)
		stride *= self->size[*d];
	return stride;
}

/* Index in the group of np_strategy_groups("ep"). */
static uint32_t expert_of(const struct np_strategy *self, const uint32_t digit[NP_N_DIMS])
{
	uint32_t tp = self->size[NP_DIM_TP];
	switch (self->layout) {
	case NP_LAYOUT_MINDIE:
		return (digit[NP_DIM_DP] * tp + digit[NP_DIM_TP]) / self->moe_tp % self->ep;
	case NP_LAYOUT_VLLM:
		return (digit[NP_DIM_DP] * tp + digit[NP_DIM_TP]) % self->ep;
	default:
		return digit[NP_DIM_DP] % self->ep;
	}
}

void np_strategy_place(const struct np_strategy *self, size_t rank, struct np_place *out)
{
	for (int i = 0; i < NP_N_DIMS; i++) {
		enum np_dim dim = orders[self->layout][i];
		out->digit[dim] = (uint32_t)(rank % self->size[dim]);
		rank /= self->size[dim];
	}
	out->ep = expert_of(self, out->digit);
}

size_t np_strategy_rank(const struct np_strategy *self, const uint32_t digit[NP_N_DIMS])
{
	size_t rank = 0;
	for (int d = 0; d < NP_N_DIMS; d++)
		rank += digit[d] * stride_of(self, (enum np_dim)d);
	return rank;
}

/* ── elements ── */

size_t np_view_ranks(const struct np_strategy *self, enum np_view view)
{
	size_t n = 1;
	for (int d = 0; d < NP_N_DIMS; d++)
		n *= is_folded(view, (enum np_dim)d) ? self->size[d] : 1;
	return n;
}

size_t np_view_count(const struct np_strategy *self, enum np_view view)
{
	return np_strategy_world(self) / np_view_ranks(self, view);
}

size_t np_view_of_rank(const struct np_strategy *self, enum np_view view, size_t rank)
{
	size_t element = 0, stride = 1;
	for (int i = 0; i < NP_N_DIMS; i++) {
		enum np_dim dim = orders[self->layout][i];
		if (!is_folded(view, dim)) {
			element += rank % self->size[dim] * stride;
			stride *= self->size[dim];
		}
		rank /= self->size[dim];
	}
	return element;
}

void np_view_element(const struct np_strategy *self, enum np_view view, size_t i,
                     struct np_element *out)
{
	uint32_t width[NP_N_DIMS];
	*out = (struct np_element){.x = 0};
	for (int o = 0; o < NP_N_DIMS; o++) {
		enum np_dim dim = orders[self->layout][o];
		width[dim] = is_folded(view, dim) ? 1 : self->size[dim];
		out->digit[dim] = (uint32_t)(i % width[dim]);
		i /= width[dim];
	}
	out->x = (out->digit[NP_DIM_DP] * width[NP_DIM_CP] + out->digit[NP_DIM_CP]) *
	                 width[NP_DIM_TP] +
	         out->digit[NP_DIM_TP];
	out->y = out->digit[NP_DIM_PP];
}

void np_view_name_of(const struct np_strategy *self, enum np_view view, size_t i,
                     char out[NP_ELEMENT_NAME])
{
	struct np_element element;
	size_t len = 0;
	np_view_element(self, view, i, &element);
	(void)snprintf(out, NP_ELEMENT_NAME, "dp0");
	for (int s = 0; s < NP_N_DIMS; s++) {
		enum np_dim dim = shown[s];
		if (is_folded(view, dim) || self->size[dim] == 1)
			continue;
		len += (size_t)snprintf(out + len, NP_ELEMENT_NAME - len, "%s%s%u",
		                        len > 0 ? "-" : "", np_dim_name(dim), element.digit[dim]);
	}
}

void np_view_element_ranks(const struct np_strategy *self, enum np_view view, size_t i,
                           uint32_t *out)
{
	struct np_element element;
	np_view_element(self, view, i, &element);
	size_t n = np_view_ranks(self, view);
	for (size_t r = 0; r < n; r++) {
		size_t rest = r;
		for (int o = 0; o < NP_N_DIMS; o++) {
			enum np_dim dim = orders[self->layout][o];
			if (!is_folded(view, dim))
				continue;
			element.digit[dim] = (uint32_t)(rest % self->size[dim]);
			rest /= self->size[dim];
		}
		out[r] = (uint32_t)np_strategy_rank(self, element.digit);
	}
}

/* ── groups ── */

void np_rank_groups_release(struct np_rank_groups *self)
{
	np_free(self->ranks);
	*self = (struct np_rank_groups){.n = 0};
}

/* The rank whose digits of the axes in `mask` count to `count`, the others 0. */
static size_t counted(const uint32_t *sizes, size_t n, unsigned mask, size_t count)
{
	size_t rank = 0, stride = 1;
	for (size_t d = 0; d < n; d++) {
		if (mask & bit((unsigned)d)) {
			rank += count % sizes[d] * stride;
			count /= sizes[d];
		}
		stride *= sizes[d];
	}
	return rank;
}

bool np_orthogonal_groups(const uint32_t *sizes, size_t n, unsigned chosen,
                          struct np_rank_groups *out)
{
	size_t world = 1;
	*out = (struct np_rank_groups){.size = 1};
	for (size_t d = 0; d < n; d++) {
		world *= sizes[d];
		out->size *= chosen & bit((unsigned)d) ? sizes[d] : 1;
	}
	out->n = world / out->size;
	out->ranks = np_realloc(NULL, world, sizeof *out->ranks);
	for (size_t g = 0; out->ranks && g < out->n; g++)
		for (size_t i = 0; i < out->size; i++)
			out->ranks[g * out->size + i] = (uint32_t)(counted(sizes, n, ~chosen, g) +
			                                           counted(sizes, n, chosen, i));
	return out->ranks != NULL;
}

/* Axes of the counter when experts share the ranks: what a word of a token chooses. */
enum word { TP = 1, CP = 2, DP = 4, PP = 8, EP = 16, MODULO = 32, MOE = 64 };

struct axes {
	uint32_t size[MAX_AXES];
	unsigned words[MAX_AXES]; /* that choose the axis */
	size_t n;
};

static void axis(struct axes *self, uint32_t size, unsigned words)
{
	self->size[self->n] = size;
	self->words[self->n++] = words;
}

/* "dp" chooses both halves of DP, "ep" and "dp … modulo ep" one. */
static void make_axes(const struct np_strategy *self, unsigned token, struct axes *out)
{
	uint32_t tp = self->size[NP_DIM_TP], dp = self->size[NP_DIM_DP];
	*out = (struct axes){.n = 0};
	if (self->layout == NP_LAYOUT_MINDIE && (token & (EP | MOE)) &&
	    (self->ep > 1 || self->moe_tp > 1)) {
		axis(out, self->moe_tp, MOE);
		axis(out, self->ep, EP);
		axis(out, self->size[NP_DIM_PP], PP);
		return;
	}
	bool by_tp = self->layout == NP_LAYOUT_VLLM && self->ep > 1;
	uint32_t inner = by_tp ? self->ep / tp : self->ep;
	for (int o = 0; o < NP_N_DIMS; o++) {
		enum np_dim dim = orders[self->layout][o];
		static const unsigned words[NP_N_DIMS] = {TP, CP, PP, DP};
		if (dim == NP_DIM_DP) {
			axis(out, inner, token & MODULO ? EP : EP | DP);
			axis(out, dp / inner, DP);
		} else {
			axis(out, self->size[dim],
			     words[dim] | (dim == NP_DIM_TP && by_tp ? EP : 0));
		}
	}
}

static unsigned parse(const char *token)
{
	static const struct {
		const char *text;
		unsigned words;
	} all[] = {{"tp", TP}, {"cp", CP},         {"dp", DP},  {"pp", PP},
	           {"ep", EP}, {"modulo", MODULO}, {"moe", MOE}};
	np_str rest = np_str_of(token);
	unsigned words = 0;
	do {
		np_str word = np_str_cut(rest, '-', &rest);
		unsigned found = 0;
		for (size_t i = 0; i < sizeof all / sizeof *all; i++)
			found |= np_str_is(word, all[i].text) ? all[i].words : 0;
		if (found == 0)
			return 0;
		words |= found;
	} while (rest.len > 0);
	return words;
}

enum np_status np_strategy_groups(const struct np_strategy *self, const char *token,
                                  struct np_rank_groups *out, struct np_err *err)
{
	struct axes axes;
	unsigned words = parse(token), chosen = 0;
	*out = (struct np_rank_groups){.n = 0};
	if (words == 0 || ((words & MOE) && self->layout != NP_LAYOUT_MINDIE))
		return np_err_set(err, NP_E_USAGE, NULL, "no groups are called '%s'", token);
	make_axes(self, words, &axes);
	unsigned wanted = words & MODULO ? words & ~(unsigned)(EP | MODULO) : words;
	wanted = words & MOE ? MOE : wanted;
	for (size_t a = 0; a < axes.n; a++)
		chosen |= axes.words[a] & wanted ? bit((unsigned)a) : 0;
	return np_orthogonal_groups(axes.size, axes.n, chosen, out) ? NP_OK : np_err_nomem(err);
}
