#!/bin/bash
# ./dev bench [NAME]: the benchmarks; ratios on the terminal, figures in build/bench/*.json. `kubernetes` has a script
# of its own.
set -euo pipefail
. images/commands.sh

if [ "${1:-}" = kubernetes ]; then
  exec tests/bench/kubernetes/bench.sh
fi
images release
in_debian cmake --build --preset benchmarks || die "the build failed; its message is above"
mkdir -p build/bench
say "Running the benchmarks of tests/bench; figures go to build/bench"
in_debian tests/bench/run.sh build/release build/bench "$@"
