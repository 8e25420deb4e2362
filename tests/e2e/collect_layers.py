#!/usr/bin/env python3
"""Both recorders at a time: torchrun with 4 ranks of gloo, whose program also calls a libhccl.so
below, as torch_npu does; profiled by one command, and summed up with nothing counted twice."""
import json
import os
import re
import subprocess
import sys
import tempfile

import preload_lib
from collect_lib import FAKES, SOURCE, Suite, torch_python
from recorder_lib import free_port, same

RANKS, REQUESTS, STEPS = 4, 4, 3
PROGRAM = """
import ctypes
import torch
import torch.distributed as dist

class Hccl:
    def __init__(self, rank, world):
        self.lib, self.comm = ctypes.CDLL("libhccl.so"), ctypes.c_void_p()
        root = ctypes.create_string_buffer(4108)
        self.lib.HcclCommInitRootInfo(world, root, rank, ctypes.byref(self.comm))
    def all_reduce(self, n):
        self.lib.HcclAllReduce(ctypes.c_void_p(1), ctypes.c_void_p(2), ctypes.c_uint64(n), 4, 0, self.comm,
                               ctypes.c_void_p(9))

class DiT:
    def forward(self, hccl):
        dist.all_reduce(torch.ones(250))
        hccl.all_reduce(250)

class Text:
    def encode(self):
        dist.broadcast(torch.ones(1000), 0)

def request(hccl):
    Text().encode()
    for _ in range(%d):
        DiT().forward(hccl)

def main():
    dist.init_process_group("gloo")
    hccl = Hccl(dist.get_rank(), dist.get_world_size())
    for _ in range(%d):
        request(hccl)
    hccl.all_reduce(77)  # of this torch knows nothing
    dist.barrier()

if __name__ == "__main__":
    main()
""" % (STEPS, REQUESTS)
WIDTH = 100


class Both:
    def __init__(self, suite, tmp):
        self.suite, self.tmp = suite, tmp
        python, libraries = torch_python(), preload_lib.fakes()
        with open(f"{tmp}/both.py", "w") as file:
            file.write(PROGRAM)
        env = {**os.environ, "NPUPROF": suite.npuprof, "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
               "GLOO_SOCKET_IFNAME": "lo", "PYTHONDONTWRITEBYTECODE": "1",
               "LD_LIBRARY_PATH": f"{libraries}/new:{libraries}",
               "PYTHONPATH": os.path.join(FAKES, "python"), "FAKE_NPU_CACHE": f"{tmp}/cache"}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            env.pop(name, None)
        words = ["run", "--json", "--collectives", "--stage", "dit=__main__:DiT.forward", "--stage",
                 "text=__main__:Text.encode", "--stage", "req=__main__:request", "--request-anchor",
                 "req", "--step-anchor", "dit", "--target", "__main__:DiT.forward", "--ranks", "all",
                 "--out", f"{tmp}/runs", "--", python, "-m", "torch.distributed.run", "--nnodes=1",
                 "--rdzv_backend=c10d", f"--rdzv_endpoint=127.0.0.1:{free_port()}", "--rdzv_id=npuprof",
                 f"--nproc_per_node={RANKS}", "-r", "1", "-t", "1", "both.py"]
        done = subprocess.run([suite.npuprof, *words], cwd=tmp, env=env, capture_output=True, text=True,
                              errors="replace", timeout=300)
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.report = json.loads(done.stdout)
        self.run, = [f"{tmp}/runs/{name}" for name in os.listdir(f"{tmp}/runs")]

    def comm(self, *words, check=0):
        """(codes, {table: rows as dictionaries}, report)."""
        done = self.suite.call("comm", self.run, *words, "--json", check=check)
        report = json.loads(done.stdout)
        is_valid(report)
        tables = {table["id"]: [dict(zip([column["name"] for column in table["columns"]], row))
                                for row in table["rows"]] for table in report["tables"]}
        return [one["code"] for one in report["findings"]], tables, report


def is_valid(document):
    """By docs/schema/report.schema.json: what of JSON Schema it uses."""
    with open(os.path.join(SOURCE, "docs", "schema", "report.schema.json")) as file:
        schema = json.load(file)
    kinds = {"object": dict, "array": list, "string": str, "number": (int, float), "integer": int,
             "boolean": bool, "null": type(None)}

    def look(value, rule, at):
        if "$ref" in rule:
            place = schema
            for part in rule["$ref"].lstrip("#/").split("/"):
                place = place[part]
            return look(value, place, at)
        wanted = rule.get("type", list(kinds))
        wanted = [wanted] if isinstance(wanted, str) else wanted
        assert any(isinstance(value, kinds[kind]) for kind in wanted), (at, value, wanted)
        assert "enum" not in rule or value in rule["enum"], (at, value)
        assert "const" not in rule or value == rule["const"], (at, value)
        if isinstance(value, dict):
            known = rule.get("properties", {})
            for name in rule.get("required", ()):
                assert name in value, (at, name)
            for name, inner in value.items():
                if name in known:
                    look(inner, known[name], f"{at}.{name}")
                else:
                    assert rule.get("additionalProperties", True), (at, name)
        if isinstance(value, list) and isinstance(rule.get("items"), dict):
            for i, inner in enumerate(value):
                look(inner, rule["items"], f"{at}[{i}]")
        return None

    look(document, schema, "report")


