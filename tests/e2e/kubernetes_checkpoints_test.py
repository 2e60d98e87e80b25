#!/usr/bin/env python3
"""Checkpoint sets in a claim of a real cluster: a job that has lost a node goes on from the newest, and one that was suspended goes on in
another pool.

The claim is bound to a hostPath volume of a StorageClass without provisioner; its directory is /opt/cluster/shared on all nodes
(tests/cluster), so all of them can mount it at once, as an NFS export. The kubelet gives no group a hostPath, so the directory belongs to the
sidecars' user, as docs/checkpoints.md says."""
import pathlib
import sys
import unittest

import cluster_job
from cluster_job import SIDECARS, bsp_job, columns, job_of, kubectl, node_sh, shared_directory, until_told, wait_for
from kubernetes_plugin_test import bsp
from kubernetes_run_test import InANamespace

CLASS = "e2e-sets"


class Checkpoints(InANamespace):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.here = shared_directory(cls, CLASS)
        cls.space.apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": CLASS},
                         "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "Immediate"},
                        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": CLASS},
                         "spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": CLASS,
                                  "persistentVolumeReclaimPolicy": "Retain",
                                  "hostPath": {"path": f"/opt/cluster/shared/{CLASS}", "type": "Directory"}}})
        cls.addClassCleanup(kubectl, "delete", "storageclass/" + CLASS, "persistentvolume/" + CLASS, "--ignore-not-found", "--wait=false")
        cls.space.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "sets"},
                         "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": CLASS,
                                  "resources": {"requests": {"storage": "2Gi"}}}})
        wait_for("the claim", lambda: cls.space.objects("persistentvolumeclaims")["sets"]["status"].get("phase") == "Bound")

    def manifest(self, name, interval, ranks, **spec):
        return bsp_job(name, until_told(), ranks=ranks, rescheduling={"mode": "Off"},
                       checkpoint={"interval": interval, "storage": {"persistentVolumeClaim": {"claimName": "sets"}}}, **spec)

    def wait_for_set(self, job, after=0):
        return job.wait("a checkpoint set", lambda s: job.alive(s).get("checkpoint", {}).get("superstep", 0) > after, 180)["checkpoint"]["superstep"]

    def wait_for_resumption(self, job):
        """The event, which is written after the job's status."""
        return wait_for("the event ResumedFrom", lambda: dict(self.space.events(job.name)).get("ResumedFrom"), 60, detail=job.summary)

    def check_sealed(self):
        images = list(pathlib.Path(self.here).glob("*/set-*/rank-*"))
        self.assertTrue(images)
        for image in images:
            self.assertEqual(image.stat().st_uid, SIDECARS)
            self.assertNotIn(b"lattice", image.read_bytes()[4096:])

    def test_a_lost_node_costs_no_more_than_an_interval(self):
        with job_of(self.space, self.manifest("lost", "10s", 4, sets={"names": ["fast"]}, runPolicy={"backoffLimit": 1})) as job:
            stored = self.wait_for_set(job)
            self.check_sealed()
            row, = columns(self.space.kubectl("get", "bspjobs", "-o", "wide").stdout)
            self.assertGreaterEqual(int(row["SAVED"]), stored)
            node = job.status()["ranks"][1]["node"]
            self.addCleanup(node_sh, "start", node)
            node_sh("kill", node)
            status = job.wait("the next attempt", lambda s: job.alive(s).get("attempt", 0) == 1 and s["phase"] == "Running", 300)
            self.assertNotIn(node, [place["node"] for place in status["ranks"]])
            print(f"set of superstep {stored} at least, node {node} lost: {self.wait_for_resumption(job)}", flush=True)
            job.wait_for_superstep(stored + 5)
            job.tell()
            self.check_succeeded(job, until_told())
            sets = self.here / job.object()["metadata"]["uid"]
            self.assertTrue(sets.exists(), "they stay until the job is deleted")
            job.delete("--timeout=150s")
            self.assertFalse(sets.exists(), "they go with it")
            self.assertNotIn("SetsLeft", dict(self.space.events("lost")))

    def test_a_suspended_job_goes_on_in_another_pool(self):
        with job_of(self.space, self.manifest("held", "1h", 2, sets={"names": ["fast", "medium"]}, initialMapping="Contiguous")) as job:
            status = job.wait_for_superstep(10)
            self.assertEqual({place["set"] for place in status["ranks"]}, {"fast"}, "they start in the first Set")
            self.space.kubectl("patch", "bspjob", "held", "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": true}}}')
            status = job.wait_for_phase("Suspended", seconds=150)
            stored = status["checkpoint"]["superstep"]
            self.assertGreaterEqual(stored, 10)
            self.assertIn(f"it goes on from checkpoint set 1, which was made after superstep {stored}", status["message"])
            wait_for("the pods to go", lambda: not job.pods())
            fast = [name for name in kubectl("get", "nodes", "-o", "name").stdout.split() if "/fast-" in name]
            self.addCleanup(kubectl, "uncordon", *fast)
            kubectl("cordon", *fast)
            self.space.kubectl("patch", "bspjob", "held", "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": false}}}')
            status = job.wait_for_phase("Running", seconds=180)
            self.assertEqual({place["set"] for place in status["ranks"]}, {"medium"})
            self.wait_for_resumption(job)
            # As a person asks for one, and sees it.
            made = bsp("checkpoint", "held", "--wait", "-n", self.space.name)
            self.assertIn("checkpoint set 2 of superstep", made.stdout)
            rows = columns(bsp("checkpoints", "held", "-n", self.space.name).stdout)
            self.assertEqual([(row["SET"], row["STATE"].split(";")[0]) for row in rows], [("2", "stored"), ("1", "stored")])
            self.assertGreaterEqual(int(rows[0]["SUPERSTEP"]), stored)
            job.tell()
            self.check_succeeded(job, until_told())


if __name__ == "__main__":
    cluster_job.need_cluster()
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2)
