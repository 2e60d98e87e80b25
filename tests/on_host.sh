#!/bin/sh
# tests/on_host.sh COMMAND…: runs it on the host, from a test that runs in the development root.
#
# Podman and bsp-operator work in the host's mount namespace; ./dev test starts ctest in the host's PID and
# network namespaces, with BSP_HOST_PID as a process of the host. The tree and /tmp have the same paths on both sides,
# so the working directory is kept. Outside of ./dev (BSP_HOST_PID unset) the command runs directly.
if [ -z "${BSP_HOST_PID:-}" ]; then exec "$@"; fi
exec nsenter -t "$BSP_HOST_PID" -m -- sh -c 'cd "$1" && shift && exec "$@"' on_host "$PWD" "$@"
