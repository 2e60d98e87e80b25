#!/usr/bin/env python3
"""Nodes of a real cluster that are drained, shut down or removed, by administrators, clouds and autoscalers."""
import contextlib
import json
import os
import subprocess
import sys
import time
import unittest

import cluster_job
from cluster_job import bsp_job, job_of, kubectl, node_sh, wait_for
from kubernetes_run_test import ENDLESS, InANamespace
from local_job import ON_HOST
from stamps import Stamps, stamping


class Drain(InANamespace):
    """Nodes drained by administrators and autoscalers."""
    rounds = int(os.environ.get("BSP_DRAINS", "3"))
    notices = int(os.environ.get("BSP_NOTICES", "1"))

    def template(self, cpu):
        template = json.loads(json.dumps(cluster_job.TEMPLATE))
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        return template

    def uncordon_afterwards(self, node):
        self.addCleanup(kubectl, "uncordon", node)

    def drain(self, node, seconds):
        self.uncordon_afterwards(node)
        return subprocess.Popen([ON_HOST, "env", f"KUBECONFIG={cluster_job.KUBECONFIG}", cluster_job.KUBECTL, "drain", node, "--ignore-daemonsets",
                                 "--delete-emptydir-data", "--pod-selector=migbsp.io/job", f"--timeout={seconds}s"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def nodes_of(self, job):
        return [place["node"] for place in job.status()["ranks"]]

    def test_drain_moves_the_ranks_and_completes(self):
        manifest = bsp_job("drained", stamping(1000000, more=["--ballast", "64"]), ranks=6, template=self.template("60m"), sets={"names": ["fast"]})
        stamps = Stamps("drained", cluster_job.STATE / "run/shared", "/opt/cluster/shared")
        stamps.into(manifest["spec"]["template"]["spec"])
        with stamps, job_of(self.space, manifest) as job:
            job.wait_for_superstep(3)
            for again in range(self.rounds):
                places = self.nodes_of(job)
                node = max(sorted(set(places)), key=places.count)
                before, began = job.status(), time.monotonic()
                with self.drain(node, 120) as drain:
                    wait_for(f"the ranks to leave {node}", lambda: node not in self.nodes_of(job), 100, detail=job.summary)
                    took = time.monotonic() - began
                    output = drain.communicate(timeout=150)[0]
                after = job.status()
                print(f"drain {again + 1}: {places.count(node)} of 6 ranks left {node} in {took:.1f} s, the drain ended in "
                      f"{time.monotonic() - began:.1f} s, waves {after['migrations']['waves'] - before['migrations']['waves']}, "
                      f"supersteps {before['superstep']} to {after['superstep']}, attempt {after.get('attempt', 0)}", flush=True)
                self.assertEqual(drain.returncode, 0, output)
                self.assertEqual(after.get("attempt", 0), 0, job.summary())
                self.assertGreaterEqual(after["superstep"], before["superstep"])
                kubectl("uncordon", node)
            self.assertEqual(job.wait("the end of the drain", lambda s: job.alive(s) and all(
                c["type"] != "Draining" for c in s.get("conditions", [])), 30).get("attempt", 0), 0)
            superstep = job.status()["superstep"]
            job.wait_for_superstep(superstep + 3)
            self.assertEqual(stamps.findings(ranks=6), [], "a rank ran twice")

    def test_drain_without_a_free_slot(self):
        """Evictions are refused until the node is uncordoned, or for spec.runPolicy.drainTimeoutSeconds: then the job restarts."""
        manifest = bsp_job("stays", ENDLESS, ranks=4, template=self.template("160m"), sets={"names": ["fast"]},
                           runPolicy={"backoffLimit": 1, "drainTimeoutSeconds": 30})
        with job_of(self.space, manifest) as job:
            job.wait_for_superstep(3)
            with self.drain("fast-1", 15) as drain:
                wait_for("the condition", lambda: job.condition("Draining").get("reason") == "NowhereToGo", 15, detail=job.summary)
                self.assertIn("no other node of the job's Sets has a free slot", job.condition("Draining")["message"])
                output = drain.communicate(timeout=60)[0]
            self.assertNotEqual(drain.returncode, 0, output)
            self.assertIn("node fast-1 is cordoned, and rank", output)
            kubectl("uncordon", "fast-1")
            wait_for("the condition to go", lambda: not job.condition("Draining"), 15, detail=job.summary)
            self.assertEqual((job.status().get("attempt", 0), job.status()["migrations"].get("waves", 0)), (0, 0), "uncordoned in time")
            with self.drain("fast-1", 120) as drain:
                output = drain.communicate(timeout=150)[0]
            self.assertEqual(drain.returncode, 0, output)
            job.wait("the restart", lambda s: s.get("attempt", 0) == 1, 60)
            kubectl("uncordon", "fast-1")
            job.wait_for_phase("Running", seconds=120)

    def test_node_is_killed_30_s_after_its_notice(self):
        """As a cloud takes back a spot machine: its notice is a taint."""
        taint = "aws-node-termination-handler/spot-itn"
        manifest = bsp_job("noticed", stamping(1000000, more=["--ballast", "64"]), ranks=4, template=self.template("60m"), sets={"names": ["fast"]})
        stamps = Stamps("noticed", cluster_job.STATE / "run/shared", "/opt/cluster/shared")
        stamps.into(manifest["spec"]["template"]["spec"])
        with stamps, job_of(self.space, manifest) as job:
            for again in range(self.notices):
                job.wait_for_superstep(job.status().get("superstep", 0) + 3)
                places, before, began = self.nodes_of(job), job.status(), time.monotonic()
                node = max(sorted(set(places)), key=places.count)
                kubectl("taint", "node", node, f"{taint}=:NoSchedule")
                with contextlib.ExitStack() as repairs:
                    repairs.callback(kubectl, "taint", "node", node, f"{taint}-", check=False)
                    wait_for(f"the ranks to leave {node}", lambda: node not in self.nodes_of(job), 30, detail=job.summary)
                    took = time.monotonic() - began
                    time.sleep(max(0, 30 - took))  # this is the notice
                    repairs.callback(self.start, node)
                    node_sh("kill", node)
                    after = job.wait_for_superstep(job.status()["superstep"] + 10, 60)
                print(f"notice {again + 1}: {places.count(node)} of 4 ranks left {node} in {took:.1f} s; it was killed after 30 s; supersteps "
                      f"{before['superstep']} to {after['superstep']}, attempt {after.get('attempt', 0)}", flush=True)
                self.assertEqual(job.status().get("attempt", 0), 0, job.summary())
            self.assertEqual(stamps.findings(ranks=4), [], "a rank ran twice")

    def start(self, node):
        node_sh("start", node)
        kubectl("wait", "--for=condition=Ready", f"node/{node}", "--timeout=120s")

    def test_rolling_upgrade_with_a_surge_node(self):
        """Two slots on each of four nodes for six ranks: one node after the other is drained, stopped and started again."""
        manifest = bsp_job("upgraded", stamping(1000000, more=["--ballast", "16"]), ranks=6, template=self.template("110m"), sets={"names": ["fast"]})
        stamps = Stamps("upgraded", cluster_job.STATE / "run/shared", "/opt/cluster/shared")
        stamps.into(manifest["spec"]["template"]["spec"])
        with stamps, job_of(self.space, manifest) as job:
            job.wait_for_superstep(3)
            for node in ("fast-1", "fast-2", "fast-3", "fast-4"):
                before, began = job.status(), time.monotonic()
                with self.drain(node, 180) as drain:
                    output = drain.communicate(timeout=200)[0]
                took = time.monotonic() - began
                self.assertEqual(drain.returncode, 0, output)
                node_sh("stop", node)
                self.start(node)
                kubectl("uncordon", node)
                after = job.wait_for_superstep(job.status()["superstep"] + 3, 60)
                print(f"upgrade of {node}: {[p['node'] for p in before['ranks']].count(node)} ranks, drained in {took:.1f} s, supersteps "
                      f"{before['superstep']} to {after['superstep']}, attempt {after.get('attempt', 0)}", flush=True)
                self.assertEqual(after.get("attempt", 0), 0, job.summary())
            self.assertEqual(stamps.findings(ranks=6), [], "a rank ran twice")

    def test_taint_of_an_autoscaler_moves_the_ranks(self):
        taint = "ToBeDeletedByClusterAutoscaler"
        with job_of(self.space, bsp_job("tainted", ENDLESS, template=self.template("60m"), sets={"names": ["fast"]})) as job:
            job.wait_for_superstep(3)
            node = self.nodes_of(job)[0]
            self.addCleanup(kubectl, "taint", "node", node, f"{taint}-", check=False)
            kubectl("taint", "node", node, f"{taint}=1:NoSchedule")
            wait_for(f"the ranks to leave {node}", lambda: node not in self.nodes_of(job), 60, detail=job.summary)
            self.assertEqual(job.status().get("attempt", 0), 0)


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
