#!/bin/bash
# Run the kubelet in a mount namespace of its own in which the sysctls that it insists on have the values it wants.
# They are the host's and stay what they are. The kubelet alone sees it: where /proc is covered in part, the kernel
# mounts no new proc in a user namespace, so that containerd could not start a pod with hostUsers: false.
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
