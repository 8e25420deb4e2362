/*
 * The functions of HCCL that are recorded, by their C API (torch_npu.md §7.5). The vendor's
 * headers are not needed: handles and streams are pointers, enumerations are int.
 *
 * What is recorded of each (R23, R27; sizes in bytes, n the element's size, w the ranks):
 *
 *   function          count            send_bytes         recv_bytes         tensor_bytes
 *   AllReduce         count            count·n            count·n            count·n
 *   Broadcast         count            count·n at root    count·n elsewhere  count·n
 *   Reduce            count            count·n            count·n at root    count·n
 *   AllGather         sendCount        sendCount·n        sendCount·n·w      sendCount·n
 *   AllGatherV        sendCount        sendCount·n        Σ recvCounts·n     sendCount·n
 *   ReduceScatter     recvCount·w      recvCount·n·w      recvCount·n        recvCount·n·w
 *   ReduceScatterV    Σ sendCounts     Σ sendCounts·n     recvCount·n        Σ sendCounts·n
 *   Scatter           recvCount        recvCount·n·w at root, else 0
 *                                                         recvCount·n        recvCount·n
 *   AlltoAll          sendCount·w      sendCount·n·w      recvCount·n·w      sendCount·n·w
 *   AlltoAllV         Σ sendCounts     Σ sendCounts·n     Σ recvCounts·n     Σ sendCounts·n
 *   AlltoAllVC        Σ of its row     the same ·n        Σ of its column·n  Σ of its row·n
 *   Send              count            count·n            0                  count·n
 *   Recv              count            0                  count·n            count·n
 *   BatchSendRecv     Σ counts         Σ of the sends     Σ of the receives  both
 *   Barrier           0                0                  0                  0
 *
 * tensor_bytes is what this rank puts in, except where it only takes out (Recv, Scatter) or
 * both buffers are one (Broadcast). What depends on a rank or a size that nobody tells is
 * unknown (NP_COMM_NO_U64), never guessed.
 */
#ifndef NP_PRELOAD_HCCL_H
#define NP_PRELOAD_HCCL_H

#include <stddef.h>
#include <stdint.h>

enum {
	NP_HCCL_SUCCESS = 0,
	NP_HCCL_NOT_SUPPORT = 5, /* returned when the real function does not exist */
	NP_HCCL_NAME_BYTES = 128,
};

struct np_hccl_item { /* HcclSendRecvItem */
	int32_t type; /* 0 send, 1 receive */
	void *buffer;
	uint64_t count;
	int32_t dtype;
	uint32_t peer;
};
_Static_assert(sizeof(struct np_hccl_item) == 32 && offsetof(struct np_hccl_item, peer) == 28,
               "HcclSendRecvItem");

struct np_hccl_config { /* HcclCommConfig, its begin */
	size_t size;    /* of the caller's structure: older ones are shorter */
	uint32_t magic; /* NP_HCCL_CONFIG_MAGIC */
	uint32_t version;
	uint64_t reserved;
	uint32_t buffer_mb, deterministic;
	char name[NP_HCCL_NAME_BYTES];
};
#define NP_HCCL_CONFIG_MAGIC 0xf0f0f0f0u
_Static_assert(offsetof(struct np_hccl_config, name) == 32, "HcclCommConfig");

/*
 * X(name, parameters, arguments, how the arguments are read): the last is an expression over
 * `c` (struct np_call *), `g` (const struct np_rec_group *), the parameters, and the functions of
 * collectives.c.
 */
