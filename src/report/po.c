/*
 * Reading GNU gettext's catalogues, as much of them as we write:
 *
 *   # comment
 *   msgctxt "column"          optional
 *   msgid "first part "
 *   "second part\n"
 *   msgstr "…"
 */
#include <string.h>

#include "report/lang.h"

enum part { CONTEXT, ID, TEXT, N_PARTS };

struct reader {
	struct np_buf parts[N_PARTS];
	int last; /* the part that continuation lines belong to, -1: none */
	bool (*entry)(void *to, np_str context, np_str id, np_str text);
	void *to;
};

/* Append what stands between the quotes of a line; false when it is malformed. */
static bool add_quoted(struct np_buf *out, np_str line)
{
	line = np_str_trim(line);
	if (line.len < 2 || line.ptr[0] != '"' || line.ptr[line.len - 1] != '"')
		return false;
	for (size_t i = 1; i + 1 < line.len; i++) {
		char c = line.ptr[i];
		if (c == '\\') {
			static const char from[] = "nt\"\\", to[] = "\n\t\"\\";
			const char *known = memchr(from, line.ptr[++i], sizeof from - 1);
			if (!known || i + 1 == line.len)
				return false;
			c = to[known - from];
		}
		np_buf_add_char(out, c);
	}
	return true;
}

static void forget(struct reader *self)
{
	for (int i = 0; i < N_PARTS; i++)
		np_buf_clear(&self->parts[i]);
	self->last = -1;
}

static bool finish(struct reader *self)
{
	bool ok = true;
	const struct np_buf *parts = self->parts;
	for (int i = 0; i < N_PARTS; i++)
		ok = ok && !parts[i].failed;
	if (ok && self->last == TEXT && parts[TEXT].len)
		ok = self->entry(self->to, np_buf_str(&parts[CONTEXT]), np_buf_str(&parts[ID]),
		                 np_buf_str(&parts[TEXT]));
	forget(self);
	return ok;
}

static bool take_line(struct reader *self, np_str line)
{
	static const struct {
		np_str word;
		int part;
	} words[] = {{{"msgctxt ", 8}, CONTEXT}, {{"msgid ", 6}, ID}, {{"msgstr ", 7}, TEXT}};
	line = np_str_trim(line);
	if (line.len == 0 || line.ptr[0] == '#')
		return true;
	np_str rest = line;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!np_str_starts(line, words[i].word))
			continue;
		if (words[i].part <= self->last && !finish(self)) /* a new entry begins */
			return false;
		self->last = words[i].part;
		rest = np_str_from(line, words[i].word.len);
	}
	if (self->last >= 0 && !add_quoted(&self->parts[self->last], rest))
		forget(self); /* malformed: the entry is left out */
	return true;
}

bool np_po_read(np_str po, bool (*entry)(void *to, np_str context, np_str id, np_str text),
                void *to)
{
	struct reader self = {.last = -1, .entry = entry, .to = to};
	bool ok = true;
	while (ok && po.len) {
		np_str line = np_str_cut(po, '\n', &po);
		ok = take_line(&self, line);
	}
	ok = ok && finish(&self);
	for (int i = 0; i < N_PARTS; i++)
		np_buf_release(&self.parts[i]);
	return ok;
}
