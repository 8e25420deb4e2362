"""Cases of single deliverables: cut, replaced, and filled with nonsense."""
import csv
import gzip
import io
import json
import os
import random
import re
import socket
import threading

SMALL = 4096
NUMBERS = ("1e308", "99999999999999999999", "-1", "-99999999999999999999", "nan", "inf", "1e-400",
           "9223372036854775807", "-9223372036854775808", "9223372036854775.807", "4294967295",
           "", "0", "-0", "abc", "1.2.3", "0x10", "\u22121", "1e18", "9" * 400, "0." + "1" * 400)
NASTY = ('"', "'", "a\nb", "\x1b[31mred\x1b]0;title\x07", "<script>alert(1)</script>", "=1+1",
         "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\u202eevil", "\u0000", "%s%n%x", "../../etc",
         "`id`", "$(id)", "|", "\\", "\x9b31m", "\u2028", "x" * 100000)
# values of the wrong type, as JSON text
WRONG = ("[]", "{}", "null", "true", '""', '"x"', "-1", "1e308", "1e400", "99999999999999999999",
         "1000000000000", '"\\u22121"', '"1e18"', '"abc"', "[[[[1]]]]", '{"a":{"b":[]}}', "0.5",
         '"\\u001b[31m\\u0000"', "-9223372036854775808", "9223372036854775807")


