/*
 * Layer 1: the stages of the work (prefill and decode, DiT and VAE, …).
 *
 * Who names them, first that answers: --stage NAME=PATTERN, ranges of the user
 * (mstx), presets by the names of modules and ranges. A kernel's own name and
 * type can match a pattern of --stage; else the innermost range on the host
 * around its launch decides. Ranges are flattened once:
 *
 *   outer  ├──── denoise ─────────────┤
 *   inner       ├─ vae ─┤
 *   flat   ├─d──┤──v────┤──────d──────┤     launch time ─▶ binary search
 *
 * The thread is not compared: operators are launched by a queue's thread while
 * the range is open on the main one. No preset looks at kernel names: a Conv2D
 * makes no VAE.
 */
#include <fnmatch.h>
#include <stdlib.h>

#include "analysis/evidence.h"

static const struct np_column columns[] = {
	{"stage", "", NP_COL_TEXT, "as named by --stage, a range or a preset"},
	{"from", "", NP_COL_TEXT, "what named it: option, range or preset"},
	{"kernels", "", NP_COL_INT, "kernels and collectives of it"},
	{"total_ns", "us", NP_COL_DUR_NS, "sum of their durations; the rows sum to all kernels"},
	{"share", "", NP_COL_PERCENT, "total / sum of all durations"},
	{"comm_ns", "us", NP_COL_DUR_NS, "of total, communication"},
	{"covered_ns", "us", NP_COL_DUR_NS, "union of its kernels on the device"},
};

enum { MAX_STAGES = 24, NO_STAGE = 255, UNKNOWN = 254 };

/* name, patterns on lower-case names, divided by |; the first that fits */
static const struct preset {
	const char *name;
	const char *const *words;
} presets[] = {
	{"text encoder", (const char *const[]){"textencoder", "text_encoder", "t5encoder", "umt5",
                                               "cliptext", NULL}},
	{"VAE", (const char *const[]){"vae", "autoencoder", NULL}},
	{"DiT", (const char *const[]){"dit_", "ditblock", "transformer2d", "transformer3d",
                                      "denois", "unet", NULL}},
	{"prefill", (const char *const[]){"prefill", NULL}},
	{"decode", (const char *const[]){"decode", NULL}},
};

struct stage {
	np_str name;
	const char *from;
	size_t kernels;
	np_ns total, comm;
	struct np_intervals busy;
};

struct range {
	np_ns start, end;
	uint8_t stage;
};

struct stages {
	struct np_analysis *analysis;
	struct stage v[MAX_STAGES];
	size_t n;
	bool by_kernel;   /* patterns of --stage: kernels may match themselves */
	uint8_t *by_name; /* string id → stage of a host range, or UNKNOWN: not looked at */
	uint8_t *by_kernel_name; /* the same for kernels */
	NP_VEC(struct range) ranges, flat;
};

/* ── names ── */

static bool fits(const char *pattern, np_str text)
{
	char name[512]; /* fnmatch wants a NUL; longer names match by their beginning */
	(void)snprintf(name, sizeof name, "%.*s", NP_FMT(text));
	return fnmatch(pattern, name, 0) == 0;
}

static uint8_t add_stage(struct stages *self, np_str name, const char *from)
{
	for (size_t i = 0; i < self->n; i++)
		if (np_str_eq(self->v[i].name, name))
			return (uint8_t)i;
	if (self->n == MAX_STAGES)
		return NO_STAGE;
	self->v[self->n] = (struct stage){.name = name, .from = from};
	return (uint8_t)self->n++;
}

static uint8_t by_options(struct stages *self, np_str text)
{
	const struct np_analyze_options *options = self->analysis->options;
	for (size_t i = 0; i < options->n_stages; i++)
		if (fits(options->stages[i].pattern, text))
			return add_stage(self, np_str_of(options->stages[i].name), "option");
	return NO_STAGE;
}

/* "decode" but not "decoder": a decoder is a part of every language model. */
static bool has_word(np_str text, const char *word)
{
	np_str part = np_str_of(word);
	for (size_t i = 0; i + part.len <= text.len; i++)
		if (np_str_ieq(np_str_sub(text, i, part.len), part) &&
		    (i + part.len == text.len || (text.ptr[i + part.len] | 32) != 'r'))
			return true;
	return false;
}

static uint8_t by_preset(struct stages *self, np_str text)
{
	for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
		for (const char *const *word = presets[i].words; *word; word++)
			if (has_word(text, *word))
				return add_stage(self, np_str_of(presets[i].name), "preset");
	return NO_STAGE;
}

/* Ranges that tools write for themselves are no stages: JSON of mstx on
 * collectives and memory pools, "id-operator" marks of module statistics. */
