#!/bin/bash
# The sources are laid out as .clang-format says; --fix lays them out.
cd "$(dirname "$0")/../.." || exit 1
if ! command -v clang-format >/dev/null; then
	echo "format: skipped, clang-format is not installed"
	exit 77
fi
# Other versions lay out some lines differently; 14 is Debian 12's.
version=$(clang-format --version | sed -E 's/.*version ([0-9]+).*/\1/')
if [ "$version" != 14 ]; then
	echo "format: skipped, clang-format $version is installed, the layout is that of 14"
	exit 77
fi
mapfile -t files < <(find src include tests bench inject -type f -name '*.[ch]' 2>/dev/null | sort)
if [ "${1-}" = --fix ]; then
	clang-format -i "${files[@]}"
	echo "format: done, ${#files[@]} files"
	exit 0
fi
bad=()
for file in "${files[@]}"; do
	clang-format "$file" | cmp -s - "$file" || bad+=("$file")
done
if [ ${#bad[@]} -gt 0 ]; then
	printf 'format: %s\n' "${bad[@]}"
	echo "format: ${#bad[@]} of ${#files[@]} files differ; run: make format"
	exit 1
fi
echo "format: ok, ${#files[@]} files"
