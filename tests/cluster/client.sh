# shellcheck shell=bash
# kubectl and Helm against the cluster of `./dev cluster up`. Sourced.

# kubectl or helm, talking to the cluster of `./dev cluster up`.
with_cluster() { KUBECONFIG=$tree/build/cluster/kubeconfig "build/bin/$1" "${@:2}"; }

install_operator() {
  say "Installing the operator with Helm"
  # The image's name stays the same when it is made anew; the annotation makes the pods new then.
  with_cluster helm upgrade --install bsp charts/bsp-operator --wait --timeout 3m --set metrics.enabled=true --set-string \
    "podAnnotations.migbsp\.io/image=$(podman image inspect -f '{{.Id}}' localhost/bsp-operator:dev)" >&2
}
