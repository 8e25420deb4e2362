#include "cluster/modules.h"

#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "cluster/grouping.h"
#include "cluster/module_tree.h"

#define NP_TAG np_digest_modules
NP_TABLE_DESC(, np_digest_modules, "modules", NP_DIGEST_MODULES_COLUMNS)
#undef NP_TAG

const struct np_table_desc np_digest_module_mfu_desc = {"module_mfu", np_digest_modules_columns,
                                                        sizeof np_digest_modules_columns /
                                                                sizeof *np_digest_modules_columns};

enum { KERNEL_LIST_BYTES = 1 << 16 }; /* of a row; what is more is not named */

struct spans {
	struct np_span *v;
	size_t n, cap;
};

/* One operator within a module. */
struct placed {
	np_ns module_start, op_start;
	uint32_t node, op; /* op: group of `by_op` */
};

struct modules {
	const struct np_profile *profile;
	const struct np_launches *launches;
	const double *mfu;
	struct np_intern names; /* of modules, operators, lists of kernels */
	struct np_groups by_op; /* launches of one operator */
	struct spans spans;     /* of modules */
	struct np_module_tree tree;
	NP_VEC(struct placed) placed;
	/* columns of `placed`, to group by */
	uint32_t *parent, *module, *op, *position, *kernels, *sequence;
	int64_t *total;
};

static bool keep(struct np_intern *names, const struct np_profile *profile, uint32_t id,
                 uint32_t *out)
{
	*out = np_intern_add(names, np_intern_get(&profile->strings, id));
	return *out != NP_ID_NONE;
}

/* ── modules of the forward pass ── */

static bool add_span(struct spans *spans, struct np_span span)
{
	span.order = (uint32_t)spans->n;
	return spans->n < UINT32_MAX && np_vec_push(spans, span);
}

static bool forward(struct modules *self)
{
	const struct np_mstx *m = &self->profile->mstx;
	const struct np_intern *strings = &self->profile->strings;
	uint32_t domain = np_intern_find(strings, NP_STR("Module"));
	bool ok = true;
	for (size_t i = 0; ok && domain != NP_ID_NONE && i < m->n; i++) {
		if (m->event_type[i] != NP_MSTX_START_END || m->domain[i] != domain)
			continue;
		struct np_span span = {
			.start = m->start_ns[i], .end = m->end_ns[i], .op = NP_SPAN_MODULE};
		ok = keep(&self->names, self->profile, m->message[i], &span.name) &&
		     add_span(&self->spans, span);
	}
	return ok;
}

/* ── modules of the backward pass: where the operators ran whose forward ones were in
 *    one module ── */

struct flow {
	np_ns start, end; /* of the backward operator */
	uint32_t node;    /* around the forward one */
	uint32_t order;
};

struct flows {
	struct flow *v;
	size_t n, cap;
};

