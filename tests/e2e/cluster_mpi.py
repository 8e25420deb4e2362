#!/usr/bin/env python3
"""`npuprof cluster` under mpirun: any number of processes says what one process says.

  cluster_mpi.py --npuprof PATH [CASE...]

The module npuprof_mpi.so is expected beside the program. Each case is a TAP line.
Exit status: 0 all passed, 1 something failed, 77 no mpirun or no module.
"""
import argparse
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MODES = "hccl_sum,diagnose"
TIMEOUT_S = 240


class Failure(Exception):
    pass


class Lab:
    def __init__(self, npuprof, scratch):
        self.npuprof = npuprof
        self.scratch = scratch
        self.count = 0
        self.env = dict(os.environ, LC_ALL="C", XDG_CACHE_HOME=self.path("cache"),
                        OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                        OMPI_MCA_rmaps_base_oversubscribe="1",
                        OMPI_MCA_btl_vader_single_copy_mechanism="none")
        # what libmpi keeps to its end is no leak of ours
        options = self.env.get("ASAN_OPTIONS", "")
        self.env["ASAN_OPTIONS"] = (options + ":" if options else "") + "detect_leaks=0"
        for name in list(self.env):
            if name.startswith(("OMPI_COMM_WORLD", "PMI_", "PMIX_")):
                del self.env[name]

    def path(self, name):
        return os.path.join(self.scratch, name)

    def new(self, name):
        self.count += 1
        return self.path(f"{name}{self.count}")

    def run(self, words, **more):
        return subprocess.run(words, env=dict(self.env, **more.pop("env", {})),
                              cwd=self.scratch, capture_output=True, timeout=TIMEOUT_S, **more)

    def synth(self, name, *words):
        done = self.run([self.npuprof, "synth", name, *words])
        if done.returncode:
            raise Failure(f"synth: {done.stderr.decode()}")
        return name

    def command(self, path, *words):
        return [self.npuprof, "cluster", "-m", MODES, path, *words]

    def mpi(self, processes):
        return ["mpirun", "--oversubscribe", "-n", str(processes)]

    def cluster(self, path, *words, processes=0, program=None, env=None):
        command = self.command(path, *words)
        if program:
            command[0] = program
        return self.run((self.mpi(processes) if processes else []) + command, env=env or {})


def expect(condition, what, done=None):
    if not condition:
        more = f"\n{done.returncode}: {done.stderr.decode(errors='replace')}" if done else ""
        raise Failure(what + more)


def tree(path):
    """Relative names and contents of all files below a directory."""
    found = {}
    for folder, _, files in os.walk(path):
        for file in files:
            full = os.path.join(folder, file)
            with open(full, "rb") as data:
                found[os.path.relpath(full, path)] = data.read()
    return found


ALL = [(processes, jobs) for processes in (1, 2, 3, 5) for jobs in (1, 2, 3)]
FEW = [(2, 1), (3, 2)]


def same_everywhere(lab, path, *words, status=0, counts=FEW):
    """--json of any number of processes and threads is that of one process without mpirun."""
    alone = lab.cluster(path, "--json", "--no-cache", *words)
    expect(alone.returncode == status, f"exit status, expected {status}", alone)
    expect(alone.stdout, "nothing was said")
    for processes, jobs in counts:
        done = lab.cluster(path, "--json", "--no-cache", "-j", str(jobs), *words,
                           processes=processes)
        what = f"{processes} processes, -j {jobs}"
        expect(done.returncode == status, f"{what}: exit status", done)
        expect(done.stdout == alone.stdout, f"{what}: other bytes", done)
    return alone


# ── cases ──

def json_is_the_same(lab):
    same_everywhere(lab, lab.synth(lab.new("set"), "--ranks", "7", "--format", "text,db",
                                   "--fault", "slow-rank=3"), counts=ALL)


def more_processes_than_ranks(lab):
    same_everywhere(lab, lab.synth(lab.new("set"), "--ranks", "2", "--format", "db"),
                    counts=[(3, 1), (5, 1)])


def files_are_the_same(lab):
    path = lab.synth(lab.new("set"), "--ranks", "6")
    for kind in ("db", "text"):
        expected = None
        for processes in (0, 2, 3):
            # the same name, since the report tells it
            shutil.rmtree(lab.path("out"), ignore_errors=True)
            done = lab.cluster(path, "--no-cache", "-o", "out", "--export_type", kind,
                               processes=processes)
            expect(done.returncode == 0, f"{kind}, {processes} processes: exit status", done)
            got = dict(tree(lab.path("out")), stdout=done.stdout)
            expect(len(got) > 1, "no files were written", done)
            expected = expected or got
            expect(got.keys() == expected.keys(), f"{processes} processes: other files", done)
            for name, data in got.items():
                expect(data == expected[name], f"{processes} processes: {name} differs", done)


