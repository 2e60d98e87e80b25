#!/usr/bin/env python3
"""./dev bench forecasts: runs the applications of examples/ with Auto on two unequal pools, records each run, and writes what waves were forecast
to gain and gained into docs/worth.md (forecasts.py has the arithmetic).

A noisy run has busy processes beside it, one a core, that compute for 1 to 4 s and sleep for 1 to 4 s in turn, the same ones for the same
--seed. Arguments: --runs N of each application, quiet and noisy each (3 and 2: 20 runs of four applications), --only APPLICATION, --smoke (small
problems, only to check that the runs work; writes no document), --image NAME, --records DIRECTORY (build/bench/forecasts), --from FILE (runs
nothing: writes the document from an earlier run's JSON).
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import forecasts
import gain

DOCUMENT = gain.TREE / "docs/worth.md"
FIGURE = "figures/forecasts.svg"

BUSY = """
import random, sys, time
dice = random.Random(int(sys.argv[1]))
while True:
    end = time.monotonic() + dice.uniform(1, 4)
    while time.monotonic() < end:
        pass
    time.sleep(dice.uniform(1, 4))
"""


@contextlib.contextmanager
def beside(noisy, seed):
    """Busy processes while a noisy job runs."""
    busy = []
    try:
        for core in range(os.cpu_count() if noisy else 0):
            busy.append(subprocess.Popen([sys.executable, "-c", BUSY, str(seed + core)]))
        yield
    finally:
        for process in busy:
            process.kill()
        for process in busy:
            process.wait()


def run(application, number, noisy, arguments):
    name = "noisy" if noisy else "quiet"
    began, load = time.monotonic(), os.getloadavg()[0]
    with beside(noisy, arguments.seed + 100 * number):
        gain.run(application, name, number, arguments, mode="Migrate", heuristic="Auto")
    record = arguments.records / f"{application}-{number}-{name}.jsonl"
    found = forecasts.waves([json.loads(line) for line in record.read_text().splitlines()])
    print(f"    {application} {number}, {name}: {time.monotonic() - began:.0f} s, {len(found)} waves", file=sys.stderr, flush=True)
    return {"application": application, "noisy": noisy, "load_before": load, "waves": found}


def write(runs, when):
    paper = forecasts.drawing()
    loads = [run["load_before"] for run in runs]
    header = (f"`./dev bench forecasts`, {when}, {os.cpu_count()} cores; the load before a run was {min(loads):.1f} to {max(loads):.1f}. Noisy: busy "
              "processes come and go\nbeside the job. A gain is a part of the superstep.")
    text = forecasts.section(paper, runs, header, FIGURE)
    DOCUMENT.write_text(forecasts.replaced(DOCUMENT.read_text(), text))
    forecasts.draw(paper, runs, DOCUMENT.parent / FIGURE)
    print(text)


def parsed():
    parser = argparse.ArgumentParser(prog="./dev bench forecasts")
    parser.add_argument("--runs", type=int, nargs=2, default=[3, 2], metavar=("QUIET", "NOISY"))
    parser.add_argument("--only", action="append", choices=list(gain.SIZES))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--image", help="of the applications, instead of localhost/bsp-apps:dev")
    parser.add_argument("--records", type=pathlib.Path, default=gain.TREE / "build/bench/forecasts")
    parser.add_argument("--from", dest="earlier", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.overhead = 0
    return arguments


def main():
    arguments = parsed()
    if arguments.earlier:
        earlier = json.loads(arguments.earlier.read_text())
        write(earlier["runs"], earlier["date"])
        return 0
    runs, failed, when = [], False, time.strftime("%Y-%m-%d")
    number = 0
    print(f"seed {arguments.seed}", flush=True)
    for application in arguments.only or gain.SIZES:
        for noisy, count in enumerate(arguments.runs):
            for _ in range(count):
                number += 1
                try:
                    runs.append(run(application, number, bool(noisy), arguments))
                except (RuntimeError, AssertionError) as error:  # the other runs are still useful
                    print(f"{application} {number}: not measured: {error}", flush=True)
                    failed = True
    if file := os.environ.get("BSP_BENCH_JSON"):
        pathlib.Path(file).write_text(json.dumps({"date": when, "runs": runs}, indent=1) + "\n")
    if arguments.smoke:
        print(forecasts.table(forecasts.drawing(), runs))
    elif runs:
        write(runs, when)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