def write(path, content):
    with open(path, "wb") as out:
        out.write(content)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def sample(lab, items, n):
    """All of them with --full, otherwise about n, spread evenly; the same ones each time."""
    items = list(items)
    if lab.full or len(items) <= n:
        return items
    return [items[i * len(items) // n] for i in range(n)]


def is_judged(name):
    """Files that info or check reads, whose loss must be told."""
    return re.search(r"(kernel_details|trace_view|op_summary|msprof_\d|profiler.*\.db|"
                     r"profiler_info|step_trace)", os.path.basename(name))


# ---- cut ----

def cut(form, name):
    def case(shelf):
        shelf.base(form)
        path = os.path.join(shelf.tree, name)
        whole = read(path)
        if len(whole) <= SMALL:
            positions = sample(shelf.lab, range(len(whole)), 10)
        else:
            edge = list(range(1, 20)) + list(range(len(whole) - 20, len(whole)))
            positions = sample(shelf.lab, edge, 4)
            positions += [len(whole) * i // 60 for i in sample(shelf.lab, range(1, 60), 6)]
        for position in positions:
            write(path, whole[:position])
            shelf.verify(f"{name} cut at {position}", form=form, healthy=[1])
    return case


# ---- replaced ----

def make_socket(path):
    server = socket.socket(socket.AF_UNIX)
    short = os.path.join("/proc/self/fd", str(os.open(os.path.dirname(path), os.O_RDONLY)))
    try:
        server.bind(os.path.join(short, os.path.basename(path)))
    finally:
        server.close()
        os.close(int(os.path.basename(short)))


def make_sparse(path, size=10 << 30):
    write(path, b"")
    os.truncate(path, size)


def replacements(whole, seeds):
    """(name, function of the path)"""
    size = len(whole)
    yield "empty", lambda path: write(path, b"")
    yield "zeros", lambda path: write(path, bytes(size))
    for seed in range(seeds):
        yield f"noise {seed}", lambda path, s=seed: write(path, random.Random(s).randbytes(size))
    yield "a hole of 10 GB", make_sparse
    yield "a directory", os.mkdir
    yield "a FIFO", os.mkfifo
    yield "a socket", make_socket
    yield "a dangling link", lambda path: os.symlink("nowhere", path)
    yield "a link to itself", lambda path: os.symlink(os.path.basename(path), path)
    yield "a link to /dev/zero", lambda path: os.symlink("/dev/zero", path)
    yield "a link to /proc/self/mem", lambda path: os.symlink("/proc/self/mem", path)
    yield "a link to its directory", lambda path: os.symlink(".", path)
    yield "a cut gzip", lambda path: write(path, gzip.compress(whole)[:max(12, size // 20)])
    yield "a gzip", lambda path: write(path, gzip.compress(whole))
    yield "a gzip of zeros", lambda path: write(path, gzip.compress(bytes(300 << 20), 1))
    yield "a gzip header only", lambda path: write(path, b"\x1f\x8b\x08\x00")
    yield "twice", lambda path: write(path, whole + whole)
    yield "newlines", lambda path: write(path, b"\n" * size)
    yield "quotes", lambda path: write(path, b'"' * size)
    yield "brackets", lambda path: write(path, b"[" * 100000)
    yield "braces", lambda path: write(path, b'{"a":' * 100000)


def replaced(form, name):
    def case(shelf):
        shelf.base(form)
        path = os.path.join(shelf.tree, name)
        whole = read(path)
        for what, make in replacements(whole, 12 if shelf.lab.full else 2):
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            else:
                os.remove(path)
            make(path)
            harmless = what in ("twice", "a gzip", "newlines")
            shelf.verify(f"{name} is {what}", form=form, healthy=[1],
                         told=bool(is_judged(name)) and not harmless)
    return case


# ---- encodings and bytes ----

def recoded(form, name):
    def case(shelf):
        shelf.base(form)
        path = os.path.join(shelf.tree, name)
        whole = read(path)
        text = whole.decode("utf-8")
        variants = [("UTF-16 with mark", text.encode("utf-16")),
                    ("UTF-16LE", text.encode("utf-16-le")),
                    ("UTF-16BE", text.encode("utf-16-be")), ("UTF-32", text.encode("utf-32")),
                    ("a byte order mark", b"\xef\xbb\xbf" + whole),
                    ("two byte order marks", b"\xef\xbb\xbf" * 2 + whole),
                    ("CRLF", whole.replace(b"\n", b"\r\n")), ("CR", whole.replace(b"\n", b"\r"))]
        letters = re.compile(rb"[a-z]{3}")
        for label, odd in (("Latin-1", b"\xe9\xff\x80"), ("GBK", "\u7b97\u5b50".encode("gbk")),
                           ("half a surrogate", b"\xed\xa0\x80"), ("NUL", b"a\0b"),
                           ("escapes", b"\x1b[2J"), ("C1", b"\xc2\x9b1m"),
                           ("overlong", b"\xc0\xaf\xc1")):
            variants.append((label, letters.sub(odd, whole)))
            variants.append((label + " at the end", whole + odd))
            middle = len(whole) // 2
            variants.append((label + " in the middle", whole[:middle] + odd + whole[middle:]))
        for label, content in sample(shelf.lab, variants, 8):
            write(path, content)
            shelf.verify(f"{name} with {label}", form=form, healthy=[1])
    return case


def flipped(form, name):
    def case(shelf):
        shelf.base(form)
        path = os.path.join(shelf.tree, name)
        whole = read(path)
        rng = random.Random(name)
        for _ in range(60 if shelf.lab.full else 4):
            content = bytearray(whole)
            for _ in range(rng.choice((1, 5, 100))):
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            write(path, content)
            shelf.verify(f"{name} with flipped bits", form=form, healthy=[1])
    return case


# ---- CSV ----

def rewrite_csv(whole, change):
    rows = list(csv.reader(io.StringIO(whole.decode("utf-8"))))
    rows = change(rows)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def cells(form, name):
    """Each column filled with each odd value: in one row, and in all."""
    def case(shelf):
        shelf.base(form)
        path = os.path.join(shelf.tree, name)
        whole = read(path)
        width = len(next(csv.reader(io.StringIO(whole.decode("utf-8")))))
        plan = [(c, v, every) for c in range(width) for v in NUMBERS + NASTY
                for every in (False, True)]
        for column, value, every in sample(shelf.lab, plan, 20):
            def change(rows, c=column, v=value, e=every):
                for i in range(1, len(rows) if e else 2):
                    if c < len(rows[i]):
                        rows[i][c] = v
                return rows
            write(path, rewrite_csv(whole, change))
            shelf.verify(f"{name}: column {column} is {value[:40]!r}, all rows: {every}",
                         form=form, healthy=[1])
        for value in NUMBERS + NASTY:
            write(path, rewrite_csv(whole, lambda rows, v=value: [rows[0]] +
                                    [[v] * len(row) for row in rows[1:]]))
            shelf.verify(f"{name}: every cell is {value[:40]!r}", form=form, healthy=[1])
            if not shelf.lab.full and value == NUMBERS[3]:
                break
    return case


def headers(form, name):
    def case(shelf):
        shelf.base(form)
        path = os.path.join(shelf.tree, name)
        whole = read(path)

        def head(change):
            return rewrite_csv(whole, lambda rows: [change(rows[0])] + rows[1:])
        variants = {
            "all columns of one name": head(lambda row: [row[0]] * len(row)),
            "the header twice": rewrite_csv(whole, lambda rows: [rows[0]] + rows),
            "every header doubled": head(lambda row: row + row),
            "the last column first": head(lambda row: row[::-1]),
            "no header": b"\n".join(whole.split(b"\n")[1:]),
            "the header only": whole.split(b"\n")[0],
            "one column": rewrite_csv(whole, lambda rows: [row[:1] for row in rows]),
            "short rows": rewrite_csv(whole, lambda rows: [rows[0]] + [r[:3] for r in rows[1:]]),
            "long rows": rewrite_csv(whole, lambda rows: [rows[0]] + [r * 5 for r in rows[1:]]),
            "an open quote": whole.replace(b",", b',"', 3),
            "an open quote in the middle": whole[:len(whole) // 2] + b'"' +
                                           whole[len(whole) // 2:],
            "1,000,000 columns": b",".join(b"aic_%d_ratio" % i for i in range(1000000)) + b"\n" +
                                 b"1," * 999999 + b"1\n",
            "1,000,000 columns more": whole.replace(b"\n", b",a" * 1000000 + b"\n", 1),
            "1,000,000 empty columns": b"," * 1000000 + b"\n" + b"," * 1000000,
            "tabs": whole.replace(b",", b"\t"), "semicolons": whole.replace(b",", b";"),
        }
        for nasty in NASTY:
            variants[f"header {nasty[:30]!r}"] = head(lambda row, n=nasty: [n] * len(row))
            variants[f"one header {nasty[:30]!r}"] = head(lambda row, n=nasty: row[:-1] + [n])
        read_by_all = "kernel_details" in name or "op_summary" in name
        for label, content in variants.items() if read_by_all else \
                sample(shelf.lab, variants.items(), 12):
            write(path, content)
            shelf.verify(f"{name}: {label}", form=form, healthy=[1], spoken=label[:3] == "one")
    return case


def kernel_rows(header, n, **values):
    """n rows of a kernel table; values: functions of the row's number, by column."""
    for i in range(n):
        yield ",".join(str(values[key](i)) if key in values else "1" for key in header)


def write_kernels(path, n, start=None, step=None, name=None):
    names = ["Step Id", "Device_id", "Name", "Type", "Accelerator Core", "Start Time(us)",
             "Duration(us)", "Wait Time(us)", "Block Dim", "aic_mac_ratio", "aiv_vec_ratio",
             "aic_mte2_ratio", "aiv_mte3_ratio"]
    values = {"Start Time(us)": start or (lambda i: 1748764800000000 + i * 10),
              "Step Id": step or (lambda i: 12), "Name": name or (lambda i: "MatMul"),
              "Type": lambda i: "MatMul", "Accelerator Core": lambda i: "AI_CORE"}
    with open(path, "w", encoding="utf-8") as out:
        out.write(",".join(names) + "\n")
        for row in kernel_rows(names, n, **values):
            out.write(row + "\n")


def step_of_one_slot(i):
    """Ids that an unseeded multiplicative hash puts into one slot of every table."""
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << 64)
    folded = ((i & 0xfffff) | (i >> 20) << 44) * inverse % (1 << 64)
    high = folded >> 32
    value = high << 32 | ((folded & 0xffffffff) ^ high)
    return value - (1 << 64) if value >> 63 else value


def kernel_crowds(shelf):
    rank = shelf.base("text")[0]
    path = os.path.join(rank, "ASCEND_PROFILER_OUTPUT", "kernel_details.csv")
    million = 1000000
    variants = {
        "a million rows at one time": {"start": lambda i: 1748764800000000},
        "a million rows backwards": {"start": lambda i: 1748764800000000 - i},
        "a million steps, descending": {"step": lambda i: million - i},
        "a million steps, far apart": {"step": lambda i: i * 9223372036854},
        "a million steps, spaced": {"step": lambda i: i << 40},
        "a million steps of one slot": {"step": step_of_one_slot},
        "a million names": {"name": lambda i: f"name_{i}"},
        "times over the whole range": {"start": lambda i: i * 9000000000},
    }
    for label, functions in variants.items():
        write_kernels(path, million, **functions)
        # of a row of 60 bytes about 90 are kept, and as much for a step of its own
        shelf.verify(label, form="text", healthy=[1], memory=5)


def long_lines(shelf):
    rank = shelf.base("text")[0]
    output = os.path.join(rank, "ASCEND_PROFILER_OUTPUT")
    piece = b"x" * (1 << 20)
    for name, head, tail in (
            ("kernel_details.csv", b"", b""), ("kernel_details.csv", b'"', b""),
            ("kernel_details.csv", b'Name,Duration(us),Start Time(us)\n"', b'",1,1\n'),
            ("step_trace_time.csv", b"Device_id,Step,", b"\n"),
            ("trace_view.json", b'[{"name":"', b'","ph":"X"}]'), ("trace_view.json", b"", b""),
            ("communication.json", b'{"step0":{"', b'":1}}'),
            ("../profiler_info_0.json", b'{"rank_id":"', b'"}'),
            ("../profiler_metadata.json", b'{"parallel_group_info":{"', b'":{}}}'),
            ("../logs/profiler_1_1_x.log", b"", b"\n")):
        path = os.path.join(output, name)
        before = read(path) if os.path.exists(path) else None
        with open(path, "wb") as out:
            out.write(head)
            for _ in range(200):
                out.write(piece)
            out.write(tail)
        shelf.verify(f"{name}: a line of 200 MB behind {head!r}", form="text", healthy=[1],
                     memory=4)  # the file, the text, and the copies that are kept
        os.remove(path)
        if before is not None:
            write(path, before)


# ---- JSON ----

def paths_of(value, prefix=()):
    yield prefix
    children = []
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    for key, child in children:
        yield from paths_of(child, prefix + (key,))


def with_value(document, path, text):
    """JSON text of the document where the value at `path` is `text`."""
    mark = "@@here@@"
    copy = json.loads(json.dumps(document))
    if not path:
        return text.encode()
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = mark
    return json.dumps(copy).replace(f'"{mark}"', text).encode()


def wrong_types(form, name, n):
    def case(shelf):
        shelf.base(form)
        path = os.path.join(shelf.tree, name)
        document = json.loads(read(path))
        if isinstance(document, list):
            seen, short = set(), []
            for event in document:  # one event of each shape
                shape = (event.get("ph"), event.get("cat"), tuple(sorted(event)))
                if shape not in seen:
                    seen.add(shape)
                    short.append(event)
            document = short
        plan = [(where, text) for where in paths_of(document) for text in WRONG]
        for where, text in sample(shelf.lab, plan, n):
            write(path, with_value(document, where, text))
            shelf.verify(f"{name}: {where} is {text}", form=form, healthy=[1])
        for text in WRONG:  # every leaf at once
            content = re.sub(rb'(: ?)("(?:[^"\\]|\\.)*"|-?[0-9.]+|true|false|null)',
                             lambda m, t=text: m.group(1) + t.encode(), json.dumps(document).encode())
            write(path, content)
            shelf.verify(f"{name}: every value is {text}", form=form, healthy=[1])
    return case


def json_shapes(form, name):
    def case(shelf):
        shelf.base(form)
        path = os.path.join(shelf.tree, name)
        whole = read(path)
        deep = 100000
        variants = {
            "100,000 brackets": b"[" * deep, "closed brackets": b"[" * deep + b"]" * deep,
            "100,000 objects": b'{"a":' * deep + b"1" + b"}" * deep,
            "deep in the document": b'{"a":' + b"[" * deep + b"]" * deep + b"," +
                                    whole.lstrip()[1:],
            "1,000,000 keys": b"{" + b",".join(b'"%d":1' % i for i in range(1000000)) + b"}",
            "one key a million times": b"{" + b'"a":1,' * 999999 + b'"a":1}',
            "1,000,000 empty objects": b"[" + b"{}," * 999999 + b"{}]",
            "1,000,000 numbers": b"[" + b"1," * 999999 + b"1]",
            "commas": b"[" + b"," * 1000000 + b"]",
            "backslashes": b'["' + b"\\" * 1000001 + b'"]',
            "a number of a million digits": b'{"rank_id":' + b"9" * 1000000 + b"}",
            "NUL inside": whole[:len(whole) // 2] + b"\0" * 100 + whole[len(whole) // 2:],
            "NUL behind": whole + b"\0" * 5000, "a comment": b"/*" + b"*" * 1000000,
            "comments": b"/**/" * 250000 + whole, "two documents": whole + whole,
            "a surrogate alone": b'{"hostname":"\\ud800","a":"\\udc00\\ud800x"}',
        }
        for label, content in variants.items():
            write(path, content)
            shelf.verify(f"{name}: {label}", form=form, healthy=[1])
    return case


def big_metadata(shelf):
    ranks = shelf.base("text")
    million = "[" + ",".join(map(str, range(1000000))) + "]"
    odd = "[" + ",".join(str(i * 2) for i in range(1000000)) + "]"
    falling = "[" + ",".join(str(1000000 - i) for i in range(1000000)) + "]"
    group = '{"parallel_group_info":{"g":{"group_name":"default_group","group_rank":0,' \
            '"global_ranks":%s}}}'
    many = '{"parallel_group_info":{%s}}'
    edges = "[9223372036854775807,-9223372036854775808,9223372036854775806,9223372036854775807]"
    variants = {
        "a million ranks in a group": group % million,
        "a million odd ranks": group % odd, "a million ranks, falling": group % falling,
        "ranks at the ends of the range": group % edges,
        "a world of 10^12": '{"distributed_args":{"world_size":1000000000000}}',
        "a world of the largest number":
            '{"distributed_args":{"world_size":9223372036854775807,'
            '"tensor_model_parallel_size":-9223372036854775808}}',
    }
    for label, text in variants.items():
        for rank in ranks:
            write(os.path.join(rank, "profiler_metadata.json"), text.encode())
        shelf.verify(label, form="text", healthy=[0, 1])
    for i, rank in enumerate(ranks):
        groups = ",".join(f'"group_{i}_{k}":{{"group_name":"tp","global_ranks":[0,1]}}'
                          for k in range(60000))
        write(os.path.join(rank, "profiler_metadata.json"), (many % groups).encode())
    shelf.verify("60,000 groups in each of two ranks", form="text", healthy=[0, 1])


def long_lists(shelf):
    """Lists in profiler_info that have a few members elsewhere."""
    for key in ("activities", "_export_type"):
        rank = shelf.base("text")[0]
        info = os.path.join(rank, "profiler_info_0.json")
        many = "[" + ",".join(f'"x.member_{i}"' for i in range(300000)) + "]"
        text = re.sub(rf'"{key}":\s*(\[[^]]*\]|"[^"]*")', f'"{key}": {many}', read(info).decode())
        assert "member_9" in text
        write(info, text.encode())
        shelf.verify(f"300,000 members of {key}", form="text", healthy=[0, 1])


def rank_ids(shelf):
    """Strange rank ids in the content and in the name of profiler_info."""
    for value in ('"\u22121"', "1e18", '"abc"', "-1", "9223372036854775807", '"1e18"', "1.5",
                  "1000000000000", "[0]", "null", "99999999999999999999"):
        rank = shelf.base("text")[0]
        info = os.path.join(rank, "profiler_info_0.json")
        document = json.loads(read(info))
        document["rank_id"] = "@@"
        text = json.dumps(document).replace('"@@"', value).encode()
        write(info, text)
        shelf.verify(f"rank_id {value}", form="text", healthy=[1])
        os.rename(info, os.path.join(rank, "profiler_info.json"))
        shelf.verify(f"rank_id {value}, no number in the name", form="text", healthy=[1])
    for number in ("-1", "99999999999999999999", "9223372036854775807", "1e18", "abc", "", "0x1",
                   "\u22121", "1000000000000"):
        rank = shelf.base("text")[0]
        os.rename(os.path.join(rank, "profiler_info_0.json"),
                  os.path.join(rank, f"profiler_info_{number}.json"))
        shelf.verify(f"profiler_info_{number}.json", form="text", healthy=[1])


def step_marks(shelf):
    """Steps from the trace, beside kernels that name none."""
    rank = shelf.base("text")[0]
    output = os.path.join(rank, "ASCEND_PROFILER_OUTPUT")
    n = 200000
    write_kernels(os.path.join(output, "kernel_details.csv"), n, step=lambda i: "",
                  start=lambda i: 1000 + i)
    for label, order in (("rising", range(n)), ("falling", range(n, 0, -1))):
        with open(os.path.join(output, "trace_view.json"), "w", encoding="utf-8") as out:
            out.write("[" + ",\n".join(
                f'{{"ph":"X","name":"ProfilerStep#{i}","pid":1,"tid":1,"cat":"cpu_op",'
                f'"ts":"{1748764800000000 + i}","dur":1,"args":{{}}}}' for i in order) + "]")
        shelf.verify(f"{n} steps in the trace, {label}", form="text", healthy=[1])


def moving(form, part):
    """A file that shrinks and grows while it is read."""
    ending = os.path.splitext(part)[1]

    def case(shelf):
        shelf.base(form)
        name = [name for name in shelf.lab.files(form) if part in name][0]
        path = os.path.join(shelf.tree, name)
        whole = read(path)
        if ending == ".json":
            whole = whole[:1] + b" " * (8 << 20) + whole[1:]
        elif ending == ".csv":
            line = whole.index(b"\n", len(whole) // 2) + 1
            whole = whole[:line] + whole[line:] * (1 + (8 << 20) // len(whole))
        done = threading.Event()
        assert len(whole) > 100000

        def shake():
            rng = random.Random(3)
            while not done.is_set():
                write(path, whole)
                done.wait(rng.random() / 20)
                os.truncate(path, rng.randrange(len(whole)))
                done.wait(rng.random() / 200)

        write(path, whole)
        shaker = threading.Thread(target=shake)
        shaker.start()
        try:
            for i in range(60 if shelf.lab.full else 12):
                shelf.attempt(f"{name} changes while it is read, number {i}")
        finally:
            done.set()
            shaker.join()
    return case


def cases(lab):
    for form in ("text", "db", "msprof"):
        for name in lab.files(form):
            label = f"{form}: {os.path.basename(name)}"
            if name.endswith(".db"):
                continue  # bad_db.py
            yield f"{label} cut", cut(form, name)
            yield f"{label} replaced", replaced(form, name)
            if form == "db" or "info.json." in name:
                continue  # the same as in text
            yield f"{label} recoded", recoded(form, name)
            yield f"{label} flipped", flipped(form, name)
            if name.endswith(".csv"):
                yield f"{label} cells", cells(form, name)
                yield f"{label} headers", headers(form, name)
            if name.endswith(".json"):
                yield f"{label} wrong types", wrong_types(form, name, 20)
                yield f"{label} shapes", json_shapes(form, name)
    for form, name in (("text", "kernel_details.csv"), ("text", "trace_view.json"),
                       ("text", "profiler_metadata.json"), ("db", "pytorch_profiler_0.db")):
        yield f"{form}: {name} changes while it is read", moving(form, name)
    yield "text: crowds of kernels", kernel_crowds
    yield "text: lines of 200 MB", long_lines
    yield "text: big metadata", big_metadata
    yield "text: long lists", long_lists
    yield "text: rank ids", rank_ids
    yield "text: steps of the trace", step_marks
