#!/usr/bin/env python3
"""debian_programs.py IMAGE [NAME…]: MPI programs of Debian, unmodified, once without a move and once with their ranks moved again and
again; what both runs print must be equal to the last digit, except times. IMAGE has the packages of images/programs.packages; inputs
are in programs/inputs. On the host, and on request only: the image takes 3.9 GB and a program some minutes.

Prints a line for each program; exits with 1 if one failed."""
import argparse
import difflib
import pathlib
import re
import shutil
import sys
import tempfile

from local_job import LocalJob, program_manifest

INPUTS = pathlib.Path(__file__).resolve().parent / "programs/inputs"
LIB = "/usr/lib/x86_64-linux-gnu"


class Program:
    """`masked`: lines that differ between any two runs, `blanked`: what differs in others. `results`: files in the working directory
    that count as output. `make`: makes further inputs in it. `runs`: of a program with few edges, in each of which it is moved once.
    `digits`: of each number, where any two runs under plain Open MPI differ in the others."""

    def __init__(self, command, superstep='{call: Auto}', masked=(), blanked="", results=(), make=None, runs=1, digits=None):
        self.command, self.superstep, self.results, self.make, self.runs, self.digits = command, superstep, results, make, runs, digits
        self.masked = [re.compile(m) for m in masked]
        self.blanked = blanked

    def cleaned(self, lines):
        ours = re.compile("^bsp-init: ")  # why a pod ended that its rank has left
        lines = [line for line in lines if not any(m.search(line) for m in [ours, *self.masked])]
        if self.blanked:
            lines = [re.sub(self.blanked, "…", line) for line in lines]
        if self.digits:
            lines = [re.sub(r"-?\d+\.\d+([EeDd][+-]?\d+)?", self.rounded, line) for line in lines]
        return lines

    def rounded(self, number):
        return f"{float(re.sub('[Dd]', 'e', number[0])):.{self.digits - 1}e}"


def poisson(directory, n=30):
    """For dsimpletest: Laplace's equation on a cube of n points a side."""
    entries = []
    at = lambda x, y, z: 1 + x + n * (y + n * z)  # noqa: E731
    for z in range(n):
        for y in range(n):
            for x in range(n):
                entries.append((at(x, y, z), at(x, y, z), 6.0 + 0.01 * x))
                for other in ((x + 1, y, z), (x, y + 1, z), (x, y, z + 1)):
                    if max(other) < n:
                        entries += [(at(x, y, z), at(*other), -1.0), (at(*other), at(x, y, z), -1.0)]
    size = n ** 3
    with open(directory / "poisson", "w") as file:
        file.write(f"{size} :N\n{len(entries)} :NZ\n")
        file.writelines(f"{i} {j} {v}\n" for i, j, v in entries)
        file.writelines(f"{1.0 + k % 7}\n" for k in range(size))


def square(directory, n=40):
    """For getdp: triangles of a square with n squares a side, their edge as lines."""
    at = lambda x, y: 1 + x + (n + 1) * y  # noqa: E731
    nodes = [f"{at(x, y)} {x / n!r} {y / n!r} 0" for y in range(n + 1) for x in range(n + 1)]
    lines = [f"1 2 2 2 {a} {b}" for i in range(n) for a, b in
             [(at(i, 0), at(i + 1, 0)), (at(n, i), at(n, i + 1)), (at(i + 1, n), at(i, n)), (at(0, i + 1), at(0, i))]]
    triangles = [f"2 2 1 1 {at(x, y)} {at(x + 1, y + dy)} {at(x + dx, y + 1)}"
                 for y in range(n) for x in range(n) for dx, dy in [(1, 0), (0, 1)]]
    elements = [f"{number} {element}" for number, element in enumerate(lines + triangles, 1)]
    parts = ["$MeshFormat", "2.2 0 8", "$EndMeshFormat", "$Nodes", len(nodes), *nodes, "$EndNodes",
             "$Elements", len(elements), *elements, "$EndElements"]
    (directory / "heat.msh").write_text("".join(f"{part}\n" for part in parts))


