/*
 * Inside discovery: what its files share. Not for use outside src/capture/.
 */
#ifndef NP_CAPTURE_DISCOVER_H
#define NP_CAPTURE_DISCOVER_H

#include "capture/capture.h"

/* Remember a problem of one capture, or of the tree (capture NULL). */
void np_problem_add(struct np_captures *all, struct np_capture *capture, const char *code,
                    const char *file, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Fill config, groups, versions and what the small files say. */
void np_config_read(struct np_captures *all, struct np_capture *capture);

/* Take the name of the capture's directory apart: host, pid, batch. */
void np_capture_parse_name(struct np_captures *all, struct np_capture *capture);

/* Rank and device, by the first source that answers (DESIGN.md §2.1). */
void np_rank_find(struct np_captures *all, struct np_capture *capture);

/* Does the directory or file name say its rank: rank_3_…, …_rank3, rank-3? */
bool np_rank_in_name(np_str name, int64_t *rank);

#endif
