#include "advice/choose.h"
#include "advice/cluster_rows.h"

/* The row of least bandwidth, or NULL: no rank with kernels has used such a link. */
static const struct np_link_row *least(const struct np_advice *self,
                                       const struct np_link_rows *rows, enum np_link_kind kind)
{
	const struct np_link_row *min = NULL;
	for (size_t i = 0; i < rows->n; i++) {
		const struct np_link_row *row = &rows->v[i];
		double gbps = np_link_gbps(row, kind);
		if (gbps > 0 && np_advice_has_kernels(self->cluster->ranks.v[row->rank].capture) &&
		    (!min || gbps < np_link_gbps(min, kind)))
			min = row;
	}
	return min;
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
