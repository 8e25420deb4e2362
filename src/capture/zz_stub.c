#include "capture/reader.h"
#define S(f)                                                                           \
	__attribute__((weak)) enum np_status f(const struct np_read *r, const char *p, \
	                                       struct np_err *e)                       \
	{                                                                              \
		(void)r;                                                               \
		return np_err_set(e, NP_E_UNSUPPORTED, p, "stub");                     \
	}
S(np_read_trace)
S(np_read_profiler_db)
S(np_read_analysis_db)
S(np_read_comm_json)
S(np_read_comm_matrix) S(np_read_step_trace) S(np_read_op_memory) S(np_read_memory)
