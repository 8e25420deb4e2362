/*
 * The rest of a run: collectives by group, operators of the host, memory peaks.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/compare_side.h"

static bool add_point(struct np_cmp_points *points, uint32_t key, size_t sample, np_ns ns,
                      np_ns self_ns)
{
	struct np_cmp_point point = {key, (uint32_t)sample, ns, self_ns};
	return key != NP_NO_U32 && np_vec_push(points, point);
}

/* ── communication groups ── */

/* The name that the metadata give a group, or "". */
static np_str known_name(const struct np_capture *capture, np_str raw)
{
	for (size_t i = 0; i < capture->n_groups; i++) {
		const struct np_group *group = &capture->groups[i];
		char hash[24];
		(void)snprintf(hash, sizeof hash, "%llu", (unsigned long long)group->hash);
		bool same = np_str_is(raw, hash) ||
		            (group->comm_name && np_str_is(raw, group->comm_name));
		if (same && group->name && *group->name)
			return np_str_of(group->name);
	}
	return NP_STR("");
}

/*
 * The name by which a person knows the group of a collective: of the metadata, else as in
 * the data. A trace only counts its groups; communication.json has the hash, by operator.
 */
static np_str group_label(const struct np_analysis *analysis, const struct np_map *by_op,
                          size_t row)
{
	const struct np_comm_ops *ops = &analysis->profile->comm_ops;
	np_str raw = np_text(analysis, ops->group[row]);
	np_str name = known_name(analysis->capture, raw);
	uint32_t hash = np_map_get(by_op, ops->name[row], NP_ID_NONE);
	if (name.len == 0 && hash != NP_ID_NONE)
		name = known_name(analysis->capture, np_text(analysis, hash));
	return name.len > 0 ? name : raw;
}

struct labels {
	struct np_map by_group; /* string of the profile → common string */
	struct np_map by_op;    /* name of a collective → its group in communication.json */
	NP_VEC(uint32_t) groups;
};

/* Labels of all groups; two groups of one label keep their own names instead. */
static bool make_labels(struct np_compare *self, const struct np_analysis *analysis,
                        struct labels *out)
{
	const struct np_comm_ops *ops = &analysis->profile->comm_ops;
	const struct np_comm_time *known = &analysis->profile->comm_time;
	struct np_map times;
	bool ok = true;
	np_map_init(&times);
	for (size_t i = 0; ok && i < known->n; i++)
		ok = known->op[i] == NP_ID_NONE || known->group[i] == NP_ID_NONE ||
		     np_map_put(&out->by_op, known->op[i], known->group[i]);
	for (size_t i = 0; ok && i < ops->n; i++) {
		if (np_map_get(&out->by_group, ops->group[i], NP_NO_U32) != NP_NO_U32)
			continue;
		np_str label = group_label(analysis, &out->by_op, i);
		uint32_t id = np_intern_add(&self->strings, label);
		ok = id != NP_ID_NONE && np_map_put(&out->by_group, ops->group[i], id) &&
		     np_map_put(&times, id, np_map_get(&times, id, 0) + 1) &&
		     np_vec_push(&out->groups, ops->group[i]);
	}
	for (size_t i = 0; ok && i < out->groups.n; i++) {
		uint32_t group = out->groups.v[i];
		if (np_map_get(&times, np_map_get(&out->by_group, group, 0), 0) < 2)
			continue;
		uint32_t id = np_intern_add(&self->strings, np_text(analysis, group));
		ok = id != NP_ID_NONE && np_map_put(&out->by_group, group, id);
	}
	np_map_release(&times);
	return ok;
}

/* Sample of each row of steps, NP_NO_U32 when it is none. */
static uint32_t *samples_by_step(const struct np_analysis *analysis, size_t first)
{
	size_t n = analysis->profile->steps.n;
	uint32_t *out = np_realloc(NULL, n + 1, sizeof *out);
	for (size_t s = 0; out && s < n; s++)
		out[s] = NP_NO_U32;
	for (size_t i = 0; out && i < analysis->spans.n; i++)
		if (analysis->spans.v[i].step_row < n)
			out[analysis->spans.v[i].step_row] = (uint32_t)(first + i);
	return out;
}

/* The sample around a time, for collectives of no known step. */
static uint32_t sample_around(const struct np_analysis *analysis, size_t first, np_ns ts)
{
	size_t low = 0, high = analysis->spans.n; /* spans are in order and apart */
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (analysis->spans.v[mid].start <= ts)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && ts < analysis->spans.v[low - 1].end ? (uint32_t)(first + low - 1)
	                                                      : NP_NO_U32;
}

