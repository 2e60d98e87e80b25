#!/bin/bash
# ./dev build [PRESET]: compile, and lay out build/bin/bsp-operator.
set -euo pipefail
. images/commands.sh

build "$@"
bundle "${1:-release}"
