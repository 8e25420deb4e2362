"""Hosts on loopback and a program for the tests of `npuprof collect`.

The hosts are sshd's with homes of their own, the stand-in for torch_npu and a recorded npu-smi.
"""
import glob
import json
import os
import signal
import subprocess
import sys

from collect_lib import FAKES, torch_python
from ssh_lib import Cluster, is_alive

MODEL = """
class DiT:
    def forward(self, x):
        return x + 1
"""
INFER = """
import os, sys, time
from model import DiT
print("argv", sys.argv[1:], "fused", os.environ.get("FUSED"))
print("index", os.environ["NPUPROF_HOST_INDEX"], "of", os.environ["NPUPROF_N_HOSTS"])
with open(os.environ["RAN"], "a") as file:
    print("ran", file=file)
dit = DiT()
for i in range(8):
    assert dit.forward(i) == i + 1
    print("step", i, os.environ.get("ASCEND_RT_VISIBLE_DEVICES"), flush=True)
gate = os.environ.get("WAIT_FOR")
while gate and not os.path.exists(gate):
    print("waiting", flush=True)
    time.sleep(0.2)
sys.exit(int(os.environ.get("EXIT", "0")))
"""
NET = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
    def forward(self, x):
        return self.layer(x)
if __name__ == "__main__":
    net = Net()
    for i in range(8):
        print("sum", net(torch.ones(2, 8)).sum().item())
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Lab:
    """Hosts, a program, and a directory for what is collected."""

    def __init__(self, suite, tmp, names=("node1",), torch=False):
        self.suite, self.tmp, self.out = suite, tmp, f"{tmp}/out"
        self.cluster = Cluster(tmp)
        self.python = torch_python() if torch else sys.executable
        self.options = " ".join([
            f"PYTHONPATH={FAKES}/python", f"FAKE_NPU_CACHE={tmp}/cache", "NPU_SMI_FAKE=910b",
            f"NPUPROF={self.suite.npuprof}", "PYTHONDONTWRITEBYTECODE=1", "LC_ALL=C.UTF-8",
            "" if torch else "FAKE_NPU_NO_TORCH=1"])
        self.hosts = {name: self.host(name) for name in names}
        os.makedirs(f"{tmp}/model")
        for name, text in (("model.py", MODEL), ("infer.py", INFER), ("net.py", NET)):
            self.write(f"{tmp}/model/{name}", text)
        self.running = []

    def host(self, name):
        host = self.cluster.host(name)
        host.stop()
        with open(host.sshd_config, encoding="utf-8") as file:
            text = file.read()
        self.write(host.sshd_config, text.replace("SetEnv ", f"SetEnv {self.options} "
                                                      f"NPUPROF_LOCKS={self.tmp}/locks-{name} "
                                                      f"RAN={self.tmp}/ran-{name} "))
        host.start()
        host.program("npu-smi", f'#!/bin/sh\nexec "{FAKES}/npu_smi/npu-smi" "$@"\n')
        return host

    @staticmethod
    def write(path, text):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def words(self, *options, hosts=None, command=None, target="model:DiT.forward"):
        return ["collect", hosts or ",".join(self.hosts), "--out", self.out, "--json",
                "--ssh-config", self.cluster.config, "--deploy", f"{self.tmp}/model",
                "--target", target, "--poll", "0.3", *options, "--",
                *(command or [self.python, "infer.py"])]

    def collect(self, *options, check=0, **how):
        return self.result(self.suite.call(*self.words(*options, **how), env=self.cluster.env,
                                      check=check))

    def resume(self, *options, check=0):
        return self.result(self.suite.call("collect", "--resume", self.out, "--json", "--poll", "0.3",
                                      *options, env=self.cluster.env, check=check))

    @staticmethod
    def result(done):
        report = json.loads(done.stdout) if done.stdout else {}
        report["talk"] = done.stderr
        return report

    def start(self, *options, **how):
        run = subprocess.Popen([self.suite.npuprof, *self.words(*options, **how)],
                               env={**os.environ, "LC_ALL": "C.UTF-8", **self.cluster.env},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT,
                                                                        signal.SIG_DFL))
        self.running.append(run)
        return run

    def home(self, name="node1"):
        return f"{self.hosts[name].home}/npuprof"

    def logs(self, name="node1"):
        return glob.glob(f"{self.home(name)}/npuprof_runs/*/log")

    def log(self, name="node1"):
        text = ""
        for path in self.logs(name):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += file.read()
        return text

    def runs(self, name="node1"):
        """How often the command ran there."""
        if not os.path.exists(f"{self.tmp}/ran-{name}"):
            return 0
        with open(f"{self.tmp}/ran-{name}", encoding="ascii") as file:
            return len(file.readlines())

    def close(self):
        for run in self.running:
            if run.poll() is None:
                run.kill()
            run.communicate()
        for host in self.hosts.values():
            for path in glob.glob(f"{host.home}/npuprof/npuprof_runs/*/*.pid"):
                with open(path, encoding="ascii") as file:
                    pid, begin = file.read().split()
                if is_alive(int(pid)) and begin == start_of(pid):
                    os.kill(int(pid), signal.SIGTERM)
        self.cluster.close()


def start_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[19]


def rows(report, table):
    found = next(t for t in report["tables"] if t["id"] == table)
    names = [c["name"] for c in found["columns"]]
    return [row if isinstance(row, dict) else dict(zip(names, row)) for row in found["rows"]]


def verdicts(report, host="node1", arm=None):
    return {row["stage"]: row["verdict"] for row in rows(report, "stages")
            if row["host"] == host and row.get("arm") == arm}


def codes(report):
    return [f["code"] for f in report["findings"]]


def with_lab(suite, function, **how):
    def run(tmp):
        lab = Lab(suite, tmp, **how)
        try:
            function(lab)
        finally:
            lab.close()
    return run


WHOLE = {"connect": "PASS", "environment": "PASS", "ship": "PASS", "deploy": "PASS",
         "devices": "PASS", "run": "PASS", "export": "PASS", "pull": "PASS", "gate": "PASS"}
