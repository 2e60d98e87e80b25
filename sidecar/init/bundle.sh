#!/bin/sh
# bundle.sh DEST [NAME=]BINARY...   copies dynamically linked programs into the runtime image's tree so that they run
# in any user image, mounted at /bsp: their libraries and the loader go to DEST/lib, and the program's interpreter and
# run path point there.
#
#   bundle.sh out bin/criu=/usr/sbin/criu bsp-sidecar=build/bin/bsp-sidecar
set -eu

[ $# -ge 2 ] || { echo "usage: bundle.sh DEST [NAME=]BINARY..." >&2; exit 2; }
dest=$1
shift
prefix=${BSP_BUNDLE_PREFIX:-/bsp}
loader=ld-linux-x86-64.so.2
mkdir -p "$dest/lib"
stubs=$(mktemp -d)
trap 'rm -rf "$stubs"' EXIT

for item in "$@"; do
  case $item in
    *=*) name=${item%%=*} binary=${item#*=} ;;
    *) name=$(basename "$item") binary=$item ;;
  esac
  mkdir -p "$(dirname "$dest/$name")"
  cp -L "$binary" "$dest/$name.new"
  chmod 755 "$dest/$name.new"
  prefer=
  if [ "$(basename "$binary")" = criu ]; then  # see stub_library.sh
    prefer=$stubs
    for library in libgnutls.so.30 libnftables.so.1; do
      ! ldd "$binary" | grep -q "$library" || "$(dirname "$0")/stub_library.sh" "$binary" $library "$stubs"
    done
  fi
  needed=$(LD_LIBRARY_PATH=$prefer ldd "$binary")
  case $needed in *'not found'*) echo "$needed" | grep 'not found' >&2; exit 1 ;; esac
  # "libc.so.6 => /lib/…/libc.so.6 (0x…)" and "/lib64/ld-linux-x86-64.so.2 (0x…)"
  echo "$needed" | sed -n -e 's/.*=> \(\/[^ ]*\) .*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) .*/\1/p' |
    while read -r library; do
      target=$dest/lib/$(basename "$library")
      if [ -z "$prefer" ] && [ -e "$stubs/$(basename "$library")" ]; then
        echo "bundle.sh: $binary needs $library, which is only a stub here: give it a DEST of its own" >&2
        exit 1
      fi
      # Create a new inode, so that a library in use by a running container doesn't change.
      cp -L "$library" "$target.new" && chmod 755 "$target.new" && mv -f "$target.new" "$target"
    done
  # DT_RPATH, not DT_RUNPATH: it also applies to the libraries' own dependencies.
  patchelf --set-interpreter "$prefix/lib/$loader" --force-rpath --set-rpath "$prefix/lib" \
    "$dest/$name.new"
  mv -f "$dest/$name.new" "$dest/$name"
done
