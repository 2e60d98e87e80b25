#!/bin/bash
# The first process of the control plane's machine: etcd, API server, controllers, scheduler, DNS.
# Environment: IP its address, SERVICE_NET, GATES feature gates (and the alpha and beta APIs). Mounts: see up.sh.
set -eu
export PATH=/opt/cluster/bin:/usr/sbin:/usr/bin:/sbin:/bin
. /opt/cluster/parts.sh
export GOGC=300   # trades memory for CPU time, which is scarce with a whole cluster on one machine
printf '127.0.0.1 localhost\n%s control\n' "$IP" >/etc/hosts
echo 1 >/proc/sys/net/ipv4/ip_forward   # of this machine's own network namespace

gates=() apis=()
# The scheduler of 1.37 reads PodGroups as v1beta1, which no API server serves unasked.
[ -z "$GATES" ] || gates=(--feature-gates="$GATES") apis=(--runtime-config=api/alpha=true,api/beta=true)

# No fsync: if this machine crashes, the cluster is lost anyway.
part etcd etcd --name=control --data-dir=/var/lib/etcd --unsafe-no-fsync --log-level=warn \
  --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
  --listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380 \
  --initial-cluster=control=http://127.0.0.1:2380

# Aggregator routing lets the API server connect to a webhook's pod directly, so the control plane needs no kube-proxy.
# Tolerations of 10 seconds instead of 5 minutes evict a lost node's pods within a test's time.
part apiserver kube-apiserver --etcd-servers=http://127.0.0.1:2379 --secure-port=6443 --advertise-address="$IP" \
  --service-cluster-ip-range="$SERVICE_NET" --client-ca-file=/etc/cluster/ca.crt \
  --tls-cert-file=/etc/cluster/apiserver.crt --tls-private-key-file=/etc/cluster/apiserver.key \
  --kubelet-client-certificate=/etc/cluster/apiserver-kubelet.crt --kubelet-client-key=/etc/cluster/apiserver-kubelet.key \
  --kubelet-certificate-authority= --kubelet-preferred-address-types=InternalIP \
  --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
  --service-account-issuer=https://kubernetes.default.svc.cluster.local \
  --service-account-key-file=/etc/cluster/sa.pub --service-account-signing-key-file=/etc/cluster/sa.key \
  --enable-aggregator-routing=true --profiling=false "${gates[@]}" "${apis[@]}" \
  --default-not-ready-toleration-seconds=10 --default-unreachable-toleration-seconds=10

# The controller manager would exit for good on a "forbidden" before the API server has created its default roles.
until kubectl --kubeconfig /etc/cluster/admin.kubeconfig get --raw /readyz >/dev/null 2>&1; do sleep 0.2; done

# High QPS limits: in a large cluster a controller must not wait for its own client's rate limiter.
part controller-manager kube-controller-manager --kubeconfig=/etc/cluster/controller-manager.kubeconfig \
  --authentication-kubeconfig=/etc/cluster/controller-manager.kubeconfig \
  --authorization-kubeconfig=/etc/cluster/controller-manager.kubeconfig --bind-address=127.0.0.1 \
  --service-account-private-key-file=/etc/cluster/sa.key --root-ca-file=/etc/cluster/ca.crt \
  --cluster-signing-cert-file=/etc/cluster/ca.crt --cluster-signing-key-file=/etc/cluster/ca.key \
  --use-service-account-credentials --leader-elect=false --kube-api-qps=300 --kube-api-burst=600 \
  --node-monitor-period=2s --node-monitor-grace-period=16s "${gates[@]}"
part scheduler kube-scheduler --kubeconfig=/etc/cluster/scheduler.kubeconfig \
  --authentication-kubeconfig=/etc/cluster/scheduler.kubeconfig \
  --authorization-kubeconfig=/etc/cluster/scheduler.kubeconfig --bind-address=127.0.0.1 \
  --leader-elect=false --kube-api-qps=300 --kube-api-burst=600 "${gates[@]}"
kubectl --kubeconfig /etc/cluster/admin.kubeconfig apply -f /etc/cluster/dns.yaml -f /etc/cluster/policies.yaml >/var/log/cluster/dns.apply.log 2>&1
part dns coredns -conf /etc/cluster/Corefile
stay