static bool is_users_range(np_str text)
{
	if (text.len == 0 || text.ptr[0] == '{' || text.ptr[0] == '[' ||
	    np_str_istarts(text, NP_STR("comm:")))
		return false;
	size_t digits = 0;
	while (digits < text.len && text.ptr[digits] >= '0' && text.ptr[digits] <= '9')
		digits++;
	return digits < 6;
}

/* ── host ranges ── */

enum source { OPTIONS, MSTX, PRESETS };

static uint8_t stage_of_range(struct stages *self, enum source source, uint8_t layer, np_str text)
{
	bool module = layer != NP_HOST_PYTHON || np_str_starts(text, NP_STR("nn.Module: "));
	switch (source) {
	case OPTIONS:
		return by_options(self, text);
	case MSTX:
		return layer == NP_HOST_MSTX && is_users_range(text)
		               ? add_stage(self, text, "range")
		               : NO_STAGE;
	case PRESETS:
		return module ? by_preset(self, text) : NO_STAGE;
	}
	return NO_STAGE;
}

/* Layers in which people's names stand; CANN's own calls are none. */
static bool is_range_layer(uint8_t layer)
{
	return layer == NP_HOST_OP || layer == NP_HOST_PYTHON || layer == NP_HOST_MSTX;
}

static bool find_ranges(struct stages *self, enum source source)
{
	const struct np_analysis *a = self->analysis;
	const struct np_host_ops *ops = &a->profile->host_ops;
	size_t n_names = a->profile->strings.strings.n;
	for (size_t i = 0; i < n_names; i++)
		self->by_name[i] = UNKNOWN;
	for (size_t i = 0; i < ops->n; i++) {
		uint32_t name = ops->name[i];
		if (!is_range_layer(ops->layer[i]) || ops->dur_ns[i] <= 0 || name >= n_names)
			continue;
		if (source == MSTX && ops->layer[i] != NP_HOST_MSTX)
			continue;
		if (self->by_name[name] == UNKNOWN)
			self->by_name[name] =
				stage_of_range(self, source, ops->layer[i], np_text(a, name));
		if (self->by_name[name] == NO_STAGE)
			continue;
		struct range range = {ops->start_ns[i], ops->start_ns[i] + ops->dur_ns[i],
		                      self->by_name[name]};
		if (!np_vec_push(&self->ranges, range))
			return false;
	}
	return true;
}

static bool add_flat(struct stages *self, np_ns start, np_ns end, uint8_t stage)
{
	return end <= start || np_vec_push(&self->flat, (struct range){start, end, stage});
}

/* The ranges are in order of start, longer first; the last that began wins. */
static bool flatten(struct stages *self)
{
	size_t n = self->ranges.n, depth = 0;
	struct range *open = np_realloc(NULL, n, sizeof *open);
	np_ns at = 0;
	bool ok = open != NULL;
	for (size_t i = 0; ok && i <= n; i++) {
		np_ns until = i < n ? self->ranges.v[i].start : NP_TIME_MAX;
		while (ok && depth > 0) {
			struct range *top = &open[depth - 1];
			np_ns end = top->end < until ? top->end : until;
			ok = add_flat(self, at, end, top->stage);
			at = end > at ? end : at;
			if (top->end > until)
				break;
			depth--;
		}
		at = until > at ? until : at;
		if (i < n)
			open[depth++] = self->ranges.v[i];
	}
	np_free(open);
	return ok;
}

