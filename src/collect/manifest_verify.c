/*
 * A directory beside its delivery list.
 */
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/pool.h"
#include "collect/manifest.h"
#include "report/lang.h"

enum verdict { SAME, MISSING, UNREADABLE, CORRUPT, TO_CRLF, TO_LF };

struct judged {
	enum verdict verdict;
	uint64_t size_bytes;
	struct np_err err;
};

struct work {
	const struct np_manifest *manifest;
	const char *dir;
	struct judged *judged;
	struct np_progress *progress;
};

/* ── line ends ──────────────────────────────────────────────────────────────
 * A copy in text mode writes \r\n for \n, or \n for \r\n. The size then differs by the number
 * of lines, and with the line ends put back the digest is the right one (§2.8).
 */

struct ends {
	FILE *file;
	struct np_hash *hash;
	bool back_to_lf; /* drop \r before \n; else put one there */
	uint64_t bytes;  /* of the text that was digested */
};

static bool put(struct ends *ends, const char *bytes, size_t n)
{
	ends->bytes += n;
	return np_hash_add(ends->hash, bytes, n);
}

static bool convert(struct ends *ends)
{
	char line[8192];
	size_t n = 0;
	int c, before = 0;
	while ((c = getc(ends->file)) != EOF) {
		if (n + 2 >= sizeof line) {
			if (!put(ends, line, n - 1))
				return false;
			line[0] = line[n - 1];
			n = 1;
		}
		if (c == '\n' && ends->back_to_lf && n && before == '\r')
			n--;
		if (c == '\n' && !ends->back_to_lf)
			line[n++] = '\r';
		line[n++] = (char)c;
		before = c;
	}
	return put(ends, line, n) && !ferror(ends->file);
}

static bool same_but_line_ends(const char *path, const struct np_manifest_file *file,
                               bool back_to_lf)
{
	struct np_digests digests;
	struct ends ends = {.file = fopen(path, "rbe"), .back_to_lf = back_to_lf};
	ends.hash = np_hash_new(false);
	bool same = ends.file && ends.hash && convert(&ends) && ends.bytes == file->size_bytes &&
	            np_hash_end(ends.hash, &digests) &&
	            strcmp(digests.sha256, file->digests.sha256) == 0;
	np_hash_free(ends.hash);
	if (ends.file)
		(void)fclose(ends.file);
	return same;
}

/* ── one file ── */

static enum verdict judge_content(const char *path, const struct np_manifest_file *file,
                                  struct judged *out)
{
	struct np_digests digests;
	if (out->size_bytes == file->size_bytes) {
		if (np_hash_file(path, false, &digests, NULL, &out->err) != NP_OK)
			return UNREADABLE;
		return strcmp(digests.sha256, file->digests.sha256) == 0 ? SAME : CORRUPT;
	}
	if (out->size_bytes > file->size_bytes && same_but_line_ends(path, file, true))
		return TO_CRLF;
	if (out->size_bytes < file->size_bytes && same_but_line_ends(path, file, false))
		return TO_LF;
	return CORRUPT;
}

static void judge(void *arg, size_t i)
{
	struct work *work = arg;
	struct judged *out = &work->judged[i];
	const struct np_manifest_file *file = &work->manifest->files.v[i];
	struct np_file_stat stat;
	struct np_arena arena;
	np_arena_init(&arena);
	const char *path = np_path_join(&arena, work->dir, file->path);
	out->verdict = UNREADABLE;
	if (!path) {
		(void)np_err_nomem(&out->err);
	} else if (np_file_stat(path, false, &stat, &out->err) == NP_OK) {
		out->size_bytes = stat.size_bytes;
		if (stat.kind == NP_FILE_NONE)
			out->verdict = MISSING;
		else if (stat.kind != NP_FILE_REG)
			(void)np_err_set(&out->err, NP_E_UNSUPPORTED, path, "no regular file");
		else
			out->verdict = judge_content(path, file, out);
	}
	np_arena_release(&arena);
	np_progress_step(work->progress);
}

