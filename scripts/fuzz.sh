#!/bin/bash
# Run every libFuzzer target for FUZZ_SECONDS (60) each, or only those named as
# arguments (json for tests/fuzz/fuzz_json.c). New inputs are kept in
# build/fuzz-corpus; what crashes lands in build/fuzz-crashes, to be fixed and
# then copied to tests/fuzz/corpus/NAME/.
set -eu
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-60}
mkdir -p build build/fuzz-crashes
scripts/build.sh fuzz
if [ $# -eq 0 ]; then
	for source in tests/fuzz/fuzz_*.c; do
		name=${source##*/fuzz_}
		set -- "$@" "${name%.c}"
	done
fi
failed=0
for name in "$@"; do
	mkdir -p "build/fuzz-corpus/$name" "tests/fuzz/corpus/$name"
	log=build/fuzz-corpus/$name.log
	if ASAN_OPTIONS=allocator_may_return_null=1 "build/fuzz/tests/fuzz/fuzz_$name" \
		-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
		-print_final_stats=1 -artifact_prefix="build/fuzz-crashes/$name-" \
		"build/fuzz-corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
		runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
		echo "fuzz $name: ok, ${runs:-?} runs in $seconds s"
	else
		failed=1
		echo "fuzz $name: FAILED, see $log and build/fuzz-crashes/"
		tail -n 40 "$log"
	fi
done
exit $failed
