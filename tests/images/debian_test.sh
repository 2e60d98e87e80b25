#!/bin/bash
# images/debian.sh creates the root to build in beside those of other clones and versions, and removes none: they may be in use, or mounted.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp -r "$(dirname "$(readlink -f "$0")")/../../images" "$tree"
cd "$tree"
. images/debian.sh

said=
say() { said+="$*"$'\n'; }
die() { echo "$*" >&2; exit 1; }
fail() { echo "$*" >&2; exit 1; }
has_debian_image() { return 1; }
bootstrap() { [ -d "${*: -1}" ] && [ $works ] && touch "${*: -1}/made"; }

works=yes
ensure_dev_root  # in a clean clone; not behind ||, which would switch errexit off
[ -e "$(dev_root)/made" ] || fail "there is no root in a clean clone"
[[ $said != *"Other roots"* ]] || fail "it names roots where none are: $said"
rm -rf build
said=

mkdir -p build/root-other/bin build/root-other.new.1
touch build/root-other/bin/in_use
works=
(ensure_dev_root) 2>/dev/null && fail "a failed bootstrap is reported"
[ -z "$(ls -d "$(dev_root)"* 2>/dev/null)" ] || fail "a failed bootstrap leaves something: $(ls build)"
works=yes
ensure_dev_root
[ -e "$(dev_root)/made" ] || fail "the root is not there"
[ "$(stat -c %a "$(dev_root)")" = 755 ] || fail "only root can enter the root"
[ -e build/root-other/bin/in_use ] || fail "another root was removed"
[[ $said == *"build/root-other"* ]] || fail "the other root is not named: $said"
said=
ensure_dev_root
[ -z "$said" ] || fail "the same root is made again: $said"
