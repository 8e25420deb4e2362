#!/usr/bin/env python3
"""`npuprof cluster` beside the official tool's outputs in $NPUPROF_SHARED/golden.

  run.py --npuprof PATH [MODE...]

tests/golden/MODE.json lists what is compared:

  {"mode": "hccl_sum",                      what -m gets
   "cases": [{"set": "synth8",              data set, see DATA below
              "golden": "hccl_sum",         directory below golden/msprof_analyze/SET, or
                                            "hccl_sum.text": then --export_type text
              "args": ["--top_num", "5"],   optional
              "bp": "synth8_base",          optional: --bp with this set
              "skip": ["Table.Column"],     not comparable at all (order of ties, first one met)
              "sets": ["Table.Column"],     lists whose order depends on a directory:
                                            compared as sets ("1;0;4" and "0;1;4")
              "basename": ["Table.Column"], paths, of which the last component is compared
              "ours": ["Table", "T.C"],     where the official figure is a documented defect:
                                            compared only in the run with --compat
              "compat": false}]}            optional: no run with --compat

Every case is run twice, as it is and with --compat, and each table or file of the
golden directory must be there with equal rows as a multiset: numbers within 1e-9
relative, texts equal, NULL only equal to NULL. JSON files are compared as objects.
What is "ours" must DIFFER without --compat, so that a list cannot go stale, unless
it stands in "may": [...].

One TAP line per run; without $NPUPROF_SHARED (or ../shared) everything is a skip.
"""
import argparse
import csv
import json
import math
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TOLERANCE = 1e-9

DATA = {
    "synth8": "data/synth8", "synth8_base": "data/synth8_base",
    "synth8_mstxcomm": "data/synth8_mstxcomm", "qwen3_4rank": "data/qwen3_4rank",
    "qwen3_4rank_text": "data/qwen3_4rank",
    "ddp2_db_level0": "data/ddp2/db/level0", "ddp2_db_level2": "data/ddp2/db/level2",
    "ddp2_text_level0": "data/ddp2/text/level0", "ddp2_text_level2": "data/ddp2/text/level2",
}


class Mismatch(Exception):
    pass


def shared():
    for path in (os.environ.get("NPUPROF_SHARED"), os.path.join(ROOT, "..", "shared")):
        if path and os.path.isdir(os.path.join(path, "golden")):
            return path
    return None


def data_of(name, base, scratch):
    """The set's directory; qwen3_4rank_text is a copy without its analysis.db."""
    path = os.path.join(base, DATA[name])
    if name != "qwen3_4rank_text":
        return path
    copy = os.path.join(scratch, name)
    if not os.path.isdir(copy):
        shutil.copytree(path, copy, ignore=shutil.ignore_patterns("analysis.db"))
    return copy


# ── tables as lists of dictionaries ──

def db_tables(path):
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
        db.row_factory = sqlite3.Row
        names = [r[0] for r in db.execute("select name from sqlite_master where type='table'")]
        return {name: [dict(row) for row in db.execute(f'select * from "{name}"')]
                for name in names}


def number(text):
    if text == "":
        return None
    try:
        return float(text) if not re.fullmatch(r"-?\d+", text) else int(text)
    except ValueError:
        return text


def csv_table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return [{k: number(v) for k, v in row.items()} for row in csv.DictReader(file)]


def as_set(value):
    return " ".join(sorted(re.split(r"[;, ]+", str(value).strip("()"))))


def prepare(rows, table, case):
    skip = {c.split(".", 1)[1] for c in case.get("skip", []) if c.split(".", 1)[0] == table}
    sets = {c.split(".", 1)[1] for c in case.get("sets", []) if c.split(".", 1)[0] == table}
    paths = {c.split(".", 1)[1] for c in case.get("basename", []) if c.split(".", 1)[0] == table}
    rows = [{k: os.path.basename(v) if k in paths else v for k, v in row.items()} for row in rows]
    return [{k: as_set(v) if k in sets else v for k, v in row.items() if k not in skip}
            for row in rows]


def key(row):
    """Sorts equal rows together: numbers rounded so that the tolerance does not part them."""
    parts = []
    for name in sorted(row):
        value = row[name]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            parts.append((1, f"{float(value):.6e}"))
        else:
            parts.append((0, str(value)))
    return parts


def same(a, b):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        if math.isnan(a) and math.isnan(b):
            return True
        return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))
    return a == b


def same_row(a, b):
    return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)


def compare_rows(ours, theirs, what):
    if len(ours) != len(theirs):
        raise Mismatch(f"{what}: {len(ours)} rows, official {len(theirs)}")
    if ours and list(ours[0]) != list(theirs[0]):
        raise Mismatch(f"{what}: columns {list(ours[0])}, official {list(theirs[0])}")
    ours, theirs = sorted(ours, key=key), sorted(theirs, key=key)
    left = []
    for row in theirs:  # neighbours may have swapped by rounding: look a little around
        for i, mine in enumerate(ours[:8]):
            if same_row(mine, row):
                del ours[i]
                break
        else:
            left.append(row)
    left = [row for row in left
            if not any(same_row(mine, row) and not ours.remove(mine) for mine in list(ours))]
    if left:
        raise Mismatch(f"{what}: {len(left)} rows differ, the first official {left[0]}, "
                       f"ours {ours[0] if ours else None}")


