# shellcheck shell=bash
# For a machine's first process: runs its parts (kubelet, etcd …) and restarts those that exit. Source it.
# /run/parts/NAME has a part's process id, for node.sh to kill, pause and resume it.
mkdir -p /run/parts

# part NAME COMMAND…
part() {
  local name=$1
  shift
  while :; do
    # || keeps the sourcing script's `set -e` from ending the loop.
    local status=0
    # shellcheck disable=SC2016
    sh -c 'echo $$ >/run/parts/$0; exec "$@"' "$name" "$@" >>"/var/log/cluster/$name.log" 2>&1 || status=$?
    echo "--- $name exited with status $status; restarting ---" >>"/var/log/cluster/$name.log"
    sleep 1
  done &
}

# Keeps the machine's first process running: it reaps orphans, and exits when the machine is stopped.
stay() {
  trap 'exit 0' TERM INT
  while :; do
    sleep infinity &
    wait $!
  done
}
