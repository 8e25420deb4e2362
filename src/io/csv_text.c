/* Fields of io/csv.h: from raw bytes to text and numbers, and back. */
#include <string.h>

#include "base/digits.h"
#include "io/csv.h"

/* Blanks, tabs and CR; not LF, which only a quoted field can hold. */
static np_str trim(np_str text)
{
	const char *p = text.ptr, *end = p ? p + text.len : p;
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return (np_str){p, (size_t)(end - p)};
}

/*
 * `text` starts behind the opening quote. Up to the closing one "" is ", and what
 * follows the closing one (there should be nothing) is taken as it is.
 */
static np_str unquote(np_str text, struct np_buf *scratch)
{
	const char *hit = memchr(text.ptr, '"', text.len);
	if (!hit)
		return text;
	size_t len = (size_t)(hit - text.ptr);
	if (len + 1 == text.len)
		return (np_str){text.ptr, len};
	bool inside = true;
	while (text.len) {
		hit = inside ? memchr(text.ptr, '"', text.len) : NULL;
		len = hit ? (size_t)(hit - text.ptr) : text.len;
		np_buf_add(scratch, text.ptr, len);
		if (!hit)
			break;
		text = np_str_from(text, len + 1);
		if (text.len && text.ptr[0] == '"') {
			np_buf_add_char(scratch, '"');
			text = np_str_from(text, 1);
		} else {
			inside = false;
		}
	}
	return np_buf_str(scratch);
}

np_str np_csv_text(np_str raw, struct np_buf *scratch)
{
	np_buf_clear(scratch);
	np_str text = trim(raw);
	if (text.len == 0 || text.ptr[0] != '"')
		return text;
	if (text.len == 1)
		return (np_str){text.ptr, 0};
	return trim(unquote(np_str_from(text, 1), scratch));
}

/* A number has no quotes inside, so a pair around it is all there can be. */
static np_str number_in(np_str raw)
{
	if (!raw.ptr) /* a missing field; nobody should add to a null pointer */
		return NP_STR("");
	np_str text = trim(raw);
	if (text.len >= 2 && text.ptr[0] == '"' && text.ptr[text.len - 1] == '"')
		text = trim((np_str){text.ptr + 1, text.len - 2});
	return text;
}

/* Most cells are digits and nothing else: those need no trimming and no quotes. */
static bool is_plain(np_str raw)
{
	return raw.len && (unsigned char)(raw.ptr[0] - '0') <= 9 &&
	       (unsigned char)(raw.ptr[raw.len - 1] - '0') <= 9;
}

enum np_num np_csv_us_to_ns(np_str raw, int64_t *ns)
{
	if (is_plain(raw) || (raw.len && raw.ptr[raw.len - 1] == '\t'))
		return np_us_to_ns(raw, ns);
	return np_us_to_ns(number_in(raw), ns);
}

enum np_num np_csv_double(np_str raw, double *out)
{
	if (is_plain(raw) && np_str_to_double(raw, out))
		return NP_NUM_OK;
	return np_num_double(number_in(raw), out);
}

enum np_num np_csv_i64(np_str raw, int64_t *out)
{
	const char *p = raw.ptr;
	uint64_t value = 0;
	if (is_plain(raw) && np_digits(&p, raw.ptr + raw.len, &value) == raw.len) {
		*out = (int64_t)value;
		return NP_NUM_OK;
	}
	return np_num_i64(number_in(raw), out);
}

/* ── writing ── */

static bool looks_like_a_formula(np_str text)
{
	double number = 0;
	if (text.len == 0 || text.ptr[0] == '\0' || !strchr("=+-@\t\r", text.ptr[0]))
		return false;
	return !np_str_to_double(text, &number);
}

static bool is_edge_blank(char c)
{
	return c == ' ' || c == '\t';
}

void np_csv_write_text(struct np_buf *out, np_str text)
{
	bool formula = looks_like_a_formula(text);
	bool quote =
		text.len && (is_edge_blank(text.ptr[0]) || is_edge_blank(text.ptr[text.len - 1]));
	for (size_t i = 0; i < text.len && !quote; i++)
		quote = text.ptr[i] == ',' || text.ptr[i] == '"' || text.ptr[i] == '\n' ||
		        text.ptr[i] == '\r';
	if (quote)
		np_buf_add_char(out, '"');
	if (formula)
		np_buf_add_char(out, '\'');
	np_str rest = text;
	while (quote && rest.len) {
		const char *hit = memchr(rest.ptr, '"', rest.len);
		size_t len = hit ? (size_t)(hit - rest.ptr) + 1 : rest.len;
		np_buf_add(out, rest.ptr, len);
		if (hit)
			np_buf_add_char(out, '"');
		rest = np_str_from(rest, len);
	}
	if (quote)
		np_buf_add_char(out, '"');
	else
		np_buf_add_str(out, text);
}
