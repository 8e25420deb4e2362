/*
 * Several processes, started by mpirun: which of them this is, and how all digests
 * come to process 0.
 *
 *   process 1, 2, …                          process 0
 *   report: could I open it? what do I see?  ──▶ all alike? ──▶ go, or stop
 *   map own ranks                                map own ranks
 *   report: done, or why not                 ──▶ all well?  ──▶ go, or stop
 *   own digests in order of rank             ──▶ adopt in order of rank
 *   leave                                        leave, reduce, write
 *
 * Whatever happens, each process goes through both reports, so that none waits for
 * one that has given up. A process that died is noticed by mpirun, which ends the
 * others (mpi/module.c).
 */
#define XXH_INLINE_ALL
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "cluster/internal.h"
#include "cluster/mpi/link.h"

#define MODULE "npuprof_mpi.so"

static struct {
	const struct np_link *link; /* NULL: alone, or done with the others */
	unsigned index, count;
} self_ = {.count = 1};

unsigned np_share_index(void)
{
	return self_.index;
}

unsigned np_share_count(void)
{
	return self_.count;
}

/* ── joining ── */

static bool env_number(const char *name, int64_t *out)
{
	const char *text = getenv(name);
	return text && np_str_to_i64(np_str_of(text), out) && *out >= 0;
}

/* Has an mpirun started us, as one of several? 0: no; 1: yes, of an unknown number. */
static int64_t expected_count(void)
{
	static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};
	const char *wish = getenv("NPUPROF_MPI");
	int64_t count;
	if (wish && strcmp(wish, "0") == 0)
		return 0;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (env_number(sizes[i], &count))
			return count > 1 ? count : 0;
	if (!getenv("PMIX_RANK"))
		return 0;
	/* srun --mpi=pmix tells the number in its own way */
	return !env_number("SLURM_STEP_NUM_TASKS", &count) ? 1 : count > 1 ? count : 0;
}

static unsigned expected_index(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"};
	int64_t index;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (env_number(names[i], &index))
			return (unsigned)index;
	return 0;
}

/* Beside the executable (build tree), or where `make install` puts it. Nowhere else: what is
 * loaded runs as the user. */
static void *open_module(struct np_arena *arena)
{
	char exe[4096];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof exe - 1);
	if (len <= 0)
		return NULL;
	while (len > 0 && exe[len - 1] != '/')
		len--;
	np_str dir = {exe, (size_t)len};
	const char *installed = NP_LIBDIR[0] == '/'
	                                ? NP_LIBDIR "/npuprof/" MODULE
	                                : np_arena_printf(arena, "%.*s../%s/npuprof/%s",
	                                                  NP_FMT(dir), NP_LIBDIR, MODULE);
	const char *beside = np_arena_printf(arena, "%.*s%s", NP_FMT(dir), MODULE);
	/* global: parts of MPI that it loads itself look for its symbols */
	void *module = beside ? dlopen(beside, RTLD_NOW | RTLD_GLOBAL) : NULL;
	return module || !installed ? module : dlopen(installed, RTLD_NOW | RTLD_GLOBAL);
}

static const struct np_link *find_link(void)
{
	struct np_arena arena;
	np_arena_init(&arena);
	void *module = open_module(&arena); /* stays open: libmpi is not made to be closed */
	np_arena_release(&arena);
	const struct np_link *link = module ? dlsym(module, NP_LINK_SYMBOL) : NULL;
	return link && link->abi == NP_LINK_ABI ? link : NULL;
}

enum np_status np_cluster_join(struct np_err *err)
{
	int64_t count = expected_count();
	if (count == 0)
		return NP_OK;
	/* until MPI says so itself: only one of many says what is wrong */
	self_.index = expected_index();
	const struct np_link *link = find_link();
	const char *why = "";
	if (!link)
		return np_err_set(err, NP_E_UNSUPPORTED, "mpirun",
		                  "several processes were started, but %s is not there (built "
		                  "without Open MPI?) or cannot be loaded: run without mpirun",
		                  MODULE);
	unsigned index = 0, all = 1;
	if (!link->enter(&index, &all, &why))
		return np_err_set(err, NP_E_UNSUPPORTED, "mpirun", "%s", why);
	if (count > 1 && all != (unsigned)count) {
		link->leave();
		return np_err_set(err, NP_E_UNSUPPORTED, "mpirun",
		                  "it started %lld processes, of which this MPI knows %u: use the "
		                  "mpirun of Open MPI",
		                  (long long)count, all);
	}
	self_.index = index;
	self_.count = all;
	self_.link = link;
	return NP_OK;
}

static void leave(void)
{
	if (self_.link)
		self_.link->leave();
	self_.link = NULL;
}

bool np_cluster_is_root(void)
{
	return self_.index == 0;
}

bool np_cluster_is_shared(void)
{
	return self_.count > 1;
}

