#!/usr/bin/env python3
"""The preloaded library over a libhccl.so of our own: nothing of a call changes, and the logs
say what the caller did."""
import ctypes
import os
import random
import resource
import signal
import subprocess
import sys
import time

from collect_lib import Skip, Suite
from preload_lib import (COMM_DESTROY, COMM_INIT, FAILED, NO32, NO64, OPS, caller, comm_dir,
                         environment, fakes, library, name_hash, read_logs, run_caller)

HOWS = ("linked", "dlopen", "default")
SIZES = {0: 1, 1: 2, 2: 4, 3: 2, 4: 4, 5: 8, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 2, 12: 16, 14: 1,
         15: 1, 16: 1, 17: 1}
WORLD, RANK = 4, 1


def one_log(comm):
    logs = read_logs(comm)
    assert len(logs) == 1, [log.path for log in logs]
    return logs[0]


def same(got, **want):
    bad = {name: (getattr(got, name), value) for name, value in want.items()
           if getattr(got, name) != value}
    assert not bad, f"(got, expected): {bad}\nof {got}"


def begin(name="group_name_0", rank=RANK, world=WORLD):
    return [f"config cfg 2232 {name}", "set comm 0", "set stream 9",
            f"HcclCommInitRootInfoConfig {world} 4096 {rank} @cfg @comm"]


def expected(rng):
    """A call of every function: (line, what its record has)."""
    n = rng.randrange(1, 1 << 40)
    m = rng.randrange(1, 1 << 20)
    dtype, dtype2 = rng.choice(list(SIZES)), rng.choice(list(SIZES))
    size, size2 = SIZES[dtype], SIZES[dtype2]
    reduce, root = rng.randrange(4), rng.randrange(WORLD)
    mine = root == RANK
    a = [rng.randrange(1 << 30) for _ in range(WORLD)]
    b = [rng.randrange(1 << 30) for _ in range(WORLD)]
    matrix = [rng.randrange(1 << 30) for _ in range(WORLD * WORLD)]
    row = sum(matrix[RANK * WORLD:(RANK + 1) * WORLD])
    column = sum(matrix[RANK::WORLD])
    tail = "*comm @stream"

    def sizes(count, send, recv, tensor, **more):
        return dict(count=count, send_bytes=send, recv_bytes=recv, tensor_bytes=tensor,
                    dtype=dtype, reduce=255, peer=-1, **more)

    def with_(base, **more):
        return {**base, **more}

    def setter(name, values):
        return f"set {name} " + " ".join(map(str, values))

    whole = sizes(n, n * size, n * size, n * size)
    yield f"HcclAllReduce 10 20 {n} {dtype} {reduce} {tail}", with_(whole, reduce=reduce)
    yield f"HcclBroadcast 10 {n} {dtype} {root} {tail}", with_(
        whole, peer=root, send_bytes=mine * n * size, recv_bytes=(not mine) * n * size)
    yield f"HcclAllGather 10 20 {n} {dtype} {tail}", with_(whole, recv_bytes=n * size * WORLD)
    all_of_it = n * size * WORLD
    yield f"HcclReduceScatter 10 20 {n} {dtype} {reduce} {tail}", with_(
        sizes(n * WORLD, all_of_it, n * size, all_of_it), reduce=reduce)
    yield f"HcclAlltoAll 10 {n} {dtype} 20 {m} {dtype2} {tail}", sizes(
        n * WORLD, all_of_it, m * size2 * WORLD, all_of_it)
    yield setter("a", a), None
    yield setter("b", b), None
    yield setter("matrix", matrix), None
    yield f"HcclAlltoAllV 10 @a 30 {dtype} 20 @b 40 {dtype2} {tail}", sizes(
        sum(a), sum(a) * size, sum(b) * size2, sum(a) * size)
    yield f"HcclAlltoAllVC 10 @matrix {dtype} 20 {dtype2} {tail}", sizes(
        row, row * size, column * size2, row * size)
    yield f"HcclReduce 10 20 {n} {dtype} {reduce} {root} {tail}", with_(
        whole, reduce=reduce, peer=root, recv_bytes=mine * n * size)
    yield f"HcclScatter 10 20 {n} {dtype} {root} {tail}", with_(
        whole, peer=root, send_bytes=mine * all_of_it)
    yield f"HcclSend 10 {n} {dtype} {root} {tail}", with_(whole, peer=root, recv_bytes=0)
    yield f"HcclRecv 10 {n} {dtype} {root} {tail}", with_(whole, peer=root, send_bytes=0)
    yield f"HcclBarrier {tail}", with_(sizes(0, 0, 0, 0), dtype=255)
    yield f"HcclAllGatherV 10 {m} 20 @b 30 {dtype} {tail}", sizes(
        m, m * size, sum(b) * size, m * size)
    yield f"HcclReduceScatterV 10 @a 30 20 {m} {dtype} {reduce} {tail}", with_(
        sizes(sum(a), sum(a) * size, m * size, sum(a) * size), reduce=reduce)
    # items: type and padding, buffer, count, dtype and peer << 32
    yield f"set items 0 1 {n} {dtype | 3 << 32} 1 1 {m} {dtype | 3 << 32}", None
    yield f"HcclBatchSendRecv @items 2 {tail}", with_(
        sizes(n + m, n * size, m * size, (n + m) * size), peer=3)
    yield f"set items 0 1 {n} {dtype | 3 << 32} 0 1 {m} {9 if dtype != 9 else 3 | 2 << 32}", None
    other = 9 if dtype != 9 else 3
    yield f"HcclBatchSendRecv @items 2 {tail}", with_(
        sizes(n + m, n * size + m * SIZES[other], 0, n * size + m * SIZES[other]), dtype=255)


