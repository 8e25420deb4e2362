#!/bin/sh
# Compile the JSON scanner for aarch64 and compare its twins under qemu-user.
# Exit status: 0 equal, 1 different, 77 when the tools are absent.
set -eu
cc=${CC_AARCH64:-aarch64-linux-gnu-gcc}
for tool in "$cc" qemu-aarch64; do
	command -v "$tool" >/dev/null || { echo "skipped: no $tool" >&2; exit 77; }
done
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$cc" -std=gnu17 -O2 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -D_GNU_SOURCE -I"$root/src" -static \
	-o "$out/check_scan" "$root/tests/aarch64/check_scan.c" "$root/src/io/json_scan.c" "$root/src/base/simd.c"
qemu-aarch64 "$out/check_scan"
