#!/usr/bin/env python3
"""`npuprof devices`: here, over ssh, in a container, on several hosts; and what it refuses."""
import json
import os
import shutil
import signal
import subprocess
import sys

from collect_lib import FAKES, Skip, Suite
from ssh_lib import Cluster, free_port, keygen, wait_until, write

FAKE = os.path.join(FAKES, "npu_smi")


def put_npu_smi(host, fake):
    host.program("npu-smi", f"#!/bin/bash\nNPU_SMI_FAKE={fake} exec {FAKE}/npu-smi \"$@\"\n")


def ask(suite, cluster, *words, check=0):
    done = suite.call("devices", "--ssh-config", cluster.config, "--json", *words,
                      env=cluster.env, check=check)
    return json.loads(done.stdout) if done.stdout else done.stderr


def table(report, name):
    found = next(t for t in report["tables"] if t["id"] == name)
    columns = [c["name"] for c in found["columns"]]
    return [row if isinstance(row, dict) else dict(zip(columns, row)) for row in found["rows"]]


def codes(report):
    return [finding["code"] for finding in report["findings"]]


def same(got, want):
    if got != want:
        raise AssertionError(f"{got!r}, not {want!r}")


def local(suite, tmp):
    env = {"PATH": f"{FAKE}:{os.environ['PATH']}", "NPU_SMI_FAKE": "a3"}
    done = suite.call("devices", "--json", env=env, check=0)
    report = json.loads(done.stdout)
    devices = table(report, "devices")
    same(len(devices), 16)
    same([d["physical"] for d in devices], list(range(16)))
    same(sum(d["free"] for d in devices), 12)
    same(len(table(report, "processes")), 5)
    done = suite.call("devices", "--pick", "4", "--env", env=env, check=0)
    same(done.stdout, "ASCEND_RT_VISIBLE_DEVICES=4,5,6,7\n")


def no_npu_smi(suite, tmp):
    tools = os.path.join(tmp, "bin")
    os.mkdir(tools)
    for name in ("sh", "cat"):
        os.symlink(shutil.which(name), os.path.join(tools, name))
    if shutil.which("npu-smi", path="/usr/local/bin:/usr/local/sbin:/usr/sbin"):
        raise Skip("this machine has an npu-smi")
    done = suite.call("devices", env={"PATH": tools}, check=2)
    same("there is no npu-smi in PATH" in done.stderr, True)


def too_few(suite, tmp):
    env = {"PATH": f"{FAKE}:{os.environ['PATH']}", "NPU_SMI_FAKE": "910b"}
    done = suite.call("devices", "--pick", "5", "--json", env=env, check=1)
    report = json.loads(done.stdout)
    same(table(report, "picked"), [])
    finding = next(f for f in report["findings"] if f["code"] == "DEVICES_NONE_FREE")
    reasons = [e["text"] for e in finding["evidence"]]
    same(reasons, ["NPU 0 chip 0: busy: process 4021 (python)", "NPU 1 chip 0: health: Warning",
                   "NPU 4 chip 0: busy: process 5511 (python)",
                   "NPU 5 chip 0: busy: process 5512 (python)"])
    done = suite.call("devices", "--pick", "5", "--env", env=env, check=1)
    same(done.stdout, "")
    same("process 4021" in done.stderr, True)


def not_understood(suite, tmp):
    """Exit 4 and nothing on stdout: never device 0."""
    for fake in ("broken_memory", "broken_cut", "broken_heading", "broken_process",
                 "broken_stray_process", "no_driver", "device_used"):
        env = {"PATH": f"{FAKE}:{os.environ['PATH']}", "NPU_SMI_FAKE": fake}
        for words in (["--pick", "1", "--env"], ["--pick", "1", "--json"], []):
            done = suite.call("devices", *words, env=env, check=4)
            same(done.stdout, "")
            assert done.stderr.startswith("npuprof: local"), done.stderr


def recorded(suite, tmp):
    text = ""
    for suffix in (".topo", "", ".map"):  # in any order
        with open(os.path.join(FAKE, f"910a{suffix}.txt"), encoding="utf-8") as file:
            text += file.read() + "\n"
    done = suite.call("devices", "--from", "-", "--pick", "4", "--env", stdin=text, check=0)
    same(done.stdout, "ASCEND_RT_VISIBLE_DEVICES=0,1,2,3\n")
    path = write(os.path.join(tmp, "smi.txt"), text.replace("\n", "\r\n"))
    done = suite.call("devices", "--from", path, "--pick", "3", "--env", check=0)
    same(done.stdout, "ASCEND_RT_VISIBLE_DEVICES=4,6,7\n")
    suite.call("devices", "--from", os.path.join(tmp, "none"), check=2)
    suite.call("devices", "--from", path, "node1", check=2)


def over_ssh(suite, tmp):
    cluster = Cluster(tmp)
    try:
        host = cluster.host("node1")
        put_npu_smi(host, "910b")
        report = ask(suite, cluster, "node1", "--pick", "4")
        same(table(report, "picked")[0]["visible_devices"], "2,3,6,7")
        same({d["host"] for d in table(report, "devices")}, {"node1"})
        same(codes(report), ["DEVICE_UNHEALTHY"])
        same(host.logins(), 1)
        same(cluster.sockets(), [])
    finally:
        cluster.close()


