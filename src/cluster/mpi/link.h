/*
 * What the module npuprof_mpi.so gives to the program: bytes from process to process.
 *
 *   npuprof ──dlopen (only under mpirun)──▶ npuprof_mpi.so ──▶ libmpi
 *
 * So the program itself depends on no MPI, and starts as fast without one.
 */
#ifndef NP_CLUSTER_MPI_LINK_H
#define NP_CLUSTER_MPI_LINK_H

#include <stdbool.h>
#include <stddef.h>

#define NP_LINK_SYMBOL "npuprof_mpi_link"

enum {
	NP_LINK_ABI = 1,              /* raised when the struct changes */
	NP_LINK_MAX_BYTES = 256 << 10 /* of one message */
};

struct np_link {
	int abi;
	/* Starts MPI; false: *why tells (static text). Once per process. */
	bool (*enter)(unsigned *index, unsigned *count, const char **why);
	/* Between two processes messages arrive in the order they were sent, and are received
	 * with the size they were sent with, at most NP_LINK_MAX_BYTES. false: the other is gone.
	 * Waiting for a message costs no processor time. */
	bool (*send)(unsigned to, const void *bytes, size_t size);
	bool (*receive)(unsigned from, void *bytes, size_t size);
	/* Ends MPI, and waits until all have come here. */
	void (*leave)(void);
};

/* extern "const struct np_link npuprof_mpi_link" is what the module exports */

#endif
