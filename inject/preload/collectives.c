/*
 * libnpuprof_collectives.so: the collective recorder at the HCCL C API, for LD_PRELOAD.
 *
 * hccl.h is the table of the functions; a wrapper is made from each row. It never changes an
 * argument, a return value or errno, and calls the real function exactly once, recorded or not.
 *
 *   NPUPROF_COMM            directory of the logs; unset or empty: a wrapper is one branch
 *   NPUPROF_COMM_CAPACITY   records per thread
 *   NPUPROF_INJECT_OFF      not empty: off
 */
#include "hccl.h"

#include <limits.h>
#include <string.h>

#include "groups.h"
#include "recorder.h"
#include "resolve.h"

enum { NONE = -1, REVISION = 1 };

const struct np_ring_options np_rec_layer = {
	.name = "hccl",
	.recorder = "npuprof_collectives " NPUPROF_VERSION,
	.layer = NP_COMM_LAYER_HCCL,
};

/* ── the functions ── */

#define DECLARE(name, parameters, ...) \
	NP_EXPORT int name parameters; \
	typedef int name##_fn parameters;
NP_HCCL_COLLECTIVES(DECLARE)
NP_HCCL_INITS(DECLARE)
NP_EXPORT int HcclCommInitAll(uint32_t devices, int32_t *ids, void **comms);
typedef int HcclCommInitAll_fn(uint32_t devices, int32_t *ids, void **comms);
NP_EXPORT int HcclCommDestroy(void *comm);
typedef int HcclCommDestroy_fn(void *comm);
typedef int ask_number_fn(void *handle, void *number); /* HcclGetRankSize and its kin */
typedef int ask_device_fn(int32_t *device);

enum symbol {
#define NUMBER(name, ...) name##_at,
	NP_HCCL_COLLECTIVES(NUMBER) NP_HCCL_INITS(NUMBER) HcclCommInitAll_at,
	HcclCommDestroy_at,
	HcclGetRankSize_at,
	HcclGetRankId_at,
	HcclGetCommName_at,
	aclrtStreamGetId_at,
	aclrtGetDevice_at,
};

#define ROW(name_, ...) [name_##_at] = {.name = #name_, .wrapper = (void *)name_},
struct np_symbol np_symbols[] = {
	NP_HCCL_COLLECTIVES(ROW) NP_HCCL_INITS(ROW) ROW(HcclCommInitAll)
		ROW(HcclCommDestroy)[HcclGetRankSize_at] = {.name = "HcclGetRankSize"},
	[HcclGetRankId_at] = {.name = "HcclGetRankId"},
	[HcclGetCommName_at] = {.name = "HcclGetCommName"},
	[aclrtStreamGetId_at] = {.name = "aclrtStreamGetId"},
	[aclrtGetDevice_at] = {.name = "aclrtGetDevice"},
	{.name = NULL},
};
/* Newer CANN has two libraries. */
const char *const np_symbol_libraries[] = {"libhccl.so", "libhcomm.so", NULL};
const char *const np_symbol_libraries_loaded[] = {"libascendcl.so", NULL};

/* The real function `name`; where there is none, the wrapper says what HCCL says of one that
 * it cannot. */
