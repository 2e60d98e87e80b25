#!/usr/bin/env python3
"""spec.rescheduling.resize in a real cluster: a rank that its own CPU limit holds back gets more CPU where it is, without a pause; one
that a quota or its node denies that to keeps what it has, and moves if somebody moves it."""
import contextlib
import json
import sys
import unittest

import cluster_job
from cluster_job import Namespace, api, bsp_job, get_object, job_of, kubectl, until_told, wait_for
from kubernetes_plugin_test import bsp
from kubernetes_run_test import InANamespace
from places import SWAPPED

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


def milli(cpu):
    return int(cpu.removesuffix("m")) if cpu.endswith("m") else 1000 * int(cpu)


@contextlib.contextmanager
def no_operator():
    name, system = cluster_job.release()
    replicas = get_object(f"/apis/apps/v1/namespaces/{system}/deployments/{name}")["spec"]["replicas"]

    def scale(to):
        kubectl("scale", "deployment", name, "-n", system, f"--replicas={to}")
        kubectl("rollout", "status", "deployment", name, "-n", system, "--timeout=120s")
    try:
        scale(0)
        wait_for("the operator to be gone", lambda: not cluster_job.operator_pods(), 60)
        yield
    finally:
        scale(replicas)


class Resize(InANamespace):
    def events_of(self, job, reason):
        return [note for name, note in job.namespace.events(job.name) if name == reason]

    def ask_for(self, job, rank, cpu):
        """As the operator asks, which is away: the next one goes on from that. By itself it asks for no more than its node has to give,
        as far as it sees; so a node refuses only if that has changed since."""
        place = job.status()["ranks"][rank]
        asked = {"rank": rank, "pod": place["pod"], "node": place["node"], "fromMillicores": 60, "toMillicores": cpu, "phase": "Asked",
                 "time": cluster_job.now()}
        path = f"{cluster_job.API}/{self.space.name}/bspjobs/{job.name}"
        stored = api().get(path)
        internal = json.loads(stored["status"]["internal"].translate(SWAPPED))
        stored["status"]["internal"] = json.dumps({**internal, "resizes": [asked]}).translate(SWAPPED)
        status, answer = api().ask("PUT", f"{path}/status", stored)
        self.assertEqual(status, 200, answer)

    def fill(self, node):
        """A pod of another that leaves rank and node less than 200m."""
        pods = get_object("/api/v1/pods", {})["items"]
        here = [c for p in pods if p["spec"].get("nodeName") == node and p["status"]["phase"] == "Running"
                for c in p["spec"]["containers"] + [i for i in p["spec"].get("initContainers", []) if i.get("restartPolicy") == "Always"]]
        used = sum(milli(c["resources"].get("requests", {}).get("cpu", "0m")) for c in here)
        free = milli(get_object(f"/api/v1/nodes/{node}")["status"]["allocatable"]["cpu"]) - used
        self.space.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"}, "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [{
                "name": "app", "image": "localhost/bsp-apps:dev", "imagePullPolicy": "IfNotPresent", "command": ["sleep", "1000000"],
                "resources": {"requests": {"cpu": f"{free - 10}m"}}}]}})
        wait_for("the other pod to run", lambda: self.space.objects("pods")["other"]["status"]["phase"] == "Running", 60,
                 detail=lambda: self.space.objects("pods")["other"]["status"])

    def is_refused(self, reason, said, cpu, before=lambda node: None):
        """The rank has what it had, is told so once, and moves; where it is then, it gets what that node has."""
        name = reason.lower()
        command, manifest = uneven(name, mode="Off")
        with job_of(self.space, manifest) as job:
            job.wait_for_superstep(3)
            node = job.status()["ranks"][2]["node"]
            with no_operator():
                before(node)
                self.ask_for(job, 2, cpu)
            wait_for("the node's answer", lambda: self.events_of(job, f"Resize{reason}"), 120, detail=job.summary)
            self.assertRegex(self.events_of(job, f"Resize{reason}")[0], rf"^rank 2 keeps its CPU limit of 60m on {node}, and does not get \w+: {said}")
            wait_for("its pod to ask for what it had", lambda: set(cpu_of(job.pods()[f"{name}-r2-g0"])) == {"60m"}, 60,
                     detail=lambda: cpu_of(job.pods()[f"{name}-r2-g0"]))
            explained = " ".join(bsp("explain", name, "-n", self.space.name).stdout.split())  # its lines are wrapped
            self.assertRegex(explained, rf"rank 2 on {node}: CPU limit 60m → \w+, {reason} .* ago: {said}")
            job.wait_for_superstep(job.status()["superstep"] + 3)
            job.migrate(f"{name}-by-hand", 2, targetNode="*")
            self.assertEqual(job.wait_for_migration(f"{name}-by-hand")["phase"], "Succeeded", job.summary())
            there = job.status()["ranks"][2]["node"]
            self.assertNotEqual(there, node)
            self.space.kubectl("patch", "bspjob", name, "--type=merge", "-p", '{"spec":{"rescheduling":{"mode":"Migrate"}}}')
            wait_for("it to be resized there", lambda: self.events_of(job, "Resized"), 240, detail=job.summary)
            self.assertRegex(self.events_of(job, "Resized")[0], rf"^rank 2 has a CPU limit of \d+m instead of 60m on {there}, without a pause$")
            self.assertEqual(len(self.events_of(job, f"Resize{reason}")), 1)
            job.tell()
            self.check_succeeded(job, command)

    def test_one_beyond_the_node_is_infeasible(self):
        # Of the node, or since Kubernetes 1.36 of the API server.
        self.is_refused("Infeasible", r".*[Nn]ode didn't have enough (capacity|allocatable resources): cpu", 5000)

    def test_one_for_which_the_node_has_no_room_now_is_deferred(self):
        self.addCleanup(self.space.kubectl, "delete", "pod", "other", "--ignore-not-found", "--wait=false")
        self.is_refused("Deferred", "Node didn't have enough resource: cpu", 200, self.fill)

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
