#!/usr/bin/env python3
"""SIGKILL of any one part in each phase of a migration: the move completes or is undone, and the job goes on.

One job lives through all cases: rank 0 is moved to and fro by hand, and when the migration enters the phase the victim is
killed. Afterwards the migration must have ended, the job must run and progress again (restarted, if the rank itself is
gone), with exactly one running program for each rank and no pod too many.

failure_matrix_test.py                   a choice: every victim, every phase
failure_matrix_test.py all               all of them, some 20 s each
failure_matrix_test.py VICTIM:PHASE …    these
"""
import itertools
import json
import pathlib
import sys
import time
import unittest

from local_job import PHASES, LocalJob, kill, lattice_boltzmann, on_host, wait_for

VICTIMS = ["program", "bsp-init", "criu", "source-sidecar", "target-sidecar", "source-pod", "target-pod", "operator"]
ENDED = ["Succeeded", "RolledBack", "Failed"]
# What does not exist in a phase can't be killed in it.
IMPOSSIBLE = {("criu", "Preparing"), ("criu", "Pausing"), ("criu", "Transferring"), ("criu", "Resuming"),
              ("target-sidecar", "Preparing"), ("target-pod", "Preparing")}
CASES = [case for case in itertools.product(VICTIMS, PHASES) if case not in IMPOSSIBLE]
CHOICE = [("program", "Pausing"), ("program", "Resuming"), ("bsp-init", "Checkpointing"), ("criu", "Checkpointing"),
          ("source-sidecar", "Transferring"), ("target-sidecar", "Restoring"), ("source-pod", "Preparing"),
          ("target-pod", "Checkpointing"), ("operator", "Checkpointing"), ("operator", "Resuming")]


def children(pid):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def descendants(pid):
    return [pid] + [d for child in children(pid) for d in descendants(child)]


class Pods:
    """The first processes of the containers of a job's pods."""

    def __init__(self, run):
        self.label = f"label=migbsp.io/store={run.store}"

    def processes(self):
        """{pod: {container: pid}} of all running containers."""
        found = {}
        names = on_host("podman", "ps", "-q", "--filter", self.label).stdout.split()
        if not names:
            return found
        for c in json.loads(on_host("podman", "inspect", *names).stdout or "[]"):
            pod = c["Config"]["Labels"]["migbsp.io/pod"]
            container = c["Name"].removeprefix("/").split(pod + "-", 1)[1]
            if c["State"]["Pid"]:
                found.setdefault(pod, {})[container] = c["State"]["Pid"]
        return found


class Matrix(unittest.TestCase):
    cases = CHOICE

    def test_every_victim_in_every_phase(self):
        with LocalJob("e2e-matrix", lattice_boltzmann(1000000, substeps=4), pools="slow=1x0.3,fast=2x0.3",
                      backoff=1000) as run:
            self.run_, self.pods = run, Pods(run)
            self.goes_on()
            for victim, phase in self.cases:
                with self.subTest(victim=victim, phase=phase):
                    started = time.monotonic()
                    outcome = self.kill_during(victim, phase)
                    print(f"{victim:>15} {phase:<14} {outcome}  {time.monotonic() - started:.1f} s", flush=True)

    def kill_during(self, victim, phase):
        run = self.run_
        place = run.job()["ranks"][0]
        target = "fast" if place["set"] == "slow" else "slow"
        made = run.local("migrate", "0", "--to", target)
        self.assertEqual(made.returncode, 0, made.stderr)
        name = self.newest()
        before = self.pods.processes()
        # A gate that some rank cannot pass is set anew, further ahead each time.
        reached = wait_for(f"phase {phase} of {name}", lambda: self.reached(name, phase), 150,
                           detail=lambda: {k: run.job().get(k) for k in ("phase", "reason", "superstep", "waveState")})
        status = self.migration(name)
        target_pod = status.get("targetPod", "")
        processes = before if phase == "Preparing" else {**before, **self.pods.processes()}
        struck = self.strike(victim, phase, processes, place["pod"], target_pod)
        ended = wait_for(f"the end of {name}", lambda: self.migration(name).get("phase") in ENDED and self.migration(name), 60)
        attempt = run.job().get("attempt", 0)
        self.goes_on()
        restarted = "" if run.job().get("attempt", 0) == attempt and "Restart" not in run.job().get("reason", "") else ", restarted"
        return f"{'killed' if struck else 'was gone'} in {reached}: {ended['phase']}{restarted}"

    def newest(self):
        found = self.run_.objects("RankMigration").values()
        return max(found, key=lambda m: m["metadata"]["creationTimestamp"])["metadata"]["name"]

    def migration(self, name):
        return self.run_.objects("RankMigration").get(name, {}).get("status", {})

    def reached(self, name, phase):
        """The phase it is in, once that is `phase` or a later one."""
        now = self.migration(name).get("phase", "Pending")
        return now if now in ENDED or (now in PHASES and PHASES.index(now) >= PHASES.index(phase)) else None

    def strike(self, victim, phase, processes, source, target):
        """True if there was anything to kill."""
        if victim == "operator":
            return self.kill_quietly(self.run_.operator_pid())
        if victim in ("source-pod", "target-pod"):
            pod = source if victim == "source-pod" else target
            return any([self.kill_quietly(pid) for pid in processes.get(pod, {}).values()])
        if victim in ("source-sidecar", "target-sidecar"):
            pod = source if victim == "source-sidecar" else target
            return self.kill_quietly(processes.get(pod, {}).get("sidecar"))
        holder = target if phase in ("Restoring", "Resuming") else source
        init = processes.get(holder, {}).get("app")
        if victim == "bsp-init":
            return self.kill_quietly(init)
        if not init:
            return False
        found = [p for p in descendants(init)[1:] if command_of(p).startswith("criu" if victim == "criu" else "lattice")]
        return self.kill_quietly(found[0] if found else None)

    @staticmethod
    def kill_quietly(pid):
        """False if it had ended by itself in the meantime."""
        try:
            return bool(pid) and kill(pid) is None
        except ProcessLookupError:
            return False

    def goes_on(self):
        run = self.run_
        def runs():
            self.assertFalse(run.ended(), run.output.read_text()[-3000:])
            return run.job().get("phase") == "Running" and run.job()
        job = wait_for("the job to run again", runs, 120)
        since, attempt = job.get("superstep", 0), job.get("attempt", 0)
        def progressed():
            now = run.job()
            return now.get("attempt", 0) != attempt or now.get("superstep", 0) >= since + 2
        wait_for(f"progress beyond superstep {since}", progressed, 120)
        wait_for("the pods that nobody needs to be gone", lambda: self.only_the_ranks_pods(), 60)

    def only_the_ranks_pods(self):
        job = self.run_.job()
        wanted = {r["pod"] for r in job.get("ranks", [])}
        if job.get("phase") != "Running" or set(self.run_.objects("Pod")) != wanted:
            return False
        processes = self.pods.processes()
        programs = [p for containers in processes.values() if "app" in containers
                    for p in descendants(containers["app"])[1:] if command_of(p).startswith("lattice")]
        return set(processes) == wanted and len(programs) == len(wanted)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Matrix.cases = CASES if sys.argv[1:] == ["all"] else [tuple(word.split(":")) for word in sys.argv[1:]]
    sys.exit(unittest.main(argv=sys.argv[:1], verbosity=2))
