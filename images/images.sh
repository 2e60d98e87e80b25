#!/bin/bash
# ./dev images [PRESET]: compiles, and builds the images of the runtime, the applications and the operator.
set -euo pipefail
. images/commands.sh

images "$@"
operator_image