#define NP_HCCL_COLLECTIVES(X)                                                                     \
	X(HcclAllReduce,                                                                           \
	  (void *send, void *recv, uint64_t count, int type, int op, void *comm, void *stream),    \
	  (send, recv, count, type, op, comm, stream),                                             \
	  (set_op(c, 1, type, op), set_sizes(c, count, count, count, count)))                      \
	X(HcclBroadcast,                                                                           \
	  (void *buffer, uint64_t count, int type, uint32_t root, void *comm, void *stream),       \
	  (buffer, count, type, root, comm, stream),                                               \
	  (set_op(c, 2, type, NONE), set_peer(c, root),                                            \
	   set_sizes(c, count, if_root(g, root, count, 0), if_root(g, root, 0, count), count)))    \
	X(HcclAllGather,                                                                           \
	  (void *send, void *recv, uint64_t count, int type, void *comm, void *stream),            \
	  (send, recv, count, type, comm, stream),                                                 \
	  (set_op(c, 3, type, NONE), set_sizes(c, count, count, by_world(g, count), count)))       \
	X(HcclReduceScatter,                                                                       \
	  (void *send, void *recv, uint64_t count, int type, int op, void *comm, void *stream),    \
	  (send, recv, count, type, op, comm, stream),                                             \
	  (set_op(c, 4, type, op),                                                                 \
	   set_sizes(c, by_world(g, count), by_world(g, count), count, by_world(g, count))))       \
	X(HcclAlltoAll,                                                                            \
	  (const void *send, uint64_t send_count, int type, const void *recv, uint64_t recv_count, \
	   int recv_type, void *comm, void *stream),                                               \
	  (send, send_count, type, recv, recv_count, recv_type, comm, stream),                     \
	  (set_op(c, 5, type, NONE),                                                               \
	   set_two(c, by_world(g, send_count), by_world(g, recv_count), recv_type)))               \
	X(HcclAlltoAllV,                                                                           \
	  (const void *send, const void *send_counts, const void *send_displs, int type,           \
	   const void *recv, const void *recv_counts, const void *recv_displs, int recv_type,      \
	   void *comm, void *stream),                                                              \
	  (send, send_counts, send_displs, type, recv, recv_counts, recv_displs, recv_type, comm,  \
	   stream),                                                                                \
	  (set_op(c, 6, type, NONE),                                                               \
	   set_two(c, sum_world(g, send_counts), sum_world(g, recv_counts), recv_type)))           \
	X(HcclReduce,                                                                              \
	  (void *send, void *recv, uint64_t count, int type, int op, uint32_t root, void *comm,    \
	   void *stream),                                                                          \
	  (send, recv, count, type, op, root, comm, stream),                                       \
	  (set_op(c, 7, type, op), set_peer(c, root),                                              \
	   set_sizes(c, count, count, if_root(g, root, count, 0), count)))                         \
	X(HcclScatter,                                                                             \
	  (void *send, void *recv, uint64_t count, int type, uint32_t root, void *comm,            \
	   void *stream),                                                                          \
	  (send, recv, count, type, root, comm, stream),                                           \
	  (set_op(c, 8, type, NONE), set_peer(c, root),                                            \
	   set_sizes(c, count, if_root(g, root, by_world(g, count), 0), count, count)))            \
	X(HcclSend,                                                                                \
	  (void *buffer, uint64_t count, int type, uint32_t peer, void *comm, void *stream),       \
	  (buffer, count, type, peer, comm, stream),                                               \
	  (set_op(c, 10, type, NONE), set_peer(c, peer), set_sizes(c, count, count, 0, count)))    \
	X(HcclRecv,                                                                                \
	  (void *buffer, uint64_t count, int type, uint32_t peer, void *comm, void *stream),       \
	  (buffer, count, type, peer, comm, stream),                                               \
	  (set_op(c, 11, type, NONE), set_peer(c, peer), set_sizes(c, count, 0, count, count)))    \
	X(HcclBatchSendRecv,                                                                       \
	  (struct np_hccl_item * items, uint32_t number, void *comm, void *stream),                \
	  (items, number, comm, stream), (set_batch(c, items, number)))                            \
	X(HcclBarrier, (void *comm, void *stream), (comm, stream),                                 \
	  (set_op(c, 13, NONE, NONE), set_sizes(c, 0, 0, 0, 0)))                                   \
	X(HcclAllGatherV,                                                                          \
	  (void *send, uint64_t count, void *recv, const void *recv_counts,                        \
	   const void *recv_displs, int type, void *comm, void *stream),                           \
	  (send, count, recv, recv_counts, recv_displs, type, comm, stream),                       \
	  (set_op(c, 14, type, NONE),                                                              \
	   set_sizes(c, count, count, sum_world(g, recv_counts), count)))                          \
	X(HcclReduceScatterV,                                                                      \
	  (void *send, const void *send_counts, const void *send_displs, void *recv,               \
	   uint64_t count, int type, int op, void *comm, void *stream),                            \
	  (send, send_counts, send_displs, recv, count, type, op, comm, stream),                   \
	  (set_op(c, 15, type, op),                                                                \
	   set_sizes(c, sum_world(g, send_counts), sum_world(g, send_counts), count,               \
	             sum_world(g, send_counts))))                                                  \
	X(HcclAlltoAllVC,                                                                          \
	  (const void *send, const void *matrix, int type, const void *recv, int recv_type,        \
	   void *comm, void *stream),                                                              \
	  (send, matrix, type, recv, recv_type, comm, stream),                                     \
	  (set_op(c, 16, type, NONE),                                                              \
	   set_two(c, sum_row(g, matrix), sum_column(g, matrix), recv_type)))

/* X(name, parameters, arguments, rank, world, config or NULL, the new communicator or NULL,
 * as many of them) */
#define NP_HCCL_INITS(X)                                                                         \
	X(HcclCommInitRootInfo, (uint32_t ranks, const void *root, uint32_t rank, void **comm),  \
	  (ranks, root, rank, comm), rank, ranks, NULL)                                          \
	X(HcclCommInitRootInfoConfig,                                                            \
	  (uint32_t ranks, const void *root, uint32_t rank, const struct np_hccl_config *config, \
	   void **comm),                                                                         \
	  (ranks, root, rank, config, comm), rank, ranks, config)                                \
	X(HcclCommInitClusterInfo, (const char *table, uint32_t rank, void **comm),              \
	  (table, rank, comm), rank, NP_COMM_NO_U32, NULL)                                       \
	X(HcclCommInitClusterInfoConfig,                                                         \
	  (const char *table, uint32_t rank, const struct np_hccl_config *config, void **comm),  \
	  (table, rank, config, comm), rank, NP_COMM_NO_U32, config)                             \
	X(HcclCreateSubCommConfig,                                                               \
	  (void **parent, uint32_t ranks, uint32_t *ids, uint64_t id, uint32_t rank,             \
	   const struct np_hccl_config *config, void **comm),                                    \
	  (parent, ranks, ids, id, rank, config, comm), rank, ranks, config)

#endif
