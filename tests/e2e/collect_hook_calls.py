#!/usr/bin/env python3
"""The injected hook around calls: kinds of functions, the window, ranks, failures, processes."""
import json
import os
import signal
import sys

from collect_lib import Suite
from hook_lib import MOD, OUT, SEVEN, Run, holds, plain, same


# ---- what is wrapped stays what it was ------------------------------------------------------------

def looks_the_same(tmp):
    """Signature, names, documentation, attributes, pickle, get_type_hints, source."""
    run = Run(tmp, {"mod.py": """
        from typing import List
        class Local: pass
        def f(a: int, b: "List[Local]" = None, *, c=3) -> "Local":
            "what f does"
            return a
        f.mark = 7
        """, "main.py": """
        import inspect, pickle, typing, mod
        f = mod.f
        assert str(inspect.signature(f)) == "(a: int, b: 'List[Local]' = None, *, c=3) -> 'Local'"
        assert (f.__name__, f.__qualname__, f.__module__, f.__doc__, f.mark) == (
            "f", "f", "mod", "what f does", 7)
        assert f.__wrapped__ is not f and inspect.unwrap(f) is f.__wrapped__
        assert pickle.loads(pickle.dumps(f)) is f
        assert typing.get_type_hints(f)["return"] is mod.Local
        assert "what f does" in inspect.getsource(f)
        assert f.__globals__ is mod.__dict__
        assert inspect.isfunction(f)
        """})
    run.run()
    run.one("wrapped")


def kinds(tmp):
    """Static and class methods, partials, inherited methods, objects, builtins."""
    run = Run(tmp, {"mod.py": """
        import functools
        class Base:
            def inherited(self): return ("inherited", type(self).__name__)
        class M(Base):
            @staticmethod
            def s(x): return ("s", x)
            @classmethod
            def c(cls, x): return (cls.__name__, x)
            def _p(self, x, y): return ("p", x, y)
            p = functools.partialmethod(_p, 1)
            def __call__(self): return "call"
        class Pipe:
            def __init__(self): self.inner = M()
        pipe = Pipe()
        part = functools.partial(lambda x, y: (x, y), 1)
        from math import sqrt
        """, "main.py": """
        import mod, functools, math
        class Sub(mod.M): pass
        for cls in (mod.M, Sub):
            m = cls()
            assert cls.s(1) == m.s(1) == ("s", 1)
            assert cls.c(2) == m.c(2) == (cls.__name__, 2)
            assert m.p(3) == ("p", 1, 3)
            assert m() == "call"
            assert m.inherited() == ("inherited", cls.__name__)
            assert isinstance(m, mod.Base)
        assert "wrapped" not in str(mod.Base.inherited.__dict__)
        assert isinstance(mod.M.__dict__["s"], staticmethod)
        assert type(mod.part) is functools.partial and mod.part.args == (1,) and mod.part(2) == (1, 2)
        assert mod.pipe.inner._p(1, 2) == ("p", 1, 2)
        assert mod.sqrt(4) == 2 and math.sqrt(4) == 2
        """}, ["mod:M.s", "mod:M.c", "mod:M.p", "mod:M.__call__", "mod:M.inherited", "mod:part",
               "mod:pipe.inner._p", "mod:sqrt"], call=99)
    run.run()
    same({one["target"][4:]: one["kind"] for one in run.events("wrapped")},
         {"M.s": "staticmethod", "M.c": "classmethod", "M.p": "method", "M.__call__": "method",
          "M.inherited": "method", "part": "function", "pipe.inner._p": "method",
          "sqrt": "function"}, "kinds")
    same({one["target"][4:]: one["calls"] for one in run.events("calls")},
         {"M.s": 4, "M.c": 4, "M.p": 2, "M.__call__": 2, "M.inherited": 2, "part": 1,
          "pipe.inner._p": 1, "sqrt": 1}, "calls")
    run.none("hook_failed", "not_found")


