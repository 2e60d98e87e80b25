#!/bin/bash
# tests/cluster/build.sh [COMPONENT…]: compile the parts of a cluster from their pinned Go modules into build/cluster/bin.
#
# Kubernetes 1.36 is components/kubernetes; BSP_CLUSTER_KUBERNETES names another version, which is components/kubernetes-VERSION and has
# its programs, with links to those of the other components, in build/cluster/bin-VERSION.
#
# A component is a directory in components/: its go.mod names the commands (`tool`) and pins every version, its go.sum
# their content. This script recompiles it only when one of its files or its flags below change; Go's caches make that
# quick. Everything is pure Go and needs no C compiler or library. Cold, on two cores: kubernetes 8 minutes, the rest 8.
# Exit status 3: this machine lacks what it takes (Go, or a proxy that serves modules); 1: it should have worked.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

lacks() { printf 'cluster: %s\n' "$*" >&2; exit 3; }

# The modules require Go 1.26. An older Go (1.21 or newer) can download that itself, if GOTOOLCHAIN allows it.
check_go() {
  command -v go >/dev/null || lacks "needs Go 1.26 or newer to compile Kubernetes (https://go.dev/dl); none is on PATH"
  (cd "$cluster/components/kubernetes" && go version >/dev/null) ||
    lacks "needs Go 1.26 or newer, this is $(GOTOOLCHAIN=local go version | cut -d' ' -f3); GOTOOLCHAIN=auto lets Go fetch one"
}

version_of() { awk -v module="$2" '{ sub(/^require /, "") } $1 == module { print $2; exit }' "$cluster/components/$1/go.mod"; }

# A component's linker flags: the version that its programs report. (Without it, clients take the API server for 0.0.0.)
linker_flags() {
  local v minor package
  case $1 in
    kubernetes*)
      v=$(version_of "$1" k8s.io/kubernetes)
      minor=${v#v1.}
      for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
        printf -- '-X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s ' $package "$v" $package $package "${minor%%.*}"
      done ;;
    helm)
      printf -- '-X helm.sh/helm/v3/internal/version.version=%s ' "$(version_of helm helm.sh/helm/v3)"
      v=$(version_of helm k8s.io/client-go)   # the cluster version that `helm template` assumes
      minor=${v#v0.}
      for package in chartutil lint/rules; do
        printf -- '-X helm.sh/helm/v3/pkg/%s.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/%s.k8sVersionMinor=%s ' \
          $package $package "${minor%%.*}"
      done ;;
    kwok) printf -- '-X sigs.k8s.io/kwok/pkg/consts.Version=%s ' "$(version_of kwok sigs.k8s.io/kwok)" ;;
  esac
  printf -- '-s -w'
}

# watch_build PID LOG TOTAL NAME: show a build's progress; go prints each package when it starts to compile it.
watch_build() {
  local began=$SECONDS step=30
  [ -t 2 ] && step=1
  while kill -0 "$1" 2>/dev/null; do
    sleep 1
    [ $(((SECONDS - began) % step)) = 0 ] || continue
    printf "$([ -t 2 ] && printf '\\r')    %s: %d packages compiled of at most %d, %d s$([ -t 2 ] || printf '\\n')" \
      "$4" "$(grep -c '^[^ ]*/[^ ]*$' "$2")" "$3" $((SECONDS - began)) >&2
  done
  [ -t 2 ] && printf '\r\033[K' >&2
  return 0
}

build_component() {
  local name=$1 flags log=$state/log/$1.log began=$SECONDS total key pid
  local directory=$cluster/components/$name what=tool to=$common
  [ -e "$directory/go.mod" ] || die "unknown component '$name'; components: $(cd "$cluster/components" && echo *)"
  [ -e "$directory/main.go" ] && what=.
  [ "$name" != "$kubernetes" ] || to=$bin
  flags=$(linker_flags "$name")
  key=$( (cat "$directory"/*; echo "$flags") | sha256sum)
  [ "$(cat "$state/keys/$name" 2>/dev/null)" = "$key" ] && return
  check_go
  say "Compiling $name (once; again when tests/cluster/components/$name changes)"
  mkdir -p "$to" "$state"/{keys,log}
  cd "$directory"
  total=$(CGO_ENABLED=0 go list -deps "$what" 2>"$log" | wc -l) || {
    cat "$log" >&2
    ! grep -qE "$unreachable" "$log" || lacks "$name: failed to download its modules, no proxy serves them: $(grep -m1 -E "$unreachable" "$log")"
    die "$name: failed to download its modules; go's message is above"
  }
  CGO_ENABLED=0 go build -v -trimpath -buildvcs=false -tags 'no_btrfs no_devmapper no_zfs' -ldflags "$flags" -o "$to/" "$what" \
    2>"$log" &
  pid=$!
  watch_build $pid "$log" "$total" "$name"
  wait $pid || { grep -v '^[^ ]*/[^ ]*$' "$log" >&2; die "$name: go build failed; its message is above"; }
  [ "$name" = etcd ] && mv "$to/server" "$to/etcd"   # its package is …/etcd/server/v3
  echo "$key" >"$state/keys/$name"
  say "Compiled $name in $((SECONDS - began)) s"
}

# The programs of the other components, beside those of a further version of Kubernetes.
link_common() {
  local program
  [ "$bin" != "$common" ] || return 0
  mkdir -p "$bin"
  for program in etcd containerd containerd-shim-runc-v2 ctr bridge host-local loopback portmap coredns policies helm kwok; do
    [ ! -e "$common/$program" ] || ln -f "$common/$program" "$bin/$program"
  done
}

[ -e "$cluster/components/$kubernetes/go.mod" ] ||
  die "BSP_CLUSTER_KUBERNETES=$version is not one of $(cd "$cluster/components" && printf '%s\n' kubernetes*/go.mod | sed 's,/.*,,; s/^kubernetes$/1.36/; s/^kubernetes-//' | sort -V | paste -sd, | sed 's/,/, /g')"
[ $# -gt 0 ] || set -- "$kubernetes" etcd containerd cni coredns policies helm
for component; do (build_component "$component"); done
link_common
