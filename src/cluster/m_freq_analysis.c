/*
 * freq_analysis (cluster_and_advisor.md §2.16): ranks whose AI cores did not keep their
 * clock. The official tool knows chips of 1800 MHz that idle at 800 only; here the nominal
 * clock is the one recorded of the chip, else the one seen most often.
 */
#include <math.h>
#include <stdlib.h>

#include "cluster/grouping.h"
#include "cluster/internal.h"

static const double OFFICIAL_NOMINAL = 1800, OFFICIAL_IDLE = 800;
/* The clocks to which an idle core falls (800 of 1650 … 1850 MHz) are below this share of
 * the nominal one, those to which heat or power push it (1500, 1200) above. */
static const double MAX_IDLE_SHARE = 0.5;

/* ── the part: each clock that was seen, ascending ── */

#define CLOCKS_COLUMNS(X)       \
	X(double, mhz, "clock") \
	X(uint64_t, samples, "how often")

NP_TABLE_STRUCT(np_digest_clocks, CLOCKS_COLUMNS);
#define NP_TAG np_digest_clocks
NP_TABLE_DESC(static, np_digest_clocks, "clocks", CLOCKS_COLUMNS)
#undef NP_TAG

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	const struct np_counters *counters = &job->profile->counters;
	struct np_digest_clocks *clocks = np_digest_table(job->digest, &np_digest_clocks_desc);
	double *values = np_realloc(NULL, counters->n + 1, sizeof *values);
	size_t n = 0, r = SIZE_MAX;
	bool ok = values != NULL;
	for (size_t i = 0; ok && i < counters->n; i++)
		if (isfinite(counters->value[i]) &&
		    np_str_is(np_intern_get(&job->profile->strings, counters->process[i]),
		              "AI Core Freq"))
			values[n++] = counters->value[i];
	if (n > 1)
		qsort(values, n, sizeof *values, by_value);
	for (size_t i = 0; ok && i < n; i++) {
		if (i > 0 && values[i] == values[i - 1]) {
			clocks->samples[r]++;
			continue;
		}
		r = np_rows_add(clocks, &np_digest_clocks_desc);
		ok = r != SIZE_MAX;
		if (ok) {
			clocks->mhz[r] = values[i];
			clocks->samples[r] = 1;
		}
	}
	np_free(values);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_clocks_desc, NULL};

static const struct np_part part = {
	.name = "clocks",
	.revision = 1,
	.load = NP_COUNTERS,
	.tables = tables,
	.map = map,
};

/* ── the reduce ── */

enum verdict { NO_SAMPLES, NOMINAL, IDLE, ABNORMAL };

struct clocks {
	struct np_cluster *cluster;
	double seen_most; /* of all samples; NaN without any */
	double idle;      /* the lowest one seen that is low enough; NaN: none */
	enum verdict *of; /* per rank */
	size_t count[ABNORMAL + 1];
};

static const struct np_digest_clocks *clocks_of(const struct np_cluster *cluster, size_t rank)
{
	return NP_DIGEST_ROWS(&cluster->ranks.v[rank], np_digest_clocks);
}

struct vote {
	double mhz;
	uint64_t samples;
};

static int by_clock(const void *a, const void *b)
{
	const struct vote *x = a, *y = b;
	return (x->mhz > y->mhz) - (x->mhz < y->mhz);
}

/* The clock with the most samples, the highest of several. false: out of memory. */
static bool find_mode(const struct np_cluster *cluster, double *out)
{
	size_t n = 0, most = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		n += clocks_of(cluster, r)->n;
	struct vote *votes = np_realloc(NULL, n + 1, sizeof *votes);
	*out = NAN;
	if (!votes)
		return false;
	n = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		for (size_t i = 0; i < clocks_of(cluster, r)->n; i++)
			votes[n++] = (struct vote){clocks_of(cluster, r)->mhz[i],
			                           clocks_of(cluster, r)->samples[i]};
	if (n > 1)
		qsort(votes, n, sizeof *votes, by_clock);
	for (size_t i = 0, sum = 0; i < n; i++) {
		sum = i > 0 && votes[i].mhz == votes[i - 1].mhz ? sum + votes[i].samples
		                                                : votes[i].samples;
		if (sum >= most) {
			most = sum;
			*out = votes[i].mhz;
		}
	}
	np_free(votes);
	return true;
}

static double nominal_of(const struct clocks *self, size_t rank)
{
	const struct np_chip *chip = &self->cluster->ranks.v[rank].capture->chip;
	if (self->cluster->options->compat)
		return OFFICIAL_NOMINAL;
	return chip->recorded && chip->aic_mhz > 0 ? chip->aic_mhz : self->seen_most;
}

static void find_idle(struct clocks *self)
{
	self->idle = NAN;
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_digest_clocks *clocks = clocks_of(self->cluster, r);
		/* ascending: the first is the lowest */
		if (clocks->n > 0 && clocks->mhz[0] <= MAX_IDLE_SHARE * nominal_of(self, r) &&
		    !(self->idle <= clocks->mhz[0]))
			self->idle = clocks->mhz[0];
	}
	if (self->cluster->options->compat)
		self->idle = OFFICIAL_IDLE;
}

