#!/usr/bin/env python3
"""`bsp-operator check` as a user runs it: real pods, Open MPI and criu."""
import json
import sys
import unittest

from local_job import OPERATOR, lattice_boltzmann, on_host

APPS = "localhost/bsp-apps:dev"
LONG = lattice_boltzmann(supersteps=1000000, width=512)


def check(*words, options=("--seconds", "4")):
    return on_host(OPERATOR, "check", "-n", "e2e-check", *options, *words)


class Check(unittest.TestCase):
    def found(self, *words, options=("--seconds", "4")):
        done = check(*words, options=(*options, "-o", "json"))
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, json.loads(done.stdout)

    def test_a_program_whose_ranks_move(self):
        status, report = self.found(APPS, *LONG)
        self.assertEqual(status, 0, report)
        self.assertRegex(report["mpi"].pop("version"), r"^5\.\d+\.\d+$")
        self.assertEqual(report["mpi"], {"library": "Open MPI", "bindings": "C", "threadLevel": "MPI_THREAD_SINGLE"})
        self.assertTrue(report["movable"])
        self.assertEqual([(m["rank"], m["succeeded"]) for m in report["moves"]], [(1, True), (0, True)])
        for move in report["moves"]:
            self.assertGreater(move["checkpointBytes"], 1 << 20)
            self.assertGreater(move["pauseMs"]["total"], move["pauseMs"]["dump"])
        self.assertIn(report["superstepEnds"]["call"], {c["call"] for c in report["collectives"]})
        self.assertGreater(report["superstepEnds"]["seconds"], 0)
        self.assertRegex(report["cpu"]["level"], "^x86-64(-v[2-4])?$")
        self.assertEqual(report["heldBackBy"], [])

    def test_text(self):
        done = check(APPS, *LONG)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"^MPI +Open MPI 5\.\d+\.\d+, C bindings, MPI_THREAD_SINGLE\nSupersteps +end at every .*MPI_")
        self.assertRegex(done.stdout, r"rank 0: pause \d+ ms \(.*\), checkpoint \d+\.\d MiB\n")
        self.assertTrue(done.stdout.endswith("its ranks move\n"), done.stdout)

    def test_fortran(self):
        status, report = self.found(APPS, "moved_fortran", "100000000")
        self.assertEqual((status, report["mpi"]["bindings"]), (0, "Fortran"), report)

    def test_what_holds_a_rank_back_is_named(self):
        status, report = self.found(APPS, "held_back", options=("--seconds", "4", "--move-seconds", "10"))
        self.assertEqual(status, 1, report)
        self.assertEqual([(m["rank"], m["succeeded"]) for m in report["moves"]], [(1, False)])
        self.assertIn("exposure epoch", report["failure"])
        self.assertIn("exposure epoch", report["heldBackBy"][0]["reason"])

    def test_no_collective_recurs(self):
        status, report = self.found(APPS, "held_back", "no-edges")
        self.assertEqual((status, report["superstepEnds"], report["moves"]), (1, None, []))
        self.assertIn("no blocking collective of all ranks recurs", report["failure"])
        self.assertEqual(report["mpi"]["threadLevel"], "MPI_THREAD_MULTIPLE")

    def test_programs_that_cannot_be_tried(self):
        for words, reason in [((APPS, "held_back", "ends"), "ended by itself"), ((APPS, "held_back", "fails"), "it failed: "),
                              ((APPS, "true"), "without calling MPI_Init"), ((APPS, "nowhere"), "nowhere"), ((APPS, "/bsp/bsp-init"), "static"),
                              ((APPS, "sleep", "100"), "MPI_Init")]:
            with self.subTest(words):
                status, report = self.found(*words, options=("--seconds", "4", "--start-seconds", "20"))
                self.assertEqual((status, report["movable"]), (1, False), report)
                self.assertIn(reason, report["failure"])

    def test_no_such_image(self):
        done = check("localhost/none:at-all", "program")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("localhost/none:at-all", done.stderr)

    def test_no_command(self):
        done = check("localhost/bsp-runtime:dev")
        self.assertEqual(done.returncode, 2)
        self.assertIn("name one after it", done.stderr)

    def tearDown(self):
        left = on_host("podman", "ps", "-a", "--filter", "label=migbsp.io/store=/run/bsp-operator/e2e-check", "--format", "{{.Names}}")
        self.assertEqual(left.stdout, "")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
