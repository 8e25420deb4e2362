#include "io/json_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ── repairs ────────────────────────────────────────────────────────────────── */

static const struct {
	size_t at; /* in struct np_json_repairs */
	const char *one, *many;
} repair_texts[] = {
#define R(field, one, many)                                        \
	{                                                          \
		offsetof(struct np_json_repairs, field), one, many \
	}
	R(trailing_comma, "trailing comma", "trailing commas"),
	R(unclosed, "container never closed", "containers never closed"),
	R(control_char, "control character in a string", "control characters in strings"),
	R(bad_utf8, "invalid UTF-8 sequence", "invalid UTF-8 sequences"),
	R(bad_escape, "invalid escape", "invalid escapes"),
	R(bad_number, "number outside the grammar", "numbers outside the grammar"),
	R(comment, "comment", "comments"),
	R(trailing_bytes, "byte behind the end", "bytes behind the end"),
	R(bom, "byte order mark", "byte order marks"),
#undef R
};

enum { N_REPAIRS = sizeof repair_texts / sizeof *repair_texts };
_Static_assert(N_REPAIRS * sizeof(struct np_json_repair) == sizeof(struct np_json_repairs),
               "every repair has its text");

static const struct np_json_repair *repair_at(const struct np_json_repairs *repairs, size_t i)
{
	const char *base = (const char *)repairs;
	return (const struct np_json_repair *)(const void *)(base + repair_texts[i].at);
}

void np_json_repair_add(struct np_json_repair *repair, uint64_t offset, uint64_t count)
{
	if (repair->count == 0)
		repair->first_offset = offset;
	repair->count += count;
}

uint64_t np_json_repairs_total(const struct np_json_repairs *repairs)
{
	uint64_t total = 0;
	for (size_t i = 0; i < N_REPAIRS; i++)
		total += repair_at(repairs, i)->count;
	return total;
}

void np_json_repairs_describe(const struct np_json_repairs *repairs, struct np_buf *out)
{
	const char *between = "";
	for (size_t i = 0; i < N_REPAIRS; i++) {
		const struct np_json_repair *repair = repair_at(repairs, i);
		if (repair->count == 0)
			continue;
		bool one = repair->count == 1;
		np_buf_printf(out, "%s%llu %s (%sbyte %llu)", between,
		              (unsigned long long)repair->count,
		              one ? repair_texts[i].one : repair_texts[i].many,
		              one ? "" : "first at ", (unsigned long long)repair->first_offset);
		between = ", ";
	}
}

/* ── strings ────────────────────────────────────────────────────────────────── */

/*
 * Length of the UTF-8 sequence at the start of `text` (not empty, first byte >=
 * 0x80); *valid false: of the part that could have begun one, at least 1.
 * The ranges of the second byte shut out overlong forms, surrogates and what is
 * above U+10FFFF (Unicode, table 3-7).
 */
