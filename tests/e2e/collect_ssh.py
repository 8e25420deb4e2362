#!/usr/bin/env python3
"""The ssh transport against real sshd's on loopback: keys, failures, streams, quoting."""
import json
import os
import random
import signal
import subprocess
import sys
import threading

from collect_lib import Skip, Suite
from ssh_lib import Cluster, Throttle, free_port, keygen, wait_until, write

PROBE = os.environ.get("NPUPROF_TRANSPORT_PROBE", "")


class Run:
    """What transport_probe told: one record per host and run."""

    def __init__(self, cluster, *words, options=(), timeout=60):
        self.out = os.path.join(cluster.dir, f"out{len(os.listdir(cluster.dir))}")
        os.mkdir(self.out)
        self.child = subprocess.Popen(
            [PROBE, "--config", cluster.config, "--out", self.out, *options, "--", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **cluster.env, "LC_ALL": "C.UTF-8"})
        self.timeout = timeout
        self.records = []

    def wait(self):
        out, err = self.child.communicate(timeout=self.timeout)
        self.records = [json.loads(line) for line in out.decode("utf-8", "replace").splitlines()]
        if not self.records:
            raise AssertionError(f"transport_probe: {self.child.returncode}\n{err.decode()}")
        return self

    @property
    def first(self):
        return self.records[0]

    def stream(self, name, host=0):
        with open(os.path.join(self.out, f"{host}.{name}"), "rb") as file:
            return file.read()


def probe(cluster, host, *words, options=()):
    return Run(cluster, *words, options=["--host", host, *options]).wait()


def expect(run, **fields):
    for name, value in fields.items():
        if run.first[name] != value:
            raise AssertionError(f"{name}: {run.first[name]!r}, not {value!r}: {run.first}")


def contains(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f"{part!r} is not in {text!r}")


# ── cases ──

def exit_codes(cluster, tmp):
    cluster.host("node1")
    for code in (0, 1, 2, 126, 255):
        expect(probe(cluster, "node1", "sh", "-c", f"exit {code}"),
               result="OK", link="OK", status=code)
    expect(probe(cluster, "node1", "sh", "-c", "kill -9 $$"), result="OK", status=137)
    expect(probe(cluster, "node1", "no-such-program"), result="OK", status=127)
    expect(probe(cluster, "node1", "exit", "3"), result="OK", status=3)


def wrong_host_key(cluster, tmp):
    host = cluster.host("node1", known=False)
    cluster.know(host, keygen(os.path.join(tmp, "other_key")))
    for options in ([], ["--insecure"]):  # the loud option is for unknown hosts only
        run = probe(cluster, "node1", "true", options=options)
        expect(run, result="E_ACCESS", link="HOST_KEY_CHANGED", tries=1)
        contains(run.first["message"], "ssh-keygen -R")
    assert host.logins() == 0


def unknown_host(cluster, tmp):
    host = cluster.host("node1", known=False)
    run = probe(cluster, "node1", "true", options=["--tries", "3"])
    expect(run, result="E_ACCESS", link="HOST_KEY_UNKNOWN", tries=1)
    contains(run.first["message"], "known_hosts", f"ssh -F {cluster.config} node1 true")
    assert host.logins() == 0
    expect(probe(cluster, "node1", "true", options=["--insecure"]), result="OK", status=0)
    expect(probe(cluster, "node1", "true"), result="OK", status=0)  # now it is known


def no_weakening(cluster, tmp):
    cluster.host("node1", known=False)
    for option in ("StrictHostKeyChecking=no", "stricthostkeychecking accept-new",
                   "BatchMode=no", "ControlPath=none"):
        done = subprocess.run([PROBE, "--config", cluster.config, "--host", "node1",
                               "--ssh-option", option, "--", "true"], capture_output=True,
                              text=True, timeout=30, env={**os.environ, **cluster.env})
        assert done.returncode == 1 and done.stdout == "", done
        contains(done.stderr, "is not taken")


def auth_failure(cluster, tmp):
    host = cluster.host("node1")
    write(os.path.join(host.dir, "authorized_keys"), "")
    run = probe(cluster, "node1", "true", options=["--tries", "3"])
    expect(run, result="E_ACCESS", link="AUTH", tries=1)
    contains(run.first["message"], "ssh-copy-id node1")


