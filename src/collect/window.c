#include "collect/window.h"

#include <errno.h>
#include <math.h>
#include <sys/statfs.h>

#include "report/lang.h"

#define KB  1e3
#define MB  1e6
#define GiB (1024.0 * 1024 * 1024)

/*
 * Measured on public captures (one step of a small image network, 191 kernels, 2 ranks,
 * with stacks and memory): all files of ASCEND_PROFILER_OUTPUT by the kernels.
 */
#define TEXT_LEVEL0 (12.6 * KB)
#define TEXT_LEVEL2 (15.8 * KB)
#define DB_LEVEL0   (3.6 * KB)
#define DB_LEVEL2   (4.3 * KB)

/* stacks and modules off took a capture from 651 to 156 MB (vllm-ascend pull 6141) */
#define STACK_FACTOR (651.0 / 156)

/* one denoising step's trace_view.json */
static const struct np_size_range denoising_step = {140 * MB, 148 * MB};

enum {
	STEPS_TIMED = 5,    /* R16: what a script of one's own should record at least */
	SECONDS_LONG = 5,   /* 5 s of 64 ranks were 25 GiB */
	TOTAL_LARGE = 20,   /* GiB over all ranks: hours of parsing and copying */
	SHORT_CAPTURES = 3, /* R85 */
};

struct np_size_range np_window_per_kernel(int level, bool with_stack, bool db)
{
	/* level 1 lies between the two that were measured */
	double first = db ? DB_LEVEL0 : TEXT_LEVEL0, second = db ? DB_LEVEL2 : TEXT_LEVEL2;
	struct np_size_range range = {level == 2 ? second : first, level == 0 ? first : second};
	if (!with_stack)
		range.low /= STACK_FACTOR;
	return range;
}

struct np_size_range np_window_per_second(void)
{
	/* vllm-ascend issue 16625, 64 ranks: 2 s were 1.8 GiB, 13 s (or more) 74.8 GiB */
	return (struct np_size_range){1.8 * GiB / 2 / 64, 74.8 * GiB / 13 / 64};
}

struct plan {
	const struct np_plan_window *options;
	struct np_report *report;
	struct np_table *sizes;
	struct np_size_range all; /* of all ranks, the bases that count together */
	double rank_high;
};

/* ── tables ── */

static const struct np_column size_columns[] = {
	{"basis", "", NP_COL_TEXT, "what the estimate goes by"},
	{"rates", "", NP_COL_TEXT, "numbers of the rates behind it"},
	{"rank_low", "bytes", NP_COL_BYTES, "of one rank, lower end"},
	{"rank_high", "bytes", NP_COL_BYTES, "of one rank, upper end"},
	{"all_low", "bytes", NP_COL_BYTES, "of all ranks that record, lower end"},
	{"all_high", "bytes", NP_COL_BYTES, "of all ranks that record, upper end"},
	{"used", "", NP_COL_BOOL, "the findings go by it; else it is for comparison"},
};

static int64_t bytes(double value)
{
	return value < 9e18 ? (int64_t)value : INT64_MAX;
}

static void add_size(struct plan *self, const char *basis, const char *rates,
                     struct np_size_range rank, bool counts)
{
	double ranks = (double)self->options->ranks;
	np_cell_word(self->sizes, basis);
	np_cell_cstr(self->sizes, rates);
	np_cell_int(self->sizes, bytes(rank.low));
	np_cell_int(self->sizes, bytes(rank.high));
	np_cell_int(self->sizes, bytes(rank.low * ranks));
	np_cell_int(self->sizes, bytes(rank.high * ranks));
	np_cell_bool(self->sizes, counts);
	if (!counts)
		return;
	/* two bases are two opinions: the ends are the outermost ones */
	if (self->all.low == 0 || rank.low * ranks < self->all.low)
		self->all.low = rank.low * ranks;
	if (rank.high * ranks > self->all.high)
		self->all.high = rank.high * ranks;
	if (rank.high > self->rank_high)
		self->rank_high = rank.high;
}

