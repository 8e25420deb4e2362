/*
 * Cube Operator Perf Analysis (cluster_and_advisor.md §3.4): matrix products that move much.
 *
 * Difference: mac is bound at its own threshold, 0.8; the official tool compares it with
 * that of mte2, 0.95.
 */
#include <stdio.h>

#include "advice/dims.h"
#include "advice/perf.h"
#include "report/lang.h"

static bool wanted(struct np_advice *self, uint32_t row)
{
	return np_kernel_on(self->rank, row, "AI_CORE") &&
	       np_str_icontains(np_text(self->rank, np_op_type(self->rank, row)),
	                        NP_STR("matmul")) &&
	       np_in_shapes(self->rank, row) != NP_ID_NONE;
}

/* Two bytes per element of inputs and outputs; a bias, of one dimension, counts twice. */
static double bytes_of(np_str shapes)
{
	double bytes = 0;
	int n = np_dims_count(shapes);
	for (int i = 0; i < n && i < 64; i++) {
		struct np_dims dims = np_dims_of(shapes, i);
		bytes += 2 * np_dims_elements(&dims) * (dims.n == 1 ? 2 : 1);
	}
	return bytes;
}

static bool matters(struct np_advice *self, const struct np_op_group *group)
{
	const struct np_kernel_shapes *shapes = &self->rank->profile->kernel_shapes;
	double bytes = bytes_of(np_text(self->rank, shapes->in_shapes[group->example])) +
	               bytes_of(np_text(self->rank, shapes->out_shapes[group->example]));
	return bytes * group->n / 1024 / 1024 >= np_rule_value(self, "cube_memory_mib");
}

/* The axis along which a matrix is read: of the format NZ two of the four dimensions. */
static int64_t inner(const struct np_dims *dims)
{
	if (dims->n == 0)
		return 0;
	if (dims->n == 4 && dims->of[2] < 1 << 20 && dims->of[1] < 1 << 20)
		return dims->of[1] * dims->of[2];
	return dims->of[dims->n - 1];
}

static bool unaffine(struct np_advice *self, uint32_t row, char *out, size_t size)
{
	np_str shapes = np_text(self->rank, np_in_shapes(self->rank, row));
	int64_t align = (int64_t)np_rule_value(self, "cube_align");
	for (int i = 0; i < 2 && align > 0; i++) {
		struct np_dims dims = np_dims_of(shapes, i);
		int64_t axis = inner(&dims);
		if (axis % align == 0 && axis > 0)
			continue;
		(void)snprintf(out, size,
		               "inner axis of input %d is %lld, not a multiple of %lld: pad it", i,
		               (long long)axis, (long long)align);
		return true;
	}
	return false;
}

static const struct np_perf cube = {
	.code = "ADVICE_CUBE",
	.limits = {{NP_UNIT_MAC, true, "cube_mac", "mac"},
                   {NP_UNIT_MTE2, true, "cube_mte2", "mte2"}},
	.n_limits = 2,
	.all_name = "mac_and_mte2",
	.wanted = wanted,
	.matters = matters,
	.unaffine = unaffine,
	.advice =
		NP_N("Pad inner axes to multiples of 256 elements (vocabulary, hidden sizes), use "
                     "larger batches where mte2 bounds, formats the cores like (NZ) for weights, "
                     "and matrix products fused with what follows; bound by mac: nothing but "
                     "less work or a smaller data type helps."),
};

static void run(struct np_advice *self, const struct np_checker *checker)
{
	const struct np_perf *perfs[] = {&cube};
	np_perf_run(self, checker, perfs, 1);
}

const struct np_checker np_checker_perf_cube = {
	.name = "perf_cube",
	.dimension = NP_DIM_COMPUTATION,
	.category = NP_N("Cube Operator Perf Analysis"),
	.category_zh = "Cube算子性能分析",
	.run = run,
};
