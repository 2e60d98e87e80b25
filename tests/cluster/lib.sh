# shellcheck shell=bash
# Shared by the scripts of the test cluster: names, paths, addresses. Source it.
set -euo pipefail
export PODMAN_IGNORE_CGROUPSV1_WARNING=1

cluster=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(cd "$cluster/../.." && pwd)
state=$tree/build/cluster
run=$state/run            # everything of the running cluster; `down` removes it
# Of Kubernetes: that of the running cluster, if nobody says another.
version=${BSP_CLUSTER_KUBERNETES:-$(cat "$run/kubernetes" 2>/dev/null || echo 1.36)}
common=$state/bin         # output of build.sh; outlives the cluster
kubernetes=kubernetes-$version bin=$common-$version   # a further version's component, and all programs of its cluster
[ "$version" != 1.36 ] || kubernetes=kubernetes bin=$common
store=$state/store        # images in the format of a node's containerd; outlives the cluster too
kubeconfig=$state/kubeconfig

# Each tree has a cluster of its own: whatever all trees of a machine share (containers, network namespaces) has this id in its name.
id=$(sha256sum <<<"$tree")
id=${id:0:6}

# The address plan. Node N of nodes.conf (counted from 1) is machine 10.90.0.(10+N), and its pods are 10.244.N.0/24.
# Everything is in separate network namespaces: the host has no interface, route or rule of the cluster.
control_ip=10.90.0.1
pod_net=10.244
service_net=10.96.0.0/16
api_service_ip=10.96.0.1
dns_service_ip=10.96.0.10

# What go prints when it reaches no proxy. Anything else, such as a wrong checksum, is a fault of ours.
unreachable='(Get|Head) "|reading https?://[^ ]*: (40[137]|429|5[0-9][0-9]) |module lookup disabled|dial tcp|connection reset|unexpected EOF|i/o timeout'

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'cluster: %s\n' "$*" >&2; exit 1; }

container_of() { echo "bsp-cluster-$id-$1"; }   # control, door, or a node's name
netns_of() { echo "bsp-cluster-$id-$1"; }
containers() { podman ps --filter "label=bsp-cluster=$id" "$@"; }   # of this cluster; arguments: podman ps's
kubectl() { "$bin/kubectl" --kubeconfig "$kubeconfig" "$@"; }

# free_port: prints a port of this host for the API server: the first that is free, because another tree's cluster may be up.
free_port() {
  local port=6443
  while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do ((++port)); done
  echo "$port"
}

# nodes: prints "NUMBER NAME POOL CPUS MEMORY ZONE" lines from nodes.conf (or the file in BSP_CLUSTER_NODES).
nodes() { sed 's/#.*//' "${BSP_CLUSTER_NODES:-$cluster/nodes.conf}" | awk 'NF == 5 { print ++n, $0 } NF && NF != 5 { exit 1 }' ||
  die "nodes.conf: each line must be NAME POOL CPUS MEMORY ZONE"; }
node_names() { nodes | awk '{ print $2 }'; }
node_ip() { echo "10.90.0.$((10 + $1))"; }
pod_cidr() { echo "$pod_net.$1.0/24"; }

is_running() { [ "$(podman container inspect -f '{{.State.Running}}' "$(container_of "$1")" 2>/dev/null)" = true ]; }

own_images() { podman images --format '{{.Repository}}:{{.Tag}}' | grep '^localhost/bsp-.*:dev$' || true; }
image_id() { podman image inspect -f '{{.Id}}' "$1" 2>/dev/null || die "Podman has no image '$1'; build it with ./dev images"; }

# lacking_in DIRECTORY IMAGE…: prints the images whose id differs from the one recorded in DIRECTORY/images/.
lacking_in() {
  local directory=$1 image
  shift
  for image; do
    [ "$(cat "$directory/images/${image//\//_}" 2>/dev/null)" = "$(image_id "$image")" ] || echo "$image"
  done
}

# import_image DIRECTORY IMAGE NAME…: imports IMAGE from Podman's store into the containerds of those machines, in parallel.
# They see DIRECTORY as /opt/cluster/images.
import_image() {
  local shared=$1 image=$2 name pid imports=()
  shift 2
  rm -f "$shared/loading.tar"
  podman save -q --format docker-archive -o "$shared/loading.tar" "$image"
  for name; do
    import_into "$name" "$image" &
    imports+=($!)
  done
  for pid in "${imports[@]}"; do wait "$pid"; done
  rm -f "$shared/loading.tar"
}

# import_into NAME IMAGE: imports loading.tar, which is IMAGE, into that machine's containerd, and records its id.
import_into() {
  local directory=$run/$1
  [ "$1" != store ] || directory=$store
  podman exec "$(container_of "$1")" /opt/cluster/bin/ctr -n k8s.io images import /opt/cluster/images/loading.tar \
    >>"$directory/log/images.log" 2>&1 || die "containerd of $1 failed to import $2; see $directory/log/images.log"
  mkdir -p "$directory/images"
  image_id "$2" >"$directory/images/${2//\//_}"
}

# until_true SECONDS WHAT COMMAND…: wait for a condition; on a timeout, fail with its name.
until_true() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || die "timed out waiting for $what; see the logs in $run/*/log"
    sleep 0.2
  done
}

# fill FILE NAME=VALUE…: prints the template FILE with each @NAME@ replaced.
fill() {
  local file=$1 text pair
  shift
  text=$(<"$file")
  for pair; do text=${text//"@${pair%%=*}@"/${pair#*=}}; done
  printf '%s\n' "$text"
}
