#!/usr/bin/env python3
"""Measure our readers beside the peers' in one run, and print a table.

    bench/run.py [--mb 200] [--rounds 3] [--json FILE]

Inputs are made once: the kernel table and the trace of a real capture repeated
to size where the shared captures are at hand, else of a synth capture; a TASK
table of 3 M rows. Ours and the peers' runs alternate, each in a fresh process;
the figure is the median of the rounds, CPU time of one core unless it says
wall. Ratios are within this run: absolute figures move with the machine.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
BENCH = os.path.join(ROOT, "build", "bench", "bench")
NPUPROF = os.path.join(ROOT, "build", "bench", "npuprof")

# What a peer does, as a program of its own; prints CPU seconds.
PEERS = {
    "python json.load": "import json,sys,time;t=time.process_time();json.load(open(sys.argv[1]));print(time.process_time()-t)",
    "python csv.reader": "import csv,sys,time;t=time.process_time();n=sum(1 for _ in csv.reader(open(sys.argv[1],newline='')));print(time.process_time()-t)",
    "pandas.read_csv": "import sys,time,pandas;t=time.process_time();pandas.read_csv(sys.argv[1]);print(time.process_time()-t)",
    "python struct.iter_unpack": "import struct,sys,time;d=open(sys.argv[1],'rb').read();t=time.process_time();s={}\nfor r in struct.iter_unpack('=QqQQQQQQQIIIIIIiiiiiiHBBB3x',memoryview(d)[8192:]):\n k=(r[22],r[9],r[10],r[16]);c=s.setdefault(k,[0,0]);c[0]+=1;c[1]+=r[6]\nprint(time.process_time()-t)",
    "python sqlite3 fetchall": "import sqlite3,sys,time;c=sqlite3.connect('file:'+sys.argv[1]+'?immutable=1',uri=True);t=time.process_time();c.execute('select * from TASK').fetchall();print(time.process_time()-t)",
}


def shared_capture():
    for root in (os.environ.get("NPUPROF_SHARED"), os.path.join(ROOT, "..", "shared")):
        path = root and os.path.join(root, "data/ddp2/text/level2/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT")
        if path and os.path.isdir(path):
            return path
    return None


def synth_capture(work):
    subprocess.run([NPUPROF, "synth", work + "/seed", "--ranks", "1", "--steps", "4", "--layers", "20", "-q"],
                   check=True, stdout=subprocess.DEVNULL)
    for base, _, files in os.walk(work + "/seed"):
        if "kernel_details.csv" in files:
            return base
    raise SystemExit("synth made no kernel_details.csv")


def repeat_csv(source, target, size):
    head, body = open(source, "rb").read().split(b"\n", 1)
    with open(target, "wb") as out:
        out.write(head + b"\n")
        for _ in range(max(1, size // len(body))):
            out.write(body)


def repeat_trace(source, target, size):
    """One line, as the exporter writes it; time moves on by a second each round."""
    body = open(source, "rb").read().strip()[1:-1]
    second = int(re.search(rb'"ts": "(\d{10})', body).group(1))
    with open(target, "wb") as out:
        out.write(b"[")
        for i in range(max(1, size // len(body))):
            moved = body
            for k in (1, 0):
                moved = moved.replace(b'"%d' % (second + k), b'"%d' % (second + k + i))
            out.write((b", " if i else b"") + moved)
        out.write(b"]")


def make_db(target, rows):
    import sqlite3
    db = sqlite3.connect(target)
    db.execute("PRAGMA journal_mode=OFF")
    db.execute("CREATE TABLE TASK (startNs INTEGER,endNs INTEGER,deviceId INTEGER,connectionId INTEGER,"
               "globalTaskId INTEGER,globalPid INTEGER,taskType INTEGER,contextId INTEGER,streamId INTEGER,"
               "taskId INTEGER,modelId INTEGER)")
    start = 1736414119620696762
    db.executemany("INSERT INTO TASK VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                   ((start + 7000 * i, start + 7000 * i + 5120, 0, i, i, 3217657, i % 13, 4294967295, i % 4,
                     i % 65536, 4294967295) for i in range(rows)))
    db.commit()
    db.close()


def peer(name, path):
    got = subprocess.run([sys.executable, "-c", PEERS[name], path], capture_output=True, text=True)
    return float(got.stdout) if got.returncode == 0 else None


def ours(command, pattern):
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(re.search(pattern, text).group(1))


def wall(command):
    start = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    return time.monotonic() - start


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, unit, own, aim, peers, limit):
        """own and peers: lists of the rounds' figures, in `unit`, more is better."""
        self.rows.append((what, unit, statistics.median(own), aim,
                          {n: statistics.median(v) for n, v in peers.items() if v and None not in v}, limit))

    def print(self, out):
        out.write("| work | ours | aim | peer | ratio | limit |\n|---|---:|---:|---|---:|---:|\n")
        for what, unit, own, aim, peers, limit in self.rows:
            text = "; ".join("%s %.3g" % item for item in peers.items()) or "none measured"
            ratio = "; ".join("%.0fx" % (own / v) for v in peers.values()) or ""
            out.write("| %s | **%.3g** %s | %s | %s | %s | %s |\n" % (what, own, unit, aim, text, ratio, limit))


