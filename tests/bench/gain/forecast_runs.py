#!/usr/bin/env python3
"""./dev bench forecasts: runs the applications of examples/ and programs of other people (forecast_programs.py) with Auto on two unequal pools,
records each run, and writes what waves were forecast to gain and gained into docs/worth.md (forecasts.py has the arithmetic).

A noisy run has busy processes beside it, one a core, that compute for 1 to 4 s and sleep for 1 to 4 s in turn, the same ones for the same
--seed. Arguments: --runs N of each, quiet and noisy each (2 and 1: 24 runs of eight), --only NAME, --smoke (small problems, only to check
that the runs work; writes no document), --image NAME, --programs-image NAME (without it those programs are skipped), --records DIRECTORY
(build/bench/forecasts), --from FILE (runs nothing: writes the document from an earlier run's JSON). A run that fails doesn't lose the others.
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

import forecast_programs
import forecasts
import gain

ALL = [*gain.SIZES, *forecast_programs.PROGRAMS]
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
    record = arguments.records / f"{application}-{number}-{name}.jsonl"
    with beside(noisy, arguments.seed + 100 * number):
        if application in gain.SIZES:
            gain.run(application, name, number, arguments, mode="Migrate", heuristic="Auto")
        else:
            arguments.records.mkdir(parents=True, exist_ok=True)
            forecast_programs.run(application, number, arguments.programs_image, gain.POOLS, arguments.smoke, record)
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
    parser.add_argument("--runs", type=int, nargs=2, default=[2, 1], metavar=("QUIET", "NOISY"))
    parser.add_argument("--only", action="append", choices=ALL)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--image", help="of the applications, instead of localhost/bsp-apps:dev")
    parser.add_argument("--programs-image", help="with the packages of images/seats.packages")
    parser.add_argument("--records", type=pathlib.Path, default=gain.TREE / "build/bench/forecasts")
    parser.add_argument("--from", dest="earlier", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.overhead = 0
    return arguments


def present(applications, image):
    """Those that can run; names the others."""
    lacking = forecast_programs.missing([name for name in applications if name not in gain.SIZES], image)
    if lacking:
        print(f"skipped: {', '.join(lacking)}: not in " + (f"the image {image}" if image else "an image: --programs-image names none"), flush=True)
    return [name for name in applications if name not in lacking]


def all_runs(applications, arguments, run_one, save):
    """(runs, whether one failed); `save` gets those so far after each."""
    runs, failed, number = [], False, 0
    for application in applications:
        for noisy, count in enumerate(arguments.runs):
            for _ in range(count):
                number += 1
                try:
                    runs.append(run_one(application, number, bool(noisy), arguments))
                except Exception as error:  # whatever it is, the other runs are still useful
                    print(f"{application} {number}: not measured: {type(error).__name__}: {error}", flush=True)
                    failed = True
                save(runs)
    return runs, failed


def main():
    arguments = parsed()
    if arguments.earlier:
        earlier = json.loads(arguments.earlier.read_text())
        write(earlier["runs"], earlier["date"])
        return 0
    when, file = time.strftime("%Y-%m-%d"), os.environ.get("BSP_BENCH_JSON")
    print(f"seed {arguments.seed}", flush=True)

    def save(runs):
        if file:
            pathlib.Path(file).write_text(json.dumps({"date": when, "runs": runs}, indent=1) + "\n")
    runs, failed = all_runs(present(arguments.only or ALL, arguments.programs_image), arguments, run, save)
    if arguments.smoke:
        print(forecasts.table(forecasts.drawing(), runs))
    elif runs:
        write(runs, when)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
