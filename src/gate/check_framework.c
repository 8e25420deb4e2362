/*
 * Profile framework (R61, R69): the statistics files, and that no phase of cann-recipes-infer is
 * left empty; and the picture that a bad output file system leaves behind (R62).
 */
#include <string.h>

#include "base/fs.h"
#include "capture/lint.h"
#include "gate/context.h"
#include "report/lang.h"

/* ── phases: RES/prof/prefill, RES/prof/decode ── */

static bool has_capture_dir(struct np_gate *gate, const char *path)
{
	struct np_dir dir;
	if (np_dir_list(&gate->report->arena, path, &dir, NULL) != NP_OK)
		return true; /* it cannot be read: that is told elsewhere */
	for (size_t i = 0; i < dir.n; i++)
		if (np_str_ends(np_str_of(dir.v[i].name), NP_STR("_ascend_pt")))
			return true;
	return false;
}

static void tell_phase(struct np_gate *gate, struct np_check_result *out, const char *path,
                       const char *phase)
{
	np_check_fail(out, "%s is empty", np_gate_short_path(gate, path));
	struct np_finding *finding =
		np_gate_finding(gate, "PHASE_MISSING", path, "nothing was recorded of %s", phase);
	if (!finding)
		return;
	bool decode = strcmp(phase, "decode") == 0;
	np_finding_evidence(finding, path, NULL, NULL, "%s", np_tr("no *_ascend_pt in it"));
	np_finding_detail(finding, "The directory was made and holds no capture, while the other "
	                           "phase has one (R61).");
	np_finding_advice(finding, "Raise scheduler_config.max_new_tokens above skip_first + "
	                           "warmup + active (R60): with too few steps torch_npu removes "
	                           "what it began.");
	np_finding_command(finding, "npuprof plan schedule --skip-first %d --active %d --repeat 1",
	                   decode ? 3 : 0, decode ? 3 : 1);
}

/* The other phase beside the one that a capture is of, when the framework made its directory. */
static void check_phases(struct np_gate *gate, struct np_check_result *out)
{
	static const char *const here[] = {"/prof/prefill/", "/prof/decode/"};
	static const char *const other[] = {"decode", "prefill"};
	for (size_t c = 0; c < gate->all->captures.n; c++) {
		const char *path = gate->all->captures.v[c]->path;
		for (int i = 0; np_gate_counts(gate->all->captures.v[c]) && i < 2; i++) {
			const char *at = strstr(path, here[i]);
			if (!at || (size_t)(at - path) < strlen(gate->all->root))
				continue;
			struct np_file_stat st;
			const char *dir = np_arena_printf(&gate->report->arena, "%.*s/prof/%s",
			                                  (int)(at - path), path, other[i]);
			gate->oom |= !dir;
			if (dir && np_file_stat(dir, true, &st, NULL) == NP_OK &&
			    st.kind == NP_FILE_DIR && !has_capture_dir(gate, dir))
				tell_phase(gate, out, dir, other[i]);
		}
	}
}

void np_check_framework_files(struct np_gate *gate, struct np_check_result *out)
{
	static const enum np_role wanted[] = {NP_ROLE_OP_STATISTIC, NP_ROLE_API_STATISTIC,
	                                      NP_ROLE_STEP_TRACE};
	for (size_t i = 0; i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		if (!np_gate_counts(capture))
			continue;
		for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
			/* msprof has no step summary (R40) */
			if (capture->framework == NP_FW_MSPROF && wanted[k] == NP_ROLE_STEP_TRACE)
				continue;
			if (np_capture_file(capture, wanted[k]))
				np_check_pass(out, "%s: %s", np_gate_label(gate, capture),
				              np_role_name(wanted[k]));
			else {
				np_check_fail(out, "%s has no %s.csv", np_gate_label(gate, capture),
				              np_role_name(wanted[k]));
				if (np_capture_has_data(capture))
					np_gate_tell_missing(gate, capture, wanted[k],
					                     NP_N("R61 and R69 ask for it"));
			}
		}
	}
	check_phases(gate, out);
}

/* ── R62 ── */

static bool has_good_csv(const struct np_gate *gate, const struct np_capture *capture)
{
	for (size_t i = 0; i < gate->csv.n; i++)
		if (gate->csv.v[i].capture == capture && gate->csv.v[i].status == NP_OK)
			return true;
	return false;
}

static const struct np_trace_facts *cut_trace(const struct np_gate *gate,
                                              const struct np_capture *capture)
{
	for (size_t i = 0; i < gate->traces.n; i++)
		if (gate->traces.v[i].capture == capture &&
		    np_gate_trace_is_cut(&gate->traces.v[i]))
			return &gate->traces.v[i];
	return NULL;
}

void np_gate_tell_output_fs(struct np_gate *gate)
{
	struct np_finding *finding = NULL;
	for (size_t i = 0; gate->run_failed && i < gate->all->captures.n; i++) {
		const struct np_capture *capture = gate->all->captures.v[i];
		const struct np_trace_facts *trace = cut_trace(gate, capture);
		if (!trace || has_good_csv(gate, capture))
			continue;
		if (!finding) {
			const char *dump = np_shell_quote(gate->report, capture->path);
			finding = np_report_finding(
				gate->report, "OUTPUT_FS_SUSPECT", NP_ERROR,
				"all parsers failed, there is no table, and the trace is cut: "
				"suspect the file system of the output");
			np_finding_detail(finding,
			                  "It is neither the code nor permissions nor versions "
			                  "then, but a data mount, a network or bind mount (R62). "
			                  "The command proves it: the same dump, copied to "
			                  "another disk, can be parsed there.");
			np_finding_advice(
				finding,
				"Put the results on a local disk and run again, for "
				"cann-recipes-infer: mv models/MODEL/res models/MODEL/res.old; "
				"mkdir -p LOCAL_DISK/recipes_res; ln -sfn LOCAL_DISK/recipes_res "
				"models/MODEL/res (WORK_DIR is overwritten by function.sh). Try "
				"several disks; if none will do, inject a profiler: path B.");
			np_finding_command(
				finding,
				"cp -r %s LOCAL_DISK/ && python3 -c 'import sys; from "
				"torch_npu.profiler.profiler import analyse; "
				"analyse(sys.argv[1], max_process_number=8)' LOCAL_DISK/%s",
				dump, np_shell_quote(gate->report, capture->name));
		}
		np_finding_evidence(finding, trace->file->path, NULL, NULL, "%s",
		                    trace->status != NP_OK ? trace->err.msg : "");
	}
}
