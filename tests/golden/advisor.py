#!/usr/bin/env python3
"""`npuprof advise` beside the official advisor's sheets in $NPUPROF_SHARED/golden.

  advisor.py --npuprof PATH [SHEET...]

Every sheet of golden/msprof_analyze/SET/advisor_*/mstt_advisor.xlsx.txt (one tuple per
row) is compared with the table of `advise --json` whose id is the checker's name. What
SHEETS says of a sheet:

  table    id of our table; None: we have none, by `reason`
  skip     columns that are not compared (texts of ours, order of lists)
  rename   {"official column": "our column"}
  official a function that makes an official row comparable (texts to numbers, a defect undone)
  near     {"column": absolute tolerance}: official figures that went through float64
  rows     how many of the first rows are no data (a legend)
  key      compare only these columns, as a multiset
  rows_of  a function that makes comparable rows of a list of dicts, of both
  part     "row": rows that are in the official sheet and not in ours, or the other way,
           are allowed where `theirs(row, where)` or `ours(row, where)` says so
  differs  {where: reason}: SET/advisor_WHAT whose sheet must NOT be equal: a documented
           defect (docs/differences.md). Once it is equal the entry is stale, and fails
  absent   {where: reason}: the official sheet is there and our table must not be
  extra    {where: reason}: our table is there and the official sheet is not

Numbers agree within 1e-9 relative, texts without regard of blanks, N/A only with N/A.
Columns of ours that the official sheet lacks are ours to add. One TAP line per sheet;
without $NPUPROF_SHARED (or ../shared) everything is a skip.
"""
import argparse
import ast
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import run as golden

# With these our conditions are the official ones; docs/differences.md tells why they are not
# by default.
OFFICIAL_RULES = {"fusible_mte_all_cores": 0}

# Epoch microseconds as float64 are good to 0.25 us, and up to 56 occurrences are summed.
SEQUENCES = {"total time(us)": 15, "execution time(us)": 0.03, "mte time(us)": 0.03}


def unexplained(row, where):
    """Two sequences fulfil every condition and are not in the official table. (In its rows
    no other follows from them: they begin one kernel behind the last one that is told.)"""
    return (row["start index"], row["end index"]) == (2370, 2379) and "qwen3" in where or \
        (row["start index"], row["end index"]) == (9, 12) and "synth8" in where


# The texts of Cube, FA and Vector Operator Perf Analysis: two rows of many lines there, a
# row per operator here. Their data types are left out: of some the official tool says None.
PERF = re.compile(r"(?P<op>.*) dtype: \S*(?: bound(?: type|类型为): (?P<verdict>.*) bound"
                  r"| (?:suspect|疑似).*: (?P<space>[\d.]+)%)")


def perf_rows(rows):
    out = []
    for row in rows:
        for line in filter(None, row["Description"].split("\n")):
            found = PERF.fullmatch(line)
            if not found:
                raise golden.Mismatch(f"not understood: {line}")
            space = found.group("space")
            out.append({"op": found.group("op").replace("算子 shape", " Op shape"), "verdict": found.group("verdict") or "",
                        "space": float(space) if space else None})
    return out


def perf(table, **more):
    # 0.05: ratios of a database, rounded to 1/1000 here so that text and db agree
    return {"table": table, "rows_of": perf_rows, "near": {"space": 0.0501}, **more}


DYNAMIC = "the official tool does not judge captures of dynamic shape"
RANK = "ranks differ by less than 5 %: the first rank is 0; there it is 1, of the directory's order"
DYNAMIC_SETS = {f"{data}/advisor_{what}": DYNAMIC for data, what in [
    ("ddp2_text_level2", "all_cluster"), ("ddp2_text_level2", "all_cluster_cn"),
    ("ddp2_text_level2", "all_single"), ("ddp2_text_level2", "all_single_bp"),
    ("ddp2_text_level2", "computation_single"), ("qwen3_4rank_text", "all_cluster"),
    ("qwen3_4rank_text", "all_single")]}


KERNELS = "the official tool looks at rank 3, of which there are no kernels: ours at rank 2"
QWEN3 = {"qwen3_4rank_text/advisor_all_cluster": KERNELS}
SYNTH8 = {"synth8/advisor_all_cluster": RANK}


def bound_elsewhere(row, where):
    """There the loads and the scalar unit of a vector kernel are those of the idle cube core,
    and fixpipe is not looked at."""
    return where.startswith("ddp2_db") and (row["task_type"] in ("AI_VECTOR_CORE", "MIX_AIV") or
                                            row["task_duration"] == 72.562)


