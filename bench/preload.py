#!/usr/bin/env python3
"""What recording costs a call of HCCL: bench/preload.py BUILD [DIRECTORY]

BUILD is a build directory with tests (build/debug); the logs go below DIRECTORY (default: beside
the build), and its file system is part of what is measured. The HCCL is the one of
tests/fakes/hccl, whose functions do next to nothing, so the difference is the recorder. With
valgrind installed the instructions of a call are told, too: they are the same on a busy machine.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile


def environment(build, preload, comm):
    fakes = os.path.join(build, "tests", "fakes", "hccl")
    env = {**os.environ, "LD_LIBRARY_PATH": f"{fakes}/new:{fakes}"}
    env.pop("NPUPROF_COMM", None)
    if preload:
        env["LD_PRELOAD"] = os.path.join(build, "libnpuprof_collectives.so")
    if comm:
        env["NPUPROF_COMM"] = comm
    return env


def nanoseconds(program, env):
    out = subprocess.run([program], env=env, capture_output=True, text=True, check=True).stdout
    return [float(word) for word in out.split()]


def instructions(program, env, calls):
    with tempfile.TemporaryDirectory() as tmp:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp}/out",
                               program, "1", str(calls)], env=env, capture_output=True, text=True,
                              check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def main():
    build = os.path.abspath(sys.argv[1])
    where = sys.argv[2] if len(sys.argv) > 2 else build
    program = os.path.join(build, "tests", "fakes", "hccl", "hccl_bench")
    plain = None
    for name, preload, on in (("without", False, False), ("loaded, off", True, False),
                              ("recording", True, True)):
        with tempfile.TemporaryDirectory(dir=where) as comm:
            env = environment(build, preload, comm if on else None)
            best, median = nanoseconds(program, env)
            plain = plain or (best, median)
            line = (f"{name:12} best {best:6.1f} ns  median {median:6.1f} ns a call"
                    f"  (+{best - plain[0]:.1f}, +{median - plain[1]:.1f})")
            if shutil.which("valgrind"):
                few, many = (instructions(program, env, calls) for calls in (1000, 11000))
                line += f"  {(many - few) / 10000:.1f} instructions"
            print(line)


if __name__ == "__main__":
    main()
