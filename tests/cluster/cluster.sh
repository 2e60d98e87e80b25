#!/bin/bash
# cluster up|down|status|load: compile Kubernetes (once), start it, and load Podman's images into its nodes.
# This needs Go, as ./dev test --kubernetes does.
set -euo pipefail
. images/commands.sh

verb=${1:-status}
[ $# -eq 0 ] || shift
case $verb in
  up)
    tests/cluster/build.sh
    image=localhost/bsp-cluster-node:$(hash_of tests/cluster/node.packages)
    debian_image "$image" tests/cluster/node.packages
    tests/cluster/store.sh "$image"
    tests/cluster/up.sh "$image"
    tests/cluster/load.sh
    tests/cluster/status.sh
    ;;
  down | status | load) "tests/cluster/$verb.sh" "$@" ;;
  *) die "cluster: unknown command '$verb'; commands: up, down, status, load" ;;
esac
