/*
 * cluster_communication.json, laid out as the official tool does
 * (cluster_and_advisor.md §2.3). It can be larger than memory, so it is written as it is
 * made.
 */
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/pool.h"
#include "cluster/cluster_files.h"
#include "cluster/py_text.h"
#include "io/json.h"

/* ── cluster_communication.json ── */

/* All ops of all ranks, by the keys of the file. */
struct ops {
	const struct np_cluster *cluster;
	const struct np_comm_groups *groups;
	size_t n;
	uint32_t *label, *step, *op, *group, *rank, *row, *table_row;
	struct np_comm_rank *ranks; /* without .groups */
};

enum { N_COLUMNS = 7 };

static bool flatten(struct ops *self)
{
	size_t n = 0, n_ranks = self->cluster->ranks.n;
	self->ranks = np_calloc(n_ranks + 1, sizeof *self->ranks);
	for (size_t r = 0; self->ranks && r < n_ranks; r++) {
		const struct np_cluster_rank *rank = &self->cluster->ranks.v[r];
		self->ranks[r] = (struct np_comm_rank){
			.rank = rank->rank,
			.times = NP_DIGEST_ROWS(rank, np_digest_comm_times),
			.links = NP_DIGEST_ROWS(rank, np_digest_comm_links),
			.packages = NP_DIGEST_ROWS(rank, np_digest_comm_packages)};
		n += self->ranks[r].times->n;
	}
	uint32_t **const columns[N_COLUMNS] = {&self->label,    &self->step, &self->op,
	                                       &self->group,    &self->rank, &self->row,
	                                       &self->table_row};
	bool ok = self->ranks != NULL;
	for (size_t c = 0; c < N_COLUMNS; c++) {
		*columns[c] = np_realloc(NULL, n + 1, sizeof(uint32_t));
		ok &= *columns[c] != NULL;
	}
	for (size_t r = 0; ok && r < n_ranks; r++) {
		const struct np_digest_comm_times *t = self->ranks[r].times;
		for (size_t i = 0; i < t->n; i++, self->n++) {
			size_t g = np_comm_groups_find(self->groups, t->group[i], t->p2p[i]);
			self->label[self->n] = self->groups->v.v[g].label;
			self->step[self->n] = (uint32_t)(uint64_t)t->step[i];
			self->op[self->n] = t->op[i];
			self->group[self->n] = t->group[i];
			self->rank[self->n] = (uint32_t)r;
			self->row[self->n] = (uint32_t)i;
			self->table_row[self->n] = (uint32_t)g;
		}
	}
	return ok;
}

static void release(struct ops *self)
{
	uint32_t *const columns[N_COLUMNS] = {self->label, self->step, self->op,       self->group,
	                                      self->rank,  self->row,  self->table_row};
	for (size_t c = 0; c < N_COLUMNS; c++)
		np_free(columns[c]);
	np_free(self->ranks);
}

static void time_info(struct np_buf *out, const struct np_comm_sums *sums)
{
	np_py_member(out, "\"Elapse Time(ms)\": ", sums->elapse);
	np_py_member(out, ", \"Transit Time(ms)\": ", sums->transit);
	np_py_member(out, ", \"Wait Time(ms)\": ", sums->wait);
	np_py_member(out, ", \"Synchronization Time(ms)\": ", sums->sync);
	np_py_member(out, ", \"Idle Time(ms)\": ", sums->idle);
	np_py_member(out, ", \"Wait Time Ratio\": ", np_comm_ratio(sums->wait, sums->transit));
	np_py_member(out, ", \"Synchronization Time Ratio\": ",
	             np_comm_ratio(sums->sync, sums->transit));
	np_buf_add_char(out, '}');
}

/* The exporter lists these in every op, used or not, in this order; then what is new. */
static const char *const transports[] = {"RDMA", "HCCS", "PCIE", "SDMA", "SIO"};
enum { N_TRANSPORTS = sizeof transports / sizeof *transports };

static bool is_usual(np_str transport)
{
	for (size_t i = 0; i < N_TRANSPORTS; i++)
		if (np_str_is(transport, transports[i]))
			return true;
	return false;
}

static void link_key(struct np_buf *out, np_str transport, bool first)
{
	if (!first)
		NP_PY_ADD(out, ", ");
	np_json_quote(out, transport);
	NP_PY_ADD(out, ": {");
}

