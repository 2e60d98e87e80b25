#!/usr/bin/env python3
"""SIGKILLs any single part in each phase of a migration: the move completes or is rolled back, and the job continues.

One job lives through all cases. Rank 0 is moved back and forth by hand, and the victim dies at a named fault point (base/core/fault.h),
armed by a file in the pod's run directory. A victim without a fault point in a phase is killed from outside while a sidecar is delayed
at a point in the middle of the phase. Afterwards the migration must have ended, and the job must run and progress again (restarted if
and only if a rank itself was lost), with exactly one running program for each rank and no extra pod. The program stamps, and the
auditor (tests/audit) must find no moment at which a rank ran twice.

failure_matrix_test.py                          a selection
failure_matrix_test.py all                      all cases, about 20 s each
failure_matrix_test.py VICTIM:PHASE[:POINT] …   these cases
"""
import itertools
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest

from local_job import PHASES, LocalJob, kill, on_host, wait_for
from stamps import Stamps, stamping

# Program and bsp-init are those that hold the rank: the source's, and from Restoring on the target's. Rank 1 is the bystander.
VICTIMS = ["program", "bsp-init", "criu", "source-sidecar", "target-sidecar", "source-pod", "target-pod", "operator",
           "source-program", "source-bsp-init", "bystander-program", "bystander-bsp-init", "bystander-sidecar", "bystander-pod"]
SIDES = ["source", "target", "bystander"]
ENDED = ["Succeeded", "RolledBack", "Failed"]
SIDECAR_USER = 64600  # operator/reconcile/kernel/pods/pods.cc
# Victims that don't exist in a phase; and while the source holds the rank, its program is the same as "program".
IMPOSSIBLE = {("criu", "Preparing"), ("criu", "Pausing"), ("criu", "Transferring"), ("criu", "Resuming"),
              *itertools.product(("source-program", "source-bsp-init"), PHASES[:4])}
# (victim, phase): the fault points that it passes in that phase. Those of bsp-init kill the process that they concern.
POINTS = {
    ("program", "Pausing"): ["init.stopped"],
    ("program", "Checkpointing"): ["init.dumped"],
    ("program", "Restoring"): ["init.restored"],
    ("program", "Resuming"): ["init.continue"],
    ("bsp-init", "Pausing"): ["init.stopped"],
    ("bsp-init", "Checkpointing"): ["init.dumping", "init.dumped"],
    ("bsp-init", "Restoring"): ["init.restoring", "init.restored"],
    ("bsp-init", "Resuming"): ["init.continue"],
    ("criu", "Checkpointing"): ["init.dumping"],
    ("criu", "Restoring"): ["init.restoring"],
    ("source-sidecar", "Pausing"): ["gate.arm", "gate.armed", "gate.commit", "gate.committed"],
    ("source-sidecar", "Checkpointing"): ["transfer.sending", "transfer.streaming", "transfer.dumped"],
    ("source-sidecar", "Transferring"): ["transfer.sent"],
    ("target-sidecar", "Preparing"): ["epoch.prepare", "epoch.prepared"],
    ("target-sidecar", "Checkpointing"): ["transfer.receiving"],
    ("target-sidecar", "Transferring"): ["transfer.verified", "transfer.received"],
    ("target-sidecar", "Restoring"): ["restore.begin", "restore.done"],
    ("target-sidecar", "Resuming"): ["epoch.open", "epoch.opened", "epoch.continued"],
    ("bystander-sidecar", "Preparing"): ["epoch.prepare", "epoch.prepared"],
    ("bystander-sidecar", "Pausing"): ["gate.arm", "gate.armed", "gate.commit", "gate.committed"],
    ("bystander-sidecar", "Resuming"): ["epoch.open", "epoch.opened", "epoch.continued"],
    ("operator", "Preparing"): ["operator.Migrating"],
    **{("operator", phase): ["operator.Wave" + phase] for phase in PHASES[1:]},
}
# For each phase, a point in the middle of it and the side that passes it.
HOLD = {"Preparing": ("target", "epoch.prepare"), "Pausing": ("source", "gate.armed"), "Checkpointing": ("source", "transfer.sending"),
        "Transferring": ("target", "transfer.verified"), "Restoring": ("target", "restore.begin"), "Resuming": ("target", "epoch.open")}
HELD_MS = 3000
CASES = [(*case, point) for case in itertools.product(VICTIMS, PHASES) if case not in IMPOSSIBLE
         for point in POINTS.get(case, [""])]
