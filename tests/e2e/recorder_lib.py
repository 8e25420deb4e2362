"""What the tests of the collective recorder share: a run's directory, and programs in it."""
import json
import os
import signal
import socket
import subprocess
import sys
import time

import comm_reader
from collect_lib import SOURCE, Suite, torch_python

npuprof = None  # the program that is tested
INJECT = os.path.join(SOURCE, "inject", "python")

# Each program's first lines: gloo, alone or under torchrun.
START = """\
import json, os, sys
import torch
import torch.distributed as dist
def start(rank=None, world=None, store=None):
    rank = int(os.environ.get("RANK", "0")) if rank is None else rank
    world = int(os.environ.get("WORLD_SIZE", "1")) if world is None else world
    if store is None and world == 1:
        store = dist.HashStore()
    dist.init_process_group("gloo", rank=rank, world_size=world, store=store)
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Run:
    """A run's directory with inject.json, as `npuprof run` makes it."""

    def __init__(self, tmp, stages=(), step=None, request=None, capacity=4096, collectives=True):
        self.tmp = tmp
        self.comm, self.events_dir = os.path.join(tmp, "comm"), os.path.join(tmp, "events")
        for path in (self.comm, self.events_dir):
            os.makedirs(path)
        recorder = {"dir": self.comm, "capacity": capacity, "step": step, "request": request,
                    "stages": [{"name": name, "module": module, "qualname": qualname}
                               for name, module, qualname in stages]}
        self.config = os.path.join(tmp, "inject.json")
        with open(self.config, "w") as file:
            json.dump({"version": 1, "run_dir": tmp, "prof_dir": os.path.join(tmp, "prof"),
                       "events_dir": self.events_dir, "targets": [],
                       "collectives": recorder if collectives else None}, file)
        self.environment = {**os.environ, "NPUPROF_INJECT": self.config, "PYTHONPATH": INJECT,
                            "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
                            "GLOO_SOCKET_IFNAME": "lo"}

    def write(self, name, text):
        path = os.path.join(self.tmp, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def python(self, text, ranks=None, name="program.py", env=None, status=0, timeout=240):
        """Run a program, START in front; under torchrun when ranks is given. Its stdout."""
        command = [torch_python()]
        if ranks:
            # --standalone has one port for all; -r 0 fails with torch 1.13 on Python 3.11
            command += ["-m", "torch.distributed.run", "--nnodes=1", "--rdzv_backend=c10d",
                        f"--rdzv_endpoint=127.0.0.1:{free_port()}", "--rdzv_id=npuprof",
                        f"--nproc_per_node={ranks}", "-r", "1", "-t", "1"]
        command.append(self.write(name, START + text))
        with subprocess.Popen(command, cwd=self.tmp, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.PIPE, start_new_session=True,
                              env={**self.environment, **(env or {})}) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # its children, too
                raise
        self.done = subprocess.CompletedProcess(command, process.returncode, out, err)
        if self.done.returncode != status:
            raise AssertionError(f"exit {self.done.returncode}, not {status}\n"
                                 f"{self.done.stdout}\n{self.done.stderr}")
        return self.done.stdout

    def kill_when(self, text, wanted, name="program.py", timeout=120):
        """Start a program, SIGKILL it as soon as wanted(line of its stdout); all lines."""
        process = subprocess.Popen([torch_python(), self.write(name, START + text)],
                                   cwd=self.tmp, env=self.environment, text=True,
                                   stdout=subprocess.PIPE)
        lines, deadline = [], time.monotonic() + timeout
        try:
            for line in process.stdout:
                lines.append(line.strip())
                if wanted(line.strip()) or time.monotonic() > deadline:
                    process.send_signal(signal.SIGKILL)
                    break
            lines += [line.strip() for line in process.stdout if line.endswith("\n")]
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
        assert process.returncode == -signal.SIGKILL, process.returncode
        return lines

    def logs(self):
        return comm_reader.read_dir(self.comm)

    def log(self):
        """The only one."""
        logs = self.logs()
        assert len(logs) == 1, [log.path for log in logs]
        return logs[0]

    def events(self, kind=None):
        found = []
        for name in sorted(os.listdir(self.events_dir)):
            with open(os.path.join(self.events_dir, name)) as file:
                found += [json.loads(line) for line in file]
        return [event for event in found if kind in (None, event["event"])]


def same(got, expected, what=""):
    if got != expected:
        raise AssertionError(f"{what}\n  got      {got}\n  expected {expected}")


def run_cases(doc, cases):
    global npuprof
    suite = Suite(doc)
    npuprof = suite.npuprof
    for case in cases:
        suite.run(case.__name__, case)
    sys.exit(suite.finish())
