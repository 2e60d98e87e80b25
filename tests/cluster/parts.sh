# shellcheck shell=bash
# For a machine's first process: run its parts (kubelet, etcd …) and start again what ends. To be sourced.
# /run/parts/NAME holds the process id of a part, which is how node.sh kills, pauses and resumes one.
mkdir -p /run/parts

# part NAME COMMAND…
part() {
  local name=$1
  shift
  while :; do
    # Its status is taken with ||, or `set -e` of whoever sources this would end the loop with it.
    local status=0
    # shellcheck disable=SC2016
    sh -c 'echo $$ >/run/parts/$0; exec "$@"' "$name" "$@" >>"/var/log/cluster/$name.log" 2>&1 || status=$?
    echo "--- $name ended with status $status; started again ---" >>"/var/log/cluster/$name.log"
    sleep 1
  done &
}

# The first process of a machine reaps what is left to it and ends when the machine is stopped.
stay() {
  trap 'exit 0' TERM INT
  while :; do
    sleep infinity &
    wait $!
  done
}
