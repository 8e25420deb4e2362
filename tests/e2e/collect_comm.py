#!/usr/bin/env python3
"""npuprof comm: on logs of the real recorders, beside arithmetic of our own, and on a synthetic
capture whose truth is known."""
import csv
import glob
import io
import json
import os
import shutil
import struct
import sys

import comm_reader
from collect_lib import Skip, Suite
from recorder_lib import Run, same

SUITE = Suite(__doc__)


def comm(*words, check=0):
    """The report, as tables of dictionaries."""
    done = SUITE.call("comm", *words, "--json", check=check)
    report = json.loads(done.stdout)
    report["tables"] = {
        table["id"]: [dict(zip([column["name"] for column in table["columns"]], row))
                      for row in table["rows"]] for table in report["tables"]}
    report["codes"] = [finding["code"] for finding in report["findings"]]
    return report


def only(rows, **wanted):
    found = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    assert len(found) == 1, (wanted, rows)
    return found[0]


MODEL = """
class Text:
    cache = None
    def encode_prompt(self, prompt):
        if Text.cache != prompt:
            dist.broadcast(torch.ones(1000), 0)
            Text.cache = prompt
class DiT:
    def forward(self, pair):
        dist.all_reduce(torch.ones(250))
        dist.all_gather([torch.empty(100, dtype=torch.int64)] * 2, torch.ones(100, dtype=torch.int64),
                        group=pair)
def pipeline(prompt, pair):
    Text().encode_prompt(prompt)
    for _ in range(3):
        DiT().forward(pair)
    dist.all_reduce(torch.ones(1, dtype=torch.bool).to(torch.uint8))
"""
PIPELINE = """
sys.path.insert(0, os.getcwd())
import comm_model
start()
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
pair = pairs[dist.get_rank() // 2]
for _ in range(2):
    comm_model.pipeline("the same", pair)
dist.barrier()
"""


def pipeline_of_4_ranks(tmp):
    run = Run(tmp, [("request", "comm_model", "pipeline"),
                    ("text", "comm_model", "Text.encode_prompt"),
                    ("dit", "comm_model", "DiT.forward")], step="dit", request="request")
    run.write("comm_model.py", "import torch, torch.distributed as dist\n" + MODEL)
    run.python(PIPELINE, ranks=4)
    report = comm(tmp)
    tables = report["tables"]
    row = only(tables["collectives"], stage="dit", op="all_reduce")
    same((row["group"], row["world"], row["ranks"], row["calls"]), ("0,1,2,3", 4, 4, 24))
    # of one rank: 6 calls of 1000 bytes; moved~ is 2 (w - 1) / w of it
    same((row["size_bytes"], row["moved~_bytes"], row["basis"]), (6000, 9000, "R27"))
    row = only(tables["collectives"], stage="dit", op="all_gather")
    same((row["group"], row["world"], row["calls"]), ("(2 groups)", 2, 24))
    same((row["size_bytes"], row["moved~_bytes"]), (4800, 4800))
    row = only(tables["collectives"], stage="text", op="broadcast")
    same((row["calls"], row["size_bytes"], row["moved~_bytes"]), (4, 4000, 3000))
    row = only(tables["sizes"], op="all_gather")
    same((row["mean_bytes"], row["max_bytes"], row["bus~_bytes"]), (800, 800, 4800))
    for group in ("0,1", "2,3"):  # R27: of a symmetric pair twice that of a rank
        row = only(tables["groups"], group=group)
        same((row["ranks"], row["moved~_bytes"], row["total~_bytes"]), (2, 4800, 9600))
    same([only(tables["requests"], request=n, stage="dit")["calls"] for n in (1, 2)], [24, 24])
    same([only(tables["steps"], step=n, stage="dit")["size_bytes"] for n in range(1, 7)],
         [4 * 1800] * 6)
    same(only(tables["stages"], stage="text")["entered"], 8)
    same(only(tables["stages"], stage="dit")["entered"], 24)
    assert "COMM_FIRST_REQUEST_ONLY" in report["codes"], report["codes"]
    assert "COMM_COUNTS_DIFFER" not in report["codes"]
    same(sorted(row["rank"] for row in tables["ranks"]), [0, 1, 2, 3])
    same({row["state"] for row in tables["ranks"]}, {"closed"})
    check_sums(run.logs(), tables)
    check_export(run.logs(), tmp)
    same(only(comm(tmp, "--rank", "2")["tables"]["groups"], group="2,3")["calls"], 6)
    same([row["group"] for row in comm(tmp, "--op", "all_gather", "--each-group")["tables"]
          ["collectives"]], ["0,1", "2,3"])


