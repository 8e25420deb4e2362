#!/usr/bin/env python3
"""`npuprof pull` over real ssh on loopback: nothing lost, nothing wrong accepted.

What is fetched is compared byte for byte with its source after every break, kill and corruption.
The kills: --kills N of them (default 200), at random moments, of the program itself and of the
connections on the host's side.
"""
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from collect_lib import Skip, Suite  # noqa: E402
from ssh_lib import Cluster, Throttle, wait_until  # noqa: E402

MANIFEST = "npuprof_manifest.json"
suite = Suite(__doc__, [(("--kills",), {"type": int, "default": 200}),
                        (("--seed",), {"type": int, "default": 1})])


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tree(top):
    """{relative path: bytes} of the regular files, without npuprof's own."""
    found = {}
    for place, dirs, names in os.walk(os.fsencode(top)):
        dirs[:] = [name for name in dirs if name != b".npuprof-pull"]
        for name in names:
            path = os.path.join(place, name)
            if not os.path.islink(path) and not name.startswith(MANIFEST.encode()):
                found[os.path.relpath(path, os.fsencode(top))] = read(path)
    return found


def same(source, dest):
    a, b = tree(source), tree(dest)
    assert a.keys() == b.keys(), f"files differ: {sorted(a.keys() ^ b.keys())[:5]}"
    for path in a:
        assert a[path] == b[path], f"{path} differs"


def nothing_wrong(source, dest):
    """Every file that has its name is the source's."""
    a = tree(source)
    for path, data in tree(dest).items():
        assert a.get(path) == data, f"{path} was accepted and is wrong"


def row(done):
    return json.loads(done.stdout)["tables"][0]["rows"][0]


def column(done, name):
    table = json.loads(done.stdout)["tables"][0]
    names = [c["name"] for c in table["columns"]]
    value = table["rows"][0]
    return value[name] if isinstance(value, dict) else value[names.index(name)]


def codes(done):
    return [f["code"] for f in json.loads(done.stdout)["findings"]]


