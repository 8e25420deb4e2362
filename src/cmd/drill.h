/*
 * What to fetch next (R120): a cluster is often fetched in part, a few small files of each rank.
 * Once ranks stand out, all of theirs is wanted.
 */
#ifndef NP_CMD_DRILL_H
#define NP_CMD_DRILL_H

#include "capture/capture.h"
#include "report/report.h"

/*
 * Notes with the `npuprof pull` for each source that has ranks which the report accuses: rows of
 * the tables diagnose_causes and SlowRank. The source is what the nearest npuprof_manifest.json
 * above a rank's capture names, not above `root`. Nothing without such ranks or manifests.
 */
void np_drill_note(const struct np_captures *all, const char *root, struct np_report *report);

#endif