def every_function(tmp, how):
    comm = comm_dir(tmp)
    rng = random.Random(f"every function {how}")
    lines, wants = begin(), []
    for rc in (0, 0, 0, 4, 21, -7):
        lines.append(f"return {rc}")
        for line, want in expected(rng):
            lines.append(line)
            if want:
                wants.append({**want, "op": OPS[line.split()[0]], "rc": rc,
                              "flags": FAILED if rc else 0})
    before = time.time_ns()
    done = run_caller(how, "script", comm=comm, script="\n".join(lines))
    after = time.time_ns()
    codes = [int(word) for word in done.stdout.split()]
    assert codes == [0] + [want["rc"] for want in wants]
    log = one_log(comm)
    assert log.closed == 1 and log.lost == 0 and log.written == len(wants) + 1
    same(log.records[0], op=COMM_INIT, comm_name="group_name_0", rank=RANK, world=WORLD, rc=0,
         count=0, tensor_bytes=0, comm_seq=NO64)
    calls = log.calls()
    assert len(calls) == len(wants) == 96
    for number, (got, want) in enumerate(zip(calls, wants)):
        same(got, comm_name="group_name_0", comm_hash=5862276093215481612, rank=RANK, world=WORLD,
             stream=9, device=5, comm_seq=number, stage=None, stage_path=None, shape=None,
             step=NO32, request=NO32, reserved=bytes(3), **want)
        assert before <= got.start_ns <= after and got.call_ns < after - before, got


def header(tmp):
    comm = comm_dir(tmp)
    script = "\n".join(begin() + ["HcclBarrier *comm @stream"])
    run_caller("dlopen", "script", comm=comm, script=script, RANK=3, WORLD_SIZE=8, LOCAL_RANK=1)
    log = one_log(comm)
    same(log, layer=1, rank=3, world=8, local_rank=1, device=5, parent_pid=os.getpid(),
         capacity=1 << 18, string_capacity=256 * 1024)
    assert log.tid == log.pid and abs(log.start_ns - time.time_ns()) < 60e9
    host = os.uname().nodename
    assert log.host.split(b"\0")[0].decode() == host[:63]
    assert os.path.basename(log.path).startswith("comm-hccl-")
    assert f"-{log.pid}-{log.tid}.nplog" in log.path
    assert log.command.split(b"\0")[0].decode().endswith("hccl_caller dlopen script"), log.command
    assert log.recorder.startswith(b"npuprof_collectives ")
    size = os.stat(log.path).st_blocks * 512
    assert size < 1 << 20, f"{size} bytes of disk for two records"


