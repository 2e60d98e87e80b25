#!/bin/sh
# stub_library.sh PROGRAM LIBRARY DIR: creates DIR/LIBRARY with a stub for every function that PROGRAM imports from
# LIBRARY. Every stub fails (returns -1, or a null pointer if the name ends in _new).
#
# Used for criu: it links GnuTLS and nftables, and through them a dozen libraries, for features that aren't used here
# (encrypted page servers, locking the network). Loading and relocating them was two thirds of criu's start-up time:
# 35 ms of CPU at each dump and each restore, inside the job's pause.
set -eu
program=$1 library=$2 dir=$3
versions=$(readelf -VW "$program" | awk -v file="$library" '
  / File: / { found = $0 ~ "File: " file " " }
  found && / Name: / { for (i = 1; i < NF; i++) if ($i == "Name:") print $(i + 1) }')
[ -n "$versions" ] || { echo "stub_library.sh: $program wants nothing from $library" >&2; exit 1; }
source=$dir/$library.c map=$dir/$library.map
: >"$source"
: >"$map"
for version in $versions; do
  functions=$(nm -D "$program" | sed -n "s/^ *[Uw] \(.*\)@$version$/\1/p")
  pointers=$(nm -D "$program" | sed -n "s/^[0-9a-f]* [BDV] \(.*\)@$version$/\1/p")  # variables: gnutls_free is one
  echo "$version { global: $(printf '%s; ' $functions $pointers) local: *; };" >>"$map"
  for f in $functions; do
    case $f in *_new) value=0 ;; *) value=-1 ;; esac
    echo "long $f(void) { return $value; }" >>"$source"
  done
  for p in $pointers; do echo "void* $p;" >>"$source"; done
done
${CC:-cc} -shared -nostdlib -fPIC -O1 -Wl,-soname,"$library" -Wl,--version-script,"$map" -o "$dir/$library" "$source"
