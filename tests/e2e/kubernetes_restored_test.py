#!/usr/bin/env python3
"""Jobs that begin with another job's checkpoint set, in a real cluster: one of another namespace, with its consent, and one of a cluster that is
gone: an exported set, after the job, its namespace and the seed of the operator's keys have been removed.

The storage is a directory that all nodes share (tests/cluster)."""
import base64
import re
import sys
import unittest

import cluster_job
from cluster_job import Namespace, bsp_job, get_object, job_of, kubectl, shared_directory, until_told, wait_for
from kubernetes_plugin_test import bsp
from kubernetes_run_test import InANamespace

SHARED = "e2e-restored"


class Restored(InANamespace):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.here = shared_directory(cls, SHARED)

    def manifest(self, name, checkpoint=None, **spec):
        return bsp_job(name, until_told(), ranks=2, sets={"names": ["fast"]},
                       checkpoint={"interval": "1h", "storage": {"hostPath": {"path": f"/opt/cluster/shared/{SHARED}"}}, **(checkpoint or {})}, **spec)

    def stores(self, job, at):
        """The superstep of a set that is made when the job has reached that one."""
        job.wait_for_superstep(at)
        bsp("checkpoint", job.name, "--wait", "-n", job.namespace.name)
        return job.status()["checkpoint"]["superstep"]

    def went_on(self, job, stored):
        told = wait_for("the event ResumedFrom", lambda: dict(job.namespace.events(job.name)).get("ResumedFrom"), 180, detail=job.summary)
        self.assertIn(f"made after superstep {stored} ", told)
        job.wait_for_superstep(stored + 3)

    def waits_for_source(self, job):
        status = job.status()
        return status.get("message") if status.get("reason") == "WaitingForSource" else None

    def ends_right(self, job):
        job.tell()
        self.check_succeeded(job, until_told())

    def test_a_job_of_another_namespace_needs_consent(self):
        with Namespace("e2e-restored-b") as other, job_of(self.space, self.manifest("first")) as first:
            stored = self.stores(first, 10)
            wanted = {"job": "first", "namespace": self.space.name}
            with job_of(other, self.manifest("second", restoreFrom=wanted)) as second:
                told = wait_for("the reason WaitingForSource", lambda: self.waits_for_source(second), 60, detail=second.summary)
                self.assertIn(f"there is no job first in namespace {self.space.name} whose spec.checkpoint.allowedNamespaces names {other.name}", told)
                self.assertEqual(second.pods(), {})
                self.space.kubectl("patch", "bspjob", "first", "--type=merge", "-p", f'{{"spec": {{"checkpoint": {{"allowedNamespaces": ["{other.name}"]}}}}}}')
                self.went_on(second, stored)
                self.ends_right(first)
                # Nobody takes it away from who has begun with it.
                first.delete("--wait=false")
                told = wait_for("the condition SetsNotRemoved", lambda: first.condition("SetsNotRemoved").get("message"), 100, detail=first.summary)
                self.assertIn(f"job {other.name}/second goes on from them", told)
                for more in (5, 10):  # as many as it keeps
                    self.stores(second, stored + more)
                wait_for("the first job to go", lambda: first.object() is None, 100, detail=first.summary)
                self.ends_right(second)

    def exports(self, job):
        """{path: text} of the Secret, and what the job that begins with it has to name."""
        text = bsp("checkpoints", job.name, "-n", job.namespace.name, "--export").stdout
        exported = re.search(r"^# +exported: (\S+)$", text, re.MULTILINE).group(1)
        secret = re.search(r"^  name: (\S+)$", text, re.MULTILINE).group(1)
        return text, {"keySecret": secret, "exported": exported}

    def seed(self):
        """Of what the operator's keys are derived; None: the first job that needs it makes it."""
        name, space = cluster_job.release()
        return (get_object(f"/api/v1/namespaces/{space}/secrets/{name}-authority") or {}).get("data", {}).get("seed")

    def loses_its_seed(self):
        name, space = cluster_job.release()
        replicas = str(get_object(f"/apis/apps/v1/namespaces/{space}/deployments/{name}")["spec"]["replicas"])
        kubectl("scale", "-n", space, f"deployment/{name}", "--replicas=0")
        try:
            wait_for("the operator to end", lambda: not cluster_job.operator_pods(), 120)
            kubectl("delete", "-n", space, f"secret/{name}-authority")
        finally:
            kubectl("scale", "-n", space, f"deployment/{name}", f"--replicas={replicas}")
        kubectl("rollout", "status", "-n", space, f"deployment/{name}", "--timeout=170s")

    def test_an_exported_set_outlives_its_cluster(self):
        with Namespace("e2e-restored-gone") as gone:
            with job_of(gone, self.manifest("kept", {"reclaimPolicy": "Retain"})) as job:
                stored = self.stores(job, 10)
                secret, restore_from = self.exports(job)
                uid = job.object()["metadata"]["uid"]
        before = self.seed()
        self.assertTrue(before)
        self.loses_its_seed()
        self.assertTrue(list((self.here / uid).glob("set-1/rank-*")), "they stay")
        # With a key that is none of this set's.
        wrong = re.sub(r"^(  \S+): \S+=$", lambda m: f"{m[1]}: {base64.b64encode(bytes(32)).decode()}", secret, count=1, flags=re.MULTILINE)
        self.assertNotEqual(wrong, secret)
        self.space.kubectl("apply", "-f", "-", text=wrong)
        with job_of(self.space, self.manifest("wrong", restoreFrom=restore_from)) as job:
            status = job.ended(240)
            self.assertEqual((status["phase"], status["reason"]), ("Failed", "SetUnusable"), job.summary())
        self.assertNotIn(self.seed(), (None, before))
        self.space.kubectl("apply", "-f", "-", text=secret)
        with job_of(self.space, self.manifest("again", restoreFrom=restore_from)) as job:
            self.went_on(job, stored)
            made = self.stores(job, stored + 5)
            self.assertGreater(made, stored)
            self.ends_right(job)
        self.assertTrue(list((self.here / uid).glob("set-1/rank-*")), "they are the other job's")


if __name__ == "__main__":
    cluster_job.need_cluster()
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
