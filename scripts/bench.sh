#!/bin/bash
# Build with optimisation and measure beside the peers in one run: bench/run.py, or with
# "pull" first what comes over ssh: bench/pull.py.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh bench
# the system's python has the packaged peers
python=/usr/bin/python3
[ -x "$python" ] || python=python3
case ${1-} in
pull) shift; exec "$python" bench/pull.py "$@" ;; # over ssh on loopback
esac
exec "$python" bench/run.py "$@"