def communicators(tmp):
    """Names, ranks and sizes, from where there are any; numbers of calls of each."""
    comm = comm_dir(tmp)
    script = ["set stream 4", "config none 2232", "config short 100 wrong", "config long 2232 tp-0",
              "HcclCommInitRootInfo 8 1 2 @a", "HcclCommInitRootInfoConfig 8 1 3 @none @b",
              "HcclCommInitRootInfoConfig 8 1 4 @short @c", "HcclCommInitClusterInfo 1 5 @d",
              "HcclCommInitClusterInfoConfig 1 6 @long @e",
              "HcclCreateSubCommConfig @a 2 @ids 77 1 @long @f",
              "HcclCreateSubCommConfig @a 2 0 77 1 @long @g",
              "set devices 4294967297", "HcclCommInitAll 2 @devices @h"]
    for name in "abcdef":
        script += [f"HcclBarrier *{name} @stream"] * 2
    script += ["HcclBarrier *h @stream", "HcclBarrier *a @stream",
               "return 4", "HcclCommDestroy *a", "return 0", "HcclBarrier *a @stream",
               "HcclCommDestroy *a", "HcclCommInitRootInfo 8 1 7 @a", "HcclBarrier *a @stream",
               "return 3", "HcclCommInitRootInfo 8 1 7 @x", "return 0", "HcclBarrier 0 @stream",
               "HcclAllGather 1 2 3 4 0 @stream", "HcclBroadcast 1 3 4 0 0 @stream",
               "set bad -5", "HcclBarrier *b @bad", "HcclBarrier *b 0"]
    run_caller("dlopen", "script", comm=comm, script="\n".join(script))
    records = one_log(comm).records
    inits = [record for record in records if record.op == COMM_INIT]
    names = ["fake_2_8", "fake_3_8", "fake_4_8", "fake_5_16", "tp-0", "tp-0", None, "fake_0_2",
             "fake_7_8", None]
    assert [record.comm_name for record in inits] == names
    assert [record.world for record in inits] == [8, 8, 8, 16, 16, 2, 2, 2, 8, 8]
    assert [record.rc for record in inits] == [0] * 9 + [3]
    for record in inits:
        assert record.comm_hash == (name_hash(record.comm_name) if record.comm_name else 0)
    calls = [record for record in records if record.op == 13]
    per_comm = [(name, rank, seq) for name, rank in
                (("fake_2_8", 2), ("fake_3_8", 3), ("fake_4_8", 4), ("fake_5_16", 5), ("tp-0", 6),
                 ("tp-0", 1)) for seq in (0, 1)]
    assert [(r.comm_name, r.rank, r.comm_seq) for r in calls[:12]] == per_comm
    same(calls[12], comm_name="fake_0_2", device=1, rank=0, world=2, comm_seq=0)
    same(calls[13], comm_name="fake_2_8", comm_seq=2)
    same(calls[14], comm_name="fake_2_8", comm_seq=3)  # its end has failed
    same(calls[15], comm_name="fake_7_8", comm_seq=0, rank=7)
    same(calls[16], comm_name=None, comm_hash=0, comm_seq=NO64, rank=-1, world=-1, stream=4)
    same(calls[17], comm_name="fake_3_8", stream=-1, comm_seq=2)
    same(calls[18], comm_name="fake_3_8", stream=-1, comm_seq=3)
    ends = [record for record in records if record.op == COMM_DESTROY]
    assert [(r.comm_name, r.rc) for r in ends] == [("fake_2_8", 4), ("fake_2_8", 0)]
    gather, = [record for record in records if record.op == 3]
    same(gather, count=3, send_bytes=12, recv_bytes=NO64, tensor_bytes=12)
    broadcast, = [record for record in records if record.op == 2]
    same(broadcast, send_bytes=NO64, recv_bytes=NO64, tensor_bytes=12, peer=0)


