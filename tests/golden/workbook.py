"""The first sheet of a workbook, by Python's standard library alone, and its golden dump."""
import ast
import re
import xml.etree.ElementTree as ElementTree
import zipfile

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def place(reference):
    letters, row = re.fullmatch("([A-Z]+)([0-9]+)", reference).groups()
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - 64
    return int(row) - 1, column - 1


def value_of(cell, strings):
    kind, value = cell.get("t"), cell.find(MAIN + "v")
    if kind == "inlineStr":
        return "".join(t.text or "" for t in cell.iter(MAIN + "t")) or None
    if value is None or value.text is None:
        return None
    return (strings[int(value.text)] or None) if kind == "s" else \
        value.text if kind == "str" else float(value.text)


def sheet(path):
    """Rows and merged ranges of the first sheet."""
    with zipfile.ZipFile(path) as book:
        strings = []
        if "xl/sharedStrings.xml" in book.namelist():
            root = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
            strings = ["".join(t.text or "" for t in item.iter(MAIN + "t")) for item in root]
        root = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    cells = {place(cell.get("r")): value_of(cell, strings)
             for cell in root.iter(MAIN + "c")}
    height, width = (1 + max(at[i] for at in cells) for i in (0, 1))
    return [[cells.get((r, c)) for c in range(width)] for r in range(height)], \
        {merged.get("ref") for merged in root.iter(MAIN + "mergeCell")}


def dump(path):
    """The same of a dump; of the merged ranges it has the first six."""
    with open(path, encoding="utf-8") as text:
        head, *rows = text.read().splitlines()
    return [list(ast.literal_eval(row)) for row in rows], \
        set(ast.literal_eval(head.split("merged=", 1)[1]))
