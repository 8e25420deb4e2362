#include "collect/devices.h"

#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "report/lang.h"

enum { DEFAULT_TIMEOUT_MS = 60000, MAX_TEXT = 8 << 20, EXIT_FAILED = 1, EXIT_INPUT = 4 };

struct source {
	const char *name; /* "node7", "local", or the file */
	struct np_npu_set set;
	struct np_err err;
	enum np_status status;
	size_t *groups;
	const char **busy;
	enum np_npu_grouping grouping;
};

struct work {
	const struct np_devices_options *options;
	struct source *sources;
};

/* ── asking ── */

static enum np_status failed(const struct np_outcome *outcome, const char *where,
                             struct np_err *err)
{
	np_str said = np_str_trim(np_buf_str(&outcome->err)), rest;
	said = np_str_trim(np_str_cut(said, '\n', &rest));
	if (said.len > 300)
		said.len = 300;
	return np_err_set(err, outcome->status == 127 ? NP_E_NOTFOUND : NP_E_IO, where,
	                  "npu-smi info: exit status %d: %.*s", outcome->status, NP_FMT(said));
}

enum np_status np_devices_ask(struct np_transport *transport, const struct np_container *container,
                              uint64_t timeout_ms, struct np_npu_set *out, struct np_err *err)
{
	/* where only root has it in PATH */
	static const char script[] =
		"PATH=$PATH:/usr/local/bin:/usr/local/sbin:/usr/sbin; export PATH; LC_ALL=C; "
		"export "
		"LC_ALL; command -v npu-smi >/dev/null || { echo 'there is no npu-smi in PATH' "
		">&2; "
		"exit 127; }; npu-smi info; s=$?; echo; npu-smi info -m 2>/dev/null; echo; npu-smi "
		"info -t topo 2>/dev/null; exit $s";
	const char *const plain[] = {"sh", "-c", script, NULL};
	struct np_outcome outcome;
	struct np_err own = {0};
	struct np_arena arena;
	np_arena_init(&arena);
	const char *const *argv =
		container ? np_container_argv(&arena, container, plain, false) : plain;
	const struct np_command command = {.argv = argv,
	                                   .what = "npu-smi info",
	                                   .timeout_ms =
	                                           timeout_ms ? timeout_ms : DEFAULT_TIMEOUT_MS,
	                                   .repeatable = true};
	if (!argv) {
		np_arena_release(&arena);
		return np_err_nomem(err);
	}
	enum np_status status = np_transport_run(transport, &command, &outcome, err);
	np_arena_release(&arena);
	if (status == NP_OK) {
		np_str text = np_buf_str(&outcome.out);
		status = np_npu_parse(text, transport->name, out, &own);
		/* a table is a table, whatever npu-smi thinks of its success */
		if (status != NP_OK && outcome.status != 0 && np_str_trim(text).len == 0)
			status = failed(&outcome, transport->name, &own);
		if (status != NP_OK && err)
			*err = own;
	}
	np_outcome_release(&outcome);
	return status;
}

static enum np_status ask(void *ctx, size_t i, struct np_transport *transport, struct np_err *err)
{
	struct work *work = ctx;
	return np_devices_ask(transport, work->options->container, work->options->timeout_ms,
	                      &work->sources[i].set, err);
}

static enum np_status read_recorded(struct source *source, struct np_err *err)
{
	struct np_buf bytes = {0};
	np_str text = {0};
	bool is_stdin = strcmp(source->name, "-") == 0;
	if (is_stdin)
		source->name = "stdin";
	enum np_status status =
		is_stdin ? np_stdin_slurp(&bytes, MAX_TEXT, err)
			 : np_file_slurp(&source->set.arena, source->name, MAX_TEXT, &text, err);
	if (status == NP_OK)
		status = np_npu_parse(is_stdin ? np_buf_str(&bytes) : text, source->name,
		                      &source->set, err);
	np_buf_release(&bytes);
	return status;
}

/* ── judging one source ── */

static enum np_status judge(struct source *source, uint64_t max_used_mb)
{
	struct np_npu_set *set = &source->set;
	size_t n = set->devices.n;
	source->groups = np_arena_zalloc(&set->arena, (n + 1) * sizeof *source->groups);
	source->busy = np_arena_zalloc(&set->arena, (n + 1) * sizeof *source->busy);
	if (!source->groups || !source->busy)
		return np_err_nomem(&source->err);
	source->grouping = np_npu_groups(set, source->groups);
	for (size_t i = 0; i < n; i++) {
		source->busy[i] = np_npu_busy(set, i, max_used_mb);
		if (!source->busy[i])
			return np_err_nomem(&source->err);
	}
	return NP_OK;
}

