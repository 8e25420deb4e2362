#!/bin/sh
# The seeds of fuzz_db_pages, made with the sqlite3 shell: small pages, so that a
# few KB hold interior pages, overflow chains and all kinds of values.
set -eu
out=$(dirname "$0")/corpus/db_pages
mkdir -p "$out"

make() { # NAME SQL
	rm -f "$out/$1"
	printf 'PRAGMA page_size=512;\n%s;\n' "$2" | sqlite3 -batch "$out/$1"
}
up_to() { # N
	printf 'WITH RECURSIVE i(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM i WHERE i < %s)' "$1"
}

make empty.db 'CREATE TABLE t(a, b)'
make values.db "CREATE TABLE t(id INTEGER PRIMARY KEY, r REAL, s TEXT, b BLOB, x);
	INSERT INTO t VALUES(-5, 1, 'one', x'0001', NULL), (1, 2.5, '', x'', 127),
	(2, -1e300, 'zwei', NULL, -32769), (300, 0, 'x', 'y', 8388608), (9223372036854775807, 1, 2, 3, 140737488355328),
	(70000, 2, 3, 4, -9223372036854775808), (4000000, 1, 1, 0, 2147483648)"
make interior.db "CREATE TABLE TASK(startNs INTEGER, endNs INTEGER, deviceId INTEGER, taskType INTEGER);
	$(up_to 150) INSERT INTO TASK SELECT 1736412474730135222 + i, 1736412474730135300 + i, 0, i FROM i"
make overflow.db "CREATE TABLE STRING_IDS(id INTEGER PRIMARY KEY, value TEXT);
	$(up_to 5) INSERT INTO STRING_IDS SELECT i, printf('%.*c', i * 300, 'x') FROM i"
make deep.db "CREATE TABLE t(s); $(up_to 14) INSERT INTO t SELECT printf('%.*c', 400, 'x') FROM i"
make added.db "CREATE TABLE t(a); INSERT INTO t VALUES(1); ALTER TABLE t ADD COLUMN b DEFAULT 7;
	INSERT INTO t VALUES(2, 3); DELETE FROM t WHERE a = 1; INSERT INTO t VALUES(4, 5)"
make index.db "CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID; CREATE TABLE t(a UNIQUE);
	$(up_to 40) INSERT INTO w SELECT 'k' || i, i FROM i; INSERT INTO t SELECT v FROM w"
make vacuum.db "PRAGMA auto_vacuum=FULL; CREATE TABLE t(a); $(up_to 60) INSERT INTO t SELECT i * i FROM i"
