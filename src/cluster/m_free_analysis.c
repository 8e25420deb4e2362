/*
 * free_analysis (cluster_and_advisor.md §2.18): the longest gaps between compute
 * kernels and collectives, and why: another task of the device, the framework that
 * dispatched nothing, or CANN.
 *
 *   torch    ▯op          ▯op
 *   CANN       ▬launch      ▬▬launch
 *   device        ████             ████
 *                 prev │   gap    │ next
 */
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "cluster/cells.h"
#include "cluster/internal.h"
#include "cluster/task_links.h"
#include "profile/search.h"

enum { DEFAULT_TOP = 10, WAIT_NS = 50000 };

#define GAP_COLUMNS(X)                                                         \
	X(np_ns, start_ns, "end of what was before")                           \
	X(np_ns, end_ns, "start of what came after")                           \
	X(double, torch_us, "between the ends of the two operators, NaN")      \
	X(double, cann_us, "between the ends of the two launching calls, NaN") \
	X(np_id, reason, "why")

NP_TABLE_STRUCT(np_digest_gaps, GAP_COLUMNS);
#define NP_TAG np_digest_gaps
NP_TABLE_DESC(static, np_digest_gaps, "gaps", GAP_COLUMNS)
#undef NP_TAG

#define SEEN_COLUMNS(X) X(uint8_t, busy, "1: there are kernels or collectives")

NP_TABLE_STRUCT(np_digest_gaps_seen, SEEN_COLUMNS);
#define NP_TAG np_digest_gaps_seen
NP_TABLE_DESC(static, np_digest_gaps_seen, "gaps_seen", SEEN_COLUMNS)
#undef NP_TAG

struct span {
	np_ns start, end;
};

struct gap {
	np_ns start, end;
	uint32_t prev; /* task with the largest end <= start, NP_NO_U32 */
};

struct work {
	const struct np_map_job *job;
	const struct np_profile *profile;
	struct np_task_links links;
	struct span *busy;
	size_t n_busy;
	struct gap *gaps; /* by start */
	size_t n_gaps;
	bool cann_gaps; /* a task without a launching call: theirs has floats there, too */
};

/* ── gaps ── */

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

static int by_gap_start(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

static int by_length(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;
	np_ns m = x->end - x->start, n = y->end - y->start;
	if (m != n)
		return m < n ? 1 : -1;
	return by_gap_start(a, b);
}

/* Below every gap of a heap are only longer ones. */
static void sift_down(struct gap *heap, size_t n, size_t at)
{
	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		child += child + 1 < n && by_length(&heap[child + 1], &heap[child]) > 0;
		if (by_length(&heap[at], &heap[child]) >= 0)
			return;
		struct gap swap = heap[at];
		heap[at] = heap[child];
		heap[child] = swap;
	}
}

/* The `top` longest to the front, in no order; how many they are. */
static size_t keep_longest(struct gap *gaps, size_t n, size_t top)
{
	if (top == 0 || n <= top)
		return n < top ? n : top;
	for (size_t i = top / 2; i-- > 0;)
		sift_down(gaps, top, i);
	for (size_t i = top; i < n; i++)
		if (by_length(&gaps[i], &gaps[0]) < 0) {
			gaps[0] = gaps[i];
			sift_down(gaps, top, 0);
		}
	return top;
}

static bool find_busy(struct work *self)
{
	const struct np_kernels *kernels = &self->profile->kernels;
	const struct np_comm_ops *ops = &self->profile->comm_ops;
	self->busy = np_realloc(NULL, kernels->n + ops->n + 1, sizeof *self->busy);
	if (!self->busy)
		return false;
	for (size_t i = 0; i < kernels->n; i++)
		if (!np_is_comm_core(np_intern_get(&self->profile->strings, kernels->core[i])))
			self->busy[self->n_busy++] = (struct span){
				kernels->start_ns[i], kernels->start_ns[i] + kernels->dur_ns[i]};
	for (size_t i = 0; i < ops->n; i++)
		self->busy[self->n_busy++] =
			(struct span){ops->start_ns[i], ops->start_ns[i] + ops->dur_ns[i]};
	qsort(self->busy, self->n_busy, sizeof *self->busy, by_start);
	return true;
}

