#!/usr/bin/env python3
"""Killed at random moments, script, launcher or both, by SIGKILL or SIGTERM: the log of collectives
has every call that returned, and nothing half written passes the gate.

    collect_kills.py --npuprof PROGRAM [--kills N] [--seed S]
"""
import glob
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

import preload_lib
from collect_lib import FAKES, Suite

# A user's program: a model, collectives by libhccl.so as torch_npu makes them, and output. After
# each call that returned its number goes into the file `acks`.
SCRIPT = """
import ctypes, os, struct, sys, time

hccl = ctypes.CDLL("libhccl.so")
comm = ctypes.c_void_p()
root = ctypes.create_string_buffer(4108)
hccl.HcclCommInitRootInfo(4, root, 0, ctypes.byref(comm))
acks = os.open("acks", os.O_RDWR | os.O_CREAT, 0o600)
done = 0


class DiT:
    def forward(self, x):
        global done
        for i in range(20):
            hccl.HcclAllReduce(ctypes.c_void_p(1), ctypes.c_void_p(2), ctypes.c_uint64(done + 1), 4, 0,
                               comm, ctypes.c_void_p(9))
            done += 1
            os.pwrite(acks, struct.pack("<Q", done), 0)
        return x + 1


dit = DiT()
for step in range(10):
    dit.forward(step)
    print("step", step)
    time.sleep(0.01)
"""
WHO = ("script", "launcher", "group", "both")
SECONDS_PER_FILE = "0.04"


class Home:
    def __init__(self, suite, tmp):
        self.suite, self.tmp = suite, tmp
        with open(f"{tmp}/script.py", "w") as file:
            file.write(SCRIPT)
        fakes = preload_lib.fakes()
        self.env = {**os.environ, "NPUPROF": suite.npuprof, "LC_ALL": "C.UTF-8",
                    "PYTHONPATH": os.path.join(FAKES, "python"), "PYTHONDONTWRITEBYTECODE": "1",
                    "LD_LIBRARY_PATH": f"{fakes}/new:{fakes}", "FAKE_NPU_NO_TORCH": "1",
                    "FAKE_NPU_CACHE": f"{tmp}/cache", "FAKE_NPU_SLOW": SECONDS_PER_FILE}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LD_PRELOAD"):
            self.env.pop(name, None)

    def start(self, out):
        if os.path.exists(f"{self.tmp}/acks"):
            os.unlink(f"{self.tmp}/acks")
        return subprocess.Popen(
            [self.suite.npuprof, "run", "--target", "__main__:DiT.forward", "--collectives", "--grace",
             "2", "--python", sys.executable, "--out", out, "--", sys.executable, "script.py"],
            cwd=self.tmp, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True)

    def acknowledged(self):
        try:
            with open(f"{self.tmp}/acks", "rb") as file:
                data = file.read(8)
        except OSError:
            return 0
        return struct.unpack("<Q", data)[0] if len(data) == 8 else 0


def run_of(out):
    found = glob.glob(f"{glob.escape(out)}/*")
    return found[0] if found else None


def run_json(run):
    """run.json, which is whole or not there; None."""
    path = run and f"{run}/run.json"
    if not path or not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def processes_of(run):
    """Processes that the run has started and that still go on, by their environment."""
    found, mark = [], f"NPUPROF_INJECT={run}/".encode()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    environment = file.read()
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    words = file.read()
            except OSError:
                continue
            if mark in environment or (run.encode() in words and b"analyse" in words):
                found.append(int(name))
    return found


def end_all(run):
    """Whoever the launcher left: an exporter goes on without it, a while at least."""
    deadline = time.monotonic() + 20
    while run and (left := processes_of(run)) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


def kill(process, run, who, how):
    """False: there was nobody any more."""
    command = (run_json(run) or {}).get("command_pid")
    victims = []
    if who in ("script", "both") and command:
        victims.append((os.kill, command))
    if who == "group" and command:
        victims.append((os.killpg, command))
    if run and deliverables(run):  # the script has ended, its exporter is there
        victims = [(os.kill, pid) for pid in processes_of(run)] if who != "launcher" else []
    if who in ("launcher", "both") or (who != "launcher" and not command):
        victims.insert(0, (os.kill, process.pid))
    hit = False
    for function, pid in victims:
        if pid == process.pid and process.poll() is not None:
            continue
        try:
            function(pid, how)
            hit = True
        except ProcessLookupError:
            pass
    return hit


def moment(home, rng):
    """(its name, has it come?): at the start, in the loop, before the export, or within it. By what has
    happened, since a loaded machine has another time."""
    kind = rng.choice(("start", "calls", "calls", "ended", "files", "files"))
    if kind == "start":
        begin, delay = time.monotonic(), rng.uniform(0, 0.3)
        return f"{delay:.3f} s after the start", lambda run: time.monotonic() - begin >= delay
    if kind == "calls":
        number = rng.randrange(1, 200)
        return f"after call {number}", lambda run: home.acknowledged() >= number
    if kind == "ended":
        return "after the last call", lambda run: home.acknowledged() >= 200
    number = rng.randrange(1, 10)
    return f"after {number} files", lambda run: run and len(deliverables(run)) >= number


