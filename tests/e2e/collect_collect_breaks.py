#!/usr/bin/env python3
"""npuprof collect when something breaks: connections, npuprof here and there, Ctrl-C, devices."""
import glob
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True

from collect_lib import Suite  # noqa: E402
from lab_lib import Lab, codes, rows, verdicts, with_lab, WHOLE  # noqa: E402
from ssh_lib import is_alive, wait_until  # noqa: E402

suite = Suite(__doc__)


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


def a_host_that_stays_away(lab):
    """Patience comes to an end, the run does not: --resume finds it, and what it left."""
    flag = f"{lab.tmp}/flag"
    run = lab.start("--env", f"WAIT_FOR={flag}", "--patience", "0.5")
    wait_until(lambda: "waiting" in lab.log(), 25, "the run waits")
    lab.hosts["node1"].kill_sessions()
    lab.hosts["node1"].stop()
    out, err = run.communicate(timeout=100)
    report = json.loads(out)
    assert run.returncode == 4 and "COLLECT_HOST_FAILED" in codes(report), (run.returncode, err)
    Lab.write(flag, "")
    lab.hosts["node1"].start()
    assert verdicts(lab.resume()) == WHOLE and lab.runs() == 1
    # what was fetched is judged again by its manifest
    table = glob.glob(f"{lab.out}/node1/run/run_*/prof/*/ASCEND_PROFILER_OUTPUT/kernel_details.csv")
    with open(table[0], "ab") as file:
        file.write(b"\n")
    report = lab.resume(check=1)
    assert "MANIFEST_CORRUPT" in codes(report) and verdicts(report)["gate"] == "FAIL"


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


for test in (a_cut_connection_does_not_end_the_run, a_host_that_stays_away,
             killed_at_every_stage, interrupted, npuprof_is_killed_over_there,
             devices):
    suite.run(test.__name__.replace("_", " "), with_lab(suite, test))
sys.exit(suite.finish())
