"""The programs of other people that ./dev bench forecasts runs: the inputs of tests/e2e/programs, larger, on four ranks of which two begin on
slow nodes. Nobody marks their supersteps: the ranks find a collective that ends them (spec.superstep.call: Auto). So the inputs have one in
each step, since a program that calls several in a row leaves supersteps of no length between them. pw.x always
does, so that the end of its supersteps is named."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

E2E = pathlib.Path(__file__).resolve().parents[2] / "e2e"
sys.path.insert(0, str(E2E))  # before tests/bench, which has another debian_programs.py

from debian_programs import INPUTS, PROGRAMS as DEBIAN  # noqa: E402
from local_job import LocalJob, on_host, program_manifest  # noqa: E402

RANKS = 4
LONGEST = 120  # seconds: then a run ends, as its waves are over, and has been recorded so far


# For a number of steps: {file: {line of the input: what the file has instead}}.
def lammps(steps):
    """A Lennard-Jones liquid with a far cutoff, in short steps: no step looks for new neighbours, so that all are alike."""
    return {"in.lj": {"^units lj": "units lj\nnewton off\ntimestep 0.0005", "^neigh_modify .*": "neigh_modify every 1000 check no",
                      "^region box .*": "region box block 0 20 0 20 0 20", "^(pair_style.*|pair_coeff.*) 2.5$": r"\1 6.0",
                      r"^thermo \d+": "thermo 1", "^thermo_style .*": "thermo_style custom step", "^run .*": f"run {steps}"}}


def gromacs(steps):
    """Water: 27,000 molecules, without PME."""
    return {"water.mdp": {"^nsteps .*": f"nsteps = {steps}", "^coulombtype .*": "coulombtype = reaction-field",
                          "^(rcoulomb|rvdw) .*": r"\1 = 1.4", "^nstlist .*": "nstlist = 20\nnsttcouple = 1\nnstcalcenergy = 1"},
            "topol.top": {"^SOL .*": "SOL 27000"}, "run.sh": {"-nbox 2": "-nbox 5"}}


def pw(steps):
    """Molecular dynamics of eight atoms of silicon; a rank has a quarter of the k-points."""
    atoms = [(0.26, 0.25, 0.25), (0.5, 0.5, 0), (0.75, 0.75, 0.25), (0.5, 0, 0.5), (0.75, 0.25, 0.75), (0, 0.5, 0.5), (0.25, 0.75, 0.75)]
    return {"si.in": {"calculation='scf'": f"calculation='md', nstep={steps}, dt=20.0", "ibrav=2, (.*) nat=2": r"ibrav=1, \1 nat=8",
                      "ecutwfc=.*": "ecutwfc=16.0, nosym=.true.", "conv_thr=.*": "conv_thr=1.0d-8, mixing_beta=0.5",
                      "^ATOMIC_SPECIES": "&ions\n/\nATOMIC_SPECIES", "^ Si 0.25 .*": "\n".join(f" Si {x} {y} {z}" for x, y, z in atoms),
                      "^ 6 6 6 .*": " 4 4 2 1 1 1"}}


def icofoam(steps):
    """The flow in a box with a moving lid, on 800 × 800 cells, in four slices."""
    return {"run.sh": {r"numberOfSubdomains 2; method simple; simpleCoeffs \{ n \(2 1 1\)": "numberOfSubdomains 4; method simple; simpleCoeffs { n (4 1 1)",
                       r"\(40 40 1\)": "(800 800 1)", "endTime 1; deltaT 0.0025": f"endTime {steps * 0.0001}; deltaT 0.0001",
                       "writePrecision 16": "writePrecision 8", "tolerance 1e-8; relTol 0.05": "tolerance 1e-6; relTol 0.1",
                       "tolerance 1e-8; relTol 0;": "tolerance 1e-6; relTol 0.1;"}}


class Program:
    """`steps`: in full, and to check that everything works; `needs`: a program of its image; `more`: words of its command; `superstep`: what
    ends one."""

    def __init__(self, changes, steps, needs, more=(), superstep="{call: Auto}"):
        self.changes, self.steps, self.needs, self.more, self.superstep = changes, steps, needs, list(more), superstep


PROGRAMS = {
    "lammps": Program(lammps, (150, 30), "lmp"),
    "gromacs": Program(gromacs, (200, 40), "gmx_mpi"),
    "pw": Program(pw, (10, 1), "pw.x", ["-nk", str(RANKS)], "{call: MPI_Allreduce, stride: 4}"),  # an iteration towards self-consistency
    "icofoam": Program(icofoam, (10, 1), "icoFoam"),
}


def enlarge(directory, changes):
    for file, lines in changes.items():
        text = (directory / file).read_text()
        for line, instead in lines.items():
            text, count = re.subn(line, instead, text, flags=re.M)
            if not count:
                raise ValueError(f"{file} of tests/e2e/programs/inputs has no {line}")
        (directory / file).write_text(text)


def make_inputs(directory):
    """From a run.sh that makes further inputs before it becomes the program, for each rank in its container: (what makes them once, in /data;
    what is left for each rank), as shell commands."""
    made, program = (directory / "run.sh").read_text().replace("/tmp/", "/data/").rsplit("\nexec ", 1)
    where = [line for line in made.splitlines() if line.startswith(("export ", "cd "))]
    return made, "\n".join([*where, f"exec {program}"])


def prepare(name, directory, smoke):
    program = PROGRAMS[name]
    shutil.copytree(INPUTS / name, directory, dirs_exist_ok=True)
    enlarge(directory, program.changes(program.steps[smoke]))
    directory.chmod(0o777)


def missing(names, image):
    """Those that can't run, as the image has no such program."""
    if not image:
        return list(names)
    there = [on_host("podman", "run", "--rm", "--network", "none", image, "sh", "-c", f"command -v {PROGRAMS[name].needs}").stdout for name in names]
    return [name for name, found in zip(names, there) if not found]


def run(name, number, image, pools, smoke, record):
    """Copies the run's record to `record`."""
    program = PROGRAMS[name]
    with tempfile.TemporaryDirectory(prefix=f"bsp-forecasts-{name}-", dir="/tmp") as directory:
        prepare(name, pathlib.Path(directory), smoke)
        if (pathlib.Path(directory) / "run.sh").exists():
            made, rest = make_inputs(pathlib.Path(directory))
            done = on_host("podman", "run", "--rm", "--network", "none", "-v", f"{directory}:/data", image, "sh", "-c", made)
            if done.returncode:
                raise RuntimeError(f"{name}'s inputs can't be made:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")
            (pathlib.Path(directory) / "run.sh").write_text(rest)
        manifest = program_manifest(directory, image, DEBIAN[name].command + program.more, superstep=program.superstep, ranks=RANKS,
                                    spec="sets: {names: [slow, fast]}", rescheduling="{mode: Migrate, heuristic: Auto, alpha: 5, d: 0.25}")
        with LocalJob(f"gain-{number}", [], manifest=manifest, pools=pools, record=True) as job:
            try:
                code, output = job.wait(LONGEST)
            except subprocess.TimeoutExpired:
                job.local("delete", "job")
                job.wait()
            else:
                if code != 0:
                    raise RuntimeError(f"{name} ended with status {code}:\n{output[-3000:]}")
            shutil.copy(job.record_file, record)
