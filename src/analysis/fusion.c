/*
 * Layer 3c: kernels that could be one kernel. Known patterns first, then whatever
 * sequence the capture repeats.
 *
 * The saving is a range, 0.5 to 1.0 times the sum of what each producer writes
 * (mte3, of a cube kernel fixpipe) and its consumer reads (mte2): requirements
 * §2.10, gains L0. A matmul reads its weights too, so of it no more is counted
 * than the producer wrote. Pairs do not count whose recorded shapes say that the
 * second can't read what the first wrote, nor those with a vector-saturated
 * kernel (the veto of §2.10). Without PMU the range is a fixed share of the
 * duration, called an estimate, and never makes a P0.
 */
#include "analysis/fusion.h"

#include <stdlib.h>
#include <string.h>

#include "report/lang.h"

static const struct np_column columns[] = {
	{"kind", "", NP_COL_TEXT, "pattern: known; sequence: repeated in this capture"},
	{"name", "", NP_COL_TEXT, "of the pattern"},
	{"sequence", "", NP_COL_TEXT, "operator types, one behind the other on a stream"},
	{"count", "", NP_COL_INT, "occurrences that do not overlap those of a row above"},
	{"total_ns", "us", NP_COL_DUR_NS, "sum of the durations of their kernels"},
	{"saving_low_ns", "us", NP_COL_DUR_NS, "half of saving_high"},
	{"saving_high_ns", "us", NP_COL_DUR_NS, "sum of mte3 of producers and mte2 of consumers"},
	{"saving_share", "", NP_COL_PERCENT, "saving_high of the steps' span"},
	{"basis", "", NP_COL_TEXT, "pmu, or estimate: fixed shares of the duration"},
	{"first_kernel", "", NP_COL_TEXT, "kernel with which the first occurrence begins"},
	{"first_start_ns", "", NP_COL_TIME_NS, "its start"},
};

/* ── the chain ── */

np_ns np_chain_dur(const struct np_chain *chain, size_t at, size_t length)
{
	return chain->dur[at + length] - chain->dur[at];
}

np_ns np_chain_save(const struct np_chain *chain, size_t at, size_t length)
{
	np_ns save = chain->save[at + length - 1] - chain->save[at];
	np_ns room = chain->room[at + length] - chain->room[at];
	return save < room ? save : room;
}

static void chain_release(struct np_chain *self)
{
	np_free(self->row);
	np_free(self->type);
	np_free(self->run);
	np_free(self->save);
	np_free(self->room);
	np_free(self->dur);
	np_free(self->cubes);
	np_free(self->used);
}

static bool chain_alloc(struct np_chain *self, size_t n)
{
	self->n = n;
	self->row = np_realloc(NULL, n, sizeof *self->row);
	self->type = np_realloc(NULL, n, sizeof *self->type);
	self->run = np_calloc(n, sizeof *self->run);
	self->save = np_realloc(NULL, n + 1, sizeof *self->save);
	self->room = np_realloc(NULL, n + 1, sizeof *self->room);
	self->dur = np_realloc(NULL, n + 1, sizeof *self->dur);
	self->cubes = np_realloc(NULL, n + 1, sizeof *self->cubes);
	self->used = np_calloc(n, sizeof *self->used);
	return self->row && self->type && self->run && self->save && self->room && self->dur &&
	       self->cubes && self->used;
}

/* Rows of the analysis, stream by stream; they are in order of start already. */
static bool order_by_stream(const struct np_analysis *self, struct np_chain *chain)
{
	const uint32_t *stream = self->profile->kernels.stream;
	struct np_map numbers;
	NP_VEC(uint32_t) next = {0};
	np_map_init(&numbers);
	bool ok = true;
	for (size_t i = 0; ok && i < self->n_rows; i++) {
		uint32_t key = stream[self->rows[i]], s = np_map_get(&numbers, key, UINT32_MAX);
		if (s == UINT32_MAX) {
			s = (uint32_t)next.n;
			ok = np_map_put(&numbers, key, s) && np_vec_push(&next, 0);
		}
		if (ok && next.v)
			next.v[s]++;
	}
	for (uint32_t s = 0, at = 0; ok && s < next.n; s++) {
		uint32_t n = next.v[s];
		next.v[s] = at;
		at += n;
	}
	for (size_t i = 0; ok && next.v && i < self->n_rows; i++) {
		uint32_t s = np_map_get(&numbers, stream[self->rows[i]], 0);
		chain->row[next.v[s]++] = self->rows[i];
	}
	np_map_release(&numbers);
	np_vec_release(&next);
	return ok;
}

