#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd/progress.h"
#include "cmd/remote.h"
#include "collect/interrupt.h"
#include "collect/manifest.h"
#include "collect/pull.h"
#include "collect/rank_set.h"
#include "collect/remote_path.h"

struct options {
	struct np_remote_options remote;
	struct np_opt_list only;
	const char *ranks, *arm, *container;
	uint64_t connections, shard_mb;
	bool no_compress, preserve, md5, force, dry_run, verify;
};

#define AT(field) offsetof(struct options, field)

static const struct np_option options[] = {
	{"only", 0, NP_OPT_LIST, AT(only), "PATTERN,…",
         "only files of these names, e.g. kernel_details.csv,'*.json'"},
	{"ranks", 0, NP_OPT_STRING, AT(ranks), "LIST", "only captures of these ranks, e.g. 0,4-7"},
	{"verify", 0, NP_OPT_FLAG, AT(verify), NULL,
         "fetch nothing: judge a directory by its manifest"},
	{"connections", 0, NP_OPT_UINT, AT(connections), "N", "at a time (default: 3)"},
	{"shard-size", 0, NP_OPT_UINT, AT(shard_mb), "MB",
         "of the pieces that large files travel in (default: 64)"},
	{"no-compress", 0, NP_OPT_FLAG, AT(no_compress), NULL,
         "no zstd (default: where the host has it)"},
	{"preserve", 0, NP_OPT_FLAG, AT(preserve), NULL,
         "keep the files' times, of the host's clock (default: now, by ours)"},
	{"md5", 0, NP_OPT_FLAG, AT(md5), NULL, "MD5 in the manifest beside SHA-256"},
	{"arm", 0, NP_OPT_STRING, AT(arm), "NAME", "what the capture stands for in a comparison"},
	{"force", 0, NP_OPT_FLAG, AT(force), NULL, "write over files that are not the same"},
	{"dry-run", 0, NP_OPT_FLAG, AT(dry_run), NULL, "only tell what would be fetched"},
	{"container", 0, NP_OPT_STRING, AT(container), "NAME",
         "in this container there; docker:NAME or podman:NAME choose"},
	NP_REMOTE_SSH_OPTIONS(AT(remote)),
};

/* ── connections ── */

struct way {
	struct np_hosts hosts;
	struct np_ssh_options ssh;
	const atomic_bool *cancel;
};

static enum np_status open_way(void *ctx, struct np_transport **out, struct np_err *err)
{
	struct way *way = ctx;
	if (way->hosts.v.n)
		return np_transport_ssh(&way->hosts.v.v[0], &way->ssh, out, err);
	NP_TRY(np_transport_local(out, err));
	(*out)->cancel = way->cancel;
	return NP_OK;
}

static enum np_status find_way(struct way *way, const struct np_remote_path *from,
                               struct np_err *err)
{
	if (!from->host)
		return NP_OK;
	NP_TRY(np_hosts_parse(&way->hosts, np_str_of(from->host), "HOST", err));
	if (way->hosts.v.n != 1)
		return np_err_set(err, NP_E_USAGE, from->host, "one host, please");
	return NP_OK;
}

/* ── what to fetch ── */

enum { MAX_PATTERNS = 256 };

static enum np_status split_only(const struct options *own, struct np_arena *arena,
                                 const char **out, size_t *n, struct np_err *err)
{
	for (size_t i = 0; i < own->only.n; i++) {
		np_str rest = np_str_of(own->only.v[i]);
		while (rest.len) {
			np_str pattern = np_str_trim(np_str_cut(rest, ',', &rest));
			if (*n == MAX_PATTERNS)
				return np_err_set(err, NP_E_USAGE, NULL, "too many --only");
			out[*n] = np_arena_cstr(arena, pattern);
			if (!out[*n])
				return np_err_nomem(err);
			*n += pattern.len > 0;
		}
	}
	return NP_OK;
}

