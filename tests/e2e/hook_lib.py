"""A program, its inject.json, a run with the package injected, and what the events tell."""
import ast
import json
import os
import subprocess
import sys
import textwrap

from collect_lib import FAKES, SOURCE

PACKAGE = os.path.join(SOURCE, "inject", "python")

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


def same(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, not {wanted!r}")


def holds(condition, what):
    if not condition:
        raise AssertionError(what)


class Run:
    """Directories of one run. files: {path: source} of the user's program, below `src`."""

    def __init__(self, tmp, files, targets=("mod:f",), python=sys.executable, **config):
        self.tmp, self.python = tmp, python
        self.src = os.path.join(tmp, "src")
        self.events_dir = os.path.join(tmp, "events")
        self.prof = os.path.join(tmp, "prof")
        os.makedirs(self.events_dir, exist_ok=True)
        os.makedirs(self.prof, exist_ok=True)
        for path, text in files.items():
            path = os.path.join(self.src, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write(textwrap.dedent(text))
        members = {"version": 1, "run_dir": tmp, "prof_dir": self.prof,
                   "events_dir": self.events_dir, "call": 3, "warmup": 2, "active": 1,
                   "ranks": [0], "level": "Level1", "aic_metrics": "PipeUtilization",
                   "with_stack": False, "record_shapes": True, "profile_memory": False,
                   "export_type": ["text"], "phase": "both", "collectives": None,
                   "targets": [dict(zip(("module", "qualname"), one.split(":")))
                               for one in targets]}
        members.update(config)
        self.json = os.path.join(tmp, "inject.json")
        with open(self.json, "w") as out:
            json.dump(members, out)

    def env(self, torch=False, npu=True, **more):
        path = [PACKAGE] + ([os.path.join(FAKES, "python")] if npu else []) + [self.src]
        env = {name: value for name, value in os.environ.items()
               if name not in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "PYTHONSTARTUP")}
        env.update(PYTHONPATH=os.pathsep.join(path), NPUPROF_INJECT=self.json,
                   PYTHONDONTWRITEBYTECODE="1", TMPDIR=self.tmp, OMP_NUM_THREADS="1",
                   FAKE_NPU_TRACE=os.path.join(self.tmp, "actions"))
        if not torch:  # whoever asks for it shall not wait for it
            env["FAKE_NPU_NO_TORCH"] = "1"
            stub = os.path.join(self.src, "torch")
            os.makedirs(stub, exist_ok=True)
            with open(os.path.join(stub, "__init__.py"), "w") as out:
                out.write("raise ImportError('no torch in this test')\n")
        env.update(more)
        return {name: value for name, value in env.items() if value is not None}

    def run(self, *words, code=0, env=None, timeout=100, stdin=None, **how):
        """Run python with these words; the result, after its exit status was compared."""
        words = list(words) or ["main.py"]
        return self.command([self.python, *words], code, env or self.env(**how), timeout, stdin)

    def command(self, words, code=0, env=None, timeout=100, stdin=None):
        done = subprocess.run(words, cwd=self.src, env=env or self.env(), capture_output=True,
                              text=True, timeout=timeout, input=stdin)
        if done.returncode != code:
            raise AssertionError(f"{words}: exit {done.returncode}, not {code}\n{done.stdout}\n"
                                 f"{done.stderr}")
        return done

    def events(self, event=None, **members):
        """All events, in order of time; only those with these members."""
        found = []
        for name in os.listdir(self.events_dir):
            with open(os.path.join(self.events_dir, name)) as lines:
                for line in lines:
                    one = json.loads(line)
                    same(f"{one['pid']}.jsonl", name, "file of an event")
                    found.append(one)
        return [one for one in sorted(found, key=lambda one: one["time"])
                if event in (None, one["event"])
                and all(one.get(key) == value for key, value in members.items())]

    def one(self, event, **members):
        found = self.events(event, **members)
        if len(found) != 1:
            raise AssertionError(f"{len(found)} events {event} {members}, not 1:\n" +
                                 "\n".join(map(json.dumps, self.events())))
        return found[0]

    def none(self, *kinds):
        for kind in kinds:
            same(self.events(kind), [], f"events {kind}")

    def dumps(self):
        return sorted(name for name in os.listdir(self.prof) if name.endswith("_ascend_pt"))

    def profiled(self, call=3, steps=1, early=None, **members):
        """One capture, in good order, of exactly this call."""
        self.none("hook_failed", "no_torch_npu")
        begin, end = self.one("profiling", **members), self.one("profiled", **members)
        same((begin["call"], end["call"]), (call, call), "profiled call")
        same((end["state"], end["steps"], end["early"]), ("NONE", steps, early), "end")
        same(begin["dir"], end["dir"], "directory")
        same(self.dumps(), [os.path.basename(end["dir"])], "dumps")
        holds(os.path.isdir(os.path.join(end["dir"], "FRAMEWORK")), "the dump is empty")
        with open(os.path.join(self.tmp, "actions")) as text:
            same(text.read().split(), ["init", "start", "stop", "finalize", "ready"], "actions")
        return end


def plain(run, **how):
    """The usual program: seven calls, and the third one is profiled."""
    same(run.run(**how).stdout.splitlines()[-1] + "\n", OUT, "output")


def is_python38(path):
    """Does this file parse as Python 3.8?"""
    with open(path) as text:
        ast.parse(text.read(), path, feature_version=(3, 8))
