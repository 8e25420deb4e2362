#!/bin/bash
# docs/findings.md names exactly the finding codes of src/, and the man pages are well-formed.
cd "$(dirname "$0")/../.." || exit 1
if ! command -v python3 >/dev/null; then
	echo "docs: skipped, python3 is not installed"
	exit 77
fi
python3 scripts/ci/findings.py || exit 1
if ! command -v scdoc >/dev/null || ! command -v mandoc >/dev/null; then
	echo "docs: findings ok; man pages skipped, scdoc or mandoc is not installed"
	exit 77
fi
mkdir -p build/man
bad=0 pages=0
for source in docs/man/*.scd; do
	page=build/man/$(basename "${source%.scd}")
	pages=$((pages + 1))
	if ! scdoc <"$source" >"$page"; then
		echo "docs: $source: scdoc refuses it"
		bad=1
		continue
	fi
	name=$(basename "$source" .1.scd)
	for line in "^$name\(1\)" "^$name - [a-z]" '^# NAME$' '^# SYNOPSIS$' '^# DESCRIPTION$' '^# EXIT STATUS$'; do
		if ! grep -qE -- "$line" "$source"; then
			echo "docs: $source: no line like $line"
			bad=1
		fi
	done
	# scdoc itself writes .P behind .SH and trailing .RE lines, which mandoc calls odd
	# but harmless; a page with another warning is wrong
	complaints=$(mandoc -T lint -W warning "$page" |
		grep -vE 'skipping paragraph macro: (PP|P|sp|br) (after|empty)')
	if [ -n "$complaints" ]; then
		printf '%s\n' "$complaints" | sed "s#^mandoc: $page#docs: $source (as roff)#"
		bad=1
	fi
done
[ $bad = 0 ] && echo "docs: ok, $pages man pages"
exit $bad
