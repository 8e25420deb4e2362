#!/usr/bin/env python3
"""What a wrapped call costs more than the same call without the hook: before, and after the capture.

    bench/inject_overhead.py [--calls N]

Prints nanoseconds per call, the difference, and the ratio to a call of an empty method; then what the
start of a Python costs. Each figure is the least of several rounds, which alternate.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import timeit

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGE = os.path.join(SOURCE, "inject", "python")
CLASSES = """
class Model:
    def forward(self, x, scale=1.0):
        return x
    @staticmethod
    def static(x):
        return x
    async def coroutine(self, x):
        return x
class Plain(Model):
    forward = Model.forward
    static = staticmethod(Model.static)
    coroutine = Model.coroutine
def function(x):
    return x
def plain_function(x):
    return x
"""


def drive(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value


def measure(calls, statements, names):
    best = {}
    for _ in range(9):
        for name, statement in statements.items():
            seconds = timeit.timeit(statement, globals=names, number=calls)
            best[name] = min(best.get(name, 1e9), seconds / calls * 1e9)
    return best


def child(calls):
    """Runs with the hook active."""
    import target_module
    model, plain = target_module.Model(), target_module.Plain()
    names = {"model": model, "plain": plain, "drive": drive, "module": target_module}
    pairs = {"method": ("plain.forward(1, scale=2.0)", "model.forward(1, scale=2.0)"),
             "function": ("module.plain_function(1)", "module.function(1)"),
             "coroutine": ("drive(plain.coroutine(1))", "drive(model.coroutine(1))")}
    statements = {}
    for name, (without, with_hook) in pairs.items():
        statements[name, 0], statements[name, 1] = without, with_hook
    before = measure(calls, statements, names)
    from npuprof_inject import step
    step._retire()  # as after a capture
    after = measure(calls, statements, names)
    print(json.dumps([[name, before[name, 0], before[name, 1], after[name, 1]] for name in pairs]))


def start_up(env, rounds=15):
    best = {}
    for _ in range(rounds):
        for name, more in (("without", {"PYTHONPATH": ""}), ("not asked", {}),
                           ("active", {"NPUPROF_INJECT": env["NPUPROF_INJECT"]})):
            words = {**env, "NPUPROF_INJECT": "", **more}
            begin = time.perf_counter()
            subprocess.run([sys.executable, "-c", "pass"], env=words, check=True)
            best[name] = min(best.get(name, 1e9), time.perf_counter() - begin)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200000)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.calls)
    with tempfile.TemporaryDirectory() as tmp:
        with open(os.path.join(tmp, "target_module.py"), "w") as out:
            out.write(CLASSES)
        package = os.path.join(tmp, "package")  # with a cache of bytecode, as in a run
        shutil.copytree(PACKAGE, package)
        path = os.path.join(tmp, "inject.json")
        with open(path, "w") as out:
            json.dump({"version": 1, "run_dir": tmp, "prof_dir": tmp, "events_dir": tmp,
                       "call": 10**12, "targets": [
                           {"module": "target_module", "qualname": name} for name in (
                               "Model.forward", "Model.coroutine", "function")]}, out)
        env = {**os.environ, "NPUPROF_INJECT": path,
               "PYTHONPATH": os.pathsep.join([package, tmp])}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run([sys.executable, __file__, "--child", "--calls", str(options.calls)],
                              env=env, check=True, capture_output=True, text=True)
        print("ns per call        plain   wrapped   + before   + after    ratio")
        for name, plain, before, after in json.loads(done.stdout):
            print("%-16s %7.0f %9.0f %10.0f %9.0f %8.2f" % (
                name, plain, before, before - plain, after - plain, before / plain))
        best = start_up(env)
        print("start of Python  %.1f ms; not asked: + %.1f ms; active: + %.1f ms" % (
            best["without"] * 1e3, (best["not asked"] - best["without"]) * 1e3,
            (best["active"] - best["without"]) * 1e3))
    return None


if __name__ == "__main__":
    sys.exit(main())
