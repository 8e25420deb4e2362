#include "capture/trace_scan.h"

#include "base/time.h"

enum {
	MAX_NESTING = 64, /* one bit each; deeper is left to io/json.h */
	AHEAD_BYTES = 512,
};

static int hex4(const char *p, const char *end)
{
	int value = 0;
	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int digit = np_trace_is_digit(c)     ? c - '0'
		            : (c >= 'a' && c <= 'f') ? c - 'a' + 10
		            : (c >= 'A' && c <= 'F') ? c - 'A' + 10
		                                     : -1;
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* Behind the escape whose backslash is at p. */
static const char *escape(const char *p, const char *end)
{
	if (end - p < 2)
		return NULL;
	switch (p[1]) {
	case 'n':
	case 'r':
	case 't':
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
		return p + 2;
	case 'u':
		break;
	default:
		return NULL;
	}
	int unit = hex4(p + 2, end);
	if (unit < 0 || (unit >= 0xdc00 && unit < 0xe000))
		return NULL;
	if (unit < 0xd800 || unit >= 0xe000)
		return p + 6;
	if (end - p < 12 || p[6] != '\\' || p[7] != 'u')
		return NULL;
	int low = hex4(p + 8, end);
	return low >= 0xdc00 && low < 0xe000 ? p + 12 : NULL;
}

/* Behind the character of several bytes at p (RFC 3629: no overlong forms, no surrogates). */
static const char *utf8(const char *p, const char *end)
{
	const unsigned char *b = (const unsigned char *)p;
	int more = b[0] >= 0xf0 ? 3 : b[0] >= 0xe0 ? 2 : 1;
	if (b[0] < 0xc2 || b[0] > 0xf4 || end - p <= more)
		return NULL;
	for (int i = 1; i <= more; i++)
		if ((b[i] & 0xc0) != 0x80)
			return NULL;
	if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] >= 0xa0) ||
	    (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] >= 0x90))
		return NULL;
	return p + more + 1;
}

const char *np_trace_string_rest(const char *p, const char *q, const char *end,
                                 struct np_trace_value *out)
{
	bool escaped = false;
	for (; q; q = np_trace_plain(q, end)) {
		if (q == end)
			return NULL;
		if (end - q > AHEAD_BYTES) /* call stacks are long */
			__builtin_prefetch(q + AHEAD_BYTES);
		if (*q == '"') {
			*out = (struct np_trace_value){
				{p, (size_t)(q - p)}, NP_JSON_STRING, escaped};
			return q + 1;
		}
		if (*q == '\\') {
			escaped = true;
			do /* they come in pairs: \r\n */
				q = escape(q, end);
			while (q && q < end && *q == '\\');
		} else if ((unsigned char)*q >= 0x80) {
			q = utf8(q, end);
		} else {
			return NULL;
		}
		if (!q)
			return NULL;
	}
	return NULL;
}

static const char *word(const char *p, const char *end, const char *text, size_t len)
{
	if ((size_t)(end - p) <= len || memcmp(p, text, len) != 0)
		return NULL;
	char next = p[len];
	bool ends = next == ',' || next == '}' || next == ']' || next == ' ' || next == '\n' ||
	            next == '\r' || next == '\t';
	return ends ? p + len : NULL;
}

/* `"key" :` and the blanks around it */
static const char *key_and_colon(const char *p, const char *end)
{
	struct np_trace_value key;
	if (p == end || *p != '"' || !(p = np_trace_string(p + 1, end, &key)))
		return NULL;
	p = np_trace_skip_space(p, end);
	return p < end && *p == ':' ? np_trace_skip_space(p + 1, end) : NULL;
}

static const char *scalar(const char *p, const char *end)
{
	struct np_trace_value value;
	if (*p == '"')
		return np_trace_string(p + 1, end, &value);
	if (np_trace_is_digit(*p) || *p == '-')
		return np_trace_number(p, end, &value);
	return np_trace_other_value(p, end, &value);
}

