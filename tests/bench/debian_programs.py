#!/usr/bin/env python3
"""LAMMPS, Quantum ESPRESSO and GROMACS as Debian ships them, on two ranks: the time of a unit of work under the shim divided by that
under Open MPI alone, over tcp, in pods of the same kind with the same CPU quotas and the same PMIx server.

    debian_programs.py IMAGE [--seconds N] [--pairs N] [NAME…]

A pair of jobs runs in turn, a window of a fifth of a second each, the other being stopped, so that both see the same machine. Its ratio
is the median over its time, two seconds of each side at once. The output is the median over the pairs with its 95 % interval, since two
jobs that are the same differ by some per cent for as long as they live. The noise is that of pairs that both run without the shim."""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time
from statistics import median

from paired import interval
from pods import LocalJob, on_host, processes, program_manifest, wait_for, write_json

WINDOW = 0.2  # seconds that a side runs before it is the other's turn
SECONDS_OF_RATIO = 2  # of each side

# The shim's own defaults (sidecar/shim/epoch/epoch.cc), so that both run the same Open MPI.
ENVIRONMENT = {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_pml": "ob1", "OMPI_MCA_osc": "^ucx", "PMIX_MCA_gds": "hash"}
# Without the shim a program gets from its environment what the shim reads from the epoch's descriptor.
PLAIN = ["sh", "-c", 'until [ -s /run/bsp/epoch ]; do sleep 0.02; done; export $(grep "^PMIX_" /run/bsp/epoch); unset LD_PRELOAD; exec "$@"',
         "plain"]
# Its output so far, rank 0's and in order, is /data/output.
INTO_FILE = ["sh", "-c", 'exec "$@" >>/data/output 2>&1', "into-file"]


class Lammps:
    """A Lennard-Jones melt: steps."""
    COMMAND = ["lmp", "-in", "in.lj", "-log", "none"]
    UNIT = r"^ +(\d+)(?: +\S+){5} *$"

    def prepare(self, directory, _image):
        (directory / "in.lj").write_text("""units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 1
thermo_modify flush yes
run 100000000
""")


class QuantumEspresso:
    """Molecular dynamics of silicon: iterations towards self-consistency."""
    COMMAND = ["pw.x", "-in", "si.in"]
    UNIT = r"total (cpu) time spent up to now"

    def prepare(self, directory, _image):
        (directory / "si.in").write_text("""&control
  calculation='md', prefix='si', pseudo_dir='/usr/share/espresso/pseudo', outdir='/data/out', disk_io='none', nstep=1000000, dt=10.0
/
&system
  ibrav=2, celldm(1)=10.20, nat=2, ntyp=1, ecutwfc=30.0, nosym=.true.
/
&electrons
  conv_thr=1.0d-8, mixing_beta=0.5
/
&ions
/
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.26 0.25 0.25
K_POINTS automatic
 2 2 2 1 1 1
""")


class Gromacs:
    """Water: steps."""
    COMMAND = ["gmx_mpi", "mdrun", "-s", "topol.tpr", "-ntomp", "1", "-pin", "off", "-noconfout", "-notunepme", "-dlb", "no", "-v",
               "-stepout", "1"]
    UNIT = r"\bstep (\d+)"

    def prepare(self, directory, image):
        (directory / "water.mdp").write_text("integrator=md\ndt=0.002\nnsteps=-1\nnstlist=20\ncoulombtype=PME\nrcoulomb=0.9\n"
                                             "rvdw=0.9\ntcoupl=v-rescale\ntc-grps=System\ntau-t=0.5\nref-t=300\nnstenergy=1000\n"
                                             "nstlog=0\nconstraints=none\n")
        (directory / "topol.top").write_text('#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spce.itp"\n[ system ]\nwater\n'
                                             "[ molecules ]\nSOL 1728\n")
        done = on_host("podman", "run", "--rm", "--network", "none", "-v", f"{directory}:/data", "-w", "/data", image, "sh", "-c",
                       "gmx genconf -f /usr/share/gromacs/top/spc216.gro -nbox 2 -o big.gro && "
                       "gmx grompp -f water.mdp -c big.gro -p topol.top -o topol.tpr -maxwarn 5")
        if not (directory / "topol.tpr").exists():
            raise RuntimeError("gmx grompp failed:\n" + done.stderr[-1500:])


PROGRAMS = {"lammps": Lammps, "pw": QuantumEspresso, "gromacs": Gromacs}


class Turns:
    """Ranks of a program that work in turn with others, in a copy of `prepared`; stopped meanwhile. Who has them ends them."""

    def __init__(self, name, prepared, program):
        self.data = pathlib.Path(tempfile.mkdtemp(prefix=f"bsp-bench-{name}-", dir="/tmp"))
        shutil.copytree(prepared, self.data, dirs_exist_ok=True)
        self.data.chmod(0o777)
        self.unit = re.compile(program.UNIT, re.M)
        self.ranks = []  # PIDs of their programs
        self.active = 0.0  # seconds

    def units(self):
        file = self.data / "output"
        text = file.read_text(errors="replace").replace("\r", "\n") if file.exists() else ""
        found = self.unit.findall(text)
        return int(found[-1]) if found and found[-1].isdigit() else len(found)

    def wait_until_working(self, ended, said):
        """`said`: what to print if it ended."""
        def working():
            if ended():
                output = self.data / "output"
                raise RuntimeError("the job ended early:\n" + said()[-2500:] + (output.read_text()[-1500:] if output.exists() else ""))
            return self.units() > 10
        wait_for("ten units of work", working, 180)

    def send(self, number):
        for pid in self.ranks:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def works(self, seconds):
        began = time.monotonic()
        self.send(signal.SIGCONT)
        time.sleep(seconds)
        self.send(signal.SIGSTOP)
        self.active += time.monotonic() - began

    def clean(self):
        shutil.rmtree(self.data)


class Side(Turns, LocalJob):
    """A job's ranks, `seats` of them in a pod."""

    def __init__(self, name, prepared, program, options, shim=True, ranks=2, seats=1, env=None):
        Turns.__init__(self, name, prepared, program)
        command = [*INTO_FILE, *([] if shim else PLAIN), *program.COMMAND]
        LocalJob.__init__(self, name, [], pools=f"here={ranks // seats}x{seats}x1", manifest=program_manifest(
            self.data, options.image, command, ENVIRONMENT if env is None else env, ranks=ranks, spec=f"ranksPerPod: {seats}"))

    def __exit__(self, *error):
        self.send(signal.SIGCONT)
        LocalJob.__exit__(self, *error)
        self.clean()

    def starts(self):
        self.wait_until_working(self.ended, self.output.read_text)
        self.ranks = [pid for pod in processes(self).values() for name, init in pod.items() if name == "app" or name.startswith("app-")
                      for pid in descendants(init)]
        self.send(signal.SIGSTOP)


def descendants(pid):
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children] + [of for child in children for of in descendants(child)]


