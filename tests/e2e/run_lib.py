"""What the tests of npuprof run share: programs, a home for them with the stand-in's environment, and
a look into reports."""
import glob
import json
import os
import subprocess
import sys
import time

from collect_lib import FAKES, torch_python

# A program without torch, so that starting it costs little; the stand-in needs none either.
MODEL = """
class DiT:
    def forward(self, x):
        return x + 1
    def encode_prompt(self, text):
        return text
"""
INFER = """
import sys
from model import DiT
dit = DiT()
for i in range(int(sys.argv[1]) if len(sys.argv) > 1 else 8):
    assert dit.forward(i) == i + 1
    print("step", i)
"""
TORCH = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
    def forward(self, x):
        return self.layer(x)
def main():
    net = Net()
    for i in range(8):
        print("sum", net(torch.ones(2, 8)).sum().item())
if __name__ == "__main__":
    main()
"""
# What torchrun does, which costs seconds.
LAUNCH = """
import os, subprocess, sys
sys.exit(max([child.wait() for child in [subprocess.Popen(
    [sys.executable, "infer.py"], env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                     "WORLD_SIZE": "2"}) for rank in range(2)]]))
"""
TARGET = "model:DiT.forward"


class Home:
    """A directory with the programs, and the environment of the stand-in."""

    def __init__(self, suite, tmp, torch=False, **env):
        self.suite, self.tmp, self.out = suite, tmp, f"{tmp}/runs"
        self.python = torch_python() if torch else sys.executable
        for name, text in (("model.py", MODEL), ("infer.py", INFER), ("net.py", TORCH)):
            self.write(name, text)
        self.env = {**os.environ, "NPUPROF": suite.npuprof, "LC_ALL": "C.UTF-8",
                    "PYTHONPATH": os.path.join(FAKES, "python"), "PYTHONDONTWRITEBYTECODE": "1",
                    "FAKE_NPU_CACHE": f"{tmp}/cache", **env}
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            self.env.pop(name, None)
        if not torch:
            self.env["FAKE_NPU_NO_TORCH"] = "1"

    def write(self, name, text):
        with open(f"{self.tmp}/{name}", "w") as file:
            file.write(text)

    def words(self, *options, command):
        return ["run", "--out", self.out, *options, "--", *command]

    def run(self, *options, command=None, status=0, timeout=120, **env):
        """Run it with --json: the report, with .status and .talk of the process in it."""
        command = command or [self.python, "infer.py"]
        done = subprocess.run([self.suite.npuprof, *self.words("--json", *options,
                                                               command=command)],
                              cwd=self.tmp, env={**self.env, **env}, capture_output=True,
                              timeout=timeout)
        talk = done.stderr.decode(errors="replace")
        assert done.returncode == status, f"exit {done.returncode}, not {status}\n" \
            f"{done.stdout.decode(errors='replace')}\n{talk}"
        report = json.loads(done.stdout) if done.stdout else {"findings": [], "tables": []}
        for one in report["findings"]:  # R105: whatever is wrong, what to do is said
            assert one["severity"] != "error" or one.get("command") or one.get("advice"), one
        report["talk"] = talk
        return report

    def text(self, *options, command=None, status=0, **env):
        command = command or [self.python, "infer.py"]
        done = subprocess.run([self.suite.npuprof, *self.words(*options, command=command)],
                              cwd=self.tmp, env={**self.env, **env}, capture_output=True,
                              timeout=120)
        assert done.returncode == status, done
        return done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")

    def start(self, *options, command, **how):
        return subprocess.Popen([self.suite.npuprof, *self.words(*options, command=command)],
                                cwd=self.tmp, env=self.env, **how)

    def dirs(self):
        """The run directories, the oldest first."""
        return sorted(glob.glob(f"{glob.escape(self.out)}/*"), key=lambda run: os.stat(
            f"{run}/inject" if os.path.exists(f"{run}/inject") else run).st_mtime_ns)

    def last(self):
        with open(f"{self.dirs()[-1]}/run.json") as file:
            return json.load(file)


def codes(report, severity=None):
    return [one["code"] for one in report["findings"]
            if severity in (None, one["severity"])]


def finding(report, code):
    found = [one for one in report["findings"] if one["code"] == code]
    assert found, f"no {code} in {codes(report)}"
    return found[0]


def rows(report, table):
    """Rows of a table as dictionaries."""
    for one in report["tables"]:
        if one["id"] == table:
            names = [column["name"] for column in one["columns"]]
            return [dict(zip(names, row)) if isinstance(row, list) else row
                    for row in one["rows"]]
    return []


def wait_for(what, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        got = what()
        if got:
            return got
        time.sleep(0.05)
    raise AssertionError("it did not come")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
