/*
 * Python: the capture of a script of one's own, and the hook for somebody else's.
 *
 * Both reach stop() with the schedule left: one call of step() more than it needs.
 */
#include "collect/snippet.h"

void np_snippet_python_ranks(const struct np_snippet *self, struct np_buf *out)
{
	if (self->all_ranks) {
		np_buf_add_cstr(out, "RANKS = None  # every rank records\n");
		return;
	}
	np_buf_add_cstr(out, "RANKS = {");
	for (size_t i = 0; i < self->ranks.n; i++)
		np_buf_printf(out, "%s%u", i ? ", " : "", self->ranks.v[i]);
	np_buf_printf(out, "%s}  # ranks that record; None: all of them\n",
	              self->ranks.n ? "" : "0");
}

/* The call of torch_npu.profiler.profile(), indented by 4, without its line end. */
void np_snippet_profiler(const struct np_snippet *self, const char *handler, struct np_buf *out)
{
	np_buf_add_cstr(
		out,
		"    # what is to be recorded of every kernel: without this, nine columns and no "
		"utilisation\n"
		"    config = torch_npu.profiler._ExperimentalConfig(\n");
	np_buf_printf(out,
	              "        profiler_level=torch_npu.profiler.ProfilerLevel.Level%d,\n"
	              "        aic_metrics=torch_npu.profiler.AiCMetrics.%s,\n"
	              "        export_type=torch_npu.profiler.ExportType.%s,\n    )\n",
	              self->level, self->aic_metrics, self->cluster ? "Db" : "Text");
	np_buf_printf(out,
	              "    return torch_npu.profiler.profile(\n"
	              "        activities=[\n"
	              "            torch_npu.profiler.ProfilerActivity.CPU,\n"
	              "            torch_npu.profiler.ProfilerActivity.NPU,\n"
	              "        ],\n"
	              "        with_stack=False,  # stacks make a capture four times as large\n"
	              "        record_shapes=False,\n"
	              "        profile_memory=False,\n"
	              "        experimental_config=config,\n"
	              "        schedule=torch_npu.profiler.schedule(\n"
	              "            wait=0, warmup=warmup, active=active, repeat=1, skip_first=0\n"
	              "        ),\n"
	              "        on_trace_ready=torch_npu.profiler.tensorboard_trace_handler(%s),\n"
	              "    )\n",
	              handler);
}

/* ── torch_npu ── */

static void add_head(const struct np_snippet *self, struct np_buf *out)
{
	static const char *const what[] = {"one prefill", "decode steps",
	                                   "one prefill and decode steps on one timeline",
	                                   "one prefill and decode steps, a capture each"};
	np_buf_printf(
		out,
		"\"\"\"Records %s with torch_npu.profiler (%s profile).\n\n"
		"Fill in the three functions below, then run this file; under torchrun on all\n"
		"ranks alike, with HCCL_NPU_SOCKET_PORT_RANGE=20000-21000 in the environment\n"
		"where other jobs use HCCL on the same hosts.\n\"\"\"\n"
		"import os\n\nimport torch\nimport torch_npu\n\n",
		what[self->phase], self->cluster ? "cluster" : "kernel");
	np_buf_printf(out, "SAVE_PATH = \"%s\"  # a local disk; one directory per experiment\n",
	              self->out_dir);
	np_buf_printf(out, "WARMUP = %lld  # steps of the profiler's own warm-up, not recorded\n",
	              (long long)self->warmup);
	if (self->phase != NP_PHASE_PREFILL)
		np_buf_printf(out, "ACTIVE = %lld  # recorded decode steps\n",
		              (long long)self->active);
	np_snippet_python_ranks(self, out);
	np_buf_add_cstr(out,
	                "\n\n"
	                "def load_model():\n"
	                "    raise NotImplementedError(\"return what the next two want\")\n\n\n"
	                "def run_prefill(model):\n"
	                "    raise NotImplementedError(\"one prefill of a request\")\n\n\n"
	                "def run_decode(model):\n"
	                "    raise NotImplementedError(\"one decode step\")\n\n\n");
}