def odd_values(tmp):
    """What cannot be counted is unknown: no wrong number, no crash."""
    comm = comm_dir(tmp)
    big = (1 << 63) - 1
    script = begin() + [
        f"HcclAllReduce 1 2 {big} 4 0 *comm @stream", f"HcclAllGather 1 2 {big} 0 *comm @stream",
        "HcclAllReduce 1 2 8 13 9 *comm @stream", "HcclAllReduce 1 2 8 -1 -1 *comm @stream",
        "HcclAllReduce 1 2 0 99 0 *comm @stream",
        "HcclAlltoAllV 1 0 0 4 2 0 0 4 *comm @stream", "HcclAlltoAllVC 1 0 4 2 4 *comm @stream",
        "HcclBatchSendRecv 0 3 *comm @stream", "HcclBatchSendRecv 0 0 *comm @stream",
        "HcclSend 1 2 4 4294967295 *comm @stream"]
    run_caller("linked", "script", comm=comm, script="\n".join(script))
    calls = one_log(comm).calls()
    assert len(calls) == 10
    same(calls[0], count=big, send_bytes=NO64, tensor_bytes=NO64, dtype=4)
    same(calls[1], count=big, send_bytes=big, recv_bytes=NO64, tensor_bytes=big)
    same(calls[2], count=8, send_bytes=NO64, dtype=255, reduce=255)
    same(calls[3], count=8, send_bytes=NO64, dtype=255, reduce=255)
    same(calls[4], count=0, send_bytes=0, dtype=255, reduce=0)
    same(calls[5], count=NO64, send_bytes=NO64, recv_bytes=NO64)
    same(calls[6], count=NO64, send_bytes=NO64, recv_bytes=NO64)
    same(calls[8], count=0, send_bytes=0, recv_bytes=0, dtype=255, peer=-1)
    same(calls[9], count=2, peer=-1)


def stages(tmp):
    comm = comm_dir(tmp)
    call = "HcclBarrier *comm @stream"
    script = begin() + [call, "mark request/dit 3 1", call, call, "mark vae 4 1", call, "mark - 5 2",
                        call, "mark request/dit 6 -1", call]
    for i in range(3000):  # more names than there is room for
        script += [f"mark s{i} {i} 0", call]
    run_caller("dlopen", "script", comm=comm, script="\n".join(script))
    calls = one_log(comm).calls()
    got = [(r.stage, r.stage_path, r.step, r.request) for r in calls[:6]]
    assert got == [(None, None, NO32, NO32), ("dit", "request/dit", 3, 1),
                   ("dit", "request/dit", 3, 1), ("vae", "vae", 4, 1), (None, None, 5, 2),
                   ("dit", "request/dit", 6, NO32)], got
    assert [r.step for r in calls[6:]] == list(range(3000))
    names = [r.stage for r in calls[6:]]
    full = names.index("NO ROOM")
    assert full > 900 and names[:full] == [f"s{i}" for i in range(full)]
    assert set(names[full:]) == {"NO ROOM"}


def old_library(tmp):
    """Functions that HCCL does not have: a program that asks is told so."""
    comm = comm_dir(tmp)
    script = "\n".join(["has HcclAllGatherV", "has HcclAllReduce"] + begin() +
                       ["HcclBarrier *comm @stream"])
    for how in ("dlopen", "default"):
        done = run_caller(how, "script", comm=comm, script=script, lib="old")
        assert done.stdout.split() == ["0", "1", "0", "0"], (how, done.stdout)
        assert done.stderr == ""
    # a weak reference is bound to the wrapper, which says NOT_SUPPORT
    done = run_caller("linked", "script", comm=comm, lib="old", script="\n".join(
        begin() + ["has HcclAllGatherV", "missing HcclAllGatherV", "HcclBarrier *comm @stream"]))
    assert done.stdout.split() == ["0", "1", "5", "0"], done.stdout
    assert done.stderr.count("\n") == 1 and "HcclAllGatherV()" in done.stderr, done.stderr
    assert len(read_logs(comm)) == 3


