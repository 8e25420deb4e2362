/*
 * The log of the collective recorder: what one thread of a user's process sent.
 *
 *   inject/preload (C, HCCL)  ─┐
 *   inject/python  (torch)    ─┴▶ comm-<layer>-<host>-<pid>-<tid>.nplog ──▶ npuprof comm
 *
 * One file per thread, mapped shared and written in place: whatever ends the process, by
 * SIGKILL too, the kernel keeps what was stored. The file has its full size from the start
 * and is sparse, so disk is used as records come.
 *
 *   0        struct np_comm_log_header                     NP_COMM_LOG_HEADER_BYTES
 *   4096     strings: u32 length, bytes, NUL, …            header.string_capacity bytes
 *   …        records: struct np_comm_record, a ring        header.capacity of them
 *
 * All numbers are little-endian, as on every machine of an Ascend host.
 *
 * A record is valid when its `seq` is the one that its slot should have: record number n
 * (from 1) lies in slot (n - 1) % capacity and has seq n, which is stored last, with release.
 * So a reader needs no other counter: header.written only says where to look first, and a
 * writer that was killed between the two costs nothing. When the ring is full the oldest
 * are overwritten; their number, written - capacity, is told by the reader.
 *
 * A string is named by the offset of its length from the begin of the strings; 0 is "none"
 * (the first string lies at NP_COMM_LOG_FIRST_STRING). header.string_bytes is stored, with
 * release, after the bytes. A string that finds no room is NP_COMM_LOG_NO_ROOM.
 *
 * After fork() the child opens a file of its own; a record never has two writers.
 */
#ifndef NPUPROF_COMM_LOG_H
#define NPUPROF_COMM_LOG_H

#include <stdint.h>

enum {
	NP_COMM_LOG_VERSION = 1,
	NP_COMM_LOG_HEADER_BYTES = 4096,
	NP_COMM_LOG_STRING_BYTES = 256 * 1024, /* the writers' string_capacity */
	NP_COMM_LOG_FIRST_STRING = 8,
	NP_COMM_LOG_CAPACITY = 1 << 18, /* the writers' default: 32 MiB of records */
};
#define NP_COMM_LOG_MAGIC   "NPCOMM1\n" /* 8 bytes, without a NUL */
#define NP_COMM_LOG_NO_ROOM 0xffffffffu
#define NP_COMM_NO_U32      0xffffffffu
#define NP_COMM_NO_U64      0xffffffffffffffffull

enum np_comm_layer {
	NP_COMM_LAYER_HCCL = 1,  /* recorded at the C API */
	NP_COMM_LAYER_TORCH = 2, /* recorded at torch.distributed */
};

/* id, name: the names are those of `npuprof comm` */
#define NP_COMM_OP_MAP(X)          \
	X(1, "all_reduce")         \
	X(2, "broadcast")          \
	X(3, "all_gather")         \
	X(4, "reduce_scatter")     \
	X(5, "all_to_all")         \
	X(6, "all_to_all_v")       \
	X(7, "reduce")             \
	X(8, "scatter")            \
	X(9, "gather")             \
	X(10, "send")              \
	X(11, "recv")              \
	X(12, "batch_send_recv")   \
	X(13, "barrier")           \
	X(14, "all_gather_v")      \
	X(15, "reduce_scatter_v")  \
	X(16, "all_to_all_vc")     \
	X(17, "all_gather_object") \
	X(18, "broadcast_object")  \
	X(19, "gather_object")     \
	X(20, "scatter_object")    \
	X(40, "comm_init")         \
	X(41, "comm_destroy")      \
	X(42, "mark") /* a stage begins or ends: stage, step, request say which */

/* Element types are those of HcclDataType (torch_npu.md §7.5): INT8 0, INT16 1, INT32 2,
 * FP16 3, FP32 4, INT64 5, UINT64 6, UINT8 7, UINT16 8, UINT32 9, FP64 10, BFP16 11,
 * INT128 12, HIF8 14, FP8E4M3 15, FP8E5M2 16, FP8E8M0 17; and 254 for bool, 253 for complex64,
 * 252 for complex128, 255 for unknown. Reductions: SUM 0, PROD 1, MAX 2, MIN 3, 254 AVG,
 * 255 none. */
