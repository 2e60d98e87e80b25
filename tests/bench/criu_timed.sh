#!/bin/bash
# In criu's place in the pods of bench_pause.py (BSP_CRIU): called as criu is, by bsp-init, with the same identity.
#
# Before a dump it takes a raw one, `criu dump` of the same stopped process into this pod's tmpfs, and notes how long
# it took, and how long the move was held up by it. A restore is a plain `criu restore` anyway, and only timed.
# Lines of /bench/times, microseconds: dump RAW HELD_UP · restore TOOK
criu=/bsp/bin/criu raw=/run/bsp/criu/raw  # where the program's user may write, on the pod's tmpfs
came=${EPOCHREALTIME/[.,]/}
case $1 in
dump)
  mkdir -p $raw
  arguments=() before='' work=''
  for word; do
    case $before in -D) word=$raw ;; -W) work=$word ;; -o) word=raw.log ;; esac
    before=$word
    [ "$word" = --stream ] || arguments+=("$word")
  done
  from=${EPOCHREALTIME/[.,]/}
  if $criu "${arguments[@]}"; then
    took=$((${EPOCHREALTIME/[.,]/} - from))
    rm -r $raw
    echo "dump $took $((${EPOCHREALTIME/[.,]/} - came))" >>/bench/times
  else
    cp "$work/raw.log" /bench/raw.log
  fi
  exec $criu "$@" ;;
restore)
  $criu "$@"
  status=$?
  echo "restore $((${EPOCHREALTIME/[.,]/} - came))" >>/bench/times
  exit $status ;;
*) exec $criu "$@" ;;
esac
