#!/usr/bin/env python3
"""What `npuprof synth` has planted is what `npuprof cluster` finds, at its cost, and nothing else.

  truth.py --npuprof PATH [-k] [CASE...]

Each case makes a set with one fault (or none, or two), runs the diagnosis, and compares
with the set's truth.json:

  - the finding of the fault is there, as warning or error, for the planted rank, link or host
  - its impact is the planted cost per step within 10 % (where the fault has one)
  - no other finding of that weight accuses anybody
  - a clock's offset is the planted one within 5 us
  - the same set gives the same bytes with one thread and with three

One TAP line per case. Exit status: 0 all passed, 1 something failed.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

TOLERANCE = 0.10
CLOCK_US = 5.0

# What a bad batch or a missing rank adds beside the diagnosis.
SMALL = ["--ranks", "8", "--tp", "2", "--pp", "2", "--dp", "2", "--steps", "4"]
LITE64 = ["--ranks", "64", "--tp", "4", "--pp", "2", "--steps", "3", "--lite"]
LITE1024 = ["--ranks", "1024", "--tp", "8", "--pp", "4", "--steps", "2", "--lite"]
EXPERTS = ["--ranks", "8", "--tp", "2", "--ep", "4", "--dp", "4", "--steps", "4"]
HOSTS = ["--ranks-per-host", "2"]


def fault(*names):
    return [word for name in names for word in ("--fault", name)]


# name: (arguments of synth, {code: what its title must name, or None})
CASES = {
    "healthy-db": (SMALL + ["--format", "db"], {}),
    "healthy-text": (SMALL + ["--format", "text"], {}),
    "healthy-both": (SMALL + ["--format", "text,db"], {}),
    "healthy-seed": (SMALL + ["--format", "db", "--seed", "7"], {}),
    "healthy-dp": (["--ranks", "8", "--tp", "1", "--steps", "4", "--format", "db"], {}),
    # ranks differ by some percent, and of two ranks one comes last: not a fault
    "healthy-flat": (["--ranks", "8", "--seed", "3", "--format", "db"], {}),
    "healthy-flat-text": (["--ranks", "4", "--seed", "6", "--format", "text"], {}),
    "healthy-two": (["--ranks", "2", "--seed", "5", "--format", "db"], {}),
    "slow-flat": (["--ranks", "8", "--seed", "3", "--format", "db"] + fault("slow-rank=1"),
                  {"CLUSTER_SLOW_COMPUTE": "rank 1 "}),
    "healthy-experts": (EXPERTS + ["--format", "db"], {}),
    "healthy-64": (LITE64, {}),
    "healthy-64-db": (LITE64 + ["--format", "db"], {}),
    "healthy-1024": (LITE1024, {}),
    "slow-db": (SMALL + ["--format", "db"] + fault("slow-rank=5"),
                {"CLUSTER_SLOW_COMPUTE": "rank 5 "}),
    "slow-text": (SMALL + ["--format", "text"] + fault("slow-rank=2"),
                  {"CLUSTER_SLOW_COMPUTE": "rank 2 "}),
    "slow-64": (LITE64 + fault("slow-rank=33"), {"CLUSTER_SLOW_COMPUTE": "rank 33 "}),
    "slow-1024": (LITE1024 + fault("slow-rank=700"), {"CLUSTER_SLOW_COMPUTE": "rank 700 "}),
    "low-freq": (SMALL + ["--format", "db"] + fault("low-freq=6"),
                 {"CLUSTER_LOW_FREQUENCY": "rank 6 "}),
    "imbalance": (EXPERTS + ["--format", "db"] + fault("expert-imbalance=6"),
                  {"CLUSTER_IMBALANCE": "rank 6 "}),
    "carried": (SMALL + ["--format", "db"] + fault("carried-delay=5"),
                {"CLUSTER_SLOW_COMPUTE": "rank 5 "}),
    "host-bound": (SMALL + ["--format", "db"] + fault("host-bound=3"),
                   {"CLUSTER_HOST_BOUND": "rank 3 "}),
    "host-bound-64": (LITE64 + fault("host-bound=9"), {"CLUSTER_RANK_IDLE": "rank 9 "}),
    "idle-sync": (SMALL + ["--format", "db"] + fault("idle-sync=3"),
                  {"CLUSTER_HOST_BOUND": "rank 3 "}),
    "idle-gc": (SMALL + ["--format", "text"] + fault("idle-gc=0"),
                {"CLUSTER_HOST_BOUND": "rank 0 "}),
    "idle-dataloader": (SMALL + ["--format", "db"] + fault("idle-dataloader=7"),
                        {"CLUSTER_HOST_BOUND": "rank 7 "}),
    "idle-dependency": (SMALL + ["--format", "db"] + fault("idle-dependency=4"),
                        {"CLUSTER_RANK_IDLE": "rank 4 "}),
    "slow-link": (SMALL + ["--format", "db"] + fault("slow-link=2-3"),
                  {"CLUSTER_SLOW_LINK": "2 and 3 "}),
    "slow-link-64": (LITE64 + fault("slow-link=8-9"), {"CLUSTER_SLOW_LINK": "8 and 9 "}),
    "slow-node": (["--ranks", "32", "--tp", "8", "--dp", "4", "--steps", "3", "--lite"]
                  + fault("slow-node=2"), {"CLUSTER_SLOW_NODE": "node2"}),
    "stage": (SMALL + ["--format", "db"] + fault("stage-imbalance=1"),
              {"CLUSTER_STAGE_IMBALANCE": "stage 1 "}),
    "bubble": (SMALL + ["--format", "db"] + fault("pipeline-bubble"),
               {"CLUSTER_PIPELINE_BUBBLE": ""}),
    "offset": (SMALL + HOSTS + ["--format", "db"] + fault("clock-offset"), {}),
    "offset-64": (LITE64 + fault("clock-offset"), {}),
    "offset-slow": (SMALL + HOSTS + ["--format", "db"] + fault("clock-offset", "slow-rank=5"),
                    {"CLUSTER_SLOW_COMPUTE": "rank 5 "}),
    "drift": (SMALL + HOSTS + ["--format", "db"] + fault("clock-drift"), {}),
    "late-start": (SMALL + ["--format", "db"] + fault("late-start=2"), {}),
    "two": (LITE64 + fault("slow-rank=5", "slow-link=40-41"),
            {"CLUSTER_SLOW_COMPUTE": "rank 5 ", "CLUSTER_SLOW_LINK": "40 and 41 "}),
    "missing": (SMALL + ["--format", "db"] + fault("missing-rank=3", "slow-rank=5"),
                {"CLUSTER_SLOW_COMPUTE": "rank 5 ", "RANK_MISSING": None}),
}

# Faults whose finding is an info, or whose cost is not that of a finding.
INFOS = {"late-start": "CLUSTER_LATE_START"}
# The cost of an offset is nothing; that of stages is counted differently in both.
# Of two faults the planted cost is what one adds to the other, which nobody can see; sets
# without a layout have no costs.
TOGETHER = {"two", "slow-flat"}
NO_COST = {"CLUSTER_STAGE_IMBALANCE", "CLUSTER_PIPELINE_BUBBLE", "CLUSTER_SLOW_LINK",
           "CLUSTER_SLOW_NODE", "RANK_MISSING"}


class Wrong(Exception):
    pass


def run(command, codes=(0,)):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode not in codes:
        raise Wrong(f"{' '.join(command[1:])}: exit status {done.returncode}: "
                    f"{done.stderr.strip()[-500:]}")
    return done.stdout


def planted_cost(truth, title):
    """us per step of the fault at the rank that the title names."""
    rank = re.search(r"rank (\d+)", title)
    costs = [c["step_cost_ns"] for c in truth.get("costs", [])
             if rank and c.get("rank") == int(rank.group(1))]
    return costs[0] / 1000 if costs else None


def check_findings(report, truth, expected, costs):
    accusing = [f for f in report["findings"] if f["severity"] in ("warning", "error")]
    for code, names in expected.items():
        mine = [f for f in accusing if f["code"] == code]
        if not mine:
            raise Wrong(f"no {code}; there is {[f['title'] for f in accusing]}")
        if names and not any(names in f["title"] + " " for f in mine):
            raise Wrong(f"{code} does not name '{names}': {mine[0]['title']}")
    others = [f["title"] for f in accusing if f["code"] not in expected]
    if others:
        raise Wrong(f"accused without a reason: {others}")
    for finding in accusing:
        if finding["code"] in NO_COST or not costs:
            continue
        planted = planted_cost(truth, finding["title"])
        if planted is None:
            raise Wrong(f"nothing was planted for: {finding['title']}")
        told = finding["impact"]["us"] if "impact" in finding else finding["impact_us"]
        if abs(told - planted) > TOLERANCE * planted:
            raise Wrong(f"{finding['title']}: {told:.1f} us, planted {planted:.1f} us")


def check_clocks(report, truth):
    tables = {t["id"]: t for t in report["tables"]}
    hosts = {h["name"]: h for h in truth.get("hosts", [])}
    if len(hosts) < 2:
        return
    names = [c["name"] for c in tables["diagnose_clocks"]["columns"]]
    for row in tables["diagnose_clocks"]["rows"]:
        row = dict(zip(names, row))
        host, first = hosts[row["clock"]], truth["hosts"][0]
        planted = (host["offset_ns"] - first["offset_ns"]) / 1000
        # over the capture a drift adds up; the offset is told at its first collective
        slack = abs(host["drift_ppb"]) * 1e-9 * truth["run"]["step_ns"] / 1000 * 8
        if abs(row["offset_us"] - planted) > CLOCK_US + slack:
            raise Wrong(f"clock of {row['clock']}: {row['offset_us']} us, planted {planted} us")


def run_case(npuprof, directory, name):
    arguments, expected = CASES[name]
    run([npuprof, "synth", directory] + arguments)
    with open(os.path.join(directory, "truth.json"), encoding="utf-8") as text:
        truth = json.load(text)
    command = [npuprof, "cluster", directory, "--no-cache", "--json"]
    codes = (0, 3) if "missing" in name else (0,)
    report_text = run(command + ["-j", "1"], codes)
    report = json.loads(report_text)
    check_findings(report, truth, expected, name not in TOGETHER)
    check_clocks(report, truth)
    if name in INFOS and INFOS[name] not in [f["code"] for f in report["findings"]]:
        raise Wrong(f"no {INFOS[name]}")
    if run(command + ["-j", "3"], codes) != report_text:
        raise Wrong("another output with -j 3")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--npuprof", required=True)
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()
    names = args.cases or list(CASES)
    failed = 0
    print(f"1..{len(names)}")
    for n, name in enumerate(names, 1):
        with tempfile.TemporaryDirectory() as directory:
            try:
                run_case(os.path.abspath(args.npuprof), directory, name)
                print(f"ok {n} - {name}", flush=True)
            except (Wrong, KeyError, ValueError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"not ok {n} - {name}\n# {error!r}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