static void op_link(struct np_buf *out, const struct np_comm_rank *rank, uint32_t link)
{
	const struct np_digest_comm_links *links = rank->links;
	const struct np_digest_comm_packages *packages = rank->packages;
	np_py_member(out, "\"Transit Size(MB)\": ", links->transit_mb[link]);
	np_py_member(out, ", \"Transit Time(ms)\": ", links->transit_ms[link]);
	np_py_member(out, ", \"Bandwidth(GB/s)\": ", links->gbps[link]);
	np_py_member(out, ", \"Large Packet Ratio\": ", links->large_ratio[link]);
	NP_PY_ADD(out, ", \"Size Distribution\": {");
	uint32_t begin = np_comm_packages_begin(links, link);
	for (uint32_t p = begin; p < links->packages_end[link]; p++) {
		char digits[NP_PYTHON_CHARS];
		np_buf_add_cstr(out, p > begin ? ", \"" : "\"");
		np_buf_add(out, digits, np_format_python(packages->package_mb[p], digits));
		NP_PY_ADD(out, "\": [");
		np_py_count(out, packages->count[p]);
		NP_PY_ADD(out, ", ");
		np_py_number(out, packages->package_ms[p]);
		np_buf_add_char(out, ']');
	}
	NP_PY_ADD(out, "}}");
}

#define NO_LINK                                                                      \
	"\"Transit Size(MB)\": 0, \"Transit Time(ms)\": 0, \"Bandwidth(GB/s)\": 0, " \
	"\"Large Packet Ratio\": 0, \"Size Distribution\": {}}"

static void op_links(struct np_buf *out, const struct np_cluster *cluster,
                     const struct np_comm_rank *rank, size_t row)
{
	uint32_t begin = np_comm_links_begin(rank->times, row), end = rank->times->links_end[row];
	for (size_t i = 0; i < N_TRANSPORTS; i++) {
		uint32_t link = begin;
		while (link < end &&
		       !np_str_is(np_cluster_text(cluster, rank->links->transport[link]),
		                  transports[i]))
			link++;
		link_key(out, np_str_of(transports[i]), i == 0);
		if (link < end)
			op_link(out, rank, link);
		else
			NP_PY_ADD(out, NO_LINK);
	}
	for (uint32_t link = begin; link < end; link++) {
		np_str transport = np_cluster_text(cluster, rank->links->transport[link]);
		if (is_usual(transport))
			continue;
		link_key(out, transport, false);
		op_link(out, rank, link);
	}
}

/* "0": {"Communication Time Info": … of one op of one rank */
static void op_rank(struct np_buf *out, const struct ops *self, uint32_t at, bool first)
{
	const struct np_comm_rank *rank = &self->ranks[self->rank[at]];
	size_t row = self->row[at];
	struct np_comm_sums times = {0};
	np_comm_sum(&times, rank->times, row);
	np_buf_printf(out, "%s\"%lld\": {\"Communication Time Info\": {", first ? "" : ", ",
	              (long long)rank->rank);
	np_py_member(out, "\"Start Timestamp(us)\": ", rank->times->start_us[row]);
	NP_PY_ADD(out, ", ");
	time_info(out, &times);
	NP_PY_ADD(out, ", \"Communication Bandwidth Info\": {");
	op_links(out, self->cluster, rank, row);
	NP_PY_ADD(out, "}}");
}

static void total_link(struct np_buf *out, const struct np_comm_size *sizes, size_t n)
{
	np_py_member(out, "\"Transit Time(ms)\": ", sizes->transit_ms);
	np_py_member(out, ", \"Transit Size(MB)\": ", sizes->transit_mb);
	NP_PY_ADD(out, ", \"Size Distribution\": {");
	bool any = false;
	for (size_t i = 0; i < n; i++) {
		char digits[NP_PYTHON_CHARS];
		if (sizes[i].package_mb == 0 && sizes[i].count == 0)
			continue;
		np_buf_add_cstr(out, any ? ", \"" : "\"");
		any = true;
		np_buf_add(out, digits, np_format_python(sizes[i].package_mb, digits));
		NP_PY_ADD(out, "\": [");
		np_py_count(out, sizes[i].count);
		NP_PY_ADD(out, ", ");
		np_py_number(out, sizes[i].package_ms);
		np_buf_add_char(out, ']');
	}
	np_py_member(out, "}, \"Bandwidth(GB/s)\": ",
	             np_comm_gbps(sizes->transit_mb, sizes->transit_ms));
	np_buf_add_char(out, '}');
}

/* sizes are sorted by transport */
static size_t run_of(const struct np_comm_sizes *sizes, size_t from)
{
	size_t n = 1;
	while (from + n < sizes->v.n &&
	       sizes->v.v[from + n].transport == sizes->v.v[from].transport)
		n++;
	return n;
}

#define NO_TOTAL                                                                        \
	"\"Transit Time(ms)\": 0, \"Transit Size(MB)\": 0, \"Size Distribution\": {}, " \
	"\"Bandwidth(GB/s)\": 0}"

