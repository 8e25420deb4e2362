#include "collect/remote_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "collect/manifest.h"

/* What it prints: "root PATH", "has TOOL"…, then "TYPE SIZE MTIME MODE PATH", each with a NUL. The
 * state of our own transfers is left out. 66: nothing there, 69: no GNU find. */
static const char script[] =
	"p=$1\n"
	"case $p in '~') p=$HOME ;; '~/'*) p=$HOME/${p#??} ;; esac\n"
	"only=.\n"
	"if [ -d \"$p\" ]; then cd -- \"$p\" || exit 66\n"
	"elif [ -e \"$p\" ]; then only=./$(basename -- \"$p\"); cd -- \"$(dirname -- \"$p\")\" || "
	"exit 66\n"
	"else echo \"no such file or directory\" >&2; exit 66; fi\n"
	"find . -maxdepth 0 -printf '' 2>/dev/null || { echo 'no GNU find' >&2; exit 69; }\n"
	"printf 'root %s\\0' \"$(pwd -P)\"\n"
	"for t in zstd openssl sha256sum; do\n"
	"command -v $t >/dev/null 2>&1 && printf 'has %s\\0' $t\n"
	"done\n"
	"find \"$only\" -name " NP_PULL_STATE " -prune -o ! -type d -printf '%y %s %T@ %m %p\\0'\n";

const char *const *np_place_script(struct np_arena *arena, const struct np_place *place,
                                   bool with_input, const char *text, const char *const *args)
{
	size_t n = 0;
	while (args[n])
		n++;
	const char **argv = np_arena_zalloc(arena, (n + 5) * sizeof *argv);
	if (!argv)
		return NULL;
	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = text;
	argv[3] = "npuprof";
	memcpy(argv + 4, args, n * sizeof *argv);
	if (place && place->container)
		return np_container_argv(arena, place->container, argv, with_input);
	return argv;
}

/* ── parsing ── */

static np_str without_dot(np_str path)
{
	return np_str_starts(path, NP_STR("./")) ? np_str_from(path, 2) : path;
}

static bool parse_mode(np_str text, unsigned *out)
{
	unsigned mode = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] < '0' || text.ptr[i] > '7' || text.len > 6)
			return false;
		mode = mode * 8 + (unsigned)(text.ptr[i] - '0');
	}
	*out = mode;
	return text.len > 0;
}

static enum np_status add_file(struct np_remote_list *self, bool is_link, np_str rest,
                               const char *where, struct np_err *err)
{
	struct np_remote_file file = {.rank = NP_REMOTE_NO_RANK};
	np_str size = np_str_cut(rest, ' ', &rest), mtime = np_str_cut(rest, ' ', &rest);
	np_str mode = np_str_cut(rest, ' ', &rest);
	rest = without_dot(rest);
	if (!np_str_to_u64(size, &file.size_bytes) || file.size_bytes > INT64_MAX ||
	    np_decimal_scaled(mtime, 9, &file.mtime_ns) != NP_NUM_OK ||
	    !parse_mode(mode, &file.mode) || !np_is_safe_path(rest))
		return np_err_set(err, NP_E_FORMAT, where,
		                  "the far side lists something strange: '%.*s'",
		                  (int)(rest.len < 200 ? rest.len : 200), rest.ptr ? rest.ptr : "");
	file.path = np_arena_cstr(&self->arena, rest);
	/* ours, over there and here: find leaves it out, so this is none of find's */
	if (np_str_is(rest, NP_PULL_STATE) || np_str_starts(rest, NP_STR(NP_PULL_STATE "/")))
		return np_err_set(err, NP_E_FORMAT, where,
		                  "the far side lists something strange: '%.*s'",
		                  (int)(rest.len < 200 ? rest.len : 200), rest.ptr);
	if (!file.path ||
	    !(is_link ? np_vec_push(&self->links, file.path) : np_vec_push(&self->files, file)))
		return np_err_nomem(err);
	return NP_OK;
}

static enum np_status add_record(struct np_remote_list *self, np_str record, const char *where,
                                 struct np_err *err)
{
	np_str kind = np_str_cut(record, ' ', &record);
	if (np_str_is(kind, "root")) {
		self->root = np_arena_cstr(&self->arena, record);
		return self->root ? NP_OK : np_err_nomem(err);
	}
	if (np_str_is(kind, "has")) {
		self->tools.zstd |= np_str_is(record, "zstd");
		self->tools.openssl |= np_str_is(record, "openssl");
		self->tools.sha256sum |= np_str_is(record, "sha256sum");
		return NP_OK;
	}
	if (np_str_is(kind, "f") || np_str_is(kind, "l"))
		return add_file(self, np_str_is(kind, "l"), record, where, err);
	self->n_others++;
	return NP_OK;
}

static int by_path(const void *a, const void *b)
{
	const struct np_remote_file *x = a, *y = b;
	return strcmp(x->path, y->path);
}

/* ── ranks ──────────────────────────────────────────────────────────────────
 * `…_ascend_pt/profiler_info_3.json` says that all below that directory is of rank 3; so does
 * the number of a database. One capture of one process without a number has none.
 */

struct home {
	np_str dir; /* "x_ascend_pt" with what is before it */
	int64_t rank;
};