PROGRAMS = {
    "pw": Program(["pw.x", "-in", "si.in"],
                  masked=[r"CPU.*WALL", r"cpu time", r"starts on", r"terminated on", r"total cpu time"]),
    "elk": Program(["elk-lapw"], superstep="{call: MPI_Allreduce, stride: 1}", results=["INFO.OUT", "TOTENERGY.OUT", "EIGVAL.OUT"],
                   masked=[r"[Tt]ime|seconds|[Dd]ate|started|stopped|timing",
                           r"^ (initialisation|Hamiltonian and overlap matrix set up|first-variational eigenvalue equation|"
                           r"(charge density|potential) calculation|total) +:"]),
    "scalapack": Program([f"{LIB}/scalapack/openmpi-tests/xdlu"], blanked=r"( +\d+\.\d\d){3}(?= PASSED)"),
    "mumps": Program(["sh", "-c", "exec /usr/lib/mumps/dsimpletest < poisson"], make=poisson, runs=8, digits=10,
                     # How much memory it needs depends on which message comes first.
                     masked=[r"(?i)elapsed|time|seconds|MBYTES|Memory|RAM"]),
    "lammps": Program(["lmp", "-in", "in.lj", "-log", "none"], masked=[r"Loop time|Performance|CPU (use|=)|^(Pair|Neigh|Comm|Output|Modify|Other|Total wall)"]),
    "cp2k": Program(["cp2k.psmp", "-i", "h2o.inp"], masked=[r"(?i)time|date|process|started|ended|seconds|host|user|^ +\d+ OT|DIIS|P_Mix|memory|ran on",
                                                             r"^ \S+ +\d+ +[\d.]+( +[\d.]+){4}$"]),  # CP2K's table of times
    # Its ranks take tasks as they come, so the order in which it adds up and the last digits differ from run to run.
    "nwchem": Program(["nwchem.openmpi", "h2o.nw"], masked=[r"(?i)time|date|hostname|disk|d= |nproc|wall|cpu|I/O rate|residual"],
                      blanked=r" *\d+\.\ds$|( +\d\.\d\dD[-+]\d\d){2} +\d+\.\d$", digits=10),
    "getdp": Program(["getdp", "heat.pro", "-msh", "heat.msh", "-solve", "Heat", "-pos", "Line",
                      "-ksp_type", "cg", "-pc_type", "jacobi", "-ksp_rtol", "1e-12"], make=square, results=["line.txt"],
                     masked=[r"Wall = "]),
    "gpaw": Program(["gpaw", "python", "water.py"],
                    masked=[r"^Date:|^User:|Memory usage|MiB|% \|", r"^Total: +[.\d]+ 100"], blanked=r"\d\d:\d\d:\d\d"),
    "fenicsx": Program(["env", "SCOTCH_PTHREAD_NUMBER=1", "dolfinx-scaling-test", "--problem_type", "poisson", "--scaling_type", "strong",
                        "--ndofs", "200000", "-ksp_type", "richardson", "-pc_type", "jacobi", "-ksp_max_it", "5000", "-ksp_monitor"],
                       # Where PT-Scotch may use threads, its partition differs from run to run, and so do the last digits.
                       masked=[r"\|  reps +wall|^-+$|\| +\d+( +\d+\.\d+){2}"], blanked=r"^\[[-\d]+ [:.\d]+\]"),
    # Its summary names the fastest variants of each test, and one test draws its matrix anew in each run.
    "hpcc": Program(["hpcc"], results=["hpccoutf.txt"], blanked=r"\d+\.\d\d PASSED.*",
                    masked=[r"(?i)time|second|GUP|flop|GB|latency|bandwidth|ping|ring|HPLMinProcs|Stream|clock ticks",
                            r"^(WR|CPU|HPL_|PTRANS_n|(Copy|Scale|Add|Triad|Tuning|Computing|Inverse FFT|Scaled residual):)"]),
    "mpb": Program(["mpb-mpi", "rods.ctl"],
                   # It reports progress every few seconds.
                   masked=[r"elapsed time|linmin: |iteration +\d+: trace|^\d+ seconds|[Tt]otal elapsed"]),
    "freefem": Program(["FreeFem++-mpi", "-nw", "schwarz.edp"]),
    "mpi4py": Program(["python3", "power.py"]),
    "gromacs": Program(["sh", "run.sh"], results=["md.log"],
                       masked=[r"load imb|reminds you|Started|Finished|checkpoint|( +\d+\.\d+){3}$",
                               r"^ *(Time|Performance|Core t|\(ns/day|Date|Host|Process ID)",
                               r"Command line|Working dir|Log file opened"]),
    "h5py": Program(["python3", "field.py"]),
    "icofoam": Program(["sh", "run.sh"], masked=[r"ExecutionTime|^(Build|Arch|Exec|Date|Time|Host|PID|Case) *:|^\"?\S+\.\d+\"$"]),
    "liggghts": Program(["liggghts", "-in", "in.pack", "-log", "none"], masked=[r"Setting up run|Loop time|[Tt]ime|%"]),
    "meep": Program(["python3", "ring.py"], masked=[r"Meep progress|[Ee]lapsed|time for|on time step|s left|s/step"]),
    "neuron": Program(["nrniv", "-mpi", "ring.hoc"], results=["spikes"]),
}


