#!/usr/bin/env python3
"""The stand-in for torch_npu behaves as the real profiler is known to (torch_npu.md §1, §4.5)."""
import glob
import json
import os
import re
import subprocess
import sys

from collect_lib import FAKES, Suite, torch_python

# Words: wait warmup active repeat skip_first skip_first_wait; steps …: one profile per number of
# steps. Prints one line of JSON per profile.
DRIVER = r"""
import contextlib, io, json, os, sys
import torch_npu
from torch_npu.profiler import profile, schedule, tensorboard_trace_handler
wait, warmup, active, repeat, skip_first, skip_first_wait = map(int, sys.argv[2:8])
for steps in map(int, sys.argv[8:]):
    home = os.path.join(sys.argv[1], str(steps))
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        plan = schedule(wait=wait, warmup=warmup, active=active, repeat=repeat,
                        skip_first=skip_first, skip_first_wait=skip_first_wait)
        fired = []
        handler = tensorboard_trace_handler(home, analyse_flag=False)
        prof = profile(schedule=plan, on_trace_ready=lambda p: (fired.append(
            [p.step_num, list(p.dump.steps)]), handler(p)))
        prof.start()
        for _ in range(steps):
            prof.step()
        prof.stop()
    print(json.dumps({"steps": steps, "fired": fired, "said": text.getvalue(),
                      "dirs": len(os.listdir(home)) if os.path.isdir(home) else 0}))
"""


def environment(suite, **more):
    env = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    env.update(NPUPROF=suite.npuprof, PYTHONPATH=os.path.join(FAKES, "python"),
               FAKE_NPU_NO_TORCH="1", PYTHONDONTWRITEBYTECODE="1", **more)
    return env


def python(suite, code, *words, status=0, **env):
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], text=True, timeout=120,
                          env=environment(suite, **env), capture_output=True)
    assert done.returncode == status, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def expectation(plan, steps):
    """What §1.4 says of `steps` calls of step(): (when trace_ready came, message, directories)."""
    wait, warmup, active, repeat, skip_first, shortened = plan
    cycle = wait + warmup + active
    ends = [skip_first + k * cycle - (wait if shortened else 0) for k in range(1, (repeat or 99) + 1)]
    fired = [end for end in ends if end <= steps]
    done = len(fired)
    if repeat and done == repeat:
        return fired, None, done
    begin = ends[done] - cycle + wait  # of this cycle's warm-up
    if done == 0 and shortened:
        begin = skip_first
    if steps < begin or steps < skip_first:
        return fired, None, done
    if steps < begin + warmup:
        return fired, "current state is WARMUP which", done
    if steps < ends[done] - 1:
        return fired + [steps], "current state is RECORD which", done + 1
    return fired + [steps], "current state is RECORD_AND_SAVE,", done + 1


PLANS = [(0, 1, 1, 1, 0, 0), (0, 0, 3, 1, 0, 0), (1, 2, 3, 1, 4, 0), (2, 1, 2, 2, 1, 0),
         (2, 1, 2, 2, 1, 1), (0, 0, 1, 3, 0, 0), (0, 2, 30, 1, 0, 0), (0, 1, 2, 0, 0, 0)]


def states(suite, tmp):
    judged = 0
    for number, plan in enumerate(PLANS):
        last = plan[4] + 2 * sum(plan[:3]) + 2
        counts = range(last + 1) if last < 20 else (0, 1, 2, 3, 30, 31, 32, 33)
        text = python(suite, DRIVER, f"{tmp}/{number}", *plan, *counts)
        for line in text.splitlines():
            seen = json.loads(line)
            fired, message, dirs = expectation(plan, seen["steps"])
            what = f"{plan}, {seen}"
            assert [one[0] for one in seen["fired"]] == fired, f"{what}: ready not at {fired}"
            said = [part for part in seen["said"].splitlines() if "current state is" in part]
            assert len(said) == (message is not None), what
            assert message is None or message in said[0], f"{what}: not {message}"
            assert seen["dirs"] == dirs, f"{what}: not {dirs} directories"
            judged += 1
    assert judged > 80, judged


