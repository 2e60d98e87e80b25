#!/bin/bash
# Replaces criu in the pods of checkpoints.py (BSP_CRIU): bsp-init calls it like criu, with the same identity.
#
# After the dump of a checkpoint set, while the process is still stopped, it takes a raw dump of it into the pod's tmpfs: a plain
# `criu dump`. Lines of /bench/times, microseconds: dumped DUMP RAW_DUMP DELAY
criu=/bsp/bin/criu work=/run/bsp/criu  # on the pod's tmpfs, writable for the program's user
raw=$work/raw
now() { echo "${EPOCHREALTIME/[.,]/}"; }
[ "$1" = dump ] || exec $criu "$@"
# The arguments without --stream and the image directory, for a raw call.
arguments=() before=''
for word; do
  case $before in -D) word=$raw ;; -o) word=raw.log ;; esac
  before=$word
  [ "$word" = --stream ] || arguments+=("$word")
done
began=$(now)
$criu "$@" || exit
dumped=$(now)
mkdir -p $raw
from=$(now)
if $criu "${arguments[@]}"; then
  to=$(now)
  rm -r $raw
  echo "dumped $((dumped - began)) $((to - from)) $(($(now) - dumped))" >>/bench/times
else
  cp $work/raw.log /bench/raw.log
  rm -r $raw
fi
