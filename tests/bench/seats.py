#!/usr/bin/env python3
"""Several ranks in a pod (spec.ranksPerPod) compared with `mpirun` in one container of the same image, and with pods of one rank.

    seats.py IMAGE [--instances N] [--rounds N] [PART…]        parts: pair four starts memory epoch programs (default: all but the last)

  pair, four  2 and 4 ranks in one pod ÷ mpirun over btl/sm without CMA: 8-byte latency and bandwidth at 1 MiB between ranks 0 and 1, 8-byte
              allreduce of all; bandwidth also ÷ mpirun with CMA
  starts      16 ranks in 2 pods ÷ in 16 pods: from `local run` to the last rank's first line, and until MPI is open in all
  memory      sidecar, bsp-init and shim of 8 ranks in a pod, per rank
  epoch       close and open of an epoch (bench_epoch), 8 ranks in a pod and in 8
  programs    LAMMPS, Quantum ESPRESSO and GROMACS, which IMAGE must have: 4 ranks (--ranks) in one pod ÷ mpirun (seat_programs.py)

All sides live side by side, asleep in read(2), and take turns of some tens of milliseconds in a changing order. A ratio is of one round,
an instance's the median of its rounds. The output is the median of the instances, with the least and the largest: the placement of memory
stays the same for a process's life. The noise is the same of two containers that both run mpirun.

A rank has a quota of one core in a pod, mpirun's container one core per rank. Four ranks share this machine's two cores and yield when they are
idle (OMPI_MCA_mpi_yield_when_idle, as mpirun does where it knows), on both sides. No rank is bound to a core."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from statistics import median

import seat_programs
from pods import LocalJob, manifest, on_host, processes, write_json

BUILD = pathlib.Path(os.environ["BSP_BUILD"])
TURN = 0.05  # s
WINDOW_BYTES = 16 << 20  # of one repetition of mpi_patterns' `bandwidth`
# The shim's own defaults (sidecar/shim/epoch/epoch.cc), so that both run the same Open MPI.
ENVIRONMENT = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_osc": "^ucx", "PMIX_MCA_gds": "hash"}
COMMAND = ["sh", "-c", "echo here >/bench/first-$OMPI_COMM_WORLD_RANK; "
           "exec /bench/mpi_patterns serve /bench/orders-$OMPI_COMM_WORLD_RANK >/bench/answers"]

class Orders:
    """mpi_patterns in `ranks` processes, which wait for orders in FIFOs; the directory is their /bench."""

    def __init__(self, ranks):
        self.bench = pathlib.Path(tempfile.mkdtemp(prefix="bsp-bench-seats-", dir="/tmp"))
        self.bench.chmod(0o777)
        shutil.copy(BUILD / "bin/mpi_patterns", self.bench)
        self.ranks = ranks
        self.orders = [self.fifo(f"orders-{rank}") for rank in range(ranks)]
        self.answers = self.fifo("answers")
        self.rest = b""

    def fifo(self, name):
        """Open for both, so that neither side waits for a process that may have failed."""
        os.mkfifo(self.bench / name)
        (self.bench / name).chmod(0o666)
        return os.open(self.bench / name, os.O_RDWR)

    def run(self, what, repetitions, seconds=120):
        """Seconds of one repetition."""
        for order in self.orders:
            os.write(order, f"{what} {repetitions}\n".encode())
        deadline = time.monotonic() + seconds
        while b"\n" not in self.rest:
            if self.ended() or time.monotonic() > deadline:
                raise RuntimeError(f"no answer to {what} {repetitions}:\n{self.said()[-3000:]}")
            if select.select([self.answers], [], [], 1)[0]:
                self.rest += os.read(self.answers, 4096)
        line, self.rest = self.rest.split(b"\n", 1)
        return int(line) * 1e-9 / repetitions

    def first_lines(self):
        """When each rank wrote its first line, seconds since 1970."""
        return [(self.bench / f"first-{rank}").stat().st_mtime for rank in range(self.ranks)]

    def end(self):
        for order in self.orders:
            os.write(order, b"end\n")

    def clean(self):
        for descriptor in [*self.orders, self.answers]:
            os.close(descriptor)
        shutil.rmtree(self.bench, ignore_errors=True)


class Pods(Orders, LocalJob):
    """Ranks in pods of `seats`."""

    def __init__(self, name, options, ranks, seats, pools, env=None):
        Orders.__init__(self, ranks)
        env = (ENVIRONMENT | (env or {})).items()
        self.began = time.time()
        LocalJob.__init__(self, name, [], pools=pools, manifest=manifest(
            self.bench, COMMAND, env, options.image, ranks=ranks, ranksPerPod=seats, runPolicy={"backoffLimit": 0, "cleanPodPolicy": "Running"}))

    def said(self):
        return self.output.read_text()

    def __exit__(self, *error):
        self.end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        super().__exit__(*error)
        self.clean()


class Mpirun(Orders):
    """mpirun in one container."""

    def __init__(self, name, options, ranks, cma, env=None):
        super().__init__(ranks)
        env = ENVIRONMENT | {"OMPI_MCA_btl": "sm,self"} | ({} if cma else {"OMPI_MCA_smsc": "^cma,knem,xpmem"}) | (env or {})
        self.name, self.log = name, tempfile.TemporaryFile("w+")
        # Like the pods' containers: no seccomp filter, and enough of /dev/shm. CMA reads a process as a debugger does.
        words = ["podman", "run", "--rm", "--name", name, "--network", "host", "--security-opt", "seccomp=unconfined", "--shm-size", "1g",
                 "--cap-add", "SYS_PTRACE", "--cpu-period", "10000", "--cpu-quota", str(10000 * ranks), "-v", f"{self.bench}:/bench",
                 *(word for item in env.items() for word in ("-e", "=".join(item))), options.image,
                 "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *COMMAND]
        on_host("podman", "rm", "-f", name)
        self.process = subprocess.Popen([str(pathlib.Path(__file__).parents[1] / "on_host.sh"), *words], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT)

    def ended(self):
        return self.process.poll() is not None

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            on_host("podman", "rm", "-f", self.name)
            self.process.wait()
        self.clean()


def in_turn(sides, what):
    """{side: seconds of one repetition} of each round."""
    for side in sides.values():
        side.run(what, 20)  # connections and caches
    repetitions = max(1, round(TURN / max(side.run(what, 20) for side in sides.values())))
    repetitions = max(1, round(TURN / median(side.run(what, repetitions) for side in sides.values())))
    number = 0
    while True:
        names = list(sides)
        names = names[number % len(names):] + names[:number % len(names)]
        yield {name: sides[name].run(what, repetitions) for name in (names if number % 2 else names[::-1])}
        number += 1


def spread(values):
    return {"median": median(values), "least": min(values), "most": max(values)}


def text(of):
    return f"{of['median']:.3f} ({of['least']:.3f} … {of['most']:.3f})"


# Of the pattern: the ratios, with their goals. Time over time; for bandwidth bytes over bytes.
PATTERNS = {"latency": {"mpirun": "≤ 1.1"}, "allreduce": {"mpirun": "≤ 1.1"}, "bandwidth": {"mpirun": "≥ 0.9", "cma": "told"}}


def communication(options, ranks, patterns):
    env = {"OMPI_MCA_mpi_yield_when_idle": "1" if ranks > os.cpu_count() else "0"}
    seconds = {what: [] for what in patterns}  # of each instance: its rounds
    for _ in range(options.instances):
        with contextlib.ExitStack() as stack:
            sides = {"pod": stack.enter_context(Pods("bench-seats", options, ranks, ranks, f"here=1x{ranks}x1", env)),
                     **{name: stack.enter_context(Mpirun(f"bsp-bench-{name}", options, ranks, name == "cma", env))
                        for name in ("mpirun", "again", "cma")}}
            for what in patterns:
                used = {name: side for name, side in sides.items() if name != "cma" or what == "bandwidth"}
                rounds = in_turn(used, what)
                seconds[what].append([next(rounds) for _ in range(options.rounds)])
    results = {}
    for what in patterns:
        def ratio(above, below, what=what):
            if what == "bandwidth":
                above, below = below, above
            return spread([median(r[above] / r[below] for r in rounds) for rounds in seconds[what]])
        of = {side: spread([median(r[side] for r in rounds) for rounds in seconds[what]]) for side in seconds[what][0][0]}
        noise = ratio("again", "mpirun")
        single = [r["again"] / r["mpirun"] for rounds in seconds[what] for r in rounds]
        for side, goal in PATTERNS[what].items():
            found = ratio("pod", side)
            print(f"{ranks} ranks, {what:<9} pod ÷ {side:<6} {text(found)}   goal {goal}; mpirun ÷ mpirun {text(noise)}, "
                  f"single rounds {min(single):.2f} … {max(single):.2f}")
            results[f"{what} to {side}"] = found
        shown = {side: f"{WINDOW_BYTES / t['median'] / 1e6:.0f} MB/s" if what == "bandwidth" else f"{t['median'] * 1e6:.2f} µs"
                 for side, t in of.items()}
        print(f"    {', '.join(f'{side} {value}' for side, value in shown.items())}; load {os.getloadavg()[0]:.1f}", flush=True)
        results |= {f"{what} noise": noise, f"{what} seconds": of}
    return results


def start(options, seats):
    """Seconds until the last rank's first line, and until MPI is open in all of them."""
    with Pods("bench-seats", options, 16, seats, "here=2x8x0.25", {"OMPI_MCA_mpi_yield_when_idle": "1"}) as job:
        job.run("allreduce", 1, 300)
        opened = time.time() - job.began
        pods = {rank["pod"] for rank in job.job()["ranks"]}
        if len(pods) != 16 // seats:
            raise RuntimeError(f"16 ranks, at most {seats} in a pod, are in {len(pods)} pods")
        return max(job.first_lines()) - job.began, opened


