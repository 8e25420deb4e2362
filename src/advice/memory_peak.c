/*
 * Memory Peak Issues (requirements R92 in the rules): what the caching allocator reserves at
 * its peak.
 *
 *   reserved ─────────────┐  fragmentation: reserved - allocated at the sample with the
 *   allocated ────────┐   │  most reserved; close to running out: reserved, of the device
 *   0                 │   │            device
 */
#include <math.h>

#include "advice/host.h"
#include "report/lang.h"

static const struct np_column columns[] = {
	{"component", "", NP_COL_TEXT, "PTA: the allocator of torch_npu; APP: the whole process"},
	{"timestamp", "us", NP_COL_INT, "of the peak"},
	{"reserved(MB)", "", NP_COL_REAL, "at the peak"},
	{"allocated(MB)", "", NP_COL_REAL, "at the peak"},
	{"active(MB)", "", NP_COL_REAL, "at the peak"},
	{"fragmentation(MB)", "", NP_COL_REAL, "reserved - allocated"},
	{"fragmentation ratio", "", NP_COL_PERCENT, "of reserved"},
	{"device ratio", "", NP_COL_PERCENT, "reserved, of memory_device_mib"},
};

struct peak {
	bool found;
	size_t row;
	double reserved, allocated, active;
};

/* Of equal peaks the one with most allocated: the least that must be called a loss. */
static struct peak peak_of(const struct np_advice *self, const char *component)
{
	const struct np_profile *profile = self->rank->profile;
	const struct np_memory *memory = &profile->memory;
	uint32_t id = np_intern_find(&profile->strings, np_str_of(component));
	struct peak peak = {.found = false};
	for (size_t i = 0; id != NP_ID_NONE && i < memory->n; i++) {
		double reserved = memory->reserved_mb[i], allocated = memory->allocated_mb[i];
		if (memory->component[i] != id || !(reserved > 0 && reserved < 1e9) ||
		    (memory->device[i] != NP_NO_U32 && self->rank->device != NP_NO_U32 &&
		     memory->device[i] != self->rank->device))
			continue;
		if (peak.found && (reserved < peak.reserved ||
		                   (reserved == peak.reserved && !(allocated > peak.allocated))))
			continue;
		peak = (struct peak){true, i, reserved, allocated, memory->active_mb[i]};
	}
	return peak;
}

static void put(const struct np_advice *self, struct np_table *table, const char *component,
                const struct peak *peak)
{
	double lost = peak->reserved - peak->allocated;
	np_cell_cstr(table, component);
	np_cell_int(table, self->rank->profile->memory.ts_ns[peak->row] / 1000);
	np_cell_real(table, peak->reserved);
	np_cell_real(table, peak->allocated);
	np_cell_real(table, peak->active);
	np_cell_real(table, lost);
	np_cell_real(table, lost / peak->reserved);
	np_cell_real(table, peak->reserved / np_rule_value(self, "memory_device_mib"));
}

static void tell_evidence(const struct np_advice *self, struct np_finding *finding,
                          const char *component, const struct peak *peak)
{
	np_finding_evidence(finding, NULL, "Total Reserved(MB), Total Allocated(MB)", component,
	                    "%.0f MiB reserved, %.0f MiB allocated at %lld ns", peak->reserved,
	                    peak->allocated,
	                    (long long)self->rank->profile->memory.ts_ns[peak->row]);
}

/* The allocator's own peak; time it does not cost, so no gain in us. */
static bool fragmented(struct np_advice *self, const struct np_checker *checker,
                       const struct peak *peak)
{
	struct np_problem_text text = {
		.code = "ADVICE_MEMORY_FRAGMENTATION",
		.count = 1,
		.total_us = NAN,
		.gain_us = NAN,
		.advice = NP_N("Let blocks grow instead of piling up: "
	                       "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True (and no "
	                       "max_split_size_mb with it); tensors of few sizes."),
	};
	double lost = peak->reserved - peak->allocated;
	if (!peak->found || isnan(peak->allocated) ||
	    lost < np_rule_value(self, "memory_fragmentation_mib") ||
	    lost < np_rule_value(self, "memory_fragmentation") * peak->reserved)
		return false;
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"%.0f MiB of device memory are reserved and not used at the peak (%.0f %% of %.0f "
		"MiB): fragmentation",
		lost, lost / peak->reserved * 100, peak->reserved);
	tell_evidence(self, finding, "PTA", peak);
	return true;
}

static bool nearly_full(struct np_advice *self, const struct np_checker *checker,
                        const char *component, const struct peak *peak)
{
	struct np_problem_text text = {
		.code = "ADVICE_MEMORY_PEAK",
		.count = 1,
		.total_us = NAN,
		.gain_us = NAN,
		.advice =
			NP_N("It may run out, and the allocator frees and retries before it does: "
	                     "smaller micro batch, recomputation, a sharded optimizer; "
	                     "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True."),
	};
	double device = np_rule_value(self, "memory_device_mib");
	if (!peak->found || !(device > 0) ||
	    peak->reserved < np_rule_value(self, "memory_peak") * device)
		return false;
	struct np_finding *finding = np_advice_problem(
		self, checker, &text,
		"%.0f MiB of device memory are in use at the peak, of %.0f MiB (rule "
		"memory_device_mib)",
		peak->reserved, device);
	tell_evidence(self, finding, component, peak);
	return true;
}

static void run(struct np_advice *self, const struct np_checker *checker)
{
	struct peak torch = peak_of(self, "PTA"), process = peak_of(self, "APP");
	bool use_process = process.found && (!torch.found || process.reserved > torch.reserved);
	const struct peak *most = use_process ? &process : &torch;
	bool told = fragmented(self, checker, &torch);
	told |= nearly_full(self, checker, use_process ? "APP" : "PTA", most);
	if (!told)
		return;
	struct np_table *table = NP_ADVICE_TABLE(self, checker, columns);
	if (torch.found)
		put(self, table, "PTA", &torch);
	if (process.found)
		put(self, table, "APP", &process);
}

const struct np_checker np_checker_memory_peak = {
	.name = "memory_peak",
	.dimension = NP_DIM_MEMORY,
	.category = "Memory Peak Issues",
	.category_zh = "内存峰值问题",
	.run = run,
	.load = NP_MEMORY,
};
