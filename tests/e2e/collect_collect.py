#!/usr/bin/env python3
"""npuprof collect over real ssh on loopback: from a program here to judged captures."""
import glob
import json
import os
import shlex
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from collect_lib import FAKES, Suite  # noqa: E402
from lab_lib import Lab, codes, read, rows, verdicts, with_lab, WHOLE  # noqa: E402

suite = Suite(__doc__)


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
    report = lab.collect("--workspace", f"{lab.tmp}/my space$(x)",
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
suite.run("one host", with_lab(suite, one_host, torch=True))
for test in (programs_that_fail, without_a_verdict_it_is_3, another_machine,
             a_program_that_does_not_run_there, in_a_container, arms, strange_names, pre_checks,
             usage):
    suite.run(test.__name__.replace("_", " "), with_lab(suite, test))
suite.run("three hosts and one fails",
          with_lab(suite, three_hosts_and_one_fails, names=("node1", "node2", "node3")))
suite.run("hosts that wait for each other",
          with_lab(suite, hosts_that_wait_for_each_other, names=("node1", "node2")))
sys.exit(suite.finish())
