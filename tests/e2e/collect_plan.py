#!/usr/bin/env python3
"""`npuprof plan`: schedules beside a profiler that is stepped, snippets that are run."""
import ast
import itertools
import json
import os
import random
import subprocess
import sys

import plan_reference as reference
from collect_lib import HERE, Suite

suite = Suite(__doc__)
BATCH = os.path.join(os.path.dirname(suite.npuprof), "tests", "schedule_batch")
FIELDS = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
LETTERS = {"NONE": "n", "WARMUP": "w", "RECORD": "R", "RECORD_AND_SAVE": "S"}
CODES = {text: code for text, code in zip(reference.WARNINGS.values(), ("W4", "W5", "W6"))}
COMPLETE, UNCLEAN, PARTIAL = 0, 1, 2


def need(schedule):
    """By trial: (fewest with all data, first clean one, advised)."""
    asked = schedule.repeat or 1
    steps = 0
    while len(reference.run(schedule, steps).complete()) < asked:
        steps += 1
    data = steps
    while "stop" in reference.run(schedule, steps).ready_calls[:asked]:
        steps += 1
    here, further = reference.run(schedule, steps), reference.run(schedule, steps + 1)
    spoiled = here.exit_state == "NONE" and further.exit_state != "NONE"
    return data, steps, steps if spoiled else steps + 1


def expected(schedule, steps, needs):
    """A line as schedule_batch writes it."""
    profiler = reference.run(schedule, steps)
    assert not profiler.oddities, profiler.oddities
    assert len(profiler.warnings) <= 1
    begun = [d for d in profiler.directories if d["steps"]]
    cycles = []
    for i, directory in enumerate(begun):
        ready = profiler.ready_calls[i]
        whole = len(directory["steps"]) == schedule.active
        fate = PARTIAL if not whole else UNCLEAN if ready == "stop" else COMPLETE
        saved_in = directory["steps"][0] + schedule.active
        assert ready in ("stop", saved_in)
        cycles.append(f"{directory['steps'][0]}-{len(directory['steps'])}-{saved_in}-{fate}")
    return " ".join(str(word) for word in (
        profiler.exit_state, CODES[profiler.warnings[0]] if profiler.warnings else "-",
        int(any(d["deleted"] for d in profiler.directories)), len(profiler.ready_calls),
        len(profiler.complete()), *needs, "".join(LETTERS[a] for a in profiler.actions),
        ",".join(cycles) or "-"))


