#!/bin/bash
# Cross-build for aarch64 and run the unit tests and the fuzz corpus under
# qemu-user, so that the NEON twins are tested on any machine.
#
# The libraries come from the distribution's arm64 packages. They are unpacked
# into build/aarch64-root by an apt of its own state: nothing is installed, and
# no architecture is added to this system.
set -u
cd "$(dirname "$0")/../.." || exit 1
root=$PWD/build/aarch64-root
packages=(libc6-dev libgcc-s1 zlib1g-dev libsqlite3-dev libarchive-dev libutf8proc-dev libxxhash-dev libxlsxwriter-dev
	libssl-dev libzstd-dev libcmocka-dev)

skip() {
	echo "aarch64: skipped, $*"
	exit 77
}

fetch_root() {
	local apt=$PWD/build/aarch64-apt
	mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$root/usr/lib" "$root/usr/bin"
	: >"$apt/status"
	cat >"$apt/apt.conf" <<-END
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear DPkg::Post-Invoke;
		#clear APT::Architectures;
		APT::Architecture "arm64";
		APT::Architectures { "arm64"; };
		APT::Sandbox::User "$(id -un)";
		Acquire::Languages "none";
		Dir::State "$apt/state";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt/cache";
		Dir::Cache::archives "$apt/cache/archives";
	END
	apt-get -c "$apt/apt.conf" -q update # a source without arm64 may fail, the next line tells
	apt-get -c "$apt/apt.conf" -q -y --no-install-recommends --download-only install "${packages[@]}" ||
		return 1
	# one directory with two names, as on the systems these packages are for
	[ -e "$root/lib" ] || ln -s usr/lib "$root/lib"
	local deb
	for deb in "$apt"/cache/archives/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" |
			tar -x -C "$root" --keep-directory-symlink --exclude='./usr/share/doc' --exclude='./usr/share/man' ||
			return 1
	done
	rm -rf "$apt"
	echo "${packages[*]}" >"$root/.complete"
}

command -v aarch64-linux-gnu-gcc >/dev/null || skip "gcc-aarch64-linux-gnu is not installed"
command -v qemu-aarch64 >/dev/null || skip "qemu-user is not installed"
command -v apt-get >/dev/null || skip "there is no apt-get to fetch arm64 libraries with"
mkdir -p build
if [ "$(cat "$root/.complete" 2>/dev/null)" != "${packages[*]}" ]; then
	rm -rf "$root"
	fetch_root >build/aarch64-root.log 2>&1 </dev/null ||
		skip "no arm64 libraries to be had here, see build/aarch64-root.log"
fi
scripts/build.sh aarch64 || exit 1
ulimit -c 0
# the shared captures are read by the native tests; emulation would only be slow
if ! NPUPROF_SHARED=/nonexistent NPUPROF_EMULATED=1 ctest --test-dir build/aarch64 -j "$(nproc)" --output-on-failure \
	>build/aarch64-test.log 2>&1; then
	grep -A40 -E '\*\*\*(Failed|Exception|Timeout)' build/aarch64-test.log | head -n 100
	echo "aarch64: tests fail, see build/aarch64-test.log"
	exit 1
fi
echo "aarch64: ok, $(sed -n 's/.*tests passed, .* out of //p' build/aarch64-test.log) executables under qemu"