static bool is_break(const struct np_analysis *self, uint32_t row)
{
	switch ((enum np_class)self->class[row]) {
	case NP_CLASS_COMM:
	case NP_CLASS_ATTENTION:
	case NP_CLASS_AICPU:
	case NP_CLASS_SYNC:
		return true;
	default:
		return false;
	}
}

static void set_runs(const struct np_analysis *self, struct np_chain *chain)
{
	const uint32_t *stream = self->profile->kernels.stream;
	for (size_t i = chain->n; i-- > 0;) {
		uint32_t row = chain->row[i];
		chain->type[i] = np_op_type(self, row);
		if (is_break(self, row))
			continue;
		bool goes_on = i + 1 < chain->n && stream[row] == stream[chain->row[i + 1]] &&
		               self->span_of[row] == self->span_of[chain->row[i + 1]];
		unsigned behind = goes_on ? chain->run[i + 1] : 0;
		chain->run[i] = (uint8_t)(behind < 255 ? behind + 1 : 255);
	}
}

/* ── what a pair saves ── */

/* Elements of one shape "1,4096,2048" of a list; 0 when it is no list of numbers. */
static uint64_t elements(np_str shape)
{
	uint64_t product = 1;
	np_str rest = shape;
	while (rest.len) {
		uint64_t dim = 0;
		np_str one = np_str_trim(np_str_cut(rest, ',', &rest));
		if (!np_str_to_u64(one, &dim) || __builtin_mul_overflow(product, dim, &product))
			return 0;
	}
	return shape.len ? product : 0;
}

static np_str unquoted(np_str text)
{
	while (text.len && (text.ptr[0] == '"' || text.ptr[0] == '['))
		text = np_str_from(text, 1);
	while (text.len && (text.ptr[text.len - 1] == '"' || text.ptr[text.len - 1] == ']'))
		text.len--;
	return text;
}

/* Has an output as many elements as an input? Views change shapes, not their size. */
static bool sizes_meet(np_str outputs, np_str inputs)
{
	enum { MAX_SHAPES = 32 };
	uint64_t sizes[MAX_SHAPES];
	size_t n = 0;
	np_str rest = unquoted(outputs);
	while (rest.len && n < MAX_SHAPES)
		sizes[n++] = elements(np_str_cut(rest, ';', &rest));
	rest = unquoted(inputs);
	for (size_t looked = 0; rest.len && looked < MAX_SHAPES; looked++) {
		uint64_t size = elements(np_str_cut(rest, ';', &rest));
		for (size_t i = 0; size > 1 && i < n; i++)
			if (sizes[i] == size)
				return true;
	}
	return false;
}

/* May `reader` read what `writer` wrote? Yes where shapes are not recorded. *memo keeps the
 * answer for each pair of texts. */
static bool may_follow(const struct np_analysis *self, struct np_map *memo, uint32_t writer,
                       uint32_t reader, bool *ok)
{
	const struct np_kernel_shapes *shapes = &self->profile->kernel_shapes;
	if (writer >= shapes->n || reader >= shapes->n)
		return true;
	uint32_t out = shapes->out_shapes[writer], in = shapes->in_shapes[reader];
	if (out == 0 || in == 0 || out == NP_ID_NONE || in == NP_ID_NONE)
		return true;
	uint64_t key = (uint64_t)out << 32 | in;
	uint32_t known = np_map_get(memo, key, UINT32_MAX);
	if (known == UINT32_MAX) {
		known = sizes_meet(np_text(self, out), np_text(self, in));
		*ok = *ok && np_map_put(memo, key, known);
	}
	return known != 0;
}

static bool vetoed(const struct np_rules *rules, const struct np_pipes *p)
{
	return p->vec >= rules->veto_vec * 1000 && p->mte2 >= 0 &&
	       p->mte2 <= rules->veto_mte2 * 1000;
}

