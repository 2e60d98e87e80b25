#!/usr/bin/env python3
"""EvictionRequests for ranks' pods in a real cluster (Kubernetes 1.37): the operator is the responder that their pods name. It needs
BSP_CLUSTER_KUBERNETES=1.37 BSP_CLUSTER_GATES=EvictionRequestAPI=true ./dev cluster up. BSP_EVICTION_ROUNDS: how many times the operator
is killed while a rank leaves."""
import json
import os
import random
import sys
import time
import unittest

import cluster_job
from cluster_job import Namespace, bsp_job, field_of, job_of, kubectl, sequential_field, until_told, wait_for
from eviction_requests import EVICTOR, OPERATOR, Controller, Requests, is_final, is_served, is_true

ROUNDS = int(os.environ.get("BSP_EVICTION_ROUNDS", "3"))


class EvictionRequests(unittest.TestCase):
    def setUp(self):
        self.space = self.enterContext(Namespace("e2e-eviction-requests"))
        self.controller = self.enterContext(Controller(self.space.name))
        self.requests = Requests(self.space)
        self.addCleanup(lambda: self.assertEqual(self.controller.refused, []))

    def job(self, name, **spec):
        """Two ranks on the fast nodes, each of which has room for one pod; the pods name the operator."""
        self.command = until_told()
        template = json.loads(json.dumps(cluster_job.TEMPLATE))
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "200m"
        job = self.enterContext(job_of(self.space, bsp_job(name, self.command, template=template, sets={"names": ["fast"]}, **spec)))
        job.wait_for_superstep(3)
        for pod in job.pods().values():
            self.assertEqual(pod["spec"].get("evictionResponders"), [{"name": OPERATOR, "priority": 10000}], pod["metadata"]["name"])
        return job

    def cordon_others(self, job):
        """No node is left to go to."""
        taken = {place["node"] for place in job.status()["ranks"]}
        for node in sorted({f"fast-{i}" for i in (1, 2, 3, 4)} - taken):
            kubectl("cordon", node)
            self.addCleanup(kubectl, "uncordon", node)

    def free(self):
        for node in ("fast-1", "fast-2", "fast-3", "fast-4"):
            kubectl("uncordon", node)

    def moving(self):
        """The RankMigrations that have not ended."""
        return [name for name, m in self.space.objects("rankmigrations").items()
                if m.get("status", {}).get("phase") not in cluster_job.ENDED]

    def leaves(self, job, uid, node, rank, seconds=180):
        """The rank runs elsewhere, its pod is gone, and the Eviction says that the operator did it."""
        job.wait(f"rank {rank} to leave {node}", lambda s: job.alive(s)["ranks"][rank]["node"] != node, seconds)
        wait_for("the target to be evicted", lambda: is_true(self.requests.of(uid), "TargetEvicted"), seconds,
                 detail=lambda: (self.requests.of(uid), job.summary()))
        self.assertEqual(self.requests.state(uid), "Completed", self.requests.of(uid))
        self.assertIn("completionTime", self.requests.part(uid))

    def stays(self, job, place, rank):
        before = job.status()["superstep"]
        job.wait_for_superstep(before + 5)
        self.assertEqual((job.status()["ranks"][rank]["pod"], job.status().get("attempt", 0)), (place["pod"], 0), job.summary())

    def end(self, job):
        job.tell()
        status = job.ended()
        self.assertEqual((status["phase"], status.get("attempt", 0)), ("Succeeded", 0), job.summary())
        self.assertEqual(field_of(job.log(0)), sequential_field(self.command, job.log(0)), job.summary())
        return status

    def test_moves_the_rank_and_is_done(self):
        since = cluster_job.now()
        job = self.job("moves")
        for rank in (0, 1):
            place = job.status()["ranks"][rank]
            began = time.monotonic()
            uid = self.requests.make(f"r{rank}", place["pod"])
            part = wait_for("an answer", lambda: "message" in self.requests.part(uid) and self.requests.part(uid), 60)
            print(f"{time.monotonic() - began:.1f} s: {part['message']}", flush=True)
            self.assertIn(f"rank {rank}", part["message"])
            self.leaves(job, uid, place["node"], rank)
            print(f"{time.monotonic() - began:.1f} s: {self.requests.part(uid)}", flush=True)
        self.assertEqual(self.end(job)["migrations"]["succeeded"], 2)
        self.assertEqual([w for w in cluster_job.operator_warnings(since) if "EvictionRequests" in w], [])

    def test_heartbeats_while_nothing_is_free_and_withdrawn_it_stays(self):
        job = self.job("waits")
        self.cordon_others(job)
        place = job.status()["ranks"][0]
        uid = self.requests.make("one", place["pod"])
        self.requests.make("two", place["pod"], "example.com/descheduler")
        beats = []

        def beat():
            at = self.requests.part(uid).get("heartbeatTime")
            if at and at not in beats:
                beats.append(at)
            return len(beats) >= 3
        wait_for("three heartbeats", beat, 240, detail=lambda: self.requests.of(uid))
        seconds = [time.mktime(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ")) for at in beats]
        print(beats, self.requests.part(uid)["message"], flush=True)
        for earlier, later in zip(seconds, seconds[1:]):
            self.assertTrue(19 <= later - earlier <= 90, beats)
        self.requests.withdraw("one")
        wait_for("the withdrawal to be seen", lambda: "Withdrawn" in str(self.requests.of(uid)["status"]["requesters"]), 30)
        self.stays(job, place, 0)
        self.assertEqual(self.requests.state(uid), "Active", "the other one wants it still")
        self.requests.remove("two")
        wait_for("the Eviction to be cancelled", lambda: self.requests.state(uid) == "Canceled", 30)
        wait_for("the RankMigration to be gone", lambda: not self.moving(), 60)
        self.free()
        self.stays(job, place, 0)
        # Asked once more, it goes.
        self.requests.make("again", place["pod"])
        wait_for("another Eviction", lambda: self.requests.state(uid) != "Canceled", 30)
        self.leaves(job, uid, place["node"], 0)
        self.end(job)

    def test_of_two_requesters_one_is_enough(self):
        job = self.job("both")
        place = job.status()["ranks"][1]
        uid = self.requests.make("one", place["pod"])
        self.requests.make("two", place["pod"], "example.com/descheduler")
        self.requests.withdraw("one")
        self.leaves(job, uid, place["node"], 1)
        self.end(job)

    def test_withdrawn_in_the_middle_the_job_goes_on(self):
        job = self.job("torn")
        outcomes = []
        for i in range(ROUNDS):
            place = job.status()["ranks"][0]
            uid = self.requests.make(f"torn-{i}", place["pod"])
            wait_for("an answer", lambda: "message" in self.requests.part(uid), 60)
            time.sleep(random.uniform(0, 3))
            self.requests.withdraw(f"torn-{i}")
            wait_for("the end of the Eviction", lambda: is_final(self.requests.of(uid)), 120)
            wait_for("the move to end", lambda: not self.moving(), 120, detail=job.summary)
            outcomes.append("moved" if job.status()["ranks"][0]["pod"] != place["pod"] else "stayed")
            job.wait_for_superstep(job.status()["superstep"] + 3)
        print(outcomes, flush=True)
        self.end(job)

    def test_the_operator_is_killed_in_between(self):
        job = self.job("killed")
        by_evictor = 0
        for i in range(ROUNDS):
            rank = i % 2
            place = job.status()["ranks"][rank]
            began = time.monotonic()
            uid = self.requests.make(f"k{i}", place["pod"])
            time.sleep(random.uniform(0, 6))
            _, system = cluster_job.release()
            victim = wait_for("a leader", lambda: cluster_job.leader() in cluster_job.operator_pods() and cluster_job.leader(), 120)
            kubectl("delete", "pod", victim, "-n", system, "--grace-period=0", "--force")
            job.wait(f"rank {rank} to leave {place['node']}", lambda s: job.alive(s)["ranks"][rank]["node"] != place["node"], 180)
            wait_for("the target to be evicted", lambda: is_true(self.requests.of(uid), "TargetEvicted"), 180,
                     detail=lambda: (self.requests.of(uid), job.summary()))
            responder = OPERATOR if self.requests.state(uid) == "Completed" else EVICTOR
            by_evictor += responder == EVICTOR
            self.assertEqual(job.status().get("attempt", 0), 0, job.summary())
            print(f"{i + 1} of {ROUNDS}: {time.monotonic() - began:.1f} s, by {responder}", flush=True)
        self.assertEqual(by_evictor, 0, "pods made by a new leader name it")
        self.end(job)


if __name__ == "__main__":
    cluster_job.need_cluster()
    if not is_served():
        cluster_job.skip("needs Kubernetes 1.37 with EvictionRequests: BSP_CLUSTER_KUBERNETES=1.37 "
                         "BSP_CLUSTER_GATES=EvictionRequestAPI=true ./dev cluster up")
    sys.exit(unittest.main(verbosity=2))
