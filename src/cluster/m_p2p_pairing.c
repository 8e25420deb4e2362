/*
 * p2p_pairing (cluster_and_advisor.md §2.24): which send belongs to which receive, and
 * who waited for whom.
 *
 *   rank 0   send │██████████│        opConnectionId 596_0_1_0: communicator, source
 *   rank 2        receive │██│        and destination in it, count
 *                 ├───────┤           rank 0 waited
 *
 * Source and destination are those of the op's Notify_Record and Notify_Wait tasks,
 * exchanged for a receive. The official tool counts per source and destination, over
 * all communicators; here each communicator counts for itself.
 */
#include <stdlib.h>

#include "cluster/internal.h"
#include "cluster/op_group.h"
#include "cluster/parts.h"

#define OP_COLUMNS(X)                                               \
	X(np_id, name, "hcom_send__596_0_1")                        \
	X(np_id, group, "communicator as recorded, or NP_ID_NONE")  \
	X(uint64_t, key, "the same on every rank: np_op_group()")   \
	X(uint32_t, domain, "three digits in the name")             \
	X(uint8_t, receives, "1: a receive")                        \
	X(uint32_t, src, "rank that sends, in the communicator")    \
	X(uint32_t, dst, "rank that receives, in the communicator") \
	X(np_ns, start_ns, "start")                                 \
	X(np_ns, end_ns, "end")

NP_TABLE_STRUCT(np_digest_p2p, OP_COLUMNS);
#define NP_TAG np_digest_p2p
NP_TABLE_DESC(static, np_digest_p2p, "p2p", OP_COLUMNS)
#undef NP_TAG

#define SEEN_COLUMNS(X)                        \
	X(uint64_t, ops, "sends and receives") \
	X(uint64_t, peerless, "of them without one pair of ranks")

NP_TABLE_STRUCT(np_digest_p2p_seen, SEEN_COLUMNS);
#define NP_TAG np_digest_p2p_seen
NP_TABLE_DESC(static, np_digest_p2p_seen, "p2p_seen", SEEN_COLUMNS)
#undef NP_TAG

/* ── names ── */

static bool take_number(np_str *text, uint32_t *out)
{
	size_t n = 0;
	*out = 0;
	while (n < text->len && n < 9 && text->ptr[n] >= '0' && text->ptr[n] <= '9')
		*out = *out * 10 + (uint32_t)(text->ptr[n++] - '0');
	*text = np_str_from(*text, n);
	return n > 0;
}

static bool take_text(np_str *text, const char *want)
{
	np_str word = np_str_of(want);
	if (!np_str_istarts(*text, word))
		return false;
	*text = np_str_from(*text, word.len);
	return true;
}

/* hcom_send__596_0_1, hcom_receive__596_0_1, hcom_Recv__596_0_1 */
static bool parse_name(np_str name, bool *receives, uint32_t *domain)
{
	uint32_t ignored;
	if (!take_text(&name, "hcom_"))
		return false;
	*receives = !take_text(&name, "send__");
	if (*receives && !take_text(&name, "receive__") && !take_text(&name, "recv__"))
		return false;
	return take_number(&name, domain) && take_text(&name, "_") &&
	       take_number(&name, &ignored) && take_text(&name, "_") &&
	       take_number(&name, &ignored) && name.len == 0;
}

/* ── one rank ── */

enum { NO_PAIR = 0, ONE_PAIR = 1, MANY_PAIRS = 2 };

struct pair {
	uint32_t src, dst;
	uint8_t n; /* how many different ones */
};

static struct pair *find_pairs(const struct np_profile *profile)
{
	const struct np_comm_tasks *tasks = &profile->comm_tasks;
	uint32_t record = np_intern_find(&profile->strings, NP_STR("Notify_Record"));
	uint32_t wait = np_intern_find(&profile->strings, NP_STR("Notify_Wait"));
	struct pair *pairs = np_calloc(profile->comm_ops.n + 1, sizeof *pairs);
	for (size_t i = 0; pairs && i < tasks->n; i++) {
		if (tasks->name[i] == NP_ID_NONE || tasks->op[i] >= profile->comm_ops.n ||
		    (tasks->name[i] != record && tasks->name[i] != wait) ||
		    tasks->src_rank[i] == NP_NO_U32 || tasks->dst_rank[i] == NP_NO_U32)
			continue;
		struct pair *pair = &pairs[tasks->op[i]];
		if (pair->n == NO_PAIR)
			*pair = (struct pair){tasks->src_rank[i], tasks->dst_rank[i], ONE_PAIR};
		else if (pair->src != tasks->src_rank[i] || pair->dst != tasks->dst_rank[i])
			pair->n = MANY_PAIRS;
	}
	return pairs;
}

