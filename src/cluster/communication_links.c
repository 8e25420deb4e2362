/*
 * The matrix: size, time and bandwidth of every link of a group. Rank numbers are
 * global; a link to a rank without data is known from the rank at its other end.
 */
#include <math.h>
#include <stdlib.h>

#include "cluster/communication.h"
#include "report/lang.h"

enum { MAX_BY_KIND = 64 }; /* members of a group whose links are told by kind of operation */

static const struct np_column columns[] = {
	NP_COMM_UNIT_COLUMNS,
	{"operation", "", NP_COL_TEXT, "allreduce-top1 …; Total Op Info: all, the sum of -total"},
	{"src_rank", "", NP_COL_INT, "source"},
	{"dst_rank", "", NP_COL_INT, "destination"},
	{"numbering", "", NP_COL_TEXT,
         "global ranks, or those in the group when its members are "
         "not recorded"},
	{"transport_type", "", NP_COL_TEXT, "LOCAL, HCCS, PCIE, RDMA, SIO"},
	{"transit_size_mb", "MB", NP_COL_REAL, "size, 1e6 bytes"},
	{"transit_time_ms", "ms", NP_COL_REAL, "time"},
	{"bandwidth_gbps", "GB/s", NP_COL_REAL, "size / time"},
};

struct link {
	int64_t step;
	np_id group, kind, transport; /* kind NP_ID_NONE: the total */
	int64_t src, dst;
	size_t order; /* as collected: by rank, then as recorded */
	double mb, ms;
};

typedef NP_VEC(struct link) links;

#define ORDER(a, b)                                \
	do {                                       \
		if ((a) != (b))                    \
			return (a) < (b) ? -1 : 1; \
	} while (0)

static int by_place(const void *a, const void *b)
{
	const struct link *x = a, *y = b;
	ORDER(x->step, y->step);
	ORDER(x->group, y->group);
	ORDER(x->kind + 1, y->kind + 1); /* the total first */
	ORDER(x->src, y->src);
	ORDER(x->dst, y->dst);
	ORDER(x->transport, y->transport);
	ORDER(x->order, y->order);
	return 0;
}

static bool same_place(const struct link *x, const struct link *y)
{
	return x->step == y->step && x->group == y->group && x->kind == y->kind &&
	       x->src == y->src && x->dst == y->dst && x->transport == y->transport;
}

static int64_t global(const struct np_group *group, uint32_t local)
{
	return group && local < group->n_ranks ? group->ranks[local] : (int64_t)local;
}

/* One row as its kind, and into the total when it sums up the kind. */
static bool take(const struct np_comm_units *self, const struct np_digest_insight_link *in,
                 size_t i, links *out)
{
	const struct np_comm_unit *unit = np_comm_units_find(self, in->step[i], in->group[i]);
	const struct np_group *group = unit ? unit->recorded : NULL;
	struct link link = {.step = in->step[i],
	                    .group = in->group[i],
	                    .kind = in->kind[i],
	                    .transport = in->transport[i],
	                    .src = global(group, in->src[i]),
	                    .dst = global(group, in->dst[i]),
	                    .order = out->n,
	                    .mb = in->mb[i],
	                    .ms = in->ms[i]};
	if (!unit)
		return true;
	if ((!group || group->n_ranks <= MAX_BY_KIND) && !np_vec_push(out, link))
		return false;
	link.kind = NP_ID_NONE;
	link.order = out->n;
	return !np_str_ends(np_cluster_text(self->cluster, in->kind[i]), NP_STR("-total")) ||
	       np_vec_push(out, link);
}

static bool collect(const struct np_comm_units *self, links *out)
{
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_digest_insight_link *in =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_insight_link);
		for (size_t i = 0; i < in->n; i++)
			if (np_insight_wants(&self->steps, in->step[i]) && !take(self, in, i, out))
				return false;
	}
	if (out->n > 0)
		qsort(out->v, out->n, sizeof *out->v, by_place);
	return true;
}

static void row(struct np_table *table, const struct np_comm_units *self, const struct link *link)
{
	const struct np_comm_unit *unit = np_comm_units_find(self, link->step, link->group);
	np_cell_comm_unit(table, self, unit);
	if (link->kind == NP_ID_NONE)
		np_cell_cstr(table, "Total Op Info");
	else
		np_cell_text(table, np_cluster_text(self->cluster, link->kind));
	np_cell_int(table, link->src);
	np_cell_int(table, link->dst);
	np_cell_word(table, unit->recorded ? NP_N("global") : NP_N("in the group"));
	np_cell_text(table, np_cluster_text(self->cluster, link->transport));
	np_cell_real(table, link->mb);
	np_cell_real(table, link->ms);
	np_cell_real(table, link->ms > 0 ? link->mb / link->ms : 0);
}

bool np_comm_links(const struct np_comm_units *self)
{
	struct np_table *table = NP_REPORT_TABLE(self->cluster->report, "CommunicationMatrix",
	                                         "Links between ranks", columns);
	links all = {0};
	bool ok = collect(self, &all);
	for (size_t i = 0, next; ok && i < all.n; i = next) {
		struct link sum = all.v[i];
		for (next = i + 1; next < all.n && same_place(&all.v[i], &all.v[next]); next++) {
			sum.mb += all.v[next].mb;
			sum.ms += all.v[next].ms;
		}
		row(table, self, &sum);
	}
	np_vec_release(&all);
	return ok;
}