def ratio_of(name, program, prepared, options, shims):
    """Seconds of a unit of work of the first side divided by those of the second."""
    ratios = []
    with contextlib.ExitStack() as stack:
        sides = []
        for number, shim in enumerate(shims):
            side = stack.enter_context(Side(f"bench-{name}-{number}", prepared, program, options, shim))
            side.starts()
            sides.append(side)
        for _ in range(max(1, int(options.seconds / SECONDS_OF_RATIO))):
            before = [(side.units(), side.active) for side in sides]
            for turn in range(round(SECONDS_OF_RATIO / WINDOW)):
                for side in sides if turn % 2 else sides[::-1]:
                    side.works(WINDOW)
            seconds = [(side.active - active) / max(1, side.units() - units) for side, (units, active) in zip(sides, before)]
            ratios.append(seconds[0] / seconds[1])
    return median(ratios)


def measure(name, options):
    """(ratios of pairs with the shim to without it, of pairs without it to without it)."""
    program, found = PROGRAMS[name](), {True: [], False: []}
    with tempfile.TemporaryDirectory(prefix=f"bsp-bench-{name}-", dir="/tmp") as directory:
        prepared = pathlib.Path(directory)
        prepared.chmod(0o777)
        program.prepare(prepared, options.image)
        for pair in range(options.pairs):
            for shim in (True, False):  # which starts first alternates
                if pair % 2:
                    found[shim].append(1 / ratio_of(name, program, prepared, options, [False, shim]))
                else:
                    found[shim].append(ratio_of(name, program, prepared, options, [shim, False]))
    return found[True], found[False]


def described(found):
    low, high = interval(found)
    return f"{median(found):.4f} [{low:.4f} .. {high:.4f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image")
    parser.add_argument("names", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=10, help="of each side of a pair")
    parser.add_argument("--pairs", type=int, default=9)
    options = parser.parse_args()
    results, failed = {}, False
    for name in options.names:
        try:
            with_shim, noise = measure(name, options)
        except (RuntimeError, AssertionError) as error:
            print(f"{name}: not measured: {error}", flush=True)
            failed = True
            continue
        print(f"{name}: with the shim ÷ without {described(with_shim)}; without ÷ without {described(noise)}; load {os.getloadavg()[0]:.1f}",
              flush=True)
        results[name] = {"with the shim": with_shim, "noise": noise}
    write_json(results)
    return failed


if __name__ == "__main__":
    sys.exit(main())