static bool put_op(const struct np_map_job *job, size_t i, const struct pair *pair, bool receives,
                   uint32_t domain)
{
	const struct np_comm_ops *ops = &job->profile->comm_ops;
	struct np_digest_p2p *rows = np_digest_table(job->digest, &np_digest_p2p_desc);
	const struct np_intern *strings = &job->profile->strings;
	size_t r = np_rows_add(rows, &np_digest_p2p_desc);
	if (r == SIZE_MAX)
		return false;
	rows->key[r] = np_op_group(job->capture, np_intern_get(strings, ops->group[i]),
	                           np_intern_get(strings, ops->name[i]));
	rows->domain[r] = domain;
	rows->receives[r] = receives;
	rows->src[r] = receives ? pair->dst : pair->src;
	rows->dst[r] = receives ? pair->src : pair->dst;
	rows->start_ns[r] = ops->start_ns[i];
	rows->end_ns[r] = ops->start_ns[i] + ops->dur_ns[i];
	return np_digest_string(job->digest, strings, ops->name[i], &rows->name[r]) &&
	       np_digest_string(job->digest, strings, ops->group[i], &rows->group[r]);
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	const struct np_comm_ops *ops = &job->profile->comm_ops;
	struct np_digest_p2p_seen *seen = np_digest_table(job->digest, &np_digest_p2p_seen_desc);
	size_t s = np_rows_add(seen, &np_digest_p2p_seen_desc);
	struct pair *pairs = find_pairs(job->profile);
	bool ok = pairs && s != SIZE_MAX;
	if (ok)
		seen->ops[s] = seen->peerless[s] = 0;
	for (size_t i = 0; ok && i < ops->n; i++) {
		bool receives;
		uint32_t domain;
		if (!parse_name(np_intern_get(&job->profile->strings, ops->name[i]), &receives,
		                &domain))
			continue;
		seen->ops[s]++;
		if (pairs[i].n == ONE_PAIR)
			ok = put_op(job, i, &pairs[i], receives, domain);
		else
			seen->peerless[s]++;
	}
	np_free(pairs);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_p2p_desc, &np_digest_p2p_seen_desc,
                                                     NULL};

static const struct np_part part = {
	.name = "p2p",
	.revision = 1,
	.load = NP_COMM,
	.tables = tables,
	.map = map,
};

/* ── all ranks ── */

#define NO_PARTNER UINT32_MAX

struct op {
	uint32_t rank, row; /* of the cluster, of its digest */
	uint64_t key;
	uint32_t domain, src, dst, partner;
	uint64_t index, official; /* counts per communicator, and over all of them */
	bool receives;
	np_ns start, end;
};

struct ops {
	struct np_cluster *cluster;
	struct op *v;
	uint32_t *order;
	size_t n;
};

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_time(const struct op *x, const struct op *y)
{
	int order = compare((uint64_t)x->start, (uint64_t)y->start);
	return order ? order : compare(x->row, y->row);
}

/* Those that the official tool counts together. */
static int by_pair(const void *a, const void *b, void *ctx)
{
	const struct op *all = ctx;
	const struct op *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];
	int order = compare(x->rank, y->rank);
	order = order ? order : compare(x->src, y->src);
	order = order ? order : compare(x->dst, y->dst);
	return order ? order : by_time(x, y);
}

static int by_group(const void *a, const void *b, void *ctx)
{
	const struct op *all = ctx;
	const struct op *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];
	int order = compare(x->rank, y->rank);
	order = order ? order : compare(x->key, y->key);
	order = order ? order : compare(x->domain, y->domain);
	order = order ? order : compare(x->src, y->src);
	order = order ? order : compare(x->dst, y->dst);
	return order ? order : by_time(x, y);
}

static int same_transfer(const struct op *x, const struct op *y)
{
	int order = compare(x->key, y->key);
	order = order ? order : compare(x->domain, y->domain);
	order = order ? order : compare(x->src, y->src);
	order = order ? order : compare(x->dst, y->dst);
	return order ? order : compare(x->index, y->index);
}

static int by_transfer(const void *a, const void *b, void *ctx)
{
	const struct op *all = ctx;
	const struct op *x = &all[*(const uint32_t *)a], *y = &all[*(const uint32_t *)b];
	int order = same_transfer(x, y);
	order = order ? order : compare(x->receives, y->receives);
	return order ? order : compare(x->rank, y->rank);
}

