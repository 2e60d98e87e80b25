#!/bin/bash
# tests/cluster/status.sh: is the cluster up, which machines run, what do the nodes say, and how does one talk to it?
. "$(dirname "$(readlink -f "$0")")/lib.sh"

if [ ! -e "$run" ]; then
  echo "no cluster; ./dev cluster up starts one"
  exit 1
fi
podman ps -a --filter label=bsp-cluster=1 --format 'table {{.Names}} {{.Status}}'
echo
kubectl --request-timeout=5s get nodes -L "$(kubectl --request-timeout=5s get nodes -o json |
  grep -oE '"(cloud.google.com/gke-nodepool|eks.amazonaws.com/nodegroup|kubernetes.azure.com/agentpool|karpenter.sh/nodepool|kops.k8s.io/instancegroup|example.com/pool)"' |
  tr -d '"' | sort -u | paste -sd,)" || true
cat <<TEXT

Talk to it with kubectl and Helm:
  export PATH=$tree/build/bin:\$PATH KUBECONFIG=$kubeconfig
TEXT
