/*
 * How fast are logs of collectives summed up? M records/s of process CPU time, best of a few
 * runs on one thread:
 *
 *    bench_comm make FILE RECORDS    a full log of that many records
 *    bench_comm FILE [runs]
 *
 * As of a long run: 8 kinds of calls in 3 stages, a step every 200 calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fs.h"
#include "collect/comm_sum.h"

enum { STRINGS = 4096 };

static double cpu_s(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint32_t put_string(char *strings, uint32_t at, const char *text)
{
	uint32_t len = (uint32_t)strlen(text);
	memcpy(strings + at, &len, 4);
	memcpy(strings + at + 4, text, len);
	return at + (4 + len + 1 + 3) / 4 * 4;
}

static int make(const char *path, uint64_t n)
{
	static char head[NP_COMM_LOG_HEADER_BYTES + STRINGS];
	static const char *const texts[] = {"text", "dit", "vae", "0,1,2,3,4,5,6,7", "0,1,2,3"};
	uint32_t at[6] = {NP_COMM_LOG_FIRST_STRING};
	struct np_outfile out;
	struct np_comm_log_header header = {.magic = NP_COMM_LOG_MAGIC,
	                                    .version = 1,
	                                    .layer = NP_COMM_LAYER_TORCH,
	                                    .header_bytes = NP_COMM_LOG_HEADER_BYTES,
	                                    .record_bytes = sizeof(struct np_comm_record),
	                                    .string_capacity = STRINGS,
	                                    .capacity = n,
	                                    .written = n,
	                                    .closed = 1,
	                                    .pid = 1,
	                                    .world = 8};
	for (size_t i = 0; i < 5; i++)
		at[i + 1] = put_string(head + NP_COMM_LOG_HEADER_BYTES, at[i], texts[i]);
	memcpy(head, &header, sizeof header);
	if (np_outfile_begin(&out, path, NULL) != NP_OK)
		return 1;
	out.hasty = true;
	(void)fwrite(head, sizeof head, 1, out.file);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t kind = i % 8;
		struct np_comm_record record = {.seq = i + 1,
		                                .start_ns = 1000000000 + (int64_t)i * 5000,
		                                .call_ns = 20000,
		                                .send_bytes = (uint64_t)4096 << kind,
		                                .recv_bytes = (uint64_t)4096 << kind,
		                                .tensor_bytes = (uint64_t)4096 << kind,
		                                .comm_name = at[3 + kind % 2],
		                                .stage = at[kind % 3],
		                                .step = (uint32_t)(i / 200),
		                                .request = (uint32_t)(i / 4000),
		                                .world = kind % 2 ? 4 : 8,
		                                .op = (uint8_t)(1 + kind % 5),
		                                .dtype = 11};
		(void)fwrite(&record, sizeof record, 1, out.file);
	}
	return np_outfile_commit(&out, NULL) == NP_OK ? 0 : 1;
}

static int measure(char *path, int runs)
{
	double best = 0;
	const struct np_clog_options options = {.rank = -1, .threads = 1};
	for (int i = 0; i < runs; i++) {
		struct np_clog_found found;
		struct np_clog_sum sum;
		uint64_t records = 0;
		if (np_clog_find(&path, 1, &found, NULL) != NP_OK)
			return 1;
		double begin = cpu_s();
		if (np_clog_sum_up(&found, &options, &sum, NULL) != NP_OK)
			return 1;
		double took = cpu_s() - begin;
		for (size_t k = 0; k < sum.files.n; k++)
			records += sum.files.v[k].records;
		if ((double)records / took > best)
			best = (double)records / took;
		np_clog_sum_release(&sum);
		np_clog_found_release(&found);
	}
	(void)printf("%.1f M records/s\n", best / 1e6);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "make") == 0)
		return make(argv[2], strtoull(argv[3], NULL, 10));
	if (argc < 2)
		return 2;
	return measure(argv[1], argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5);
}
