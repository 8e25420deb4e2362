#!/usr/bin/env python3
"""Logs of collectives outlive what ends a process; what cannot be recorded costs records only."""
import json
import os
import shutil
import subprocess
import sys

from collect_lib import Skip
from recorder_lib import Run, run_cases, same

HERE = os.path.dirname(os.path.abspath(__file__))

PROCESSES = """
import multiprocessing
import torch.multiprocessing as mp
def work(rank, path, world):
    start(rank, world, dist.FileStore(path, world))
    for i in range(rank + 1):
        dist.all_reduce(torch.ones(rank + 1)) if world == 1 else dist.barrier()
    dist.destroy_process_group()
if __name__ == "__main__":
    mp.spawn(work, args=("store", 2), nprocs=2)
"""
FORKED = """
import multiprocessing
start()
dist.all_reduce(torch.ones(1))
def begin():
    global parents
    parents = dist.distributed_c10d._get_default_group()  # its threads are not in a child
    dist.distributed_c10d._update_default_pg(None)
    start()
child = os.fork()
if child == 0:
    begin()
    dist.all_reduce(torch.ones(2))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
def work():
    begin()
    dist.all_reduce(torch.ones(3))
process = multiprocessing.get_context("fork").Process(target=work)
process.start(); process.join()
assert process.exitcode == 0
dist.all_reduce(torch.ones(4))
"""


def spawned_processes_have_their_logs(tmp):
    run = Run(tmp)
    run.python(PROCESSES.replace("rank + 1)", "2)"))
    same([(log.header.rank, log.header.world, len(log.calls), log.header.closed)
          for log in sorted(run.logs(), key=lambda log: log.header.rank)],
         [(0, 2, 2, 1), (1, 2, 2, 1)])


def forked_processes_have_their_logs(tmp):
    run = Run(tmp)
    run.python(FORKED)
    got = sorted(([call.count for call in log.calls], log.header.closed) for log in run.logs())
    same(got, [([1, 4], 1), ([2], 0), ([3], 1)])  # os._exit() is not an end in order
    pids = {log.header.pid for log in run.logs()}
    same(len(pids), 3)
    same(len({log.header.parent_pid for log in run.logs()} & pids), 1)


KILLED = """
start()
i = 0
while True:
    i += 1
    dist.all_reduce(torch.ones(i % 50 + 1))
    sys.stdout.write("%d\\n" % i); sys.stdout.flush()
"""


def a_killed_process_loses_nothing(tmp):
    for capacity in (1 << 16, 64):
        run = Run(os.path.join(tmp, str(capacity)), capacity=capacity)
        lines = run.kill_when(KILLED, lambda line: line == "1500")
        acknowledged = int(lines[-1])
        assert acknowledged >= 1500
        log = run.log()
        numbers = [record.seq for record in log.records]
        assert numbers[-1] in (acknowledged, acknowledged + 1), (numbers[-1], acknowledged)
        first = max(1, numbers[-1] - capacity + 1)
        missing = set(range(first, numbers[-1] + 1)) - set(numbers)
        # of a full ring, the one that was being overwritten is neither old nor new
        assert missing <= ({first} if first > 1 else set()), missing
        for record in log.records:
            same((record.count, record.tensor_bytes, record.shape),
                 (record.seq % 50 + 1, 4 * (record.seq % 50 + 1), f"[{record.seq % 50 + 1}]"))
        same(log.header.closed, 0)


def the_oldest_are_overwritten(tmp):
    run = Run(tmp, capacity=8)
    run.python("start()\nfor i in range(21): dist.all_reduce(torch.ones(i + 1))\n")
    log = run.log()
    same((log.header.capacity, log.header.written, log.header.lost), (8, 21, 0))
    same([(record.seq, record.count, record.comm_seq) for record in log.records],
         [(i, i, i - 1) for i in range(14, 22)])


