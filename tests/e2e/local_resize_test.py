#!/usr/bin/env python3
"""spec.rescheduling.resize in local mode: a rank that its own CPU limit holds back gets more of its slot, without a pause."""
import json
import sys
import unittest

from local_job import LocalJob, on_host, until_told, wait_for

MANIFEST = """
apiVersion: migbsp.io/v1alpha1
kind: BSPJob
metadata: {{name: job}}
spec:
  ranks: 3
  ranksPerPod: 1
  sets: {{names: [fast]}}
  superstep: {{call: MPI_Barrier}}
  rescheduling: {{alpha: 4, resize: {resize}}}
  template:
    spec:
      containers:
      - name: app
        image: localhost/bsp-apps:dev
        command: {command}
        resources: {{requests: {{cpu: 100m}}, limits: {{cpu: 100m}}}}
"""
# Rank 2 has three times the others' work with the same limit.
COMMAND = until_told(width=256, height=96, more=["--work-factor", "0=20,1=20,2=60"])


def job_of(name, resize):
    return LocalJob(name, COMMAND, pools="fast=3x0.5", manifest=MANIFEST.format(resize=resize, command=json.dumps(COMMAND)))


class Resize(unittest.TestCase):
    @staticmethod
    def quota(run, rank):
        """Of a core, in the rank's container: what the kernel says, not what Podman remembers."""
        container, = json.loads(on_host("podman", "inspect", run.container_of(rank)).stdout)
        path = container["State"]["CgroupPath"]
        text = on_host("sh", "-c", f"cat /sys/fs/cgroup{path}/cpu.max || cat /sys/fs/cgroup/cpu{path}/cpu.cfs_quota_us "
                                   f"/sys/fs/cgroup/cpu{path}/cpu.cfs_period_us").stdout.split()
        return int(text[0]) / int(text[1])

    def test_a_throttled_rank_is_resized_in_place(self):
        with job_of("e2e-resize", "Auto") as run:
            def resized():
                self.assertFalse(run.ended(), run.output.read_text())
                return [r for r in run.job().get("resizes", []) if r["phase"] == "Resized" and r["rank"] == 2]
            done, = wait_for("rank 2 to be resized", resized, 300, run.output.read_text)
            self.assertEqual(done["fromMillicores"], 100)
            self.assertGreater(done["toMillicores"], 100)
            # It may get more, in steps: how long the limit held it back is told of the last ten seconds, in part before it ran.
            wait_for("the kernel to say so", lambda: any(abs(self.quota(run, 2) - r["toMillicores"] / 1000) < 0.001 for r in resized()), 60)
            self.assertLessEqual(self.quota(run, 2), 0.5, "its slot has no more")
            self.assertAlmostEqual(self.quota(run, 0), 0.1, places=3)
            why = " ".join(run.job()["lastDecision"].get("why", []))
            print(done, run.job()["lastDecision"]["message"], why, flush=True)
            self.assertIn("job-r2-g0", run.container_of(2), "it has not moved")
            self.assertEqual(run.job()["wave"], 0)
            wait_for("the event", lambda: any(e.get("reason") == "Resized" for e in run.objects("Event").values()), 60)
            self.assertRegex(run.local("explain").stdout, r"rank 2 on fast-\d: CPU limit \d+m → \d+m, Resized")
            run.wait_for_superstep(run.job()["superstep"] + 5)
            run.end_well(COMMAND)

    def test_off_leaves_it_alone(self):
        with job_of("e2e-resize-off", '"Off"') as run:
            run.wait_for_superstep(20)
            self.assertEqual(run.job().get("resizes", []), [])
            self.assertAlmostEqual(self.quota(run, 2), 0.1, places=3)
            run.end_well(COMMAND)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
