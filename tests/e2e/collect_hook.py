#!/usr/bin/env python3
"""The injected hook in programs without torch: start-up, imports, wrapping, the window."""
import os
import signal
import sys
import zipfile

from collect_lib import Suite
from hook_lib import PACKAGE, Run, holds, is_python38, same

MOD = """
    def f(x=1, *, y=2):
        "what f does"
        return x + y
    """
SEVEN = """
    import mod
    print([mod.f(i) for i in range(7)])
    """
OUT = "[2, 3, 4, 5, 6, 7, 8]\n"


def plain(run, **how):
    """The usual program: seven calls, and the third one is profiled."""
    same(run.run(**how).stdout.splitlines()[-1] + "\n", OUT, "output")


# ---- start-up -----------------------------------------------------------------------------------

def syntax(_):
    """Everything is Python 3.8."""
    count = 0
    for folder, _, names in os.walk(PACKAGE):
        for name in names:
            if name.endswith(".py"):
                is_python38(os.path.join(folder, name))
                count += 1
    holds(count > 8, "files found")


def third_call(tmp):
    """Call warmup + 1 is profiled, all others pass, and everything is told."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN})
    plain(run)
    run.profiled()
    same([one["event"] for one in run.events()],
         ["start", "wrapped", "profiling", "profiled", "calls", "end"], "events")
    same(run.one("start")["method"], "exec", "method")
    same(run.one("start")["argv"], ["main.py"], "argv")
    same(run.one("wrapped")["kind"], "function", "kind")
    same(run.one("calls")["calls"], 7, "calls")
    same(run.one("end")["exit"], None, "exit")


def not_asked(tmp):
    """Without NPUPROF_INJECT, or with NPUPROF_INJECT_OFF, nothing is imported or written."""
    run = Run(tmp, {"mod.py": MOD, "main.py": """
        import sys, mod
        assert not [name for name in sys.modules if name.startswith("npuprof")]
        assert [type(one).__name__ for one in sys.meta_path].count("_Finder") == 0
        """})
    run.run(NPUPROF_INJECT=None)
    run.run(NPUPROF_INJECT="")
    run.run(NPUPROF_INJECT_OFF="1")
    same(run.events(), [], "events")


def no_site(tmp):
    """-S, -I and -E cannot be hooked, and work."""
    run = Run(tmp, {"main.py": "print('fine')"})
    for flag in ("-S", "-I", "-E"):
        same(run.run(flag, "main.py").stdout, "fine\n", flag)
    same(run.events(), [], "events")


def bad_config(tmp):
    """An inject.json that is missing, broken or from another version is one line on stderr."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN})
    for text in (None, "{", '{"version": 7}', '{"version": 1}'):
        if text is None:
            os.unlink(run.json)
        else:
            with open(run.json, "w") as out:
                out.write(text)
        done = run.run()
        same(done.stdout, OUT, "output")
        same(len(done.stderr.splitlines()), 1, done.stderr)
        holds(done.stderr.startswith("npuprof: not active in process"), done.stderr)
    same(run.events(), [], "events")


