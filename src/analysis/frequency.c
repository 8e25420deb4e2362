/*
 * Layer 4: the frequency of the AI cores while kernels run.
 *
 *   MHz      1800 ─────────┐        ┌──────
 *                     1200 └────────┘
 *   kernels  ████ ███ ██      ██ ██    ███ ██
 *                             ^^ ^^ time that counts: the drop in idle time does not
 *
 * A sample holds until the next one. Nominal is the largest value that was seen.
 */
#include <stdlib.h>

#include "analysis/frequency.h"
#include "analysis/group.h"

static const struct np_column columns[] = {
	{"mhz", "MHz", NP_COL_REAL, "sampled AI core frequency"},
	{"samples", "", NP_COL_INT, "how many"},
	{"time_ns", "us", NP_COL_DUR_NS, "how long it held, from the first to the last kernel"},
	{"busy_ns", "us", NP_COL_DUR_NS, "of that, while compute kernels ran"},
	{"busy_share", "", NP_COL_PERCENT, "of the busy time with a known frequency"},
	{"drop", "", NP_COL_PERCENT, "below the largest frequency seen"},
};

struct level {
	double mhz;
	int64_t samples;
	np_ns time, busy;
};

struct levels {
	NP_VEC(struct level) of;
	np_ns busy;
	double nominal;
};

static int by_time(const void *a, const void *b)
{
	const struct np_freq_sample *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->mhz > y->mhz) - (x->mhz < y->mhz);
}

static int by_mhz(const void *a, const void *b)
{
	const struct level *x = a, *y = b;
	return (x->mhz < y->mhz) - (x->mhz > y->mhz);
}

bool np_freq_samples_read(const struct np_analysis *self, struct np_freq_samples *out)
{
	const struct np_counters *counters = &self->profile->counters;
	uint32_t process = np_intern_find(&self->profile->strings, NP_STR("AI Core Freq"));
	bool ok = true;
	for (size_t i = 0; ok && process != NP_ID_NONE && i < counters->n; i++) {
		bool here = counters->device[i] == self->device ||
		            counters->device[i] == NP_NO_U32 || self->device == NP_NO_U32;
		if (counters->process[i] == process && here && counters->value[i] > 0)
			ok = np_vec_push(&out->of, (struct np_freq_sample){counters->ts_ns[i],
			                                                   counters->value[i]});
	}
	if (ok && out->of.n)
		qsort(out->of.v, out->of.n, sizeof *out->of.v, by_time);
	return ok;
}

/* The level of this frequency; there are few, so the last one is tried first. NULL: out
 * of memory. */
static struct level *level_of(struct levels *levels, struct np_map *numbers, double mhz)
{
	uint64_t key = (uint64_t)(mhz < 1e12 ? mhz * 1000 : 1e15);
	uint32_t number = np_map_get(numbers, key, UINT32_MAX);
	if (number == UINT32_MAX) {
		number = (uint32_t)levels->of.n;
		if (!np_vec_push(&levels->of, (struct level){.mhz = mhz}) ||
		    !np_map_put(numbers, key, number))
			return NULL;
	}
	return &levels->of.v[number];
}

/* Busy time within the spans. */
static bool busy_time(const struct np_analysis *self, struct np_intervals *out)
{
	struct np_intervals spans = {0};
	bool ok = true;
	for (size_t s = 0; ok && s < self->spans.n; s++)
		ok = np_intervals_add(&spans, self->spans.v[s].start, self->spans.v[s].end);
	np_intervals_merge(&spans);
	ok = ok && np_intervals_intersect(&self->compute, &spans, out);
	np_intervals_release(&spans);
	return ok;
}

