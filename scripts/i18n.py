#!/usr/bin/env python3
"""The texts of src/ that have a translation, and po/zh_CN.po.

  scripts/i18n.py            check: every text has a translation that takes the same arguments
  scripts/i18n.py --update   write po/zh_CN.po anew: what is known stays, new texts come with an
                             empty msgstr, texts that are gone go

A text is a string literal in the argument of the calls below that holds what is shown, a literal
handed to a parameter of such a name, and what NP_N() or np_tr() marks. The name of a column
({"dur_ns", "us", NP_COL_DUR_NS, "help"}) has the context "column"; its help is a text. MAPS are
X-macros whose rows hold texts.
Formats without a word ("%s: %s") need no translation. Exit status: 0 complete, 1 not.
"""
import glob
import os
import re
import sys

os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PO = "po/zh_CN.po"
CALLS = {  # function: which argument
    "np_report_note": 1, "np_report_finding": 3, "np_finding_detail": 1, "np_finding_advice": 1,
    "np_finding_evidence": 4, "NP_REPORT_TABLE": 2, "np_report_table": 2, "np_check_pass": 1,
    "np_check_unknown": 1, "np_check_fail": 1, "np_gate_finding": 3, "NP_CMP_TABLE": 2,
    "np_cell_word": 1, "np_cluster_nothing": 2, "np_cluster_lacking": 3, "np_tr": 0, "NP_N": 0,
    "np_advice_problem": 3, "np_advice_unknown": 2, "TABLE": 2, "np_dyn_tell": 4, "collect_stage": 4,
}
MAPS = {  # file: the X-macro, which arguments of its rows are texts
    "src/capture/role.h": ("NP_ROLE_MAP", (2,)), "src/analysis/classify.h": ("NP_CLASS_MAP", (1,)),
    "src/analysis/idle.h": ("NP_IDLE_MAP", (2, 3)),
}
PARAMETERS = ("title", "advice", "detail", "meaning", "evidence")
SHOWN_IN = "src/{gate,capture,analysis,cluster,advice,collect,report,cmd,view}/*.[ch]"
LITERAL = r'"(?:\\.|[^"\\\n])*"'
PRI = {f"PRI{c}{n}": ("l" if n == 64 else "") + c for c in "diuxX" for n in (32, 64)}
STRING = re.compile(rf"(?:{LITERAL}|\bPRI[diuxX](?:32|64)\b)(?:\s*(?:{LITERAL}|PRI[diuxX](?:32|64)\b))*")
COLUMN = re.compile(rf'\{{\s*({LITERAL})\s*,\s*{LITERAL}\s*,\s*NP_COL_\w+\s*,\s*((?:{LITERAL}\s*)+|NULL)\s*\}}')
COMMENT = re.compile(rf"/\*.*?\*/|//[^\n]*|({LITERAL})", re.S)
# as next_conversion() in src/report/lang.c sees them: whatever stands behind the flags ends one
CONVERSION = re.compile(rb"%(?:%|[-+ #0-9.*'hljztL]*.?)", re.S)
CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$")
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def value(expression):
    """The text of adjacent literals and PRI macros."""
    out = ""
    for part in re.findall(rf"{LITERAL}|PRI\w+", expression):
        if part.startswith("PRI"):
            out += PRI[part]
        else:
            out += re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(0)), part[1:-1])
    return out


def arguments(text, start):
    """The arguments of the call whose "(" is at start."""
    depth, found, begin, at = 0, [], start + 1, start
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
            found.append(text[begin:at])
            begin = at + 1
        if depth == 0:
            break
        at += 1
    return found


def has_word(text):
    return re.search(rb"[A-Za-z]{2}", CONVERSION.sub(b"", text.encode())) is not None


def literals(expression):
    """The texts of an argument, but not those inside calls of other functions in it."""
    texts = []

    def keep(match):
        texts.append(match.group(0))
        return f"\0{len(texts) - 1}\0"

    bare = STRING.sub(keep, expression)
    while True:
        shorter = re.sub(r"\b(?!NP_N\b|np_tr\b)\w+\s*\([^()]*\)", "", bare)
        shorter = re.sub(r"\b(?:NP_N|np_tr)\s*\(([^()]*)\)", r"\1", shorter)
        if shorter == bare:
            return [value(texts[int(n)]) for n in re.findall("\0(\\d+)\0", bare)]
        bare = shorter


