#!/bin/bash
# Files have at most 800 lines, functions in src/ at most 60 between their
# braces, lines of src/ at most 100 columns (a tab is 8).
cd "$(dirname "$0")/../.." || exit 1
mapfile -t files < <(find src tests bench scripts -type f \
	\( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' \) | sort)
long=$(wc -l "${files[@]}" | awk '$1 > 800 && $2 != "total" {
	printf "size: %s: %d lines, at most 800\n", $2, $1 }')
# Our layout puts the braces of a function, and of nothing else, in column 1 at
# the begin of the body ("{") and at its end ("}").
mapfile -t sources < <(find src -type f -name '*.[ch]' | sort)
functions=$(awk '
	FNR == 1 { open = 0 }
	/^[A-Za-z_].*\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
	/^\{/ { open = FNR }
	/^\}/ && open {
		if (FNR - open - 1 > 60)
			printf "size: %s:%d: %s() has %d lines, at most 60\n", FILENAME, open, name, FNR - open - 1
		open = 0
	}' "${sources[@]}")
wide=$(for file in "${sources[@]}"; do
	expand -t 8 "$file" | LC_ALL=C.UTF-8 grep -nE '^.{101,}' | cut -d: -f1 |
		sed "s#^#size: $file:#; s#\$#: more than 100 columns#"
done)
if [ -n "$long$functions$wide" ]; then
	printf '%s\n' "$long" "$functions" "$wide" | sed '/^$/d'
	exit 1
fi
echo "size: ok, ${#files[@]} files"