CHOICE = [("program", "Pausing", "init.stopped"), ("bsp-init", "Checkpointing", "init.dumping"),
          ("criu", "Restoring", "init.restoring"), ("source-sidecar", "Pausing", "gate.commit"),
          ("source-sidecar", "Transferring", "transfer.sent"), ("target-sidecar", "Restoring", "restore.begin"),
          ("target-sidecar", "Resuming", "epoch.opened"), ("source-pod", "Preparing", ""),
          ("target-pod", "Checkpointing", ""), ("operator", "Checkpointing", "operator.WaveCheckpointing"),
          ("operator", "Resuming", "operator.WaveResuming"), ("source-program", "Resuming", ""),
          ("bystander-sidecar", "Pausing", "gate.armed"), ("bystander-sidecar", "Resuming", "epoch.open"),
          ("bystander-program", "Checkpointing", ""), ("bystander-pod", "Transferring", "")]


def strikes_a_rank(victim, phase):
    """If false, the job must not restart."""
    if victim in ("operator", "criu"):
        return False
    if victim.endswith("sidecar"):
        return phase == "Resuming"  # an epoch that is being opened is lost (sidecar/agent/README.md)
    if victim == "target-pod":
        return phase == "Resuming"  # not needed before the commit
    if victim.startswith("source"):
        return phase != "Resuming"  # before, the operator may not know yet that the target holds the whole checkpoint
    return True


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


def kill_parts(victim, containers, program="lattice"):
    """Of a pod's {container: pid}. True if there was a process to kill."""
    part = next(part for part in ("pod", "sidecar", "bsp-init", "program") if victim.endswith(part))
    if part == "pod":
        return any([kill_quietly(pid) for pid in containers.values()])
    if part == "sidecar":
        return kill_quietly(containers.get("sidecar"))
    init = containers.get("app")
    if part == "bsp-init" or not init:
        return kill_quietly(init)
    found = [p for p in descendants(init)[1:] if command_of(p).startswith(program)]
    return kill_quietly(found[0] if found else None)


def kill_quietly(pid):
    """False if it had already exited."""
    try:
        return bool(pid) and kill(pid) is None
    except ProcessLookupError:
        return False


