#!/bin/sh
# The preloaded library and its fakes compiled for aarch64, and the cases of
# tests/e2e/collect_preload.py that qemu-user can run.
# Exit status: 0 as on this machine, 1 different, 77 when the tools are absent.
set -eu
cc=${CC_AARCH64:-aarch64-linux-gnu-gcc}
for tool in "$cc" qemu-aarch64 python3; do
	command -v "$tool" >/dev/null || { echo "skipped: no $tool" >&2; exit 77; }
done
sysroot=$("$cc" -print-sysroot)
[ -e "$sysroot/lib/ld-linux-aarch64.so.1" ] || sysroot=/usr/aarch64-linux-gnu
[ -e "$sysroot/lib/ld-linux-aarch64.so.1" ] || { echo "skipped: no libc for aarch64" >&2; exit 77; }
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fakes=$out/tests/fakes/hccl
mkdir -p "$fakes/new" "$fakes/old"
compile() {
	"$cc" -std=gnu17 -O2 -Wall -Wextra -Wshadow -Werror -D_GNU_SOURCE -fPIC "$@" -lpthread -ldl
}
compile -Wconversion -DNPUPROF_VERSION='"0"' -fvisibility=hidden -fexceptions -ftls-model=initial-exec \
	-I"$root/include" -shared -Wl,-z,defs -o "$out/libnpuprof_collectives.so" "$root"/inject/preload/*.c
cd "$root/tests/fakes/hccl"
compile -shared -o "$fakes/new/libhccl.so" hccl.c
compile -shared -DFAKE_OLD -o "$fakes/old/libhccl.so" hccl.c
compile -shared -o "$fakes/libascendcl.so" ascendcl.c
compile -shared -o "$fakes/libnp_next_second.so" next.c
compile -shared -DNEXT_FIRST -o "$fakes/libnp_next_first.so" next.c -L"$fakes" -Wl,--no-as-needed -lnp_next_second
compile -o "$fakes/hccl_caller" caller.c
compile -DLINKED -o "$fakes/hccl_caller_linked" caller.c -L"$fakes/new" -lhccl
export NPUPROF_COLLECTIVES="$out/libnpuprof_collectives.so" NPUPROF_EMULATOR="qemu-aarch64 -L $sysroot"
python3 "$root/tests/e2e/collect_preload.py" --npuprof none every_function_linked every_function_dlopen \
	every_function_default communicators odd_values stages old_library next_one threads ring_overflow switched_off at_exit
