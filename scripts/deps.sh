#!/bin/bash
# Install the Debian/Ubuntu packages that a task needs; says nothing and touches
# no network when all of them are there.
#
#   scripts/deps.sh build|test|lint|fuzz|ui|mpi|bench|aarch64 ...   install what is missing
#   scripts/deps.sh --list build ...                         only print the names
#
# Root installs directly, everybody else through sudo. Exit status: 0 everything
# is there, 1 something could not be installed, 2 usage.
set -u

packages_of() {
	case $1 in
	build) echo gcc libc6-dev make cmake ninja-build pkg-config libsqlite3-dev zlib1g-dev \
		libarchive-dev libxxhash-dev libutf8proc-dev libxlsxwriter-dev libssl-dev libzstd-dev ;;
	# torch: what `run` injects itself into; ssh: hosts on loopback; iproute2: a slow one
	test) echo libcmocka-dev python3 python3-torch openssh-client openssh-server iproute2 ;;
	lint) echo clang clang-format clang-tidy cppcheck shellcheck mandoc scdoc python3 ;;
	fuzz) echo clang ;; # and its runtime, see clang_runtime()
	ui) echo nodejs npm chromium ;; # the pages, and the browser that tests them
	mpi) echo libopenmpi-dev openmpi-bin ;; # cluster on several machines
	bench) echo python3 python3-pandas ;;
	aarch64) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user ;;
	*) return 1 ;;
	esac
}

usage() {
	echo "usage: scripts/deps.sh [--list] {build|test|lint|fuzz|ui|mpi|bench|aarch64}..." >&2
	exit 2
}

list_only=false
if [ "${1-}" = --list ]; then
	list_only=true
	shift
fi
[ $# -gt 0 ] || usage
wanted=() need_runtime=false
for task in "$@"; do
	names=$(packages_of "$task") || usage
	read -r -a more <<<"$names"
	wanted+=("${more[@]}")
	[ "$task" = fuzz ] && need_runtime=true
done
if $list_only; then
	printf '%s\n' "${wanted[@]}" | sort -u
	exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "deps: this system has no apt-get; install what matches these Debian packages:" >&2
	printf '  %s\n' "${wanted[@]}" >&2
	exit 1
fi

is_installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# What is wanted and absent, in missing[].
find_missing() {
	missing=()
	local name
	for name in "${wanted[@]}"; do
		# a newer system calls pkg-config pkgconf, other nodejs packages bring npm:
		# the program is what counts
		case $name in
		pkg-config | npm) command -v "$name" >/dev/null && continue ;;
		esac
		is_installed "$name" || missing+=("$name")
	done
}

as_root=()
if [ "$(id -u)" != 0 ]; then
	as_root=(sudo)
fi

has_candidate() {
	apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [^(]'
}

can_install() {
	[ ${#as_root[@]} -eq 0 ] || command -v sudo >/dev/null && return 0
	echo "deps: neither root nor sudo; have somebody run:" >&2
	echo "  apt-get install -y --no-install-recommends $*" >&2
	return 1
}

apt() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >&2 </dev/null
}

install() {
	can_install "$@" || return 1
	local name
	for name in "$@"; do
		if ! has_candidate "$name"; then # no lists yet, or old ones
			echo "deps: apt-get update" >&2
			apt update || echo "deps: apt-get update failed, trying with the lists there are" >&2
			break
		fi
	done
	echo "deps: installing $*" >&2
	apt install -y --no-install-recommends "$@" && return 0
	# the lists may name versions that the mirror has dropped
	apt update && apt install -y --no-install-recommends "$@"
}

# The sanitizer and fuzzer runtime of clang is a package of its own, named after the version.
clang_runtime() {
	local runtime version name
	runtime=$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a" 2>/dev/null) || return 1
	[ -e "$runtime" ] && return 0
	version=$(clang -dumpversion | cut -d. -f1)
	for name in "libclang-rt-$version-dev" libclang-rt-dev "libclang-common-$version-dev"; do
		if has_candidate "$name" && install "$name"; then
			return 0
		fi
	done
	echo "deps: no package with the runtime of clang $version found" >&2
	return 1
}

find_missing
if [ ${#missing[@]} -gt 0 ]; then
	install "${missing[@]}" || { echo "deps: could not install: ${missing[*]}" >&2; exit 1; }
	find_missing
	if [ ${#missing[@]} -gt 0 ]; then
		echo "deps: still missing: ${missing[*]}" >&2
		exit 1
	fi
fi
if $need_runtime; then
	clang_runtime || exit 1
fi
exit 0
