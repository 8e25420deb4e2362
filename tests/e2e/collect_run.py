#!/usr/bin/env python3
"""npuprof run: one command from a program to a judged capture, and every way in which it ends."""
import glob
import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import sys
import time

from collect_lib import FAKES, Suite, torch_python

# A program without torch, so that starting it costs little; the stand-in needs none either.
MODEL = """
class DiT:
    def forward(self, x):
        return x + 1
    def encode_prompt(self, text):
        return text
"""
INFER = """
import sys
from model import DiT
dit = DiT()
for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 8):
    assert dit.forward(i) == i + 1
    print("step", i)
"""
TORCH = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
    def forward(self, x):
        return self.layer(x)
def main():
    net = Net()
    for i in range(8):
        print("sum", net(torch.ones(2, 8)).sum().item())
if __name__ == "__main__":
    main()
"""
# What torchrun does, which costs seconds.
LAUNCH = """
import os, subprocess, sys
sys.exit(max([child.wait() for child in [subprocess.Popen(
    [sys.executable, "infer.py"], env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                     "WORLD_SIZE": "2"}) for rank in range(2)]]))
"""
TARGET = "model:DiT.forward"


class Home:
    """A directory with the programs, and the environment of the stand-in."""

    def __init__(self, suite, tmp, torch=False, **env):
        self.suite, self.tmp, self.out = suite, tmp, f"{tmp}/runs"
        self.python = torch_python() if torch else sys.executable
        for name, text in (("model.py", MODEL), ("infer.py", INFER), ("net.py", TORCH)):
            self.write(name, text)
        self.env = {**os.environ, "NPUPROF": suite.npuprof, "LC_ALL": "C.UTF-8",
                    "PYTHONPATH": os.path.join(FAKES, "python"), "PYTHONDONTWRITEBYTECODE": "1",
                    "FAKE_NPU_CACHE": f"{tmp}/cache", **env}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            self.env.pop(name, None)
        if not torch:
            self.env["FAKE_NPU_NO_TORCH"] = "1"

    def write(self, name, text):
        with open(f"{self.tmp}/{name}", "w") as file:
            file.write(text)

    def words(self, *options, command):
        return ["run", "--out", self.out, *options, "--", *command]

    def run(self, *options, command=None, status=0, timeout=120, **env):
        """Run it with --json: the report, with .status and .talk of the process in it."""
        command = command or [self.python, "infer.py"]
        done = subprocess.run([self.suite.npuprof, *self.words("--json", *options,
                                                               command=command)],
                              cwd=self.tmp, env={**self.env, **env}, capture_output=True,
                              timeout=timeout)
        talk = done.stderr.decode(errors="replace")
        assert done.returncode == status, f"exit {done.returncode}, not {status}\n" \
            f"{done.stdout.decode(errors='replace')}\n{talk}"
        report = json.loads(done.stdout) if done.stdout else {"findings": [], "tables": []}
        for one in report["findings"]:  # R105: whatever is wrong, what to do is said
            assert one["severity"] != "error" or one.get("command") or one.get("advice"), one
        report["talk"] = talk
        return report

    def text(self, *options, command=None, status=0, **env):
        command = command or [self.python, "infer.py"]
        done = subprocess.run([self.suite.npuprof, *self.words(*options, command=command)],
                              cwd=self.tmp, env={**self.env, **env}, capture_output=True,
                              timeout=120)
        assert done.returncode == status, done
        return done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")

    def start(self, *options, command, **how):
        return subprocess.Popen([self.suite.npuprof, *self.words(*options, command=command)],
                                cwd=self.tmp, env=self.env, **how)

    def dirs(self):
        """The run directories, the oldest first."""
        return sorted(glob.glob(f"{glob.escape(self.out)}/*"), key=lambda run: os.stat(
            f"{run}/inject" if os.path.exists(f"{run}/inject") else run).st_mtime_ns)

    def last(self):
        with open(f"{self.dirs()[-1]}/run.json") as file:
            return json.load(file)


def codes(report, severity=None):
    return [one["code"] for one in report["findings"]
            if severity in (None, one["severity"])]


def finding(report, code):
    found = [one for one in report["findings"] if one["code"] == code]
    assert found, f"no {code} in {codes(report)}"
    return found[0]


def rows(report, table):
    """Rows of a table as dictionaries."""
    for one in report["tables"]:
        if one["id"] == table:
            names = [column["name"] for column in one["columns"]]
            return [dict(zip(names, row)) if isinstance(row, list) else row
                    for row in one["rows"]]
    return []


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError("it did not come")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


# ── it works ──

def one_command(suite, tmp):
    home = Home(suite, tmp, torch=True)
    report = home.run("--target", "__main__:Net.forward", command=[home.python, "net.py"])
    assert report["verdict"] == "PASS" and not codes(report, "error"), report
    assert rows(report, "targets")[0]["calls"] == 8
    assert rows(report, "targets")[0]["recorded_in"] == 1
    assert rows(report, "captures")[0]["export"] == "analyse"
    assert report["talk"].count("sum ") == 8  # the program's output, and stdout is one document
    last, run = home.last(), home.dirs()[0]
    assert last["state"] == "finished" and last["command_status"]["exit"] == 0, last
    assert last["gate"]["verdict"] == "PASS" and last["verdict"] == "PASS", last
    assert last["captures"][0]["complete"], last
    assert open(f"{run}/log/run.log").read().count("sum ") == 8
    marker = os.stat(f"{run}/.start_marker").st_mtime_ns
    out, = glob.glob(f"{run}/prof/*_ascend_pt/ASCEND_PROFILER_OUTPUT")
    assert all(os.stat(f"{out}/{name}").st_mtime_ns >= marker for name in os.listdir(out))



def all_ranks(suite, tmp):
    home = Home(suite, tmp)
    home.write("launch.py", LAUNCH)
    command = [home.python, "launch.py"]
    report = home.run("--target", TARGET, "--ranks", "all", "--warmup", "2", command=command)
    assert len(rows(report, "captures")) == 2 and report["verdict"] == "PASS", report
    assert sorted(row["rank"] for row in rows(report, "processes") if row["recorded"]) == [0, 1]
    # rank 0 alone, as it is by default, is a whole capture (R7)
    report = home.run("--target", TARGET, "--warmup", "2", command=command)
    assert len(rows(report, "captures")) == 1 and report["verdict"] == "PASS", report
    assert codes(report, "info") == ["RANK_MISSING"], codes(report)
    # one that was asked for and is not there is none
    report = home.run("--target", TARGET, "--ranks", "0-2", command=command, status=1)
    assert "did not: 2" in finding(report, "RANK_NOT_RECORDED")["title"], report


def own_directories(suite, tmp):
    """Runs of one second, side by side, never share a directory."""
    home = Home(suite, tmp)
    runs = [home.start("--target", TARGET, "--name", "same", command=[home.python, "infer.py"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(4)]
    assert [run.wait(60) for run in runs] == [0] * 4
    assert len(home.dirs()) == 4, home.dirs()
    assert all(len(os.listdir(f"{run}/prof")) == 1 for run in home.dirs())


def configuration(suite, tmp):
    """What is asked for is what the dump says."""
    home = Home(suite, tmp)
    report = home.run("--target", TARGET, "--level", "Level2", "--aic-metrics", "Memory",
                      "--with-stack", "--with-memory", "--active", "2", "--warmup", "1",
                      "--export-type", "text,db", "--name", "my run", command=[
                          home.python, "infer.py", "6"])
    assert os.path.basename(home.dirs()[0]).startswith("my_run_"), home.dirs()
    path, = glob.glob(f"{home.dirs()[0]}/prof/*/profiler_info*.json")
    config = json.load(open(path))["config"]
    assert config["common_config"]["with_stack"] and config["common_config"]["profile_memory"]
    assert config["common_config"]["schedule"]["active"] == 2, config
    own = config["experimental_config"]
    assert own["_profiler_level"] == "Level2", own
    assert own["_aic_metrics"] == "ACL_AICORE_MEMORY_BANDWIDTH", own
    assert sorted(own["_export_type"]) == ["db", "text"], own
    assert rows(report, "targets")[0]["recorded_call"] == 2


# ── exit status ──

def exit_statuses(suite, tmp):
    home = Home(suite, tmp)
    fails = [home.python, "-c", "import runpy, sys; sys.argv = ['infer.py']\n"
             "runpy.run_path('infer.py', run_name='__main__'); sys.exit(7)"]
    env = {"PYTHONPATH": home.env["PYTHONPATH"] + ":" + tmp}
    report = home.run("--target", TARGET, command=fails, status=1, **env)
    assert codes(report, "error") == ["COMMAND_FAILED"] and rows(report, "run")[0][
        "exit_status"] == 7, report
    assert all(row["verdict"] == "PASS" for row in rows(report, "checks"))
    last = home.last()
    assert last["command_status"]["exit"] == 7 and last["exit_code"] == 1, last
    assert last["verdict"] == "FAIL" and last["gate"]["verdict"] == "PASS", last
    report = home.run("--target", TARGET, "--no-check", status=3)
    assert report["verdict"] == "UNKNOWN" and not rows(report, "checks"), report
    report = home.run("--target", TARGET, "--no-export", status=3)
    assert codes(report) == ["RAW_ONLY"], report
    report = home.run("--target", TARGET, "--level", "Level0", status=1, **{"FAKE_NPU_FAULTS":
                                                                         "header-only"})
    assert report["verdict"] == "FAIL", report


def usage(suite, tmp):
    home = Home(suite, tmp)
    for options, command, part in (
            (["--target", TARGET], [], "no command"),
            ([], ["true"], "nothing to record"),
            (["--target", "DiT.forward"], ["true"], "MODULE:QUALNAME"),
            (["--target", TARGET, "--ranks", "3-1"], ["true"], "--ranks"),
            (["--target", TARGET, "--level", "l1"], ["true"], "Level1"),
            (["--target", TARGET, "--warmup", "-1"], ["true"], "--warmup"),
            (["--target", TARGET, "--profile", "best"], ["true"], "kernel, framework"),
            (["--preset", "nothing"], ["true"], "--list-presets"),
            (["--preset", "lightx2v"], ["true"], "MiniMaxH3TransformerInfer.infer"),
            (["--preset", "cann-recipes"], ["true"], "--watch"),
            (["--target", TARGET, "--stage", "a=b:c"], ["true"], "--collectives"),
            (["--target", TARGET, "--call", "0"], ["true"], "from 1 on"),
            (["--target", TARGET, "--active", "0"], ["true"], "from 1 on"),
            (["--collectives", "--stage", "a=b:c", "--step-anchor", "d"], ["true"], "use one of a"),
            (["--collectives", "--stage", "a=b:c", "--request-anchor", "d"], ["true"],
             "use one of a"),
            (["--collectives", "--request-anchor", "d"], ["true"], "--stage d=MODULE:QUALNAME"),
            (["--target", TARGET], ["/nowhere/python3", "infer.py"], "the right path"),
            (["--target", TARGET], ["no-such-command-anywhere"], "in PATH"),
            (["--target", TARGET], ["model.py"], "python3 model.py"),
            (["--target", TARGET], ["./model.py"], "python3 ./model.py")):
        done = subprocess.run([suite.npuprof, *home.words(*options, command=command)], cwd=tmp,
                              env=home.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and part in done.stderr, f"{options} {command}: {done}"
        assert "run directory" not in done.stderr, done  # it is gone again
        assert home.dirs() == [], home.dirs()


def out_cannot_be_written(suite, tmp):
    home = Home(suite, tmp)
    os.mkdir(f"{tmp}/read-only", 0o500)
    places = [f"{tmp}/model.py/runs", "/proc/runs", f"{tmp}/model.py", f"{tmp}/{'x' * 300}"]
    for out in places + ([f"{tmp}/read-only"] if os.geteuid() else []):
        done = subprocess.run([suite.npuprof, "run", "--out", out, "--target", TARGET, "--",
                               home.python, "infer.py"], cwd=tmp, env=home.env,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 4 and "--out npuprof-runs" in done.stderr, done
        assert "step" not in done.stdout, "the command was started"


# ── exports ──

def exports_that_lie(suite, tmp):
    home = Home(suite, tmp)
    report = home.run("--target", TARGET, FAKE_NPU_ANALYSE="lie")
    assert rows(report, "captures")[0]["export"] == "parser", report
    for mode in ("lie", "mindstudio", "fail"):
        report = home.run("--target", TARGET, status=1, FAKE_NPU_ANALYSE=mode,
                          FAKE_NPU_PARSER="fail")
        failed = finding(report, "EXPORT_FAILED")
        assert report["verdict"] == "FAIL" and "analyse(sys.argv[1]" in failed["command"], failed
        assert codes(report).count("EXPORT_FAILED") == 1, codes(report)
        assert rows(report, "captures")[0]["deliverables"] is False, report
    report = home.run("--target", TARGET, "--export-timeout", "1", status=1,
                      FAKE_NPU_ANALYSE="hang", FAKE_NPU_PARSER="fail")
    assert "EXPORT_FAILED" in codes(report), report
    # what the printed command does: the dump is good, the exporter was not
    again = subprocess.run(["sh", "-c", finding(report, "EXPORT_FAILED")["command"]], cwd=tmp,
                           env=home.env, capture_output=True, timeout=60)
    assert again.returncode == 0, again
    done = suite.call("run", "--finish", home.dirs()[-1], "--json", env=home.env)
    assert json.loads(done.stdout)["verdict"] == "PASS", done.stdout


def without_torch_npu(suite, tmp):
    home = Home(suite, tmp)
    report = home.run("--target", TARGET, "--python", "/bin/false", status=3)
    raw = finding(report, "RAW_ONLY")
    assert report["verdict"] == "UNKNOWN" and "--finish" in raw["command"], raw
    dump = glob.glob(f"{home.dirs()[0]}/prof/*_ascend_pt")
    assert len(dump) == 1 and os.path.isdir(f"{dump[0]}/FRAMEWORK")
    words = raw["command"].split()[1:]
    done = suite.call(*words, "--python", home.python, "--json", env=home.env, check=0)
    assert json.loads(done.stdout)["verdict"] == "PASS"
    # the process itself cannot import it
    report = home.run("--target", TARGET, status=1, PYTHONPATH="")
    assert "NO_TORCH_NPU" in codes(report, "error"), report


def old_output_is_none(suite, tmp):
    home = Home(suite, tmp)
    home.run("--target", TARGET)
    watched = f"{tmp}/res"
    shutil.copytree(f"{home.dirs()[0]}/prof", watched)
    report = home.run("--watch", watched, command=["true"], status=1)
    missing = finding(report, "CAPTURE_MISSING")
    assert "1 older" in missing["detail"], missing
    # a new one beside it is judged alone
    home.write("own.py", """
