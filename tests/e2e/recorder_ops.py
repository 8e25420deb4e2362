"""A program for collect_recorder.py: every collective on 4 ranks, and what its record must say.

What is expected is worked out here from shapes written as numbers, not with the recorder's code.
Prints nothing; writes expected-<rank>.json.
"""
import json
import os
import pickle

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.distributed.nn import functional

ASYNC, COALESCED, OBJECT, FAILED = 1, 2, 4, 8
F32, F64, F16, BF16, I64, I32, U8 = 4, 10, 3, 11, 5, 2, 7
SUM, MAX, NONE = 0, 2, 255
EXPECTED = []

dist.init_process_group("gloo")
RANK = dist.get_rank()


def expect(op, shape, dtype, count, nbytes, send, recv, peer=-1, reduce=NONE, flags=0,
           name="0,1,2,3", rank=RANK, world=4):
    EXPECTED.append({"op_name": op, "shape": shape, "dtype": dtype, "count": count,
                     "tensor_bytes": nbytes, "send_bytes": send, "recv_bytes": recv,
                     "peer": peer, "reduce": reduce, "flags": flags, "comm_name": name,
                     "rank": rank, "world": world})


def refused(function, *args, **kwargs):
    """gloo of torch 1.13 has no such collective: the record says that it failed."""
    try:
        function(*args, **kwargs)
    except RuntimeError:
        return
    raise AssertionError(f"{function.__name__} works here")


def one_tensor():
    dist.all_reduce(torch.ones(3, 5), dist.ReduceOp.MAX)
    expect("all_reduce", "[3, 5]", F32, 15, 60, 60, 60, reduce=MAX)
    work = dist.all_reduce(torch.ones(7, dtype=torch.float64), async_op=True)
    assert type(work).__name__ == "Work" and work.wait() and work.get_future() is not None
    expect("all_reduce", "[7]", F64, 7, 56, 56, 56, reduce=SUM, flags=ASYNC)
    tensor = torch.full((2,), RANK)
    dist.all_reduce(op=dist.ReduceOp.SUM, group=dist.group.WORLD, tensor=tensor)
    assert tensor.tolist() == [6, 6]
    expect("all_reduce", "[2]", I64, 2, 16, 16, 16, reduce=SUM)
    dist.all_reduce_coalesced([torch.ones(3), torch.ones(4, 2)])
    expect("all_reduce", "[3];[4, 2]", F32, 11, 44, 44, 44, reduce=SUM, flags=COALESCED)
    dist.broadcast(torch.full((4, 2), RANK), 2)
    mine = RANK == 2
    expect("broadcast", "[4, 2]", I64, 8, 64, 64 if mine else 0, 0 if mine else 64, peer=2)
    dist.reduce(torch.ones(5, dtype=torch.float64), dst=1)
    expect("reduce", "[5]", F64, 5, 40, 40, 40 if RANK == 1 else 0, peer=1, reduce=SUM)
    dist.all_reduce(torch.ones(()))
    expect("all_reduce", "[]", F32, 1, 4, 4, 4, reduce=SUM)
    dist.all_reduce(torch.ones(4, 6).t().contiguous()[:2])
    expect("all_reduce", "[2, 4]", F32, 8, 32, 32, 32, reduce=SUM)


def gathers():
    dist.all_gather([torch.empty(6, dtype=torch.float16) for _ in range(4)],
                    torch.ones(6, dtype=torch.float16))
    expect("all_gather", "[6]", F16, 6, 12, 12, 48)
    got = [torch.empty(9, dtype=torch.uint8) for _ in range(4)] if RANK == 3 else None
    dist.gather(torch.ones(9, dtype=torch.uint8), got, dst=3)
    expect("gather", "[9]", U8, 9, 9, 9, 36 if RANK == 3 else 0, peer=3)
    given = [torch.full((2, 3), float(i)) for i in range(4)] if RANK == 0 else None
    tensor = torch.empty(2, 3)
    dist.scatter(tensor, given)
    assert tensor[0, 0] == RANK
    expect("scatter", "[2, 3]", F32, 6, 24, 96 if RANK == 0 else 0, 24, peer=0)
    refused(dist.all_gather_into_tensor, torch.empty(32), torch.ones(8))
    expect("all_gather", "[8]", F32, 8, 32, 32, 128, flags=FAILED)
    refused(dist.reduce_scatter, torch.empty(2), [torch.ones(2) for _ in range(4)])
    expect("reduce_scatter", ";".join(["[2]"] * 4), F32, 8, 32, 32, 8, reduce=SUM, flags=FAILED)
    refused(dist.reduce_scatter_tensor, torch.empty(3), torch.ones(12))
    expect("reduce_scatter", "[12]", F32, 12, 48, 48, 12, reduce=SUM, flags=FAILED)
    refused(dist._reduce_scatter_base, torch.empty(3), torch.ones(12), dist.ReduceOp.MAX)
    expect("reduce_scatter", "[12]", F32, 12, 48, 48, 12, reduce=MAX, flags=FAILED)