class Lab:
    """A host and a pull from it."""

    def __init__(self, tmp):
        self.tmp = tmp
        self.cluster = Cluster(tmp)
        self.host = self.cluster.host("node1")
        self.source, self.dest = os.path.join(tmp, "source"), os.path.join(tmp, "dest")
        os.makedirs(self.source)

    def words(self, *more, host="node1", dest=None):
        return ["pull", f"{host}:{self.source}", dest or self.dest, "--json",
                "--ssh-config", self.cluster.config, *more]

    def pull(self, *more, check=0, **how):
        return suite.call(*self.words(*more, **how), env=self.cluster.env, check=check)

    def start(self, *more, **how):
        return subprocess.Popen([suite.npuprof, *self.words(*more, **how)],
                                env={**os.environ, "LC_ALL": "C.UTF-8", **self.cluster.env},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def close(self):
        self.cluster.close()


def with_lab(function):
    def run(tmp):
        lab = Lab(tmp)
        try:
            function(lab)
        finally:
            lab.close()
    return run


def noise(n, seed=7):
    return random.Random(seed).randbytes(n)


# ── what a pull is ──

def names_and_sizes(lab):
    files = {"a b/c'd.csv": b"x\n" * 1000, "quote\"$(touch pwned)`.json": b"{}",
             "new\nline": b"1", "back\\slash": b"2", "-rf": b"3", "empty": b"", "中文/跟踪.json": b"4" * 70000,
             "big.bin": noise(5_300_000), ".hidden/x": b"5", "percent%20": b"6", "tail ": b"7"}
    for name, data in files.items():
        write(os.path.join(lab.source, name), data)
    write(os.path.join(lab.source.encode(), b"latin\xe9.txt"), b"8")
    os.symlink("/etc/passwd", os.path.join(lab.source, "link"))
    before = time.time()
    done = lab.pull("--shard-size", "1")
    same(lab.source, lab.dest)
    assert "PULL_LINKS" in codes(done)
    assert not os.path.lexists(os.path.join(lab.dest, "link"))
    assert not os.path.exists(os.path.join(lab.dest, ".npuprof-pull"))
    assert os.path.getmtime(os.path.join(lab.dest, "big.bin")) >= before - 1
    manifest = json.loads(read(os.path.join(lab.dest, MANIFEST)))
    listed = {entry["path"]: entry for entry in manifest["files"]}
    assert listed["big.bin"]["sha256"] == hashlib.sha256(files["big.bin"]).hexdigest()
    assert listed["new\nline"]["size"] == 1


def again_fetches_nothing(lab):
    for i in range(30):
        write(f"{lab.source}/d/{i}", noise(1000, i))
    write(f"{lab.source}/big", noise(3_000_000))
    lab.pull()
    done = lab.pull()
    assert column(done, "wire_bytes") == 0 and column(done, "had_files") == 31
    write(f"{lab.source}/new", b"new")
    done = lab.pull("--md5")
    same(lab.source, lab.dest)
    assert column(done, "had_files") == 31 and column(done, "files") == 32
    listed = json.loads(read(f"{lab.dest}/{MANIFEST}"))["files"]
    assert [e["md5"] for e in listed if e["path"] == "new"] == [hashlib.md5(b"new").hexdigest()]


def times_are_kept_when_asked(lab):
    write(f"{lab.source}/x", b"x")
    os.utime(f"{lab.source}/x", ns=(10**18, 10**18))
    lab.pull("--preserve")
    assert os.stat(f"{lab.dest}/x").st_mtime_ns == 10**18


def ranks_and_patterns(lab):
    suite.call("synth", f"{lab.source}/set", "--ranks", "4", "--format", "text,db", check=0)
    done = lab.pull("--ranks", "1,3", "--only", "kernel_details.csv,*.db")
    got = {os.path.basename(p).decode() for p in tree(lab.dest)}
    assert got == {"kernel_details.csv", "analysis.db", "ascend_pytorch_profiler_1.db",
                   "ascend_pytorch_profiler_3.db"}, got
    assert column(done, "files") == 6
    assert lab.pull("--ranks", "9", check=4, dest=lab.tmp + "/none").stdout == ""
    plan = json.loads(lab.pull("--dry-run", dest=lab.tmp + "/none").stdout)
    assert not os.path.exists(lab.tmp + "/none")
    assert len(plan["tables"][0]["rows"]) == len(tree(lab.source))
    lab.pull(dest=lab.tmp + "/all")
    captures = json.loads(read(f"{lab.tmp}/all/{MANIFEST}"))["captures"]
    assert sorted(c["rank"] for c in captures) == [0, 1, 2, 3]
    assert all(c["steps"] == [12, 13] and c["span_ns"] > 0 for c in captures)


def a_single_file_and_a_home(lab):
    write(f"{lab.host.home}/prof/x.csv", b"1,2\n")
    suite.call("pull", "node1:~/prof/x.csv", lab.dest, "--ssh-config", lab.cluster.config,
               env=lab.cluster.env, check=0)
    assert read(f"{lab.dest}/x.csv") == b"1,2\n"


def in_a_container(lab):
    lab.host.program("docker", """#!/bin/sh
[ "$1" = exec ] || exit 9
shift
[ "$1" = -i ] && shift
[ "$1" = train ] || { echo "No such container: $1" >&2; exit 1; }
shift
exec "$@"
""")
    write(f"{lab.source}/a b", b"x" * 3000)
    write(f"{lab.source}/c", b"y" * 3000)
    lab.pull("--container", "train")
    same(lab.source, lab.dest)
    done = lab.pull("--container", "other", dest=lab.tmp + "/d2", check=None)
    assert done.returncode in (2, 4) and "No such container" in done.stderr, \
        done.stderr


# ── breaks ──

def kills(lab):
    chance = random.Random(suite.options.seed)
    for i in range(40):
        write(f"{lab.source}/small/{i}.csv", noise(chance.randrange(1, 9000), i))
    for i in range(3):
        write(f"{lab.source}/big{i}.bin", noise(2_500_000 + i, i))
    write(f"{lab.source}/trace.json", b'{"ph": "X", "ts": 123456}\n' * 120_000)
    count, whole, resumed = 0, 0, 0
    while count < suite.options.kills:
        run = lab.start("--shard-size", "1", "--connections", "2")
        until = time.monotonic() + chance.random() * 1.2
        while run.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        if run.poll() is None:
            count += 1
            if chance.random() < 0.75:
                run.kill()
            else:
                lab.host.kill_sessions()
        out, _ = run.communicate(timeout=120)
        nothing_wrong(lab.source, lab.dest)
        if run.returncode == 0:
            same(lab.source, lab.dest)
            suite.call("pull", "--verify", lab.dest, check=0)
            whole += 1
            resumed += json.loads(out)["tables"][0]["rows"] != []
            shutil.rmtree(lab.dest)
    lab.pull("--shard-size", "1")
    same(lab.source, lab.dest)
    assert whole + 1 > 1 or count, "no transfer was completed"
    print(f"# {count} kills, {whole} transfers completed between them")


def a_cut_connection_is_resumed_by_itself(lab):
    write(f"{lab.source}/big", noise(12_000_000))
    throttle = Throttle(lab.host.port, 20_000_000)
    try:
        lab.cluster.entry("slow", throttle.port, "HostKeyAlias node1", "StrictHostKeyChecking yes")
        with open(lab.cluster.known_hosts, "a", encoding="utf-8") as file:
            file.write(f"node1 {' '.join(lab.host.key.split()[:2])}\n")
        run = lab.start("--shard-size", "1", "--connections", "1", host="slow")
        for _ in range(2):
            mark = throttle.passed + 2_000_000
            wait_until(lambda: throttle.passed > mark or run.poll() is not None, 60)
            throttle.cut()
        out, err = run.communicate(timeout=120)
        assert run.returncode == 0, (out, err)
        same(lab.source, lab.dest)
    finally:
        throttle.close()


def interrupted_by_the_user(lab):
    write(f"{lab.source}/big", noise(40_000_000))
    run = lab.start("--shard-size", "1", "--connections", "1")
    wait_until(lambda: os.path.exists(f"{lab.dest}/.npuprof-pull/journal") and
               os.path.getsize(f"{lab.dest}/.npuprof-pull/journal") > 0, 60)
    run.terminate()
    out, err = run.communicate(timeout=60)
    assert run.returncode == 4, (run.returncode, out, err)
    assert "PULL_INCOMPLETE" in out.decode()
    nothing_wrong(lab.source, lab.dest)
    done = lab.pull("--shard-size", "1")
    assert column(done, "resumed_bytes") > 0
    same(lab.source, lab.dest)


def two_at_a_time(lab):
    write(f"{lab.source}/big", noise(60_000_000))
    run = lab.start("--shard-size", "1", "--connections", "1")
    wait_until(lambda: os.path.exists(f"{lab.dest}/.npuprof-pull/journal"), 60)
    done = lab.pull(check=None)
    run.kill()
    run.communicate()
    assert done.returncode == 4 and "another pull" in done.stderr, (done.returncode, done.stderr)


# ── corruption ──

FLIP = """#!/usr/bin/python3
import os, subprocess, sys
data = subprocess.run(["/usr/bin/dd", *sys.argv[1:]], stdout=subprocess.PIPE, check=True).stdout
flag = {flag!r}
if {always} or not os.path.exists(flag):
    open(flag, "w").close()
    if len(data) > 1000:
        data = data[:777] + bytes([data[777] ^ 1]) + data[778:]
sys.stdout.buffer.write(data)
"""


def one_wrong_byte_is_found_and_fetched_again(lab):
    write(f"{lab.source}/big", noise(4_000_000))
    lab.host.program("dd", FLIP.format(flag=lab.tmp + "/flag", always=False))
    done = lab.pull("--shard-size", "1", "--no-compress")
    assert os.path.exists(lab.tmp + "/flag")
    assert column(done, "refetched") == 1, done.stdout
    same(lab.source, lab.dest)


def a_byte_that_stays_wrong_is_refused(lab):
    write(f"{lab.source}/big", noise(3_000_000))
    write(f"{lab.source}/tiny", b"good")
    lab.host.program("dd", FLIP.format(flag=lab.tmp + "/flag", always=True))
    done = lab.pull("--shard-size", "1", "--no-compress", check=1)
    assert "PULL_SOURCE_CHANGED" in codes(done)
    assert list(tree(lab.dest)) == [b"tiny"]


def a_packed_stream_that_is_damaged(lab):
    write(f"{lab.source}/trace.json", b'{"a": 1}\n' * 400_000)
    lab.host.program("zstd", FLIP.replace("/usr/bin/dd", shutil.which("zstd") or "zstd")
                     .replace("subprocess.PIPE,", "subprocess.PIPE, stdin=sys.stdin,")
                     .replace("len(data) > 1000", "len(data) > 100").replace("777", "77")
                     .replace("778", "78").format(flag=lab.tmp + "/flag", always=False))
    lab.pull("--shard-size", "1")
    assert os.path.exists(lab.tmp + "/flag"), "the fake zstd was not asked"
    same(lab.source, lab.dest)


def a_file_that_changes_meanwhile(lab):
    write(f"{lab.source}/log", noise(3_000_000))
    write(f"{lab.source}/still", noise(200_000))
    lab.host.program("dd", f"""#!/bin/sh
/usr/bin/dd "$@"
status=$?
echo more >> {lab.source}/log
: > {lab.tmp}/flag
exit $status
""")
    # the digest is of what it became, whichever of the two begins first
    lab.host.program("openssl", f"""#!/bin/sh
while ! [ -e {lab.tmp}/flag ]; do sleep 0.05; done
exec /usr/bin/openssl "$@"
""")
    done = lab.pull("--shard-size", "1", "--no-compress", "--connections", "1", check=1)
    assert "PULL_SOURCE_CHANGED" in codes(done), done.stdout
    assert b"still" in tree(lab.dest) and b"log" not in tree(lab.dest)


def files_that_are_there_and_differ(lab):
    write(f"{lab.source}/a", b"right")
    write(f"{lab.source}/b", b"right")
    write(f"{lab.dest}/a", b"wrong")
    write(f"{lab.dest}/b", b"of another size")
    done = lab.pull(check=1)
    assert "PULL_FILE_DIFFERS" in codes(done)
    assert read(f"{lab.dest}/a") == b"wrong" and read(f"{lab.dest}/b") == b"of another size"
    lab.pull("--force")
    same(lab.source, lab.dest)


def a_manifest_finds_damage(lab):
    text = b"a,b\n1,2\n3,4\n" * 100
    for name in ("crlf.csv", "flip.bin", "gone.csv", "fine.csv", "cut.csv"):
        write(f"{lab.source}/{name}", text)
    lab.pull()
    write(f"{lab.dest}/crlf.csv", text.replace(b"\n", b"\r\n"))
    write(f"{lab.dest}/flip.bin", b"A" + text[1:])
    write(f"{lab.dest}/cut.csv", text[:-3])
    write(f"{lab.dest}/extra.csv", b"")
    os.remove(f"{lab.dest}/gone.csv")
    done = suite.call("pull", "--verify", lab.dest, "--json", check=1)
    assert sorted(codes(done)) == ["MANIFEST_CORRUPT", "MANIFEST_CRLF", "MANIFEST_EXTRA",
                                   "MANIFEST_MISSING_FILE"], codes(done)
    evidence = {f["code"]: {e["file"] for e in f["evidence"]}
                for f in json.loads(done.stdout)["findings"]}
    assert evidence["MANIFEST_CRLF"] == {"crlf.csv"}
    assert evidence["MANIFEST_CORRUPT"] == {"flip.bin", "cut.csv"}
    assert evidence["MANIFEST_EXTRA"] == {"extra.csv"}
    lab.pull("--force")
    suite.call("pull", "--verify", lab.dest, check=0)


# ── surroundings ──

def a_full_disk(lab):
    mount = lab.tmp + "/small"
    os.makedirs(mount)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", mount],
                      capture_output=True).returncode != 0:
        raise Skip("a tmpfs cannot be mounted here")
    try:
        write(f"{lab.source}/big", noise(60_000_000))
        done = lab.pull(check=None, dest=mount + "/d")
        assert done.returncode == 4 and "not enough room" in done.stderr, done.stderr
        write(f"{lab.source}/big", noise(20_000_000))
        run = lab.start("--shard-size", "1", "--connections", "1", "--no-compress",
                        dest=mount + "/d")
        journal = mount + "/d/.npuprof-pull/journal"
        wait_until(lambda: os.path.exists(journal) and os.path.getsize(journal) > 0, 60)
        try:
            with open(mount + "/filler", "wb", buffering=0) as file:
                while file.write(bytes(65536)):
                    pass
        except OSError:
            pass
        out, err = run.communicate(timeout=60)
        if run.returncode == 0:
            raise Skip("the transfer was done before the disk was full")
        assert run.returncode == 4 and b"space" in out + err, (out, err)
        nothing_wrong(lab.source, mount + "/d")
        os.remove(mount + "/filler")
        lab.pull(dest=mount + "/d")
        same(lab.source, mount + "/d")
    finally:
        subprocess.run(["umount", "-l", mount], check=False)


