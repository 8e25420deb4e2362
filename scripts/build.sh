#!/bin/bash
# Configure and build a preset of CMakePresets.json: scripts/build.sh PRESET [cmake --build options]
# Quiet unless it fails.
set -u
cd "$(dirname "$0")/.." || exit 1
preset=${1:?usage: scripts/build.sh PRESET}
shift
log=build/$preset.log
mkdir -p build
if cmake --preset "$preset" >"$log" 2>&1 &&
	cmake --build "build/$preset" -j "$(nproc)" "$@" >>"$log" 2>&1; then
	echo "$preset: ok, build/$preset"
else
	status=$?
	grep -E -A12 'error|FAILED|CMake Error' "$log" | head -n 60
	echo "$preset: FAILED, see $log"
	exit $status
fi
