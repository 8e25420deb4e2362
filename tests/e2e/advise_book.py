#!/usr/bin/env python3
"""The workbook and the page of `advise`, beside what --json says: advise_book.py --npuprof PATH

The captures are made by synth; the XML is read by Python's standard library alone. Every
case is one TAP line. Exit status: 0 all passed, 1 something failed, 2 usage.
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile

from xlsx import MAIN, Book, check, equal

CHINESE = {"problems": "问题综述", "slow_rank": "慢卡分析", "slow_link": "慢链路分析",
           "environment": "环境变量分析", "overall_summary": "整网耗时分析",
           "byte_alignment": "字节对齐分析"}
ENGLISH = {"problems": "problems", "slow_rank": "slow rank", "slow_link": "slow link",
           "environment": "Environment Variable Issues", "overall_summary": "Overall Summary",
           "byte_alignment": "Byte Alignment Analysis", "gc": "GC Analysis"}
LIMIT = 31


class Cases:
    def __init__(self, npuprof, directory):
        self.npuprof, self.directory = npuprof, directory
        self.captures = os.path.join(directory, "captures")
        self.run("synth", self.captures, "-q", "--ranks", "2", "--fault", "slow-rank=1",
                 "--fault", "idle-gc")
        self.cluster = self.advise("cluster", self.captures)
        rank = sorted(glob.glob(os.path.join(self.captures, "*_ascend_pt")))[0]
        self.single = self.advise("single", rank)
        self.chinese = self.advise("chinese", self.captures, "--lang", "zh")

    def run(self, *words, good=(0,)):
        made = subprocess.run([self.npuprof, *words], capture_output=True, text=True,
                              timeout=300, check=False)
        check(made.returncode in good, f"{words}: exit {made.returncode}: {made.stderr[:300]}")
        return made.stdout

    def advise(self, name, path, *words):
        out = os.path.join(self.directory, name)
        report = json.loads(self.run("advise", path, "-o", out, "--json", "--no-cache", *words,
                                     good=(0, 3)))
        books = glob.glob(os.path.join(out, "npuprof_advisor_*.xlsx"))
        pages = glob.glob(os.path.join(out, "npuprof_advisor_*.html"))
        equal((len(books), len(pages)), (1, 1), "files")
        return report, Book(books[0]), pages[0]

    def sheets_are_the_tables_and_cells_their_values(self):
        for report, book, _ in (self.cluster, self.single):
            equal(len(book.sheets), len(report["tables"]), "sheets")
            check(len(book.sheets) > 3, "nothing was found")
            for sheet, table in zip(book.sheets, report["tables"]):
                names = [column["name"] for column in table["columns"]]
                equal([sheet.get(0, c) for c in range(len(names))], names, table["id"])
                equal(sheet.rows(), len(table["rows"]) + 1, table["id"])
                for r, row in enumerate(table["rows"]):
                    values = row.values() if isinstance(row, dict) else row
                    for c, value in enumerate(values):
                        self.same(sheet.get(r + 1, c), value, f"{table['id']} {r} {c}")

    @staticmethod
    def same(got, value, where):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and abs(value) >= 1e15:
            equal(got, str(value), where)  # a spreadsheet would round it
        elif whole or isinstance(value, float):
            check(isinstance(got, float), f"{where}: {value} is {got!r}")
            check(abs(got - value) <= 1e-15 * abs(value), f"{where}: {got} {value}")
        else:
            equal(got, value if value != "" else None, where)

    def problems_go_first(self):
        for report, book, page in (self.cluster, self.single):
            equal(book.sheets[0].name, "problems")
            equal(report["tables"][0]["id"], "problems")
            with open(page, encoding="utf-8") as file:
                text = file.read()
            check('"id":"problems"' in text, "the page has no problems")

    def names_are_official_unique_and_short(self):
        for (report, book, _), names in ((self.cluster, ENGLISH), (self.single, ENGLISH),
                                         (self.chinese, CHINESE)):
            got = [sheet.name for sheet in book.sheets]
            equal(len({name.casefold() for name in got}), len(got), "unique")
            check(all(len(name) <= LIMIT for name in got), got)
            for name, table in zip(got, report["tables"]):
                if table["id"] in names:
                    equal(name, names[table["id"]])
                if table["id"].endswith("_compare"):
                    equal(name, table["title"][:LIMIT])

    def headers_stay_and_rows_can_be_filtered(self):
        for _, book, _ in (self.cluster, self.single, self.chinese):
            for sheet in book.sheets:
                pane = sheet.root.find(f"{MAIN}sheetViews/{MAIN}sheetView/{MAIN}pane")
                check(pane is not None and pane.get("state") == "frozen", sheet.name)
                equal(pane.get("ySplit"), "1", sheet.name)
                check(sheet.rows() == 1 or sheet.root.find(MAIN + "autoFilter") is not None,
                      sheet.name)

    def there_are_no_formulas_and_no_links(self):
        for _, book, _ in (self.cluster, self.single, self.chinese):
            for name, root in book.xml.items():
                for element in root.iter():
                    check(element.tag not in (MAIN + "f", MAIN + "hyperlink"), name)

    def every_problem_is_a_finding(self):
        report, _, _ = self.cluster
        said = [finding["title"] for finding in report["findings"]]
        rows = report["tables"][0]["rows"]
        check(rows, "no problems")
        for row in rows:
            text = row["description"] if isinstance(row, dict) else row[1]
            check(any(title.endswith(text) for title in said), text)

    def the_page_asks_for_nothing(self):
        for _, _, page in (self.cluster, self.single, self.chinese):
            with open(page, encoding="utf-8") as file:
                text = file.read()
            for word in (' src="', "http://", "https://", "@import", "url("):
                check(word not in text.split('<script type="application/json"')[0], word)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--npuprof", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        cases = Cases(os.path.abspath(args.npuprof), directory)
        names = [name for name in vars(Cases) if not name.startswith("_") and
                 name not in ("run", "advise", "same")]
        failed = 0
        print(f"1..{len(names)}")
        for n, name in enumerate(names, 1):
            try:
                getattr(cases, name)()
                print(f"ok {n} - {name}")
            except AssertionError as error:
                failed += 1
                print(f"not ok {n} - {name}\n# {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
