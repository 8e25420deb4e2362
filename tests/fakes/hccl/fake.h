/*
 * A libhccl.so for tests: every function of the API notes what it was called with and returns
 * what it was told to. The list is written down from the API's documentation and shares
 * nothing with the recorder's own (inject/preload/hccl.h), so that each checks the other.
 *
 * F(name, types of the parameters …): P pointer, U u64, W u32, I int.
 */
#ifndef FAKE_HCCL_H
#define FAKE_HCCL_H

#include <stdint.h>

typedef void *P;
typedef uint64_t U;
typedef uint32_t W;
typedef int I;

#define FAKE_OLD_API(F2, F3, F4, F5, F6, F7, F8, F9, F10) \
	F7(HcclAllReduce, P, P, U, I, I, P, P)            \
	F6(HcclBroadcast, P, U, I, W, P, P)               \
	F7(HcclReduceScatter, P, P, U, I, I, P, P)        \
	F7(HcclScatter, P, P, U, I, W, P, P)              \
	F6(HcclAllGather, P, P, U, I, P, P)               \
	F8(HcclReduce, P, P, U, I, I, W, P, P)            \
	F6(HcclSend, P, U, I, W, P, P)                    \
	F6(HcclRecv, P, U, I, W, P, P)                    \
	F4(HcclBatchSendRecv, P, W, P, P)                 \
	F8(HcclAlltoAll, P, U, I, P, U, I, P, P)          \
	F10(HcclAlltoAllV, P, P, P, I, P, P, P, I, P, P)  \
	F7(HcclAlltoAllVC, P, P, I, P, I, P, P)           \
	F2(HcclBarrier, P, P)
/* an older CANN has none of these */
#define FAKE_NEW_API(F2, F3, F4, F5, F6, F7, F8, F9, F10) \
	F9(HcclReduceScatterV, P, P, P, P, U, I, I, P, P) \
	F8(HcclAllGatherV, P, U, P, P, P, I, P, P)

enum { FAKE_ARGS = 12, FAKE_ERRNO = 77, FAKE_NO_RETURN = -1000 };

struct fake_seen { /* of the last call on this thread */
	const char *name;
	int number;
	uint64_t args[FAKE_ARGS];
	int errno_in;
};
struct fake_seen *fake_seen(void);
unsigned long fake_calls(void); /* of all threads */
void fake_return(int rc);       /* of this thread's calls from now on; NO_RETURN: it ends there */

#endif
