#!/usr/bin/env python3
"""Programs that check themselves (programs/) while their ranks move by real CRIU: C's clocks and timers, RMA windows, MPI files, and
Fortran's objects."""
import os
import pathlib
import re
import sys
import tempfile
import unittest

from local_job import TOLD, LocalJob, wait_for

ENDLESS = "1000000000"  # supersteps; TOLD ends them
MOVES = [("0", "fast"), ("1", "fast"), ("0", "slow")]


class Programs(unittest.TestCase):
    def output(self, name, command, moves, volume=None):
        """What rank 0 wrote, with ranks moved meanwhile as (rank, pool)."""
        with LocalJob(f"e2e-{name}", command, pools="slow=2x0.5,fast=2x0.5", volume=volume) as run:
            for rank, to in moves:
                run.wait_for_superstep(3)
                moved = run.local("migrate", rank, "--to", to, "--wait")
                self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr + run.output.read_text())
            if TOLD in command:
                run.tell()
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            self.assertEqual([m["phase"] for m in run.summary()["migrations"]], ["Succeeded"] * len(moves))
            return "\n".join(run.summary()["rank0_output"])

    def test_clocks_and_timers_continue(self):
        self.assertIn("OK clocks", self.output("clocks", ["moved_clocks", TOLD], MOVES))

    def test_calls_that_wait_continue(self):
        self.assertIn("ok blocking calls", self.output("waits", ["shim_blocking_calls", "threads", TOLD], MOVES))

    def test_messages_under_way_arrive(self):
        self.assertIn("ok undelivered", self.output("messages", ["shim_undelivered", ENDLESS, TOLD], MOVES))

    def test_windows_continue(self):
        self.assertIn("OK windows", self.output("windows", ["moved_windows", ENDLESS, TOLD], MOVES))

    def test_files_stay_open(self):
        """What the ranks write to a volume doesn't depend on moves."""
        written, supersteps = [], ENDLESS
        for moves in (MOVES, []):
            with tempfile.TemporaryDirectory(prefix="bsp-e2e-files-", dir="/tmp") as volume:
                os.chmod(volume, 0o777)
                until = [TOLD] if moves else []
                self.assertIn("OK files", self.output("files", ["moved_files", supersteps, "/data", *until], moves, volume))
                written.append({path.name: path.read_bytes() for path in pathlib.Path(volume).iterdir()})
                supersteps = str(len(written[0]["events"]) // 16)  # a long of each of two ranks
        self.assertEqual(set(written[0]), {"field", "events"})
        self.assertTrue(written[0] == written[1])  # not assertEqual, which would print them

    def test_guard_pages_guard(self):
        """While ranks move, and after a loss from which the job goes on with a checkpoint set."""
        command = ["moved_guards", ENDLESS, TOLD]
        with tempfile.TemporaryDirectory(prefix="bsp-e2e-guards-", dir="/tmp") as sets:
            with LocalJob("e2e-guards", command, pools="slow=2x0.5,fast=2x0.5", spec="checkpoint: {interval: 1h}", backoff=1,
                          checkpoints=os.path.join(sets, "sets")) as run:
                run.wait_for_superstep(3)
                moved = run.local("migrate", "0", "--to", "fast", "--wait")
                self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr)
                made = run.local("checkpoint", "--wait")
                self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
                run.kill_pods([run.job()["ranks"][1]["pod"]])
                wait_for("the next attempt", lambda: run.ended() or (run.job().get("attempt") == 1 and run.job()["phase"] == "Running"), 300)
                self.assertEqual(run.job()["checkpoint"]["restored"], 1)
                here = run.job()["ranks"][0]["set"]
                moved = run.local("migrate", "0", "--to", "slow" if here == "fast" else "fast", "--wait")
                self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr)
                run.tell()
                status, output = run.wait()
                self.assertEqual(status, 0, output)
                said = re.search(r"OK guards (\d+) [0-9A-F]{16}", "\n".join(run.summary()["rank0_output"]))
        self.assertTrue(said, output)
        self.assertIn(said.group(), self.output("guards", ["moved_guards", said.group(1)], []))

    def test_fortran_gives_the_same_result(self):
        moved = re.search(r"OK fortran (\d+) [0-9A-F]{16}", self.output("fortran", ["moved_fortran", ENDLESS, TOLD], MOVES))
        self.assertTrue(moved)
        self.assertIn(moved.group(), self.output("fortran", ["moved_fortran", moved.group(1)], []))


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
