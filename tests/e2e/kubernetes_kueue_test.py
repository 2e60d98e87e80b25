#!/usr/bin/env python3
"""Jobs that a real Kueue admits and evicts. Skipped where the cluster has none: ./dev cluster up installs none."""
import re
import sys
import unittest

import cluster_job
from cluster_job import ClusterJob, Namespace, api, bsp_job, field_of, get_object, job_of, kubectl, lattice_boltzmann, sequential_field, until_told, wait_for

API = "/apis/kueue.x-k8s.io/v1beta2"
POOL = "cloud.google.com/gke-nodepool"
QUEUE = "e2e-queue"
SHORT, LONG = lattice_boltzmann(100), until_told()


def need_kueue():
    if api().ask("GET", API)[0] != 200:
        cluster_job.skip(f"the cluster has no Kueue with the API {API}")


def of_kueue(kind, name, spec):
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}


def cluster_queue(**spec):
    """Of each Set, quota for one job of two ranks, with their sidecars."""
    flavors = [{"name": f"e2e-{pool}", "resources": [{"name": "cpu", "nominalQuota": "300m"}, {"name": "memory", "nominalQuota": "1Gi"}]}
               for pool in ("fast", "slow")]
    return of_kueue("ClusterQueue", QUEUE, {"namespaceSelector": {}, "resourceGroups": [
        {"coveredResources": ["cpu", "memory"], "flavors": flavors}], **spec})


class Kueue(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster_job.enable("kueue", cls.addClassCleanup)
        cls.space = cls.enterClassContext(Namespace("e2e-kueue"))
        for pool in ("fast", "slow"):
            cls.addClassCleanup(kubectl, "delete", "resourceflavor", f"e2e-{pool}", "--ignore-not-found", "--wait=false")
            cls.space.apply(of_kueue("ResourceFlavor", f"e2e-{pool}", {"nodeLabels": {POOL: pool}}))
        cls.addClassCleanup(kubectl, "delete", "clusterqueue", QUEUE, "--ignore-not-found", "--wait=false")
        cls.space.apply(cluster_queue())
        cls.space.apply(of_kueue("LocalQueue", "team", {"clusterQueue": QUEUE}))

    def job(self, name, command, **spec):
        manifest = bsp_job(name, command, **{"sets": {"names": ["fast"]}, **spec})
        manifest["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
        return manifest

    def workload_of(self, job):
        uid = job.object()["metadata"]["uid"]
        found = get_object(f"{API}/namespaces/{self.space.name}/workloads", {}).get("items", [])
        return next((w for w in found if w["metadata"]["ownerReferences"][0]["uid"] == uid), None)

    def conditions(self, job):
        return {c["type"]: c["status"] for c in (self.workload_of(job) or {}).get("status", {}).get("conditions", [])}

    def test_second_job_waits_for_the_quota_of_the_first(self):
        first = ClusterJob(self.space, self.job("first", LONG))
        first.wait_for_phase("Running")
        with job_of(self.space, self.job("second", SHORT)) as second:
            reason = r"waits in LocalQueue team: .*insufficient unused quota for cpu in flavor e2e-fast"
            second.wait("the reason", lambda s: s.get("reason") == "Queued" and re.match(reason, s.get("message", "")), 60)
            print(second.status()["message"], flush=True)
            self.assertEqual(second.status()["phase"], "Suspended")
            self.assertEqual(second.pods(), {})
            first.tell()
            for job, command in ((first, LONG), (second, SHORT)):
                self.assertEqual(job.ended(180)["phase"], "Succeeded", job.summary())
                self.assertEqual(field_of(job.log(0)), sequential_field(command, job.log(0)))
                wait_for("Kueue to hear of the end", lambda: self.conditions(job).get("Finished") == "True", 30)
        first.delete()
        wait_for("the Workloads to go with their jobs",
                 lambda: not get_object(f"{API}/namespaces/{self.space.name}/workloads", {}).get("items"), 60)

    def test_eviction_and_resumption(self):
        with job_of(self.space, self.job("evicted", LONG)) as job:
            job.wait_for_superstep(3)
            self.addCleanup(self.space.apply, cluster_queue())
            self.space.apply(cluster_queue(stopPolicy="HoldAndDrain"))
            job.wait("the eviction", lambda s: (s.get("phase"), s.get("reason")) == ("Suspended", "Queued"), 60)
            wait_for("its pods to be gone", lambda: not job.pods(), 60)
            wait_for("its quota to be returned", lambda: self.conditions(job).get("QuotaReserved") == "False", 30, detail=lambda: self.workload_of(job))
            print(job.status()["message"], flush=True)
            self.assertEqual(job.status().get("attempt", 0), 0)
            self.space.apply(cluster_queue())
            job.wait_for_phase("Running")
            job.tell()
            self.assertEqual(job.ended(180)["phase"], "Succeeded", job.summary())
            self.assertEqual(job.status().get("attempt", 0), 0)
            self.assertEqual(field_of(job.log(0)), sequential_field(LONG, job.log(0)))

    def test_each_set_has_its_own_flavor(self):
        with job_of(self.space, self.job("two-sets", LONG, sets={"names": ["slow", "fast"]})) as job:
            job.wait_for_superstep(3)
            admission = self.workload_of(job)["status"]["admission"]
            self.assertEqual({a["name"]: (a["flavors"]["cpu"], a["count"]) for a in admission["podSetAssignments"]},
                             {"slow": ("e2e-slow", 1), "fast": ("e2e-fast", 1)})
            job.migrate("on", 0, targetSet="fast")
            self.assertEqual(job.wait_for_migration("on")["phase"], "Succeeded")
            self.space.kubectl("patch", "bspjob", "two-sets", "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": true}}}')
            wait_for("its quota to be returned", lambda: self.conditions(job).get("QuotaReserved") == "False", 60, detail=lambda: self.workload_of(job))
            self.assertEqual(job.pods(), {})
            self.space.kubectl("patch", "bspjob", "two-sets", "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": false}}}')
            job.wait_for_phase("Running")


if __name__ == "__main__":
    cluster_job.need_cluster()
    need_kueue()
    sys.exit(unittest.main(verbosity=2))
