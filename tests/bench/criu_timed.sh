#!/bin/bash
# Replaces criu in the pods of bench_pause.py (BSP_CRIU): bsp-init calls it like criu, with the same identity.
#
# A restore is a plain `criu restore` anyway, and only timed. After it, while the copy is still stopped, it takes a raw dump of
# it into this pod's tmpfs: a plain `criu dump`. Not before the move's own dump, because the target gives up a stream without
# data, and a raw dump of a large process takes that long.
# Lines of /bench/times, microseconds: moved RESTORE RAW_DUMP DELAY
criu=/bsp/bin/criu work=/run/bsp/criu  # on the pod's tmpfs, writable for the program's user
raw=$work/raw
now() { echo "${EPOCHREALTIME/[.,]/}"; }
case $1 in
dump)
  # The arguments without --stream and the image directory, for a raw call.
  arguments=() before=''
  for word; do
    case $before in -D) word=$raw ;; -o) word=raw.log ;; esac
    before=$word
    [ "$word" = --stream ] || arguments+=("$word")
  done
  printf '%s\n' "${arguments[@]}" >/bench/raw.arguments
  exec $criu "$@" ;;
restore)
  began=$(now)
  $criu "$@" || exit
  restored=$(now)
  # The same in every pod, including the PID. A failing raw dump prints its reason, and doesn't affect the move.
  mapfile -t arguments </bench/raw.arguments
  mkdir -p $raw
  from=$(now)
  if $criu "${arguments[@]}"; then
    to=$(now)
    rm -r $raw
    echo "moved $((restored - began)) $((to - from)) $(($(now) - restored))" >>/bench/times
  else
    cp $work/raw.log /bench/raw.log
    rm -r $raw
  fi ;;
*) exec $criu "$@" ;;
esac
