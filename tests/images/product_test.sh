#!/bin/bash
# product_test.sh BUILD: the target "product" (tests/CMakeLists.txt) has every program that images/make.sh links into build/bin and
# images/bundle.sh packs for users, so that no link dangles after ./dev build and ./dev images.
set -euo pipefail
failed=0
for program in bsp-operator kubectl-bsp bsp-sidecar bsp-init bspmpi; do
  grep -qx "$program" "$1/product.programs" || { echo "the target product lacks $program" >&2; failed=1; }
done
exit $failed
