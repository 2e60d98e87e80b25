#!/usr/bin/env python3
"""A job that loses ranks goes on from its checkpoint sets: real pods, Open MPI and criu."""
import pathlib
import shutil
import tempfile
import unittest

from failure_matrix_test import command_of, descendants
from local_job import LocalJob, kill, until_told, wait_for

INTERVAL = "checkpoint: {interval: 2s}"


class Checkpoints(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="bsp-e2e-sets-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.sets = str(pathlib.Path(self.directory) / "sets")

    def newest(self, run):
        return run.job().get("checkpoint", {}).get("superstep", 0)

    def wait_for_set(self, run, after):
        return wait_for("a checkpoint set", lambda: run.ended() or self.newest(run) > after and self.newest(run), 120,
                        lambda: f"{run.job().get('checkpoint')}\n{run.output.read_text()}")

    def wait_for_attempt(self, run, attempt):
        wait_for(f"attempt {attempt}", lambda: run.ended() or
                 (run.job().get("attempt") == attempt and run.job()["phase"] == "Running"), 300, lambda: run.output.read_text())
        self.assertFalse(run.ended(), run.output.read_text())

    def kill_program(self, run, rank):
        init = int(run.container_of(rank, "{{.Pid}}"))
        program, = [pid for pid in descendants(init)[1:] if command_of(pid).startswith("lattice")]
        kill(program)

    def test_killed_ranks_cost_no_more_than_an_interval(self):
        command = until_told()
        # More losses than backoffLimit allows attempts without progress.
        with LocalJob("e2e-sets", command, ranks=4, pools="slow=4x0.3,fast=4x0.3", backoff=1, spec=INTERVAL,
                      checkpoints=self.sets) as run:
            stored = 0
            for loss in range(3):
                stored = self.wait_for_set(run, stored)
                self.assertFalse(run.ended(), run.output.read_text())
                self.kill_program(run, rank=loss)
                self.wait_for_attempt(run, loss + 1)
                self.assertIn("restored", run.job()["checkpoint"], "it went on from a set")
            run.wait_for_superstep(stored + 5)
            kept = [path for path in pathlib.Path(self.sets).glob("*/set-*")]
            self.assertLessEqual(len(kept), 7, "keep, one that is spared, what these build on, one that is being stored, and one that is being removed")
            for image in pathlib.Path(self.sets).glob("*/set-*/rank-*"):
                self.assertNotIn(b"lattice", image.read_bytes()[4096:])
            run.end_well(command)
            self.assertEqual(run.leftovers(), [])

    def test_a_lost_node_costs_no_more_than_an_interval(self):
        command = until_told()
        with LocalJob("e2e-lost", command, ranks=4, pools="slow=4x0.3,fast=4x0.3", backoff=1, spec=INTERVAL,
                      checkpoints=self.sets) as run:
            self.wait_for_set(run, 0)
            self.assertFalse(run.ended(), run.output.read_text())
            run.kill_pods([rank["pod"] for rank in run.job()["ranks"][:2]])
            self.wait_for_attempt(run, 1)
            self.assertIn("restored", run.job()["checkpoint"])
            run.end_well(command)

    def test_a_set_that_is_asked_for_is_listed(self):
        command = until_told()
        with LocalJob("e2e-asked", command, ranks=2, pools="slow=2x0.4,fast=2x0.4", backoff=1, spec="checkpoint: {interval: 1h}",
                      checkpoints=self.sets) as run:
            run.wait_for_superstep(5)
            self.assertIn("has no checkpoint set yet", run.local("checkpoints").stdout)
            made = run.local("checkpoint", "--wait")
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertRegex(made.stdout, r"checkpoint set 1 of superstep \d+ stored: ")
            head, row = run.local("checkpoints").stdout.splitlines()
            self.assertEqual((head.split()[:2], row.split()[0], row.split()[-1]), (["SET", "SUPERSTEP"], "1", "stored"))
            self.kill_program(run, rank=1)
            self.wait_for_attempt(run, 1)
            self.assertEqual(run.job()["checkpoint"]["restored"], 1)
            self.assertIn("this attempt began with it", run.local("checkpoints").stdout)
            run.end_well(command)

    def test_a_job_that_was_stopped_is_resumed_elsewhere(self):
        command = until_told()
        with LocalJob("e2e-stopped", command, ranks=2, pools="slow=2x0.4,fast=2x0.4", spec="checkpoint: {interval: 1h}",
                      checkpoints=self.sets) as run:
            run.wait_for_superstep(5)
            made = run.local("checkpoint", "--wait")
            self.assertEqual(made.returncode, 0, made.stderr)
            stored = self.newest(run)
            run.process.terminate()
            _, output = run.wait()
            self.assertIn(f"local resume {self.sets}", output)
        kept, = pathlib.Path(self.sets).glob("*.job")
        self.assertEqual(kept.stat().st_mode & 0o77, 0, "it holds the seed of the keys")
        # In another namespace, as on another machine that mounts the directory.
        with LocalJob("e2e-resumed", command, ranks=2, pools="slow=2x0.4,fast=2x0.4", checkpoints=self.sets, resumes=True) as run:
            run.wait_for_superstep(stored + 3)
            self.assertFalse(run.ended(), run.output.read_text())
            self.assertEqual(run.job()["checkpoint"]["restored"], 1)
            self.assertEqual(run.local("checkpoint", "--wait").returncode, 0)
            run.end_well(command)
        self.assertEqual(list(pathlib.Path(self.sets).iterdir()), [], "a job that has succeeded needs no sets")

    def test_a_damaged_set_is_left_for_the_one_before(self):
        command = until_told()
        with LocalJob("e2e-damaged", command, ranks=2, pools="slow=2x0.4,fast=2x0.4", backoff=1, spec=INTERVAL,
                      checkpoints=self.sets) as run:
            self.wait_for_set(run, self.wait_for_set(run, 0))
            self.assertFalse(run.ended(), run.output.read_text())
            # Rank 0's bytes under rank 1's name, in the newest of them.
            newest = max(pathlib.Path(self.sets).glob("*/set-*"), key=lambda path: int(path.name.split("-")[1]))
            wait_for("both images", lambda: len(list(newest.glob("rank-*"))) == 2)
            (newest / "rank-1").write_bytes((newest / "rank-0").read_bytes())
            self.kill_program(run, rank=0)
            wait_for("a rank that computes again", lambda: run.ended() or
                     (run.job().get("attempt", 0) >= 1 and run.job()["phase"] == "Running"), 300, lambda: run.output.read_text())
            run.end_well(command)

    def files(self, number):
        return sorted(pathlib.Path(self.sets).glob(f"*/set-{number}/rank-*"))

    def make_sets(self, run, count):
        run.wait_for_superstep(5)
        for _ in range(count):
            made = run.local("checkpoint", "--wait")
            self.assertEqual(made.returncode, 0, made.stderr)

    def test_a_set_that_builds_on_another_is_restored(self):
        command = until_told(more=["--ballast", "24"])
        with LocalJob("e2e-bases", command, ranks=2, pools="slow=2x0.4,fast=2x0.4", backoff=1, spec="checkpoint: {interval: 1h}",
                      checkpoints=self.sets) as run:
            self.make_sets(run, 3)
            self.assertEqual([one.get("base", 0) for one in run.job()["checkpoint"]["sets"]], [1, 1])
            first, second, third = (sum(file.stat().st_size for file in self.files(number)) for number in (1, 2, 3))
            self.assertEqual(run.job()["checkpoint"]["sets"][-1]["storedBytes"], third)
            self.assertLess(max(second, third), first / 2)
            self.assertRegex(run.local("checkpoints").stdout, r"3 .*stored; [\d.e+]+ MB, the rest is in set 1\n")
            self.kill_program(run, rank=1)
            self.wait_for_attempt(run, 1)
            self.assertEqual(run.job()["checkpoint"]["restored"], 3)
            # The next attempt's sidecars know nothing of set 1, which stays all the same as long as set 3 does.
            self.make_sets(run, 1)
            self.assertEqual([one.get("base", 0) for one in run.job()["checkpoint"]["sets"]], [1, 0])
            self.assertEqual(len(self.files(1)), 2)
            self.make_sets(run, 1)
            wait_for("set 1 to go", lambda: not self.files(1), 60, lambda: str(list(pathlib.Path(self.sets).rglob("*"))))
            run.end_well(command)

    def test_what_builds_on_a_damaged_set_is_left_for_the_one_before(self):
        command = until_told(more=["--ballast", "24"])
        with LocalJob("e2e-lost-base", command, ranks=2, pools="slow=2x0.4,fast=2x0.4", backoff=4,
                      spec="checkpoint: {interval: 1h, keep: 3}", checkpoints=self.sets) as run:
            self.make_sets(run, 1)
            self.kill_program(run, rank=0)
            self.wait_for_attempt(run, 1)
            self.make_sets(run, 8)  # 2 to 9
            self.make_sets(run, 1)
            self.assertEqual([(one["id"], one.get("base", 0)) for one in run.job()["checkpoint"]["sets"]], [(8, 0), (9, 0), (10, 9)])
            with open(self.files(9)[1], "r+b") as base:
                base.seek(5_000_000)
                byte = base.read(1)[0]
                base.seek(5_000_000)
                base.write(bytes([byte ^ 1]))
            self.kill_program(run, rank=0)
            wait_for("an attempt from set 8", lambda: run.ended() or
                     (run.job()["checkpoint"].get("restored") == 8 and run.job()["phase"] == "Running"), 240,
                     lambda: run.output.read_text())
            self.assertFalse(run.ended(), run.output.read_text())
            why = {one["id"]: one.get("unusable", "") for one in run.job()["checkpoint"]["sets"]}
            self.assertIn("the image of set 9, which it builds on: the stored image is damaged", why[10])
            self.assertIn("the stored image is damaged", why[9])
            run.end_well(command)


if __name__ == "__main__":
    unittest.main(verbosity=2)