def unreadable_rank(lab):
    path = lab.synth(lab.new("set"), "--ranks", "5")
    for file in glob.glob(lab.path(path) + "/*_100007_*/ASCEND_PROFILER_OUTPUT/*"):
        with open(file, "wb") as damaged:
            damaged.write(b"no table\n")
    alone = same_everywhere(lab, path, status=4)
    expect(b"CLUSTER_RANK_UNREADABLE" in alone.stdout, "the rank is not told")


def damaged_rank(lab):
    path = lab.synth(lab.new("set"), "--ranks", "5", "--format", "db")
    (file,) = glob.glob(lab.path(path) + "/*_100014_*/*/ascend_pytorch_profiler_*.db")
    os.truncate(file, 5000)
    alone = same_everywhere(lab, path, status=3)
    expect(b"FILE_DAMAGED" in alone.stdout, "the damage is not told")


def refused_batch(lab):
    path = lab.synth(lab.new("set"), "--ranks", "3", "--fault", "duplicate-rank=1")
    alone = same_everywhere(lab, path, status=1)
    expect(b"CLUSTER_REFUSED" in alone.stdout, "the refusal is not told")
    same_everywhere(lab, path, "--force", status=3)


def absent_step(lab):
    path = lab.synth(lab.new("set"), "--ranks", "3")
    same_everywhere(lab, path, "--step_id", "99", status=3)


def only_one_speaks(lab):
    done = lab.run(lab.mpi(3) + [lab.npuprof, "cluster", "--list-modes"])
    alone = lab.run([lab.npuprof, "cluster", "--list-modes"])
    expect(done.stdout == alone.stdout, "the modes were told more than once", done)
    done = lab.cluster("absent", processes=3)
    expect(done.returncode == 2, "exit status", done)
    expect(done.stderr.count(b"npuprof: ") == 1, "the error is told more than once", done)
    done = lab.run(lab.mpi(3) + [lab.npuprof, "cluster", "-m", "no_such_mode", "x"])
    expect(done.returncode == 2 and done.stderr.count(b"unknown mode") == 1,
           "the unknown mode is not told once", done)


def one_process_sees_nothing(lab):
    """Its file system is not there, or holds other captures."""
    path = lab.synth(lab.new("set"), "--ranks", "4")
    other = lab.synth(lab.new("set"), "--ranks", "3")
    for at, expected in (("absent", b"process 1 on "), (other, b"sees other captures")):
        done = lab.run(["mpirun", "--oversubscribe", "-n", "1", *lab.command(path), ":",
                        "-n", "1", *lab.command(at), ":", "-n", "1", *lab.command(path)])
        expect(done.returncode == 4, "exit status", done)
        expect(expected in done.stderr, f"no word of '{expected.decode()}'", done)
        expect(not done.stdout, "something was said all the same", done)
    done = lab.run(["mpirun", "--oversubscribe", "-n", "1", *lab.command("absent"), ":",
                    "-n", "2", *lab.command(path)])
    expect(done.returncode == 2 and done.stderr.count(b"npuprof: ") == 1,
           "the root's own error is not told once", done)


def pid_of(rank):
    for environ in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(environ, "rb") as data:
                words = data.read().split(b"\0")
            with open(environ.replace("environ", "comm"), "rb") as data:
                name = data.read().strip()
        except OSError:
            continue
        if b"OMPI_COMM_WORLD_RANK=%d" % rank in words and name == b"npuprof" and \
                b"NPUPROF_TEST=%d" % os.getpid() in words:
            return int(environ.split("/")[2])
    return None


def wait_until(what, condition, running):
    until = time.monotonic() + TIMEOUT_S
    while not condition():
        expect(time.monotonic() < until, f"{what}: did not happen")
        expect(running.poll() is None, f"{what}: the run ended before")
        time.sleep(0.002)


