#include "capture/expect.h"

#include <string.h>

/* What must be switched on for a text deliverable. */
enum need {
	NEED_ALWAYS,
	NEED_NPU,
	NEED_CPU,
	NEED_LEVEL1,
	NEED_LEVEL1_MULTI, /* and more than one rank */
	NEED_MEMORY,
	NEED_L2,
};

static const struct {
	enum np_role role;
	enum need need;
	const char *why;
} rules[] = {
	{NP_ROLE_TRACE, NEED_ALWAYS, "every text export"},
	{NP_ROLE_KERNELS, NEED_NPU, "ProfilerActivity.NPU"},
	{NP_ROLE_STEP_TRACE, NEED_NPU, "ProfilerActivity.NPU"},
	{NP_ROLE_OPERATOR_DETAILS, NEED_CPU, "ProfilerActivity.CPU"},
	{NP_ROLE_OP_STATISTIC, NEED_LEVEL1, "Level1 or Level2"},
	{NP_ROLE_API_STATISTIC, NEED_LEVEL1, "Level1 or Level2"},
	{NP_ROLE_COMM_JSON, NEED_LEVEL1_MULTI, "Level1 or Level2, more than one rank"},
	{NP_ROLE_COMM_MATRIX, NEED_LEVEL1_MULTI, "Level1 or Level2, more than one rank"},
	{NP_ROLE_OPERATOR_MEMORY, NEED_MEMORY, "profile_memory=True"},
	{NP_ROLE_MEMORY_RECORD, NEED_MEMORY, "profile_memory=True"},
	{NP_ROLE_L2_CACHE, NEED_L2, "l2_cache=True"},
};

static bool level1(const struct np_config *config)
{
	return strcmp(config->level, "Level1") == 0 || strcmp(config->level, "Level2") == 0;
}

/* 1 asked for, 0 not asked for, -1 not recorded */
static int asked(const struct np_capture *capture, enum need need)
{
	const struct np_config *config = &capture->config;
	bool level = *config->level != '\0';
	switch (need) {
	case NEED_ALWAYS:
		return 1;
	case NEED_NPU:
		if (strcmp(config->level, "Level_none") == 0)
			return 0;
		return *config->activities ? strstr(config->activities, "NPU") != NULL : -1;
	case NEED_CPU:
		return *config->activities ? strstr(config->activities, "CPU") != NULL : -1;
	case NEED_LEVEL1:
		return level ? level1(config) : -1;
	case NEED_LEVEL1_MULTI:
		if (level && !level1(config))
			return 0;
		return level && capture->world_size > 1 ? 1 : -1;
	case NEED_MEMORY:
		return config->profile_memory;
	case NEED_L2:
		return config->l2_cache;
	}
	return -1;
}

static bool other_name_present(const struct np_capture *capture, enum np_role role)
{
	return (role == NP_ROLE_KERNELS && np_capture_file(capture, NP_ROLE_OP_SUMMARY)) ||
	       (role == NP_ROLE_COMM_JSON && (capture->formats & NP_HAS_ANALYSIS)) ||
	       (role == NP_ROLE_COMM_MATRIX && (capture->formats & NP_HAS_ANALYSIS));
}

enum np_presence np_expect(const struct np_capture *capture, enum np_role role, const char **why)
{
	*why = "";
	if (np_capture_file(capture, role) || other_name_present(capture, role))
		return NP_PRESENT;
	bool text = capture->formats & NP_HAS_TEXT;
	if (capture->framework != NP_FW_TORCH && capture->framework != NP_FW_MINDSPORE)
		return NP_IRRELEVANT;
	if (!text || (capture->formats & NP_HAS_DB))
		return NP_IRRELEVANT; /* the database holds what these files would */
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
		if (rules[i].role != role)
			continue;
		*why = rules[i].why;
		int wanted = asked(capture, rules[i].need);
		return wanted > 0 ? NP_MISSING : wanted == 0 ? NP_NOT_COLLECTED : NP_IRRELEVANT;
	}
	return NP_IRRELEVANT;
}
