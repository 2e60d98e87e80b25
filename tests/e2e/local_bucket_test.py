#!/usr/bin/env python3
"""Checkpoint sets in a bucket of a real S3 server: a job that has lost a node goes on from them, whatever the server does meanwhile."""
import json
import os
import pathlib
import unittest

import bucket
from bucket import ACCESS_KEY, SECRET_KEY, BucketServer
from local_job import LocalJob, field_of, on_host, sequential_field, until_told, wait_for

SECRETS = (ACCESS_KEY, SECRET_KEY)


class Bucket(unittest.TestCase):
    def setUp(self):
        self.server = BucketServer()
        self.addCleanup(self.server.close)
        os.environ.update(bucket.ENVIRONMENT)
        for name in bucket.ENVIRONMENT:
            self.addCleanup(os.environ.pop, name, None)

    def job(self, name, **more):
        spec = {"interval": "2s", "storage": {"s3": self.server.source()}}
        return LocalJob(name, until_told(), ranks=4, pools="slow=4x0.3,fast=4x0.3", backoff=1, spec=f"checkpoint: {json.dumps(spec)}", **more)

    def status(self, run):
        return run.job().get("checkpoint", {})

    def wait_for_set(self, run, after=0):
        return wait_for("a checkpoint set", lambda: run.ended() or max(self.status(run).get("superstep", 0) - after, 0), 300,
                        lambda: f"{self.status(run)}\n{run.output.read_text()}")

    def check_result(self, run):
        run.tell()
        status, output = run.wait()
        self.assertEqual(status, 0, output)
        log = "\n".join(run.summary()["rank0_output"])
        self.assertEqual(field_of(log), sequential_field(until_told(), log), output)
        for secret in SECRETS:
            self.assertNotIn(secret, output)

    def check_sealed(self):
        images = self.server.images()
        self.assertTrue(images)
        for path in (path for paths in images.values() for path in paths):
            content = path.read_bytes()
            self.assertTrue(content.startswith(b"bspset1\n"))
            self.assertNotIn(b"lattice", content[4096:])
            for secret in SECRETS:
                self.assertNotIn(secret.encode(), content)

    def check_credentials(self, run):
        """Nobody but the sidecars has them: no command line, no variable and no file of a program."""
        names = run.containers("{{.Names}}")
        inspected = on_host("podman", "inspect", *names).stdout
        for secret in SECRETS:
            self.assertNotIn(secret, inspected)
        app = run.container_of(0)
        for what in ("cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline", "cat /run/bsp-s3/*", "cat /proc/mounts"):
            seen = on_host("podman", "exec", "-u", "0", app, "sh", "-c", what).stdout
            for secret in (*SECRETS, "bsp-s3"):
                self.assertNotIn(secret, seen, what)

    def test_a_lost_node_costs_no_more_than_an_interval(self):
        with self.job("e2e-bucket") as run:
            self.wait_for_set(run)
            self.assertFalse(run.ended(), run.output.read_text())
            self.check_credentials(run)
            run.kill_pods([rank["pod"] for rank in run.job()["ranks"][:2]])
            wait_for("attempt 1", lambda: run.ended() or (run.job().get("attempt") == 1 and run.job()["phase"] == "Running"), 300,
                     lambda: run.output.read_text())
            self.assertFalse(run.ended(), run.output.read_text())
            self.assertIn("restored", self.status(run))
            self.wait_for_set(run, self.status(run)["superstep"])
            self.check_sealed()
            self.assertLessEqual(len(self.server.images()), 7,
                                 "keep, one that is spared, what these build on, one that is being stored, and one that is being removed")
            self.check_result(run)

    def test_a_server_that_is_away_costs_only_sets(self):
        with self.job("e2e-away") as run:
            stored = self.wait_for_set(run)
            self.server.stop()
            message = wait_for("the failure", lambda: run.ended() or "was not stored" in self.status(run).get("message", "") and
                               self.status(run)["message"], 300, lambda: run.output.read_text())
            self.assertFalse(run.ended(), run.output.read_text())
            self.assertIn(f"s3://sets/team at {self.server.endpoint}", message)
            self.assertRegex(message, "start the server|see whether pods reach the server")  # the node's outlet may answer for it
            kept = self.status(run)["superstep"]
            self.assertGreaterEqual(kept, stored, "the older sets stay")
            run.wait_for_superstep(run.job()["superstep"] + 5)  # no rank waits for it
            self.server.start()
            self.wait_for_set(run, kept)
            self.assertFalse(run.ended(), run.output.read_text())
            self.check_result(run)

    def test_bytes_of_another_rank_are_left_for_the_set_before(self):
        with self.job("e2e-exchanged") as run:
            self.wait_for_set(run, self.wait_for_set(run))
            self.assertFalse(run.ended(), run.output.read_text())
            # As a person with write access to the bucket would.
            newest = max(entry["id"] for entry in self.status(run)["sets"])
            directory = self.server.images()[newest][0].parent
            (directory / "rank-1").write_bytes((directory / "rank-0").read_bytes())
            victim = run.container_of(0)
            on_host("podman", "kill", victim)
            wait_for("a rank that computes again", lambda: run.ended() or
                     (run.job().get("attempt", 0) >= 1 and run.job()["phase"] == "Running"), 300, lambda: run.output.read_text())
            self.assertFalse(run.ended(), run.output.read_text())
            self.check_result(run)

    def test_a_job_that_was_stopped_is_resumed_from_the_bucket(self):
        command, state = until_told(), self.server.directory / "state"
        for name, value in {"AWS_ENDPOINT_URL": self.server.endpoint, "XDG_STATE_HOME": str(state)}.items():
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name, None)
        options = {"ranks": 2, "pools": "slow=2x0.4,fast=2x0.4", "checkpoints": "s3://sets/team"}
        with LocalJob("e2e-s3-stopped", command, spec="checkpoint: {interval: 1h}", **options) as run:
            run.wait_for_superstep(5)
            made = run.local("checkpoint", "--wait")
            self.assertEqual(made.returncode, 0, made.stderr)
            stored = self.status(run)["superstep"]
            run.process.terminate()
            _, output = run.wait()
            self.assertIn("local resume s3://sets/team", output)
        self.check_sealed()
        kept, = state.rglob("*.job")
        self.assertEqual(kept.stat().st_mode & 0o77, 0, "it holds the seed of the keys")
        self.assertFalse(any("job" in path.suffix for path in self.server.files.rglob("*")), "the bucket's readers would have it")
        for secret in SECRETS:
            self.assertNotIn(secret, kept.read_text())
        another = self.server.files / "team/another/set-1/rank-0"  # somebody else's
        another.parent.mkdir(parents=True)
        another.write_bytes(b"bspset1\n")
        with LocalJob("e2e-s3-resumed", command, resumes=True, **options) as run:
            run.wait_for_superstep(stored + 3)
            self.assertFalse(run.ended(), run.output.read_text())
            self.assertEqual(run.job()["checkpoint"]["restored"], 1)
            self.assertEqual(run.local("checkpoint", "--wait").returncode, 0)
            output = run.end_well(command)
            self.assertNotIn("left in", output)
        self.assertEqual([path for paths in self.server.images().values() for path in paths], [another],
                         "a job that has succeeded needs no sets")
        self.assertEqual(list(state.rglob("*.job")), [])

    def test_keys_are_needed(self):
        os.environ.pop("AWS_SECRET_ACCESS_KEY")
        with self.job("e2e-keyless") as run:
            status, output = run.wait()
            self.assertNotEqual(status, 0)
            self.assertIn("spec.checkpoint.storage.s3.credentialsSecret: set AWS_SECRET_ACCESS_KEY in the environment", output)

    def test_a_place_that_is_none_is_refused(self):
        for place, why in {"gs://sets": "must be a directory or s3://BUCKET[/PREFIX]", "s3://": "must be s3://BUCKET[/PREFIX]",
                           "s3://sets": "set AWS_ENDPOINT_URL in the environment"}.items():
            with self.subTest(place), LocalJob("e2e-no-place", until_told(), checkpoints=place) as run:
                status, output = run.wait()
                self.assertNotEqual(status, 0)
                self.assertIn(why, output)


if __name__ == "__main__":
    bucket.need_server()
    unittest.main(verbosity=2)