def names_of_steps(suite, tmp):
    for plan, steps, names in (((0, 10, 1, 1, 40, 0), 51, [[50]]),
                               ((0, 1, 1, 1, 12, 0), 14, [[13]]),
                               ((1, 1, 2, 2, 0, 0), 8, [[2, 3], [6, 7]])):
        seen = json.loads(python(suite, DRIVER, f"{tmp}/{steps}", *plan, steps))
        assert [one[1] for one in seen["fired"]] == names, seen


def lines_have_the_format(suite, tmp):
    text = python(suite, DRIVER, tmp, 0, 1, 1, 1, 0, 0, 0)
    about_level, seen = json.loads(text)["said"].splitlines(keepends=True)
    assert "Please use level1 or level2" in about_level, about_level  # a default config says so
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] \[WARNING\] \[\d+\] profiler\.py: "
                        r"Incorrect schedule: Stop profiler while current state is WARMUP which "
                        r"will result in empty parsed data\.\n", seen), seen
    for env in ({"RANK": "1"}, {"TORCH_NPU_WARNING_DISABLE": "1"}):
        assert json.loads(python(suite, DRIVER, f"{tmp}/x", 0, 1, 1, 1, 0, 0, 0, **env))[
            "said"] == "", env


def odd_ends(suite, tmp):
    """Callables of the user reach W1 to W3; stop() twice; step() after stop(); no schedule."""
    text = python(suite, r"""
import sys
from torch_npu.profiler import ProfilerAction as A, profile, tensorboard_trace_handler
def go(actions, steps, stops=1, after=0):
    handler = tensorboard_trace_handler(sys.argv[1], analyse_flag=False)
    prof = profile(schedule=actions and (lambda step: actions[min(step, len(actions) - 1)]),
                   on_trace_ready=handler)
    prof.start()
    for _ in range(steps): prof.step()
    for _ in range(stops): prof.stop()
    for _ in range(after): prof.step()
    print("::", prof.actions)
go([A.WARMUP, A.NONE], 1)
go([A.RECORD, A.NONE], 1)
go([A.RECORD, A.WARMUP, A.RECORD, A.RECORD_AND_SAVE, A.NONE], 4)
go([A.RECORD_AND_SAVE, A.NONE], 0, stops=2, after=1)
go(None, 2)
""", tmp)
    for part in ("WARMUP followed by NONE", "RECORD followed by NONE", "RECORD followed by WARMUP",
                 "Profiler is stopped, step takes no effect!"):
        assert text.count(part) == 1, f"{part}\n{text}"
    actions = [eval(line[3:]) for line in text.splitlines() if line.startswith("::")]
    assert actions == [
        ["init", "warmup", "start", "stop", "finalize"], ["init", "start", "stop", "finalize"],
        ["init", "start", "stop", "finalize", "start", "stop", "finalize", "ready"],
        ["init", "start"] + 2 * ["stop", "finalize", "ready"],
        ["init", "start", "stop", "finalize", "ready"]], actions
    assert text.count("current state is RECORD which") == 1, text  # no schedule


RECORD = r"""
import os, sys
from torch_npu import profiler as p
level, metrics, export = sys.argv[2:5]
prof = p.profile(schedule=p.schedule(wait=0, warmup=1, active=2, repeat=1), record_shapes=True,
                 on_trace_ready=p.tensorboard_trace_handler(sys.argv[1], analyse_flag=False),
                 experimental_config=p._ExperimentalConfig(
                     profiler_level=level, aic_metrics=getattr(p.AiCMetrics, metrics),
                     export_type=export.split("+")))
prof.start()
for _ in range(3): prof.step()
prof.stop()
if "analyse" in sys.argv: p.analyse(prof.dump.path, 1)
"""