def extract():
    """{(context, text): place} in the order of the sources."""
    paths = sorted({p for layer in SHOWN_IN.split("{")[1].split("}")[0].split(",")
                    for p in glob.glob(f"src/{layer}/*.[ch]")})
    texts = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = COMMENT.sub(lambda m: m.group(1) or " ", file.read())
        texts[path] = text.replace("\\\n", " ")
    calls = {name: [place] for name, place in CALLS.items()}
    taker = re.compile(r"\b(\w+)\s*\(((?:[^(){};]|\([^()]*\))*\bconst\s+char\s*\*\s*(?:"
                       + "|".join(PARAMETERS) + r")\b(?:[^(){};]|\([^()]*\))*)\)\s*\{")
    for text in texts.values():
        for name, parameters in taker.findall(text):
            for i, parameter in enumerate(parameters.split(",")):
                if re.search(r"\b(?:" + "|".join(PARAMETERS) + r")\s*$", parameter):
                    calls.setdefault(name, []).append(i)
    pattern = re.compile(r"\b(" + "|".join(calls) + r")\s*\(")
    found = {}

    def add(context, text, path):
        if has_word(text) and not (context == "" and CODE.match(text) and len(text) > 7):
            found.setdefault((context, text), path)

    for path, text in texts.items():
        for match in COLUMN.finditer(text):
            add("column", value(match.group(1)), path)
            add("", value(match.group(2)), path)
        if path in MAPS:
            macro, places = MAPS[path]
            body = re.search(rf"#define {macro}\(X\)(.*)", text).group(1)
            for row in re.finditer(r"\bX\s*\(", body):
                given = arguments(body, row.end() - 1)
                for place in places:
                    add("", value(given[place]), path)
        for match in pattern.finditer(text):
            given = arguments(text, match.end() - 1)
            name = match.group(1)
            for place in calls[name]:
                if place >= len(given):
                    continue
                shown = given[place]
                if name.endswith("finding") and shown.strip() == '"%s"':
                    shown = ",".join(given[place + 1:])
                for literal in literals(shown):
                    add("", literal, path)
    return found


def read_po():
    known, context, current, part = {}, "", {}, None
    header = ""

    def finish():
        nonlocal header, current
        if "msgid" in current:
            if current["msgid"] == "":
                header = current.get("msgstr", "")
            else:
                known[(current.get("msgctxt", ""), current["msgid"])] = current.get("msgstr", "")
        current = {}

    try:
        with open(PO, encoding="utf-8") as file:
            for line in file:
                line = line.strip()
                match = re.match(r'(msgctxt|msgid|msgstr) (".*")$', line)
                if match:
                    if match.group(1) in current or (match.group(1) == "msgctxt" and current):
                        finish()
                    part = match.group(1)
                    current[part] = value(match.group(2))
                elif line.startswith('"') and part:
                    current[part] += value(line)
    except FileNotFoundError:
        pass
    finish()
    return header, known


def quoted(text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def write_po(found, known, header):
    with open(PO, "w", encoding="utf-8") as file:
        file.write("# Chinese texts of npuprof; scripts/i18n.py --update keeps the list in step with src/.\n"
                   "# 术语: rank/卡, 步, 算子, 计算, 通信(未掩盖), 空闲, 下发, 流, 通信域, 快慢卡, 慢链路, 气泡.\n"
                   'msgid ""\nmsgstr ' + quoted(header or "Content-Type: text/plain; charset=UTF-8\n"
                                               "Content-Transfer-Encoding: 8bit\nLanguage: zh_CN\n") + "\n")
        last = ""
        for (context, text), path in found.items():
            file.write("\n")
            if path != last:
                file.write(f"#: {path}\n")
                last = path
            if context:
                file.write(f"msgctxt {quoted(context)}\n")
            file.write(f"msgid {quoted(text)}\nmsgstr {quoted(known.get((context, text), ''))}\n")


def conversions(text):
    return [c for c in CONVERSION.findall(text.encode()) if c != b"%%"]


def main():
    found, (header, known) = extract(), read_po()
    if sys.argv[1:] == ["--update"]:
        write_po(found, known, header)
        _, known = read_po()
    elif sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    bad = 0
    for key, path in found.items():
        translation = known.get(key, "")
        what = f"{path}: {key[0] + ' ' if key[0] else ''}{quoted(key[1])}"
        if not translation:
            print(f"i18n: {what} has no translation in {PO}")
            bad += 1
        elif conversions(key[1]) != conversions(translation):
            print(f"i18n: {what} is translated with other conversions: {quoted(translation)}")
            bad += 1
        elif sorted(re.findall(r"\{\d\}", key[1])) != sorted(re.findall(r"\{\d\}", translation)):
            print(f"i18n: {what} is translated with other places: {quoted(translation)}")
            bad += 1
    for key in known.keys() - found.keys():
        print(f"i18n: {PO}: {quoted(key[1])} is used by nothing in src/")
        bad += 1
    if not bad:
        print(f"i18n: ok, {len(found)} texts")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
