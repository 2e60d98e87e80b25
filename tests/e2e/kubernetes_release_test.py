#!/usr/bin/env python3
"""A release from a registry: the chart is installed from it, upgraded to this tree's and rolled back while a job runs, whose ranks move
before, between and after.

The registry (tests/cluster/components/registry) listens on this machine's loopback address. Each node's passes connections on to it, because a
reference to localhost means the node itself.
"""
import contextlib
import socket
import subprocess
import sys
import tempfile
import unittest

import cluster_job
import cluster_nodes
import release_files
from bucket import free_port
from cluster_job import CHART, STATE, bsp_job, helm, job_of, kubectl, release, skip, until_told, wait_for
from kubernetes_run_test import InANamespace
from kubernetes_setup import RELEASE, SYSTEM
from local_job import ON_HOST
from release_install_test import succeed

REGISTRY = STATE / "bin/registry"


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def registry():
    """Yields the registry's address."""
    port = free_port()
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as started:
        command = [str(REGISTRY), str(port), f"{directory}/socket"]
        nodes = [pid for name, (pid, _) in cluster_nodes.machines().items() if name not in ("control", "door")]
        for words in [command, *(["nsenter", "-t", str(pid), "-n", *command, "forward"] for pid in nodes)]:
            process = subprocess.Popen([ON_HOST, *words])
            started.callback(process.wait)
            started.callback(process.terminate)
        wait_for("the registry", lambda: answers(port))
        yield f"localhost:{port}"


class Release(InANamespace):
    def install(self, address):
        directory, version = release_files.newest()
        for name in ("bsp-operator", "bsp-runtime"):
            succeed("podman", "load", "-q", "-i", str(directory / f"images/{name}.tar"), timeout=300)
            succeed("podman", "push", "-q", "--tls-verify=false", f"localhost/{name}:{version}", f"docker://{address}/{name}:{version}", timeout=300)
        helm("push", str(directory / f"bsp-operator-{version}.tgz"), f"oci://{address}/charts", "--plain-http")
        self.addCleanup(kubectl, "delete", "namespace", SYSTEM, "--timeout=120s")
        self.addCleanup(kubectl, "delete", "crd", "bspjobs.migbsp.io", "rankmigrations.migbsp.io", "--timeout=60s")
        self.addCleanup(helm, "uninstall", RELEASE, "-n", SYSTEM, "--wait", "--timeout", "2m")
        helm("install", RELEASE, f"oci://{address}/charts/bsp-operator", "--version", version, "--plain-http", "-n", SYSTEM, "--create-namespace",
             "--set", f"image.repository={address}/bsp-operator", "--set", f"runtime.image={address}/bsp-runtime:{version}", "--wait", "--timeout", "5m")

    def upgrade(self):
        helm("upgrade", RELEASE, CHART, "-n", SYSTEM, "--reset-then-reuse-values", "--set", "image.repository=localhost/bsp-operator", "--set",
             "image.tag=dev", "--set", "runtime.image=localhost/bsp-runtime:dev", "--wait", "--timeout", "5m")

    def move(self, job, name, rank, target):
        job.migrate(name, rank, targetSet=target)
        ended = job.wait_for_migration(name)
        self.assertEqual((ended["phase"], ended["targetSet"]), ("Succeeded", target), ended)

    def test_runs_a_job_through_an_upgrade_and_back(self):
        command = until_told()
        with registry() as address:
            self.install(address)
            with job_of(self.space, bsp_job("old", command, sets={"names": ["slow", "fast", "medium"]})) as job:
                job.wait_for_superstep(5)
                self.move(job, "before", 0, "fast")
                self.upgrade()
                job.wait_for_superstep(job.status()["superstep"] + 5)
                self.move(job, "after", 0, "medium")
                images = {c["image"] for pod in job.pods().values() for c in pod["spec"]["initContainers"]}
                self.assertTrue(all(address in image for image in images), images)
                helm("rollback", RELEASE, "1", "-n", SYSTEM, "--wait", "--timeout", "5m")
                job.wait_for_superstep(job.status()["superstep"] + 5)
                self.move(job, "again", 0, "fast")
                self.drain_and_end(job, 1, command)


if __name__ == "__main__":
    cluster_job.need_programs()
    release_files.newest()
    if not (STATE / "run").exists():
        skip("the cluster is not up")
    if release():
        skip("an operator is installed already")
    if not REGISTRY.exists():
        skip("no registry is compiled: tests/cluster/build.sh registry")
    sys.exit(unittest.main(verbosity=2))
