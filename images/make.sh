# shellcheck shell=bash
# Builds programs, their layout and the pods' images from the sources. Sourced.

# build PRESET [BUILD_PRESET]: compiles in build/PRESET.
build() {
  local preset=${1:-release}
  ensure_dev_root
  say "Building ($preset) in Debian 13"
  in_debian sh -ec '
    [ "build/$1/build.ninja" -nt CMakePresets.json ] || cmake --preset "$1" >"build/$1.configure.log" 2>&1 || { cat "build/$1.configure.log"; exit 1; }
    cmake --build --preset "$2"' build "$preset" "${2:-$preset}" || die "the build failed; its message is above"
}

# bundle PRESET: lays out what runs outside the Debian 13 root, if any of it has changed.
bundle() {
  local preset=$1 inputs
  # A release lacks some of them: the tests' own programs aren't built for it.
  inputs=$(find "build/$preset/bin" -regextype egrep \
             -regex '.*/(bsp-.*|kubectl-bsp|libbspmpi\.so|lattice_boltzmann.*|smith_waterman|lu|fractal|stamper|shared_files|moved_.*)' -printf '%f %T@ %s\n' | sort |
           cat - "$tree"/images/{bundle.sh,dev.packages} | sha256sum)
  [ "$(cat build/bundle.stamp 2>/dev/null)" = "$inputs" ] && return
  say "Laying out the programs with their libraries in build/bundle"
  in_debian images/bundle.sh "build/$preset" "$tree/build/bundle"
  mkdir -p build/bin
  ln -sfn ../bundle/host/bin/bsp-operator build/bin/bsp-operator
  # What the demo compiles has no plugin.
  if [ -e build/bundle/plugin/kubectl-bsp ]; then ln -sfn ../bundle/plugin/kubectl-bsp build/bin/kubectl-bsp; else rm -f build/bin/kubectl-bsp; fi
  echo "$inputs" >build/bundle.stamp
}

# replacing TAG COMMAND…: runs COMMAND, which rebuilds the image TAG; removes its untagged predecessor unless it is in use.
replacing() {
  local tag=$1 old
  shift
  old=$(podman images -q "$tag")
  "$@" >/dev/null || die "cannot build the image $tag; the message is above"
  [ -z "$old" ] || [ "$old" = "$(podman images -q "$tag")" ] || podman rmi "$old" >/dev/null 2>&1 || true
}

# made CONTENT TAG…: what a stamp says after CONTENT became these images. It has their ids, because another tree may have built the same
# tags since.
made() {
  echo "$1"
  podman image inspect -f '{{.Id}}' "${@:2}" 2>/dev/null || true
}

apps_base() { echo "localhost/bsp-apps-base:$(hash_of images/apps.packages)"; }
apps_base_image() {
  debian_image "$(apps_base)" images/apps.packages 'useradd -m -u 1000 bsp
    cd /usr/lib/*-linux-gnu
    rm -rf libLLVM*.so* libamd_comgr.so* libamdhip64.so* libz3.so* ucx/*rocm* /usr/share/locale/*'
}

# images PRESET [BUILD_PRESET]: builds the pods' images in Podman's store, if their content has changed.
images() {
  local preset=${1:-release} content base=""
  # In a fresh clone packages are fetched and unpacked while the compiler works.
  [ -e build/images.stamp ] || { apps_base_image & base=$!; }
  build "$preset" "${2:-$preset}"
  bundle "$preset"
  [ -z "$base" ] || wait "$base" || die "cannot build the image $(apps_base); the message is above"
  content=$(sha256sum build/bundle.stamp images/apps.*)
  podman image exists localhost/bsp-runtime:dev && podman image exists localhost/bsp-apps:dev &&
    [ "$(cat build/images.stamp 2>/dev/null)" = "$(made "$content" localhost/bsp-runtime:dev localhost/bsp-apps:dev)" ] && return
  apps_base_image
  say "Building the images localhost/bsp-runtime:dev (the runtime in every pod) and localhost/bsp-apps:dev (the examples)"
  tar -C build/bundle/runtime -cf build/runtime.tar .
  replacing localhost/bsp-runtime:dev podman import -q build/runtime.tar localhost/bsp-runtime:dev
  replacing localhost/bsp-apps:dev podman build -q --network none --build-arg BASE="$(apps_base)" \
    -f images/apps.Containerfile -t localhost/bsp-apps:dev build/bundle/apps
  rm build/runtime.tar
  made "$content" localhost/bsp-runtime:dev localhost/bsp-apps:dev >build/images.stamp
}

# operator_root NAME: lays out the operator's image in build/NAME.
operator_root() {
  rm -rf "build/$1"
  cp -r build/bundle/host "build/$1"
  rm -f "build/$1/bin/bsp-simulate"  # a link to a program that stays on the user's machine
  in_debian patchelf --set-interpreter /lib/ld-linux-x86-64.so.2 --force-rpath --set-rpath /lib "build/$1/bin/bsp-operator" 2> >(grep -v "^warning: entry" >&2)
}

# Needed only by Kubernetes clusters. It is the same operator as on this machine, with its loader in another place.
operator_image() {
  local content
  content=$(sha256sum build/bundle.stamp images/operator.Containerfile)
  podman image exists localhost/bsp-operator:dev &&
    [ "$(cat build/operator.stamp 2>/dev/null)" = "$(made "$content" localhost/bsp-operator:dev)" ] && return
  say "Building the image localhost/bsp-operator:dev"
  operator_root operator-image
  replacing localhost/bsp-operator:dev podman build -q --network none -f images/operator.Containerfile \
    -t localhost/bsp-operator:dev build/operator-image
  rm -rf build/operator-image
  made "$content" localhost/bsp-operator:dev >build/operator.stamp
}

# archive FILE DIRECTORY [TAR OPTION…] NAME…: a tar that depends on nothing but the content, compressed if FILE says so.
archive() {
  local file=$1 directory=$2
  shift 2
  tar -C "$directory" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -cf - "$@" |
    case $file in *gz) gzip -9n ;; *) cat ;; esac >"$file"
}