static struct np_size_range times(struct np_size_range range, double factor)
{
	return (struct np_size_range){range.low * factor, range.high * factor};
}

static void add_sizes(struct plan *self)
{
	const struct np_plan_window *o = self->options;
	double kernels = (double)o->kernels * (double)o->active;
	double seconds = o->step_ms * (double)o->active / 1e3;
	self->sizes = NP_REPORT_TABLE(self->report, "sizes", "Estimated size", size_columns);
	if (o->kernels) {
		add_size(self, NP_N("kernels, text"), "1, 3",
		         times(np_window_per_kernel(o->level, o->with_stack, false), kernels),
		         true);
		add_size(self, NP_N("kernels, db"), "2, 3",
		         times(np_window_per_kernel(o->level, o->with_stack, true), kernels),
		         false);
	}
	if (seconds > 0)
		add_size(self, NP_N("recorded time"), "4", times(np_window_per_second(), seconds),
		         true);
	bool alone = self->all.high == 0;
	add_size(self, NP_N("denoising steps"), "5", times(denoising_step, (double)o->active),
	         alone);
}

static const struct np_column window_columns[] = {
	{"active", "", NP_COL_INT, "recorded steps"},
	{"window_s", "s", NP_COL_REAL, "active x step_ms"},
	{"ranks", "", NP_COL_INT, "ranks that record"},
	{"level", "", NP_COL_INT, "profiler_level"},
	{"with_stack", "", NP_COL_BOOL, "Python stacks are recorded"},
};

static void add_window(struct plan *self)
{
	const struct np_plan_window *o = self->options;
	struct np_table *table = NP_REPORT_TABLE(self->report, "window", "Window", window_columns);
	np_cell_int(table, (int64_t)o->active);
	np_cell_real(table, o->step_ms > 0 ? o->step_ms * (double)o->active / 1e3 : NAN);
	np_cell_int(table, (int64_t)o->ranks);
	np_cell_int(table, o->level);
	np_cell_bool(table, o->with_stack);
}

static const struct np_column rate_columns[] = {
	{"no", "", NP_COL_INT, "as in the column rates of the sizes"},
	{"per", "", NP_COL_TEXT, "what it is a rate of"},
	{"observed", "", NP_COL_TEXT, "how much"},
	{"source", "", NP_COL_TEXT, "where"},
};

static void add_rates(struct plan *self)
{
	static const char *const rates[][3] = {
		{NP_N("kernel, text, with stacks"), "12.6-15.8 kB", "Ascend/msinsight test data"},
		{NP_N("kernel, db, with stacks"), "3.6-4.3 kB", "Ascend/msinsight test data"},
		{NP_N("stacks, modules: times 4.2"), "651 : 156 MB",
	         "vllm-project/vllm-ascend#6141"},
		{NP_N("rank and second, raw"), "14-92 MiB", "vllm-project/vllm-ascend#16625"},
		{NP_N("denoising step, trace"), "140-148 MB", NP_N("a field guide")},
	};
	struct np_table *table =
		NP_REPORT_TABLE(self->report, "rates", "Rates behind the estimate", rate_columns);
	for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
		np_cell_int(table, (int64_t)i + 1);
		np_cell_word(table, rates[i][0]);
		np_cell_cstr(table, rates[i][1]);
		np_cell_word(table, rates[i][2]);
	}
}

static const struct np_column step_columns[] = {
	{"case", "", NP_COL_TEXT, "what is recorded"},
	{"warmup", "", NP_COL_INT, "steps to run before the profiler starts"},
	{"active", "", NP_COL_INT, "steps to record"},
};

