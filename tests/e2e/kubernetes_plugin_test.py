#!/usr/bin/env python3
"""kubectl bsp in a real cluster, as a plugin that kubectl finds in PATH."""
import re
import subprocess
import sys
import unittest
import xml.dom.minidom

import cluster_job
from cluster_job import KUBECONFIG, TREE, bsp_job, job_of, kubectl, sized_lattice_boltzmann
from kubernetes_run_test import ENDLESS, InANamespace
from local_job import ON_HOST

BIN = TREE / "build/bin"


def bsp(*words, check=True, kubeconfig=KUBECONFIG):
    """kubectl bsp WORDS…"""
    done = subprocess.run([ON_HOST, "env", f"KUBECONFIG={kubeconfig}", f"PATH={BIN}:/usr/bin:/bin", "kubectl", "bsp", *words],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    if check and done.returncode != 0:
        raise AssertionError(f"kubectl bsp {' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


class Plugin(InANamespace):
    def bsp(self, *words, **options):
        return bsp(*words, "-n", self.space.name, **options)

    def test_shows_a_job_that_moved_ranks(self):
        command = sized_lattice_boltzmann(0.5, supersteps=60)
        with job_of(self.space, bsp_job("seen", command, ranks=4, rescheduling={"alpha": 4, "d": 0.25})) as job:
            job.wait("a move", lambda s: job.alive(s).get("migrations", {}).get("succeeded", 0) > 0, 240)
            job.wait("measured times", lambda s: any(r.get("computeSeconds", 0) > 0 for r in job.alive(s)["ranks"]))
            page = self.bsp("explain", "seen").stdout
            frame = self.bsp("top", "seen", "--once").stdout
            picture = self.bsp("timeline", "seen").stdout
        print(page, frame, sep="\n")
        self.assertLessEqual(len(page.splitlines()), 24, page)
        self.assertRegex(page, r"rank \d \w+→\w+: Succeeded \d+\w+ ago, pause")
        self.assertRegex(page, r"next call about superstep \d+: α \d+ → \d+")
        self.assertRegex(frame, r"rank 3 +[█░]+ [\d.]+ m?s")
        for text in (page, frame):
            self.assertNotIn("\033", text)
        xml.dom.minidom.parseString(picture.encode())
        (TREE / "build/timeline-seen.svg").write_text(picture)
        self.assertRegex(picture, r"<title>rank \d \w+→\w+: Succeeded")
        self.assertRegex(picture, r"<title>wave 1, [^<]*: pause \d+")

    def test_migrates_a_rank(self):
        with job_of(self.space, bsp_job("by-hand", ENDLESS)) as job:
            job.wait_for_superstep(2)
            created = self.bsp("migrate", "by-hand", "0", "--to", "fast").stdout
            name = re.fullmatch(r"rankmigration\.migbsp\.io/(\S+) created\n", created).group(1)
            self.assertEqual(job.wait_for_migration(name)["phase"], "Succeeded", job.migration(name))
            self.assertEqual(job.status()["ranks"][0]["set"], "fast")
            for words, status, text in ((["7", "--to", "fast"], 2, "has no rank 7, only 0 to 1"), (["0", "--to", "fats"], 2, "did you mean fast?"),
                                        (["0", "--to", "fast"], 1, "already in Set fast")):
                refused = self.bsp("migrate", "by-hand", *words, check=False)
                self.assertEqual(refused.returncode, status, refused.stderr)
                self.assertIn(text, refused.stderr)
            self.assertEqual(len(self.space.objects("rankmigrations")), 1)

    def test_a_drain_does_what_its_plan_says(self):
        with job_of(self.space, bsp_job("drained", ENDLESS)) as job:
            job.wait_for_superstep(2)
            node = job.status()["ranks"][1]["node"]
            plan = bsp("drain-plan", node).stdout
            print(plan)
            found = re.search(r"rank 1 \(\w+\) can go to (\S+) \((\w+)", plan)
            self.assertTrue(found, plan)
            self.addCleanup(kubectl, "uncordon", node)
            kubectl("cordon", node)
            job.wait("the rank to leave", lambda s: job.alive(s)["ranks"][1].get("node") not in ("", node), 120)
            self.assertEqual(job.status()["ranks"][1]["set"], found.group(2), plan)
            self.assertIn("no rank of a BSPJob runs there", bsp("drain-plan", node).stdout)
            self.assertEqual(job.status().get("attempt", 0), 0)

    def test_errors_are_kubectls(self):
        missing = self.bsp("explain", "no-such-job", check=False)
        self.assertEqual((missing.returncode, missing.stdout), (1, ""))
        self.assertIn('bspjobs.migbsp.io "no-such-job" not found', missing.stderr)
        self.assertIn("no-such-node", bsp("drain-plan", "no-such-node", check=False).stderr)
        self.assertEqual(self.bsp("top", "x", "--context", "no-such-context", check=False).returncode, 1)

    def test_a_waiting_job_says_what_it_waits_for(self):
        with job_of(self.space, bsp_job("too-large", ENDLESS, ranks=500)) as job:
            status = job.wait("a reason", lambda s: s.get("reason"), 60)
            page = self.bsp("explain", "too-large").stdout
            self.assertRegex(page, "No rank moves while the job is Pending: ")
            self.assertIn(status["message"][:60], " ".join(page.split()), status)


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
