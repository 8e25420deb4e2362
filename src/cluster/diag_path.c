#include "cluster/diag_path.h"

#include <stdlib.h>

#include "profile/search.h"
#include "report/lang.h"

enum { LOOK_BACK = 64, HIDDEN_NS = 1000 };

const char *np_path_bound_name(enum np_path_bound bound)
{
	static const char *const names[NP_N_BOUNDS] = {NP_N("computing"),
	                                               NP_N("idle"),
	                                               NP_N("computing or idle (no kernels)"),
	                                               NP_N("transfer"),
	                                               NP_N("communication (unmatched)"),
	                                               NP_N("before the first op"),
	                                               NP_N("clock")};
	return names[bound];
}

/* Where the walk is: on a rank, at a time of its own clock. */
struct walk {
	struct np_diagnosis *diag;
	struct np_path *path;
	int64_t step;
	uint32_t rank;
	np_ns at;     /* the rank's clock */
	np_ns common; /* the same in the common clock: what is behind it is accounted for */
	bool oom;
};

static int by_length(const void *a, const void *b)
{
	const struct np_path_segment *x = a, *y = b;
	if (x->dur != y->dur)
		return x->dur > y->dur ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static void remember(struct walk *self, const struct np_path_segment *segment)
{
	enum { ROOM = 4 * NP_PATH_LONGEST };
	if (!np_vec_push(&self->path->longest, *segment)) {
		self->oom = true;
		return;
	}
	if (self->path->longest.n < ROOM)
		return;
	qsort(self->path->longest.v, self->path->longest.n, sizeof *segment, by_length);
	self->path->longest.n = NP_PATH_LONGEST;
}

static void add(struct walk *self, enum np_path_bound bound, np_ns dur, np_ns start,
                uint32_t instance)
{
	if (dur == 0)
		return;
	self->path->by_bound[bound] += dur;
	self->path->by_rank[self->rank] += dur;
	self->path->total += dur;
	if (bound != NP_BOUND_CLOCK)
		remember(self, &(struct np_path_segment){self->step, self->rank, (uint8_t)bound,
		                                         instance, start, dur});
}

static const struct np_timeline_ops *ops_of(const struct walk *self)
{
	return self->diag->ops[self->rank];
}

/* Did the rank wait for this op, or was it hidden behind computing? */
static bool is_exposed(const struct np_timeline_ops *ops, uint32_t row)
{
	np_ns exposed = ops->exposed_end_ns[row] - ops->exposed_start_ns[row];
	return exposed > HIDDEN_NS && exposed * 10 > ops->dur_ns[row];
}

/* The exposed op of the step that ended last before the walk's time; NP_DIAG_NONE. */
static uint32_t op_before(const struct walk *self)
{
	const struct np_timeline_ops *ops = ops_of(self);
	size_t low = np_first_from(ops->start_ns, ops->n, self->at);
	uint32_t best = NP_DIAG_NONE;
	np_ns latest = INT64_MIN;
	for (size_t row = low, n = 0; row-- > 0 && n < LOOK_BACK; n++) {
		np_ns end = ops->start_ns[row] + ops->dur_ns[row];
		if (ops->step[row] == self->step && end <= self->at && end > latest &&
		    is_exposed(ops, (uint32_t)row)) {
			latest = end;
			best = (uint32_t)row;
		}
	}
	return best;
}

/* From `from` (with running sums as given) to where the walk is, on its rank. */
static void own_work(struct walk *self, np_ns from, np_ns compute, np_ns exposed, np_ns compute_now,
                     np_ns exposed_now, uint32_t instance)
{
	np_ns start = np_diag_time(self->diag, self->rank, from);
	np_ns length = self->common - start;
	np_ns computing = compute_now - compute, comm = exposed_now - exposed;
	/* the parts are of the rank's clock, the length of the common one: idle takes the rest */
	add(self, NP_BOUND_COMPUTE, computing, start, instance);
	add(self, NP_BOUND_COMM, comm, start, instance);
	add(self, self->diag->kernels[self->rank] ? NP_BOUND_IDLE : NP_BOUND_UNKNOWN,
	    length - computing - comm, start, instance);
	self->at = from;
	self->common = start;
}

/* On to whoever came last, at its start. The op's own rank where it is not matched. */
static void cross(struct walk *self, uint32_t row)
{
	struct np_diagnosis *diag = self->diag;
	const struct np_timeline_ops *ops = ops_of(self);
	uint32_t k = np_diag_instance_of(diag, self->rank, row);
	if (k == NP_DIAG_NONE) {
		np_ns start = np_diag_time(diag, self->rank, ops->start_ns[row]);
		add(self, NP_BOUND_COMM, self->common - start, start, NP_DIAG_NONE);
		self->at = ops->start_ns[row];
		self->common = start;
		return;
	}
	const struct np_diag_instance *instance = &diag->instances.v[k];
	const struct np_diag_member *last = np_diag_member_of(diag, instance, instance->last);
	np_ns length = diag->by_duration ? instance->transfer : self->common - instance->arrival;
	add(self, length >= 0 ? NP_BOUND_TRANSFER : NP_BOUND_CLOCK, length, instance->arrival, k);
	self->path->changes += instance->last != self->rank;
	self->rank = instance->last;
	self->at = diag->ops[last->rank]->start_ns[last->row];
	self->common = diag->by_duration ? np_diag_start(diag, last) : instance->arrival;
}

static size_t step_of(const struct np_timeline_steps *steps, int64_t id)
{
	size_t low = np_first_from(steps->step, steps->n, id);
	return low < steps->n && steps->step[low] == id && steps->start_ns[low] != NP_NO_I64
	               ? low
	               : SIZE_MAX;
}

/* Running sums where the walk is: at an op's start, or at the step's end. */
struct now {
	np_ns compute, exposed;
};

static void walk_step(struct walk *self, struct now now, np_ns first)
{
	struct np_diagnosis *diag = self->diag;
	for (size_t guard = 0; guard < diag->first_op[diag->n_ranks] + 1; guard++) {
		const struct np_timeline_ops *ops = ops_of(self);
		uint32_t row = op_before(self);
		if (row == NP_DIAG_NONE)
			break;
		own_work(self, ops->start_ns[row] + ops->dur_ns[row], ops->compute_end_ns[row],
		         ops->exposed_end_ns[row], now.compute, now.exposed,
		         np_diag_instance_of(diag, self->rank, row));
		uint32_t k = np_diag_instance_of(diag, self->rank, row);
		cross(self, row);
		if (k != NP_DIAG_NONE)
			row = np_diag_member_of(diag, &diag->instances.v[k], self->rank)->row;
		ops = ops_of(self);
		now = (struct now){ops->compute_start_ns[row], ops->exposed_start_ns[row]};
	}
	const struct np_timeline_steps *steps = diag->steps[self->rank];
	size_t s = step_of(steps, self->step);
	if (s != SIZE_MAX && steps->start_ns[s] <= self->at)
		own_work(self, steps->start_ns[s], steps->compute_start_ns[s],
		         steps->exposed_start_ns[s], now.compute, now.exposed, NP_DIAG_NONE);
	if (!diag->by_duration)
		add(self, NP_BOUND_START, self->common - first, first, NP_DIAG_NONE);
}

static void one_step(struct walk *self)
{
	struct np_diagnosis *diag = self->diag;
	np_ns first = INT64_MAX, last = INT64_MIN;
	size_t at = 0;
	for (uint32_t r = 0; r < diag->n_ranks; r++) {
		size_t s = step_of(diag->steps[r], self->step);
		if (s == SIZE_MAX)
			continue;
		np_ns start = np_diag_time(diag, r, diag->steps[r]->start_ns[s]);
		np_ns end = np_diag_time(diag, r, diag->steps[r]->end_ns[s]);
		first = start < first ? start : first;
		if (end > last) {
			last = end;
			self->rank = r;
			at = s;
		}
	}
	if (last == INT64_MIN)
		return;
	const struct np_timeline_steps *steps = diag->steps[self->rank];
	self->at = steps->end_ns[at];
	self->common = last;
	self->path->steps++;
	walk_step(self, (struct now){steps->compute_end_ns[at], steps->exposed_end_ns[at]}, first);
}

static int by_id(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

bool np_diag_path(struct np_diagnosis *self, struct np_path *out)
{
	NP_VEC(int64_t) steps = {0};
	struct np_map known;
	struct walk walk = {.diag = self, .path = out};
	*out = (struct np_path){.by_rank = np_calloc(self->n_ranks + 1, sizeof *out->by_rank)};
	bool ok = out->by_rank != NULL, numbered = false;
	np_map_init(&known);
	for (size_t r = 0; ok && r < self->n_ranks; r++)
		for (size_t s = 0; ok && s < self->steps[r]->n; s++) {
			uint64_t id = (uint64_t)self->steps[r]->step[s];
			numbered |= self->steps[r]->step[s] != NP_NO_I64;
			if (np_map_get(&known, id, 0) == 0)
				ok = np_map_put(&known, id, 1) &&
				     np_vec_push(&steps, self->steps[r]->step[s]);
		}
	np_map_release(&known);
	if (steps.n > 0)
		qsort(steps.v, steps.n, sizeof *steps.v, by_id);
	for (size_t s = 0; ok && s < steps.n; s++) {
		walk.step = steps.v[s];
		if (walk.step != NP_NO_I64 || !numbered) /* what lies between steps is in none */
			one_step(&walk);
	}
	self->n_steps = out->steps;
	self->total = out->total;
	if (out->longest.n > 0)
		qsort(out->longest.v, out->longest.n, sizeof *out->longest.v, by_length);
	if (out->longest.n > NP_PATH_LONGEST)
		out->longest.n = NP_PATH_LONGEST;
	np_vec_release(&steps);
	return ok && !walk.oom;
}

void np_path_release(struct np_path *self)
{
	np_free(self->by_rank);
	np_vec_release(&self->longest);
}