static int by_backward(const void *a, const void *b)
{
	const struct flow *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static bool is_queue(const struct np_profile *profile, uint32_t op)
{
	np_str name = np_intern_get(&profile->strings, profile->host_ops.name[op]);
	return profile->host_ops.layer[op] == NP_HOST_QUEUE ||
	       np_str_istarts(name, NP_STR("Enqueue")) || np_str_istarts(name, NP_STR("Dequeue"));
}

static bool add_flow(const struct np_profile *profile, uint32_t fwd, uint32_t bwd,
                     struct spans *spans, struct flows *flows)
{
	const struct np_host_ops *h = &profile->host_ops;
	if (is_queue(profile, fwd))
		return true;
	struct np_span span = {.start = h->start_ns[fwd],
	                       .end = h->start_ns[fwd] + h->dur_ns[fwd],
	                       .op = (uint32_t)flows->n};
	struct flow flow = {.start = h->start_ns[bwd],
	                    .end = h->start_ns[bwd] + h->dur_ns[bwd],
	                    .order = (uint32_t)flows->n};
	return add_span(spans, span) && np_vec_push(flows, flow);
}

/* Each connection that several operators share: its first one is forward, its last backward. */
static bool connected_flows(const struct np_profile *profile, struct spans *spans,
                            struct flows *flows)
{
	const struct np_host_conns *c = &profile->host_conns;
	bool ok = true;
	for (size_t i = 0, end; ok && i < c->n; i = end) {
		for (end = i + 1; end < c->n && c->conn[end] == c->conn[i];)
			end++;
		ok = end - i < 2 || add_flow(profile, c->op[i], c->op[end - 1], spans, flows);
	}
	return ok;
}

static bool collect_flows(const struct np_profile *profile, struct spans *spans,
                          struct flows *flows)
{
	struct np_arrows arrows;
	if (profile->host_conns.n > 0)
		return connected_flows(profile, spans, flows);
	bool ok = np_arrows_build(profile, NP_STR("fwdbwd"), &arrows);
	for (size_t i = 0; ok && i < arrows.n; i++)
		ok = add_flow(profile, arrows.v[i].from, arrows.v[i].to, spans, flows);
	np_vec_release(&arrows);
	return ok;
}

/* Two instances of a module have different nodes even where their times are equal. */
static bool same_module(const struct np_module_tree *tree, uint32_t a, uint32_t b)
{
	const struct np_module_node *x = &tree->nodes.v[a], *y = &tree->nodes.v[b];
	return a == b || (x->parent_path == y->parent_path && x->name == y->name &&
	                  x->start == y->start && x->end == y->end);
}

/* The range of a run becomes a module, within one that is named by the whole path. */
static bool add_backward(struct modules *self, const struct np_module_node *node, np_ns start,
                         np_ns end)
{
	struct np_span span = {.start = start,
	                       .end = end,
	                       .name = node->name,
	                       .op = NP_SPAN_MODULE,
	                       .backward = true};
	struct np_span around = {.start = start - 1,
	                         .end = end + 1,
	                         .name = node->parent_path,
	                         .op = NP_SPAN_MODULE,
	                         .backward = true};
	return (node->parent_path == 0 || add_span(&self->spans, around)) &&
	       add_span(&self->spans, span);
}

static bool add_runs(struct modules *self, const struct np_module_tree *tree,
                     const struct flows *flows)
{
	bool ok = true;
	for (size_t i = 0, end; ok && i < flows->n; i = end) {
		np_ns first = flows->v[i].start, last = flows->v[i].end;
		for (end = i + 1; end < flows->n; end++) {
			if (!same_module(tree, flows->v[i].node, flows->v[end].node))
				break;
			last = flows->v[end].end > last ? flows->v[end].end : last;
		}
		ok = add_backward(self, &tree->nodes.v[flows->v[i].node], first, last);
	}
	return ok;
}

static bool backward(struct modules *self)
{
	struct spans spans = {0};
	struct flows flows = {0};
	struct np_module_tree tree = {0};
	size_t n = 0;
	bool ok = true;
	if (self->spans.n == 0)
		return true;
	for (size_t i = 0; ok && i < self->spans.n; i++)
		ok = np_vec_push(&spans, self->spans.v[i]);
	ok = ok && collect_flows(self->profile, &spans, &flows);
	uint32_t *owner = ok ? np_calloc(flows.n + 1, sizeof *owner) : NULL;
	ok = owner && np_module_tree_build(&tree, &self->names, spans.v, spans.n, owner);
	for (size_t i = 0; ok && i < flows.n; i++) {
		flows.v[i].node = owner[i];
		if (owner[i] != 0)
			flows.v[n++] = flows.v[i];
	}
	flows.n = n;
	if (ok && n > 0) {
		qsort(flows.v, n, sizeof *flows.v, by_backward);
		ok = add_runs(self, &tree, &flows);
	}
	np_free(owner);
	np_module_tree_release(&tree);
	np_vec_release(&spans);
	np_vec_release(&flows);
	return ok;
}

/* ── operators into modules ── */

static int by_module(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->module_start != y->module_start)
		return x->module_start < y->module_start ? -1 : 1;
	if (x->op_start != y->op_start)
		return x->op_start < y->op_start ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->op > y->op) - (x->op < y->op);
}

