/*
 * Questions about a capture, and loading it.
 */
#include "capture/capture.h"

#include <stdio.h>
#include <string.h>

#include "capture/reader.h"

const char *np_framework_name(enum np_framework framework)
{
	static const char *const names[] = {"files", "torch", "mindspore", "msprof", "cluster"};
	return names[framework];
}

const char *np_rank_source_name(enum np_rank_source source)
{
	static const char *const names[] = {
		"unknown", "profiler_info_<N>.json", "RANK_DEVICE_MAP", "db name",
		"rank_id", "directory name",
	};
	return names[source];
}

const struct np_file *np_capture_file(const struct np_capture *self, enum np_role role)
{
	for (size_t i = 0; i < self->files.n; i++)
		if (self->files.v[i].role == role)
			return &self->files.v[i];
	return NULL;
}

size_t np_capture_count(const struct np_capture *self, enum np_role role)
{
	size_t n = 0;
	for (size_t i = 0; i < self->files.n; i++)
		n += self->files.v[i].role == role;
	return n;
}

void np_capture_kind(const struct np_capture *self, char *out, size_t size)
{
	static const struct {
		unsigned bit;
		const char *name;
	} parts[] = {
		{NP_HAS_TEXT, "text"}, {NP_HAS_DB, "db"},           {NP_HAS_ANALYSIS, "analysis"},
		{NP_HAS_RAW, "raw"},   {NP_HAS_CLUSTER, "results"},
	};
	int len = snprintf(out, size, "%s", np_framework_name(self->framework));
	const char *joint = "_";
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		bool told = self->formats & parts[i].bit;
		/* analysis.db beside the profiler's db goes without saying */
		if (parts[i].bit == NP_HAS_ANALYSIS && (self->formats & NP_HAS_DB))
			told = false;
		if (!told || len < 0 || (size_t)len >= size)
			continue;
		len += snprintf(out + len, size - (size_t)len, "%s%s", joint, parts[i].name);
		joint = "+";
	}
	if (*joint == '_' && len > 0 && (size_t)len < size)
		(void)snprintf(out + len, size - (size_t)len, "_empty");
}

bool np_capture_has_data(const struct np_capture *self)
{
	return self->formats & (NP_HAS_TEXT | NP_HAS_DB | NP_HAS_ANALYSIS);
}

/* ── loading ── */

#define GIVEN_BY_DB \
	((NP_LOAD_ALL & ~(unsigned)(NP_COMM_SUMMARY | NP_FLOWS | NP_STEP_TRACE)) | NP_HOST_CANN)

/*
 * Which reader answers which tables. Order matters: a table is taken from the
 * first file that has it, text before db, so that a capture with both is read
 * once.
 */
static const struct {
	enum np_role role;
	unsigned gives;
	enum np_status (*read)(const struct np_read *read, const char *path, struct np_err *err);
} readers[] = {
	{NP_ROLE_KERNELS, NP_KERNELS | NP_KERNEL_SHAPES | NP_KERNEL_METRICS, np_read_kernels_csv},
	{NP_ROLE_OP_SUMMARY, NP_KERNELS | NP_KERNEL_SHAPES | NP_KERNEL_METRICS,
         np_read_kernels_csv},
	{NP_ROLE_TRACE,
         NP_STEPS | NP_HOST_OPS | NP_HOST_ARGS | NP_HOST_CANN | NP_TASKS | NP_COMM | NP_COMM_OPS |
                 NP_FLOWS | NP_COUNTERS | NP_MSTX,
         np_read_trace},
	{NP_ROLE_PROFILER_DB, GIVEN_BY_DB, np_read_profiler_db},
	{NP_ROLE_MSPROF_DB, GIVEN_BY_DB, np_read_profiler_db},
	{NP_ROLE_TASK_TIME, NP_KERNELS, np_read_kernels_csv},
	{NP_ROLE_STEP_TRACE, NP_STEP_TRACE, np_read_step_trace},
	{NP_ROLE_COMM_JSON, NP_COMM_SUMMARY, np_read_comm_json},
	{NP_ROLE_COMM_MATRIX, NP_COMM_SUMMARY, np_read_comm_matrix},
	{NP_ROLE_OPERATOR_MEMORY, NP_MEMORY, np_read_op_memory},
	{NP_ROLE_MEMORY_RECORD, NP_MEMORY, np_read_memory},
	{NP_ROLE_NPU_MODULE_MEM, NP_MEMORY, np_read_memory},
	{NP_ROLE_ANALYSIS_DB, NP_COMM_SUMMARY | NP_STEP_TRACE, np_read_analysis_db},
};

enum { N_READERS = sizeof readers / sizeof *readers };

/* Roles that fill different tables of one load bit, so that one must not hide the other. */
static bool complements(enum np_role role, enum np_role other)
{
	bool comm = (role == NP_ROLE_COMM_JSON || role == NP_ROLE_COMM_MATRIX) &&
	            (other == NP_ROLE_COMM_JSON || other == NP_ROLE_COMM_MATRIX);
	bool memory = role >= NP_ROLE_OPERATOR_MEMORY && role <= NP_ROLE_NPU_MODULE_MEM &&
	              other >= NP_ROLE_OPERATOR_MEMORY && other <= NP_ROLE_NPU_MODULE_MEM;
	return comm || memory || role == other;
}

