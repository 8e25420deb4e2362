#!/bin/bash
# Every shell script passes shellcheck.
cd "$(dirname "$0")/../.." || exit 1
if ! command -v shellcheck >/dev/null; then
	echo "shell: skipped, shellcheck is not installed"
	exit 77
fi
mapfile -t files < <(find scripts tests -type f -name '*.sh' | sort)
files+=(.ci/run)
if ! shellcheck --shell=bash "${files[@]}"; then
	echo "shell: see above"
	exit 1
fi
echo "shell: ok, ${#files[@]} files"