def unwritable_events(tmp):
    """A directory of events that is not there changes nothing for the program."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN}, events_dir=os.path.join(tmp, "no", "no"))
    done = run.run()
    holds(done.stdout.endswith(OUT), done.stdout)
    same(done.stderr, "", "stderr")
    same(len(run.dumps()), 1, "dumps")


def chained_sitecustomize(tmp):
    """The sitecustomize that was there runs, as `sitecustomize`, and so does usercustomize."""
    files = {"mod.py": MOD, "sitecustomize.py": "WHO = 'user'; print(__name__, __spec__.name)",
             "main.py": SEVEN.replace("import mod", """
    import mod, sitecustomize, importlib
    assert sitecustomize.WHO == 'user'
    assert importlib.reload(sitecustomize).WHO == 'user'""")}
    run = Run(tmp, files)
    out = run.run().stdout.splitlines()
    same(out[:2], ["sitecustomize sitecustomize"] * 2, "sitecustomize ran at start and on reload")
    same(out[-1] + "\n", OUT, "output")
    run.profiled()


def raising_sitecustomize(tmp):
    """One that raises is told by Python as without us, and the hook is active all the same."""
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN, "sitecustomize.py": "1 / 0"})
    without = run.run(NPUPROF_INJECT=None).stderr
    bare = run.run(PYTHONPATH=run.src, NPUPROF_INJECT=None).stderr
    same(without, bare, "what Python says")
    holds("ZeroDivisionError" in without, without)
    same(run.run().stderr, bare, "stderr with the hook")
    run.profiled()


def exiting_sitecustomize(tmp):
    """One that ends the process does, with what Python says to that."""
    run = Run(tmp, {"main.py": "print('never')", "sitecustomize.py": "raise SystemExit(5)"})
    bare = run.run(PYTHONPATH=run.src, code=1)
    done = run.run(code=1)
    same((done.stdout, done.stderr.splitlines()[-1]), (bare.stdout, "SystemExit: 5"), "output")


def shadows_nothing(tmp):
    """Our directory holds two names, comes twice without harm, and is there for children."""
    names = {name for name in os.listdir(PACKAGE) if not name.startswith("__pycache__")}
    same(names, {"sitecustomize.py", "npuprof_inject"}, "names")
    run = Run(tmp, {"mod.py": MOD, "main.py": SEVEN})
    env = run.env()
    env["PYTHONPATH"] = PACKAGE + os.pathsep + PACKAGE + "/" + os.pathsep + env["PYTHONPATH"]
    same(run.run(env=env).stdout.splitlines()[-1] + "\n", OUT, "output")
    run.profiled()


# ---- imports ------------------------------------------------------------------------------------

def reexported(tmp):
    """pkg:Model.forward, defined in pkg.impl."""
    run = Run(tmp, {"pkg/__init__.py": "from .impl import Model", "pkg/impl.py": """
        class Model:
            def forward(self): return 1
        """, "main.py": """
        from pkg.impl import Model
        for _ in range(5): Model().forward()
        """}, ["pkg:Model.forward"])
    run.run()
    run.profiled()


def circular(tmp):
    """A function taken by `from … import` while its module was still being imported."""
    run = Run(tmp, {"a.py": """
        def f(): return 1
        import b
        """, "b.py": """
        from a import f
        def g(): return f()
        """, "main.py": """
        import a, b
        assert a.f is b.f
        for _ in range(5): b.g()
        """}, ["a:f"])
    run.run()
    run.profiled()
    same(run.one("calls")["calls"], 5, "calls")


def reloaded(tmp):
    """importlib.reload makes a new function: wrapped again, counted on."""
    run = Run(tmp, {"mod.py": MOD, "main.py": """
        import mod, importlib
        mod.f(); mod.f()
        spec, loader = mod.__spec__, mod.__loader__
        importlib.reload(mod)
        assert type(mod.__loader__) is type(loader) and type(mod.__spec__.loader) is type(loader)
        mod.f(); mod.f()
        """})
    run.run()
    run.profiled()
    same(len(run.events("wrapped")), 2, "wrapped")
    same(run.one("calls")["calls"], 4, "calls")


def lazy_import(tmp):
    """Imported inside a function, in a thread."""
    run = Run(tmp, {"mod.py": MOD, "main.py": """
        import threading
        def work():
            import mod
            for _ in range(5): mod.f()
        thread = threading.Thread(target=work); thread.start(); thread.join()
        """})
    run.run()
    run.profiled()


def zip_and_namespace(tmp):
    """From a zip file, and from a package without __init__.py."""
    run = Run(tmp, {"space/sub/mod.py": MOD, "main.py": """
        import sys; sys.path.insert(0, "lib.zip")
        import zipped, space.sub.mod as mod
        import pkgutil; assert pkgutil.get_data("zipped", "zipped.py")
        assert "zip" in type(zipped.__loader__).__name__
        for _ in range(5): zipped.f()
        for _ in range(5): mod.f()
        """}, ["zipped:f", "space.sub.mod:f"])
    with zipfile.ZipFile(os.path.join(run.src, "lib.zip"), "w") as out:
        out.writestr("zipped.py", "def f(): return 1\n")
    run.run()
    run.profiled(target="zipped:f")
    same([one["calls"] for one in run.events("calls")], [5, 5], "calls")


def lazy_getattr(tmp):
    """A module's __getattr__ is not called by us, and what it makes is wrapped."""
    run = Run(tmp, {"mod.py": """
        asked = []
        def __getattr__(name):
            if name.startswith("__"): raise AttributeError(name)
            asked.append(name)
            import impl
            return getattr(impl, name)
        """, "impl.py": "class M:\n    def forward(self): return 1\n", "main.py": """
        import mod, sys
        assert mod.asked == [] and "impl" not in sys.modules
        for _ in range(5): mod.M().forward()
        """}, ["mod:M.forward"])
    run.run()
    run.profiled()
    holds(run.one("not_found")["time"] <= run.one("wrapped")["time"], "first told as missing")


def set_later(tmp):
    """A class that is assigned after the import is found at a later one."""
    run = Run(tmp, {"mod.py": "", "other.py": "", "main.py": """
        import mod
        class M:
            def forward(self): return 1
        mod.M = M
        import other
        for _ in range(5): M().forward()
        """}, ["mod:M.forward"])
    run.run()
    run.profiled()
    same(len(run.events("not_found")), 1, "not_found")


