#!/bin/bash
# Everything compiles with clang too, and the fuzzers link and start.
cd "$(dirname "$0")/../.." || exit 1
if ! command -v clang >/dev/null; then
	echo "clang: skipped, clang is not installed"
	exit 77
fi
runtime=$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a")
if [ ! -e "$runtime" ]; then
	echo "clang: skipped, clang's fuzzer runtime is not installed (scripts/deps.sh fuzz)"
	exit 77
fi
scripts/build.sh fuzz || exit 1
for source in tests/fuzz/fuzz_*.c; do
	name=${source##*/fuzz_}
	name=${name%.c}
	if ! ASAN_OPTIONS=allocator_may_return_null=1 "build/fuzz/tests/fuzz/fuzz_$name" -runs=0 \
		"tests/fuzz/corpus/$name" >build/fuzz.log 2>&1; then
		tail -n 30 build/fuzz.log
		echo "clang: fuzz_$name fails on its corpus"
		exit 1
	fi
done
echo "clang: ok"