static void total_links(struct np_buf *out, const struct np_cluster *cluster,
                        const struct np_comm_sizes *sizes)
{
	for (size_t i = 0; i < N_TRANSPORTS; i++) {
		size_t at = 0;
		while (at < sizes->v.n &&
		       !np_str_is(np_cluster_text(cluster, sizes->v.v[at].transport),
		                  transports[i]))
			at++;
		link_key(out, np_str_of(transports[i]), i == 0);
		if (at < sizes->v.n)
			total_link(out, &sizes->v.v[at], run_of(sizes, at));
		else
			NP_PY_ADD(out, NO_TOTAL);
	}
	for (size_t at = 0; at < sizes->v.n; at += run_of(sizes, at)) {
		np_str transport = np_cluster_text(cluster, sizes->v.v[at].transport);
		if (is_usual(transport))
			continue;
		link_key(out, transport, false);
		total_link(out, &sizes->v.v[at], run_of(sizes, at));
	}
}

/* at[]: the ops of one group (and step, and label) of one rank */
static bool total_rank(struct np_buf *out, const struct ops *self, const uint32_t *at, size_t n,
                       bool first)
{
	const struct np_comm_rank *rank = &self->ranks[self->rank[at[0]]];
	struct np_comm_sums sums = {0};
	struct np_comm_sizes sizes = {.v = {0}};
	bool ok = true;
	for (size_t i = 0; ok && i < n; i++) {
		np_comm_sum(&sums, rank->times, self->row[at[i]]);
		ok = np_comm_sizes_add(&sizes, rank, &self->row[at[i]], 1);
	}
	np_comm_sizes_finish(&sizes);
	np_buf_printf(out, "%s\"%lld\": {\"Communication Time Info\": {", first ? "" : ", ",
	              (long long)rank->rank);
	time_info(out, &sums);
	NP_PY_ADD(out, ", \"Communication Bandwidth Info\": {");
	total_links(out, self->cluster, &sizes);
	NP_PY_ADD(out, "}}");
	np_vec_release(&sizes.v);
	return ok;
}

/* ── the order of the file ── */

/* A key of the third level: an op of a group or the total of a group. */
struct place {
	uint32_t label, step, total, number; /* total: 0 ops come first, 1; number in its groups */
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	const uint32_t u[] = {x->label, x->step, x->total, x->number};
	const uint32_t v[] = {y->label, y->step, y->total, y->number};
	for (size_t i = 0; i < 4; i++)
		if (u[i] != v[i])
			return u[i] < v[i] ? -1 : 1;
	return 0;
}

static struct place *arrange(const struct ops *self, const struct np_groups *ops,
                             const struct np_groups *totals)
{
	struct place *places = np_realloc(NULL, ops->n + totals->n + 1, sizeof *places);
	size_t n = 0;
	for (size_t g = 0; places && g < ops->n; g++) {
		uint32_t row = np_group_row(ops, g);
		places[n++] = (struct place){self->label[row], self->step[row], 0, (uint32_t)g};
	}
	for (size_t g = 0; places && g < totals->n; g++) {
		uint32_t row = np_group_row(totals, g);
		places[n++] = (struct place){self->label[row], self->step[row], 1, (uint32_t)g};
	}
	if (places && n > 0)
		qsort(places, n, sizeof *places, by_place);
	return places;
}

/* Close and open the two outer levels where they change. */
static void levels(struct np_buf *out, const struct ops *self, const struct place *places, size_t p,
                   uint32_t row)
{
	bool new_label = p == 0 || places[p - 1].label != places[p].label;
	bool new_step = new_label || places[p - 1].step != places[p].step;
	if (!new_step) {
		NP_PY_ADD(out, ", ");
		return;
	}
	if (new_label) {
		np_buf_add_cstr(out, p > 0 ? "}}, \"" : "\"");
		np_ranks_print(self->groups->v.v[self->table_row[row]].seen, true, out);
		NP_PY_ADD(out, "\": {");
	} else {
		NP_PY_ADD(out, "}, ");
	}
	char step[32];
	np_comm_step_text(self->ranks[self->rank[row]].times->step[self->row[row]], step);
	np_buf_printf(out, "\"%s\": {", step);
}

static bool add_place(struct np_buf *out, const struct ops *self, const struct place *place,
                      const struct np_groups *groups, struct np_buf *scratch)
{
	const uint32_t *at = &groups->order[groups->start[place->number]];
	size_t n = np_group_size(groups, place->number);
	bool ok = true;
	np_py_op_key(out,
	             place->total ? NP_STR("Total Op Info")
	                          : np_cluster_text(self->cluster, self->op[*at]),
	             np_cluster_text(self->cluster, self->group[*at]), scratch);
	np_buf_add_char(out, '{');
	for (size_t i = 0, run; ok && i < n; i += run) {
		for (run = 1; i + run < n && self->rank[at[i + run]] == self->rank[at[i]];)
			run++;
		if (place->total)
			ok = total_rank(out, self, at + i, run, i == 0);
		else
			op_rank(out, self, at[i + run - 1], i == 0);
	}
	np_buf_add_char(out, '}');
	return ok;
}

