#include <math.h>
#include <string.h>

#include "advice/fusible.h"

/* ── kernels ── */

static const double *metric(const struct np_profile *profile, const char *name)
{
	const struct np_metric *found = np_profile_metric(profile, name);
	return found ? found->v : NULL;
}

static double at(const double *column, uint32_t row)
{
	return column && column[row] > 0 && column[row] < 1e12 ? column[row] : 0;
}

static bool sum_up(const struct np_analysis *rank, bool all_cores, struct np_fusible *self)
{
	const struct np_profile *profile = rank->profile;
	const double *cube = metric(profile, "aicore_time(us)");
	const double *vector = all_cores ? metric(profile, "aiv_time(us)") : NULL;
	const double *aic_in = metric(profile, "aic_mte2_time(us)");
	const double *aiv_in = metric(profile, "aiv_mte2_time(us)");
	const double *aic_out = metric(profile, "aic_fixpipe_time(us)");
	const double *aiv_out = metric(profile, "aiv_mte3_time(us)");
	double **const columns[] = {&self->busy_us, &self->mte_us, &self->core_us, &self->in_us,
	                            &self->out_us};
	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
		*columns[i] = np_calloc(self->n + 1, sizeof(double));
		if (!*columns[i])
			return false;
	}
	for (size_t i = 0; i < self->n; i++) {
		uint32_t row = rank->rows[i];
		self->in_us[i] = fmax(at(aic_in, row), at(aiv_in, row));
		self->out_us[i] = fmax(at(aic_out, row), at(aiv_out, row));
		self->busy_us[i + 1] =
			self->busy_us[i] + (double)profile->kernels.dur_ns[row] / 1e3;
		self->mte_us[i + 1] = self->mte_us[i] + self->in_us[i] + self->out_us[i];
		self->core_us[i + 1] = self->core_us[i] + fmax(at(cube, row), at(vector, row));
	}
	return true;
}

static bool is_break(const struct np_analysis *rank, uint32_t row)
{
	uint8_t class = rank->class[row];
	np_str name = np_text(rank, rank->profile->kernels.name[row]);
	return class == NP_CLASS_COMM || class == NP_CLASS_AICPU ||
	       np_str_istarts(name, NP_STR("hcom")) || np_str_istarts(name, NP_STR("lccl")) ||
	       np_str_istarts(name, NP_STR("lcoc"));
}

/* Number of (name, shapes) for each kernel: pairs are numbered twice over. */
static bool number_keys(const struct np_analysis *rank, struct np_fusible *self)
{
	const struct np_kernel_shapes *shapes = &rank->profile->kernel_shapes;
	uint32_t *keys = np_realloc(NULL, self->n + 1, sizeof *keys);
	struct np_map first, second;
	uint32_t n = 0;
	bool ok = keys != NULL;
	self->number[1] = keys;
	np_map_init(&first);
	np_map_init(&second);
	for (size_t i = 0; ok && i < self->n; i++) {
		uint32_t row = rank->rows[i];
		bool known = row < shapes->n;
		uint32_t in = known ? shapes->in_shapes[row] : 0;
		uint32_t out = known ? shapes->out_shapes[row] : 0;
		uint64_t pair = (uint64_t)rank->profile->kernels.name[row] << 32 | in;
		keys[i] = NP_NO_U32;
		if (is_break(rank, row))
			continue;
		uint32_t half = np_map_get(&first, pair, NP_NO_U32);
		if (half == NP_NO_U32) {
			half = n++;
			ok = np_map_put(&first, pair, half);
		}
		pair = (uint64_t)half << 32 | out;
		keys[i] = np_map_get(&second, pair, NP_NO_U32);
		if (ok && keys[i] == NP_NO_U32) {
			keys[i] = n++;
			ok = np_map_put(&second, pair, keys[i]);
		}
	}
	np_map_release(&first);
	np_map_release(&second);
	return ok;
}

/* ── sequences ── */

struct limits {
	double host, mte, share, occurrences;
};

static bool host_bound(const struct limits *limits, double busy_us, double wall_us)
{
	return wall_us > 0 && busy_us / wall_us < limits->host;
}

static bool mte_bound(const struct limits *limits, double mte_us, double core_us)
{
	return core_us > 0 && mte_us / core_us > limits->mte;
}

