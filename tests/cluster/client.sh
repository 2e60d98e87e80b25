# shellcheck shell=bash
# kubectl and Helm for the cluster of `./dev cluster up`. Source it.

# with_cluster kubectl|helm ARGUMENTS…
with_cluster() { KUBECONFIG=$tree/build/cluster/kubeconfig "build/bin/$1" "${@:2}"; }

install_operator() {
  say "Installing the operator with Helm"
  # A rebuilt image has the same name; the annotation replaces the pods then.
  # As README's line does, so that either may follow the other.
  with_cluster helm upgrade --install bsp charts/bsp-operator -n bsp-system --create-namespace --wait --timeout 3m --set metrics.enabled=true --set-string \
    "podAnnotations.migbsp\.io/image=$(podman image inspect -f '{{.Id}}' localhost/bsp-operator:dev)" >&2
}