NO_ROOM = """
import errno
allocate = os.posix_fallocate
def full(fd, offset, length):
    if offset > 1 << 20: raise OSError(errno.ENOSPC, "no space left")
    allocate(fd, offset, length)
os.posix_fallocate = full
start()
for i in range(10000): dist.all_reduce(torch.ones(1))
print("done")
"""


def a_full_disk_costs_records_only(tmp):
    run = Run(tmp, capacity=20000)
    same(run.python(NO_ROOM), "done\n")
    header = run.log().header
    assert 4000 < header.written < 10000, header
    same(header.written + header.lost, 10000)
    same(len(run.log().calls), header.written)
    same(run.done.stderr, f"npuprof: {header.lost} collectives could not be recorded\n")
    end, = run.events("collectives_end")
    same((end["calls"], end["lost"]), (header.written, header.lost))


def a_directory_that_refuses_costs_records_only(tmp):
    run = Run(tmp)
    os.rmdir(run.comm)
    run.python("start()\nfor i in range(5): dist.all_reduce(torch.ones(1))\nprint('done')\n")
    failed, = run.events("hook_failed")
    assert "No such file" in failed["error"], failed
    end, = run.events("collectives_end")
    same((end["calls"], end["lost"]), (0, 5))


SIGNALS = """
import signal, threading, time
start()
count = 0
def handler(number, frame):
    global count
    count += 1
    dist.all_reduce(torch.ones(2))
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
done = 0
until = time.monotonic() + 60
while count < 300 and time.monotonic() < until:
    dist.all_reduce(torch.ones(1)); done += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(json.dumps([done, count]))
"""


def collectives_in_signal_handlers(tmp):
    run = Run(tmp, capacity=1 << 17)
    done, handled = json.loads(run.python(SIGNALS))
    assert handled >= 300
    log = run.log()
    outer = [call for call in log.calls if call.count == 1]
    inner = [call for call in log.calls if call.count == 2]
    same(len(outer), done, "no call of the program is lost")
    # one inside of another one is not counted twice; inside of a record it is lost, and counted
    assert len(inner) + log.header.lost <= handled
    same([call.seq for call in log.records], list(range(1, log.header.written + 1)))


THREADS = """
import threading
start()
groups = [dist.new_group([0]) for _ in range(6)]
def work(n):
    for i in range(300): dist.all_reduce(torch.ones(n + 1), group=groups[n])
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def each_thread_has_its_log(tmp):
    run = Run(tmp)
    run.python(THREADS)
    logs = run.logs()
    same(len(logs), 6)
    same(sorted(tuple({call.count for call in log.calls}) for log in logs),
         [(n + 1,) for n in range(6)])
    for log in logs:
        same((len(log.calls), log.header.closed), (300, 1))
        same([call.comm_seq for call in log.calls], list(range(300)))
    same(len({log.calls[0].comm_hash for log in logs}), 6, "groups of the same ranks differ")


def parts_on_every_python_here(tmp):
    names = ["python3.%d" % minor for minor in range(8, 20)]
    pythons = {os.path.realpath(path) for path in
               [sys.executable, "/usr/bin/python3", *map(shutil.which, names)] if path}
    done = 0
    for python in sorted(pythons):
        run = subprocess.run([python, os.path.join(HERE, "recorder_parts.py")], cwd=tmp,
                             capture_output=True, text=True)
        if run.returncode == 127:
            continue  # a launcher that has no such Python
        same((run.returncode, run.stdout), (0, "ok\n"), f"{python}\n{run.stderr}")
        done += 1
    if not done:
        raise Skip("no Python of at least 3.8")


CASES = [parts_on_every_python_here, spawned_processes_have_their_logs,
         forked_processes_have_their_logs, a_killed_process_loses_nothing, the_oldest_are_overwritten,
         a_full_disk_costs_records_only, a_directory_that_refuses_costs_records_only,
         collectives_in_signal_handlers, each_thread_has_its_log]

if __name__ == "__main__":
    run_cases(__doc__, CASES)
