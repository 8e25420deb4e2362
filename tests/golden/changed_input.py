"""Modes whose official form writes into the capture, beside golden/…/changed_input.

Ours writes tables and files of its own; here they are compared with what the official
tool has put into (a copy of) the capture.
"""
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
