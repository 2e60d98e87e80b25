#!/usr/bin/env python3
"""Access control in a real cluster: a job's pods by its NetworkPolicy, objects by the service accounts' roles, sidecars by
certificates that are renewed while the job runs."""
import base64
import json
import os
import pathlib
import re
import sys
import unittest

import cluster_job
import cluster_nodes
from cluster_job import Namespace, bsp_job, field_of, helm, job_of, kubectl, lattice_boltzmann, get_object, sequential_field, until_told, wait_for

ENDLESS = lattice_boltzmann(supersteps=1000000)
POOLS = {"names": ["slow", "fast", "medium"]}
RIGHTS = pathlib.Path(__file__).with_name("rights.txt")


def stranger(name, labels=None):
    """An idle pod to connect from."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": "app", "image": "localhost/bsp-apps:dev", "command": ["sleep", "infinity"], "resources": {"requests": {"cpu": "10m"}}}]}}


def connects(space, pod, address, port, container="app"):
    """True if a TCP connection from that pod is accepted; False if it times out."""
    done = kubectl("exec", "-n", space.name, pod, "-c", container, "--", "timeout", "4", "bash", "-c", f"exec 3<>/dev/tcp/{address}/{port}", check=False)
    if done.returncode not in (0, 124) and "command terminated" not in done.stderr:
        raise AssertionError(done.stderr)
    return done.returncode == 0


def mpi_port(space, pod):
    """The port on which Open MPI listens in a rank's pod, on any address."""
    table = kubectl("exec", "-n", space.name, pod, "-c", "app", "--", "cat", "/proc/net/tcp").stdout.splitlines()[1:]
    found = [int(row.split()[1].split(":")[1], 16) for row in table if row.split()[3] == "0A" and row.split()[1].startswith("00000000:")]
    return next((port for port in found if port != 7600), 0)


def running(space, name):
    return wait_for(f"pod {name} to run", lambda: get_object(f"/api/v1/namespaces/{space.name}/pods/{name}", {}).get("status", {}).get("phase") == "Running", 60)


class Network(unittest.TestCase):
    def test_only_the_jobs_pods_and_the_operator_reach_it(self):
        letting_in = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "let-in"},
                      "spec": {"podSelector": {"matchLabels": {"migbsp.io/job": "closed"}},
                               "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "stranger"}}}]}]}}
        with Namespace("e2e-network") as space, Namespace("e2e-elsewhere") as elsewhere, \
             job_of(space, bsp_job("closed", ENDLESS, sets=POOLS)) as job:
            for where in (space, elsewhere):
                where.apply(stranger("stranger"))
                running(where, "stranger")

            def check(pods):
                for pod in pods:
                    address = get_object(f"/api/v1/namespaces/{space.name}/pods/{pod}")["status"]["podIP"]
                    port = wait_for(f"MPI's port of {pod}", lambda pod=pod: mpi_port(space, pod), 60)
                    other, = (p for p in pods if p != pod)
                    self.assertTrue(connects(space, other, address, port), f"{other} belongs to the job and must reach MPI in {pod}")
                    for where in (space, elsewhere):
                        self.assertFalse(connects(where, "stranger", address, 7600), f"the sidecar of {pod} from {where.name}")
                        self.assertFalse(connects(where, "stranger", address, port), f"MPI in {pod} from {where.name}")
                return address, port

            job.wait_for_superstep(5)
            check([r["pod"] for r in job.status()["ranks"]])
            job.migrate("away", 0, targetSet="medium")
            self.assertEqual(job.wait_for_migration("away")["phase"], "Succeeded", job.migration("away"))
            job.wait_for_superstep(job.status()["superstep"] + 5)
            address, port = check([r["pod"] for r in job.status()["ranks"]])
            # Policies are additive: one of the user's that allows access takes effect, so the refusal above came from the job's policy.
            space.apply(letting_in)
            wait_for("the stranger to be let in", lambda: connects(space, "stranger", address, port), 30)
            self.assertTrue(connects(space, "stranger", address, 7600))
            self.assertFalse(connects(elsewhere, "stranger", address, port))
            space.kubectl("delete", "networkpolicy", "let-in")
            wait_for("the stranger to be kept out", lambda: not connects(space, "stranger", address, port), 30)
            self.assertEqual(job.status().get("attempt", 0), 0, job.summary())
            policies = space.kubectl("get", "networkpolicies", "-o", "json")
            policy, = json.loads(policies.stdout)["items"]
            self.assertEqual(policy["metadata"]["ownerReferences"][0]["uid"], job.object()["metadata"]["uid"])
            job.delete("--timeout=90s")
            wait_for("the policy to go with its job", lambda: not json.loads(space.kubectl("get", "networkpolicies", "-o", "json").stdout)["items"], 60)


    def test_only_named_peers_reach_the_operators_metrics(self):
        name, system = cluster_job.release()

        def allow(*peers):
            cluster_job.helm("upgrade", name, cluster_job.CHART, "-n", system, "--reuse-values", "--set-json",
                             f"networkPolicy.metricsFrom={json.dumps(peers)}", "--wait")
        with Namespace("e2e-metrics") as space:
            space.apply(stranger("stranger"))
            running(space, "stranger")
            address = cluster_job.operator_pods()[cluster_job.leader()]["status"]["podIP"]
            for port in (8080, 8081):
                self.assertFalse(connects(space, "stranger", address, port), port)
            self.addCleanup(allow)
            allow({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.name}}})
            wait_for("the metrics to be open", lambda: connects(space, "stranger", address, 8080), 30)
            self.assertFalse(connects(space, "stranger", address, 8081), "only the kubelet may reach the probes")


