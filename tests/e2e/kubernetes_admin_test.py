#!/usr/bin/env python3
"""What an administrator looks at: the screens of kubectl, and the board and alerts in a real Prometheus."""
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import cluster_job
from cluster_job import CHART, KUBECONFIG, KUBECTL, bsp_job, columns, job_of, sized_lattice_boltzmann, wait_for
from kubernetes_run_test import ENDLESS, InANamespace
from local_job import ON_HOST
from prometheus import binary, prometheus

MONITORING = pathlib.Path(CHART) / "monitoring"


class Screen(InANamespace):
    def test_get_describe_and_watch(self):
        command = sized_lattice_boltzmann(0.5, supersteps=300)
        template = {"spec": {"containers": [{"name": "app", "image": "localhost/bsp-apps:dev"}]}}  # as in examples/
        words = [ON_HOST, "env", f"KUBECONFIG={KUBECONFIG}", KUBECTL, "get", "bspjobs", "-w", "-n", self.space.name, "--no-headers"]
        with job_of(self.space, bsp_job("seen", command, ranks=4, template=template, rescheduling={"alpha": 4, "d": 0.25})) as job, \
             subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as watch:
            job.wait("a move", lambda s: job.alive(s).get("migrations", {}).get("succeeded", 0) > 0, 240)
            wait_for("the measured gain", lambda: "GainMeasured" in [r for r, _ in self.space.events("seen")], 120, detail=job.summary)
            job.wait_for_superstep(40)
            row, = columns(self.space.kubectl("get", "bspjobs").stdout)
            print(self.space.kubectl("get", "bspjobs").stdout)
            self.assertRegex(row["RANKS"], r"\w+ \d/\d \w+ \d/\d")
            self.assertRegex(row["IMBALANCE"], r"^\d+\.\d %$")
            for column in ("MOVES", "GAIN", "PAUSE", "AGE"):
                self.assertTrue(row[column], row)
            waves = job.status()["migrations"]["waves"]
            text = self.space.kubectl("describe", "bspjob", "seen").stdout
            watch.terminate()
            lines = watch.stdout.read().splitlines()
        print(text, *lines, sep="\n")
        status, events = text.split("\nEvents:\n")
        # A page, with a command of four words and the events of one move; a noisy machine makes more moves.
        self.assertLessEqual(len(status.splitlines()) - len(command) + 4 + min(len(events.splitlines()), 8) + 1, 80, text)
        self.assertNotRegex(re.sub(r"Internal: .*", "", text), r"\b[a-z]+_[a-z_]+:", "snake case")
        self.assertRegex(text, r"Rank \d moved \w+→\w+ \(node [-\w]+→[-\w]+\) in [\d.]+ m?s")
        self.assertRegex(text, r"Superstep [\d.]+ m?s → [\d.]+ m?s since the move of rank")
        seen = [line.rsplit(None, 1)[0] for line in lines]  # without the age
        again = [after for before, after in zip(seen, seen[1:]) if before == after]
        # A start and a wave store a few steps that aren't shown; nothing else writes an object that looks the same.
        self.assertLessEqual(len(again), 3 + 3 * waves, "lines that repeat the one before")

    def test_what_was_made_by_hand_goes_with_its_job(self):
        with job_of(self.space, bsp_job("owner", ENDLESS)) as job:
            job.wait_for_superstep(2)
            job.migrate("by-hand", 0, targetSet="no-such-set")
            job.wait_for_migration("by-hand")
            owner, = self.space.objects("rankmigrations")["by-hand"]["metadata"]["ownerReferences"]
            self.assertEqual((owner["kind"], owner["name"]), ("BSPJob", "owner"))

    def test_an_annotation_on_a_pod_moves_its_rank(self):
        with job_of(self.space, bsp_job("annotated", ENDLESS, rescheduling={"mode": "Off"})) as job:
            job.wait_for_superstep(2)
            place = job.status()["ranks"][0]
            self.space.kubectl("annotate", "pod", place["pod"], "migbsp.io/move-to=fast")
            job.wait("the move", lambda s: job.alive(s)["ranks"][0].get("set") == "fast", 120)

    def test_a_misspelt_field_is_named(self):
        for name, change, word in [
                ("request", lambda spec: spec["containers"][0].setdefault("resources", {}).update(request={"cpu": "1"}), "request"),
                ("user", lambda spec: spec.update(securityContext={"runAsUsr": 7}), "runAsUsr"),
                ("secret", lambda spec: spec.update(imagePullSecrets=[{"nam": "x"}]), "nam")]:
            manifest = bsp_job(name, ENDLESS)
            change(manifest["spec"]["template"]["spec"])
            with self.subTest(name), job_of(self.space, manifest) as job:
                status = job.ended(60)
                self.assertIn(word, status["message"])
                self.assertIn("spec.", status["message"])
                print(status["reason"], status["message"])
                self.assertEqual(job.pods(), {})


class Page:
    """The leader's metrics, fetched through kubectl and served to Prometheus."""

    def __init__(self):
        self.text = ""
        page = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(page.text.encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.target = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def fetch(self):
        self.text = cluster_job.read_from(cluster_job.leader(), 8080, "/metrics")


class Metrics(InANamespace):
    @unittest.skipUnless(binary(), "there is no Prometheus, and apt-get finds none")
    def test_each_query_of_the_board_and_the_alerts_returns_something(self):
        board = json.loads((MONITORING / "board.json").read_text())
        page = Page()
        command = sized_lattice_boltzmann(0.5, supersteps=1000)
        with tempfile.TemporaryDirectory() as directory, prometheus(directory, page.target, MONITORING / "alerts.yaml") as server, \
             job_of(self.space, bsp_job("metered", command, rescheduling={"alpha": 4, "d": 0.25})) as job:
            page.fetch()
            job.wait("a move", lambda s: job.alive(s).get("migrations", {}).get("succeeded", 0) > 0, 240)
            for _ in range(5):
                page.fetch()
                time.sleep(3)
            for panel in board["panels"]:
                for target in panel["targets"]:
                    query = target["expr"].replace("$namespace", ".*").replace("$job", ".*")
                    with self.subTest(panel=panel["title"]):
                        self.assertTrue(server.query(query), f"{panel['title']}: {query}")
            for name in ("bsp_job_load_balance", "bsp_job_moves", "bsp_jobs"):
                for sample in server.query(name):
                    with self.subTest(metric=name):
                        self.assertEqual([label for label in sample["metric"] if label.startswith("exported_")], [])
            self.assertIn((self.space.name, "metered"), [(s["metric"]["job_namespace"], s["metric"]["job_name"])
                                                         for s in server.query("bsp_job_load_balance")])
            rules = [rule for group in server.get("rules")["groups"] for rule in group["rules"]]
            self.assertEqual(len(rules), 8)
            for rule in rules:
                with self.subTest(alert=rule["name"]):
                    self.assertEqual((rule["health"], rule.get("lastError", "")), ("ok", ""))
                    for name in re.findall(r"\bbsp_\w+", rule["query"]):
                        self.assertTrue(server.query(name), f"{rule['name']}: {name}")


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
