"""Modes whose official form writes into the capture, beside golden/…/changed_input.

Ours writes tables and files of its own; here they are compared with what the official
tool has put into (a copy of) the capture.
"""
import csv
import glob
import os
import sqlite3


class Mismatch(Exception):
    pass


def rows_of(path, query):
    with sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True) as db:
        return list(db.execute(query))


def strings(path):
    return dict(rows_of(path, "select id, value from STRING_IDS"))


def same_lists(ours, theirs, what):
    if sorted(ours) != sorted(theirs):
        one = next((r for r in sorted(theirs) if r not in ours), None)
        other = next((r for r in sorted(ours) if r not in theirs), None)
        raise Mismatch(f"{what}: {len(ours)} and {len(theirs)} rows, official {one}, ours {other}")


def p2p(out, golden, data, compat):
    """opConnectionId of every op. Ours differs only where an op's numbers would begin anew
    for its domain."""
    checked = 0
    mine = rows_of(os.path.join(out, "cluster_analysis_output", "cluster_analysis.db"),
                   "select rankId, opName, startNs, opConnectionId from P2PPairing")
    pattern = os.path.join(golden, "changed_input", "*", "*", "*.changes.db")
    for changes in sorted(glob.glob(pattern)):
        name = os.path.basename(changes).replace(".changes", "")
        rank = int(os.path.splitext(name)[0].rsplit("_", 1)[1])
        capture = os.path.basename(os.path.dirname(os.path.dirname(changes)))
        text = strings(os.path.join(data, capture, "ASCEND_PROFILER_OUTPUT", name))
        theirs = [(text[op], start, conn) for op, start, conn in rows_of(
            changes, "select opName, startNs, opConnectionId from COMMUNICATION_OP "
                     "where opConnectionId is not null")]
        ours = [row[1:] for row in mine if row[0] == rank]
        same_lists(ours, theirs, f"rank {rank}")
        checked += len(theirs)
    if not checked or checked != len(mine):
        raise Mismatch(f"{checked} official ops, {len(mine)} of ours")


# ── export_summary ──

def csv_rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def same_cell(ours, theirs, tolerance):
    try:
        return abs(float(ours) - float(theirs)) <= tolerance * max(1, abs(float(theirs)))
    except ValueError:
        return ours == theirs


def expected_wait(rows, i):
    if i == 0:
        return 0
    before = rows[i - 1]
    return max(0, float(rows[i]["task_start_time"]) - float(before["task_start_time"]) -
               float(before["task_duration"]))


def compare_kernels(ours, theirs, where, compat):
    """Ours: times exact, the wait from the end before, counters that are not there N/A, and
    the type of a collective known from its name."""
    for i, (mine, row) in enumerate(zip(ours, theirs)):
        for column, value in row.items():
            if column == "task_start_time":
                good = abs(float(mine[column]) - float(value)) <= 0.3
            elif column == "task_wait_time" and not compat:
                good = abs(float(mine[column]) - expected_wait(ours, i)) <= 0.6
            elif not compat and mine[column] == "N/A":
                good = value in ("N/A", "0.0")
            elif value == "N/A" and mine[column] != value:
                good = column == "op_type" and row["task_type"] == "COMMUNICATION"
            else:
                good = same_cell(mine[column], value, 1e-9)
            if not good:
                raise Mismatch(f"{where} row {i + 1}, {column}: {mine[column]}, official {value}")


def export(out, golden, data, compat):
    """Both files of every rank, row for row."""
    del data
    base = os.path.join(out, "cluster_analysis_output", "ExportSummary")
    captures = sorted(glob.glob(os.path.join(golden, "changed_input", "*")))
    for rank, capture in enumerate(captures):
        for name in ("api_statistic.csv", "kernel_details.csv"):
            where = f"rank {rank} {name}"
            theirs = csv_rows(os.path.join(capture, "ASCEND_PROFILER_OUTPUT", name))
            ours = csv_rows(os.path.join(base, str(rank), name))
            if len(ours) != len(theirs) or list(ours[0]) != list(theirs[0]):
                raise Mismatch(f"{where}: {len(ours)} and {len(theirs)} rows, {list(ours[0])}")
            if name == "kernel_details.csv":
                compare_kernels(ours, theirs, where, compat)
                continue
            for mine, row in zip(ours, theirs):
                if not all(same_cell(mine[c], row[c], 1e-9) for c in row):
                    raise Mismatch(f"{where}: {mine}, official {row}")
    if not captures:
        raise Mismatch("nothing to compare")