def refused(tmp):
    """What cannot be wrapped unchanged is left alone, and told with what to name instead."""
    run = Run(tmp, {"mod.py": """
        import functools
        class M:
            @property
            def forward(self): return 1
            def __call__(self): return 2
        @functools.lru_cache(None)
        def cached(): return 3
        model = M()
        number = 4
        """, "main.py": """
        import mod
        assert mod.M().forward == 1 and mod.model() == 2
        mod.cached.cache_clear(); assert mod.cached() == 3
        """}, ["mod:M", "mod:M.forward", "mod:cached", "mod:model", "mod:number"])
    run.run()
    reasons = {one["target"][4:]: one for one in run.events("not_found")}
    same(set(reasons), {"M", "M.forward", "cached", "model", "number"}, "refused")
    holds("class" in reasons["M"]["reason"], "a class")
    same(reasons["M"]["near"], ["M.__call__"], "near of a class")
    run.none("wrapped", "hook_failed")


def same_function_twice(tmp):
    """Two names of one function have one count, and one capture."""
    run = Run(tmp, {"mod.py": MOD, "alias.py": "from mod import f", "main.py": """
        import mod, alias
        for _ in range(3): mod.f(); alias.f()
        """}, ["mod:f", "alias:f"])
    run.run()
    run.profiled()
    same([one["calls"] for one in run.events("calls")], [6, 6], "calls")


def coroutine(tmp):
    """An async function stays one; another task in between does not disturb the window."""
    run = Run(tmp, {"mod.py": """
        import asyncio
        async def f(x):
            await asyncio.sleep(0.01)
            if x == 9: raise KeyError(x)
            return x
        """, "main.py": """
        import asyncio, inspect, mod
        assert inspect.iscoroutinefunction(mod.f) and asyncio.iscoroutinefunction(mod.f)
        async def main():
            assert await mod.f(1) == 1
            assert await asyncio.gather(*[mod.f(i) for i in range(6)]) == list(range(6))
            try:
                await mod.f(9)
            except KeyError as error:
                assert error.args == (9,)
        asyncio.run(main())
        """})
    run.run()
    run.profiled()
    same(run.one("calls")["calls"], 8, "calls")


def generators(tmp):
    """A generator stays one: send, throw, close and the value; one call is one iteration."""
    run = Run(tmp, {"mod.py": """
        log = []
        def f(n):
            try:
                got = yield 0
                while got is not None:
                    try:
                        got = yield got * 2
                    except ValueError:
                        got = yield "thrown"
                return "value"
            finally:
                log.append(n)
        """, "main.py": """
        import inspect, mod
        assert inspect.isgeneratorfunction(mod.f)
        for n in range(5):
            g = mod.f(n)
            assert next(g) == 0 and g.send(4) == 8 and g.throw(ValueError()) == "thrown"
            assert mod.log == list(range(n))
            if n % 2:
                g.close()
            else:
                try:
                    g.send(None)
                except StopIteration as end:
                    assert end.value == "value"
        assert mod.log == [0, 1, 2, 3, 4]
        """})
    run.run()
    run.profiled()
    same(run.one("calls")["calls"], 5, "calls")


def async_generators(tmp):
    """The same for an asynchronous generator."""
    run = Run(tmp, {"mod.py": """
        log = []
        async def f(n):
            try:
                got = yield 0
                while got is not None:
                    try:
                        got = yield got * 2
                    except ValueError:
                        got = yield "thrown"
            finally:
                log.append(n)
        """, "main.py": """
        import asyncio, inspect, mod
        assert inspect.isasyncgenfunction(mod.f)
        async def main():
            for n in range(5):
                g = mod.f(n)
                assert await g.__anext__() == 0 and await g.asend(4) == 8
                assert await g.athrow(ValueError()) == "thrown"
                if n % 2:
                    await g.aclose()
                else:
                    assert [x async for x in g] == []
            assert mod.log == [0, 1, 2, 3, 4]
        asyncio.run(main())
        """})
    run.run()
    run.profiled()


# ---- the window ---------------------------------------------------------------------------------