def all_to_alls():
    dist.all_to_all_single(torch.empty(8, 2), torch.ones(8, 2))
    expect("all_to_all", "[8, 2]", F32, 16, 64, 64, 64)
    out = torch.empty(4 * (RANK + 1), 3)
    dist.all_to_all_single(out, torch.ones(10, 3), [RANK + 1] * 4, [1, 2, 3, 4])
    expect("all_to_all_v", "[10, 3]", F32, 30, 120, 120, 48 * (RANK + 1))
    refused(dist.all_to_all, [torch.empty(2) for _ in range(4)], [torch.ones(2)] * 4)
    expect("all_to_all", "[2];[2];[2];[2]", F32, 8, 32, 32, 32, flags=FAILED)
    refused(dist.all_to_all, [torch.empty(RANK + 1) for _ in range(4)],
            [torch.ones(i + 1) for i in range(4)])
    expect("all_to_all_v", "[1];[2];[3];[4]", F32, 10, 40, 40, 16 * (RANK + 1), flags=FAILED)


def point_to_point():
    tensor = torch.full((11,), RANK, dtype=torch.int32)
    if RANK % 2 == 0:
        dist.send(tensor, RANK + 1)
        expect("send", "[11]", I32, 11, 44, 44, 0, peer=RANK + 1)
    else:
        source = dist.recv(tensor, RANK - 1 if RANK == 1 else None)
        assert source == RANK - 1 and tensor[0] == RANK - 1
        expect("recv", "[11]", I32, 11, 44, 0, 44, peer=RANK - 1)
    following, before = (RANK + 1) % 4, (RANK - 1) % 4
    works = [dist.isend(torch.ones(5), following), dist.irecv(torch.empty(5), before)]
    expect("send", "[5]", F32, 5, 20, 20, 0, peer=following, flags=ASYNC)
    expect("recv", "[5]", F32, 5, 20, 0, 20, peer=before, flags=ASYNC)
    for work in works:
        work.wait()
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.ones(6), following),
                                        dist.P2POp(dist.irecv, torch.empty(6), before)]):
        work.wait()
    expect("batch_send_recv", "[6];[6]", F32, 12, 48, 24, 24, flags=ASYNC | COALESCED)
    dist.barrier()
    expect("barrier", "", 255, 0, 0, 0, 0)
    with c10d._coalescing_manager(None, []):
        dist.all_reduce(torch.ones(2), async_op=True).wait()
    expect("all_reduce", "[2]", F32, 2, 8, 8, 8, reduce=SUM, flags=ASYNC | COALESCED)


def objects():
    most = len(pickle.dumps("x" * 40))
    got = [None] * 4
    dist.all_gather_object(got, "x" * (10 * RANK + 10))
    assert [len(one) for one in got] == [10, 20, 30, 40]
    expect("all_gather_object", "", U8, 8 + most, 8 + most, 8 + most, 4 * (8 + most),
           flags=OBJECT)
    things = ["x" * 7, {"a": 1}] if RANK == 1 else [None, None]
    dist.broadcast_object_list(things, src=1)
    assert things == ["x" * 7, {"a": 1}]
    n = 16 + len(pickle.dumps("x" * 7)) + len(pickle.dumps({"a": 1}))
    expect("broadcast_object", "", U8, n, n, n if RANK == 1 else 0, 0 if RANK == 1 else n,
           peer=1, flags=OBJECT)
    dist.gather_object("x" * (10 * RANK + 10), [None] * 4 if RANK == 2 else None, dst=2)
    expect("gather_object", "", U8, 8 + most, 8 + most, 8 + most,
           32 + (4 * most if RANK == 2 else 0), peer=2, flags=OBJECT)
    given = ["x" * (10 * i + 10) for i in range(4)] if RANK == 0 else [None] * 4
    got = [None]
    dist.scatter_object_list(got, given, src=0)
    assert got == ["x" * (10 * RANK + 10)]
    n = 8 + most + 8
    expect("scatter_object", "", U8, n, n, 8 + 4 * (most + 8) if RANK == 0 else 0,
           most + 8 if RANK == 0 else n, peer=0, flags=OBJECT)


def groups():
    members = [0, 2] if RANK in (0, 2) else [1, 3]
    both = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    mine, other = both if RANK in (0, 2) else both[::-1]
    name, rank = ",".join(map(str, members)), members.index(RANK)
    dist.all_reduce(torch.ones(4), group=mine)
    expect("all_reduce", "[4]", F32, 4, 16, 16, 16, reduce=SUM, name=name, rank=rank, world=2)
    dist.broadcast(torch.ones(3), members[1], group=mine)
    root = rank == 1
    expect("broadcast", "[3]", F32, 3, 12, 12 if root else 0, 0 if root else 12, peer=1,
           name=name, rank=rank, world=2)
    dist.all_reduce(torch.ones(4), group=other)  # nothing happens, and nothing is recorded


def gradients():
    tensor = torch.ones(3, requires_grad=True)
    functional.all_reduce(tensor).sum().backward()
    for _ in range(2):  # forward, and backward in autograd
        expect("all_reduce", "[3]", F32, 3, 12, 12, 12, reduce=SUM)


for part in (one_tensor, gathers, all_to_alls, point_to_point, objects, groups, gradients):
    part()
    dist.barrier()
    expect("barrier", "", 255, 0, 0, 0, 0)
with open(f"expected-{RANK}.json", "w") as file:
    json.dump(EXPECTED, file)
