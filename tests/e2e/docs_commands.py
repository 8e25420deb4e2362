#!/usr/bin/env python3
"""Every command line of npuprof that the documents print is one that npuprof accepts.

From the code blocks of all *.md of the repository, and from the synopsis-free examples of the man
pages, lines that call npuprof are taken; each is run with --help behind its own words, so that only
its options are read. What --help must not hide is tried before: an unknown option, command or verb.
One case per file.
"""
import glob
import os
import re
import shlex
import subprocess
import sys

from collect_lib import SOURCE, Suite

# What ends the words of one command in a shell line.
ENDS = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>>", ")", "(", "{", "}", "do", "done"}
# Words that stand in front of a command in a shell line, besides NAME=VALUE.
BEFORE = {"nohup", "exec", "time", "sudo", "do", "then", "else", "if", "!", "env", "&&", "||", ";",
          "|", "{", "("}
ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z_0-9]*=")
MPI = re.compile(r"^(mpirun|mpiexec|srun)$")


def code_lines(path):
    """Lines of code blocks, with their numbers: fenced and indented ones of Markdown, those with a
    tab in the examples of a man page."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    if path.endswith(".scd"):
        inside = False
        for number, line in enumerate(lines, 1):
            if line.startswith("# "):
                inside = line == "# EXAMPLES"
            elif inside and line.startswith("\t"):
                yield number, re.sub(r"\\(.)", r"\1", line.strip())
        return
    fence = None
    for number, line in enumerate(lines, 1):
        mark = re.match(r"^\s*(`{3,}|~{3,})", line)
        if mark and fence is None:
            fence = mark.group(1)
        elif mark and line.strip() == fence:
            fence = None
        elif fence is not None or re.match(r"^    \S", line):
            yield number, line


def joined(lines):
    """Lines that end in a backslash, with the following one."""
    held = None
    for number, line in lines:
        number, line = (held[0], held[1] + " " + line.strip()) if held else (number, line)
        held = (number, line[:-1].rstrip()) if line.endswith("\\") else None
        if held is None:
            yield number, line


def split(line):
    """Words of a shell line, its operators apart; None if it is no such line."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = "#"
    try:
        return list(lexer)
    except ValueError:
        return None


def commands_of(line):
    """The npuprof commands of a line, as lists of words behind the program's name."""
    text = re.sub(r"^\s*(\$|#|>)\s+", "", line)
    # a table of commands: what stands behind two spaces is a remark, not words
    text = re.sub(r"(npuprof .*?\S) {3,}\S.*$", r"\1", text)
    words = split(text)
    found, i = [], 0
    while words and i < len(words):
        name = os.path.basename(words[i])
        front = words[:i]
        is_first = all(word in BEFORE or word in ENDS or ASSIGNMENT.match(word)
                       for word in front[-1:]) or MPI.match(front[0])
        if name not in ("npuprof", "msprof-analyze") or not is_first:
            i += 1
            continue
        end = i + 1
        while end < len(words) and not (words[end] in ENDS or re.match(r"^[|&;<>()]+$", words[end])):
            end += 1
        found.append((name, words[i + 1:end]))
        i = end
    return found


def is_prose(words):
    """What is printed by the program, or a sentence: 'npuprof: exporting', 'npuprof plan schedule'
    as a title is a command, too."""
    return not words or words[0] in ("…", "...") or words[0].endswith(":")


def refuse(done):
    return done.returncode != 0 or "usage" not in done.stdout


class Page:
    def __init__(self, suite, path):
        self.suite, self.path, self.seen, self.bad = suite, path, 0, []

    def try_one(self, number, name, words):
        """Words up to what belongs to another command; '…' stands for more of them."""
        words = [word for word in words if word not in ("…", "...", "[options]", "\\")]
        if "--" in words:
            at = words.index("--")
            if at + 1 == len(words):
                self.bad.append(f"{number}: nothing behind --")
            words = words[:at]
        if words[:1] == ["view"] and "view" not in self.suite.verbs:
            return
        self.seen += 1
        done = subprocess.run([self.suite.npuprof, *words, "--help"], capture_output=True,
                              text=True, errors="replace", timeout=30, stdin=subprocess.DEVNULL,
                              env={**os.environ, "LC_ALL": "C.UTF-8"}, cwd="/")
        if done.returncode != 0 or "usage: " not in done.stdout:
            why = (done.stderr or done.stdout).strip().split("\n")[0]
            self.bad.append(f"{number}: {name} {' '.join(words)}: {why}")

    def walk(self, _tmp=None):
        for number, line in joined(code_lines(self.path)):
            for name, words in commands_of(line):
                if not is_prose(words):
                    self.try_one(number, name, words)
        assert not self.bad, "\n" + "\n".join(self.bad)


def nonsense_is_refused(suite, _tmp):
    """--help hides nothing: otherwise this test would say nothing."""
    for words in (["run", "--tarket", "a:b"], ["plan", "nothing"], ["comm", "x", "--nope"],
                  ["nothing"], ["check", "--profile"]):
        done = suite.call(*words, "--help")
        assert done.returncode == 2 or "usage: " not in done.stdout, (words, done)


def lines_are_found(suite, _tmp):
    """And it finds what it looks for."""
    for line, want in (
            ("$ npuprof info x | head", [["info", "x"]]),
            ("A=1 nohup npuprof run --name a-$b -- python3 'x y.py' &",
             [["run", "--name", "a-$b", "--", "python3", "x y.py"]]),
            ("npuprof synth s && npuprof comm s > o", [["synth", "s"], ["comm", "s"]]),
            ("mpirun -n 4 npuprof cluster d", [["cluster", "d"]]),
            ("npuprof comm RUN --stage dit     one stage", [["comm", "RUN", "--stage", "dit"]]),
            ("echo npuprof info", []), ("npuprof: exporting 1", []),
            ("the npuprof program", [])):
        got = [words for _, words in commands_of(line) if not is_prose(words)]
        assert got == want, (line, got)


def main():
    suite = Suite(__doc__)
    suite.verbs = suite.call("--help").stdout.split()
    suite.run("nonsense_is_refused", lambda tmp: nonsense_is_refused(suite, tmp))
    suite.run("lines_are_found", lambda tmp: lines_are_found(suite, tmp))
    paths = [path for pattern in ("*.md", "docs/*.md", "docs/*/*.md", "docs/man/*.scd",
                                  "bench/*.md", "rules/*.md", "inject/*.md")
             for path in sorted(glob.glob(os.path.join(SOURCE, pattern)))]
    total = 0
    for path in paths:
        page = Page(suite, path)
        if any(not is_prose(words) for _, line in joined(code_lines(path))
               for _, words in commands_of(line)):
            suite.run(os.path.relpath(path, SOURCE), page.walk)
            total += page.seen
    print(f"# {total} commands in {len(paths)} documents")
    if not suite.options.cases:
        suite.run("there_are_many", lambda _tmp: check_many(total))
    return suite.finish()


def check_many(total):
    assert total >= 150, total


if __name__ == "__main__":
    sys.exit(main())