static uint8_t stage_at(const struct stages *self, np_ns time)
{
	size_t low = 0, high = self->flat.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (self->flat.v[middle].end <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low < self->flat.n && self->flat.v[low].start <= time ? self->flat.v[low].stage
	                                                             : NO_STAGE;
}

/* ── kernels ── */

static uint8_t stage_of_kernel(struct stages *self, uint32_t row)
{
	const struct np_analysis *a = self->analysis;
	const struct np_kernels *kernels = &a->profile->kernels;
	uint32_t name = kernels->name[row];
	if (self->by_kernel && name < a->profile->strings.strings.n) {
		if (self->by_kernel_name[name] == UNKNOWN) {
			uint8_t stage = by_options(self, np_text(a, name));
			if (stage == NO_STAGE)
				stage = by_options(self, np_text(a, kernels->type[row]));
			self->by_kernel_name[name] = stage;
		}
		if (self->by_kernel_name[name] != NO_STAGE)
			return self->by_kernel_name[name];
	}
	if (!a->launch || a->launch[row] == NP_NO_U32)
		return NO_STAGE;
	return stage_at(self, a->profile->host_ops.start_ns[a->launch[row]]);
}

static bool assign(struct stages *self, struct stage *rest)
{
	const struct np_analysis *a = self->analysis;
	const struct np_kernels *kernels = &a->profile->kernels;
	bool ok = true;
	for (size_t i = 0; ok && i < a->n_rows; i++) {
		uint32_t row = a->rows[i];
		uint8_t which = stage_of_kernel(self, row);
		struct stage *stage = which == NO_STAGE ? rest : &self->v[which];
		stage->kernels++;
		stage->total += kernels->dur_ns[row];
		if (a->class[row] == NP_CLASS_COMM)
			stage->comm += kernels->dur_ns[row];
		ok = np_intervals_add(&stage->busy, kernels->start_ns[row],
		                      kernels->start_ns[row] + kernels->dur_ns[row]);
	}
	return ok;
}

/* ── report ── */

static void row(struct np_table *table, struct stage *stage, np_ns all)
{
	np_cell_text(table, stage->name);
	np_cell_cstr(table, stage->from);
	np_cell_int(table, (int64_t)stage->kernels);
	np_cell_int(table, stage->total);
	np_cell_real(table, all > 0 ? (double)stage->total / (double)all : 0);
	np_cell_int(table, stage->comm);
	np_intervals_merge(&stage->busy);
	np_cell_int(table, np_intervals_length(&stage->busy));
}

static void tell(struct np_analysis *self, const struct stage *stage, np_ns all)
{
	double share = all > 0 ? (double)stage->total / (double)all : 0;
	if (share < self->rules->stage_bottleneck)
		return;
	struct np_finding *finding = np_report_finding(self->report, "STAGE_DOMINATES", NP_INFO,
	                                               "stage %.*s is %.1f %% of the kernel time",
	                                               NP_FMT(stage->name), share * 100);
	np_finding_evidence(finding, np_kernel_source(self), np_time_columns(self),
	                    "the kernels of the stage (table stages)", "%zu kernels, %.3f us",
	                    stage->kernels, (double)stage->total / 1000);
	np_ns covered = np_intervals_length(&stage->busy);
	np_finding_impact(finding, (double)covered / 1000, np_share(self, covered));
	np_finding_advice(finding, "Work on this stage first: a gain elsewhere hardly shows.");
}

static int by_total(const void *a, const void *b)
{
	const struct stage *x = a, *y = b;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return np_str_cmp(x->name, y->name);
}

static void show(struct stages *self, struct stage *rest)
{
	struct np_analysis *a = self->analysis;
	np_ns all = rest->total;
	size_t kernels = 0;
	for (size_t i = 0; i < self->n; i++) {
		all += self->v[i].total;
		kernels += self->v[i].kernels;
	}
	if (kernels == 0) {
		if (self->ranges.n && !a->launch)
			np_report_note(a->report,
			               "stages: there are ranges on the host, but nothing connects "
			               "kernels with their launches");
		else
			np_report_note(
				a->report,
				"no stages: name them by --stage NAME=PATTERN, by mstx ranges "
				"(torch_npu.npu.mstx.range_start) or with_modules=True");
		return;
	}
	qsort(self->v, self->n, sizeof *self->v, by_total);
	struct np_table *table = NP_REPORT_TABLE(a->report, "stages", "Stages", columns);
	for (size_t i = 0; i < self->n; i++)
		if (self->v[i].kernels)
			row(table, &self->v[i], all);
	if (rest->kernels)
		row(table, rest, all);
	for (size_t i = 0; i < self->n; i++)
		tell(a, &self->v[i], all);
}

static bool find(struct stages *self)
{
	size_t n = self->analysis->profile->strings.strings.n;
	self->by_name = np_realloc(NULL, n, 1);
	self->by_kernel_name = np_realloc(NULL, n, 1);
	if (!self->by_name || !self->by_kernel_name)
		return false;
	for (size_t i = 0; i < n; i++)
		self->by_kernel_name[i] = UNKNOWN;
	self->by_kernel = self->analysis->options->n_stages > 0;
	bool ok = true;
	if (self->by_kernel)
		ok = find_ranges(self, OPTIONS);
	else if (!(ok = find_ranges(self, MSTX)) || self->ranges.n == 0)
		ok = ok && find_ranges(self, PRESETS);
	return ok && (self->ranges.n == 0 || flatten(self));
}

void np_analyze_stages(struct np_analysis *self)
{
	struct stages *stages = np_calloc(1, sizeof *stages);
	struct stage rest = {.name = NP_STR("(no stage)")};
	if (!stages) {
		self->oom = true;
		return;
	}
	stages->analysis = self;
	if (find(stages) && assign(stages, &rest))
		show(stages, &rest);
	else
		self->oom = true;
	for (size_t i = 0; i < stages->n; i++)
		np_intervals_release(&stages->v[i].busy);
	np_intervals_release(&rest.busy);
	np_vec_release(&stages->ranges);
	np_vec_release(&stages->flat);
	np_free(stages->by_name);
	np_free(stages->by_kernel_name);
	np_free(stages);
}
