#!/usr/bin/env python3
"""LAMMPS, Quantum ESPRESSO and GROMACS as Debian ships them, on two ranks: the time of a unit of work under the shim divided by that
under Open MPI alone, over tcp, in pods of the same kind with the same CPU quotas and the same PMIx server.

    debian_programs.py IMAGE [--seconds N] [--pairs N] [--cpu CORES] [NAME…]

A pair is a run with the shim and one without at the same time, so that what else the machine does slows both; which starts first
alternates. The output is the median over the pairs, with the least and the greatest; the noise is the same of pairs that both run without
the shim, in turn with the others."""
import argparse
import contextlib
import os
import pathlib
import re
import shutil
import sys
import tempfile

from pods import LocalJob, median, on_host, program_manifest, write_json

# The shim's own defaults (sidecar/shim/epoch.cc), so that both run the same Open MPI.
ENVIRONMENT = {"OMPI_MCA_btl": "tcp,self", "OMPI_MCA_pml": "ob1", "OMPI_MCA_osc": "^ucx", "PMIX_MCA_gds": "hash"}
# Without the shim a program gets from its environment what the shim reads from the epoch's descriptor.
PLAIN = ["sh", "-c", 'until [ -s /run/bsp/epoch ]; do sleep 0.02; done; export $(grep "^PMIX_" /run/bsp/epoch); unset LD_PRELOAD; exec "$@"',
         "plain"]


class Lammps:
    """A Lennard-Jones melt that stops by itself when its time is up."""
    def prepare(self, directory, seconds, _image):
        (directory / "in.lj").write_text(f"""units lj
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
timer timeout {int(seconds) // 3600}:{int(seconds) // 60 % 60}:{int(seconds) % 60} every 10
run 100000000
""")

    def command(self):
        return ["lmp", "-in", "in.lj", "-log", "none"]

    def seconds_each(self, output):
        time, steps = re.search(r"Loop time of (\S+) on 2 procs for (\d+) steps", output).groups()
        return float(time) / int(steps)


class QuantumEspresso:
    """Molecular dynamics of silicon, until its time is up: a unit is an iteration towards self-consistency."""
    def prepare(self, directory, seconds, _image):
        (directory / "si.in").write_text(f"""&control
  calculation='md', prefix='si', pseudo_dir='/usr/share/espresso/pseudo', outdir='/data/out', disk_io='none', max_seconds={seconds},
  nstep=1000000, dt=10.0
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

    def command(self):
        return ["pw.x", "-in", "si.in"]

    def seconds_each(self, output):
        """With its start, a hundredth of the run."""
        minutes, seconds = re.search(r"^ *PWSCF +:.* CPU +(?:(\d+)m *)?([\d.]+)s WALL", output, re.M).groups()
        return (60 * int(minutes or 0) + float(seconds)) / output.count("total cpu time spent up to now")


class Gromacs:
    """Water, which stops by itself when its time is up."""
    def prepare(self, directory, seconds, image):
        self.hours = seconds / 3600
        (directory / "water.mdp").write_text("integrator=md\\ndt=0.002\\nnsteps=-1\\nnstlist=20\\ncoulombtype=PME\\nrcoulomb=0.9\\n"
                                             "rvdw=0.9\\ntcoupl=v-rescale\\ntc-grps=System\\ntau-t=0.5\\nref-t=300\\nnstenergy=1000\\n"
                                             "nstlog=0\\nconstraints=none\\n".replace("\\n", "\n"))
        (directory / "topol.top").write_text('#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spce.itp"\n[ system ]\nwater\n'
                                             "[ molecules ]\nSOL 1728\n")
        done = on_host("podman", "run", "--rm", "--network", "none", "-v", f"{directory}:/data", "-w", "/data", image, "sh", "-c",
                       "gmx genconf -f /usr/share/gromacs/top/spc216.gro -nbox 2 -o big.gro && "
                       "gmx grompp -f water.mdp -c big.gro -p topol.top -o topol.tpr -maxwarn 5")
        if not (directory / "topol.tpr").exists():
            raise RuntimeError("gmx grompp failed:\n" + done.stderr[-1500:])

    def command(self):
        return ["gmx_mpi", "mdrun", "-s", "topol.tpr", "-maxh", f"{self.hours:.5f}", "-ntomp", "1", "-pin", "off", "-resethway", "-noconfout",
                "-notunepme", "-g", "/dev/stdout"]

    def seconds_each(self, output):
        return 1 / float(re.search(r"^Performance:\s+(\S+)", output, re.M).group(1))


PROGRAMS = {"lammps": Lammps, "pw": QuantumEspresso, "gromacs": Gromacs}


def seconds_at_once(name, program, directory, options, shims):
    """Of a unit of work, for jobs that run at the same time, with or without the shim."""
    with contextlib.ExitStack() as stack:
        jobs = []
        for number, shim in enumerate(shims):
            data = shutil.copytree(directory, stack.enter_context(tempfile.TemporaryDirectory(prefix=f"bsp-bench-{name}-", dir="/tmp")),
                                   dirs_exist_ok=True)
            os.chmod(data, 0o777)
            command = program.command() if shim else [*PLAIN, *program.command()]
            jobs.append(stack.enter_context(LocalJob(f"bench-{name}-{number}", [], pools=f"here=2x{options.cpu}",
                                                     manifest=program_manifest(data, options.image, command, ENVIRONMENT))))
        outputs = [job.wait(options.seconds * 4 + 300)[1] for job in jobs]
    for shim, printed in zip(shims, outputs):
        try:
            yield program.seconds_each(printed)
        except (AttributeError, ZeroDivisionError) as error:
            raise RuntimeError(f"{'with' if shim else 'without'} the shim: {error}\n{printed[-2500:]}") from error


def measure(name, options):
    """{shim: [seconds, of a unit of work with the shim or without it, and without it at the same time]}."""
    program = PROGRAMS[name]()
    with tempfile.TemporaryDirectory(prefix=f"bsp-bench-{name}-", dir="/tmp") as directory:
        directory = pathlib.Path(directory)
        directory.chmod(0o777)
        program.prepare(directory, options.seconds, options.image)
        pairs = {True: [], False: []}
        for pair in range(options.pairs):
            for shim in (True, False):
                order = [shim, False] if pair % 2 else [False, shim]
                found = list(seconds_at_once(name, program, directory, options, order))
                pairs[shim].append(found if pair % 2 else found[::-1])
        return pairs


def spread(pairs):
    ratios = [a / b for a, b in pairs]
    return f"{median(ratios):.3f} ({min(ratios):.3f} … {max(ratios):.3f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image")
    parser.add_argument("names", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=60, help="of each run")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--cpu", type=float, default=0.4, help="cores of each of the four ranks")
    options = parser.parse_args()
    results, failed = {}, False
    for name in options.names:
        try:
            pairs = measure(name, options)
        except RuntimeError as error:
            print(f"{name}: not measured: {error}", flush=True)
            failed = True
            continue
        print(f"{name}: with the shim ÷ without {spread(pairs[True])}; without ÷ without {spread(pairs[False])}; load {os.getloadavg()[0]:.1f}",
              flush=True)
        results[name] = {"seconds_each": {"shim and plain": pairs[True], "plain and plain": pairs[False]}}
    write_json(results)
    return failed


if __name__ == "__main__":
    sys.exit(main())
