#!/usr/bin/env python3
"""The smoke test of a real cluster: a job runs, a rank is moved by hand, its node is drained, and the field is the sequential program's.

The chart is installed before and uninstalled afterwards (kubernetes_setup.py). All other tests of the cluster are `./dev test --kubernetes`.
"""
import sys
import unittest

import cluster_job
from cluster_job import bsp_job, job_of, until_told
from kubernetes_run_test import InANamespace


class Smoke(InANamespace):
    def test_run_move_drain(self):
        command = until_told()
        manifest = bsp_job("smoke", command, sets={"names": ["slow", "fast", "medium"]})
        with job_of(self.space, manifest) as job:
            self.space.kubectl("wait", "--for=condition=Running", "bspjob/smoke", "--timeout=240s", seconds=260)
            job.wait_for_superstep(5)
            job.migrate("by-hand", 0, targetSet="fast")
            ended = job.wait_for_migration("by-hand")
            self.assertEqual((ended["phase"], ended["targetSet"]), ("Succeeded", "fast"), ended)
            self.drain_and_end(job, 0, command)


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