def starts(options):
    rounds = []
    start(options, 8)  # caches
    for number in range(options.starts):
        took = {}
        for seats in (8, 1) if number % 2 else (1, 8):
            took[seats] = start(options, seats)
        rounds.append(took)
    results = {}
    for index, what in enumerate(("first line", "MPI open")):
        found = spread([took[8][index] / took[1][index] for took in rounds])
        of = {seats: spread([took[seats][index] for took in rounds]) for seats in (8, 1)}
        noise = max(abs(t["most"] / t["median"] - 1) for t in of.values())
        print(f"16 ranks, apply → {what}: 2 pods ÷ 16 pods {text(found)}   goal ≤ 0.5; 2 pods {of[8]['median']:.2f} s, 16 pods "
              f"{of[1]['median']:.2f} s, each up to {noise:.0%} above its median", flush=True)
        results[what] = {"ratio": found, "seconds": of}
    return results


def memory_of(pid):
    """(VmRSS, Pss), MiB."""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return [int(re.search(rf"^{field}:\s+(\d+) kB", rollup, re.M).group(1)) / 1024 for field in ("Rss", "Pss")]


def memory(options):
    shim = json.loads(subprocess.run([BUILD / "bin/bench_shim", "memory"], capture_output=True, text=True, check=True).stdout)["shim_kib"] / 1024
    results = {}
    for seats in (8, 1):
        with Pods("bench-seats", options, 8, seats, "here=1x8x0.25", {"OMPI_MCA_mpi_yield_when_idle": "1"}) as job:
            job.run("allreduce", 100, 300)
            found = processes(job).values()
            sidecars = [memory_of(pod["sidecar"]) for pod in found]
            inits = [memory_of(pid) for pod in found for name, pid in pod.items() if name == "app" or name.startswith("app-")]
            if len(inits) != 8:
                raise RuntimeError(f"8 ranks have {len(inits)} containers")
        rss, pss = (sum(each[i] for each in sidecars + inits) / 8 + shim for i in (0, 1))
        print(f"8 ranks, {seats} in a pod, memory beyond the program per rank: {rss:.1f} MiB resident ({pss:.1f} with shared pages counted once)"
              f"{'   goal ≤ 5' if seats == 8 else ''}: sidecars {sum(s[0] for s in sidecars):.1f}, bsp-init {median(i[0] for i in inits):.1f}, "
              f"shim {shim:.1f}", flush=True)
        results[seats] = {"rss_mib": rss, "pss_mib": pss, "sidecars": sidecars, "inits": inits, "shim_mib": shim}
    return results


