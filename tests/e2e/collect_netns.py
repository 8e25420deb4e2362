#!/usr/bin/env python3
"""`npuprof pull` and `deploy` over a slow, lossy link that goes away: 30 ms, 20 Mbit/s, 0.5 % lost.

A network namespace with an sshd inside, a veth pair with netem between (without netem in the
kernel it is only slow: tbf). Wants root, ip and tc (Debian: iproute2): Skip without them.
"""
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from collect_lib import Skip, Suite  # noqa: E402
from ssh_lib import Cluster, Host, wait_until  # noqa: E402

suite = Suite(__doc__)
QDISCS = (["netem", "delay", "30ms", "rate", "20mbit", "loss", "0.5%"],
          ["tbf", "rate", "20mbit", "burst", "32kbit", "latency", "100ms"])


def ip(*words):
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise Skip(f"ip {' '.join(words)}: {done.stderr.strip()}")


class Link:
    """A namespace and the slow link to it."""

    def __init__(self):
        if not shutil.which("ip") or not shutil.which("tc"):
            raise Skip("no ip or tc (Debian: iproute2)")
        number = os.getpid() % 60000
        self.space, self.near, self.far = f"nps{number}", f"npa{number}", f"npb{number}"
        net = f"198.18.{number >> 8}.{number & 0xfc}"
        base = net.rsplit(".", 1)[0]
        last = int(net.rsplit(".", 1)[1])
        self.here, self.address = f"{base}.{last + 1}", f"{base}.{last + 2}"
        ip("netns", "add", self.space)
        try:
            ip("link", "add", self.near, "type", "veth", "peer", "name", self.far, "netns",
               self.space)
            ip("addr", "add", f"{self.here}/30", "dev", self.near)
            ip("link", "set", self.near, "up")
            for words in (["addr", "add", f"{self.address}/30", "dev", self.far],
                          ["link", "set", self.far, "up"], ["link", "set", "lo", "up"]):
                ip("-n", self.space, *words)
            self.slow_down(["tc"], self.near)
            self.slow_down(["ip", "netns", "exec", self.space, "tc"], self.far)
        except Skip:
            self.close()
            raise

    def slow_down(self, tc, dev):
        for qdisc in QDISCS:
            done = subprocess.run([*tc, "qdisc", "replace", "dev", dev, "root", *qdisc],
                                  capture_output=True, text=True)
            if done.returncode == 0:
                self.kind = qdisc[0]
                return
        raise Skip(f"tc: {done.stderr.strip()}")

    def set(self, state):
        ip("link", "set", self.near, state)

    def close(self):
        subprocess.run(["ip", "netns", "del", self.space], capture_output=True)
        subprocess.run(["ip", "link", "del", self.near], capture_output=True)


