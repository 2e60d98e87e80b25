# shellcheck shell=bash
# Debian 13: the root in which the tree is built and tested, and the images built from Debian's packages. Sourced.

packages_in() { sed 's/#.*//' "$1" | xargs; }
hash_of() { cat "$@" | sha256sum | cut -c1-12; }

# Checks for debian:trixie, locally or in a registry that answers within 20 s.
registry_answers=
has_debian_image() {
  podman image exists debian:trixie && return
  [ -n "$registry_answers" ] || if timeout 20 podman pull -q debian:trixie >/dev/null 2>&1; then registry_answers=yes; else registry_answers=no; fi
  [ $registry_answers = yes ]
}

# installing PACKAGES: the shell commands to install them in Debian. An incomplete root is thrown away, so fsync for each file isn't
# needed.
installing() {
  echo "export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    apt-get -qq install -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io $1 >/dev/null
    rm -rf /var/lib/apt/lists/*"
}

# debian_image TAG PACKAGE_FILE [SETUP]: builds an image of Debian 13 with those packages and runs SETUP in it.
debian_image() {
  local tag=$1 packages setup=${3:-true}
  packages=$(packages_in "$2")
  podman image exists "$tag" && return
  say "Building the image $tag (once, and when $2 changes)"
  if has_debian_image; then
    local name=bsp-make-image-$$
    podman run --name $name --network host debian:trixie sh -ec "
      $(installing "$packages")
      $setup
      rm -rf /usr/share/doc/* /usr/share/man/*" >&2 &&
      podman commit -q $name "$tag" >/dev/null || { podman rm -f $name >/dev/null; die "cannot build $tag"; }
    podman rm -f $name >/dev/null
    return
  fi
  # shellcheck disable=SC2086
  bootstrap "$packages" --format=tar --customize-hook="chroot \"\$1\" sh -ec '$setup'" trixie - | podman import -q - "$tag" >/dev/null ||
    die "cannot build $tag; the message is above"
}

# bootstrap PACKAGES OPTION… trixie TARGET: creates Debian 13 from Debian's packages alone.
bootstrap() {
  local packages=$1
  shift
  mmdebstrap --variant=minbase --include="${packages// /,}" --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' "$@" ||
    die "mmdebstrap cannot create a Debian 13 root: it needs Debian's package mirror (see its message above)"
}

# The Debian 13 in which everything is compiled and tested: a directory, because Podman takes minutes to store an image of this size.
dev_root() { echo "$tree/build/root-$(hash_of images/dev.packages)"; }
# Other roots stay: another clone may use or mount them, and only a person knows.
ensure_dev_root() {
  local root new packages others
  root=$(dev_root)
  if [ -d "$root" ]; then add_packages client "rclone"; return; fi
  mkdir -p "$tree/build"
  say "Creating the Debian 13 to build and test in, ${root#"$tree"/} (once, and when images/dev.packages changes)"
  others=$(cd "$tree" && find build -maxdepth 1 -name 'root-*' | sort | xargs)
  [ -z "$others" ] || say "Other roots, to be removed if no clone uses them: $others"
  new=$(mktemp -d "$root.new.XXXXXX")
  chmod 755 "$new"
  packages="$(packages_in images/dev.packages) $(packages_in images/client.packages)"
  make_root "$new" "$packages" || { rm -rf "$new"; die "cannot create $root"; }
  touch "$new/.client-$(hash_of images/client.packages)"
  mv -T "$new" "$root" 2>/dev/null || rm -rf "$new"  # another process was faster
}

# make_root DIRECTORY PACKAGES
make_root() {
  local new=$1 packages=$2
  if has_debian_image; then
    podman create -q --name bsp-make-root-$$ debian:trixie >/dev/null &&
      podman export bsp-make-root-$$ | tar -xC "$new" &&
      podman rm bsp-make-root-$$ >/dev/null || return 1
    install_in "$new" "$packages" || { say "apt-get cannot install the packages of images/dev.packages; its message is above"; return 1; }
  else
    (bootstrap "$packages" --format=directory trixie "$new")
  fi
}

# install_in ROOT PACKAGES
install_in() {
  podman run --rm --network host --rootfs "$1" sh -ec "$(installing "$2")" >&2
}

# add_packages LIST WHAT: adds the packages of images/LIST.packages to the root above, once, whichever clone does it.
add_packages() {
  local installed
  installed=$(dev_root)/.$1-$(hash_of "images/$1.packages")
  [ -e "$installed" ] && return
  (
    flock 9
    [ -e "$installed" ] && exit
    say "Adding $2 (images/$1.packages)"
    install_in "$(dev_root)" "$(packages_in "images/$1.packages")" && touch "$installed"
  ) 9>"$(dev_root)/.adding" || die "apt-get cannot install the packages of images/$1.packages; its message is above"
}

# Tools to inspect the tree, not needed to build it.
ensure_tools() {
  ensure_dev_root
  add_packages tools "clang, clang-format, clang-tidy and debuggers"
}

# in_debian COMMAND…: runs it in the root above, in this directory. The tree and /tmp have the same paths inside and outside;
# the tests find the host's mount namespace through BSP_HOST_PID (see tests/on_host.sh).
in_debian() {
  local terminal=()
  [ -t 0 ] && [ -t 1 ] && terminal=(-t)
  podman run --rm -i "${terminal[@]}" --privileged --pid host --network host --ipc host --cgroupns host \
    -v "$tree:$tree" -v /tmp:/tmp -w "$tree" \
    -e CCACHE_DIR="$tree/build/ccache" -e CCACHE_MAXSIZE=3G -e CCACHE_SLOPPINESS=pch_defines,time_macros -e BSP_HOST_PID=$$ -e CONTAINERS_CONF -e TERM \
    -e PODMAN_IGNORE_CGROUPSV1_WARNING -e UPDATE_GOLDEN -e BSP_LOG -e BSP_SOAK_SECONDS -e BSP_SOAK_SEED -e BSP_KUBERNETES_BUILD -e BSP_FAULTS_PART \
    --rootfs "$(dev_root)" "$@"
}
