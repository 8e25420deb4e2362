#include "collect/remote_path.h"

#include <string.h>

static enum np_status set(struct np_arena *arena, np_str host, np_str path, const char *text,
                          struct np_remote_path *out, struct np_err *err)
{
	if (host.len == 0 || path.len == 0)
		return np_err_set(err, NP_E_USAGE, text,
		                  "wants HOST:DIR, e.g. user@node7:/data/prof");
	out->host = np_arena_cstr(arena, host);
	out->path = np_arena_cstr(arena, path);
	return out->host && out->path ? NP_OK : np_err_nomem(err);
}

enum np_status np_remote_path_parse(struct np_arena *arena, const char *text,
                                    struct np_remote_path *out, struct np_err *err)
{
	np_str whole = np_str_of(text), prefix = NP_STR("ssh://");
	*out = (struct np_remote_path){0};
	if (np_str_starts(whole, prefix)) {
		np_str rest = np_str_from(whole, prefix.len);
		const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
		size_t len = slash ? (size_t)(slash - rest.ptr) : rest.len;
		return set(arena, np_str_sub(rest, 0, len), np_str_from(rest, len), text, out, err);
	}
	/* the colons of an IPv6 address stand in brackets, perhaps behind user@ */
	const char *slash = strchr(text, '/'), *bracket = strchr(text, '[');
	const char *from = text;
	if (bracket && (!slash || bracket < slash) && (bracket == text || bracket[-1] == '@')) {
		const char *close = strchr(bracket, ']');
		from = close ? close : text;
	}
	const char *colon = strchr(from, ':');
	if (colon && (!slash || colon < slash)) {
		size_t len = (size_t)(colon - text);
		return set(arena, np_str_sub(whole, 0, len), np_str_from(whole, len + 1), text, out,
		           err);
	}
	if (whole.len == 0)
		return np_err_set(err, NP_E_USAGE, NULL, "wants HOST:DIR or a directory");
	out->path = np_arena_cstr(arena, whole);
	return out->path ? NP_OK : np_err_nomem(err);
}
