#!/usr/bin/env python3
"""The auditor finds forged double runs, and nothing after a move or a restart; with real processes too."""
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import audit

STAMPER = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None
MS = 1_000_000


def copy(pod, start, end, rank=0, superstep=0, pid=300, every=10):
    """A stamp every `every` ms, a superstep every 100 ms."""
    return [f"{ms * MS} {rank} {pod} {pid} {superstep + (ms - start) // 100}\n" for ms in range(start, end + 1, every)]


def findings(*copies):
    return audit.findings(audit.read([line for lines in copies for line in lines]))


class Findings(unittest.TestCase):
    def test_consecutive_copies_are_valid(self):
        self.assertEqual(findings(copy("r0-g0", 0, 500), copy("r0-g1", 510, 900, superstep=5),
                                  copy("r1-g0", 0, 900, rank=1)), [])

    def test_restarted_job_is_valid(self):
        self.assertEqual(findings(copy("r0-g0", 0, 500), copy("r0-g1", 600, 900)), [])

    def test_a_double_run_of_50_ms_is_found(self):
        found = findings(copy("r0-g0", 0, 550), copy("r0-g1", 500, 900, superstep=5))
        self.assertEqual(len(found), 1)
        self.assertIn("rank 0 ran twice for 50.0 ms: in r0-g0", found[0])

    def test_a_single_stamp_of_a_second_copy_is_found(self):
        self.assertEqual(len(findings(copy("r0-g0", 0, 900), copy("r0-g1", 505, 505))), 1)

    def test_a_stamp_of_the_source_after_the_target_began_is_found(self):
        self.assertEqual(len(findings(copy("r0-g0", 0, 500), copy("r0-g1", 600, 900, superstep=5), copy("r0-g0", 700, 700))), 1)

    def test_copy_overlapping_the_last_but_one_is_found(self):
        self.assertEqual(len(findings(copy("r0-g0", 0, 900), copy("r0-g1", 100, 200), copy("r0-g2", 300, 400))), 2)

    def test_two_processes_in_one_pod_are_two_copies(self):
        self.assertEqual(len(findings(copy("r0-g0", 0, 500), copy("r0-g0", 100, 300, pid=301))), 1)

    def test_repeated_superstep_is_found(self):
        found = findings(copy("r0-g0", 0, 500), copy("r0-g1", 600, 900, superstep=3))
        self.assertIn("computed again from superstep 3 in r0-g1, having reached 5", found[0])

    def test_a_torn_line_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "line 2 is not a stamp"):
            audit.read(["1 0 r0-g0 300 0\n", "2 0 r0-g0 30"])


@unittest.skipUnless(STAMPER, "needs the stamper's path as first argument")
class RealProcesses(unittest.TestCase):
    def run_copies(self, overlap):
        with tempfile.NamedTemporaryFile("r", prefix="bsp-audit-") as file:
            def start(pod):
                before = pathlib.Path(file.name).stat().st_size
                process = subprocess.Popen([STAMPER, file.name, "0", pod])
                while pathlib.Path(file.name).read_text()[before:].count(f" {pod} ") < 3:
                    time.sleep(0.001)
                return process
            first = start("r0-g0")
            if not overlap:  # like a source before its target runs
                first.send_signal(signal.SIGSTOP)
                while pathlib.Path(f"/proc/{first.pid}/stat").read_text().rsplit(")")[1].split()[0] != "T":
                    time.sleep(0.001)
            second = start("r0-g1")
            for process in (first, second):
                process.kill()
                process.wait()
            return audit.main([file.name])

    def test_two_at_the_same_time_are_found(self):
        self.assertEqual(self.run_copies(overlap=True), 1)

    def test_copy_stopped_before_the_other_starts_is_valid(self):
        self.assertEqual(self.run_copies(overlap=False), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
