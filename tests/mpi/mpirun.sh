#!/bin/sh
# tests/mpi/mpirun.sh RANKS PROGRAM…: mpirun for tests: as root, with more ranks than cores, on one machine.
ranks=$1
shift
exec mpirun --allow-run-as-root --oversubscribe --bind-to none --mca btl self,sm -n "$ranks" "$@"
