#include "advice/cluster_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/parts.h"
#include "report/lang.h"

static bool wants_step(const struct np_advice *self, int64_t step)
{
	return !self->options->has_step || step == self->options->step;
}

static int compare(int64_t step_a, size_t rank_a, int64_t step_b, size_t rank_b)
{
	if (step_a != step_b)
		return step_a < step_b ? -1 : 1;
	return (rank_a > rank_b) - (rank_a < rank_b);
}

/* ── step_trace_time ── */

static int by_step(const void *a, const void *b)
{
	const struct np_step_row *x = a, *y = b;
	return compare(x->step, x->rank, y->step, y->rank);
}

/* A capture may have two rows of a step, one per device: the first counts. */
static void drop_doubles(struct np_step_rows *rows)
{
	size_t kept = 0;
	for (size_t i = 0; i < rows->n; i++)
		if (kept == 0 || by_step(&rows->v[kept - 1], &rows->v[i]) != 0)
			rows->v[kept++] = rows->v[i];
	rows->n = kept;
}

bool np_advice_step_rows(const struct np_advice *self, struct np_step_rows *out)
{
	*out = (struct np_step_rows){0};
	for (size_t r = 0; r < self->cluster->ranks.n; r++) {
		const struct np_digest_step_trace *trace =
			NP_DIGEST_ROWS(&self->cluster->ranks.v[r], np_digest_step_trace);
		for (size_t i = 0; i < trace->n; i++) {
			struct np_step_row row = {trace->step[i],
			                          r,
			                          {trace->computing[i],
			                           trace->comm_not_overlapped[i], trace->free[i]}};
			bool known =
				isfinite(row.us[0]) && isfinite(row.us[1]) && isfinite(row.us[2]);
			if (known && wants_step(self, row.step) && !np_vec_push(out, row))
				return false;
		}
	}
	if (out->n > 1)
		qsort(out->v, out->n, sizeof *out->v, by_step);
	drop_doubles(out);
	return true;
}

/* ── communication.json ── */

static int by_step_link(const void *a, const void *b)
{
	const struct np_link_row *x = a, *y = b;
	return compare(x->step, x->rank, y->step, y->rank);
}

static bool kind_of(np_str transport, enum np_link_kind *out)
{
	*out = np_str_is(transport, "RDMA") ? NP_LINK_RDMA : NP_LINK_SDMA;
	return *out == NP_LINK_RDMA || np_str_is(transport, "SDMA");
}

static void add_links(const struct np_advice *self, const struct np_digest_comm_links *links,
                      size_t from, size_t end, struct np_link_row *row)
{
	for (size_t i = from; i < end && i < links->n; i++) {
		enum np_link_kind kind;
		if (!kind_of(np_cluster_text(self->cluster, links->transport[i]), &kind) ||
		    !(links->transit_mb[i] > 0) || !(links->transit_ms[i] > 0))
			continue;
		row->mb[kind] += links->transit_mb[i];
		row->ms[kind] += links->transit_ms[i];
	}
}

static bool add_rank(const struct np_advice *self, size_t rank, struct np_link_rows *out)
{
	const struct np_cluster_rank *of = &self->cluster->ranks.v[rank];
	const struct np_digest_comm_times *times = NP_DIGEST_ROWS(of, np_digest_comm_times);
	const struct np_digest_comm_links *links = NP_DIGEST_ROWS(of, np_digest_comm_links);
	struct np_map rows; /* step → row in out */
	size_t from = 0;
	bool ok = true;
	np_map_init(&rows);
	for (size_t i = 0; ok && i < times->n; i++) {
		size_t begin = from;
		from = times->links_end[i];
		if (!wants_step(self, times->step[i]))
			continue;
		uint32_t at = np_map_get(&rows, (uint64_t)times->step[i], NP_NO_U32);
		if (at == NP_NO_U32) {
			struct np_link_row fresh = {.step = times->step[i], .rank = rank};
			at = (uint32_t)out->n;
			ok = np_vec_push(out, fresh) &&
			     np_map_put(&rows, (uint64_t)times->step[i], at);
		}
		if (ok)
			add_links(self, links, begin, from, &out->v[at]);
	}
	np_map_release(&rows);
	return ok;
}

bool np_advice_link_rows(const struct np_advice *self, struct np_link_rows *out)
{
	*out = (struct np_link_rows){0};
	for (size_t r = 0; r < self->cluster->ranks.n; r++)
		if (!add_rank(self, r, out))
			return false;
	if (out->n > 1)
		qsort(out->v, out->n, sizeof *out->v, by_step_link);
	return true;
}

const char *np_step_name(int64_t step, char out[NP_STEP_NAME_SIZE])
{
	if (step == NP_NO_I64)
		return np_tr("all steps");
	(void)snprintf(out, NP_STEP_NAME_SIZE, np_tr("step %lld"), (long long)step);
	return out;
}
