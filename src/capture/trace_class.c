#include "capture/trace_class.h"

static enum np_host_layer layer_of_category(np_str cat)
{
	switch (cat.len) {
	case 2:
		if (memcmp(cat.ptr, "GC", 2) == 0)
			return NP_HOST_GC;
		break;
	case 6:
		if (memcmp(cat.ptr, "cpu_op", 6) == 0)
			return NP_HOST_OP;
		break;
	case 7:
		if (memcmp(cat.ptr, "enqueue", 7) == 0 || memcmp(cat.ptr, "dequeue", 7) == 0)
			return NP_HOST_QUEUE;
		break;
	case 15:
		if (memcmp(cat.ptr, "python_function", 15) == 0)
			return NP_HOST_PYTHON;
		break;
	default:
		break;
	}
	if (np_str_istarts(cat, NP_STR("mstx")) || np_str_istarts(cat, NP_STR("msproftx")))
		return NP_HOST_MSTX;
	return NP_HOST_OTHER;
}

/* The layer by the text in front of '@'; only those of the CANN process. */
static enum np_host_layer layer_of_prefix(np_str name, size_t *prefix)
{
	static const struct {
		np_str text;
		enum np_host_layer layer;
	} prefixes[] = {
		{{"AscendCL@", 9}, NP_HOST_ACL}, {{"Runtime@", 8}, NP_HOST_RUNTIME},
		{{"Node@", 5}, NP_HOST_NODE},    {{"Communication@", 14}, NP_HOST_HCCL},
		{{"Hccl@", 5}, NP_HOST_HCCL},    {{"Model@", 6}, NP_HOST_MODEL},
	};
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		if (name.len == 0 || name.ptr[0] != prefixes[i].text.ptr[0] ||
		    !np_str_starts(name, prefixes[i].text))
			continue;
		*prefix = prefixes[i].text.len;
		return prefixes[i].layer;
	}
	return NP_HOST_OTHER;
}

enum np_trace_class np_trace_classify(const struct np_trace_event *event, enum np_host_layer *layer,
                                      size_t *prefix)
{
	*prefix = 0;
	if (np_trace_has(event, NP_EV_CAT)) {
		*layer = layer_of_category(np_trace_text(event, NP_EV_CAT));
		if (*layer != NP_HOST_OTHER)
			return NP_TRACE_HOST;
	}
	if (np_trace_has(event, NP_ARG_TASK_TYPE))
		return NP_TRACE_TASK;
	if (np_trace_has(event, NP_ARG_TRANSPORT) || np_trace_has(event, NP_ARG_NOTIFY))
		return NP_TRACE_COMM_TASK;
	if (np_trace_has(event, NP_ARG_ALGORITHM))
		return NP_TRACE_COMM_OP;
	*layer = layer_of_prefix(np_trace_text(event, NP_EV_NAME), prefix);
	if (*layer == NP_HOST_OTHER && np_trace_has(event, NP_ARG_EVENT_TYPE))
		*layer = NP_HOST_MSTX;
	return NP_TRACE_HOST;
}

enum np_mstx_type np_trace_mstx_type(np_str event_type)
{
	static const struct {
		const char *name;
		enum np_mstx_type type;
	} types[] = {
		{"marker", NP_MSTX_MARKER},
		{"push/pop", NP_MSTX_PUSH_POP},
		{"start/end", NP_MSTX_START_END},
		{"marker_ex", NP_MSTX_MARKER_EX},
	};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (np_str_is(event_type, types[i].name))
			return types[i].type;
	return NP_MSTX_UNKNOWN;
}

bool np_trace_is_compute(np_str type)
{
	/* DSA: random numbers for dropout; the exporter lists them among the kernels */
	static const char *const exact[] = {"AIC",    "AIV",    "AI_CORE", "AI_VECTOR_CORE",
	                                    "AI_CPU", "DSA_SQE"};
	if (np_str_starts(type, NP_STR("KERNEL_")) || np_str_starts(type, NP_STR("MIX_")))
		return true;
	for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
		if (np_str_is(type, exact[i]))
			return true;
	return false;
}

enum np_trace_process_class np_trace_process_classify(np_str name, np_str labels)
{
	if (np_str_is(name, "Ascend Hardware"))
		return NP_TRACE_PROCESS_HARDWARE;
	if (np_str_is(name, "Communication") || np_str_is(name, "HCCL"))
		return NP_TRACE_PROCESS_COMM;
	if (np_str_is(name, "Overlap Analysis") || np_str_starts(labels, NP_STR("NPU")))
		return NP_TRACE_PROCESS_DERIVED;
	if (np_str_is(name, "Python GC"))
		return NP_TRACE_PROCESS_GC;
	if (np_str_icontains(name, NP_STR("mstx")) || np_str_icontains(name, NP_STR("proftx")))
		return NP_TRACE_PROCESS_MSTX;
	return NP_TRACE_PROCESS_HOST;
}

uint32_t np_trace_device(np_str labels, uint32_t pid, np_str pid_text)
{
	uint64_t number;
	labels = np_str_trim(labels);
	if (!np_str_starts(labels, NP_STR("NPU")))
		return NP_NO_U32;
	np_str rest = np_str_trim(np_str_from(labels, 3));
	if (rest.len > 0)
		return np_str_to_u64(rest, &number) && number < NP_NO_U32 ? (uint32_t)number
		                                                          : NP_NO_U32;
	if (pid_text.len == 0)
		return pid & 31;
	return np_str_to_u64(pid_text, &number) ? (uint32_t)(number & 31) : NP_NO_U32;
}

bool np_trace_group_lane(np_str name, np_str *group)
{
	if (!np_str_starts(name, NP_STR("Group ")) || !np_str_ends(name, NP_STR(" Communication")))
		return false;
	size_t ends = NP_STR("Group ").len + NP_STR(" Communication").len;
	if (name.len <= ends)
		return false;
	*group = np_str_sub(name, NP_STR("Group ").len, name.len - ends);
	return true;
}

bool np_trace_plane_lane(np_str name, uint32_t *plane)
{
	uint64_t number;
	if (!np_str_starts(name, NP_STR("Plane ")) ||
	    !np_str_to_u64(np_str_from(name, NP_STR("Plane ").len), &number) || number >= NP_NO_U32)
		return false;
	*plane = (uint32_t)number;
	return true;
}
