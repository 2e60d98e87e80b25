#!/bin/bash
# images/bundle.sh BUILD_DIR OUT_DIR: lay out what runs outside the Debian 13 image. Run inside that image.
#
#   OUT_DIR/runtime   the root of localhost/bsp-runtime: bsp-init (static), libbspmpi.so, bsp-sidecar, criu, lib/
#   OUT_DIR/host      bin/bsp-operator for this machine, and its lib/
#   OUT_DIR/apps/bin  the example applications
#
# Programs in runtime and host carry all their libraries and their own dynamic loader (patchelf writes where to find
# them), so they run in any image and on any host, whatever its C library. libbspmpi.so is the exception: it is
# loaded into the user's program and must live with the libraries it finds there.
set -euo pipefail
build=$1 out=$2

# with_libraries PROGRAM LIB_DIR RUNTIME_LIB_DIR: copy the program's libraries and loader to LIB_DIR, and make it
# look for them in RUNTIME_LIB_DIR, the absolute name LIB_DIR will have where the program runs.
with_libraries() {
  local program=$1 lib=$2 runtime_lib=$3
  mkdir -p "$lib"
  ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | xargs -r cp -Lun -t "$lib"
  cp -Lun /lib64/ld-linux-x86-64.so.2 "$lib/"
  # DT_RPATH rather than RUNPATH: it also holds for the libraries' own dependencies.
  patchelf --force-rpath --set-rpath "$runtime_lib" --set-interpreter "$runtime_lib/ld-linux-x86-64.so.2" "$program"
}

install_if_built() {  # a program that this build does not have is left out
  [ -e "$1" ] && install -D -m755 "$1" "$2"
}

runtime=$out/runtime
rm -rf "$out.new"
mkdir -p "$out.new/runtime" "$out.new/host" "$out.new/apps/bin"
(
  out=$out.new runtime=$out.new/runtime
  # As the root of the sidecar container the image needs these; as a volume at /bsp they do no harm. `bsp -> .` gives
  # every file the same name in both: /bsp/bsp-sidecar.
  mkdir -p "$runtime"/{tmp,run,proc,sys,dev,etc,lib}
  chmod 1777 "$runtime/tmp"
  ln -s . "$runtime/bsp"
  ln -s . "$runtime/bin"
  install -m755 "$(command -v criu || echo /usr/sbin/criu)" "$runtime/criu"
  with_libraries "$runtime/criu" "$runtime/lib" /bsp/lib
  if install_if_built "$build/bin/bsp-sidecar" "$runtime/bsp-sidecar"; then
    with_libraries "$runtime/bsp-sidecar" "$runtime/lib" /bsp/lib
  fi
  install_if_built "$build/bin/bsp-init" "$runtime/bsp-init" || true
  install_if_built "$build/bin/libbspmpi.so" "$runtime/libbspmpi.so" || true
  if install_if_built "$build/bin/bsp-operator" "$out/host/bin/bsp-operator"; then
    with_libraries "$out/host/bin/bsp-operator" "$out/host/lib" "${out%.new}/host/lib"
  fi
  for app in lattice_boltzmann; do
    install_if_built "$build/bin/$app" "$out/apps/bin/$app" || true
  done
  # Debug information stays in the build tree.
  find "$runtime" "$out/host" "$out/apps" -type f \( -perm -u+x -o -name '*.so*' \) ! -name criu -print0 |
    xargs -0 -r strip --strip-debug 2>/dev/null || true
)
rm -rf "$out"
mv "$out.new" "$out"
