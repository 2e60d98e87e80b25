#!/usr/bin/env python3
"""README.md's commands for a cluster, typed as they stand. The images are those that the cluster has; `-w` ends after some seconds."""
import subprocess
import sys
import unittest

import cluster_job
from cluster_job import CHART, KUBECONFIG, ON_HOST, TREE, get_object, helm, kubectl, wait_for
from readme import commands

JOB = f"{cluster_job.API}/default/bspjobs/lattice-boltzmann"


def type_in(command, seconds):
    return subprocess.run([ON_HOST, "timeout", str(seconds), "env", f"KUBECONFIG={KUBECONFIG}", "bash", "-c",
                           f'PATH="{TREE}/build/bin:$PATH"; cd {TREE} && {command}'], capture_output=True, text=True)


class Readme(unittest.TestCase):
    def test_commands_of_a_cluster(self):
        typed = commands("In a cluster")
        self.assertTrue(typed[0].startswith("./dev images"), typed)
        # The page's install gives up the values that the release was installed with.
        values = helm("get", "values", "bsp", "-n", "bsp-system", "-o", "yaml").stdout
        self.addCleanup(helm, "upgrade", "bsp", CHART, "-n", "bsp-system", "-f", "-", "--wait", text=values)
        self.addCleanup(kubectl, "delete", "bspjob", "lattice-boltzmann", "--ignore-not-found", "--timeout=60s")
        self.addCleanup(kubectl, "label", "namespace", "default", "pod-security.kubernetes.io/enforce-")
        for command in typed[1:]:
            with self.subTest(command):
                watches = " -w" in command
                if watches:
                    wait_for("the job to run", lambda: get_object(JOB, {}).get("status", {}).get("phase") == "Running", 180)
                done = type_in(command, 5 if watches else 300)
                self.assertEqual(done.returncode, 124 if watches else 0, done.stdout + done.stderr)
                if "get" in command or "describe" in command or "explain" in command:
                    self.assertTrue(done.stdout.strip() or "rankmigrations" in command, command)


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
