#!/bin/bash
# ./dev release VERSION: everything that a release consists of, in build/release-VERSION. It needs no network once ./dev build has run, and
# makes the same bytes each time: file times are those of the newest commit (SOURCE_DATE_EPOCH).
#
#   images/*.tar                   the images bsp-operator, bsp-runtime and bsp-apps as OCI archives: podman load, skopeo copy, ctr import
#   bsp-operator-VERSION.tgz       the chart, with the images' tags: helm install; helm push to a registry
#   bsp-operator-VERSION-linux-amd64.tar.gz   the local mode for any x86-64 Linux with Podman: tar x; bin/bsp-operator local run -f …
#   bsp-operator_VERSION_amd64.deb the same as a Debian package
#   kubectl-bsp-VERSION-linux-amd64.tar.gz, bsp.yaml   the plugin, and its manifest: kubectl krew install --manifest=bsp.yaml --archive=…
#   sbom.spdx.json                 what all of it contains besides this project: Debian's packages, with their versions
#   SHA256SUMS
#
# BSP_RELEASE_URL is where the plugin's archive will be; only bsp.yaml has it. BSP_RELEASE_PRESET: instead of release, for tests.
set -euo pipefail
. images/commands.sh

[[ "${1:-}" =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || die "release needs a version such as 0.2.0, not '${1:-}'"
version=$1
preset=${BSP_RELEASE_PRESET:-release}
out=build/release-$version
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# pack NAME CONTEXT ARGUMENT…: podman build makes the image localhost/NAME:VERSION, and an OCI archive of it.
pack() {
  local name=$1 context=$2 layout=$out/layout
  shift 2
  podman build -q --network none --timestamp "$SOURCE_DATE_EPOCH" "$@" -t "localhost/$name:$version" "$context" >/dev/null || die "cannot build $name"
  rm -rf "$layout"
  podman push -q "localhost/$name:$version" "oci:$layout:localhost/$name:$version"
  archive "$out/images/$name.tar" "$layout" .
  rm -rf "$layout"
}

# What a program with all its libraries looks like under another root: relocatable, whatever its place.
local_mode() {
  local to=$1
  mkdir -p "$to"/{bin,lib,libexec,images,examples,simulator}
  cp -a build/bundle/host/lib/. "$to/lib/"
  cp -a build/bundle/host/bin/bsp-operator "$to/libexec/bsp-operator"
  # shellcheck disable=SC2016
  in_debian patchelf --force-rpath --set-rpath '$ORIGIN/../lib' "$tree/$to/libexec/bsp-operator"
  if [ -e build/bundle/simulator/bin/bsp-simulate ]; then
    cp -a build/bundle/simulator/{bin,lib} "$to/simulator/"
    # The operator finds it beside the program that runs, which is the loader.
    printf '#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\nexec "$here/../simulator/lib/ld-linux-x86-64.so.2" --library-path "$here/../simulator/lib" "$here/../simulator/bin/bsp-simulate" "$@"\n' >"$to/lib/bsp-simulate"
    chmod 755 "$to/lib/bsp-simulate"
  fi
  cp examples/*.yaml "$to/examples/"
  cp LICENSE "$to/"
  cp "$out"/images/bsp-{runtime,apps}.tar "$to/images/"
  podman image inspect -f '{{.Id}}' "localhost/bsp-runtime:$version" >"$to/images/bsp-runtime.id"
  podman image inspect -f '{{.Id}}' "localhost/bsp-apps:$version" >"$to/images/bsp-apps.id"
  sed "s/@VERSION@/$version/" images/local_mode.sh >"$to/bin/bsp-operator"
  chmod 755 "$to/bin/bsp-operator"
}

[ -z "$(git status --porcelain --untracked-files=no)" ] || say "The tree has changes that aren't committed: this isn't what the commit says"
for file in CMakeLists.txt charts/bsp-operator/Chart.yaml; do
  grep -qE "(VERSION|version:|appVersion:) ${version%%-*}" "$file" || die "$file names another version than ${version%%-*}"
done
images "$preset"
rm -rf "$out"
mkdir -p "$out/images"

say "Packing the images"
printf '%s\n' "FROM scratch" 'COPY . /' "LABEL org.opencontainers.image.version=\"$version\" org.opencontainers.image.licenses=\"Apache-2.0\"" |
  pack bsp-runtime build/bundle/runtime -f -
operator_root operator-root
pack bsp-operator build/operator-root --build-arg VERSION="$version" -f images/operator.Containerfile
rm -rf build/operator-root
pack bsp-apps build/bundle/apps --build-arg BASE="$(apps_base)" -f images/apps.Containerfile

say "Packing chart, local mode and plugin"
chart=$out/chart/bsp-operator
mkdir -p "$out/chart"
cp -rL charts/bsp-operator "$chart"
sed -i "s/^\(version\|appVersion\): .*/\1: $version/" "$chart/Chart.yaml"
sed -i "s/^\( *tag:\) dev\b/\1 $version/; s/\(bsp-runtime\|bsp-apps\):dev\b/\1:$version/" "$chart/values.yaml"
! grep -nE '^[^#]*\bdev\b' "$chart/values.yaml" || die "the chart of the release names an image of this tree"
archive "$out/bsp-operator-$version.tgz" "$out/chart" bsp-operator
rm -rf "$out/chart"

local_mode "$out/bsp-operator-$version"
archive "$out/bsp-operator-$version-linux-amd64.tar.gz" "$out" "bsp-operator-$version"

package=$out/deb
mkdir -p "$package"/{DEBIAN,opt,usr/bin,usr/share/doc/bsp-operator}
mv "$out/bsp-operator-$version" "$package/opt/bsp-operator"
ln -s /opt/bsp-operator/bin/bsp-operator "$package/usr/bin/bsp-operator"
install -m755 build/bundle/plugin/kubectl-bsp "$package/usr/bin/kubectl-bsp"
cp LICENSE "$package/usr/share/doc/bsp-operator/copyright"
cat >"$package/DEBIAN/control" <<CONTROL
Package: bsp-operator
Version: ${version/-/\~}
Architecture: amd64
Maintainer: $(git log -1 --format='%an <%ae>')
Depends: podman, iproute2
Installed-Size: $(du -sk "$package" | cut -f1)
Section: admin
Priority: optional
Description: runs unmodified Open MPI programs and moves single ranks live
 The local mode of bsp-operator with its images and examples, and the plugin of kubectl.
CONTROL
find "$package" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zgzip -b "$package" "$out/bsp-operator_${version/-/\~}_amd64.deb" >/dev/null
rm -rf "$package"

plugin=kubectl-bsp-$version-linux-amd64.tar.gz
mkdir "$out/plugin"
install -m755 build/bundle/plugin/kubectl-bsp "$out/plugin/kubectl-bsp"
cp LICENSE "$out/plugin/"
archive "$out/$plugin" "$out/plugin" kubectl-bsp LICENSE
rm -rf "$out/plugin"
cat >"$out/bsp.yaml" <<KREW
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: bsp
spec:
  version: v$version
  shortDescription: Show and steer BSPJobs
  description: Explains why ranks of BSPJobs move or stay, shows them over time, and moves them.
  platforms:
    - selector: {matchLabels: {os: linux, arch: amd64}}
      uri: ${BSP_RELEASE_URL:-https://invalid.example/v$version}/$plugin
      sha256: $(sha256sum "$out/$plugin" | cut -d' ' -f1)
      bin: kubectl-bsp
KREW

in_debian python3 images/sbom.py "$version" "$SOURCE_DATE_EPOCH" build/bundle/runtime/lib build/bundle/host/lib build/bundle/simulator/lib >"$out/sbom.spdx.json"
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
say "build/release-$version is complete"
(cd "$out" && du -h --apparent-size -a . | sort -k2 | grep -v '\.$' | sed 's/^/    /')
