#!/usr/bin/env python3
"""The recorder of collectives at torch.distributed, on a real torch with gloo."""
import json
import os
import subprocess

import comm_reader
import recorder_lib
from collect_lib import FAKES, Skip
from comm_reader import FAILED, NO_U32
from recorder_lib import INJECT, Run, run_cases, same

HERE = os.path.dirname(os.path.abspath(__file__))


def every_op_on_4_ranks(tmp):
    run = Run(tmp)
    with open(os.path.join(HERE, "recorder_ops.py")) as file:
        run.python(file.read(), ranks=4)
    logs = {log.header.rank: log for log in run.logs()}
    same(sorted(logs), [0, 1, 2, 3])
    for rank, log in logs.items():
        with open(os.path.join(tmp, f"expected-{rank}.json")) as file:
            expected = json.load(file)
        assert len(expected) > 30
        got = [{name: call[name] for name in expected[0]} for call in log.calls]
        for i, (one, other) in enumerate(zip(got, expected)):
            same(one, other, f"rank {rank}, call {i}")
        same(len(got), len(expected))
        for name in {call.comm_name for call in log.calls}:
            numbers = [call.comm_seq for call in log.calls if call.comm_name == name]
            same(numbers, list(range(len(numbers))), name)
        header = log.header
        same((header.world, header.local_rank, header.closed, header.lost), (4, rank, 1, 0))
        times = [call.start_ns for call in log.calls]
        assert times == sorted(times) and times[0] >= header.start_ns - 10 ** 9
    same({event["calls"] for event in run.events("collectives_end")}, {len(expected)})


EARLY = """
from torch.distributed import all_reduce, isend, irecv
import npuprof_early
def default(tensor, function=dist.all_reduce):
    function(tensor)
class Held:
    reduce = staticmethod(all_reduce)
TABLE = {all_reduce: "found"}
%s
start()
all_reduce(torch.ones(1)); dist.all_reduce(torch.ones(2))
dist.distributed_c10d.all_reduce(torch.ones(3)); default(torch.ones(4))
Held.reduce(torch.ones(5)); npuprof_early.call(torch.ones(6))
assert TABLE[dist.all_reduce] == "found" and dist.P2POp(isend, torch.ones(1), 0).op is dist.isend
import inspect, pickle
assert list(inspect.signature(all_reduce).parameters) == ["tensor", "op", "group", "async_op"]
assert "Reduces the tensor data" in all_reduce.__doc__ and all_reduce.__name__ == "all_reduce"
assert inspect.getsource(all_reduce).startswith("def all_reduce(tensor")
assert pickle.loads(pickle.dumps(all_reduce)) is all_reduce
"""
EARLY_MODULE = """
from torch.distributed import all_reduce
def call(tensor): all_reduce(tensor)
"""


def names_bound_before_and_after(tmp):
    for late in (False, True):
        run = Run(os.path.join(tmp, str(late)))
        run.write("npuprof_early.py", EARLY_MODULE)
        begin = f"sys.path.insert(0, {INJECT!r})\nos.environ['NPUPROF_INJECT'] = {run.config!r}\n" \
                "import npuprof_inject; npuprof_inject.start()\n" if late else ""
        run.python(EARLY % begin, env={"NPUPROF_INJECT": ""} if late else None)
        same([call.count for call in run.log().calls], [1, 2, 3, 4, 5, 6], f"late: {late}")


def off_without_collectives(tmp):
    run = Run(tmp, collectives=False)
    run.python("assert not hasattr(dist.all_reduce, '__wrapped__')\n"
               "assert 'npuprof_inject' in sys.modules\n"
               "assert 'npuprof_inject.collectives' not in sys.modules\n"
               "start(); dist.all_reduce(torch.ones(1))\n")
    same((run.logs(), run.events("collectives")), ([], []))


FAILURES = """
def fails(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except BaseException as error:
        print(type(error).__name__, str(error).split(chr(10))[0])
    else:
        print("works")
fails(dist.all_reduce, torch.ones(1))
start()
fails(dist.all_reduce, "no tensor")
fails(dist.all_reduce)
fails(dist.all_reduce, torch.ones(1), nonsense=1)
fails(dist.all_gather, [torch.empty(3)], torch.ones(2))
fails(dist.broadcast, torch.ones(1), 7)
fails(dist.all_reduce, torch.ones(1), group="no group")
fails(dist.all_reduce, torch.ones(2))
fails(dist.batch_isend_irecv, [])
fails(dist.all_gather_object, [None], sys)
fails(dist.all_reduce, torch.ones(2))
"""


