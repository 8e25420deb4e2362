#!/bin/bash
# What `make demo` shows: a capture of two ranks made by `npuprof synth`, then a
# look at it and the gate's verdict. Safe to run again.
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

show() {
	printf '\n$ npuprof %s\n' "$*"
	"$npuprof" "$@"
}

rm -rf "$out"
status=0
show synth "$out" --ranks 2 --format text,db || exit 1
show info "$out" || status=1
show check "$out"
verdict=$?
# 0 pass, 1 fail, 3 cannot tell are answers; 2 and 4 mean that the demo is broken
case $verdict in
0 | 1 | 3) ;;
*) status=1 ;;
esac

cat <<END

The capture lies in $out. The gate's exit status was $verdict (0 pass, 1 fail, 3 cannot tell).
Next:
  $npuprof info --json $out
  $npuprof check -v $out
  $npuprof help
  make check                    all tests
  make install PREFIX=~/.local  the program and its man pages
END
exit $status
