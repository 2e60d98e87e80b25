#!/usr/bin/env python3
"""Gang scheduling by kube-scheduler's own PodGroups (Kubernetes 1.36, feature gates GenericWorkload and GangScheduling): the template names
one. Skipped where the API server has no PodGroups: BSP_CLUSTER_GATES=GenericWorkload=true,GangScheduling=true ./dev cluster up."""
import json
import sys
import time
import unittest

import cluster_job
from cluster_job import ClusterJob, Namespace, api, bsp_job, job_of, kubectl, lattice_boltzmann, wait_for

API = "scheduling.k8s.io/v1alpha2"
LANE = "e2e.example.com/gang"


def need_pod_groups():
    status, found = api().ask("GET", f"/apis/{API}")
    if status != 200 or "podgroups" not in [r["name"] for r in found.get("resources", [])]:
        cluster_job.skip(f"the API server has no PodGroups ({API})")


class Gang(unittest.TestCase):
    """Two nodes take one rank each, for a reason that only kube-scheduler knows; the job has three."""

    def manifest(self, name, group):
        template = json.loads(json.dumps(cluster_job.TEMPLATE))
        template["metadata"] = {"labels": {"gang": name}}
        template["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"gang": name}}}]}}
        if group:
            template["spec"]["schedulingGroup"] = {"podGroupName": name}
        return bsp_job(name, lattice_boltzmann(4000), ranks=3, template=template, sets={"label": LANE, "names": ["gang"]})

    def scheduled(self, space):
        return sum(bool(p["spec"].get("nodeName")) for p in space.objects("pods", "migbsp.io/job").values())

    def test_no_rank_is_scheduled_before_all_can_be(self):
        for node in ("fast-1", "fast-2", "fast-3", "fast-4"):
            self.addCleanup(kubectl, "label", "node", node, f"{LANE}-")
        for node in ("fast-1", "fast-2"):
            kubectl("label", "node", node, f"{LANE}=gang", "--overwrite")
        with Namespace("e2e-gang") as space:
            with job_of(space, self.manifest("alone", group=False)):
                wait_for("two of three ranks to be scheduled", lambda: self.scheduled(space) == 2, 60)
            space.apply({"apiVersion": API, "kind": "PodGroup", "metadata": {"name": "together"},
                         "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
            with job_of(space, self.manifest("together", group=True)) as job:
                wait_for("its pods", lambda: len(job.pods()) == 3, 60, detail=job.summary)
                job.wait("the reason", lambda s: "finds no node" in s.get("message", ""), 60)
                print(job.status()["message"], flush=True)
                self.assertEqual(self.scheduled(space), 0)
                for node in ("fast-3", "fast-4"):
                    kubectl("label", "node", node, f"{LANE}=gang", "--overwrite")
                job.wait_for_superstep(3)
                free, = {"fast-1", "fast-2", "fast-3", "fast-4"} - {p["node"] for p in job.status()["ranks"]}
                job.migrate("moves", 0, targetNode=free)
                self.assertEqual(job.wait_for_migration("moves")["phase"], "Succeeded", job.migration("moves"))
                self.assertEqual(job.ended(240)["phase"], "Succeeded", job.summary())


if __name__ == "__main__":
    cluster_job.need_cluster()
    need_pod_groups()
    sys.exit(unittest.main(verbosity=2))