def failures_are_the_users(tmp):
    run = Run(tmp)
    hooked = run.python(FAILURES)
    bare = run.python(FAILURES, env={"NPUPROF_INJECT_OFF": "1"})
    same(hooked.splitlines(), bare.splitlines())
    same(hooked.count("works"), 2)
    calls = run.log().calls
    good = [call for call in calls if not call.flags & FAILED]
    same([(call.op_name, call.count) for call in good], [("all_reduce", 2)] * 2)
    same(len(calls), 11)
    same(run.events("hook_failed"), [])


MODEL = """
import torch, torch.distributed as dist, asyncio, threading
class DiT:
    def forward(self, n, fail=False):
        dist.all_reduce(torch.ones(n))
        if fail: raise KeyError("boom")
        return n
    def again(self, n):
        dist.all_reduce(torch.ones(n))
        return self.forward(n + 1)
    @classmethod
    def made(cls, n): return cls().forward(n)
    @staticmethod
    def fixed(n): dist.all_reduce(torch.ones(n))
def request(n, fail=False):
    dist.all_reduce(torch.ones(n))
    return DiT().forward(n + 1, fail)
def denoise(n):
    for i in range(n):
        dist.all_reduce(torch.ones(100 + i))
        got = yield i
        if got: return got
async def serve(n):
    dist.all_reduce(torch.ones(n))
    await asyncio.sleep(0.01)
    dist.all_reduce(torch.ones(n + 1))
async def stream(n):
    for i in range(n):
        dist.all_reduce(torch.ones(70 + i))
        yield i
"""
STAGES = [("request", "stage_model", "request"), ("dit", "stage_model", "DiT.forward"),
          ("dit", "stage_model", "DiT.again"), ("made", "stage_model", "DiT.made"),
          ("fixed", "stage_model", "DiT.fixed"), ("denoise", "stage_model", "denoise"),
          ("serve", "stage_model", "serve"), ("stream", "stage_model", "stream"),
          ("main", "__main__", "local"), ("gone", "stage_model", "DiT.foward")]
STAGES_PROGRAM = """
start()
import asyncio, inspect, threading
import stage_model as m
inside = None
def local(n):
    dist.all_reduce(torch.ones(n))
    if inside: inside()
dist.all_reduce(torch.ones(1))
m.request(2)
try: m.request(4, fail=True)
except KeyError: pass
dist.all_reduce(torch.ones(6))
assert m.DiT().again(7) == 8
m.DiT.made(9); m.DiT.fixed(10); m.DiT().fixed(11); local(12)
for i in m.denoise(2): dist.all_reduce(torch.ones(20 + i))
one = m.denoise(5); next(one)
try: one.send("enough")
except StopIteration as stop: assert stop.value == "enough"
async def both():
    await asyncio.gather(m.serve(30), m.serve(40))
    async for i in m.stream(2): dist.all_reduce(torch.ones(60 + i))
asyncio.run(both())
assert inspect.iscoroutinefunction(m.serve) and inspect.isgeneratorfunction(m.denoise)
assert inspect.isasyncgenfunction(m.stream) and m.request.__name__ == "request"
def other(): dist.all_reduce(torch.ones(50)); m.DiT().forward(51)
class Slow(m.DiT):
    def forward(self, n):
        thread = threading.Thread(target=other); thread.start(); thread.join()
        return super().forward(n)
Slow().forward(52)
import _thread
def foreign():  # as a thread of autograd: threading knows nothing of it
    dist.all_reduce(torch.ones(54)); m.DiT().forward(55); done.set()
done = threading.Event()
def outside():
    _thread.start_new_thread(foreign, ()); done.wait()
local.__globals__["inside"] = outside
local(56)
dist.all_reduce(torch.ones(53))
"""