def unreachable(cluster, tmp):
    cluster.entry("nobody", free_port())
    run = probe(cluster, "nobody", "true", options=["--tries", "3"])
    expect(run, result="E_IO", link="UNREACHABLE", tries=3)
    contains(run.first["message"], "Connection refused", "sshd running")
    run = probe(cluster, "no-such-host.invalid", "true", options=["--tries", "3"])
    expect(run, result="E_IO", link="NAME", tries=1)


def silent_port(cluster, tmp):
    host = cluster.host("node1")
    slow = Throttle(host.port)
    slow.frozen = True
    cluster.entry("slow", slow.port)
    try:
        run = probe(cluster, "slow", "true", options=["--ssh-option", "ConnectTimeout=1"])
        expect(run, result="E_IO", link="UNREACHABLE")
        run = probe(cluster, "slow", "true", options=["--timeout", "500"])
        expect(run, result="E_IO", link="TIMEOUT")
        contains(run.first["message"], "did not even start")
    finally:
        slow.close()


def frozen_network(cluster, tmp):
    """The shared connection hangs: it is given up, and the next command makes another one."""
    host = cluster.host("node1")
    slow = Throttle(host.port)
    cluster.entry("slow", slow.port)
    cluster.know(type("Port", (), {"port": slow.port}), host.key)
    run = Run(cluster, "sh", "-c", "sleep 0.3", options=[
        "--host", "slow", "--count", "3", "--timeout", "1500"])
    wait_until(lambda: host.logins() == 1, what="a login")
    wait_until(lambda: any(line.startswith("sleep") for line in commands(host)), what="the command")
    slow.frozen = True
    threading.Timer(2.5, lambda: setattr(slow, "frozen", False)).start()
    run.wait()
    slow.close()
    results = [record["result"] for record in run.records]
    assert "E_IO" in results and results[-1] == "OK", run.records
    assert {r["link"] for r in run.records if r["result"] != "OK"} <= {"TIMEOUT", "UNREACHABLE"}


def read_command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def commands(host):
    return [read_command(pid) for pid in host.sessions()]


def sleepers(host, count):
    """The process ids of `count` sleeps which run on the host."""
    def find():
        return [pid for pid in host.sessions() if read_command(pid).startswith("sleep")]
    wait_until(lambda: len(find()) == count, what=f"{count} commands run")
    return find()


def all_gone(pids):
    wait_until(lambda: not any(read_command(pid).startswith("sleep") for pid in pids),
               what="the far commands are gone")


def timeout_ends_far_command(cluster, tmp):
    host = cluster.host("node1")
    run = Run(cluster, "sh", "-c", "sleep 600 & sleep 600",
              options=["--host", "node1", "--timeout", "2500"])
    pids = sleepers(host, 2)
    expect(run.wait(), result="E_IO", link="TIMEOUT")
    all_gone(pids)


def cancel_ends_far_command(cluster, tmp):
    host = cluster.host("node1")
    run = Run(cluster, "sleep", "600", options=["--host", "node1", "--cancel", "2000"])
    pids = sleepers(host, 1)
    expect(run.wait(), result="E_IO", link="CANCELLED")
    all_gone(pids)


def lost_in_the_middle(cluster, tmp):
    host = cluster.host("node1")
    run = Run(cluster, "sh", "-c", "echo begun; sleep 60", options=["--host", "node1"])
    wait_until(lambda: any(line.startswith("sleep 60") for line in commands(host)), what="it runs")
    host.kill_sessions()
    expect(run.wait(), result="E_IO", link="LOST", tries=1)
    contains(run.first["message"], "lost while the command ran")
    assert run.stream("out") == b"begun\n"


def lost_and_repeated(cluster, tmp):
    """What may be repeated is: the second try ends, and its output is there once."""
    host = cluster.host("node1")
    flag = os.path.join(tmp, "flag")
    script = f'echo begun; test -e {flag} && exit 7; touch {flag}; sleep 60'
    run = Run(cluster, "sh", "-c", script,
              options=["--host", "node1", "--repeatable", "--tries", "3"])
    wait_until(lambda: os.path.exists(flag), what="the first try")
    host.kill_sessions()
    expect(run.wait(), result="OK", status=7, tries=2)
    assert run.stream("out") == b"begun\n"