/* ── the tables ── */

static const struct np_column device_columns[] = {
	{"host", "", NP_COL_TEXT, "as it was named; local is this machine"},
	{"npu", "", NP_COL_INT, "npu-smi's NPU ID: a physical number"},
	{"chip", "", NP_COL_INT, "chip of this NPU"},
	{"logical", "", NP_COL_INT, "what ASCEND_RT_VISIBLE_DEVICES wants"},
	{"physical", "", NP_COL_INT, "Phy-ID, as in /dev/davinciN; empty where it is not told"},
	{"card_group", "", NP_COL_INT, "devices with one number reach each other without PCIe"},
	{"name", "", NP_COL_TEXT, "of the chip"},
	{"health", "", NP_COL_TEXT, "as npu-smi says"},
	{"free", "", NP_COL_BOOL, "healthy and without work"},
	{"aicore", "%", NP_COL_INT, "load of the AI cores"},
	{"used", "MB", NP_COL_INT, "HBM in use; DDR where there is no HBM"},
	{"total", "MB", NP_COL_INT, "HBM; DDR where there is no HBM"},
	{"processes", "", NP_COL_INT, "that npu-smi sees on it"},
	{"reason", "", NP_COL_TEXT, "why it is not free"},
};

static const struct np_column sensor_columns[] = {
	{"host", "", NP_COL_TEXT, "as it was named"},
	{"npu", "", NP_COL_INT, "npu-smi's NPU ID"},
	{"chip", "", NP_COL_INT, "chip of this NPU"},
	{"bus", "", NP_COL_TEXT, "PCIe address"},
	{"temperature", "C", NP_COL_INT, "of the chip"},
	{"power", "W", NP_COL_REAL, "of the NPU; only its first chip tells it"},
	{"ddr_used", "MB", NP_COL_INT, "Memory-Usage; 0 of 0 on most chips with HBM"},
	{"ddr_total", "MB", NP_COL_INT, "Memory-Usage"},
	{"hugepages_used", "", NP_COL_INT, "pages"},
	{"hugepages_total", "", NP_COL_INT, "pages"},
};

static const struct np_column process_columns[] = {
	{"host", "", NP_COL_TEXT, "as it was named"},
	{"npu", "", NP_COL_INT, "npu-smi's NPU ID"},
	{"chip", "", NP_COL_INT, "chip of this NPU"},
	{"pid", "", NP_COL_INT, "process id on the host"},
	{"pid_in_container", "", NP_COL_INT, "process id in its container, where it is told"},
	{"name", "", NP_COL_TEXT, "empty for a process of another container"},
	{"memory", "MB", NP_COL_INT, "of the device that it holds"},
};

static const struct np_column picked_columns[] = {
	{"host", "", NP_COL_TEXT, "as it was named"},
	{"visible_devices", "", NP_COL_TEXT, "value for ASCEND_RT_VISIBLE_DEVICES: logical ids"},
	{"physical", "", NP_COL_TEXT, "the same devices by npu-smi: NPU, or NPU.chip"},
	{"card_group", "", NP_COL_INT, "that they are from"},
	{"free", "", NP_COL_INT, "devices that were free"},
};

static void id_cell(struct np_table *table, int64_t id)
{
	if (id == NP_NPU_NONE)
		np_cell_na(table);
	else
		np_cell_int(table, id);
}

static void rounded_cell(struct np_table *table, double value)
{
	if (isnan(value))
		np_cell_na(table);
	else
		np_cell_int(table, (int64_t)lround(value));
}

static void device_row(struct np_table *table, const struct source *source, size_t i)
{
	const struct np_npu_device *device = &source->set.devices.v[i];
	bool hbm = device->hbm_total_mb > 0;
	np_cell_cstr(table, source->name);
	np_cell_int(table, device->npu);
	np_cell_int(table, device->chip);
	np_cell_int(table, np_npu_logical(&source->set, i));
	id_cell(table, device->phy);
	np_cell_int(table, (int64_t)source->groups[i]);
	np_cell_text(table, device->name);
	np_cell_text(table, device->health);
	np_cell_bool(table, !*source->busy[i]);
	rounded_cell(table, device->aicore);
	id_cell(table, hbm ? device->hbm_used_mb : device->mem_used_mb);
	id_cell(table, hbm ? device->hbm_total_mb : device->mem_total_mb);
	if (device->processes_told)
		np_cell_int(table, (int64_t)device->n_processes);
	else
		np_cell_na(table);
	np_cell_cstr(table, *source->busy[i] ? source->busy[i] : NULL);
}

