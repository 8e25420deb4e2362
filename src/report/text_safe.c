#include <string.h>
#include <utf8proc.h>

#include "report/write.h"
#include "report/writer.h"

/* One step through text: a character, or a byte that is none. */
struct glyph {
	unsigned bytes;
	unsigned columns; /* as shown, escapes included */
	bool escape;
	int32_t code; /* -1: an invalid byte */
};

/* Characters that reorder or break what stands around them. */
static bool reorders(int32_t code)
{
	return code == 0x061c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

static struct glyph glyph_at(np_str text, size_t at)
{
	unsigned char byte = (unsigned char)text.ptr[at];
	if (byte >= 0x20 && byte < 0x7f)
		return (struct glyph){1, 1, false, byte};
	if (byte < 0x80)
		return (struct glyph){1, byte == '\n' || byte == '\r' || byte == '\t' ? 2 : 4, true,
		                      byte};
	size_t left = text.len - at;
	int32_t code = -1;
	utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text.ptr + at,
	                                          left > 4 ? 4 : (utf8proc_ssize_t)left, &code);
	if (bytes <= 0 || code < 0)
		return (struct glyph){1, 4, true, -1};
	if (code < 0xa0 || reorders(code))
		return (struct glyph){(unsigned)bytes, 6, true, code};
	return (struct glyph){(unsigned)bytes, (unsigned)utf8proc_charwidth(code), false, code};
}

static void add_escape(struct np_buf *out, struct glyph glyph, char byte)
{
	if (glyph.code == '\n')
		np_buf_add_cstr(out, "\\n");
	else if (glyph.code == '\r')
		np_buf_add_cstr(out, "\\r");
	else if (glyph.code == '\t')
		np_buf_add_cstr(out, "\\t");
	else if (glyph.bytes == 1)
		np_buf_printf(out, "\\x%02x", (unsigned)(unsigned char)byte);
	else
		np_buf_printf(out, "\\u%04x", (unsigned)glyph.code);
}

void np_text_safe(struct np_buf *out, np_str text)
{
	size_t done = 0;
	for (size_t at = 0; at < text.len;) {
		struct glyph glyph = glyph_at(text, at);
		if (glyph.escape) {
			np_buf_add(out, text.ptr + done, at - done);
			add_escape(out, glyph, text.ptr[at]);
			done = at + glyph.bytes;
		}
		at += glyph.bytes;
	}
	if (done < text.len)
		np_buf_add(out, text.ptr + done, text.len - done);
}

size_t np_text_width(np_str text)
{
	size_t columns = 0;
	for (size_t at = 0; at < text.len;) {
		struct glyph glyph = glyph_at(text, at);
		columns += glyph.columns;
		at += glyph.bytes;
	}
	return columns;
}

size_t np_text_cut(struct np_buf *out, np_str text, size_t width)
{
	size_t columns = 0, kept = 0, kept_columns = 0;
	for (size_t at = 0; at < text.len;) {
		struct glyph glyph = glyph_at(text, at);
		at += glyph.bytes;
		columns += glyph.columns;
		if (columns > width) {
			np_text_safe(out, np_str_sub(text, 0, kept));
			if (width > 0)
				np_buf_add_cstr(out, "…");
			return kept_columns + (width > 0);
		}
		if (columns < width) { /* leaves room for the ellipsis */
			kept = at;
			kept_columns = columns;
		}
	}
	np_text_safe(out, text);
	return columns;
}

/* ── wrapping ── */

void np_write_blanks(struct np_buf *out, size_t n)
{
	if (!np_buf_reserve(out, n) || n == 0)
		return;
	memset(out->ptr + out->len, ' ', n);
	out->len += n;
	out->ptr[out->len] = '\0';
}

/* Closing punctuation that may not begin a line in Chinese text. */
static bool closes(int32_t code)
{
	static const int32_t marks[] = {0x3001, 0x3002, 0x300b, 0x300d, 0x300f, 0x3011,
	                                0xff01, 0xff09, 0xff0c, 0xff1a, 0xff1b, 0xff1f};
	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
		if (marks[i] == code)
			return true;
	return false;
}

/* The end of the word that begins at `at`: up to a blank, or to where a wide
 * character meets any other (there is no blank between Chinese words). */
static size_t word_end(np_str text, size_t at, size_t *columns)
{
	struct glyph before = glyph_at(text, at);
	*columns = before.columns;
	for (at += before.bytes; at < text.len;) {
		struct glyph glyph = glyph_at(text, at);
		bool wide = !before.escape && !glyph.escape &&
		            (before.columns == 2 || glyph.columns == 2);
		if (glyph.code == ' ' || (wide && !closes(glyph.code) && glyph.columns > 0))
			break;
		*columns += glyph.columns;
		at += glyph.bytes;
		if (glyph.columns > 0)
			before = glyph;
	}
	return at;
}

void np_write_trim(struct np_buf *out, size_t from)
{
	while (out->len > from && out->ptr[out->len - 1] == ' ')
		out->ptr[--out->len] = '\0';
}

void np_text_wrap(struct np_buf *out, np_str text, size_t column, size_t indent, size_t width)
{
	enum { NARROWEST = 20 };
	if (width && width < indent + NARROWEST)
		width = indent + NARROWEST;
	bool begun = column > indent;
	for (size_t at = 0; at < text.len;) {
		size_t blanks = at, columns = 0;
		while (at < text.len && text.ptr[at] == ' ')
			at++;
		blanks = at - blanks;
		if (at == text.len)
			break;
		size_t end = word_end(text, at, &columns);
		if (width && begun && column + blanks + columns > width) {
			np_write_trim(out, 0); /* those of the lead */
			np_buf_add_char(out, '\n');
			np_write_blanks(out, indent);
			column = indent;
		} else {
			np_write_blanks(out, blanks);
			column += blanks;
		}
		np_text_safe(out, np_str_sub(text, at, end - at));
		column += columns;
		begun = true;
		at = end;
	}
}