static bool add_comm(struct np_compare *self, const struct np_analysis *analysis, size_t first,
                     const struct labels *labels, struct np_cmp_side *side)
{
	const struct np_comm_ops *ops = &analysis->profile->comm_ops;
	uint32_t *sample_of = samples_by_step(analysis, first);
	struct np_map kinds; /* name → normalised */
	struct np_buf buf = {0};
	np_map_init(&kinds);
	bool ok = sample_of != NULL;
	for (size_t i = 0; ok && i < ops->n; i++) {
		size_t row = ops->step[i] == NP_NO_U32 ? 0 : ops->step[i];
		uint32_t sample = ops->step[i] == NP_NO_U32
		                          ? sample_around(analysis, first, ops->start_ns[i])
		                          : sample_of[row];
		if (sample == NP_NO_U32)
			continue;
		uint32_t kind = np_map_get(&kinds, ops->name[i], NP_NO_U32);
		if (kind == NP_NO_U32) {
			(void)np_normalise(np_text(analysis, ops->name[i]), NP_STR(""), &buf);
			kind = np_intern_add(&self->strings, np_buf_str(&buf));
			ok = !buf.failed && kind != NP_ID_NONE &&
			     np_map_put(&kinds, ops->name[i], kind);
		}
		uint32_t group = np_map_get(&labels->by_group, ops->group[i], 0);
		ok = ok && add_point(&side->comm, np_cmp_keys_add(&self->comm, group, kind, 0),
		                     sample, ops->dur_ns[i], 0);
	}
	side->has_comm_ops = side->has_comm_ops || ops->n > 0;
	side->comm.n_samples = first + analysis->spans.n;
	np_buf_release(&buf);
	np_map_release(&kinds);
	np_free(sample_of);
	return ok;
}

static bool keep_group_times(struct np_cmp_side *side, const struct labels *labels)
{
	for (size_t i = 0; i < side->overall.groups.n; i++) {
		const struct np_overall_group *from = &side->overall.groups.v[i];
		struct np_cmp_group_time to = {np_map_get(&labels->by_group, from->name, 0),
		                               from->total, from->wait, from->transmit,
		                               from->has_wait};
		if (!np_vec_push(&side->group_times, to))
			return false;
	}
	return true;
}

/* ── operators of the host ── */

/* Ranges that are open, one chain per thread and layer. */
struct open {
	np_ns end;
	size_t point;   /* in side->api, SIZE_MAX when it is in no sample */
	uint32_t below; /* index of the range around it, NP_NO_U32 */
};

struct nest {
	NP_VEC(struct open) ranges;
	struct np_map keys; /* layer and name of the profile → key */
	struct np_map tops; /* thread and layer → index of the innermost, or none */
};

/* Sample at a time: the step whose host range holds it; the whole run when there is one. */
static size_t sample_at(const struct np_analysis *analysis, size_t first, np_ns ts, size_t *hint)
{
	size_t n = analysis->spans.n;
	if (n == 1 && !analysis->options->has_step)
		return first;
	while (*hint + 1 < n && analysis->spans.v[*hint + 1].host_start != NP_NO_I64 &&
	       analysis->spans.v[*hint + 1].host_start <= ts)
		(*hint)++;
	const struct np_span *span = &analysis->spans.v[*hint];
	return span->host_start != NP_NO_I64 && ts >= span->host_start && ts < span->host_end
	               ? first + *hint
	               : SIZE_MAX;
}

static uint32_t api_key(struct np_compare *self, const struct np_analysis *analysis, size_t row,
                        struct nest *nest)
{
	const struct np_host_ops *host = &analysis->profile->host_ops;
	uint64_t own = np_cmp_pair_key(host->layer[row], host->name[row]);
	uint32_t key = np_map_get(&nest->keys, own, NP_NO_U32);
	if (key != NP_NO_U32)
		return key;
	uint32_t name = np_intern_add(&self->strings, np_text(analysis, host->name[row]));
	if (name != NP_ID_NONE)
		key = np_cmp_keys_add(&self->api, host->layer[row], name, 0);
	return key != NP_NO_U32 && np_map_put(&nest->keys, own, key) ? key : NP_NO_U32;
}