/*
 * The text is made in slices on all processors, and written in their order:
 *
 *   places  ├ slice ┼ slice ┼ slice ┼ slice ┤ …
 *             ▼ job   ▼ job   ▼ job   ▼ job        then one after the other to the file
 */
enum { SLICE_ROWS = 512, SLICES_PER_THREAD = 4, MAX_SLICES = 256 };

struct slice {
	size_t from, to; /* places */
	struct np_buf text, scratch;
	bool ok;
};

struct slices {
	const struct ops *ops;
	const struct np_groups *of_ops, *of_totals;
	const struct place *places;
	size_t n_places;
	struct slice v[MAX_SLICES];
};

static const struct np_groups *groups_of(const struct slices *self, size_t p)
{
	return self->places[p].total ? self->of_totals : self->of_ops;
}

static void make_slice(void *ctx, size_t i)
{
	struct slices *self = ctx;
	struct slice *slice = &self->v[i];
	np_buf_clear(&slice->text);
	slice->ok = true;
	for (size_t p = slice->from; slice->ok && p < slice->to; p++) {
		const struct np_groups *groups = groups_of(self, p);
		levels(&slice->text, self->ops, self->places, p,
		       np_group_row(groups, self->places[p].number));
		slice->ok = add_place(&slice->text, self->ops, &self->places[p], groups,
		                      &slice->scratch);
	}
}

/* Share out the places from *next on; how many slices there are. */
static size_t cut_slices(struct slices *self, size_t *next, size_t most)
{
	size_t n = 0;
	while (*next < self->n_places && n < most) {
		struct slice *slice = &self->v[n++];
		slice->from = *next;
		for (size_t rows = 0; *next < self->n_places && rows < SLICE_ROWS; (*next)++)
			rows += np_group_size(groups_of(self, *next), self->places[*next].number);
		slice->to = *next;
	}
	return n;
}

static bool write_slices(struct np_stream *stream, struct slices *self)
{
	unsigned asked = self->ops->cluster->options->threads;
	unsigned threads = asked ? asked : np_cpu_count();
	size_t most = (size_t)threads * SLICES_PER_THREAD, n;
	bool ok = true;
	for (size_t next = 0; ok && next < self->n_places;) {
		n = cut_slices(self, &next, most < MAX_SLICES ? most : MAX_SLICES);
		np_pool_run(threads, n, make_slice, self);
		for (size_t i = 0; i < n; i++) {
			ok &= self->v[i].ok && !self->v[i].text.failed;
			np_stream_write(stream, np_buf_str(&self->v[i].text));
		}
	}
	for (size_t i = 0; i < MAX_SLICES; i++) {
		np_buf_release(&self->v[i].text);
		np_buf_release(&self->v[i].scratch);
	}
	return ok;
}

static bool write_ops(struct np_stream *stream, const struct ops *self)
{
	struct np_groups ops = {0}, totals = {0};
	const uint32_t *const op_keys[] = {self->label, self->step, self->op, self->group};
	const uint32_t *const total_keys[] = {self->label, self->step, self->group};
	bool ok = np_group_rows(self->n, op_keys, 4, &ops) &&
	          np_group_rows(self->n, total_keys, 3, &totals);
	struct place *places = ok ? arrange(self, &ops, &totals) : NULL;
	struct slices *slices = np_calloc(1, sizeof *slices);
	ok = places && slices;
	np_buf_add_char(&stream->text, '{');
	if (ok) {
		slices->ops = self;
		slices->of_ops = &ops;
		slices->of_totals = &totals;
		slices->places = places;
		slices->n_places = ops.n + totals.n;
		ok = write_slices(stream, slices);
	}
	np_buf_add_cstr(&stream->text, ops.n > 0 ? "}}}" : "}");
	np_free(slices);
	np_free(places);
	np_groups_release(&ops);
	np_groups_release(&totals);
	return ok;
}

enum np_status np_write_time_json(struct np_export *out, const struct np_comm_groups *groups,
                                  struct np_err *err)
{
	struct ops ops = {.cluster = out->cluster, .groups = groups};
	struct np_stream stream = {.open = false};
	enum np_status status = flatten(&ops) ? NP_OK : np_err_nomem(err);
	const char *path = NULL;
	if (status == NP_OK && ops.n > 0) {
		path = np_export_path(out, NULL, "cluster_communication.json", err);
		status = path ? np_stream_begin(&stream, path, err) : NP_E_IO;
	}
	if (status == NP_OK && path)
		status = write_ops(&stream, &ops) ? NP_OK : np_err_nomem(err);
	release(&ops);
	return np_stream_end(&stream, status, err);
}
