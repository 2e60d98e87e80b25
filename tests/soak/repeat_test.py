#!/usr/bin/env python3
"""repeat.py: counts seeds, and ends at the first that fails."""
import os
import pathlib
import subprocess
import sys
import unittest

REPEAT = str(pathlib.Path(__file__).with_name("repeat.py"))


def repeat(code, **environment):
    return subprocess.run([sys.executable, "-B", REPEAT, sys.executable, "-c", f"import os, sys\nseed = int(os.environ['BSP_SEED'])\n{code}"],
                          env={**os.environ, **environment}, capture_output=True, text=True)


class Repeat(unittest.TestCase):
    def test_one_run_even_without_time(self):
        done = repeat("pass", BSP_SOAK_SECONDS="0.000001", BSP_SOAK_SEED="7")
        self.assertEqual((done.returncode, done.stdout), (0, "1 runs, BSP_SEED=7 to 7\n"), done.stderr)

    def test_the_first_failure_ends_it(self):
        done = repeat("print('seed', seed); sys.exit(seed == 9)", BSP_SOAK_SECONDS="1000", BSP_SOAK_SEED="7")
        self.assertEqual((done.returncode, done.stdout), (1, "seed 9\n"))
        self.assertEqual(done.stderr, "BSP_SEED=9: exit status 1, after 2 good runs\n")


if __name__ == "__main__":
    unittest.main(verbosity=2)