def active_window(tmp):
    """active calls in a row, one step each; recursion is one call of them."""
    run = Run(tmp, {"mod.py": "def f(n):\n    return f(n - 1) + 1 if n else 0\n", "main.py": """
        import mod
        assert [mod.f(i % 2) for i in range(12)] == [0, 1] * 6
        """}, active=3, call=4)
    run.run()
    run.profiled(call=4, steps=3)
    same(run.one("calls")["calls"], 18, "calls")


def exception_in_window(tmp):
    """A raising call is counted once, raises the same, and the window ends in good order."""
    run = Run(tmp, {"mod.py": """
        calls = []
        class Mine(Exception): pass
        def f(n):
            calls.append(n)
            if n == 3: raise Mine("three")
        """, "main.py": """
        import mod, traceback
        for n in range(8):
            try:
                mod.f(n)
            except mod.Mine as error:
                names = [one.name for one in traceback.extract_tb(error.__traceback__)]
                assert names[0] == "<module>" and names[-1] == "f", names
                assert error.__context__ is None and error.__cause__ is None
        assert mod.calls == list(range(8))
        """}, active=4)
    run.run()
    run.profiled(steps=2, early="Mine in the call")


def uncaught_exception(tmp):
    """The program dies of it as before; the capture is there."""
    run = Run(tmp, {"mod.py": "def f(n):\n    return 1 / (n - 2)\n", "main.py": """
        import mod
        for n in range(8): mod.f(n)
        """}, active=2)
    done = run.run(code=1)
    holds(done.stderr.rstrip().endswith("ZeroDivisionError: division by zero"), done.stderr)
    holds("return 1 / (n - 2)" in done.stderr, "the user's line")
    run.profiled(steps=1, early="ZeroDivisionError in the call")
    same(run.one("end")["exit"], "ZeroDivisionError", "exit")


def exit_in_window(tmp):
    """sys.exit, or too few calls: the window is drained at the exit."""
    for number, last in enumerate(("pass", "sys.exit(3)")):
        run = Run(os.path.join(tmp, str(number)), {"mod.py": MOD, "main.py": f"""
            import mod, sys
            for n in range(4): mod.f()
            {last}
            """}, active=5)
        run.run(code=3 if number else 0)
        run.profiled(steps=2, early="the process ends")


def exit_inside_call(tmp):
    """sys.exit inside of the profiled call."""
    run = Run(tmp, {"mod.py": "import sys\ndef f(n):\n    if n == 2: sys.exit(4)\n",
                    "main.py": SEVEN}, active=2)
    run.run(code=4)
    run.profiled(steps=1, early="SystemExit in the call")


def exit_of_a_daemon(tmp):
    """The program ends while a thread is inside of the profiled call."""
    run = Run(tmp, {"mod.py": """
        import threading
        inside, forever = threading.Event(), threading.Event()
        def f(n):
            if n == 2:
                inside.set()
                forever.wait()
        """, "main.py": """
        import mod, threading
        threading.Thread(target=lambda: [mod.f(n) for n in range(5)], daemon=True).start()
        mod.inside.wait()
        """}, active=2)
    run.run()
    run.profiled(steps=1, early="the process ends")


def interrupted(tmp):
    """Ctrl-C inside of the call comes to the program as it does without us."""
    run = Run(tmp, {"mod.py": """
        import os, signal
        def f(n):
            if n == 2: os.kill(os.getpid(), signal.SIGINT)
            return n
        """, "main.py": """
        import mod
        for n in range(5):
            try:
                assert mod.f(n) == n and n != 2
            except KeyboardInterrupt:
                assert n == 2
        """}, active=2)
    run.run()
    run.profiled(steps=1, early="KeyboardInterrupt in the call")


def call_at_exit(tmp):
    """Calls of the target by what the program does at its exit count as others."""
    run = Run(tmp, {"mod.py": MOD, "sitecustomize.py": """
        import atexit
        def last():
            import mod
            assert [mod.f(i) for i in range(5)] == [2, 3, 4, 5, 6]
            print("called")
        atexit.register(last)
        """, "main.py": "import mod"})
    holds(run.run().stdout.endswith("called\n"), "output")
    run.profiled()
    same(run.one("calls")["calls"], 5, "calls")