def in_a_container(suite, tmp):
    cluster = Cluster(tmp)
    try:
        host = cluster.host("node1")
        put_npu_smi(host, "910b")
        # the container sees four of them, and its profile sets its PATH
        inside = os.path.join(host.dir, "inside")
        os.mkdir(inside)
        write(os.path.join(inside, "npu-smi"), f"#!/bin/bash\n"
              f"NPU_SMI_FAKE=910b_container exec {FAKE}/npu-smi \"$@\"\n", 0o755)
        host.program("podman", "#!/bin/bash\n[ \"$1 $2\" = 'exec train' ] || exit 125\nshift 2\n"
                     "[ \"$1 $2\" = 'bash -lc' ] || exit 99\n"
                     f"exec bash -c \"PATH={inside}:$PATH; $3\"\n")
        report = ask(suite, cluster, "node1", "--container", "podman:train", "--pick", "2")
        same(table(report, "picked")[0]["visible_devices"], "0,2")
        same(table(report, "picked")[0]["physical"], "4,6")
        said = ask(suite, cluster, "node1", "--container", "podman:other", check=4)
        same("exit status 125" in said, True)
        ask(suite, cluster, "node1", "--container", "-x", check=2)
    finally:
        cluster.close()


def several_hosts(suite, tmp):
    cluster = Cluster(tmp)
    try:
        for n, fake in ((1, "910b"), (2, "a3"), (3, "no_driver")):
            put_npu_smi(cluster.host(f"node{n}"), fake)
        report = ask(suite, cluster, "node[1-2]", "--pick", "4")
        same([p["visible_devices"] for p in table(report, "picked")], ["2,3,6,7", "4,5,6,7"])
        # one that lacks devices, one whose output is nonsense: the others are told
        report = ask(suite, cluster, "node[1-3]", "--pick", "8", check=4)
        same([p["host"] for p in table(report, "picked")], ["node2"])
        same(sorted(codes(report)),
             ["DEVICES_HOST_FAILED", "DEVICES_NONE_FREE", "DEVICE_UNHEALTHY"])
        same(ask(suite, cluster, "node[1-2]", "--pick", "8", check=1)["exit_code"], 1)
        # one that is not there is tried again, and that is told
        cluster.entry("node4", free_port())
        done = suite.call("devices", "--ssh-config", cluster.config, "--json", "node[1,4]",
                          env=cluster.env, check=4)
        same(done.stderr.count("again in"), 3)
        same({d["host"] for d in table(json.loads(done.stdout), "devices")}, {"node1"})
        failed = next(f for f in json.loads(done.stdout)["findings"]
                      if f["code"] == "DEVICES_HOST_FAILED")
        same("sshd running" in failed["detail"], True)
        hosts = write(os.path.join(tmp, "hosts"), "# all\nnode[1-2]\n")
        report = ask(suite, cluster, "--hosts-from", hosts)
        same(len(table(report, "devices")), 24)
        same(cluster.sockets(), [])
    finally:
        cluster.close()


def refused_host(suite, tmp):
    cluster = Cluster(tmp)
    try:
        host = cluster.host("node1", known=False)
        put_npu_smi(host, "910b")
        said = ask(suite, cluster, "node1", check=4)
        same("known_hosts" in said and "node1 true" in said, True)
        report = ask(suite, cluster, "node1", "--insecure-accept-host-key")
        same(any("insecure" in note for note in report["notes"]), True)
        cluster.forget()
        cluster.know(host, keygen(os.path.join(tmp, "other")))
        said = ask(suite, cluster, "node1", "--insecure-accept-host-key", check=4)
        same("ssh-keygen -R" in said, True)
        said = ask(suite, cluster, "node1", "--ssh-option", "StrictHostKeyChecking=no", check=2)
        same("is not taken" in said, True)
        ask(suite, cluster, "-oProxyCommand=x", check=2)
        ask(suite, cluster, "node1;id", check=2)
    finally:
        cluster.close()


def interrupted(suite, tmp):
    """Ctrl-C while it asks: it ends by the signal, and leaves nothing."""
    cluster = Cluster(tmp)
    try:
        host = cluster.host("node1")
        flag = os.path.join(tmp, "begun")
        host.program("npu-smi", f"#!/bin/bash\ntouch {flag}\nsleep 600\n")
        child = subprocess.Popen([suite.npuprof, "devices", "node1", "--ssh-config",
                                  cluster.config], env={**os.environ, **cluster.env},
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_until(lambda: os.path.exists(flag), what="npu-smi runs")
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=30)
        same(child.returncode, -signal.SIGINT)
        same(cluster.sockets(), [])
        same(cluster.masters(), [])
        wait_until(lambda: not host.sessions(), what="nothing runs there")
    finally:
        cluster.close()


def slow_npu_smi(suite, tmp):
    cluster = Cluster(tmp)
    try:
        host = cluster.host("node1")
        host.program("npu-smi", "#!/bin/bash\nsleep 600\n")
        said = ask(suite, cluster, "node1", "--timeout", "1", check=4)
        same("no end after 1 s" in said, True)
        wait_until(lambda: not host.sessions(), what="nothing runs there")
    finally:
        cluster.close()


CASES = [local, no_npu_smi, too_few, not_understood, recorded, over_ssh, in_a_container,
         several_hosts, refused_host, interrupted, slow_npu_smi]


def main():
    suite = Suite(__doc__)
    for case in CASES:
        suite.run(case.__name__, lambda tmp, case=case: case(suite, tmp))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
