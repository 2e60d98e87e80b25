#!/usr/bin/env python3
"""Gain and cost of rescheduling: the four applications of examples/ on two unequal pools of this machine.

    i                 without rescheduling (mode Off), before, between and after the others: the spread is the noise
    ii HEURISTIC      deciding, without moves (mode Advise)
    iii HEURISTIC     with moves
    best              without rescheduling, but started on the fastest processors (initialMapping: CPU)

Times are those of the supersteps, from rank 0's last line, without start-up and the check of the results. Every run of an application
must end with the same result, bit for bit. Arguments: --rounds N (1), --only APPLICATION, --heuristic NAME (all), --smoke
(small problems, only to check that the runs work; its results mean nothing), --image NAME.
"""
import argparse
import json
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "e2e"))

import table  # noqa: E402
from local_job import TREE, LocalJob  # noqa: E402

POOLS = "slow=2x0.2,fast=4x0.4"
# Adjustments of the examples: supersteps long enough for a move to pay off; and small problems to check that everything works.
SIZES = {
    "lattice-boltzmann": ({"--supersteps": 60, "--substeps": 24}, {"--supersteps": 40, "--substeps": 4}),
    "smith-waterman": ({}, {"--rows": 1200, "--columns": 1200}),
    "lu": ({}, {"--order": 1000, "--block": 25}),
    "fractal": ({}, {"--width": 512}),
}


def run(application, number, arguments, **how):
    size = SIZES[application][1 if arguments.smoke else 0]
    text = table.enlarged((TREE / "examples" / f"{application}.yaml").read_text(), size)
    samples, first_wave, began = [], None, time.monotonic()
    with LocalJob(f"gain-{number}", [], manifest=table.manifest(text, image=arguments.image, **how), pools=POOLS) as job:
        while not job.ended():
            status = job.job()
            done = status.get("superstep", 0)
            if not samples or done > samples[-1][1]:
                samples.append((time.monotonic() - began, done))
            if first_wave is None and status.get("migrations", {}).get("succeeded", 0) > 0:
                first_wave = done + 1  # the superstep that includes the pause doesn't measure the new mapping
            time.sleep(0.05)
        code, output = job.wait()
        if code != 0:
            raise RuntimeError(f"{application} {how} ended with status {code}:\n{output[-3000:]}")
        summary = job.summary()
    result, seconds = table.verdict(summary["rank0_output"])
    if seconds is None:
        raise RuntimeError(f"{application} {how} printed no result:\n" + "\n".join(summary["rank0_output"][-20:]))
    moved = [m["phase"] == "Succeeded" for m in summary["migrations"]]
    return {"seconds": seconds, "result": result, "makespan_s": summary["makespan_s"], "moves": sum(moved),
            "undone": len(moved) - sum(moved), "waves": summary["waves"], "first_wave": first_wave, "samples": samples}


def plan(heuristics):
    """The runs of a round, in order."""
    yield "i", {"mode": "Off"}
    yield "best", {"mode": "Off", "mapping": "CPU"}
    for heuristic in heuristics:
        yield f"ii {heuristic}", {"mode": "Advise", "heuristic": heuristic}
        yield f"iii {heuristic}", {"mode": "Migrate", "heuristic": heuristic}
        if heuristic == heuristics[len(heuristics) // 2]:
            yield "i", {"mode": "Off"}
    yield "i", {"mode": "Off"}


def measure(application, arguments):
    runs, number = {}, 0
    for _ in range(arguments.rounds):
        for name, how in plan(arguments.heuristic):
            number += 1
            found = run(application, number, arguments, **how)
            runs.setdefault(name, []).append(found)
            print(f"    {application} {name}: {found['seconds']:.2f} s, {found['moves']} moves", file=sys.stderr, flush=True)
    results = {one["result"] for of in runs.values() for one in of}
    if len(results) != 1:
        raise RuntimeError(f"{application}: its runs end with different results: {', '.join(sorted(results))}")
    return runs


def main():
    known = table.heuristics((TREE / "crds/bspjob.yaml").read_text())
    parser = argparse.ArgumentParser(prog="./dev bench gain")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", action="append", choices=list(SIZES))
    parser.add_argument("--heuristic", action="append", choices=known)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--image", help="of the applications, instead of localhost/bsp-apps:dev")
    arguments = parser.parse_args()
    arguments.heuristic = arguments.heuristic or known
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"The load of this machine is {load:.1f} before the first run: its results will be noise.")
    results, failed = {"pools": POOLS, "load_before": load, "smoke": arguments.smoke}, False
    for application in arguments.only or SIZES:
        try:
            results[application] = measure(application, arguments)
        except (RuntimeError, AssertionError) as error:  # the other applications' results are still useful
            print(f"{application}: not measured: {error}", flush=True)
            failed = True
            continue
        print("\n".join(table.table(application, results[application])), flush=True)
    if file := os.environ.get("BSP_BENCH_JSON"):
        pathlib.Path(file).write_text(json.dumps(results, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