def epoch(_options):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([BUILD / "bin/bench_epoch", "8", "8/8"], check=True, env={**os.environ, "BSP_BENCH_JSON": file.name})
        return json.loads(pathlib.Path(file.name).read_text())


PARTS = {"pair": lambda options: communication(options, 2, ["latency", "allreduce", "bandwidth"]),
         "four": lambda options: communication(options, 4, ["latency", "allreduce", "bandwidth"]),
         "starts": starts, "memory": memory, "epoch": epoch,
         "programs": lambda options: seat_programs.programs(options, ENVIRONMENT, spread, text)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--instances", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=40, help="of an instance")
    parser.add_argument("--starts", type=int, default=5, help="of each kind")
    parser.add_argument("--ranks", type=int, default=4, help="of programs")
    parser.add_argument("--seconds", type=float, default=10, help="of each side of an instance of programs")
    parser.add_argument("--only", nargs="+", metavar="PROGRAM", choices=seat_programs.PROGRAMS)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; parts: {', '.join(PARTS)}")
    results, failed = {}, False
    for name in options.parts or [part for part in PARTS if part != "programs"]:
        try:
            results[name] = PARTS[name](options)
        except (RuntimeError, AssertionError, subprocess.CalledProcessError) as error:
            print(f"{name}: not measured: {error}", flush=True)
            failed = True
        write_json(results)
    return failed


if __name__ == "__main__":
    sys.exit(main())