static bool nest_op(struct np_compare *self, const struct np_analysis *analysis, size_t row,
                    size_t sample, struct nest *nest, struct np_cmp_side *side)
{
	const struct np_host_ops *host = &analysis->profile->host_ops;
	uint64_t thread = (uint64_t)host->tid[row] << 8 | host->layer[row];
	np_ns start = host->start_ns[row], dur = host->dur_ns[row];
	uint32_t top = np_map_get(&nest->tops, thread, NP_NO_U32);
	while (top != NP_NO_U32 && nest->ranges.v[top].end <= start)
		top = nest->ranges.v[top].below;
	if (top != NP_NO_U32 && nest->ranges.v[top].point != SIZE_MAX)
		side->api.v[nest->ranges.v[top].point].self -= dur;
	struct open open = {start + dur, SIZE_MAX, top};
	if (sample != SIZE_MAX) {
		open.point = side->api.n;
		uint32_t key = api_key(self, analysis, row, nest);
		if (!add_point(&side->api, key, sample, dur, dur))
			return false;
	}
	return np_vec_push(&nest->ranges, open) &&
	       np_map_put(&nest->tops, thread, (uint32_t)nest->ranges.n - 1);
}

static bool is_step(const struct np_analysis *analysis, size_t row)
{
	np_str name = np_text(analysis, analysis->profile->host_ops.name[row]);
	return np_str_starts(name, NP_STR("ProfilerStep"));
}

static bool add_api(struct np_compare *self, const struct np_analysis *analysis, size_t first,
                    struct np_cmp_side *side)
{
	const struct np_profile *profile = analysis->profile;
	const struct np_host_ops *host = &profile->host_ops;
	struct nest nest = {0};
	size_t hint = 0;
	bool ok = true;
	np_map_init(&nest.tops);
	np_map_init(&nest.keys);
	for (size_t i = 0; ok && i < host->n; i++) { /* ordered by start */
		if (host->layer[i] == NP_HOST_PYTHON || host->layer[i] == NP_HOST_GC ||
		    (host->layer[i] == NP_HOST_OP && is_step(analysis, i)))
			continue;
		size_t sample = sample_at(analysis, first, host->start_ns[i], &hint);
		ok = nest_op(self, analysis, i, sample, &nest, side);
	}
	for (size_t i = 0; i < side->api.n; i++) /* a child that outlasts its parent */
		if (side->api.v[i].self < 0)
			side->api.v[i].self = 0;
	side->has_api = side->has_api || side->api.n > 0;
	side->api.n_samples = first + analysis->spans.n;
	np_vec_release(&nest.ranges);
	np_map_release(&nest.tops);
	np_map_release(&nest.keys);
	return ok;
}

/* ── memory ── */

static bool add_peaks(struct np_compare *self, const struct np_analysis *analysis,
                      struct np_cmp_side *side)
{
	const struct np_memory *memory = &analysis->profile->memory;
	for (size_t i = 0; i < memory->n; i++) {
		/* components that never hold anything are many, and say nothing */
		if (!(memory->allocated_mb[i] > 0) && !(memory->reserved_mb[i] > 0))
			continue;
		uint32_t name =
			np_intern_add(&self->strings, np_text(analysis, memory->component[i]));
		size_t at = 0;
		while (at < side->peaks.n && side->peaks.v[at].component != name)
			at++;
		struct np_cmp_peak fresh = {name, NAN, NAN};
		if (name == NP_ID_NONE ||
		    (at == side->peaks.n && !np_vec_push(&side->peaks, fresh)))
			return false;
		struct np_cmp_peak *peak = &side->peaks.v[at];
		peak->allocated_mb = fmax(peak->allocated_mb, memory->allocated_mb[i]);
		peak->reserved_mb = fmax(peak->reserved_mb, memory->reserved_mb[i]);
	}
	side->has_memory = side->has_memory || memory->n > 0;
	return true;
}

bool np_cmp_load_more(struct np_compare *self, const struct np_analysis *analysis, uint32_t run,
                      size_t first, struct np_cmp_side *side)
{
	struct labels labels = {0};
	np_map_init(&labels.by_group);
	np_map_init(&labels.by_op);
	bool ok = make_labels(self, analysis, &labels) &&
	          add_comm(self, analysis, first, &labels, side) &&
	          (run > 0 || keep_group_times(side, &labels)) &&
	          add_api(self, analysis, first, side) && add_peaks(self, analysis, side);
	np_map_release(&labels.by_group);
	np_map_release(&labels.by_op);
	np_vec_release(&labels.groups);
	return ok;
}