#define REAL(name)                                                                       \
	name##_fn *real = NULL;                                                          \
	do {                                                                             \
		void *real_ = np_symbol_real(&np_symbols[name##_at]);                    \
		if (__builtin_expect(!real_, 0))                                         \
			real_ = np_symbol_find(&np_symbols[name##_at]);                  \
		if (__builtin_expect(!real_, 0)) {                                       \
			NP_REC_TELL("%s() was called, and no libhccl.so has it", #name); \
			return NP_HCCL_NOT_SUPPORT;                                      \
		}                                                                        \
		memcpy(&real, &real_, sizeof real);                                      \
	} while (0)

/* ── communicators ── */

static int ask(enum symbol at, void *handle, void *out)
{
	void *found = np_symbol_real(&np_symbols[at]);
	ask_number_fn *real;
	memcpy(&real, &found, sizeof real);
	return real ? real(handle, out) : NP_HCCL_NOT_SUPPORT;
}

static int32_t number_or_unknown(uint32_t number)
{
	return number <= INT32_MAX ? (int32_t)number : -1;
}

static int32_t ask_rank(enum symbol at, void *comm)
{
	uint32_t number = NP_COMM_NO_U32;
	(void)np_symbol_find(&np_symbols[at]);
	return ask(at, comm, &number) == NP_HCCL_SUCCESS ? number_or_unknown(number) : -1;
}

static int32_t ask_device(void)
{
	int32_t device = -1;
	void *found = np_symbol_find(&np_symbols[aclrtGetDevice_at]);
	ask_device_fn *real;
	memcpy(&real, &found, sizeof real);
	return real && real(&device) == 0 ? device : -1;
}

static void set_name(struct np_rec_group *group, const char *name)
{
	size_t length = strnlen(name, NP_HCCL_NAME_BYTES);
	group->name = np_text_intern(name, length);
	group->hash = length ? np_rec_group_hash(name, length) : 0;
}

static void ask_name(struct np_rec_group *group)
{
	char name[NP_HCCL_NAME_BYTES * 2] = ""; /* twice what it may write */
	(void)np_symbol_find(&np_symbols[HcclGetCommName_at]);
	if (ask(HcclGetCommName_at, group->key, name) == NP_HCCL_SUCCESS)
		set_name(group, name);
}

/* A structure of an older CANN ends before the name. */
static const char *name_in(const struct np_hccl_config *config)
{
	if (!config || config->size < offsetof(struct np_hccl_config, name) + sizeof config->name ||
	    config->magic != NP_HCCL_CONFIG_MAGIC)
		return "";
	return config->name;
}

/* What is not known yet is asked, and the communicator is remembered. */
static struct np_rec_group *remember(struct np_rec_group *group)
{
	if (group->world < 0)
		group->world = ask_rank(HcclGetRankSize_at, group->key);
	if (group->rank < 0)
		group->rank = ask_rank(HcclGetRankId_at, group->key);
	if (!group->name)
		ask_name(group);
	if (group->device < 0)
		group->device = ask_device();
	(void)np_symbol_find(&np_symbols[aclrtStreamGetId_at]);
	return np_rec_group_add(group);
}

static const struct np_rec_group nobody = {.rank = -1, .world = -1, .device = -1};

/* That of a call; one that was made before we were there is asked about at its first call. */
static struct np_rec_group *group_of(void *comm)
{
	struct np_rec_group *group = np_rec_group_find(comm);
	if (__builtin_expect(group != NULL, 1) || !comm)
		return group;
	struct np_rec_group fresh = nobody;
	fresh.key = comm;
	return remember(&fresh);
}

void np_rec_layer_after_fork(void)
{
	np_rec_groups_after_fork();
}

static void describe(struct np_call *call, const struct np_rec_group *group)
{
	call->comm_name = group->name;
	call->comm_hash = group->hash;
	call->rank = group->rank;
	call->world = group->world;
	call->device = group->device;
}

/* ── sizes: in elements until finish() ── */

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	bool over =
		a == NP_COMM_NO_U64 || b == NP_COMM_NO_U64 || __builtin_add_overflow(a, b, &sum);
	return over ? NP_COMM_NO_U64 : sum;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;
	bool over = a == NP_COMM_NO_U64 || __builtin_mul_overflow(a, b, &product);
	return over ? NP_COMM_NO_U64 : product;
}

static uint64_t by_world(const struct np_rec_group *group, uint64_t count)
{
	return group->world > 0 ? times(count, (uint64_t)group->world) : NP_COMM_NO_U64;
}

static uint64_t if_root(const struct np_rec_group *group, uint32_t root, uint64_t at_root,
                        uint64_t elsewhere)
{
	if (group->rank < 0)
		return at_root == elsewhere ? at_root : NP_COMM_NO_U64;
	return (uint32_t)group->rank == root ? at_root : elsewhere;
}

static uint64_t sum_every(const void *counts, size_t first, size_t step, int32_t number)
{
	const uint64_t *all = counts;
	uint64_t sum = number > 0 && all ? 0 : NP_COMM_NO_U64;
	for (size_t i = 0; sum != NP_COMM_NO_U64 && i < (size_t)number; i++)
		sum = add(sum, all[first + i * step]);
	return sum;
}

static uint64_t sum_world(const struct np_rec_group *group, const void *counts)
{
	return sum_every(counts, 0, 1, group->world);
}

/* The matrix says what rank i sends to rank j at [i·w + j]. */
static uint64_t sum_row(const struct np_rec_group *group, const void *matrix)
{
	if (group->rank < 0 || group->rank >= group->world)
		return NP_COMM_NO_U64;
	return sum_every(matrix, (size_t)group->rank * (size_t)group->world, 1, group->world);
}

static uint64_t sum_column(const struct np_rec_group *group, const void *matrix)
{
	if (group->rank < 0 || group->rank >= group->world)
		return NP_COMM_NO_U64;
	return sum_every(matrix, (size_t)group->rank, (size_t)group->world, group->world);
}

/* Bytes of an element; 0 unknown. */
static uint64_t element(int type)
{
	static const uint8_t bytes[] = {1, 2, 4, 2, 4, 8, 8, 1, 2, 4, 8, 2, 16, 0, 1, 1, 1, 1};
	return type >= 0 && (size_t)type < sizeof bytes ? bytes[type] : 0;
}

static uint64_t in_bytes(uint64_t count, int type)
{
	if (count == 0)
		return 0;
	return element(type) ? times(count, element(type)) : NP_COMM_NO_U64;
}

static void set_op(struct np_call *call, int op, int type, int reduce)
{
	call->op = (uint8_t)op;
	call->dtype = element(type) ? (uint8_t)type : NP_COMM_DTYPE_UNKNOWN;
	call->reduce = reduce >= 0 && reduce <= 3 ? (uint8_t)reduce : NP_COMM_REDUCE_NONE;
}

static void set_peer(struct np_call *call, uint32_t peer)
{
	call->peer = number_or_unknown(peer);
}

static void set_sizes(struct np_call *call, uint64_t count, uint64_t send, uint64_t recv,
                      uint64_t tensor)
{
	call->count = count;
	call->send_bytes = in_bytes(send, call->dtype);
	call->recv_bytes = in_bytes(recv, call->dtype);
	call->tensor_bytes = in_bytes(tensor, call->dtype);
}

/* The two sides may be of different types. */
static void set_two(struct np_call *call, uint64_t send, uint64_t recv, int recv_type)
{
	set_sizes(call, send, send, 0, send);
	call->recv_bytes = in_bytes(recv, recv_type);
}

/* A type or a peer that not all of them have is unknown. */
static void set_batch(struct np_call *call, const struct np_hccl_item *items, uint32_t number)
{
	uint64_t count = 0, bytes[2] = {0, 0};
	bool one_peer = true;
	set_op(call, 12, number && items ? items[0].dtype : NONE, NONE);
	for (uint32_t i = 0; items && i < number; i++) {
		uint64_t *side = &bytes[items[i].type != 0];
		count = add(count, items[i].count);
		*side = add(*side, in_bytes(items[i].count, items[i].dtype));
		if (items[i].dtype != items[0].dtype)
			call->dtype = NP_COMM_DTYPE_UNKNOWN;
		one_peer = one_peer && items[i].peer == items[0].peer;
	}
	if (one_peer && number && items)
		set_peer(call, items[0].peer);
	call->count = count;
	call->send_bytes = bytes[0];
	call->recv_bytes = bytes[1];
	call->tensor_bytes = add(bytes[0], bytes[1]);
}

/* ── wrappers ── */

static const struct np_rec_group *begin_call(struct np_call *call, void *comm, void *stream)
{
	*call = np_call_unknown;
	struct np_rec_group *group = group_of(comm);
	if (group) {
		describe(call, group);
		call->comm_seq = __atomic_fetch_add(&group->calls, 1, __ATOMIC_RELAXED);
	}
	if (stream && ask(aclrtStreamGetId_at, stream, &call->stream) != 0)
		call->stream = -1;
	return group ? group : &nobody;
}

#define COLLECTIVE(name, parameters, arguments, measure)                    \
	NP_EXPORT int name parameters                                       \
	{                                                                   \
		REAL(name);                                                 \
		if (!np_rec_on())                                           \
			return real arguments;                              \
		NP_REC_FRAME(frame);                                        \
		if (!np_rec_enter(&frame))                                  \
			return real arguments;                              \
		struct np_call call, *c = &call;                            \
		const struct np_rec_group *g = begin_call(c, comm, stream); \
		(void)g;                                                    \
		measure;                                                    \
		np_rec_start(&frame);                                       \
		int rc = real arguments;                                    \
		if (np_rec_stop(&frame))                                    \
			np_rec_leave(&frame, &call, rc);                    \
		return rc;                                                  \
	}
NP_HCCL_COLLECTIVES(COLLECTIVE)

/* Setting up and ending a communicator carry no payload. */
static void begin_set_up(struct np_call *call, uint8_t op)
{
	*call = np_call_unknown;
	call->op = op;
	call->count = call->send_bytes = call->recv_bytes = call->tensor_bytes = 0;
}

/* The communicator that has come to be; group: what is known of it already. */
static void end_init(struct np_call *call, struct np_rec_group *group, const char *name, int rc,
                     void **comm)
{
	if (rc == NP_HCCL_SUCCESS && comm && *comm) {
		group->key = *comm;
		if (*name)
			set_name(group, name);
		(void)remember(group);
	}
	describe(call, group);
}

#define INIT(name, parameters, arguments, rank_, world_, config_)            \
	NP_EXPORT int name parameters                                        \
	{                                                                    \
		REAL(name);                                                  \
		if (!np_rec_on())                                            \
			return real arguments;                               \
		NP_REC_FRAME(frame);                                         \
		if (!np_rec_enter(&frame))                                   \
			return real arguments;                               \
		struct np_call call;                                         \
		begin_set_up(&call, 40);                                     \
		struct np_rec_group group = nobody;                          \
		group.rank = number_or_unknown(rank_);                       \
		group.world = number_or_unknown(world_);                     \
		np_rec_start(&frame);                                        \
		int rc = real arguments;                                     \
		if (np_rec_stop(&frame)) {                                   \
			end_init(&call, &group, name_in(config_), rc, comm); \
			np_rec_leave(&frame, &call, rc);                     \
		}                                                            \
		return rc;                                                   \
	}
NP_HCCL_INITS(INIT)

/* One process with several devices: as many communicators, of which this one call is told. */
int HcclCommInitAll(uint32_t devices, int32_t *ids, void **comms)
{
	REAL(HcclCommInitAll);
	if (!np_rec_on())
		return real(devices, ids, comms);
	NP_REC_FRAME(frame);
	if (!np_rec_enter(&frame))
		return real(devices, ids, comms);
	struct np_call call;
	begin_set_up(&call, 40);
	call.world = number_or_unknown(devices);
	np_rec_start(&frame);
	int rc = real(devices, ids, comms);
	if (!np_rec_stop(&frame))
		return rc;
	for (uint32_t i = 0; rc == NP_HCCL_SUCCESS && comms && i < devices; i++) {
		struct np_rec_group group = nobody;
		group.key = comms[i];
		group.rank = (int32_t)i;
		group.world = call.world;
		group.device = ids ? ids[i] : -1;
		if (group.key)
			(void)remember(&group);
		if (i == 0) {
			call.comm_name = group.name;
			call.comm_hash = group.hash;
		}
	}
	np_rec_leave(&frame, &call, rc);
	return rc;
}

/* Forgotten before it is gone: its handle may be another's before we are back. */
int HcclCommDestroy(void *comm)
{
	REAL(HcclCommDestroy);
	if (!np_rec_on())
		return real(comm);
	NP_REC_FRAME(frame);
	if (!np_rec_enter(&frame))
		return real(comm);
	struct np_call call;
	struct np_rec_group group = nobody;
	begin_set_up(&call, 41);
	if (np_rec_group_drop(comm, &group))
		describe(&call, &group);
	np_rec_start(&frame);
	int rc = real(comm);
	if (np_rec_stop(&frame)) {
		if (rc != NP_HCCL_SUCCESS && group.key)
			(void)np_rec_group_add(&group);
		np_rec_leave(&frame, &call, rc);
	}
	return rc;
}

/* ── for the Python layer ── */

/*
 * From now on, on all threads: the stage ("dit"), with those around it ("request/dit"), and
 * how many steps and requests there have been; NULL or "" outside of all stages,
 * NP_COMM_NO_U32 for numbers that are not known. Any thread; not from a signal handler.
 */
NP_EXPORT void npuprof_comm_mark(const char *stage_path, uint32_t step, uint32_t request);
void npuprof_comm_mark(const char *stage_path, uint32_t step, uint32_t request)
{
	np_rec_mark(stage_path, step, request);
}

/* What can be asked of this library; also a sign that it is loaded. */
NP_EXPORT int npuprof_collectives_version(void);
int npuprof_collectives_version(void)
{
	return REVISION;
}
