#!/bin/bash
# ./dev format [--check | --tidy [FILE.cc …]]: formats the sources with clang-format. --check changes nothing, and fails if a source isn't
# formatted. --tidy runs clang-tidy, too, on the given sources or all of the product's; that takes a core 40 s for each.
set -euo pipefail
. images/commands.sh

ensure_tools
if [ "${1:-}" = --check ]; then
  say "Checking the format of the C and C++ sources"
  in_debian sh -ec 'git -c safe.directory="*" ls-files "*.h" "*.c" "*.cc" | xargs clang-format --dry-run -Werror' || die "run ./dev format"
  exit
fi
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
  if [ $# -gt 0 ]; then printf "%s\n" "$@"; else git -c safe.directory="*" ls-files "*.cc" | grep -v ^tests/; fi |
    xargs -P2 -n1 clang-tidy -quiet -p build/tidy' sh "${@:2}"
