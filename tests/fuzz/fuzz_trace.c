/* Traces: the quick reader, the exact one, and any number of threads and window
 * sizes must give the same profile (capture/trace_doc.h). */
#include "../unit/same_profile.h"
#include "capture/trace_doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct np_profile *load(np_str text, unsigned threads, const struct np_trace_plan *plan,
                               size_t window, enum np_status *status)
{
	struct np_err err;
	struct np_input *input = NULL;
	struct np_read read = {np_profile_new(), NP_LOAD_ALL, threads};
	if (!read.profile || np_input_open_mem(text, "fuzz", 0, &input, &err) != NP_OK)
		abort();
	if (window)
		np_input_limit_window(input, window);
	*status = np_trace_read_input(&read, input, plan, &err);
	np_input_close(input);
	return read.profile;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		unsigned threads;
		struct np_trace_plan plan;
		size_t window;
	} ways[] = {
		{1, {0, 0, true}, 0},
		{1, {0, 0, false}, 7},
		{3, {40, 1, false}, 0},
	};
	np_str text = {(const char *)data, size};
	enum np_status status, other_status;
	struct np_profile *profile = load(text, 1, NULL, 0, &status);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct np_profile *other =
			load(text, ways[i].threads, &ways[i].plan, ways[i].window, &other_status);
		if (status != other_status || other_profile(profile, other))
			abort();
		np_profile_free(other);
	}
	np_profile_free(profile);
	return 0;
}
