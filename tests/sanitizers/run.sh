#!/bin/sh
# run.sh LABEL COMMAND…: a test of a sanitizer's build. Fails also for what is reported of a process that the test only starts,
# such as a sidecar, whose exit status and output nobody may look at.
set -eu
label=$1
shift
reports=$(mktemp -d)
chmod 777 "$reports" # some processes run as another user
trap 'rm -rf "$reports"' EXIT
all=abort_on_error=1 # a fuzz target saves the input that made it abort
leaks=0 # of processes that use PMIx or MPI: theirs
[ "$label" != unit ] || leaks=1
[ "$label" = unit ] || all=$all:log_path=$reports/report:log_exe_name=1
export BSP_SANITIZER_REPORTS="$reports"
export ASAN_OPTIONS="$all:detect_leaks=$leaks:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1:handle_segv=2:verify_asan_link_order=0"
export UBSAN_OPTIONS="$all:print_stacktrace=1"
export TSAN_OPTIONS="$all:second_deadlock_stack=1:suppressions=$(dirname "$(readlink -f "$0")")/tsan.supp"
status=0
# The thread sanitizer's address-space layout doesn't cover every randomised address of kernels since 2024.
setarch -R "$@" || status=$?
for report in "$reports"/*; do
  [ -e "$report" ] || continue
  cat "$report" >&2
  status=1
done
exit $status
