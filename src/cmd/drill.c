#include "cmd/drill.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "collect/manifest.h"

enum { MAX_RANKS = 8, PATH_BYTES = 4096 };

struct drill {
	int64_t ranks[MAX_RANKS]; /* in order of their blame */
	size_t n;
};

static void add(struct drill *self, int64_t rank)
{
	for (size_t i = 0; i < self->n; i++)
		if (self->ranks[i] == rank)
			return;
	if (self->n < MAX_RANKS)
		self->ranks[self->n++] = rank;
}

static size_t column_of(const struct np_table *table, const char *name)
{
	size_t i = 0;
	while (i < table->n_columns && strcmp(table->columns[i].name, name) != 0)
		i++;
	return i;
}

/* SlowRank: all; diagnose_causes: what is accused, not what is below the noise. */
static void take_table(struct drill *self, const struct np_table *table)
{
	bool causes = strcmp(table->id, "diagnose_causes") == 0;
	if (!causes && strcmp(table->id, "SlowRank") != 0)
		return;
	size_t rank = column_of(table, causes ? "rank" : "rankId");
	size_t verdict = column_of(table, "verdict");
	for (size_t row = 0; row < np_table_rows(table); row++) {
		const struct np_cell *cell = np_table_cell(table, row, rank);
		const struct np_cell *judged = np_table_cell(table, row, verdict);
		if (!cell->na && (!causes || np_str_is(judged->s, "accused")))
			add(self, cell->i);
	}
}

static const struct np_capture *capture_of(const struct np_captures *all, int64_t rank)
{
	for (size_t i = 0; i < all->captures.n; i++)
		if (all->captures.v[i]->rank == rank)
			return all->captures.v[i];
	return NULL;
}

/* The directory of the nearest manifest, at `root` or below; false without one. */
static bool find_manifest(const struct np_capture *capture, const char *root, char *out)
{
	struct np_file_stat stat;
	char path[PATH_BYTES + 64];
	if (!capture || snprintf(out, PATH_BYTES, "%s", capture->path) >= PATH_BYTES)
		return false;
	for (;;) {
		(void)snprintf(path, sizeof path, "%s/%s", out, NP_MANIFEST_NAME);
		if (np_file_stat(path, true, &stat, NULL) == NP_OK && stat.kind == NP_FILE_REG)
			return true;
		char *slash = strrchr(out, '/');
		if (!slash || strlen(out) <= strlen(root))
			return false;
		*slash = '\0';
	}
}

static void note(const char *dir, const char *ranks, struct np_report *report)
{
	struct np_manifest manifest;
	np_manifest_init(&manifest);
	if (np_manifest_read(&manifest, dir, NULL) == NP_OK && *manifest.source) {
		const char *dest = np_arena_printf(&report->arena, "%s-drill", dir);
		np_report_note(report,
		               "all of the ranks that stand out: npuprof pull %s %s --ranks %s",
		               np_shell_quote(report, manifest.source),
		               np_shell_quote(report, dest ? dest : dir), ranks);
	}
	np_manifest_release(&manifest);
}

void np_drill_note(const struct np_captures *all, const char *root, struct np_report *report)
{
	struct drill self = {.n = 0};
	bool told[MAX_RANKS] = {false};
	for (size_t i = 0; i < report->tables.n; i++)
		take_table(&self, report->tables.v[i]);
	for (size_t i = 0; i < self.n; i++) {
		char dir[PATH_BYTES], other[PATH_BYTES];
		struct np_buf ranks = {0};
		if (told[i] || !find_manifest(capture_of(all, self.ranks[i]), root, dir))
			continue;
		for (size_t k = i; k < self.n; k++) {
			if (!find_manifest(capture_of(all, self.ranks[k]), root, other) ||
			    strcmp(dir, other) != 0)
				continue;
			told[k] = true;
			np_buf_printf(&ranks, "%s%lld", ranks.len ? "," : "",
			              (long long)self.ranks[k]);
		}
		if (!ranks.failed)
			note(dir, ranks.ptr, report);
		np_buf_release(&ranks);
	}
}
