#!/usr/bin/env python3
"""kubernetes_setup.py up|install|uninstall|down: sets up what the tests of label kubernetes need, once for all of them.

If a cluster is already up, or an operator already installed, it is used and left unchanged.
"""
import json
import os
import sys

import cluster_job
from cluster_job import CHART, STATE, TREE, helm, kubectl, on_host, skip, wait_for

RELEASE, SYSTEM = "bsp", "bsp-system"

RAISED = STATE / "raised-by-tests"
INSTALLED = STATE / "installed-by-tests.json"


def everything():
    """Names of all objects of the cluster, namespace/kind/name; of the kinds that Kubernetes itself renews and expires, only the release's."""
    kinds = [k for k in kubectl("api-resources", "--verbs=list", "-o", "name").stdout.split() if not k.startswith("events")]
    items = json.loads(kubectl("get", ",".join(kinds), "-A", "-o", "json", "--ignore-not-found").stdout or "{}").get("items", [])
    names = {(o["metadata"].get("namespace", ""), o["kind"], o["metadata"]["name"]) for o in items}
    restless = {"Lease", "EndpointSlice", "Endpoints", "Pod", "ComponentStatus", "APIService"}
    return {"/".join(name) for name in names if name[1] not in restless or name[0] == SYSTEM}


def check_compilation():
    """./dev test --kubernetes compiles before ctest starts, and says here how that ended: build.sh's exit status."""
    status, log = os.environ.get("BSP_KUBERNETES_BUILD", "0"), TREE / "build/kubernetes.log"
    if status == "3":
        skip(f"this machine can't compile Kubernetes: {log.read_text().splitlines()[-1]}")
    if status != "0":
        raise AssertionError(f"Kubernetes could not be compiled:\n{log.read_text()[-4000:]}")


def up():
    check_compilation()
    cluster_job.need_programs()
    if (STATE / "run").exists():
        return print("the cluster is already up")
    done = on_host(str(cluster_job.TREE / "dev"), "cluster", "up")
    if done.returncode != 0:
        raise AssertionError(done.stdout + done.stderr)
    RAISED.write_text("")


def install():
    if not (STATE / "run").exists():
        skip("the cluster is not up")
    if cluster_job.release():
        return print("the operator is already installed")
    INSTALLED.write_text(json.dumps(sorted(everything())))
    print(helm("install", RELEASE, CHART, "-n", SYSTEM, "--create-namespace", "--set", "metrics.enabled=true", "--wait", "--timeout", "5m").stdout)


def uninstall():
    """Checks that helm uninstall leaves only what the user created: the namespace, and the CRDs (crds.keep)."""
    if not INSTALLED.exists():
        skip("the operator was not installed by these tests")
    before = set(json.loads(INSTALLED.read_text()))
    INSTALLED.unlink()
    helm("uninstall", RELEASE, "-n", SYSTEM, "--wait", "--timeout", "2m")
    crds = {"/CustomResourceDefinition/bspjobs.migbsp.io", "/CustomResourceDefinition/rankmigrations.migbsp.io"}
    namespace = {f"/Namespace/{SYSTEM}", f"{SYSTEM}/ServiceAccount/default", f"{SYSTEM}/ConfigMap/kube-root-ca.crt"}
    expected = before | crds | namespace

    def left():
        return sorted(everything() - expected)
    try:  # the garbage collector deletes the pods after Helm has deleted their Deployment
        wait_for("helm uninstall to leave nothing", lambda: not left(), 60, detail=left)
    finally:
        kubectl("delete", "crd", "bspjobs.migbsp.io", "rankmigrations.migbsp.io", "--timeout=60s")
        kubectl("delete", "namespace", SYSTEM, "--timeout=120s")


def down():
    if not RAISED.exists():
        skip("the cluster was not started by these tests")
    RAISED.unlink()
    done = on_host(str(cluster_job.TREE / "dev"), "cluster", "down")
    print(done.stdout + done.stderr)
    if done.returncode != 0 or (STATE / "run").exists():
        raise AssertionError("parts of the cluster are left")


if __name__ == "__main__":
    {"up": up, "install": install, "uninstall": uninstall, "down": down}[sys.argv[1]]()