def another_host_key(lab):
    write(f"{lab.source}/x", b"x")
    lab.cluster.forget()
    done = lab.pull(check=4)
    assert "key" in done.stderr and not os.path.exists(lab.dest + "/x"), done.stderr


def a_host_that_lists_lies(lab):
    for name in ("../evil", "/etc/evil", "a/../../evil", "a//b", ""):
        lab.host.program("find", f"""#!/bin/sh
case "$*" in *maxdepth*) exit 0 ;; esac
printf 'f 1 1.0 644 %s\\0' '{name}'
""")
        done = lab.pull(check=None)
        assert done.returncode == 4 and "strange" in done.stderr, (name, done.stderr)
        assert not os.path.exists(lab.tmp + "/evil")
    lab.host.program("find", "#!/bin/sh\ncase \"$*\" in *maxdepth*) exit 0 ;; esac\n"
                             "printf 'f 1 1.0 644 ./x'\n")
    assert lab.pull(check=None).returncode == 4


def nothing_to_verify_with(lab):
    bare = lab.tmp + "/bare"
    os.makedirs(bare)
    for tool in ("sh", "find", "dd", "cat", "xargs", "basename", "dirname"):
        os.symlink(shutil.which(tool), f"{bare}/{tool}")
    write(f"{lab.source}/a", b"1" * 10)
    write(f"{lab.source}/b", b"2" * 3_000_000)
    done = suite.call("pull", lab.source, lab.dest, "--json", env={"PATH": bare}, check=3)
    assert "PULL_UNVERIFIED" in codes(done)
    same(lab.source, lab.dest)


def no_such_directory(lab):
    done = suite.call("pull", f"node1:{lab.tmp}/nowhere", lab.dest, "--ssh-config",
                      lab.cluster.config, env=lab.cluster.env, check=2)
    assert "no such file" in done.stderr


for test in (names_and_sizes, again_fetches_nothing, times_are_kept_when_asked, ranks_and_patterns,
             a_single_file_and_a_home, in_a_container, a_cut_connection_is_resumed_by_itself,
             interrupted_by_the_user, two_at_a_time, one_wrong_byte_is_found_and_fetched_again,
             a_byte_that_stays_wrong_is_refused, a_packed_stream_that_is_damaged,
             a_file_that_changes_meanwhile, files_that_are_there_and_differ,
             a_manifest_finds_damage, a_full_disk, another_host_key, a_host_that_lists_lies,
             nothing_to_verify_with, no_such_directory, kills):
    suite.run(test.__name__.replace("_", " "), with_lab(test))
sys.exit(suite.finish())
