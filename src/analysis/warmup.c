/*
 * Layer 0: is the window steady, or does it hold warm-up, a compilation, a part
 * of a step? The rules are those of requirements §2.4 layer 0 and its method
 * rules; what they need and the capture doesn't have is told in a note.
 *
 *   wall of a step = host start (where known, else first kernel) … last kernel
 */
#include <stdlib.h>

#include "analysis/evidence.h"
#include "report/lang.h"

/* A compilation seen by name. */
struct compile {
	size_t count;
	bool host;
	uint32_t row; /* the longest one: in host_ops or kernels */
	np_ns dur_ns, start_ns;
};

static np_ns span_length(const struct np_span *span)
{
	return span->end - span->start;
}

static np_ns span_wall(const struct np_span *span)
{
	return span_length(span) + (span->preparing > 0 ? span->preparing : 0);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

enum value { LENGTH, KERNELS };

/* Median over the spans, the lower one of two; -1: out of memory, which is noted. */
static int64_t median(struct np_analysis *self, enum value what)
{
	size_t n = self->spans.n;
	int64_t *values = np_realloc(NULL, n, sizeof *values);
	if (!values) {
		self->oom = true;
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		const struct np_span *span = &self->spans.v[i];
		values[i] = what == LENGTH ? span_length(span) : (int64_t)span->kernels;
	}
	qsort(values, n, sizeof *values, by_value);
	int64_t middle = values[(n - 1) / 2];
	np_free(values);
	return middle;
}

/* ── compilations by name ── */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "jit" as a word of its own: not in "jitter". */
static bool says_jit(np_str text)
{
	for (size_t i = 0; i + 3 <= text.len; i++) {
		if (!np_str_ieq(np_str_sub(text, i, 3), NP_STR("jit")))
			continue;
		char before = i > 0 ? text.ptr[i - 1] : ' ';
		char after = i + 3 < text.len ? text.ptr[i + 3] : ' ';
		if (!is_letter(before) && !(after >= 'a' && after <= 'z'))
			return true;
	}
	return false;
}

/* What has been compiled ("Torch-Compiled Region", "CompiledFunction") is not compiling. */
static bool says_compile(np_str text)
{
	return (np_str_icontains(text, NP_STR("compile")) &&
	        !np_str_icontains(text, NP_STR("compiled"))) ||
	       says_jit(text);
}

/* says_compile() of a string id, remembered in `known`: 0 unknown, 1 no, 2 yes. */
static bool id_says_compile(const struct np_analysis *self, uint8_t *known, uint32_t id)
{
	if (id >= self->profile->strings.strings.n)
		return false;
	if (known[id] == 0)
		known[id] = says_compile(np_text(self, id)) ? 2 : 1;
	return known[id] == 2;
}

static void saw(struct compile *out, bool host, size_t row, np_ns start_ns, np_ns dur_ns)
{
	out->count++;
	if (out->count > 1 && dur_ns <= out->dur_ns)
		return;
	out->host = host;
	out->row = (uint32_t)row;
	out->start_ns = start_ns;
	out->dur_ns = dur_ns;
}

static np_ns window_start(const struct np_analysis *self)
{
	const struct np_span *first = &self->spans.v[0];
	return first->host_start != NP_NO_I64 && first->host_start < first->start
	               ? first->host_start
	               : first->start;
}

/*
 * Kernels named so, and calls on the host named so that take long: the calls of
 * cached operators (aclopCompileAndExecute) carry the name too. Python frames
 * are left out, as torch/_jit_internal.py is in every stack.
 */
static bool find_compiles(const struct np_analysis *self, struct compile *out)
{
	const struct np_host_ops *ops = &self->profile->host_ops;
	const struct np_kernels *kernels = &self->profile->kernels;
	np_ns from = window_start(self), to = self->spans.v[self->spans.n - 1].end;
	np_ns least = (np_ns)(self->rules->compile_min_us * 1000);
	uint8_t *known = np_calloc(self->profile->strings.strings.n, 1);
	if (!known)
		return false;
	for (size_t i = 0; i < self->n_rows; i++) {
		uint32_t row = self->rows[i];
		if (id_says_compile(self, known, kernels->name[row]))
			saw(out, false, row, kernels->start_ns[row], kernels->dur_ns[row]);
	}
	for (size_t i = 0; i < ops->n; i++)
		if (ops->dur_ns[i] >= least && ops->start_ns[i] >= from && ops->start_ns[i] < to &&
		    ops->layer[i] != NP_HOST_PYTHON && id_says_compile(self, known, ops->name[i]))
			saw(out, true, i, ops->start_ns[i], ops->dur_ns[i]);
	np_free(known);
	return true;
}

static const char *host_source(const struct np_analysis *self)
{
	const struct np_file *file = np_capture_file(self->capture, NP_ROLE_TRACE);
	return file ? file->path : np_kernel_source(self);
}

static void show_compile(const struct np_analysis *self, struct np_finding *finding,
                         const struct compile *seen)
{
	const struct np_profile *profile = self->profile;
	uint32_t name =
		seen->host ? profile->host_ops.name[seen->row] : profile->kernels.name[seen->row];
	char rows[64];
	(void)snprintf(rows, sizeof rows, "start = %lld ns", (long long)seen->start_ns);
	np_finding_evidence(finding, seen->host ? host_source(self) : np_kernel_source(self),
	                    seen->host ? "name" : np_name_column(self), rows,
	                    "%zu %s named compile or jit, the longest is %.*s with %.3f us",
	                    seen->count, np_tr(seen->host ? "host calls or kernels" : "kernels"),
	                    NP_FMT(np_text(self, name)), (double)seen->dur_ns / 1000);
}

/* ── warm-up ── */

static const char *const warmup_advice =
	NP_N("Leave the first steps out: schedule(skip_first=10, warmup=2, …), or run the model a "
             "few times before profiling. Until then look at one later step with --step.");

/* How much longer the first step took than the mean of the others, by wall. */
static double first_ratio(const struct np_analysis *self, double *rest)
{
	*rest = 0;
	for (size_t i = 1; i < self->spans.n; i++)
		*rest += (double)span_wall(&self->spans.v[i]);
	*rest /= (double)(self->spans.n - 1);
	return *rest > 0 ? (double)span_wall(&self->spans.v[0]) / *rest : 0;
}

/* true: told */
static bool tell_warmup(struct np_analysis *self, const struct compile *seen)
{
	double rest = 0, ratio = first_ratio(self, &rest);
	const struct np_span *first = &self->spans.v[0];
	bool long_first = ratio > self->rules->warmup_ratio;
	bool compiles = seen->count > 0 && seen->start_ns < first->end;
	if (!long_first && !compiles)
		return false;
	double more_us = ((double)span_wall(first) - rest) / 1000;
	struct np_finding *finding =
		np_report_finding(self->report, "WARMUP_NOT_STRIPPED", NP_ERROR,
	                          "the first step (%lld) takes %.2f times the mean of the others%s",
	                          (long long)first->id, ratio,
	                          compiles ? np_tr(", and operators are compiled in it") : "");
	np_finding_detail(finding, "Its figures are those of warming up; means over all steps, and "
	                           "comparisons with them, are wrong.");
	char rows[64];
	(void)snprintf(rows, sizeof rows, "step %lld", (long long)first->id);
	np_finding_evidence(finding, np_kernel_source(self), np_time_columns(self), rows,
	                    "%.3f us, the other %zu steps %.3f us on average; limit %.2f times",
	                    (double)span_wall(first) / 1000, self->spans.n - 1, rest / 1000,
	                    self->rules->warmup_ratio);
	if (compiles)
		show_compile(self, finding, seen);
	if (more_us > 0)
		np_finding_impact(finding, more_us, np_share(self, (np_ns)(more_us * 1000)));
	np_finding_advice(finding, "%s", warmup_advice);
	np_finding_command(finding, "npuprof analyze %s --step %lld",
	                   np_shell_quote(self->report, self->capture->path),
	                   (long long)self->spans.v[1].id);
	return true;
}

/* ── recompilation ── */

struct gap {
	np_ns length, start;
	size_t span;
};

/* The longest pause of each span's wall, and whether it makes nearly all of it. */
static bool find_recompile(const struct np_analysis *self, size_t first_span, struct gap *out)
{
	struct np_intervals busy = {0};
	bool ok = np_intervals_union(&self->compute, &self->comm, &busy);
	size_t k = 0;
	for (size_t s = first_span; ok && s < self->spans.n; s++) {
		const struct np_span *span = &self->spans.v[s];
		struct gap worst = {span->preparing > 0 ? span->preparing : 0, span->host_start, s};
		np_ns at = span->start;
		while (k < busy.n && busy.v[k].end <= at)
			k++;
		for (size_t i = k; i < busy.n && busy.v[i].start < span->end; i++) {
			if (busy.v[i].start - at > worst.length)
				worst = (struct gap){busy.v[i].start - at, at, s};
			at = busy.v[i].end;
		}
		double wall = (double)span_wall(span);
		double work = (double)(span->computing + span->comm_not_overlapped);
		if (wall > self->rules->recompile_ratio * work &&
		    (double)worst.length > self->rules->recompile_gap * wall &&
		    (double)worst.length >= self->rules->compile_min_us * 1000 &&
		    worst.length > out->length)
			*out = worst;
	}
	np_intervals_release(&busy);
	return ok;
}

static void tell_recompile(struct np_analysis *self, const struct gap *gap,
                           const struct compile *seen)
{
	struct np_finding *finding = NULL;
	if (gap->length > 0)
		finding = np_report_finding(
			self->report, "RECOMPILE_IN_WINDOW", NP_ERROR,
			"one pause of %.3f us is most of a step: it looks like a recompilation",
			(double)gap->length / 1000);
	else
		finding = np_report_finding(self->report, "RECOMPILE_IN_WINDOW", NP_ERROR,
		                            "operators are compiled within the window");
	np_finding_detail(finding, "Compiling happens once, or when shapes change; a step that "
	                           "holds it tells nothing about the others.");
	np_ns cost = gap->length;
	if (gap->length > 0) {
		const struct np_span *span = &self->spans.v[gap->span];
		char rows[96];
		(void)snprintf(rows, sizeof rows, "the kernels around %lld ns",
		               (long long)gap->start);
		np_finding_evidence(finding, np_kernel_source(self), np_time_columns(self), rows,
		                    "the step takes %.1f times the time of its kernels",
		                    (double)span_wall(span) /
		                            (double)(span->computing + span->comm_not_overlapped));
	}
	if (seen->count) {
		show_compile(self, finding, seen);
		if (seen->dur_ns > cost)
			cost = seen->dur_ns;
	}
	np_finding_impact(finding, (double)cost / 1000, np_share(self, cost));
	np_finding_advice(finding,
	                  "Profile after the shapes have settled; with torch.compile or graph mode "
	                  "use fixed or padded shapes, or mark dimensions dynamic "
	                  "(TORCH_LOGS=recompiles tells which guard failed).");
}

/* ── partial, empty and unsteady steps ── */

static void tell_partial(struct np_analysis *self, size_t which, int64_t middle, const char *where)
{
	const struct np_span *span = &self->spans.v[which];
	struct np_finding *finding = np_report_finding(
		self->report, "STEP_PARTIAL", NP_WARNING,
		"the %s step (%lld) has %u kernels, the median step %lld", np_tr(where),
		(long long)span->id, span->kernels, (long long)middle);
	char rows[64];
	(void)snprintf(rows, sizeof rows, "step %lld", (long long)span->id);
	np_finding_evidence(finding, np_kernel_source(self), np_step_column(self), rows, "%u rows",
	                    span->kernels);
	np_finding_impact(finding, (double)span_length(span) / 1000,
	                  np_share(self, span_length(span)));
	np_finding_advice(finding, "Leave this step out of means. Start and stop the profiler at "
	                           "step(), and synchronise before it stops.");
}

/* The first and the last step; true for each that is told. */
static void find_partial(struct np_analysis *self, bool *first, bool *last)
{
	int64_t middle = median(self, KERNELS);
	double least = self->rules->step_partial * (double)middle;
	size_t end = self->spans.n - 1;
	*first = middle > 0 && self->spans.v[0].kernels < least;
	*last = middle > 0 && self->spans.v[end].kernels < least;
	if (*first)
		tell_partial(self, 0, middle, NP_N("first"));
	if (*last)
		tell_partial(self, end, middle, NP_N("last"));
}

static void find_empty(struct np_analysis *self)
{
	const struct np_steps *steps = &self->profile->steps;
	size_t host = 0, empty = 0;
	int64_t example = 0;
	for (size_t i = 0; i < steps->n; i++) {
		if (steps->host_start_ns[i] == NP_NO_I64)
			continue;
		host++;
		if (steps->kernels[i])
			continue;
		if (empty++ == 0)
			example = steps->id[i];
	}
	if (!empty)
		return;
	struct np_finding *finding =
		np_report_finding(self->report, "STEPS_WITHOUT_KERNELS", NP_WARNING,
	                          "%zu of %zu steps of the host have no kernels", empty, host);
	char rows[64];
	(void)snprintf(rows, sizeof rows, "ProfilerStep#%lld%s", (long long)example,
	               empty > 1 ? " and others" : "");
	np_finding_evidence(finding, host_source(self), "name", rows,
	                    "the host recorded these steps, no kernel belongs to them");
	np_finding_advice(finding,
	                  "Their device work lies outside the window: synchronise before the "
	                  "profiler stops, and count step() calls as the schedule does.");
}

static void find_unsteady(struct np_analysis *self, size_t from, size_t to)
{
	int64_t middle = median(self, LENGTH);
	double most = self->rules->step_spread * (double)middle, over = 0;
	size_t n = 0;
	struct np_buf ids = {0};
	for (size_t i = from; middle > 0 && i < to; i++) {
		double off = (double)(span_length(&self->spans.v[i]) - middle);
		if (off <= most && off >= -most)
			continue;
		over += off > 0 ? off : 0;
		if (n++ < 8)
			np_buf_printf(&ids, "%s%lld (%+.0f %%)", n > 1 ? ", " : "",
			              (long long)self->spans.v[i].id, off * 100 / (double)middle);
	}
	if (n) {
		struct np_finding *finding =
			np_report_finding(self->report, "STEP_UNSTEADY", NP_WARNING,
		                          "%zu of %zu steps are more than %.0f %% off the median",
		                          n, self->spans.n, self->rules->step_spread * 100);
		np_finding_detail(finding, "A mean over such steps describes none of them.");
		np_finding_evidence(finding, np_kernel_source(self), np_step_column(self),
		                    ids.ptr ? ids.ptr : "", "median span %.3f us",
		                    (double)middle / 1000);
		np_finding_impact(finding, over / 1000, np_share(self, (np_ns)over));
		np_finding_advice(finding, "Compare a typical step with one of these; data "
		                           "loading, changing shapes, checkpoints and logging "
		                           "are the usual causes.");
	}
	self->oom |= ids.failed;
	np_buf_release(&ids);
}

/* ── all together ── */

/* Fewer steps than a verdict needs: says so. true: nothing more to judge. */
static bool too_few(struct np_analysis *self)
{
	if ((double)self->spans.n >= self->rules->warmup_min_steps && self->spans.n >= 2)
		return false;
	if (self->options->has_step)
		np_report_note(self->report,
		               "warm-up and steadiness are not judged within one chosen step");
	else if (self->spans.v[0].id == NP_NO_I64)
		np_report_note(self->report,
		               "no steps in this capture: warm-up and steadiness cannot be judged "
		               "(call step() of the profiler, with a schedule)");
	else
		np_report_note(self->report,
		               "%zu step%s: too few to judge warm-up and steadiness, %.0f are "
		               "needed (active=%.0f in the schedule)",
		               self->spans.n,
		               self->spans.n == 1 || np_lang() != NP_LANG_EN ? "" : "s",
		               self->rules->warmup_min_steps, self->rules->warmup_min_steps);
	return true;
}

void np_analyze_warmup(struct np_analysis *self)
{
	struct compile seen = {0};
	struct gap gap = {0};
	bool warm = false, first = false, last = false;
	bool few = too_few(self);
	if (!find_compiles(self, &seen)) {
		self->oom = true;
		return;
	}
	if (!few)
		warm = tell_warmup(self, &seen);
	if (!find_recompile(self, warm ? 1 : 0, &gap)) {
		self->oom = true;
		return;
	}
	bool told = warm && seen.count && seen.start_ns < self->spans.v[0].end;
	if (gap.length > 0 || (seen.count && !told))
		tell_recompile(self, &gap, &seen);
	if (!self->options->has_step)
		find_empty(self);
	if (few)
		return;
	find_partial(self, &first, &last);
	find_unsteady(self, warm || first ? 1 : 0, self->spans.n - (last ? 1 : 0));
}