static bool measure(const struct np_analysis *self, const struct np_freq_samples *samples,
                    struct levels *out)
{
	np_ns first = self->spans.v[0].start, last = self->spans.v[self->spans.n - 1].end;
	struct np_intervals busy = {0};
	struct np_cover cover = {0};
	struct np_map numbers;
	np_map_init(&numbers);
	bool ok = busy_time(self, &busy) && np_cover_init(&cover, &busy);
	for (size_t i = 0; ok && i < samples->of.n; i++) {
		struct level *level = level_of(out, &numbers, samples->of.v[i].mhz);
		ok = level != NULL;
		if (!ok)
			break;
		level->samples++;
		out->nominal = level->mhz > out->nominal ? level->mhz : out->nominal;
		np_ns start = samples->of.v[i].start;
		np_ns end = i + 1 < samples->of.n ? samples->of.v[i + 1].start : last;
		start = start > first ? start : first;
		end = end < last ? end : last;
		if (end <= start)
			continue;
		np_ns worked = np_cover_length(&cover, start, end);
		level->time += end - start;
		level->busy += worked;
		out->busy += worked;
	}
	if (ok && out->of.n)
		qsort(out->of.v, out->of.n, sizeof *out->of.v, by_mhz);
	np_cover_release(&cover);
	np_intervals_release(&busy);
	np_map_release(&numbers);
	return ok;
}

static double drop_of(const struct levels *levels, const struct level *level)
{
	return 1 - level->mhz / levels->nominal;
}

static void tell(struct np_analysis *self, const struct levels *levels)
{
	np_ns slow = 0;
	double lost = 0, lowest = levels->nominal;
	for (size_t i = 0; i < levels->of.n; i++) {
		const struct level *level = &levels->of.v[i];
		double drop = drop_of(levels, level);
		if (drop <= self->rules->freq_drop || level->busy == 0)
			continue;
		slow += level->busy;
		lost += (double)level->busy * drop;
		lowest = level->mhz;
	}
	if (slow == 0 || (double)slow < self->rules->freq_busy * (double)levels->busy)
		return;
	double share = (double)slow / (double)levels->busy;
	struct np_finding *finding = np_report_finding(
		self->report, "FREQ_DROP", NP_WARNING,
		"the AI cores ran below %.0f MHz, down to %.0f, in %.1f %% of the computing time",
		levels->nominal, lowest, share * 100);
	np_finding_detail(finding, "kernels that are bound by computing take longer in proportion: "
	                           "heat, a power limit, or a setting of the machine slows it");
	np_finding_evidence(finding, np_kernel_source(self), "AI Core Freq", NULL,
	                    "%.1f us of kernels at less than %.0f %% of %.0f MHz",
	                    (double)slow / 1e3, (1 - self->rules->freq_drop) * 100,
	                    levels->nominal);
	np_finding_impact(finding, lost / 1e3,
	                  self->total_ns > 0 ? lost / (double)self->total_ns : 0);
	np_finding_advice(finding,
	                  "compare with npu-smi info (power, temperature) of this card and "
	                  "of its neighbours; cooling and power limits come before code");
}

void np_analyze_frequency(struct np_analysis *self)
{
	struct np_freq_samples samples = {0};
	struct levels levels = {0};
	bool ok = np_freq_samples_read(self, &samples) && measure(self, &samples, &levels);
	if (ok && levels.of.n) {
		struct np_table *table = NP_REPORT_TABLE(
			self->report, "frequency", "AI core frequency while it worked", columns);
		for (size_t i = 0; i < levels.of.n && i < np_top(self); i++) {
			const struct level *level = &levels.of.v[i];
			np_cell_real(table, level->mhz);
			np_cell_int(table, level->samples);
			np_cell_int(table, level->time);
			np_cell_int(table, level->busy);
			if (levels.busy > 0)
				np_cell_real(table, (double)level->busy / (double)levels.busy);
			else
				np_cell_na(table);
			np_cell_real(table, drop_of(&levels, level));
		}
		tell(self, &levels);
	} else if (ok) {
		np_report_note(self->report,
		               "AI core frequency: not collected; it is in trace_view.json, or in "
		               "AICORE_FREQ of a database (profiler_level Level1 or Level2)");
	}
	np_vec_release(&samples.of);
	np_vec_release(&levels.of);
	self->oom = self->oom || !ok;
}
