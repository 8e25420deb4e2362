/*
 * The recorder of a process: is it on, whose ring is this thread's, which stage is on.
 *
 *   np_rec_enter() ─▶ np_rec_start() ─▶ the real function ─▶ np_rec_stop() ─▶ np_rec_leave()
 *
 * It serves any layer of C functions: HCCL's in collectives.c, and in the tests MPI's.
 *
 * Inside the user's process it never allocates on the way of a call (a thread's first call and
 * a communicator's first call do, by mmap), keeps errno, and holds no lock that a
 * signal handler could wait for: a call out of a handler that interrupted the recorder itself
 * passes through and is counted as lost. A call that the real function makes on the way is
 * its own matter: it passes through and is not counted.
 */
#ifndef NP_PRELOAD_RECORDER_H
#define NP_PRELOAD_RECORDER_H

#include <stdbool.h>

#include "ring.h"

#define NP_EXPORT __attribute__((visibility("default")))

/* Of the layer; defined by whoever uses the recorder. */
extern const struct np_ring_options np_rec_layer; /* dir and capacity are the recorder's */
void np_rec_layer_after_fork(void);

enum np_rec_state { NP_REC_UNKNOWN, NP_REC_OFF, NP_REC_ON };
extern int np_rec_state; /* read with np_rec_on() */

/* Reads the environment, once; a wrapper may run before any constructor. */
bool np_rec_init(void);

static inline bool np_rec_on(void)
{
	int state = __atomic_load_n(&np_rec_state, __ATOMIC_ACQUIRE);
	return state == NP_REC_ON || (state == NP_REC_UNKNOWN && np_rec_init());
}

/* What a wrapper knows of its call; the fields are those of struct np_comm_record. */
struct np_call {
	uint64_t count, send_bytes, recv_bytes, tensor_bytes;
	uint64_t comm_seq, comm_hash;
	const struct np_text *comm_name;
	int32_t rank, world, peer, stream, device;
	uint16_t flags;
	uint8_t op, dtype, reduce;
};
extern const struct np_call np_call_unknown; /* nothing is known */

struct np_rec_frame {
	int64_t start_ns;    /* CLOCK_REALTIME */
	uint64_t begin, end; /* CLOCK_MONOTONIC */
	int error;           /* errno as the caller, then as the real function left it */
	bool active;
};

/*
 * enter   false: this call is not recorded, only the real function is to be called.
 *         Until start the thread is inside the recorder: a wrapper measures its arguments.
 * start   takes the time; the real function follows.
 * stop    takes the time. false: this is not the process that has entered (the real function
 *         has forked), nothing more is to be done. Until leave it is inside the recorder.
 * leave   writes the record.
 *
 * Declare the frame with NP_REC_FRAME, so that an exception out of the real function, or the
 * thread's end in it, leaves the thread as it was; the call is counted as lost.
 */
bool np_rec_enter(struct np_rec_frame *frame);
void np_rec_start(struct np_rec_frame *frame);
bool np_rec_stop(struct np_rec_frame *frame);
void np_rec_leave(struct np_rec_frame *frame, const struct np_call *call, int32_t rc);
void np_rec_unwind(struct np_rec_frame *frame);

#define NP_REC_FRAME(name) \
	__attribute__((cleanup(np_rec_unwind))) struct np_rec_frame name = {.active = false}

/* The stage of all threads from now on, see npuprof_comm_mark(). */
void np_rec_mark(const char *stage_path, uint32_t step, uint32_t request);

/* One line on stderr, once per process and place. */
#define NP_REC_TELL(...)                                                  \
	do {                                                              \
		static bool told_;                                        \
		if (!__atomic_exchange_n(&told_, true, __ATOMIC_RELAXED)) \
			np_rec_tell(__VA_ARGS__);                         \
	} while (0)
void np_rec_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