def not_there(tmp):
    """No libhccl.so at all: programs run, and a wrapper that is called says NOT_SUPPORT."""
    comm = comm_dir(tmp)
    env = environment(comm)
    del env["LD_LIBRARY_PATH"]
    done = subprocess.run(["/bin/ls", "/"], env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    code = ("import ctypes; all = ctypes.CDLL(None)\n"
            "assert not hasattr(all, 'HcclAllReduce')\n"
            "assert all.npuprof_collectives_version() >= 1\n")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert os.listdir(comm) == []


def next_one(tmp):
    """Who asks dlsym() is told from the return address: other interposers work as before."""
    for number, preload in enumerate((library(), "")):
        done = run_caller("dlopen", "next", comm=comm_dir(tmp, f"c{number}"), LD_PRELOAD=preload)
        assert done.stdout == "12 42\n", (preload, done.stdout, done.stderr)


def ctypes_caller(tmp):
    comm = comm_dir(tmp)
    code = """if 1:
        import ctypes, errno
        acl = ctypes.CDLL("libascendcl.so")
        hccl = ctypes.CDLL("libhccl.so", use_errno=True)
        comm = ctypes.c_void_p()
        stream = ctypes.c_int32(11)
        assert hccl.HcclCommInitRootInfo(2, None, 1, ctypes.byref(comm)) == 0
        for count in range(1, 101):
            ctypes.set_errno(33)
            assert hccl.HcclAllReduce(None, None, ctypes.c_uint64(count), 3, 2, comm,
                                      ctypes.byref(stream)) == 0
            assert ctypes.get_errno() == 77
        """
    subprocess.run([sys.executable, "-c", code], env=environment(comm), check=True, timeout=60)
    calls = one_log(comm).calls()
    assert [r.count for r in calls] == list(range(1, 101))
    for record in calls:
        same(record, reduce=2, dtype=3, send_bytes=2 * record.count, comm_name="fake_1_2", stream=11)


def threads(tmp):
    comm = comm_dir(tmp)
    run_caller("dlopen", "threads", 16, 3000, comm=comm)
    logs = read_logs(comm)
    assert len(logs) == 16 and len({log.tid for log in logs}) == 16
    for log in logs:
        assert log.closed == 1 and log.lost == 0 and log.pid != log.tid
        assert [r.count for r in log.calls()] == list(range(1, 3001))
        assert [r.comm_seq for r in log.calls()] == list(range(3000))


def many_threads(tmp):
    """No descriptor stays open: more threads than a process may have files."""
    comm = comm_dir(tmp)
    run_caller("linked", "threads", 150, 50, comm=comm, NPUPROF_COMM_CAPACITY=64,
               preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)))
    logs = read_logs(comm)
    assert len(logs) == 150 and sum(len(log.calls()) for log in logs) == 150 * 50


def forks(tmp, **env):
    comm = comm_dir(tmp)
    done = run_caller("dlopen", "fork", comm=comm, **env)
    pids = dict(line.split() for line in done.stdout.splitlines())
    by_pid = {log.pid: log for log in read_logs(comm)}
    want = {"parent": [1, 1, 1, 5], "child": [2] * 5, "grandchild": [3] * 4, "clone": [4] * 2}
    assert set(pids) == set(want) and len(by_pid) == 4, (pids, by_pid)
    for name, counts in want.items():
        log = by_pid[int(pids[name])]
        assert [r.count for r in log.calls()] == counts, name
        assert log.closed == (0 if name == "clone" else 1), name  # _exit() runs nothing
        assert [r.comm_seq for r in log.calls()] == list(range(len(counts)))
        assert [r.comm_name for r in log.calls()] == ["fake_0_4"] * len(counts)
    assert by_pid[int(pids["grandchild"])].parent_pid == int(pids["child"])


def forks_of_an_old_kernel(tmp):
    """Without MADV_WIPEONFORK a child that nobody announces is noticed all the same."""
    forks(tmp, LD_PRELOAD=f"{fakes()}/libfake_old_kernel.so {library()}")


def signals(tmp):
    """A handler that calls while the recorder is at work: it passes, and is counted as lost."""
    comm = comm_dir(tmp)
    done = run_caller("dlopen", "signal", 500, comm=comm, FAKE_RAISE=1)
    handled, total = map(int, done.stdout.split()[1:])
    assert handled == 500 and total == 500 + 500 + 1, done.stdout
    log = one_log(comm)
    assert log.lost == 500 and len(log.calls()) == 500 and {r.count for r in log.calls()} == {1}


def signal_storm(tmp):
    """The same at random points: whatever is not recorded passes, and the log stays whole."""
    comm = comm_dir(tmp)
    number = 2000000
    child = subprocess.Popen([caller("linked"), "linked", "signal", str(number)], text=True,
                             stdout=subprocess.PIPE, env=environment(comm))
    assert child.stdout.readline() == "ready\n"
    while child.poll() is None:
        child.send_signal(signal.SIGUSR1)
        time.sleep(0.00005)
    handled, total = map(int, child.communicate(timeout=120)[0].split())
    log = one_log(comm)
    assert child.returncode == 0 and handled > 0 and total == number + 1 + handled
    assert len(log.records) == min(log.written, log.capacity)
    # each call is recorded, lost, or was made inside of another
    assert number + 1 <= log.written + log.lost <= total


