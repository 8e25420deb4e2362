#include "analysis/normalise.h"

enum { MIN_ADDRESS = 4, MIN_DIGITS = 12, MIN_HASH = 16, UUID_LEN = 36 };

const char *np_normalise_rule_name(enum np_normalise_rule rule)
{
	static const char *const names[] = {
#define X(id, name, help) name,
		NP_NORMALISE_MAP(X)
#undef X
	};
	return names[rule];
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_separator(char c)
{
	return c == '_' || c == '.' || c == '-' || c == '#' || c == '@' || c == ':' || c == '/';
}

/* ── what begins at a place; each returns its length, 0 for none ── */

static size_t hex_run(np_str text)
{
	size_t n = 0;
	while (n < text.len && is_hex(text.ptr[n]))
		n++;
	return n;
}

static size_t uuid_at(np_str text)
{
	if (text.len < UUID_LEN || (text.len > UUID_LEN && is_word(text.ptr[UUID_LEN])))
		return 0;
	for (size_t i = 0; i < UUID_LEN; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text.ptr[i] != '-' : !is_hex(text.ptr[i]))
			return 0;
	}
	return UUID_LEN;
}

static size_t address_at(np_str text)
{
	if (text.len < 2 || text.ptr[0] != '0' || (text.ptr[1] != 'x' && text.ptr[1] != 'X'))
		return 0;
	size_t n = hex_run(np_str_from(text, 2));
	return n >= MIN_ADDRESS ? n + 2 : 0;
}

/* A whole word; sixteen letters a…f alone are no hash. */
static size_t hash_at(np_str text)
{
	size_t n = hex_run(text), digits = 0;
	if (n < text.len && is_word(text.ptr[n]))
		return 0;
	for (size_t i = 0; i < n; i++)
		digits += is_digit(text.ptr[i]);
	return (digits == n && n >= MIN_DIGITS) || (n >= MIN_HASH && digits > 0) ? n : 0;
}

/* Copy `text` without the parts that `part_at` knows at the begin of a word. */
static bool remove_parts(np_str text, size_t (*part_at)(np_str), struct np_buf *out)
{
	bool changed = false, begin = true;
	for (size_t i = 0; i < text.len;) {
		size_t n = begin ? part_at(np_str_from(text, i)) : 0;
		if (n > 0) {
			changed = true;
			i += n;
			/* of the separators at both ends one stays */
			if (out->len > 0 && i < text.len && is_separator(text.ptr[i]) &&
			    is_separator(out->ptr[out->len - 1]))
				i++;
			continue;
		}
		begin = !is_word(text.ptr[i]);
		np_buf_add_char(out, text.ptr[i++]);
	}
	return changed;
}

/* ── the end of a name ── */

static size_t without_separators(np_str text)
{
	while (text.len > 0 && is_separator(text.ptr[text.len - 1]))
		text.len--;
	return text.len;
}

/* Length without "_12", "-op12" at the end, however often. */
static size_t without_counters(np_str text)
{
	for (;;) {
		size_t end = text.len;
		while (end > 0 && is_digit(text.ptr[end - 1]))
			end--;
		if (end == text.len)
			return text.len;
		np_str head = {text.ptr, end};
		if (np_str_ends(head, NP_STR("-op")))
			head.len -= 2;
		if (head.len == 0 || !is_separator(head.ptr[head.len - 1]))
			return text.len;
		head.len = without_separators(head);
		if (head.len == 0)
			return text.len;
		text = head;
	}
}

static bool is_type_counter(np_str name, np_str type)
{
	if (type.len == 0 || name.len <= type.len || !np_str_starts(name, type))
		return false;
	for (size_t i = type.len; i < name.len; i++)
		if (!is_digit(name.ptr[i]))
			return false;
	return true;
}

/* ── the whole ── */

static unsigned apply_parts(np_str name, struct np_buf *out)
{
	static const struct {
		enum np_normalise_rule rule;
		size_t (*part_at)(np_str);
	} parts[] = {{NP_NORMALISE_UUID, uuid_at},
	             {NP_NORMALISE_ADDRESS, address_at},
	             {NP_NORMALISE_HASH, hash_at}};
	unsigned hit = 0;
	struct np_buf next = {0};
	np_buf_add_str(out, name);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		np_buf_clear(&next);
		if (!remove_parts(np_buf_str(out), parts[i].part_at, &next))
			continue;
		hit |= 1u << parts[i].rule;
		np_buf_clear(out);
		np_buf_add_str(out, np_buf_str(&next));
		out->failed = out->failed || next.failed;
	}
	np_buf_release(&next);
	return hit;
}

unsigned np_normalise(np_str name, np_str type, struct np_buf *out)
{
	np_buf_clear(out);
	unsigned hit = apply_parts(name, out);
	if (hit)
		out->len = without_separators(np_buf_str(out));
	if (is_type_counter(np_buf_str(out), type)) {
		out->len = type.len;
		hit |= 1u << NP_NORMALISE_TYPE_COUNTER;
	}
	size_t end = without_counters(np_buf_str(out));
	if (end < out->len) {
		out->len = end;
		hit |= 1u << NP_NORMALISE_COUNTER;
	}
	if (out->len == 0 && name.len > 0) {
		np_buf_clear(out);
		np_buf_add_str(out, name);
		return 0;
	}
	if (out->ptr)
		out->ptr[out->len] = '\0';
	return hit;
}
