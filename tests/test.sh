#!/bin/bash
# Every test in one ctest run. With --sanitizers also the unit tests of the asan and tsan builds, each as one test of the
# same run (tests/CMakeLists.txt), with --fuzz a minute of libFuzzer for each reader of tests/fuzz; both cost more builds, so
# they are asked for.
set -euo pipefail
. images/commands.sh

# the labels that are left out
sanitizers=sanitizer
fuzz=libfuzzer
images debug
while [[ ${1:-} = --sanitizers || ${1:-} = --fuzz ]]; do
  if [ "$1" = --sanitizers ]; then
    sanitizers=
    build asan
    build tsan
  else
    fuzz=
    ensure_tools
    build fuzz
  fi
  shift
done
if [ -e build/cluster/bin/kube-apiserver ]; then
  operator_image
else
  say "Without the tests of label kubernetes: no Kubernetes is compiled (./dev cluster up does it once, and needs Go 1.26)"
fi
say "Running every test"
in_debian ctest --test-dir build/debug -j 2 --output-on-failure --no-tests=error -LE "^($sanitizers|$fuzz)\$" "$@"
