/*
 * diagnose: the mode without which nobody needs to open a viewer. Who makes the
 * others wait, why, and what it costs; clocks; the critical path. The steps are
 * in diag.h, what is said about them in diag_tell.c.
 */
#include "cluster/diag_tell.h"
#include "cluster/internal.h"

bool np_diagnosis_open(struct np_diagnosis *self, struct np_cluster *cluster)
{
	size_t n = cluster->ranks.n, ops = 0;
	*self = (struct np_diagnosis){.cluster = cluster,
	                              .n_ranks = n,
	                              .ops = np_calloc(n + 1, sizeof *self->ops),
	                              .steps = np_calloc(n + 1, sizeof *self->steps),
	                              .first_op = np_calloc(n + 1, sizeof *self->first_op),
	                              .kernels = np_calloc(n + 1, sizeof *self->kernels),
	                              .stage_of = np_calloc(n + 1, sizeof *self->stage_of),
	                              .has_kernels = true};
	if (!self->ops || !self->steps || !self->first_op || !self->kernels || !self->stage_of)
		return false;
	for (size_t r = 0; r < n; r++) {
		const struct np_timeline_facts *facts =
			NP_DIGEST_ROWS(&cluster->ranks.v[r], np_timeline_facts);
		self->ops[r] = NP_DIGEST_ROWS(&cluster->ranks.v[r], np_timeline_ops);
		self->steps[r] = NP_DIGEST_ROWS(&cluster->ranks.v[r], np_timeline_steps);
		self->kernels[r] = facts->n > 0 && facts->has_kernels[0];
		self->has_kernels &= self->kernels[r];
		ops += self->ops[r]->n;
		self->first_op[r + 1] = ops;
	}
	self->instance_of = np_realloc(NULL, ops + 1, sizeof *self->instance_of);
	for (size_t i = 0; self->instance_of && i < ops; i++)
		self->instance_of[i] = NP_DIAG_NONE;
	return self->instance_of != NULL;
}

void np_diagnosis_close(struct np_diagnosis *self)
{
	for (size_t g = 0; g < self->groups.n; g++)
		np_free(self->groups.v[g].ranks);
	np_vec_release(&self->groups);
	np_vec_release(&self->instances);
	np_vec_release(&self->members);
	np_vec_release(&self->domains);
	np_free(self->ops);
	np_free(self->steps);
	np_free(self->first_op);
	np_free(self->instance_of);
	np_free(self->domain_of);
	np_free(self->kernels);
	np_free(self->stage_of);
	np_free(self->fits);
}

static bool diagnose(struct np_diagnosis *self)
{
	struct np_diag_result found = {.path = {.total = 0}};
	bool ok = np_diag_match(self) && np_diag_clock(self) && np_diag_arrive(self) &&
	          np_diag_blame(self) && np_diag_path(self, &found.path) &&
	          np_diag_stages(self, &found.stages) && np_diag_cost(self, &found.causes) &&
	          np_diag_links(self, &found.links) && np_diag_tell(self, &found);
	np_stages_release(&found.stages);
	np_vec_release(&found.causes.list);
	np_vec_release(&found.links.slow);
	np_path_release(&found.path);
	return ok;
}

static enum np_status reduce(struct np_cluster *cluster, const struct np_recipe *self,
                             struct np_err *err)
{
	struct np_diagnosis diag;
	bool ok = np_diagnosis_open(&diag, cluster);
	if (ok && diag.first_op[diag.n_ranks] == 0)
		np_cluster_nothing(cluster, self, "no rank has recorded a collective");
	else
		ok = ok && diagnose(&diag);
	np_diagnosis_close(&diag);
	return ok ? NP_OK : np_err_nomem(err);
}

static const struct np_part *const parts[] = {&np_part_timeline, &np_part_links, NULL};

const struct np_recipe np_recipe_diagnose = {
	.name = "diagnose",
	.dir = "Diagnose",
	.summary = NP_N("who makes the others wait, why, and what it costs"),
	.parts = parts,
	.reduce = reduce,
};
