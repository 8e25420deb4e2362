/* npuprof_mpi.so: struct np_link over MPI. */
#include <mpi.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "cluster/mpi/link.h"

extern const struct np_link npuprof_mpi_link;

static struct sigaction before;

/* mpirun ends the others with SIGTERM when one has died. Its own message does not say what to
 * do next. Only what a signal handler may call. */
static void terminated(int number)
{
	static const char text[] =
		"npuprof: the job was ended: one of its processes has died, or somebody stopped "
		"it. Nothing was written; ranks that were read are in the cache, so the same "
		"command again is short.\n";
	(void)number;
	ssize_t done = write(STDERR_FILENO, text, sizeof text - 1);
	(void)done;
	_exit(4);
}

static void watch(void)
{
	struct sigaction action = {.sa_handler = terminated};
	(void)sigemptyset(&action.sa_mask);
	(void)sigaction(SIGTERM, &action, &before);
}

static bool enter(unsigned *index, unsigned *count, const char **why)
{
	int provided, rank, size;
	*why = "MPI could not be started";
	/* threads read captures; the one that began does all the talking */
	if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS)
		return false;
	(void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (provided < MPI_THREAD_FUNNELED) {
		*why = "this MPI cannot be used by a program with threads";
		return false;
	}
	if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
	    MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS)
		return false;
	*index = (unsigned)rank;
	*count = (unsigned)size;
	if (rank == 0)
		watch();
	return true;
}

static bool send_bytes(unsigned to, const void *bytes, size_t size)
{
	return MPI_Send(bytes, (int)size, MPI_BYTE, (int)to, 0, MPI_COMM_WORLD) == MPI_SUCCESS;
}

/* MPI waits by asking all the time, which would take the processor from those who are still
 * reading. So: look, and sleep longer and longer, up to 2 ms. */
static bool wait_for(int from)
{
	struct timespec pause = {.tv_nsec = 1000};
	int here = 0;
	for (unsigned i = 0; !here; i++) {
		if (MPI_Iprobe(from, 0, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return false;
		if (here || i < 64)
			continue;
		(void)nanosleep(&pause, NULL);
		if (pause.tv_nsec < 2000000)
			pause.tv_nsec *= 2;
	}
	return true;
}

static bool receive_bytes(unsigned from, void *bytes, size_t size)
{
	MPI_Status status;
	int got = 0;
	return wait_for((int)from) &&
	       MPI_Recv(bytes, (int)size, MPI_BYTE, (int)from, 0, MPI_COMM_WORLD, &status) ==
	               MPI_SUCCESS &&
	       MPI_Get_count(&status, MPI_BYTE, &got) == MPI_SUCCESS && got == (int)size;
}

static void leave(void)
{
	int rank = 1;
	(void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	(void)MPI_Finalize();
	if (rank == 0)
		(void)sigaction(SIGTERM, &before, NULL);
}

__attribute__((visibility("default"))) const struct np_link npuprof_mpi_link = {
	.abi = NP_LINK_ABI,
	.enter = enter,
	.send = send_bytes,
	.receive = receive_bytes,
	.leave = leave,
};
