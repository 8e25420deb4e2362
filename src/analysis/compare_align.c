/*
 * Where kernels were inserted, removed or replaced: the streams of one step of each side,
 * aligned.
 *
 * The step is the first whose number of kernels is the side's median. Streams have no
 * lasting ids, so they are paired by their number of kernels; collectives, which no stream
 * holds in some formats, are a sequence of their own. Where one side does not record
 * streams (Level0) all kernels are one.
 */
#include <stdlib.h>

#include "analysis/align.h"
#include "analysis/compare_side.h"
#include "report/lang.h"

/* The kernels of one stream in the chosen step. */
struct lane {
	uint32_t stream;
	NP_VEC(uint32_t) keys; /* key_op */
	NP_VEC(np_ns) durs;
};

struct lanes {
	NP_VEC(struct lane) v;
};

static const struct np_cmp_sample *choose(const struct np_cmp_side *side, double kernels)
{
	for (size_t i = 0; i < side->samples.n; i++)
		if ((double)side->samples.v[i].kernels == kernels)
			return &side->samples.v[i];
	const struct np_cmp_sample *best = &side->samples.v[0];
	for (size_t i = 1; i < side->samples.n; i++) /* between two middles */
		if ((double)side->samples.v[i].kernels < kernels &&
		    ((double)best->kernels > kernels || side->samples.v[i].kernels > best->kernels))
			best = &side->samples.v[i];
	return best;
}

static bool make_lanes(const struct np_cmp_side *side, const struct np_cmp_sample *sample,
                       bool streams, struct lanes *out)
{
	struct np_map by_stream;
	bool ok = true;
	np_map_init(&by_stream);
	for (int64_t i = 0; ok && i < sample->kernels; i++) {
		const struct np_cmp_kernel *kernel = &side->kernels.v[sample->first + (size_t)i];
		bool apart = streams || kernel->stream == NP_CMP_COMM;
		uint32_t stream = apart ? kernel->stream : NP_NO_U32;
		uint32_t at = np_map_get(&by_stream, stream, NP_NO_U32);
		if (at == NP_NO_U32) {
			struct lane fresh = {.stream = stream};
			at = (uint32_t)out->v.n;
			ok = np_vec_push(&out->v, fresh) && np_map_put(&by_stream, stream, at);
		}
		ok = ok && out->v.v && np_vec_push(&out->v.v[at].keys, kernel->key_op) &&
		     np_vec_push(&out->v.v[at].durs, kernel->dur);
	}
	np_map_release(&by_stream);
	return ok;
}

static void lanes_release(struct lanes *self)
{
	for (size_t i = 0; i < self->v.n; i++) {
		np_vec_release(&self->v.v[i].keys);
		np_vec_release(&self->v.v[i].durs);
	}
	np_vec_release(&self->v);
}

/* Collectives first, then the stream with most kernels. */
static int by_kernels(const void *a, const void *b)
{
	const struct lane *x = a, *y = b;
	bool xc = x->stream == NP_CMP_COMM, yc = y->stream == NP_CMP_COMM;
	if (xc != yc)
		return xc ? -1 : 1;
	if (x->keys.n != y->keys.n)
		return x->keys.n > y->keys.n ? -1 : 1;
	return (x->stream > y->stream) - (x->stream < y->stream);
}

static void sort_lanes(struct lanes *self)
{
	struct lane none = {.stream = NP_CMP_COMM};
	if (self->v.n > 1)
		qsort(self->v.v, self->v.n, sizeof *self->v.v, by_kernels);
	/* both sides begin with the collectives, though there be none */
	if (self->v.n == 0 || self->v.v[0].stream == NP_CMP_COMM || !np_vec_push(&self->v, none))
		return;
	for (size_t i = self->v.n - 1; i > 0; i--)
		self->v.v[i] = self->v.v[i - 1];
	self->v.v[0] = none;
}

/* ── the table ── */

static const struct np_column columns[] = {
	{"target", "", NP_COL_INT, "which TARGET, from 1"},
	{"stream", "", NP_COL_TEXT, "stream in TARGET (or BASE); comm: the collectives"},
	{"change", "", NP_COL_TEXT, "inserted, removed, replaced"},
	{"base_at", "", NP_COL_INT, "index in the stream of BASE's step, from 0"},
	{"base_kernels", "", NP_COL_INT, "kernels of BASE that went"},
	{"target_at", "", NP_COL_INT, "index in the stream of TARGET's step, from 0"},
	{"target_kernels", "", NP_COL_INT, "kernels of TARGET that came"},
	{"diff_ns", "us", NP_COL_DUR_NS, "what came less what went"},
	{"behind", "", NP_COL_TEXT, "the kernel before it, the same on both sides"},
	{"kernels", "", NP_COL_TEXT, "what came (or went), the first few"},
};

static np_str key_name(const struct np_cmp_pair *pair, uint32_t key)
{
	return np_cmp_text(pair->compare, pair->ops.v.v[key].b);
}

