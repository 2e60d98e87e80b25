#!/bin/bash
# tests/cluster/node.sh VERB NODE [PART]: inject a fault into a machine. NODE is one of nodes.conf, or control.
#
#   stop NODE            shut it down          kill NODE            cut its power
#   start NODE           switch it on again    freeze|thaw NODE     stop and continue all its processes
#   cut NODE             pull its cable        join NODE            plug it in again
#   kill NODE PART       kill one part with SIGKILL; it restarts within a second or two
#   pause|resume NODE PART   stop one part with SIGSTOP, and continue it
#   logs NODE PART       print a part's log
#   shell NODE           open a shell
# PART: kubelet, containerd, kube-proxy or policies; on control etcd, apiserver, controller-manager, scheduler or dns.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

usage() { sed -n '2,/^\. /{/^\. /d;s/^# \{0,1\}//p}' "$0" >&2; exit 2; }

# Signals only the part itself, not its children (such as the kubelet's shell).
signal_part() {
  podman exec "$machine" sh -c 'kill -s "$1" "$(cat "/run/parts/$2")"' sh "$1" "$2" 2>/dev/null ||
    die "$node has no running part '$2'; parts: $(podman exec "$machine" ls /run/parts | xargs)"
}

[ $# -ge 2 ] || usage
verb=$1 node=$2 part=${3:-}
[ "$node" = control ] || node_names | grep -qx "$node" || die "unknown node '$node'; nodes: control $(node_names | xargs)"
machine=$(container_of "$node")
podman container exists "$machine" || die "the cluster is not up; ./dev cluster up starts it"

case $verb:${part:+part} in
  stop:) podman stop -t 20 "$machine" >/dev/null ;;
  kill:) podman kill -s KILL "$machine" >/dev/null ;;
  start:) podman start "$machine" >/dev/null ;;
  freeze:) podman pause "$machine" >/dev/null ;;
  thaw:) podman unpause "$machine" >/dev/null ;;
  cut:) "$cluster/network.sh" unplug "$node" ;;
  join:) "$cluster/network.sh" plug "$node" ;;
  kill:part) signal_part KILL "$part" ;;
  pause:part) signal_part STOP "$part" ;;
  resume:part) signal_part CONT "$part" ;;
  logs:part) cat "$run/$node/log/$part.log" ;;
  shell:) exec podman exec -it -e PATH=/opt/cluster/bin:/usr/sbin:/usr/bin:/sbin:/bin "$machine" bash ;;
  *) usage ;;
esac