static bool place(struct modules *self)
{
	const struct np_host_ops *h = &self->profile->host_ops;
	uint32_t *keys = np_realloc(NULL, self->launches->n + 1, sizeof *keys);
	const uint32_t *const columns[] = {keys};
	for (size_t i = 0; keys && i < self->launches->n; i++)
		keys[i] = self->launches->v[i].op;
	bool ok = keys && np_group_rows(self->launches->n, columns, 1, &self->by_op);
	np_free(keys);
	for (size_t g = 0; ok && g < self->by_op.n; g++) {
		uint32_t op = self->launches->v[np_group_row(&self->by_op, g)].op;
		struct np_span span = {.start = h->start_ns[op],
		                       .end = h->start_ns[op] + h->dur_ns[op],
		                       .op = (uint32_t)g};
		ok = add_span(&self->spans, span);
	}
	uint32_t *owner = ok ? np_calloc(self->by_op.n + 1, sizeof *owner) : NULL;
	ok = owner &&
	     np_module_tree_build(&self->tree, &self->names, self->spans.v, self->spans.n, owner);
	for (uint32_t g = 0; ok && g < self->by_op.n; g++) {
		const struct np_module_node *node = &self->tree.nodes.v[owner[g]];
		uint32_t op = self->launches->v[np_group_row(&self->by_op, g)].op;
		struct placed placed = {node->start, h->start_ns[op], owner[g], g};
		ok = owner[g] == 0 || np_vec_push(&self->placed, placed);
	}
	np_free(owner);
	if (ok && self->placed.n > 0)
		qsort(self->placed.v, self->placed.n, sizeof *self->placed.v, by_module);
	return ok;
}

/* ── what a placed operator is grouped by ── */

static bool kernel_list(struct modules *self, uint32_t op, struct np_buf *text, uint32_t *list,
                        int64_t *total)
{
	np_buf_clear(text);
	*total = 0;
	for (size_t i = 0; i < np_group_size(&self->by_op, op); i++) {
		const struct np_launch *launch =
			&self->launches->v[self->by_op.order[self->by_op.start[op] + i]];
		*total += launch->end_ns - launch->start_ns;
		if (text->len > KERNEL_LIST_BYTES)
			continue;
		if (i > 0)
			np_buf_add_cstr(text, ", ");
		np_buf_add_str(text, np_intern_get(&self->profile->strings, launch->name));
	}
	*list = text->failed ? NP_ID_NONE : np_intern_add(&self->names, np_buf_str(text));
	return *list != NP_ID_NONE;
}

static bool module_name(struct modules *self, const struct np_module_node *node, uint32_t *out)
{
	struct np_buf text = {0};
	if (!node->backward) {
		*out = node->name;
		return true;
	}
	np_buf_add_cstr(&text, "[Backward]");
	np_buf_add_str(&text, np_intern_get(&self->names, node->name));
	*out = text.failed ? NP_ID_NONE : np_intern_add(&self->names, np_buf_str(&text));
	np_buf_release(&text);
	return *out != NP_ID_NONE;
}

static bool allocate(struct modules *self)
{
	size_t n = self->placed.n + 1;
	uint32_t **const columns[] = {&self->parent,   &self->module,  &self->op,
	                              &self->position, &self->kernels, &self->sequence};
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		if (!(*columns[i] = np_calloc(n, sizeof **columns[i])))
			return false;
	return (self->total = np_calloc(n, sizeof *self->total)) != NULL;
}

/* Instances with the same operators in the same order have the same number, by first
 * appearance; position is the operator's place within. */
static bool sequences(struct modules *self)
{
	size_t n = self->placed.n;
	struct np_intern known;
	struct np_groups instances = {0};
	struct np_buf ids = {.max_bytes = SIZE_MAX / 4};
	uint32_t *node = np_realloc(NULL, n + 1, sizeof *node);
	const uint32_t *const keys[] = {node};
	bool ok = np_intern_init(&known) && node;
	for (size_t i = 0; ok && i < n; i++)
		node[i] = self->placed.v[i].node;
	ok = ok && np_group_rows(n, keys, 1, &instances);
	for (size_t g = 0; ok && g < instances.n; g++) {
		const uint32_t *rows = &instances.order[instances.start[g]];
		np_buf_clear(&ids);
		for (size_t i = 0; i < np_group_size(&instances, g); i++) {
			self->position[rows[i]] = (uint32_t)i;
			np_buf_add(&ids, &self->op[rows[i]], sizeof self->op[0]);
		}
		uint32_t id = ids.failed ? NP_ID_NONE : np_intern_add(&known, np_buf_str(&ids));
		ok = id != NP_ID_NONE;
		for (size_t i = 0; ok && i < np_group_size(&instances, g); i++)
			self->sequence[rows[i]] = id;
	}
	np_groups_release(&instances);
	np_intern_release(&known);
	np_buf_release(&ids);
	np_free(node);
	return ok;
}

