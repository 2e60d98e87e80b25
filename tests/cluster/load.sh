#!/bin/bash
# tests/cluster/load.sh [IMAGE…]: load images from Podman's store (by default all of localhost/bsp-*:dev) into every running
# node, because there is no registry. Only changed images are loaded.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

[ $# -gt 0 ] || mapfile -t images < <(own_images)
[ $# -eq 0 ] || images=("$@")
for image in "${images[@]}"; do
  lacking=()
  for node in $(node_names); do
    is_running "$node" && [ -n "$(lacking_in "$run/$node" "$image")" ] && lacking+=("$node")
  done
  [ ${#lacking[@]} -gt 0 ] || continue
  say "Loading $image into ${lacking[*]}"
  import_image "$run/images" "$image" "${lacking[@]}"
done
