#!/usr/bin/env python3
"""Faults in each phase of a wave that takes three ranks from one pod to another: two pods of three seats, of which one is drained.

One job lives through all cases. A sidecar is delayed at a point in the middle of the phase (failure_matrix_test.py); then the fault
strikes. The wave must end, the job must go on with six programs, restarted if and only if a rank was struck that has no other copy, and the
auditor (tests/audit) must find no moment at which a rank ran twice.

seat_faults_test.py                       a selection
seat_faults_test.py all                   all cases, and the rows of docs/faults.md
seat_faults_test.py FAULT[:PHASE] …       these cases
"""
import itertools
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

import failure_matrix_test as matrix
from failure_matrix_test import HELD_MS, HOLD, command_of, descendants
from local_job import PHASES, TREE, LocalJob, on_host, wait_for
from stamps import Stamps

RANKS = 6
ENDED = matrix.ENDED
WORDS = {"Succeeded": "moved", "RolledBack": "rolled back", "Failed": "restart"}
LEAVES, STAYS = 1, 4  # ranks, each the second of its pod's three


# --- The faults. Each takes the case and says what it has done. ---------------------------------------------------------------------------

def program_of(case, rank):
    programs = [p for p in descendants(case.init_of(rank))[1:] if command_of(p).startswith("lattice")]
    return programs[0] if programs else 0


def kill_program(rank, number):
    def strike(case):
        pid = program_of(case, rank)
        case.assertTrue(pid, f"rank {rank} has a program")
        os.kill(pid, number)
    return strike


def out_of_memory(case):
    """The container's own limit, which none of its neighbours feels: what else is in it needs more, and the kernel ends the program."""
    name, pid = case.run_.container_of(STAYS), program_of(case, STAYS)
    done = on_host("podman", "update", "--memory", "24m", "--memory-swap", "24m", name)
    case.assertEqual(done.returncode, 0, done.stderr)
    pathlib.Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
    case.addCleanup((TREE / "oom").unlink, missing_ok=True)  # conmon's, where the operator was started
    on_host("podman", "exec", name, "sh", "-c", "head -c 64m /dev/zero | tail > /dev/null")


def kill_pod(which):
    def strike(case):
        for pid in case.pods.processes().get(case.pod(which), {}).values():
            matrix.kill_quietly(pid)
    return strike


def kill_sidecar(which):
    return lambda case: matrix.kill_quietly(case.pods.processes().get(case.pod(which), {}).get("sidecar"))


def one_seat_ends(case):
    """One of three containers of the target, of which none has a program before its phase Restoring."""
    os.kill(wait_for("the seat's container", lambda: case.pods.processes().get(case.pod("target"), {}).get("app-1"), 60), signal.SIGKILL)


FAULTS = {
    "leaving-program-killed": kill_program(LEAVES, signal.SIGKILL),
    "staying-program-killed": kill_program(STAYS, signal.SIGKILL),
    "staying-program-ends": kill_program(STAYS, signal.SIGTERM),
    "staying-container-out-of-memory": out_of_memory,
    "one-target-seat-ends": one_seat_ends,
    "source-pod-killed": kill_pod("source"),
    "target-pod-killed": kill_pod("target"),
    "source-sidecar-killed": kill_sidecar("source"),
    "target-sidecar-killed": kill_sidecar("target"),
    "staying-sidecar-killed": kill_sidecar("staying"),
}
# They strike no rank before the commit.
HARMLESS = ("one-target-seat-ends", "target-pod-killed", "target-sidecar-killed", "source-sidecar-killed", "staying-sidecar-killed")
CASES = list(itertools.product(FAULTS, PHASES))
CHOICE = [("staying-container-out-of-memory", "Preparing"), ("staying-program-ends", "Pausing"), ("one-target-seat-ends", "Checkpointing"),
          ("target-pod-killed", "Restoring")]


