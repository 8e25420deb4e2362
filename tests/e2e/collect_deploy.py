#!/usr/bin/env python3
"""`npuprof deploy` over real ssh on loopback: what changed travels, as a whole or not at all."""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from collect_lib import Suite  # noqa: E402
from ssh_lib import Cluster  # noqa: E402

suite = Suite(__doc__, [(("--kills",), {"type": int, "default": 15})])


def write(path, data, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)


def tree(top):
    """{path: content, or the target of a link}, and whether a file may be run."""
    found = {}
    for place, dirs, names in os.walk(top):
        for name in names + [d for d in dirs if os.path.islink(os.path.join(place, d))]:
            path = os.path.join(place, name)
            key = os.path.relpath(path, top)
            if os.path.islink(path):
                found[key] = os.readlink(path)
            else:
                with open(path, "rb") as file:
                    found[key] = (file.read(), bool(os.stat(path).st_mode & 0o100))
    return found


class Lab:
    def __init__(self, tmp):
        self.tmp = tmp
        self.cluster = Cluster(tmp)
        self.host = self.cluster.host("node1")
        self.source = os.path.join(tmp, "model")
        self.workspace = os.path.join(tmp, "far", "work space")
        self.there = os.path.join(self.workspace, "model")
        os.makedirs(self.source)

    def words(self, *more):
        return ["deploy", "node1", self.source, "--workspace", self.workspace, "--json",
                "--ssh-config", self.cluster.config, *more]

    def deploy(self, *more, check=0):
        return suite.call(*self.words(*more), env=self.cluster.env, check=check)

    def leftovers(self):
        return [name for name in os.listdir(self.workspace) if name.startswith(".npuprof")]


def with_lab(function):
    def run(tmp):
        lab = Lab(tmp)
        try:
            function(lab)
        finally:
            lab.cluster.close()
    return run


def table(done, name):
    for entry in json.loads(done.stdout)["tables"]:
        if entry["id"] == name:
            names = [c["name"] for c in entry["columns"]]
            return [dict(zip(names, row)) for row in entry["rows"]]
    raise AssertionError(f"no table {name}")


def codes(done):
    return {f["code"] for f in json.loads(done.stdout)["findings"]}


def a_tree_arrives(lab):
    write(f"{lab.source}/run.sh", b"#!/bin/sh\r\necho hi\r\n", 0o755)
    write(f"{lab.source}/a b/c'd \"e\".py", b"x = 1\n")
    write(f"{lab.source}/new\nline.txt", b"1\n")
    write(f"{lab.source}/back\\slash.md", b"2\n")
    write(f"{lab.source}/data.bin", b"a\r\nb\r\n")
    write(f"{lab.source}/-rf", b"3")
    write(f"{lab.source}/中文/配置.yaml", b"k: 1\n")
    write(f"{lab.source}/empty.cfg", b"")
    write(f"{lab.source}/.git/config", b"secret")
    write(f"{lab.source}/pkg/__pycache__/x.pyc", b"junk")
    os.symlink("run.sh", f"{lab.source}/go")
    os.symlink("/etc/passwd", f"{lab.source}/out")
    os.symlink("../../etc", f"{lab.source}/pkg/up")
    done = lab.deploy()
    there = tree(lab.there)
    expected = tree(lab.source)
    for gone in (".git/config", "pkg/__pycache__/x.pyc", "out", "pkg/up"):
        del expected[gone]
    expected["run.sh"] = (b"#!/bin/sh\necho hi\n", True)
    assert there == expected, (there.keys() ^ expected.keys(), there)
    assert {"DEPLOY_CRLF", "DEPLOY_LEFT_OUT"} <= codes(done)
    with open(f"{lab.source}/run.sh", "rb") as file:
        assert b"\r\n" in file.read(), "the tree here was changed"
    assert lab.leftovers() == []


