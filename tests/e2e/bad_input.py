#!/usr/bin/env python3
"""Hostile input: whatever lies at PATH, `npuprof info` and `npuprof check` survive it.

  bad_input.py --npuprof PATH [--release PATH] [--full] [-j N] [-k] [GROUP|CASE...]

  --npuprof   the program, best built with sanitizers; makes the base captures, too
  --release   a build without sanitizers, whose peak memory is measured
  --full      every byte and every variant instead of a sample; some minutes
  -k          keep the directory of each failed case

Every case is one TAP line and many runs: each damaged capture is read by
`info --json` and `check --json`. What must hold for each run:

  - it ends by itself, with 0, 1, 2, 3 or 4, within 20 s of processor time (DESIGN.md 2.4)
  - no sanitizer has anything to say, and memory never runs out
  - stdout is exactly one JSON document whose exit_code is the exit status, or
    it is empty and stderr says why
  - no escape byte of the capture reaches stdout or stderr
  - the capture is as before (names, kinds, sizes, times), $TMPDIR is empty
  - the other rank is still reported with all its kernels
  - peak memory of the release build: 200 MB, or twice what lies on disk

Exit status: 0 all passed, 1 something failed, 2 usage.
"""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

from bad_lib import Lab, Failure  # noqa: E402
import bad_files  # noqa: E402
import bad_db  # noqa: E402
import bad_trees  # noqa: E402

GROUPS = {"files": bad_files.cases, "db": bad_db.cases, "trees": bad_trees.cases}


def chosen(lab, names):
    for group, cases in GROUPS.items():
        for name, function in cases(lab):
            if not names or group in names or name in names:
                yield name, function


def run_case(lab, name, function):
    """None, or what failed."""
    shelf = lab.shelf(name)
    try:
        function(shelf)
        return None
    except Failure as failure:
        return str(failure)
    finally:
        if not (lab.keep and shelf.failed):
            shelf.remove()


def run_all(lab, cases, jobs):
    lock = threading.Lock()
    state = {"number": 0, "failed": 0}
    todo = iter(cases)

    def work():
        while True:
            with lock:
                case = next(todo, None)
            if case is None:
                return
            started = time.monotonic()
            try:
                problem = run_case(lab, *case)
            except Exception as error:  # a bug of the test must not hide the other cases
                problem = f"the test itself failed: {type(error).__name__}: {error}"
            with lock:
                state["number"] += 1
                state["failed"] += problem is not None
                took = time.monotonic() - started
                print(f"{'not ' if problem else ''}ok {state['number']} - {case[0]}")
                if problem:
                    print("".join(f"# {line}\n" for line in problem.splitlines()), end="")
                if took > 20:
                    print(f"# {case[0]} took {took:.0f} s")
                sys.stdout.flush()

    workers = [threading.Thread(target=work) for _ in range(jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return state["failed"]


def main(argv):
    parser = argparse.ArgumentParser(usage=__doc__, add_help=True)
    parser.add_argument("--npuprof", required=True)
    parser.add_argument("--release")
    parser.add_argument("--full", action="store_true",
                        default=os.environ.get("NPUPROF_BAD_INPUT") == "full")
    parser.add_argument("-j", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("-k", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args(argv)
    top = tempfile.mkdtemp(prefix="npuprof-bad-")
    os.chmod(top, 0o755)
    try:
        release = options.release
        if release and not os.access(release, os.X_OK):
            release = None
        lab = Lab(top, options.npuprof, release, options.full, options.k)
        cases = list(chosen(lab, options.names))
        if not cases:
            print(__doc__, file=sys.stderr)
            return 2
        print(f"1..{len(cases)}", flush=True)
        failed = run_all(lab, cases, options.j)
        lab.print_figures()
        return 1 if failed else 0
    except subprocess.CalledProcessError as error:
        print(f"Bail out! {error}")
        return 1
    finally:
        if not options.k:
            subprocess.run(["chmod", "-R", "u+rwX", top], check=False,
                           stderr=subprocess.DEVNULL)
            shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
