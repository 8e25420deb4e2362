/*
 * The progress line on a terminal: appears on stderr after half a second of
 * work, and is wiped before the result is written.
 */
#ifndef NP_CMD_PROGRESS_H
#define NP_CMD_PROGRESS_H

#include "base/progress.h"
#include "cmd/cmd.h"

struct np_progress_line;

/* NULL where nobody would see it: no terminal, -q, --no-progress. */
struct np_progress_line *np_progress_show(const struct np_common *common);
/* The counters to hand to the work; NULL for NULL. */
struct np_progress *np_progress_of(struct np_progress_line *self);
/* Wipe the line and free. */
void np_progress_hide(struct np_progress_line *self);

#endif
