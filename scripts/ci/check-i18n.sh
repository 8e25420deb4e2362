#!/bin/bash
# Every text of src/ has a translation in po/zh_CN.po that takes the same arguments.
cd "$(dirname "$0")/../.." || exit 1
if ! command -v python3 >/dev/null; then
	echo "i18n: skipped, python3 is not installed"
	exit 77
fi
python3 scripts/i18n.py
