/*
 * A delivery list (R43, R115): what files there are, how long, with which digests, and whose
 * capture they belong to. `npuprof_manifest.json` beside them; docs/formats/manifest.md.
 *
 *   pull ──▶ manifest ──np_manifest_write──▶ npuprof_manifest.json
 *                                                 │
 *   directory ──────────np_manifest_verify◀───────┘──▶ report
 *
 * Paths are relative and never leave the directory: others are refused when it is read.
 */
#ifndef NP_COLLECT_MANIFEST_H
#define NP_COLLECT_MANIFEST_H

#include "base/progress.h"
#include "base/time.h"
#include "collect/hash.h"
#include "report/report.h"

#define NP_MANIFEST_NAME "npuprof_manifest.json"
enum { NP_MANIFEST_MAX_BYTES = 1 << 30 };

struct np_manifest_file {
	const char *path; /* relative to the manifest; in the arena */
	uint64_t size_bytes;
	np_ns mtime_ns; /* at the source */
	struct np_digests digests;
};

struct np_manifest {
	struct np_arena arena;
	const char *source; /* "host:/dir", or "" */
	const char *arm;    /* what the capture stands for in a comparison (R54), or "" */
	np_ns created_ns;
	NP_VEC(struct np_manifest_file) files; /* sorted by path once written */
};

void np_manifest_init(struct np_manifest *self);
void np_manifest_release(struct np_manifest *self);

/* Add one, or replace that of the same path. The path is copied. false: out of memory. */
bool np_manifest_put(struct np_manifest *self, const struct np_manifest_file *file);

/* Is it relative, without "..", "." and empty components, and no longer than 4000 bytes? */
bool np_is_safe_path(np_str path);

/*
 * Read `dir`/npuprof_manifest.json. E_NOTFOUND without one; E_FORMAT when it is no manifest or
 * a path in it leaves the directory.
 */
enum np_status np_manifest_read(struct np_manifest *self, const char *dir, struct np_err *err);

/*
 * Write it into `dir`. What lies there is looked at for the captures' rank, steps and span.
 */
enum np_status np_manifest_write(struct np_manifest *self, const char *dir, struct np_err *err);

/*
 * Judge a directory by its manifest: a table `verified`, and findings MANIFEST_MISSING_FILE,
 * MANIFEST_CORRUPT, MANIFEST_CRLF (only line ends differ: a copy in text mode, §2.8) and
 * MANIFEST_EXTRA. Verdict and exit_code are set. E_NOTFOUND, E_FORMAT as np_manifest_read().
 */
enum np_status np_manifest_verify(const char *dir, unsigned threads, struct np_progress *progress,
                                  struct np_report *report, struct np_err *err);

#endif
