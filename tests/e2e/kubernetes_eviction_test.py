#!/usr/bin/env python3
"""Evictions of ranks' pods in a real cluster: the API server asks the operator's webhook, and the rank moves to another node."""
import json
import sys
import time
import unittest

import cluster_job
from cluster_job import Namespace, api, bsp_job, field_of, get_object, job_of, kubectl, lattice_boltzmann, sequential_field, until_told, wait_for

DENIED = 'admission webhook "evictions.migbsp.io" denied the request: '
REFUSED = (429, "Cannot evict pod as it would violate the pod's disruption budget.")


class Evictions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = cls.enterClassContext(Namespace("e2e-evictions"))
        name, _ = cluster_job.release()
        configuration = f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{name}-evictions"
        wait_for("the operator's CA in the configuration",
                 lambda: "caBundle" in get_object(configuration, {}).get("webhooks", [{}])[0].get("clientConfig", {}), 60)

    def evict(self, pod, **options):
        """(HTTP status, message) of an eviction as drains and deschedulers ask for it."""
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.space.name},
                    **({"deleteOptions": options} if options else {})}
        status, answer = api().ask("POST", f"/api/v1/namespaces/{self.space.name}/pods/{pod}/eviction", eviction)
        return status, answer.get("message", "")

    def migrations(self):
        return self.space.objects("rankmigrations")

    def test_moves_the_rank_to_another_node(self):
        command = until_told()
        since = cluster_job.now()
        with job_of(self.space, bsp_job("evicted", command, sets={"names": ["fast"]})) as job:
            job.wait_for_superstep(5)
            place = job.status()["ranks"][0]
            status, message = self.evict(place["pod"], dryRun=["All"])
            self.assertEqual((status, message.startswith(f"{DENIED}rank 0 would be asked to leave node {place['node']}")), (429, True), message)
            self.assertEqual(self.evict(place["pod"], preconditions={"uid": "another"}), REFUSED, "an eviction of an earlier pod of that name")
            self.assertEqual(self.migrations(), {}, "neither moves a rank")
            began = time.monotonic()
            status, message = self.evict(place["pod"])
            answered = time.monotonic() - began
            self.assertEqual((status, message.startswith(f"{DENIED}rank 0 is asked to leave node {place['node']} (")), (429, True), message)
            again = self.evict(place["pod"])
            self.assertEqual((again[0], "asked to leave" in again[1]), (429, False), again[1])
            name, = self.migrations()
            ended = job.wait_for_migration(name)
            self.assertEqual((ended["phase"], ended["sourceNode"]), ("Succeeded", place["node"]), ended)
            self.assertNotEqual(job.status()["ranks"][0]["node"], place["node"])
            wait_for("the evicted pod to be gone", lambda: place["pod"] not in job.pods(), 60, detail=job.summary)
            print(f"answered in {answered * 1000:.0f} ms; the rank left {place['node']} for {ended['targetNode']} in "
                  f"{time.monotonic() - began:.1f} s, pause {ended['pause']['totalMs']:.0f} ms", flush=True)
            # kubectl shows what happens, and the other rank goes as well.
            pod, node = (job.status()["ranks"][1][key] for key in ("pod", "node"))
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.space.name}}
            shown = kubectl("create", "--raw", f"/api/v1/namespaces/{self.space.name}/pods/{pod}/eviction", "-f", "-",
                            text=json.dumps(eviction), check=False)
            self.assertNotEqual(shown.returncode, 0)
            self.assertIn(f"rank 1 is asked to leave node {node} (RankMigration evicted-r1-", shown.stderr)
            job.wait("rank 1 to leave its node", lambda s: job.alive(s)["ranks"][1]["node"] != node)
            job.tell()
            status = job.ended()
            self.assertEqual((status["phase"], status.get("attempt", 0), status["migrations"]["succeeded"]), ("Succeeded", 0, 2), job.summary())
            self.assertEqual(field_of(job.log(0)), sequential_field(command, job.log(0)), job.summary())
            self.assertEqual(self.evict(status["ranks"][0]["pod"])[0], 201, "the pod of a job that has ended")
        self.assertEqual(cluster_job.operator_warnings(since), [])

    def test_without_the_operator_the_budget_answers(self):
        name, system = cluster_job.release()
        with job_of(self.space, bsp_job("alone", lattice_boltzmann(supersteps=1000000), sets={"names": ["fast"]})) as job:
            job.wait_for_superstep(5)
            place = job.status()["ranks"][0]

            def scale(replicas):
                kubectl("scale", "deployment", name, "-n", system, f"--replicas={replicas}")
                kubectl("rollout", "status", "deployment", name, "-n", system, "--timeout=120s")
            self.addCleanup(scale, 2)
            scale(0)
            wait_for("the operator to be gone", lambda: not cluster_job.operator_pods(), 60)
            status, message = self.evict(place["pod"])
            self.assertEqual((status, message), REFUSED)
            scale(2)
            wait_for("an answer", lambda: self.evict(place["pod"])[1].startswith(DENIED), 60)
            job.wait("the rank to leave its node", lambda s: job.alive(s)["ranks"][0]["node"] != place["node"])
            self.assertEqual(job.status().get("attempt", 0), 0, job.summary())


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
