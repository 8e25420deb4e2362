#!/usr/bin/env python3
"""Every command line of npuprof that the documents print is one that npuprof accepts.

Lines that call npuprof are taken from the code blocks and the code in the text of all *.md, from the
examples of the man pages, and from the advice that the sources print. Each is run with --help behind
its own words, so that its options are read and nothing is done; `plan` is run as it stands, and so
is `run`, with a command that does not exist. One case per file.
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
        else:
            for code in re.findall(r"`(npuprof [^`]+)`", line):
                yield number, code


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


def source_lines(path):
    """String literals that begin with `npuprof `, adjacent ones joined, conversions filled in."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    literal = r'"((?:[^"\\\n]|\\.)*)"'
    for match in re.finditer(literal + r"(?:\s*" + literal + ")*", text):
        if not match.group(1).startswith("npuprof "):
            continue
        whole = "".join(re.findall(literal, match.group(0)))
        whole = whole.replace('\\"', '"').replace("\\n", "\n")
        whole = re.sub(r"%(?:l*|z|j)[du]", "1", whole)
        whole = re.sub(r"%(?:\.\*)?s|%g", "x", whole)
        yield text.count("\n", 0, match.start()) + 1, whole.split("\n")[0]


def is_prose(words):
    """What is no command: a name only, `npuprof …`, or a line of its log, `npuprof: exporting`."""
    return not words or words[0] in ("…", "...") or not re.match(r"^[a-z-]+$", words[0])


class Page:
    def __init__(self, suite, path, lines):
        self.suite, self.seen, self.bad = suite, 0, []
        self.commands = [(number, words) for number, line in joined(lines)
                         for _, words in commands_of(line) if not is_prose(words)]
        # sources also hold sentences that begin with the program's name, DESIGN.md plans
        if path.endswith((".c", "DESIGN.md")):
            self.commands = [(number, words) for number, words in self.commands
                             if words[0] in suite.verbs]

    def start(self, tmp, *words):
        return subprocess.run([self.suite.npuprof, *words], capture_output=True, text=True,
                              errors="replace", timeout=60, stdin=subprocess.DEVNULL, cwd=tmp,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})

    def complain(self, number, words, done):
        why = (done.stderr or done.stdout).strip().split("\n")[0]
        self.bad.append(f"{number}: npuprof {' '.join(words)}: exit {done.returncode}: {why}")

    def try_one(self, tmp, number, words):
        """`…` stands for something that is left out."""
        words = ["m:f" if word in ("…", "...") and words[i - 1].startswith("--") else word
                 for i, word in enumerate(words)]
        words = [word for word in words if word not in ("…", "...", "[options]")]
        if "--" in words:
            at = words.index("--")
            if at + 1 == len(words):
                self.bad.append(f"{number}: nothing behind --")
            words = words[:at]
        self.seen += 1
        done = self.start(tmp, *words, "--help")
        if done.returncode and words[-1].startswith("--"):  # a text that names the option only
            words = [*words, "x"]
            done = self.start(tmp, *words, "--help")
        if done.returncode != 0 or "usage: " not in done.stdout:
            self.complain(number, words, done)
        elif words[0] == "run" and "--pre-check" not in words and len(words) > 1 and not (
                {"--finish", "--list-presets"} & set(words)):
            done = self.start(tmp, *words, "--out", "runs", "--", "/nowhere/python3")
            if done.returncode != 2 or "/nowhere/python3" not in done.stderr:
                self.complain(number, words, done)
        elif words[:1] == ["plan"] and len(words) > 2 and words[1] != "route" and not (
                {"K", "WHAT", "DIR"} & set(words)):
            words = [tmp if words[i - 1] == "--disk-free" else word
                     for i, word in enumerate(words)]
            done = self.start(tmp, *words)
            if done.returncode not in (0, 1, 3):
                self.complain(number, words, done)

    def walk(self, tmp):
        for number, words in self.commands:
            self.try_one(tmp, number, words)
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
    suite.verbs = re.findall(r"^  ([a-z-]+) ", suite.call("--help").stdout, re.M)
    suite.run("nonsense_is_refused", lambda tmp: nonsense_is_refused(suite, tmp))
    suite.run("lines_are_found", lambda tmp: lines_are_found(suite, tmp))
    paths = [path for pattern in ("*.md", "docs/*.md", "docs/*/*.md", "docs/man/*.scd",
                                  "bench/*.md", "rules/*.md", "inject/*.md")
             for path in sorted(glob.glob(os.path.join(SOURCE, pattern)))]
    pages = [(path, Page(suite, path, code_lines(path))) for path in paths]
    pages += [(path, Page(suite, path, source_lines(path)))
              for path in sorted(glob.glob(os.path.join(SOURCE, "src", "*", "*.c")))]
    for path, page in pages:
        if page.commands:
            suite.run(os.path.relpath(path, SOURCE), page.walk)
    total = sum(page.seen for _, page in pages)
    print(f"# {total} commands in {len(pages)} files")
    if not suite.options.cases:
        suite.run("there_are_many", lambda _tmp: check_many(total))
    return suite.finish()


def check_many(total):
    assert total >= 150, total


if __name__ == "__main__":
    sys.exit(main())
