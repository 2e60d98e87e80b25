#!/bin/bash
# reproduce [OPTIONS] [TABLE.csv …]: runs tables in the simulator, several runs at once. Tables are copied into the tree first.
set -euo pipefail
. images/commands.sh

words=()
mkdir -p build/reproduce
for word; do
  if [[ $word == *.csv ]]; then
    [ -e "$word" ] || word=${called_from:?}/$word
    cp "$word" build/reproduce/ || die "reproduce: $word cannot be read"
    word=build/reproduce/$(basename "$word")
  fi
  words+=("$word")
done
build release reproduce
say "Running the cells of ${*:-the published tables}"
in_debian build/release/bin/bsp-reproduce "${words[@]}" || die "bsp-reproduce failed; its message is above"
