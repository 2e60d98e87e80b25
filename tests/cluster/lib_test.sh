#!/bin/bash
# Two trees on one machine each have a cluster of their own: neither finds, stops or blocks the other's.
set -euo pipefail
trees=$(mktemp -d)
trap 'rm -rf "$trees"; [ -z "${listener:-}" ] || kill "$listener"' EXIT
here=$(dirname "$(readlink -f "$0")")

# names TREE: what TREE's cluster calls the things that all trees of a machine share.
names() {
  mkdir -p "$trees/$1/tests/cluster"
  cp "$here/lib.sh" "$trees/$1/tests/cluster"
  bash -c '. "$1"; container_of fast-1; netns_of fast-1; echo "$id"' bash "$trees/$1/tests/cluster/lib.sh"
}

[ "$(names one)" = "$(names one)" ] || { echo "a tree must find its cluster again" >&2; exit 1; }
shared=$(comm -12 <(names one | sort) <(names two | sort))
[ -z "$shared" ] || { echo "two trees share $shared" >&2; exit 1; }

# Whatever listens on the first port, or one of ours if nothing does.
python3 -c 'import socket, time
try:
    listener = socket.create_server(("127.0.0.1", 6443))
except OSError:
    pass
print(flush=True)
time.sleep(60)' >"$trees/ready" &
listener=$!
until [ -s "$trees/ready" ]; do sleep 0.1; done
port=$(bash -c '. "$1"; free_port' bash "$here/lib.sh")
[ "$port" -gt 6443 ] || { echo "port $port is taken" >&2; exit 1; }