static void put_names(const struct np_cmp_pair *pair, struct np_table *table, const uint32_t *keys,
                      size_t n)
{
	enum { SHOWN = 4 };
	struct np_buf text = {0};
	for (size_t i = 0; keys && i < n && i < SHOWN; i++) {
		if (i > 0)
			np_buf_add_cstr(&text, ", ");
		np_buf_add_str(&text, key_name(pair, keys[i]));
	}
	if (n > SHOWN)
		np_buf_printf(&text, np_tr(", %zu more"), n - SHOWN);
	np_cell_text(table, np_buf_str(&text));
	np_buf_release(&text);
}

static np_ns sum(const np_ns *v, size_t n)
{
	np_ns all = 0;
	for (size_t i = 0; v && i < n; i++)
		all += v[i];
	return all;
}

static void put_run(const struct np_cmp_pair *pair, struct np_table *table, const struct lane *base,
                    const struct lane *target, const struct np_align_run *run)
{
	uint32_t stream = target->keys.n > 0 ? target->stream : base->stream;
	np_cell_int(table, pair->number);
	if (stream == NP_CMP_COMM)
		np_cell_cstr(table, "comm");
	else if (stream == NP_NO_U32)
		np_cell_na(table);
	else
		np_cell_printf(table, "%u", stream);
	np_cell_cstr(table, run->n_a == 0 ? "inserted" : run->n_b == 0 ? "removed" : "replaced");
	np_cell_int(table, (int64_t)run->a);
	np_cell_int(table, (int64_t)run->n_a);
	np_cell_int(table, (int64_t)run->b);
	np_cell_int(table, (int64_t)run->n_b);
	np_cell_int(table,
	            sum(target->durs.v + run->b, run->n_b) - sum(base->durs.v + run->a, run->n_a));
	if (run->a > 0 && base->keys.v)
		np_cell_text(table, key_name(pair, base->keys.v[run->a - 1]));
	else
		np_cell_na(table);
	if (run->n_b > 0)
		put_names(pair, table, target->keys.v + run->b, run->n_b);
	else
		put_names(pair, table, base->keys.v + run->a, run->n_a);
}

struct tally {
	size_t runs, inserted, removed, shown;
	bool cut;
};

static bool align_lane(const struct np_cmp_pair *pair, struct np_table *table,
                       const struct lane *base, const struct lane *target, struct tally *tally)
{
	struct np_alignment alignment;
	size_t top = pair->compare->options->top ? pair->compare->options->top : 20;
	/* an empty vector has no array */
	static const uint32_t none[1] = {0};
	const uint32_t *a = base->keys.n ? base->keys.v : none;
	const uint32_t *b = target->keys.n ? target->keys.v : none;
	bool ok = np_align(a, base->keys.n, b, target->keys.n, &alignment);
	for (size_t i = 0; ok && i < alignment.runs.n; i++) {
		const struct np_align_run *run = &alignment.runs.v[i];
		tally->runs++;
		tally->inserted += run->n_b;
		tally->removed += run->n_a;
		if (tally->shown >= top)
			continue;
		tally->shown++;
		put_run(pair, table, base, target, run);
	}
	tally->cut = tally->cut || alignment.cut;
	np_alignment_release(&alignment);
	return ok;
}

static void tell(struct np_cmp_pair *pair, const struct tally *tally)
{
	struct np_report *report = pair->compare->report;
	if (tally->cut)
		np_report_note(report,
		               "alignment: very different streams; the edit shown is right, "
		               "but a shorter one may exist");
	if (tally->runs > tally->shown)
		np_report_note(report, "table alignment: %zu of %zu rows (--top)", tally->shown,
		               tally->runs);
	if (tally->runs == 0)
		return;
	struct np_finding *finding =
		np_report_finding(report, "KERNELS_MOVED", NP_INFO,
	                          "%zu kernels inserted and %zu removed per step, at %zu places",
	                          tally->inserted, tally->removed, tally->runs);
	np_finding_evidence(finding, pair->target->source, "Name", NULL,
	                    "table alignment tells stream, index and neighbour of each");
}

bool np_cmp_table_alignment(struct np_cmp_pair *pair)
{
	struct lanes base = {0}, target = {0};
	struct lane none = {.stream = NP_CMP_COMM};
	struct tally tally = {0};
	double nb = pair->counts[NP_CMP_COUNT_KERNELS].base;
	double nt = pair->counts[NP_CMP_COUNT_KERNELS].target;
	bool streams = pair->base->has_streams && pair->target->has_streams;
	bool ok = make_lanes(pair->base, choose(pair->base, nb), streams, &base) &&
	          make_lanes(pair->target, choose(pair->target, nt), streams, &target);
	struct np_table *table = NP_CMP_TABLE(
		pair->compare, "alignment", "What came and went, by place in the stream", columns);
	if (ok) {
		sort_lanes(&base);
		sort_lanes(&target);
	}
	size_t n = base.v.n > target.v.n ? base.v.n : target.v.n;
	for (size_t i = 0; ok && i < n; i++)
		ok = align_lane(pair, table, i < base.v.n ? &base.v.v[i] : &none,
		                i < target.v.n ? &target.v.v[i] : &none, &tally);
	if (ok)
		tell(pair, &tally);
	lanes_release(&base);
	lanes_release(&target);
	return ok;
}