NO_BOUND = {"table": "no_bound", "theirs": bound_elsewhere, "extra": DYNAMIC_SETS,
            "differs": SYNTH8,
            "skip": ["vec_ratio", "mac_ratio", "scalar_ratio", "mte1_ratio", "mte2_ratio",
                     "mte3_ratio"]}

# Sheets: English names; those of _cn outputs are told by CHINESE.
SHEETS = {
    "AICPU Issues": {"table": "aicpu"},
    "Block Dim Issues": {"table": "block_dim", "skip": ["income"], "differs": SYNTH8},
    "Operator No Bound Issues": NO_BOUND,
    "Cube Operator Perf Analysis": perf("perf_cube", extra=QWEN3, differs={
        "qwen3_4rank_text/advisor_all_single": "mac is bound at 0.8, there at mte2's 0.95",
        **SYNTH8}),
    "FA Operator Perf Analysis": perf("perf_fa", extra=QWEN3),
    "Vector Operator Perf Analysis": perf("perf_vector", extra=QWEN3),
    "Affinity API Issues": {"table": "affinity"},
    "sequences, host bound": {"table": "fusible_host", "near": SEQUENCES, "ours": unexplained},
    "sequences, mte bound": {"table": "fusible_mte", "near": SEQUENCES, "ours": unexplained,
                             "differs": {"synth8/advisor_all_cluster": "ours looks at the "
                                         "chosen step, the official tool at all of them"}},
    "GC Analysis": {"table": "gc", "near": {"timestamp": 0.5, "duration(us)": 0.001}},
}

CHINESE = {
    "问题综述": "problems", "环境变量分析": "Environment Variable Issues",
    "慢卡分析": "slow rank", "慢链路分析": "slow link", "字节对齐分析": "Byte Alignment Analysis",
    "Vector算子性能分析": "Vector Operator Perf Analysis", "亲和API接口": "Affinity API Issues",
}

LOWER = {
    "aicpu issues": "AICPU Issues", "block dim issues": "Block Dim Issues",
    "operator no bound": "Operator No Bound Issues",
}

# ── overall, cluster, communication, comparison ──

DB_TOO = "the official tool does not look at META_DATA of databases"
SCOPE = "only what was asked for"
TOTALS_TOO = "it counts Total Op Info, and on databases each packet size, as an operator"
NO_TRACE = "it needs trace_view.json to compare"
NO_API = "it reads no operators of this database"


def percent(row, _where):
    """'8.868' and '6.83%', which the official sheet has as texts."""
    return {c: float(v) if c == "Duration(ms)" else
            round(float(v[:-1]) / 100, 9) if c == "Duration Ratio" else v
            for c, v in row.items()}


def once(row, where):
    """Total Op Info counts once more, and so does each packet size (two of them in synth8)."""
    times = 4 if where.startswith("synth8") else 2
    return {c: v / times if "size" in c or "time" in c else v for c, v in row.items()}


def turned(row, _where):
    """Ratios are benchmark by target."""
    return {c: 1 / v if c.startswith("Diff") and isinstance(v, (int, float)) and v else v
            for c, v in row.items()}


def differing_part(row, where):
    """docs/differences.md: a plane without Notify_Wait makes the official wait 0; of traces
    it drops kernels without cube and vector time, and sees no copies; of level0 it knows no
    parts, and says 0."""
    part = row["Performance Index"].removeprefix("-- ")
    return part in ("Wait", "Transmit") or \
        (part in ("Vector", "SDMA", "Free") and where.startswith("ddp2_text_level2")) or \
        (row["Duration(ms)"] == 0 and where.startswith("ddp2_text_level0"))


def near(tolerance, *columns):
    both = columns + tuple("Benchmark  " + c for c in columns)
    return {c: tolerance for c in both}


