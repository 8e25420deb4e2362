#!/usr/bin/env python3
"""Command line tests: run a shell line, compare what it prints with what it should.

  run.py [--npuprof PATH] [--record] [CASE...]      all cases when none is named

A case is a directory NAME/ with the files below, or files NAME.<file> beside
this script:

  cmd            the shell text, run by bash in an empty temporary directory.
                 $NPUPROF is the program, $SHARED the folder of real captures.
  stdout.exact   what it prints; absent (and no stdout.glob): nothing
  stdout.glob    the same with patterns: `*` and `?` match within a line, a
                 line `**` matches any number of lines
  stderr.exact, stderr.glob   likewise
  exit           the exit status; absent: 0
  needs-shared   skip the case where the shared captures are absent

In both outputs the temporary directory, the program and the shared folder are
written as $TMP, $NPUPROF and $SHARED. --record writes what the program prints
now: .exact files anew, .glob files only where they do not match.

Exit status: 0 all passed, 1 something failed, 2 usage, 77 all were skipped.
"""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
KEEP_ENV = ("PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS",
            "LD_LIBRARY_PATH")
TIMEOUT_S = 100


def shared_dir():
    path = os.environ.get("NPUPROF_SHARED") or os.path.join(SOURCE, "..", "shared")
    return os.path.realpath(path) if os.path.isdir(path) else None


def all_cases():
    names = set()
    for entry in os.listdir(HERE):
        if os.path.isfile(os.path.join(HERE, entry, "cmd")):
            names.add(entry)
        elif entry.endswith(".cmd"):
            names.add(entry[:-len(".cmd")])
    return sorted(names)


def part_path(case, part):
    directory = os.path.join(HERE, case)
    return os.path.join(directory, part) if os.path.isdir(directory) else f"{directory}.{part}"


def read_part(case, part):
    try:
        with open(part_path(case, part), encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write_part(case, part, text):
    with open(part_path(case, part), "w", encoding="utf-8", newline="") as file:
        file.write(text)


def line_pattern(line):
    wild = {"*": "[^\n]*", "?": "[^\n]"}
    return "".join(wild.get(char) or re.escape(char) for char in line)


def glob_matches(pattern, text):
    lines = pattern.split("\n")
    parts = []
    for i, line in enumerate(lines):
        last = i == len(lines) - 1
        if line == "**":
            parts.append("(?:[^\n]*\n)*" + ("[^\n]*" if last else ""))
        else:
            parts.append(line_pattern(line) + ("" if last else "\n"))
    return re.fullmatch("".join(parts), text) is not None


def run_case(case, npuprof, shared):
    """(stdout, stderr, exit status) as they are compared."""
    with tempfile.TemporaryDirectory(prefix="npuprof-cli-") as scratch:
        scratch = os.path.realpath(scratch)
        work, home = os.path.join(scratch, "work"), os.path.join(scratch, "home")
        os.mkdir(work)
        os.mkdir(home)
        env = {name: os.environ[name] for name in KEEP_ENV if name in os.environ}
        env.update(HOME=home, XDG_CACHE_HOME=home + "/.cache", XDG_CONFIG_HOME=home + "/.config",
                   TMPDIR=work, LC_ALL="C.UTF-8", TZ="UTC", NPUPROF=npuprof)
        if shared:
            env["SHARED"] = shared
        try:
            run = subprocess.run(["bash", "-c", read_part(case, "cmd")], cwd=work, env=env,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
            out, err, status = run.stdout, run.stderr, run.returncode
        except subprocess.TimeoutExpired as late:
            out, err, status = late.stdout or b"", late.stderr or b"", "timeout"
    names = [(work, "$TMP"), (npuprof, "$NPUPROF")] + ([(shared, "$SHARED")] if shared else [])

    def plain(raw):
        text = raw.decode("utf-8", "backslashreplace")
        for path, name in names:
            text = text.replace(path, name)
        return text

    return plain(out), plain(err), str(status)


def show_diff(case, part, expected, got):
    lines = difflib.unified_diff(expected.splitlines(), got.splitlines(), f"{case}/{part}",
                                 "what it printed", lineterm="")
    print("\n".join(list(lines)[:200]) or f"{case}/{part}: only line ends differ")


def compare(case, stream, got):
    """None when it matches, else (part, expected)."""
    exact, pattern = read_part(case, stream + ".exact"), read_part(case, stream + ".glob")
    if exact is None and pattern is not None:
        return None if glob_matches(pattern, got) else (stream + ".glob", pattern)
    return None if got == (exact or "") else (stream + ".exact", exact or "")


def check_case(case, npuprof, shared, record):
    if read_part(case, "cmd") is None:
        print(f"{case}: no such case")
        return "failed"
    if read_part(case, "needs-shared") is not None and not shared:
        return "skipped"
    out, err, status = run_case(case, npuprof, shared)
    expected_status = (read_part(case, "exit") or "0").strip()
    wrong = [(part, text) for part, text in (("stdout", out), ("stderr", err))
             if compare(case, part, text)]
    if record:
        for stream, got in wrong:
            write_part(case, compare(case, stream, got)[0], got)
        if status != expected_status:
            write_part(case, "exit", status + "\n")
        return "recorded" if wrong or status != expected_status else "passed"
    for stream, got in wrong:
        show_diff(case, *compare(case, stream, got), got)
    if status != expected_status:
        print(f"{case}: exit status {status}, expected {expected_status}")
        if not any(stream == "stderr" for stream, _ in wrong):
            print(err, end="")
    return "failed" if wrong or status != expected_status else "passed"


def main():
    parser = argparse.ArgumentParser(description="run the command line tests")
    parser.add_argument("--npuprof", default=os.path.join(SOURCE, "build", "asan", "npuprof"))
    parser.add_argument("--record", action="store_true", help="write what the program prints now")
    parser.add_argument("cases", nargs="*", metavar="CASE")
    args = parser.parse_args()
    npuprof = os.path.realpath(args.npuprof)
    if not os.access(npuprof, os.X_OK):
        parser.error(f"{npuprof} is not there; build it or use --npuprof")
    shared = shared_dir()
    results = []
    for case in args.cases or all_cases():
        results.append(check_case(case, npuprof, shared, args.record))
        print(f"{case}: {results[-1]}", flush=True)
    if "failed" in results:
        return 1
    return 77 if results and all(result == "skipped" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
