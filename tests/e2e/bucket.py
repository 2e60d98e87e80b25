"""A real S3 server for end-to-end tests: versitygw (tests/cluster/components/versitygw), which keeps a bucket's objects as files in a
directory. ./dev test compiles it where Go is; without it the tests that need it are skipped."""
import contextlib
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time

TREE = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = TREE / "build/cluster/bin/versitygw"
ACCESS_KEY, SECRET_KEY = "AKIDBSPE2E", "s3cr3t-of-the-e2e-bucket"
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
BUCKET = "sets"


def need_server():
    if not os.access(PROGRAM, os.X_OK):
        print(f"skipped: {PROGRAM} is missing; tests/cluster/build.sh versitygw makes it where Go is installed")
        sys.exit(77)


def free_port(address="127.0.0.1"):
    """Below the ports that the kernel gives to those who name none: nobody takes it before the server listens, or between two starts."""
    for port in random.sample(range(20000, 32768), 1000):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind((address, port))
            return port
    raise AssertionError("no free port")


class BucketServer:
    """One bucket. `under`: words before the command, such as nsenter's; `address`: where it listens there."""

    def __init__(self, address="127.0.0.1", port=None, under=()):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="bsp-e2e-bucket-", dir="/tmp"))
        self.files = self.directory / "data" / BUCKET
        self.files.mkdir(parents=True)
        (self.directory / "meta").mkdir()
        self.address, self.port, self.under = address, port or free_port(address), under
        self.process = None
        self.start()

    @property
    def endpoint(self):
        return f"http://{self.address}:{self.port}"

    def source(self, **more):
        """spec.checkpoint.storage.s3"""
        return {"endpoint": self.endpoint, "bucket": BUCKET, "prefix": "team", "credentialsSecret": "bucket-keys", **more}

    def start(self):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.under, str(PROGRAM), "--port", f"{self.address}:{self.port}", "--quiet", "posix", "--sidecar",
                 str(self.directory / "meta"), str(self.directory / "data")],
                env={**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY}, stdout=log, stderr=log)
        for _ in range(600):
            if b"listening" in self.listening():
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError("the S3 server does not start: " + (self.directory / "log").read_text())

    def listening(self):
        """b"listening" once it accepts connections, asked where it runs."""
        probe = f"import socket; socket.create_connection(('{self.address}', {self.port}), 5); print('listening')"
        return subprocess.run([*self.under, "python3", "-c", probe], capture_output=True, check=False).stdout

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def close(self):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def images(self):
        """By set, oldest first: {1: [paths]}; what the server writes under a name of its own is none."""
        found = {}
        for path in self.files.glob("team/*/set-*/rank-*"):
            found.setdefault(int(path.parent.name.removeprefix("set-")), []).append(path)
        return dict(sorted(found.items()))