def ring_overflow(tmp):
    for capacity in (1, 7, 1000, 5000):
        comm = comm_dir(tmp, f"c{capacity}")
        run_caller("linked", "loop", os.path.join(tmp, "ack"), 12345, comm=comm,
                   NPUPROF_COMM_CAPACITY=capacity)
        log = one_log(comm)
        assert log.capacity == capacity and log.written == 12346 and log.closed == 1
        first = 12345 - capacity + 1
        assert [r.count for r in log.records] == list(range(first, 12346))


def bad_capacity(tmp):
    for number, text in enumerate(("0", "-5", "many", "999999999999", "12x")):
        comm = comm_dir(tmp, f"c{number}")
        done = run_caller("linked", "loop", os.path.join(tmp, "ack"), 1, comm=comm,
                          NPUPROF_COMM_CAPACITY=text)
        assert one_log(comm).capacity == 1 << 18
        assert done.stderr.count("\n") == 1 and f"NPUPROF_COMM_CAPACITY={text}" in done.stderr


def kill(tmp, times, **more):
    rng = random.Random(5)
    least = 0
    for i in range(times):
        comm = comm_dir(tmp, f"k{i}")
        ack = os.path.join(tmp, f"ack{i}")
        child = subprocess.Popen([caller("linked"), "linked", "loop", ack],
                                 env=environment(comm, **more))
        while not (os.path.exists(ack) and os.path.getsize(ack) == 8):
            time.sleep(0.001)
        time.sleep(rng.random() * 0.05)
        child.kill()
        child.wait(timeout=60)
        with open(ack, "rb") as file:
            acknowledged = int.from_bytes(file.read(), "little")
        os.unlink(ack)
        logs = read_logs(comm)
        if not logs:  # killed before its first call
            assert acknowledged == 0
            continue
        log = logs[0]
        for path in os.listdir(comm):
            os.unlink(os.path.join(comm, path))
        calls = log.calls()
        assert log.closed == 0 and log.lost == 0
        last = calls[-1].count if calls else 0
        assert acknowledged <= last <= acknowledged + 1, (acknowledged, last)
        for record in calls:  # every field is of the same call
            same(record, op=1, count=record.seq - 1, send_bytes=4 * record.count,
                 recv_bytes=4 * record.count, tensor_bytes=4 * record.count,
                 comm_seq=record.count - 1, comm_name="fake_3_8", rank=3, world=8, stream=7,
                 device=5, rc=0, flags=0, dtype=4, reduce=0, peer=-1)
        least += len(calls) > 0
    assert least >= times * 0.9, f"only {least} of {times} had made a call"


def killed(tmp):
    kill(tmp, 45, NPUPROF_COMM_CAPACITY=20000)


def killed_in_ring(tmp):
    kill(tmp, 40, NPUPROF_COMM_CAPACITY=50)


def unwritable(tmp):
    """One line, and the program goes on."""
    plain = os.path.join(tmp, "file")
    with open(plain, "w", encoding="ascii") as file:
        file.write("x")
    closed = comm_dir(tmp, "closed")
    os.chmod(closed, 0o555)
    os.chmod(tmp, 0o755)

    def drop():
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)

    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    ok = comm_dir(tmp, "ok")
    script = "\n".join(begin() + ["HcclBarrier *comm @stream"] * 50)
    for comm, why, preexec in ((os.path.join(tmp, "none"), "No such file or directory", None),
                               (plain, "Not a directory", None),
                               (closed, "Permission denied", drop),
                               (ok, "File too large", small)):
        done = run_caller("dlopen", "script", comm=comm, preexec=preexec, script=script)
        assert done.stdout.split() == ["0"] * 51
        assert done.stderr.count("\n") == 1 and why in done.stderr and comm in done.stderr, done.stderr
    assert os.listdir(closed) == [] and os.listdir(ok) == []


