#!/bin/bash
# The first process of a node: containerd, kubelet and kube-proxy, as on any machine of a cluster.
# Environment: NODE its name, IP its address, CPUS its quota, LABELS of the Node object. Mounts: see up.sh.
set -eu
export PATH=/opt/cluster/bin:/usr/sbin:/usr/bin:/sbin:/bin
. /opt/cluster/parts.sh

# Six nodes share the cores of one machine: a Go program that uses all of them, or collects garbage often, slows the
# others down.
export GOMAXPROCS=1 GOGC=300

mount --make-rshared /            # volumes that the kubelet mounts must reach the containers
printf '127.0.0.1 localhost\n%s %s\n' "$IP" "$NODE" >/etc/hosts   # containerd copies it for pods on the node's network
tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
echo 1 >/proc/sys/net/ipv4/ip_forward   # of this node's own network namespace
nft flush ruleset                       # left from before a restart; a real machine would lose it
mkdir -p /opt/cni
for plugin in bridge host-local loopback portmap; do ln -sf /opt/cluster/bin/$plugin /opt/cni/; done

# The quota applies to the pods (kubepods), not to the whole node: a slow pool has slow programs, but its kubelet answers
# as fast as any. The short period makes it evenly slow. The kubelet doesn't change the quota of kubepods.
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  # cgroup v2: a group with processes can't have controlled children, so move the node's own processes first.
  mkdir -p /sys/fs/cgroup/init /sys/fs/cgroup/kubepods
  while read -r pid; do echo "$pid" >/sys/fs/cgroup/init/cgroup.procs || true; done </sys/fs/cgroup/cgroup.procs
  sed 's/\(^\| \)/\1+/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
  awk -v cpus="$CPUS" 'BEGIN { print int(cpus * 10000), 10000 }' >/sys/fs/cgroup/kubepods/cpu.max
else
  mkdir -p /sys/fs/cgroup/cpu/kubepods
  echo 10000 >/sys/fs/cgroup/cpu/kubepods/cpu.cfs_period_us
  awk -v cpus="$CPUS" 'BEGIN { print int(cpus * 10000) }' >/sys/fs/cgroup/cpu/kubepods/cpu.cfs_quota_us
fi

part containerd containerd -c /etc/cluster/containerd.toml
until ctr version >/dev/null 2>&1; do sleep 0.1; done
ctr -n k8s.io images import /opt/cluster/images/pause.tar >>/var/log/cluster/images.log 2>&1

part kubelet unshare --mount --propagation unchanged /opt/cluster/node/kubelet.sh --config=/etc/cluster/kubelet.yaml \
  --kubeconfig=/etc/cluster/kubelet.kubeconfig --hostname-override="$NODE" --node-ip="$IP" --node-labels="$LABELS" \
  --cert-dir=/run/kubelet-pki
part kube-proxy kube-proxy --config=/etc/cluster/proxy.yaml
echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables   # filter between pods of this node too; applies to this network namespace only
part policies policies "$NODE" /etc/cluster/policies.kubeconfig
stay
