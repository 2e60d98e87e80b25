#!/bin/bash
# tests/cluster/up.sh NODE_IMAGE: start the cluster: a control plane and the nodes of nodes.conf, each a container. Build
# the programs first (build.sh); ./dev builds NODE_IMAGE and calls this script. Returns when every node is Ready.
. "$(dirname "$(readlink -f "$0")")/lib.sh"
node_image=$1

# The cloud's label for a node's pool.
pool_label() {
  case ${BSP_CLUSTER_CLOUD:-gke} in
    gke) echo cloud.google.com/gke-nodepool ;;
    eks) echo eks.amazonaws.com/nodegroup ;;
    aks) echo kubernetes.azure.com/agentpool ;;
    karpenter) echo karpenter.sh/nodepool ;;
    kops) echo kops.k8s.io/instancegroup ;;
    none) echo example.com/pool ;;
    *) die "BSP_CLUSTER_CLOUD=$BSP_CLUSTER_CLOUD is not one of gke, eks, aks, karpenter, kops, none" ;;
  esac
}

# machine NAME ARGUMENTS…: starts a container with its own network namespace that acts as a machine. --no-hosts, because it
# writes its own /etc/hosts; a tmpfs, because a machine's /run is empty after a restart.
machine() {
  local name=$1
  shift
  podman run -d --name "$(container_of "$name")" --hostname "$name" --label "bsp-cluster=$id" --privileged --cgroupns private \
    --network "ns:/run/netns/$(netns_of "$name")" --no-hosts --pids-limit -1 --tmpfs /run:exec --tmpfs /tmp:exec \
    -v "$run/$name/etc:/etc/cluster" -v "$run/$name/log:/var/log/cluster" \
    -v "$bin:/opt/cluster/bin:ro" -v "$cluster/parts.sh:/opt/cluster/parts.sh:ro" "$@" >/dev/null
}

# Makes the API server reachable from this host without an interface for it: socat listens on the host and connects in
# the control plane's network namespace.
door() {
  podman run -d --name "$(container_of door)" --label "bsp-cluster=$id" --privileged --network host --no-hosts \
    -v /run/netns:/run/netns "$node_image" socat --experimental "TCP4-LISTEN:$port,bind=127.0.0.1,fork,reuseaddr" \
    "TCP4:$control_ip:6443,netns=$(netns_of control)" >/dev/null
}

certificates() {
  mkdir -p "$run/pki"
  # shellcheck disable=SC2046
  podman run --rm --network none -v "$run/pki:/pki" -v "$cluster/pki.sh:/pki.sh:ro" "$node_image" \
    bash /pki.sh /pki "https://$control_ip:6443" $control_ip $api_service_ip "$port" $(node_names)
  install -m600 "$run/pki/host.kubeconfig" "$kubeconfig"
}

start_control() {
  local etc=$run/control/etc
  mkdir -p "$etc" "$run/control"/{log,etcd}
  cp "$run"/pki/{ca,sa,apiserver,apiserver-kubelet}.* "$run"/pki/{admin,controller-manager,scheduler,dns}.kubeconfig "$etc"
  fill "$cluster/control/Corefile" CONTROL_IP=$control_ip >"$etc/Corefile"
  cp "$cluster/control/policies.yaml" "$etc"
  fill "$cluster/control/dns.yaml" CONTROL_IP=$control_ip DNS=$dns_service_ip >"$etc/dns.yaml"
  machine control -v "$run/control/etcd:/var/lib/etcd" -v "$cluster/control:/opt/cluster/control:ro" \
    -e IP=$control_ip -e SERVICE_NET=$service_net -e GATES="${BSP_CLUSTER_GATES:-}" "$node_image" /opt/cluster/control/start.sh
}

# reserved HAVE WANTED: how much to reserve so that WANTED is left for a node's pods (0 if there is less than that).
reserved() { awk -v have="$1" -v wanted="$2" 'BEGIN { r = have - wanted; printf "%d", (r > 0 ? r : 0) }'; }

# Copies the unpacked images of store.sh for a containerd that hasn't started yet. Layers are never written to, so hard links
# are enough; the databases need real copies.
copy_store() {
  [ -d "$store/images" ] || return 0
  cp -al "$store"/{containerd,images} "$1"
  find "$1/containerd" -name '*.db' -exec sh -c 'cp --preserve=all "$1" "$1.own" && mv "$1.own" "$1"' sh {} \;
}

# with_uptime NUMBER: what a node's first process is started with, so that each node has an uptime of its own, as machines have. Empty
# where the kernel has no time namespaces.
with_uptime() { [ ! -e /proc/self/ns/time ] || echo "unshare --time --monotonic $(($1 * 100000)) --boottime $(($1 * 130000))"; }