class SeatFaults(matrix.Matrix):
    cases = CHOICE

    def test_every_victim_in_every_phase(self):
        with tempfile.TemporaryDirectory(prefix="bsp-e2e-stamps-", dir="/tmp") as shared, Stamps("seats", shared, shared) as stamps, \
             LocalJob("e2e-seat-faults", stamps.stamping_until_told(), ranks=RANKS, pools="slow=3x3x0.25", sets=["slow"], backoff=1000,
                      annotations={"migbsp.io/fault-points": "enabled"}, stamps=stamps, spec="ranksPerPod: 3") as run:
            self.run_, self.pods, self.outcomes = run, matrix.Pods(run), {}
            self.check_job_continues()
            for fault, phase in self.cases:
                with self.subTest(fault=fault, phase=phase):
                    started = time.monotonic()
                    outcome, how = self.strike_during(fault, phase)
                    self.outcomes[fault, phase] = outcome
                    print(f"{fault:>32} {phase:<14} {how}  {time.monotonic() - started:.1f} s", flush=True)
                    if fault in HARMLESS and phase != "Resuming":
                        self.assertNotEqual(outcome, "restart", f"{fault} strikes no rank: {how}")
                    if outcome == "restart" and ("program" in fault or "memory" in fault):
                        self.assertIn("/app-1)", how, "the container is named")
            self.assertEqual(stamps.findings(RANKS), [])
            self.check_that_no_rank_goes_to_a_drained_node()
            stamps.tell()
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            self.assertEqual(run.leftovers(), [])
            print(self.table())

    def strike_during(self, fault, phase):
        run, before = self.run_, self.run_.job()
        self.places = before["ranks"]
        attempt, wave = before.get("attempt", 0), before.get("wave", 0)
        side, point = HOLD[phase]
        armed = None if side == "target" else self.arm(run.run_directory(self.pod(side)), point, f"stop:{HELD_MS}")
        node = self.places[0]["node"]
        self.cordon(node)
        try:
            # A rank whose targets have failed is left alone for a while, longer after each: ten minutes at most.
            self.wave = wait_for("the wave", lambda: run.job().get("wave", 0) > wave and self.state(wave + 1), 700)
            moves = self.wave["moves"]
            self.assertEqual({(move["rank"], move["targetPod"]) for move in moves}, {(r, moves[0]["targetPod"]) for r in range(3)})
            if not armed:
                directory = wait_for("the target pod", lambda: run.run_directory(self.pod("target")), 60)
                armed = self.arm(directory, point, f"stop:{HELD_MS}")
            fired = armed.with_name(armed.name + ".fired")
            wait_for(f"{point} to be reached", fired.exists, 150, lambda: f"{self.state(wave + 1)}\n{run.output.read_text()}")
            fired.unlink()
            FAULTS[fault](self)
            ended = wait_for("the end of the wave", lambda: self.ended(wave + 1), 120, run.output.read_text)
        finally:
            self.cordon(node, False)
        self.check_job_continues()
        job = run.job()
        restarted = job.get("attempt", 0) != attempt
        how = f"{ended['phase']} ({ended.get('message', '')})"
        if restarted:
            how += f", restarted: {job['restarts'][-1]['message']}"
        return "restart" if restarted else WORDS[ended["phase"]], how

    def pod(self, which):
        return {"source": lambda: self.places[0]["pod"], "target": lambda: self.wave["moves"][0]["targetPod"],
                "staying": lambda: self.places[STAYS]["pod"]}[which]()

    def init_of(self, rank):
        place = self.places[rank]
        return self.pods.processes()[place["pod"]][place["container"]]

    def state(self, wave):
        state = self.run_.job().get("waveState") or {}
        return state if state.get("number") == wave else None

    def ended(self, wave):
        """The status of a RankMigration of that wave, once they have ended."""
        made = [m["status"] for m in self.run_.objects("RankMigration").values() if m.get("status", {}).get("wave") == wave]
        return made and all(status["phase"] in ENDED for status in made) and made[0]

    def cordon(self, node, on=True):
        item = self.run_.objects("Node")[node]
        item.setdefault("spec", {})["unschedulable"] = on
        self.run_.replace("Node", node, item)

    def only_rank_pods(self):
        job = self.run_.job()
        wanted = {rank["pod"] for rank in job.get("ranks", [])}
        if job.get("phase") != "Running" or set(self.run_.objects("Pod")) != wanted:
            return False
        processes = self.pods.processes()
        programs = [p for containers in processes.values() for name, init in containers.items() if name.startswith("app")
                    for p in descendants(init)[1:] if command_of(p).startswith("lattice")]
        return set(processes) == wanted and len(programs) == RANKS

    def check_that_no_rank_goes_to_a_drained_node(self):
        """A pod with a free seat, whose node is drained: its ranks leave, and it goes."""
        run = self.run_
        place = run.job()["ranks"][LEAVES]
        busy = {rank["node"] for rank in run.job()["ranks"]}
        empty, = (name for name in run.objects("Node") if name not in busy)
        moved = run.local("migrate", str(LEAVES), "--to-node", empty, "--wait")
        self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr)
        self.cordon(place["node"])
        refused = run.local("migrate", str(STAYS), "--to-node", place["node"], "--wait")
        self.assertNotEqual(refused.returncode, 0, "its free seat isn't for others")
        wait_for("the pod to go", lambda: place["pod"] not in run.objects("Pod"), 180, run.output.read_text)
        self.assertEqual({run.job()["ranks"][rank]["node"] for rank in range(3)}, {empty})
        self.cordon(place["node"], False)
        self.check_job_continues()

    def table(self):
        rows = [f"| {fault} | " + " | ".join(self.outcomes.get((fault, phase), "") for phase in PHASES) + " |" for fault in FAULTS
                if any((fault, phase) in self.outcomes for phase in PHASES)]
        return "\n".join([f"| fault | {' | '.join(PHASES)} |", "| --- |" + " --- |" * len(PHASES), *rows])


if __name__ == "__main__":
    if sys.argv[1:] == ["all"]:
        SeatFaults.cases = CASES
    elif len(sys.argv) > 1:
        SeatFaults.cases = [case for case in CASES if any(":".join(case).startswith(word) for word in sys.argv[1:])]
    sys.exit(unittest.main(argv=sys.argv[:1], verbosity=2))
