#!/usr/bin/env python3
"""Files on a volume that ranks share run ahead of a checkpoint set; ranks that go back to it find them as they were, or the set is
refused by name: real pods, Open MPI and criu."""
import array
import os
import pathlib
import re
import shutil
import tempfile
import unittest

from failure_matrix_test import command_of, descendants
from local_job import TOLD, LocalJob, kill, wait_for

RANKS = 2


class SharedFiles(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="bsp-e2e-shared-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.volume = pathlib.Path(self.directory) / "volume"
        self.volume.mkdir()
        os.chmod(self.directory, 0o755)
        os.chmod(self.volume, 0o777)

    def start(self, name, how, files="Check"):
        return LocalJob(f"e2e-shared-{name}", ["shared_files", how, "/data", TOLD], ranks=RANKS, pools="slow=2x0.4,fast=2x0.4", backoff=2,
                        spec=f"checkpoint: {{interval: 1h, sharedFiles: {files}}}", volume=self.volume,
                        checkpoints=str(pathlib.Path(self.directory) / "sets"))

    def stores_set(self, run):
        run.wait_for_superstep(3)
        made = run.local("checkpoint", "--wait")
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr + run.output.read_text())

    def loses_rank(self, run, rank):
        """Once files are ahead of the newest set."""
        run.wait_for_superstep(run.job()["checkpoint"]["superstep"] + 5)
        init = int(run.container_of(rank, "{{.Pid}}"))
        program, = [pid for pid in descendants(init)[1:] if command_of(pid).startswith("shared_files")]
        attempt = run.job().get("attempt", 0)
        kill(program)
        wait_for("the next attempt", lambda: run.ended() or
                 (run.job().get("attempt", 0) > attempt and run.job()["phase"] == "Running"), 300, lambda: run.output.read_text())
        self.assertFalse(run.ended(), run.output.read_text())

    def events(self, run, reason):
        return [event.get("message", event.get("note", "")) for event in run.objects("Event").values() if event["reason"] == reason]

    def ends_with_whole_files(self, run):
        run.wait_for_superstep(run.job().get("superstep", 0) + 3)
        run.tell()
        status, output = run.wait()
        self.assertEqual(status, 0, output)
        supersteps = int(re.search(r"OK shared (\d+)", "\n".join(run.summary()["rank0_output"])).group(1))
        lines = [str(s) for s in range(supersteps)]
        for name in ("appended", "plain", "closed"):
            for rank in range(RANKS):
                self.assertTrue((self.volume / f"{name}-{rank}").read_text().split("\n")[:-1] == lines, f"{name}-{rank}")
        records = array.array("l", (self.volume / "records").read_bytes())
        self.assertTrue(list(records) == list(range(RANKS * supersteps)), "records of MPI_File")
        return output

    def test_what_was_appended_is_written_once(self):
        with self.start("append", "append") as run:
            for loss in range(2):
                self.stores_set(run)
                self.loses_rank(run, loss)
                self.assertEqual(run.job()["checkpoint"].get("restored"), loss + 1, run.output.read_text())
            said = " ".join(self.events(run, "SharedFiles"))
            for name in ("appended-0", "plain-1", "closed-1", "records"):
                self.assertRegex(said, rf"/data/{name} to \d+ bytes")
            self.ends_with_whole_files(run)

    def test_a_file_rewritten_in_place_is_named_and_the_set_refused(self):
        with self.start("rewrite", "rewrite") as run:
            aside = self.volume / "aside"  # rank 0 notes it, and is content with all that it has itself
            aside.write_text("one\n")
            aside.chmod(0o666)
            self.stores_set(run)
            with aside.open("a") as grown:
                grown.write("two\n")
            self.loses_rank(run, 1)
            wait_for("the beginning", lambda: run.ended() or
                     ("restored" not in run.job()["checkpoint"] and run.job()["phase"] == "Running"), 300, lambda: run.output.read_text())
            refused = " ".join(self.events(run, "SetUnusable"))
            self.assertRegex(refused, r"/data/state-1, on a shared volume, was rewritten in place .*sharedFiles: Ignore")
            self.assertEqual(aside.read_text(), "one\ntwo\n", "nothing is cut off for a set that a rank refuses")
            self.ends_with_whole_files(run)

    def test_files_that_are_ignored_stay_as_they_are(self):
        with self.start("ignore", "rewrite", files="Ignore") as run:
            self.stores_set(run)
            superstep = run.job()["checkpoint"]["superstep"]
            self.loses_rank(run, 1)
            self.assertEqual(run.job()["checkpoint"].get("restored"), 1, run.output.read_text())
            run.wait_for_superstep(superstep + 10)
            run.tell()
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            appended = (self.volume / "appended-0").read_text().split("\n")[:-1]
            self.assertGreater(len(appended), len(set(appended)), "supersteps after the set are in it twice")


if __name__ == "__main__":
    unittest.main(verbosity=2)
