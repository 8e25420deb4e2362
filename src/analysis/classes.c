/*
 * Layer 2: kinds of work, and where it ran.
 *
 * Two sums over the same kernels answer two questions. `total` adds durations, so
 * kernels that run side by side count twice; `alone` is the time in which only this
 * class ran, found by one sweep over the classes' merged intervals:
 *
 *   matmul   ███████      ████
 *   comm        ▒▒▒▒▒▒▒▒        alone: m m m · · · · c c c c   m m m m
 *   spans   [        )[        )       several: · · ·   nothing: ·
 *
 * alone of all classes + several + nothing = the spans, to the nanosecond.
 */
#include "analysis/evidence.h"
#include "report/lang.h"

static const struct np_column class_columns[] = {
	{"class", "", NP_COL_TEXT, "kind of work, by type and core, by name only where those lack"},
	{"kernels", "", NP_COL_INT, "how many"},
	{"total_ns", "us", NP_COL_DUR_NS, "sum of their durations"},
	{"share", "", NP_COL_PERCENT, "total / sum of all durations"},
	{"alone_ns", "us", NP_COL_DUR_NS,
         "time in which nothing else ran; the rows sum to the spans"},
	{"alone_share", "", NP_COL_PERCENT, "alone / spans"},
};

static const struct np_column core_columns[] = {
	{"core", "", NP_COL_TEXT, "accelerator core as recorded; - where it isn't"},
	{"kernels", "", NP_COL_INT, "how many"},
	{"total_ns", "us", NP_COL_DUR_NS, "sum of their durations"},
	{"share", "", NP_COL_PERCENT, "total / sum of all durations"},
	{"mean_us", "us", NP_COL_REAL, "total / kernels"},
	{"min_ns", "us", NP_COL_DUR_NS, "shortest"},
	{"max_ns", "us", NP_COL_DUR_NS, "longest"},
};

struct sum {
	size_t n;
	np_ns total, min, max;
};

static void count(struct sum *sum, np_ns dur)
{
	sum->min = sum->n == 0 || dur < sum->min ? dur : sum->min;
	sum->max = dur > sum->max ? dur : sum->max;
	sum->total += dur;
	sum->n++;
}

static double share_of(np_ns part, np_ns whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

/* ── who ran alone ── */

enum { LANES = NP_N_CLASSES + 1 }; /* the last lane: the spans */

struct alone {
	np_ns class[NP_N_CLASSES], several, nothing;
};

/* Merged intervals of each class on this device, and of the spans. */
static bool make_lanes(const struct np_analysis *self, struct np_intervals lanes[LANES])
{
	const struct np_kernels *kernels = &self->profile->kernels;
	bool ok = true;
	for (size_t i = 0; ok && i < kernels->n; i++)
		if (kernels->device[i] == self->device && self->class[i] != NP_CLASS_SYNC)
			ok = np_intervals_add(&lanes[self->class[i]], kernels->start_ns[i],
			                      kernels->start_ns[i] + kernels->dur_ns[i]);
	for (size_t s = 0; ok && s < self->spans.n; s++)
		ok = np_intervals_add(&lanes[LANES - 1], self->spans.v[s].start,
		                      self->spans.v[s].end);
	for (int l = 0; l < LANES; l++)
		np_intervals_merge(&lanes[l]);
	return ok;
}

static void account(struct alone *out, const bool active[LANES], np_ns length)
{
	int n = 0, which = 0;
	for (int c = 0; c < NP_N_CLASSES; c++)
		if (active[c]) {
			n++;
			which = c;
		}
	if (n == 0)
		out->nothing += length;
	else if (n > 1)
		out->several += length;
	else
		out->class[which] += length;
}

static void sweep(const struct np_intervals lanes[LANES], struct alone *out)
{
	size_t next[LANES] = {0};
	bool active[LANES] = {false};
	np_ns at = 0;
	for (;;) {
		np_ns soon = INT64_MAX;
		for (int l = 0; l < LANES; l++) {
			if (next[l] >= lanes[l].n)
				continue;
			const struct np_interval *one = &lanes[l].v[next[l]];
			np_ns edge = active[l] ? one->end : one->start;
			soon = edge < soon ? edge : soon;
		}
		if (soon == INT64_MAX)
			return;
		if (active[LANES - 1])
			account(out, active, soon - at);
		at = soon;
		for (int l = 0; l < LANES; l++) {
			if (active[l] && lanes[l].v[next[l]].end == at) {
				active[l] = false;
				next[l]++;
			} else if (!active[l] && next[l] < lanes[l].n &&
			           lanes[l].v[next[l]].start == at) {
				active[l] = true;
			}
		}
	}
}

/* ── findings ── */

static void tell_share(struct np_analysis *self, const struct np_table *table, const char *what,
                       const char *advice, np_ns part, np_ns computing, struct np_finding *finding)
{
	np_finding_evidence(finding, np_kernel_source(self), np_time_columns(self), what,
	                    "%.3f of %.3f us of computing (table %s)", (double)part / 1000,
	                    (double)computing / 1000, table->id);
	np_finding_impact(finding, (double)part / 1000, np_share(self, part));
	np_finding_advice(finding, "%s", advice);
	np_finding_command(finding, "npuprof analyze %s --top 50",
	                   np_shell_quote(self->report, self->capture->path));
}

/* Healthy runs have these too: they tell where to look, not that something is wrong. */
static void tell_classes(struct np_analysis *self, const struct np_table *table,
                         const struct sum sums[NP_N_CLASSES])
{
	np_ns computing = 0;
	for (int c = 0; c < NP_N_CLASSES; c++)
		computing += c == NP_CLASS_COMM || c == NP_CLASS_SYNC ? 0 : sums[c].total;
	double matmul = share_of(sums[NP_CLASS_MATMUL].total, computing);
	double attention = share_of(sums[NP_CLASS_ATTENTION].total, computing);
	np_ns vector_ns = sums[NP_CLASS_VECTOR].total + sums[NP_CLASS_TRANSFER].total;
	double vector = share_of(vector_ns, computing);
	if (matmul > self->rules->matmul_share)
		tell_share(self, table, np_tr("class matmul/conv"),
		           "Look at the shapes (multiples of 16, large enough for all cores), at "
		           "formats that cost a TransData, and at quantised or fused variants.",
		           sums[NP_CLASS_MATMUL].total, computing,
		           np_report_finding(self->report, "MATMUL_DOMINATES", NP_INFO,
		                             "matmul and conv are %.1f %% of computing",
		                             matmul * 100));
	if (attention > self->rules->attention_share)
		tell_share(self, table, np_tr("class attention"),
		           "Use the fused attention operator with the layout of the model, and "
		           "sequence lengths without padding.",
		           sums[NP_CLASS_ATTENTION].total, computing,
		           np_report_finding(self->report, "ATTENTION_DOMINATES", NP_INFO,
		                             "attention is %.1f %% of computing", attention * 100));
	if (vector > self->rules->vector_share)
		tell_share(self, table, np_tr("classes vector and transfer/cast"),
		           "Vector work is bound by memory: fuse chains of small operators, and "
		           "keep one dtype and one format.",
		           vector_ns, computing,
		           np_report_finding(self->report, "VECTOR_HEAVY", NP_INFO,
		                             "vector and transfer work is %.1f %% of computing",
		                             vector * 100));
}

/* ── tables ── */

static void alone_row(struct np_analysis *self, struct np_table *table, const char *name, np_ns ns)
{
	np_cell_word(table, name);
	np_cell_na(table);
	np_cell_na(table);
	np_cell_na(table);
	np_cell_int(table, ns);
	np_cell_real(table, np_share(self, ns));
}

static void class_table(struct np_analysis *self, const struct alone *alone)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	struct sum sums[NP_N_CLASSES] = {{0}};
	np_ns all = 0;
	for (size_t i = 0; i < self->n_rows; i++) {
		count(&sums[self->class[self->rows[i]]], kernels->dur_ns[self->rows[i]]);
		all += kernels->dur_ns[self->rows[i]];
	}
	struct np_table *table =
		NP_REPORT_TABLE(self->report, "classes", "Kinds of work", class_columns);
	for (int c = 0; c < NP_N_CLASSES; c++) {
		if (!sums[c].n && !alone->class[c])
			continue;
		np_cell_word(table, np_class_name((enum np_class)c));
		np_cell_int(table, (int64_t)sums[c].n);
		np_cell_int(table, sums[c].total);
		np_cell_real(table, share_of(sums[c].total, all));
		np_cell_int(table, alone->class[c]);
		np_cell_real(table, np_share(self, alone->class[c]));
	}
	alone_row(self, table, NP_N("(several at once)"), alone->several);
	alone_row(self, table, NP_N("(nothing)"), alone->nothing);
	tell_classes(self, table, sums);
}

