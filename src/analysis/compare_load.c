/*
 * A side from its captures: one run after the other is loaded, reduced to columns, and
 * freed.
 */
#include <string.h>

#include "analysis/compare_side.h"

enum { EXTRA_TABLES = NP_MEMORY };

/* What a profile's string ids become. */
struct translation {
	uint32_t *ids;        /* common string, by string of the profile */
	struct np_map names;  /* (name, type) of the profile → normalised common string */
	struct np_map copies; /* (name, type) → 1 or 0 */
	struct np_buf buf;
};

static bool translate_all(const struct np_profile *profile, struct translation *to)
{
	size_t n = profile->strings.strings.n;
	to->ids = np_realloc(NULL, n + 1, sizeof *to->ids);
	for (size_t i = 0; to->ids && i < n; i++)
		to->ids[i] = NP_ID_NONE; /* when needed */
	return to->ids != NULL;
}

static uint32_t common(struct np_compare *self, const struct np_profile *profile,
                       struct translation *to, uint32_t id)
{
	if (id == NP_ID_NONE)
		return 0;
	if (to->ids[id] == NP_ID_NONE) {
		np_str text = np_intern_get(&profile->strings, id);
		to->ids[id] = np_intern_add(&self->strings, np_is_na(text) ? NP_STR("") : text);
	}
	return to->ids[id];
}

/* ── names ── */

static bool is_copy(np_str text)
{
	static const char *const words[] = {"InplaceCopy",  "ViewCopy", "TensorMove",
	                                    "StridedSlice", "_to_copy", "copy_"};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (np_str_contains(text, np_str_of(words[i])))
			return true;
	return false;
}

static bool remember(struct np_compare *self, uint32_t normalised, np_str raw, unsigned rules)
{
	if (!self->options->show_normalised || rules == 0)
		return true;
	uint32_t id = np_intern_add(&self->strings, raw);
	return id != NP_ID_NONE &&
	       np_cmp_keys_add(&self->joined, normalised, id, rules) != NP_NO_U32;
}

static uint32_t normalised(struct np_compare *self, const struct np_profile *profile,
                           struct translation *to, uint32_t name, uint32_t type)
{
	uint64_t key = np_cmp_pair_key(name, type);
	uint32_t id = np_map_get(&to->names, key, NP_ID_NONE);
	if (id != NP_ID_NONE)
		return id;
	np_str raw = np_intern_get(&profile->strings, name);
	np_str kind = np_intern_get(&profile->strings, type);
	unsigned rules = np_normalise(raw, kind, &to->buf);
	id = np_intern_add(&self->strings, np_buf_str(&to->buf));
	if (to->buf.failed || id == NP_ID_NONE || !remember(self, id, raw, rules) ||
	    !np_map_put(&to->names, key, id) ||
	    !np_map_put(&to->copies, key, is_copy(raw) || is_copy(kind)))
		return NP_ID_NONE;
	return id;
}

/* ── samples and kernels ── */

static bool add_samples(const struct np_analysis *analysis, uint32_t run, struct np_cmp_side *side)
{
	size_t first = side->kernels.n;
	for (size_t s = 0; s < analysis->spans.n; s++) {
		const struct np_span *span = &analysis->spans.v[s];
		struct np_cmp_sample sample = {.run = run,
		                               .step = span->id,
		                               .span = span->end - span->start,
		                               .computing = span->computing,
		                               .comm = span->comm,
		                               .exposed = span->comm_not_overlapped,
		                               .overlapped = span->overlapped,
		                               .free = span->free,
		                               .kernels = span->kernels,
		                               .collectives = span->comm_kernels,
		                               .first = first};
		first += span->kernels;
		if (!np_vec_push(&side->samples, sample))
			return false;
	}
	size_t n = first - side->kernels.n;
	if (!np_vec_reserve(&side->kernels, first + (n == 0)))
		return false;
	side->kernels.n = first;
	return true;
}

static bool fill_kernel(struct np_compare *self, const struct np_analysis *analysis,
                        struct translation *to, size_t row, struct np_cmp_kernel *out)
{
	const struct np_profile *profile = analysis->profile;
	const struct np_kernels *kernels = &profile->kernels;
	bool comm = analysis->class[row] == NP_CLASS_COMM;
	bool shapes = profile->kernel_shapes.n == kernels->n && !comm;
	out->name = normalised(self, profile, to, kernels->name[row], kernels->type[row]);
	out->type = comm ? out->name : common(self, profile, to, kernels->type[row]);
	out->shapes = shapes ? common(self, profile, to, profile->kernel_shapes.in_shapes[row]) : 0;
	if (out->name == NP_ID_NONE || out->type == NP_ID_NONE || out->shapes == NP_ID_NONE)
		return false;
	uint64_t key = np_cmp_pair_key(kernels->name[row], kernels->type[row]);
	out->copy = !comm && np_map_get(&to->copies, key, 0);
	out->stream = comm ? NP_CMP_COMM : kernels->stream[row];
	out->dur = kernels->dur_ns[row];
	out->class = analysis->class[row];
	return true;
}

