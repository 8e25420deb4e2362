#!/usr/bin/env python3
"""Measure `npuprof cluster` at the sizes that docs/performance.md names.

    bench/cluster.py [--npuprof PATH] [--work DIR] [--only kernels|text|growth] [--svg FILE]

kernels  8 ranks × 82,000 kernels as databases: every mode alone, all together, no cache;
         then diagnose from the cache
text     1,024 ranks of text deliverables (communication.json of 2 MB each):
         all, slow_rank and diagnose together
growth   256 … 4,096 ranks of small files: time and peak memory of diagnose, and the
         memory per rank; --svg draws it

Wall time and peak resident memory of one process. Sets are made by `npuprof synth` in
DIR (default: a temporary directory) and kept there when DIR is given. Beside ours stands
what the official tool was seen to need for 8 × 82,000 (cluster_and_advisor.md).
"""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)

# Modes that need what a database set of synth does not hold, or another file.
NOT_ALONE = {"calibrate_npu_gpu", "cluster_time_compare_summary", "mstx2commop"}
OFFICIAL = {"computational_op_masking": "34 s", "export_summary": "21 s, 1.2 GB"}


def measure(command):
    """(seconds, MB, exit status) of one run."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(process.pid, 0)
    process.stderr.close()
    return time.monotonic() - start, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def best(command, rounds):
    runs = [measure(command) for _ in range(rounds)]
    bad = [code for _, _, code in runs if code not in (0, 3)]
    if bad:
        raise SystemExit(f"{' '.join(command)}: exit status {bad[0]}")
    return min(r[0] for r in runs), max(r[1] for r in runs)


def synth(npuprof, path, *arguments):
    if not os.path.isdir(path):
        subprocess.run([npuprof, "synth", path, "-q", *arguments], check=True,
                       stdout=subprocess.DEVNULL)
    for folder, _, files in os.walk(path):  # into the page cache, by reading
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                while file.read(1 << 20):
                    pass
    return path


def modes_of(npuprof):
    listed = subprocess.run([npuprof, "cluster", "--list-modes", "--json"], check=True,
                            capture_output=True, text=True).stdout
    return [row[0] for row in json.loads(listed)["tables"][0]["rows"]]


def kernels(npuprof, work, rounds):
    path = synth(npuprof, os.path.join(work, "kernels8"), "--ranks", "8", "--tp", "2", "--pp",
                 "2", "--dp", "2", "--steps", "10", "--layers", "340", "--ops", "40",
                 "--format", "db")
    base = [npuprof, "cluster", path, "-q"]
    names = [m for m in modes_of(npuprof) if m not in NOT_ALONE]
    print("| 8 ranks × 82,000 kernels, db | time | memory | aim | official |")
    print("|---|---:|---:|---|---|")
    for mode in names:
        seconds, mb = best(base + ["--no-cache", "-m", mode], rounds)
        print(f"| {mode} | {seconds:.2f} s | {mb:.0f} MB | 0.5 s | {OFFICIAL.get(mode, '')} |",
              flush=True)
    seconds, mb = best(base + ["--no-cache", "-m", ",".join(names)], rounds)
    print(f"| all {len(names)} together | {seconds:.2f} s | {mb:.0f} MB | 1.5 s, 300 MB | "
          "1.4 – 34 s each, up to 1.1 GB |")
    cache = tempfile.mkdtemp(prefix="npuprof-cache-")
    os.environ["XDG_CACHE_HOME"] = cache
    measure(base)
    seconds, mb = best(base, rounds)
    print(f"| diagnose, from the cache | {seconds:.2f} s | {mb:.0f} MB | | |")
    shutil.rmtree(cache)


def text(npuprof, work):
    path = synth(npuprof, os.path.join(work, "text1024"), "--ranks", "1024", "--tp", "8", "--pp",
                 "4", "--steps", "2", "--lite", "--comm-ops", "900")
    size = sum(os.path.getsize(os.path.join(d, f)) for d, _, fs in os.walk(path) for f in fs)
    seconds, mb = best([npuprof, "cluster", path, "-q", "--no-cache", "-m",
                        "all,slow_rank,diagnose"], 2)
    print(f"\n1,024 ranks of text, {size / 1e9:.1f} GB: all, slow_rank and diagnose "
          f"{seconds:.1f} s, {mb:.0f} MB (aim 10 s, 1 GB)", flush=True)
    out = os.path.join(work, "text1024-out")
    seconds, mb = best([npuprof, "cluster", path, "-q", "--no-cache", "-m",
                        "all,slow_rank,diagnose", "-o", out], 1)
    print(f"the same with its files written: {seconds:.1f} s, {mb:.0f} MB", flush=True)
    shutil.rmtree(out, ignore_errors=True)


def draw(points, path):
    """Peak memory over ranks as a small SVG."""
    width, height, left, bottom = 640, 320, 60, 40
    most_x, most_y = max(p[0] for p in points), max(p[2] for p in points) * 1.1
    at = [(left + (width - left - 20) * p[0] / most_x,
           height - bottom - (height - bottom - 20) * p[2] / most_y) for p in points]
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                  'font-family="sans-serif" font-size="12">\n')
        out.write(f'<path d="M{left} 20V{height - bottom}H{width - 20}" fill="none" '
                  'stroke="#888"/>\n')
        out.write('<polyline fill="none" stroke="#06c" stroke-width="2" points="'
                  + " ".join(f"{x:.1f},{y:.1f}" for x, y in at) + '"/>\n')
        for (x, y), point in zip(at, points):
            out.write(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#06c"/>'
                      f'<text x="{x:.1f}" y="{height - bottom + 16}" text-anchor="middle">'
                      f'{point[0]}</text>'
                      f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{point[2]:.0f}'
                      '</text>\n')
        out.write(f'<text x="{width / 2}" y="{height - 6}" text-anchor="middle">ranks</text>'
                  f'<text x="14" y="{height / 2}" transform="rotate(-90 14 {height / 2})" '
                  'text-anchor="middle">peak memory, MB</text>\n</svg>\n')


def growth(npuprof, work, svg):
    points = []
    print("\n| ranks | time | memory | per rank |\n|---:|---:|---:|---:|")
    for ranks in (256, 512, 1024, 2048, 4096):
        path = synth(npuprof, os.path.join(work, f"lite{ranks}"), "--ranks", str(ranks), "--tp",
                     "8", "--pp", "4", "--steps", "2", "--lite")
        seconds, mb = best([npuprof, "cluster", path, "-q", "--no-cache"], 1)
        points.append((ranks, seconds, mb))
        print(f"| {ranks} | {seconds:.1f} s | {mb:.0f} MB | {1024 * mb / ranks:.0f} KB |",
              flush=True)
    if svg:
        draw(points, svg)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--npuprof", default=os.path.join(ROOT, "build", "release", "npuprof"))
    parser.add_argument("--work")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=["kernels", "text", "growth"])
    parser.add_argument("--svg")
    args = parser.parse_args()
    work = args.work or tempfile.mkdtemp(prefix="npuprof-bench-")
    os.makedirs(work, exist_ok=True)
    print("load %.1f %.1f %.1f, %d processors\n" % (os.getloadavg() + (os.cpu_count(),)))
    try:
        if args.only in (None, "kernels"):
            kernels(args.npuprof, work, args.rounds)
        if args.only in (None, "text"):
            text(args.npuprof, work)
        if args.only in (None, "growth"):
            growth(args.npuprof, work, args.svg)
    finally:
        if not args.work:
            shutil.rmtree(work)


if __name__ == "__main__":
    main()