/* An array or object whose bracket is at p, with all that is in it. */
static const char *container(const char *p, const char *end)
{
	uint64_t objects = 0; /* bit 0: the innermost container is an object */
	unsigned depth = 0;
	while (p && p < end) {
		/* p is at a value */
		bool opened = *p == '{' || *p == '[';
		if (opened) {
			if (++depth > MAX_NESTING)
				return NULL;
			objects = objects << 1 | (*p == '{');
			p = np_trace_skip_space(p + 1, end);
			if (p < end && *p != '}' && *p != ']') {
				if (objects & 1)
					p = key_and_colon(p, end);
				continue;
			}
		} else if (!(p = scalar(p, end))) {
			return NULL;
		}
		/* behind a value, or in an empty container: close, then a comma */
		for (;; opened = false) {
			p = np_trace_skip_space(p, end);
			if (p == end)
				return NULL;
			if (*p == ',' && !opened)
				break;
			if (*p != ((objects & 1) ? '}' : ']'))
				return NULL;
			p++;
			objects >>= 1;
			if (--depth == 0)
				return p;
		}
		p = np_trace_skip_space(p + 1, end);
		if (objects & 1)
			p = key_and_colon(p, end);
	}
	return NULL;
}

const char *np_trace_other_value(const char *p, const char *end, struct np_trace_value *out)
{
	*out = (struct np_trace_value){{NULL, 0}, NP_JSON_NULL, false};
	if (p == end)
		return NULL;
	switch (*p) {
	case '{':
	case '[':
		out->type = *p == '{' ? NP_JSON_OBJECT_BEGIN : NP_JSON_ARRAY_BEGIN;
		return container(p, end);
	case 't':
		out->type = NP_JSON_TRUE;
		return word(p, end, "true", 4);
	case 'f':
		out->type = NP_JSON_FALSE;
		return word(p, end, "false", 5);
	case 'n':
		return word(p, end, "null", 4);
	default:
		return NULL;
	}
}

static const char *lenient_string(const char *p, const char *end)
{
	for (p++; p < end; p++) {
		if (*p == '\\')
			p++;
		else if (*p == '"')
			return p + 1;
	}
	return NULL;
}

const char *np_trace_extent(const char *p, const char *end)
{
	size_t depth = 0;
	while (p < end) {
		char c = *p;
		if (c == '"') {
			p = lenient_string(p, end);
			if (!p || depth == 0)
				return p;
			continue;
		}
		if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			if (depth <= 1)
				return depth ? p + 1 : p;
			depth--;
		} else if (c == ',' && depth == 0) {
			return p;
		}
		p++;
	}
	return NULL;
}

bool np_trace_us(np_str text, int64_t *ns)
{
	const char *p = text.ptr, *end = p + text.len;
	uint64_t value = 0, high, low;
	size_t n = 0;
	if (text.len >= 16 && np_trace_eight_digits(p, &high) &&
	    np_trace_eight_digits(p + 8, &low)) {
		value = high * 100000000 + low;
		n = 16;
		/* as the exporters write it: 16 digits, 3 digits */
		if (text.len == 20 && p[16] == '.' && value < INT64_MAX / 1000 &&
		    np_trace_is_digit(p[17]) && np_trace_is_digit(p[18]) &&
		    np_trace_is_digit(p[19])) {
			*ns = (int64_t)(value * 1000) + (p[17] - '0') * 100 + (p[18] - '0') * 10 +
			      (p[19] - '0');
			return true;
		}
	}
	for (; n < text.len && np_trace_is_digit(p[n]); n++) {
		if (n >= 16) /* * 1000 might not fit */
			return np_us_to_ns(text, ns) == NP_NUM_OK;
		value = value * 10 + (uint64_t)(p[n] - '0');
	}
	if (n == 0 || value > INT64_MAX / 1000 - 1)
		return np_us_to_ns(text, ns) == NP_NUM_OK;
	value *= 1000;
	p += n;
	if (p < end && *p == '.') {
		uint64_t unit = 100;
		for (p++; p < end && np_trace_is_digit(*p); p++, unit /= 10) {
			if (unit == 0) { /* the first digit that is dropped decides */
				value += *p >= '5';
				while (++p < end && np_trace_is_digit(*p))
					;
				break;
			}
			value += unit * (uint64_t)(*p - '0');
		}
	}
	if (p != end)
		return np_us_to_ns(text, ns) == NP_NUM_OK;
	*ns = (int64_t)value;
	return true;
}

bool np_trace_double(np_str text, double *out)
{
	static const double tens[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
	                              1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	uint64_t value = 0;
	size_t digits = 0, fraction = 0;
	bool dot = false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		if (c == '.' && !dot) {
			dot = true;
		} else if (np_trace_is_digit(c) && ++digits <= 15) {
			value = value * 10 + (uint64_t)(c - '0');
			fraction += dot;
		} else {
			return np_str_to_double(text, out);
		}
	}
	if (digits == 0)
		return np_str_to_double(text, out);
	/* both operands are exact, so the division rounds correctly */
	*out = (double)value / tens[fraction];
	return true;
}
