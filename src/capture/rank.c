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
	capture->batch = batch ? batch : "";
	if (capture->framework == NP_FW_MSPROF)
		return;
	np_str worker = rest;
	if (cut_last(&worker, &part) && all_digits(part) && part.len < 10) {
		(void)np_str_to_i64(part, &capture->pid);
		rest = worker;
	}
	const char *host = np_arena_cstr(&all->arena, rest);
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

void np_rank_find(struct np_captures *all, struct np_capture *capture)
{
	if (capture->framework == NP_FW_CLUSTER)
		return;
	/* config.c left rank_id or RANK_DEVICE_MAP in `rank`, whichever came last */
	enum np_rank_source recorded = capture->rank_source;
	int64_t by_db_name = NP_NO_I64, by_dir = 0;
	int64_t recorded_rank = capture->rank;
	for (size_t i = 0; i < capture->files.n; i++) {
		const struct np_file *file = &capture->files.v[i];
		int64_t rank = np_name_parse(np_path_base(file->path)).rank;
		if (rank == NP_NO_I64)
			continue;
		if (file->role == NP_ROLE_PROFILER_INFO) {
			if (recorded == NP_RANK_INFO_CONTENT && recorded_rank != rank)
				np_problem_add(all, capture, "RANK_CONTRADICTION", file->path,
				               "the name says rank %lld, rank_id says %lld; the "
				               "name is used",
				               (long long)rank, (long long)recorded_rank);
			take(capture, rank, NP_RANK_INFO_NAME);
			return;
		}
		if (file->role == NP_ROLE_PROFILER_DB)
			by_db_name = rank;
	}
	if (recorded == NP_RANK_DEVICE_MAP)
		return;
	if (by_db_name != NP_NO_I64)
		take(capture, by_db_name, NP_RANK_DB_NAME);
	else if (recorded != NP_RANK_INFO_CONTENT &&
	         np_rank_in_name(np_str_of(capture->name), &by_dir))
		take(capture, by_dir, NP_RANK_DIR_NAME);
	/* profiler_info.json without a number is one process without distributed (R91) */
	capture->n_a_rank_ok = capture->rank_source == NP_RANK_UNKNOWN;
}