class Rights(unittest.TestCase):
    """The output of `kubectl auth can-i --list` for each service account, in the jobs' namespace and the operator's; UPDATE_GOLDEN=1 writes it."""

    def test_are_minimal(self):
        name, system = cluster_job.release()
        text = ""
        with Namespace("e2e-rights") as space:
            for who, account in (("the operator", f"{system}:{name}"), ("a pod of a job", f"{space.name}:default")):
                for where, namespace in (("of jobs", space.name), ("of the operator", system)):
                    listed = kubectl("auth", "can-i", "--list", "-n", namespace, f"--as=system:serviceaccount:{account}").stdout
                    rows = sorted({re.sub(r" {2,}", "  ", row.strip()) for row in listed.splitlines()[1:]})
                    text += f"{who}, in a namespace {where}:\n" + "".join(f"  {row}\n" for row in rows) + "\n"
        if os.environ.get("UPDATE_GOLDEN"):
            RIGHTS.write_text(text)
        self.assertEqual(text, RIGHTS.read_text())

    def test_secrets_are_not_readable(self):
        name, system = cluster_job.release()
        operator = f"--as=system:serviceaccount:{system}:{name}"
        for verb in ("get", "list", "watch"):
            for words in (("-n", "default"), ("-n", system), ("-A",)):
                self.assertEqual(kubectl("auth", "can-i", verb, "secrets", *words, operator, check=False).stdout.strip(), "no", (verb, words))
        self.assertEqual(kubectl("auth", "can-i", "get", f"secrets/{name}-authority", "-n", system, operator).stdout.strip(), "yes")

    def test_writes_only_in_named_namespaces(self):
        name, system = cluster_job.release()
        with Namespace("e2e-named") as named, Namespace("e2e-other") as other:
            def allow(*namespaces):
                helm("upgrade", name, cluster_job.CHART, "-n", system, "--reuse-values", "--set-json",
                     "jobs.namespaces=" + json.dumps(namespaces), "--wait")
            self.addCleanup(allow)
            allow(named.name)
            operator = f"--as=system:serviceaccount:{system}:{name}"
            for verb, resource in (("create", "pods"), ("delete", "pods"), ("update", "secrets"), ("update", "bspjobs")):
                for space, answer in ((named, "yes"), (other, "no")):
                    told = kubectl("auth", "can-i", verb, resource, "-n", space.name, operator, check=False).stdout.strip()
                    self.assertEqual(told, answer, (verb, resource, space.name))
            waits = cluster_job.ClusterJob(other, bsp_job("elsewhere", lattice_boltzmann(20)))
            with job_of(named, bsp_job("here", lattice_boltzmann(20))) as job:
                self.assertEqual(job.ended()["phase"], "Succeeded", job.summary())
            self.assertFalse(waits.pods())
            waits.delete("--timeout=30s")


