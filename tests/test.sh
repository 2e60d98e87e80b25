#!/bin/bash
# Runs every test in one ctest run; of the test cluster only the smoke test, if Kubernetes is compiled. These need more, so they are optional:
#   --sanitizers   the unit tests of the asan and tsan builds, each build as one test (tests/CMakeLists.txt)
#   --fuzz         a minute of libFuzzer for each parser in tests/fuzz
#   --format       checks the format of all sources first
#   --kubernetes   all tests of the test cluster: compiles it if it isn't, beside the C++ programs
#   --soak         the long runs (tests/README.md) for BSP_SOAK_SECONDS each, a quarter of an hour by default
# Others run no such set:
#   --quick        unit and golden tests only; needs neither root nor Podman, but Debian 13 with images/dev.packages
#   --slowest [N]  lists the slowest tests of the last run
set -euo pipefail
log=build/kubernetes.log
times=build/tests.xml  # of the last run

slowest() {
  [ -e "$times" ] || { echo "dev: no test has run yet" >&2; exit 1; }
  python3 - "$times" "${1:-20}" <<'PYTHON'
import sys
import xml.etree.ElementTree as tree
cases = [(float(case.get("time", 0)), case.get("name")) for case in tree.parse(sys.argv[1]).iter("testcase")]
print(f"{sum(seconds for seconds, _ in cases):8.1f} s  all {len(cases)} tests")
for seconds, name in sorted(cases, reverse=True)[:int(sys.argv[2])]:
    print(f"{seconds:8.1f} s  {name}")
PYTHON
}

# Everything in this Debian 13 itself, as whoever calls it.
quick() {
  local preset=debug
  mkdir -p build
  export CCACHE_SLOPPINESS=pch_defines,time_macros
  [ "build/$preset/build.ninja" -nt CMakePresets.json ] || cmake --preset "$preset" >"build/$preset.configure.log" 2>&1 || { cat "build/$preset.configure.log" >&2; exit 1; }
  cmake --build "build/$preset" --target quick_tests
  exec ctest --test-dir "build/$preset" -j "$(nproc)" --output-on-failure --no-tests=error -L '^(unit|golden)$' -LE '^machine$' "$@"
}

case ${1:-} in
  --slowest) slowest "${@:2}"; exit ;;
  --quick) quick "${@:2}" ;;
esac

. images/commands.sh

# labels that this run leaves out
left_out=(sanitizer libfuzzer suite soak)
with() {
  local label remaining=()
  for label in "${left_out[@]}"; do [ "$label" = "$1" ] || remaining+=("$label"); done
  left_out=("${remaining[@]}")
}
includes() { [[ " ${left_out[*]} " != *" $1 "* ]]; }

compiling=
wait_for_kubernetes() {
  local status=0
  say "Compiling Kubernetes; $log shows how far it is"
  wait "$compiling" || status=$?
  compiling=
  export BSP_KUBERNETES_BUILD=$status
  case $status in
    0) ;;
    3) say "Leaving out the tests of label kubernetes: $(tail -n 1 "$log")" ;;
    *) say "Kubernetes could not be compiled, see $log; the test kubernetes.up fails" ;;
  esac
}

while :; do
  case ${1:-} in
    --sanitizers) with sanitizer ;;
    --fuzz) with libfuzzer ;;
    --format) tests/tidy/format.sh --check ;;
    --soak) with soak ;;
    --kubernetes)
      with suite
      mkdir -p build
      nice tests/cluster/build.sh >"$log" 2>&1 &
      compiling=$!
      trap '[ -z "$compiling" ] || kill "$compiling" 2>/dev/null || true' EXIT
      ;;
    *) break ;;
  esac
  shift
done

# The S3 server for the tests of buckets, beside the C++ programs. It needs Go.
mkdir -p build
nice tests/cluster/build.sh versitygw >build/versitygw.log 2>&1 &
server=$!

images debug
if includes sanitizer; then
  build asan
  build tsan
fi
if includes libfuzzer; then
  ensure_tools
  build fuzz
fi
[ -z "$compiling" ] || wait_for_kubernetes
status=0
wait "$server" || status=$?
case $status in
  0) ;;
  3) say "Leaving out the tests of buckets: $(tail -n 1 build/versitygw.log)" ;;
  *) die "the S3 server could not be compiled, see build/versitygw.log" ;;
esac
if [ "${BSP_KUBERNETES_BUILD:-0}" = 0 ] && [ -e build/cluster/bin/kube-apiserver ]; then
  operator_image
else
  [ -n "${BSP_KUBERNETES_BUILD:-}" ] || say "Leaving out the real cluster: Kubernetes isn't compiled (./dev test --kubernetes does that once, and needs Go 1.26)"
fi
say "Running the tests"
in_debian ctest --test-dir build/debug -j 2 --output-on-failure --no-tests=error --output-junit "$tree/$times" \
  -LE "^($(IFS='|'; echo "${left_out[*]}"))\$" "$@"
