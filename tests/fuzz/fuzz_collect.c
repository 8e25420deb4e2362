/* Any bytes as what a host tells of a run, and as the state of a collect. */
#include <stdlib.h>
#include <string.h>

#include "collect/collect_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void one_state(np_str text)
{
	static const struct arm arm;
	struct leg leg = {.arm = &arm, .host = "node", .run_exit = NP_NO_EXIT};
	struct np_input *input = NULL;
	struct np_err err = {0};
	np_arena_init(&leg.arena);
	for (int i = 0; i < N_STAGES; i++)
		leg.stages[i].detail = "";
	if (np_input_open_mem(text, "state", 0, &input, &err) == NP_OK) {
		enum np_status status = collect_state_parse(&leg, input, &err);
		if (status != NP_OK && err.msg[0] == '\0')
			abort();
		/* what goes on must be whole */
		if (status == NP_OK && leg.launched && (!leg.job || !leg.devices || !leg.cwd))
			abort();
		struct np_buf json = {0};
		collect_state_json(&leg, &json);
		np_buf_release(&json);
	}
	np_input_close(input);
	np_arena_release(&leg.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct far far;
	np_str text = {(const char *)data, size};
	if (collect_far_parse(text, &far) && (far.state > FAR_GONE || far.log.len > size))
		abort();
	one_state(text);
	return 0;
}
