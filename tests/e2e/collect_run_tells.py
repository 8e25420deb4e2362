#!/usr/bin/env python3
"""npuprof run: what it says when something is wrong, and that the commands which it prints work."""
import glob
import json
import os
import subprocess
import sys

from collect_lib import Suite
from run_lib import LAUNCH, TARGET, INFER, Home, codes, finding, rows


def usage(suite, tmp):
    home = Home(suite, tmp)
    for options, command, part in (
            (["--target", TARGET], [], "no command"),
            ([], ["true"], "nothing to record"),
            (["--target", "DiT.forward"], ["true"], "MODULE:QUALNAME"),
            (["--target", TARGET, "--ranks", "3-1"], ["true"], "--ranks"),
            (["--target", TARGET, "--level", "l1"], ["true"], "Level1"),
            (["--target", TARGET, "--warmup", "-1"], ["true"], "--warmup"),
            (["--target", TARGET, "--profile", "best"], ["true"], "kernel, framework"),
            (["--preset", "nothing"], ["true"], "--list-presets"),
            (["--preset", "lightx2v"], ["true"], "MiniMaxH3TransformerInfer.infer"),
            (["--preset", "cann-recipes"], ["true"], "--watch"),
            (["--target", TARGET, "--stage", "a=b:c"], ["true"], "--collectives"),
            (["--target", TARGET, "--call", "0"], ["true"], "from 1 on"),
            (["--target", TARGET, "--active", "0"], ["true"], "from 1 on"),
            (["--collectives", "--stage", "a=b:c", "--step-anchor", "d"], ["true"], "use one of a"),
            (["--collectives", "--stage", "a=b:c", "--request-anchor", "d"], ["true"],
             "use one of a"),
            (["--collectives", "--request-anchor", "d"], ["true"], "--stage d=MODULE:QUALNAME"),
            (["--target", TARGET], ["/nowhere/python3", "infer.py"], "the right path"),
            (["--target", TARGET], ["no-such-command-anywhere"], "in PATH"),
            (["--target", TARGET], ["model.py"], "python3 model.py"),
            (["--target", TARGET], ["./model.py"], "python3 ./model.py")):
        done = subprocess.run([suite.npuprof, *home.words(*options, command=command)], cwd=tmp,
                              env=home.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and part in done.stderr, f"{options} {command}: {done}"
        assert "run directory" not in done.stderr, done  # it is gone again
        assert home.dirs() == [], home.dirs()


def out_cannot_be_written(suite, tmp):
    home = Home(suite, tmp)
    os.mkdir(f"{tmp}/read-only", 0o500)
    places = [f"{tmp}/model.py/runs", "/proc/runs", f"{tmp}/model.py", f"{tmp}/{'x' * 300}"]
    for out in places + ([f"{tmp}/read-only"] if os.geteuid() else []):
        done = subprocess.run([suite.npuprof, "run", "--out", out, "--target", TARGET, "--",
                               home.python, "infer.py"], cwd=tmp, env=home.env,
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 4 and "--out npuprof-runs" in done.stderr, done
        assert "step" not in done.stdout, "the command was started"


def exports_that_lie(suite, tmp):
    home = Home(suite, tmp)
    report = home.run("--target", TARGET, FAKE_NPU_ANALYSE="lie")
    assert rows(report, "captures")[0]["export"] == "parser", report
    for mode in ("lie", "mindstudio", "fail"):
        report = home.run("--target", TARGET, status=1, FAKE_NPU_ANALYSE=mode,
                          FAKE_NPU_PARSER="fail")
        failed = finding(report, "EXPORT_FAILED")
        assert report["verdict"] == "FAIL" and "analyse(sys.argv[1]" in failed["command"], failed
        assert codes(report).count("EXPORT_FAILED") == 1, codes(report)
        assert rows(report, "captures")[0]["deliverables"] is False, report
    report = home.run("--target", TARGET, "--export-timeout", "1", status=1,
                      FAKE_NPU_ANALYSE="hang", FAKE_NPU_PARSER="fail")
    assert "EXPORT_FAILED" in codes(report), report
    # what the printed command does: the dump is good, the exporter was not
    again = subprocess.run(["sh", "-c", finding(report, "EXPORT_FAILED")["command"]], cwd=tmp,
                           env=home.env, capture_output=True, timeout=60)
    assert again.returncode == 0, again
    done = suite.call("run", "--finish", home.dirs()[-1], "--json", env=home.env)
    assert json.loads(done.stdout)["verdict"] == "PASS", done.stdout


def target_not_reached(suite, tmp):
    home = Home(suite, tmp)

    def why(*options, target=TARGET, command=None, **env):
        report = home.run("--target", target, *options, command=command, status=1, **env)
        assert report["verdict"] == "FAIL", report
        return finding(report, "TARGET_NOT_REACHED")

    assert "No Python process" in why(command=["true"])["detail"]
    assert "PYTHONPATH" in why(command=[home.python, "-I", "-c", "pass"])["advice"]
    never = why(target="nowhere.dit:DiT.forward")
    assert "never imported" in never["detail"], never
    typo = why(target="model:DiT.forwrad")
    assert "--target model:DiT.forward" in typo["command"], typo
    few = why("--warmup", "20")
    assert "called 8 times" in few["detail"] and "call 21" in few["detail"], few
    assert "--warmup 7" in few["command"], few
    # and that command works
    assert subprocess.run(["sh", "-c", few["command"].replace("npuprof", suite.npuprof, 1)],
                          cwd=tmp, env=home.env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0
    assert "--ranks all" in why("--ranks", "3")["command"]
    # a module that nobody imported: where the name was defined, else what is spelt like it
    for target in ("elsewhere.dit:DiT.forward", "modle:DiT.forward"):
        assert "--target model:DiT.forward" in why(target=target)["command"], target


def commands_are_whole(suite, tmp):
    """The printed command is the run again, with one thing changed: pasted, it works."""
    home = Home(suite, tmp)
    options = ["--warmup", "1", "--active", "2", "--level", "Level2", "--aic-metrics", "Memory",
               "--with-stack", "--no-shapes", "--with-memory", "--export-type", "text,db",
               "--phase", "both", "--name", "a b", "--grace", "7", "--export-timeout", "300",
               "--profile", "framework", "--pre-check", "echo 'x y'", "--ranks", "0"]
    report = home.run("--target", "model:DiT.forwrad", "--target", "model:DiT.never", *options,
                      status=1)
    command = finding(report, "TARGET_NOT_REACHED")["command"]
    # both targets stay, the one that was wrong is put right
    assert "--target model:DiT.forward " in command and "--target model:DiT.never" in command, command
    env = {**home.env, "PATH": os.path.dirname(suite.npuprof) + ":" + home.env["PATH"]}
    done = subprocess.run(["sh", "-c", command], cwd=tmp, env=env, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done
    first, second = [json.load(open(f"{run}/run.json")) for run in home.dirs()]
    for name in ("call", "warmup", "active", "ranks", "level", "aic_metrics", "with_stack",
                 "record_shapes", "profile_memory", "export_type", "phase", "name", "gate_profile",
                 "command", "collectives"):
        assert first[name] == second[name], name
    report = home.run("--collectives", "--stage", "dit=model:DiT.forward", "--stage",
                      "req=model:DiT.encode_prompt", "--step-anchor", "dit", "--request-anchor",
                      "req", status=1)
    command = finding(report, "COLLECTIVES_MISSING")["command"]
    for part in ("--stage dit=model:DiT.forward", "--stage req=model:DiT.encode_prompt",
                 "--step-anchor dit", "--request-anchor req"):
        assert part in command, command


def several_dumps_fail_as_one(suite, tmp):
    home = Home(suite, tmp)
    home.write("launch.py", LAUNCH)
    report = home.run("--target", TARGET, "--ranks", "all", command=[home.python, "launch.py"],
                      status=1, FAKE_NPU_ANALYSE="fail", FAKE_NPU_PARSER="fail")
    failed = finding(report, "EXPORT_FAILED")
    assert codes(report).count("EXPORT_FAILED") == 1 and "2 raw dumps" in failed["title"], report
    done = subprocess.run(["sh", "-c", failed["command"]], cwd=tmp, env=home.env,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done
    suite.call("run", "--finish", home.dirs()[0], env=home.env, check=0)


def export_is_cut_off(suite, tmp):
    """Deliverables without analyse.done beside a raw dump: half written, whatever they look like."""
    home = Home(suite, tmp)
    home.run("--target", TARGET)
    run = home.dirs()[0]
    mark, = glob.glob(f"{run}/prof/*/ASCEND_PROFILER_OUTPUT/analyse.done")
    table = f"{os.path.dirname(mark)}/kernel_details.csv"
    lines = open(table).read().splitlines(True)
    os.unlink(mark)
    with open(table, "w") as file:
        file.writelines(lines[:len(lines) // 2])
    report = json.loads(suite.call("check", f"{run}/prof", "--json", check=3).stdout)
    assert "EXPORT_UNFINISHED" in codes(report), codes(report)
    done = suite.call("run", "--finish", run, "--json", "--python", home.python, env=home.env,
                      check=0)
    assert rows(json.loads(done.stdout), "captures")[0]["export"] == "analyse", done.stdout
    assert open(table).read().splitlines(True) == lines and os.path.exists(mark)


def odd_words_and_paths(suite, tmp):
    words = ["a b", "it's", '"', "x\ny", "$HOME", "*", "", "中文", "--", "--target"]
    inner = f"{tmp}/my dir 'é'"
    os.mkdir(inner)
    home = Home(suite, inner)
    home.out = f"{inner}/out of\nhere"
    home.write("words.py", INFER.replace("if len(sys.argv) > 1 else 8", "if 0 else 8") +
               "\nimport json\nopen('words.json', 'w').write(json.dumps(sys.argv[1:]))\n")
    report = home.run("--target", TARGET, command=[home.python, "words.py", *words])
    assert report["verdict"] == "PASS" and "PATH_UNUSUAL" in codes(report), report
    assert json.load(open(f"{inner}/words.json")) == words
    assert home.last()["command"] == [home.python, "words.py", *words]
    # a command without `--` in front, as the first word that is no option
    done = subprocess.run([suite.npuprof, "run", "--out", f"{tmp}/plain", "--target", TARGET, "-q",
                           home.python, "infer.py", "9"], cwd=inner, env=home.env,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "step 8" in done.stdout, done


def signs_in_the_log(suite, tmp):
    home = Home(suite, tmp)
    home.write("noisy.py", INFER + r"""
print("\x1b[31m[ERROR]\x1b[0m UB \x1b[1mLINK\x1b[0m ERROR on card 3")
print("run.sh: line 2: $'\\r': command not found")
print("bind port 16666 failed")
print("[2026-01-01 00:00:00] [WARNING] [1] profiler.py: Incorrect schedule: WARMUP followed by NONE")
""")
    report = home.run("--target", TARGET, command=[home.python, "noisy.py"])
    lines = open(f"{home.dirs()[0]}/log/run.log", "rb").read().split(b"\n")
    for row in rows(report, "log_signs"):
        assert row["lines"] == 1, row
        assert row["sign"].split()[-1].encode() in lines[row["line"] - 1], (row, lines)
    assert {row["sign"] for row in rows(report, "log_signs")} == {
        "UB LINK ERROR", "$'\\r'", "16666", "WARMUP followed by NONE"}, rows(report, "log_signs")
    commands = [one.get("command") for one in report["findings"] if one["code"] == "LOG_WARNING"]
    assert "export HCCL_NPU_SOCKET_PORT_RANGE=20000-21000" in commands, commands
    assert "npu-smi info" in commands, commands


def signs_in_a_long_log(suite, tmp):
    """A sign at any place of a long line and of a long log, whose end is told when it fails."""
    home = Home(suite, tmp)
    home.write("noisy.py", r"""
import sys
out = sys.stdout.buffer
for i in range(3000): out.write(b"\r%60d %%" % i)
out.write(b"\n" + b"x" * 65530 + b" UB LINK ERROR" + b"z" * 70000 + b"\n")
out.write(b"y" * 200000 + b"\n")
for i in range(100000): out.write(b"%099d\n" % i)
out.write(b"bind port 16666 failed\n\xff\xfe\x00 the end")
out.flush()
sys.exit(3)
""")
    report = home.run("--target", TARGET, command=[home.python, "noisy.py"], status=1)
    signs = {row["sign"]: row for row in rows(report, "log_signs")}
    assert (signs["16666"]["line"], signs["16666"]["lines"]) == (100004, 1), signs
    assert (signs["UB LINK ERROR"]["line"], signs["UB LINK ERROR"]["lines"]) == (2, 1), signs
    assert "the end" in json.dumps(finding(report, "COMMAND_FAILED")["evidence"]), report["findings"]


def presets(suite, tmp):
    home = Home(suite, tmp)
    done = suite.call("run", "--list-presets", "--json", check=0)
    names = [row["preset"] for row in rows(json.loads(done.stdout), "presets")]
    assert {"lightx2v", "diffsynth", "vllm-omni", "diffusers", "cann-recipes", "mindspeed",
            "verl"} <= set(names), names
    home.write("ports.py", INFER + "\nimport os\nprint(os.environ['HCCL_NPU_SOCKET_PORT_RANGE'])\n")
    for env, wanted in (({}, "20000-21000"), ({"HCCL_NPU_SOCKET_PORT_RANGE": "1-2"}, "1-2")):
        report = home.run("--preset", "lightx2v", "--target", TARGET,
                          command=[home.python, "ports.py"], **env)
        assert wanted in report["talk"].splitlines(), report["talk"]
    assert os.path.basename(home.dirs()[0]).startswith("lightx2v_")


CASES = (usage, out_cannot_be_written, exports_that_lie, target_not_reached, commands_are_whole,
         several_dumps_fail_as_one, export_is_cut_off, odd_words_and_paths,
         signs_in_the_log, signs_in_a_long_log, presets)


def main():
    suite = Suite(__doc__)
    for case in CASES:
        suite.run(case.__name__, lambda tmp, case=case: case(suite, tmp))
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