/* R6, R15, R16, R56, R67 */
static void add_steps(struct plan *self)
{
	static const struct {
		const char *what;
		int warmup, active;
	} cases[] = {
		{NP_N("a script of one's own, times to be compared"), 5, STEPS_TIMED},
		{NP_N("the same while graphs are compiled (JIT)"), 10, STEPS_TIMED},
		{NP_N("a hook in somebody else's program"), 5, 1},
		{NP_N("few steps: eager, or graphs that are stable"), 1, 1},
		{NP_N("prefill, which a request has once"), 1, 1},
		{NP_N("decode, after a prefill"), 1, 10},
	};
	struct np_table *table =
		NP_REPORT_TABLE(self->report, "steps", "How many steps", step_columns);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		np_cell_word(table, cases[i].what);
		np_cell_int(table, cases[i].warmup);
		np_cell_int(table, cases[i].active);
	}
}

/* ── what to say ── */

/* Steps that stay below TOTAL_LARGE by the upper end, and below SECONDS_LONG. */
static uint64_t fitting_steps(const struct plan *self)
{
	const struct np_plan_window *o = self->options;
	double steps = (double)o->active * (TOTAL_LARGE * GiB / self->all.high);
	double by_time = o->step_ms > 0 ? SECONDS_LONG * 1e3 / o->step_ms : steps;
	if (by_time < steps)
		steps = by_time;
	if (steps > (double)o->active)
		return o->active;
	return steps < 1 ? 1 : (uint64_t)steps;
}

static void tell_large(struct plan *self)
{
	const struct np_plan_window *o = self->options;
	double seconds = o->step_ms * (double)o->active / 1e3;
	bool large = self->all.high > TOTAL_LARGE * GiB;
	if (!large && seconds <= SECONDS_LONG)
		return;
	struct np_finding *finding = NULL;
	if (large)
		finding = np_report_finding(self->report, "CAPTURE_LARGE", NP_WARNING,
		                            "%llu steps of %llu ranks may take up to %.1f GiB",
		                            (unsigned long long)o->active,
		                            (unsigned long long)o->ranks, self->all.high / GiB);
	else
		finding = np_report_finding(self->report, "CAPTURE_LARGE", NP_WARNING,
		                            "%llu steps are %.1f s of recording",
		                            (unsigned long long)o->active, seconds);
	np_finding_detail(finding, "Large captures are parsed for hours, if at all: services have "
	                           "hung in stop_profile for 20 minutes, and analyses have taken "
	                           "50 minutes.");
	uint64_t steps = fitting_steps(self);
	unsigned long long pause = steps * SHORT_CAPTURES;
	np_finding_advice(finding,
	                  "several short captures say more than a long one: fewer steps%s, fewer "
	                  "ranks (one of each kind), export_type db for many ranks",
	                  o->with_stack ? np_tr(", no stacks (they make it four times as large)")
	                                : "");
	if (steps < o->active)
		np_finding_command(finding,
		                   "npuprof plan schedule --wait %llu --warmup 1 --active %llu "
		                   "--repeat %d",
		                   pause, (unsigned long long)steps, SHORT_CAPTURES);
}

static void tell_slow_parse(struct plan *self)
{
	if (self->rank_high < GiB)
		return;
	struct np_finding *finding = np_report_finding(
		self->report, "PARSE_SLOW", NP_WARNING,
		"a rank may have %.1f GiB: from 1 GiB on torch_npu expects more than 30 minutes of "
		"parsing",
		self->rank_high / GiB);
	np_finding_advice(finding, "record without analysing (analyse_flag=False) and export "
	                           "offline, in a process of its own");
	np_finding_command(finding, "python3 -c \"from torch_npu.profiler.profiler import analyse; "
	                            "analyse('DIR_ascend_pt', max_process_number=8)\"");
}

/* File systems over a network, by statfs(2): many ranks writing there slow each other. */
static const char *network_name(long type)
{
	static const struct {
		uint32_t type;
		const char *name;
	} names[] = {{0x6969, "NFS"},        {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB"},
	             {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"}, {0x00C36400, "Ceph"},
	             {0x65735546, "FUSE"},   {0x01021997, "9P"},   {0x19830326, "BeeGFS"}};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].type == (uint32_t)type)
			return names[i].name;
	return NULL;
}

