#!/bin/bash
# images/bundle.sh BUILD_DIR OUT_DIR: lays out what runs outside the Debian 13 root. Runs inside that root.
#
#   OUT_DIR/runtime   the root of localhost/bsp-runtime: bsp-init (static), libbspmpi.so, bsp-sidecar, bin/criu, libexec/rclone, lib/
#   OUT_DIR/host      bin/bsp-operator for this machine, and its lib/
#   OUT_DIR/plugin    kubectl-bsp (static)
#   OUT_DIR/simulator bin/bsp-simulate, and its lib/, which is large; host/bin has a link to it
#   OUT_DIR/apps/bin  the example applications
#
# Programs in runtime and host include all their libraries and their own dynamic loader (sidecar/init/bundle.sh), so they
# run in any image and on any host, whatever its C library. libbspmpi.so is the exception: it is loaded into the
# user's program and must work with the libraries it finds there.
set -euo pipefail
build=$1 out=$2
new=$out.new
libraries=$(dirname "$0")/../sidecar/init/bundle.sh

built() { [ -e "$build/bin/$1" ]; }  # a program that this build does not have is left out

rm -rf "$new"
mkdir -p "$new"/runtime "$new"/host "$new"/plugin "$new"/apps/bin

# The image needs these directories as the root of the sidecar container; in a volume at /bsp they are harmless.
# `bsp -> .` gives every file the same path in both: /bsp/bsp-sidecar.
mkdir -p "$new"/runtime/{tmp,run,proc,sys,dev,etc}
chmod 1777 "$new/runtime/tmp"
ln -s . "$new/runtime/bsp"
programs=(bin/criu=/usr/sbin/criu)
built bsp-sidecar && programs+=("bsp-sidecar=$build/bin/bsp-sidecar")
"$libraries" "$new/runtime" "${programs[@]}"
# patchelf breaks Go's programs, so rclone stays as it is, and finds its loader where Debian has it: it runs as the sidecar's child only,
# whose root this is. (bsp-init --install leaves it out.)
ln -s lib "$new/runtime/lib64"
install -Dm755 /usr/bin/rclone "$new/runtime/libexec/rclone"
for library in $(ldd /usr/bin/rclone | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p'); do cp -Ln "$library" "$new/runtime/lib/"; done
install -Dm644 /etc/ssl/certs/ca-certificates.crt "$new/runtime/etc/ssl/certs/ca-certificates.crt"  # where rclone looks
for file in bsp-init libbspmpi.so; do
  built $file && install -m755 "$build/bin/$file" "$new/runtime/$file"
done
built bsp-operator && BSP_BUNDLE_PREFIX=$out/host "$libraries" "$new/host" "bin/bsp-operator=$build/bin/bsp-operator"
built kubectl-bsp && install -m755 "$build/bin/kubectl-bsp" "$new/plugin/kubectl-bsp"
if built bsp-simulate; then
  BSP_BUNDLE_PREFIX=$out/simulator "$libraries" "$new/simulator" "bin/bsp-simulate=$build/bin/bsp-simulate"
  mkdir -p "$new/host/bin"
  ln -s ../../simulator/bin/bsp-simulate "$new/host/bin/bsp-simulate"
fi
tests_programs="lattice_boltzmann_stamping stamper moved_clocks moved_files moved_fortran moved_guards moved_windows shared_files held_back shim_blocking_calls shim_undelivered"  # a release doesn't have them
for app in lattice_boltzmann smith_waterman lu fractal $tests_programs; do
  built $app && install -m755 "$build/bin/$app" "$new/apps/bin/$app"
done

# A release must not contain fault points.
if grep -q '^BSP_FAULT_POINTS:BOOL=OFF' "$build/CMakeCache.txt"; then
  for file in "$new"/runtime/{bsp-init,bsp-sidecar,libbspmpi.so} "$new"/host/bin/bsp-operator "$new"/plugin/kubectl-bsp; do
    [ ! -f "$file" ] || ! grep -q BSP_FAULTS "$file" || { echo "bundle.sh: $file has fault points" >&2; exit 1; }
  done
fi

# Debug information stays in the build tree.
for file in "$new"/runtime/{bsp-init,bsp-sidecar,libbspmpi.so} "$new"/host/bin/bsp-operator "$new"/plugin/* "$new"/simulator/bin/* "$new"/apps/bin/*; do
  [ -f "$file" ] && strip --strip-debug "$file"
done
rm -rf "$out"
mv "$new" "$out"
