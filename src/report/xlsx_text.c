#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#include "report/write.h"
#include "report/xlsx.h"

/* ── texts ── */

/* A character, or a byte that is none (code -1). */
static size_t character_at(np_str text, size_t at, int32_t *code)
{
	size_t left = text.len - at;
	utf8proc_ssize_t bytes = utf8proc_iterate((const utf8proc_uint8_t *)text.ptr + at,
	                                          left > 4 ? 4 : (utf8proc_ssize_t)left, code);
	if (bytes > 0)
		return (size_t)bytes;
	*code = -1;
	return 1;
}

static size_t utf16_units(int32_t code)
{
	return code >= 0x10000 ? 2 : 1;
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

/* "_x0041_" */
static bool is_escape(np_str text, size_t at)
{
	if (text.len - at < 7 || text.ptr[at] != '_' || text.ptr[at + 1] != 'x' ||
	    text.ptr[at + 6] != '_')
		return false;
	for (size_t i = at + 2; i < at + 6; i++)
		if (!is_hex(text.ptr[i]))
			return false;
	return true;
}

static bool is_plain(np_str text, size_t max_units)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char byte = (unsigned char)text.ptr[i];
		if (byte < 0x20 || byte >= 0x7f || is_escape(text, i))
			return false;
	}
	return text.len <= max_units;
}

/* What XML 1.0 has no place for, or what a terminal would obey. */
static bool is_harmful(int32_t code)
{
	if (code == '\t' || code == '\n')
		return false;
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xfffe || code == 0xffff;
}

/* The units that were added. */
static size_t add_character(struct np_buf *out, np_str text, size_t at, size_t bytes, int32_t code)
{
	size_t start = out->len;
	if (code == '\r' && at + 1 < text.len && text.ptr[at + 1] == '\n')
		return 0;
	if (is_escape(text, at)) {
		np_buf_add_cstr(out, "_x005F_");
	} else if (code >= 0xfffe && code <= 0xffff) {
		np_buf_printf(out, "\\u%04x", (unsigned)code);
	} else if (is_harmful(code)) {
		np_text_safe(out, np_str_sub(text, at, bytes));
	} else {
		np_buf_add(out, text.ptr + at, bytes);
		return utf16_units(code);
	}
	return out->len - start;
}

void np_xlsx_text(struct np_buf *out, np_str text, size_t max_units)
{
	if (is_plain(text, max_units)) {
		np_buf_add_str(out, text);
		return;
	}
	size_t units = 0, kept = out->len;
	for (size_t at = 0; at < text.len && !out->failed;) {
		int32_t code;
		size_t bytes = character_at(text, at, &code);
		units += add_character(out, text, at, bytes, code);
		at += bytes;
		if (units > max_units) {
			out->len = kept;
			np_buf_add_cstr(out, "…");
			return;
		}
		if (units < max_units) /* leaves room for the ellipsis */
			kept = out->len;
	}
}

/* ── names of sheets ── */

void np_xlsx_names_release(struct np_xlsx_names *self)
{
	np_vec_release(&self->folded);
	np_arena_release(&self->arena);
}

/* Without what a name may not have, cut to max_units. */
static void add_name(struct np_buf *out, np_str wanted, size_t max_units)
{
	size_t units = 0;
	for (size_t at = 0; at < wanted.len;) {
		int32_t code;
		size_t bytes = character_at(wanted, at, &code);
		units += utf16_units(code);
		if (units > max_units)
			return;
		bool bad = is_harmful(code) || code == '\t' || code == '\n' ||
		           (code < 0x80 && strchr("[]:*?/\\'", code));
		if (bad)
			np_buf_add_char(out, '_');
		else
			np_buf_add(out, wanted.ptr + at, bytes);
		at += bytes;
	}
}

static void fold(struct np_buf *out, np_str name)
{
	for (size_t at = 0; at < name.len;) {
		int32_t code;
		utf8proc_uint8_t lower[4];
		at += character_at(name, at, &code);
		utf8proc_ssize_t bytes = utf8proc_encode_char(utf8proc_tolower(code), lower);
		np_buf_add(out, lower, bytes > 0 ? (size_t)bytes : 0);
	}
}

static bool is_taken(const struct np_xlsx_names *self, np_str folded)
{
	if (np_str_is(folded, "history")) /* reserved */
		return true;
	for (size_t i = 0; i < self->folded.n; i++)
		if (np_str_is(folded, self->folded.v[i]))
			return true;
	return false;
}

/* wanted, or wanted~2, wanted~3, … */
static void try_name(struct np_buf *name, np_str wanted, size_t number)
{
	struct np_buf suffix = {0};
	if (number > 1)
		np_buf_printf(&suffix, "~%zu", number);
	add_name(name, wanted, NP_XLSX_NAME_CHARS - suffix.len);
	np_buf_add_str(name, np_buf_str(&suffix));
	name->failed |= suffix.failed;
	np_buf_release(&suffix);
}

const char *np_xlsx_name(struct np_xlsx_names *self, const char *wanted)
{
	struct np_buf name = {0}, folded = {0};
	np_str text = np_str_trim(np_str_of(wanted));
	const char *made = NULL;
	if (text.len == 0)
		text = NP_STR("Sheet");
	for (size_t number = 1;; number++) {
		np_buf_clear(&name);
		np_buf_clear(&folded);
		try_name(&name, text, number);
		fold(&folded, np_buf_str(&name));
		if (name.failed || folded.failed)
			break;
		if (is_taken(self, np_buf_str(&folded)))
			continue;
		made = np_arena_cstr(&self->arena, np_buf_str(&name));
		const char *mine = np_arena_cstr(&self->arena, np_buf_str(&folded));
		if (!mine || !np_vec_push(&self->folded, mine))
			made = NULL;
		break;
	}
	np_buf_release(&name);
	np_buf_release(&folded);
	return made;
}

bool np_xlsx_name_is_ambiguous(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t len = strlen(name), n_letters = strspn(name, letters);
	for (size_t i = 0; i < len; i++)
		if (!strchr(letters, name[i]) && !strchr("0123456789_.", name[i]))
			return false; /* is quoted */
	if (n_letters == 0)           /* "2024", ".5"; "_" begins a word */
		return name[0] != '_';
	if (n_letters == len) /* R and C stand for this row and this column */
		return strcasecmp(name, "r") == 0 || strcasecmp(name, "c") == 0 ||
		       strcasecmp(name, "rc") == 0 || strcasecmp(name, "true") == 0 ||
		       strcasecmp(name, "false") == 0;
	return n_letters <= 3; /* "A1", "R1C1", "TOP10" */
}
