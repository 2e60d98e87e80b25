#!/bin/bash
# tests/bench/run.sh BUILD_DIR OUT_DIR [NAME…]: runs the benchmarks (all, or those whose name contains a NAME).
# ./dev bench runs it inside the development root.
#
# A benchmark is a program BUILD_DIR/bin/bench_* or a script tests/bench/bench_*.{sh,py}. It is called with BSP_BUILD
# and BSP_BENCH_JSON in its environment, prints its ratios, and writes its results to the file BSP_BENCH_JSON.
set -uo pipefail
build=$(readlink -f "$1") out=$(mkdir -p "$2" && readlink -f "$2")
shift 2
here=$(dirname "$(readlink -f "$0")")
export BSP_BUILD=$build PYTHONDONTWRITEBYTECODE=1
status=0
for bench in "$build"/bin/bench_* "$here"/bench_*.sh "$here"/bench_*.py; do
  [ -x "$bench" ] || continue
  name=$(basename "${bench%.*}")
  [ $# -eq 0 ] || grep -qF -- "$(printf '%s\n' "$@")" <<<"$name" || continue
  printf '\n--- %s\n' "${name#bench_}"
  SECONDS=0
  BSP_BENCH_JSON=$out/${name#bench_}.json "$bench" || { echo "$name: failed with status $?" >&2; status=1; }
  echo "(${SECONDS} s)"
done
exit $status
