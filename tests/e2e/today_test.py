#!/usr/bin/env python3
"""today.py: the parts of the fault matrix; tests/cluster/CMakeLists.txt: the order of a whole run."""
import datetime
import json
import subprocess
import sys
import unittest

from kubernetes_faults_test import CASES, FAULTS
from local_job import PHASES
from today import PARTS, number_of_today, part_of


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
        self.assertEqual([name.removeprefix("kubernetes.") for name in in_order[:6]],
                         ["up", "release", "install", "uninstall", "down", "smoke"])
        smoke = {name for name, properties in tests.items() if name not in others and "suite" not in properties["LABELS"]}
        self.assertEqual(smoke, set(in_order[:6]) - {"kubernetes.release"}, "what runs without --kubernetes")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
