#!/bin/sh
# tests/on_host.sh COMMAND…: run it on the machine itself, from a test that runs in the development image.
#
# Podman and bsp-operator work in the host's mount namespace; ./dev test starts ctest with the host's processes and
# network in sight and BSP_HOST_PID naming a process out there. The tree and /tmp have the same names on both sides,
# so the working directory stays. Outside of ./dev (BSP_HOST_PID unset) the command just runs.
if [ -z "${BSP_HOST_PID:-}" ]; then exec "$@"; fi
exec nsenter -t "$BSP_HOST_PID" -m -- sh -c 'cd "$1" && shift && exec "$@"' on_host "$PWD" "$@"
