/*
 * Any bytes as one of the small files that say how a capture was made; the first
 * byte chooses which. The file is in memory only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/discover.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const enum np_role kinds[] = {
	NP_ROLE_PROFILER_INFO, NP_ROLE_METADATA,    NP_ROLE_INFO_JSON,
	NP_ROLE_SAMPLE_JSON,   NP_ROLE_PROFILER_DB,
};

static void check(const struct np_capture *capture)
{
	const struct np_config *config = &capture->config;
	if (!config->level || !config->aic_metrics || !config->export_types ||
	    !config->activities || !config->cann_version || !config->torch_npu_version ||
	    !capture->host || !capture->distributed || !capture->distributed_args ||
	    !capture->pp_info || (capture->n_rank_devices && !capture->rank_devices))
		abort();
	if (capture->rank != NP_NO_I64 && capture->rank < 0)
		abort();
	for (size_t i = 0; i < capture->n_groups; i++)
		if (!capture->groups[i].comm_name || !capture->groups[i].name ||
		    (capture->groups[i].n_ranks && !capture->groups[i].ranks))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	size_t kind = data[0] % (sizeof kinds / sizeof *kinds);
	int fd = memfd_create("config", MFD_CLOEXEC);
	char path[64];
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
		abort();
	struct np_captures all = {.input = path, .root = path};
	np_arena_init(&all.arena);
	struct np_capture capture = {.framework = NP_FW_TORCH,
	                             .path = path,
	                             .name = "x_ascend_pt",
	                             .rank = NP_NO_I64,
	                             .device = NP_NO_I64,
	                             .pid = NP_NO_I64,
	                             .world_size = NP_NO_I64,
	                             .host = "",
	                             .host_uid = "",
	                             .npu_name = "",
	                             .batch = "",
	                             .group_dir = "",
	                             .distributed = ""};
	struct np_file file = {.role = kinds[kind],
	                       .path = path,
	                       .size_bytes = size - 1,
	                       .slice = -1,
	                       .timestamp = "",
	                       .readable = true};
	if (!np_vec_push(&capture.files, file))
		abort();
	np_config_read(&all, &capture);
	np_rank_find(&all, &capture);
	check(&capture);
	np_vec_release(&capture.files);
	np_vec_release(&capture.problems);
	np_vec_release(&all.problems);
	np_arena_release(&all.arena);
	(void)close(fd);
	return 0;
}
