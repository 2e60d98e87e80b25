#!/bin/bash
# Decodes made.json, which has the PodGroups that the operator makes, by the Go types of the schedulers that read them. Go fetches their
# modules, at the versions in go.mod. Exit status 77: this machine lacks Go 1.26 or a proxy that serves modules.
. "$(dirname "$(readlink -f "$0")")/../../cluster/lib.sh"
cd "$tree/tests/golden/pod_groups"

skip() { printf 'skipped: %s\n' "$*"; exit 77; }
command -v go >/dev/null || skip "needs Go 1.26 or newer (https://go.dev/dl); none is on PATH"
go version >/dev/null || skip "needs Go 1.26 or newer; go's message is above"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
CGO_ENABLED=0 go run . made.json 2>"$log" || {
  cat "$log" >&2
  ! grep -qE "$unreachable" "$log" || skip "no proxy serves the schedulers' modules"
  exit 1
}
