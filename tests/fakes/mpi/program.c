/* Collectives whose results it checks, on a communicator of its own: mpi_program CALLS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int right, const char *what)
{
	if (!right) {
		(void)fprintf(stderr, "wrong: %s\n", what);
		(void)MPI_Abort(MPI_COMM_WORLD, 9);
	}
}

static void once(MPI_Comm comm, int rank, int size, int count)
{
	double *in = malloc((size_t)count * sizeof *in), *out = malloc((size_t)count * sizeof *out);
	int *mine = malloc((size_t)(count * size) * sizeof *mine);
	int *all = malloc((size_t)(count * size) * sizeof *all);
	check(in && out && mine && all, "memory");
	for (int i = 0; i < count; i++)
		in[i] = rank + i;
	check(MPI_Allreduce(in, out, count, MPI_DOUBLE, MPI_SUM, comm) == MPI_SUCCESS, "allreduce");
	for (int i = 0; i < count; i++)
		check(out[i] == size * (size - 1) / 2 + i * size, "sum");
	check(MPI_Bcast(out, count, MPI_DOUBLE, 0, comm) == MPI_SUCCESS, "bcast");
	for (int i = 0; i < count * size; i++)
		mine[i] = rank * 1000 + i / count;
	check(MPI_Allgather(&mine[rank], 1, MPI_INT, all, 1, MPI_INT, comm) == MPI_SUCCESS,
	      "gather");
	check(MPI_Alltoall(mine, count, MPI_INT, all, count, MPI_INT, comm) == MPI_SUCCESS,
	      "all to all");
	for (int i = 0; i < count * size; i++)
		check(all[i] == i / count * 1000 + rank, "what came");
	check(MPI_Barrier(comm) == MPI_SUCCESS, "barrier");
	free(in);
	free(out);
	free(mine);
	free(all);
}

int main(int argc, char **argv)
{
	int rank, size, calls = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 10;
	MPI_Comm comm;
	(void)MPI_Init(&argc, &argv);
	(void)MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	(void)MPI_Comm_set_name(comm, "tensor parallel");
	(void)MPI_Comm_rank(comm, &rank);
	(void)MPI_Comm_size(comm, &size);
	for (int count = 1; count <= calls; count++)
		once(comm, rank, size, count);
	(void)MPI_Finalize();
	return 0;
}