static enum verdict judge(const struct clocks *self, size_t rank)
{
	const struct np_digest_clocks *clocks = clocks_of(self->cluster, rank);
	double nominal = nominal_of(self, rank);
	bool idle = false, is_nominal = false;
	if (clocks->n == 0)
		return NO_SAMPLES;
	for (size_t i = 0; i < clocks->n; i++) {
		idle |= clocks->mhz[i] == self->idle;
		is_nominal |= clocks->mhz[i] == nominal;
	}
	if (clocks->n != (size_t)idle + (size_t)is_nominal)
		return ABNORMAL;
	if (self->cluster->options->compat && !is_nominal)
		return ABNORMAL;
	return idle ? IDLE : NOMINAL;
}

static const struct np_column columns[] = {
	{"rankId", "", NP_COL_INT, "rank"},
	{"aicoreFrequency", "", NP_COL_TEXT, "clocks of the AI cores that were seen, MHz"},
};

static void clocks_text(const struct np_digest_clocks *clocks, struct np_buf *out)
{
	np_buf_add_char(out, '[');
	for (size_t i = 0; i < clocks->n; i++)
		np_buf_printf(out, "%s%.15g", i > 0 ? ", " : "", clocks->mhz[i]);
	np_buf_add_char(out, ']');
}

static void table_of(const struct clocks *self, enum verdict verdict, const char *id,
                     const char *title)
{
	if (self->count[verdict] == 0)
		return;
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, id, title, columns);
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		struct np_buf text = {0};
		if (self->of[r] != verdict)
			continue;
		clocks_text(clocks_of(self->cluster, r), &text);
		np_cell_int(table, self->cluster->ranks.v[r].rank);
		np_cell_text(table, np_buf_str(&text));
		np_buf_release(&text);
	}
}

static void list_ranks(const struct clocks *self, enum verdict verdict, struct np_finding *finding)
{
	enum { SHOWN = 8 };
	size_t n = 0;
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		struct np_buf text = {0};
		if (self->of[r] != verdict || n++ >= SHOWN)
			continue;
		clocks_text(clocks_of(self->cluster, r), &text);
		np_finding_evidence(finding, NULL, "aicoreFrequency", NULL,
		                    "rank %lld: %.*s MHz, nominal %.15g MHz",
		                    (long long)self->cluster->ranks.v[r].rank,
		                    NP_FMT(np_buf_str(&text)), nominal_of(self, r));
		np_buf_release(&text);
	}
}

static void tell(const struct clocks *self)
{
	struct np_report *report = self->cluster->report;
	struct np_finding *finding;
	if (self->count[ABNORMAL] > 0) {
		finding = np_report_finding(report, "FREQ_ABNORMAL", NP_WARNING,
		                            "%zu ranks did not keep their clock",
		                            self->count[ABNORMAL]);
		list_ranks(self, ABNORMAL, finding);
		np_finding_advice(finding, "Look for heat, power limits or a clock set by hand "
		                           "(npu-smi) on these devices.");
	}
	if (self->count[IDLE] > 0) {
		finding = np_report_finding(
			report, "FREQ_IDLE", NP_INFO,
			"the AI cores of %zu ranks fell to their idle clock between kernels",
			self->count[IDLE]);
		list_ranks(self, IDLE, finding);
	}
	if (self->count[ABNORMAL] == 0 && self->count[IDLE] == 0)
		(void)np_report_finding(report, "FREQ_NOMINAL", NP_INFO,
		                        "all samples of all %zu ranks have the nominal clock",
		                        self->count[NOMINAL]);
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct clocks clocks = {.cluster = cluster};
	size_t n = cluster->ranks.n;
	bool *has = np_calloc(n + 1, sizeof *has);
	clocks.of = np_calloc(n + 1, sizeof *clocks.of);
	bool ok = has && clocks.of && find_mode(cluster, &clocks.seen_most);
	if (ok)
		find_idle(&clocks);
	for (size_t r = 0; ok && r < n; r++) {
		clocks.of[r] = judge(&clocks, r);
		clocks.count[clocks.of[r]]++;
		has[r] = clocks.of[r] != NO_SAMPLES || !cluster->ranks.v[r].digest;
	}
	if (ok && clocks.count[NO_SAMPLES] == n) {
		np_cluster_nothing(cluster, self, "no rank has samples of the AI cores' clock");
	} else if (ok) {
		np_cluster_lacking(cluster, self, has,
		                   "AI Core Freq (trace_view.json) or AICORE_FREQ");
		table_of(&clocks, IDLE, "FreeFrequencyRanks", "Ranks that fell to the idle clock");
		table_of(&clocks, ABNORMAL, "AbnormalFrequencyRanks",
		         "Ranks that did not keep their clock");
		tell(&clocks);
	}
	np_free(has);
	np_free(clocks.of);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&part, NULL};

static const struct np_recipe_file files[] = {
	{.table = "FreeFrequencyRanks", .csv = "free_frequency_ranks.csv", .n_index = 1},
	{.table = "AbnormalFrequencyRanks", .csv = "abnormal_frequency_ranks.csv", .n_index = 1},
	{.table = NULL},
};

const struct np_recipe np_recipe_freq_analysis = {
	.name = "freq_analysis",
	.dir = "FreqAnalysis",
	.summary = NP_N("ranks whose AI cores did not keep their clock"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
