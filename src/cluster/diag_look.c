#include "cluster/diag_look.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "report/lang.h"

enum { SHOWN_TYPES = 3 };
#define SHAPES_DIFFER   0.5  /* of the type's time in shapes that the peer has not */
#define FREQUENCY_LOWER 0.95 /* of the peer's median frequency */

/* ── whom to compare with ── */

static np_ns total_of(const struct np_diagnosis *self, uint32_t rank, bool compute)
{
	const struct np_timeline_steps *steps = self->steps[rank];
	np_ns sum = 0;
	for (size_t s = 0; s < steps->n; s++) {
		if (steps->start_ns[s] == NP_NO_I64)
			continue;
		np_ns computing = steps->compute_end_ns[s] - steps->compute_start_ns[s];
		np_ns exposed = steps->exposed_end_ns[s] - steps->exposed_start_ns[s];
		sum += compute ? computing
		               : steps->end_ns[s] - steps->start_ns[s] - computing - exposed;
	}
	return sum;
}

struct candidate {
	np_ns total;
	uint32_t rank;
};

static int by_total(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The collective with most ranks in which the rank takes part. */
static const struct np_diag_instance *widest(const struct np_diagnosis *self, uint32_t rank)
{
	const struct np_diag_instance *best = NULL;
	for (uint32_t row = 0; row < self->ops[rank]->n; row++) {
		uint32_t k = np_diag_instance_of(self, rank, row);
		if (k == NP_DIAG_NONE || self->instances.v[k].p2p)
			continue;
		if (!best || self->instances.v[k].n > best->n)
			best = &self->instances.v[k];
	}
	return best;
}

/* The typical one of its peers: the median by what the cause is about. */
static bool choose_peer(const struct np_diagnosis *self, const struct np_diag_cause *cause,
                        uint32_t *out)
{
	const struct np_diag_instance *instance = &self->instances.v[cause->worst];
	*out = NP_DIAG_NONE;
	if (!np_diag_member_of(self, instance, cause->rank))
		instance = widest(self, cause->rank);
	struct candidate *v = np_realloc(NULL, self->n_ranks + 1, sizeof *v);
	size_t n = 0;
	for (uint32_t m = 0; v && instance && m < instance->n; m++) {
		uint32_t rank = self->members.v[instance->first + m].rank;
		if (rank != cause->rank && self->kernels[rank])
			v[n++] = (struct candidate){
				total_of(self, rank, cause->cause == NP_CAUSE_COMPUTE), rank};
	}
	if (n > 0) {
		qsort(v, n, sizeof *v, by_total);
		*out = v[n / 2].rank;
	}
	np_free(v);
	return v != NULL;
}

/* ── computing: by type of operator ── */

struct type {
	np_ns dur[2]; /* of the accused, of the peer */
	size_t n[2];
	np_ns foreign; /* of the accused: in shapes that the peer has not */
};

struct kernels {
	struct np_diagnosis *diag;
	struct np_profile *profile[2];
	struct np_intern types, shapes; /* shapes: "type shape" of the peer */
	NP_VEC(struct type) by_type;
	np_ns total[2];
	struct np_buf key;
};

static bool is_work(const struct np_profile *profile, size_t row)
{
	return !np_is_comm_core(np_intern_get(&profile->strings, profile->kernels.core[row]));
}

static np_str shape_key(struct kernels *self, int side, size_t row)
{
	const struct np_profile *p = self->profile[side];
	np_buf_clear(&self->key);
	np_buf_add_str(&self->key, np_intern_get(&p->strings, p->kernels.type[row]));
	np_buf_add_char(&self->key, ' ');
	if (row < p->kernel_shapes.n)
		np_buf_add_str(&self->key,
		               np_intern_get(&p->strings, p->kernel_shapes.in_shapes[row]));
	return np_buf_str(&self->key);
}

static struct type *type_of(struct kernels *self, int side, size_t row)
{
	const struct np_profile *p = self->profile[side];
	uint32_t name =
		p->kernels.type[row] != NP_ID_NONE ? p->kernels.type[row] : p->kernels.name[row];
	uint32_t id = np_intern_add(&self->types, np_intern_get(&p->strings, name));
	if (id == NP_ID_NONE)
		return NULL;
	while (self->by_type.n <= id)
		if (!np_vec_push(&self->by_type, (struct type){.foreign = 0}))
			return NULL;
	return &self->by_type.v[id];
}

/* The peer first (side 1), so that its shapes are known. */
static bool add_kernels(struct kernels *self, int side)
{
	const struct np_kernels *k = &self->profile[side]->kernels;
	for (size_t i = 0; i < k->n; i++) {
		if (!is_work(self->profile[side], i))
			continue;
		struct type *type = type_of(self, side, i);
		np_str shape = shape_key(self, side, i);
		if (!type || self->key.failed)
			return false;
		type->dur[side] += k->dur_ns[i];
		type->n[side]++;
		self->total[side] += k->dur_ns[i];
		if (side == 1 && np_intern_add(&self->shapes, shape) == NP_ID_NONE)
			return false;
		if (side == 0 && np_intern_find(&self->shapes, shape) == NP_ID_NONE)
			type->foreign += k->dur_ns[i];
	}
	return true;
}

static np_ns excess(const struct kernels *self, size_t id)
{
	return self->by_type.v[id].dur[0] - self->by_type.v[id].dur[1];
}

/* The id of the type with the largest excess below `limit`; SIZE_MAX. */
static size_t next_type(const struct kernels *self, size_t after)
{
	size_t best = SIZE_MAX;
	for (size_t i = 0; i < self->by_type.n; i++) {
		if (excess(self, i) <= 0 ||
		    (after != SIZE_MAX && (excess(self, i) > excess(self, after) ||
		                           (excess(self, i) == excess(self, after) && i <= after))))
			continue;
		if (best == SIZE_MAX || excess(self, i) > excess(self, best))
			best = i;
	}
	return best;
}

static double mean_us(const struct type *type, int side)
{
	return type->n[side] ? (double)type->dur[side] / 1000 / (double)type->n[side] : 0;
}

static void tell_types(const struct kernels *self, struct np_buf *out)
{
	size_t id = SIZE_MAX;
	for (int i = 0; i < SHOWN_TYPES; i++) {
		id = next_type(self, id);
		if (id == SIZE_MAX)
			break;
		const struct type *type = &self->by_type.v[id];
		np_str name = np_intern_get(&self->types, (uint32_t)id);
		np_buf_printf(out, np_tr("%s%.*s +%.1f us (%zu × %.1f us against %zu × %.1f us)"),
		              i ? ", " : ": ", NP_FMT(name), (double)excess(self, id) / 1000,
		              type->n[0], mean_us(type, 0), type->n[1], mean_us(type, 1));
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The median of the AI core's frequency, NaN without samples. */
static bool frequency(const struct np_profile *profile, double *out)
{
	const struct np_counters *c = &profile->counters;
	uint32_t process = np_intern_find(&profile->strings, NP_STR("AI Core Freq"));
	double *v = np_realloc(NULL, c->n + 1, sizeof *v);
	size_t n = 0;
	for (size_t i = 0; v && i < c->n; i++)
		if (process != NP_ID_NONE && c->process[i] == process && c->value[i] > 0)
			v[n++] = c->value[i];
	if (n > 0)
		qsort(v, n, sizeof *v, by_value);
	*out = n > 0 ? v[n / 2] : NAN;
	np_free(v);
	return v != NULL;
}

static void tell_total(const struct kernels *self, long long peer, struct np_buf *out)
{
	np_ns longer = self->total[0] - self->total[1];
	if (longer > 0)
		np_buf_printf(out, np_tr("its kernels take %.1f us longer than those of rank %lld"),
		              (double)longer / 1000, peer);
	else /* it is late at some collectives, and early at others */
		np_buf_printf(out,
		              np_tr("its kernels together take no longer than those of rank %lld"),
		              peer);
}

static bool conclude(struct kernels *self, struct np_look *out, struct np_buf *text)
{
	double own, peer;
	size_t top = next_type(self, SIZE_MAX);
	if (!frequency(self->profile[0], &own) || !frequency(self->profile[1], &peer))
		return false;
	tell_total(self, (long long)self->diag->cluster->ranks.v[out->peer].rank, text);
	tell_types(self, text);
	if (top != SIZE_MAX && (double)self->by_type.v[top].foreign >
	                               SHAPES_DIFFER * (double)self->by_type.v[top].dur[0]) {
		np_str name = np_intern_get(&self->types, (uint32_t)top);
		out->code = "CLUSTER_IMBALANCE";
		out->advice =
			NP_N("Balance the work: tokens per expert, sequence lengths, uneven "
		             "layers of the pipeline. npuprof cluster -m ep_load_balance tells "
		             "the tokens of each expert rank.");
		np_buf_printf(
			text,
			np_tr("; %.0f %% of the time of %.*s is in input shapes that the other "
		              "has not"),
			100.0 * (double)self->by_type.v[top].foreign /
				(double)self->by_type.v[top].dur[0],
			NP_FMT(name));
	} else if (own < FREQUENCY_LOWER * peer) {
		out->code = "CLUSTER_LOW_FREQUENCY";
		out->advice =
			NP_N("Look at temperature, power limit and health of that card (npu-smi "
		             "info -t health), and take it out if it stays slow.");
		np_buf_printf(text, np_tr("; AI core frequency %.0f MHz against %.0f MHz"), own,
		              peer);
	}
	return true;
}

static bool look_at_kernels(struct np_diagnosis *self, const struct np_diag_cause *cause,
                            struct np_look *out, struct np_buf *text)
{
	enum { LOAD = NP_KERNELS | NP_KERNEL_SHAPES | NP_COUNTERS };
	struct kernels kernels = {.diag = self};
	struct np_err err;
	bool ok = np_intern_init(&kernels.types) && np_intern_init(&kernels.shapes);
	bool loaded = ok;
	const uint32_t rows[2] = {cause->rank, out->peer};
	for (int side = 0; loaded && side < 2; side++) {
		enum np_status status = np_cluster_load(self->cluster, rows[side], LOAD,
		                                        &kernels.profile[side], &err);
		loaded = status == NP_OK;
		ok &= status != NP_E_NOMEM;
	}
	if (loaded)
		ok = add_kernels(&kernels, 1) && add_kernels(&kernels, 0) &&
		     conclude(&kernels, out, text);
	np_profile_free(kernels.profile[0]);
	np_profile_free(kernels.profile[1]);
	np_vec_release(&kernels.by_type);
	np_intern_release(&kernels.types);
	np_intern_release(&kernels.shapes);
	np_buf_release(&kernels.key);
	return ok;
}

/* ── idle: by class ── */

/* Idle time of one rank by class; known false when the capture does not tell. */
static enum np_status idle_of(const struct np_diagnosis *self, uint32_t rank,
                              np_ns classes[NP_N_IDLE], bool *known)
{
	struct np_analysis analysis;
	struct np_err err;
	struct np_report *scratch = np_report_new("cluster");
	struct np_analyze_options options = {.threads = self->cluster->options->threads,
	                                     .has_step = self->cluster->options->has_step,
	                                     .step = self->cluster->options->step};
	if (!scratch)
		return NP_E_NOMEM;
	enum np_status status = np_analysis_prepare(&analysis, self->cluster->ranks.v[rank].capture,
	                                            &options, scratch, 0, &err);
	*known = status == NP_OK;
	if (status == NP_OK && !np_links_build(&analysis))
		status = NP_E_NOMEM;
	if (status == NP_OK) {
		np_analyze_idle(&analysis);
		for (int c = 0; c < NP_N_IDLE; c++)
			classes[c] = analysis.idle_ns[c];
		status = analysis.oom ? NP_E_NOMEM : NP_OK;
	}
	np_analysis_release(&analysis);
	np_report_free(scratch);
	return status == NP_E_NOMEM ? status : NP_OK;
}

static bool look_at_host(struct np_diagnosis *self, const struct np_diag_cause *cause,
                         struct np_look *out, struct np_buf *text)
{
	np_ns own[NP_N_IDLE] = {0}, peer[NP_N_IDLE] = {0}, most = 0, total = 0;
	bool known[2] = {false, false};
	if (idle_of(self, cause->rank, own, &known[0]) != NP_OK ||
	    idle_of(self, out->peer, peer, &known[1]) != NP_OK)
		return false;
	int top = NP_N_IDLE;
	for (int c = 0; known[0] && known[1] && c < NP_N_IDLE; c++) {
		total += own[c] - peer[c];
		if (c != NP_IDLE_BETWEEN && own[c] - peer[c] > most) {
			most = own[c] - peer[c];
			top = c;
		}
	}
	if (top == NP_N_IDLE)
		return true;
	enum np_idle_class class = (enum np_idle_class)top;
	np_buf_printf(text,
	              np_tr("its device idles %.1f us longer than that of rank %lld; %s: +%.1f us"),
	              (double)total / 1000, (long long)self->cluster->ranks.v[out->peer].rank,
	              np_tr(np_idle_what(class)), (double)most / 1000);
	out->advice = np_idle_advice(class);
	if (np_idle_is_host(class) || class == NP_IDLE_LAUNCH)
		out->code = "CLUSTER_HOST_BOUND";
	return true;
}

/* ── the whole ── */

bool np_diag_look_by_cause(const struct np_diag_cause *cause, struct np_look *out)
{
	*out = (struct np_look){.peer = NP_DIAG_NONE};
	switch ((enum np_cause)cause->cause) {
	case NP_CAUSE_COMPUTE:
		out->code = "CLUSTER_SLOW_COMPUTE";
		out->advice =
			NP_N("Look at that card: frequency, temperature, other processes; and "
		             "whether its operators or shapes are those of the others.");
		break;
	case NP_CAUSE_IDLE:
		out->code = "CLUSTER_RANK_IDLE";
		out->advice =
			NP_N("npuprof analyze of that rank tells what its host did meanwhile.");
		break;
	case NP_CAUSE_TRANSFER:
		out->code = "CLUSTER_SLOW_GROUP";
		out->advice = NP_N("Look at the links of that communicator: npuprof cluster -m "
		                   "slow_link.");
		break;
	default:
		out->code = "CLUSTER_RANK_LATE";
		out->advice =
			NP_N("The capture does not tell why: profile with level1 or higher and "
		             "ProfilerActivity.CPU.");
	}
	return true;
}

bool np_diag_look(struct np_diagnosis *self, const struct np_diag_cause *cause, struct np_look *out)
{
	struct np_buf text = {0};
	bool ok = true;
	(void)np_diag_look_by_cause(cause, out);
	if (self->kernels[cause->rank])
		ok = choose_peer(self, cause, &out->peer);
	if (ok && out->peer != NP_DIAG_NONE && cause->cause == NP_CAUSE_COMPUTE)
		ok = look_at_kernels(self, cause, out, &text);
	else if (ok && out->peer != NP_DIAG_NONE && cause->cause == NP_CAUSE_IDLE)
		ok = look_at_host(self, cause, out, &text);
	if (text.len > 0)
		out->what = np_arena_cstr(&self->cluster->arena, np_buf_str(&text));
	np_buf_release(&text);
	return ok;
}
