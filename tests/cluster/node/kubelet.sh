#!/bin/bash
# Run the kubelet in its own mount namespace, where the sysctls that it insists on appear with the values it wants. The
# host's sysctls don't change. Only the kubelet sees this: where parts of /proc are covered, the kernel refuses to mount
# a new proc in a user namespace, so containerd couldn't start a pod with hostUsers: false.
set -eu
mount --make-rprivate /proc
mkdir -p /run/sysctl
while read -r name value; do
  [ -e "/proc/sys/$name" ] || continue
  echo "$value" >"/run/sysctl/${name//\//.}"
  mount --bind "/run/sysctl/${name//\//.}" "/proc/sys/$name"
done <<'SYSCTLS'
vm/overcommit_memory 1
vm/panic_on_oom 0
kernel/panic 10
kernel/panic_on_oops 1
kernel/keys/root_maxkeys 1000000
kernel/keys/root_maxbytes 25000000
SYSCTLS
exec kubelet "$@"