static void sort(struct ops *self, int (*by)(const void *, const void *, void *))
{
	qsort_r(self->order, self->n, sizeof *self->order, by, self->v);
}

static bool collect(struct np_cluster *cluster, struct ops *self)
{
	size_t n = 0;
	for (size_t r = 0; r < cluster->ranks.n; r++)
		n += NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_p2p)->n;
	*self = (struct ops){.cluster = cluster,
	                     .v = np_calloc(n + 1, sizeof *self->v),
	                     .order = np_calloc(n + 1, sizeof *self->order)};
	if (!self->v || !self->order || n >= NO_PARTNER)
		return false;
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_p2p *rows =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_p2p);
		for (size_t i = 0; i < rows->n; i++, self->n++) {
			self->order[self->n] = (uint32_t)self->n;
			self->v[self->n] = (struct op){.rank = (uint32_t)r,
			                               .row = (uint32_t)i,
			                               .key = rows->key[i],
			                               .domain = rows->domain[i],
			                               .src = rows->src[i],
			                               .dst = rows->dst[i],
			                               .partner = NO_PARTNER,
			                               .receives = rows->receives[i],
			                               .start = rows->start_ns[i],
			                               .end = rows->end_ns[i]};
		}
	}
	return true;
}

/* Counts in order of start, per source and destination. */
static void number(struct ops *self)
{
	sort(self, by_pair);
	for (size_t i = 1; i < self->n; i++) {
		const struct op *before = &self->v[self->order[i - 1]];
		struct op *op = &self->v[self->order[i]];
		if (before->rank == op->rank && before->src == op->src && before->dst == op->dst)
			op->official = before->official + 1;
	}
	sort(self, by_group);
	for (size_t i = 1; i < self->n; i++) {
		const struct op *before = &self->v[self->order[i - 1]];
		struct op *op = &self->v[self->order[i]];
		if (before->rank == op->rank && before->key == op->key &&
		    before->domain == op->domain && before->src == op->src &&
		    before->dst == op->dst)
			op->index = before->index + 1;
	}
}

/* A transfer has one send and one receive, on two ranks; anything else stays alone. */
static void match(struct ops *self)
{
	sort(self, by_transfer);
	for (size_t i = 0, end; i < self->n; i = end) {
		struct op *first = &self->v[self->order[i]];
		for (end = i + 1;
		     end < self->n && same_transfer(first, &self->v[self->order[end]]) == 0; end++)
			;
		if (end - i != 2)
			continue;
		struct op *second = &self->v[self->order[i + 1]];
		if (first->receives == second->receives || first->rank == second->rank)
			continue;
		first->partner = self->order[i + 1];
		second->partner = self->order[i];
	}
}

static const struct np_column columns[] = {
	{"rankId", "", NP_COL_INT, "rank"},
	{"opName", "", NP_COL_TEXT, "send or receive"},
	{"groupName", "", NP_COL_TEXT, "communicator"},
	{"srcRank", "", NP_COL_INT, "rank that sends, in the communicator"},
	{"dstRank", "", NP_COL_INT, "rank that receives, in the communicator"},
	{"transfer", "", NP_COL_INT, "count of the transfers between the two"},
	{"opConnectionId", "", NP_COL_TEXT, "the same for a send and its receive"},
	{"startNs", "", NP_COL_INT, "start"},
	{"endNs", "", NP_COL_INT, "end"},
	{"partnerRank", "", NP_COL_INT, "rank of the other side"},
	{"partnerOp", "", NP_COL_TEXT, "op of the other side"},
	{"partnerStartNs", "", NP_COL_INT, "its start, by its own host's clock"},
	{"waitingRank", "", NP_COL_INT, "rank that came first"},
	{"waitNs", "", NP_COL_INT,
         "how long it waited for the other one's start, not beyond its end"},
};

/* Nothing is received before it is sent: the clocks of the two hosts differ. */
static bool is_impossible(const struct op *early, const struct op *late)
{
	return early->receives && early->end < late->start;
}