SHEETS.update({
    "Environment Variable Issues": {
        "table": "environment", "skip": ("Description", "Suggestion"),
        "extra": {"ddp2_db_level0/advisor_all_single": DB_TOO,
                  "ddp2_db_level2/advisor_all_single": DB_TOO,
                  "ddp2_db_level2/advisor_all_cluster": DB_TOO,
                  "ddp2_text_level2/advisor_all_single_bp": "not told when comparing"},
        "absent": {"ddp2_text_level2/advisor_computation_single": SCOPE,
                   "ddp2_text_level2/advisor_schedule_single": SCOPE}},
    "Overall Summary": {
        "table": "overall_summary", "official": percent,
        "near": {"Duration(ms)": 0.000501, "Duration Ratio": 0.0000501},
        "theirs": differing_part, "ours": differing_part,
        "extra": {"qwen3_4rank_text/advisor_all_single": NO_TRACE},
        "absent": {"ddp2_text_level2/advisor_computation_single": SCOPE,
                   "ddp2_text_level2/advisor_schedule_single": SCOPE}},
    "slow rank": {"table": "slow_rank"},
    "slow link": {"table": "slow_link", "official": once, "near": {
        "RDMA bandwidth(GB/s)": 0.000101, "SDMA bandwidth(GB/s)": 0.000101}},
    "Packet Analysis": {"table": "packet", "differs": {
        f"{data}/advisor_all_{what}": TOTALS_TOO
        for data in ("qwen3_4rank_text", "synth8") for what in ("single", "cluster")}},
    # a trace has three decimals of a microsecond, per task
    "Byte Alignment Analysis": {"table": "byte_alignment", "near": {
        "duration(us)": 0.01, "abnormal duration(us)": 0.01, "bandwidth(GB/s)": 0.0002}},
    "Kernel compare": {
        "table": "kernel_compare", "official": turned, "skip": ("Order Id",),
        # op_statistic.csv sums what is rounded
        "near": {"Diff Total Ratio": 0.0002, "Diff Avg Ratio": 0.0002,
                 **near(0.0101, "Total Duration(us)"), **near(0.00101, "Avg Duration(us)")},
        "extra": {"qwen3_4rank_text/advisor_all_cluster": NO_TRACE}},
    # two decimals of a millisecond, and ratios of what is rounded so
    "Api compare": {
        "table": "api_compare",
        "skip": ("Order Id", "Diff Total Ratio", "Diff Self Ratio", "Diff Avg Ratio"),
        "near": near(0.00501, "Total Duration(ms)", "Self Time(ms)") |
        near(0.0101, "Avg Duration(ms)"),
        "extra": {"synth8/advisor_all_cluster": NO_API}},
})

# Sheets of which a test says nothing, and why.
UNCOMPARED = {"problems": "texts and figures of income are ours"}


def sheet_of(title):
    """'Rank 1 RANK 1 block dim issues' and 'Api compare of Rank1 …' have a rank in them."""
    title = CHINESE.get(title, title)
    found = re.fullmatch(r"Rank \d+ RANK \d+ (.*)", title)
    if found:
        return LOWER.get(found.group(1), found.group(1))
    return "Kernel compare" if title.startswith("Kernel compare") else \
        "Api compare" if title.startswith("Api compare") else title


def official_sheets(path):
    sheets, rows = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            head = re.match(r"### sheet '(.*)' \d+x\d+ ", line)
            if head:
                rows = sheets.setdefault(sheet_of(head.group(1)), [])
            elif line.strip():
                rows.append(ast.literal_eval(line.strip()))
    return split_sequences(sheets)


def split_sequences(sheets):
    """The official host and mte tables share a sheet, each row telling which it is of; its
    first row is a legend. Ours are two."""
    both = sheets.pop("OPERATOR SEQUENCE ANALYSIS BASE", None)
    if both:
        header, rows = both[0], both[2:]
        for name, host in (("sequences, host bound", True), ("sequences, mte bound", False)):
            chosen = [row for row in rows if row[header.index("host bound")] is host]
            if chosen:
                sheets[name] = [header] + chosen
    return sheets


def ours_of(npuprof, path, words, rules):
    made = subprocess.run([npuprof, "advise", path, *words, "--json", "--no-cache",
                           "--rules", rules], capture_output=True, text=True, timeout=300)
    if made.returncode not in (0, 3):
        raise golden.Mismatch(f"exit {made.returncode}: {made.stderr.strip()[:200]}")
    tables = {}
    for table in json.loads(made.stdout)["tables"]:
        names = [column["name"] for column in table["columns"]]
        tables[table["id"]] = [row if isinstance(row, dict) else dict(zip(names, row))
                               for row in table["rows"]]
    return tables


def plain(value):
    if value == "N/A": # some official sheets have it as a text, ours never
        return None
    if isinstance(value, str):
        return re.sub(r"\s+", " ", value.replace("_x000D_", "")).strip()
    return value


def same_cell(a, b, tolerance):
    if isinstance(a, bool) or isinstance(b, bool):
        return a == b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= max(tolerance, 1e-9 * max(abs(a), abs(b)))
    return a == b


