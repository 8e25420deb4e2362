#!/usr/bin/env python3
"""docs/requirements.md names tests that exist, and every number that its head promises.

A row is | R4 | text | proof |. The proof names tests in backquotes, `FILE: CASE, CASE`: FILE.py of
tests/e2e, FILE.c of tests/unit, or `cli` for directories of tests/cli. A row without a test has a
*Reason* in its text.
"""
import os
import re
import sys

DOCUMENT = "docs/requirements.md"
# How a case begins, and in all at least two mentions: it is in the list of those that run, too.
E2E = r"^def {}\("
UNIT = r"^static void {}\(void \*\*"


def complain(text):
    print(f"{DOCUMENT}: {text}")
    return 1


def check_case(name, case):
    if name == "cli":
        path = f"tests/cli/{case}/cmd"
        return None if os.path.exists(path) else f"there is no {path}"
    for path, begin in ((f"tests/e2e/{name}.py", E2E), (f"tests/unit/{name}.c", UNIT)):
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if not re.search(begin.format(re.escape(case)), text, re.M):
            return f"{path} has no case {case}"
        if len(re.findall(rf"\b{re.escape(case)}\b", text)) < 2:
            return f"{path} does not run {case}"
        return None
    return f"there is no tests/e2e/{name}.py or tests/unit/{name}.c"


def numbers(text):
    wanted = set()
    for first, last in re.findall(r"R(\d+)(?:–R(\d+))?", text):
        wanted |= set(range(int(first), int(last or first) + 1))
    return wanted


def main():
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    wanted = numbers(text.split("\n## ", 1)[0])
    rows = re.findall(r"^\| R(\d+) \| (.*) \| (.*) \|$", text, re.M)
    bad, cases = 0, set()
    for number in sorted(wanted - {int(row[0]) for row in rows}):
        bad += complain(f"R{number} is missing")
    for number in sorted({row[0] for row in rows if sum(row[0] == r[0] for r in rows) > 1}):
        bad += complain(f"R{number} is there twice")
    if len(re.findall(r"^\| R\d", text, re.M)) != len(rows):
        bad += complain("a row has not three columns")
    for number, what, proof in rows:
        if int(number) not in wanted:
            bad += complain(f"R{number} is not promised in the head")
        named = re.findall(r"`(\w+): ([^`]+)`", proof)
        if not named and "*Reason:*" not in what:
            bad += complain(f"R{number} has neither a test nor a reason")
        for name, list_ in named:
            for case in re.split(r", *", list_):
                why = check_case(name, case)
                cases.add((name, case))
                bad += complain(f"R{number}: {why}") if why else 0
    if not bad:
        print(f"requirements: ok, {len(rows)} with {len(cases)} tests")
    return 1 if bad or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
