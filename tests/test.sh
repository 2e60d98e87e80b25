#!/bin/bash
# Runs every test in one ctest run. --sanitizers adds the unit tests of the asan and tsan builds, each build as one test
# (tests/CMakeLists.txt); --fuzz adds a minute of libFuzzer for each parser in tests/fuzz. Both need more builds, so they are optional.
set -euo pipefail
. images/commands.sh

# excluded labels
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
  say "Skipping the tests of label kubernetes: Kubernetes isn't compiled (./dev cluster up does that once, and needs Go 1.26)"
fi
say "Running every test"
in_debian ctest --test-dir build/debug -j 2 --output-on-failure --no-tests=error -LE "^($sanitizers|$fuzz)\$" "$@"