def compare(cases):
    """cases: the six parameters and K."""
    words = "".join(" ".join(map(str, case)) + "\n" for case in cases)
    done = subprocess.run([BATCH], input=words, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(cases), (len(lines), len(cases), done.stderr)
    known = {}
    for case, line in zip(cases, lines):
        schedule = reference.Schedule(**dict(zip(FIELDS, case)))
        if case[:6] not in known:
            known[case[:6]] = need(schedule)
        want = expected(schedule, case[6], known[case[:6]])
        assert line == want, f"{dict(zip(FIELDS, case))} K={case[6]}:\n  {line}\n  {want}"


def every_small_schedule(_tmp):
    cases = []
    for case in itertools.product((0, 1, 2), (0, 1, 2), (1, 2, 3), (0, 1, 2), (0, 1, 3), (0, 1)):
        cases += [(*case, steps) for steps in range(0, 20)]
    compare(cases)
    print(f"# {len(cases)} combinations")


def large_and_odd_schedules(_tmp):
    dice = random.Random(7)
    cases = []
    for _ in range(300):
        case = tuple(dice.choice((-2, 0, 0, 1, dice.randrange(12))) for _ in range(5))
        case = (*case, dice.choice((0, 0, -1, 1, 4)))
        cases.append((*case, dice.choice((0, 1, dice.randrange(120)))))
    compare(cases)


def cell(document, table, row, column):
    found = [t for t in document["tables"] if t["id"] == table][0]
    names = [c["name"] for c in found["columns"]]
    row = found["rows"][row]
    return row[column] if isinstance(row, dict) else row[names.index(column)]


def the_report_is_the_same(_tmp):
    """Through the command line and its JSON."""
    dice = random.Random(3)
    for _ in range(40):
        values = [dice.randrange(4), dice.randrange(3), dice.randrange(1, 4), dice.randrange(3),
                  dice.randrange(5), dice.randrange(2)]
        steps = dice.randrange(25)
        words = []
        for name, value in zip(FIELDS, values):
            words += [f"--{name.replace('_', '-')}", str(value)]
        schedule = reference.Schedule(**dict(zip(FIELDS, values)))
        profiler = reference.run(schedule, steps)
        done = suite.call("plan", "schedule", *words, "--steps", str(steps), "--json")
        document = json.loads(done.stdout)
        asked = schedule.repeat or 1
        assert done.returncode == (len(profiler.complete()) < asked), (values, steps)
        data, clean, advised = need(schedule)
        recorded = [n for d in profiler.directories if not d["deleted"] for n in d["steps"]]
        assert len(recorded) < 24
        want = {"state_at_exit": profiler.exit_state,
                "recorded_steps": reference.ranges(recorded) or None,
                "trace_ready_count": len(profiler.ready_calls), "min_steps": clean,
                "recommended_steps": advised,
                "warning": profiler.warnings[0] if profiler.warnings else None}
        for column, value in want.items():
            got = cell(document, "summary", 0, column)
            assert got == value, (values, steps, column, got, value)
        table = [t for t in document["tables"] if t["id"] == "schedule"][0]
        assert [c["name"] for c in table["columns"]] == ["step", "action"]
        assert len(table["rows"]) == steps + 1
        for i, action in enumerate(profiler.actions):
            assert cell(document, "schedule", i, "step") == i
            assert cell(document, "schedule", i, "action") == action
        codes = [f["code"] for f in document["findings"]]
        assert ("SCHEDULE_INCOMPLETE" in codes) == bool(done.returncode)
        assert data <= clean


# ── snippets ──

TORCH = [("--phase", phase) for phase in ("prefill", "decode", "both", "separate")]


def snippet(*words):
    return suite.call("plan", "snippet", *words, check=0).stdout


def run_python(tmp, code, env=None, extra=None):
    path = os.path.join(tmp, "snippet.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(code + (extra or ""))
    result = os.path.join(tmp, "result.json")
    subprocess.run([sys.executable, "-m", "py_compile", path], check=True)
    done = subprocess.run([sys.executable, path], cwd=tmp, capture_output=True, text=True,
                          env={**os.environ, "PLAN_RESULT": result, "PYTHONPATH":
                               os.pathsep.join((os.path.join(HERE, "plan_fakes"), HERE)),
                               **(env or {})})
    assert done.returncode == 0, done.stderr
    with open(result, encoding="utf-8") as file:
        return json.load(file)


def fill_in(code):
    """The three functions that a person writes."""
    tree = ast.parse(code)
    bodies = {"load_model": "    return None",
              "run_prefill": "    torch_npu.WORK.append('prefill')",
              "run_decode": "    torch_npu.WORK.append('decode')"}
    lines = code.split("\n")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in bodies:
            assert isinstance(node.body[0], ast.Raise)
            lines[node.body[0].lineno - 1] = bodies.pop(node.name)
    assert not bodies, bodies
    return "\n".join(lines)


def clean_capture(capture):
    """Ends in NONE without a warning, one directory, saved inside of step(): its work."""
    assert capture["exit"] == "NONE" and not capture["warnings"] and not capture["oddities"]
    assert len(capture["directories"]) == 1 and len(capture["ready"]) == 1
    assert capture["ready"][0] != "stop"
    steps = capture["directories"][0]["steps"]
    return [work for step in steps for work in capture["work"].get(str(step), ["nothing"])]


def python_snippets_record_what_they_say(tmp):
    for phase, profile, active, warmup in itertools.product(
            ("prefill", "decode", "both", "separate"), ("kernel", "cluster"), (None, 3),
            (None, 2)):
        words = ["--for", "torch_npu", "--phase", phase, "--profile", profile]
        if active and phase != "prefill":
            words += ["--active", str(active)]
        if warmup:
            words += ["--warmup", str(warmup)]
        captures = run_python(tmp, fill_in(snippet(*words)))
        n = active or 10
        want = {"prefill": [["prefill"]], "decode": [["decode"] * n],
                "both": [["prefill"] + ["decode"] * n],
                "separate": [["prefill"], ["decode"] * n]}[phase]
        assert [clean_capture(c) for c in captures] == want, (words, captures)
        for capture in captures:
            kernel = profile == "kernel"
            assert capture["config"] == {
                "profiler_level": "Level1",
                "aic_metrics": "PipeUtilization" if kernel else "AiCoreNone",
                "export_type": "text" if kernel else "db"}
            assert capture["flags"] == [False, False, False]
            assert sorted(capture["activities"]) == ["CPU", "NPU"]


def python_snippets_choose_ranks(tmp):
    for words, rank, records in ((("--rank-list", "1,4-6"), "5", True),
                                 (("--rank-list", "1,4-6"), "0", False), ((), "1", False),
                                 ((), "0", True), (("--profile", "cluster"), "7", True)):
        code = fill_in(snippet("--for", "torch_npu", *words))
        captures = run_python(tmp, code, {"RANK": rank})
        assert len(captures) == records, (words, rank)


def options_reach_the_python(tmp):
    code = fill_in(snippet("--for", "torch_npu", "--level", "2", "--aic-metrics", "MemoryUB",
                           "--out-dir", "采集 1/a_b"))
    capture = run_python(tmp, code)[0]
    assert capture["config"]["profiler_level"] == "Level2"
    assert capture["config"]["aic_metrics"] == "MemoryUB"
    assert capture["handler"]["dir"] == "采集 1/a_b"
    assert os.path.isdir(os.path.join(tmp, "采集 1/a_b"))


def the_hook_records_calls(tmp):
    os.mkdir(os.path.join(tmp, "model_package"))
    with open(os.path.join(tmp, "model_package", "__init__.py"), "w", encoding="utf-8"):
        pass
    with open(os.path.join(tmp, "model_package", "dit.py"), "w", encoding="utf-8") as file:
        file.write("import torch_npu\nclass Net:\n    def forward(self, n, scale=1):\n"
                   "        torch_npu.WORK.append(n)\n        return n * scale\n")
    calls = ("\n\nfrom model_package.dit import Net\nimport torch_npu\nnet = Net()\n"
             "assert [net.forward(i, scale=2) for i in range(12)] == [2 * i for i in range(12)]\n")
    for words, first, count in (((), 5, 1), (("--warmup", "2", "--active", "3"), 2, 3),
                                (("--warmup", "0", "--profile", "cluster"), 0, 1)):
        code = snippet("--for", "vllm", *words)
        code = code.replace('"package.module"', '"model_package.dit"').replace(
            '"TheTransformer"', '"Net"')
        captures = run_python(tmp, code, extra=calls)
        assert len(captures) == 1
        assert clean_capture(captures[0]) == list(range(first, first + count)), captures
        assert captures[0]["handler"]["analyse"] is False
    assert run_python(tmp, code.replace("RANKS = None", "RANKS = {3}"), extra=calls) == []


SAMPLE = {"activities": ["CPU", "NPU"], "prof_dir": "./cluster_profile_output", "analyse": True,
          "async_mode": True, "record_shapes": False, "profile_memory": False,
          "with_stack": False, "with_flops": False, "with_modules": False, "active": 2,
          "warmup": 0, "start_step": -1, "is_rank": False, "rank_list": [],
          "experimental_config": {
              "profiler_level": "Level1", "aic_metrics": "AiCoreNone", "l2_cache": False,
              "op_attr": False, "gc_detect_threshold": None, "data_simplification": True,
              "record_op_args": False, "export_type": ["db"], "mstx": False,
              "mstx_domain_include": [], "mstx_domain_exclude": [], "host_sys": [],
              "sys_io": False, "sys_interconnection": False}}


def no_twins(pairs):
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)


def dynamic_is_strict_json(_tmp):
    def load(*words):
        return json.loads(snippet("--for", "dynamic", *words), object_pairs_hook=no_twins)

    assert load("--profile", "cluster") == SAMPLE
    assert list(load()) == list(SAMPLE)
    assert list(load()["experimental_config"]) == list(SAMPLE["experimental_config"])
    some = load("--profile", "cluster", "--rank-list", "4,1-3,2")
    assert some == {**SAMPLE, "is_rank": True, "rank_list": [1, 2, 3, 4]}
    kernel = load("--active", "5", "--warmup", "1", "--level", "2", "--out-dir", "./x y")
    assert (kernel["active"], kernel["warmup"], kernel["prof_dir"]) == (5, 1, "./x y")
    config = kernel["experimental_config"]
    assert (config["profiler_level"], config["aic_metrics"], config["export_type"]) == (
        "Level2", "PipeUtilization", ["text"])


def the_shell_script_runs_msprof(tmp):
    """With an msprof and an npuprof that write down how they were called."""
    calls = os.path.join(tmp, "calls")
    for name in ("msprof", "npuprof"):
        path = os.path.join(tmp, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nprintf "{name}" >> {calls}\n'
                       f'for a; do printf "|%s" "$a" >> {calls}; done\necho >> {calls}\n')
        os.chmod(path, 0o755)
    script = os.path.join(tmp, "run.sh")
    suite.call("plan", "snippet", "--for", "msprof", "--out-dir", "o u t", "-o", script, check=0)
    env = {**os.environ, "PATH": tmp + os.pathsep + os.environ["PATH"]}
    assert subprocess.run(["sh", script], cwd=tmp, env=env, stderr=subprocess.DEVNULL
                          ).returncode == 2
    subprocess.run(["sh", script, "python3", "a b.py"], cwd=tmp, env=env, check=True)
    with open(calls, encoding="utf-8") as file:
        lines = file.read().splitlines()
    assert lines == [
        "msprof|--output=o u t|--task-time=l1|--aic-mode=task-based|"
        "--aic-metrics=PipeUtilization|python3|a b.py",
        "msprof|--export=on|--output=o u t",
        "npuprof|check|o u t|--start-marker|o u t/.start"], lines
    assert os.path.exists(os.path.join(tmp, "o u t", ".start"))


def path_a_is_yaml(_tmp):
    for phase, active, tokens in (("both", None, 32), ("decode", 40, 45), ("separate", 3, 32),
                                  ("prefill", None, None)):
        words = ["--phase", phase] + (["--active", str(active)] if active else [])
        text = snippet("--for", "path-a", *words)
        keys = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
        want = ["model_config:", "  enable_profiler: True"]
        if tokens:
            want += ["scheduler_config:", f"  max_new_tokens: {tokens}"]
        assert keys == want, keys
        assert ("in prefill decode" in text) == (phase in ("both", "separate"))


def what_is_not_legal_is_refused(tmp):
    """Status 2, nothing on stdout, no file, and a message that tells what is legal."""
    bad = {
        ("--for", "msprof", "--phase", "decode"): "--profile kernel",
        ("--for", "msprof", "--profile", "cluster"): "--aic-metrics",
        ("--for", "vllm", "--phase", "both"): "--active",
        ("--for", "dynamic", "--phase", "decode"): "--rank-list",
        ("--for", "path-a", "--profile", "cluster"): "--profile kernel",
        ("--for", "path-a", "--out-dir", "x"): "--phase",
        ("--for", "path-a", "--level", "2"): "--phase",
        ("--for", "torch_npu", "--level", "0"): "use 1 or 2",
        ("--for", "torch_npu", "--phase", "prefill", "--active", "2"): "active is 1",
        ("--for", "torch_npu", "--aic-metrics", "AiCoreNone"): "PipeUtilization",
        ("--for", "torch_npu", "--aic-metrics", "Pipe"): "PipeUtilization, ",
        ("--for", "torch_npu", "--out-dir", "a\"b"): "letters",
        ("--for", "torch_npu", "--out-dir", "a'; rm x"): "letters",
        ("--for", "torch_npu", "--out-dir", "a\nb"): "letters",
        ("--for", "torch_npu", "--active", "0"): "1 …",
        ("--for", "dynamic", "--rank-list", ""): "0,2,8-15",
        ("--for", "dynamic", "--rank-list", "3-1"): "0,2,8-15",
        ("--for", "dynamic", "--rank-list", "1-"): "0,2,8-15",
        ("--for", "dynamic", "--rank-list", "-1"): "0,2,8-15",
        ("--for", "gpu"): "path-a",
        (): "torch_npu",
        ("--for", "vllm", "--json"): "--json",
    }
    target = os.path.join(tmp, "out")
    for words, legal in bad.items():
        done = suite.call("plan", "snippet", *words, "-o", target, check=2)
        assert done.stdout == "" and legal in done.stderr, (words, done.stderr)
        assert not os.path.exists(target), words


for case in (every_small_schedule, large_and_odd_schedules, the_report_is_the_same,
             python_snippets_record_what_they_say, python_snippets_choose_ranks,
             options_reach_the_python, the_hook_records_calls, dynamic_is_strict_json,
             the_shell_script_runs_msprof, path_a_is_yaml, what_is_not_legal_is_refused):
    suite.run(case.__name__, case)
sys.exit(suite.finish())
