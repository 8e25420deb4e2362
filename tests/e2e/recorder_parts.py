"""The parts of the recorder that need no torch, on whatever Python runs this. Prints ok."""
import asyncio
import functools
import gc
import inspect
import os
import sys
import tempfile
import threading
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
for name in ("RANK", "WORLD_SIZE"):
    os.environ.pop(name, None)
sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(HERE)), "inject", "python"), HERE]

import comm_reader  # noqa: E402
from npuprof_inject import (comm_groups, comm_log, comm_record,  # noqa: E402
                            comm_redirect, comm_stages)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


def plain(a, b=2, *c, k=4, **more):
    "its documentation"
    return a, b, c, k, more


@decorated
def closure(a, b=3):
    return a, b


def redirecting():
    for function, result in ((plain, (1, 2, (), 4, {})), (closure, (1, 3))):
        function.__module__ = "torch.something"
        signature, seen = inspect.signature(function), []

        def make(original):
            return lambda args, kwargs: (seen.append(args), original(*args, **kwargs))[1]
        compiling = [False]
        assert comm_redirect.redirect(function, make, lambda: compiling[0])
        assert not comm_redirect.redirect(function, make), "twice"
        for _ in range(3000):  # until the interpreter specialises it
            assert function(1) == result
        assert len(seen) == 3000
        assert inspect.signature(function) == signature
        compiling[0] = True
        assert function(1) == result and len(seen) == 3000
        compiling[0] = False
    assert plain(1, 5, 6, k=7, z=8) == (1, 5, (6,), 7, {"z": 8})
    assert plain.__doc__ == "its documentation" and plain.__name__ == "plain"
    assert not comm_redirect.redirect(redirecting, None), "no function of torch"
    assert not comm_redirect.redirect(len, None) and not comm_redirect.redirect(None, None)


BODY = [0] * 24


def logging():
    directory = tempfile.mkdtemp()
    log = comm_log.Log(directory, 8)
    for i in range(20):
        assert log.write(i, 0, i, 0, 0, 0, 0, 0, log.string("name %d" % (i % 3)), *BODY[9:])
    for i in range(5000):  # distinct shapes, until there is no more room for them
        at = log.string("[%d, 4096, 128, 64, 32, 16, 8, 4, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]" % i)
    assert at == comm_log.NO_ROOM and log.string("name 1") != comm_log.NO_ROOM
    log.write(20, 0, 20, 0, 0, 0, 0, 0, at, *BODY[9:])
    log.count_lost()
    second = comm_log.Log(directory, 8)  # the same ids: another container, or used again
    assert second.path != log.path
    one = comm_reader.Log(log.path)
    assert (one.header.closed, one.header.lost, one.header.written) == (0, 1, 21)
    assert [record.count for record in one.records] == list(range(13, 21))
    assert [record.comm_name for record in one.records] == [
        "name %d" % (i % 3) for i in range(13, 20)] + [None]
    del log, second
    gc.collect()
    for one in comm_reader.read_dir(directory):
        assert one.header.closed == 1
        os.unlink(one.path)
    os.rmdir(directory)


def staging():
    marks = []
    stages = comm_stages.Stages(
        [{"name": name} for name in ("a", "g", "s")], "a", None,
        lambda stage, after, ends, failed, took: marks.append((stage.path, ends, failed)))

    def where():
        return stages.current().path

    def generate():
        got = yield where()
        try:
            yield got
        except KeyError:
            yield "caught in " + where()
        raise ValueError

    async def stream():
        got = yield where()
        yield got
    a, g = comm_stages.wrap(stages, "a", where), comm_stages.wrap(stages, "g", generate)
    s = comm_stages.wrap(stages, "s", stream)
    one = g()
    assert (a(), where(), next(one), where(), a()) == ("a", "", "g", "", "a")
    assert one.send(5) == 5 and one.throw(KeyError()) == "caught in g"
    try:
        next(one)
    except ValueError:
        assert marks[-1] == ("g", True, True)

    async def main():
        item = s()
        assert await item.__anext__() == "s" and where() == ""
        assert await item.asend(7) == 7
        await item.aclose()
        assert [x async for x in s()] == ["s", None]
    asyncio.run(main())
    abandoned = g()
    next(abandoned)
    del abandoned
    gc.collect()
    assert where() == "" and stages._open == {}
    assert stages.calls == {"a": 2, "g": 2, "s": 2} and stages.step == 2
    assert sum(ends for _, ends, _ in marks) == len(marks) // 2 == 6


