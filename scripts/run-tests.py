#!/usr/bin/env python3
"""Run tests and count cases, not executables.

  run-tests.py ctest SUITE BUILD_DIR [ctest options...]   the ctest entries of a build
  run-tests.py script SUITE NAME [--] COMMAND...          one command: 0 passed, 77 skipped
  run-tests.py reset                                      forget earlier results
  run-tests.py total                                      the closing line, from all results

cmocka executables and tests/e2e print TAP, and every case counts: also those
that a crash kept from running count as failed. Other ctest entries count as
one case each. Results are kept in build/check/results.tsv until `reset`.
Exit status: 0 nothing failed, 1 something did, 2 usage.
"""
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STATE = os.path.join(ROOT, "build", "check")
RESULTS = os.path.join(STATE, "results.tsv")

TAP_LINE = re.compile(r"^(not )?ok\b\s*(\d*)\s*-?\s*(.*)$")
TAP_PLAN = re.compile(r"^\s*1\.\.(\d+)\s*$")


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def count_tap(output):
    """(counts, planned, names of failed cases) of a cmocka run."""
    counts, planned, failures = Counts(), 0, []
    for line in output.splitlines():
        plan = TAP_PLAN.match(line)
        result = TAP_LINE.match(line)
        if plan:
            planned += int(plan.group(1))
        elif result and "# SKIP" in line.upper():
            counts.skipped += 1
        elif result and result.group(1):
            counts.failed += 1
            failures.append(result.group(3))
        elif result:
            counts.passed += 1
    return counts, planned, failures


def count_entry(name, status, output):
    """Counts of one ctest entry; status is ctest's: run, fail, notrun, disabled."""
    counts = Counts()
    if status in ("notrun", "disabled"):
        if "Skipped" in output or "SKIP" in output:
            counts.skipped = 1
        else:
            counts.failed = 1  # e.g. the executable was not built
            print(f"  FAILED {name}: not run")
        return counts
    failures = []
    if name.startswith(("unit.", "e2e.")):  # those print TAP
        counts, planned, failures = count_tap(output)
        ran = counts.passed + counts.failed + counts.skipped
        if planned > ran:
            counts.failed += planned - ran
            failures.append(f"{planned - ran} case(s) that did not come to run")
        if status == "run" and planned == 0:
            counts.failed += 1
            failures.append("no cases found in its output")
    elif status == "run":
        counts.passed = 1
    if status == "fail" and counts.failed == 0:
        counts.failed = 1
        failures.append("exit status")
    for failure in failures:
        print(f"  FAILED {name}: {failure}")
    if counts.failed:
        print("".join(f"    | {line}\n" for line in output.splitlines()[-80:]), end="")
    return counts


def record(suite, counts, started):
    os.makedirs(STATE, exist_ok=True)
    with open(RESULTS, "a", encoding="utf-8") as out:
        out.write(f"{suite}\t{counts.passed}\t{counts.failed}\t{counts.skipped}\n")
    print(f"{suite}: {counts} ({time.monotonic() - started:.1f} s)", flush=True)
    return 1 if counts.failed else 0


def entry_status(case):
    status = case.get("status", "fail")
    skipped = case.find("skipped")
    text = case.findtext("system-out") or ""
    if skipped is not None:
        text += "\nSkipped" if "SKIP_RETURN_CODE" in skipped.get("message", "") else ""
    return status, text


def run_ctest(suite, build, options):
    started = time.monotonic()
    os.makedirs(STATE, exist_ok=True)
    report = os.path.join(STATE, re.sub(r"\W+", "-", suite) + ".xml")
    if os.path.exists(report):
        os.remove(report)
    unlimited = str(1 << 26)
    command = ["ctest", "--test-dir", build, "-j", str(os.cpu_count() or 1),
               "--output-junit", report, "--test-output-size-passed", unlimited,
               "--test-output-size-failed", unlimited] + options
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    log = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, text=True, errors="replace",
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    counts = Counts()
    try:
        cases = ElementTree.parse(report).getroot().findall(".//testcase")
    except (OSError, ElementTree.ParseError) as error:
        print(log.stdout, f"  FAILED {suite}: no report of ctest: {error}", sep="\n")
        counts.failed = 1
        return record(suite, counts, started)
    for case in sorted(cases, key=lambda case: case.get("name")):
        counts.add(count_entry(case.get("name"), *entry_status(case)))
    if log.returncode and not counts.failed:
        print(log.stdout)
        counts.failed = 1
    return record(suite, counts, started)


def run_script(suite, name, command):
    started = time.monotonic()
    counts = Counts()
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, text=True, errors="replace",
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        status, output = result.returncode, result.stdout
    except OSError as error:
        status, output = 127, str(error)
    if status == 0:
        counts.passed = 1
    elif status == 77:
        counts.skipped = 1
    else:
        counts.failed = 1
        print(f"  FAILED {name}: exit status {status}")
    lines = output.splitlines()
    for line in lines[-80:] if status not in (0, 77) else lines[-1:]:
        print(f"    | {line}")
    return record(f"{suite} {name}", counts, started)


def total():
    counts = Counts()
    try:
        with open(RESULTS, encoding="utf-8") as lines:
            for line in lines:
                one = Counts()
                one.passed, one.failed, one.skipped = map(int, line.rstrip("\n").split("\t")[1:])
                counts.add(one)
    except OSError:
        counts.failed = 1
    print(counts)
    return 1 if counts.failed or not counts.passed else 0


def main(argv):
    if argv == ["reset"]:
        if os.path.exists(RESULTS):
            os.remove(RESULTS)
        return 0
    if argv == ["total"]:
        return total()
    if len(argv) >= 3 and argv[0] == "ctest":
        return run_ctest(argv[1], argv[2], argv[3:])
    if len(argv) >= 4 and argv[0] == "script":
        command = argv[3:]
        return run_script(argv[1], argv[2], command[1:] if command[0] == "--" else command)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
