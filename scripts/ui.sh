#!/bin/bash
# Rebuild the script and the style of the pages from ui/, into src/report/. They
# are checked in, so that a build needs no Node.
#
#   scripts/ui.sh [DIRECTORY]     where to write instead of src/report
#
# Exit status: 0 done, 77 Node or its packages cannot be had.
set -u
cd "$(dirname "$0")/.." || exit 1
out=$(realpath "${1:-src/report}") || exit 2
if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
	echo "ui: skipped, node and npm are not installed"
	exit 77
fi
mkdir -p build
# the packages, when they are not those of the lock file; no script of theirs runs
if ! cmp -s ui/package-lock.json ui/node_modules/.npuprof-lock; then
	if ! (cd ui && npm ci --ignore-scripts --no-audit --no-fund) >build/ui.log 2>&1; then
		echo "ui: skipped, npm cannot get the packages, see build/ui.log"
		exit 77
	fi
	cp ui/package-lock.json ui/node_modules/.npuprof-lock
fi
(cd ui && node_modules/.bin/tsc -p . && node build.mjs "$out")
