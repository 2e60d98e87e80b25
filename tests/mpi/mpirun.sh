#!/bin/sh
# tests/mpi/mpirun.sh RANKS PROGRAM…: mpirun as a test needs it: by root, more ranks than cores, one machine.
ranks=$1
shift
exec mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl self,sm -n "$ranks" "$@"
