#!/usr/bin/env python3
"""spec.rescheduling.resize in a real cluster: a rank that its own CPU limit holds back gets more CPU where it is, without a pause; one
that a quota denies that to keeps what it has, and moves if somebody moves it."""
import json
import sys
import unittest

import cluster_job
from cluster_job import Namespace, bsp_job, get_object, job_of, until_told, wait_for
from kubernetes_plugin_test import bsp
from kubernetes_run_test import InANamespace

OURS = {what: {"cpu": "20m", "memory": "256Mi"} for what in ("requests", "limits")}


def uneven(name, cpu="60m", **rescheduling):
    """Three ranks, each alone on a node, of which rank 2 has twice the others' work with the same limit."""
    template = json.loads(json.dumps(cluster_job.TEMPLATE))
    template["spec"]["containers"][0]["resources"] = {what: {"cpu": cpu, "memory": "128Mi"} for what in ("requests", "limits")}
    command = until_told(width=256, height=96, more=["--work-factor", "0=20,1=20,2=40"])
    manifest = bsp_job(name, command, ranks=3, template=template, sets={"names": ["fast"]}, sidecar={"resources": OURS},
                       rescheduling={"alpha": 4, "resize": "Auto", **rescheduling})
    return command, manifest


def cpu_of(pod):
    """Limit and request that the pod asks for, and the limit that its node has given it."""
    asked, = (c["resources"] for c in pod["spec"]["containers"] if c["name"] == "app")
    given, = (c.get("resources", {}) for c in pod["status"]["containerStatuses"] if c["name"] == "app")
    return asked["limits"]["cpu"], asked["requests"]["cpu"], given.get("limits", {}).get("cpu")


class Resize(InANamespace):
    def events_of(self, job, reason):
        return [note for name, note in job.namespace.events(job.name) if name == reason]

    def test_a_throttled_rank_is_resized_in_place(self):
        command, manifest = uneven("uneven")
        with job_of(self.space, manifest) as job:
            job.wait_for_superstep(3)
            before = job.pods()
            wait_for("a rank to be resized", lambda: self.events_of(job, "Resized"), 240, detail=job.summary)
            self.assertRegex(self.events_of(job, "Resized")[0], r"^rank 2 has a CPU limit of \d+m instead of 60m on fast-\d, without a pause$")
            self.assertRegex(" ".join(self.events_of(job, "Rescheduled")), r"1 rank gets more CPU in place, without a pause; superstep predicted")
            # It may get more, in steps: how long the limit held it back is told of the last ten seconds, in part before it ran.
            wait_for("its node to have given it", lambda: len(set(cpu_of(job.pods()["uneven-r2-g0"]))) == 1, 60, detail=job.summary)
            pod = job.pods()["uneven-r2-g0"]
            asked, requested, given = cpu_of(pod)
            self.assertGreater(int(given.removesuffix("m")), 60)
            self.assertEqual(cpu_of(job.pods()["uneven-r0-g0"]), ("60m", "60m", "60m"), "a rank that isn't behind has what it had")
            self.assertEqual(pod["status"]["qosClass"], "Guaranteed")
            self.assertEqual([c["restartCount"] for c in pod["status"]["containerStatuses"]], [0])
            self.assertEqual({name: p["metadata"]["uid"] for name, p in job.pods().items()},
                             {name: p["metadata"]["uid"] for name, p in before.items()}, "nobody moved")
            times = {e["reason"]: e["eventTime"] for e in get_object(f"/apis/events.k8s.io/v1/namespaces/{self.space.name}/events", {}).get("items", [])}
            print("limit, request, given:", asked, requested, given, "decided", times["Rescheduled"], "resized", times["Resized"], flush=True)
            self.assertRegex(bsp("explain", "uneven", "-n", self.space.name).stdout, r"rank 2 on fast-\d: CPU limit \d+m → \d+m, Resized")
            job.wait_for_superstep(job.status()["superstep"] + 5)
            job.tell()
            status = self.check_succeeded(job, command)
            self.assertNotIn("pause", status["summary"])

    def test_one_that_a_quota_denies_is_told_once_and_the_rank_moves(self):
        hard = {"limits.cpu": "260m"}  # 3 × (60 + 20)m are used
        with Namespace("e2e-resize-quota") as space:
            space.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": hard}})
            command, manifest = uneven("denied")
            with job_of(space, manifest) as job:
                wait_for("the refusal", lambda: self.events_of(job, "ResizeRefused"), 240, detail=job.summary)
                self.assertRegex(self.events_of(job, "ResizeRefused")[0], "rank 2 keeps its CPU limit of 60m on .*exceeded quota: compute")
                job.wait_for_superstep(job.status()["superstep"] + 10)
                self.assertEqual(len(self.events_of(job, "ResizeRefused")), 1)
                self.assertEqual(cpu_of(job.pods()["denied-r2-g0"]), ("60m", "60m", "60m"))
                space.kubectl("delete", "resourcequota", "compute")  # a target needs room, too
                job.migrate("by-hand", 2, targetNode="*")
                self.assertEqual(job.wait_for_migration("by-hand")["phase"], "Succeeded", job.summary())
                job.tell()
                self.check_succeeded(job, command)


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
