#!/usr/bin/env python3
"""today.py: the parts of the fault matrix, and what starts too late; tests/cluster/CMakeLists.txt: the order of a whole run."""
import contextlib
import datetime
import io
import json
import os
import subprocess
import sys
import unittest
from unittest import mock

import cluster_job
from kubernetes_faults_test import CASES, FAULTS
from local_job import PHASES
from today import PARTS, no_time_left, number_of_today, part_of


class Parts(unittest.TestCase):
    def test_six_days_run_each_case_once(self):
        parts = [part_of(CASES, number) for number in range(PARTS)]
        self.assertEqual(sorted(case for part in parts for case in part), sorted(CASES))
        self.assertLessEqual(max(map(len, parts)) - min(map(len, parts)), 2, [len(part) for part in parts])

    def test_each_day_strikes_with_every_fault_and_in_every_phase(self):
        for number in range(PARTS):
            part = part_of(CASES, number)
            self.assertLessEqual(set(FAULTS), {fault for fault, _ in part}, number)
            self.assertLessEqual({*PHASES, "RollingBack"}, {phase for _, phase in part}, number)

    def test_the_date_chooses(self):
        first = datetime.date(2026, 1, 1)
        days = [number_of_today({}, first + datetime.timedelta(days=n)) for n in range(12)]
        self.assertEqual(days, [1, 2, 3, 4, 5, 0] * 2)
        self.assertEqual(number_of_today({"BSP_FAULTS_PART": ""}, first), 1)

    def test_the_environment_chooses_instead(self):
        self.assertEqual(number_of_today({"BSP_FAULTS_PART": "4"}, datetime.date(2026, 1, 1)), 4)
        for wrong in ("6", "-1", "all"):
            with self.assertRaisesRegex(ValueError, "BSP_FAULTS_PART"):
                number_of_today({"BSP_FAULTS_PART": wrong})


class Time(unittest.TestCase):
    def test_no_limit_leaves_all_time(self):
        self.assertEqual(no_time_left({}, 1e12), "")
        self.assertEqual(no_time_left({"BSP_KUBERNETES_UNTIL": ""}, 1e12), "")

    def test_the_limit(self):
        until = {"BSP_KUBERNETES_UNTIL": "1700000000"}
        self.assertEqual(no_time_left(until, 1699999999), "")
        self.assertIn("after 22:13 UTC no test of the cluster starts", no_time_left(until, 1700000000))

    def test_a_late_test_is_skipped_before_it_looks_for_a_cluster(self):
        with mock.patch.dict(os.environ, {"BSP_KUBERNETES_UNTIL": "1"}), contextlib.redirect_stdout(io.StringIO()) as said, \
             self.assertRaises(SystemExit) as end:
            cluster_job.need_cluster()
        self.assertEqual(end.exception.code, cluster_job.SKIPPED)
        self.assertIn("skipped: no time is left", said.getvalue())


class Order(unittest.TestCase):
    build = sys.argv[1] if len(sys.argv) > 1 else ""

    def test_the_cluster_starts_after_every_other_test(self):
        listed = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], capture_output=True, check=True, text=True).stdout
        tests = {t["name"]: {p["name"]: p["value"] for p in t["properties"]} for t in json.loads(listed)["tests"]}
        others = {name for name, properties in tests.items() if "kubernetes" not in properties.get("LABELS", [])}
        self.assertGreater(len(others), 1000)
        self.assertEqual(others - set(tests["kubernetes.up"]["DEPENDS"]), set())
        costs = {name: float(properties["COST"]) for name, properties in tests.items() if name not in others}
        in_order = sorted(costs, key=lambda name: -costs[name])
        self.assertEqual(len(set(costs.values())), len(costs), "each has a place of its own")
        self.assertEqual([name.removeprefix("kubernetes.") for name in in_order[:4]], ["up", "install", "uninstall", "down"])
        suites = in_order[4:]  # a day begins with any of them; the next ones follow it
        after_faults = suites[(suites.index("kubernetes.faults") + 1) % len(suites)]
        self.assertEqual(after_faults, "kubernetes.manifests")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
