#!/usr/bin/env python3
"""`npuprof dynamic` with jobs: several ranks below one directory, other editors, kills."""
import glob
import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
import time

from collect_lib import FAKES, Suite

RANKS = 4
MODULE = os.path.join(FAKES, "python", "torch_npu", "profiler", "dynamic_profile.py")


def worker(directory):
    """A rank: the loop of a training, until the file `stop` is there."""
    spec = importlib.util.spec_from_file_location("dynamic_profile", MODULE)
    dp = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dp)
    dp.init(directory)
    while not os.path.exists(os.path.join(directory, "stop")):
        time.sleep(0.05)
        dp.step()


class Job:
    def __init__(self, suite, tmp, ranks=RANKS):
        self.suite, self.dir = suite, os.path.join(tmp, "dyn")
        self.prof, self.shm = os.path.join(tmp, "prof"), os.path.join(tmp, "shm")
        self.set = os.path.join(tmp, "set")
        os.makedirs(self.shm, exist_ok=True)
        self.env = {"NPUPROF_SHM_DIR": self.shm, "NPUPROF_FAKE_DP_POLL": "0.1",
                    "NPUPROF_FAKE_DP_SET": self.set}
        suite.call("synth", self.set, "--ranks", str(ranks), "--format", "db", "-q", check=0)
        suite.call("dynamic", "init", self.dir, "--prof-dir", self.prof, check=0)
        self.processes = []

    def start(self, ranks=range(RANKS)):
        for rank in ranks:
            self.processes.append(subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), "--worker", self.dir],
                env={**os.environ, **self.env, "RANK": str(rank)},
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            # the first one makes the shared memory and the monitor
            self.wait_log(rank, "shared memory is ")
        time.sleep(1.1)  # a rank takes only times of a later second than that of its init
        return self

    def log(self, rank, prefix="dp"):
        text = ""
        directory = os.path.join(self.dir, "log")
        for name in sorted(os.listdir(directory) if os.path.isdir(directory) else []):
            if name.startswith(prefix + "_") and name.endswith(f"_rank_{rank}.log"):
                with open(os.path.join(directory, name), encoding="utf-8") as file:
                    text += file.read()
        return text

    def wait_log(self, rank, text):
        for _ in range(600):
            if text in self.log(rank):
                return
            time.sleep(0.05)
        raise AssertionError(f"rank {rank} never said '{text}':\n{self.log(rank)}")

    def dynamic(self, verb, *words, check=None, **more):
        return self.suite.call("dynamic", verb, self.dir, *words, env=self.env, check=check, **more)

    def report(self, verb, *words, check=None):
        done = self.dynamic(verb, *words, "--json", check=check)
        return json.loads(done.stdout)

    def stop(self):
        if os.path.isdir(self.dir):
            with open(os.path.join(self.dir, "stop"), "w", encoding="utf-8"):
                pass
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def codes(report):
    return [finding["code"] for finding in report["findings"]]


def causes(report):
    """Why something is missing; ranks of these jobs run freely, so that steps differ is normal."""
    return [code for code in codes(report) if code != "DYN_START_DIFFERS"]


def rows(report, table):
    found = next(t for t in report["tables"] if t["id"] == table)
    names = [column["name"] for column in found["columns"]]
    return [row if isinstance(row, dict) else dict(zip(names, row)) for row in found["rows"]]


def states(report):
    return {row["rank"]: row["state"] for row in rows(report, "ranks")}


# ── cases ──

def capture_of_all_ranks(suite, tmp):
    job = Job(suite, tmp, ranks=6).start(range(6))
    try:
        inode = os.stat(os.path.join(job.dir, "profiler_config.json")).st_ino
        report = job.report("trigger", "--steps", "2", "--warmup", "1", check=0)
        assert {r["key"]: r["after"] for r in rows(report, "changes")}["start_step"] == "-1"
        assert os.stat(os.path.join(job.dir, "profiler_config.json")).st_ino == inode
        report = job.report("watch", "--ranks", "6", "--timeout", "60", check=0)
        assert report["verdict"] == "PASS", report["verdict"]
        assert states(report) == {rank: "complete" for rank in range(6)}, states(report)
        first = {row["output"] for row in rows(report, "ranks")}
        assert all(row["stop_step"] == row["start_step"] + 3 for row in rows(report, "ranks"))
        # one step for all, far enough ahead
        ahead = max(row["stop_step"] for row in rows(report, "ranks")) + 80
        job.report("trigger", "--start-step", str(ahead), check=0)
        # at once, so that the outputs before are of the same second
        report = job.report("watch", "--ranks", "6", "--timeout", "60", check=0)
        assert {row["start_step"] for row in rows(report, "ranks")} == {ahead}
        assert "DYN_START_DIFFERS" not in codes(report)
        first |= {row["output"] for row in rows(report, "ranks")}
        # a second one, of two ranks: only the new outputs are judged
        job.report("trigger", "--ranks", "1,4", check=0)
        report = job.report("watch", "--timeout", "60")
        new = {row["rank"]: row["output"] for row in rows(report, "ranks")
               if row["state"] == "complete"}
        assert set(new) == {1, 4} and not first & set(new.values()), new
        assert "RANK_MISSING" in codes(report) and report["verdict"] == "FAIL", codes(report)
    finally:
        job.stop()