static bool find_gaps(struct work *self, size_t top)
{
	self->gaps = np_realloc(NULL, self->n_busy + 1, sizeof *self->gaps);
	if (!self->gaps)
		return false;
	np_ns reach = self->n_busy > 0 ? self->busy[0].end : 0;
	for (size_t i = 1; i < self->n_busy; i++) {
		if (self->busy[i].start > reach)
			self->gaps[self->n_gaps++] =
				(struct gap){reach, self->busy[i].start, NP_NO_U32};
		reach = self->busy[i].end > reach ? self->busy[i].end : reach;
	}
	self->n_gaps = keep_longest(self->gaps, self->n_gaps, top);
	qsort(self->gaps, self->n_gaps, sizeof *self->gaps, by_gap_start);
	return true;
}

/* Each task is a candidate for the first gap behind its end, and what a gap has is one
 * for the next gap. */
static void find_previous(struct work *self)
{
	const struct np_tasks *tasks = &self->profile->tasks;
	np_ns best = INT64_MIN;
	uint32_t row = NP_NO_U32;
	for (size_t i = 0; i < tasks->n; i++) {
		np_ns end = tasks->start_ns[i] + tasks->dur_ns[i];
		size_t low = 0, high = self->n_gaps;
		while (low < high) {
			size_t mid = low + (high - low) / 2;
			if (self->gaps[mid].start < end)
				low = mid + 1;
			else
				high = mid;
		}
		if (low == self->n_gaps)
			continue;
		uint32_t *prev = &self->gaps[low].prev;
		if (*prev == NP_NO_U32 || end > tasks->start_ns[*prev] + tasks->dur_ns[*prev])
			*prev = (uint32_t)i;
	}
	for (size_t g = 0; g < self->n_gaps; g++) {
		uint32_t own = self->gaps[g].prev;
		np_ns end =
			own != NP_NO_U32 ? tasks->start_ns[own] + tasks->dur_ns[own] : INT64_MIN;
		if (own != NP_NO_U32 && end > best) {
			best = end;
			row = own;
		}
		self->gaps[g].prev = row;
	}
}

/* ── reasons ── */

struct count {
	uint32_t type;
	size_t n, first;
};

static int by_count(const void *a, const void *b)
{
	const struct count *x = a, *y = b;
	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->first > y->first) - (x->first < y->first);
}

/* Task types are few, so a list will do. */
typedef NP_VEC(struct count) counts;

static bool count_type(counts *self, uint32_t type)
{
	for (size_t i = 0; i < self->n; i++)
		if (self->v[i].type == type) {
			self->v[i].n++;
			return true;
		}
	struct count one = {.type = type, .n = 1, .first = self->n};
	return np_vec_push(self, one);
}

/* Tasks strictly inside of the gap. *any: there are some, and `out` has the reason. */
static bool running_reason(const struct work *self, const struct gap *gap, struct np_buf *out,
                           bool *any)
{
	const struct np_tasks *tasks = &self->profile->tasks;
	counts types = {0};
	np_ns reach = gap->start, longest = 0;
	bool ok = true;
	for (size_t i = np_first_from(tasks->start_ns, tasks->n, gap->start + 1);
	     ok && i < tasks->n && tasks->start_ns[i] < gap->end; i++) {
		np_ns end = tasks->start_ns[i] + tasks->dur_ns[i];
		if (end >= gap->end)
			continue;
		ok = count_type(&types,
		                tasks->type[i] != NP_ID_NONE ? tasks->type[i] : tasks->name[i]);
		if (tasks->start_ns[i] - reach > longest)
			longest = tasks->start_ns[i] - reach;
		reach = end > reach ? end : reach;
	}
	if (gap->end - reach > longest)
		longest = gap->end - reach;
	*any = types.n > 0;
	if (types.n > 1)
		qsort(types.v, types.n, sizeof *types.v, by_count);
	if (types.n > 0)
		np_buf_add_cstr(out, "Device task running: ");
	for (size_t i = 0; i < types.n; i++)
		np_buf_printf(out, "%zu %.*s tasks, ", types.v[i].n,
		              NP_FMT(np_intern_get(&self->profile->strings, types.v[i].type)));
	if (types.n > 0) {
		np_buf_add_cstr(out, "max remaining free ");
		np_buf_add_python_us(out, (double)longest / 1000);
	}
	np_vec_release(&types);
	return ok;
}

/* Between the launches of the two tasks, in ns. */
struct both {
	double torch, cann, launch, idle, waits;
};

/* a - b; with --compat of the doubles that the official tool has there. */
static double minus(const struct work *self, np_ns a, np_ns b, bool is_float)
{
	return self->job->options->compat && is_float ? (double)a - (double)b : (double)(a - b);
}