def switched_off(tmp):
    comm = comm_dir(tmp)
    script = "\n".join(begin() + ["HcclBarrier *comm @stream"])
    for how in HOWS:
        for directory, more in ((None, {}), ("", {}), (comm, {"NPUPROF_INJECT_OFF": "1"})):
            done = run_caller(how, "script", comm=directory, script=script, **more)
            assert done.stdout.split() == ["0", "0"] and done.stderr == ""
    assert os.listdir(comm) == []


def relative(tmp):
    """The directory is the one of the start, whatever the program makes its own."""
    comm = comm_dir(tmp)
    code = """if 1:
        import ctypes, os
        os.chdir("/")
        hccl = ctypes.CDLL("libhccl.so")
        comm = ctypes.c_void_p()
        assert hccl.HcclCommInitRootInfo(2, None, 1, ctypes.byref(comm)) == 0
        """
    subprocess.run([sys.executable, "-c", code], env=environment("comm"), cwd=tmp, check=True,
                   timeout=60)
    assert len(one_log(comm).records) == 1


def at_exit(tmp):
    """Threads that are still there when the process ends in order."""
    comm = comm_dir(tmp)
    run_caller("dlopen", "exit", comm=comm)
    log = one_log(comm)
    assert log.closed == 1 and len(log.calls()) == 3


def no_return(tmp):
    """A call that never returns, but unwinds: it is counted, and the file is in order."""
    comm = comm_dir(tmp)
    for how in HOWS:
        run_caller(how, "unwind", comm=comm)
    logs = [log for log in read_logs(comm) if log.pid != log.tid]
    assert len(logs) == 3
    for log in logs:
        assert log.closed == 1 and log.lost == 1 and [r.count for r in log.records] == [1, 1]


def closed_library(tmp):
    """A wrapper's way to HCCL stays open when the program closes HCCL."""
    comm = comm_dir(tmp)
    run_caller("dlopen", "closed", comm=comm)
    assert [r.count for r in one_log(comm).calls()] == [1, 2]


def deleted(tmp):
    """The directory is removed while it is recorded to: the log stops, the program does not."""
    comm = comm_dir(tmp)
    code = """if 1:
        import ctypes, os, shutil
        hccl = ctypes.CDLL("libhccl.so")
        comm = ctypes.c_void_p()
        assert hccl.HcclCommInitRootInfo(2, None, 1, ctypes.byref(comm)) == 0
        shutil.rmtree(os.environ["NPUPROF_COMM"])
        for i in range(6000):
            assert hccl.HcclBarrier(comm, None) == 0
        """
    done = subprocess.run([sys.executable, "-c", code], env=environment(comm), capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 0 and done.stderr.count("\n") == 1, done.stderr
    assert "cut short" in done.stderr


def disk_full(tmp):
    disk = comm_dir(tmp, "disk")
    if os.geteuid() != 0 or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk],
            capture_output=True).returncode != 0:
        raise Skip("a small file system cannot be mounted here")
    try:
        done = run_caller("linked", "loop", os.path.join(tmp, "ack"), 50000, comm=disk)
        assert done.stderr.count("\n") == 1 and "No space left" in done.stderr, done.stderr
        log = one_log(disk)
        counts = [r.count for r in log.calls()]
        assert 2000 < len(counts) < 10000 and counts == list(range(1, len(counts) + 1))
        assert log.lost + len(log.records) == 50001 and log.closed == 1
        # nothing is left for a second one
        done = run_caller("linked", "loop", os.path.join(tmp, "ack"), 100, comm=disk)
        assert done.stderr.count("\n") == 1 and "No space left" in done.stderr, done.stderr
        assert len(os.listdir(disk)) == 1
    finally:
        subprocess.run(["umount", disk], check=True)


def main():
    suite = Suite(__doc__)
    ctypes.CDLL(None)  # this interpreter can
    for how in HOWS:
        suite.run(f"every_function_{how}", lambda tmp, how=how: every_function(tmp, how))
    for case in (header, communicators, odd_values, stages, old_library, not_there,
                 next_one, ctypes_caller, threads, many_threads, forks, forks_of_an_old_kernel, signals,
                 signal_storm,
                 ring_overflow, bad_capacity, killed, killed_in_ring, unwritable, switched_off,
                 relative, at_exit, no_return, closed_library, deleted, disk_full):
        suite.run(case.__name__, case)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
