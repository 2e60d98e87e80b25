#!/usr/bin/env python3
"""killed_programs.py [NAME…] [--kills N] [--seed S] [--image IMAGE]: MPI programs that check their own results, whose ranks are killed
at random and go on from checkpoint sets; with --image (images/programs.packages) Debian's programs of debian_programs.py, whose output is
compared with that of a run without a kill. Real pods of the local mode, two ranks; on request only.

Prints a row for each program; exits with 1 if one failed."""
import argparse
import os
import pathlib
import random
import re
import shutil
import tempfile
import time

import debian_programs
from attempts import differs
from failure_matrix_test import descendants
from local_job import TOLD, LocalJob, kill, program_manifest, wait_for

ENDLESS = "1000000000"
POOLS = "slow=2x0.5,fast=2x0.5"
# Those with TOLD run until they are told to end; the others long enough for two kills.
OWN = {
    "lattice_boltzmann": (["lattice_boltzmann", "--width", "256", "--height", "128", "--supersteps", "1000000", "--until", TOLD], r"OK field crc"),
    "smith_waterman": (["smith_waterman", "--rows", "3600", "--columns", "3600", "--blocks", "400", "--verify"], r": OK .*, equal to the sequential"),
    "lu": (["lu", "--order", "2500", "--block", "5", "--verify"], r": OK .*, equal to the sequential"),
    "fractal": (["fractal", "--width", "256", "--height", "2400", "--range", "4", "--verify"], r": OK .*, equal to the sequential"),
    "moved_clocks": (["moved_clocks", TOLD], "OK clocks"),
    "moved_windows": (["moved_windows", ENDLESS, TOLD], "OK windows"),
    "moved_files": (["moved_files", ENDLESS, "/data", TOLD], "OK files"),
    "moved_guards": (["moved_guards", ENDLESS, TOLD], "OK guards"),
    "moved_fortran": (["moved_fortran", ENDLESS, TOLD], "OK fortran"),
    "blocking_calls": (["shim_blocking_calls", "threads", TOLD], "ok blocking calls"),
    "undelivered": (["shim_undelivered", ENDLESS, TOLD], "ok undelivered"),
    "shared_files": (["shared_files", "append", "/data", TOLD], "OK shared"),
}
IN_PLACE = {"moved_files", "h5py"}  # they rewrite blocks of a file, and what they read they have written since the set


def kill_at_random(job, kills, draw):
    """How many losses it went on from, and the supersteps that were computed again."""
    done, again = 0, 0
    for _ in range(kills):
        wait_for("a set", lambda: job.ended() or (job.job().get("phase") == "Running" and job.job().get("checkpoint", {}).get("sets")), 240,
                 lambda: f"{job.job().get('checkpoint')} {job.output.read_text()[-2000:]}")
        if job.ended():
            break
        time.sleep(draw.uniform(0, 4))
        if job.ended():
            break
        status, rank = job.job(), draw.randrange(2)
        attempt, at = status.get("attempt", 0), status.get("superstep", 0)
        try:
            init = int(job.container_of(rank, "{{.Pid}}"))
            program = descendants(init)[1:]
        except (ValueError, OSError):
            continue  # the job has just ended
        for pid in program:
            try:
                kill(pid)
            except ProcessLookupError:
                pass
        wait_for("the next attempt", lambda: job.ended() or (job.job().get("attempt", 0) > attempt and job.job().get("phase") == "Running"), 240,
                 lambda: job.output.read_text()[-2000:])
        if not job.ended() and "restored" in job.job().get("checkpoint", {}):
            done += 1
            again += max(0, at - job.job().get("superstep", 0))
    return done, again


def own(name, options, draw):
    command, said = OWN[name]
    with tempfile.TemporaryDirectory(prefix="bsp-killed-", dir="/tmp") as directory:
        volume = pathlib.Path(directory) / "volume"
        volume.mkdir()
        os.chmod(directory, 0o755)
        volume.chmod(0o777)
        spec = f"checkpoint: {{interval: 2s, sharedFiles: {'Ignore' if name in IN_PLACE else 'Check'}}}"
        with LocalJob(f"killed-{name.replace('_', '-')}", command, pools=POOLS, backoff=3, spec=spec, volume=volume,
                      checkpoints=str(pathlib.Path(directory) / "sets")) as job:
            went_on, again = kill_at_random(job, options.kills, draw)
            if TOLD in command and not job.ended():
                job.wait_for_superstep(job.job().get("superstep", 0) + 2)
                job.tell()
            status, output = job.wait(600)
            right = status == 0 and re.search(said, "\n".join(job.summary()["rank0_output"]))
            return went_on, again, bool(right), "" if right else output[-1500:]


def debian(name, options, draw):
    program = debian_programs.PROGRAMS[name]
    expected, _ = debian_programs.run(name, program, options.image, 0)
    directory = pathlib.Path(tempfile.mkdtemp(prefix=f"bsp-killed-{name}-", dir="/tmp"))
    try:
        if (debian_programs.INPUTS / name).exists():
            shutil.copytree(debian_programs.INPUTS / name, directory, dirs_exist_ok=True)
        if program.make:
            program.make(directory)
        directory.chmod(0o777)
        manifest = program_manifest(directory, options.image, program.command, superstep=program.superstep)
        manifest = manifest.replace("backoffLimit: 0", "backoffLimit: 3").replace("  superstep:", f"  checkpoint: {{interval: 2s, sharedFiles: {'Ignore' if name in IN_PLACE else 'Check'}}}\n  superstep:", 1)
        with tempfile.TemporaryDirectory(prefix="bsp-killed-sets-", dir="/tmp") as sets, \
                LocalJob(f"killed-{name}", [], manifest=manifest, pools="slow=2x0.8,fast=2x0.8", checkpoints=f"{sets}/sets") as job:
            os.chmod(sets, 0o755)  # the sidecars' user passes through; what lies below is made for it
            went_on, again = kill_at_random(job, options.kills, draw)
            status, output = job.wait(900)
            lines = program.cleaned(job.summary()["rank0_output"]) if status == 0 else []
        results = [line for result in program.results for line in program.cleaned((directory / result).read_text(errors="replace").splitlines())]
        log = expected[:len(expected) - len(results)]
        why = (output[-1500:] if status else "its files differ" if expected[len(log):] != results else differs(log, lines, options.kills))
        return went_on, again, not why, why
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--image")
    options = parser.parse_args()
    programs = debian_programs.PROGRAMS if options.image else OWN
    print(f"seed {options.seed}\n| program | kills gone on from | supersteps computed again | result |\n| --- | --- | --- | --- |", flush=True)
    failed = False
    for name in options.names or programs:
        draw = random.Random(f"{options.seed} {name}")
        try:
            went_on, again, right, why = (debian if options.image else own)(name, options, draw)
        except Exception as error:  # one that fails in a new way must not hide the others
            went_on, again, right, why = 0, 0, False, str(error)[-1500:]
        failed |= not right
        print(f"| {name} | {went_on} of {options.kills} | {again} | {'right' if right else 'WRONG'} |{' ' + why if why else ''}", flush=True)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
