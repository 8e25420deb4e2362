/* What the numbers of a log are called, and what they mean in bytes. */
#include "collect/comm_log.h"

const char *np_clog_op_name(uint8_t op)
{
	switch (op) {
#define X(id, name) \
	case id:    \
		return name;
		NP_COMM_OP_MAP(X)
#undef X
	default:
		return NULL;
	}
}

uint8_t np_clog_op_find(np_str name)
{
	static const struct {
		uint8_t id;
		const char *name;
	} ops[] = {
#define X(number, text) {number, text},
		NP_COMM_OP_MAP(X)
#undef X
	};
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (np_str_is(name, ops[i].name))
			return ops[i].id;
	return 0;
}

bool np_clog_op_moves(uint8_t op)
{
	return op < 40;
}

/* torch_npu.md §7.5 */
static const struct {
	const char *name;
	unsigned bytes;
} dtypes[] = {{"int8", 1},    {"int16", 2},   {"int32", 4},   {"fp16", 2},    {"fp32", 4},
              {"int64", 8},   {"uint64", 8},  {"uint8", 1},   {"uint16", 2},  {"uint32", 4},
              {"fp64", 8},    {"bf16", 2},    {"int128", 16}, {"unknown", 0}, {"hif8", 1},
              {"fp8e4m3", 1}, {"fp8e5m2", 1}, {"fp8e8m0", 1}};

const char *np_clog_dtype_name(uint8_t dtype)
{
	switch (dtype) {
	case NP_COMM_DTYPE_BOOL:
		return "bool";
	case NP_COMM_DTYPE_COMPLEX64:
		return "complex64";
	case NP_COMM_DTYPE_COMPLEX128:
		return "complex128";
	default:
		return dtype < sizeof dtypes / sizeof *dtypes ? dtypes[dtype].name : "unknown";
	}
}

unsigned np_clog_dtype_bytes(uint8_t dtype)
{
	switch (dtype) {
	case NP_COMM_DTYPE_BOOL:
		return 1;
	case NP_COMM_DTYPE_COMPLEX64:
		return 8;
	case NP_COMM_DTYPE_COMPLEX128:
		return 16;
	default:
		return dtype < sizeof dtypes / sizeof *dtypes ? dtypes[dtype].bytes : 0;
	}
}

const char *np_clog_reduce_name(uint8_t reduce)
{
	static const char *const names[] = {"sum", "prod", "max", "min"};
	if (reduce == NP_COMM_REDUCE_AVG)
		return "avg";
	return reduce < sizeof names / sizeof *names ? names[reduce] : "";
}

const char *np_clog_layer_name(uint32_t layer)
{
	return layer == NP_COMM_LAYER_HCCL    ? "hccl"
	       : layer == NP_COMM_LAYER_TORCH ? "torch"
	                                      : "unknown";
}
