#!/bin/sh
# Installs packages, builds and runs every test; prints ctest's summary.
#   tests/run.sh [preset]     release (default), debug or asan
set -eu
cd "$(dirname "$0")/.."
preset=${1:-release}

examples/setup.sh
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset"
ctest --preset "$preset"