import sys
from torch_npu import profiler as p
config = p._ExperimentalConfig(profiler_level=p.ProfilerLevel.Level1)
with p.profile(schedule=p.schedule(wait=0, warmup=0, active=1, repeat=1), record_shapes=True,
               on_trace_ready=p.tensorboard_trace_handler(sys.argv[1]),
               experimental_config=config) as prof:
    prof.step()
""")
    report = home.run("--watch", watched, command=[home.python, "own.py", watched])
    assert len(rows(report, "captures")) == 1 and report["verdict"] == "PASS", report
    assert rows(report, "captures")[0]["export"] == "by itself", report
    assert len(os.listdir(watched)) == 2


def msprof_is_watched(suite, tmp):
    """A command that is msprof: PROF_* is judged; what it did not export is told."""
    home = Home(suite, tmp)
    synth = f"{suite.npuprof} synth {tmp}/set --ranks 1 -f msprof --force " \
        f"--start-epoch $(date +%s)"
    report = home.run("--watch", f"{tmp}/set", command=["sh", "-c", synth])
    assert [os.path.basename(row["capture"])[:5] for row in rows(report, "captures")] == [
        "PROF_"], report
    dump = rows(report, "captures")[0]["capture"]
    # the same, collected only
    collect = f"mkdir -p {tmp}/raw && cp -r {dump} {tmp}/raw && " \
        f"rm -r {tmp}/raw/PROF_*/mindstudio_profiler_output"
    report = home.run("--watch", f"{tmp}/raw", command=["sh", "-c", collect], status=1)
    assert "msprof --export=on" in finding(report, "EXPORT_FAILED")["command"], report


# ── ends ──

def killed_after_capture(suite, tmp):
    home = Home(suite, tmp)
    home.write("arm.py", INFER + "\nimport os\nos.kill(os.getpid(), 9)\n")
    report = home.run("--target", TARGET, command=[home.python, "arm.py"], status=1)
    killed = finding(report, "COMMAND_KILLED")
    assert "KILL" in killed["title"] and "R38" in killed["detail"], killed
    assert rows(report, "captures")[0]["deliverables"] is True, report
    assert all(row["verdict"] == "PASS" for row in rows(report, "checks")), report
    assert "step 7" in open(f"{home.dirs()[0]}/log/run.log").read()


def killed_while_recording(suite, tmp):
    home = Home(suite, tmp)
    home.write("model.py", MODEL.replace("return x + 1", "if x == 5:\n            import os\n"
                                         "            os.kill(os.getpid(), 9)\n        return x + 1"))
    report = home.run("--target", TARGET, status=1)
    assert "COMMAND_KILLED" in codes(report, "error"), codes(report)
    assert "did not end" in finding(report, "TARGET_NOT_REACHED")["detail"], report


def time_limit(suite, tmp):
    home = Home(suite, tmp)
    home.write("hang.py", "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
               "print('up', flush=True)\ntime.sleep(600)\n")
    report = home.run("--target", TARGET, "--timeout", "1", "--grace", "1",
                      command=[home.python, "hang.py"], status=1)
    assert "COMMAND_TIMEOUT" in codes(report), codes(report)
    assert not is_alive(home.last()["command_pid"])


def interrupts(suite, tmp):
    """^C reaches the command; it may end well. The second one kills what does not care."""
    home = Home(suite, tmp)
    home.write("serve.py", INFER + "\nimport time\nprint('ready', flush=True)\ntry:\n"
               "    time.sleep(600)\nexcept KeyboardInterrupt:\n    print('bye', flush=True)\n")
    process = home.start("--target", TARGET, "--json", command=[home.python, "serve.py"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    wait_for(lambda: home.dirs() and os.path.exists(f"{home.dirs()[0]}/log/run.log") and
             "ready" in open(f"{home.dirs()[0]}/log/run.log").read())
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and json.loads(out)["verdict"] == "PASS", out
    assert "bye" in open(f"{home.dirs()[0]}/log/run.log").read()

    home.write("deaf.py", "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
               "print('ready', flush=True)\ntime.sleep(600)\n")
    process = home.start("--target", TARGET, "--json", command=[home.python, "deaf.py"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    log = wait_for(lambda: len(home.dirs()) == 2 and f"{home.dirs()[1]}/log/run.log")
    wait_for(lambda: os.path.exists(log) and "ready" in open(log).read())
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and "COMMAND_KILLED" in codes(json.loads(out)), out
    assert not is_alive(home.last()["command_pid"])


def server_is_stopped(suite, tmp):
    home = Home(suite, tmp)
    home.write("serve.py", INFER + "\nimport time\nwhile True: time.sleep(1)\n")
    report = home.run("--target", TARGET, "--stop-after-capture", "--grace", "5",
                      command=[home.python, "serve.py"])
    assert report["verdict"] == "PASS" and home.last()["command_status"][
        "stopped_after_capture"], report
    assert not is_alive(home.last()["command_pid"])


SERVER = """
import http.server, multiprocessing, threading
from model import DiT
def work(requests, answers):
    dit = DiT()
    while True:
        steps = requests.get()
        answers.put(sum(dit.forward(i) for i in range(steps)))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        requests.put(4)
        answer = str(answers.get()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *words):
        pass
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    requests, answers = context.Queue(), context.Queue()
    context.Process(target=work, args=(requests, answers), daemon=True).start()
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    print("port", server.server_port, flush=True)
    server.serve_forever()
