# shellcheck shell=bash
# All that a command of ./dev may use. Sourced, in the tree's top directory.
: "${tree:?start ./dev, which knows where the tree is}"
. images/machine.sh
. images/debian.sh
. images/make.sh
