#!/bin/bash
# In criu's place in the pods of bench_pause.py (BSP_CRIU): called as criu is, by bsp-init, with the same identity.
#
# A restore is a plain `criu restore` anyway, and only timed. After it, while the copy still stands as it was dumped, a raw
# dump is taken of it into this pod's tmpfs: a plain `criu dump`. Not before the move's own dump: the target takes a
# stream that nothing comes from for dead, and a raw dump of a large process takes as long.
# Lines of /bench/times, microseconds: moved RESTORE RAW_DUMP HELD_UP
criu=/bsp/bin/criu work=/run/bsp/criu  # where the program's user may write, on the pod's tmpfs
raw=$work/raw
now() { echo "${EPOCHREALTIME/[.,]/}"; }
case $1 in
dump)
  # Without --stream and the directory of the images, what a raw one is called with.
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
  # The same in every pod, the PID too. A raw dump that fails says why, and leaves the move alone.
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