def killed(tmp):
    """os._exit and kill -9: what was told is complete, and there is no end."""
    for number, last in enumerate(("os._exit(0)", "os.kill(os.getpid(), 9)")):
        run = Run(os.path.join(tmp, str(number)), {"mod.py": MOD, "main.py": f"""
            import mod, os
            for n in range(3): mod.f()
            {last}
            """}, active=2)
        run.run(code=-signal.SIGKILL if number else 0)
        same([one["event"] for one in run.events()], ["start", "wrapped", "profiling"], "events")


def threads(tmp):
    """Many threads at once: each call happens once, one is profiled, the count is right."""
    run = Run(tmp, {"mod.py": """
        import threading
        lock, seen = threading.Lock(), []
        def f(n):
            with lock: seen.append(n)
            return n
        """, "main.py": """
        import mod, sys, threading
        sys.setswitchinterval(1e-5)
        def work(base):
            assert [mod.f(base + i) for i in range(500)] == list(range(base, base + 500))
        threads = [threading.Thread(target=work, args=(i * 500,)) for i in range(8)]
        for one in threads: one.start()
        for one in threads: one.join()
        assert sorted(mod.seen) == list(range(4000))
        """}, call=1000)
    run.run()
    end = run.one("profiled")
    holds(end["call"] >= 1000, "not before its call")
    run.profiled(call=end["call"])
    same(run.one("calls")["calls"], 4000, "calls")


def thread_per_request(tmp):
    """A window whose thread has ended is closed by the next call of another one."""
    run = Run(tmp, {"mod.py": MOD, "main.py": """
        import mod, threading
        for _ in range(6):
            thread = threading.Thread(target=mod.f); thread.start(); thread.join()
        """}, active=3)
    run.run()
    run.profiled(steps=1, early="the thread that was recorded has ended")


def phases(tmp):
    """Only calls of the wanted phase are counted."""
    files = {"mod.py": """
        class T:
            def __init__(self, *shape): self.shape = shape
        def f(ids=None, **more): return ids
        """, "main.py": """
        import mod
        for request in range(3):
            mod.f(mod.T(1, 17))
            for _ in range(4): mod.f(input_ids=mod.T(1, 1))
        mod.f(); mod.f(mod.T(5)); mod.f(mod.T(1)); mod.f(mod.T())
        """}
    for phase, count in (("prefill", 4), ("decode", 13)):
        run = Run(os.path.join(tmp, phase), files, phase=phase)
        run.run()
        run.profiled()
        calls = run.one("calls")
        same((calls["calls"], calls["phase"], calls["phase_calls"]), (19, phase, count), "calls")


# ---- profiler, ranks, failures --------------------------------------------------------------------

def no_torch_npu(tmp):
    """Without torch_npu the program runs through, and both places say why."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN})
    done = run.run(npu=False)
    same(done.stdout, OUT, "output")
    holds("torch_npu" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr)
    run.one("no_torch_npu")
    same(run.one("calls")["calls"], 7, "calls")


def broken_torch_npu(tmp):
    """A profiler that raises costs the capture, not the program."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN, "torch_npu/__init__.py": "",
                    "torch_npu/profiler.py": ""})
    with open(os.path.join(run.src, "torch_npu/__init__.py"), "w") as out:
        out.write("from . import profiler\n")
    done = run.run(npu=False)
    same(done.stdout, OUT, "output")
    failed = run.one("hook_failed")
    holds("ProfilerLevel" in failed["error"] and "Traceback" in failed["traceback"], failed)
    holds("the program goes on" in done.stderr, done.stderr)