def server_comes_back(cluster, tmp):
    """A host that is not there yet is tried again, whatever the command is."""
    host = cluster.host("node1")
    host.stop()
    run = Run(cluster, "true", options=["--host", "node1", "--tries", "8", "--delay", "200"])
    threading.Timer(0.7, host.start).start()
    expect(run.wait(), result="OK", status=0)
    assert run.first["tries"] > 1


def big_streams(cluster, tmp):
    cluster.host("node1")
    script = ("import os,threading\n"
              "def w(fd,c):\n for i in range(3*16): os.write(fd,c*65536)\n"
              "t=[threading.Thread(target=w,args=a) for a in ((1,b'o'),(2,b'e'))]\n"
              "[x.start() for x in t];[x.join() for x in t]")
    for host in (["--host", "node1"], []):
        run = Run(cluster, "/usr/bin/python3", "-c", script, options=host).wait()
        expect(run, result="OK", status=0)
        assert run.stream("out") == b"o" * (3 << 20), len(run.stream("out"))
        assert run.stream("err") == b"e" * (3 << 20), len(run.stream("err"))


def binary_both_ways(cluster, tmp):
    cluster.host("node1")
    data = random.Random(7).randbytes(2_000_003) + bytes(range(256)) + b"\x1e" * 100 + b"\n\x1e"
    path = os.path.join(tmp, "data")
    with open(path, "wb") as file:
        file.write(data)
    for host in (["--host", "node1"], []):
        run = Run(cluster, "cat", options=[*host, "--input", path]).wait()
        expect(run, result="OK", status=0)
        assert run.stream("out") == data
        run = Run(cluster, "cat", options=[*host, "--input", "-"]).wait()
        assert run.stream("out") == b"hello"
        run = Run(cluster, "true", options=[*host, "--input", path]).wait()  # reads nothing
        expect(run, result="OK", status=0)


def noisy_login(cluster, tmp):
    """What .bashrc prints is no output of the command."""
    host = cluster.host("node1")
    write(os.path.join(host.home, ".bashrc"),
          "echo welcome to node1; printf 'no line end' >&2; printf 'half a line'\n")
    run = probe(cluster, "node1", "sh", "-c", "echo out; echo err >&2")
    expect(run, result="OK", status=0)
    assert run.stream("out") == b"out\n" and run.stream("err") == b"err\n", run.stream("err")


def one_connection(cluster, tmp):
    host = cluster.host("node1")
    run = Run(cluster, "true", options=["--host", "node1", "--count", "20"]).wait()
    assert len(run.records) == 20 and all(r["result"] == "OK" for r in run.records)
    assert host.logins() == 1, host.logins()


def nothing_is_left(cluster, tmp):
    host = cluster.host("node1")
    probe(cluster, "node1", "true")
    assert cluster.sockets() == [] and cluster.masters() == [], cluster.masters()
    wait_until(lambda: not host.sessions(), what="no session is left")
    # nor when the master is stopped, so that it answers no more
    run = Run(cluster, "sleep", "600", options=["--host", "node1", "--timeout", "2500"])
    pids = sleepers(host, 1)
    masters = [pid for pid in cluster.masters() if b"[mux]" in
               open(f"/proc/{pid}/cmdline", "rb").read()]
    assert len(masters) == 1, masters
    os.kill(masters[0], signal.SIGSTOP)
    expect(run.wait(), result="E_IO", link="TIMEOUT")
    all_gone(pids)  # over a second connection
    assert cluster.sockets() == [] and cluster.masters() == [], cluster.masters()


def private_socket(cluster, tmp):
    host = cluster.host("node1")
    run = Run(cluster, "sleep", "1.5", options=["--host", "node1"])
    wait_until(lambda: any(line.startswith("sleep") for line in commands(host)), what="it runs")
    names = os.listdir(cluster.runtime)
    modes = [os.stat(os.path.join(cluster.runtime, name)).st_mode & 0o777 for name in names]
    run.wait()
    assert len(names) == 1 and modes == [0o700], (names, modes)


def many_hosts(cluster, tmp):
    """One host that fails does not lose the others, and results keep the order."""
    for n in range(1, 5):
        cluster.host(f"node{n}")
    cluster.entry("node5", free_port())
    run = Run(cluster, "sh", "-c", "echo $NPUPROF_TEST_HOST",
              options=["--host", "node[1-5],node2"]).wait()
    results = {r["host"]: r["result"] for r in run.records}
    assert results == {0: "OK", 1: "OK", 2: "OK", 3: "OK", 4: "E_IO"}, results
    for n in range(4):
        assert run.stream("out", n) == f"node{n + 1}\n".encode()


