#!/bin/bash
# Runs the same job three times: without the scheduler, deciding only, and with moves. All three must reproduce the field of the sequential
# program, which runs first. On this machine they run side by side, each on pools of its own, so that the same noise strikes all; in a
# cluster one after the other. Passes its arguments to bsp-operator (--pools …, of each run: three such sets must fit the machine).
set -euo pipefail
. images/commands.sh

. tests/cluster/client.sh

# sequential MANIFEST [ARGUMENT…]: runs its program in one process, without MPI; the last line is the shell's CPU time of it.
sequential() {
  local arguments
  arguments=$(sed -n '/^ *args: \[/,/\]/p' "$1" | tr -d '\n' | sed 's/.*\[\(.*\)\].*/\1/; s/", */ /g; s/, / /g; s/"//g')
  # shellcheck disable=SC2086,SC2016
  podman run --rm --network none localhost/bsp-apps:dev sh -c 'lattice_boltzmann --sequential "$@" && times' sh $arguments "${@:2}"
}

# size_for_this_machine MANIFEST OUT SECONDS: scales the job so that a superstep takes a core of this machine so many seconds. AutoMig weighs
# the fixed cost of a move against a single superstep: if supersteps are short, it is right not to move. Fewer time steps make a superstep
# shorter; --work-factor makes it longer, without more messages, and the sequential program doesn't need it.
size_for_this_machine() {
  local seconds steps factor
  seconds=$(sequential "$1" --supersteps 2 | tail -1 | awk -F '[ms ]+' '{ print $1 * 60 + $2 }')  # 0m3.010000s 0m0.020000s
  read -r steps factor < <(awk -v seconds="$seconds" -v wanted="$3" -v steps="$(sed -n 's/.*--substeps, "\([0-9]*\)".*/\1/p' "$1")" \
    'BEGIN { factor = wanted / (seconds / 2); if (factor < 1) steps = int(steps * factor + 0.5);
             printf "%d %.2f\n", steps < 1 ? 1 : steps, factor < 1 ? 1 : factor }') && [ -n "$factor" ] ||
    die "the sequential program's run time is missing from its output"
  say "Two supersteps take a core of this machine $seconds s; the demo's have $steps time steps, and its ranks repeat their work $factor times"
  sed "s/=[0-9.]*\([,\"]\)/=$factor\1/g; s/--substeps, \"[0-9]*\"/--substeps, \"$steps\"/; s/\( *args: \[\)/\1--times, /" "$1" >"$2"
}

# What each of three jobs has at the same time: four ranks that never stop computing take 0.48 cores, and 0.64 once they have moved.
pools=slow=2x0.08,fast=4x0.16

# demo_local MODE MANIFEST OUT ARGUMENT…: one run on this machine; writes its summary to OUT.json, its calls to OUT.jsonl.
demo_local() {
  rm -f "$3.jsonl"
  build/bin/bsp-operator local run -f "$2" -n "demo-${1,,}" --pools "$pools" --mode "$1" --summary "$3.json" --record "$3.jsonl" --plain "${@:4}"
}

# side_by_side MANIFEST ARGUMENT…: the three runs at the same time. (iii) shows itself; the others' output is kept, and shown if they fail.
side_by_side() {
  local mode failed="" pid_of_off pid_of_advise
  demo_local Off "$1" build/demo/Off "${@:2}" >build/demo/Off.log 2>&1 &
  pid_of_off=$!
  demo_local Advise "$1" build/demo/Advise "${@:2}" >build/demo/Advise.log 2>&1 &
  pid_of_advise=$!
  trap 'kill $pid_of_off $pid_of_advise 2>/dev/null; wait' INT TERM
  demo_local Migrate "$1" build/demo/Migrate "${@:2}" || failed=Migrate
  for mode in Off Advise; do
    if [ $mode = Off ]; then wait $pid_of_off; else wait $pid_of_advise; fi || { cat build/demo/$mode.log; failed=$mode; }
  done
  trap - INT TERM
  [ -z "$failed" ] || die "run $failed failed; its output is above"
}

# demo_kubernetes MODE MANIFEST OUT: one run in the cluster, as a user sees it.
demo_kubernetes() {
  local mode=$1 out=$3 job=lbm-${1,,} watch last
  sed "s/^  name: lattice-boltzmann$/  name: $job/; s/^  rescheduling:$/&\n    mode: \"$mode\"/" "$2" >"$out.yaml"
  with_cluster kubectl delete bspjob "$job" --ignore-not-found --wait >&2
  with_cluster kubectl apply -f "$out.yaml"
  (exec env KUBECONFIG="$tree/build/cluster/kubeconfig" build/bin/kubectl get bspjob "$job" -w) &
  watch=$!
  with_cluster kubectl wait --for=jsonpath='{.status.completionTime}' "bspjob/$job" --timeout=15m >/dev/null ||
    { kill $watch; with_cluster kubectl describe bspjob "$job"; die "run $mode has not ended; kubectl's description of it is above"; }
  kill $watch
  wait $watch 2>/dev/null || true
  with_cluster kubectl get rankmigrations -o wide
  with_cluster kubectl describe bspjob "$job" >"$out.describe.txt"
  with_cluster kubectl get bspjob "$job" -o json >"$out.job.json"
  with_cluster kubectl get rankmigrations -o json >"$out.migrations.json"
  with_cluster kubectl get pods -l "migbsp.io/job=$job" -o json >"$out.pods.json"
  last=$(with_cluster kubectl get pods -l "migbsp.io/job=$job,migbsp.io/rank=0" --sort-by=.metadata.creationTimestamp -o name | tail -1)
  with_cluster kubectl logs "$last" -c app >"$out.log"
  in_debian python3 examples/kubernetes_summary.py "$out".{job,migrations,pods}.json "$out.log" >"$out.json"
}

manifest=build/demo/lattice-boltzmann.yaml
kubernetes=
images debug demo  # shares its build with the tests, so that it is compiled only once (the solver is optimised in every build)
mkdir -p build/demo
rm -f build/demo/{Off,Advise,Migrate}.json
if [ "${1:-}" = --kubernetes ]; then
  shift
  kubernetes=yes
  [ $# -eq 0 ] || die "demo --kubernetes takes no further arguments"
  operator_image
  tests/cluster/cluster.sh up
  install_operator
fi
size_for_this_machine examples/lattice-boltzmann.yaml $manifest "$([ $kubernetes ] && echo 2 || echo 0.8)"
say "Running the sequential program: its final field is the reference"
sequential $manifest | tee build/demo/sequential.txt | grep ' field '
if [ $kubernetes ]; then
  for mode in Off Advise Migrate; do
    case $mode in
      Off) say "(i) The job without the scheduler: two ranks stay on the slow pool" ;;
      Advise) say "(ii) The job with the scheduler deciding but not moving: measures the cost of deciding" ;;
      Migrate) say "(iii) The job with moves" ;;
    esac
    demo_kubernetes $mode $manifest build/demo/$mode
  done
else
  say "At the same time: (i) the job without the scheduler, two ranks stay on the slow pool; (ii) the scheduler decides and moves nothing;"
  say "(iii) the job with moves, whose output follows"
  side_by_side $manifest "$@"
fi
in_debian python3 examples/demo_table.py build/demo/{Off,Advise,Migrate}.json build/demo/sequential.txt
if [ -z $kubernetes ]; then
  in_debian python3 examples/demo_figure.py build/demo/{Migrate.jsonl,Migrate.json,supersteps.svg}
  say "build/demo/supersteps.svg shows the computation times of the third run"
fi
