#!/usr/bin/env python3
"""A Kubeflow MPIJob, converted by `bsp-operator convert` and run by `local run` without an edit; one rank moves meanwhile."""
import pathlib
import sys
import tempfile
import unittest

from local_job import OPERATOR, LocalJob, field_of, on_host, sequential_field, until_told

COMMAND = until_told()
MPIJOB = """
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: job}}
spec:
  slotsPerWorker: 1
  runPolicy: {{cleanPodPolicy: Running, backoffLimit: 0}}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
          - name: launcher
            image: {image}
            command: [mpirun, --allow-run-as-root, -n, "2", -bind-to, none, -map-by, slot, -x, MARK, --mca, btl_tcp_if_include, eth0, sh, -c]
            args: ['echo "mark $MARK"; exec {command}']
            env: [{{name: MARK, value: "carried over"}}]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
          - name: worker
            image: {image}
            resources: {{limits: {{cpu: 1}}}}
"""


class Convert(unittest.TestCase):
    def test_an_mpijob_runs_and_moves(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as directory:
            file = pathlib.Path(directory) / "mpijob.yaml"
            file.write_text(MPIJOB.format(image="localhost/bsp-apps:dev", command=" ".join(COMMAND)))
            converted = on_host(OPERATOR, "convert", "-f", str(file))
        self.assertEqual(converted.returncode, 0, converted.stderr)
        with LocalJob("e2e-convert", [], manifest=converted.stdout, pools="slow=1x0.3,fast=2x0.3") as run:
            run.wait_for_superstep(2)
            moved = run.local("migrate", "0", "--to", "slow", "--wait")
            self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr + run.output.read_text())
            run.tell()
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            self.assertIn("mark carried over", output)
            self.assertEqual(field_of(output), sequential_field(COMMAND, output), output)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
