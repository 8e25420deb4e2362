#!/bin/bash
# cppcheck over src/ and inject/preload/. A false alarm is silenced where it is, with a reason:
#   // cppcheck-suppress id
cd "$(dirname "$0")/../.." || exit 1
if ! command -v cppcheck >/dev/null; then
	echo "cppcheck: skipped, cppcheck is not installed"
	exit 77
fi
mkdir -p build/cppcheck
# objectIndex: takes the arrays that np_group_rows() makes for the struct that holds them
# readdirCalled: readdir() on a DIR of one's own is thread-safe, readdir_r() is deprecated
if ! cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
	--suppress=missingIncludeSystem --suppress=unusedStructMember --suppress=readdirCalled --suppress=objectIndex \
	--library=posix --library=gnu -D_GNU_SOURCE -DNPUPROF_VERSION='"0"' -I src -I include \
	--cppcheck-build-dir=build/cppcheck -j "$(nproc)" --error-exitcode=1 \
	--template='cppcheck: {file}:{line}: {id}: {message}' src inject/preload; then
	echo "cppcheck: see above"
	exit 1
fi
echo "cppcheck: ok"
