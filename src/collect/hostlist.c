#include "collect/hostlist.h"

#include <stdio.h>
#include <string.h>

#include "base/fs.h"

struct list {
	struct np_hosts *hosts;
	np_str text; /* the whole list, for columns in errors */
	const char *where;
	struct np_err *err;
};

void np_hosts_init(struct np_hosts *self)
{
	*self = (struct np_hosts){0};
	np_arena_init(&self->arena);
}

void np_hosts_release(struct np_hosts *self)
{
	np_vec_release(&self->v);
	if (self->has_names)
		np_intern_release(&self->names);
	np_arena_release(&self->arena);
}

static enum np_status wrong(const struct list *list, const char *at, const char *fmt, np_str what)
{
	char msg[256];
	/* NOLINTNEXTLINE(clang-diagnostic-format-nonliteral): literals with one %.*s each */
	(void)snprintf(msg, sizeof msg, fmt, (int)(what.len > 80 ? 80 : what.len),
	               what.ptr ? what.ptr : "");
	return np_err_at(list->err, NP_E_USAGE, list->where, (uint64_t)(at - list->text.ptr) + 1,
	                 "%s", msg);
}

/* ── one name, brackets expanded ── */

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("._-+", c)) || (unsigned char)c >= 0x80;
}

static bool is_name(np_str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (!is_name_byte(name.ptr[i]))
			return false;
	return name.len > 0 && name.ptr[0] != '-';
}

/* "fe80::1%eth0": hex digits, colons, dots and a zone */
static bool is_address(np_str name)
{
	bool zone = false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];
		bool hex = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
		if (c == '%' && i > 0 && !zone)
			zone = true;
		else if (zone ? !is_name_byte(c) : !hex && c != ':' && c != '.')
			return false;
	}
	return name.len > 1;
}

static bool is_user(np_str user)
{
	for (size_t i = 0; i < user.len; i++)
		if (!is_name_byte(user.ptr[i]) && !strchr("@$\\", user.ptr[i]))
			return false;
	return user.len > 0 && user.ptr[0] != '-';
}

static size_t find_last(np_str text, char c)
{
	for (size_t i = text.len; i-- > 0;)
		if (text.ptr[i] == c)
			return i;
	return text.len;
}

/* What stands behind the user: "name", "name:22", "[v6]", "[v6]:22", "v6". */
static bool split_port(np_str rest, np_str *name, np_str *port)
{
	*port = (np_str){0};
	*name = rest;
	if (rest.len && rest.ptr[0] == '[') {
		size_t close = find_last(rest, ']');
		if (close == rest.len)
			return false;
		*name = np_str_sub(rest, 1, close - 1);
		rest = np_str_from(rest, close + 1);
		if (rest.len == 0)
			return is_address(*name);
		*port = (np_str){rest.ptr + 1, rest.len - 1}; /* ptr tells that there is one */
		return rest.ptr[0] == ':' && is_address(*name);
	}
	size_t colon = find_last(rest, ':');
	if (colon == rest.len)
		return is_name(rest);
	np_str before = np_str_sub(rest, 0, colon);
	if (np_str_contains(before, NP_STR(":")))
		return is_address(rest); /* an address without brackets has no port */
	*name = before;
	*port = (np_str){rest.ptr + colon + 1, rest.len - colon - 1};
	return is_name(before);
}

/* Has it been there before? It has now. */
static enum np_status look_up(const struct list *list, np_str text, bool *is_there)
{
	struct np_hosts *hosts = list->hosts;
	if (!hosts->has_names && !np_intern_init(&hosts->names)) {
		np_intern_release(&hosts->names);
		return np_err_nomem(list->err);
	}
	hosts->has_names = true;
	size_t before = hosts->names.strings.n;
	if (np_intern_add(&hosts->names, text) == NP_ID_NONE)
		return np_err_nomem(list->err);
	*is_there = hosts->names.strings.n == before;
	return NP_OK;
}

static enum np_status add(const struct list *list, const char *at, np_str text)
{
	struct np_hosts *hosts = list->hosts;
	struct np_host host = {0};
	np_str name, port, rest = text;
	uint64_t number = 0;
	if (text.len > NP_HOST_MAX_BYTES)
		return wrong(list, at, "'%.*s…' is too long for the name of a host", text);
	size_t mark = find_last(text, '@');
	if (mark < text.len) {
		np_str user = np_str_sub(text, 0, mark);
		if (!is_user(user))
			return wrong(list, at, "'%.*s' is not the name of a user", user);
		host.user = np_arena_cstr(&hosts->arena, user);
		rest = np_str_from(text, mark + 1);
		if (!host.user)
			return np_err_nomem(list->err);
	}
	if (!split_port(rest, &name, &port))
		return wrong(list, at, "'%.*s' is not the name of a host", rest);
	if (port.ptr && (!np_str_to_u64(port, &number) || number == 0 || number > 65535))
		return wrong(list, at, "'%.*s' is not the number of a port", port);
	/* the names of one range may all have been there before, so they count, too */
	bool is_there = false;
	if (++hosts->n_names <= NP_HOSTS_MAX_NAMES)
		NP_TRY(look_up(list, text, &is_there));
	if (is_there)
		return NP_OK;
	if (hosts->n_names > NP_HOSTS_MAX_NAMES || hosts->v.n >= NP_HOSTS_MAX)
		return np_err_set(list->err, NP_E_LIMIT, list->where, "more than %d hosts",
		                  NP_HOSTS_MAX);
	host.port = (unsigned)number;
	host.name = np_arena_cstr(&hosts->arena, name);
	host.text = np_arena_cstr(&hosts->arena, text);
	if (!host.name || !host.text || !np_vec_push(&hosts->v, host))
		return np_err_nomem(list->err);
	return NP_OK;
}

