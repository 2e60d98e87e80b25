#!/usr/bin/env python3
"""Programs that check themselves (programs/) while their ranks move by real CRIU: C's clocks and timers, RMA windows, and Fortran's
objects."""
import re
import sys
import unittest

from local_job import LocalJob

MOVES = [("0", "fast"), ("1", "fast"), ("0", "slow")]


class Programs(unittest.TestCase):
    def output(self, name, command, moves):
        """What rank 0 wrote, with ranks moved meanwhile as (rank, pool)."""
        with LocalJob(f"e2e-{name}", command, pools="slow=2x0.5,fast=2x0.5") as run:
            for rank, to in moves:
                run.wait_for_superstep(3)
                moved = run.local("migrate", rank, "--to", to, "--wait")
                self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr + run.output.read_text())
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            self.assertEqual([m["phase"] for m in run.summary()["migrations"]], ["Succeeded"] * len(moves))
            return "\n".join(run.summary()["rank0_output"])

    def test_clocks_and_timers_continue(self):
        self.assertIn("OK clocks", self.output("clocks", ["moved_clocks", "60"], MOVES))

    def test_windows_continue(self):
        self.assertIn("OK windows", self.output("windows", ["moved_windows", "1000"], MOVES))

    def test_fortran_gives_the_same_result(self):
        command = ["moved_fortran", "5000"]
        results = [re.findall(r"OK fortran [0-9A-F]{16}", self.output("fortran", command, moves)) for moves in ([], MOVES)]
        self.assertTrue(results[0])
        self.assertEqual(*results)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
