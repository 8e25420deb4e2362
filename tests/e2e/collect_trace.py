#!/usr/bin/env python3
"""Requirements of the field guides, walked through on the built program (docs/requirements.md)."""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import urllib.request
from fractions import Fraction

from collect_lib import SOURCE, Suite
from run_lib import TARGET, Home, codes, finding, rows, wait_for

sys.path.insert(0, os.path.join(SOURCE, "inject", "python"))


def table(report, name):
    found = rows(report, name)
    assert found, f"no table {name} in {[one['id'] for one in report['tables']]}"
    return found


# ── R4–R17: warm-up, environment, files ──

def warm_up_of_every_preset(suite, tmp):
    """R6, R13, R15, R16: 5 calls, 10 with a compiler, one is recorded; a shorter one is possible."""
    home = Home(suite, tmp)
    presets = table(json.loads(suite.call("run", "--list-presets", "--json", check=0).stdout),
                    "presets")
    injected = [one["preset"] for one in presets if one["preset"] != "cann-recipes"]
    assert len(injected) >= 7, injected
    assert {one["warmup"] for one in presets if one["preset"] != "verl"} == {5}, presets
    assert {one["compile_warmup"] for one in presets} == {10}, presets

    def asked(*options):
        home.run(*options, "--no-export", command=["true"], status=1)
        with open(f"{home.dirs()[-1]}/inject.json") as file:
            inject = json.load(file)
        assert len(inject["targets"]) == 1, inject
        return [inject["warmup"], inject["call"], inject["active"]]

    for name in injected:
        usual = 1 if name == "verl" else 5
        options = ["--preset", name, "--target", TARGET]
        assert asked(*options) == [usual, usual + 1, 1], name
        assert asked(*options, "--compile") == [10, 11, 1], name
    assert asked("--target", TARGET) == [5, 6, 1]
    assert asked("--target", TARGET, "--compile") == [10, 11, 1]
    assert asked("--target", TARGET, "--warmup", "1")[1:] == [2, 1]  # R15: 1 + 1
    report = home.run("--target", TARGET, "--compile", "--warmup", "1", "--no-export",
                      command=["true"], status=1)
    assert any("first 10" in note for note in report["notes"]), report["notes"]