struct core_sum {
	uint32_t core;
	struct sum sum;
};

/* In order of first appearance; there are a handful. */
static struct sum *core_of(struct core_sum *cores, size_t *n, size_t max, uint32_t core)
{
	for (size_t i = 0; i < *n; i++)
		if (cores[i].core == core)
			return &cores[i].sum;
	if (*n == max) /* hostile input: the last one takes the rest */
		return &cores[max - 1].sum;
	cores[*n] = (struct core_sum){.core = core};
	return &cores[(*n)++].sum;
}

static void core_table(struct np_analysis *self)
{
	enum { MAX = 32 };
	const struct np_kernels *kernels = &self->profile->kernels;
	struct core_sum cores[MAX];
	size_t n = 0;
	np_ns all = 0;
	for (size_t i = 0; i < self->n_rows; i++) {
		uint32_t row = self->rows[i];
		count(core_of(cores, &n, MAX, kernels->core[row]), kernels->dur_ns[row]);
		all += kernels->dur_ns[row];
	}
	for (size_t i = 1; i < n; i++) /* longest first; stable */
		for (size_t k = i; k > 0 && cores[k].sum.total > cores[k - 1].sum.total; k--) {
			struct core_sum swap = cores[k];
			cores[k] = cores[k - 1];
			cores[k - 1] = swap;
		}
	struct np_table *table = NP_REPORT_TABLE(self->report, "cores", "Cores", core_columns);
	for (size_t i = 0; i < n; i++) {
		np_str name = np_text(self, cores[i].core);
		if (name.len)
			np_cell_text(table, name);
		else
			np_cell_na(table);
		np_cell_int(table, (int64_t)cores[i].sum.n);
		np_cell_int(table, cores[i].sum.total);
		np_cell_real(table, share_of(cores[i].sum.total, all));
		np_cell_real(table, (double)cores[i].sum.total / 1000 / (double)cores[i].sum.n);
		np_cell_int(table, cores[i].sum.min);
		np_cell_int(table, cores[i].sum.max);
	}
}

void np_analyze_classes(struct np_analysis *self)
{
	struct np_intervals lanes[LANES] = {{0}};
	struct alone alone = {{0}, 0, 0};
	if (make_lanes(self, lanes)) {
		sweep(lanes, &alone);
		class_table(self, &alone);
		core_table(self);
	} else {
		self->oom = true;
	}
	for (int l = 0; l < LANES; l++)
		np_intervals_release(&lanes[l]);
}