class Matrix(unittest.TestCase):
    cases = CHOICE

    def test_every_victim_in_every_phase(self):
        with tempfile.TemporaryDirectory(prefix="bsp-e2e-faults-", dir="/tmp") as self.operator_faults, \
             tempfile.TemporaryDirectory(prefix="bsp-e2e-stamps-", dir="/tmp") as shared, Stamps("matrix", shared, shared) as stamps, \
             LocalJob("e2e-matrix", stamping(1000000, substeps=4), pools="slow=1x0.3,fast=2x0.3", backoff=1000,
                      annotations={"migbsp.io/fault-points": "enabled"}, stamps=stamps,
                      under=["env", f"BSP_FAULT_DIRECTORY={self.operator_faults}"]) as run:
            self.run_, self.pods = run, Pods(run)
            self.check_job_continues()
            for victim, phase, point in self.cases:
                with self.subTest(victim=victim, phase=phase, point=point):
                    started = time.monotonic()
                    outcome = self.kill_during(victim, phase, point)
                    print(f"{victim:>18} {phase:<14} {outcome}  {time.monotonic() - started:.1f} s", flush=True)
            self.assertEqual(stamps.findings(), [])
            # Prove that the auditor would have found a rank that ran twice.
            containers = on_host("podman", "ps", "-q", "--filter", self.pods.label, "--filter", f"name={run.job()['ranks'][1]['pod']}-app$")
            forged = on_host("podman", "exec", *containers.stdout.split(), *stamps.forgery(rank=0))
            self.assertEqual(forged.returncode, 124, forged.stderr)
            found = wait_for("the forged copy to be found", stamps.findings, 30)
            self.assertRegex("\n".join(found), "^rank 0 ran twice for [0-9.]+ ms: in [^\n]+$")

    def kill_during(self, victim, phase, point):
        run = self.run_
        place, bystander = run.job()["ranks"]
        attempt = run.job().get("attempt", 0)
        side, action = self.where(victim, phase), "kill-child" if victim in ("program", "criu") else "kill"
        stop_at = point
        if not point:
            (side, stop_at), action = HOLD[phase], f"stop:{HELD_MS}"
        armed = None
        if side == "operator":
            armed = self.arm(pathlib.Path(self.operator_faults), stop_at, action)
        elif side != "target":
            armed = self.arm(run.run_directory((place if side == "source" else bystander)["pod"]), stop_at, action)
        made = run.local("migrate", "0", "--to", "fast" if place["set"] == "slow" else "slow")
        self.assertEqual(made.returncode, 0, made.stderr)
        name = self.newest()
        if not armed:
            armed = self.arm(self.targets_run_directory(name), stop_at, action)
        self.fires(armed, name)
        held = time.monotonic()
        struck = "killed" if point or self.strike(victim, phase, name, (place["pod"], bystander["pod"])) else "was gone"
        late = not point and time.monotonic() - held > HELD_MS / 1000
        ended = wait_for(f"the end of {name}", lambda: self.migration(name).get("phase") in ENDED and self.migration(name), 60)
        self.check_job_continues()
        job = run.job()
        restarted = f", restarted: {job['restarts'][-1]['message']}" if job.get("attempt", 0) != attempt else ""
        if not late and not strikes_a_rank(victim, phase):
            self.assertEqual(restarted, "", f"{victim} is not a rank: {ended}")
        return f"{struck}{' late' if late else ''} at {stop_at}: {ended['phase']} ({ended.get('message', '')}){restarted}"

    @staticmethod
    def arm(directory, point, action):
        file = directory / point
        file.with_suffix(file.suffix + ".fired").unlink(missing_ok=True)
        new = directory / (point + ".new")
        new.write_text(action)
        os.chown(new, SIDECAR_USER, SIDECAR_USER)  # in a sticky directory only its owner may rename it, which signals that it fired
        return new.rename(file)

    def targets_run_directory(self, name):
        """The run directory of the migration's target pod, as soon as it exists."""
        return wait_for(f"the target pod of {name}",
                        lambda: self.run_.run_directory(self.migration(name).get("targetPod", "")), 60)

    def fires(self, armed, name):
        """Waits until the armed point has fired; it must, before the migration ends."""
        fired = armed.with_name(armed.name + ".fired")
        deadline, next_check = time.monotonic() + 150, 0  # a gate that a rank can't pass is set again, further ahead each time
        while not fired.exists():
            now = time.monotonic()
            if now < next_check:
                time.sleep(0.002)
                continue
            next_check = now + 0.2
            status = self.migration(name)
            if (status.get("phase") in ENDED or now > deadline) and not fired.exists():
                armed.unlink(missing_ok=True)
                job = {k: self.run_.job().get(k) for k in ("phase", "reason", "superstep", "waveState")}
                self.fail(f"{armed.name} was not reached: {status} {job}")
        fired.unlink(missing_ok=True)

    def newest(self):
        found = self.run_.objects("RankMigration").values()
        return max(found, key=lambda m: m["metadata"]["creationTimestamp"])["metadata"]["name"]

    def migration(self, name):
        return self.run_.objects("RankMigration").get(name, {}).get("status", {})

    @staticmethod
    def where(victim, phase):
        """Which part the victim belongs to: the operator or a side."""
        side = victim.partition("-")[0]
        if side in (*SIDES, "operator"):
            return side
        return "target" if phase in ("Restoring", "Resuming") else "source"

    def strike(self, victim, phase, name, pods):
        target = self.migration(name).get("targetPod", "")
        pod = dict(zip(SIDES, (pods[0], target, pods[1])))[self.where(victim, phase)]
        return kill_parts(victim, self.pods.processes().get(pod, {}))

    def check_job_continues(self):
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
        wait_for("the unneeded pods to be gone", lambda: self.only_rank_pods(), 60)

    def only_rank_pods(self):
        job = self.run_.job()
        wanted = {r["pod"] for r in job.get("ranks", [])}
        if job.get("phase") != "Running" or set(self.run_.objects("Pod")) != wanted:
            return False
        processes = self.pods.processes()
        programs = [p for containers in processes.values() if "app" in containers
                    for p in descendants(containers["app"])[1:] if command_of(p).startswith("lattice")]
        return set(processes) == wanted and len(programs) == len(wanted)


if __name__ == "__main__":
    if sys.argv[1:] == ["all"]:
        Matrix.cases = CASES
    elif len(sys.argv) > 1:
        Matrix.cases = [case for case in CASES if any(":".join(case).startswith(word) for word in sys.argv[1:])]
    sys.exit(unittest.main(argv=sys.argv[:1], verbosity=2))
