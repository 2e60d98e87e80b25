# shellcheck shell=bash
# Everything that the commands of ./dev share. Sourced, in the tree's top directory.
: "${tree:?start ./dev, which knows where the tree is}"
. images/machine.sh
. images/debian.sh
. images/make.sh