def compare_json(ours, theirs, where):
    if isinstance(theirs, dict) and isinstance(ours, dict):
        if ours.keys() != theirs.keys():
            raise Mismatch(f"{where}: keys {sorted(ours.keys() ^ theirs.keys())[:4]} on one side")
        for name in theirs:
            compare_json(ours[name], theirs[name], f"{where}/{name}")
    elif isinstance(theirs, list) and isinstance(ours, list):
        if len(ours) != len(theirs):
            raise Mismatch(f"{where}: {len(ours)} elements, official {len(theirs)}")
        for i, (a, b) in enumerate(zip(sorted(ours, key=repr), sorted(theirs, key=repr))):
            compare_json(a, b, f"{where}[{i}]")
    elif not same(ours, theirs):
        raise Mismatch(f"{where}: {ours!r}, official {theirs!r}")


# ── one run ──

def drop(rows, table, columns):
    gone = {c.split(".", 1)[1] for c in columns if "." in c and c.split(".", 1)[0] == table}
    return [{k: v for k, v in row.items() if k not in gone} for row in rows]


def compare_tables(case, table, ours, theirs, compat):
    ours, theirs = prepare(ours, table, case), prepare(theirs, table, case)
    known = [] if compat else [c for c in case.get("ours", []) if c.split(".", 1)[0] == table]
    if known and not any(c in case.get("may", []) for c in known):
        try:
            compare_rows(list(ours), list(theirs), table)
        except Mismatch:
            pass
        else:
            raise Mismatch(f"{table}: equal to the official one although listed in \"ours\"")
    if table in known:
        return
    compare_rows(drop(ours, table, known), drop(theirs, table, known), table)


def name_of(path):
    return os.path.splitext(os.path.basename(path))[0]


def compare_dirs(case, out, golden, compat):
    checked = 0
    for folder, _, files in os.walk(golden):
        for file in sorted(files):
            theirs = os.path.join(folder, file)
            ours = os.path.join(out, os.path.relpath(theirs, golden))
            if file.endswith(".db") and case["golden"].endswith(".text"):
                continue  # what the official tool makes on the way
            if not file.endswith((".db", ".csv", ".json")):
                continue
            if file.endswith(".csv") and not os.path.exists(ours):
                ours = newest_like(ours)
            if not os.path.exists(ours):
                raise Mismatch(f"{os.path.relpath(ours, out)} was not written")
            checked += 1
            if file.endswith(".db"):
                mine = db_tables(ours)
                for table, rows in db_tables(theirs).items():
                    if table not in mine:
                        raise Mismatch(f"no table {table}")
                    compare_tables(case, table, mine[table], rows, compat)
            elif file.endswith(".csv"):
                compare_tables(case, name_of(file), csv_table(ours), csv_table(theirs), compat)
            elif compat or name_of(file) not in case.get("ours", []):
                with open(ours, encoding="utf-8") as a, open(theirs, encoding="utf-8") as b:
                    compare_json(json.load(a), json.load(b), name_of(file))
    if not checked:
        raise Mismatch("the golden directory has nothing to compare")


def newest_like(path):
    """cluster_time_summary.csv of golden is cluster_time_summary_<time stamp>.csv in life."""
    folder, stem = os.path.dirname(path), name_of(path)
    like = [f for f in (os.listdir(folder) if os.path.isdir(folder) else [])
            if re.fullmatch(re.escape(stem) + r"_\d+\.csv", f)]
    return os.path.join(folder, like[0]) if len(like) == 1 else path


def run_case(npuprof, base, scratch, mode, case, compat):
    out = tempfile.mkdtemp(dir=scratch)
    command = [npuprof, "cluster", "-m", mode, "-d", data_of(case["set"], base, scratch), "-o",
               out, "--no-cache", "--json"] + case.get("args", [])
    if case["golden"].endswith(".text"):
        command += ["--export_type", "text"]
    if "bp" in case:
        command += ["--bp", data_of(case["bp"], base, scratch)]
    if compat:
        command.append("--compat")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode not in case.get("exit", [0, 3]):
        raise Mismatch(f"exit status {done.returncode}: {done.stderr.strip()[-600:]}")
    json.loads(done.stdout)
    golden = os.path.join(base, "golden", "msprof_analyze", case["set"], case["golden"])
    compare_dirs(case, out, golden, compat)


def cases(modes):
    for file in sorted(os.listdir(HERE)):
        if not file.endswith(".json") or (modes and name_of(file) not in modes):
            continue
        with open(os.path.join(HERE, file), encoding="utf-8") as text:
            plan = json.load(text)
        for case in plan["cases"]:
            for compat in (False, True) if case.get("compat", True) else (False,):
                yield plan["mode"], case, compat


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--npuprof", required=True)
    parser.add_argument("modes", nargs="*")
    args = parser.parse_args()
    base, todo, failed = shared(), list(cases(args.modes)), 0
    print(f"1..{len(todo)}")
    with tempfile.TemporaryDirectory() as scratch:
        for n, (mode, case, compat) in enumerate(todo, 1):
            title = f"{case['golden']} {case['set']} {' '.join(case.get('args', []))}" \
                    f"{' --compat' if compat else ''}"
            if not base:
                print(f"ok {n} - {title} # SKIP no shared data")
                continue
            try:
                run_case(os.path.abspath(args.npuprof), base, scratch, mode, case, compat)
                print(f"ok {n} - {title}", flush=True)
            except (Mismatch, ValueError, OSError, subprocess.TimeoutExpired) as error:
                failed += 1
                print(f"not ok {n} - {title}\n# {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