static void put_partner(const struct ops *self, const struct op *op, struct np_table *table)
{
	if (op->partner == NO_PARTNER) {
		for (int i = 0; i < 5; i++)
			np_cell_na(table);
		return;
	}
	const struct op *other = &self->v[op->partner];
	const struct np_cluster_rank *rank = &self->cluster->ranks.v[other->rank];
	const struct np_digest_p2p *rows = NP_DIGEST_ROWS(rank, np_digest_p2p);
	const struct op *early = op->start <= other->start ? op : other;
	const struct op *late = early == op ? other : op;
	np_cell_int(table, rank->rank);
	np_cell_text(table, np_cluster_text(self->cluster, rows->name[other->row]));
	np_cell_int(table, other->start);
	if (is_impossible(early, late)) {
		np_cell_na(table);
		np_cell_na(table);
		return;
	}
	if (op->start == other->start)
		np_cell_na(table);
	else
		np_cell_int(table, self->cluster->ranks.v[early->rank].rank);
	np_cell_int(table, (late->start < early->end ? late->start : early->end) - early->start);
}

static void put_row(const struct ops *self, const struct op *op, struct np_table *table)
{
	const struct np_cluster_rank *rank = &self->cluster->ranks.v[op->rank];
	const struct np_digest_p2p *rows = NP_DIGEST_ROWS(rank, np_digest_p2p);
	uint64_t index = self->cluster->options->compat ? op->official : op->index;
	np_cell_int(table, rank->rank);
	np_cell_text(table, np_cluster_text(self->cluster, rows->name[op->row]));
	if (rows->group[op->row] != NP_ID_NONE)
		np_cell_text(table, np_cluster_text(self->cluster, rows->group[op->row]));
	else
		np_cell_na(table);
	np_cell_int(table, op->src);
	np_cell_int(table, op->dst);
	np_cell_int(table, (int64_t)index);
	np_cell_printf(table, "%03u_%u_%u_%llu", op->domain, op->src, op->dst,
	               (unsigned long long)index);
	np_cell_int(table, op->start);
	np_cell_int(table, op->end);
	put_partner(self, op, table);
}

static void report(const struct ops *self)
{
	size_t alone = 0, impossible = 0;
	struct np_report *report = self->cluster->report;
	struct np_table *table =
		NP_REPORT_TABLE(report, "P2PPairing", "Sends and their receives", columns);
	for (size_t i = 0; i < self->n; i++) {
		put_row(self, &self->v[i], table);
		uint32_t partner = self->v[i].partner;
		alone += partner == NO_PARTNER;
		impossible +=
			partner != NO_PARTNER && is_impossible(&self->v[i], &self->v[partner]);
	}
	if (alone > 0) {
		struct np_finding *finding = np_report_finding(
			report, "P2P_UNPAIRED", NP_INFO,
			"%zu of %zu sends and receives have no partner in these captures", alone,
			self->n);
		np_finding_detail(finding, "The capture of the other rank is missing, or began or "
		                           "ended between the two.");
	}
	if (impossible > 0) {
		struct np_finding *finding =
			np_report_finding(report, "P2P_CLOCKS_DIFFER", NP_WARNING,
		                          "%zu receives ended before their send began", impossible);
		np_finding_detail(finding, "The clocks of the two ranks differ by more than the "
		                           "transfer took, so who waited cannot be told.");
	}
}

static bool tell_lacking(struct np_cluster *cluster, const struct np_recipe *self, size_t *n_ops)
{
	bool *has = np_calloc(cluster->ranks.n + 1, sizeof *has);
	for (size_t r = 0; has && r < cluster->ranks.n; r++) {
		const struct np_digest_p2p_seen *seen =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_p2p_seen);
		has[r] = seen->n == 0 || seen->ops[0] == 0 || seen->peerless[0] < seen->ops[0];
		*n_ops += seen->n > 0 ? (size_t)seen->ops[0] : 0;
	}
	if (has)
		np_cluster_lacking(cluster, self, has,
		                   "Notify tasks of their sends and receives (profile at Level1 or "
		                   "above)");
	np_free(has);
	return has != NULL;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct ops ops;
	size_t seen = 0;
	bool ok = collect(cluster, &ops) && tell_lacking(cluster, self, &seen);
	if (ok && seen == 0) {
		np_cluster_nothing(cluster, self, "no rank has recorded a send or a receive");
	} else if (ok && ops.n > 0) {
		number(&ops);
		match(&ops);
		report(&ops);
	}
	np_free(ops.v);
	np_free(ops.order);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&part, NULL};

static const struct np_recipe_file files[] = {
	{.table = "P2PPairing", .csv = "p2p_pairing.csv"},
	{.table = NULL},
};

const struct np_recipe np_recipe_p2p_pairing = {
	.name = "p2p_pairing",
	.dir = "P2PPairing",
	.summary = NP_N("which send belongs to which receive, and which side waited"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