def jump_host(cluster, tmp):
    cluster.host("jump")
    inner = cluster.host("inner")
    cluster.entry("behind", inner.port, "ProxyJump jump", "HostKeyAlias inner")
    with open(cluster.known_hosts, "a", encoding="utf-8") as file:
        file.write("inner " + " ".join(inner.key.split()[:2]) + "\n")
    run = probe(cluster, "behind", "sh", "-c", "echo $NPUPROF_TEST_HOST")
    expect(run, result="OK", status=0)
    assert run.stream("out") == b"inner\n"


WORDS = ["", " ", "a b", "-x", "--", "'", '"', "\\", "\n", "a\nb\n", "$HOME", "`id`", "$(id)",
         "*", "?", "[a]", "~", "!", "!!", "#", "&", "|", ";", ">", "a=b", "文件 名", "é\u202e",
         "\t", "'\\''", "\\n", "%s", "{a,b}", "\x1b[0m", "\r", "\x7f", "if", "=ls", "^"]


def random_words(rng):
    letters = "ab '\"\\$`!*?[]{}()<>|&;#~=%^\n\t-é文"
    words = []
    for _ in range(rng.randrange(1, 8)):
        words.append(rng.choice(WORDS) if rng.random() < 0.5 else
                     "".join(rng.choice(letters) for _ in range(rng.randrange(0, 12))))
    return words


def arrive(cluster, words, options):
    run = Run(cluster, "printf", "%s\\0", *words, options=options).wait()
    expect(run, result="OK", status=0)
    got = run.stream("out").decode().split("\0")[:-1]
    if got != words:
        raise AssertionError((got, words))


def quoting(cluster, tmp):
    """Any words arrive unchanged: here, over ssh, in a container, in a container over ssh."""
    host = cluster.host("node1")
    # docker exec [-i] NAME bash -lc TEXT
    host.program("docker", "#!/bin/bash\n[ \"$1\" = exec ] || exit 99; shift\n"
                 "[ \"$1\" = -i ] && shift\n[ \"$1\" = box ] || exit 98; shift\nexec \"$@\"\n")
    host.program("podman", "#!/bin/bash\nexit 97\n")
    rng = random.Random(20260101)
    ways = [[], ["--host", "node1"], ["--host", "node1", "--container", "docker:box"],
            ["--host", "node1", "--container", "box"]]
    for way in ways:
        arrive(cluster, WORDS, way)
        for _ in range(6):
            arrive(cluster, random_words(rng), way)


def file_names(cluster, tmp):
    host = cluster.host("node1")
    for name in ("a b", "it's", "new\nline", "-rf", "$(touch pwned)", "文件", "*"):
        path = os.path.join(host.home, name)
        expect(probe(cluster, "node1", "touch", "--", path), result="OK", status=0)
        assert os.path.exists(path), name
    assert not os.path.exists(os.path.join(host.home, "pwned"))


def hosts_are_no_options(cluster, tmp):
    for name in ("-oProxyCommand=touch${IFS}x", "a b", "x;y", "-l", "$(id)", "root@-x"):
        done = subprocess.run([PROBE, "--config", cluster.config, f"--host={name}", "--", "true"],
                              capture_output=True, text=True, timeout=30)
        assert done.returncode == 2, (name, done)


CASES = [exit_codes, wrong_host_key, unknown_host, no_weakening, auth_failure, unreachable,
         silent_port, frozen_network, timeout_ends_far_command, cancel_ends_far_command,
         lost_in_the_middle, lost_and_repeated, server_comes_back, big_streams,
         binary_both_ways, noisy_login, one_connection, nothing_is_left, private_socket,
         many_hosts, jump_host, quoting, file_names, hosts_are_no_options]


def main():
    suite = Suite(__doc__)

    def with_cluster(case):
        def run(tmp):
            if not PROBE:
                raise Skip("NPUPROF_TRANSPORT_PROBE is not set")
            cluster = Cluster(tmp)
            try:
                case(cluster, tmp)
            finally:
                cluster.close()
        return run

    for case in CASES:
        suite.run(case.__name__, with_cluster(case))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