class FarHost(Host):
    """An sshd in the namespace."""

    def __init__(self, cluster, link):
        self.link = link
        super().__init__(cluster, "inside", f"ListenAddress {link.address}")
        with open(cluster.config, "a", encoding="utf-8") as file:
            file.write("\n  ".join([
                "Host far", f"HostName {link.address}", f"Port {self.port}", "User root",
                f"IdentityFile {cluster.identity}", "IdentitiesOnly yes",
                f"UserKnownHostsFile {cluster.known_hosts}", "GlobalKnownHostsFile /dev/null",
            ]) + "\n")
        with open(cluster.known_hosts, "a", encoding="utf-8") as file:
            file.write(f"[{link.address}]:{self.port} {' '.join(self.key.split()[:2])}\n")

    def start(self):
        from ssh_lib import SSHD
        with open(self.log, "ab") as log:
            self.server = subprocess.Popen(
                ["ip", "netns", "exec", self.link.space, SSHD, "-D", "-e", "-f",
                 self.sshd_config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self.listens, what="sshd in the namespace listens")

    def listens(self):
        if self.server.poll() is not None:
            raise AssertionError(f"sshd ended:\n{self.read_log()}")
        with socket.socket() as sock:
            sock.settimeout(2)
            return sock.connect_ex((self.link.address, self.port)) == 0


class Lab:
    def __init__(self, tmp):
        self.link = Link()
        try:
            self.cluster = Cluster(tmp)
            self.host = FarHost(self.cluster, self.link)
        except BaseException:
            self.link.close()
            raise
        self.source, self.dest = os.path.join(tmp, "source"), os.path.join(tmp, "dest")
        self.work = os.path.join(tmp, "far", "ws")
        os.makedirs(self.source)

    def start(self, *words):
        return subprocess.Popen(
            [suite.npuprof, *words, "--json", "--ssh-config", self.cluster.config],
            env={**os.environ, "LC_ALL": "C.UTF-8", **self.cluster.env},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def close(self):
        self.cluster.close()
        self.link.close()


def with_lab(function):
    def run(tmp):
        lab = Lab(tmp)
        try:
            function(lab)
        finally:
            lab.close()
    return run


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def tree(top):
    found = {}
    for place, dirs, names in os.walk(top):
        dirs[:] = [name for name in dirs if not name.startswith(".npuprof")]
        for name in names:
            if name != "npuprof_manifest.json":
                path = os.path.join(place, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, top)] = file.read()
    return found


def row(out):
    table = json.loads(out)["tables"][0]
    return dict(zip([c["name"] for c in table["columns"]], table["rows"][0]))


def finish(run):
    out, err = run.communicate(timeout=120)
    assert run.returncode == 0, (run.returncode, out, err)
    return out, err


def noise(n, seed):
    return random.Random(seed).randbytes(n)


def a_capture_comes_over(lab):
    chance = random.Random(3)
    write(f"{lab.source}/trace_view.json", b"".join(
        b'{"ph":"X","name":"aclnnMatmul_%d","ts":"%d.125","dur":%d.5,"args":{"id":%d}},\n' %
        (chance.randrange(40), 1700000000000000 + 17 * i, chance.randrange(900), i)
        for i in range(150_000)))
    write(f"{lab.source}/big.bin", noise(2_000_000, 1))
    for i in range(200):
        write(f"{lab.source}/many/{i}.csv", noise(chance.randrange(1, 2000), i))
    out, _ = finish(lab.start("pull", f"far:{lab.source}", lab.dest))
    assert tree(lab.source) == tree(lab.dest)
    got = row(out)
    # the wire takes 2.5 MB/s; what can be packed came packed
    assert got["wire_bytes"] < 0.6 * got["size_bytes"], got
    print(f"# {got['size_bytes'] / 1e6:.1f} MB, {got['wire_bytes'] / 1e6:.1f} MB on the wire, "
          f"{got['rate_mb_s']:.1f} MB/s over 2.5 MB/s ({lab.link.kind})")


def the_link_is_away_for_seconds(lab):
    write(f"{lab.source}/big.bin", noise(9_000_000, 2))
    logins = lab.host.logins()
    run = lab.start("pull", f"far:{lab.source}", lab.dest, "--shard-size", "1", "--connections",
                    "2")
    journal = f"{lab.dest}/.npuprof-pull/journal"
    wait_until(lambda: os.path.exists(journal) and os.path.getsize(journal) > 0, 60)
    lab.link.set("down")
    lab.host.kill_sessions()  # and what was connected is gone when it is back
    time.sleep(2)
    assert run.poll() is None, run.communicate()
    lab.link.set("up")
    finish(run)
    assert tree(lab.source) == tree(lab.dest)
    assert lab.host.logins() > logins + 3, "no connection was made anew"


def a_deploy_is_cut_and_goes_on(lab):
    for i in range(60):
        write(f"{lab.source}/d{i % 7}/{i}.py", b"x = %d\n" % i)
    write(f"{lab.source}/weights.bin", noise(5_000_000, 4))
    run = lab.start("deploy", "far", lab.source, "--workspace", lab.work)

    def is_sending():
        return run.poll() is not None or any(
            name.startswith(".npuprof-deploy") for name in
            (os.listdir(lab.work) if os.path.isdir(lab.work) else []))

    wait_until(is_sending, 60)
    lab.link.set("down")
    lab.host.kill_sessions()
    back = threading.Timer(1, lab.link.set, ["up"])
    back.start()
    _, err = finish(run)
    back.join()
    assert "again in" in err, f"nothing was repeated: {err}"
    assert tree(f"{lab.work}/source") == tree(lab.source)
    left = [name for name in os.listdir(lab.work) if name.startswith(".npuprof")]
    assert left == [], left


for test in (a_capture_comes_over, the_link_is_away_for_seconds, a_deploy_is_cut_and_goes_on):
    suite.run(test.__name__.replace("_", " "), with_lab(test))
sys.exit(suite.finish())