static void sensor_row(struct np_table *table, const struct source *source, size_t i)
{
	const struct np_npu_device *device = &source->set.devices.v[i];
	np_cell_cstr(table, source->name);
	np_cell_int(table, device->npu);
	np_cell_int(table, device->chip);
	np_cell_text(table, device->bus);
	rounded_cell(table, device->temp_c);
	np_cell_real(table, device->power_w);
	id_cell(table, device->mem_used_mb);
	id_cell(table, device->mem_total_mb);
	id_cell(table, device->huge_used);
	id_cell(table, device->huge_total);
}

static void process_rows(struct np_table *table, const struct source *source)
{
	for (size_t i = 0; i < source->set.processes.n; i++) {
		const struct np_npu_process *process = &source->set.processes.v[i];
		np_cell_cstr(table, source->name);
		np_cell_int(table, process->npu);
		np_cell_int(table, process->chip);
		np_cell_int(table, process->pid);
		id_cell(table, process->container_pid);
		np_cell_text(table, process->name);
		id_cell(table, process->memory_mb);
	}
}

static void tell_health(struct np_report *report, const struct source *source)
{
	for (size_t i = 0; i < source->set.devices.n; i++) {
		const struct np_npu_device *device = &source->set.devices.v[i];
		if (np_str_ieq(device->health, NP_STR("OK")))
			continue;
		struct np_finding *finding = np_report_finding(
			report, "DEVICE_UNHEALTHY", NP_WARNING,
			"%s: NPU %lld chip %lld: health %.*s", source->name, (long long)device->npu,
			(long long)device->chip, NP_FMT(device->health));
		np_finding_advice(finding,
		                  "Ask again: health may flicker, also after a UB link error. "
		                  "Where it stays, leave this device out, and compare only runs "
		                  "on the same group of devices.");
		np_finding_command(finding, "npu-smi info -t health -i %lld",
		                   (long long)device->npu);
	}
}

/* ── picking ── */

static const char *join_ids(struct np_npu_set *set, const size_t *chosen, size_t n, bool logical)
{
	struct np_buf text = {0};
	bool several = false;
	for (size_t i = 0; i < set->devices.n; i++)
		several |= set->devices.v[i].chip != 0;
	for (size_t i = 0; i < n; i++) {
		const struct np_npu_device *device = &set->devices.v[chosen[i]];
		const char *comma = i ? "," : "";
		if (logical)
			np_buf_printf(&text, "%s%lld", comma,
			              (long long)np_npu_logical(set, chosen[i]));
		else if (several)
			np_buf_printf(&text, "%s%lld.%lld", comma, (long long)device->npu,
			              (long long)device->chip);
		else
			np_buf_printf(&text, "%s%lld", comma, (long long)device->npu);
	}
	const char *out = text.failed ? NULL : np_arena_cstr(&set->arena, np_buf_str(&text));
	np_buf_release(&text);
	return out ? out : "";
}

static void tell_too_few(struct np_report *report, const struct source *source,
                         const struct np_npu_choice *choice, const struct np_devices_options *own)
{
	bool spread = choice->n_free >= own->pick;
	struct np_finding *finding = np_report_finding(
		report, "DEVICES_NONE_FREE", NP_ERROR,
		"%s: %llu free devices of one group are wanted, the most that a group has is %zu "
		"(%zu are free in all)",
		source->name, (unsigned long long)own->pick, choice->n_best, choice->n_free);
	for (size_t i = 0; i < source->set.devices.n; i++) {
		const struct np_npu_device *device = &source->set.devices.v[i];
		if (*source->busy[i])
			np_finding_evidence(finding, NULL, "reason", NULL, "NPU %lld chip %lld: %s",
			                    (long long)device->npu, (long long)device->chip,
			                    source->busy[i]);
	}
	if (spread)
		np_finding_advice(finding,
		                  "Devices of several groups talk over PCIe, which changes what is "
		                  "measured. --span-groups takes them all the same.");
	else
		np_finding_advice(finding, "Wait for the others to end, end what is yours by its "
		                           "process id, or take another host.");
}