/* ── the report ── */

static const struct np_column columns[] = {
	{"path", "", NP_COL_TEXT, "of the file, from the manifest"},
	{"verdict", "", NP_COL_TEXT, "same, missing, unreadable, corrupt, or only other line ends"},
	{"size_bytes", "bytes", NP_COL_BYTES, "in the manifest"},
	{"size_here_bytes", "bytes", NP_COL_BYTES, "here"},
};

static const char *const words[] = {
	[SAME] = NP_N("same"),
	[MISSING] = NP_N("missing"),
	[UNREADABLE] = NP_N("unreadable"),
	[CORRUPT] = NP_N("corrupt"),
	[TO_CRLF] = NP_N("CRLF for LF"),
	[TO_LF] = NP_N("LF for CRLF"),
};

/* One finding per kind of damage, with the files as its evidence. */
struct tell {
	struct np_finding *missing, *corrupt, *ends;
};

static struct np_finding *finding_of(struct tell *tell, struct np_report *report,
                                     enum verdict verdict)
{
	if (verdict == MISSING) {
		if (!tell->missing)
			tell->missing = np_report_finding(report, "MANIFEST_MISSING_FILE", NP_ERROR,
			                                  "files of the manifest are missing");
		return tell->missing;
	}
	if (verdict == TO_CRLF || verdict == TO_LF) {
		if (tell->ends)
			return tell->ends;
		tell->ends = np_report_finding(report, "MANIFEST_CRLF", NP_ERROR,
		                               "files were copied in text mode: only their line "
		                               "ends differ");
		np_finding_advice(tell->ends, "Copy them again in binary mode.");
		return tell->ends;
	}
	if (!tell->corrupt)
		tell->corrupt = np_report_finding(report, "MANIFEST_CORRUPT", NP_ERROR,
		                                  "files are not those of the manifest");
	return tell->corrupt;
}

static void tell_file(struct work *work, struct tell *tell, struct np_report *report, size_t i)
{
	const struct np_manifest_file *file = &work->manifest->files.v[i];
	const struct judged *judged = &work->judged[i];
	struct np_finding *finding = finding_of(tell, report, judged->verdict);
	if (judged->verdict == UNREADABLE)
		np_finding_evidence(finding, file->path, NULL, NULL, "%s", judged->err.msg);
	else if (judged->verdict == MISSING)
		np_finding_evidence(finding, file->path, NULL, NULL, "%llu bytes",
		                    (unsigned long long)file->size_bytes);
	else if (judged->size_bytes == file->size_bytes)
		np_finding_evidence(finding, file->path, NULL, NULL,
		                    "of the right size, but sha256 is not %.16s…",
		                    file->digests.sha256);
	else
		np_finding_evidence(finding, file->path, NULL, NULL, "%llu bytes, not %llu",
		                    (unsigned long long)judged->size_bytes,
		                    (unsigned long long)file->size_bytes);
}

static void repair(struct np_report *report, const struct work *work, struct tell *tell)
{
	struct np_finding *all[] = {tell->missing, tell->corrupt, tell->ends};
	for (size_t i = 0; *work->manifest->source && i < sizeof all / sizeof *all; i++)
		if (all[i])
			np_finding_command(all[i], "npuprof pull --force %s %s",
			                   np_shell_quote(report, work->manifest->source),
			                   np_shell_quote(report, work->dir));
}

/* ── files that the manifest does not know ── */

struct known {
	const struct np_manifest *manifest;
	struct np_finding *finding;
	struct np_report *report;
	size_t n;
};

