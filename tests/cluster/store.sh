#!/bin/bash
# tests/cluster/store.sh NODE_IMAGE: update build/cluster/store: Podman's localhost/bsp-*:dev in the format of a node's
# containerd. Images are unpacked here once; up.sh gives every node a hard-linked copy before its containerd starts.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
node_image=$1
machine=$(container_of store)

mkdir -p "$store"/{containerd,images,log}
mapfile -t images < <(lacking_in "$store" $(own_images))
[ ${#images[@]} -gt 0 ] || exit 0
trap 'podman rm -f -t 10 "$machine" >/dev/null' EXIT
podman run -d --name "$machine" --label "bsp-cluster=$id" --privileged --network none --tmpfs /run:exec \
  -v "$store/containerd:/var/lib/containerd" -v "$store/log:/var/log/cluster" -v "$bin:/opt/cluster/bin:ro" \
  -v "$cluster/node/containerd.toml:/etc/cluster/containerd.toml:ro" -v "$store:/opt/cluster/images:ro" \
  "$node_image" /opt/cluster/bin/containerd -c /etc/cluster/containerd.toml >/dev/null
until_true 60 "containerd" podman exec "$machine" /opt/cluster/bin/ctr version
for image in "${images[@]}"; do
  say "Unpacking $image for the nodes"
  import_image "$store" "$image" store
done
podman stop -t 20 "$machine" >/dev/null
