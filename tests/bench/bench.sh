#!/bin/bash
# ./dev bench [NAME]: runs the benchmarks; prints ratios, writes results to build/bench/*.json. `kubernetes` has a separate
# script, and `gain`, `forecasts`, `programs`, `seats` and `checkpoints` take arguments.
set -euo pipefail
. images/commands.sh

if [ "${1:-}" = kubernetes ]; then
  exec tests/bench/kubernetes/bench.sh
fi
# These run the decision code alone, so that they need neither images nor the product.
if [ $# -gt 0 ] && ! printf '%s\n' "$@" | grep -qvxE 'decide|decisions|prices'; then
  ensure_dev_root
  say "Building the benchmarks of decisions (release) in Debian 13"
  in_debian sh -ec '[ -f build/release/build.ninja ] || cmake --preset release >build/release.configure.log
    cmake --build --preset benchmarks --target bench_decide bench_decisions bench_prices' || die "the build failed; its message is above"
  mkdir -p build/bench
  in_debian tests/bench/run.sh build/release build/bench "$@"
  exit
fi
images release
if [ "${1:-}" = gain ]; then  # only on request: a round takes an hour
  mkdir -p build/bench
  say "Running the applications of examples/ on unequal pools; results go to build/bench/gain.json"
  in_debian env BSP_BENCH_JSON="$tree/build/bench/gain.json" python3 tests/bench/gain/gain.py "${@:2}"
  exit
fi
if [ "${1:-}" = forecasts ]; then  # only on request: 20 runs
  image=localhost/bsp-seats:$(hash_of images/seats.packages)
  (debian_image "$image" images/seats.packages) || { say "Without LAMMPS, GROMACS, pw.x and icoFoam: Debian's packages can't be had (see above)"; image=; }
  mkdir -p build/bench
  say "Running the applications of examples/ and Debian's programs with Auto; results go to build/bench/forecasts.json and docs/worth.md"
  in_debian env BSP_BENCH_JSON="$tree/build/bench/forecasts.json" python3 tests/bench/gain/forecast_runs.py --programs-image "$image" "${@:2}"
  exit
fi
if [ "${1:-}" = programs ]; then  # only on request: its image takes 3.9 GB
  image=localhost/bsp-programs:$(hash_of images/programs.packages)
  (debian_image "$image" images/programs.packages) || { say "Skipped: Debian's packages of images/programs.packages can't be had (see above)"; exit; }
  mkdir -p build/bench
  say "Running LAMMPS, Quantum ESPRESSO and GROMACS with and without the shim; figures go to build/bench/programs.json"
  in_debian env BSP_BENCH_JSON="$tree/build/bench/programs.json" python3 tests/bench/debian_programs.py "$image" "${@:2}"
  exit
fi
if [ "${1:-}" = seats ]; then  # only on request: its image needs Debian's mirror
  packages=images/mpirun.packages
  printf '%s\n' "${@:2}" | grep -qx programs && packages=images/seats.packages  # the same and three programs
  image=localhost/bsp-$(basename $packages .packages):$(hash_of $packages)
  (debian_image "$image" $packages) || { say "Skipped: Debian's packages of $packages can't be had (see above)"; exit; }
  in_debian cmake --build --preset benchmarks --target mpi_patterns bench_epoch bench_shim || die "the build failed; its message is above"
  mkdir -p build/bench
  say "Comparing pods of several ranks with mpirun and with pods of one rank; figures go to build/bench/seats.json"
  in_debian env BSP_BUILD="$tree/build/release" BSP_BENCH_JSON="$tree/build/bench/seats.json" python3 tests/bench/seats.py "$image" "${@:2}"
  exit
fi
if [ "${1:-}" = checkpoints ]; then  # only on request: it takes a quarter of an hour
  mkdir -p build/bench
  say "Measuring what checkpoint sets cost; figures go to build/bench/checkpoints.json"
  in_debian env BSP_BENCH_JSON="$tree/build/bench/checkpoints.json" python3 tests/bench/checkpoints.py "${@:2}"
  exit
fi
in_debian cmake --build --preset benchmarks || die "the build failed; its message is above"
mkdir -p build/bench
say "Running the benchmarks of tests/bench; results go to build/bench"
in_debian tests/bench/run.sh build/release build/bench "$@"
