#!/usr/bin/env python3
"""Workbooks, read by other code than wrote them: xlsx.py --sample PATH

  --sample   the program that writes them (xlsx_sample.c)

Reads the XML by Python's standard library alone. Every case is one TAP line.
Exit status: 0 all passed, 1 something failed, 2 usage.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
import zipfile

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"

# in the order of xlsx_sample.c
TEXTS = [
    "=1+1", "+x", "-2+3", "@SUM(A1:A2)", "{=1}", "http://example.com/a?b=c&d",
    "mailto:a@example.com", "<b>&amp;</b> \"quoted\" 'it'", "\\x1b[31mred\\x07",
    "two\nlines\nand a\ttab, a lone \\r return", "  blanks  ", None,
    "_x0041_ and _xD83D__x0001_", "bad \\xff\\xc2 utf8 \\u009b", "\\ufffe\\uffff",
    "矩阵乘法 \U0001f600", "\u202etxt.exe", "007", "1e5", "TRUE", "]]>",
    "x" * 32767, "x" * 32766 + "…", "\U0001f600" * 16383 + "…", "a\\x00b", None,
]

NAMES = [
    "plain", "Plain~2", "PLAIN~3", "_a__b_c_d_e_f_g", "a name of a sheet that is far t",
    "a name of a sheet that is far~2", "通信矩阵的一个非常非常长的名字，比三十一个字符还要长得多得多得",
    "通信矩阵的一个非常非常长的名字，比三十一个字符还要长得多得~2", "Sheet", "history~2", "<&\">",
    "A1", "2024", "__31m_", "\U0001f600" * 15, "ÄPFEL", "äpfel~2",
]


def unescape(text):
    return re.sub("_x([0-9A-Fa-f]{4})_", lambda found: chr(int(found.group(1), 16)), text)


def place(reference):
    letters, row = re.fullmatch("([A-Z]+)([0-9]+)", reference).groups()
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - 64
    return int(row) - 1, column - 1


class Sheet:
    def __init__(self, name, root, strings):
        self.name, self.root = name, root
        self.cells, self.styles = {}, {}
        last = (-1, -1)
        for cell in root.iter(MAIN + "c"):
            at = place(cell.get("r"))
            assert at > last, f"{name}: {cell.get('r')} is out of order"
            last = at
            self.styles[at] = int(cell.get("s", "0"))
            value = self.value(cell, strings)
            if value is not None:
                self.cells[at] = value

    @staticmethod
    def value(cell, strings):
        kind, value = cell.get("t", "n"), cell.find(MAIN + "v")
        if kind == "inlineStr":
            return unescape("".join(part.text or "" for part in cell.iter(MAIN + "t")))
        if value is None:
            return None
        if kind == "s":
            return strings[int(value.text)]
        if kind == "b":
            return value.text == "1"
        assert kind == "n", f"a cell of type {kind}"
        return float(value.text)

    def rows(self):
        return max((row for row, _ in self.cells), default=-1) + 1

    def get(self, row, column):
        return self.cells.get((row, column))


class Book:
    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None, "a checksum is wrong"
            self.parts = {name: archive.read(name) for name in archive.namelist()}
            self.dates = {info.date_time for info in archive.infolist()}
        self.xml = {name: ElementTree.fromstring(data) for name, data in self.parts.items()}
        strings = []
        if "xl/sharedStrings.xml" in self.xml:
            for item in self.xml["xl/sharedStrings.xml"].findall(MAIN + "si"):
                strings.append(unescape("".join(t.text or "" for t in item.iter(MAIN + "t"))))
        targets = {relation.get("Id"): relation.get("Target")
                   for relation in self.xml["xl/_rels/workbook.xml.rels"]}
        self.sheets = [Sheet(entry.get("name"),
                             self.xml["xl/" + targets[entry.get(RELATION)]], strings)
                       for entry in self.xml["xl/workbook.xml"].iter(MAIN + "sheet")]


def check(condition, problem):
    if not condition:
        raise AssertionError(problem)


def equal(got, expected, what=""):
    check(got == expected, f"{what}: got {got!r:.200}, expected {expected!r:.200}")


class Cases:
    def __init__(self, directory):
        self.directory = directory
        self.book = Book(os.path.join(directory, "sample.xlsx"))
        self.texts, self.numbers, self.merged = self.book.sheets

    def every_part_has_a_type(self):
        types = self.book.xml["[Content_Types].xml"]
        parts = {"/" + name for name in self.book.parts}
        listed = {entry.get("PartName") for entry in types if entry.get("PartName")}
        suffixes = {entry.get("Extension") for entry in types if entry.get("Extension")}
        check(listed <= parts, listed - parts)
        for part in parts - listed - {"/[Content_Types].xml"}:
            check(part.rsplit(".", 1)[-1] in suffixes, part)

    def hostile_texts_come_back_as_texts(self):
        equal(self.texts.rows(), len(TEXTS) + 1)
        for i, text in enumerate(TEXTS):
            equal(self.texts.get(i + 1, 0), float(i))
            equal(self.texts.get(i + 1, 1), text, f"text {i}")

    def there_are_no_formulas_and_no_links(self):
        for name, root in self.book.xml.items():
            for element in root.iter():
                check(element.tag not in (MAIN + "f", MAIN + "hyperlink"), name)
            check("TargetMode" not in str([part.attrib for part in root.iter()]), name)

    def numbers_are_those_of_json(self):
        with open(os.path.join(self.directory, "numbers.json"), encoding="utf-8") as file:
            table = json.load(file)["tables"][1]
        equal(table["id"], "numbers")
        for column, described in enumerate(table["columns"]):
            equal(self.numbers.get(1, column), described["name"])
        for row, values in enumerate(table["rows"]):
            for column, value in enumerate(values):
                got = self.numbers.get(row + 2, column)
                if isinstance(value, int) and abs(value) >= 10**15:
                    value = str(value)
                if isinstance(value, float):
                    check(abs(got - value) <= abs(value) * 1e-15, f"{got} for {value}")
                else:
                    equal(got, value, f"row {row}, column {column}")

    def the_title_is_above_the_header(self):
        equal(self.numbers.name, "numbers")
        equal(self.numbers.get(0, 0), "=A title & more")
        pane = next(self.numbers.root.iter(MAIN + "pane"))
        equal((pane.get("ySplit"), pane.get("state")), ("2", "frozen"))

    def the_header_is_frozen_and_has_a_filter(self):
        pane = next(self.texts.root.iter(MAIN + "pane"))
        equal((pane.get("ySplit"), pane.get("state")), ("1", "frozen"))
        equal(next(self.texts.root.iter(MAIN + "autoFilter")).get("ref"),
              f"A1:B{len(TEXTS) + 1}")
        equal(next(self.numbers.root.iter(MAIN + "autoFilter")).get("ref"), "A2:G12")

    def equal_cells_are_merged(self):
        found = [cell.get("ref") for cell in self.merged.root.iter(MAIN + "mergeCell")]
        equal(sorted(found), ["A2:A4", "A5:A8", "B2:B3", "B5:B6"])
        column = [[self.merged.get(row, column) for row in range(1, 11)] for column in range(3)]
        equal(column[0], ["A", None, None, "B", None, None, None, "C", None, None])
        equal(column[1], ["x", None, "y", "y", None, None, None, "z", "z", "z"])
        equal(column[2], [float(i) for i in range(10)])
        check(not list(self.merged.root.iter(MAIN + "autoFilter")), "a filter on merged cells")

    def the_header_has_its_colours(self):
        styles = self.book.xml["xl/styles.xml"]
        style = styles.find(MAIN + "cellXfs")[self.merged.styles[0, 0]]
        fill = styles.find(MAIN + "fills")[int(style.get("fillId"))]
        equal(next(fill.iter(MAIN + "fgColor")).get("rgb"), "FFAFEEEE")
        font = styles.find(MAIN + "fonts")[int(style.get("fontId"))]
        equal(font.find(MAIN + "color").get("rgb"), "FFFFFFFF")
        equal(font.find(MAIN + "name").get("val"), "Arial")
        check(font.find(MAIN + "b") is not None, "not bold")

    def sheets_have_names_of_their_own(self):
        names = [sheet.name for sheet in Book(os.path.join(self.directory, "names.xlsx")).sheets]
        equal(names, NAMES)
        equal(len({name.lower() for name in names}), len(names))
        for name in names:
            check(0 < len(name.encode("utf-16-le")) // 2 <= 31, name)
            check(not re.search(r"[\[\]:*?/\\']", name), name)

    def ambiguous_names_are_in_no_formula(self):
        book = self.xml_of("names.xlsx")
        formulas = [name.text for name in book.iter(MAIN + "definedName")]
        check(formulas, "no filters at all")
        for formula in formulas:
            check(re.match(r"'|plain!|Sheet!|_", formula), formula)

    def xml_of(self, name):
        return Book(os.path.join(self.directory, name)).xml["xl/workbook.xml"]

    def a_big_table_is_complete(self):
        book = Book(os.path.join(self.directory, "big.xlsx"))
        equal(len(book.sheets), 1)
        sheet = book.sheets[0]
        equal(len(sheet.cells), 220002)
        for i in range(110000):
            if sheet.get(i + 1, 0) != i or sheet.get(i + 1, 1) != f"=row & {i % 1000}":
                raise AssertionError(f"row {i}")

    def a_table_too_long_goes_on_in_the_next_sheet(self):
        sheets = Book(os.path.join(self.directory, "split.xlsx")).sheets
        equal([sheet.name for sheet in sheets], ["split", "split~2", "split~3", "split~4"])
        numbers = []
        for sheet in sheets:
            equal((sheet.get(0, 0), sheet.get(1, 0), sheet.get(1, 1)), ("split", "no", "text"))
            check(sheet.rows() <= 302, sheet.rows())
            numbers += [sheet.get(row, 0) for row in range(2, sheet.rows())]
        equal(numbers, [float(i) for i in range(1000)])

    def equal_tables_give_equal_bytes(self):
        first, second = (open(os.path.join(self.directory, name), "rb").read()
                         for name in ("sample.xlsx", "again.xlsx"))
        check(first == second, "sample.xlsx and again.xlsx differ")
        equal(self.book.dates, {(1980, 1, 1, 0, 0, 0)})
        check(b">1980-01-01T00:00:00Z<" in self.book.parts["docProps/core.xml"],
              self.book.parts["docProps/core.xml"])

    def another_time_and_zone_change_nothing(self):
        time.sleep(1.1)
        with tempfile.TemporaryDirectory(prefix="npuprof-xlsx-") as other:
            make(self.sample, other, TZ="Asia/Shanghai")
            for name in ("sample.xlsx", "big.xlsx"):
                with open(os.path.join(self.directory, name), "rb") as first, \
                        open(os.path.join(other, name), "rb") as second:
                    check(first.read() == second.read(), name)


def make(sample, directory, **environment):
    subprocess.run([sample, directory], check=True, env={**os.environ, **environment})


def main(argv):
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--sample", required=True)
    options = parser.parse_args(argv)
    names = [name for name in vars(Cases) if not name.startswith("_") and name != "xml_of"]
    print(f"1..{len(names)}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="npuprof-xlsx-") as directory:
        make(options.sample, directory)
        cases = Cases(directory)
        cases.sample = options.sample
        for number, name in enumerate(names, 1):
            try:
                getattr(cases, name)()
                problem = None
            except Exception as error:  # a bug of the test must not hide the other cases
                problem = f"{type(error).__name__}: {error}"
            failed += problem is not None
            print(f"{'not ' if problem else ''}ok {number} - {name.replace('_', ' ')}")
            if problem:
                print("".join(f"# {line}\n" for line in problem.splitlines()), end="")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
