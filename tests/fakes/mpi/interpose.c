/*
 * The recorder of inject/preload in front of a real library of collectives: Open MPI. Only the
 * table and the wrappers are other ones; ring, stages, forks, threads and the way to the real
 * function are those of libnpuprof_collectives.so.
 */
#include <mpi.h>
#include <stdbool.h>
#include <string.h>

#include "../../../inject/preload/groups.h"
#include "../../../inject/preload/recorder.h"
#include "../../../inject/preload/resolve.h"

const struct np_ring_options np_rec_layer = {
	.name = "mpi",
	.recorder = "npuprof test",
	.layer = NP_COMM_LAYER_HCCL,
};

void np_rec_layer_after_fork(void)
{
	np_rec_groups_after_fork();
}

/* X(name, parameters, arguments, op of the log, elements, their type) */
#define FUNCTIONS(X)                                                                              \
	X(MPI_Allreduce,                                                                          \
	  (const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
	  (send, recv, count, type, op, comm), 1, count, type)                                    \
	X(MPI_Bcast, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),       \
	  (buffer, count, type, root, comm), 2, count, type)                                      \
	X(MPI_Allgather,                                                                          \
	  (const void *send, int count, MPI_Datatype type, void *recv, int recv_count,            \
	   MPI_Datatype recv_type, MPI_Comm comm),                                                \
	  (send, count, type, recv, recv_count, recv_type, comm), 3, count, type)                 \
	X(MPI_Alltoall,                                                                           \
	  (const void *send, int count, MPI_Datatype type, void *recv, int recv_count,            \
	   MPI_Datatype recv_type, MPI_Comm comm),                                                \
	  (send, count, type, recv, recv_count, recv_type, comm), 5, count *size_of(comm), type)  \
	X(MPI_Barrier, (MPI_Comm comm), (comm), 13, 0, MPI_BYTE)

#define DECLARE(name, parameters, ...) \
	NP_EXPORT int name parameters; \
	typedef int name##_fn parameters;
FUNCTIONS(DECLARE)
enum {
#define NUMBER(name, ...) name##_at,
	FUNCTIONS(NUMBER)
};
#define ROW(name_, ...) [name_##_at] = {.name = #name_, .wrapper = (void *)name_},
struct np_symbol np_symbols[] = {FUNCTIONS(ROW){.name = NULL}};
const char *const np_symbol_libraries[] = {"libmpi.so.40", "libmpi.so", NULL};
const char *const np_symbol_libraries_loaded[] = {NULL};

static int size_of(MPI_Comm comm)
{
	int size = 0;
	(void)PMPI_Comm_size(comm, &size);
	return size;
}

static struct np_rec_group *group_of(MPI_Comm comm)
{
	struct np_rec_group *group = np_rec_group_find(comm);
	if (group)
		return group;
	struct np_rec_group fresh = {.key = comm, .device = -1};
	char name[MPI_MAX_OBJECT_NAME] = "";
	int length = 0, rank = -1;
	(void)PMPI_Comm_rank(comm, &rank);
	(void)PMPI_Comm_get_name(comm, name, &length);
	fresh.rank = rank;
	fresh.world = size_of(comm);
	fresh.name = np_text_intern(name, (size_t)length);
	fresh.hash = np_rec_group_hash(name, (size_t)length);
	return np_rec_group_add(&fresh);
}

static void begin(struct np_call *call, uint8_t op, int count, MPI_Datatype type, MPI_Comm comm)
{
	struct np_rec_group *group = group_of(comm);
	int size = 0;
	(void)PMPI_Type_size(type, &size);
	*call = np_call_unknown;
	call->op = op;
	call->count = (uint64_t)count;
	call->tensor_bytes = (uint64_t)count * (uint64_t)size;
	call->rank = group->rank;
	call->world = group->world;
	call->comm_name = group->name;
	call->comm_hash = group->hash;
	call->comm_seq = __atomic_fetch_add(&group->calls, 1, __ATOMIC_RELAXED);
}

#define WRAPPER(name, parameters, arguments, op_, count_, type_)      \
	int name parameters                                           \
	{                                                             \
		name##_fn *real;                                      \
		void *found = np_symbol_find(&np_symbols[name##_at]); \
		memcpy(&real, &found, sizeof real);                   \
		NP_REC_FRAME(frame);                                  \
		if (!np_rec_on() || !np_rec_enter(&frame))            \
			return real arguments;                        \
		struct np_call call;                                  \
		begin(&call, op_, count_, type_, comm);               \
		np_rec_start(&frame);                                 \
		int rc = real arguments;                              \
		if (np_rec_stop(&frame))                              \
			np_rec_leave(&frame, &call, rc);              \
		return rc;                                            \
	}
FUNCTIONS(WRAPPER)
