#!/bin/bash
# What `make demo` shows: what a schedule will record, a capture of two ranks made by
# `npuprof synth`, a look at it, the gate's verdict, the same for a broken one, and who
# slows down eight ranks. Safe to run again.
#
#   scripts/demo.sh [PATH OF npuprof]
set -u
cd "$(dirname "$0")/.." || exit 1
npuprof=${1:-build/release/npuprof}
out=build/demo
if [ ! -x "$npuprof" ]; then
	echo "demo: $npuprof is not there; run: make build" >&2
	exit 1
fi

# show EXPECTED-STATUS ARGUMENTS...: run it, and fail when it ends otherwise
show() {
	local expected=$1 status
	shift
	printf '\n$ npuprof %s\n' "$*"
	"$npuprof" "$@"
	status=$?
	if [ "$status" -ne "$expected" ]; then
		echo "demo: exit status $status, expected $expected" >&2
		exit 1
	fi
}

rm -rf "$out"
mkdir -p "$out"
show 0 plan schedule --skip-first 2 --warmup 1 --active 3 --repeat 1 --steps 7
touch "$out/.start" # what a script does before it starts the capture
show 0 synth "$out/good" --ranks 2 --format text,db
show 0 info "$out/good"
show 0 check "$out/good" --start-marker "$out/.start"
show 0 synth "$out/broken" --ranks 2 --fault na-metrics --fault truncated-trace=1
show 1 check "$out/broken" --start-marker "$out/.start"
show 0 synth "$out/slow" --ranks 8 --fault slow-rank=5
show 0 cluster "$out/slow" --no-cache

cat <<END

Look at the two verdicts above: the first capture passes all checks (exit status 0), the second
fails (1), and each finding ends in the command that repairs it. Of the eight ranks rank 5 was made
slow. The captures lie in $out.
Next:
  $npuprof info $out/good --json
  $npuprof advise $out/slow -o $out/advice
  $npuprof synth --list-faults
  $npuprof run --target MODULE:CLASS.forward --out runs -- python3 your_script.py
  $npuprof help check
  make check                    all tests
  make install PREFIX=~/.local  the program and its man pages
END
