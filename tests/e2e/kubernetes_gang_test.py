#!/usr/bin/env python3
"""Gang scheduling by kube-scheduler's own PodGroups: the template names one, or spec.scheduling.gang lets the operator make it. Where the
API server has no PodGroups, only what a job says of that is tested; it has some after ./dev cluster up with BSP_CLUSTER_GATES=
GenericWorkload=true,GangScheduling=true of Kubernetes 1.36, or GenericWorkload=true of 1.37."""
import json
import sys
import unittest

import cluster_job
from cluster_job import Namespace, api, bsp_job, get_object, job_of, kubectl, lattice_boltzmann, until_told, wait_for

APIS = ["scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3", "scheduling.k8s.io/v1alpha2"]
LANE = "e2e.example.com/gang"
NODES = ["fast-1", "fast-2", "fast-3", "fast-4"]


def served():
    """The newest version in which the API server has PodGroups, or None."""
    for version in APIS:
        status, found = api().ask("GET", f"/apis/{version}")
        if status == 200 and "podgroups" in [r["name"] for r in found.get("resources", [])]:
            return version
    return None


def has_pod_groups():
    return served() is not None


def pod_groups(space):
    return get_object(f"/apis/{served()}/namespaces/{space.name}/podgroups", {}).get("items", [])


class Gang(unittest.TestCase):
    """Two nodes take one rank each, for a reason that only kube-scheduler knows; the job has three."""

    def setUp(self):
        if not has_pod_groups():
            self.skipTest("the API server has no PodGroups")
        for node in NODES:
            self.addCleanup(kubectl, "label", "node", node, f"{LANE}-")
        for node in NODES[:2]:
            kubectl("label", "node", node, f"{LANE}=gang", "--overwrite")

    def manifest(self, name, group=False, **spec):
        template = json.loads(json.dumps(cluster_job.TEMPLATE))
        template["metadata"] = {"labels": {"gang": name}}
        template["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"gang": name}}}]}}
        if group:
            template["spec"]["schedulingGroup"] = {"podGroupName": name}
        return bsp_job(name, until_told(), ranks=3, template=template, sets={"label": LANE, "names": ["gang"]}, **spec)

    def scheduled(self, space):
        return sum(bool(p["spec"].get("nodeName")) for p in space.objects("pods", "migbsp.io/job").values())

    def waits_and_moves(self, space, job, target_in_group):
        """No rank has a node before all can have one; then a rank moves, and the job ends."""
        wait_for("its pods", lambda: len(job.pods()) == 3, 60, detail=job.summary)
        job.wait("the reason", lambda s: "finds no node" in s.get("message", ""), 60)
        print(job.status()["message"], flush=True)
        self.assertEqual(self.scheduled(space), 0)
        for node in NODES[2:]:
            kubectl("label", "node", node, f"{LANE}=gang", "--overwrite")
        job.wait_for_superstep(3)
        free, = set(NODES) - {p["node"] for p in job.status()["ranks"]}
        job.migrate("moves", 0, targetNode=free)
        self.assertEqual(job.wait_for_migration("moves")["phase"], "Succeeded", job.migration("moves"))
        self.assertEqual("schedulingGroup" in job.pods()[job.migration("moves")["targetPod"]]["spec"], target_in_group)
        job.tell()
        self.assertEqual(job.ended()["phase"], "Succeeded", job.summary())

    def test_no_rank_is_scheduled_before_all_can_be(self):
        with Namespace("e2e-gang") as space:
            with job_of(space, self.manifest("alone")):
                wait_for("two of three ranks to be scheduled", lambda: self.scheduled(space) == 2, 60)
            space.apply({"apiVersion": served(), "kind": "PodGroup", "metadata": {"name": "together"},
                         "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}})
            with job_of(space, self.manifest("together", group=True)) as job:
                self.waits_and_moves(space, job, target_in_group=True)

    def test_the_operator_makes_the_pod_group(self):
        cluster_job.enable("gangScheduling", self.addCleanup)
        with Namespace("e2e-gang-made") as space:
            with job_of(space, self.manifest("made", scheduling={"gang": "PodGroup"})) as job:
                wait_for("its pods", lambda: len(job.pods()) == 3, 60, detail=job.summary)
                group, = pod_groups(space)
                self.assertEqual(group["spec"]["schedulingPolicy"], {"gang": {"minCount": 3}})
                self.assertEqual(group["metadata"]["ownerReferences"][0]["uid"], job.object()["metadata"]["uid"])
                name = group["metadata"]["name"]
                self.assertEqual({p["spec"].get("schedulingGroup", {}).get("podGroupName") for p in job.pods().values()}, {name})
                self.waits_and_moves(space, job, target_in_group=False)
            wait_for("the PodGroup to go with its job", lambda: not pod_groups(space), 60)


class Refused(unittest.TestCase):
    """A job whose PodGroup can't be made says why, waits without pods, and isn't restarted."""

    def check(self, words):
        with Namespace("e2e-gang-refused") as space:
            with job_of(space, bsp_job("refused", lattice_boltzmann(100), scheduling={"gang": "PodGroup"})) as job:
                status = job.wait("the reason", lambda s: s.get("reason") == "PodGroupRefused", 60)
                print(status["message"], flush=True)
                for word in ["spec.scheduling.gang is PodGroup", *words]:
                    self.assertIn(word, status["message"])
                self.assertEqual(job.condition("PodGroupRefused").get("status"), "True")
                self.assertEqual((status["phase"], status.get("attempt", 0), job.pods()), ("Pending", 0, {}))

    def test_without_the_api(self):
        if has_pod_groups():
            self.skipTest("the API server has PodGroups")
        self.check(["GenericWorkload", "v1alpha2"])

    def test_without_the_right(self):
        if not has_pod_groups():
            self.skipTest("the API server has no PodGroups")
        self.check(["gangScheduling.enabled"])


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
