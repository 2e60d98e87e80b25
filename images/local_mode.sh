#!/bin/sh
# bsp-operator @VERSION@ in local mode, on any x86-64 Linux with Podman. It brings its own C library, and its images go to Podman's store
# when a job needs them.
set -eu
here=$(dirname "$(readlink -f "$0")")/..

# load NAME: as localhost/NAME:dev, unless the store has that very image under this name.
load() {
  id=$(cat "$here/images/$1.id")
  [ "$(podman image inspect -f '{{.Id}}' "localhost/$1:dev" 2>/dev/null)" = "$id" ] && return
  podman image exists "$id" || { echo "Loading the image $1 into Podman's store" >&2; podman load -q -i "$here/images/$1.tar" >/dev/null; }
  podman tag "$id" "localhost/$1:dev"
}

case ${1:-} in
  check) load bsp-runtime ;;
  local) [ "${2:-}" != run ] || { load bsp-runtime; load bsp-apps; } ;;
esac
exec "$here/lib/ld-linux-x86-64.so.2" --library-path "$here/lib" --argv0 bsp-operator "$here/libexec/bsp-operator" "$@"
