#!/bin/bash
# ./dev docs: builds the documentation site in build/docs/site; fails if a link leads nowhere. Serve it with
# python3 -m http.server -d build/docs/site: its search needs a server.
set -euo pipefail
. images/commands.sh

image=localhost/bsp-docs:$(hash_of images/docs.packages)
debian_image "$image" images/docs.packages
podman run --rm --network none -v "$tree:$tree:ro" -v "$tree/build:$tree/build" -w "$tree" "$image" sh -ec '
  python3 docs/site/pages.py . build/docs
  cd build/docs
  exec mkdocs build --quiet --strict'
say "The documentation is in build/docs/site/index.html"
