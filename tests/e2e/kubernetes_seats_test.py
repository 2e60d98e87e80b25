#!/usr/bin/env python3
"""Ranks that share pods (spec.ranksPerPod) in a real cluster: their containers and logs, a move of one of them, a drain of both."""
import sys
import unittest

import cluster_job
from cluster_job import bsp_job, job_of, kubectl, until_told
from kubernetes_plugin_test import bsp
from kubernetes_run_test import InANamespace

APP = {"name": "app", "image": "localhost/bsp-apps:dev", "imagePullPolicy": "IfNotPresent", "securityContext": {"runAsUser": 1000, "runAsGroup": 1000},
       "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}}


class Seats(InANamespace):
    def check_pods(self, job):
        """Each rank has a running container of its own, whose log kubectl finds by the name that the status tells."""
        places = job.status()["ranks"]
        pods = job.pods()
        self.assertEqual(len({(place["pod"], place["container"]) for place in places}), len(places), places)
        for place in places:
            running = {c["name"] for c in pods[place["pod"]]["status"]["containerStatuses"] if "running" in c["state"]}
            self.assertIn(place["container"], running, f"{place}\n{job.summary()}")
            self.space.kubectl("logs", place["pod"], "-c", place["container"])
        return places

    def test_run_move_drain(self):
        command = until_told()
        manifest = bsp_job("seats", command, ranks=4, ranksPerPod=2, template={"spec": {"containers": [APP]}},
                           sets={"names": ["fast", "medium"]}, initialMapping="Contiguous")
        with job_of(self.space, manifest) as job:
            job.wait_for_superstep(5)
            places = self.check_pods(job)
            self.assertEqual([(place["pod"], place["container"]) for place in places],
                             [("seats-r0-g0", "app"), ("seats-r0-g0", "app-1"), ("seats-r2-g0", "app"), ("seats-r2-g0", "app-1")])
            self.assertEqual(len(job.pods()), 2)
            job.migrate("by-hand", 1, targetSet="medium")
            ended = job.wait_for_migration("by-hand")
            self.assertEqual((ended["phase"], ended["targetSet"]), ("Succeeded", "medium"), ended)
            job.wait_for_superstep(job.status()["superstep"] + 3)
            places = self.check_pods(job)
            self.assertEqual(places[0]["pod"], "seats-r0-g0", "its neighbour stays")
            self.assertEqual(places[1]["set"], "medium")
            self.assertIn("rank 1", bsp("top", "seats", "--once", "-n", self.space.name).stdout)
            node = places[2]["node"]
            self.addCleanup(kubectl, "uncordon", node)
            job.drain(node)
            self.check_pods(job)
            job.tell()
            status = self.check_succeeded(job, command)
            self.assertEqual(status.get("attempt", 0), 0, job.summary())


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
