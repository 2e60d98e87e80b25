#!/bin/bash
# tests/cluster/kwok.sh up [NODES]|down: nodes that exist only in the API (KWOK simulates their kubelets), for scale tests.
# They have the label migbsp.io/set=fake-N (three pools) and the taint kwok.x-k8s.io/node=fake:NoSchedule.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

fake_node() {
  cat <<YAML
---
apiVersion: v1
kind: Node
metadata:
  name: fake-$1
  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}
  labels: {migbsp.io/set: fake-$(($1 % 3)), kubernetes.io/hostname: fake-$1, kwok.x-k8s.io/node: fake,
    kubernetes.io/arch: amd64, kubernetes.io/os: linux}
spec:
  taints: [{key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}]
status:
  allocatable: {cpu: "32", memory: 256Gi, pods: "110"}
  capacity: {cpu: "32", memory: 256Gi, pods: "110"}
YAML
}

ready() { [ "$(kubectl get nodes -l kwok.x-k8s.io/node=fake --no-headers | grep -cw Ready)" = "$1" ]; }

up() {
  local count=${1:-100} number
  is_running control || die "the cluster is not up; ./dev cluster up starts it"
  "$cluster/build.sh" kwok
  podman container exists "$(container_of kwok)" ||
    podman run -d --name "$(container_of kwok)" --label "bsp-cluster=$id" --network "container:$(container_of control)" --no-hosts \
      -v "$bin:/opt/cluster/bin:ro" -v "$run/pki/admin.kubeconfig:/admin.kubeconfig:ro" \
      "$(podman container inspect -f '{{.ImageName}}' "$(container_of control)")" \
      /opt/cluster/bin/kwok --kubeconfig=/admin.kubeconfig --manage-all-nodes=false \
      --manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake --cidr=10.250.0.0/16 --node-ip=$control_ip \
      --node-lease-duration-seconds=40 >/dev/null
  for ((number = 1; number <= count; ++number)); do fake_node $number; done | kubectl apply -f - >/dev/null
  until_true 120 "$count fake nodes to be Ready" ready "$count"
}

down() {
  kubectl delete nodes -l kwok.x-k8s.io/node=fake --wait=false >/dev/null
  podman rm -f -t 0 "$(container_of kwok)" >/dev/null
}

case ${1:-} in
  up | down) verb=$1; shift; "$verb" "$@" ;;
  *) die "kwok.sh up [NODES]|down" ;;
esac
