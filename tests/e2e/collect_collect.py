#!/usr/bin/env python3
"""npuprof collect over real ssh on loopback: from a program here to judged captures.

The hosts are sshd's with homes of their own, the stand-in for torch_npu and a recorded npu-smi.
"""
import glob
import json
import os
import shlex
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from collect_lib import FAKES, Suite, torch_python  # noqa: E402
from ssh_lib import Cluster, is_alive, wait_until  # noqa: E402

suite = Suite(__doc__)

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

    def __init__(self, tmp, names=("node1",), torch=False):
        self.tmp, self.out = tmp, f"{tmp}/out"
        self.cluster = Cluster(tmp)
        self.python = torch_python() if torch else sys.executable
        self.options = " ".join([
            f"PYTHONPATH={FAKES}/python", f"FAKE_NPU_CACHE={tmp}/cache", "NPU_SMI_FAKE=910b",
            f"NPUPROF={suite.npuprof}", "PYTHONDONTWRITEBYTECODE=1", "LC_ALL=C.UTF-8",
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
        return self.result(suite.call(*self.words(*options, **how), env=self.cluster.env,
                                      check=check))

    def resume(self, *options, check=0):
        return self.result(suite.call("collect", "--resume", self.out, "--json", "--poll", "0.3",
                                      *options, env=self.cluster.env, check=check))

    @staticmethod
    def result(done):
        report = json.loads(done.stdout) if done.stdout else {}
        report["talk"] = done.stderr
        return report

    def start(self, *options, **how):
        run = subprocess.Popen([suite.npuprof, *self.words(*options, **how)],
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


def with_lab(function, **how):
    def run(tmp):
        lab = Lab(tmp, **how)
        try:
            function(lab)
        finally:
            lab.close()
    return run


WHOLE = {"connect": "PASS", "environment": "PASS", "ship": "PASS", "deploy": "PASS",
         "devices": "PASS", "run": "PASS", "export": "PASS", "pull": "PASS", "gate": "PASS"}




def one_host(lab):
    before = time.time()
    report = lab.collect("--env", "EXTRA=a b'c", target="net:Net.forward",
                         command=[lab.python, "net.py"])
    assert verdicts(report) == WHOLE, (verdicts(report), report["talk"])
    assert report["verdict"] == "PASS"
    row = rows(report, "captures")[0]
    assert row["command_exit"] == 0 and row["path"] == f"{lab.out}/node1/run"
    found = glob.glob(f"{lab.out}/node1/run/run_*/prof/*_ascend_pt/ASCEND_PROFILER_OUTPUT/"
                      "kernel_details.csv")
    assert len(found) == 1 and os.path.getmtime(found[0]) >= before - 1, found
    assert not glob.glob(f"{lab.out}/node1/run/run_*/prof/*_ascend_pt/PROF_*/**/*.slice_0",
                         recursive=True)
    suite.call("pull", "--verify", f"{lab.out}/node1/run", check=0)
    suite.call("check", lab.out, "--start-marker", f"{lab.out}/.npuprof_start", check=0)
    suite.call("info", lab.out, check=0)
    assert os.listdir(f"{lab.tmp}/locks-node1") == []
    job = row["source"].split(":", 1)[1]
    with open(f"{job}/go.sh", encoding="utf-8") as file:
        script = file.read()
    assert "HCCL_NPU_SOCKET_PORT_RANGE" in script and "EXTRA='a b'" in script, script
    # the program is there now; a directory with a collect is not written over
    done = suite.call(*lab.words(), env=lab.cluster.env, check=2)
    assert "--resume" in done.stderr
    lab.out += "2"
    again = lab.collect("--keep-raw")
    assert ", sent" in report["talk"] and ", sent" not in again["talk"], again["talk"]
    assert glob.glob(f"{lab.out}/node1/run/run_*/prof/*_ascend_pt/PROF_*")


def programs_that_fail(lab):
    report = lab.collect("--env", "EXIT=7", check=1)
    assert rows(report, "captures")[0]["command_exit"] == 7
    assert verdicts(report)["run"] == "FAIL" and verdicts(report)["pull"] == "PASS"
    assert "COLLECT_RUN_FAILED" in codes(report)
    assert "COMMAND_FAILED" in codes(report), codes(report)  # npuprof run's own
    assert os.listdir(f"{lab.tmp}/locks-node1") == []
    # a run that is over is not repeated
    assert lab.runs() == 1
    lab.resume(check=1)
    assert lab.runs() == 1


def without_a_verdict_it_is_3(lab):
    report = lab.collect("--no-pull", check=3)
    assert "COLLECT_UNVERIFIED" in codes(report) and not os.path.exists(f"{lab.out}/node1/run")
    lab.out += "2"
    report = lab.collect("--no-check", check=3)
    assert verdicts(report)["gate"] == "UNKNOWN" and verdicts(report)["pull"] == "PASS"
    lab.out += "3"
    report = lab.collect("--no-export", check=3)
    assert verdicts(report)["export"] == "UNKNOWN", verdicts(report)
    assert glob.glob(f"{lab.out}/node1/run/run_*/prof/*_ascend_pt/PROF_*"), "the raw data"
    suite.call("collect", "--selftest", check=0)


def three_hosts_and_one_fails(lab):
    lab.hosts["node2"].program("npu-smi", "#!/bin/sh\nexit 3\n")
    report = lab.collect(check=4)
    assert verdicts(report) == WHOLE and verdicts(report, "node3") == WHOLE
    assert verdicts(report, "node2")["devices"] == "FAIL"
    assert "run" not in verdicts(report, "node2")
    assert "COLLECT_HOST_FAILED" in codes(report)
    assert lab.runs("node1") == lab.runs("node3") == 1 and lab.runs("node2") == 0
    # repaired, it goes on; what is done stays as it is
    lab.hosts["node2"].program("npu-smi", f'#!/bin/sh\nexec "{FAKES}/npu_smi/npu-smi" "$@"\n')
    report = lab.resume()
    assert verdicts(report, "node2") == WHOLE and report["verdict"] == "PASS"
    assert lab.runs("node1") == lab.runs("node2") == lab.runs("node3") == 1
    captures = suite.call("info", lab.out, "--json", check=0).stdout
    assert captures.count("_ascend_pt\"") >= 3


def hosts_that_wait_for_each_other(lab):
    lab.hosts["node2"].program("npu-smi", "#!/bin/sh\nexit 3\n")
    command = [lab.python, "infer.py", "{index}", "{n}", "{master}", "{host}", "{other}"]
    report = lab.collect(command=command, check=4)
    assert verdicts(report)["run"] == "UNKNOWN" and lab.runs() == 0
    lab.hosts["node2"].program("npu-smi", f'#!/bin/sh\nexec "{FAKES}/npu_smi/npu-smi" "$@"\n')
    lab.resume()
    assert "argv ['0', '2', 'node1', 'node1', '{other}']" in lab.log("node1")
    assert "argv ['1', '2', 'node1', 'node2', '{other}']" in lab.log("node2")
    assert "index 1 of 2" in lab.log("node2")


def a_cut_connection_does_not_end_the_run(lab):
    flag = f"{lab.tmp}/flag"
    run = lab.start("--env", f"WAIT_FOR={flag}", "--ssh-option", "ConnectTimeout=2")
    wait_until(lambda: "waiting" in lab.log(), 25, "the run waits")
    lab.hosts["node1"].kill_sessions()
    time.sleep(0.5)
    lab.hosts["node1"].stop()
    time.sleep(0.5)
    Lab.write(flag, "")
    lab.hosts["node1"].start()
    out, err = run.communicate(timeout=100)
    assert run.returncode == 0, (run.returncode, out, err)
    assert verdicts(json.loads(out)) == WHOLE and lab.runs() == 1


def killed_at_every_stage(lab):
    """The program here is killed when a stage is told of; --resume ends it, the run ran once."""
    lab.collect()
    program = glob.glob(f"{lab.home()}/.npuprof/npuprof-*")[0]
    for stage in WHOLE:
        lab.out = f"{lab.tmp}/out-{stage}"
        ran = lab.runs()
        run = lab.start("--remote-npuprof", program)
        for line in run.stderr:
            if f"{stage:11s} " in line:
                break
        run.kill()
        run.communicate()
        report = lab.resume()
        assert verdicts(report) == WHOLE, (stage, verdicts(report), report["talk"])
        assert lab.runs() == ran + 1, (stage, lab.runs(), ran)
    # and while the command runs
    flag = f"{lab.tmp}/flag"
    lab.out, ran = f"{lab.tmp}/out-middle", lab.runs()
    run = lab.start("--remote-npuprof", program, "--env", f"WAIT_FOR={flag}")
    wait_until(lambda: "waiting" in lab.log(), 25, "the run waits")
    run.kill()
    run.communicate()
    Lab.write(flag, "")
    assert verdicts(lab.resume()) == WHOLE and lab.runs() == ran + 1


def interrupted(lab):
    run = lab.start("--env", f"WAIT_FOR={lab.tmp}/never")
    wait_until(lambda: "waiting" in lab.log(), 25, "the run waits")
    os.kill(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=100)
    report = json.loads(out)
    assert run.returncode == 1, (run.returncode, err)
    assert "COLLECT_INTERRUPTED" in codes(report)
    assert verdicts(report)["run"] == "FAIL" and verdicts(report)["pull"] == "PASS", \
        (verdicts(report), err)
    assert glob.glob(f"{lab.out}/node1/run/log")
    with open(glob.glob(f"{lab.home()}/npuprof_runs/*/npuprof.pid")[0], encoding="ascii") as file:
        assert not is_alive(int(file.read().split()[0]))
    assert os.listdir(f"{lab.tmp}/locks-node1") == []


def npuprof_is_killed_over_there(lab):
    run = lab.start("--env", f"WAIT_FOR={lab.tmp}/never")
    wait_until(lambda: "waiting" in lab.log(), 25, "the run waits")
    job = glob.glob(f"{lab.home()}/npuprof_runs/*")[0]
    with open(f"{job}/npuprof.pid", encoding="ascii") as file:
        launcher = int(file.read().split()[0])
    with open(glob.glob(f"{job}/run_*/run.json")[0], encoding="utf-8") as file:
        command = json.load(file)["command_pid"]
    os.kill(launcher, signal.SIGKILL)
    os.kill(command, signal.SIGKILL)
    out, err = run.communicate(timeout=100)
    report = json.loads(out)
    assert run.returncode == 1, (run.returncode, err)
    assert "finishing" in err, err
    assert verdicts(report)["export"] == "PASS" and verdicts(report)["pull"] == "PASS"


def devices(lab):
    report = lab.collect("--devices", "9", check=1)
    assert "DEVICES_NONE_FREE" in codes(report) and lab.runs() == 0
    assert "run" not in verdicts(report)
    lab.out += "2"
    report = lab.collect("--devices", "77,78", check=1)
    assert "DEVICE_BUSY" in codes(report) and lab.runs() == 0
    # one at a time: a lock of a process that lives, then one of a process that is gone
    flag = f"{lab.tmp}/flag"
    lab.out += "3"
    first = lab.start("--env", f"WAIT_FOR={flag}")
    wait_until(lambda: "waiting" in lab.log(), 25, "the run waits")
    mine = os.listdir(f"{lab.tmp}/locks-node1")
    assert len(mine) == 1, mine
    lab.out += "4"
    report = lab.collect("--devices", f"id:{mine[0]}", check=1)
    assert "DEVICE_BUSY" in codes(report) and lab.runs() == 1, codes(report)
    Lab.write(flag, "")
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0, err
    os.symlink("999999 1 /gone", f"{lab.tmp}/locks-node1/{mine[0]}")
    report = lab.resume()
    assert verdicts(report) == WHOLE and lab.runs() == 2
    assert rows(report, "captures")[0]["devices"] == mine[0]
    # as many as the command says, one group
    lab.out += "5"
    report = lab.collect(command=[lab.python, "infer.py", "--nproc_per_node=2"])
    assert rows(report, "captures")[0]["devices"].count(",") == 1


def another_machine(lab):
    lab.hosts["node1"].program("uname", "#!/bin/sh\necho riscv64\n")
    report = lab.collect(check=4)
    assert "COLLECT_ARCH" in codes(report) and "ship" not in verdicts(report)
    assert not glob.glob(f"{lab.home()}/.npuprof/npuprof-*")
    lab.out += "2"
    report = lab.collect("--remote-npuprof", suite.npuprof)
    assert report["verdict"] == "PASS"


def a_program_that_does_not_run_there(lab):
    bad = lab.hosts["node1"].program("npuprof-bad", "#!/bin/sh\necho libfoo.so: missing\nexit 127\n")
    report = lab.collect("--remote-npuprof", bad, check=4)
    finding = next(f for f in report["findings"] if f["code"] == "COLLECT_NPUPROF_UNUSABLE")
    assert any("libfoo.so" in e["text"] for e in finding["evidence"]), finding
    assert lab.runs() == 0


def in_a_container(lab):
    lab.hosts["node1"].program("docker", f"""#!/bin/sh
[ "$1" = exec ] || exit 9
shift
[ "$1" = -i ] && shift
[ "$1" = train ] || {{ echo "No such container: $1" >&2; exit 1; }}
shift
echo "$*" >> {lab.tmp}/docker.log
export INSIDE=train HOME={lab.tmp}/inside
exec "$@"
""")
    os.makedirs(f"{lab.tmp}/inside")
    Lab.write(f"{lab.tmp}/inside/.bash_profile", f"PATH={lab.hosts['node1'].bin}:$PATH\n")
    report = lab.collect("--container", "train")
    assert verdicts(report) == WHOLE, (verdicts(report), report["talk"])
    assert rows(report, "captures")[0]["source"].startswith(f"node1:{lab.tmp}/inside/npuprof/")
    assert not os.path.exists(lab.home()), "nothing on the host itself"


def arms(lab):
    report = lab.collect("--arm", "with=FUSED=1", "--arm", "without=FUSED=0 --plain",
                         command=[lab.python, "infer.py", "{options}", "{arm}"])
    assert verdicts(report, arm="with") == WHOLE and verdicts(report, arm="without") == WHOLE
    devices = {row["devices"] for row in rows(report, "captures")}
    assert len(devices) == 1, devices
    assert "argv ['with'] fused 1" in lab.log() and \
        "argv ['--plain', 'without'] fused 0" in lab.log(), lab.log()
    for arm in ("with", "without"):
        manifest = read(f"{lab.out}/{arm}/node1/run/npuprof_manifest.json")
        assert manifest["arm"] == arm and manifest["captures"], manifest
        whole = read(f"{lab.out}/{arm}/npuprof_manifest.json")
        assert whole["arm"] == arm and len(whole["files"]) == len(manifest["files"])
        suite.call("pull", "--verify", f"{lab.out}/{arm}", check=0)
    done = suite.call("compare", f"{lab.out}/without", f"{lab.out}/with", "--json")
    assert done.returncode in (0, 3), (done.returncode, done.stderr)
    assert json.loads(done.stdout)["tables"]


def strange_names(lab):
    lab.out = f"{lab.tmp}/my out'put"
    report = lab.collect("--workspace", f"{lab.tmp}/work space$(x)",
                         command=[lab.python, "infer.py", "a b", "c'd\"e", "$(touch pwned)", "", "*"])
    assert verdicts(report) == WHOLE, (verdicts(report), report["talk"])
    logs = glob.glob(glob.escape(lab.out) + "/node1/run/log")
    with open(logs[0], encoding="utf-8") as file:
        text = file.read()
    expected = str(["a b", "c'd\"e", "$(touch pwned)", "", "*"])
    assert f"argv {expected}" in text, text


def pre_checks(lab):
    report = lab.collect("--pre-check", "echo fine; exit 1", check=1)
    assert verdicts(report)["pre-check"] == "FAIL" and lab.runs() == 0, verdicts(report)
    lab.out += "2"
    report = lab.collect("--pre-check", "echo fine")
    assert verdicts(report)["pre-check"] == "PASS" and lab.runs() == 1


def usage(lab):
    for words in ([], ["node1"], ["--resume", lab.tmp], ["--resume", lab.tmp, "--", "x"],
                  ["node1", "--arm", "a=--x", "--", "cmd"], ["node1", "--arm", "=x", "--", "cmd"],
                  ["node1", "--env", "1x", "--", "cmd"], ["--", "cmd"]):
        done = suite.call("collect", *words, "--out", f"{lab.tmp}/none", check=2)
        assert done.stderr.startswith("npuprof: "), done.stderr
    assert not os.path.exists(f"{lab.tmp}/none/collect.json")


def ranks_to_drill_into(tmp):
    """A cluster that was fetched in part: the command for the ranks that stand out (R120)."""
    suite.call("synth", f"{tmp}/far", "--ranks", "8", "--tp", "8", "--fault",
               "slow-rank=5", check=0)
    suite.call("pull", f"{tmp}/far", f"{tmp}/near dir", check=0)
    for mode in ("diagnose", "slow_rank"):
        report = json.loads(suite.call("cluster", f"{tmp}/near dir", "-m", mode, "--json").stdout)
        lines = [note for note in report["notes"] if "npuprof pull" in note]
        assert len(lines) == 1 and lines[0].endswith("--ranks 5"), (mode, report["notes"])
    words = shlex.split(lines[0].split("npuprof ", 1)[1])
    suite.call(*words, check=0)
    assert len(glob.glob(f"{tmp}/near dir-drill/**/kernel_details.csv", recursive=True)) == 1
    notes = json.loads(suite.call("cluster", f"{tmp}/far", "--json").stdout)["notes"]
    assert not [note for note in notes if "npuprof pull" in note], notes


suite.run("ranks to drill into", ranks_to_drill_into)
suite.run("one host", with_lab(one_host, torch=True))
for test in (programs_that_fail, without_a_verdict_it_is_3, a_cut_connection_does_not_end_the_run,
             killed_at_every_stage, interrupted, npuprof_is_killed_over_there, devices,
             another_machine, a_program_that_does_not_run_there, in_a_container, arms,
             strange_names, pre_checks, usage):
    suite.run(test.__name__.replace("_", " "), with_lab(test))
suite.run("three hosts and one fails",
          with_lab(three_hosts_and_one_fails, names=("node1", "node2", "node3")))
suite.run("hosts that wait for each other",
          with_lab(hosts_that_wait_for_each_other, names=("node1", "node2")))
sys.exit(suite.finish())
