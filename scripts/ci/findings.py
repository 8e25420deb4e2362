#!/usr/bin/env python3
"""Compare the finding codes of src/ with docs/findings.md.

A code of the sources is a string literal that goes into a parameter named
`code`: in calls of np_report_finding() and of every function of src/ that takes
`const char *code`, in `.code = "…"` of tables, and what is assigned to a
variable or member named `code`. A code of the document is
what stands in backquotes in a heading (### `CODE`) or in the first cell of a
table row (| `CODE` | …).
"""
import glob
import re
import sys

CODE = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*"
COMMENTS = re.compile(r'/\*.*?\*/|//[^\n]*|("(?:\\.|[^"\\\n])*")', re.S)
TAKES_CODE = re.compile(r"\b(\w+)\s*\(([^(){};]*\bconst\s+char\s*\*\s*code\b[^(){};]*)\)")


def call_arguments(text, start):
    """The arguments of the call whose "(" is at start, split at its own commas."""
    depth, arguments, begin, at = 0, [], start + 1, start
    while at < len(text):
        char = text[at]
        if char == '"':
            at += 1
            while at < len(text) and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if (char == "," and depth == 1) or depth == 0:
            arguments.append(text[begin:at])
            begin = at + 1
        if depth == 0:
            break
        at += 1
    return arguments


def source_codes():
    texts = {}
    for path in sorted(glob.glob("src/**/*.[ch]", recursive=True)):
        with open(path, encoding="utf-8") as file:
            texts[path] = COMMENTS.sub(lambda match: match.group(1) or " ", file.read())
    takers = {"np_report_finding": 1}
    for text in texts.values():
        for name, parameters in TAKES_CODE.findall(text):
            position = [bool(re.search(r"\bcode\s*$", p)) for p in parameters.split(",")]
            takers.setdefault(name, position.index(True) if True in position else 0)
    found = {}
    call = re.compile(r"\b(" + "|".join(map(re.escape, takers)) + r")\s*\(")
    for path, text in texts.items():
        literals = []
        for value in re.findall(r"\bcode\s*=(?!=)([^;,}]*)", text):  # both sides of a ?: count
            literals += re.findall('"(' + CODE + ')"', value)
        for match in call.finditer(text):
            arguments = call_arguments(text, match.end() - 1)
            place = takers[match.group(1)]
            if place < len(arguments):
                literals += re.findall('"(' + CODE + ')"', arguments[place])
        for literal in literals:
            found.setdefault(literal, path)
    return found


def documented_codes():
    pattern = re.compile(r"^(?:#{2,4}\s*|\|\s*)`(" + CODE + r")`", re.M)
    try:
        with open("docs/findings.md", encoding="utf-8") as file:
            return pattern.findall(file.read())
    except FileNotFoundError:
        return []


def main():
    source, document = source_codes(), documented_codes()
    wrong = [f"{source[code]}: {code} is not in docs/findings.md"
             for code in sorted(set(source) - set(document))]
    wrong += [f"docs/findings.md: {code} is given by nothing in src/"
              for code in sorted(set(document) - set(source))]
    wrong += [f"docs/findings.md: {code} is there twice"
              for code in sorted(set(document)) if document.count(code) > 1]
    for line in wrong:
        print("docs: " + line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
