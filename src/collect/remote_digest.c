/*
 * openssl is four to five times as fast as sha256sum, but puts an end of line behind each name,
 * whatever the name is; so files with odd names go to the other one.
 */
#include "collect/remote_digest.h"

#include <string.h>

static const char openssl_script[] = "cd -- \"$1\" && exec xargs -0 openssl dgst -sha256 -r";
static const char sha256sum_script[] = "cd -- \"$1\" && exec xargs -0 sha256sum -z --";

struct ask {
	const char *const *paths;
	size_t n, next;
	bool openssl;
	struct np_buf line;
	np_digest_take *take;
	void *ctx;
};

static bool goes_to_openssl(const struct np_remote_tools *tools, const char *path)
{
	bool odd = strpbrk(path, "\n\\") != NULL;
	return tools->openssl && !(odd && tools->sha256sum);
}

/* "<64 hex> *./path" (openssl) or "<64 hex>  ./path"; they come in the order they were asked. */
static void take_line(struct ask *ask)
{
	char hex[NP_SHA256_HEX + 1] = "";
	np_str line = np_buf_str(&ask->line);
	if (line.len < NP_SHA256_HEX + 4 || !np_is_sha256(np_str_sub(line, 0, NP_SHA256_HEX)))
		return;
	memcpy(hex, line.ptr, NP_SHA256_HEX);
	np_str path = np_str_from(line, NP_SHA256_HEX + 4); /* two characters and "./" */
	for (size_t i = ask->next; i < ask->n; i++)
		if (np_str_is(path, ask->paths[i])) {
			ask->next = i + 1;
			ask->take(ask->ctx, i, hex);
			return;
		}
}

static enum np_status take_bytes(void *ctx, const void *bytes, size_t len, struct np_err *err)
{
	struct ask *ask = ctx;
	const char *text = bytes;
	for (size_t i = 0; i < len; i++) {
		if (text[i] != (ask->openssl ? '\n' : '\0')) {
			np_buf_add_char(&ask->line, text[i]);
			continue;
		}
		if (ask->line.failed)
			return np_err_nomem(err);
		take_line(ask);
		np_buf_clear(&ask->line);
	}
	return NP_OK;
}

static void restart(void *ctx)
{
	struct ask *ask = ctx;
	ask->next = 0;
	np_buf_clear(&ask->line);
}

static enum np_status run(struct ask *ask, struct np_transport *transport,
                          const struct np_place *place, const char *root, np_str names,
                          const atomic_bool *cancel, struct np_err *err)
{
	struct np_arena arena;
	struct np_outcome outcome = {0};
	const char *const args[] = {root, NULL};
	np_arena_init(&arena);
	struct np_command command = {
		.argv = np_place_script(&arena, place, true,
	                                ask->openssl ? openssl_script : sha256sum_script, args),
		.what = "digests",
		.input = {.kind = NP_SOURCE_BYTES, .bytes = names},
		.out = {take_bytes, ask},
		.repeatable = true,
		.restart = restart,
		.restart_ctx = ask,
		.cancel = cancel,
	};
	enum np_status status = command.argv ? np_transport_run(transport, &command, &outcome, err)
	                                     : np_err_nomem(err);
	np_outcome_release(&outcome);
	np_arena_release(&arena);
	return status;
}

enum np_status np_remote_digests(struct np_transport *transport, const struct np_place *place,
                                 const char *root, const struct np_remote_tools *tools,
                                 const char *const *paths, size_t n, np_digest_take *take,
                                 void *ctx, const atomic_bool *cancel, struct np_err *err)
{
	enum np_status status = NP_OK;
	if (!tools->openssl && !tools->sha256sum)
		return np_err_set(err, NP_E_UNSUPPORTED, transport->name,
		                  "there is neither openssl nor sha256sum over there");
	for (int pass = 0; pass < 2 && status == NP_OK; pass++) {
		struct ask ask = {
			.paths = paths, .n = n, .openssl = pass == 0, .take = take, .ctx = ctx};
		struct np_buf names = {0};
		for (size_t i = 0; i < n; i++)
			if (goes_to_openssl(tools, paths[i]) == ask.openssl) {
				np_buf_add_cstr(&names, "./");
				np_buf_add_cstr(&names, paths[i]);
				np_buf_add_char(&names, '\0');
			}
		if (names.failed)
			status = np_err_nomem(err);
		else if (names.len)
			status = run(&ask, transport, place, root, np_buf_str(&names), cancel, err);
		np_buf_release(&ask.line);
		np_buf_release(&names);
	}
	return status;
}
