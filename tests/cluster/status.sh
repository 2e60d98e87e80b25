#!/bin/bash
# tests/cluster/status.sh: shows whether the cluster is up, its machines and nodes, and the environment for kubectl.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

if [ ! -e "$run" ]; then
  echo "no cluster; ./dev cluster up starts one"
  exit 1
fi
containers -a --format 'table {{.Names}} {{.Status}}'
echo
kubectl --request-timeout=5s get nodes -L "$(kubectl --request-timeout=5s get nodes -o json |
  grep -oE '"(cloud.google.com/gke-nodepool|eks.amazonaws.com/nodegroup|kubernetes.azure.com/agentpool|karpenter.sh/nodepool|kops.k8s.io/instancegroup|example.com/pool)"' |
  tr -d '"' | sort -u | paste -sd,)" || true
cat <<TEXT

To use it with kubectl and Helm:
  export PATH=$tree/build/bin:\$PATH KUBECONFIG=$kubeconfig
TEXT
