#!/bin/bash
# ./dev format [--tidy]: let clang-format put the sources right; with --tidy, run clang-tidy too.
set -euo pipefail
. images/commands.sh

ensure_tools
say "Formatting the C and C++ sources"
in_debian sh -ec 'git -c safe.directory="*" ls-files "*.h" "*.c" "*.cc" | xargs clang-format -i'
[ "${1:-}" = --tidy ] || exit 0
# Clang reads neither g++'s precompiled headers nor files that are compiled as parts of another: it gets a configuration of its own,
# of which nothing is built but the sources that are generated.
say "Running clang-tidy"
in_debian sh -ec '
  cmake --preset debug -B build/tidy -D CMAKE_UNITY_BUILD=OFF -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON >build/tidy.configure.log 2>&1 ||
    { cat build/tidy.configure.log; exit 1; }
  cmake --build build/tidy --target sidecar/shim/generated/real_functions.gen.h >/dev/null
  git -c safe.directory="*" ls-files "*.cc" | grep -v ^tests/ | xargs -P2 -n4 clang-tidy -quiet -p build/tidy'