def msprof_env(tmp):
    """A profiler that msprof switches off writes nothing, which is a failure that says why."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN})
    holds(run.run(PROFILER_SAMPLECONFIG="x").stdout.endswith(OUT), "output")
    holds("PROFILER_SAMPLECONFIG is set" in run.one("hook_failed")["error"], "reason")
    run.none("profiled")


def ranks(tmp):
    """A rank that is not chosen says so once; null is all; no RANK is rank 0."""
    for number, (chosen, rank, done) in enumerate((([0], "1", False), ([1], "1", True),
                                                   (None, "3", True), ([0], None, True),
                                                   ([1], None, False))):
        run = Run(os.path.join(tmp, str(number)), {"mod.py": MOD, "main.py": SEVEN}, ranks=chosen)
        plain(run, RANK=rank)
        if done:
            same(run.profiled()["rank"], None if rank is None else int(rank), "rank")
        else:
            run.one("skipped_rank")
            run.none("profiling")
        same(run.one("calls")["calls"], 7, "calls")


def settings(tmp):
    """What inject.json asks for is what the profiler gets."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN}, level="Level2", aic_metrics="Memory",
              with_stack=True, profile_memory=True, record_shapes=False,
              export_type=["text", "db"], active=2)
    plain(run)
    end = run.profiled(steps=2)
    name = [one for one in os.listdir(end["dir"]) if one.startswith("profiler_info")][0]
    with open(os.path.join(end["dir"], name)) as text:
        config = json.load(text)["config"]
    common, extra = config["common_config"], config["experimental_config"]
    same((common["with_stack"], common["profile_memory"], common["record_shapes"]),
         (True, True, False), "flags")
    same(sorted(common["activities"]), ["ProfilerActivity.CPU", "ProfilerActivity.NPU"], "who")
    same(common["schedule"], {"wait": 0, "warmup": 0, "active": 2, "repeat": 1, "skip_first": 0},
         "schedule")
    same((extra["_profiler_level"], extra["_aic_metrics"], extra["_export_type"]),
         ("Level2", "ACL_AICORE_MEMORY_BANDWIDTH", ["text", "db"]), "experimental")
    holds(not os.path.exists(os.path.join(end["dir"], "ASCEND_PROFILER_OUTPUT")), "not parsed")


def never_reached(tmp):
    """Missing names come with near ones; overridden methods and absent modules are told."""
    run = Run(tmp, {"mod.py": """
        class DiT:
            def forward(self): return 1
            class Block:
                def forward(self): return 2
        """, "my_model/__init__.py": "", "my_model/dit.py": "", "main.py": """
        import mod, my_model.dit
        class Mine(mod.DiT):
            def forward(self): return 3
        for _ in range(5): Mine().forward()
        """}, ["mod:Dit.forward", "mod:DiT.forward", "mymodel.dit:f"])
    run.run()
    missing = {one["target"]: one for one in run.events("not_found")}
    same(missing["mod:Dit.forward"]["near"][0], "DiT.forward", "near")
    holds("DiT.Block.forward" in missing["mod:Dit.forward"]["near"], "nested")
    same(missing["mymodel.dit:f"]["near"][0], "my_model.dit", "near modules")
    calls = run.one("calls", target="mod:DiT.forward")
    same((calls["calls"], calls["overridden_by"]), (0, ["__main__:Mine.forward"]), "overrides")


def replaced(tmp):
    """Another patch over ours is told."""
    run = Run(tmp, {"mod.py": "class M:\n    def forward(self): return 1\n", "main.py": """
        import mod
        mod.M.forward = lambda self: 2
        for _ in range(5): assert mod.M().forward() == 2
        """}, ["mod:M.forward"])
    run.run()
    same(run.one("calls")["replaced"], True, "replaced")


# ---- processes ------------------------------------------------------------------------------------

def forked(tmp):
    """Children of os.fork count for themselves; those that call nothing say nothing."""
    run = Run(tmp, {"mod.py": MOD, "main.py": """
        import mod, os, subprocess, sys
        mod.f(); mod.f()
        for calls in (0, 2, 4):
            pid = os.fork()
            if pid == 0:
                for _ in range(calls): mod.f()
                sys.exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        subprocess.run([sys.executable, "-S", "-c", ""], preexec_fn=lambda: None)
        """})
    run.run()
    end = run.profiled()
    holds(end["pid"] != run.one("start", method="exec")["pid"], "a child's third call")
    same(len(run.events("start")), 3, "processes")
    same(sorted(one["calls"] for one in run.events("calls")), [2, 2, 4], "calls")