static void measure(const struct work *self, uint32_t prev, uint32_t next, struct both *out)
{
	const struct np_host_ops *ops = &self->profile->host_ops;
	uint32_t pc = self->links.cann[prev], nc = self->links.cann[next];
	uint32_t pt = self->links.torch[prev], nt = self->links.torch[next];
	np_ns pc_end = ops->start_ns[pc] + ops->dur_ns[pc];
	np_ns nc_end = ops->start_ns[nc] + ops->dur_ns[nc];
	np_ns pt_end = ops->start_ns[pt] + ops->dur_ns[pt];
	np_ns nt_end = ops->start_ns[nt] + ops->dur_ns[nt];
	bool floats = self->cann_gaps;
	double before = minus(self, pc_end, ops->start_ns[pc], floats);
	double after = minus(self, nc_end, ops->start_ns[nc], floats);
	out->torch = minus(self, nt_end, pt_end, true);
	out->cann = minus(self, nc_end, pc_end, floats);
	out->launch = before > after ? before : after;
	out->idle = minus(self, ops->start_ns[nc], pc_end, floats);
	out->waits = minus(self, ops->start_ns[nc], nt_end, true) -
	             minus(self, ops->start_ns[pc], pt_end, true);
}

static void host_reason(const struct both *both, struct np_buf *out)
{
	if (both->waits < WAIT_NS) {
		np_buf_add_cstr(out, "Idle Pytorch layer: no task dispatched in ");
		np_buf_add_python_us(out, both->torch / 1000);
	} else if (both->idle >= both->launch) {
		np_buf_add_cstr(out, "Abnormal CANN layer: long time between two node@launch ");
		np_buf_add_python_us(out, both->idle / 1000);
	} else {
		np_buf_add_cstr(out, "Abnormal CANN layer: long node@launch ");
		np_buf_add_python_us(out, both->launch / 1000);
	}
}

static np_ns torch_end(const struct work *self, size_t task)
{
	const struct np_host_ops *ops = &self->profile->host_ops;
	return ops->start_ns[self->links.torch[task]] + ops->dur_ns[self->links.torch[task]];
}

static bool explain(const struct work *self, const struct gap *gap, struct np_buf *out,
                    struct both *both)
{
	const struct np_tasks *tasks = &self->profile->tasks;
	bool any;
	both->torch = both->cann = NAN;
	if (!running_reason(self, gap, out, &any))
		return false;
	if (any)
		return true;
	size_t next = np_first_from(tasks->start_ns, tasks->n, gap->end);
	if (gap->prev == NP_NO_U32 || next >= tasks->n) {
		np_buf_add_cstr(out, "Skip free analysis due to no prev or next task.");
		return true;
	}
	if (self->links.torch[gap->prev] == NP_NO_U32 || self->links.torch[next] == NP_NO_U32) {
		np_buf_add_cstr(out, "Skip free analysis due to no pytorch dispatch time.");
		return true;
	}
	if (self->links.cann[gap->prev] == NP_NO_U32 || self->links.cann[next] == NP_NO_U32) {
		both->torch = (double)(torch_end(self, next) - torch_end(self, gap->prev));
		np_buf_add_cstr(out, "No CANN calls recorded: no task dispatched in ");
		np_buf_add_python_us(out, both->torch / 1000);
		return true;
	}
	measure(self, gap->prev, (uint32_t)next, both);
	host_reason(both, out);
	return true;
}

static bool put_gap(const struct work *self, const struct gap *gap, struct np_digest_gaps *rows)
{
	struct np_buf reason = {0};
	struct both both;
	size_t r = np_rows_add(rows, &np_digest_gaps_desc);
	if (r == SIZE_MAX)
		return false;
	bool ok = explain(self, gap, &reason, &both) && !reason.failed;
	rows->start_ns[r] = gap->start;
	rows->end_ns[r] = gap->end;
	rows->torch_us[r] = np_round_half_even(both.torch / 1000, 3);
	rows->cann_us[r] = np_round_half_even(both.cann / 1000, 3);
	rows->reason[r] = np_intern_add(&self->job->digest->strings, np_buf_str(&reason));
	np_buf_release(&reason);
	return ok && rows->reason[r] != NP_ID_NONE;
}

