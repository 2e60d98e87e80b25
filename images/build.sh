#!/bin/bash
# ./dev build [PRESET]: compiles and lays out build/bin/bsp-operator.
set -euo pipefail
. images/commands.sh

build "$@"
bundle "${1:-release}"