"""


def http_service_with_spawned_worker(suite, tmp):
    """As vLLM-Omni: requests warm up a worker that was spawned; the service is ended after it."""
    import urllib.request
    home = Home(suite, tmp)
    home.write("serve.py", SERVER)
    process = home.start("--target", TARGET, "--stop-after-capture", "--grace", "5", "--json",
                         command=[home.python, "serve.py"], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    port = None
    for line in process.stderr:
        if line.startswith("port "):
            port = int(line.split()[1])
            break
    for _ in range(2):  # 4 steps each: call 6 is step 2 of request 2
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer:
            assert answer.read() == b"10"
    out, talk = process.communicate(timeout=60)
    assert process.returncode == 0, out + talk
    report = json.loads(out)
    recorded, = [row for row in rows(report, "processes") if row["recorded"]]
    assert recorded["start"] == "spawn" and recorded["parent"] == home.last()["command_pid"]


def terminated(suite, tmp):
    """A scheduler's SIGTERM is handed on, and nothing long is begun after it."""
    home = Home(suite, tmp)
    home.write("serve.py", INFER + "\nimport time\nprint('ready', flush=True)\n"
               "time.sleep(600)\n")
    process = home.start("--target", TARGET, "--json", command=[home.python, "serve.py"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    log = wait_for(lambda: home.dirs() and f"{home.dirs()[0]}/log/run.log")
    wait_for(lambda: os.path.exists(log) and "ready" in open(log).read())
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    report = json.loads(out)
    assert process.returncode == 1, out
    assert "TERM" in finding(report, "COMMAND_KILLED")["title"], out
    assert "--finish" in finding(report, "RAW_ONLY")["command"], out


def stopped_and_continued(suite, tmp):
    def state(pid):
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]

    home = Home(suite, tmp)
    home.write("wait.py", INFER + "\nimport os, time\nprint('ready', flush=True)\n"
               "while not os.path.exists('go'): time.sleep(0.1)\n")
    process = home.start("--target", TARGET, command=[home.python, "wait.py"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = wait_for(lambda: home.dirs() and f"{home.dirs()[0]}/log/run.log")
    wait_for(lambda: os.path.exists(log) and "ready" in open(log).read())
    child = home.last()["command_pid"]
    process.send_signal(signal.SIGTSTP)
    wait_for(lambda: state(process.pid) == "T" and state(child) == "T", 20)
    process.send_signal(signal.SIGCONT)
    wait_for(lambda: state(process.pid) != "T" and state(child) != "T", 20)
    home.write("go", "")
    assert process.wait(60) == 0


def launcher_dies(suite, tmp):
    home = Home(suite, tmp)
    home.write("serve.py", INFER + "\nimport time\nprint('ready', flush=True)\n"
               "time.sleep(600)\n")
    process = home.start("--target", TARGET, command=[home.python, "serve.py"],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = wait_for(lambda: home.dirs() and f"{home.dirs()[0]}/log/run.log")
    wait_for(lambda: os.path.exists(log) and "ready" in open(log).read())
    run, child = home.dirs()[0], home.last()["command_pid"]
    done = suite.call("run", "--finish", run, env=home.env, check=2)
    assert "still runs" in done.stderr, done
    process.kill()
    process.wait()
    assert home.last()["state"] == "running"
    done = suite.call("run", "--finish", run, env=home.env, check=2)
    assert "its command still runs" in done.stderr, done
    os.killpg(child, signal.SIGKILL)
    done = suite.call("run", "--finish", run, "--json", "--python", home.python, env=home.env,
                      check=3)
    report = json.loads(done.stdout)
    assert "LAUNCHER_DIED" in codes(report) and rows(report, "captures")[0]["deliverables"], report
    assert home.last()["state"] == "finished"
    suite.call("run", "--finish", tmp, env=home.env, check=2)


def leftovers_are_told(suite, tmp):
    home = Home(suite, tmp)
    report = home.run("--target", TARGET, command=[
        "sh", "-c", f"sleep 60 & echo $! > pid; {home.python} infer.py"])
    with open(f"{tmp}/pid") as file:
        pid = int(file.read())
    try:
        left = finding(report, "STILL_RUNNING")
        assert is_alive(pid) and left["command"].startswith("kill -- -"), left
        subprocess.run(["sh", "-c", left["command"]], check=True)
        wait_for(lambda: not is_alive(pid), 10)
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


# ── nothing recorded ──

def target_not_reached(suite, tmp):
    home = Home(suite, tmp)

    def why(*options, target=TARGET, command=None, **env):
        report = home.run("--target", target, *options, command=command, status=1, **env)
        assert report["verdict"] == "FAIL", report
        return finding(report, "TARGET_NOT_REACHED")

    assert "No Python process" in why(command=["true"])["detail"]
    assert "PYTHONPATH" in why(command=[home.python, "-I", "-c", "pass"])["advice"]
    never = why(target="nowhere.dit:DiT.forward")
    assert "never imported" in never["detail"], never
    typo = why(target="model:DiT.forwrad")
    assert "--target model:DiT.forward" in typo["command"], typo
    few = why("--warmup", "20")
    assert "called 8 times" in few["detail"] and "call 21" in few["detail"], few
    assert "--warmup 7" in few["command"], few
    # and that command works
    assert subprocess.run(["sh", "-c", few["command"].replace("npuprof", suite.npuprof, 1)],
                          cwd=tmp, env=home.env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0
    assert "--ranks all" in why("--ranks", "3")["command"]
    # a module that nobody imported: where the name was defined, else what is spelt like it
    for target in ("elsewhere.dit:DiT.forward", "modle:DiT.forward"):
        assert "--target model:DiT.forward" in why(target=target)["command"], target


def commands_are_whole(suite, tmp):
    """The printed command is the run again, with one thing changed: pasted, it works."""
    home = Home(suite, tmp)
    options = ["--warmup", "1", "--active", "2", "--level", "Level2", "--aic-metrics", "Memory",
               "--with-stack", "--no-shapes", "--with-memory", "--export-type", "text,db",
               "--phase", "both", "--name", "a b", "--grace", "7", "--export-timeout", "300",
               "--profile", "framework", "--pre-check", "echo 'x y'", "--ranks", "0"]
    report = home.run("--target", "model:DiT.forwrad", "--target", "model:DiT.never", *options,
                      status=1)
    command = finding(report, "TARGET_NOT_REACHED")["command"]
    # both targets stay, the one that was wrong is put right
    assert "--target model:DiT.forward " in command and "--target model:DiT.never" in command, command
    env = {**home.env, "PATH": os.path.dirname(suite.npuprof) + ":" + home.env["PATH"]}
    done = subprocess.run(["sh", "-c", command], cwd=tmp, env=env, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done
    first, second = [json.load(open(f"{run}/run.json")) for run in home.dirs()]
    for name in ("call", "warmup", "active", "ranks", "level", "aic_metrics", "with_stack",
                 "record_shapes", "profile_memory", "export_type", "phase", "name", "gate_profile",
                 "command", "collectives"):
        assert first[name] == second[name], name
    report = home.run("--collectives", "--stage", "dit=model:DiT.forward", "--stage",
                      "req=model:DiT.encode_prompt", "--step-anchor", "dit", "--request-anchor",
                      "req", status=1)
    command = finding(report, "COLLECTIVES_MISSING")["command"]
    for part in ("--stage dit=model:DiT.forward", "--stage req=model:DiT.encode_prompt",
                 "--step-anchor dit", "--request-anchor req"):
        assert part in command, command


def several_dumps_fail_as_one(suite, tmp):
    home = Home(suite, tmp)
    home.write("launch.py", LAUNCH)
    report = home.run("--target", TARGET, "--ranks", "all", command=[home.python, "launch.py"],
                      status=1, FAKE_NPU_ANALYSE="fail", FAKE_NPU_PARSER="fail")
    failed = finding(report, "EXPORT_FAILED")
    assert codes(report).count("EXPORT_FAILED") == 1 and "2 raw dumps" in failed["title"], report
    done = subprocess.run(["sh", "-c", failed["command"]], cwd=tmp, env=home.env,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done
    suite.call("run", "--finish", home.dirs()[0], env=home.env, check=0)


def export_is_cut_off(suite, tmp):
    """Deliverables without analyse.done beside a raw dump: half written, whatever they look like."""
    home = Home(suite, tmp)
    home.run("--target", TARGET)
    run = home.dirs()[0]
    mark, = glob.glob(f"{run}/prof/*/ASCEND_PROFILER_OUTPUT/analyse.done")
    table = f"{os.path.dirname(mark)}/kernel_details.csv"
    lines = open(table).read().splitlines(True)
    os.unlink(mark)
    with open(table, "w") as file:
        file.writelines(lines[:len(lines) // 2])
    report = json.loads(suite.call("check", f"{run}/prof", "--json", check=3).stdout)
    assert "EXPORT_UNFINISHED" in codes(report), codes(report)
    done = suite.call("run", "--finish", run, "--json", "--python", home.python, env=home.env,
                      check=0)
    assert rows(json.loads(done.stdout), "captures")[0]["export"] == "analyse", done.stdout
    assert open(table).read().splitlines(True) == lines and os.path.exists(mark)


def pre_check(suite, tmp):
    home = Home(suite, tmp)
    for command, status in (("exit 1", 2), ("true", 2), ("echo shape 8", 0),
                            ("echo shape; kill -9 $$", 2)):
        report = home.run("--target", TARGET, "--pre-check", command, status=status)
        assert ("PRECHECK_FAILED" in codes(report)) == (status == 2), report
        ran = os.path.exists(f"{home.dirs()[-1]}/log/run.log")
        assert ran == (status == 0), command
        assert home.last()["state"] == "finished"


# ── words, output, signs ──

def odd_words_and_paths(suite, tmp):
    words = ["a b", "it's", '"', "x\ny", "$HOME", "*", "", "中文", "--", "--target"]
    inner = f"{tmp}/my dir 'é'"
    os.mkdir(inner)
    home = Home(suite, inner)
    home.out = f"{inner}/out of\nhere"
    home.write("words.py", INFER.replace("if len(sys.argv) > 1 else 8", "if 0 else 8") +
               "\nimport json\nopen('words.json', 'w').write(json.dumps(sys.argv[1:]))\n")
    report = home.run("--target", TARGET, command=[home.python, "words.py", *words])
    assert report["verdict"] == "PASS" and "PATH_UNUSUAL" in codes(report), report
    assert json.load(open(f"{inner}/words.json")) == words
    assert home.last()["command"] == [home.python, "words.py", *words]
    # a command without `--` in front, as the first word that is no option
    done = subprocess.run([suite.npuprof, "run", "--out", f"{tmp}/plain", "--target", TARGET, "-q",
                           home.python, "infer.py", "9"], cwd=inner, env=home.env,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "step 8" in done.stdout, done


def much_output(suite, tmp):
    """20 MB through a reader that stops: the command goes on, the log has all of it."""
    home = Home(suite, tmp)
    home.write("loud.py", INFER + "\nfor i in range(200000):\n    print('x' * 99)\n"
               "print('last', file=sys.stderr)\n")
    process = home.start("--target", TARGET, command=[home.python, "-W", "ignore", "loud.py"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    log = wait_for(lambda: home.dirs() and f"{home.dirs()[0]}/log/run.log")
    wait_for(lambda: os.path.exists(log) and os.path.getsize(log) > 20_000_000, 60)
    wait_for(lambda: home.last()["state"] != "running", 30)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out[-2000:]
    lines = open(log).read().splitlines()
    assert lines.count("x" * 99) == 200000 and "last" in lines
    assert b"did not reach the terminal" in out, out[-2000:]


def closed_terminal(suite, tmp):
    home = Home(suite, tmp)
    process = home.start("--target", TARGET, "-o", f"{tmp}/report.txt",
                         command=[home.python, "infer.py"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    process.stderr.close()
    assert process.wait(60) == 0
    assert "PASS" in open(f"{tmp}/report.txt").read()
    assert "step 7" in open(f"{home.dirs()[0]}/log/run.log").read()


def log_cannot_grow(suite, tmp):
    """As on a full disk: the command goes on, its capture counts, and the report says so."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, 4_000_000))

    home = Home(suite, tmp)
    home.run("--target", TARGET)  # fills the cache of the stand-in
    home.write("loud.py", INFER + "\nfor i in range(60000):\n    print('x' * 99)\n")
    process = home.start("--target", TARGET, "--json", command=[home.python, "loud.py"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=limit)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, out
    assert "LOG_INCOMPLETE" in codes(json.loads(out)), out


def signs_in_the_log(suite, tmp):
    home = Home(suite, tmp)
    home.write("noisy.py", INFER + r"""
print("\x1b[31m[ERROR]\x1b[0m UB \x1b[1mLINK\x1b[0m ERROR on card 3")
print("run.sh: line 2: $'\\r': command not found")
print("bind port 16666 failed")
print("[2026-01-01 00:00:00] [WARNING] [1] profiler.py: Incorrect schedule: WARMUP followed by NONE")
""")
    report = home.run("--target", TARGET, command=[home.python, "noisy.py"])
    assert {row["sign"] for row in rows(report, "log_signs")} == {
        "UB LINK ERROR", "$'\\r'", "16666", "WARMUP followed by NONE"}, rows(report, "log_signs")
    commands = [one.get("command") for one in report["findings"] if one["code"] == "LOG_WARNING"]
    assert "export HCCL_NPU_SOCKET_PORT_RANGE=20000-21000" in commands, commands
    assert "npu-smi info" in commands, commands


def hook_can_be_off(suite, tmp):
    home = Home(suite, tmp)
    report = home.run("--target", TARGET, status=1, NPUPROF_INJECT_OFF="1")
    assert "No Python process" in finding(report, "TARGET_NOT_REACHED")["detail"]


def collectives(suite, tmp):
    """Without a target nothing is profiled; a program that sends nothing is told so."""
    home = Home(suite, tmp)
    report = home.run("--collectives", "--stage", f"dit={TARGET}", "--request-anchor", "dit",
                      status=1)
    assert codes(report, "error") == ["COLLECTIVES_MISSING"], report
    inject = json.load(open(f"{home.dirs()[0]}/inject.json"))
    assert inject["targets"] == [] and inject["collectives"]["step"] == "dit", inject
    assert inject["collectives"]["request"] == "dit", inject
    assert inject["collectives"]["stages"] == [
        {"name": "dit", "module": "model", "qualname": "DiT.forward"}], inject


def presets(suite, tmp):
    home = Home(suite, tmp)
    done = suite.call("run", "--list-presets", "--json", check=0)
    names = [row["preset"] for row in rows(json.loads(done.stdout), "presets")]
    assert {"lightx2v", "diffsynth", "vllm-omni", "diffusers", "cann-recipes", "mindspeed",
            "verl"} <= set(names), names
    home.write("ports.py", INFER + "\nimport os\nprint(os.environ['HCCL_NPU_SOCKET_PORT_RANGE'])\n")
    for env, wanted in (({}, "20000-21000"), ({"HCCL_NPU_SOCKET_PORT_RANGE": "1-2"}, "1-2")):
        report = home.run("--preset", "lightx2v", "--target", TARGET,
                          command=[home.python, "ports.py"], **env)
        assert wanted in report["talk"].splitlines(), report["talk"]
    assert os.path.basename(home.dirs()[0]).startswith("lightx2v_")


# ── a terminal ──

def read_until(fd, part, seconds=60):
    text, end = b"", time.monotonic() + seconds
    while part not in text:
        left = end - time.monotonic()
        assert left > 0, text
        if select.select([fd], [], [], left)[0]:
            try:
                text += os.read(fd, 65536)
            except OSError:
                break
    assert part in text, text
    return text


def on_a_terminal(suite, tmp):
    """The command reads the terminal, ^C ends it, and the report still comes."""
    home = Home(suite, tmp)
    home.write("ask.py", INFER + "\ntry:\n    print('you said', input())\n"
               "    input()\nexcept KeyboardInterrupt:\n    print('interrupted')\n")
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(tmp)
        os.execve(suite.npuprof, [suite.npuprof, *home.words("--target", TARGET, command=[
            home.python, "ask.py"])], home.env)
    try:
        read_until(fd, b"step 7")
        os.write(fd, b"hello\n")
        read_until(fd, b"you said hello")
        time.sleep(0.3)
        os.write(fd, b"\x03")
        text = read_until(fd, b"interrupted")
        text = read_until(fd, b"PASS")
        while True:
            try:
                if not os.read(fd, 65536):
                    break
            except OSError:
                break
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(fd)
    assert os.waitstatus_to_exitcode(status) == 0, status


CASES = (one_command, own_directories, all_ranks, configuration, exit_statuses, usage, out_cannot_be_written,
         exports_that_lie, without_torch_npu, old_output_is_none, msprof_is_watched, killed_after_capture,
         killed_while_recording, time_limit, interrupts, server_is_stopped,
         http_service_with_spawned_worker, terminated, stopped_and_continued, launcher_dies,
         leftovers_are_told, target_not_reached, commands_are_whole, several_dumps_fail_as_one,
         export_is_cut_off, pre_check, odd_words_and_paths, much_output,
         closed_terminal, log_cannot_grow,
         signs_in_the_log, hook_can_be_off, collectives, presets, on_a_terminal)


def main():
    suite = Suite(__doc__)
    for case in CASES:
        suite.run(case.__name__, lambda tmp, case=case: case(suite, tmp))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