def check_sums(logs, tables):
    """All calls and bytes, by a reader that is not ours."""
    calls = [call for log in logs for call in log.calls]
    same(sum(row["calls"] for row in tables["collectives"]), len(calls))
    same(sum(row["size_bytes"] * row["ranks"] for row in tables["collectives"]),
         sum(call.tensor_bytes for call in calls))
    same(sum(row["calls"] for row in tables["steps"]), len(calls))
    same(sum(row["records"] for row in tables["ranks"]), sum(len(log.records) for log in logs))


def check_export(logs, run):
    expected = sorted((call.start_ns, log.header.rank, call.seq, call.op_name, call.stage or None,
                       call.tensor_bytes, call.count, call.shape or None)
                      for log in logs for call in log.records)
    lines = SUITE.call("comm", run, "--export", "jsonl", check=0).stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    names = ("time_ns", "rank", "seq", "op", "stage", "size_bytes", "count", "shape")
    got = [tuple(row[name] for name in names) for row in rows]
    same([row[0] for row in got], [row[0] for row in expected])
    same(sorted(got, key=str), sorted(expected, key=str))
    text = SUITE.call("comm", run, "--export", "csv", check=0).stdout
    table = list(csv.DictReader(io.StringIO(text)))
    same([(int(row["time_ns"]), row["op"], row["shape"]) for row in table],
         [(row["time_ns"], row["op"], row["shape"] or "") for row in rows])


def killed_ring_and_odd_files(tmp):
    run = Run(tmp, capacity=64)
    run.kill_when("start()\nfor i in range(10 ** 9):\n    dist.all_reduce(torch.ones(2))\n"
                  "    if i == 500: print('now', flush=True)\n", lambda line: line == "now")
    with open(os.path.join(run.comm, "foreign.nplog"), "w") as file:
        file.write("no log\n" * 1000)
    with open(os.path.join(run.comm, "unborn.nplog"), "wb") as file:
        file.write(bytes(8) + b"\1" * 5000)
    report = comm(tmp, check=4)
    row = [row for row in report["tables"]["ranks"] if row["state"] == "not closed"][0]
    assert row["overwritten"] >= 437 and 63 <= row["records"] <= 64, row
    states = sorted(row["state"] for row in report["tables"]["ranks"])
    same(states, ["empty", "not closed", "unreadable"])
    for code in ("COMM_OVERWRITTEN", "COMM_NOT_CLOSED", "COMM_LOG_UNREADABLE"):
        assert code in report["codes"], report["codes"]


def anchor_not_found(tmp):
    run = Run(tmp, [("dit", "comm_model", "DiT.forwrd")])
    run.write("comm_model.py", "import torch, torch.distributed as dist\n" + MODEL)
    run.python("sys.path.insert(0, os.getcwd())\nimport comm_model\nstart()\n"
               "dist.all_reduce(torch.ones(1000))\n")
    report = comm(tmp)
    assert "COMM_STAGE_OTHER" in report["codes"], report["codes"]
    finding = [one for one in report["findings"] if one["code"] == "COMM_ANCHOR_NOT_FOUND"][0]
    assert "comm_model:DiT.forwrd" in finding["title"], finding
    assert "forward" in finding["advice"], finding


def library_of_hccl(tmp):
    import preload_lib
    path = preload_lib.comm_dir(tmp)
    preload_lib.run_caller("dlopen", "threads", 4, 300, comm=path)
    logs = preload_lib.read_logs(path)
    calls = [call for log in logs for call in log.calls()]
    assert len(calls) >= 1200, len(calls)
    report = comm(path)
    same(sum(row["calls"] for row in report["tables"]["collectives"]), len(calls))
    same({row["layer"] for row in report["tables"]["collectives"]}, {"hccl"})
    known = [call.tensor_bytes for call in calls if call.tensor_bytes != preload_lib.NO64]
    same(sum(row["size_bytes"] * row["ranks"] for row in report["tables"]["collectives"]),
         sum(known))


def synth(tmp, name, *words):
    path = os.path.join(tmp, name)
    SUITE.call("synth", path, "--comm-log", "-q", *words, check=0)
    with open(os.path.join(path, "truth.json")) as file:
        return path, json.load(file)


LAYOUT = ("--tp", "2", "--pp", "2", "--dp", "2", "--ep", "2", "--steps", "2")


