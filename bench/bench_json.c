/*
 * How fast JSON is read: GB/s of one thread's CPU time, one pass per process so
 * that the mapping is cold (the page cache is not).
 *
 *   bench_json FILE scan|validate|walk|skip|members
 *
 * walk: every token; skip: every token but the values of `args`; members: the
 * same through np_json_members(). Prints one line with a check sum, so that runs
 * can be compared.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/json.h"
#include "io/json_scan.h"

static double cpu_seconds(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static enum np_status walk(struct np_json *reader, bool skip, uint64_t *sum, struct np_err *err)
{
	struct np_json_token token;
	for (;;) {
		NP_TRY(np_json_next(reader, &token, err));
		if (token.type == NP_JSON_END)
			return NP_OK;
		*sum += token.text.len + 1;
		if (skip && token.type == NP_JSON_KEY && np_str_is(token.text, "args"))
			NP_TRY(np_json_skip(reader, NULL, NULL, err));
	}
}

static enum np_status members(struct np_json *reader, uint64_t *sum, struct np_err *err)
{
	struct np_json_member member[32];
	struct np_json_token token;
	size_t n;
	for (;;) {
		NP_TRY(np_json_next(reader, &token, err));
		if (token.type == NP_JSON_END)
			return NP_OK;
		if (token.type != NP_JSON_OBJECT_BEGIN)
			continue;
		do {
			NP_TRY(np_json_members(reader, member, 32, &n, err));
			for (size_t i = 0; i < n; i++)
				*sum += member[i].key.len + member[i].value.text.len;
		} while (n == 32);
	}
}

/* The first pass alone, in batches as the reader's. */
static void scan_only(np_str text, uint64_t *sum)
{
	static uint64_t masks[3][512];
	struct np_json_masks out = {masks[0], masks[1], masks[2]};
	struct np_json_scan state = {0};
	np_json_scan_fn *scan = np_json_scan_for(np_simd_level());
	for (size_t i = 0; i + sizeof masks[0] * 8 <= text.len; i += sizeof masks[0] * 8) {
		*sum += scan(&state, text.ptr + i, 512, out);
		*sum += masks[0][511] & 1;
	}
}

static enum np_status run(struct np_input *input, const char *what, uint64_t *sum,
                          struct np_err *err)
{
	if (strcmp(what, "scan") == 0) {
		scan_only(np_input_whole(input), sum);
		return NP_OK;
	}
	if (strcmp(what, "validate") == 0) {
		struct np_json_repairs repairs;
		return np_json_validate(input, &repairs, sum, err);
	}
	struct np_json *reader;
	NP_TRY(np_json_open(input, 0, &reader, err));
	enum np_status status = strcmp(what, "members") == 0
	                                ? members(reader, sum, err)
	                                : walk(reader, strcmp(what, "skip") == 0, sum, err);
	np_json_close(reader);
	return status;
}

int main(int argc, char **argv)
{
	struct np_err err = {0};
	struct np_input *input;
	uint64_t sum = 0;
	if (argc != 3) {
		(void)fprintf(stderr, "usage: bench_json FILE scan|validate|walk|skip|members\n");
		return 2;
	}
	if (np_input_open(argv[1], &input, &err) != NP_OK) {
		(void)fprintf(stderr, "%s: %s\n", err.where, err.msg);
		return 4;
	}
	double start = cpu_seconds();
	enum np_status status = run(input, argv[2], &sum, &err);
	double seconds = cpu_seconds() - start;
	if (status != NP_OK)
		(void)fprintf(stderr, "%s: %s\n", err.where, err.msg);
	(void)printf("%-8s %6.3f GB/s  %.3f s  sum %llu  (%s)\n", argv[2],
	             (double)np_input_file_size(input) / seconds * 1e-9, seconds,
	             (unsigned long long)sum, np_simd_name(np_simd_level()));
	np_input_close(input);
	return status == NP_OK ? 0 : 4;
}