def multiset_difference(ours, theirs, columns, near):
    """Rows of theirs without one of ours, and the other way."""
    left, missing = list(ours), []
    for row in theirs:
        for i, mine in enumerate(left):
            if all(same_cell(mine[c], row[c], near.get(c, 0)) for c in columns):
                del left[i]
                break
        else:
            missing.append(row)
    return missing, left


def compare(ours, sheet, plan, where):
    header, theirs = sheet[0], sheet[1 + plan.get("rows", 0):]
    rename, near = plan.get("rename", {}), plan.get("near", {})
    if "rows_of" in plan:
        theirs = plan["rows_of"]([dict(zip(header, row)) for row in theirs])
        ours = plan["rows_of"](ours)
        header = list(theirs[0])
        theirs = [list(row.values()) for row in theirs]
    columns = [c for c in plan.get("key", header) if c not in plan.get("skip", ())]
    theirs = [{c: plain(v) for c, v in zip(header, row) if c in columns} for row in theirs]
    if "official" in plan:
        theirs = [plan["official"](row, where) for row in theirs]
    for row in ours:
        lacking = [c for c in columns if rename.get(c, c) not in row]
        if lacking:
            raise golden.Mismatch(f"our table has no column {lacking}")
    ours = [{c: plain(row[rename.get(c, c)]) for c in columns} for row in ours]
    missing, left = multiset_difference(ours, theirs, columns, near)
    missing = [r for r in missing if not plan.get("theirs", lambda *_: False)(r, where)]
    left = [r for r in left if not plan.get("ours", lambda *_: False)(r, where)]
    if missing or left:
        raise golden.Mismatch(f"{len(missing)} of {len(theirs)} official rows are not ours, "
                              f"{len(left)} of {len(ours)} ours not official; first: "
                              f"{(missing or [None])[0]} / {(left or [None])[0]}")


def check_sheet(ours, sheets, name, where):
    plan = SHEETS[name]
    table = ours.get(plan["table"]) if plan["table"] else None
    if name not in sheets:
        if table and where not in plan.get("extra", {}):
            raise golden.Mismatch(f"our table has {len(table)} rows, the official sheet none")
        return
    if plan["table"] is None:
        return
    if where in plan.get("absent", {}):
        if table:
            raise golden.Mismatch("is there, and should not: " + plan["absent"][where])
        return
    if table is None:
        raise golden.Mismatch("we have no such table")
    if where not in plan.get("differs", {}):
        compare(table, sheets[name], plan, where)
        return
    try:
        compare(table, sheets[name], plan, where)
    except golden.Mismatch:
        return
    raise golden.Mismatch("equal, and should differ: " + plan["differs"][where])


def cases(base):
    for path in sorted(glob.glob(os.path.join(base, "golden/msprof_analyze/*/advisor_*"))):
        data, what = path.split(os.sep)[-2:]
        yield data, what, os.path.join(path, "mstt_advisor.xlsx.txt")


def input_of(base, scratch, data, what):
    """The cluster, or its first rank; what the official command line had besides."""
    path = golden.data_of(data, base, scratch)
    words = [w for w in ("computation", "schedule") if w in what]
    if "_cluster" in what:
        return path, words
    ranks = sorted(glob.glob(os.path.join(path, "*_ascend_pt")))
    return ranks[0], words + (["--bp", ranks[1]] if what.endswith("_bp") else [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--npuprof", required=True)
    parser.add_argument("sheets", nargs="*")
    args = parser.parse_args()
    base = golden.shared()
    if not base:
        print("1..0 # SKIP no shared data")
        return 0
    failed = n = 0
    uncompared = set()
    with tempfile.TemporaryDirectory() as scratch:
        rules = os.path.join(scratch, "rules.json")
        with open(rules, "w", encoding="utf-8") as file:
            json.dump(OFFICIAL_RULES, file)
        for data, what, path in cases(base):
            where = f"{data}/{what}"
            sheets = official_sheets(path)
            uncompared |= set(sheets) - set(SHEETS) - set(UNCOMPARED)
            try:
                ours = ours_of(args.npuprof, *input_of(base, scratch, data, what), rules)
            except golden.Mismatch as error:
                ours, trouble = None, error
            for name in args.sheets or SHEETS:
                n += 1
                try:
                    if ours is None:
                        raise trouble
                    check_sheet(ours, sheets, name, where)
                    print(f"ok {n} - {where}: {name}")
                except golden.Mismatch as error:
                    failed += 1
                    print(f"not ok {n} - {where}: {name}\n# {error}")
    for name in sorted(uncompared):
        print(f"# not compared yet: {name}")
    print(f"1..{n}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