static bool describe(struct modules *self)
{
	struct np_buf text = {.max_bytes = SIZE_MAX / 4};
	bool ok = allocate(self);
	for (size_t i = 0; ok && i < self->placed.n; i++) {
		const struct placed *placed = &self->placed.v[i];
		const struct np_module_node *node = &self->tree.nodes.v[placed->node];
		uint32_t op = self->launches->v[np_group_row(&self->by_op, placed->op)].op;
		self->parent[i] = node->parent_path;
		ok = module_name(self, node, &self->module[i]) &&
		     keep(&self->names, self->profile, self->profile->host_ops.name[op],
		          &self->op[i]) &&
		     kernel_list(self, placed->op, &text, &self->kernels[i], &self->total[i]);
	}
	np_buf_release(&text);
	return ok && sequences(self);
}

/* ── rows ── */

struct row {
	np_ns op_start;
	uint32_t group, placed; /* placed: its first */
	uint32_t position, suffix;
};

static int by_execution(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->op_start != y->op_start)
		return x->op_start < y->op_start ? -1 : 1;
	if (x->position != y->position)
		return x->position < y->position ? -1 : 1;
	return (x->placed > y->placed) - (x->placed < y->placed);
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* The sequences in rows[from…to): where there are several, each row's suffix. */
static bool suffixes(const struct modules *self, struct row *rows, size_t n)
{
	size_t unique = 0;
	uint32_t *ids = np_realloc(NULL, n, sizeof *ids);
	for (size_t i = 0; ids && i < n; i++)
		ids[i] = self->sequence[rows[i].placed];
	if (ids)
		qsort(ids, n, sizeof *ids, by_id);
	for (size_t i = 0; ids && i < n; i++)
		if (unique == 0 || ids[unique - 1] != ids[i])
			ids[unique++] = ids[i];
	for (size_t i = 0; ids && unique > 1 && i < n; i++) {
		const uint32_t *at =
			bsearch(&self->sequence[rows[i].placed], ids, unique, sizeof *ids, by_id);
		rows[i].suffix = at ? (uint32_t)(at - ids) : NP_SPAN_MODULE;
	}
	np_free(ids);
	return ids != NULL;
}

/* Rows of one module that follow each other with different sequences of operators. */
static bool distinguish(const struct modules *self, struct row *rows, size_t n)
{
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n; end++)
			if (self->parent[rows[end].placed] != self->parent[rows[i].placed] ||
			    self->module[rows[end].placed] != self->module[rows[i].placed])
				break;
		if (!suffixes(self, &rows[i], end - i))
			return false;
	}
	return true;
}

/* "39.42%,12.3%": the mean over all instances by position of the kernel. */
static bool mean_mfu(const struct modules *self, const struct np_groups *groups, uint32_t group,
                     struct np_digest *digest, np_id *out)
{
	struct np_buf text = {0};
	uint32_t first = np_group_row(groups, group);
	size_t kernels = np_group_size(&self->by_op, self->placed.v[first].op);
	for (size_t k = 0; self->mfu && k < kernels; k++) {
		double sum = 0;
		size_t n = 0;
		for (size_t i = 0; i < np_group_size(groups, group); i++) {
			uint32_t at = groups->order[groups->start[group] + i];
			uint32_t op = self->placed.v[at].op;
			if (k >= np_group_size(&self->by_op, op))
				continue;
			double mfu = self->mfu[self->by_op.order[self->by_op.start[op] + k]];
			sum += mfu > 0 ? mfu : 0;
			n += mfu > 0;
		}
		if (n == 0 || text.len > KERNEL_LIST_BYTES)
			continue;
		char digits[NP_PYTHON_CHARS];
		np_buf_printf(&text, "%s", text.len > 0 ? "," : "");
		np_buf_add(&text, digits,
		           np_format_python(rint(sum / (double)n * 100 * 100) / 100, digits));
		np_buf_add_char(&text, '%');
	}
	*out = text.failed ? NP_ID_NONE : np_intern_add(&digest->strings, np_buf_str(&text));
	np_buf_release(&text);
	return *out != NP_ID_NONE;
}

