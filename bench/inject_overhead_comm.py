#!/usr/bin/env python3
"""What does the recorder of collectives cost a call?

    bench/inject_overhead_comm.py [--calls N]

Runs gloo with one rank, where a collective has nothing to wait for, in processes of its own:
without the recorder, and with it. The fastest 100 of N calls in a
row count; gloo's threads make the rest vary. A call that does nothing leaves the recorder alone.
Prints nanoseconds per call, and the ratio. Needs a Python with torch (Debian: python3-torch).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
INJECT = os.path.join(os.path.dirname(HERE), "inject", "python")

PROGRAM = r"""
import json, os, sys, time
import torch
import torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
calls = int(sys.argv[1])
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
one, big = torch.ones(1), torch.ones(256, 1024)
parts = [torch.ones(1)]
import npuprof_bench_model
cases = {
    "all_reduce 4 B": lambda: dist.all_reduce(one),
    "all_reduce 1 MiB": lambda: dist.all_reduce(big),
    "all_gather 4 B": lambda: dist.all_gather(parts, one),
    "all_gather 4 B, in a stage of its own": lambda: npuprof_bench_model.forward(
        lambda: dist.all_gather(parts, one)),
}
empty = npuprof_bench_model.forward
cases["a stage around nothing"] = lambda: empty(int)
cases["a call that does nothing"] = lambda: None
if "npuprof_inject" in sys.modules:
    recorder = sys.modules["npuprof_inject.collectives"]._installed.recorder
    hook = recorder.hook(lambda *args, **kwargs: None, recorder.ops.all_reduce)
    cases["a call that does nothing"] = lambda: hook((one,), {})
result = {}
for name, case in cases.items():
    best = None
    for _ in range(calls // 100):
        begin = time.perf_counter_ns()
        for _ in range(100):
            case()
        took = (time.perf_counter_ns() - begin) / 100
        best = took if best is None else min(best, took)
    result[name] = best
print(json.dumps(result))
"""
MODEL = "def forward(function):\n    return function()\n"


def measure(python, calls, recorded):
    with tempfile.TemporaryDirectory(prefix="npuprof-bench-") as tmp:
        for name in ("comm", "events"):
            os.mkdir(os.path.join(tmp, name))
        with open(os.path.join(tmp, "npuprof_bench_model.py"), "w") as file:
            file.write(MODEL)
        config = {"version": 1, "run_dir": tmp, "prof_dir": tmp, "targets": [],
                  "events_dir": os.path.join(tmp, "events"),
                  "collectives": {"dir": os.path.join(tmp, "comm"), "capacity": 1 << 18,
                                  "step": "m", "request": None,
                                  "stages": [{"name": "m", "module": "npuprof_bench_model",
                                              "qualname": "forward"}]}}
        path = os.path.join(tmp, "inject.json")
        with open(path, "w") as file:
            json.dump(config, file)
        environment = {**os.environ, "PYTHONPATH": INJECT + ":" + tmp, "OMP_NUM_THREADS": "1"}
        environment.pop("NPUPROF_INJECT", None)
        if recorded:
            environment["NPUPROF_INJECT"] = path
        done = subprocess.run([python, "-c", PROGRAM, str(calls)], env=environment, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default="/usr/bin/python3" if os.path.exists(
        "/usr/bin/python3") else sys.executable)
    options = parser.parse_args()
    bare, recorded = {}, {}
    for _ in range(options.rounds):  # alternating, as the machine's speed changes
        for best, hooked in ((bare, False), (recorded, True)):
            for name, took in measure(options.python, options.calls, hooked).items():
                best[name] = min(best.get(name, took), took)
    print(f"{'call':<40} {'bare ns':>10} {'recorded':>10} {'more':>8} {'ratio':>6}")
    for name, before in bare.items():
        after = recorded[name]
        print(f"{name:<40} {before:>10.0f} {after:>10.0f} {after - before:>8.0f} "
              f"{after / before:>6.2f}")


if __name__ == "__main__":
    main()
