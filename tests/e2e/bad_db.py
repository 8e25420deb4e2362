"""Cases of databases."""
import os
import random
import shutil
import sqlite3

from bad_files import read, replacements, sample, write


def db_files(lab):
    return [name for name in lab.files("db") if name.endswith(".db")]


def db_path(shelf, which="profiler"):
    name = [name for name in db_files(shelf.lab) if which in os.path.basename(name)][0]
    return os.path.join(shelf.tree, name)


def edit(path, *statements, script=None):
    """Change a database, however odd the result."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode=OFF")
        for statement in statements:
            connection.execute(statement)
        if script:
            script(connection)
    finally:
        connection.close()


def tables(path):
    connection = sqlite3.connect(path)
    try:
        found = {}
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'"):
            found[name] = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
        return found
    finally:
        connection.close()


def cut(name):
    def case(shelf):
        shelf.base("db")
        path = os.path.join(shelf.tree, name)
        whole = read(path)
        plan = [1, 15, 16, 17, 50, 99, 100, 101, 511, 512, 4095, 4096, 4097]
        plan += [len(whole) * i // 60 for i in range(1, 60)] + [len(whole) - 1]
        for position in sample(shelf.lab, plan, 12):
            write(path, whole[:position])
            shelf.verify(f"{name} cut at {position}", form="db", healthy=[1], told=True)
    return case


def flipped(name):
    def case(shelf):
        shelf.base("db")
        path = os.path.join(shelf.tree, name)
        whole = read(path)
        rng = random.Random(7)
        for i in range(500 if shelf.lab.full else 25):
            content = bytearray(whole)
            area = rng.choice((100, 4096, len(content)))
            for _ in range(rng.choice((1, 3, 50))):
                content[rng.randrange(area)] ^= 1 << rng.randrange(8)
            write(path, content)
            shelf.verify(f"{name} with flipped bits, number {i}", form="db", healthy=[1])
    return case


def replaced(name):
    def case(shelf):
        shelf.base("db")
        path = os.path.join(shelf.tree, name)
        for what, make in replacements(read(path), 3):
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            else:
                os.remove(path)
            make(path)
            told = "analysis" not in name and what not in ("twice",)
            shelf.verify(f"{name} is {what}", form="db", healthy=[1], told=told)
    return case


def beside(shelf):
    """What may lie beside a database, good or bad."""
    shelf.base("db")
    path = db_path(shelf)
    rng = random.Random(1)
    for suffix in ("-wal", "-journal", "-shm"):
        for label, content in (("empty", b""), ("noise", rng.randbytes(9000)),
                               ("zeros", bytes(9000)),
                               ("a header", b"\x37\x7f\x06\x82" + bytes(5000)),
                               ("a journal", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(5000))):
            write(path + suffix, content)
            shelf.verify(f"{suffix} is {label}", form="db", healthy=[1])
            os.remove(path + suffix)
        for label, make in (("a FIFO", os.mkfifo), ("a directory", os.mkdir),
                            ("a dangling link", lambda p: os.symlink("nowhere", p)),
                            ("a link to /dev/zero", lambda p: os.symlink("/dev/zero", p))):
            make(path + suffix)
            shelf.verify(f"{suffix} is {label}", form="db", healthy=[1])
            if os.path.isdir(path + suffix) and not os.path.islink(path + suffix):
                os.rmdir(path + suffix)
            else:
                os.remove(path + suffix)


def wal(shelf):
    """Rows that are only in the write-ahead log; also in a directory one may only read."""
    for spoil in (None, "cut", "noise", "hole", "read-only"):
        rank = shelf.base("db")[0]
        path = db_path(shelf)
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("CREATE TABLE more(a)")
        connection.executemany("INSERT INTO more VALUES(?)", [("x" * 500,)] * 500)
        connection.commit()
        copies = [(path + suffix, read(path + suffix)) for suffix in ("", "-wal")]
        connection.close()
        for copy, content in copies:
            write(copy, content)
        content = copies[1][1]
        if spoil == "cut":
            write(path + "-wal", content[:len(content) // 2 + 5])
        elif spoil == "noise":
            middle = len(content) // 2
            write(path + "-wal", content[:middle] + random.Random(2).randbytes(middle))
        elif spoil == "hole":
            os.truncate(path + "-wal", 10 << 30)
        elif spoil == "read-only":
            for folder, _, files in os.walk(rank):
                os.chmod(folder, 0o555)
                for name in files:
                    os.chmod(os.path.join(folder, name), 0o444)
        shelf.verify(f"write-ahead log, {spoil}", form="db", healthy=[1],
                     as_nobody=spoil == "read-only")
        for folder, _, _ in os.walk(rank):
            os.chmod(folder, 0o755)


def locked(shelf):
    shelf.base("db")
    for mode in ("DELETE", "WAL"):
        path = db_path(shelf)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(f"PRAGMA journal_mode={mode}")
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("CREATE TABLE held(a)")
        shelf.verify(f"locked by another process, {mode}", form="db", healthy=[1])
        connection.execute("ROLLBACK")
        connection.close()


def odd_schemas(shelf):
    shelf.base("db")
    path = db_path(shelf)
    whole = read(path)
    known = tables(path)

    def variants():
        for table in known:
            quoted = f'"{table}"'
            yield f"{table} renamed", [f"ALTER TABLE {quoted} RENAME TO \"it's \"\"odd\"\"\""]
            yield f"{table} is a view", [f"ALTER TABLE {quoted} RENAME TO kept",
                                         f"CREATE VIEW {quoted} AS SELECT * FROM kept"]
            yield f"{table} is an endless view", [
                f"DROP TABLE {quoted}", f"CREATE VIEW {quoted} AS WITH RECURSIVE c(x) AS "
                f"(SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x AS startNs FROM c"]
            yield f"{table} is empty", [f"DELETE FROM {quoted}"]
            yield f"{table} is missing", [f"DROP TABLE {quoted}"]
            columns = known[table]
            yield f"{table} without its columns", [f"DROP TABLE {quoted}",
                                                   f"CREATE TABLE {quoted}(other)"]
            yield f"{table} without rowid", [
                f"ALTER TABLE {quoted} RENAME TO kept",
                f"CREATE TABLE {quoted}({', '.join(columns)}, PRIMARY KEY({columns[0]})) "
                "WITHOUT ROWID", f"INSERT OR IGNORE INTO {quoted} SELECT * FROM kept "
                f"WHERE {columns[0]} IS NOT NULL"]
            yield f"{table} with generated columns", [
                f"DROP TABLE {quoted}", f"CREATE TABLE {quoted}(x, " + ", ".join(
                    f"{column} AS (x + 1)" for column in columns) + ")",
                f"INSERT INTO {quoted}(x) VALUES(1), (2), ('a'), (NULL)"]
        yield "a trigger", ["CREATE TRIGGER t AFTER INSERT ON TASK BEGIN SELECT 1; END"]

    for label, statements in sample(shelf.lab, variants(), 30):
        write(path, whole)
        try:
            edit(path, *statements)
        except sqlite3.OperationalError:
            continue  # this library of the test can't make it
        shelf.verify(label, form="db", healthy=[1])

    for module in ("fts5", "rtree"):
        write(path, whole)
        try:
            edit(path, "DROP TABLE TASK", f"CREATE VIRTUAL TABLE TASK USING {module}"
                 "(startNs, endNs, deviceId)")
        except sqlite3.OperationalError:
            continue
        shelf.verify(f"TASK is a virtual table, {module}", form="db", healthy=[1])


def odd_values(which):
    """Every column of every table with values of a wrong type."""
    values = ("NULL", "'text'", "x'00ff'", "-1", "9223372036854775807", "-9223372036854775808",
              "1e308", "9e999", "''", "0", "4294967296", "zeroblob(100000)",
              "char(27)||'[31m'||char(10)||char(0)||'<b>'", "'-9223372036854775808'", "0.5")

    def case(shelf):
        shelf.base("db")
        path = db_path(shelf, which)
        whole = read(path)
        plan = [(t, c, v, every) for t, columns in tables(path).items() for c in columns
                for v in values for every in (True, False)]
        for table, column, value, every in sample(shelf.lab, plan, 40):
            write(path, whole)
            where = "" if every else f' WHERE rowid=(SELECT min(rowid) FROM "{table}")'
            try:
                edit(path, f'UPDATE OR IGNORE "{table}" SET "{column}"={value}{where}')
            except sqlite3.Error:
                continue  # datatype mismatch of an INTEGER PRIMARY KEY
            shelf.verify(f"{table}.{column} is {value}, all rows: {every}", form="db", healthy=[1])
        for value in values:
            write(path, whole)

            def fill(connection, v=value):
                for table, columns in tables(path).items():
                    for column in columns:
                        try:
                            connection.execute(
                                f'UPDATE OR IGNORE "{table}" SET "{column}"={v}')
                        except sqlite3.Error:
                            pass
            edit(path, script=fill)
            shelf.verify(f"every value is {value}", form="db", healthy=[1], spoken=True)
    return case


def big_things(shelf):
    shelf.base("db")
    path = db_path(shelf)
    whole = read(path)
    counted = "WITH RECURSIVE i(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM i WHERE i<{}) "

    def many_tables(connection):
        connection.execute("BEGIN")
        for i in range(10000):
            connection.execute(f"CREATE TABLE t{i}(a, b)")
        connection.execute("COMMIT")

    def wide(connection):
        connection.execute("DROP TABLE TASK")
        connection.execute("CREATE TABLE TASK(" + ",".join(f"c{i}" for i in range(1990)) +
                           ",startNs,endNs,deviceId,taskType)")
        connection.execute("INSERT INTO TASK(startNs,endNs) VALUES(1,2)")

    variants = (
        ("10,000 tables", (), many_tables), ("2,000 columns", (), wide),
        ("a text of 100 MB",
         ("UPDATE STRING_IDS SET value=CAST(zeroblob(100000000) AS TEXT) "
          "WHERE id=(SELECT min(id) FROM STRING_IDS)",), None),
        ("texts of 1 MB",
         ("UPDATE STRING_IDS SET value=printf('%.*c', 1000000, 'x')||id",), None),
        ("a large group text",
         ("UPDATE META_DATA SET value=printf('%.*c', 50000000, '[')",), None),
        ("dangling string ids", ("UPDATE STRING_IDS SET id=id+1000000",), None),
        ("string ids at the ends of the range", (
            "DELETE FROM STRING_IDS",
            "INSERT INTO STRING_IDS(id,value) VALUES(9223372036854775807,'a'),"
            "(-9223372036854775808,'b'),(4294967295,'c'),(-1,'d')"), None),
        ("a million string ids", (
            counted.format(1000000) +
            "INSERT OR IGNORE INTO STRING_IDS(id,value) SELECT i*4096+100000,'s'||i FROM i",),
         None),
        ("a million tasks at one time", (
            counted.format(1000000) +
            "INSERT INTO TASK(startNs,endNs,deviceId,connectionId,globalTaskId,streamId,taskId) "
            "SELECT 5,5,0,7,i%3,1,1 FROM i",), None),
        ("a million steps, falling", (
            counted.format(1000000) +
            "INSERT OR IGNORE INTO STEP_TIME(id,startNs,endNs) "
            "SELECT 1000000-i,1748764800000000000+i,1748764800000000000 FROM i",), None),
        ("steps that overlap", (
            counted.format(100000) +
            "INSERT OR IGNORE INTO STEP_TIME(id,startNs,endNs) "
            "SELECT 100+i,0,9223372036854775807 FROM i",), None),
    )
    for label, statements, script in variants:
        write(path, whole)
        try:
            edit(path, *statements, script=script)
        except sqlite3.OperationalError as error:
            shelf.fail(f"{label}: the test cannot make it: {error}")
        # large texts: SQLite's pages, the cell, and the copy that is kept
        shelf.verify(label, form="db", healthy=[1], memory=4 if "text" in label else 2)


def copies(shelf):
    """Many databases of one rank, and names that lead elsewhere."""
    rank = shelf.base("db")[0]
    output = os.path.join(rank, "ASCEND_PROFILER_OUTPUT")
    path = db_path(shelf)
    for i in range(2, 40):
        shutil.copyfile(path, os.path.join(output, f"ascend_pytorch_profiler_{i}.db"))
    for odd in ("ascend_pytorch_profiler_-1.db", "ascend_pytorch_profiler_99999999999999999999.db",
                "ascend_pytorch_profiler_?mode=rwc.db", "ascend_pytorch_profiler_%00.db",
                "ascend_pytorch_profiler_#.db", "ascend_pytorch_profiler_'.db"):
        shutil.copyfile(path, os.path.join(output, odd))
    shelf.verify("many databases", form="db", healthy=[1], spoken=True)


def cases(lab):
    for name in db_files(lab):
        label = "db: " + os.path.basename(name)
        yield f"{label} cut", cut(name)
        yield f"{label} flipped", flipped(name)
        yield f"{label} replaced", replaced(name)
    yield "db: files beside it", beside
    yield "db: write-ahead log", wal
    yield "db: locked", locked
    yield "db: odd schemas", odd_schemas
    yield "db: odd values of the profiler", odd_values("profiler")
    yield "db: odd values of the analysis", odd_values("analysis")
    yield "db: big things", big_things
    yield "db: many copies", copies