static enum np_status fetch(const struct np_call *call, struct way *way, struct np_arena *arena,
                            struct np_report *report, struct np_err *err)
{
	const struct options *own = call->options;
	const char *only[MAX_PATTERNS];
	struct np_remote_path from;
	struct np_container container;
	struct np_rank_set ranks = {0};
	struct np_pull_result result;
	struct np_pull_options pull = {
		.source = call->argv[0],
		.dest = call->argv[1],
		.only = only,
		.connections = (unsigned)(own->connections < 32 ? own->connections : 32),
		.shard_bytes = own->shard_mb << 20,
		.no_compress = own->no_compress,
		.preserve = own->preserve,
		.with_md5 = own->md5,
		.force = own->force,
		.dry_run = own->dry_run,
		.arm = own->arm,
		.cancel = way->cancel,
	};
	struct np_pull_link link = {.open = open_way, .ctx = way};
	NP_TRY(np_remote_ssh(call, &own->remote, way->cancel, report, &way->ssh, err));
	NP_TRY(np_remote_path_parse(arena, call->argv[0], &from, err));
	NP_TRY(find_way(way, &from, err));
	NP_TRY(split_only(own, arena, only, &pull.n_only, err));
	if (own->shard_mb > 65536)
		return np_err_set(err, NP_E_USAGE, NULL, "--shard-size: at most 65536");
	if (own->container) {
		NP_TRY(np_container_parse(own->container, &container, err));
		link.place.container = &container;
	}
	if (own->ranks)
		NP_TRY(np_rank_set_parse(arena, own->ranks, &ranks, err));
	pull.path = from.path;
	pull.ranks = ranks.v;
	pull.n_ranks = ranks.n;
	struct np_progress_line *line = np_progress_show(call->common);
	pull.progress = np_progress_of(line);
	enum np_status status = np_pull(&link, &pull, &result, report, err);
	np_progress_hide(line);
	return status;
}

static enum np_status verify(const struct np_call *call, struct np_report *report,
                             struct np_err *err)
{
	struct np_progress_line *line = np_progress_show(call->common);
	enum np_status status = np_manifest_verify(call->argv[0], (unsigned)call->common->jobs,
	                                           np_progress_of(line), report, err);
	np_progress_hide(line);
	return status;
}

static enum np_status fill(const struct np_call *call, struct np_report *report, struct np_err *err)
{
	const struct options *own = call->options;
	if (own->verify && call->argc == 1)
		return verify(call, report, err);
	if (own->verify || call->argc != 2)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "wants HOST:DIR and DEST, or --verify and a directory");
	struct way way = {.cancel = np_interrupt_begin()};
	struct np_arena arena;
	np_arena_init(&arena);
	np_hosts_init(&way.hosts);
	enum np_status status = fetch(call, &way, &arena, report, err);
	(void)np_interrupt_end();
	np_hosts_release(&way.hosts);
	np_arena_release(&arena);
	return status;
}

static int run(const struct np_call *call)
{
	return np_cmd_run_report(call, fill);
}

static const char *const examples[] = {
	"npuprof pull node7:/data/prof prof",
	"npuprof pull node7:/data/prof prof --ranks 5 --only kernel_details.csv,trace_view.json",
	"npuprof pull node7:/workspace/prof prof --container train",
	"npuprof pull --verify prof",
	NULL,
};

const struct np_cmd np_cmd_pull = {
	.name = "pull",
	.summary = "fetch captures from a host: in shards, verified, resumable",
	.words = "HOST:DIR DEST",
	.min_words = 1,
	.max_words = 2,
	.detail =
		"Every file is compared with the host's SHA-256 before it gets its name. After a "
		"break the\n"
		"same command goes on where it was. A manifest, npuprof_manifest.json, tells size, "
		"digest,\n"
		"rank and steps; --verify judges the directory by it, also later and elsewhere.\n"
		"Exit status: 0 all verified, 1 a file is not as it should be, 2 usage, 3 nothing "
		"could be\n"
		"verified, 4 the connection or the disk failed (run it again).",
	.examples = examples,
	.options = options,
	.n_options = sizeof options / sizeof *options,
	.options_size = sizeof(struct options),
	.run = run,
};
