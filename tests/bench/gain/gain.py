#!/usr/bin/env python3
"""Gain and cost of rescheduling: the four applications of examples/ on two unequal pools of this machine.

    i                 without rescheduling (mode Off), before, between and after the others: the spread is the noise
    ii HEURISTIC      deciding, without moves (mode Advise)
    iii HEURISTIC     with moves
    best              without rescheduling, but started on the fastest processors (initialMapping: CPU)

--overhead N measures what deciding costs alone: N times i, ii and another i at the same time, on slower pools, so that what else the
machine does slows all three. The other i against i is the noise. The CPU time of operator and sidecars is hardly subject to it: what ii
uses beyond i is the most that deciding can cost, even if the program waited for all of it.

Times are those of the supersteps, from rank 0's last line, without start-up and the check of the results. Every run of an application
must end with the same result, bit for bit. Arguments: --rounds N (1), --only APPLICATION, --heuristic NAME (all), --skip-ii, --smoke
(small problems, only to check that the runs work; its results mean nothing), --image NAME, --records DIRECTORY (one file for each run, for
`bsp-operator advise`: every call, with what was measured before it).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "e2e"))

import table  # noqa: E402
from local_job import TREE, LocalJob, cpu_seconds  # noqa: E402

POOLS = "slow=2x0.2,fast=4x0.4"
POOLS_OF_THREE = "slow=2x0.1,fast=4x0.15"
# Adjustments of the examples: supersteps long enough for a move to pay off; and small problems to check that everything works.
SIZES = {
    "lattice-boltzmann": ({"--supersteps": 60, "--substeps": 24}, {"--supersteps": 40, "--substeps": 4}),
    "smith-waterman": ({}, {"--rows": 1200, "--columns": 1200}),
    "lu": ({}, {"--order": 1000, "--block": 25}),
    "fractal": ({}, {"--width": 512}),
}
OVERHEAD_SIZES = {"lattice-boltzmann": {"--supersteps": 20, "--substeps": 24}}


def run(application, name, number, arguments, pools=POOLS, **how):
    size = SIZES[application][1 if arguments.smoke else 0]
    if arguments.overhead and not arguments.smoke:
        size = OVERHEAD_SIZES.get(application, size)
    text = table.enlarged((TREE / "examples" / f"{application}.yaml").read_text(), size)
    samples, first_wave, began = [], None, time.monotonic()
    helpers, used = [], []
    with LocalJob(f"gain-{number}", [], manifest=table.manifest(text, image=arguments.image, **how), pools=pools,
                  record=bool(arguments.records)) as job:
        while not job.ended():
            status = job.job()
            done = status.get("superstep", 0)
            if not samples or done > samples[-1][1]:
                samples.append((time.monotonic() - began, done))
            if first_wave is None and status.get("migrations", {}).get("succeeded", 0) > 0:
                first_wave = done + 1  # the superstep that includes the pause doesn't measure the new mapping
            if done > 0 and arguments.overhead:
                helpers = helpers or job.helpers()
                if (now := cpu_seconds(helpers)) is not None:
                    used.append(now)
            time.sleep(0.05)
        code, output = job.wait()
        if code != 0:
            raise RuntimeError(f"{application} {how} ended with status {code}:\n{output[-3000:]}")
        summary = job.summary()
        if arguments.records:
            arguments.records.mkdir(parents=True, exist_ok=True)
            shutil.copy(job.record_file, arguments.records / f"{application}-{number}-{name.replace(' ', '-')}.jsonl")
    result, seconds = table.verdict(summary["rank0_output"])
    if seconds is None:
        raise RuntimeError(f"{application} {how} printed no result:\n" + "\n".join(summary["rank0_output"][-20:]))
    moved = [m["phase"] == "Succeeded" for m in summary["migrations"]]
    return {"seconds": seconds, "result": result, "makespan_s": summary["makespan_s"], "moves": sum(moved),
            "undone": len(moved) - sum(moved), "waves": summary["waves"], "first_wave": first_wave, "samples": samples,
            "helpers_cpu_s": used[-1] - used[0] if used else None}


def plan(heuristics, skip_ii=False):
    """The runs of a round, in order."""
    yield "i", {"mode": "Off"}
    yield "best", {"mode": "Off", "mapping": "CPU"}
    for heuristic in heuristics:
        if not skip_ii:
            yield f"ii {heuristic}", {"mode": "Advise", "heuristic": heuristic}
        yield f"iii {heuristic}", {"mode": "Migrate", "heuristic": heuristic}
        if heuristic == heuristics[len(heuristics) // 2]:
            yield "i", {"mode": "Off"}
    yield "i", {"mode": "Off"}


def check_results(application, runs):
    results = {one["result"] for of in runs.values() for one in of}
    if len(results) != 1:
        raise RuntimeError(f"{application}: its runs end with different results: {', '.join(sorted(results))}")


def measure(application, arguments):
    runs, number = {}, 0
    for _ in range(arguments.rounds):
        for name, how in plan(arguments.heuristic, arguments.skip_ii):
            number += 1
            found = run(application, name, number, arguments, **how)
            runs.setdefault(name, []).append(found)
            print(f"    {application} {name}: {found['seconds']:.2f} s, {found['moves']} moves", file=sys.stderr, flush=True)
    check_results(application, runs)
    return runs


def measure_overhead(application, arguments):
    heuristic, = arguments.heuristic
    three = [("i", {"mode": "Off"}), ("ii", {"mode": "Advise", "heuristic": heuristic}), ("other i", {"mode": "Off"})]
    runs = {name: [] for name, _ in three}
    for turn in range(arguments.overhead):
        first = turn % 3
        order = three[first:] + three[:first]  # who starts first
        with concurrent.futures.ThreadPoolExecutor(len(order)) as pool:
            found = [pool.submit(run, application, name, 3 * turn + number, arguments, POOLS_OF_THREE, **how)
                     for number, (name, how) in enumerate(order)]
            for (name, _), future in zip(order, found):
                runs[name].append(future.result())
        print(f"    {application}: " + ", ".join(f"{name} {of[-1]['seconds']:.2f} s" for name, of in runs.items()), file=sys.stderr, flush=True)
    check_results(application, runs)
    return runs


def main():
    known = table.heuristics((TREE / "crds/bspjob.yaml").read_text())
    parser = argparse.ArgumentParser(prog="./dev bench gain")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(SIZES))
    parser.add_argument("--heuristic", action="append", choices=known)
    parser.add_argument("--skip-ii", action="store_true")
    parser.add_argument("--overhead", type=int, default=0)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--records", type=pathlib.Path, help="a directory for the record of each run")
    parser.add_argument("--image", help="of the applications, instead of localhost/bsp-apps:dev")
    arguments = parser.parse_args()
    arguments.heuristic = arguments.heuristic or (["Auto"] if arguments.overhead else known)
    if arguments.overhead and len(arguments.heuristic) > 1:
        parser.error("--overhead takes one --heuristic")
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"The load of this machine is {load:.1f} before the first run: its results will be noise.")
    results, failed = {"pools": POOLS_OF_THREE if arguments.overhead else POOLS, "load_before": load, "smoke": arguments.smoke}, False
    for application in arguments.only or SIZES:
        try:
            results[application] = (measure_overhead if arguments.overhead else measure)(application, arguments)
        except (RuntimeError, AssertionError) as error:  # the other applications' results are still useful
            print(f"{application}: not measured: {error}", flush=True)
            failed = True
            continue
        print("\n".join((table.overhead if arguments.overhead else table.table)(application, results[application])), flush=True)
    if file := os.environ.get("BSP_BENCH_JSON"):
        pathlib.Path(file).write_text(json.dumps(results, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
