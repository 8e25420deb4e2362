#!/usr/bin/env python3
"""The injected hook in programs without torch: start-up, imports, the program itself."""
import os
import shutil
import sys
import zipfile

from collect_lib import Suite
from hook_lib import MOD, OUT, PACKAGE, SEVEN, Run, holds, is_python38, plain, same


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
    run.one("start")
    run.one("wrapped")
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
    another = os.path.join(tmp, "another")  # a run inside of a run
    shutil.copytree(PACKAGE, another)
    env["PYTHONPATH"] = os.pathsep.join([PACKAGE, another, PACKAGE + "/", env["PYTHONPATH"]])
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


def lazy_module(tmp):
    """The same for a module object with a class of its own, as diffusers has; a function, too."""
    files = {"pkg/__init__.py": """
        import sys, types, importlib
        class Lazy(types.ModuleType):
            def __getattr__(self, name):
                if name not in ("M", "g"):
                    raise AttributeError(f"no {name}")
                value = getattr(importlib.import_module("pkg.impl"), name)
                setattr(self, name, value)
                return value
        lazy = Lazy(__name__)
        lazy.__path__, lazy.__spec__, lazy.__file__ = __path__, __spec__, __file__
        sys.modules[__name__] = lazy
        """, "pkg/impl.py": """
        class M:
            def forward(self): return 1
        def g(): return 2
        """, "main.py": """
        import pkg, sys
        assert "pkg.impl" not in sys.modules
        try:
            pkg.nothing
        except AttributeError as error:
            assert str(error) == "no nothing"
        from pkg import M, g
        assert M is pkg.M and g is pkg.g
        for _ in range(5): M().forward(); assert g() == 2
        """}
    for number, target in enumerate(("pkg:M.forward", "pkg:g")):
        run = Run(os.path.join(tmp, str(number)), files, [target])
        run.run()
        run.profiled()
        same(run.one("calls")["calls"], 5, "calls")


def own_json(tmp):
    """The JSON of light.py is that of json, whatever the value; and so are its errors."""
    run = Run(tmp, {"main.py": r"""
        import json, math
        from npuprof_inject import light
        values = [None, True, False, 0, -7, 10**30, 0.1, -1.5e300, "", "a\u00e9\U0001f600\n\"\\",
                  "\ud800", [], {}, [1, [2, {"a": [None]}]], {"b": {"c": "d"}}, "\x00\x1f"]
        for value in values:
            text = json.dumps(value)
            assert light.dumps(value) == text, value
            assert light.loads(text) == value and light.loads(" \n" + text + " ") == value
            assert type(light.loads(text)) is type(value)
        assert json.loads(light.dumps({"x": math.inf, "y": {3}, "z": (1,), 4: object})) == {
            "x": "inf", "y": [3], "z": [1], "4": str(object)}
        for text in ("", "{", "[1,]", "{} {}", "nul", "'a'"):
            try:
                light.loads(text)
            except json.JSONDecodeError:
                continue
            raise AssertionError(text)
        """})
    run.run(code=0)
    run.one("end", exit=None)


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


def found_but_not_imported(tmp):
    """find_spec() of a target's module gives what it gave; LazyLoader works on it."""
    run = Run(tmp, {"mod.py": MOD, "main.py": """
        import importlib.machinery, importlib.util, sys
        spec = importlib.util.find_spec("mod")
        assert "mod" not in sys.modules
        assert isinstance(spec.loader, importlib.machinery.SourceFileLoader)
        assert "what f does" in spec.loader.get_source("mod") and spec.origin.endswith("mod.py")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        mod = sys.modules["mod"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(mod)
        for _ in range(5): mod.f()
        """})
    run.run()
    run.profiled()


def strict(tmp):
    """With all warnings as errors, in development mode, with assertions and comments removed."""
    for number, words in enumerate((("-X", "dev", "-W", "error", "-bb"), ("-OO",))):
        run = Run(os.path.join(tmp, str(number)), {"mod.py": MOD, "main.py": SEVEN})
        same(run.run(*words, "main.py").stderr, "", "stderr")
        run.profiled()


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


CASES = [syntax, third_call, not_asked, no_site, bad_config, unwritable_events,
         chained_sitecustomize, raising_sitecustomize, exiting_sitecustomize, shadows_nothing,
         reexported, circular, reloaded, lazy_import, zip_and_namespace, lazy_getattr,
         lazy_module, own_json, set_later, found_but_not_imported, strict, foreign_finder,
         import_fails, main_function, main_module, main_is_not_imported_module, main_missing,
         under_a_debugger]


if __name__ == "__main__":
    suite = Suite(__doc__)
    for case in CASES:
        suite.run(case.__name__, case)
    sys.exit(suite.finish())
