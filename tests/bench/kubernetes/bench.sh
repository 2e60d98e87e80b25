#!/bin/bash
# The cost of jobs in a cluster, which it starts with a separate configuration.
set -euo pipefail
. images/commands.sh

. tests/cluster/client.sh

[ ! -e build/cluster/run ] || die "bench kubernetes starts a cluster of its own; ./dev cluster down ends the one that is up"
images release
operator_image
export BSP_CLUSTER_NODES=$tree/tests/bench/kubernetes/nodes.conf
tests/cluster/cluster.sh up
install_operator
in_debian python3 tests/bench/kubernetes/starts.py
# No sidecar answers there: without this, jobs would be restarted while the last are still being created.
with_cluster helm upgrade bsp charts/bsp-operator -n bsp-system --reuse-values --set jobs.startTimeoutSeconds=7200 --wait --timeout 3m >&2
in_debian python3 tests/bench/kubernetes/scale.py
tests/cluster/cluster.sh down