/* One occurrence at i. */
static void see(const struct np_advice *self, const struct np_fusible *all,
                const struct limits *limits, struct np_sequence *to, size_t i)
{
	const struct np_kernels *kernels = &self->rank->profile->kernels;
	size_t end = i + to->length;
	uint32_t first = self->rank->rows[i], last = self->rank->rows[end - 1];
	double wall = (double)(kernels->start_ns[last] + kernels->dur_ns[last] -
	                       kernels->start_ns[first]) /
	              1e3;
	double busy = all->busy_us[end] - all->busy_us[i], mte = all->mte_us[end] - all->mte_us[i];
	double core = all->core_us[end] - all->core_us[i];
	to->seen++;
	if (to->length < all->shortest ||
	    (!host_bound(limits, busy, wall) && !mte_bound(limits, mte, core)))
		return;
	if (to->count++ == 0)
		to->first = (uint32_t)i;
	to->wall_us += wall;
	to->busy_us += busy;
	to->mte_us += mte;
	to->core_us += core;
}

static bool number_length(const struct np_advice *self, struct np_fusible *all,
                          const struct limits *limits, uint32_t length)
{
	const uint32_t *before = all->number[length - 1], *keys = all->number[1];
	uint32_t *numbers = np_realloc(NULL, all->n + 1, sizeof *numbers);
	struct np_map known;
	bool ok = numbers != NULL;
	all->number[length] = numbers;
	np_map_init(&known);
	for (size_t i = 0; ok && i < all->n; i++) {
		numbers[i] = NP_NO_U32;
		if (before[i] == NP_NO_U32 || i + length > all->n ||
		    keys[i + length - 1] == NP_NO_U32 ||
		    (length > 2 && !(all->of.v[before[i]].seen > limits->occurrences)))
			continue;
		uint64_t pair = (uint64_t)before[i] << 32 | keys[i + length - 1];
		numbers[i] = np_map_get(&known, pair, NP_NO_U32);
		if (numbers[i] == NP_NO_U32) {
			numbers[i] = (uint32_t)all->of.n;
			ok = np_vec_push(&all->of, (struct np_sequence){.length = length,
			                                                .parent = before[i]}) &&
			     np_map_put(&known, pair, numbers[i]);
		}
		if (ok)
			see(self, all, limits, &all->of.v[numbers[i]], i);
	}
	np_map_release(&known);
	return ok;
}

/*
 * Candidates; one that a longer candidate begins with is told only when it has more than
 * fusible_occurrences of its own. Longer ones have larger numbers: one pass from behind.
 */
static void choose(const struct np_advice *self, struct np_fusible *all,
                   const struct limits *limits)
{
	double step_us = self->step_us * self->steps;
	for (size_t s = all->of.n; s-- > 0;) {
		struct np_sequence *one = &all->of.v[s];
		one->host = host_bound(limits, one->busy_us, one->wall_us);
		one->mte = mte_bound(limits, one->mte_us, one->core_us);
		bool candidate =
			one->length >= all->shortest && one->count > limits->occurrences &&
			(one->mte || (one->host && one->wall_us > limits->share * step_us));
		one->told = candidate &&
		            (one->longer == 0 ||
		             (double)one->count > (double)one->longer + limits->occurrences);
		uint32_t most = candidate && one->count > one->longer ? one->count : one->longer;
		if (one->length > 2 && all->of.v[one->parent].longer < most)
			all->of.v[one->parent].longer = most;
	}
}

static unsigned length_of(const struct np_advice *self, const char *rule, unsigned least)
{
	double value = np_rule_value(self, rule);
	if (!(value > least))
		return least;
	return value < NP_FUSIBLE_LONGEST ? (unsigned)value : NP_FUSIBLE_LONGEST;
}

bool np_fusible_find(const struct np_advice *self, struct np_fusible *out)
{
	const struct limits limits = {.host = np_rule_value(self, "fusible_host"),
	                              .mte = np_rule_value(self, "fusible_mte"),
	                              .share = np_rule_value(self, "fusible_share"),
	                              .occurrences = np_rule_value(self, "fusible_occurrences")};
	*out = (struct np_fusible){.n = self->rank->n_rows};
	out->shortest = length_of(self, "fusible_min_length", 2);
	out->longest = length_of(self, "fusible_max_length", out->shortest);
	if (!sum_up(self->rank, np_rule_value(self, "fusible_mte_all_cores") > 0, out) ||
	    !number_keys(self->rank, out))
		return false;
	for (uint32_t length = 2; length <= out->longest; length++)
		if (!number_length(self, out, &limits, length))
			return false;
	choose(self, out, &limits);
	return true;
}

void np_fusible_release(struct np_fusible *self)
{
	for (size_t i = 0; i <= NP_FUSIBLE_LONGEST; i++)
		np_free(self->number[i]);
	np_free(self->busy_us);
	np_free(self->mte_us);
	np_free(self->core_us);
	np_free(self->in_us);
	np_free(self->out_us);
	np_vec_release(&self->of);
}