static int64_t number_of(np_str name, const char *before, const char *after)
{
	np_str head = np_str_of(before), tail = np_str_of(after);
	int64_t rank = 0;
	if (!np_str_starts(name, head) || !np_str_ends(name, tail) ||
	    name.len <= head.len + tail.len)
		return NP_REMOTE_NO_RANK;
	np_str digits = np_str_sub(name, head.len, name.len - head.len - tail.len);
	return np_str_to_i64(digits, &rank) && rank >= 0 ? rank : NP_REMOTE_NO_RANK;
}

/* The part of a path up to the component that is a capture; empty when there is none. */
static np_str capture_of(np_str path)
{
	size_t end = 0;
	while (end < path.len) {
		const char *slash = memchr(path.ptr + end, '/', path.len - end);
		size_t stop = slash ? (size_t)(slash - path.ptr) : path.len;
		np_str part = np_str_sub(path, end, stop - end);
		if (slash && (np_str_ends(part, NP_STR("_ascend_pt")) ||
		              np_str_ends(part, NP_STR("_ascend_ms"))))
			return np_str_sub(path, 0, stop);
		end = stop + 1;
	}
	return (np_str){0};
}

static int64_t rank_said_by(np_str path)
{
	const char *cstr = path.ptr;
	np_str name = np_path_base(cstr);
	int64_t rank = number_of(name, "profiler_info_", ".json");
	if (rank == NP_REMOTE_NO_RANK)
		rank = number_of(name, "ascend_pytorch_profiler_", ".db");
	if (rank == NP_REMOTE_NO_RANK)
		rank = number_of(name, "ascend_mindspore_profiler_", ".db");
	return rank;
}

/* Files are sorted, so those of a capture stand together. */
static void give_ranks(struct np_remote_list *self)
{
	for (size_t i = 0, end; i < self->files.n; i = end) {
		np_str dir = capture_of(np_str_of(self->files.v[i].path));
		int64_t rank = NP_REMOTE_NO_RANK;
		for (end = i; end < self->files.n; end++) {
			np_str path = np_str_of(self->files.v[end].path);
			if (end > i && !np_str_eq(capture_of(path), dir))
				break;
			if (rank == NP_REMOTE_NO_RANK && dir.len)
				rank = rank_said_by(path);
		}
		for (size_t k = i; k < end; k++)
			self->files.v[k].rank = rank;
	}
}

enum np_status np_remote_list_parse(struct np_remote_list *self, np_str text, const char *where,
                                    struct np_err *err)
{
	*self = (struct np_remote_list){0};
	np_arena_init(&self->arena);
	while (text.len) {
		const char *end = memchr(text.ptr, '\0', text.len);
		if (!end)
			return np_err_set(err, NP_E_TRUNCATED, where, "the list of files is cut");
		size_t len = (size_t)(end - text.ptr);
		NP_TRY(add_record(self, np_str_sub(text, 0, len), where, err));
		text = np_str_from(text, len + 1);
	}
	if (!self->root)
		return np_err_set(err, NP_E_FORMAT, where, "the far side gave no list of files");
	if (self->files.n)
		qsort(self->files.v, self->files.n, sizeof *self->files.v, by_path);
	for (size_t i = 1; i < self->files.n; i++)
		if (strcmp(self->files.v[i - 1].path, self->files.v[i].path) == 0)
			return np_err_set(err, NP_E_FORMAT, where, "a file is listed twice: %.200s",
			                  self->files.v[i].path);
	give_ranks(self);
	return NP_OK;
}

enum np_status np_remote_list(struct np_remote_list *self, struct np_transport *transport,
                              const struct np_place *place, const char *path, struct np_err *err)
{
	struct np_arena arena;
	struct np_outcome outcome;
	const char *const args[] = {path, NULL};
	np_arena_init(&arena);
	*self = (struct np_remote_list){0};
	const char *const *argv = np_place_script(&arena, place, false, script, args);
	struct np_command command = {.argv = argv, .what = "list of files", .repeatable = true};
	enum np_status status =
		argv ? np_transport_run(transport, &command, &outcome, err) : np_err_nomem(err);
	if (status == NP_OK && outcome.status == 66)
		status = np_err_set(err, NP_E_NOTFOUND, transport->name,
		                    "%s: no such file or directory there", path);
	else if (status == NP_OK && outcome.status == 69)
		status = np_err_set(err, NP_E_UNSUPPORTED, transport->name,
		                    "there is no GNU find over there: install findutils");
	else if (status == NP_OK && outcome.status != 0)
		/* find's complaints (a directory that may not be read), or there is no container */
		status = np_err_set(err, NP_E_IO, transport->name, "the list of files: %.*s",
		                    (int)(outcome.err.len < 300 ? outcome.err.len : 300),
		                    outcome.err.ptr ? outcome.err.ptr : "");
	else if (status == NP_OK)
		status = np_remote_list_parse(self, np_buf_str(&outcome.out), transport->name, err);
	if (argv)
		np_outcome_release(&outcome);
	np_arena_release(&arena);
	return status;
}

void np_remote_list_release(struct np_remote_list *self)
{
	np_vec_release(&self->files);
	np_vec_release(&self->links);
	np_arena_release(&self->arena);
}
