#!/bin/bash
# Runs every test in one ctest run. These need more builds, so they are optional:
#   --sanitizers   the unit tests of the asan and tsan builds, each build as one test (tests/CMakeLists.txt)
#   --fuzz         a minute of libFuzzer for each parser in tests/fuzz
#   --kubernetes   the tests of label kubernetes: compiles the test cluster if it isn't, beside the C++ programs
# BSP_KUBERNETES_UNTIL, in seconds since 1970, limits the time for the last (tests/e2e/today.py).
set -euo pipefail
. images/commands.sh

# excluded labels
sanitizers=sanitizer
fuzz=libfuzzer
compiling=
log=build/kubernetes.log

# Other tests, which run before those of the cluster, take this many seconds; Kubernetes has to be compiled before they start.
others_take=1800

# Exits as build.sh does, or with 124 if there was no time.
compile_kubernetes() {
  local limit=infinity
  [ -z "${BSP_KUBERNETES_UNTIL:-}" ] || limit=$((BSP_KUBERNETES_UNTIL - others_take - $(date +%s)))
  [ "$limit" = infinity ] || [ "$limit" -gt 0 ] || return 124
  exec timeout "$limit" nice tests/cluster/build.sh
}

wait_for_kubernetes() {
  local status=0
  say "Compiling Kubernetes; $log shows how far it is"
  wait "$compiling" || status=$?
  compiling=
  export BSP_KUBERNETES_BUILD=$status
  case $status in
    0) ;;
    3) say "Leaving out the tests of label kubernetes: $(tail -n 1 "$log")" ;;
    124) say "Leaving out the tests of label kubernetes: it wasn't compiled in the time that the other tests leave" ;;
    *) say "Kubernetes could not be compiled, see $log; the test kubernetes.up fails" ;;
  esac
}

while :; do
  case ${1:-} in
    --sanitizers) sanitizers= ;;
    --fuzz) fuzz= ;;
    --kubernetes)
      mkdir -p build
      compile_kubernetes >"$log" 2>&1 &
      compiling=$!
      trap '[ -z "$compiling" ] || kill "$compiling" 2>/dev/null || true' EXIT
      ;;
    *) break ;;
  esac
  shift
done

images debug
if [ -z "$sanitizers" ]; then
  build asan
  build tsan
fi
if [ -z "$fuzz" ]; then
  ensure_tools
  build fuzz
fi
[ -z "$compiling" ] || wait_for_kubernetes
if [ "${BSP_KUBERNETES_BUILD:-0}" = 0 ] && [ -e build/cluster/bin/kube-apiserver ]; then
  operator_image
else
  [ -n "${BSP_KUBERNETES_BUILD:-}" ] || say "Skipping the tests of label kubernetes: Kubernetes isn't compiled (--kubernetes does that once, and needs Go 1.26)"
fi
say "Running every test"
in_debian ctest --test-dir build/debug -j 2 --output-on-failure --no-tests=error -LE "^($sanitizers|$fuzz)\$" "$@"