def exports_by_level(suite, tmp):
    for level, metrics, export, columns, count, wanted, absent in (
            ("Level0", "AiCoreNone", "text", 9, 9, ("trace_view.json",), ("op_statistic.csv",)),
            ("Level1", "PipeUtilization", "text", 40, 60, ("op_statistic.csv",), ("analysis.db",)),
            ("Level1", "AiCoreNone", "text", 15, 30, ("communication.json",), ("analysis.db",)),
            ("Level2", "PipeUtilization", "db", 0, 0, ("ascend_pytorch_profiler_0.db",),
             ("kernel_details.csv",)),
            ("Level1", "PipeUtilization", "text+db", 40, 60, ("analysis.db",), ("nothing",))):
        home = f"{tmp}/{level}{metrics}{export}"
        python(suite, RECORD, home, level, metrics, export, "analyse", RANK="0", WORLD_SIZE="2",
               FAKE_NPU_CACHE=f"{tmp}/cache")
        out, = glob.glob(f"{home}/*_ascend_pt/ASCEND_PROFILER_OUTPUT")
        names = os.listdir(out)
        assert set(wanted) <= set(names) and not set(absent) & set(names), f"{home}: {names}"
        if columns:
            with open(f"{out}/kernel_details.csv") as text:
                width = len(text.readline().split(","))
            assert columns <= width <= count, f"{home}: {width} columns"


def exports_that_lie(suite, tmp):
    python(suite, RECORD, tmp, "Level1", "PipeUtilization", "text", RANK="0")
    dump, = glob.glob(f"{tmp}/*_ascend_pt")
    out = f"{dump}/ASCEND_PROFILER_OUTPUT"
    code = "import sys; from torch_npu.profiler.profiler import analyse; analyse(sys.argv[1], 8)"
    for mode, said in (("lie", "analyse() returned OK"), ("fail", "run failed"),
                       ("mindstudio", "Export all data in")):
        assert said in python(suite, code, dump, FAKE_NPU_ANALYSE=mode), mode
        assert not os.path.exists(f"{out}/kernel_details.csv"), mode
    assert glob.glob(f"{dump}/PROF_*/mindstudio_profiler_output/op_summary_*.csv")
    python(suite, code, dump)
    assert os.path.exists(f"{out}/kernel_details.csv")
    python(suite, code, dump, FAKE_NPU_ANALYSE="lie")
    assert os.listdir(out) == [], "what was there is removed first"
    assert "The path does not exist" in python(suite, code, f"{tmp}/nowhere")
    assert python(suite, code, f"{dump}/PROF_nothing".replace("PROF_nothing", "FRAMEWORK")) == ""
    lowest = "from torch_npu.profiler.analysis._profiling_parser import ProfilingParser\n" \
        "from torch_npu.profiler.analysis.prof_common_func._constant import Constant\n" \
        "import sys\nProfilingParser(sys.argv[1], Constant.TENSORBORAD_TRACE_HANDLER, None, {})" \
        ".analyse_profiling_data()"
    python(suite, lowest, dump, FAKE_NPU_ANALYSE="fail")
    assert os.path.exists(f"{out}/kernel_details.csv")
    python(suite, lowest, dump, FAKE_NPU_PARSER="fail", status=1)


def refuses_daemons(suite, tmp):
    text = python(suite, RECORD + r"""
import multiprocessing
child = multiprocessing.get_context("fork").Process(
    target=p.analyse, args=(prof.dump.path, 1), daemon=True)
child.start(); child.join()
""", tmp, "Level1", "PipeUtilization", "text")
    assert "cannot be parsed during the daemon process" in text, text
    assert not glob.glob(f"{tmp}/*/ASCEND_PROFILER_OUTPUT"), text


def beside_the_real_torch(suite, tmp):
    env = environment(suite)
    del env["FAKE_NPU_NO_TORCH"]
    done = subprocess.run(
        [torch_python(), "-c", "import torch, torch_npu; torch.npu.synchronize(); "
         "torch_npu.npu.synchronize(); print(torch_npu.npu.calls, torch.ones(2).sum().item())"],
        env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout == "{'synchronize': 2} 2.0\n", done


def main():
    suite = Suite(__doc__)
    for case in (states, names_of_steps, lines_have_the_format, odd_ends, exports_by_level,
                 exports_that_lie, refuses_daemons, beside_the_real_torch):
        suite.run(case.__name__, lambda tmp, case=case: case(suite, tmp))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