static bool add_kernels(struct np_compare *self, const struct np_analysis *analysis, uint32_t run,
                        struct translation *to, struct np_cmp_side *side)
{
	size_t first_sample = side->samples.n, n_spans = analysis->spans.n;
	if (!add_samples(analysis, run, side))
		return false;
	size_t *next = np_realloc(NULL, n_spans + 1, sizeof *next);
	for (size_t s = 0; next && s < n_spans; s++)
		next[s] = side->samples.v[first_sample + s].first;
	bool ok = next != NULL;
	for (size_t i = 0; ok && i < analysis->n_rows; i++) {
		size_t row = analysis->rows[i];
		uint32_t span = analysis->span_of[row];
		struct np_cmp_sample *sample = &side->samples.v[first_sample + span];
		struct np_cmp_kernel *kernel = &side->kernels.v[next[span]++];
		*kernel = (struct np_cmp_kernel){.sample = (uint32_t)(first_sample + span)};
		ok = fill_kernel(self, analysis, to, row, kernel);
		if (!ok)
			break;
		sample->copies += kernel->copy;
		sample->copy_ns += kernel->copy ? kernel->dur : 0;
		side->classes |= 1u << kernel->class;
		side->has_types =
			side->has_types || (kernel->type && kernel->stream != NP_CMP_COMM);
		side->has_streams = side->has_streams || kernel->stream < NP_CMP_COMM;
		side->has_shapes = side->has_shapes || kernel->shapes;
		side->has_steps = side->has_steps || sample->step != NP_NO_I64;
	}
	np_free(next);
	return ok;
}

/* ── the runs ── */

static const char *keep(struct np_compare *self, const char *text)
{
	const char *copy = np_arena_cstr(&self->report->arena, np_str_of(text));
	return copy ? copy : "";
}

static void keep_facts(struct np_compare *self, const struct np_analysis *analysis,
                       struct np_cmp_side *side)
{
	const struct np_capture *capture = analysis->capture;
	char kind[64];
	np_capture_kind(capture, kind, sizeof kind);
	side->kind = keep(self, kind);
	side->level = keep(self, capture->config.level ? capture->config.level : "");
	side->chip = keep(self, capture->npu_name ? capture->npu_name : "");
	side->host = keep(self, capture->host ? capture->host : "");
	side->source = keep(self, np_kernel_source(analysis));
	side->world_size = capture->world_size;
	side->rank = capture->rank;
}

static bool reduce(struct np_compare *self, const struct np_analysis *analysis, uint32_t run,
                   struct np_cmp_side *side)
{
	struct translation to = {0};
	size_t first = side->samples.n;
	np_map_init(&to.names);
	np_map_init(&to.copies);
	/* a text table of kernels: the field's tool takes E2E from the kernels alone */
	bool text = np_capture_file(analysis->capture, NP_ROLE_KERNELS) != NULL;
	bool ok = translate_all(analysis->profile, &to) &&
	          add_kernels(self, analysis, run, &to, side) &&
	          (run > 0 || np_overall_compute(analysis, !text, &side->overall)) &&
	          np_cmp_load_more(self, analysis, run, first, side);
	if (run == 0) {
		keep_facts(self, analysis, side);
		side->has_db = !text;
	}
	np_free(to.ids);
	np_map_release(&to.names);
	np_map_release(&to.copies);
	np_buf_release(&to.buf);
	return ok;
}

static enum np_status load_gpu(struct np_compare *self, const struct np_compare_input *input,
                               const struct np_analyze_options *options, struct np_cmp_side *side,
                               struct np_err *err)
{
	struct np_capture capture = {.path = input->gpu_trace, .name = input->gpu_trace};
	struct np_analyze_options whole = *options;
	whole.has_step = false;
	struct np_analysis analysis = {.capture = &capture,
	                               .options = &whole,
	                               .rules = options->rules,
	                               .report = self->report};
	capture.rank = capture.world_size = NP_NO_I64;
	side->n_runs = 1;
	side->is_gpu = true;
	enum np_status status = np_cmp_gpu_read(input->gpu_trace, &analysis, err);
	if (status == NP_OK && !reduce(self, &analysis, 0, side))
		status = np_err_nomem(err);
	side->kind = "a GPU trace";
	np_analysis_release(&analysis);
	return status;
}

enum np_status np_cmp_side_load(struct np_compare *self, const struct np_compare_input *input,
                                struct np_cmp_side *side, struct np_err *err)
{
	*side = (struct np_cmp_side){.label = input->label, .n_runs = input->n};
	struct np_analyze_options options = {.has_step = self->options->has_step,
	                                     .step = self->options->step,
	                                     .threads = self->options->threads,
	                                     .rules = self->rules};
	if (input->gpu_trace)
		return load_gpu(self, input, &options, side, err);
	for (size_t i = 0; i < input->n; i++) {
		struct np_analysis analysis;
		enum np_status status = np_analysis_prepare(&analysis, input->captures[i], &options,
		                                            self->report, EXTRA_TABLES, err);
		if (status == NP_OK && !reduce(self, &analysis, (uint32_t)i, side))
			status = np_err_nomem(err);
		np_analysis_release(&analysis);
		NP_TRY(status);
		np_progress_step(self->options->progress);
	}
	return NP_OK;
}

void np_cmp_side_release(struct np_cmp_side *side)
{
	np_vec_release(&side->samples);
	np_vec_release(&side->kernels);
	np_vec_release(&side->api);
	np_vec_release(&side->comm);
	np_vec_release(&side->peaks);
	np_vec_release(&side->group_times);
	np_overall_release(&side->overall);
	memset(side, 0, sizeof *side);
}