static size_t utf8_sequence(np_str text, bool *valid)
{
	const unsigned char *p = (const unsigned char *)text.ptr;
	unsigned char low = 0x80, high = 0xbf;
	size_t len = p[0] < 0xc2 || p[0] > 0xf4 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	*valid = false;
	if (len == 0)
		return 1;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	for (size_t i = 1; i < len; i++) {
		if (i >= text.len || p[i] < low || p[i] > high)
			return i;
		low = 0x80;
		high = 0xbf;
	}
	*valid = true;
	return len;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The four digits of `\uXXXX`, text at the backslash; -1 when they aren't. */
static int32_t hex4(np_str text)
{
	int32_t value = 0;
	if (text.len < 6 || text.ptr[0] != '\\' || text.ptr[1] != 'u')
		return -1;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_digit(text.ptr[i]);
		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* One escape, text at its backslash. */
struct escape {
	size_t len;          /* bytes of input it takes */
	uint32_t code_point; /* its value */
	bool valid;
};

static struct escape read_escape(np_str text)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (text.len < 2)
		return (struct escape){1, '\\', false};
	const char *known = memchr(from, text.ptr[1], sizeof from - 1);
	if (known)
		return (struct escape){2, (uint32_t)to[known - from], true};
	int32_t unit = hex4(text);
	if (unit < 0) /* the character behind the backslash, all of it, is read as text */
		return (struct escape){1, UINT32_MAX, false};
	if (unit < 0xd800 || unit > 0xdfff)
		return (struct escape){6, (uint32_t)unit, true};
	int32_t second = unit < 0xdc00 ? hex4(np_str_from(text, 6)) : -1;
	if (second < 0xdc00 || second > 0xdfff)
		return (struct escape){6, 0xfffd, false};
	return (struct escape){
		12, 0x10000u + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(second - 0xdc00),
		true};
}

/* How many bytes from the start are printable ASCII other than a backslash.
 * Eight at a time: a borrow or the top bit marks the bytes that aren't. */
static size_t plain_run(np_str text)
{
	const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
	size_t i = 0;
	for (; i + 8 <= text.len; i += 8) {
		uint64_t word;
		memcpy(&word, text.ptr + i, 8);
		uint64_t slash = word ^ (ones * '\\');
		if ((word | (word - ones * 0x20) | (slash - ones)) & tops)
			break;
	}
	while (i < text.len && (unsigned char)text.ptr[i] >= 0x20 &&
	       (unsigned char)text.ptr[i] < 0x80 && text.ptr[i] != '\\')
		i++;
	return i;
}

void np_json_check_string(np_str text, uint64_t offset, struct np_json_repairs *repairs,
                          bool *escaped)
{
	*escaped = false;
	size_t i = plain_run(text);
	while (i < text.len) {
		unsigned char c = (unsigned char)text.ptr[i];
		if (c == '\\') {
			struct escape escape = read_escape(np_str_from(text, i));
			*escaped = true;
			if (!escape.valid)
				np_json_repair_add(&repairs->bad_escape, offset + i, 1);
			i += escape.len;
		} else if (c >= 0x80) {
			bool valid;
			size_t len = utf8_sequence(np_str_from(text, i), &valid);
			if (!valid)
				np_json_repair_add(&repairs->bad_utf8, offset + i, 1);
			i += len;
		} else {
			if (c < 0x20)
				np_json_repair_add(&repairs->control_char, offset + i, 1);
			i++;
		}
		if (i < text.len && text.ptr[i] != '\\')
			i += plain_run(np_str_from(text, i));
	}
}

static void add_code_point(struct np_buf *out, uint32_t c)
{
	char bytes[4];
	size_t len = 0;
	if (c < 0x80) {
		bytes[len++] = (char)c;
	} else if (c < 0x800) {
		bytes[len++] = (char)(0xc0 | c >> 6);
		bytes[len++] = (char)(0x80 | (c & 0x3f));
	} else {
		if (c < 0x10000) {
			bytes[len++] = (char)(0xe0 | c >> 12);
		} else {
			bytes[len++] = (char)(0xf0 | c >> 18);
			bytes[len++] = (char)(0x80 | (c >> 12 & 0x3f));
		}
		bytes[len++] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[len++] = (char)(0x80 | (c & 0x3f));
	}
	np_buf_add(out, bytes, len);
}

/* Length of the bytes from the start that are their own value: no backslash, valid UTF-8. */
static size_t literal_run(np_str raw)
{
	size_t i = 0;
	while (i < raw.len && raw.ptr[i] != '\\') {
		size_t len = 1;
		bool valid = true;
		if ((unsigned char)raw.ptr[i] >= 0x80)
			len = utf8_sequence(np_str_from(raw, i), &valid);
		else
			len = plain_run(np_str_from(raw, i));
		if (!valid)
			break;
		i += len ? len : 1; /* a control byte stands for itself */
	}
	return i;
}

np_str np_json_unescape(np_str raw, struct np_buf *scratch)
{
	size_t at = literal_run(raw);
	if (at == raw.len)
		return raw;
	np_buf_clear(scratch);
	np_buf_add(scratch, raw.ptr, at);
	while (at < raw.len) {
		np_str rest = np_str_from(raw, at);
		if (rest.ptr[0] == '\\') {
			struct escape escape = read_escape(rest);
			if (escape.code_point != UINT32_MAX)
				add_code_point(scratch, escape.code_point);
			at += escape.len;
		} else {
			bool valid;
			at += utf8_sequence(rest, &valid);
			add_code_point(scratch, 0xfffd);
		}
		/* behind a refused escape comes its character, also when that is a digit or `x` */
		size_t run = literal_run(np_str_from(raw, at));
		if (run)
			np_buf_add(scratch, raw.ptr + at, run);
		at += run;
	}
	return np_buf_str(scratch);
}

/* ── numbers ────────────────────────────────────────────────────────────────── */

static size_t digit_run(np_str text)
{
	size_t i = 0;
	for (; i + 8 <= text.len; i += 8) {
		uint64_t word;
		memcpy(&word, text.ptr + i, 8);
		/* digits are 0x30…0x39: the high nibble is 3 before and after adding 6 */
		uint64_t sixes = word + 0x0606060606060606u;
		if ((word & 0xf0f0f0f0f0f0f0f0u) != 0x3030303030303030u ||
		    (sixes & 0xf0f0f0f0f0f0f0f0u) != 0x3030303030303030u)
			break;
	}
	while (i < text.len && (unsigned)(text.ptr[i] - '0') < 10)
		i++;
	return i;
}

static bool at_char(np_str text, size_t i, char a, char b)
{
	return i < text.len && (text.ptr[i] == a || text.ptr[i] == b);
}

enum np_json_numeric np_json_check_number(np_str text)
{
	enum np_json_numeric verdict = NP_JSON_NUMERIC_OK;
	size_t i = at_char(text, 0, '-', '+');
	if (i && text.ptr[0] == '+')
		verdict = NP_JSON_NUMERIC_REPAIR;
	np_str body = np_str_from(text, i);
	size_t digits = digit_run(body);
	if (digits == 0)
		return np_str_is(body, "NaN") || np_str_is(body, "Infinity")
		               ? NP_JSON_NUMERIC_REPAIR
		               : NP_JSON_NUMERIC_BAD;
	if (digits > 1 && body.ptr[0] == '0')
		verdict = NP_JSON_NUMERIC_REPAIR;
	i += digits;
	if (at_char(text, i, '.', '.')) {
		digits = digit_run(np_str_from(text, i + 1));
		if (digits == 0)
			return NP_JSON_NUMERIC_BAD;
		i += 1 + digits;
	}
	if (at_char(text, i, 'e', 'E')) {
		i += 1u + at_char(text, i + 1, '-', '+');
		digits = digit_run(np_str_from(text, i));
		if (digits == 0)
			return NP_JSON_NUMERIC_BAD;
		i += digits;
	}
	return i == text.len ? verdict : NP_JSON_NUMERIC_BAD;
}

bool np_json_is_unfinished(np_str text)
{
	static const char *const words[] = {"true", "false", "null", "NaN", "Infinity"};
	np_str body = np_str_from(text, at_char(text, 0, '-', '+'));
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (np_str_starts(np_str_of(words[i]), body))
			return body.len < strlen(words[i]);
	/* a number that only lacks digits: "12." "1e" "1e+" */
	char whole[64];
	if (body.len + 2 > sizeof whole)
		return false;
	memcpy(whole, body.ptr, body.len);
	whole[body.len] = '0';
	return np_json_check_number(body) == NP_JSON_NUMERIC_BAD &&
	       np_json_check_number((np_str){whole, body.len + 1}) != NP_JSON_NUMERIC_BAD;
}

/* ── writing ────────────────────────────────────────────────────────────────── */

/* Bytes that stand for themselves in a quoted string, also inside HTML. */
static bool quotes_itself(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

static void quote_ascii(struct np_buf *out, char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *known = memchr(from, c, sizeof from - 1);
	if (known) {
		np_buf_add_char(out, '\\');
		np_buf_add_char(out, to[known - from]);
	} else {
		np_buf_printf(out, "\\u%04x", (unsigned)(unsigned char)c);
	}
}

static void quote_sequence(struct np_buf *out, np_str bytes, bool valid)
{
	if (!valid)
		np_buf_add_cstr(out, "\xef\xbf\xbd");
	else if (bytes.len == 3 && memcmp(bytes.ptr, "\xe2\x80\xa8", 3) == 0)
		np_buf_add_cstr(out, "\\u2028");
	else if (bytes.len == 3 && memcmp(bytes.ptr, "\xe2\x80\xa9", 3) == 0)
		np_buf_add_cstr(out, "\\u2029");
	else
		np_buf_add_str(out, bytes);
}

void np_json_quote(struct np_buf *out, np_str text)
{
	np_buf_add_char(out, '"');
	for (size_t i = 0; i < text.len;) {
		size_t run = 0;
		while (i + run < text.len && quotes_itself((unsigned char)text.ptr[i + run]))
			run++;
		if (run) {
			np_buf_add(out, text.ptr + i, run);
			i += run;
		} else if ((unsigned char)text.ptr[i] < 0x80) {
			quote_ascii(out, text.ptr[i++]);
		} else {
			bool valid;
			size_t len = utf8_sequence(np_str_from(text, i), &valid);
			quote_sequence(out, np_str_sub(text, i, len), valid);
			i += len;
		}
	}
	np_buf_add_char(out, '"');
}

void np_json_number(struct np_buf *out, double value)
{
	if (!isfinite(value)) {
		np_buf_add_cstr(out, "null");
		return;
	}
	char text[40];
	for (int digits = 15; digits <= 17; digits++) {
		(void)snprintf(text, sizeof text, "%.*g", digits, value);
		for (char *comma = text; *comma; comma++) /* of the locale */
			if (*comma == ',')
				*comma = '.';
		double back;
		if (np_str_to_double(np_str_of(text), &back) && back == value)
			break;
	}
	np_buf_add_cstr(out, text);
}
