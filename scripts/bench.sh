#!/bin/bash
# Build with optimisation and measure beside the peers in one run: bench/run.py.
set -eu
cd "$(dirname "$0")/.."
scripts/build.sh bench
# the system's python has the packaged peers
python=/usr/bin/python3
[ -x "$python" ] || python=python3
exec "$python" bench/run.py "$@"
