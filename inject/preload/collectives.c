/* The collective recorder at the HCCL C API. */
int npuprof_collectives_version(void);
__attribute__((visibility("default"))) int npuprof_collectives_version(void)
{
	return 1;
}