start_node() {
  local number=$1 name=$2 pool=$3 cpus=$4 memory=$5 zone=$6 etc=$run/$2/etc machine_kib wanted_kib
  mkdir -p "$etc/cni" "$run/$name"/{log,containerd,kubelet}
  copy_store "$run/$name"
  cp "$run/pki/ca.crt" "$run/pki/proxy.kubeconfig" "$run/pki/policies.kubeconfig" "$etc"
  cp "$run/pki/$name.kubeconfig" "$etc/kubelet.kubeconfig"
  echo "nameserver $control_ip" >"$etc/resolv.conf"
  machine_kib=$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)
  wanted_kib=$((${memory%Gi} * 1024 * 1024 + 50 * 1024))   # allocatable is without the 50 MiB of evictionHard
  fill "$cluster/node/kubelet.yaml" DNS=$dns_service_ip RESERVED_MEMORY="$(reserved "$machine_kib" $wanted_kib)Ki" \
    RESERVED_CPU="$(reserved "$(nproc)000" "$(awk "BEGIN { print $cpus * 1000 }")")m" >"$etc/kubelet.yaml"
  fill "$cluster/node/proxy.yaml" NODE="$name" >"$etc/proxy.yaml"
  fill "$cluster/node/cni.conflist" POD_CIDR="$(pod_cidr "$number")" >"$etc/cni/10-pods.conflist"
  cp "$cluster/node/containerd.toml" "$etc"
  # shellcheck disable=SC2046
  # /var/lib/containerd is a host directory, because an overlay can't be mounted on an overlay.
  machine "$name" -v "$run/$name/containerd:/var/lib/containerd" -v "$run/$name/kubelet:/var/lib/kubelet" \
    -v "$run/images:/opt/cluster/images:ro" -v "$cluster/node:/opt/cluster/node:ro" -e NODE="$name" \
    -v "$run/shared:/opt/cluster/shared" \
    -e IP="$(node_ip "$number")" -e CPUS="$cpus" \
    -e LABELS="$(pool_label)=$pool,node.kubernetes.io/instance-type=$pool,topology.kubernetes.io/region=region-1,topology.kubernetes.io/zone=$zone" \
    "$node_image" $(with_uptime "$number") /opt/cluster/node/start.sh
}

# The image that holds a pod's namespaces open: catatonit, a static binary, can do that.
pause_image() {
  local name=localhost/bsp-cluster-pause:1 root=$run/pause catatonit
  podman image exists $name || {
    mkdir -p "$root"
    catatonit=$(PATH=$PATH:/usr/libexec/podman:/usr/lib/podman command -v catatonit)
    install -m755 "$catatonit" "$root/pause"
    tar -C "$root" -c . | podman import -q --change 'ENTRYPOINT ["/pause", "-P"]' - $name >/dev/null
    rm -r "$root"
  }
  podman save -q --format docker-archive -o "$run/images/pause.tar" $name
}

nodes_ready() { [ "$(kubectl get nodes --no-headers | grep -cw Ready)" = "$(node_names | wc -l)" ]; }

if is_running control; then
  there=$(cat "$run/kubernetes" 2>/dev/null || echo 1.36)
  [ "$there" = "$version" ] || die "a cluster of Kubernetes $there is up; ./dev cluster down removes it"
  say "The cluster is already up"
  exit 0
fi
[ ! -e "$run" ] || die "an earlier cluster has left files behind; ./dev cluster down removes them"
trap '[ $? = 0 ] || say "The cluster failed to start. Its logs are in $run/*/log; ./dev cluster down cleans up"' EXIT
began=$SECONDS
mkdir -p "$run"/{images,shared}
chmod 700 "$run"
echo "$id" >"$run/id"
echo "$version" >"$run/kubernetes"
port=${BSP_CLUSTER_PORT:-$(free_port)}
chmod 1777 "$run/shared"   # shared by all nodes, like a network file system: hostPath /opt/cluster/shared

say "Starting the control plane and $(node_names | wc -l) nodes: $(node_names | xargs)"
certificates
pause_image
"$cluster/network.sh" up
start_control
door
while read -r -a node; do start_node "${node[@]}"; done < <(nodes)
until_true 120 "the API server" kubectl get --raw /readyz
until_true 120 "all nodes to be Ready" nodes_ready
until_true 60 "the cluster's DNS" kubectl -n kube-system get service kube-dns
mkdir -p "$tree/build/bin"
ln -sfn "../cluster/${bin##*/}/kubectl" "$tree/build/bin/kubectl"
ln -sfn "../cluster/${bin##*/}/helm" "$tree/build/bin/helm"
say "The cluster is up after $((SECONDS - began)) s"
