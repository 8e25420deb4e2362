/* Profiles made by hand, through the parts and recipes of src/cluster. Included by the
 * tests of modes; everything is static. */
#ifndef NP_TESTS_UNIT_CLUSTER_UNIT_H
#define NP_TESTS_UNIT_CLUSTER_UNIT_H

#include "unit.h"

#include "cluster/parts.h"

/* ── rows of a profile ── */

static inline uint32_t id_of(struct np_profile *profile, const char *text)
{
	return np_intern_add(&profile->strings, np_str_of(text));
}

static inline size_t add_mstx(struct np_profile *profile, enum np_mstx_type type,
                              const char *message, np_ns start, np_ns end, int64_t conn)
{
	size_t i = np_profile_add(profile, mstx);
	assert_int_not_equal(i, SIZE_MAX);
	struct np_mstx *m = &profile->mstx;
	m->start_ns[i] = start;
	m->end_ns[i] = end;
	m->event_type[i] = (uint8_t)type;
	m->message[i] = id_of(profile, message);
	m->domain[i] = id_of(profile, "default");
	m->range_id[i] = m->category[i] = NP_NO_I64;
	m->pid[i] = m->tid[i] = m->end_tid[i] = 1;
	m->conn[i] = conn;
	return i;
}

static inline void add_in_domain(struct np_profile *profile, const char *domain,
                                 const char *message, np_ns start, np_ns end)
{
	size_t i = add_mstx(profile, NP_MSTX_START_END, message, start, end, NP_NO_I64);
	profile->mstx.domain[i] = id_of(profile, domain);
}

static inline void add_task(struct np_profile *profile, np_ns start, np_ns dur, uint32_t stream,
                            int64_t conn)
{
	size_t i = np_profile_add(profile, tasks);
	assert_int_not_equal(i, SIZE_MAX);
	struct np_tasks *t = &profile->tasks;
	t->name[i] = t->type[i] = NP_ID_NONE;
	t->device[i] = t->task[i] = t->context[i] = 0;
	t->stream[i] = stream;
	t->start_ns[i] = start;
	t->dur_ns[i] = dur;
	t->conn[i] = conn;
	t->compute[i] = 0;
}

/* An operator with a connection; call them in order of (conn, id). */
static inline void add_op(struct np_profile *profile, const char *name, np_ns start, np_ns end,
                          int64_t conn)
{
	size_t i = np_profile_add(profile, host_ops);
	size_t c = np_profile_add(profile, host_conns);
	assert_int_not_equal(i, SIZE_MAX);
	assert_int_not_equal(c, SIZE_MAX);
	struct np_host_ops *h = &profile->host_ops;
	h->layer[i] = NP_HOST_OP;
	h->name[i] = id_of(profile, name);
	h->item[i] = h->shapes[i] = h->dtypes[i] = h->stack[i] = NP_ID_NONE;
	h->pid[i] = h->tid[i] = 1;
	h->start_ns[i] = start;
	h->dur_ns[i] = end - start;
	h->conn[i] = conn;
	h->seq[i] = NP_NO_I64;
	profile->host_conns.op[c] = (uint32_t)i;
	profile->host_conns.conn[c] = conn;
	profile->host_conns.id[c] = (int64_t)c;
}

static inline void add_kernel(struct np_profile *profile, const char *name, np_ns start, np_ns dur,
                              uint32_t conn, const char *dtypes)
{
	size_t i = np_profile_add(profile, kernels);
	size_t s = np_profile_add(profile, kernel_shapes);
	assert_int_not_equal(i, SIZE_MAX);
	assert_int_equal(i, s);
	struct np_kernels *k = &profile->kernels;
	k->step[i] = k->device[i] = k->stream[i] = k->task[i] = k->context[i] = k->model[i] = 0;
	k->name[i] = id_of(profile, name);
	k->type[i] = k->op_state[i] = k->hf32[i] = NP_ID_NONE;
	k->core[i] = id_of(profile, "AI_CORE");
	k->start_ns[i] = start;
	k->dur_ns[i] = dur;
	k->wait_ns[i] = 0;
	k->block_num[i] = k->mix_block_num[i] = 0;
	k->conn[i] = conn;
	struct np_kernel_shapes *sh = &profile->kernel_shapes;
	sh->in_shapes[s] = sh->out_shapes[s] = id_of(profile, "\"16,16\"");
	sh->in_formats[s] = sh->out_formats[s] = sh->out_dtypes[s] = NP_ID_NONE;
	sh->in_dtypes[s] = dtypes ? id_of(profile, dtypes) : NP_ID_NONE;
}

