#!/bin/bash
# What `make check` runs. The last line is "N passed, N failed, N skipped", where
# every unit case, command line case, fuzz target and script counts as one.
#
# Steps that need a tool which cannot be installed here (no root, no network)
# count as skipped, except the compiler, the libraries and cmocka.
set -u
cd "$(dirname "$0")/.." || exit 1
mkdir -p build/check

# The sanitizers of gcc 12 and clang 14 stumble over kernels that randomise
# addresses with more bits than they know; where allowed, run without.
if [ -z "${NPUPROF_CHECK_FIXED-}" ] && setarch "$(uname -m)" -R true 2>/dev/null; then
	NPUPROF_CHECK_FIXED=1 exec setarch "$(uname -m)" -R scripts/check.sh "$@"
fi

say() { printf '\n== %s\n' "$*"; }
script() { scripts/run-tests.py script "$@"; }

say "dependencies"
scripts/deps.sh build test || { echo "0 passed, 1 failed, 0 skipped"; exit 1; }
# one call for all, since each apt-get run costs; one by one when a package cannot be had
if ! scripts/deps.sh lint fuzz aarch64 ui mpi >build/check/deps.log 2>&1; then
	for task in lint fuzz aarch64 ui mpi; do
		scripts/deps.sh "$task" >>build/check/deps.log 2>&1 ||
			echo "not all tools for '$task' are there, see build/check/deps.log; its checks are skipped"
	done
fi
mkdir -p build/check/ui
scripts/ui.sh build/check/ui >build/check/ui.log 2>&1 # the packages of the browser test; check-ui judges
scripts/run-tests.py reset

say "ASan + UBSan: unit, command line, fuzz corpus"
if script build asan -- scripts/build.sh asan; then
	scripts/run-tests.py ctest "tests (asan)" build/asan
fi

say "TSan: threaded tests"
if script build tsan -- scripts/build.sh tsan; then
	scripts/run-tests.py ctest "threads (tsan)" build/tsan -L threads
fi

say "other compilers and machines"
script build release -- scripts/build.sh release
script build clang -- scripts/ci/clang.sh
script build aarch64 -- scripts/ci/aarch64.sh

say "scripts/ci"
for check in scripts/ci/check-*.sh; do
	name=${check##*/check-}
	script check "${name%.sh}" -- "$check"
done

printf '\n'
scripts/run-tests.py total