def stages_nest_and_unwind(tmp):
    run = Run(tmp, STAGES, step="dit", request="request")
    run.write("stage_model.py", MODEL)
    run.python(STAGES_PROGRAM)
    logs = run.logs()
    same(len(logs), 3, "a log per thread")
    calls = {call.count: (call.stage_path, call.step, call.request)
             for log in logs for call in log.calls}
    same(calls, {
        1: ("", 0, 0), 2: ("request", 0, 1), 3: ("request/dit", 1, 1), 4: ("request", 1, 2),
        5: ("request/dit", 2, 2), 6: ("", 2, 2), 7: ("dit", 3, 2), 8: ("dit", 3, 2),
        9: ("made/dit", 4, 2), 10: ("fixed", 4, 2), 11: ("fixed", 4, 2), 12: ("main", 4, 2),
        100: ("denoise", 4, 2), 101: ("denoise", 4, 2), 20: ("", 4, 2), 21: ("", 4, 2),
        30: ("serve", 4, 2), 31: ("serve", 4, 2), 40: ("serve", 4, 2), 41: ("serve", 4, 2),
        60: ("", 4, 2), 61: ("", 4, 2),
        70: ("stream", 4, 2), 71: ("stream", 4, 2), 50: ("", 4, 2),
        51: ("dit", 5, 2), 52: ("dit", 6, 2),
        53: ("", 7, 2), 54: ("main", 6, 2), 55: ("main/dit", 7, 2), 56: ("main", 6, 2)})
    for log in logs:
        opened = sum(1 for mark in log.marks if not mark.flags & comm_reader.STAGE_END)
        same(2 * opened, len(log.marks), "each begin has its end")
    failed = [mark.stage for log in logs for mark in log.marks if mark.flags & FAILED]
    same(sorted(failed), ["dit", "request"])
    missing, = run.events("not_found")
    same(missing["target"], "stage_model:DiT.foward")
    assert "DiT.forward" in missing["near"], missing
    end, = run.events("collectives_end")
    same({name: stage["calls"] for name, stage in end["stages"].items()},
         {"request": 2, "dit": 7, "made": 1, "fixed": 2, "denoise": 2, "serve": 2, "stream": 1,
          "main": 2, "gone": 0})


LAZY = """
import types
start()
module = types.ModuleType("lazy_model")  # no import ever tells of it
exec("def forward(t):\\n import torch.distributed as d\\n d.all_reduce(t)", module.__dict__)
sys.modules["lazy_model"] = module
dist.all_reduce(torch.ones(1))
module.forward(torch.ones(2))
"""


def anchors_are_found_in_the_first_collective(tmp):
    run = Run(tmp, [("lazy", "lazy_model", "forward")], step="lazy")
    run.python(LAZY)
    same([(call.count, call.stage, call.step) for call in run.log().calls],
         [(1, "", 0), (2, "lazy", 1)])


OTHER = """
start()
import trap as t
for i in range(3):
    t.request(i)
dist.all_reduce(torch.ones(1000))
"""
TRAP = """
import torch, torch.distributed as dist
known = {}
def encode_prompt(n):
    if "same" not in known:
        dist.all_reduce(torch.ones(10))
        known["same"] = 1
def request(n):
    encode_prompt(n)
    dist.all_reduce(torch.ones(20))
"""


def other_and_cached_prompts_are_told(tmp):
    run = Run(tmp, [("request", "trap", "request"), ("text", "trap", "encode_prompt")],
              request="request")
    run.write("trap.py", TRAP)
    run.python(OTHER)
    other, = run.events("collectives_other")
    same((other["calls"], other["bytes"]), (1, 4000))
    assert abs(other["share"] - 4000 / 4280) < 1e-9, other
    once, = run.events("collectives_text_once")
    same((once["stage"], once["requests"], once["calls"], once["bytes"]), ("text", 3, 1, 40))
    lines = [line for line in run.done.stderr.splitlines() if line.startswith("npuprof: ")]
    same(len(lines), 2, lines)
    assert "93 % of" in lines[0] and "another prompt" in lines[1], lines
    run = Run(os.path.join(tmp, "quiet"), [("request", "trap", "request")], request="request")
    run.write("trap.py", TRAP)
    run.python(OTHER.replace("dist.all_reduce(torch.ones(1000))", ""))
    same((run.done.stderr, run.events("collectives_other")), ("", []))


DDP = """
start()
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(10, 3))
model(torch.ones(2, 10)).sum().backward()
dist.all_reduce(torch.ones(1))
"""


def what_ddp_sends_is_said_to_be_unseen(tmp):
    run = Run(tmp)
    run.python(DDP)
    same([call.count for call in run.log().calls], [1])
    unseen, = run.events("collectives_unseen")
    same((unseen["what"], unseen["bytes"]), ("DistributedDataParallel", 132))


REPLACED = """
import fake_npu_patches.torch_npu as torch_npu
start()
got = [torch.empty(3)]
dist.gather(torch.ones(3), got, dst=0)
dist.distributed_c10d.batch_isend_irecv
assert dist.gather.__module__.startswith("torch_npu")
def mine(tensor, extra, **more): dist.distributed_c10d.all_reduce(tensor)
dist.all_reduce = mine
for i in range(4): dist.all_reduce(torch.ones(5), "more")
"""
TORCH_NPU = """
import torch.distributed as dist
original = dist.distributed_c10d.gather
def _gather(tensor, gather_list=None, dst=0, group=None, async_op=False):
    return original(tensor, gather_list, dst, group, async_op)
_gather.__module__ = "torch_npu.distributed.distributed_c10d"
dist.gather = dist.distributed_c10d.gather = _gather
"""


