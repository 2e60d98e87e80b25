#!/usr/bin/env python3
"""The files of a release, installed where this tree has never been: the Debian package, the archive of the local mode, and the plugin by krew."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import release_files
from cluster_job import STATE
from local_job import on_host

# The names under which the local mode loads a release's images, which this tree uses, too.
LOADED = ["localhost/bsp-runtime:dev", "localhost/bsp-apps:dev"]


def succeed(*words, **options):
    done = on_host(*words, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Files(unittest.TestCase):
    def setUp(self):
        self.release, self.version = release_files.newest()
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_the_sums_are_those_of_the_files(self):
        subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=self.release, check=True)

    def test_the_debian_package_installs_programs_that_start(self):
        """In a Debian 13 without this tree; dpkg needn't find Podman and iproute2 there, which only jobs need."""
        script = f"""dpkg -i --force-depends /release/bsp-operator_{self.version}_amd64.deb >&2
                     bsp-operator --help; bsp-operator simulate --help; kubectl-bsp --help
                     dpkg -r bsp-operator >&2
                     test ! -e /opt/bsp-operator; test ! -e /usr/bin/bsp-operator; test ! -e /usr/bin/kubectl-bsp"""
        said = succeed("podman", "run", "--rm", "--runtime", "runc", "--network", "none", "--user", "0", "-v", f"{self.release}:/release:ro",
                       LOADED[1], "sh", "-euc", script)
        for words in ("usage: bsp-operator COMMAND", "usage: bsp-operator simulate", "usage: kubectl bsp COMMAND"):
            self.assertIn(words, said)

    def test_the_archive_runs_a_job(self):
        for name in LOADED:
            found = on_host("podman", "image", "inspect", "-f", "{{.Id}}", name)
            if found.returncode == 0:
                self.addCleanup(succeed, "podman", "tag", found.stdout.strip(), name)
        succeed("tar", "-C", str(self.place), "-xzf", str(self.release / f"bsp-operator-{self.version}-linux-amd64.tar.gz"))
        local, summary = self.place / f"bsp-operator-{self.version}", self.place / "summary.json"
        run = succeed(str(local / "bin/bsp-operator"), "local", "run", "-n", "e2e-release", "-f", str(local / "examples/lattice-boltzmann.yaml"),
                      "--pools", "slow=2x0.2,fast=4x0.4", "--plain", "--summary", str(summary), timeout=500)
        self.assertEqual(json.loads(summary.read_text())["phase"], "Succeeded", run)

    def test_krew_installs_the_plugin_offline(self):
        krew = STATE / "bin/krew"
        if not krew.exists() or not (STATE / "bin/kubectl").exists():
            self.skipTest("krew and kubectl aren't compiled: tests/cluster/build.sh krew kubernetes")
        environment = ["env", f"KREW_ROOT={self.place}/krew", f"PATH={self.place}/krew/bin:{STATE}/bin:/usr/bin:/bin", "KREW_NO_UPGRADE_CHECK=1"]
        install = [*environment, str(krew), "install", f"--manifest={self.release}/bsp.yaml"]
        other = self.place / "other.tar.gz"
        other.write_bytes(b"\0")
        refused = on_host(*install, f"--archive={other}")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("checksum", refused.stderr)
        succeed(*install, f"--archive={self.release}/kubectl-bsp-{self.version}-linux-amd64.tar.gz")
        self.assertIn("usage: kubectl bsp COMMAND", succeed(*environment, "kubectl", "bsp", "--help"))


if __name__ == "__main__":
    release_files.newest()
    sys.exit(unittest.main(verbosity=2))
