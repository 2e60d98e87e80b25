#!/bin/bash
# build.sh tells a machine that can't compile Kubernetes (3) from a fault of ours (1). A false go says what a real one would.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tests/cluster/components/{kubernetes,etcd},path}
cp "$(dirname "$(readlink -f "$0")")"/{build,lib}.sh "$tree/tests/cluster"
printf 'module cluster\nrequire k8s.io/kubernetes v1.36.3\n' | tee "$tree"/tests/cluster/components/{kubernetes,etcd}/go.mod >/dev/null

# expect STATUS WORDS: runs build.sh with a go that runs the script on stdin, and checks how that ends.
expect() {
  local status=0 said
  { echo '#!/bin/bash'; cat; } >"$tree/path/go"
  chmod +x "$tree/path/go"
  said=$(PATH=$tree/path:$PATH "$tree/tests/cluster/build.sh" etcd 2>&1) || status=$?
  [[ $status = "$1" && $said == *"$2"* ]] || { echo "exit status $status, expected $1 and '$2'; it said: $said" >&2; exit 1; }
}

expect 3 "needs Go 1.26 or newer" <<<'[ "${GOTOOLCHAIN:-}" = local ] && echo go1.19 || exit 1'
while read -r words; do
  expect 3 "no proxy serves them: $words" <<<"[ \$1 = version ] || { echo '$words' >&2; exit 1; }"
done <<'TEXT'
go.etcd.io/etcd/v3@v3.6.12: Get "https://example.org/go.etcd.io/etcd/v3/@v/v3.6.12.mod": dial tcp: lookup example.org: no such host
reading https://example.org/go.etcd.io/etcd/v3/@v/v3.6.12.zip: 503 Service Unavailable
module lookup disabled by GOPROXY=off
TEXT
while read -r words; do
  expect 1 "$words" <<<"[ \$1 = version ] || { echo '$words' >&2; exit 1; }"
done <<'TEXT'
verifying go.etcd.io/etcd/v3@v3.6.12: checksum mismatch
missing go.sum entry for module providing package go.etcd.io/etcd/server/v3
TEXT
expect 1 "go build failed" <<<'[ $1 != build ] || { echo "undefined: etcd.Serve" >&2; exit 1; }'
[ ! -e "$tree/build/cluster/keys/etcd" ] || { echo "a failed build counts as done" >&2; exit 1; }
expect 0 "Compiled etcd" <<<'[ $1 != build ] || touch "$(dirname "$0")/../build/cluster/bin/server"'
[ -e "$tree/build/cluster/bin/etcd" ] || { echo "etcd isn't there" >&2; exit 1; }
expect 0 "" <<<'echo "go must not run again: $*" >&2; exit 1'

# Another version of Kubernetes has programs of its own, beside the same others.
export BSP_CLUSTER_KUBERNETES=1.37
expect 1 "BSP_CLUSTER_KUBERNETES=1.37 is not one of 1.36" <<<'exit 1'
mkdir "$tree/tests/cluster/components/kubernetes-1.37"
printf 'module cluster\nrequire k8s.io/kubernetes v1.37.2\n' >"$tree/tests/cluster/components/kubernetes-1.37/go.mod"
expect 0 "" <<<'echo "go must not run again: $*" >&2; exit 1'
[ "$tree/build/cluster/bin-1.37/etcd" -ef "$tree/build/cluster/bin/etcd" ] || { echo "etcd is not linked" >&2; exit 1; }
unset BSP_CLUSTER_KUBERNETES

# Without any go at all.
rm -r "$tree/path/go" "$tree/build"
for tool in bash dirname readlink cat sha256sum awk; do ln -s "$(command -v "$tool")" "$tree/path/$tool"; done
status=0
said=$(PATH=$tree/path "$tree/tests/cluster/build.sh" etcd 2>&1) || status=$?
[[ $status = 3 && $said == *"none is on PATH"* ]] || { echo "without go: exit status $status, it said: $said" >&2; exit 1; }
