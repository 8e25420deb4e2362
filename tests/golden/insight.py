#!/usr/bin/env python3
"""npuprof beside the figures that MindStudio Insight shows for the capture qwen3_4rank.

  insight.py --npuprof PATH

The figures are in $NPUPROF_SHARED/golden/insight_qwen3_4rank.json, with their tolerances; a
figure of the Summary and Communication pages must come out of `npuprof cluster -m
summary,communication`, one of the Operator and Timeline pages out of `npuprof analyze`. FACTS
are more of them, read from the same screenshots, that the file does not hold. A figure that no
command prints is a skip with the reason.

One TAP line per figure; without the shared data everything is a skip.
"""
import argparse
import json
import math
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEFAULT_GROUP = "5862276093215481612"
TIMES = {"elapsed": "elapsed_ms", "transit": "transit_ms", "synchronization":
         "synchronization_ms", "wait": "wait_ms", "idle": "idle_ms"}
STATISTICS = {"count": "count", "total": "total_ns", "average": "mean_us", "maximum": "max_ns",
              "minimum": "min_ns"}


class NotPrinted(Exception):
    pass


def shared():
    for path in (os.environ.get("NPUPROF_SHARED"), os.path.join(ROOT, "..", "shared")):
        if path and os.path.isfile(os.path.join(path, "golden", "insight_qwen3_4rank.json")):
            return path
    return None


class Tables:
    """The tables of one command, each a list of dictionaries."""

    def __init__(self, command):
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode not in (0, 3):
            raise SystemExit(f"{command}: exit status {done.returncode}: {done.stderr}")
        self.of = {}
        for table in json.loads(done.stdout)["tables"]:
            names = [column["name"] for column in table["columns"]]
            self.of[table["id"]] = [
                row if isinstance(row, dict) else dict(zip(names, row)) for row in table["rows"]]

    def one(self, table, **where):
        rows = [row for row in self.of[table]
                if all(row[name] == value for name, value in where.items())]
        if len(rows) != 1:
            raise NotPrinted(f"{len(rows)} rows of {table} have {where}")
        return rows[0]


# ── what each figure of the file is called here ──

def summary(run, figure):
    what = figure["what"]
    if what == "duration of the capture":
        return run.one("SummaryBase")["duration_ms"]
    if what.startswith("spread of"):
        metric = "computing" if "computing" in what else "communication_not_overlapped"
        return run.one("SummarySpread", metric=metric)["difference_us"]
    rank = int(re.search(r"rank (\d+)", figure["view"]).group(1))
    core = re.search(r"accelerator core (\w+)", what)
    if core:
        return run.one("SummaryComputing", rank=rank, accelerator_core=core.group(1))["duration_us"]
    return run.one("SummaryCommunication", rank=rank)["not_overlapped_us"]


def communication(run, figure):
    rank, what = re.match(r"rank (\d+) (\w+) time", figure["what"]).groups()
    return run.one("CommunicationTime", group_name=DEFAULT_GROUP, rank=int(rank))[TIMES[what]]


def operator(analyze, figure):
    kind, core, what = re.match(r"(\w+)/(\w+) (\w+)", figure["what"]).groups()
    value = analyze(2).one("op_types", type=kind, core=core)[STATISTICS[what]]
    return value / 1000 if STATISTICS[what].endswith("_ns") else value


def timeline(analyze, figure):
    run, what = analyze(0), figure["what"]
    step, kernels = run.one("steps"), run.one("compute_kernels")
    known = {
        "computing time": step["computing_ns"] / 1000,
        "end-to-end time": (step["computing_ns"] + step["comm_not_overlapped_ns"] +
                            step["free_ns"]) / 1000,
        "share of computing": 100 * step["computing_ns"] / step["span_ns"],
        "share of communication (not overlapped)":
            100 * step["comm_not_overlapped_ns"] / step["span_ns"],
        "share of free time": 100 * step["free_ns"] / step["span_ns"],
        "longest kernel": kernels["max_ns"] / 1000,
        "shortest kernel": kernels["min_ns"] / 1000,
        "average kernel time": kernels["mean_us"],
        "number of kernels": kernels["count"],
    }
    if what not in known:
        raise NotPrinted(f"analyze has no '{what}'")
    return known[what]


def longest_row(analyze):
    return max(row["max_ns"] for row in analyze(0).of["cores"]) / 1000


def value_of(run, analyze, figure):
    view = figure["view"]
    if view.startswith("Summary"):
        return summary(run, figure)
    if view.startswith("Communication"):
        return communication(run, figure)
    if view.startswith("Operator"):
        return operator(analyze, figure)
    if view.startswith("Timeline / overall"):
        return timeline(analyze, figure)
    if view.startswith("Kernel details, rank 0") and figure["what"] == "longest row":
        return longest_row(analyze)
    raise NotPrinted(f"no command prints the page '{view}'")


# ── more figures of the same screenshots ──

def time_of(column, rank):
    return lambda run: run.one("CommunicationTime", group_name=DEFAULT_GROUP, rank=rank)[column]


def link(src, dst, **where):
    return lambda run: run.one("CommunicationMatrix", src_rank=src, dst_rank=dst,
                               **where)["bandwidth_gbps"]


def total(src, dst):
    return link(src, dst, group_name=DEFAULT_GROUP, operation="Total Op Info")


def gather(src, dst):
    return link(src, dst, group_name="5862276114690318097", operation="allgather-bottom1")