static void add_create(const struct np_snippet *self, struct np_buf *out)
{
	np_buf_add_cstr(out, "class NoProfiler:\n"
	                     "    \"\"\"For the ranks that do not record.\"\"\"\n\n"
	                     "    def __enter__(self):\n        return self\n\n"
	                     "    def __exit__(self, *_):\n        return False\n\n"
	                     "    def step(self):\n        pass\n\n\n"
	                     "def create_profiler(save_path, warmup, active):\n"
	                     "    rank = int(os.environ.get(\"RANK\", \"0\"))\n"
	                     "    if RANKS is not None and rank not in RANKS:\n"
	                     "        return NoProfiler()\n"
	                     "    os.makedirs(save_path, exist_ok=True)\n");
	np_snippet_profiler(
		self, self->cluster ? "save_path, analyse_flag=True, async_mode=True" : "save_path",
		out);
	np_buf_add_cstr(out, "\n\ndef one_step(prof, run, model):\n"
	                     "    run(model)\n"
	                     "    torch.npu.synchronize()  # the step's kernels end in the step\n"
	                     "    prof.step()\n\n\n"
	                     "def warm_up(model):\n"
	                     "    \"\"\"Compiling and first allocations belong before the "
	                     "profiler.\"\"\"\n"
	                     "    run_prefill(model)\n"
	                     "    run_decode(model)\n"
	                     "    torch.npu.synchronize()\n\n\n");
}

static const char prefill[] =
	"def capture_prefill(model, save_path):\n"
	"    with create_profiler(save_path, WARMUP, 1) as prof:\n"
	"        for _ in range(WARMUP + 1):  # the last one is recorded\n"
	"            one_step(prof, run_prefill, model)\n"
	"        prof.step()  # no work: the schedule is left before stop()\n\n\n";

static const char decode[] =
	"def capture_decode(model, save_path):\n"
	"    run_prefill(model)  # not recorded: a step unlike the others\n"
	"    torch.npu.synchronize()\n"
	"    with create_profiler(save_path, WARMUP, ACTIVE) as prof:\n"
	"        for _ in range(WARMUP + ACTIVE):\n"
	"            one_step(prof, run_decode, model)\n"
	"        prof.step()  # no work: the schedule is left before stop()\n\n\n";

static const char both[] =
	"def capture_both(model, save_path):\n"
	"    with create_profiler(save_path, WARMUP, 1 + ACTIVE) as prof:\n"
	"        for _ in range(WARMUP + 1):  # the last one is recorded\n"
	"            one_step(prof, run_prefill, model)\n"
	"        for _ in range(ACTIVE):\n"
	"            one_step(prof, run_decode, model)\n"
	"        prof.step()  # no work: the schedule is left before stop()\n\n\n";

void np_snippet_torch(const struct np_snippet *self, struct np_buf *out)
{
	bool apart = self->phase == NP_PHASE_SEPARATE;
	add_head(self, out);
	add_create(self, out);
	if (self->phase == NP_PHASE_PREFILL || apart)
		np_buf_add_cstr(out, prefill);
	if (self->phase == NP_PHASE_DECODE || apart)
		np_buf_add_cstr(out, decode);
	if (self->phase == NP_PHASE_BOTH)
		np_buf_add_cstr(out, both);
	np_buf_add_cstr(out, "if __name__ == \"__main__\":\n"
	                     "    the_model = load_model()\n"
	                     "    warm_up(the_model)\n");
	if (apart)
		np_buf_add_cstr(
			out,
			"    capture_prefill(the_model, os.path.join(SAVE_PATH, \"prefill\"))\n"
			"    capture_decode(the_model, os.path.join(SAVE_PATH, \"decode\"))\n");
	else
		np_buf_printf(out, "    capture_%s(the_model, SAVE_PATH)\n",
		              self->phase == NP_PHASE_PREFILL  ? "prefill"
		              : self->phase == NP_PHASE_DECODE ? "decode"
		                                               : "both");
	np_buf_printf(out, "    # then: npuprof check '%s'%s\n", self->out_dir,
	              self->cluster ? " --profile cluster" : "");
}

/* ── vllm ── */

static const char server_way[] =
	"The server's own way, where it is enough (the environment variable of older releases\n"
	"is not read any more; without the option /start_profile answers 404):\n\n"
	"    vllm serve MODEL --profiler-config '{\"profiler\": \"torch\",\n"
	"        \"torch_profiler_dir\": \"/absolute/path\", \"torch_profiler_with_stack\": "
	"false}'\n"
	"    curl -X POST http://localhost:8000/start_profile\n"
	"    (a few requests)\n"
	"    curl -X POST http://localhost:8000/stop_profile\n\n"
	"This hook records calls of one forward() instead: name the model's module and class,\n"
	"save this file as sitecustomize.py in a directory of its own, and start the server "
	"with\n\n"
	"    PYTHONPATH=THAT_DIRECTORY:$PYTHONPATH vllm serve MODEL\n\n"
	"Spawned workers read it as well; it hides a sitecustomize.py of the system. Warm\n"
	"up with real requests; WARMUP is 10 or more where graphs are compiled. Without\n"
	"PYTHONPATH nothing is changed.\n";

