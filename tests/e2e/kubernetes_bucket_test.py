#!/usr/bin/env python3
"""Checkpoint sets in a bucket, in a real cluster: a job that has lost a node goes on from them; whoever reads the bucket learns nothing of the
program; nobody but the sidecars has the keys; a deleted job's sets go with it, as soon as the server lets them.

The server is versitygw (tests/cluster/components/versitygw) in a pod, over TLS, with a certificate that no public CA has signed (caSecret). Its
objects are files below /opt/cluster/shared, where this test looks at them."""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import bucket
import cluster_job
from bucket import ACCESS_KEY, BUCKET, SECRET_KEY
from cluster_job import TEMPLATE, bsp_job, job_of, kubectl, node_sh, shared_directory, until_told, wait_for
from kubernetes_run_test import InANamespace

SHARED = "e2e-bucket"
NAME = "s3"
SECRETS = (ACCESS_KEY, SECRET_KEY)
# In the environment of the program, so in its memory.
MARK = {"name": "E2E_BUCKET_MARK", "value": "what-nobody-may-read-in-the-bucket"}
# Random bytes have a run of so many printable characters once in 10^9 buckets of 100 MB.
LONGEST_RUN = re.compile(rb"[\x20-\x7e]{40}")
MAGIC = b"bspset1\n"


def certificates(host):
    """{file: text}: a CA, and the server's certificate."""
    with tempfile.TemporaryDirectory() as here:
        def openssl(*words):
            subprocess.run(["openssl", *words], cwd=here, check=True, capture_output=True)
        for name in ("ca", "tls"):
            openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", f"{name}.key")
        openssl("req", "-x509", "-new", "-key", "ca.key", "-days", "2", "-subj", "/CN=e2e-bucket", "-out", "ca.crt",
                "-addext", "keyUsage=critical,keyCertSign")
        openssl("req", "-new", "-key", "tls.key", "-subj", f"/CN={NAME}", "-out", "tls.csr")
        (pathlib.Path(here) / "names").write_text(f"subjectAltName=DNS:{host}\n")
        openssl("x509", "-req", "-in", "tls.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-set_serial", "2", "-days", "2", "-extfile", "names",
                "-out", "tls.crt")
        return {name: (pathlib.Path(here) / name).read_text() for name in ("ca.crt", "tls.crt", "tls.key")}


def secret(name, data):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def key_secrets(files):
    return (secret("keys", {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}), secret("ca", {"ca.crt": files["ca.crt"]}))


