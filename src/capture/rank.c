/*
 * Whose capture is it? Names and ids, by the order of DESIGN.md §2.1:
 * profiler_info_<N>.json, RANK_DEVICE_MAP, number in the db's name, rank_id
 * recorded, directory name, unknown.
 */
#include <string.h>

#include "capture/discover.h"

static bool all_digits(np_str text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)(text.ptr[i] - '0') > 9)
			return false;
	return text.len > 0;
}

/* Cut the last "_part" off; false when there is no "_". */
static bool cut_last(np_str *text, np_str *part)
{
	for (size_t i = text->len; i-- > 0;)
		if (text->ptr[i] == '_') {
			*part = np_str_from(*text, i + 1);
			text->len = i;
			return true;
		}
	return false;
}

/* {worker}_{pid}_{YYYYmmddHHMMSSmmm}_ascend_pt; PROF_{seq}_{stamp}_{letters} */
void np_capture_parse_name(struct np_captures *all, struct np_capture *capture)
{
	np_str rest = np_str_of(capture->name), part = {NULL, 0};
	if (capture->framework == NP_FW_MSPROF) {
		if (!cut_last(&rest, &part)) /* the letters */
			return;
		if (!cut_last(&rest, &part)) /* the stamp */
			return;
	} else {
		if (!np_str_ends(rest, NP_STR("_ascend_pt")) &&
		    !np_str_ends(rest, NP_STR("_ascend_ms")))
			return;
		rest.len -= sizeof "_ascend_pt" - 1;
		if (!cut_last(&rest, &part))
			return;
	}
	if (!all_digits(part) || part.len < 10)
		return;
	const char *batch = np_arena_cstr(&all->arena, part);
	all->out_of_memory |= !batch;
	capture->batch = batch ? batch : "";
	if (capture->framework == NP_FW_MSPROF)
		return;
	np_str worker = rest;
	if (cut_last(&worker, &part) && all_digits(part) && part.len < 10) {
		(void)np_str_to_i64(part, &capture->pid);
		rest = worker;
	}
	const char *host = np_arena_cstr(&all->arena, rest);
	all->out_of_memory |= !host;
	if (host && !*capture->host)
		capture->host = host;
}

bool np_rank_in_name(np_str name, int64_t *rank)
{
	for (size_t i = 0; i + 4 < name.len; i++) {
		if (!np_str_istarts(np_str_from(name, i), NP_STR("rank")))
			continue;
		if (i > 0 && name.ptr[i - 1] != '_' && name.ptr[i - 1] != '-' &&
		    name.ptr[i - 1] != '.')
			continue;
		np_str digits = np_str_from(name, i + 4);
		if (digits.len && (digits.ptr[0] == '_' || digits.ptr[0] == '-'))
			digits = np_str_from(digits, 1);
		size_t n = 0;
		while (n < digits.len && (unsigned char)(digits.ptr[n] - '0') <= 9)
			n++;
		digits.len = n;
		if (n > 0 && n < 8 && np_str_to_i64(digits, rank))
			return true;
	}
	return false;
}

static void take(struct np_capture *capture, int64_t rank, enum np_rank_source source)
{
	capture->rank = rank;
	capture->rank_source = source;
}

/* Two sources that disagree are told; the one that counts more is used. The name of a
 * directory is no contradiction: it often holds the rank inside of its host. */
static void compare(struct np_captures *all, struct np_capture *capture, int64_t rank,
                    enum np_rank_source source)
{
	if (rank != NP_NO_I64 && rank != capture->rank && source != NP_RANK_DIR_NAME)
		np_problem_add(all, capture, "RANK_CONTRADICTION", capture->path,
		               "%s says rank %lld, %s says %lld; the first is used",
		               np_rank_source_name(capture->rank_source), (long long)capture->rank,
		               np_rank_source_name(source), (long long)rank);
}

/* The number in the name of the first file of a role that has one. */
static int64_t rank_of_files(const struct np_capture *capture, enum np_role role)
{
	for (size_t i = 0; i < capture->files.n; i++) {
		int64_t rank = np_name_parse(np_path_base(capture->files.v[i].path)).rank;
		if (capture->files.v[i].role == role && rank != NP_NO_I64)
			return rank;
	}
	return NP_NO_I64;
}

void np_rank_find(struct np_captures *all, struct np_capture *capture)
{
	if (capture->framework == NP_FW_CLUSTER)
		return;
	/* config.c left rank_id or RANK_DEVICE_MAP in `rank`, whichever counts more */
	enum np_rank_source source = capture->rank_source;
	int64_t recorded = capture->rank, by_dir = NP_NO_I64;
	int64_t by_map = source == NP_RANK_DEVICE_MAP ? recorded : NP_NO_I64;
	int64_t by_content = source == NP_RANK_INFO_CONTENT ? recorded : NP_NO_I64;
	np_str parent = np_path_base(capture->group_dir);
	if (!np_rank_in_name(np_str_of(capture->name), &by_dir))
		(void)np_rank_in_name(parent, &by_dir);
	const struct {
		int64_t rank;
		enum np_rank_source source;
	} answers[] = {
		{rank_of_files(capture, NP_ROLE_PROFILER_INFO), NP_RANK_INFO_NAME},
		{by_map, NP_RANK_DEVICE_MAP},
		{rank_of_files(capture, NP_ROLE_PROFILER_DB), NP_RANK_DB_NAME},
		{by_content, NP_RANK_INFO_CONTENT},
		{by_dir, NP_RANK_DIR_NAME},
	};
	capture->rank = NP_NO_I64;
	capture->rank_source = NP_RANK_UNKNOWN;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		if (capture->rank == NP_NO_I64 && answers[i].rank != NP_NO_I64)
			take(capture, answers[i].rank, answers[i].source);
		else
			compare(all, capture, answers[i].rank, answers[i].source);
	}
	/* profiler_info.json without a number is one process without distributed (R91) */
	capture->n_a_rank_ok = capture->rank_source == NP_RANK_UNKNOWN;
}
