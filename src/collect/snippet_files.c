/*
 * What is no Python: a command line, a configuration, a switch.
 */
#include "collect/snippet.h"

/* ── msprof ── */

void np_snippet_msprof(const struct np_snippet *self, struct np_buf *out)
{
	np_buf_add_cstr(out,
	                "#!/bin/sh\n"
	                "# Records a whole program with msprof, with the utilisation of the "
	                "units (kernel profile).\n"
	                "# Needs CANN's set_env.sh to be sourced. No torch_npu.profiler may "
	                "be active in the program.\n"
	                "[ $# -gt 0 ] || { echo \"usage: $0 PROGRAM [ARGUMENTS]\" >&2; exit 2; "
	                "}\n");
	np_buf_printf(out, "out='%s'\n", self->out_dir);
	np_buf_printf(out,
	              "mkdir -p \"$out\" && touch \"$out/.start\" || exit 4  # msprof wants it to "
	              "exist\n"
	              "# task-time l0 or off would leave every ratio N/A\n"
	              "msprof --output=\"$out\" --task-time=l1 --aic-mode=task-based \\\n"
	              "\t--aic-metrics=%s \"$@\" ||\n"
	              "\techo \"msprof ended with status $?\" >&2\n",
	              self->aic_metrics);
	np_buf_add_cstr(out, "# offline, needs no device; that it prints \"done\" is no proof\n"
	                     "msprof --export=on --output=\"$out\"\n"
	                     "npuprof check \"$out\" --start-marker \"$out/.start\"\n");
}

/* ── dynamic ── */

static void add_ranks(const struct np_snippet *self, struct np_buf *out)
{
	np_buf_printf(out, "    \"is_rank\": %s,\n    \"rank_list\": [",
	              self->ranks.n ? "true" : "false");
	for (size_t i = 0; i < self->ranks.n; i++)
		np_buf_printf(out, "%s%u", i ? ", " : "", self->ranks.v[i]);
	np_buf_add_cstr(out, "],\n");
}

void np_snippet_dynamic(const struct np_snippet *self, struct np_buf *out)
{
	np_buf_printf(out,
	              "{\n    \"activities\": [\"CPU\", \"NPU\"],\n"
	              "    \"prof_dir\": \"%s\",\n"
	              "    \"analyse\": true,\n    \"async_mode\": true,\n"
	              "    \"record_shapes\": false,\n    \"profile_memory\": false,\n"
	              "    \"with_stack\": false,\n    \"with_flops\": false,\n"
	              "    \"with_modules\": false,\n"
	              "    \"active\": %lld,\n    \"warmup\": %lld,\n    \"start_step\": -1,\n",
	              self->out_dir, (long long)self->active, (long long)self->warmup);
	add_ranks(self, out);
	np_buf_printf(out,
	              "    \"experimental_config\": {\n"
	              "        \"profiler_level\": \"Level%d\",\n"
	              "        \"aic_metrics\": \"%s\",\n"
	              "        \"l2_cache\": false,\n        \"op_attr\": false,\n"
	              "        \"gc_detect_threshold\": null,\n"
	              "        \"data_simplification\": true,\n"
	              "        \"record_op_args\": false,\n"
	              "        \"export_type\": [\"%s\"],\n"
	              "        \"mstx\": false,\n        \"mstx_domain_include\": [],\n"
	              "        \"mstx_domain_exclude\": [],\n        \"host_sys\": [],\n"
	              "        \"sys_io\": false,\n        \"sys_interconnection\": false\n"
	              "    }\n}\n",
	              self->level, self->aic_metrics, self->cluster ? "db" : "text");
}

/* ── path A ── */

enum { SKIP_FIRST = 3, TOKENS_USUAL = 32 };

static void add_tuning(const struct np_snippet *self, struct np_buf *out)
{
	np_buf_add_cstr(out, "\n# Tune only executor/utils/profiler_context.py:\n");
	if (self->phase != NP_PHASE_PREFILL)
		np_buf_printf(
			out,
			"#   create_profiler(): active=%lld, skip_first=%d (what decode takes; "
			"it has 3 and 3)\n",
			(long long)self->active, SKIP_FIRST);
	if (self->phase == NP_PHASE_PREFILL)
		np_buf_add_cstr(out,
		                "#   set_status(): FakeContextManager() in the decode branch\n");
	if (self->phase == NP_PHASE_DECODE)
		np_buf_add_cstr(out,
		                "#   set_status(): FakeContextManager() in the prefill branch\n");
	else
		np_buf_add_cstr(out,
		                "#   set_status(): active=1 stays for prefill, a request has one "
		                "such step\n");
	np_buf_add_cstr(out, "#   warmup=0 and repeat=1 stay as they are. define_profiler() of "
	                     "model_runner.py is not used.\n");
}

static void add_acceptance(const struct np_snippet *self, struct np_buf *out)
{
	bool with_prefill = self->phase != NP_PHASE_DECODE;
	bool with_decode = self->phase != NP_PHASE_PREFILL;
	np_buf_add_cstr(
		out, "\n# Run:\n"
		     "#   bash executor/scripts/infer.sh --model MODEL --yaml THIS_YAML\n"
		     "\n# Acceptance, with RES=models/MODEL/res/DATE/CASE (where log_0.log is):\n"
		     "#   grep -c 'run failed' \"$RES/log_0.log\"    # 0\n");
	np_buf_printf(out, "#   for phase in%s%s; do\n", with_prefill ? " prefill" : "",
	              with_decode ? " decode" : "");
	np_buf_add_cstr(
		out,
		"#     find \"$RES/prof/$phase\" -name ASCEND_PROFILER_OUTPUT    # one per rank; "
		"none "
		"is a failure\n"
		"#     find \"$RES/prof/$phase\" -name kernel_details.csv -exec head -1 {} \\; |\n"
		"#       awk -F, '{print NF}'    # about 47; 9 or 8: no configuration; 1 or none: "
		"not "
		"parsed\n"
		"#     find \"$RES/prof/$phase\" -name op_statistic.csv -o -name "
		"api_statistic.csv\n"
		"#   done\n"
		"#   npuprof check --profile framework \"$RES\"    # all of it, trace_view.json "
		"and values too\n"
		"\n# All parsers 'run failed', no CSV and a trace that ends midway: the output's "
		"file\n"
		"# system. Put res on a local disk and run again (WORK_DIR is overwritten by "
		"function.sh):\n"
		"#   mv models/MODEL/res models/MODEL/res.old\n"
		"#   mkdir -p LOCAL_DISK/recipes_res && ln -sfn LOCAL_DISK/recipes_res "
		"models/MODEL/res\n");
}

void np_snippet_path_a(const struct np_snippet *self, struct np_buf *out)
{
	/* the first token is prefill's; then skip_first + active calls, and one as margin */
	int64_t tokens = SKIP_FIRST + self->active + 2;
	np_buf_add_cstr(out,
	                "# The profiler of cann-recipes: the switch, in the model's YAML. Merge "
	                "these keys into it.\n"
	                "model_config:\n"
	                "  enable_profiler: True\n");
	if (self->phase != NP_PHASE_PREFILL)
		np_buf_printf(
			out,
			"scheduler_config:\n"
			"  # at least skip_first + active + 2 = %lld: prof.step() is called once "
			"per decode step\n"
			"  max_new_tokens: %lld\n",
			(long long)tokens,
			(long long)(tokens > TOKENS_USUAL ? tokens : TOKENS_USUAL));
	add_tuning(self, out);
	add_acceptance(self, out);
}