class Tensor:
    """On an NPU."""
    is_cpu, dtype, shape = False, "bfloat16", (2, 3)
    device = types.SimpleNamespace(type="npu", index=3)

    def numel(self):
        return 6

    def element_size(self):
        return 2


class ProcessGroup:
    def rank(self):
        return 1

    def size(self):
        return 4


def recording():
    directory = tempfile.mkdtemp()
    group, capturing = ProcessGroup(), [False]
    initialised = [False]
    torch = types.SimpleNamespace(
        bfloat16="bfloat16", Size=tuple,
        distributed=types.SimpleNamespace(is_initialized=lambda: initialised[0]), npu=types.SimpleNamespace(
            is_current_stream_capturing=lambda: capturing[0]))
    c10d = types.SimpleNamespace(
        get_rank=lambda: 9, get_world_size=lambda: 12,
        ReduceOp=types.SimpleNamespace(SUM=object(), AVG="avg"), ProcessGroup=ProcessGroup,
        _get_default_group=lambda: group, _rank_not_in_group=lambda one: one == -100,
        _pg_group_ranks={group: {8: 0, 9: 1, 10: 2, 11: 3}}, _pg_names={group: "group_name_0"})
    recorder = comm_record.Recorder({"dir": directory, "capacity": 100})
    recorder.stages = comm_stages.Stages([{"name": "early"}], None, None, recorder.mark)
    comm_stages.wrap(recorder.stages, "early", len)("before the group is made")
    initialised[0] = True
    recorder.bind(torch, c10d)
    hook = recorder.hook(lambda tensor, *rest: tensor, recorder.ops.all_reduce)
    tensor = Tensor()
    assert hook((tensor,), {}) is tensor
    capturing[0] = True
    hook((tensor, "avg"), {})
    hook((tensor, None, -100), {})
    recorder.hook(lambda *rest: 10, recorder.ops.recv)((tensor,), {})
    log, = comm_reader.read_dir(directory)
    same = [(call.op_name, call.dtype, call.count, call.tensor_bytes, call.device, call.flags,
             call.reduce, call.rank, call.world, call.peer, call.comm_name)
            for call in log.calls]
    assert len(log.marks) == 2 and (log.header.rank, log.header.world) == (9, 12)
    assert same == [
        ("all_reduce", 11, 6, 12, 3, 0, 0, 1, 4, -1, "8,9,10,11"),
        ("all_reduce", 11, 6, 12, 3, comm_reader.CAPTURE, 254, 1, 4, -1, "8,9,10,11"),
        ("recv", 11, 6, 12, 3, comm_reader.CAPTURE, 255, 1, 4, 2, "8,9,10,11")], same
    assert log.header.device == 3
    # group_name_0, as in a real profiler_metadata.json and its communication.json
    assert log.calls[0].comm_hash == 5862276093215481612 == comm_groups.name_hash("group_name_0")
    thread = threading.Thread(target=hook, args=((tensor,), {}))
    thread.start()
    thread.join()
    logs = comm_reader.read_dir(directory)
    assert sorted((len(log.records), log.header.closed) for log in logs) == [(1, 1), (5, 0)]
    assert recorder.close() == 2 and recorder.totals()[""].calls == 4
    for log in logs:
        os.unlink(log.path)
    os.rmdir(directory)


for part in (redirecting, logging, staging, recording):
    part()
print("ok")
