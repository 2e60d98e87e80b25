#!/bin/bash
# images/make.sh lays out the programs that a build has: a release contains only the product's programs, not those of the tests.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp -r "$(dirname "$(readlink -f "$0")")/../../images" "$tree"
cd "$tree"
. images/make.sh

say() { :; }
laid_out=
in_debian() { laid_out+="$* "; }
check() { [ "$laid_out" = "$1" ] || { echo "$2: laid out '$laid_out', not '$1'" >&2; exit 1; }; laid_out=; }
once="images/bundle.sh build/release $tree/build/bundle "

mkdir -p build/release/bin
touch build/release/bin/{bsp-init,bsp-operator,bsp-sidecar,libbspmpi.so,lattice_boltzmann,lu,fractal,smith_waterman}
bundle release
check "$once" "a release"
bundle release
check "" "the same release"
touch build/release/bin/some_test
bundle release
check "" "a release and another test"
echo changed >build/release/bin/bsp-init
bundle release
check "$once" "a changed release"
