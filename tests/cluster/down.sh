#!/bin/bash
# tests/cluster/down.sh [--all]: stop the cluster and remove everything of it: containers, network, files. Keeps what
# build.sh compiled for the next time; --all removes that too (but not Go's caches: `go clean -cache -modcache`).
. "$(dirname "$(readlink -f "$0")")/lib.sh"

podman rm -f -t 0 --ignore "$(container_of kwok)" >/dev/null  # first, because it uses the control plane's network
containers -aq | xargs -r -P4 -n1 podman rm -f -t 0 >/dev/null
"$cluster/network.sh" down
rm -rf "$run" "$kubeconfig"
if [ "${1:-}" = --all ]; then
  rm -rf "$state" "$tree"/build/bin/{kubectl,helm}
  # Podman keeps those that another tree's cluster uses.
  podman images --format '{{.Repository}}:{{.Tag}}' | grep '^localhost/bsp-cluster-' | xargs -r -n1 podman rmi >/dev/null 2>&1 || true
fi
say "The cluster is removed"