def fork_in_window(tmp):
    """A child that is forked in the middle leaves its parent's profiler alone."""
    run = Run(tmp, {"mod.py": MOD, "main.py": """
        import mod, os, sys
        for _ in range(3): mod.f()
        pid = os.fork()
        if pid == 0:
            mod.f()
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        mod.f()
        """}, active=2)
    run.run()
    run.profiled(steps=2)


def multiprocessing_methods(tmp):
    """fork, spawn and forkserver: the function runs in the child, as __main__'s too."""
    for method in ("fork", "spawn", "forkserver"):
        run = Run(os.path.join(tmp, method), {"main.py": f"""
            import multiprocessing
            def work(n):
                return n
            def child():
                for n in range(5): work(n)
            if __name__ == "__main__":
                context = multiprocessing.get_context("{method}")
                process = context.Process(target=child)
                process.start(); process.join()
                assert process.exitcode == 0
            """}, ["__main__:work"])
        run.run()
        end = run.profiled()
        same(run.one("calls", pid=end["pid"])["calls"], 5, method)
        same(run.one("start", pid=end["pid"])["method"],
             {"fork": "fork", "spawn": "spawn", "forkserver": "fork"}[method], "method")
        run.one("end", pid=end["pid"])


def multiprocessing_exit(tmp):
    """A child of multiprocessing that ends in the window drains it."""
    for method in ("fork", "spawn"):
        run = Run(os.path.join(tmp, method), {"mod.py": MOD, "main.py": f"""
            import multiprocessing, mod
            def child():
                for n in range(3): mod.f()
            if __name__ == "__main__":
                process = multiprocessing.get_context("{method}").Process(target=child)
                process.start(); process.join()
                assert process.exitcode == 0
            """}, active=2)
        run.run()
        run.profiled(steps=1, early="the process ends")


def wrappers(tmp):
    """Through sh -c, exec, env and nohup-like shells."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN, "start.sh": "exec python3 main.py\n"})
    env = run.env()
    env["PATH"] = os.path.dirname(run.python) + os.pathsep + env["PATH"]
    done = run.command(["sh", "-c", "cd . && sh start.sh 2>&1 | cat"], env=env)
    holds(done.stdout.endswith(OUT), done.stdout)
    run.profiled()


def closed_descriptors(tmp):
    """A program that closes all its descriptors, or its stderr, loses no event."""
    run = Run(tmp, {"mod.py": MOD, "main.py": """
        import mod, os
        os.closerange(0, 64)
        for _ in range(5): mod.f()
        """})
    run.run(npu=False)
    run.one("no_torch_npu")
    same(run.one("calls")["calls"], 5, "calls")


def broken_collectives(tmp):
    """A recorder that cannot be installed is an event."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN}, collectives={"dir": 5})
    holds(run.run().stdout.endswith(OUT), "output")
    holds(run.events("hook_failed"), "told")
    run.one("profiled")


def interactive(tmp):
    """A program from stdin."""
    run = Run(tmp, {"mod.py": MOD})
    done = run.command([run.python, "-"], stdin="import mod\nfor _ in range(5): mod.f()\n")
    same(done.stderr, "", "stderr")
    run.profiled()


CASES = [looks_the_same, kinds, refused, same_function_twice, coroutine, generators,
         async_generators, active_window, exception_in_window, uncaught_exception, exit_in_window,
         exit_inside_call, exit_of_a_daemon, interrupted, call_at_exit, killed, threads,
         thread_per_request, phases, no_torch_npu,
         broken_torch_npu, msprof_env, ranks, settings, never_reached, replaced, forked,
         fork_in_window, multiprocessing_methods, multiprocessing_exit, wrappers,
         closed_descriptors, broken_collectives, interactive]


if __name__ == "__main__":
    suite = Suite(__doc__)
    for case in CASES:
        suite.run(case.__name__, case)
    sys.exit(suite.finish())
