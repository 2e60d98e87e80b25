#!/bin/bash
# Runs the same job three times: without the scheduler, deciding only, and with moves. All three must reproduce the field of
# the sequential program, which runs first. Passes its arguments to bsp-operator (--pools …).
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

# size_for_this_machine MANIFEST OUT: scales the job so that a superstep takes a core of this machine two seconds. AutoMig weighs the
# fixed cost of a move against a single superstep: if supersteps are short, it is right not to move. --work-factor scales the work but
# neither messages nor checkpoints; the sequential program doesn't need it.
size_for_this_machine() {
  local seconds factor
  seconds=$(sequential "$1" --supersteps 2 | tail -1 | awk -F '[ms ]+' '{ print $1 * 60 + $2 }')  # 0m3.010000s 0m0.020000s
  factor=$(awk -v seconds="$seconds" 'BEGIN { factor = 2 / (seconds / 2); printf "%.2f", factor < 1 ? 1 : factor }') ||
    die "the sequential program's run time is missing from its output"
  say "Two supersteps take a core of this machine $seconds s; the demo's ranks repeat their work $factor times"
  sed "s/=[0-9.]*\([,\"]\)/=$factor\1/g" "$1" >"$2"
}

# demo_local MODE MANIFEST OUT ARGUMENT…: one run on this machine; writes its summary to OUT.json, its calls to OUT.jsonl.
demo_local() {
  rm -f "$3.jsonl"
  build/bin/bsp-operator local run -f "$2" --pools slow=2x0.2,fast=4x0.4 --mode "$1" --summary "$3.json" \
    --record "$3.jsonl" "${@:4}" ||
    die "run $1 failed with exit status $?; its output is above"
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
run=demo_local
images debug demo  # shares its build with the tests, so that it is compiled only once (the solver is optimised in every build)
mkdir -p build/demo
if [ "${1:-}" = --kubernetes ]; then
  shift
  [ $# -eq 0 ] || die "demo --kubernetes takes no further arguments"
  run=demo_kubernetes
  operator_image
  tests/cluster/cluster.sh up
  install_operator
fi
size_for_this_machine examples/lattice-boltzmann.yaml $manifest
say "Running the sequential program: its final field is the reference"
sequential $manifest | tee build/demo/sequential.txt | grep ' field '
for mode in Off Advise Migrate; do
  case $mode in
    Off) say "(i) The job without the scheduler: two ranks stay on the slow pool" ;;
    Advise) say "(ii) The job with the scheduler deciding but not moving: measures the cost of deciding" ;;
    Migrate) say "(iii) The job with moves" ;;
  esac
  rm -f build/demo/$mode.json
  $run $mode $manifest build/demo/$mode "$@"
done
in_debian python3 examples/demo_table.py build/demo/{Off,Advise,Migrate}.json build/demo/sequential.txt
if [ $run = demo_local ]; then
  in_debian python3 examples/demo_figure.py build/demo/{Migrate.jsonl,supersteps.svg}
  say "build/demo/supersteps.svg shows the computation times of the third run"
fi
