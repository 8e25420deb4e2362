#include "capture/kernel_header.h"

static const char *const alternatives[NP_N_KCOLS] = {
#define X(id, names) names,
	NP_KCOL_MAP(X)
#undef X
};

const char *np_kcol_names(enum np_kcol column)
{
	return alternatives[column];
}

const char *np_unit_name(enum np_unit unit)
{
	static const char *const names[] = {"vec", "mac", "mte2", "mte3"};
	return names[unit];
}

const char *np_pmu_group_name(enum np_pmu_group group)
{
	static const char *const names[] = {
		"AiCoreNone",
		"PipeUtilization",
		"PipeUtilization (910A)",
		"ArithmeticUtilization",
		"Memory",
		"MemoryL0",
		"MemoryUB",
		"ResourceConflictRatio",
		"L2Cache",
		"MemoryAccess",
		"unknown",
	};
	return names[group];
}

/* First of the alternatives "a|b|c" that the header has. */
static int find(const struct np_csv *csv, const char *names)
{
	np_str rest = np_str_of(names);
	while (rest.len) {
		np_str name = np_str_cut(rest, '|', &rest);
		for (size_t i = 0; i < np_csv_n_columns(csv); i++)
			if (np_str_eq(np_csv_column_name(csv, i), name))
				return (int)i;
	}
	return -1;
}

static np_str without_core_prefix(np_str name)
{
	if (np_str_starts(name, NP_STR("aic_")) || np_str_starts(name, NP_STR("aiv_")))
		return np_str_from(name, 4);
	return name;
}

enum np_unit np_unit_of(np_str column_name)
{
	np_str plain = without_core_prefix(column_name);
	for (enum np_unit unit = 0; unit < NP_N_UNITS; unit++) {
		np_str stem = np_str_of(np_unit_name(unit));
		if (np_str_starts(plain, stem) && np_str_is(np_str_from(plain, stem.len), "_ratio"))
			return unit;
	}
	return NP_N_UNITS;
}

/* One column that only this group has, without core prefix (torch_npu.md §3.1). */
static const struct {
	const char *mark;
	enum np_pmu_group group;
} marks[] = {
	{"mac_fp16_ratio", NP_PMU_ARITHMETIC},
	{"vec_fp32_ratio", NP_PMU_ARITHMETIC},
	{"cube_fops", NP_PMU_ARITHMETIC},
	{"l0a_read_bw(GB/s)", NP_PMU_MEMORY_L0},
	{"main_mem_read_bw(GB/s)", NP_PMU_MEMORY},
	{"ub_read_bw_vector(GB/s)", NP_PMU_MEMORY_UB},
	{"ub_read_bw_scalar(GB/s)", NP_PMU_MEMORY_UB},
	{"vec_bankgroup_cflt_ratio", NP_PMU_RESOURCE_CONFLICT},
	{"vec_bank_cflt_ratio", NP_PMU_RESOURCE_CONFLICT},
	{"vec_resc_cflt_ratio", NP_PMU_RESOURCE_CONFLICT},
	{"write_cache_hit", NP_PMU_L2_CACHE},
	{"read_local_l2_hit", NP_PMU_L2_CACHE},
	{"read_main_memory_datas(KB)", NP_PMU_MEMORY_ACCESS},
	{"mte2_ratio", NP_PMU_PIPE},
	{"vec_ratio", NP_PMU_PIPE},
};

static enum np_pmu_group group_of(const struct np_csv *csv, size_t n_metrics)
{
	for (size_t m = 0; m < sizeof marks / sizeof *marks; m++)
		for (size_t i = 0; i < np_csv_n_columns(csv); i++) {
			np_str name = np_csv_column_name(csv, i);
			np_str plain = without_core_prefix(name);
			if (!np_str_is(plain, marks[m].mark))
				continue;
			bool prefixed = plain.len != name.len;
			return marks[m].group == NP_PMU_PIPE && !prefixed ? NP_PMU_PIPE_910A
			                                                  : marks[m].group;
		}
	return n_metrics ? NP_PMU_OTHER : NP_PMU_NONE;
}

/* Is it one of "a|b|c"? */
static bool is_among(np_str name, const char *names)
{
	np_str rest = np_str_of(names);
	while (rest.len)
		if (np_str_eq(np_str_cut(rest, '|', &rest), name))
			return true;
	return false;
}

bool np_kernel_header_is_metric(const struct np_kernel_header *header, size_t i, np_str name)
{
	if (name.len == 0)
		return false;
	/* by name as well: the second "Duration(us)" of a header is no metric either */
	for (size_t k = 0; k < NP_N_KCOLS; k++)
		if (header->column[k] == (int)i || is_among(name, alternatives[k]))
			return false;
	return true;
}

void np_kernel_header_read(const struct np_csv *csv, struct np_kernel_header *out)
{
	*out = (struct np_kernel_header){.n_columns = np_csv_n_columns(csv)};
	for (size_t k = 0; k < NP_N_KCOLS; k++)
		out->column[k] = find(csv, alternatives[k]);
	out->op_summary_names = np_csv_find(csv, "Op Name") >= 0;
	for (size_t i = 0; i < out->n_columns; i++) {
		np_str name = np_csv_column_name(csv, i);
		if (!np_kernel_header_is_metric(out, i, name))
			continue;
		out->n_metrics++;
		enum np_unit unit = np_unit_of(name);
		if (unit != NP_N_UNITS)
			out->units |= 1u << unit;
	}
	out->group = group_of(csv, out->n_metrics);
}