/* ── agreeing ── */

/* What a process tells: how it went so far, and what it sees. */
struct message {
	uint32_t status; /* enum np_status */
	uint32_t n_ranks;
	uint64_t sight; /* hash of what should be the same everywhere */
	char host[64], where[512], msg[512];
};

enum verdict { GO = 1, STOP };

static void fill_message(struct message *out, enum np_status status, const struct np_err *err,
                         const struct np_cluster *cluster)
{
	memset(out, 0, sizeof *out);
	out->status = (uint32_t)status;
	(void)gethostname(out->host, sizeof out->host - 1);
	if (status != NP_OK && err) {
		memcpy(out->where, err->where, sizeof out->where - 1);
		memcpy(out->msg, err->msg, sizeof out->msg - 1);
	}
	if (!cluster)
		return;
	struct np_buf sight = {0};
	np_buf_printf(&sight, "%s %d\n", NPUPROF_VERSION, cluster->refused);
	for (size_t i = 0; i < cluster->ranks.n; i++) {
		const struct np_cluster_rank *rank = &cluster->ranks.v[i];
		np_buf_printf(&sight, "%lld ", (long long)rank->rank);
		np_buf_add_cstr(&sight, rank->capture->name);
		for (size_t f = 0; f < rank->capture->files.n; f++)
			np_buf_printf(&sight, " %llu",
			              (unsigned long long)rank->capture->files.v[f].size_bytes);
	}
	out->n_ranks = (uint32_t)cluster->ranks.n;
	out->sight = sight.failed ? 0 : XXH3_64bits(sight.ptr, sight.len);
	np_buf_release(&sight);
}

/* The first thing that is wrong with what the others told; NP_OK: nothing. */
static enum np_status judge(unsigned from, struct message *theirs, const struct message *own,
                            struct np_err *err)
{
	theirs->host[sizeof theirs->host - 1] = theirs->where[sizeof theirs->where - 1] =
		theirs->msg[sizeof theirs->msg - 1] = '\0';
	if (theirs->status != NP_OK)
		return np_err_set(err, NP_E_IO, theirs->where, "process %u on %s: %s", from,
		                  theirs->host, theirs->msg);
	if (theirs->sight == own->sight)
		return NP_OK;
	return np_err_set(err, NP_E_IO, theirs->host,
	                  "process %u sees other captures there (%u ranks) than process 0 on %s "
	                  "(%u ranks): the path must lead to the same files on every machine",
	                  from, theirs->n_ranks, own->host, own->n_ranks);
}

static enum np_status lost(unsigned index, struct np_err *err)
{
	return np_err_set(err, NP_E_IO, "mpirun",
	                  "process %u is gone; ranks that were read are in the cache", index);
}

/* At the root: hear all, and tell all what to do. */
static enum np_status hear(enum np_status status, const struct message *own, struct np_err *err)
{
	struct message theirs;
	for (unsigned p = 1; p < self_.count; p++) {
		bool here = self_.link->receive(p, &theirs, sizeof theirs);
		if (status == NP_OK)
			status = here ? judge(p, &theirs, own, err) : lost(p, err);
	}
	uint32_t verdict = status == NP_OK ? GO : STOP;
	for (unsigned p = 1; p < self_.count; p++)
		if (!self_.link->send(p, &verdict, sizeof verdict) && status == NP_OK)
			status = lost(p, err);
	return status;
}

static enum np_status tell(enum np_status status, const struct message *own, struct np_err *err)
{
	uint32_t verdict = STOP;
	if (!self_.link->send(0, own, sizeof *own) ||
	    !self_.link->receive(0, &verdict, sizeof verdict))
		return status == NP_OK ? lost(0, err) : status;
	if (status == NP_OK && verdict != GO)
		return np_err_set(err, NP_E_IO, "mpirun", "another process has ended the job");
	return status;
}

enum np_status np_share_agree(const struct np_cluster *cluster, enum np_status status,
                              struct np_err *err)
{
	struct message own;
	if (!self_.link)
		return status;
	fill_message(&own, status, err, cluster);
	status = self_.index == 0 ? hear(status, &own, err) : tell(status, &own, err);
	if (status != NP_OK)
		leave();
	return status;
}

void np_cluster_leave(enum np_status status, const struct np_err *err)
{
	struct np_err copy = *err;
	if (status != NP_OK)
		(void)np_share_agree(NULL, status, &copy);
	leave();
}

/* ── gathering ── */

enum kind { DIGEST = 1, REASON, GIVEN_UP };

struct head {
	uint32_t kind, zero;
	int64_t rank;
	uint64_t size; /* of what follows, in pieces of NP_LINK_MAX_BYTES */
};

static bool send_pieces(np_str bytes)
{
	while (bytes.len > 0) {
		size_t n = bytes.len < NP_LINK_MAX_BYTES ? bytes.len : NP_LINK_MAX_BYTES;
		if (!self_.link->send(0, bytes.ptr, n))
			return false;
		bytes = np_str_from(bytes, n);
	}
	return true;
}