static inline void add_step(struct np_profile *profile, int64_t id, np_ns start, np_ns end)
{
	uint32_t row = np_profile_add_step(profile, id);
	profile->steps.host_start_ns[row] = start;
	profile->steps.host_end_ns[row] = end;
}

/* ── one rank through a part; a cluster of such ranks through a recipe ── */

struct unit_rank {
	struct np_capture capture;
	struct np_digest *digest;
};

static inline enum np_status map_part(const struct np_part *part, struct unit_rank *rank,
                                      const struct np_profile *profile,
                                      const struct np_cluster_options *options, np_ns from,
                                      np_ns to)
{
	struct np_err err;
	rank->digest = np_digest_new();
	if (!rank->digest)
		return NP_E_NOMEM;
	struct np_map_job job = {.options = options,
	                         .capture = &rank->capture,
	                         .rank = 0,
	                         .profile = profile,
	                         .from_ns = from,
	                         .to_ns = to,
	                         .digest = rank->digest};
	for (size_t t = 0; part->tables[t]; t++)
		if (!np_digest_table(rank->digest, part->tables[t]))
			return NP_E_NOMEM;
	return part->map(&job, &err);
}

/* Ranks 0, 1, … with digests that were mapped; the recipe's tables are in the report.
 * Takes over the digests. */
static inline enum np_status reduce_ranks(const struct np_recipe *recipe, struct unit_rank *ranks,
                                          size_t n, const struct np_cluster_options *options,
                                          struct np_report *report)
{
	struct np_cluster cluster = {.options = options, .report = report};
	struct np_err err;
	np_arena_init(&cluster.arena);
	bool ok = np_intern_init(&cluster.strings);
	for (size_t r = 0; r < n; r++) {
		struct np_cluster_rank rank = {.capture = &ranks[r].capture,
		                               .rank = (int64_t)r,
		                               .digest = ranks[r].digest};
		if (!ranks[r].capture.path)
			ranks[r].capture.path = "rank";
		ok = ok && (!rank.digest || np_digest_adopt(rank.digest, &cluster.strings)) &&
		     np_vec_push(&cluster.ranks, rank);
	}
	enum np_status status = ok ? recipe->reduce(&cluster, recipe, &err) : NP_E_NOMEM;
	for (size_t r = 0; r < n; r++) {
		np_digest_free(ranks[r].digest);
		ranks[r].digest = NULL;
	}
	np_vec_release(&cluster.ranks);
	np_intern_release(&cluster.strings);
	np_arena_release(&cluster.arena);
	return status;
}

static inline const struct np_table *table_of(const struct np_report *report, const char *id)
{
	for (size_t i = 0; i < report->tables.n; i++)
		if (strcmp(report->tables.v[i]->id, id) == 0)
			return report->tables.v[i];
	return NULL;
}

static inline size_t findings_of(const struct np_report *report, const char *code)
{
	size_t n = 0;
	for (size_t i = 0; i < report->findings.n; i++)
		n += strcmp(report->findings.v[i]->code, code) == 0;
	return n;
}

/* Every allocation in turn fails: E_NOMEM, nothing else, until there are enough. */
static inline void survive_no_memory(enum np_status (*run)(void *ctx), void *ctx)
{
	enum np_status status = NP_E_NOMEM;
	unsigned n = 0;
	while (status == NP_E_NOMEM) {
		np_mem_fail_after(++n);
		status = run(ctx);
		np_mem_fail_after(0);
		assert_true(n < 100000);
	}
	assert_int_equal(status, NP_OK);
	assert_true(n > 3);
}

#endif
