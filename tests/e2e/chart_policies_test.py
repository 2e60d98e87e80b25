#!/usr/bin/env python3
"""The chart's admission policies and what Helm refuses, before a real API server without any other part of a cluster
(tests/unit/kube/apiserver.sh): pods, Secrets and priorities that are let in or not, for whom, and why; and releases that share a namespace."""
import copy
import json
import os
import pathlib
import ssl
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

TREE = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("BSP_CLUSTER_BIN", TREE / "build/cluster/bin"))
CHART = str(TREE / "charts/bsp-operator")
OPERATOR = "system:serviceaccount:bsp-system:bsp"
OURS = ["CHECKPOINT_RESTORE", "SYS_PTRACE", "SETPCAP", "SETUID", "SETGID", "KILL"]
OWNER = {"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "name": "j", "uid": "6d1d", "controller": True}
# A pod as the operator makes it.
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j-r0-g0", "labels": {"migbsp.io/rank": "0"}, "ownerReferences": [OWNER]},
       "spec": {"hostUsers": False,
                "initContainers": [{"name": "sidecar", "image": "i", "restartPolicy": "Always", "securityContext": {
                    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}}],
                "containers": [{"name": "app", "image": "i", "securityContext": {
                    "runAsUser": 0, "capabilities": {"drop": ["ALL"], "add": OURS}, "seccompProfile": {"type": "Unconfined"}}}]}}
PLAIN = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"}, "spec": {"containers": [{"name": "app", "image": "i"}]}}
APP = "spec.containers.0"
SECOND = {**POD["spec"]["containers"][0], "name": "app-1"}
HELPER = {"name": "helper", "image": "i"}