static bool name_with_suffix(const struct modules *self, const struct row *row,
                             struct np_digest *digest, np_id *out)
{
	if (row->suffix == NP_SPAN_MODULE)
		return np_digest_string(digest, &self->names, self->module[row->placed], out);
	struct np_buf text = {0};
	np_buf_add_str(&text, np_intern_get(&self->names, self->module[row->placed]));
	np_buf_printf(&text, "_%u", row->suffix);
	*out = text.failed ? NP_ID_NONE : np_intern_add(&digest->strings, np_buf_str(&text));
	np_buf_release(&text);
	return *out != NP_ID_NONE;
}

static bool add_row(const struct modules *self, const struct np_groups *groups,
                    const struct row *row, struct np_digest *digest,
                    const struct np_table_desc *desc)
{
	struct np_digest_modules *rows = np_digest_table(digest, desc);
	size_t r = rows ? np_rows_add(rows, desc) : SIZE_MAX;
	if (r == SIZE_MAX)
		return false;
	rows->total_ns[r] = 0;
	rows->count[r] = (int64_t)np_group_size(groups, row->group);
	for (size_t i = 0; i < np_group_size(groups, row->group); i++)
		rows->total_ns[r] += self->total[groups->order[groups->start[row->group] + i]];
	const struct np_intern *names = &self->names;
	return np_digest_string(digest, names, self->parent[row->placed], &rows->parent[r]) &&
	       np_digest_string(digest, names, self->op[row->placed], &rows->op[r]) &&
	       np_digest_string(digest, names, self->kernels[row->placed], &rows->kernels[r]) &&
	       name_with_suffix(self, row, digest, &rows->module[r]) &&
	       mean_mfu(self, groups, row->group, digest, &rows->mfu[r]);
}

static bool aggregate(struct modules *self, struct np_digest *digest,
                      const struct np_table_desc *desc)
{
	const uint32_t *const keys[] = {self->parent,   self->module,  self->op,
	                                self->position, self->kernels, self->sequence};
	struct np_groups groups;
	bool ok = np_group_rows(self->placed.n, keys, 6, &groups);
	struct row *rows = ok ? np_calloc(groups.n + 1, sizeof *rows) : NULL;
	for (uint32_t g = 0; rows && g < groups.n; g++) {
		uint32_t first = np_group_row(&groups, g);
		rows[g] = (struct row){self->placed.v[first].op_start, g, first,
		                       self->position[first], NP_SPAN_MODULE};
		for (size_t i = 1; i < np_group_size(&groups, g); i++) {
			np_ns start = self->placed.v[groups.order[groups.start[g] + i]].op_start;
			rows[g].op_start = start < rows[g].op_start ? start : rows[g].op_start;
		}
	}
	if (rows && groups.n > 0)
		qsort(rows, groups.n, sizeof *rows, by_execution);
	ok = rows && distinguish(self, rows, groups.n);
	for (size_t i = 0; ok && i < groups.n; i++)
		ok = add_row(self, &groups, &rows[i], digest, desc);
	np_free(rows);
	np_groups_release(&groups);
	return ok;
}

/* ── the whole ── */

static void release(struct modules *self)
{
	np_free(self->parent);
	np_free(self->module);
	np_free(self->op);
	np_free(self->position);
	np_free(self->kernels);
	np_free(self->sequence);
	np_free(self->total);
	np_vec_release(&self->placed);
	np_vec_release(&self->spans);
	np_module_tree_release(&self->tree);
	np_groups_release(&self->by_op);
	np_intern_release(&self->names);
}

enum np_status np_modules_map(const struct np_map_job *job, const struct np_launches *launches,
                              const double *mfu, const struct np_table_desc *desc,
                              struct np_err *err)
{
	struct modules self = {.profile = job->profile, .launches = launches, .mfu = mfu};
	bool ok = np_intern_init(&self.names) && forward(&self);
	if (ok && self.spans.n > 0)
		ok = backward(&self) && place(&self) && describe(&self) &&
		     aggregate(&self, job->digest, desc);
	release(&self);
	return ok ? NP_OK : np_err_nomem(err);
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct np_launches launches;
	bool ok = np_launches_collect(job->profile, &launches);
	enum np_status status =
		ok ? np_modules_map(job, &launches, NULL, &np_digest_modules_desc, err)
		   : np_err_nomem(err);
	np_launches_release(&launches);
	return status;
}

static const struct np_table_desc *const tables[] = {&np_digest_modules_desc, NULL};

const struct np_part np_part_modules = {
	.name = "modules",
	.revision = 1,
	.load = NP_MODULES_LOAD,
	.tables = tables,
	.map = map,
};
