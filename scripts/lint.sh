#!/bin/bash
# All checks of scripts/ci, one line each. 77 from a check means: its tool is absent.
set -u
cd "$(dirname "$0")/.." || exit 1
failed=0
for check in scripts/ci/check-*.sh; do
	"$check"
	status=$?
	if [ $status -ne 0 ] && [ $status -ne 77 ]; then
		failed=1
	fi
done
exit $failed