static bool is_known(const struct known *known, const char *path)
{
	size_t low = 0, high = known->manifest->files.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(known->manifest->files.v[middle].path, path);
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static void tell_extra(struct known *known, const char *path)
{
	enum { SHOWN = 20 };
	if (!known->finding)
		known->finding = np_report_finding(known->report, "MANIFEST_EXTRA", NP_INFO,
		                                   "files that the manifest does not know");
	if (known->n++ < SHOWN)
		np_finding_evidence(known->finding, path, NULL, NULL, "not in the manifest");
}

static enum np_status look_for_extra(struct known *known, struct np_arena *arena, const char *dir,
                                     const char *below, unsigned depth, struct np_err *err)
{
	enum { MAX_DEPTH = 32 };
	struct np_dir list;
	NP_TRY(np_dir_list(arena, *below ? np_path_join(arena, dir, below) : dir, &list, err));
	for (size_t i = 0; i < list.n; i++) {
		const char *path =
			*below ? np_path_join(arena, below, list.v[i].name) : list.v[i].name;
		if (!path)
			return np_err_nomem(err);
		if (list.v[i].name[0] == '.' || strcmp(path, NP_MANIFEST_NAME) == 0)
			continue; /* ours: the manifest, the state of a transfer, a marker */
		if (list.v[i].kind == NP_FILE_DIR && depth < MAX_DEPTH)
			NP_TRY(look_for_extra(known, arena, dir, path, depth + 1, err));
		else if (list.v[i].kind != NP_FILE_DIR && !is_known(known, path))
			tell_extra(known, path);
	}
	return NP_OK;
}

static enum np_status report_all(struct work *work, struct np_report *report, struct np_err *err)
{
	struct np_table *table = NP_REPORT_TABLE(report, "verified", "Verified", columns);
	struct known known = {.manifest = work->manifest, .report = report};
	struct tell tell = {0};
	uint64_t bytes = 0;
	size_t bad = 0;
	for (size_t i = 0; i < work->manifest->files.n; i++) {
		const struct np_manifest_file *file = &work->manifest->files.v[i];
		const struct judged *judged = &work->judged[i];
		bytes += file->size_bytes;
		if (judged->verdict == SAME)
			continue;
		bad++;
		np_cell_cstr(table, file->path);
		np_cell_word(table, words[judged->verdict]);
		np_cell_int(table, (int64_t)file->size_bytes);
		if (judged->verdict == MISSING)
			np_cell_na(table);
		else
			np_cell_int(table, (int64_t)judged->size_bytes);
		tell_file(work, &tell, report, i);
	}
	repair(report, work, &tell);
	struct np_arena arena;
	np_arena_init(&arena);
	enum np_status status = look_for_extra(&known, &arena, work->dir, "", 0, err);
	np_arena_release(&arena);
	np_report_note(report, "%zu of %zu files of the manifest are as they were (%llu bytes)",
	               work->manifest->files.n - bad, work->manifest->files.n,
	               (unsigned long long)bytes);
	report->verdict = bad ? NP_VERDICT_FAIL : NP_VERDICT_PASS;
	report->exit_code = bad ? 1 : 0;
	return status;
}

enum np_status np_manifest_verify(const char *dir, unsigned threads, struct np_progress *progress,
                                  struct np_report *report, struct np_err *err)
{
	struct np_manifest manifest;
	np_manifest_init(&manifest);
	enum np_status status = np_manifest_read(&manifest, dir, err);
	struct work work = {.manifest = &manifest, .dir = dir, .progress = progress};
	if (status == NP_OK) {
		work.judged =
			np_calloc(manifest.files.n ? manifest.files.n : 1, sizeof *work.judged);
		status = work.judged ? NP_OK : np_err_nomem(err);
	}
	if (status == NP_OK) {
		np_report_input(report, dir);
		np_progress_begin(progress, "verifying files", manifest.files.n);
		np_pool_run(threads, manifest.files.n, judge, &work);
		status = report_all(&work, report, err);
	}
	np_free(work.judged);
	np_manifest_release(&manifest);
	return status;
}
