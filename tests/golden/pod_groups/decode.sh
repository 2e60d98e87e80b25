#!/bin/bash
# Decodes made.json, which has the PodGroups that the operator makes, by the Go types of the schedulers that read them. Go fetches their
# modules, at the versions in go.mod. Exit status 77: this machine lacks Go 1.26 or a proxy that serves modules.
. "$(dirname "$(readlink -f "$0")")/../../cluster/lib.sh"
cd "$tree/tests/golden/pod_groups"

# ctest runs in the development root, whose environment knows nothing of the host's Go.
if [ -n "${BSP_HOST_PID:-}" ]; then
  while IFS= read -r -d '' variable; do
    case $variable in PATH=* | HOME=* | GO*=* | *_proxy=* | *_PROXY=*) export "${variable?}" ;; esac
  done <"/proc/$BSP_HOST_PID/environ"
fi

skip() { printf 'skipped: %s\n' "$*"; exit 77; }
command -v go >/dev/null || skip "needs Go 1.26 or newer (https://go.dev/dl); none is on PATH"
go version >/dev/null || skip "needs Go 1.26 or newer; go's message is above"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
CGO_ENABLED=0 go run . made.json 2>"$log" || {
  cat "$log" >&2
  ! grep -qE "$unreachable|404 Not Found|410 Gone" "$log" || skip "no proxy serves the schedulers' modules"
  exit 1
}
