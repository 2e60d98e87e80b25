#!/bin/bash
# network.sh up|down|plug NODE|unplug NODE: the machines' network. Each machine is a network namespace; the control plane's
# has the switch (a bridge), and a cable (a veth pair) connects each node to it. `unplug` takes the switch end down.
. "$(dirname "$(readlink -f "$0")")/lib.sh"

up() {
  local hub number name other other_name
  hub=$(netns_of control)
  ip netns add "$hub"
  ip -n "$hub" link set lo up
  # An address of its own: a bridge would take the lowest of its ports' addresses, and change it when a port comes or goes.
  ip -n "$hub" link add switch address 02:00:00:00:00:01 type bridge
  ip -n "$hub" addr add "$control_ip/24" dev switch
  ip -n "$hub" link set switch up
  while read -r number name _; do
    ip netns add "$(netns_of "$name")"
    ip -n "$(netns_of "$name")" link set lo up
    ip -n "$hub" link add "port$number" type veth peer name eth0 netns "$(netns_of "$name")"
    ip -n "$hub" link set "port$number" master switch up
    ip -n "$(netns_of "$name")" addr add "$(node_ip "$number")/24" dev eth0
    ip -n "$(netns_of "$name")" link set eth0 up
    ip -n "$(netns_of "$name")" route add default via $control_ip
    ip -n "$hub" route add "$(pod_cidr "$number")" via "$(node_ip "$number")"
  done < <(nodes)
  # Pods reach each other by their own addresses: every node has routes to the other nodes' pods.
  while read -r number name _; do
    while read -r other other_name _; do
      [ "$name" = "$other_name" ] || ip -n "$(netns_of "$name")" route add "$(pod_cidr "$other")" via "$(node_ip "$other")"
    done < <(nodes)
  done < <(nodes)
}

# Finds the namespaces by name, because nodes.conf may have changed since.
down() {
  local name
  for name in $(ip netns list | awk '{ print $1 }' | grep "^$(netns_of "")" || true); do ip netns del "$name"; done
}

cable() {
  local number
  number=$(nodes | awk -v name="$1" '$2 == name { print $1 }')
  [ -n "$number" ] || die "unknown node '$1'; nodes: $(node_names | xargs)"
  ip -n "$(netns_of control)" link set "port$number" "$2"
}

case ${1:-} in
  up | down) "$1" ;;
  plug) cable "$2" up ;;
  unplug) cable "$2" down ;;
  *) die "network.sh up|down|plug NODE|unplug NODE" ;;
esac