/* ── brackets ── */

/* The bracket that closes the one at text[open]; len when none does. */
static size_t find_close(np_str text, size_t open)
{
	for (size_t i = open + 1; i < text.len && text.ptr[i] != '['; i++)
		if (text.ptr[i] == ']')
			return i;
	return text.len;
}

/* The first bracket that is a range, not an IPv6 address; len when there is none. */
static size_t find_range(np_str text)
{
	for (size_t i = 0; text.ptr && i < text.len; i++) {
		if (text.ptr[i] != '[')
			continue;
		size_t close = find_close(text, i);
		np_str inside = np_str_sub(text, i + 1, close - i - 1);
		if (close == text.len || !np_str_contains(inside, NP_STR(":")))
			return i;
		i = close;
	}
	return text.len;
}

static enum np_status expand(const struct list *list, const char *at, np_str text, int depth);

/* "01-04" or "07" into the names of the whole. */
static enum np_status expand_part(const struct list *list, const char *at, np_str before,
                                  np_str part, np_str after, int depth)
{
	np_str high_text;
	np_str low_text = np_str_cut(part, '-', &high_text);
	bool single = low_text.len == part.len;
	uint64_t low = 0, high = 0;
	if (!np_str_to_u64(low_text, &low) || low_text.len > 9 ||
	    (!single && (!np_str_to_u64(high_text, &high) || high_text.len > 9)))
		return wrong(list, at, "'%.*s' is not a range of numbers like 01-16", part);
	high = single ? low : high;
	if (high < low)
		return wrong(list, at, "the range '%.*s' runs backwards", part);
	bool padded = low_text.len > 1 && np_str_starts(low_text, NP_STR("0"));
	if (!single && padded && high_text.len < low_text.len)
		return wrong(list, at, "the ends of '%.*s' have different widths", part);
	for (uint64_t n = low; n <= high; n++) {
		char name[NP_HOST_MAX_BYTES * 2 + 64];
		int len = snprintf(name, sizeof name, "%.*s%0*llu%.*s", NP_FMT(before),
		                   padded ? (int)low_text.len : 1, (unsigned long long)n,
		                   NP_FMT(after));
		if (len < 0 || (size_t)len >= sizeof name)
			return wrong(list, at, "'%.*s…' is too long for the name of a host",
			             before);
		NP_TRY(expand(list, at, (np_str){name, (size_t)len}, depth + 1));
	}
	return NP_OK;
}

static enum np_status expand(const struct list *list, const char *at, np_str text, int depth)
{
	size_t open = find_range(text);
	if (open == text.len)
		return add(list, at, text);
	size_t close = find_close(text, open);
	if (close == text.len)
		return wrong(list, at, "a bracket is not closed in '%.*s'", text);
	if (depth >= 8)
		return wrong(list, at, "too many brackets in '%.*s'", text);
	np_str rest = np_str_sub(text, open + 1, close - open - 1);
	do {
		bool last = !np_str_contains(rest, NP_STR(","));
		np_str part = np_str_cut(rest, ',', &rest);
		NP_TRY(expand_part(list, at, np_str_sub(text, 0, open), np_str_trim(part),
		                   np_str_from(text, close + 1), depth));
		if (last)
			break;
	} while (true);
	return NP_OK;
}

enum np_status np_hosts_parse(struct np_hosts *self, np_str text, const char *where,
                              struct np_err *err)
{
	const struct list list = {self, text, where, err};
	size_t start = 0, depth = 0;
	for (size_t i = 0; i <= text.len; i++) {
		char c = i < text.len ? text.ptr[i] : ',';
		if (c == '[')
			depth++;
		else if (c == ']' && depth)
			depth--;
		if (i < text.len && (c != ',' || depth))
			continue;
		np_str item = np_str_trim(np_str_sub(text, start, i - start));
		const char *at = item.ptr ? item.ptr : text.ptr;
		if (item.len == 0)
			return wrong(&list, text.ptr + start, "the name of a host is missing%.*s",
			             (np_str){0});
		NP_TRY(expand(&list, at, item, 0));
		start = i + 1;
	}
	return NP_OK;
}

enum np_status np_hosts_parse_lines(struct np_hosts *self, np_str text, const char *path,
                                    struct np_err *err)
{
	size_t before = self->v.n;
	bool any = false;
	for (unsigned line = 1; text.len; line++) {
		char where[512];
		np_str comment;
		np_str row = np_str_trim(np_str_cut(np_str_cut(text, '\n', &text), '#', &comment));
		if (row.len == 0)
			continue;
		any = true;
		(void)snprintf(where, sizeof where, "%.400s:%u", path, line);
		NP_TRY(np_hosts_parse(self, row, where, err));
	}
	if (!any && self->v.n == before)
		return np_err_set(err, NP_E_EMPTY, path, "names no host");
	return NP_OK;
}

enum np_status np_hosts_read(struct np_hosts *self, const char *path, struct np_err *err)
{
	np_str text = {0};
	if (strcmp(path, "-") != 0) {
		NP_TRY(np_file_slurp(&self->arena, path, NP_HOSTS_FILE_MAX, &text, err));
		return np_hosts_parse_lines(self, text, path, err);
	}
	struct np_buf bytes = {0};
	enum np_status status = np_stdin_slurp(&bytes, NP_HOSTS_FILE_MAX, err);
	if (status == NP_OK)
		status = np_hosts_parse_lines(self, np_buf_str(&bytes), "stdin", err);
	np_buf_release(&bytes);
	return status;
}
