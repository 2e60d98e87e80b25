"""LAMMPS, Quantum ESPRESSO and GROMACS with all their ranks in one pod ÷ `mpirun` in one container of the same image: the time of a unit of
work. For seats.py, which says how quotas and yielding are alike.

All sides live side by side, stopped, and work in turn, a window of a fifth of a second each, in a changing order. An instance's ratio is of
all its windows: a unit that a window begins and the side's next one ends counts once."""
import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
from statistics import median

from debian_programs import INTO_FILE, PROGRAMS, WINDOW, Side, Turns, descendants
from pods import on_host

UNITS = 100  # at least of each side, which takes as much longer; but at most so many times the seconds asked for
MOST = 4


class Container(Turns):
    """mpirun's ranks."""

    def __init__(self, name, prepared, program, options, ranks, env):
        super().__init__(name, prepared, program)
        self.name, self.log = name, self.data / "mpirun"
        on_host("podman", "rm", "-f", name)
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [str(pathlib.Path(__file__).parents[1] / "on_host.sh"), "podman", "run", "--rm", "--name", name, "--network", "host",
                 "--security-opt", "seccomp=unconfined", "--shm-size", "1g", "--cap-add", "SYS_PTRACE", "--cpu-period", "10000",
                 "--cpu-quota", str(10000 * ranks), "-v", f"{self.data}:/data", "-w", "/data",
                 *(word for item in env.items() for word in ("-e", "=".join(item))), options.image,
                 "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *INTO_FILE, *program.COMMAND],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.send(signal.SIGCONT)
        on_host("podman", "rm", "-f", "-t", "0", self.name)
        self.process.wait()
        self.clean()

    def starts(self):
        self.wait_until_working(lambda: self.process.poll() is not None, self.log.read_text)
        first = int(on_host("podman", "inspect", "-f", "{{.State.Pid}}", self.name).stdout)
        self.ranks = descendants(first)  # not mpirun itself, which sleeps
        self.send(signal.SIGSTOP)


def instance(name, program, prepared, options, environment):
    """{side: seconds of a unit of work}."""
    ranks = options.ranks
    env = environment | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HOME": "/data",
                         "OMPI_MCA_mpi_yield_when_idle": "1" if ranks > os.cpu_count() else "0"}
    with contextlib.ExitStack() as stack:
        sides = {"pod": stack.enter_context(Side(f"bench-{name}", prepared, program, options, ranks=ranks, seats=ranks, env=env))}
        sides["pod"].starts()
        for side in ("mpirun", "again", "cma"):
            copies = {} if side == "cma" else {"OMPI_MCA_smsc": "^cma,knem,xpmem"}
            sides[side] = stack.enter_context(Container(f"bsp-bench-{name}-{side}", prepared, program, options, ranks,
                                                        env | {"OMPI_MCA_btl": "sm,self"} | copies))
            sides[side].starts()
        before = {side: of.units() for side, of in sides.items()}
        names = list(sides)
        turn, turns = 0, max(1, round(options.seconds / WINDOW))
        while turn < turns or (turn < MOST * turns and min(of.units() - before[side] for side, of in sides.items()) < UNITS):
            names = names[1:] + names[:1]
            for side in names if turn % 2 else names[::-1]:
                sides[side].works(WINDOW)
            turn += 1
        return {side: of.active / max(1, of.units() - before[side]) for side, of in sides.items()}


def programs(options, environment, spread, text):
    """`environment`: of all sides; `spread`, `text`: of seats.py."""
    results = {}
    for name, program in PROGRAMS.items():
        if options.only and name not in options.only:
            continue
        with tempfile.TemporaryDirectory(prefix=f"bsp-bench-{name}-", dir="/tmp") as directory:
            prepared = pathlib.Path(directory)
            prepared.chmod(0o777)
            program().prepare(prepared, options.image)
            found = [instance(name, program(), prepared, options, environment) for _ in range(options.instances)]
        ratios = {side: spread([of["pod"] / of[side] for of in found]) for side in ("mpirun", "cma")}
        noise = spread([of["again"] / of["mpirun"] for of in found])
        took = ", ".join(f"{side} {1e3 * median(of[side] for of in found):.1f} ms" for side in found[0])
        print(f"{options.ranks} ranks, {name:<7} pod ÷ mpirun {text(ratios['mpirun'])}   goal ≤ 1.02; mpirun ÷ mpirun {text(noise)}; "
              f"pod ÷ mpirun with CMA {text(ratios['cma'])}\n    a unit of work: {took}; load {os.getloadavg()[0]:.1f}", flush=True)
        results[name] = {"to mpirun": ratios["mpirun"], "to cma": ratios["cma"], "noise": noise, "seconds": found}
    return results
