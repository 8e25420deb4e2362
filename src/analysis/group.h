/*
 * Kernels in groups of equal operator, largest total first.
 *
 *   groups   │MatMul: first 0, n 3 │Add: first 3, n 2│ …
 *   rows     │ 17  4  29           │ 8  3            │ …   each group by duration
 *
 * So minimum, maximum and quantiles of a group are single look-ups. (Who needs none
 * takes the order of start, which is faster to walk.) Collectives
 * are not in it: their length is mostly waiting.
 */
#ifndef NP_ANALYSIS_GROUP_H
#define NP_ANALYSIS_GROUP_H

#include "analysis/analysis.h"

enum np_op_group_by {
	NP_BY_TYPE,       /* operator type (its name where none is recorded) and core */
	NP_BY_NAME,       /* kernel name and core */
	NP_BY_TYPE_SHAPE, /* type, core, input shapes */
	NP_BY_NAME_SHAPE, /* name, core, input shapes */
};

struct np_op_group {
	uint32_t first, n; /* in rows */
	uint32_t example;  /* the row that came first in time */
	np_ns total;
};

struct np_op_groups {
	struct np_op_group *groups;
	uint32_t *rows; /* kernel rows */
	size_t n, n_rows;
	np_ns total; /* of all groups: the computing time, kernel by kernel */
};

/* The kernels of the analysis but collectives, *n of them, by duration (equal ones in order
 * of start) or only by start. NULL: out of memory. The caller frees it. */
uint32_t *np_op_order(const struct np_analysis *self, bool by_duration, size_t *n);

/* Within a group rows have the order of `order`, which is from np_op_order(). false: out of
 * memory (release is still right). n log n in groups, linear in kernels. */
bool np_op_groups_build(const struct np_analysis *self, enum np_op_group_by by,
                        const uint32_t *order, size_t n_order, struct np_op_groups *out);
void np_op_groups_release(struct np_op_groups *self);

/* The smallest duration that at least `share` of the group do not exceed (nearest rank:
 * a value that occurred). */
np_ns np_op_quantile(const struct np_analysis *self, const struct np_op_groups *groups,
                     const struct np_op_group *group, double share);

/* a + b of two times that are not negative; sums of a hostile capture stay in range. */
static inline np_ns np_ns_sum(np_ns a, np_ns b)
{
	np_ns sum;
	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* ns of a share in 1/1000, without overflow. */
static inline np_ns np_ns_permille(np_ns ns, int permille)
{
	return ns / 1000 * permille + ns % 1000 * permille / 1000;
}

/*
 * How much of any [start, end) a merged set covers, by two binary searches.
 * `before` has set->n entries: what lies before each interval.
 */
struct np_cover {
	const struct np_intervals *set; /* borrowed */
	np_ns *before;
};

bool np_cover_init(struct np_cover *self, const struct np_intervals *set); /* false: no memory */
void np_cover_release(struct np_cover *self);
np_ns np_cover_length(const struct np_cover *self, np_ns start, np_ns end);

/* Operator type of a kernel row; its name where no type is recorded (Level0 of 2024). */
static inline uint32_t np_op_type(const struct np_analysis *self, uint32_t row)
{
	uint32_t type = self->profile->kernels.type[row];
	return type != 0 && type != NP_ID_NONE ? type : self->profile->kernels.name[row];
}

/* Input shapes of a kernel row, NP_ID_NONE when not recorded. */
static inline uint32_t np_in_shapes(const struct np_analysis *self, uint32_t row)
{
	const struct np_kernel_shapes *shapes = &self->profile->kernel_shapes;
	return row < shapes->n && shapes->in_shapes[row] != 0 ? shapes->in_shapes[row] : NP_ID_NONE;
}

/* Does any kernel of the analysis have input shapes? */
bool np_has_shapes(const struct np_analysis *self);

#endif