def launch_facts(suite, tmp):
    """R9: what a launch sets, and what it leaves alone; in the background, without a terminal."""
    home = Home(suite, tmp)
    home.write("env.py", "import os\nprint(*('%s=%s' % (name, os.environ.get(name)) for name in "
               "('PLATFORM', 'ASCEND_RT_VISIBLE_DEVICES', 'HCCL_NPU_SOCKET_PORT_RANGE')), "
               "sep='\\n')\n")
    for preset, platform in (("lightx2v", "ascend_npu"), ("diffsynth", "ascend_npu"),
                             ("diffusers", "None")):
        report = home.run("--preset", preset, "--target", TARGET, "--no-export", status=1,
                          command=[home.python, "env.py"], ASCEND_RT_VISIBLE_DEVICES="2,3")
        said = report["talk"].splitlines()
        assert f"PLATFORM={platform}" in said and "ASCEND_RT_VISIBLE_DEVICES=2,3" in said, said
        ports = "None" if preset == "diffusers" else "20000-21000"
        assert f"HCCL_NPU_SOCKET_PORT_RANGE={ports}" in said, said
    # nohup … > prof.log 2>&1 < /dev/null &, and the terminal goes away
    home.write("slow.py", "import time, infer\nprint('ready', flush=True)\n"
               "while not __import__('os').path.exists('go'): time.sleep(0.05)\n")
    with open(f"{tmp}/prof.log", "w") as log:
        process = subprocess.Popen(
            ["nohup", suite.npuprof, *home.words("--target", TARGET, "--name", "back", command=[
                home.python, "slow.py", "8"])], cwd=tmp, env=home.env, stdout=log,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
    wait_for(lambda: "ready" in open(f"{tmp}/prof.log").read())
    process.send_signal(signal.SIGHUP)
    home.write("go", "")
    assert process.wait(60) == 0, open(f"{tmp}/prof.log").read()
    assert "verdict: PASS" in open(f"{tmp}/prof.log").read()


def packed_capture_is_judged(suite, tmp):
    """R10: a tar.gz of the capture is what is sent; it is judged as it is, and read."""
    home = Home(suite, tmp)
    home.run("--target", TARGET)
    run = home.dirs()[0]
    with tarfile.open(f"{tmp}/profile_l1.tar.gz", "w:gz") as archive:
        archive.add(f"{run}/prof", "prof")
    start = str(os.stat(f"{run}/.start_marker").st_mtime - 1)
    done = suite.call("check", f"{tmp}/profile_l1.tar.gz", "--start-epoch", start, "--json",
                      check=0)
    assert json.loads(done.stdout)["verdict"] == "PASS", done.stdout
    late = suite.call("check", f"{tmp}/profile_l1.tar.gz", "--start-epoch",
                      str(float(start) + 3600), check=1)
    assert "STALE" in late.stdout, late.stdout


def runs_of_one_second_are_apart(suite, tmp):
    """R21, R110: two in a row, and 20 at once, of one name: 22 directories, none written over."""
    home = Home(suite, tmp)
    command = [home.python, "infer.py"]
    home.run("--target", TARGET, "--name", "same", "--no-export", status=3)
    home.run("--target", TARGET, "--name", "same", "--no-export", status=3)
    processes = [home.start("--target", TARGET, "--name", "same", "--no-export", "-q",
                            command=command, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE) for _ in range(20)]
    for process in processes:
        _, talk = process.communicate(timeout=120)
        assert process.returncode == 3, (process.returncode, talk)
    assert len(home.dirs()) == 22, home.dirs()
    pids = set()
    for run in home.dirs():
        with open(f"{run}/run.json") as file:
            pids.add(json.load(file)["command_pid"])
        dump, = glob.glob(f"{run}/prof/*_ascend_pt")
        assert len(glob.glob(f"{run}/events/*.jsonl")) == 1, run
    assert len(pids) == 22, pids


def calls_and_requests(suite, tmp):
    """R30, R32: the call of H3_PROF_CALL=5 is --call 6, and what is recorded is that call."""
    def place(*words):
        return table(json.loads(suite.call("plan", "request", *words, "--json", check=0).stdout),
                     "request")[0]

    got = place("--call", "5", "--steps-per-request", "4")
    assert (got["request"], got["step"], got["requests_needed"]) == (2, 2, 2), got
    for n in (1, 4, 7):
        for k in range(0, 30):
            got = place("--call", str(k), "-n", str(n)) if k % 5 == 0 or n == 4 else None
            assert got is None or (got["request"], got["step"]) == (k // n + 1, k % n + 1), got
    got = place("--call", "13", "-n", "4", "--forwards-per-step", "2")  # guidance: n is doubled
    assert (got["request"], got["step"], got["forward"]) == (2, 3, 2), got
    home = Home(suite, tmp)
    home.write("infer.py", "from model import DiT\nimport torch_npu\ndit = DiT()\n"
               "for request in range(2):\n    for step in range(4):\n        dit.forward(step)\n")
    report = home.run("--target", TARGET, "--call", "6")
    assert table(report, "targets")[0]["recorded_call"] == 6, report
    assert table(report, "targets")[0]["calls"] == 8, report


# ── R12: vLLM-Omni ──

OMNI = "vllm_omni/diffusion/models/minimax_h3/minimax_h3_transformer.py"
VLLM = """#!{python}
import sys
from vllm_stand_in import main
if __name__ == "__main__":
    main(sys.argv[1:])
"""
STAND_IN = """
import http.server, json, multiprocessing, os
def work(rank, requests, answers):
    os.environ.update(RANK=str(rank), WORLD_SIZE="4", LOCAL_RANK=str(rank))
    from vllm_omni.diffusion.models.minimax_h3.minimax_h3_transformer import MiniMaxH3DiTModel
    model = MiniMaxH3DiTModel()
    while True:
        steps = requests.get()
        answers.put([model.forward(step) for step in range(steps)])
def main(words):
    assert words[0] == "serve" and "--omni" in words
    ranks, port = int(words[words.index("--usp") + 1]), int(words[words.index("--port") + 1])
    context = multiprocessing.get_context("spawn")
    pipes = [(context.Queue(), context.Queue()) for _ in range(ranks)]
    for rank, (requests, answers) in enumerate(pipes):
        context.Process(target=work, args=(rank, requests, answers), daemon=True).start()
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            assert self.path == "/v1/images/generations", self.path
            with open("prompts", "a") as file:
                file.write(body["prompt"] + "\\n")
            for requests, _ in pipes:
                requests.put(body["num_inference_steps"])
            text = json.dumps([answers.get() for _, answers in pipes]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        def log_message(self, *words):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print("port", server.server_port, flush=True)
    server.serve_forever()
"""


def guide_blocks(heading):
    with open(os.path.join(SOURCE, "docs", "guide", "collect.md"), encoding="utf-8") as file:
        text = file.read()
    section = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, re.M | re.S).group(1)
    return re.findall(r"^```\n(.*?)^```", section, re.M | re.S)


def vllm_omni_as_the_guide_says(suite, tmp):
    """The two blocks of the guide, word for word but for the port: 4 spawned ranks, rank 0 records
    call 6, which is step 2 of request 2, and the service ends by itself."""
    home = Home(suite, tmp)
    serve, ask = guide_blocks("vLLM-Omni")
    os.makedirs(os.path.dirname(f"{tmp}/{OMNI}"))
    home.write(OMNI, "class MiniMaxH3DiTModel:\n    def forward(self, x):\n        return x + 1\n")
    home.write("vllm_stand_in.py", STAND_IN)
    os.mkdir(f"{tmp}/bin")
    home.write("bin/vllm", VLLM.format(python=home.python))
    os.chmod(f"{tmp}/bin/vllm", 0o755)
    os.symlink(suite.npuprof, f"{tmp}/bin/npuprof")
    home.env.update(PATH=f"{tmp}/bin:{home.env['PATH']}", no_proxy="*", NO_PROXY="*",
                    PYTHONPATH=f"{tmp}:{home.env['PYTHONPATH']}")
    assert "--port 8091" in serve and ":8091/v1/images/generations" in ask
    process = subprocess.Popen(
        ["bash", "-c", "exec " + serve.replace("--port 8091", "--port 0").replace(
            "npuprof run", "npuprof run --json --grace 5", 1)],
        cwd=tmp, env=home.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = next(line.split()[1] for line in process.stderr if line.startswith("port "))
    if subprocess.run(["sh", "-c", "command -v curl"], stdout=subprocess.DEVNULL).returncode == 0:
        # the third request may find the service gone already
        subprocess.run(["bash", "-c", ask.replace(":8091/", f":{port}/")], cwd=tmp, env=home.env,
                       timeout=60)
    else:
        for n in (1, 2):
            body = json.dumps({"prompt": f"a cat, number {n}", "num_inference_steps": 4}).encode()
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                f"http://127.0.0.1:{port}/v1/images/generations", body, 60).read()
    out, talk = process.communicate(timeout=90)
    assert process.returncode == 0, out + talk
    report = json.loads(out)
    assert report["verdict"] == "PASS", out
    recorded = [row for row in rows(report, "processes") if row["recorded"]]
    assert [row["rank"] for row in recorded] == [0] and recorded[0]["start"] == "spawn", recorded
    assert len(glob.glob(f"{tmp}/npuprof-runs/vllm-omni_*/prof/*_ascend_pt")) == 1
    assert table(report, "targets")[0]["recorded_call"] == 6, report
    with open(f"{tmp}/prompts") as file:  # R26: each another one
        prompts = file.read().splitlines()
    assert len(set(prompts)) == len(prompts) >= 2, prompts


LATE = """
import multiprocessing, os, time
from model import DiT  # wrapped before any worker knows its RANK
def work(rank):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2")
    class Slow(int):  # this rank's window is open for longer than the other's
        def __add__(self, other):
            time.sleep(4 * rank)
            return int(self) + other
    for call in range(6):
        DiT().forward(Slow(call) if call == 5 else call)
    time.sleep(600)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    for rank in range(2):
        context.Process(target=work, args=(rank,), daemon=True).start()
    time.sleep(600)
"""


def ranks_that_are_learned_late(suite, tmp):
    """A service is not ended while one of its ranks is recording, whatever RANK it began with."""
    home = Home(suite, tmp)
    home.write("late.py", LATE)
    report = home.run("--target", TARGET, "--ranks", "all", "--stop-after-capture", "--grace", "5",
                      command=[home.python, "late.py"])
    assert sorted(row["rank"] for row in rows(report, "processes") if row["recorded"]) == [0, 1]
    assert len(table(report, "captures")) == 2 and report["verdict"] == "PASS", report


# ── R57–R61: the profiler of cann-recipes ──

RECIPE = """
import os, sys
from torch_npu import profiler as p
res, phases = sys.argv[1], sys.argv[2].split(",")
for phase, active, skip in (("prefill", 1, 0), ("decode", 3, 3)):
    out = os.path.join(res, "prof", phase)
    os.makedirs(out)
    if phase not in phases:
        continue
    config = p._ExperimentalConfig(profiler_level=p.ProfilerLevel.Level1,
                                   aic_metrics=p.AiCMetrics.PipeUtilization)
    with p.profile(schedule=p.schedule(wait=0, warmup=0, active=active, repeat=1, skip_first=skip),
                   on_trace_ready=p.tensorboard_trace_handler(out),
                   experimental_config=config) as prof:
        for step in range(active + skip):
            prof.step()
"""
INFER_SH = """
res=models/qwen/res/$(date +%Y%m%d%H%M%S%N)/case
mkdir -p "$res"
"$PYTHON" recipe.py "$res" "$PHASES" 2>&1 | tee "$res/log_0.log"
[ -z "$SAY" ] || printf "$SAY" >> "$res/log_0.log"
"""


def path_a_is_watched(suite, tmp):
    """The guide's command: both phases are captures of their own; what log_0.log says counts."""
    home = Home(suite, tmp, PYTHON=sys.executable, PHASES="prefill,decode", SAY="")
    command = guide_blocks("cann-recipes-infer")[0].replace("MODEL", "qwen").replace("YAML", "y")
    words = command.replace("\\\n", " ").split()
    assert words[:2] == ["npuprof", "run"] and "--" in words, words
    options, inner = words[2:words.index("--")], words[words.index("--") + 1:]
    os.makedirs(f"{tmp}/executor/scripts")
    home.write("executor/scripts/infer.sh", INFER_SH)
    home.write("recipe.py", RECIPE)
    os.makedirs(f"{tmp}/models/qwen/res")
    report = home.run(*options, command=inner)
    assert report["verdict"] == "PASS" and len(table(report, "captures")) == 2, report
    assert {row["check"]: row["verdict"] for row in table(report, "checks")}[
        "framework_files"] == "PASS"
    report = home.run(*options, command=inner, status=1, PHASES="prefill")
    assert "decode" in finding(report, "PHASE_MISSING")["title"], codes(report)
    report = home.run(*options, command=inner, status=1,
                      SAY=r"\033[31m[ERROR]\033[0m CANNTimelineParser run failed\n")
    assert "RUN_FAILED" in codes(report, "error"), codes(report)
    report = home.run(*options, command=inner)  # the older ones do not count
    assert report["verdict"] == "PASS" and len(table(report, "captures")) == 2, report


BAD_DISK = """
import glob, os, sys
for out in glob.glob(os.path.join(sys.argv[1], "prof", "*", "*", "ASCEND_PROFILER_OUTPUT")):
    for path in glob.glob(os.path.join(out, "*.csv")):
        os.unlink(path)
    trace = os.path.join(out, "trace_view.json")
    os.truncate(trace, os.path.getsize(trace) // 2)
print("[ERROR] KernelViewParser run failed")
"""


def bad_disk_is_told(suite, tmp):
    """R62 in a run: the program's parsers failed, no table, and the trace is cut."""
    home = Home(suite, tmp, PYTHON=sys.executable, PHASES="decode", SAY="")
    os.makedirs(f"{tmp}/models/qwen/res")
    home.write("recipe.py", RECIPE + BAD_DISK)
    home.write("infer.sh", INFER_SH)
    report = home.run("--preset", "cann-recipes", "--watch", "models/qwen/res", status=1,
                      command=["bash", "infer.sh"])
    suspect = finding(report, "OUTPUT_FS_SUSPECT")
    assert "ln -sfn LOCAL_DISK/recipes_res models/MODEL/res" in suspect["advice"], suspect
    assert "/prof/decode/" in suspect["command"] and "LOCAL_DISK" in suspect["command"], suspect


def schedules_of_the_guides(suite, _tmp):
    """R60, R65: the examples, with the state in which they end."""
    for words, minimum, advised, state in (
            (["--skip-first", "3", "--active", "3"], 6, 7, "NONE"),          # decode of path A
            (["--active", "1"], 1, 2, "NONE"),                               # its prefill
            (["--warmup", "2", "--active", "30"], 32, 33, "NONE"),           # method A of path B
            (["--active", "30"], 30, 31, "NONE")):
        done = suite.call("plan", "schedule", *words, "--repeat", "1", "--json", check=0)
        got = table(json.loads(done.stdout), "summary")[0]
        assert (got["min_steps"], got["recommended_steps"]) == (minimum, advised), got
        assert got["state_at_exit"] == state, got
        steps = minimum - 2 if minimum > 2 else 0
        done = suite.call("plan", "schedule", *words, "--repeat", "1", "--steps", str(steps),
                          "--json", check=1 if minimum > 2 else None)
        if minimum > 2:
            bad = json.loads(done.stdout)
            assert "SCHEDULE_INCOMPLETE" in codes(bad), bad
            assert table(bad, "summary")[0]["state_at_exit"] == "RECORD", bad
    # folklore: warmup + active calls are enough for the data, but leave no margin
    done = suite.call("plan", "schedule", "--warmup", "2", "--active", "30", "--repeat", "1",
                      "--steps", "31", "--json", check=0)
    assert "RECORD_AND_SAVE" in table(json.loads(done.stdout), "summary")[0]["warning"]


# ── R27: every operation ──

GUIDE = {"all_reduce": lambda w, b, s: Fraction(2 * (w - 1), w) * b,
         "broadcast": lambda w, b, s: Fraction(w - 1, w) * b,
         "all_gather": lambda w, b, s: Fraction(w - 1) * b,
         "all_to_all": lambda w, b, s: Fraction(w - 1, w) * b}
OWN = {"reduce_scatter": lambda w, b, s: Fraction(w - 1, w) * s,
       "send": lambda w, b, s: Fraction(b) if w > 1 else Fraction(0)}
SAME_AS = {"all_to_all_v": "all_to_all", "all_to_all_vc": "all_to_all",
           "all_gather_v": "all_gather", "all_gather_object": "all_gather",
           "reduce_scatter_v": "reduce_scatter", "broadcast_object": "broadcast"}


def moved_of_every_operation(suite, tmp):
    """All operations of the format in groups of 1, 2 and 8: the figures beside fractions."""
    from npuprof_inject import comm_log
    import comm_reader
    names = {number: name for number, name in comm_reader.OPS.items() if number < 40}
    assert len(names) == 20, names
    payload, calls = 1_000_003, 3  # a prime: every quotient is rounded
    os.mkdir(f"{tmp}/comm")
    for world in (1, 2, 8):
        log = comm_log.Log(f"{tmp}/comm", 4096, rank=0, world=world)
        group, shape = log.string(",".join(map(str, range(world)))), log.string("[1000003]")
        for number in names:
            for call in range(calls):
                assert log.write(10 ** 18 + number * 1000 + call, 1000, payload, 2 * payload,
                                 payload, payload, call, 0, group, 0, 0, shape,
                                 comm_log.NO_U32, comm_log.NO_U32, 0, world, -1, -1, -1, 0, 0,
                                 number, 7, 255)
        del log
    report = json.loads(suite.call("comm", f"{tmp}/comm", "-v", "--json", check=0).stdout)
    got = {(row["op"], row["world"]): row for row in table(report, "collectives")}
    assert len(got) == 3 * len(names), sorted(got)
    for (name, world), row in got.items():
        kind = SAME_AS.get(name, name)
        assert row["calls"] == calls and row["size_bytes"] == calls * payload, row
        formula = GUIDE.get(kind) or OWN.get(kind)
        if formula is None:  # the source has none, nor have we
            assert row["moved~_bytes"] is None and row["basis"] != "R27", row
            continue
        one = formula(world, payload, 2 * payload)
        # the sum is rounded once
        assert row["moved~_bytes"] == int(calls * one + Fraction(1, 2)), (name, world, row, one)
        assert row["basis"] == ("R27" if kind in GUIDE else "derived"), row
        if world == 1:
            assert row["moved~_bytes"] == 0, row


CASES = (warm_up_of_every_preset, launch_facts, packed_capture_is_judged,
         runs_of_one_second_are_apart, calls_and_requests, vllm_omni_as_the_guide_says,
         ranks_that_are_learned_late, path_a_is_watched, bad_disk_is_told,
         schedules_of_the_guides, moved_of_every_operation)


def main():
    suite = Suite(__doc__)
    for case in CASES:
        suite.run(case.__name__, lambda tmp, case=case: case(suite, tmp))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