def foreign_finder(tmp):
    """A module that came by a finder in front of ours, and one that was there before."""
    run = Run(tmp, {"mod.py": MOD, "other.py": "", "main.py": """
        import sys, importlib.machinery
        class First:
            @staticmethod
            def find_spec(name, path=None, target=None):
                return importlib.machinery.PathFinder.find_spec(name, path) if name == "mod" else None
        sys.meta_path.insert(0, First)
        import mod
        import other
        for _ in range(5): mod.f()
        """})
    run.run()
    run.profiled()


def import_fails(tmp):
    """A target's module that raises does so unchanged, and may succeed later."""
    run = Run(tmp, {"mod.py": """
        import sys
        if not hasattr(sys, "again"):
            raise RuntimeError("not yet")
        def f(): return 1
        """, "main.py": """
        import sys
        try:
            import mod
        except RuntimeError as error:
            assert error.__traceback__.tb_next is not None
        assert "mod" not in sys.modules
        sys.again = 1
        import mod
        for _ in range(5): mod.f()
        """})
    run.run()
    run.profiled()


# ---- the program itself -------------------------------------------------------------------------

MAIN = """
    {head}
    class Model:
        class Inner:
            def forward(self):
                return 1
    def train(n):
        return n
    if __name__ == "__main__":
        import sys
        assert sys.gettrace() is None
        for i in range(5): train(i)
        for i in range(5): Model.Inner().forward()
    """


def main_function(tmp):
    """python main.py, function and method; by __main__ and by the name of the file."""
    for number, target in enumerate(("__main__:train", "main:train", "__main__:Model.Inner.forward")):
        run = Run(os.path.join(tmp, str(number)), {"main.py": MAIN.format(head="import json")},
                  [target])
        run.run()
        run.profiled(target=target)
        same(run.one("calls")["calls"], 5, "calls")


def main_module(tmp):
    """python -m pkg.train, python -m pkg, python -c, and a program from stdin."""
    files = {"pkg/__init__.py": "", "pkg/train.py": MAIN.format(head=""),
             "pkg/__main__.py": MAIN.format(head="")}
    for number, (words, target) in enumerate((
            (("-m", "pkg.train"), "pkg.train:train"), (("-m", "pkg.train"), "__main__:train"),
            (("-m", "pkg"), "pkg.__main__:train"), (("-c", "def train(): pass\nfor _ in range(4): "
                                                     "train()"), "__main__:train"))):
        run = Run(os.path.join(tmp, str(number)), files, [target])
        run.run(*words)
        run.profiled(target=target)


def main_is_not_imported_module(tmp):
    """A module of the same name as a function of the program is not confused with it."""
    run = Run(tmp, {"mod.py": MOD, "main.py": """
        def f(x): return x
        import mod
        for i in range(9): f(i)
        for i in range(4): mod.f()
        """})
    run.run()
    run.profiled()
    same(run.one("calls")["calls"], 4, "calls")


def main_missing(tmp):
    """A name that the program does not define is told, with what comes near, and no trace stays."""
    run = Run(tmp, {"main.py": MAIN.format(head="")}, ["__main__:trian", "__main__:Model.forward"])
    run.run()
    events = {one["target"]: one for one in run.events("not_found")}
    same(events["__main__:trian"]["near"], ["train"], "near")
    same(events["__main__:Model.forward"]["near"], ["Model.Inner.forward"], "near")
    run.none("profiled", "hook_failed", "wrapped")


def under_a_debugger(tmp):
    """Somebody else's trace function stays."""
    run = Run(tmp, {"main.py": "import sys\nassert sys.gettrace().__name__ == 'mine'\n",
                    "sitecustomize.py": """
        import sys
        def mine(*args): return None
        sys.settrace(mine)
        """}, ["__main__:train"])
    run.run()
    run.none("hook_failed")


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
    import json
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


CASES = [
    syntax, third_call, not_asked, no_site, bad_config, unwritable_events, chained_sitecustomize,
    raising_sitecustomize, exiting_sitecustomize, shadows_nothing, reexported, circular, reloaded,
    lazy_import, zip_and_namespace, lazy_getattr, set_later, foreign_finder, import_fails,
    main_function, main_module, main_is_not_imported_module, main_missing, under_a_debugger,
    looks_the_same, kinds, refused, same_function_twice, coroutine, generators, async_generators,
    active_window, exception_in_window, uncaught_exception, exit_in_window, exit_inside_call,
    killed, threads, thread_per_request, phases, no_torch_npu, broken_torch_npu, msprof_env, ranks,
    settings, never_reached, replaced, forked, fork_in_window, multiprocessing_methods,
    multiprocessing_exit, wrappers, closed_descriptors, broken_collectives, interactive]


if __name__ == "__main__":
    suite = Suite(__doc__)
    for case in CASES:
        suite.run(case.__name__, case)
    sys.exit(suite.finish())