static int16_t written(const struct np_pipes *p)
{
	int16_t most = p->mte3 > p->fixpipe ? p->mte3 : p->fixpipe;
	return most > 0 ? most : 0;
}

static np_ns pair_saving(const struct np_analysis *self, const struct np_pipes *pipes,
                         uint32_t writer, uint32_t reader)
{
	const struct np_pipes *a = &pipes[writer], *b = &pipes[reader];
	const np_ns *dur = self->profile->kernels.dur_ns;
	if (vetoed(self->rules, a) || vetoed(self->rules, b))
		return 0;
	int out = written(a), in = b->mte2 > 0 ? b->mte2 : 0;
	np_ns writes = np_ns_permille(dur[writer], out < 1000 ? out : 1000);
	np_ns reads = np_ns_permille(dur[reader], in < 1000 ? in : 1000);
	if (self->class[reader] == NP_CLASS_MATMUL && reads > writes)
		reads = writes;
	return np_ns_sum(writes, reads);
}

/* A quarter of the mean of both, of what is not a matmul (requirements §2.4: the ratios are
 * 0.10 to 0.30). */
static np_ns pair_estimate(const struct np_analysis *self, uint32_t writer, uint32_t reader)
{
	const np_ns *dur = self->profile->kernels.dur_ns;
	np_ns sum = 0;
	if (self->class[writer] != NP_CLASS_MATMUL)
		sum = np_ns_sum(sum, dur[writer] / 8);
	if (self->class[reader] != NP_CLASS_MATMUL)
		sum = np_ns_sum(sum, dur[reader] / 8);
	return sum;
}

/* Sums that stop growing before they could overflow: no span is that long. */
static np_ns sum_up(np_ns before, np_ns more)
{
	return before > NP_TIME_MAX - more ? NP_TIME_MAX : before + more;
}

static bool set_sums(const struct np_analysis *self, struct np_chain *chain,
                     const struct np_pipes *pipes)
{
	struct np_map memo;
	bool ok = true;
	np_map_init(&memo);
	chain->save[0] = chain->room[0] = chain->dur[0] = 0;
	chain->cubes[0] = 0;
	for (size_t i = 0; ok && i < chain->n; i++) {
		uint32_t row = chain->row[i];
		np_ns dur = self->profile->kernels.dur_ns[row], save = 0;
		int busy = np_pipes_busy(&pipes[row]);
		busy = busy < 0 ? 0 : busy < 1000 ? busy : 1000;
		if (chain->run[i] > 1 && may_follow(self, &memo, row, chain->row[i + 1], &ok))
			save = chain->measured ? pair_saving(self, pipes, row, chain->row[i + 1])
			                       : pair_estimate(self, row, chain->row[i + 1]);
		chain->save[i + 1] = sum_up(chain->save[i], save);
		chain->room[i + 1] = sum_up(chain->room[i], dur - np_ns_permille(dur, busy));
		chain->dur[i + 1] = sum_up(chain->dur[i], dur);
		chain->cubes[i + 1] = chain->cubes[i] + (self->class[row] == NP_CLASS_MATMUL);
	}
	np_map_release(&memo);
	return ok;
}

/* ── the result ── */

static int by_saving(const void *a, const void *b)
{
	const struct np_candidate *x = a, *y = b;
	if (x->high != y->high)
		return x->high < y->high ? 1 : -1;
	return (x->at > y->at) - (x->at < y->at);
}

/* "Cast → Add → RmsNorm" */
static void sequence_text(const struct np_analysis *self, const struct np_chain *chain,
                          const struct np_candidate *one, struct np_buf *out)
{
	np_buf_clear(out);
	for (uint32_t i = 0; i < one->length; i++) {
		np_str type = np_text(self, chain->type[one->at + i]);
		np_buf_add_cstr(out, i ? " → " : "");
		np_buf_add_str(out, np_str_sub(type, 0, 80));
	}
}

