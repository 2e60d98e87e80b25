#!/bin/bash
# ./dev format [--tidy]: format the sources with clang-format; with --tidy, run clang-tidy too.
set -euo pipefail
. images/commands.sh

ensure_tools
say "Formatting the C and C++ sources"
in_debian sh -ec 'git -c safe.directory="*" ls-files "*.h" "*.c" "*.cc" | xargs clang-format -i'
[ "${1:-}" = --tidy ] || exit 0
# Clang can't use g++'s precompiled headers or unity builds, so it gets its own configuration, of which only the generated
# sources are built.
say "Running clang-tidy"
in_debian sh -ec '
  cmake --preset debug -B build/tidy -D CMAKE_UNITY_BUILD=OFF -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON >build/tidy.configure.log 2>&1 ||
    { cat build/tidy.configure.log; exit 1; }
  cmake --build build/tidy --target sidecar/shim/generated/real_functions.gen.h >/dev/null
  git -c safe.directory="*" ls-files "*.cc" | grep -v ^tests/ | xargs -P2 -n4 clang-tidy -quiet -p build/tidy'