def sums(rows, **wanted):
    chosen = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return (sum(row["calls"] for row in chosen),
            sum(row["size_bytes"] * row.get("ranks", 1) for row in chosen))


TORCH = {"all_reduce": (RANKS * REQUESTS * STEPS, RANKS * REQUESTS * STEPS * 1000),
         "broadcast": (RANKS * REQUESTS, RANKS * REQUESTS * 4000), "barrier": (RANKS, 0)}
HCCL = (RANKS * (REQUESTS * STEPS + 1), RANKS * (REQUESTS * STEPS * 1000 + 308))
ALL_TORCH = tuple(map(sum, zip(*TORCH.values())))


def run_says(both):
    is_valid(both.report)
    same(both.report["verdict"], "PASS")
    codes = [one["code"] for one in both.report["findings"]]
    assert "COMM_ANCHOR_NOT_FOUND" not in codes, codes  # torchrun itself has none of them
    note, = [text for text in both.report["notes"] if "npuprof comm" in text]
    same([int(number) for number in re.findall(r"(\d+) (?:collectives )?at", note)],
         [ALL_TORCH[0], HCCL[0]])


def comm_says(both):
    codes, tables, _ = both.comm()
    assert "COMM_ANCHOR_NOT_FOUND" not in codes, codes
    same({row["layer"] for row in tables["collectives"]}, {"torch"})
    for op, wanted in TORCH.items():
        same(sums(tables["collectives"], op=op), wanted, op)
    same({row["id"] for row in tables["groups"]}, {None})
    same(sums(tables["steps"]), ALL_TORCH)
    same(sums(tables["requests"]), ALL_TORCH)
    same([sums(tables["requests"], request=n, stage="dit")[0] for n in range(1, REQUESTS + 1)],
         [RANKS * STEPS] * REQUESTS)
    same({row["request"] for row in tables["requests"]}, set(range(1, REQUESTS + 1)))
    assert all(row["calls"] or row["entered"] for row in tables["steps"]), tables["steps"]
    layers = {row["op"]: row for row in tables["layers"]}
    # a barrier of torch_npu is an all_reduce of one element: it is counted with them
    same((layers["all_reduce"]["torch_calls"], layers["all_reduce"]["hccl_calls"]),
         (TORCH["all_reduce"][0] + RANKS, HCCL[0]))
    same((layers["all_reduce"]["torch_bytes"], layers["all_reduce"]["hccl_bytes"]),
         (TORCH["all_reduce"][1], HCCL[1]))

    _, tables, _ = both.comm("--layer", "hccl")
    same(sums(tables["collectives"]), HCCL)
    same(sums(tables["collectives"], stage="dit"), TORCH["all_reduce"])  # told by torch's side
    assert all(row["id"].startswith("@") for row in tables["groups"]), tables["groups"]

    _, tables, _ = both.comm("--layer", "both", "--timeline")
    same(sums(tables["collectives"], layer="torch"), ALL_TORCH)
    same(sums(tables["collectives"], layer="hccl"), HCCL)
    for name in ("steps", "requests", "timeline"):  # the same traffic, once
        same(sums(tables[name]), ALL_TORCH, name)
    for layer in ("torch", "hccl"):
        for name in ("stages", "collectives"):
            share = sum(row["share"] or 0 for row in tables[name] if row["layer"] == layer)
            assert abs(share - 1) < 1e-9, (name, layer, share)


def against_another_capture(both):
    path = f"{both.tmp}/synth"
    both.suite.call("synth", path, "--ranks", "4", "-q", check=0)
    codes, tables, report = both.comm("--against", path, check=3)
    same(report["verdict"], "UNKNOWN")
    assert "COMM_AGAINST_ONE_SIDED" in codes and tables["against"], codes


def is_readable(both):
    """In a terminal of 100 columns, but for the last two tables, whose last columns are a sentence and
    a path."""
    for words in ((), ("--layer", "both"), ("--each-group",)):
        text = both.suite.call("comm", os.path.relpath(both.run, both.tmp), *words, cwd=both.tmp,
                               check=0).stdout
        tables = text.split("\nLayers:")[0].split("\nStages:")[1]
        long = [line for line in tables.splitlines() if len(line) > WIDTH]
        assert not long and tables.count("\n") > 20, long


def main():
    suite = Suite(__doc__)
    with tempfile.TemporaryDirectory(prefix="npuprof-test-") as tmp:
        made = []

        def both():  # one run for all cases
            if not made:
                made.append(Both(suite, os.path.realpath(tmp)))
            return made[0]
        for case in (run_says, comm_says, against_another_capture, is_readable):
            suite.run(case.__name__, lambda _, case=case: case(both()))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