def only_changes_travel(lab):
    for i in range(50):
        write(f"{lab.source}/d/{i}.py", b"v = %d\n" % i)
    write(f"{lab.source}/weights.bin", random.Random(1).randbytes(2_000_000))
    assert table(lab.deploy(), "deployed")[0]["new"] == 51
    inode = os.stat(f"{lab.there}/weights.bin").st_ino
    done = table(lab.deploy(), "deployed")[0]
    assert done["sent_bytes"] == 0 and done["same"] == 51
    # the same size and the same time, and another content
    path = f"{lab.source}/d/7.py"
    stat = os.stat(path)
    write(path, b"v = 8\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.chmod(f"{lab.source}/d/9.py", 0o755)
    done = lab.deploy()
    assert [(r["path"], r["change"]) for r in table(done, "changes")] == [
        ("d/7.py", "changed"), ("d/9.py", "mode")]
    assert table(done, "deployed")[0]["sent_bytes"] < 2000
    assert tree(lab.there) == tree(lab.source)
    assert os.stat(f"{lab.there}/weights.bin").st_ino == inode, "it was copied"


def extra_stays_unless_deleted(lab):
    write(f"{lab.source}/a.py", b"1")
    write(f"{lab.source}/b/c.py", b"2")
    lab.deploy()
    write(f"{lab.there}/output.log", b"precious")
    os.remove(f"{lab.source}/b/c.py")
    done = lab.deploy()
    assert "DEPLOY_EXTRA" in codes(done)
    assert tree(lab.there)["output.log"] == (b"precious", False)
    plan = lab.deploy("--delete", "--dry-run")
    assert {r["path"] for r in table(plan, "changes")} == {"b/c.py", "output.log"}
    assert "output.log" in tree(lab.there)
    lab.deploy("--delete")
    assert tree(lab.there) == tree(lab.source)
    assert not os.path.exists(f"{lab.there}/b")


def a_dry_run_changes_nothing(lab):
    write(f"{lab.source}/a.py", b"1")
    done = lab.deploy("--dry-run")
    assert [r["path"] for r in table(done, "changes")] == ["a.py"]
    assert not os.path.exists(lab.workspace)


def excludes(lab):
    write(f"{lab.source}/a.py", b"1")
    write(f"{lab.source}/x.ckpt", b"1")
    write(f"{lab.source}/data/y.py", b"1")
    write(f"{lab.source}/.git/config", b"1")
    lab.deploy("--exclude", "*.ckpt", "--exclude", "data/")
    assert set(tree(lab.there)) == {"a.py"}
    lab.deploy("--no-default-excludes")
    assert set(tree(lab.there)) == {"a.py", "x.ckpt", "data/y.py", ".git/config"}


def a_name_that_is_taken(lab):
    write(f"{lab.source}/a.py", b"1")
    os.makedirs(lab.workspace)
    os.symlink("/etc", lab.there)
    done = lab.deploy(check=4)
    assert "link or a file" in done.stderr and not os.path.exists("/etc/a.py")
    os.remove(lab.there)
    write(lab.there, b"a file")
    lab.deploy(check=4)


def damage_on_the_way_is_not_switched_in(lab):
    write(f"{lab.source}/a.py", b"old")
    lab.deploy()
    write(f"{lab.source}/a.py", b"new")
    lab.host.program("tar", """#!/bin/sh
/usr/bin/tar "$@" || exit
for last in "$@"; do :; done
printf X >> "$last/a.py"
""")
    done = lab.deploy(check=4)
    assert "did not arrive" in done.stderr, done.stderr
    assert tree(lab.there) == {"a.py": (b"old", False)}
    assert lab.leftovers() == []


DIES = """#!/bin/sh
for last in "$@"; do :; done
case "$*" in
*--exchange*) exit 1 ;; # an older mv
*/tree*) if [ -e {flag} ]; then rm {flag}; kill -9 $PPID; {more}; exit 1; fi ;;
esac
exec /usr/bin/mv "$@"
"""


def a_switch_that_dies_between_its_renames(lab):
    """The old tree is aside, the new one not in: it is given back, at once or by the next call."""
    flag = lab.tmp + "/flag"
    write(f"{lab.source}/a.py", b"old")
    lab.deploy()
    write(f"{lab.there}/output.log", b"precious")
    write(f"{lab.source}/a.py", b"new")
    write(flag, b"")
    lab.host.program("mv", DIES.format(flag=flag, more=":"))
    lab.deploy(check=4)
    assert not os.path.exists(flag), "the switch was not cut"
    assert tree(lab.there) == {"a.py": (b"old", False), "output.log": (b"precious", False)}
    assert lab.leftovers() == []
    # nobody is left to clean up
    write(flag, b"")
    write(lab.tmp + "/pid", b"")
    lab.host.program("mv", DIES.format(
        flag=flag, more=f"kill -9 $(cat {lab.tmp}/pid); sleep 0.2"))
    run = subprocess.Popen([suite.npuprof, *lab.words()], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, env={**os.environ, **lab.cluster.env})
    write(lab.tmp + "/pid", b"%d" % run.pid)
    run.wait(timeout=60)
    assert run.returncode == -signal.SIGKILL, run.returncode
    assert not os.path.exists(lab.there), "the moment was missed"
    old = os.path.join(lab.workspace, lab.leftovers()[0])
    os.utime(old, (1, 1))  # old enough to be swept up
    lab.deploy()
    assert tree(lab.there) == {"a.py": (b"new", False), "output.log": (b"precious", False)}


def links_over_there_are_not_followed(lab):
    outside = lab.tmp + "/outside"
    write(f"{lab.source}/d/a.py", b"1")
    write(f"{lab.source}/d-/b.py", b"1")
    lab.deploy()
    os.makedirs(outside)
    shutil.rmtree(f"{lab.there}/d")
    os.symlink(outside, f"{lab.there}/d")
    done = lab.deploy(check=4)
    assert "is a link there" in done.stderr, done.stderr
    assert os.listdir(outside) == [] and lab.leftovers() == []


def a_directory_makes_way_for_a_file_only_with_delete(lab):
    write(f"{lab.source}/x", b"a file here")
    write(f"{lab.there}/x/precious", b"1")
    lab.deploy(check=4)
    assert tree(lab.there) == {"x/precious": (b"1", False)} and lab.leftovers() == []
    lab.deploy("--delete")
    assert tree(lab.there) == tree(lab.source)


def only_what_is_here_is_digested_there(lab):
    write(f"{lab.source}/a.py", b"1")
    write(f"{lab.source}/b.py", b"of one size")
    write(f"{lab.there}/a.py", b"1")
    write(f"{lab.there}/b.py", b"of another size")
    write(f"{lab.there}/huge.bin", b"output")
    lab.host.program("openssl", f"""#!/bin/sh
echo "$@" >> {lab.tmp}/asked
exec /usr/bin/openssl "$@"
""")
    lab.deploy("--dry-run")
    with open(lab.tmp + "/asked", encoding="utf-8") as file:
        asked = file.read()
    assert "a.py" in asked and "huge" not in asked and "b.py" not in asked, asked


def kills(lab):
    """Whatever is killed when: the tree is the old or the new one, never a mixture."""
    chance = random.Random(5)
    versions = []
    for version in range(2):
        versions.append({f"d{i}/{i}.py": b"version %d of %d\n" % (version, i) for i in range(60)})
    for path, data in versions[0].items():
        write(f"{lab.source}/{path}", data)
    lab.deploy()
    now, seen = 0, set()
    for _ in range(suite.options.kills):
        now = 1 - now
        for path, data in versions[now].items():
            write(f"{lab.source}/{path}", data)
        run = subprocess.Popen([suite.npuprof, *lab.words()], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL,
                               env={**os.environ, **lab.cluster.env})
        time.sleep(chance.random() * 1.5)
        if chance.random() < 0.5:
            lab.host.kill_sessions()
        else:
            run.send_signal(signal.SIGKILL)
        run.wait(timeout=60)
        time.sleep(0.1)
        there = {path: data for path, (data, _) in tree(lab.there).items()}
        assert there in versions, "a mixture"
        seen.add(versions.index(there))
    lab.deploy()
    assert {path: data for path, (data, _) in tree(lab.there).items()} == versions[now]
    print(f"# {suite.options.kills} kills; trees seen after them: {sorted(seen)}")
    shutil.rmtree(lab.workspace)


for test in (a_tree_arrives, only_changes_travel, extra_stays_unless_deleted,
             a_dry_run_changes_nothing, excludes, a_name_that_is_taken,
             damage_on_the_way_is_not_switched_in, a_switch_that_dies_between_its_renames,
             links_over_there_are_not_followed, a_directory_makes_way_for_a_file_only_with_delete,
             only_what_is_here_is_digested_there, kills):
    suite.run(test.__name__.replace("_", " "), with_lab(test))
sys.exit(suite.finish())
