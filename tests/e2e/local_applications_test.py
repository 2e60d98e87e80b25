#!/usr/bin/env python3
"""The papers' applications in real pods: real criu moves a rank during the run, and the result equals the sequential program's."""
import os
import sys
import unittest

from local_job import LocalJob

IMAGE = os.environ.get("BSP_TEST_APPS_IMAGE", "localhost/bsp-apps:dev")
# Several seconds of work on a third of a core, so that a move happens before the end.
COMMANDS = {
    "smith-waterman": ["smith_waterman", "--rows", "1800", "--columns", "1800", "--blocks", "200"],
    "lu": ["lu", "--order", "2000", "--block", "10"],
    "fractal": ["fractal", "--width", "256", "--height", "1200", "--range", "4"],
}


class Applications(unittest.TestCase):
    def test_move_changes_no_result(self):
        for name, command in COMMANDS.items():
            with self.subTest(name), LocalJob(f"e2e-{name}", [*command, "--verify"], image=IMAGE) as run:
                run.wait_for_superstep(3)
                moved = run.local("migrate", "0", "--to", "fast", "--wait")
                self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr + run.output.read_text())
                status, output = run.wait()
                self.assertEqual(status, 0, output)
                self.assertEqual([(m["rank"], m["to"], m["phase"]) for m in run.summary()["migrations"]], [(0, "fast", "Succeeded")])
                self.assertRegex("\n".join(run.summary()["rank0_output"]), ": OK .*, equal to the sequential program")
                self.assertEqual(run.leftovers(), [])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