static bool pick(struct np_report *report, struct np_table *table, struct source *source,
                 const struct np_devices_options *own)
{
	struct np_npu_set *set = &source->set;
	size_t chosen[NP_NPU_MAX] = {0};
	struct np_npu_choice choice = {0};
	size_t n = own->pick > NP_NPU_MAX ? NP_NPU_MAX : (size_t)own->pick;
	choice = np_npu_pick(set, source->busy, source->groups,
	                     own->pick > set->devices.n ? SIZE_MAX : n, own->span, chosen);
	if (!choice.found) {
		tell_too_few(report, source, &choice, own);
		return false;
	}
	np_cell_cstr(table, source->name);
	np_cell_cstr(table, join_ids(set, chosen, n, true));
	np_cell_cstr(table, join_ids(set, chosen, n, false));
	np_cell_int(table, (int64_t)choice.group);
	np_cell_int(table, (int64_t)choice.n_free);
	return true;
}

/* ── all of it ── */

static void fill(struct np_report *report, struct source *sources, size_t n,
                 const struct np_devices_options *own)
{
	struct np_table *picked = NULL;
	bool lacking = false, unknown_ids = false, no_processes = false;
	if (own->pick)
		picked = NP_REPORT_TABLE(report, "picked", "Picked", picked_columns);
	struct np_table *devices = NP_REPORT_TABLE(report, "devices", "Devices", device_columns);
	struct np_table *processes =
		NP_REPORT_TABLE(report, "processes", "Processes", process_columns);
	struct np_table *sensors = NP_REPORT_TABLE(report, "sensors", "Sensors", sensor_columns);
	for (size_t i = 0; i < n; i++) {
		struct source *source = &sources[i];
		if (source->status != NP_OK) {
			struct np_finding *finding =
				np_report_finding(report, "DEVICES_HOST_FAILED", NP_ERROR,
			                          "%s: its devices cannot be told", source->name);
			np_finding_detail(finding, "%s: %s", source->err.where, source->err.msg);
			report->exit_code = EXIT_INPUT;
			continue;
		}
		for (size_t k = 0; k < source->set.devices.n; k++) {
			device_row(devices, source, k);
			sensor_row(sensors, source, k);
		}
		process_rows(processes, source);
		tell_health(report, source);
		unknown_ids |= !np_npu_knows_logical(&source->set);
		no_processes |= !source->set.has_processes;
		if (own->pick && !pick(report, picked, source, own))
			lacking = true;
	}
	if (lacking && report->exit_code == 0)
		report->exit_code = EXIT_FAILED;
	for (size_t i = 0; i < n; i++)
		if (sources[i].status == NP_OK &&
		    (i == 0 || sources[i].grouping != sources[i - 1].grouping))
			np_report_note(report, "%s",
			               np_tr(np_npu_grouping_text(sources[i].grouping)));
	if (no_processes)
		np_report_note(report, "npu-smi printed no table of processes: nothing counts as "
		                       "free");
	if (unknown_ids)
		np_report_note(report,
		               "npu-smi info -m told no logical ids: they are the positions "
		               "among the devices that are seen");
}

static enum np_status gather(const struct np_devices_options *own, struct source *sources, size_t n)
{
	struct work work = {own, sources};
	struct np_host_result *results = np_calloc(n, sizeof *results);
	if (!results)
		return NP_E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		np_npu_set_init(&sources[i].set);
		sources[i].name = own->from                       ? own->from
		                  : own->hosts && own->hosts->v.n ? own->hosts->v.v[i].text
		                                                  : "local";
	}
	if (own->from)
		results[0].status = read_recorded(&sources[0], &results[0].err);
	else
		(void)np_hosts_run(own->hosts, own->ssh, own->at_once, ask, &work, results);
	for (size_t i = 0; i < n; i++) {
		sources[i].status = results[i].status;
		sources[i].err = results[i].err;
		if (results[i].status == NP_OK)
			sources[i].status = judge(&sources[i], own->max_used_mb);
	}
	np_free(results);
	return NP_OK;
}

enum np_status np_devices_report(const struct np_devices_options *options, struct np_report *report,
                                 struct np_err *err)
{
	size_t n =
		options->from || !options->hosts || !options->hosts->v.n ? 1 : options->hosts->v.n;
	struct source *sources = np_calloc(n, sizeof *sources);
	if (!sources || gather(options, sources, n) != NP_OK) {
		np_free(sources);
		return np_err_nomem(err);
	}
	enum np_status status = n == 1 ? sources[0].status : NP_OK;
	for (size_t i = 0; i < n; i++)
		np_report_input(report, sources[i].name);
	if (status == NP_OK)
		fill(report, sources, n, options);
	else if (err)
		*err = sources[0].err;
	for (size_t i = 0; i < n; i++)
		np_npu_set_release(&sources[i].set);
	np_free(sources);
	return status;
}
