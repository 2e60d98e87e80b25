# shellcheck shell=bash
# What the commands of ./dev share: this machine, and how they say what they do. Sourced; `tree` and `called_from` come
# from ./dev.

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }

# Podman and what it needs (netavark only because Podman will not start without it; no network of its is used), mmdebstrap to
# make the base image where no registry answers, ip for the local mode's network namespaces, nsenter for the tests that drive
# Podman from inside the image.
install_tools() {
  local -A package_of=([podman]=podman [runc]=runc [catatonit]=catatonit [mmdebstrap]=mmdebstrap [ip]=iproute2
                       [nsenter]=util-linux [conmon]=conmon [netavark]=netavark)
  local missing=() tool
  for tool in "${!package_of[@]}"; do
    PATH=$PATH:/usr/libexec/podman:/usr/lib/podman command -v "$tool" >/dev/null || missing+=("${package_of[$tool]}")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || die "needs ${missing[*]}; install them (only Debian is known to this script)"
  say "Installing ${missing[*]} from Debian (nothing else of this machine is changed)"
  apt-get -qq update || die "apt-get update failed: is this machine's network up, and /etc/apt in order?"
  apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install ${missing[*]}; its message is above"
}

# Can Podman run a container as it is configured? A root file system of one static program tells.
podman_runs() {
  podman run --rm --network host --rootfs "$tree/build/probe" /catatonit --version >"$tree/build/probe.log" 2>&1
}

# least A B…: the smallest; "unlimited" counts as very large.
least() { printf '%s\n' "$@" | sed 's/unlimited/1048576/' | sort -n | head -1; }

# Some machines (small VMs without systemd or some capability) refuse Podman's defaults: then we use a configuration
# of our own, build/containers.conf, and leave /etc as it is. A container may not be given more open files or
# processes than Podman itself has, and Podman lowers its own processes to the kernel's pid_max.
configure_podman() {
  mkdir -p build/probe/{proc,sys,dev,run,tmp,etc}
  cp -u "$(command -v catatonit || echo /usr/libexec/podman/catatonit)" build/probe/catatonit
  [ -n "${CONTAINERS_CONF:-}" ] && return
  if [ ! -e build/containers.conf ]; then
    podman_runs && return
    local files processes
    files=$(least "$(ulimit -Hn)")
    processes=$(least "$(ulimit -Hu)" "$(cat /proc/sys/kernel/pid_max)")
    cat >build/containers.conf <<CONF
# Written by ./dev because Podman's defaults do not run a container on this machine. Delete it to try them again.
[containers]
default_ulimits = ["nofile=$files:$files", "nproc=$processes:$processes"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
CONF
  fi
  export CONTAINERS_CONF=$tree/build/containers.conf
  podman_runs && return
  cat build/probe.log >&2
  rm -f build/containers.conf
  die "Podman cannot run a container here (its message is above); put that right and start again"
}

prepare_machine() {
  [ "$(id -u)" = 0 ] || die "must be run by root: it installs packages and makes containers and network namespaces"
  [ "$(uname -m)" = x86_64 ] || die "knows x86_64 machines only, this is $(uname -m)"
  mkdir -p build/ccache
  install_tools
  configure_podman
}