static enum np_status map(const struct np_map_job *job, struct np_err *err)
{
	struct work work = {.job = job, .profile = job->profile};
	struct np_digest_gaps *rows = np_digest_table(job->digest, &np_digest_gaps_desc);
	struct np_digest_gaps_seen *seen = np_digest_table(job->digest, &np_digest_gaps_seen_desc);
	size_t top = job->options->top ? job->options->top : DEFAULT_TOP;
	bool ok = np_task_links_build(job->profile, &work.links) && find_busy(&work) &&
	          find_gaps(&work, top);
	size_t s = ok ? np_rows_add(seen, &np_digest_gaps_seen_desc) : SIZE_MAX;
	if (ok && s != SIZE_MAX) {
		seen->busy[s] = work.n_busy > 0;
		find_previous(&work);
		for (size_t i = 0; i < job->profile->tasks.n; i++)
			work.cann_gaps |= work.links.cann[i] == NP_NO_U32;
		qsort(work.gaps, work.n_gaps, sizeof *work.gaps, by_length);
	}
	for (size_t g = 0; ok && s != SIZE_MAX && g < work.n_gaps; g++)
		ok = put_gap(&work, &work.gaps[g], rows);
	np_task_links_release(&work.links);
	np_free(work.busy);
	np_free(work.gaps);
	return ok && s != SIZE_MAX ? NP_OK : np_err_nomem(err);
}

static const struct np_table_desc *const tables[] = {&np_digest_gaps_desc,
                                                     &np_digest_gaps_seen_desc, NULL};

static const struct np_part part = {
	.name = "gaps",
	.revision = 1,
	.load = NP_KERNELS | NP_COMM_OPS | NP_TASK_LINKS_LOAD,
	.by_options = true,
	.tables = tables,
	.map = map,
};

/* ── all ranks ── */

static const struct np_column columns[] = {
	{"rankId", "", NP_COL_INT, "rank"},
	{"startTime(us)", "", NP_COL_TEXT, "end of the kernel or collective before the gap, us"},
	{"endTime(us)", "", NP_COL_TEXT, "start of the one behind it, us"},
	{"duration(us)", "", NP_COL_REAL, "length of the gap, us"},
	{"pytorchIdleTime(us)", "", NP_COL_REAL,
         "between the ends of the two operators that asked for them, us"},
	{"cannIdleTime(us)", "", NP_COL_REAL, "between the ends of the two launching calls, us"},
	{"reason", "", NP_COL_TEXT, "why"},
};

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	bool *busy = np_calloc(cluster->ranks.n + 1, sizeof *busy);
	size_t n = 0;
	if (!busy)
		return np_err_nomem(err);
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_gaps_seen *seen =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_gaps_seen);
		busy[r] = seen->n == 0 || seen->busy[0];
		n += NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_gaps)->n;
	}
	np_cluster_lacking(cluster, self, busy, "kernels or collectives");
	np_free(busy);
	if (n == 0) {
		np_cluster_nothing(cluster, self, "no gap between kernels and collectives");
		return NP_OK;
	}
	struct np_table *table =
		NP_REPORT_TABLE(cluster->report, "FreeAnalysis", "Longest idle gaps", columns);
	for (size_t r = 0; r < cluster->ranks.n; r++) {
		const struct np_digest_gaps *rows =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_digest_gaps);
		for (size_t i = 0; i < rows->n; i++) {
			np_cell_int(table, cluster->ranks.v[r].rank);
			np_cell_decimal_us(table, rows->start_ns[i]);
			np_cell_decimal_us(table, rows->end_ns[i]);
			np_cell_real(table, (double)(rows->end_ns[i] - rows->start_ns[i]) / 1000);
			np_cell_real(table, rows->torch_us[i]);
			np_cell_real(table, rows->cann_us[i]);
			np_cell_text(table, np_cluster_text(cluster, rows->reason[i]));
		}
	}
	return NP_OK;
}

static const struct np_part *const parts[] = {&part, NULL};

static const struct np_recipe_file files[] = {
	{.table = "FreeAnalysis",
         .csv = "free_analysis.csv",
         .headings = "Rank ID,Start Time(us),End Time(us),Duration(us),Pytorch Idle Time(us),"
                     "Cann Idle Time(us),Reason"},
	{.table = NULL},
};

const struct np_recipe np_recipe_free_analysis = {
	.name = "free_analysis",
	.dir = "FreeAnalysis",
	.summary = NP_N("the longest idle gaps of each rank, and which layer they come from"),
	.parts = parts,
	.reduce = reduce,
	.files = files,
};