def killed_process(lab):
    """Row 1 is process 1's and long; the others are in the cache when it is killed."""
    path = lab.synth(lab.new("set"), "--ranks", "6")
    big = lab.synth(lab.new("big"), "--ranks", "6", "--steps", "60", "--layers", "40", "--tp",
                    "1", "--format", "text")
    for victim in glob.glob(lab.path(path) + "/*_100007_*"):
        shutil.rmtree(victim)
    (source,) = glob.glob(lab.path(big) + "/*_100007_*")
    shutil.copytree(source, os.path.join(lab.path(path), os.path.basename(source)))
    shutil.rmtree(lab.path(big))
    shutil.rmtree(lab.path("cache"), ignore_errors=True)

    def cached():
        return len(glob.glob(lab.path("cache/npuprof/*.digest")))

    running = subprocess.Popen(
        lab.mpi(3) + lab.command(path, "-j", "1", "-o", "killed"), cwd=lab.scratch,
        env=dict(lab.env, NPUPROF_TEST=str(os.getpid())), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    try:
        # ranks 0, 2, 3, 5 of the processes 0 and 2, two parts each
        wait_until("the others are read", lambda: cached() >= 8, running)
        os.kill(pid_of(1), signal.SIGKILL)
        out, err = running.communicate(timeout=TIMEOUT_S)
    finally:
        if running.poll() is None:
            running.kill()
    text = err.decode(errors="replace")
    expect(running.returncode != 0, f"a killed process is no failure: {text}")
    expect("npuprof: the job was ended" in text and "cache" in text, f"no clear message: {text}")
    expect(not out, "something was said all the same")
    expect(not os.path.exists(lab.path("killed")), "files were written")
    before = cached()
    expect(before >= 8, "the cache was lost")

    alone = lab.cluster(path, "--json", "--no-cache")
    again = lab.cluster(path, "--json", processes=3)
    expect(again.returncode == alone.returncode, "the rerun's exit status", again)
    expect(again.stdout == alone.stdout, "the rerun says something else", again)
    expect(cached() > before, "the rerun kept nothing")
    # and what is in the cache is used: nothing is written anew
    times = {file: os.stat(file).st_mtime_ns for file in
             glob.glob(lab.path("cache/npuprof/*.digest"))}
    third = lab.cluster(path, "--json", processes=2)
    expect(third.stdout == alone.stdout, "from the cache something else is said", third)
    expect(times == {file: os.stat(file).st_mtime_ns for file in
                     glob.glob(lab.path("cache/npuprof/*.digest"))}, "the cache was not used")


def without_the_module(lab):
    path = lab.synth(lab.new("set"), "--ranks", "2")
    os.makedirs(lab.path("alone"), exist_ok=True)
    program = lab.path("alone/npuprof")
    shutil.copy(lab.npuprof, program)
    done = lab.cluster(path, processes=3, program=program)
    expect(done.returncode == 4, "exit status", done)
    expect(done.stderr.count(b"npuprof_mpi.so is not there") == 1, "not told once", done)
    expect(not done.stdout, "something was said all the same", done)
    done = lab.cluster(path, program=program)
    expect(done.returncode == 0, "not started by mpirun, it fails", done)


def captures_stay_as_they_are(lab):
    path = lab.synth(lab.new("set"), "--ranks", "3", "--format", "text,db")
    before = tree(lab.path(path))
    done = lab.cluster(path, "-o", "elsewhere", processes=2)
    expect(done.returncode == 0, "exit status", done)
    expect(tree(lab.path(path)) == before, "a capture was written to")


CASES = [json_is_the_same, more_processes_than_ranks, files_are_the_same, unreadable_rank,
         damaged_rank, refused_batch, absent_step, only_one_speaks, one_process_sees_nothing,
         killed_process, without_the_module, captures_stay_as_they_are]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--npuprof", required=True)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    npuprof = os.path.abspath(args.npuprof)
    if not shutil.which("mpirun"):
        print("1..0 # SKIP no mpirun")
        return 77
    if not os.path.exists(os.path.join(os.path.dirname(npuprof), "npuprof_mpi.so")):
        print("1..0 # SKIP built without Open MPI")
        return 77
    todo = [case for case in CASES if not args.cases or case.__name__ in args.cases]
    failed = 0
    print(f"1..{len(todo)}")
    with tempfile.TemporaryDirectory() as scratch:
        lab = Lab(npuprof, scratch)
        for number, case in enumerate(todo, 1):
            try:
                case(lab)
                print(f"ok {number} - {case.__name__}", flush=True)
            except (Failure, subprocess.TimeoutExpired) as failure:
                failed += 1
                text = str(failure).replace("\n", "\n# ")
                print(f"not ok {number} - {case.__name__}\n# {text}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