class Admission(unittest.TestCase):
    """chart_policies_test.py has what the policies refuse; here the operator's own pods pass them."""

    def test_a_job_runs_and_moves_in_a_confined_namespace(self):
        with Namespace("e2e-confined", labels={"migbsp.io/jobs": "only"}) as space:
            owns_the_node = stranger("owner")
            owns_the_node["spec"]["hostPID"] = True
            self.assertIn("hostPID", space.apply(owns_the_node, check=False).stderr)
            with job_of(space, bsp_job("confined", ENDLESS, sets=POOLS)) as job:
                job.wait_for_superstep(5)
                job.migrate("away", 0, targetSet="medium")
                self.assertEqual(job.wait_for_migration("away")["phase"], "Succeeded", job.migration("away"))
                job.wait_for_superstep(job.status()["superstep"] + 5)
                self.assertEqual(job.status().get("attempt", 0), 0, job.summary())
            greedy = bsp_job("greedy", lattice_boltzmann(20))
            greedy["spec"]["template"]["spec"]["volumes"] = [{"name": "node", "hostPath": {"path": "/"}}]
            with job_of(space, greedy) as job:
                status = job.ended()
                self.assertEqual((status["phase"], status["reason"]), ("Failed", "InvalidPod"), status)
                self.assertIn("hostPath", status["message"])


class Certificates(unittest.TestCase):
    def authority(self):
        name, system = cluster_job.release()
        return get_object(f"/api/v1/namespaces/{system}/secrets/{name}-authority", {}).get("data", {}).get("seed", "")

    def test_lost_seed_harms_no_job(self):
        """The leader restores it. If the leader is lost too, the next one creates another, and renews a running job's certificates."""
        name, system = cluster_job.release()
        command = until_told()
        with Namespace("e2e-certificates") as space, job_of(space, bsp_job("lasts", command, sets=POOLS)) as job:
            job.wait_for_superstep(5)
            seed = self.authority()
            self.assertEqual(len(base64.b64decode(seed)), 32)
            kubectl("delete", "secret", f"{name}-authority", "-n", system)
            wait_for("the seed to be put back", self.authority, 120)
            self.assertEqual(self.authority(), seed)

            before = {n: s["data"] for n, s in job.secrets().items()}
            lost = cluster_job.leader()
            running = cluster_nodes.processes("bsp-operator", HOSTNAME=lost)
            kubectl("delete", "pod", lost, "-n", system, "--grace-period=0", "--force")
            # Its pod is gone before its process is, which would put the seed back.
            wait_for("the leader's end", lambda: all(cluster_nodes.state(pid) in ("", "X", "Z") for pid in running), 60)
            kubectl("delete", "secret", f"{name}-authority", "-n", system)
            wait_for("another seed", lambda: self.authority() not in ("", seed), 120)
            wait_for("the pods' certificates to be renewed", lambda: all(job.secrets()[n]["data"]["ca.pem"] != d["ca.pem"] for n, d in before.items()), 120)
            job.wait_for_superstep(job.status()["superstep"] + 5, 300)  # the operator reaches the sidecars again
            job.migrate("after", 0, targetSet="medium")
            self.assertEqual(job.wait_for_migration("after")["phase"], "Succeeded", job.migration("after"))
            job.tell()
            status = job.ended()
            self.assertEqual((status["phase"], status.get("attempt", 0)), ("Succeeded", 0), job.summary())
            self.assertEqual(field_of(job.log(0)), sequential_field(command, job.log(0)))


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
