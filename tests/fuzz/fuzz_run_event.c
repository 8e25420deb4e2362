/* A line of events/<pid>.jsonl, and the lines of a log (collect/events.h, gate/log_signs.h). */
#include <stdlib.h>
#include <string.h>

#include "collect/events.h"
#include "gate/log_signs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct np_arena arena;
	struct np_run_event event;
	np_arena_init(&arena);
	np_str line = {(const char *)data, size};
	if (np_run_event_parse(&arena, line, &event, NULL) == NP_OK &&
	    (!*event.event || !event.near || !event.argv || !event.overridden_by))
		abort();
	char *copy = np_arena_alloc(&arena, size + 1);
	if (copy && size) {
		memcpy(copy, data, size);
		size_t len = np_log_strip_ansi(copy, size);
		if (len > size || memchr(copy, '\x1b', len))
			abort();
		if (np_log_sign_of((np_str){copy, len}) > np_log_n_signs())
			abort();
	}
	np_arena_release(&arena);
	return 0;
}
