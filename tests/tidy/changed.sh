#!/bin/bash
# tests/tidy/changed.sh [COMMIT]: fails if a source isn't formatted, or if clang-tidy finds something in a source that has changed since
# COMMIT (default: the last one that is a day older than the newest). It ends after BSP_TIDY_SECONDS (default 240) and lists what it left out.
set -euo pipefail
. images/commands.sh

ensure_tools
say "Checking the format of the sources"
in_debian sh -ec 'git -c safe.directory="*" ls-files "*.h" "*.c" "*.cc" | xargs clang-format --dry-run -Werror' ||
  die "run ./dev format"

since=${1:-$(git rev-list -1 --before="$(git log -1 --format=%ct HEAD | awk '{print $1 - 86400}')" HEAD)}
mapfile -t sources < <(git diff --name-only --diff-filter=d "${since:-HEAD}" -- 'base/*.cc' 'crds/*.cc' 'operator/*.cc' 'sidecar/*.cc' 'sim/*.cc')
[ ${#sources[@]} -gt 0 ] || exit 0
say "Running clang-tidy on ${#sources[@]} sources that have changed since ${since:0:12}"
# Clang can't use g++'s precompiled headers or unity builds, so it gets its own configuration, of which only the generated sources are built.
in_debian sh -ec '
  cmake --preset debug -B build/tidy -D CMAKE_UNITY_BUILD=OFF -D CMAKE_DISABLE_PRECOMPILE_HEADERS=ON >build/tidy.configure.log 2>&1 ||
    { cat build/tidy.configure.log; exit 1; }
  cmake --build build/tidy --target sidecar/shim/generated/real_functions.gen.h >/dev/null
  deadline=$(($(date +%s) + $1)); shift
  export deadline
  printf "%s\n" "$@" | xargs -P2 -n1 sh -c "
    [ \$(date +%s) -lt \$deadline ] || { echo \"left out, for lack of time: \$1\"; exit 0; }
    exec clang-tidy -quiet -p build/tidy \"\$1\" 2>/dev/null" tidy' sh "${BSP_TIDY_SECONDS:-240}" "${sources[@]}" ||
  die "clang-tidy found something; its message is above"
