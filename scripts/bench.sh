#!/bin/bash
# Build and run bench/bench_*.c; each prints its own lines.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh bench
found=0
for source in bench/bench_*.c; do
	[ -e "$source" ] || continue
	found=1
	name=${source##*/}
	echo "== ${name%.c}"
	"build/bench/bench/${name%.c}" "$@"
done
[ $found = 1 ] || echo "no benchmarks: bench/bench_*.c is empty"