def bandwidth(column):
    return lambda run: run.one("CommunicationBandwidth", group_name=DEFAULT_GROUP,
                               transport_type="SDMA")[column]


def small(column, factor=1):
    return lambda run: factor * run.one("CommunicationSmallPackets",
                                        transport_type="SDMA")[column]


def packets(size):
    return lambda run: run.one("CommunicationPackets", group_name=DEFAULT_GROUP, rank=1,
                               transport_type="HCCS", package_size_mb=size)["count"]


def operations(run):
    times = sorted(row["elapsed_ms"] for row in run.of["CommunicationOps"]
                   if row["group_name"] == DEFAULT_GROUP and row["rank"] == 1)
    return times


FACTS = [
    ("slow group dp1-pp1: rank", lambda run: int(run.one("SummarySlow", element="dp1-pp1")["ranks"]),
     3, 0),
    ("slow group dp1-pp1: dp", lambda run: run.one("SummarySlow", element="dp1-pp1")["dp_us"],
     9682.12, 0.0051),
    ("one slow group", lambda run: len(run.of["SummarySlow"]), 1, 0),
    ("packets small, ms", small("small_time_ms"), 3.261420, 5.1e-7),
    ("packets small, share", small("small_operations_share", 100), 59.183673, 5.1e-7),
    ("packets small", small("small_operations"), 29, 0),
    ("packets in all", small("operations"), 49, 0),
    ("rank 1 HCCS packets of 4 B", packets(4e-06), 6, 0),
    ("rank 1 HCCS packets of 96 B", packets(9.6e-05), 3, 0),
    ("SDMA bandwidth average", bandwidth("average_gbps"), 0.0407, 5.1e-5),
    ("SDMA bandwidth maximum", bandwidth("max_gbps"), 0.0696, 5.1e-5),
    ("SDMA bandwidth minimum", bandwidth("min_gbps"), 0.0298, 5.1e-5),
    ("SDMA bandwidth difference", bandwidth("difference_gbps"), 0.0398, 1.01e-4),
    ("SDMA transit time", bandwidth("time_ms"), 0.0343, 5.1e-5),
    ("dp_cp allgather-bottom1 0-1", gather(0, 1), 19.4683, 1.01e-4),
    ("dp_cp allgather-bottom1 1-0", gather(1, 0), 19.4696, 1.01e-4),
] + [
    (f"rank {rank} {what}", time_of(column, rank), value, 1.01e-4)
    for what, column, values in (
        ("synchronization ratio", "synchronization_ratio", (1, .9942, .9809, .0094)),
        ("wait ratio", "wait_ratio", (1, .9972, .9967, .6371)),
        ("SDMA bandwidth", "sdma_gbps", (.0696, .0298, .0317, .0315)))
    for rank, value in enumerate(values)
] + [
    (f"matrix {src}-{dst}", total(src, dst), value, 1.01e-4)
    for src, dst, value in (
        (0, 1, .0787), (0, 2, .0774), (0, 3, .0571), (1, 0, .0155), (1, 2, .0738),
        (1, 3, .0667), (2, 0, .0165), (2, 1, .0814), (2, 3, .0696), (3, 0, .016),
        (3, 1, .0814), (3, 2, .08))
] + [
    (f"rank 1 operation {i}", lambda run, i=i: operations(run)[i], value, 1.01e-4)
    for i, value in enumerate((.1361, .2747, .5744, 1.9405))
]


def right(value, figure):
    """As the file says: within the tolerance, or equal once the fraction is cut off."""
    if figure["rule"] == "truncate":
        return math.trunc(value) == figure["value"]
    return abs(value - figure["value"]) <= figure["tolerance"]


def cases(base, npuprof):
    data = os.path.join(base, "data", "qwen3_4rank")
    run = Tables([npuprof, "cluster", "--no-cache", "-m", "summary,communication", "--json", data])
    known = {}

    def analyze(rank):
        if rank not in known:
            known[rank] = Tables([npuprof, "analyze", "--top", "1000", "--json",
                                  os.path.join(data, f"rank_{rank}_ascend_pt")])
        return known[rank]

    with open(os.path.join(base, "golden", "insight_qwen3_4rank.json"), encoding="utf-8") as file:
        for figure in json.load(file)["figures"]:
            title = f"{figure['id']} {figure['view']}: {figure['what']}"
            yield title, figure, lambda figure=figure: value_of(run, analyze, figure)
    for title, read, value, tolerance in FACTS:
        figure = {"value": value, "tolerance": tolerance, "rule": "round"}
        yield title, figure, lambda read=read: read(run)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--npuprof", required=True)
    args = parser.parse_args()
    base, failed, n = shared(), 0, 0
    if not base:
        print("1..0 # SKIP no shared data")
        return 77
    todo = list(cases(base, os.path.abspath(args.npuprof)))
    print(f"1..{len(todo)}")
    for n, (title, figure, read) in enumerate(todo, 1):
        try:
            value = read()
        except NotPrinted as why:
            # the pages that these commands are for must be complete
            must = not title.startswith("qwen3-") or "Summary" in title or "Communication" in title
            failed += must
            print(f"not ok {n} - {title}\n# {why}" if must else f"ok {n} - {title} # SKIP {why}")
            continue
        if value is not None and right(value, figure):
            print(f"ok {n} - {title}")
        else:
            failed += 1
            print(f"not ok {n} - {title}\n# {value}, the viewer shows {figure['value']}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
