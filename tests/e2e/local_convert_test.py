#!/usr/bin/env python3
"""A Kubeflow MPIJob, converted by `bsp-operator convert` and run by `local run` without an edit; one rank moves meanwhile."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from local_job import OPERATOR, LocalJob, field_of, lattice_boltzmann, on_host, sequential_field, until_told

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


def mpijob(command, image="localhost/bsp-apps:dev"):
    return MPIJOB.format(image=image, command=" ".join(command))


def convert(manifest, *words):
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        file = pathlib.Path(directory) / "mpijob.yaml"
        file.write_text(manifest)
        done = on_host(OPERATOR, "convert", "-f", str(file), *words)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout, done.stderr.replace(directory, "DIRECTORY"))


def check(manifest):
    return convert(manifest, "--check", "-n", "e2e-convert-check", "--seconds", "4", "--start-seconds", "300", "--move-seconds", "300")


class Convert(unittest.TestCase):
    def tearDown(self):
        left = on_host("podman", "ps", "-a", "--filter", "label=migbsp.io/store=/run/bsp-operator/e2e-convert-check", "--format", "{{.Names}}")
        self.assertEqual(left.stdout, "")

    def test_its_report_has_what_check_finds_out(self):
        manifest = mpijob(lattice_boltzmann(supersteps=100000000))
        plain, checked = convert(manifest), check(manifest)
        self.assertEqual(checked.stdout, plain.stdout)
        self.assertIn(plain.stderr, checked.stderr)
        self.assertRegex(checked.stderr, r"(?m)^check: job: MPI +Open MPI 5\.")
        self.assertRegex(checked.stderr, r"(?m)^check: job: Moves +rank 1: ")
        # A busy machine may hold a move back (local_check_test.py has the moves themselves).
        outcome = re.search(r"(?m)^check: job: Outcome +(.*)$", checked.stderr).group(1)
        self.assertEqual(checked.returncode, 0 if outcome == "its ranks move" else 1, checked.stderr)

    def test_one_of_two_jobs_cannot_move(self):
        checked = check(mpijob(["true"]) + "---" + mpijob(["true"], image="localhost/none:dev"))
        self.assertEqual(checked.returncode, 1, checked.stderr)
        self.assertRegex(checked.stderr, r"(?m)^check: job: Outcome +.*without calling MPI_Init")
        self.assertRegex(checked.stderr, r"(?m)^check: job: not run: image localhost/none:dev does not exist")

    def test_an_image_that_is_not_here_is_no_failure(self):
        checked = check(mpijob(["true"], image="localhost/none:dev"))
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertRegex(checked.stderr, r"(?m)^check: job: not run: image localhost/none:dev does not exist.*podman pull")

    def test_an_mpijob_runs_and_moves(self):
        converted = convert(mpijob(COMMAND))
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
