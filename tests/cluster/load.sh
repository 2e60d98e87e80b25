#!/bin/bash
# tests/cluster/load.sh [IMAGE…]: give every node that runs the images of Podman's store (all of localhost/bsp-*:dev unless
# some are named). Without a registry that is how an image gets onto a node. Only what changed is carried.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

# into_node NODE IMAGE ID: the node's own containerd unpacks it.
into_node() {
  podman exec "$(container_of "$1")" /opt/cluster/bin/ctr -n k8s.io images import /opt/cluster/images/loading.tar \
    >>"$run/$1/log/images.log" 2>&1 || die "containerd of $1 did not take $2; see $run/$1/log/images.log"
  mkdir -p "$run/$1/images"
  echo "$3" >"$run/$1/images/${2//\//_}"
}

[ $# -gt 0 ] || mapfile -t images < <(podman images --format '{{.Repository}}:{{.Tag}}' | grep '^localhost/bsp-.*:dev$')
[ $# -eq 0 ] || images=("$@")
for image in "${images[@]}"; do
  id=$(podman image inspect -f '{{.Id}}' "$image" 2>/dev/null) || die "Podman has no image '$image'; make it with ./dev images"
  lacking=()
  for node in $(node_names); do
    is_running "$node" && [ "$(cat "$run/$node/images/${image//\//_}" 2>/dev/null)" != "$id" ] && lacking+=("$node")
  done
  [ ${#lacking[@]} -gt 0 ] || continue
  say "Loading $image into ${lacking[*]}"
  rm -f "$run/images/loading.tar"
  podman save -q --format docker-archive -o "$run/images/loading.tar" "$image"
  loads=()
  for node in "${lacking[@]}"; do
    into_node "$node" "$image" "$id" &
    loads+=($!)
  done
  for pid in "${loads[@]}"; do wait "$pid"; done
  rm -f "$run/images/loading.tar"
done