class Bucket(InANamespace):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.here = shared_directory(cls, SHARED, user=0)
        cls.files = cls.here / "data" / BUCKET
        cls.files.mkdir(parents=True)
        (cls.here / "meta").mkdir()
        shutil.copy(bucket.PROGRAM, cls.here / "versitygw")
        cls.host = f"{NAME}.{cls.space.name}.svc.cluster.local"
        cls.certificates = files = certificates(cls.host)
        cls.space.apply(*key_secrets(files), secret("tls", {name: files[name] for name in ("tls.crt", "tls.key")}),
                        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME},
                         "spec": {"selector": {"app": NAME}, "ports": [{"port": 443, "targetPort": 9000}]}})
        cls.start_server()

    @classmethod
    def start_server(cls):
        def key(name):
            return {"secretKeyRef": {"name": "keys", "key": name}}
        cls.space.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": NAME, "labels": {"app": NAME}}, "spec": {
            "nodeName": "medium-1", "terminationGracePeriodSeconds": 0,  # no node of the jobs'
            "volumes": [{"name": "data", "hostPath": {"path": f"/opt/cluster/shared/{SHARED}"}}, {"name": "tls", "secret": {"secretName": "tls"}}],
            "containers": [{
                "name": NAME, "image": TEMPLATE["spec"]["containers"][0]["image"],
                "securityContext": {"runAsUser": 0},  # the directory is root's
                "command": ["/s3/versitygw", "--port", ":9000", "--cert", "/tls/tls.crt", "--key", "/tls/tls.key", "--quiet", "posix", "--sidecar",
                            "/s3/meta", "/s3/data"],
                "env": [{"name": "ROOT_ACCESS_KEY", "valueFrom": key("AWS_ACCESS_KEY_ID")},
                        {"name": "ROOT_SECRET_KEY", "valueFrom": key("AWS_SECRET_ACCESS_KEY")}],
                "readinessProbe": {"tcpSocket": {"port": 9000}, "periodSeconds": 1},
                "volumeMounts": [{"name": "data", "mountPath": "/s3"}, {"name": "tls", "mountPath": "/tls"}]}]}})
        cls.space.kubectl("wait", "--for=condition=Ready", f"pod/{NAME}", "--timeout=120s")

    def stop_server(self):
        self.space.kubectl("delete", "pod", NAME, "--timeout=60s")

    def manifest(self, name, interval, **spec):
        source = {"endpoint": f"https://{self.host}", "bucket": BUCKET, "prefix": "team", "credentialsSecret": "keys", "caSecret": "ca"}
        template = json.loads(json.dumps(TEMPLATE))
        template["spec"]["containers"][0]["env"] = [MARK]
        return bsp_job(name, until_told(), template=template, sets={"names": ["fast"]}, checkpoint={"interval": interval, "storage": {"s3": source}}, **spec)

    def wait_for_set(self, job, after=0):
        return job.wait("a checkpoint set", lambda s: job.alive(s).get("checkpoint", {}).get("superstep", 0) > after, 240)["checkpoint"]["superstep"]

    def images(self, job):
        uid = job.object()["metadata"]["uid"]
        return [path for path in self.files.glob(f"team/{uid}/**/*") if path.is_file()]

    def in_program(self, job, command):
        """What a command prints in the container of rank 0."""
        place = job.status()["ranks"][0]
        return kubectl("exec", "-n", self.space.name, place["pod"], "-c", place["container"], "--", "sh", "-c", command + "; true").stdout

    def check_sealed(self, job):
        """What `strings` finds in the bucket: which image it is, in the clear, and nothing of the program."""
        place = job.status()["ranks"][0]
        self.assertIn(MARK["value"], self.in_program(job, "cat /proc/[0-9]*/environ"), "the program has what the bucket must not have")
        self.assertTrue(self.images(job))
        words = [*MARK.values(), *SECRETS, "lattice", "LD_PRELOAD", "libbspmpi", "GLIBC_2.", job.name, self.space.name, place["pod"], place["node"]]
        kept = 0
        for path in (path for top in ("data", "meta") for path in (self.here / top).rglob("*") if path.is_file()):
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue  # an older set goes meanwhile
            for word in words:
                self.assertNotIn(word.encode(), content, path)
                self.assertNotIn(word, str(path.relative_to(self.here)))  # names are not secret, but say nothing more
            if not path.is_relative_to(self.files / "team") or path.name.startswith("of-"):
                continue  # the server's own: parts of uploads, entity tags; and whose the sets are
            self.assertTrue(content.startswith(MAGIC), path)
            kept += 1
            length, = struct.unpack_from(">I", content, len(MAGIC))
            begin = len(MAGIC) + 4
            header = json.loads(content[begin:begin + length])
            self.assertEqual(set(header), {"name", "bytes", "salt"})
            self.assertEqual(set(header["name"]), {"job_uid", "set", "epoch", "attempt", "rank", "ranks"})
            self.assertIsNone(LONGEST_RUN.search(content, begin + length), path)
        self.assertGreaterEqual(kept, len(job.status()["ranks"]))

    def check_credentials(self, job):
        """Nobody but the sidecars has them: not the program's container, not the operator, no object but the Secret."""
        for command, there in (("cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline", "lattice_boltzmann"), ("cat /run/bsp-s3/*", ""), ("cat /proc/mounts", "/proc")):
            seen = self.in_program(job, command)
            self.assertIn(there, seen)
            for word in (*SECRETS, "bsp-s3"):
                self.assertNotIn(word, seen, command)
        written = self.space.kubectl("get", "pods,bspjobs,configmaps", "-o", "yaml").stdout + "".join(
            kubectl("logs", name, "-n", cluster_job.release()[1], check=False).stdout for name in cluster_job.operator_pods())
        for word in SECRETS:
            self.assertNotIn(word, written)

    def delete_and_wait(self, job):
        uid = job.object()["metadata"]["uid"]
        job.delete("--timeout=180s")
        self.assertEqual([p for p in self.files.glob(f"team/{uid}/**/*") if p.is_file()], [], "the sets go with their job")
        self.assertNotIn("SetsLeft", dict(self.space.events(job.name)))

    def test_a_lost_node_costs_no_more_than_an_interval(self):
        with job_of(self.space, self.manifest("loses-a-node", "10s", ranks=3, runPolicy={"backoffLimit": 1})) as job:
            stored = self.wait_for_set(job)
            self.check_credentials(job)
            self.check_sealed(job)
            node = job.status()["ranks"][1]["node"]
            self.addCleanup(node_sh, "start", node)
            began = time.monotonic()
            node_sh("kill", node)
            job.wait("the next attempt", lambda s: job.alive(s).get("attempt", 0) == 1 and s["phase"] == "Running", 300)
            resumed = wait_for("the event ResumedFrom", lambda: dict(self.space.events(job.name)).get("ResumedFrom"), 60, detail=job.summary)
            print(f"set of superstep {stored} at least, node {node} lost, {time.monotonic() - began:.0f} s later: {resumed}", flush=True)
            job.wait_for_superstep(stored + 5)
            job.tell()
            self.check_succeeded(job, until_told())
            self.assertTrue(self.images(job), "the sets of a job that has ended stay until it is deleted")
            self.delete_and_wait(job)

    def test_a_server_that_is_away_holds_a_deleted_job_and_is_named(self):
        with job_of(self.space, self.manifest("away", "5s", ranks=2)) as job:
            self.wait_for_set(job)
            self.stop_server()
            try:
                job.delete("--wait=false")
                told = wait_for("the condition SetsNotRemoved", lambda: job.condition("SetsNotRemoved").get("message"), 200, detail=job.summary)
                print(told, flush=True)
                self.assertIn(f"s3://{BUCKET}/team at https://{self.host}", told)
                self.assertEqual(job.condition("SetsNotRemoved")["reason"], "StorageRefused")
            finally:
                self.start_server()
            self.delete_and_wait(job)

    def test_what_is_retained_stays(self):
        with job_of(self.space, self.manifest("kept", "5s", ranks=2)) as job:
            self.wait_for_set(job)
            self.space.kubectl("patch", "bspjob", job.name, "--type=merge", "-p", '{"spec": {"checkpoint": {"reclaimPolicy": "Retain"}}}')
            uid = job.object()["metadata"]["uid"]
            job.delete("--timeout=90s")
            self.assertTrue(list(self.files.glob(f"team/{uid}/set-*/*")))


if __name__ == "__main__":
    cluster_job.need_cluster()
    bucket.need_server()
    sys.exit(unittest.main(argv=[sys.argv[0], *sys.argv[1:]], verbosity=2))