def run(name, program, image, moves, odd=0):
    """What it printed, and how its moves ended."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f"bsp-program-{name}-", dir="/tmp"))
    try:
        shutil.copytree(INPUTS / name, directory, dirs_exist_ok=True) if (INPUTS / name).exists() else None
        if program.make:
            program.make(directory)
        directory.chmod(0o777)
        manifest = program_manifest(directory, image, program.command, superstep=program.superstep)
        with LocalJob(f"program-{name}", [], manifest=manifest, pools="slow=2x0.8,fast=2x0.8") as job:
            for number in range(moves):
                start = job.job().get("superstep", 0)
                if not job.wait_for_superstep(start + 1, 120) or job.ended():
                    break
                rank = (number + odd) % 2
                here = job.job()["ranks"][rank]["set"]
                job.local("migrate", str(rank), "--to", "slow" if here == "fast" else "fast", "--wait")
            status, output = job.wait(900)
            if status:
                raise RuntimeError(output[-3000:])
            summary = job.summary()
        lines = summary["rank0_output"]
        for result in program.results:
            lines += (directory / result).read_text(errors="replace").splitlines()
        return program.cleaned(lines), summary
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def tried(name, image, moves, shown):
    program = PROGRAMS[name]
    expected, _ = run(name, program, image, 0)
    runs = [run(name, program, image, moves if program.runs == 1 else 1, odd=number % 2) for number in range(program.runs)]
    migrations = [m for _, summary in runs for m in summary["migrations"]]
    ends = [m["phase"] for m in migrations]
    pauses = sorted(w["pause_ms"] for _, summary in runs for w in summary["waves"] if w["pause_ms"])
    reasons = {m["message"] for m in migrations if m["phase"] != "Succeeded"}
    differing = [line[:150] for moved, _ in runs for line in list(difflib.unified_diff(expected, moved, n=0))[2:] if line[0] in "+-"]
    print(f"{name}: {ends.count('Succeeded')} of {len(ends)} moves succeeded in {program.runs} runs of {runs[0][1]['supersteps']} supersteps; "
          f"{len(expected)} lines, {len(differing)} differ; pauses {pauses[0] if pauses else 0:.0f} to {pauses[-1] if pauses else 0:.0f} ms", flush=True)
    for line in differing[:shown]:
        print("   ", line)
    for reason in reasons:
        print("    not moved:", reason)
    return expected and not differing and ends.count("Succeeded") >= 5


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("image")
    parser.add_argument("names", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--moves", type=int, default=6)
    parser.add_argument("--lines", type=int, default=20, help="differing lines to print")
    options = parser.parse_args()
    return not all([tried(name, options.image, options.moves, options.lines) for name in options.names])


if __name__ == "__main__":
    sys.exit(main())
