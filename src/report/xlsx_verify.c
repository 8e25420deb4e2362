#include <archive.h>
#include <archive_entry.h>
#include <string.h>

#include "report/xlsx.h"

/* What is counted in one part. */
struct part {
	char token[3]; /* "<c " or "<si": how a cell and a shared string begin */
	char last[3];  /* the bytes before this one */
	uint64_t tokens, opened, closed;
	char end; /* last byte that is no line break */
};

static void look(struct part *self, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = bytes[i];
		self->last[0] = self->last[1];
		self->last[1] = self->last[2];
		self->last[2] = c;
		self->opened += c == '<';
		self->closed += c == '>';
		if (c != '\n')
			self->end = c;
		if (c == self->token[2] && memcmp(self->last, self->token, 3) == 0)
			self->tokens++;
	}
}

/* ARCHIVE_EOF: the part is read, and whole. */
static int read_part(struct archive *archive, struct part *part)
{
	int code;
	const void *bytes;
	size_t n;
	la_int64_t offset;
	while ((code = archive_read_data_block(archive, &bytes, &n, &offset)) == ARCHIVE_OK)
		look(part, bytes, n);
	if (code == ARCHIVE_EOF && (part->opened != part->closed || part->end != '>'))
		return ARCHIVE_FAILED;
	return code;
}

/* The cells and strings of all parts; false: something is broken. */
static bool count_all(struct archive *archive, uint64_t *cells, uint64_t *strings)
{
	struct archive_entry *entry;
	int code;
	while ((code = archive_read_next_header(archive, &entry)) == ARCHIVE_OK) {
		const char *name = archive_entry_pathname(entry);
		struct part part = {.token = {'<', 'c', ' '}};
		bool is_strings = name && strcmp(name, "xl/sharedStrings.xml") == 0;
		if (is_strings)
			memcpy(part.token, "<si", 3);
		if (read_part(archive, &part) != ARCHIVE_EOF)
			return false;
		if (is_strings)
			*strings += part.tokens;
		else if (name && strncmp(name, "xl/worksheets/sheet", 19) == 0)
			*cells += part.tokens;
	}
	return code == ARCHIVE_EOF;
}

enum np_status np_xlsx_verify(const char *file, const char *path, uint64_t cells, uint64_t strings,
                              struct np_err *err)
{
	uint64_t found_cells = 0, found_strings = 0;
	struct archive *archive = archive_read_new();
	if (!archive)
		return np_err_nomem(err);
	bool whole = archive_read_support_format_zip(archive) == ARCHIVE_OK &&
	             archive_read_open_filename(archive, file, 1 << 16) == ARCHIVE_OK &&
	             count_all(archive, &found_cells, &found_strings);
	(void)archive_read_free(archive);
	if (whole && found_cells == cells && found_strings == strings)
		return NP_OK;
	return np_err_set(err, NP_E_IO, path,
	                  "the workbook could not be written; is the disk full, or the directory "
	                  "of temporary files?");
}