static const char hook[] =
	"def is_recorded():\n"
	"    import torch\n\n"
	"    rank = int(os.environ.get(\"RANK\", \"0\"))\n"
	"    if torch.distributed.is_available() and torch.distributed.is_initialized():\n"
	"        rank = torch.distributed.get_rank()\n"
	"    return RANKS is None or rank in RANKS\n\n\n"
	"def wrap(owner):\n"
	"    forward = getattr(owner, METHOD)\n"
	"    state = {\"calls\": 0, \"prof\": None}\n\n"
	"    @functools.wraps(forward)\n"
	"    def profiled(*args, **kwargs):\n"
	"        call = state[\"calls\"]\n"
	"        state[\"calls\"] += 1\n"
	"        if not WARMUP <= call < WARMUP + ACTIVE or not is_recorded():\n"
	"            return forward(*args, **kwargs)\n"
	"        import torch\n\n"
	"        if state[\"prof\"] is None:\n"
	"            torch.npu.synchronize()  # what was queued before is not this call's\n"
	"            state[\"prof\"] = create_profiler(0, ACTIVE)\n"
	"            state[\"prof\"].start()\n"
	"        result = forward(*args, **kwargs)\n"
	"        torch.npu.synchronize()\n"
	"        state[\"prof\"].step()\n"
	"        if call == WARMUP + ACTIVE - 1:\n"
	"            state[\"prof\"].step()  # no work: the schedule is left before stop()\n"
	"            state[\"prof\"].stop()\n"
	"        return result\n\n"
	"    setattr(owner, METHOD, profiled)\n\n\n"
	"class Finder(importlib.abc.MetaPathFinder):\n"
	"    \"\"\"Wraps the class when its module is imported, in whatever process that "
	"is.\"\"\"\n\n"
	"    def find_spec(self, name, path=None, target=None):\n"
	"        if name != MODULE:\n"
	"            return None\n"
	"        sys.meta_path.remove(self)\n"
	"        spec = importlib.util.find_spec(name)\n"
	"        if spec is None or spec.loader is None:\n"
	"            return spec\n"
	"        run = spec.loader.exec_module\n\n"
	"        def exec_module(module):\n"
	"            run(module)\n"
	"            wrap(getattr(module, CLASS))\n\n"
	"        spec.loader.exec_module = exec_module\n"
	"        return spec\n\n\n"
	"sys.meta_path.insert(0, Finder())\n";

void np_snippet_vllm(const struct np_snippet *self, struct np_buf *out)
{
	np_buf_printf(out,
	              "\"\"\"A hook that records calls of a model's forward() (%s profile).\n\n%s",
	              self->cluster ? "cluster" : "kernel", server_way);
	np_buf_printf(
		out,
		"\nWorkers are daemons and cannot analyse, so that this is done afterwards:\n\n"
		"    python3 -c \"from torch_npu.profiler.profiler import analyse; \\\n"
		"        analyse('%s', max_process_number=8)\"\n"
		"    npuprof check '%s'%s\n\"\"\"\n",
		self->out_dir, self->out_dir, self->cluster ? " --profile cluster" : "");
	np_buf_add_cstr(out, "import functools\nimport importlib.abc\nimport importlib.util\n"
	                     "import os\nimport sys\n\n"
	                     "MODULE = \"package.module\"  # where the class is defined\n"
	                     "CLASS = \"TheTransformer\"  # the model, not the service in front of "
	                     "it\n"
	                     "METHOD = \"forward\"\n");
	np_buf_printf(out, "SAVE_PATH = \"%s\"\n", self->out_dir);
	np_buf_printf(out, "WARMUP = %lld  # calls before the recorded ones\n",
	              (long long)self->warmup);
	np_buf_printf(out, "ACTIVE = %lld  # recorded calls\n", (long long)self->active);
	np_snippet_python_ranks(self, out);
	np_buf_add_cstr(out, "\n\ndef create_profiler(warmup, active):\n"
	                     "    import torch_npu\n\n"
	                     "    os.makedirs(SAVE_PATH, exist_ok=True)\n");
	np_snippet_profiler(self, "SAVE_PATH, analyse_flag=False", out);
	np_buf_add_cstr(out, "\n\n");
	np_buf_add_cstr(out, hook);
}
