#!/bin/bash
# tests/cluster/down.sh [--all]: end the cluster and remove every trace of it: containers, network, files. What build.sh
# compiled stays for the next time; --all removes that too (Go's own caches are Go's: `go clean -cache -modcache`).
. "$(dirname "$(readlink -f "$0")")/lib.sh"

podman rm -f -t 0 --ignore "$(container_of kwok)" >/dev/null  # first: it lives in the control plane's network
podman ps -aq --filter label=bsp-cluster=1 | xargs -r -P4 -n1 podman rm -f -t 0 >/dev/null
"$cluster/network.sh" down
rm -rf "$run" "$kubeconfig"
if [ "${1:-}" = --all ]; then
  rm -rf "$state" "$tree"/build/bin/{kubectl,helm}
  podman images --format '{{.Repository}}:{{.Tag}}' | grep '^localhost/bsp-cluster-' | xargs -r podman rmi >/dev/null
fi
say "The cluster is gone"