enum {
	NP_COMM_DTYPE_UNKNOWN = 255,
	NP_COMM_DTYPE_BOOL = 254,
	NP_COMM_DTYPE_COMPLEX64 = 253,
	NP_COMM_DTYPE_COMPLEX128 = 252,
	NP_COMM_REDUCE_AVG = 254,
	NP_COMM_REDUCE_NONE = 255,
};

enum np_comm_flags {
	NP_COMM_ASYNC = 1 << 0,     /* async_op=True */
	NP_COMM_COALESCED = 1 << 1, /* one of several calls that were given as one */
	NP_COMM_OBJECT = 1 << 2,    /* part of a collective of Python objects */
	NP_COMM_FAILED = 1 << 3,    /* the call raised, or returned an error: rc */
	NP_COMM_STAGE_END = 1 << 4, /* of a mark: the stage ends */
	NP_COMM_CAPTURE = 1 << 5,   /* issued while a graph was captured: replays are not seen */
};

struct np_comm_log_header {
	char magic[8];
	uint32_t version;
	uint32_t layer;           /* enum np_comm_layer */
	uint32_t header_bytes;    /* NP_COMM_LOG_HEADER_BYTES */
	uint32_t record_bytes;    /* sizeof(struct np_comm_record) */
	uint64_t string_capacity; /* bytes */
	uint64_t capacity;        /* records */
	uint64_t written;         /* records in all, those overwritten too; stored after seq */
	uint64_t string_bytes;    /* used, from NP_COMM_LOG_FIRST_STRING on */
	uint64_t lost;    /* calls that could not be recorded (e.g. inside a signal handler) */
	int64_t start_ns; /* CLOCK_REALTIME when the file was made */
	int64_t start_monotonic_ns;
	int32_t pid, tid, parent_pid;
	int32_t rank, world; /* of the process: RANK and WORLD_SIZE; -1 unknown */
	int32_t local_rank;  /* LOCAL_RANK; -1 unknown */
	int32_t device;      /* -1 unknown */
	uint32_t closed;     /* 1: the writer ended in order */
	char host[64];       /* NUL-terminated, as all of these */
	char command[256];   /* argv of the process, cut */
	char recorder[64];   /* name and version of the writer */
};

struct np_comm_record {
	uint64_t seq;          /* 1, 2, …; stored last */
	int64_t start_ns;      /* CLOCK_REALTIME when the call was issued */
	uint64_t call_ns;      /* how long the host was in the call: not the transfer's time */
	uint64_t count;        /* elements of this rank's payload; NP_COMM_NO_U64 unknown */
	uint64_t send_bytes;   /* what this rank gives in; NP_COMM_NO_U64 unknown */
	uint64_t recv_bytes;   /* what it gets out; NP_COMM_NO_U64 unknown */
	uint64_t tensor_bytes; /* this rank's payload as R23 and R27 mean it; NO_U64 unknown */
	uint64_t comm_seq;     /* number of the call on its group in this process, from 0 */
	uint64_t comm_hash;    /* of the group's name (torch_npu.md §2.2); 0 without a name */
	uint32_t comm_name;    /* string: communicator, or the ranks of a torch group "0,1,2,3" */
	uint32_t stage;        /* string: innermost stage, "dit"; 0: none, shown as "other" */
	uint32_t stage_path;   /* string: the nesting "request/dit"; 0: none */
	uint32_t shape;        /* string: "[2, 4096]"; several "[2, 4096];[2]"; 0 */
	uint32_t step;         /* calls of the step's anchor so far; NP_COMM_NO_U32 */
	uint32_t request;      /* requests so far; NP_COMM_NO_U32 */
	int32_t rank, world;   /* in the group; -1 unknown */
	int32_t peer;          /* root, source or destination; -1 none */
	int32_t stream;        /* aclrtStreamGetId; -1 unknown */
	int32_t device;        /* -1 unknown */
	int32_t rc;            /* HcclResult; 0 for torch */
	uint16_t flags;        /* enum np_comm_flags */
	uint8_t op;            /* NP_COMM_OP_MAP */
	uint8_t dtype, reduce;
	uint8_t reserved[3];
};

_Static_assert(sizeof(struct np_comm_record) == 128, "the record's size is part of the format");

#endif
