#!/bin/bash
# reproduce [OPTIONS] [--out FILE.md] [TABLE.csv …]: runs tables in the simulator, several runs at once, and writes the page. Tables
# are copied into the tree first.
# reproduce held-out [OPTIONS]: chooses the calibration's values by half of the cells, predicts the others and writes docs/held-out.md.
# reproduce exchange [OPTIONS]: runs the study of load exchange and writes docs/exchange.md.
set -euo pipefail
. images/commands.sh

program=bsp-reproduce page=sim/reproduce/page.py out=docs/reproduction.md
words=()
mkdir -p build/reproduce
if [ "${1:-}" = exchange ]; then
  shift
  program=bsp-exchange-study page=sim/exchange/page.py out=docs/exchange.md
elif [ "${1:-}" = held-out ]; then
  shift
  words=(--held-out) page=sim/reproduce/held_out_page.py out=docs/held-out.md
fi
while [ $# -gt 0 ]; do
  word=$1
  shift
  if [ "$word" = --out ]; then
    out=${1:?--out needs a file}
    asked=yes
    shift
    continue
  elif [[ $word == *.csv ]]; then
    [ -e "$word" ] || word=${called_from:?}/$word
    cp "$word" build/reproduce/ || die "reproduce: $word cannot be read"
    word=build/reproduce/$(basename "$word")
    [ -n "${asked:-}" ] || out=
  fi
  words+=("$word")
done
[ ! -d "$out" ] || die "reproduce: --out $out is a directory; name a file in it"
build release reproduce
say "Running $program ${words[*]}"
in_debian sh -ec 'program=$1 page=$2 out=$3; shift 3
  build/release/bin/$program "$@" >build/reproduce/results.json
  python3 "$page" build/reproduce/results.json $out' - "$program" "$page" "$out" "${words[@]}" ||
  die "$program or $page failed; its message is above"