/* The digest is freed: it lives on at process 0. */
static bool send_rank(struct np_cluster_rank *rank)
{
	struct np_buf packed = {.max_bytes = SIZE_MAX / 4};
	struct head head = {.kind = DIGEST, .rank = rank->rank};
	if (rank->digest) {
		np_digest_pack(rank->digest, &packed);
		np_digest_free(rank->digest);
		rank->digest = NULL;
	} else {
		head.kind = REASON;
		np_buf_add_cstr(&packed, rank->why ? rank->why : "no reason is known");
	}
	if (packed.failed) {
		head.kind = GIVEN_UP;
		np_buf_clear(&packed);
	}
	head.size = packed.len;
	bool sent = self_.link->send(0, &head, sizeof head) && send_pieces(np_buf_str(&packed));
	np_buf_release(&packed);
	return sent;
}

static enum np_status send_own(struct np_cluster *self, struct np_err *err)
{
	for (size_t i = self_.index; i < self->ranks.n; i += self_.count)
		if (!send_rank(&self->ranks.v[i]))
			return lost(0, err);
	return NP_OK;
}

/* What there is no memory for is received all the same, for the sender waits. */
static enum np_status receive_pieces(unsigned from, uint64_t size, struct np_buf *out,
                                     struct np_err *err)
{
	static char piece[NP_LINK_MAX_BYTES];
	while (size > 0) {
		size_t n = size < sizeof piece ? (size_t)size : sizeof piece;
		if (!self_.link->receive(from, piece, n))
			return lost(from, err);
		np_buf_add(out, piece, n);
		size -= n;
	}
	return out->failed ? np_err_nomem(err) : NP_OK;
}

static enum np_status take_rank(struct np_cluster *self, struct np_cluster_rank *rank,
                                uint32_t kind, np_str bytes, const struct np_table_desc **known,
                                struct np_err *err)
{
	if (kind == REASON) {
		rank->why = np_arena_cstr(&self->arena, bytes);
		return rank->why ? NP_OK : np_err_nomem(err);
	}
	if (kind != DIGEST)
		return np_err_nomem(err);
	size_t n = 0;
	while (known[n])
		n++;
	NP_TRY(np_digest_unpack(bytes, known, n, &rank->digest, err));
	return NP_OK;
}

static enum np_status receive_rank(struct np_cluster *self, size_t row, struct np_buf *buffer,
                                   const struct np_table_desc **known, enum np_status so_far,
                                   struct np_err *err)
{
	struct head head;
	struct np_cluster_rank *rank = &self->ranks.v[row];
	unsigned from = (unsigned)(row % self_.count);
	if (!self_.link->receive(from, &head, sizeof head))
		return lost(from, err);
	np_buf_clear(buffer);
	enum np_status status = receive_pieces(from, head.size, buffer, err);
	if (so_far != NP_OK || status != NP_OK)
		return so_far != NP_OK ? so_far : status;
	if (head.rank != rank->rank)
		return np_err_set(err, NP_E_FORMAT, "mpirun", "process %u sent another rank", from);
	return take_rank(self, rank, head.kind, np_buf_str(buffer), known, err);
}

/* Adopted in order of rank, so that ids are those of a single process. A failure does not
 * end the loop: the others are still sending. */
static enum np_status receive_all(struct np_cluster *self, const struct np_table_desc **known,
                                  struct np_err *err)
{
	enum np_status status = known ? NP_OK : np_err_nomem(err);
	struct np_buf buffer = {.max_bytes = SIZE_MAX / 4};
	np_progress_begin(self->options->progress, "gathering digests", self->ranks.n);
	for (size_t i = 0; i < self->ranks.n && self_.link; i++) {
		struct np_cluster_rank *rank = &self->ranks.v[i];
		struct np_err later;
		if (i % self_.count != 0)
			status = receive_rank(self, i, &buffer, known, status,
			                      status == NP_OK ? err : &later);
		if (status == NP_OK && rank->digest &&
		    !np_digest_adopt(rank->digest, &self->strings)) {
			np_digest_free(rank->digest);
			rank->digest = NULL;
			status = np_err_nomem(err);
		}
		np_progress_step(self->options->progress);
	}
	np_buf_release(&buffer);
	return status;
}

enum np_status np_share_gather(struct np_cluster *self, struct np_err *err)
{
	if (!self_.link)
		return NP_OK;
	NP_TRY(np_share_agree(self, NP_OK, err));
	enum np_status status;
	if (self_.index == 0) {
		const struct np_table_desc **known = np_cluster_tables(self);
		status = receive_all(self, known, err);
		np_free(known);
	} else {
		status = send_own(self, err);
	}
	leave();
	return status;
}