def gate_judges_the_outputs(suite, tmp):
    job = Job(suite, tmp)
    for name in ("ascend_pytorch_profiler_1.db", "analysis.db"):
        for path in glob.glob(os.path.join(job.set, "*", "ASCEND_PROFILER_OUTPUT", name)):
            os.truncate(path, 100)
    job.start()
    try:
        job.report("trigger", check=0)
        report = job.report("watch", "--ranks", "4", "--timeout", "60")
        assert set(states(report).values()) == {"complete"}, states(report)
        assert report["verdict"] == "FAIL", (report["verdict"], codes(report))
    finally:
        job.stop()


def raw_dump_without_analysis(suite, tmp):
    job = Job(suite, tmp).start()
    try:
        job.report("trigger", "--set", "analyse=false", "--set", "async_mode=false", check=0)
        report = job.report("watch", "--ranks", "4", "--timeout", "60", check=1)
        assert set(states(report).values()) == {"complete"}, states(report)
        assert "RAW_ONLY" in codes(report) or "DELIVERABLE_MISSING" in codes(report), codes(report)
    finally:
        job.stop()


def who_is_missing(suite, tmp):
    job = Job(suite, tmp).start(range(2))
    try:
        job.report("trigger", check=0)
        report = job.report("watch", "--ranks", "4", "--timeout", "4", check=3)
        assert report["verdict"] == "UNKNOWN"
        silent = [f for f in report["findings"] if f["code"] == "DYN_RANK_SILENT"]
        assert len(silent) == 1 and "2-3" in silent[0]["title"], report["findings"]
        # a start that is over is dropped by every rank: nothing to wait for
        job.wait_log(0, "Stop Dynamic Profiler")
        time.sleep(1)
        job.report("trigger", "--start-step", "1", check=0)
        report = job.report("watch", "--ranks", "0,1", "--timeout", "60", check=1)
        assert causes(report) == ["DYN_REFUSED"], codes(report)
        # a rank that is not in rank_list
        job.report("trigger", "--ranks", "1", check=0)
        report = job.report("watch", "--ranks", "0,1", "--timeout", "60", check=1)
        assert causes(report) == ["DYN_RANK_EXCLUDED"], codes(report)
        assert states(report)[1] == "complete"
        # nobody has asked
        job.report("trigger", "--start-step", "0", check=0)
        report = job.report("watch", "--timeout", "1", check=3)
        assert causes(report) == ["DYN_NOT_TRIGGERED"], codes(report)
    finally:
        job.stop()


def broken_json_is_told(suite, tmp):
    job = Job(suite, tmp).start(range(1))
    path = os.path.join(job.dir, "profiler_config.json")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        time.sleep(1.1)
        # in place, with a comment, as the guide's sample
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace('"start_step": 0,', '"start_step": -1, # next'))
        report = job.report("watch", "--timeout", "3", check=3)
        assert causes(report) == ["DYN_LOAD_FAILED"], codes(report)
        assert "DYN_JSON_COMMENTS" in codes(job.report("check", check=1))
        with open(path, encoding="utf-8") as file:
            before = file.read()
        assert "DYN_JSON_COMMENTS" in codes(job.report("trigger", check=2))
        with open(path, encoding="utf-8") as file:
            assert file.read() == before, "a refused file was written"
        job.report("trigger", "--strip-comments", check=0)
        job.report("watch", "--timeout", "60", check=1)  # one rank of four: the gate says so
        job.wait_log(0, "Stop Dynamic Profiler")
    finally:
        job.stop()


def editors_at_the_same_time(suite, tmp):
    job = Job(suite, tmp)
    path = os.path.join(job.dir, "profiler_config.json")
    with open(path, encoding="utf-8") as file:
        data = json.load(file)
    data["metadata"] = {"owner": "somebody", "note": "# no comment // here",
                        "edits": "00000000"}
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(data, indent=1))
    inode = os.stat(path).st_ino
    over = threading.Event()
    bad, reads, edits = [], [0], [0]

    def reader():
        while not over.is_set():
            with open(path, encoding="utf-8") as file:
                text = file.read()
            reads[0] += 1
            try:
                seen = json.loads(text)
                assert seen["metadata"]["owner"] == "somebody"
            except (ValueError, KeyError, AssertionError) as error:
                bad.append(f"{error}: {text}")

    def editor():
        # keeps the file open between reading and writing, as a script does; the same length,
        # so that it is not this one that tears
        while not over.wait(0.6):
            with open(path, "r+", encoding="utf-8") as file:
                text = file.read()
                edits[0] += 1
                old = '"edits": "' + json.loads(text)["metadata"]["edits"] + '"'
                os.pwrite(file.fileno(),
                          text.replace(old, f'"edits": "{edits[0]:08d}"').encode(), 0)

    threads = [threading.Thread(target=reader), threading.Thread(target=editor)]
    for thread in threads:
        thread.start()
    try:
        calls = [subprocess.Popen(
            [suite.npuprof, "dynamic", "trigger", job.dir, "-q", "--steps", str(n + 1), "--json"],
            env={**os.environ, **job.env}, stdout=subprocess.PIPE) for n in range(4)]
        ends = [(call.communicate()[0], call.returncode) for call in calls]
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not bad, bad[0]
    assert reads[0] > 100 and edits[0] > 2, (reads, edits)
    assert os.stat(path).st_ino == inode
    good = [out for out, status in ends if status in (0, 1)]
    assert len(good) == len(ends), ends
    with open(path, encoding="utf-8") as file:
        seen = json.load(file)
    assert seen["start_step"] == -1 and int(seen["metadata"]["edits"]) == edits[0], \
        (edits, seen["metadata"])
    assert seen["active"] in range(1, 5)