def capture_and_log_agree(tmp):
    for format_ in ("text", "db"):
        path, truth = synth(tmp, format_, "--format", format_, *LAYOUT)
        report = comm(path, "--against", path)
        rows = report["tables"]["against"]
        same((report["verdict"], {row["verdict"] for row in rows}), ("PASS", {"equal"}))
        for rank in truth["ranks"]:  # the capture's window is what the log has less its first step
            mine = [row for row in rows if row["rank"] == rank["rank"]]
            same(sum(row["device_calls"] for row in mine), rank["collectives"])
            same(sum(row["log_calls"] for row in mine), rank["collectives"])
            table = comm(path, "--rank", str(rank["rank"]))["tables"]["collectives"]
            same((sum(row["calls"] for row in table), sum(row["size_bytes"] for row in table)),
                 (rank["comm_log_calls"], rank["comm_log_bytes"]))
    report = comm(path, "--against", path, "--layer", "hccl")
    same(report["verdict"], "PASS")


def drop_last(path, n):
    """The last n records of a log, as if they had never been."""
    with open(path, "r+b") as file:
        head = file.read(4096)
        strings, capacity, written = struct.unpack_from("<QQQ", head, 24)
        file.seek(4096 + strings + (written - n) * 128)
        file.write(bytes(n * 128))
        file.seek(40)
        file.write(struct.pack("<Q", written - n))
    assert capacity >= written


def capture_and_log_differ(tmp):
    path, _ = synth(tmp, "one", *LAYOUT)
    for log in glob.glob(os.path.join(path, "comm", "comm-hccl-*")):
        if comm_reader.Log(log).header.rank == 3:
            drop_last(log, 5)
    report = comm(path, "--against", path, check=1)
    bad = [row for row in report["tables"]["against"] if row["verdict"] != "equal"]
    same({row["rank"] for row in bad}, {3})
    same(sum(row["device_calls"] - row["log_calls"] for row in bad), 5)
    same(report["verdict"], "FAIL")
    assert "COMM_AGAINST_DIFFERS" in report["codes"]
    # the log of another day
    other, _ = synth(tmp, "other", "--start-epoch", "1700000000", *LAYOUT)
    report = comm(other, "--against", path, check=3)
    same({row["verdict"] for row in report["tables"]["against"]}, {"not in log"})
    same(report["verdict"], "UNKNOWN")
    # ranks that call different numbers of times
    assert "COMM_COUNTS_DIFFER" in comm(path, "--layer", "hccl")["codes"]
    assert "COMM_COUNTS_DIFFER" not in comm(path, "--layer", "torch")["codes"]


def real_captures(tmp):
    root = os.environ.get("NPUPROF_SHARED", "")
    if not os.path.isdir(os.path.join(root, "data")):
        raise Skip("no shared captures")
    path, _ = synth(tmp, "log", *LAYOUT)
    report = comm(path, "--against", os.path.join(root, "data", "qwen3_4rank"), check=3)
    rows = report["tables"]["against"]
    assert len(rows) > 20
    same({row["verdict"] for row in rows}, {"not in log"})
    row = only(rows, rank=0, group="dp_cp", op="reduce_scatter")
    same((row["device_calls"], row["log_calls"]), (2, 0))
    assert "COMM_AGAINST_ONE_SIDED" in report["codes"]


def many_logs_at_once(tmp):
    """Ranks of 64 processes; the result is that of one thread."""
    path, truth = synth(tmp, "many", "--lite", "--tp", "4", "--dp", "16", "--steps", "2")
    one, many = (SUITE.call("comm", path, "--json", "-j", threads, check=0).stdout
                 for threads in ("1", "7"))
    same(one, many)
    table = json.loads(one)["tables"]
    calls = sum(rank["comm_log_calls"] for rank in truth["ranks"])
    collectives = [one for one in table if one["id"] == "collectives"][0]
    at = [column["name"] for column in collectives["columns"]].index("calls")
    same(sum(row[at] for row in collectives["rows"]), calls)
    shutil.rmtree(os.path.join(path, "comm"))
    SUITE.call("comm", path, check=2)


for case in (pipeline_of_4_ranks, killed_ring_and_odd_files, anchor_not_found, library_of_hccl,
             capture_and_log_agree, capture_and_log_differ, real_captures, many_logs_at_once):
    SUITE.run(case.__name__, case)
sys.exit(SUITE.finish())
