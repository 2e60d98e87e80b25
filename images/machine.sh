# shellcheck shell=bash
# Shared by the commands of ./dev: messages, and checks of this machine. Sourced; `tree` and `called_from` come from ./dev.

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }

# Podman and its dependencies (netavark only because Podman doesn't start without it; its networks aren't used), mmdebstrap to
# create the base image if no registry answers, ip for the local mode's network namespaces, nsenter for tests that run Podman
# from inside the image.
install_tools() {
  local -A package_of=([podman]=podman [runc]=runc [catatonit]=catatonit [mmdebstrap]=mmdebstrap [ip]=iproute2
                       [nsenter]=util-linux [conmon]=conmon [netavark]=netavark)
  local missing=() tool
  for tool in "${!package_of[@]}"; do
    PATH=$PATH:/usr/libexec/podman:/usr/lib/podman command -v "$tool" >/dev/null || missing+=("${package_of[$tool]}")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null || die "needs ${missing[*]}; install them (this script supports only Debian)"
  say "Installing ${missing[*]} from Debian (the only change to this machine)"
  apt-get -qq update || die "apt-get update failed: is this machine's network up, and /etc/apt in order?"
  apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get cannot install ${missing[*]}; its message is above"
}

# Checks whether Podman can run a container with its current configuration, using a root file system with one static program.
podman_runs() {
  podman run --rm --network host --rootfs "$tree/build/probe" /catatonit --version >"$tree/build/probe.log" 2>&1
}

# least A B…: prints the smallest; "unlimited" counts as very large.
least() { printf '%s\n' "$@" | sed 's/unlimited/1048576/' | sort -n | head -1; }

# Some machines (small VMs without systemd or some capability) refuse Podman's defaults: for these a separate configuration,
# build/containers.conf, leaves /etc unchanged. A container can't have higher limits for open files and processes than Podman
# itself, and Podman caps its process limit at the kernel's pid_max.
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
# Written by ./dev because Podman's defaults can't run a container on this machine. Delete it to retry the defaults.
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
  die "Podman cannot run a container here (its message is above); fix that and retry"
}

prepare_machine() {
  [ "$(id -u)" = 0 ] || die "must run as root: it installs packages and creates containers and network namespaces"
  [ "$(uname -m)" = x86_64 ] || die "supports only x86_64 machines, not $(uname -m)"
  mkdir -p build/ccache
  install_tools
  configure_podman
}
