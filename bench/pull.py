#!/usr/bin/env python3
"""Measure `npuprof pull` over ssh on loopback beside `ssh host cat FILE > FILE`, in one run.

    bench/pull.py [--npuprof PATH] [--mb 1000] [--rounds 3] [--work DIR]

noise   bytes that cannot be packed: wants 80 % of the speed of cat
trace   trace_view.json of synth, repeated: packed by zstd on the way, wants 3 times cat

A pull fetches, digests on both sides, compares, writes to the disk (sync) and lists; cat does
only the first. Each round makes one of each in turns; the figures are medians of wall time.
Wants root and sshd, as the tests of ssh do.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import run as readers  # noqa: E402
from ssh_lib import Cluster  # noqa: E402


def make_noise(path, size):
    block = os.urandom(64 << 20)  # further apart than zstd looks back
    with open(path, "wb") as out:
        while out.tell() < size:
            out.write(block[:size - out.tell()])


def make_trace(path, size, npuprof, work):
    subprocess.run([npuprof, "synth", work + "/seed", "--ranks", "1", "--steps", "20", "--layers",
                    "20", "-q"], check=True, stdout=subprocess.DEVNULL)
    for base, _, files in os.walk(work + "/seed"):
        if "trace_view.json" in files:
            readers.repeat_trace(base + "/trace_view.json", path, size)
            return
    raise SystemExit("synth made no trace_view.json")


def wall(command, env, out=None):
    start = time.monotonic()
    done = subprocess.run(command, env={**os.environ, **env}, stdout=out or subprocess.DEVNULL)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}")
    return time.monotonic() - start


def measure(name, source, cluster, npuprof, work, rounds, ssh):
    megabytes = os.path.getsize(source) / 1e6
    target, dest = work + "/cat", work + "/dest"
    figures = {"cat": [], "pull": []}
    subprocess.run(["cat", source], stdout=subprocess.DEVNULL, check=True)  # into the page cache
    for _ in range(rounds):
        with open(target, "wb") as out:
            figures["cat"].append(megabytes / wall([*ssh, "cat", source], cluster.env, out))
        os.remove(target)
        os.sync()
        figures["pull"].append(megabytes / wall(
            [npuprof, "pull", f"bench:{source}", dest, "-q", "--ssh-config", cluster.config,
             "-o", work + "/report"], cluster.env))
        shutil.rmtree(dest)
        os.sync()
    cat, pull = (statistics.median(figures[key]) for key in ("cat", "pull"))
    print(f"| {name}, {megabytes:.0f} MB | {pull:.0f} MB/s | {cat:.0f} MB/s | {pull / cat:.2f} |")
    print(f"|   rounds | {' '.join('%.0f' % v for v in figures['pull'])} "
          f"| {' '.join('%.0f' % v for v in figures['cat'])} | |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--npuprof", default=os.path.join(ROOT, "build", "bench", "npuprof"))
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", help="make the temporary directory there")
    args = parser.parse_args()
    npuprof = os.path.abspath(args.npuprof)
    work = os.path.realpath(tempfile.mkdtemp(prefix="npuprof-bench-", dir=args.work))
    cluster = Cluster(work)
    try:
        cluster.host("bench")
        ssh = ["ssh", "-F", cluster.config, "bench"]
        print(f"{readers.machine()}\n")
        print("| what | pull | ssh cat | ratio |\n|---|---:|---:|---:|")
        for name, make in (("noise", make_noise), ("trace", lambda path, size: make_trace(
                path, size, npuprof, work))):
            path = f"{work}/{name}/" + ("noise.bin" if name == "noise" else "trace_view.json")
            os.makedirs(os.path.dirname(path))
            make(path, args.mb * 1000000)
            measure(name, path, cluster, npuprof, work, args.rounds, ssh)
            os.remove(path)
    finally:
        cluster.close()
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
