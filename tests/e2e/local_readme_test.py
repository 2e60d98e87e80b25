#!/usr/bin/env python3
"""README.md's commands for this machine, typed as they stand, in the order of the page; only ./dev, which the tests run under, is left out."""
import os
import sys
import tempfile
import unittest

from local_job import TREE, on_host
from readme import commands


class Readme(unittest.TestCase):
    def test_commands_of_local_mode(self):
        typed = [c for heading in ("Run your own", "What would it do with my job?") for c in commands(heading) if not c.startswith("./dev ")]
        self.assertEqual(len(typed), 3, typed)
        # Not in the tree itself, so that the files they write don't stay there.
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            for name in ("build", "examples"):
                os.symlink(TREE / name, os.path.join(folder, name))
            for command in typed:
                with self.subTest(command):
                    done = on_host("bash", "-c", f"cd {folder} && {command}", timeout=420)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual({"run.jsonl", "run.svg"}, {f for f in os.listdir(folder) if f.startswith("run.")})


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
