#!/bin/bash
# ./dev images [PRESET]: compiles, and builds the images of the runtime, the applications and the operator.
set -euo pipefail
. images/commands.sh

images "$@"
operator_image
say "Push these to your registry and name them in the chart's values (image.repository, runtime.image)"
podman images --noheading --format '    {{.Repository}}:{{.Tag}}  {{.Size}}' \
  --filter reference=localhost/bsp-operator:dev --filter reference=localhost/bsp-runtime:dev --filter reference=localhost/bsp-apps:dev
