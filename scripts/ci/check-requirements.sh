#!/bin/bash
# docs/requirements.md: every requirement has a test that exists, or a reason.
cd "$(dirname "$0")/../.." || exit 1
if ! command -v python3 >/dev/null; then
	echo "requirements: skipped, python3 is not installed"
	exit 77
fi
python3 scripts/ci/requirements.py
