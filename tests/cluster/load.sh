#!/bin/bash
# tests/cluster/load.sh [IMAGE…]: give every node that runs the images of Podman's store (all of localhost/bsp-*:dev unless
# some are named). Without a registry that is how an image gets onto a node. Only what changed is carried.
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
