#include <math.h>

#include "advice/choose.h"
#include "advice/cluster_rows.h"

/* The row of least bandwidth; NULL when no rank with kernels has used such a link, or all are
 * alike: (max - min) / mean below the rule. */
static const struct np_link_row *least(const struct np_advice *self,
                                       const struct np_link_rows *rows, enum np_link_kind kind)
{
	const struct np_link_row *min = NULL;
	double max = 0, sum = 0;
	size_t n = 0;
	for (size_t i = 0; i < rows->n; i++) {
		const struct np_link_row *row = &rows->v[i];
		double gbps = np_link_gbps(row, kind);
		if (!(gbps > 0) ||
		    !np_advice_has_kernels(self->cluster->ranks.v[row->rank].capture))
			continue;
		min = !min || gbps < np_link_gbps(min, kind) ? row : min;
		max = fmax(max, gbps);
		sum += gbps;
		n++;
	}
	bool differ = min && (max - np_link_gbps(min, kind)) / (sum / (double)n) >=
	                             np_rule_value(self, "slow_link_gap");
	return differ ? min : NULL;
}

void np_advice_least_bandwidth(const struct np_advice *self, struct np_choice *out)
{
	struct np_link_rows rows;
	const struct np_link_row *row = NULL;
	if (np_advice_link_rows(self, &rows)) {
		row = least(self, &rows, NP_LINK_SDMA);
		row = row ? row : least(self, &rows, NP_LINK_RDMA);
	}
	if (row) {
		out->capture = self->cluster->ranks.v[row->rank].capture;
		out->rank = self->cluster->ranks.v[row->rank].rank;
		out->has_step = row->step != NP_NO_I64;
		out->step = row->step;
	}
	np_vec_release(&rows);
}