def functions_that_torch_npu_replaces(tmp):
    run = Run(tmp)
    os.mkdir(os.path.join(tmp, "torch_npu"))
    run.write("torch_npu/__init__.py", TORCH_NPU)
    run.python(REPLACED.replace("fake_npu_patches.torch_npu", "torch_npu"))
    same([(call.op_name, call.count, call.recv_bytes) for call in run.log().calls],
         [("gather", 3, 12)] + [("all_reduce", 5, 20)] * 4)


NEWER = """
import newer_torch, torch_npu, newer_program
import torch.distributed._functional_collectives as fc
start()
print(json.dumps(newer_program.run(dist, fc, torch)))
"""


def newer_torch(tmp):
    """Functions that torch 1.13 lacks, as tests/fakes/python_newer_torch has them."""
    run = Run(tmp)
    run.write("torch_npu.py", "")  # once it is imported, functions are looked for again
    path = INJECT + ":" + os.path.join(FAKES, "python_newer_torch")
    out = run.python(NEWER, env={"PYTHONPATH": path})
    expected = json.loads(out)
    assert len(expected) >= 10
    got = [[call.op_name, call.count, call.tensor_bytes, call.recv_bytes, call.peer, call.flags,
            call.comm_name] for call in run.log().calls]
    for one, other in zip(got, expected):
        same(one, other)
    same(len(got), len(expected))


MARKS_C = """
#include <stdint.h>
#include <stdio.h>
void npuprof_comm_mark(const char *path, uint32_t step, uint32_t request)
{
	FILE *file = fopen("marks.txt", "a");
	if (file && fprintf(file, "%s %u %u\\n", path ? path : "-", step, request) > 0)
		fclose(file);
}
"""


def stages_reach_the_recorder_below(tmp):
    run = Run(tmp, STAGES[:2], step="dit", request="request")
    source, library = run.write("marks.c", MARKS_C), f"{tmp}/libnpuprof_collectives.so"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    except FileNotFoundError:
        raise Skip("no C compiler")
    run.write("stage_model.py", MODEL)
    run.python("start()\nimport stage_model as m\nm.request(1)\nm.DiT().forward(3)\n",
               env={"LD_PRELOAD": library})
    with open(os.path.join(tmp, "marks.txt")) as file:
        same(file.read().splitlines(), ["request 0 1", "request/dit 1 1", "request 1 1", "- 1 1",
                                        "dit 2 1", "- 2 1"])
    same(run.events("collectives")[0]["library"], True)


def by_npuprof_run(tmp):
    run = Run(tmp)
    run.write("trap.py", TRAP)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": tmp}
    done = subprocess.run(
        [recorder_lib.npuprof, "run", "--collectives", "--stage", "request=trap:request",
         "--stage", "text=trap:encode_prompt", "--out", f"{tmp}/runs", "--",
         recorder_lib.torch_python(), run.write("program.py", recorder_lib.START + OTHER)],
        env=environment, capture_output=True, text=True)
    if done.returncode == 2 and "run" in done.stderr and "unknown" in done.stderr:
        raise Skip("this npuprof has no run")
    same(done.returncode, 0, done.stdout + done.stderr)
    directory, = os.listdir(f"{tmp}/runs")
    log, = [log for log in comm_reader.read_dir(f"{tmp}/runs/{directory}/comm")
            if log.header.layer == 2]
    same([(call.stage_path, call.count, call.request) for call in log.calls],
         [("request/text", 10, 1), ("request", 20, 1), ("request", 20, 2), ("request", 20, 3),
          ("", 1000, 3)])
    assert "sent only in the first of 3 requests" in done.stderr + done.stdout, done.stderr


CASES = [every_op_on_4_ranks, names_bound_before_and_after, off_without_collectives,
         failures_are_the_users, stages_nest_and_unwind,
         anchors_are_found_in_the_first_collective, other_and_cached_prompts_are_told,
         what_ddp_sends_is_said_to_be_unseen, functions_that_torch_npu_replaces, newer_torch,
         stages_reach_the_recorder_below, by_npuprof_run]

if __name__ == "__main__":
    run_cases(__doc__, CASES)