def wait_for(moment, process, out):
    deadline = time.monotonic() + 60
    while not moment(run_of(out)) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(random.random() * 0.02)


def check_logs(run, acknowledged):
    logs = preload_lib.read_logs(f"{run}/comm") if os.path.isdir(f"{run}/comm") else []
    calls = [call for log in logs for call in log.calls() if call.op == 1]
    counts = sorted(call.count for call in calls)
    assert counts in (list(range(1, acknowledged + 1)), list(range(1, acknowledged + 2))), \
        f"{acknowledged} calls had returned, the log has {len(counts)}: {counts[-3:]}"
    return len(calls)


def deliverables(run):
    return glob.glob(f"{glob.escape(run)}/prof/*/ASCEND_PROFILER_OUTPUT/*")


def half_written(run, whole):
    """Deliverables that are not what a run that nobody disturbed has."""
    bad, seen = [], set()
    for path in deliverables(run):
        name = os.path.basename(path)
        seen.add(name)
        if os.path.getsize(path) != whole[name]:
            bad.append(f"{name}: {os.path.getsize(path)} of {whole[name]} bytes")
    return bad + [f"{name} is missing" for name in whole if name not in seen]


def check_gate(home, run, whole):
    """The verdict of `npuprof check`; nothing half written passes."""
    if not os.path.isdir(f"{run}/prof"):
        return None
    marker = ["--start-marker", f"{run}/.start_marker"] if os.path.exists(
        f"{run}/.start_marker") else []
    done = home.suite.call("check", f"{run}/prof", *marker, "--json", env=home.env)
    assert done.returncode in (0, 1, 2, 3), done
    if done.returncode == 0:
        bad = half_written(run, whole)
        assert not bad, f"the gate passes {bad}"
    return done.returncode


def finish(home, run, whole):
    """--finish makes the best of it: a dump that is there becomes a capture that passes."""
    if run_json(run) is None or not os.path.exists(f"{run}/.start_marker"):
        return None
    done = home.suite.call("run", "--finish", run, "--python", sys.executable, "--json",
                           env={**home.env, "FAKE_NPU_SLOW": "0"})
    assert done.returncode in (0, 1, 3), done
    report = json.loads(done.stdout)
    after = run_json(run)
    assert after["state"] == "finished", after
    dumps = [path for path in glob.glob(f"{glob.escape(run)}/prof/*_ascend_pt")
             if glob.glob(f"{glob.escape(path)}/profiler_metadata.json")]
    if dumps:  # the raw dump is whole
        checks = {row[0]: row[2] for table in report["tables"] if table["id"] == "checks"
                  for row in table["rows"]}
        assert checks and set(checks.values()) == {"PASS"}, (checks, report["findings"])
        assert not half_written(run, whole), half_written(run, whole)
    return done.returncode


def undisturbed(home, out):
    process = home.start(out)
    assert process.wait(120) == 0, "a run that nobody disturbs"
    run = run_of(out)
    check_logs(run, home.acknowledged())
    assert home.acknowledged() == 200, home.acknowledged()
    whole = {os.path.basename(path): os.path.getsize(path) for path in deliverables(run)}
    assert {"analyse.done", "kernel_details.csv", "trace_view.json"} <= set(whole), whole
    assert check_gate(home, run, whole) == 0
    return whole


def kills(suite, tmp):
    """One run that is left alone, then N that are not; what happened to them is told."""
    rng = random.Random(suite.options.seed)
    home = Home(suite, tmp)
    undisturbed(home, f"{tmp}/first")  # makes the stand-in's data
    whole = undisturbed(home, f"{tmp}/whole")
    seen = {"in time": 0, "with logs": 0, "half written": 0, "gate passed": 0, "finished": 0}
    for i in range(suite.options.kills):
        who, how = WHO[i % 4], (signal.SIGKILL, signal.SIGTERM)[i // 4 % 2]
        when, has_come = moment(home, rng)
        what = f"kill {i} of seed {suite.options.seed}: {who}, {how.name}, {when}"
        out = f"{tmp}/out{i}"
        process = home.start(out)
        try:
            wait_for(has_come, process, out)
            run = run_of(out)
            seen["in time"] += kill(process, run, who, how)
            if who == "launcher" or how == signal.SIGKILL:
                end_all(run or run_of(out))
            process.wait(60)
            run = run_of(out)
            if run is None:
                continue
            end_all(run)
            seen["with logs"] += check_logs(run, home.acknowledged()) > 0
            run_json(run)
            seen["half written"] += bool(deliverables(run) and half_written(run, whole))
            seen["gate passed"] += check_gate(home, run, whole) == 0
            seen["finished"] += finish(home, run, whole) is not None
        except BaseException:
            print(f"# {what}")
            raise
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    print(f"# {suite.options.kills} kills: {seen}")
    # it has not hit nothing; who is gone in the export is not there to be killed
    assert seen["in time"] * 3 >= suite.options.kills and seen["with logs"] and seen["finished"], seen


def main():
    suite = Suite(__doc__, extra=[(["--kills"], {"type": int, "default": 24}),
                                  (["--seed"], {"type": int, "default": 1})])
    suite.run("kills", lambda tmp: kills(suite, tmp))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