def measure(work, megabytes, rounds):
    size = megabytes * 1000000
    seed = shared_capture() or synth_capture(work)
    csv, trace, db = work + "/kernel_details.csv", work + "/trace_view.json", work + "/task.db"
    repeat_csv(seed + "/kernel_details.csv", csv, size)
    repeat_trace(seed + "/trace_view.json", trace, 5 * size // 2)
    make_db(db, 3000000)
    log = work + "/a.nplog"
    subprocess.run([BENCH + "/bench_comm", "make", log, "1000000"], check=True)
    for path in (csv, trace, db, log):  # into the page cache, by reading
        subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
    gb = {path: os.path.getsize(path) / 1e9 for path in (csv, trace, db)}
    figures = {}

    def note(key, value):
        figures.setdefault(key, []).append(value)

    for _ in range(rounds):
        note("trace", ours([BENCH + "/bench_trace", trace, "1"], r"([\d.]+) thread CPU"))
        note("trace_all", ours([BENCH + "/bench_trace", trace, "0"], r"([\d.]+) GB/s wall"))
        note("validate", ours([BENCH + "/bench_json", trace, "validate"], r"([\d.]+) GB/s"))
        note("json.load", gb[trace] / peer("python json.load", trace))
        note("csv_few", ours([BENCH + "/bench_csv", csv, "1"], r"index \+ 4 columns, cpu\s+first\s+([\d.]+)"))
        note("csv_base", ours([BENCH + "/bench_kernels", csv, "base"], r"([\d.]+) GB/s cpu"))
        note("csv_all", ours([BENCH + "/bench_kernels", csv, "all"], r"([\d.]+) GB/s cpu"))
        note("csv_wall", ours([BENCH + "/bench_kernels", csv, "base", "0"], r"([\d.]+) GB/s wall"))
        note("csv.reader", gb[csv] / peer("python csv.reader", csv))
        seconds = peer("pandas.read_csv", csv)
        note("pandas", gb[csv] / seconds if seconds else None)
        note("db", ours([BENCH + "/bench_db", db], r"native ([\d.]+) M rows/s"))
        note("libsqlite3", ours([BENCH + "/bench_db", db], r"libsqlite3 ([\d.]+) M rows/s"))
        note("fetchall", 3.0 / peer("python sqlite3 fetchall", db))
        note("comm", ours([BENCH + "/bench_comm", log], r"([\d.]+) M records/s"))
        note("struct", 1.0 / peer("python struct.iter_unpack", log))
        note("start", 1000 * min(wall([NPUPROF, "version"]) for _ in range(10)))
        shutil.rmtree(work + "/made", ignore_errors=True)
        seconds = wall([NPUPROF, "synth", work + "/made", "--ranks", "1", "--steps", "50", "--layers", "100", "-q"])
        made = sum(os.path.getsize(os.path.join(b, f)) for b, _, fs in os.walk(work + "/made") for f in fs)
        note("synth", made / 1e6 / seconds)
    return figures


def report(figures, out):
    f = figures
    table = Table()
    table.add("trace JSON into columns, one core", "GB/s", f["trace"], "1.2", {"json.load": f["json.load"]}, "4.5 structural index")
    table.add("the same, all cores, wall", "GB/s", f["trace_all"], "", {"json.load": f["json.load"]}, "")
    table.add("trace JSON checked to its last byte", "GB/s", f["validate"], "", {"json.load": f["json.load"]}, "4.5")
    csv_peers = {"csv.reader": f["csv.reader"], "pandas": f["pandas"]}
    table.add("kernel table, 46 columns split, 4 typed", "GB/s", f["csv_few"], "1.5", csv_peers, "2.0")
    table.add("kernel table into all id, time and name columns (17)", "GB/s", f["csv_base"], "1.5", csv_peers, "2.0")
    table.add("kernel table, all 46 columns typed", "GB/s", f["csv_all"], "", csv_peers, "1.8 numbers only")
    table.add("kernel table (17), all cores, wall", "GB/s", f["csv_wall"], "", csv_peers, "")
    table.add("log of collectives, summed up", "M records/s", f["comm"], "20", {"struct.iter_unpack": f["struct"]}, "memory")
    table.add("TASK scan, 11 columns, 3 M rows", "M rows/s", f["db"], "18", {"libsqlite3": f["libsqlite3"], "python sqlite3": f["fetchall"]}, "25.5")
    table.print(out)
    out.write("\nStart-up (`npuprof version`, wall): %.1f ms, aim 10. `synth`: %.0f MB/s of text, aim 100.\n"
              % (statistics.median(f["start"]), statistics.median(f["synth"])))


def machine():
    cpu = "unknown"
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return "%s, %d processors, load %.1f %.1f %.1f" % ((cpu, os.cpu_count()) + os.getloadavg())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mb", type=int, default=200, help="size of the kernel table; the trace is 2.5 times that")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="also write the raw figures there")
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="npuprof-bench-")
    try:
        before = machine()
        figures = measure(work, args.mb, args.rounds)
        print("%s before, %s after; %d rounds, medians.\n" % (before, machine().split("processors, ")[1], args.rounds))
        report(figures, sys.stdout)
        if args.json:
            with open(args.json, "w") as out:
                json.dump(figures, out)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
