#!/bin/bash
# clang-tidy over src/ and inject/preload/, with .clang-tidy. A file that passed is remembered in
# build/tidy until it, a header, or the configuration changes.
#
#   scripts/ci/check-tidy.sh [FILE.c...]      all of them when none is named
cd "$(dirname "$0")/../.." || exit 1
if ! command -v clang-tidy >/dev/null; then
	echo "tidy: skipped, clang-tidy is not installed"
	exit 77
fi
mkdir -p build/tidy
cmake --preset debug -DCMAKE_C_COMPILER=cc >build/tidy/cmake.log 2>&1 ||
	{ tail -n 5 build/tidy/cmake.log; echo "tidy: cannot configure build/debug"; exit 1; }
# what the verdict on every file depends on, and then the file itself
common=$({ clang-tidy --version; cat .clang-tidy; find src include inject/preload -name '*.h' | sort | xargs cat; } | sha256sum)
tidy_one() {
	local file=$1 key log
	key=$({ echo "$2"; cat "$file"; } | sha256sum | cut -c1-32)
	[ -e "build/tidy/$key.ok" ] && return 0
	log=build/tidy/$key.log
	if clang-tidy --quiet -p build/debug "$file" >"$log" 2>/dev/null; then
		rm -f "$log"
		touch "build/tidy/$key.ok"
	else
		grep -E '(warning|error):' "$log" | sed "s#^$PWD/##"
		rm -f "$log"
		return 1
	fi
}
export -f tidy_one
if [ $# -eq 0 ]; then
	mapfile -t files < <(find src inject/preload -type f -name '*.c' | sort)
else
	files=("$@")
fi
# shellcheck disable=SC2016 # the inner bash expands these
if ! printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'tidy_one "$1" "$2"' _ '{}' "$common"; then
	echo "tidy: see above"
	exit 1
fi
echo "tidy: ok, ${#files[@]} files"