static enum np_status load_role(const struct np_capture *self, size_t which, struct np_read *read,
                                struct np_err *err)
{
	struct np_profile *profile = read->profile;
	for (size_t i = 0; i < self->files.n; i++) {
		const struct np_file *file = &self->files.v[i];
		if (file->role != readers[which].role || !file->readable)
			continue;
		struct np_err damage = {0};
		enum np_status status = readers[which].read(read, file->path, &damage);
		if (status == NP_E_NOMEM)
			return np_err_nomem(err);
		if (status != NP_OK)
			np_profile_diag(profile, "FILE_DAMAGED", file->path, 1, "%s (%s)",
			                damage.msg, damage.where);
	}
	return NP_OK;
}

/* What is being loaded, and which role has answered which load bit. */
struct loading {
	const struct np_capture *capture;
	struct np_profile *profile;
	unsigned what, threads;
	enum np_role answered_by[32];
};

static bool is_database(enum np_role role)
{
	return role == NP_ROLE_PROFILER_DB || role == NP_ROLE_MSPROF_DB;
}

static enum np_status load_from(struct loading *self, size_t r, unsigned what, struct np_err *err)
{
	unsigned wanted = what & readers[r].gives;
	for (unsigned bit = 0; bit < 32; bit++)
		if (self->answered_by[bit] != NP_ROLE_NONE &&
		    !complements(self->answered_by[bit], readers[r].role))
			wanted &= ~(1u << bit);
	if (!wanted || np_capture_count(self->capture, readers[r].role) == 0)
		return NP_OK;
	/* a database has the steps of its kernels in another table, text in the same */
	if (is_database(readers[r].role) && (wanted & NP_KERNELS))
		wanted |= NP_STEPS;
	if (!is_database(readers[r].role) && (wanted & NP_HOST_CANN))
		wanted |= NP_HOST_OPS; /* a trace has all layers in one list */
	wanted |= what & NP_KEEP_NA;
	struct np_read read = {self->profile, wanted, self->threads};
	unsigned before = self->profile->loaded;
	NP_TRY(load_role(self->capture, r, &read, err));
	if (self->profile->loaded & NP_HOST_OPS)
		self->profile->loaded |= NP_HOST_CANN;
	for (unsigned bit = 0; bit < 32; bit++)
		if ((self->profile->loaded & ~before) & (1u << bit))
			self->answered_by[bit] = readers[r].role;
	return NP_OK;
}

static enum np_status load_all(struct loading *self, struct np_err *err)
{
	/* Only a database has the connections, which are those of its own host ops, and the
	 * domains of mstx: for these it goes before the trace. */
	unsigned first = self->what & NP_MSTX, what = self->what;
	if (what & NP_HOST_CONNS)
		first |= what & (NP_HOST_OPS | NP_HOST_ARGS | NP_HOST_CONNS);
	if (first && np_capture_count(self->capture, NP_ROLE_TRACE)) {
		for (size_t r = 0; r < N_READERS; r++)
			if (is_database(readers[r].role))
				NP_TRY(load_from(self, r, first | (what & NP_KEEP_NA), err));
		what &= ~(self->profile->loaded & first) & ~(unsigned)NP_HOST_CONNS;
	}
	for (size_t r = 0; r < N_READERS; r++)
		NP_TRY(load_from(self, r, what, err));
	return NP_OK;
}

/*
 * Where each step's time begins at the earliest, it or any later one: never
 * falling, so that the last step that began before a time can be searched, in
 * whatever order the steps are. NULL: out of memory.
 */
static np_ns *earliest_starts(const struct np_steps *steps)
{
	np_ns *earliest = np_realloc(NULL, steps->n, sizeof *earliest);
	np_ns least = INT64_MAX;
	for (size_t s = steps->n; earliest && s-- > 0; earliest[s] = least)
		if (steps->host_start_ns[s] != NP_NO_I64 && steps->host_start_ns[s] < least)
			least = steps->host_start_ns[s];
	return earliest;
}

/* How many of the ascending values are at most `value`. */
static size_t count_up_to(const np_ns *values, size_t n, np_ns value)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (values[middle] <= value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Rows outside a Step Id column belong to the step whose host range covers them (A40). */
static bool assign_missing_steps(struct np_profile *profile)
{
	const struct np_steps *steps = &profile->steps;
	struct np_kernels *kernels = &profile->kernels;
	for (size_t i = 0; i < kernels->n; i++)
		if (kernels->step[i] != NP_NO_U32)
			return true; /* the exporter's own assignment stands */
	if (steps->n == 0)
		return true;
	np_ns *earliest = earliest_starts(steps);
	if (!earliest)
		return false;
	for (size_t i = 0; i < kernels->n; i++) {
		size_t s = count_up_to(earliest, steps->n, kernels->start_ns[i]);
		if (s == 0)
			continue;
		if (s < steps->n || kernels->start_ns[i] <= steps->host_end_ns[s - 1])
			kernels->step[i] = (uint32_t)(s - 1);
	}
	np_free(earliest);
	return true;
}

enum np_status np_capture_load(const struct np_capture *self, unsigned what, unsigned threads,
                               struct np_profile **out, struct np_err *err)
{
	*out = NULL;
	struct np_profile *profile = np_profile_new();
	if (!profile)
		return np_err_nomem(err);
	what = np_load_implied(what);
	struct loading loading = {self, profile, what, threads, {NP_ROLE_NONE}};
	enum np_status status = load_all(&loading, err);
	if (status == NP_OK && !np_profile_finish_steps(profile))
		status = np_err_nomem(err);
	if (status == NP_OK && (what & NP_KERNELS) &&
	    (!assign_missing_steps(profile) || !np_profile_finish_kernels(profile)))
		status = np_err_nomem(err);
	if (status != NP_OK) {
		np_profile_free(profile);
		return status;
	}
	*out = profile;
	return NP_OK;
}