static void put_row(struct np_table *table, const struct np_analysis *self,
                    const struct np_chain *chain, const struct np_candidate *one,
                    const struct np_buf *text)
{
	uint32_t row = chain->row[one->at];
	np_cell_cstr(table, one->pattern ? "pattern" : "sequence");
	np_cell_cstr(table, one->pattern ? one->pattern->name : NULL);
	np_cell_text(table, np_buf_str(text));
	np_cell_int(table, one->count);
	np_cell_int(table, one->total);
	np_cell_int(table, one->low);
	np_cell_int(table, one->high);
	np_cell_real(table, np_share(self, one->high));
	np_cell_cstr(table, chain->measured ? "pmu" : "estimate");
	np_cell_text(table, np_text(self, self->profile->kernels.name[row]));
	np_cell_int(table, self->profile->kernels.start_ns[row]);
}

static void tell(struct np_analysis *self, const struct np_chain *chain,
                 const struct np_candidate *one, const struct np_buf *text)
{
	double low = np_share(self, one->low), high = np_share(self, one->high);
	bool large = chain->measured && low >= self->rules->fusion_p0;
	struct np_finding *finding = np_report_finding(
		self->report, "FUSION_CANDIDATE", large ? NP_ERROR : NP_INFO,
		"%s could be one kernel: %u times, saves %.1f to %.1f us, %.1f to %.1f %% of the "
		"span%s",
		text->ptr, one->count, (double)one->low / 1e3, (double)one->high / 1e3, low * 100,
		high * 100, chain->measured ? "" : np_tr(" (an estimate: no PMU data)"));
	np_finding_detail(
		finding, "each of these kernels writes its result to memory, and the next reads it "
			 "back; fused, it stays on the chip. The upper end is the sum of mte3 of "
			 "the producers and mte2 of the consumers, the lower end is half of it");
	np_str name = np_text(self, self->profile->kernels.name[chain->row[one->at]]);
	np_finding_evidence(finding, np_kernel_source(self), "Type, mte2_ratio, mte3_ratio", NULL,
	                    "first at %.*s, start %lld ns", NP_FMT(name),
	                    (long long)self->profile->kernels.start_ns[chain->row[one->at]]);
	np_finding_impact(finding, (double)one->high / 1e3, high);
	np_finding_advice(finding, "%s",
	                  one->pattern
	                          ? one->pattern->advice
	                          : NP_N("look for a fused operator of torch_npu or CANN that "
	                                 "covers the sequence, let a graph compiler fuse it, or "
	                                 "write one kernel (Triton-Ascend, Ascend C)"));
}

static bool report(struct np_analysis *self, const struct np_chain *chain,
                   struct np_candidates *found)
{
	enum { TOLD = 3 };
	struct np_buf text = {0};
	struct np_table *table = NULL;
	size_t told = 0;
	if (found->of.n)
		qsort(found->of.v, found->of.n, sizeof *found->of.v, by_saving);
	for (size_t i = 0; i < found->of.n && i < np_top(self); i++) {
		const struct np_candidate *one = &found->of.v[i];
		sequence_text(self, chain, one, &text);
		if (text.failed)
			break;
		if (!table)
			table = NP_REPORT_TABLE(self->report, "fusion", "Kernels to fuse", columns);
		put_row(table, self, chain, one, &text);
		if (told < TOLD && np_share(self, one->low) >= self->rules->fusion_share) {
			tell(self, chain, one, &text);
			told++;
		}
	}
	bool ok = !text.failed;
	np_buf_release(&text);
	return ok;
}

void np_analyze_fusion(struct np_analysis *self)
{
	struct np_chain chain = {0};
	struct np_candidates found = {0};
	struct np_pipes *pipes = np_pipes_all(self);
	bool ok = pipes && chain_alloc(&chain, self->n_rows);
	if (ok) {
		chain.measured = np_pipes_known(self, pipes);
		ok = order_by_stream(self, &chain);
	}
	if (ok)
		set_runs(self, &chain);
	ok = ok && set_sums(self, &chain, pipes) && np_fusion_match(self, &chain, &found) &&
	     np_fusion_grams(self, &chain, &found) && report(self, &chain, &found);
	if (!ok)
		self->oom = true;
	np_vec_release(&found.of);
	chain_release(&chain);
	np_free(pipes);
}