static void tell_storage(struct plan *self, const char *network)
{
	if (!network)
		return;
	struct np_finding *finding = np_report_finding(self->report, "SHARED_STORAGE", NP_WARNING,
	                                               "%s is on %s, storage over a network",
	                                               self->options->disk, network);
	np_finding_detail(finding, "Ranks that write there slow each other, and the time stands in "
	                           "the capture; some such file systems break the export as well.");
	np_finding_advice(finding, "record to a local disk and copy afterwards");
}

static void judge_disk(struct plan *self, double available)
{
	struct np_report *report = self->report;
	double low = self->all.low, high = self->all.high;
	report->verdict = NP_VERDICT_PASS;
	if (available >= high)
		return;
	bool lacks = available < low;
	struct np_finding *finding =
		np_report_finding(report, "DISK_SHORT", lacks ? NP_ERROR : NP_WARNING,
	                          "%.1f GiB are free in %s, the capture takes %.1f to %.1f GiB",
	                          available / GiB, self->options->disk, low / GiB, high / GiB);
	np_finding_advice(finding, "record fewer steps or ranks, or into another directory; a disk "
	                           "that runs full leaves captures that end midway");
	np_finding_command(finding, "df -h %s", np_shell_quote(report, self->options->disk));
	report->verdict = lacks ? NP_VERDICT_FAIL : NP_VERDICT_UNKNOWN;
	report->exit_code = lacks ? 1 : 3;
}

static enum np_status look_at_disk(struct plan *self, struct np_err *err)
{
	struct statfs fs;
	if (!self->options->disk)
		return NP_OK;
	if (statfs(self->options->disk, &fs) != 0)
		return np_err_sys(err, errno, self->options->disk, "tell the free space");
	np_report_input(self->report, self->options->disk);
	tell_storage(self, network_name((long)fs.f_type));
	judge_disk(self, (double)fs.f_bavail * (double)fs.f_bsize);
	return NP_OK;
}

static void add_notes(struct plan *self)
{
	const struct np_plan_window *o = self->options;
	struct np_report *report = self->report;
	np_report_note(report,
	               "rate 1 is of one small image network: level 0 to level 2, level 1 "
	               "between; without stacks the lower end is divided by rate 3. Rate 4: "
	               "64 ranks, 2 s 1.8 GiB, 5 s 25.1 GiB (2.7 GiB compressed), 13 to 29 s "
	               "48.3 and 74.8 GiB");
	np_report_note(report, "these are estimates: the first short capture of your own model is "
	                       "the better rate (npuprof info tells sizes and kernels)");
	if (o->kernels == 0 && o->step_ms <= 0)
		np_report_note(report, "--kernels and --step-ms give estimates for your model");
	np_report_note(report, "where it is not known when it happens: several short captures, not "
	                       "one with a large active");
}

enum np_status np_plan_window(const struct np_plan_window *self, struct np_report *report,
                              struct np_err *err)
{
	enum { MOST = 1000000000 };
	struct plan plan = {.options = self, .report = report};
	if (self->active < 1 || self->active > MOST || self->ranks < 1 || self->ranks > MOST ||
	    self->kernels > MOST)
		return np_err_set(err, NP_E_USAGE, NULL,
		                  "--active, --ranks and --kernels are "
		                  "numbers from 1 to %d",
		                  MOST);
	if (self->level < 0 || self->level > 2)
		return np_err_set(err, NP_E_USAGE, NULL, "--level is 0, 1 or 2");
	if (!(self->step_ms >= 0 && self->step_ms < MOST))
		return np_err_set(err, NP_E_USAGE, NULL, "--step-ms is a time in milliseconds");
	add_window(&plan);
	add_sizes(&plan);
	add_rates(&plan);
	add_steps(&plan);
	tell_large(&plan);
	tell_slow_parse(&plan);
	NP_TRY(look_at_disk(&plan, err));
	add_notes(&plan);
	return NP_OK;
}