def killed_job_leaves_memory(suite, tmp):
    job = Job(suite, tmp).start(range(2))
    assert "DYN_SHM_USED" in codes(job.report("check", check=0))
    kept = rows(job.report("clean", check=0), "files")
    assert [row["done"] for row in kept] == ["kept"], kept
    for process in job.processes:
        process.send_signal(signal.SIGKILL)
    for process in job.processes:
        process.wait()
    job.processes.clear()
    for _ in range(200):  # the monitor sees that its parent is gone
        if "DYN_SHM_USED" not in codes(job.report("check")):
            break
        time.sleep(0.1)
    report = job.report("check", check=1)
    assert codes(report).count("DYN_SHM_STALE") == 1, codes(report)
    # joined without a word by the next job: no monitor, nothing is ever triggered
    job.start(range(1))
    job.report("trigger", check=0)
    report = job.report("watch", "--ranks", "0,", "--timeout", "2", check=3)
    assert causes(report) == ["DYN_NOT_LOADED"], codes(report)
    job.stop()
    os.unlink(os.path.join(job.dir, "stop"))
    job.processes.clear()
    # older than 900 s: the next job has no dynamic profiling
    name = os.path.join(job.shm, os.listdir(job.shm)[0])
    os.utime(name, (time.time() - 1000, time.time() - 1000))
    report = job.report("check", check=1)
    assert "DYN_SHM_STALE" in codes(report) and "no dynamic profiling" in json.dumps(report)
    would = rows(job.report("clean", "--dry-run", check=0), "files")
    assert [row["done"] for row in would] == ["would be removed"] and os.path.exists(name)
    done = rows(job.report("clean", "--logs", check=0), "files")
    assert {row["done"] for row in done} == {"removed"} and len(done) >= 4, done
    assert not os.listdir(job.shm) and not os.listdir(os.path.join(job.dir, "log"))
    # cured
    job.start(range(2))
    try:
        job.report("trigger", check=0)
        report = job.report("watch", "--ranks", "2", "--timeout", "60")
        assert set(states(report).values()) == {"complete"}, states(report)
    finally:
        job.stop()


def job_ends_while_recording(suite, tmp):
    job = Job(suite, tmp).start(range(2))
    job.report("trigger", "--steps", "500", check=0)
    job.wait_log(1, "Start Dynamic Profiler")
    report = job.report("trigger", "--start-step", "100000", check=0)
    assert "DYN_CAPTURE_RUNNING" in codes(report), codes(report)
    job.stop()
    report = job.report("watch", "--ranks", "2", "--since", "1", "--timeout", "20", check=1)
    assert causes(report) == ["DYN_ENDED_EARLY"], codes(report)


def logs_rotate(suite, tmp):
    job = Job(suite, tmp).start(range(2))
    try:
        job.report("trigger", check=0)
        job.report("watch", "--ranks", "2", "--timeout", "60")
        # what was said lies in the older part now; the newer one ends in half a line
        for name in os.listdir(os.path.join(job.dir, "log")):
            if name.startswith("dp_"):
                path = os.path.join(job.dir, "log", name)
                os.rename(path, path + ".1")
                with open(path, "w", encoding="utf-8") as file:
                    file.write("\033[31mSomething else\033[0m\nStart Dynamic Profi")
        report = job.report("watch", "--ranks", "2", "--timeout", "20")
        assert set(states(report).values()) == {"complete"}, states(report)
        assert all(row["start_step"] is not None for row in rows(report, "ranks"))
    finally:
        job.stop()


CASES = [capture_of_all_ranks, gate_judges_the_outputs, raw_dump_without_analysis, who_is_missing,
         broken_json_is_told, editors_at_the_same_time, killed_job_leaves_memory,
         job_ends_while_recording, logs_rotate]

if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2])
        sys.exit(0)
    SUITE = Suite(__doc__)
    for case in CASES:
        SUITE.run(case.__name__, lambda tmp, case=case: case(SUITE, tmp))
    sys.exit(SUITE.finish())
