#!/bin/bash
# Replaces criu in the pods of bench_pause.py, and as criu_of_set in those of checkpoints.py (BSP_CRIU): bsp-init calls it like criu, with the
# same identity. It also takes a raw dump of the process, while that is still stopped: a plain `criu dump` into this pod's tmpfs.
#
#   a move              after the restore, which is a plain `criu restore` anyway and only timed. Not before the move's own dump, because
#                       the target gives up a stream without data, and a raw dump of a large process takes that long
#   a checkpoint set    after its dump
#
# Lines of /bench/times, microseconds: moved RESTORE RAW_DUMP DELAY, or dumped DUMP RAW_DUMP DELAY
criu=/bsp/bin/criu work=/run/bsp/criu  # on the pod's tmpfs, writable for the program's user
raw=$work/raw
now() { echo "${EPOCHREALTIME/[.,]/}"; }

# raw_arguments ARGUMENT…: prints those of a dump without --stream and the image directory, a line each.
raw_arguments() {
  local word before=''
  for word; do
    case $before in -D) word=$raw ;; -o) word=raw.log ;; esac
    before=$word
    [ "$word" = --stream ] || printf '%s\n' "$word"
  done
}

# timed NAME ARGUMENT…: runs criu, then the raw dump with `arguments`. One that fails leaves its reason, and doesn't affect the job.
timed() {
  local name=$1 began ended from to
  shift
  began=$(now)
  $criu "$@" || exit
  ended=$(now)
  mkdir -p $raw
  from=$(now)
  if $criu "${arguments[@]}"; then
    to=$(now)
    rm -r $raw
    echo "$name $((ended - began)) $((to - from)) $(($(now) - ended))" >>/bench/times
  else
    cp $work/raw.log /bench/raw.log
    rm -r $raw
  fi
}

case "${0##*/} $1" in
  "criu_of_set dump")
    mapfile -t arguments < <(raw_arguments "$@")
    timed dumped "$@" ;;
  "criu dump")
    raw_arguments "$@" >/bench/raw.arguments
    exec $criu "$@" ;;
  "criu restore")
    mapfile -t arguments </bench/raw.arguments  # the same in every pod, including the PID
    timed moved "$@" ;;
  *) exec $criu "$@" ;;
esac