# Of the pod that the operator makes of a tenant's template: the change, and what the refusal names; "" where it is let in.
OPERATORS_PODS = [
    ({}, ""),
    ({"spec.containers.1": SECOND}, ""),
    ({"spec.containers.1": {**SECOND, "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}}, "further ranks"),
    ({"metadata.ownerReferences": None}, "pods and Secrets of BSPJobs only"),
    ({"metadata.ownerReferences": [{**OWNER, "kind": "Job", "apiVersion": "batch/v1"}]}, "pods and Secrets of BSPJobs only"),
    ({f"{APP}.securityContext.capabilities.add": OURS[:-1]}, "exactly the capabilities"),
    ({f"{APP}.securityContext.capabilities.add": [*OURS, "SYS_ADMIN"]}, "exactly the capabilities"),
    ({f"{APP}.securityContext.capabilities.add": [*OURS[:-1], "SYS_ADMIN"]}, "exactly the capabilities"),
    ({f"{APP}.securityContext.privileged": True}, "container app is privileged"),
    ({f"{APP}.name": "other"}, "exactly the capabilities"),
    ({"spec.containers.1": {**HELPER, "securityContext": {"privileged": True}}}, "container helper is privileged"),
    ({"spec.containers.1": {**HELPER, "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}}, "beyond those of the baseline"),
    ({"spec.containers.1": {**HELPER, "securityContext": {"capabilities": {"add": ["NET_BIND_SERVICE"]}}}}, ""),
]
# The pod that removes a deleted job's checkpoint sets.
RECLAIMS = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j-6d1d-reclaim", "ownerReferences": [OWNER]},
            "spec": {"hostUsers": False, "restartPolicy": "OnFailure",
                     "volumes": [{"name": "bsp-sets", "secret": {"secretName": "keys", "optional": True}}],
                     "containers": [{"name": "reclaim", "image": "i", "command": ["/bsp/bsp-sidecar", "--remove-sets"], "securityContext": {
                         "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
                         "runAsUser": 64600, "runAsNonRoot": True, "readOnlyRootFilesystem": True}}]}}
RECLAIMING_PODS = [
    ({}, ""),
    ({"metadata.ownerReferences": None}, "pods and Secrets of BSPJobs only"),
    ({f"{APP}.name": "other"}, "exactly the capabilities"),
    ({f"{APP}.securityContext.runAsNonRoot": False, f"{APP}.securityContext.runAsUser": 0}, "exactly the capabilities"),
    ({f"{APP}.securityContext.capabilities.add": ["NET_BIND_SERVICE"]}, "exactly the capabilities"),
    ({f"{APP}.securityContext.capabilities.add": OURS}, "exactly the capabilities"),
    ({"spec.containers.1": HELPER}, "exactly the capabilities"),
    ({"spec.initContainers": [HELPER]}, "exactly the capabilities"),
]
# The same in a namespace of jobs: what owns the node is refused, too.
OPERATORS_PODS_THERE = [
    ({}, ""),
    ({"spec.hostNetwork": True, "spec.hostUsers": None}, "hostNetwork"),
    ({"spec.hostPID": True, "spec.hostUsers": None}, "hostPID"),
    ({"spec.volumes": [{"name": "v", "hostPath": {"path": "/"}}]}, "hostPath"),
    ({"spec.volumes": [{"name": "v", "hostPath": {"path": "/scratch2"}}]}, "hostPath"),
    ({"spec.volumes": [{"name": "v", "hostPath": {"path": "/scratch/a"}}]}, ""),
    ({"spec.volumes": [{"name": "v", "hostPath": {"path": "/scratch"}}]}, ""),
    ({"spec.securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "seccompProfile"),
    ({"spec.containers.1": {**HELPER, "securityContext": {"seccompProfile": {"type": "Unconfined"}}}}, "seccompProfile"),
    ({"spec.containers.1": {**HELPER, "securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}}, "capabilities.add"),
    ({"spec.containers.1": {**HELPER, "ports": [{"containerPort": 80, "hostPort": 80}]}}, "hostPort"),
]
# Anybody's pod in a namespace of jobs.
PODS_THERE = [
    ({}, ""),
    ({f"{APP}.securityContext": {"privileged": True}}, "privileged"),
    ({f"{APP}.securityContext": {"capabilities": {"add": OURS}}}, "capabilities.add"),
    ({f"{APP}.securityContext": {"capabilities": {"add": OURS}}, "metadata.ownerReferences": [OWNER], "metadata.labels": {"migbsp.io/rank": "0"}},
     "capabilities.add"),
    ({f"{APP}.securityContext": {"capabilities": {"add": ["SETUID"]}}}, ""),
    ({f"{APP}.securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "seccompProfile"),
    ({f"{APP}.securityContext": {"procMount": "Unmasked"}, "spec.hostUsers": False}, "procMount"),
    ({"spec.hostIPC": True}, "hostIPC"),
    ({"spec.volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]}, "hostPath"),
    ({"spec.volumes": [{"name": "v", "emptyDir": {}}]}, ""),
    ({"spec.initContainers": [{**HELPER, "securityContext": {"privileged": True}}]}, "privileged"),
]


def run(*words, text=None, check=True):
    done = subprocess.run([str(BIN / words[0]), *words[1:]], input=text, capture_output=True, text=True, timeout=300, check=False)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def kubectl(*words, **options):
    return run("kubectl", *words, **options)


def helm(*words, **options):
    return run("helm", *words, **options)


def changed(object_, changes):
    made = copy.deepcopy(object_)
    for path, value in changes.items():
        *way, last = path.split(".")
        here = made
        for word in way:
            here = here[int(word)] if isinstance(here, list) else here.setdefault(word, {})
        if isinstance(here, list):
            here[int(last):int(last) + 1] = [value]
        elif value is None:
            del here[last]
        else:
            here[last] = value
    return made


class Api:
    """Dry runs of single requests: a kubectl for each would take most of this test's time."""

    def __init__(self, kubeconfig):
        here = pathlib.Path(kubeconfig).parent
        self.tls = ssl.create_default_context(cafile=here / "ca.crt")
        self.tls.load_cert_chain(here / "admin.crt", here / "admin.key")
        self.server = kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}").stdout

    def ask(self, method, path, object_, who=None, content="application/json"):
        """"" if the API server would do it, or its refusal."""
        headers = {"Content-Type": content, **({"Impersonate-User": who} if who else {})}
        request = urllib.request.Request(f"{self.server}{path}?dryRun=All", json.dumps(object_).encode(), headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self.tls, timeout=60):
                return ""
        except urllib.error.HTTPError as e:
            return json.loads(e.read())["message"]


PLURALS = {"Pod": "/api/v1/namespaces/{}/pods", "Secret": "/api/v1/namespaces/{}/secrets",
           "BSPJob": "/apis/migbsp.io/v1alpha1/namespaces/{}/bspjobs"}


def answer(object_, namespace, who=None, method="POST"):
    """"" if the API server takes it (in a dry run), or its refusal."""
    path = PLURALS[object_["kind"]].format(namespace) + ("" if method == "POST" else f"/{object_['metadata']['name']}")
    return Policies.api.ask(method, path, object_ if method != "DELETE" else {}, who)


def wait_for(what, holds, seconds=120):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s in vain for {what}")
        time.sleep(0.2)


def secret(name, owner=OWNER):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, **({"ownerReferences": [owner]} if owner else {})}, "data": {}}


def job(priority=None):
    template = {"spec": {"containers": [{"name": "app", "image": "i", "command": ["p"]}]}}
    policy = {} if priority is None else {"runPolicy": {"priority": priority}}
    return {"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "metadata": {"name": "j"}, "spec": {"ranks": 2, "template": template, **policy}}


class Policies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        Policies.api = Api(os.environ["KUBECONFIG"])
        for name in ("bsp-system", "tenants", "free", "weather"):
            kubectl("create", "namespace", name)
        helm("install", "bsp", CHART, "-n", "bsp-system", "--set-json", 'jobs.maxPriority={"*":10,"weather":1000}',
             "--set-json", 'admissionPolicies.hostPaths=["/scratch"]')
        kubectl("label", "namespace", "tenants", "migbsp.io/jobs=only")
        # Three policies, each in force once a request that it must refuse is refused.
        bad = changed(PLAIN, {"spec.hostIPC": True})
        wait_for("the policy of namespaces", lambda: "hostIPC" in answer(bad, "tenants"))
        wait_for("the policy of the operator", lambda: "*-tls" in answer(secret("x"), "free", OPERATOR))
        wait_for("the policy of priorities", lambda: "jobs.maxPriority" in answer(job(11), "free"))

    def check(self, object_, namespace, cases, who=None, one_of_two=False):
        for changes, wanted in cases:
            with self.subTest(namespace=namespace, who=who, **{k: str(v) for k, v in changes.items()}):
                told = answer(changed(object_, changes), namespace, who)
                if wanted:
                    self.assertIn("ValidatingAdmissionPolicy", told)
                    # Where two policies refuse, the answer is of either.
                    self.assertIn("" if one_of_two else wanted, told)
                else:
                    self.assertEqual(told, "")

    def test_the_operator_makes_pods_of_jobs_only(self):
        self.check(POD, "free", OPERATORS_PODS, OPERATOR)
        self.check(POD, "tenants", OPERATORS_PODS, OPERATOR, one_of_two=True)
        self.check(POD, "tenants", OPERATORS_PODS_THERE, OPERATOR)

    def test_the_operator_makes_pods_that_remove_sets(self):
        self.check(RECLAIMS, "free", RECLAIMING_PODS, OPERATOR)
        self.check(RECLAIMS, "tenants", RECLAIMING_PODS, OPERATOR, one_of_two=True)

    def test_what_may_change_of_the_checkpoints_of_a_job(self):
        kept = {"storage": {"hostPath": {"path": "/sets"}}, "sizeLimit": "1Gi"}
        made = job()
        made["metadata"]["name"] = "kept"
        made["spec"]["checkpoint"] = kept
        kubectl("create", "-n", "free", "-f", "-", text=json.dumps(made))
        self.addCleanup(kubectl, "delete", "bspjob", "kept", "-n", "free")
        for change, good in (({"reclaimPolicy": "Retain"}, True), ({"reclaimPolicy": "Keep"}, False), ({"keep": 3}, False),
                             ({"allowedNamespaces": ["team-b"]}, True), ({"allowedNamespaces": []}, True), ({"allowedNamespaces": ["*"]}, False),
                             ({"allowedNamespaces": ["../team-b"]}, False), ({"allowedNamespaces": "team-b"}, False),
                             ({"storage": {"hostPath": {"path": "/elsewhere"}}}, False), ({"storage": None}, False), ({"sizeLimit": "2Gi"}, False)):
            told = self.api.ask("PATCH", PLURALS["BSPJob"].format("free") + "/kept", {"spec": {"checkpoint": change}},
                                content="application/merge-patch+json")
            self.assertEqual(told == "", good, (change, told))

    def test_nobody_takes_over_a_node_in_a_namespace_of_jobs(self):
        self.check(PLAIN, "tenants", PODS_THERE)

    def test_other_namespaces_are_left_alone(self):
        self.check(PLAIN, "free", [(changes, "") for changes, _ in PODS_THERE])

    def test_no_container_is_added_to_a_running_pod(self):
        pod = changed(PLAIN, {"metadata.name": "runs"})
        kubectl("create", "-n", "tenants", "-f", "-", text=json.dumps(pod))
        for security, wanted in (({"privileged": True}, "privileged"), ({"capabilities": {"add": ["SYS_PTRACE"]}}, "capabilities.add"), ({}, "")):
            more = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "i", "securityContext": security}]}}
            told = self.api.ask("PATCH", "/api/v1/namespaces/tenants/pods/runs/ephemeralcontainers", more,
                                content="application/strategic-merge-patch+json")
            self.assertIn(wanted, told)
            self.assertEqual(told == "", wanted == "", told)

    def test_the_operator_resizes_pods_of_jobs_only(self):
        def cpu(much):
            return {"resources": {what: {"cpu": much, "memory": "16Mi"} for what in ("requests", "limits")}}
        for name, owners, wanted in (("of-a-job", [OWNER], ""), ("anybodys", None, "pods and Secrets of BSPJobs only")):
            pod = changed(POD, {"metadata.name": name, "metadata.ownerReferences": owners, f"{APP}.resources": cpu("100m")["resources"]})
            kubectl("create", "-n", "free", "-f", "-", text=json.dumps(pod))
            more = {"spec": {"containers": [{"name": "app", **cpu("200m")}]}}
            told = self.api.ask("PATCH", PLURALS["Pod"].format("free") + f"/{name}/resize", more, OPERATOR,
                                content="application/strategic-merge-patch+json")
            self.assertIn(wanted, told)
            self.assertEqual(told == "", wanted == "", told)

    def test_the_operator_writes_only_secrets_of_jobs(self):
        self.assertEqual(answer(secret("j-6d1d-a0-0-tls"), "free", OPERATOR), "")
        self.assertIn("of BSPJobs only", answer(secret("j-6d1d-a0-0-tls", owner=None), "free", OPERATOR))
        self.assertIn("*-tls", answer(secret("token"), "free", OPERATOR))
        self.assertEqual(answer(secret("token", owner=None), "free"), "", "anybody else is none of its business")
        # One that it may not change or delete, and one that it may.
        for name, owner in (("theirs-tls", None), ("token", OWNER), ("j-tls", OWNER)):
            kubectl("create", "-n", "free", "-f", "-", text=json.dumps(secret(name, owner)))
            allowed = name == "j-tls"
            now = json.loads(kubectl("get", "secret", name, "-n", "free", "-o", "json").stdout)
            now["metadata"]["ownerReferences"] = [OWNER]
            self.assertEqual(answer(now, "free", OPERATOR, "PUT") == "", allowed, name)
            self.assertEqual(answer(now, "free", OPERATOR, "DELETE") == "", allowed, name)
        authority = json.loads(kubectl("get", "secret", "bsp-authority", "-n", "bsp-system", "-o", "json").stdout)
        authority["data"] = {"seed": "AAAA"}
        self.assertEqual(answer(authority, "bsp-system", OPERATOR, "PUT"), "")

    def test_priorities_have_a_ceiling(self):
        for namespace, priority, good in (("free", None, True), ("free", 10, True), ("free", 11, False), ("free", -5, True),
                                          ("weather", 1000, True), ("weather", 1001, False)):
            told = answer(job(priority), namespace)
            self.assertEqual(told == "", good, (namespace, priority, told))
            if not good:
                self.assertIn(f"spec.runPolicy.priority: {priority} is above the limit of namespace {namespace}", told)

    def test_a_job_keeps_the_priority_that_it_has(self):
        kubectl("create", "-n", "weather", "-f", "-", text=json.dumps(job(500)))
        self.addCleanup(kubectl, "delete", "bspjob", "j", "-n", "weather")

        def limit(most):
            helm("upgrade", "bsp", CHART, "-n", "bsp-system", "--reuse-values", "--set-json", "jobs.maxPriority=" + json.dumps(most))
        # The API server heeds a policy some time after it has changed.
        self.addCleanup(lambda: wait_for("the old limit", lambda: "above the limit" not in answer(job(8), "weather")))
        self.addCleanup(limit, {"*": 10, "weather": 1000})
        limit({"*": 10, "weather": 7})
        wait_for("the new limit", lambda: "7" in answer(job(8), "weather"))

        def patch(change):
            return self.api.ask("PATCH", PLURALS["BSPJob"].format("weather") + "/j", change, content="application/merge-patch+json")
        self.assertEqual(patch({"metadata": {"finalizers": ["migbsp.io/pods"]}}), "")
        self.assertEqual(patch({"spec": {"runPolicy": {"priority": 400}}}), "")
        self.assertIn("jobs.maxPriority", patch({"spec": {"runPolicy": {"priority": 501}}}))

    def test_they_can_be_switched_off(self):
        def switch(on):
            helm("upgrade", "bsp", CHART, "-n", "bsp-system", "--reuse-values", "--set",
                 f"admissionPolicies.operator={on},admissionPolicies.namespaces={on}")
        self.addCleanup(lambda: wait_for("the policy of namespaces", lambda: "hostIPC" in answer(changed(PLAIN, {"spec.hostIPC": True}), "tenants")))
        self.addCleanup(switch, "true")
        switch("false")
        wait_for("no policy", lambda: not answer(changed(PLAIN, {"spec.hostIPC": True}), "tenants"))
        self.assertNotIn("-jobs", kubectl("get", "validatingadmissionpolicies", "-o", "name").stdout)
        self.assertNotIn("-operator", kubectl("get", "validatingadmissionpolicies", "-o", "name").stdout)


class Releases(unittest.TestCase):
    """Two operators of one namespace would take each other's jobs."""

    @classmethod
    def setUpClass(cls):
        helm("uninstall", "bsp", "-n", "bsp-system", "--no-hooks", "--ignore-not-found")
        for name in ("one", "two"):
            kubectl("create", "namespace", f"{name}-system")
        for name in ("a", "b"):
            kubectl("create", "namespace", name)

    def install(self, name, values, *words):
        """"" or why Helm refuses."""
        values = {"watchNamespace": "", "jobs.namespaces": [], **values}
        words = [*words, *(word for pair in values.items() for word in ("--set-json", f"{pair[0]}={json.dumps(pair[1])}"))]
        done = helm("upgrade", "--install", name, CHART, "-n", f"{name}-system", *words, check=False)
        return done.stderr if done.returncode else ""

    def check(self, values, shared):
        told = self.install("two", values, "--dry-run=server")
        self.assertEqual(told == "", not shared, told)
        if shared:
            self.assertIn(f"the operator of release one in namespace one-system manages {shared}, too", told)
            self.assertIn("set watchNamespace or jobs.namespaces", told)

    def test_that_share_a_namespace_are_refused(self):
        for first, others in (({"watchNamespace": "a"}, [({"watchNamespace": "a"}, "namespace a"), ({"watchNamespace": "b"}, ""), ({}, "namespace a"),
                                                         ({"jobs.namespaces": ["b", "a"]}, "namespace a")]),
                              ({"jobs.namespaces": ["a", "b"]}, [({"watchNamespace": "b"}, "namespace b"), ({"jobs.namespaces": ["c"]}, "")]),
                              ({}, [({"watchNamespace": "b"}, "namespace b"), ({}, "every namespace")])):
            self.assertEqual(self.install("one", first), "", "a release isn't its own rival")
            for second, shared in others:
                with self.subTest(first=first, second=second):
                    self.check(second, shared)

    def test_of_a_chart_that_does_not_say_what_it_manages(self):
        self.assertEqual(self.install("one", {"watchNamespace": "a"}), "")
        kubectl("annotate", "deployment", "one", "-n", "one-system", "migbsp.io/namespaces-")
        self.check({"watchNamespace": "b"}, "")
        self.check({"watchNamespace": "a"}, "namespace a")


if __name__ == "__main__":
    os.environ["KUBECONFIG"] = os.environ["BSP_KUBE_TEST_KUBECONFIG"]
    sys.exit(unittest.main(verbosity=2))
