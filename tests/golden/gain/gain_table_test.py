#!/usr/bin/env python3
"""./dev bench gain: its manifests, and its table for runs with known results."""
import pathlib
import sys
import unittest

TREE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "tests/bench/gain"))
sys.dont_write_bytecode = True
import gain  # noqa: E402
import table  # noqa: E402


def run_of(seconds, moves=0, first_wave=None, rate=1.0):
    return {"seconds": seconds, "moves": moves, "undone": 0, "first_wave": first_wave,
            "samples": [(3 + s * rate, s) for s in range(21)]}


class Manifests(unittest.TestCase):
    def test_of_every_example(self):
        for application, sizes in gain.SIZES.items():
            for size in sizes:
                text = table.enlarged((TREE / "examples" / f"{application}.yaml").read_text(), size)
                text = table.manifest(text, "Advise", "MigHull", "CPU", "localhost/x:y")
                for line in ("  name: job\n", '    mode: "Advise"\n', "    heuristic: MigHull", "  initialMapping: CPU\n", "image: localhost/x:y\n",
                             "    call: MPI_Barrier"):
                    self.assertIn(line, text, application)
                for name, value in size.items():
                    self.assertIn(f'{name}, "{value}"', text)

    def test_what_is_not_there_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "initialMapping"):
            table.manifest("  name: x\n  rescheduling:\n", "Off", mapping="CPU")
        with self.assertRaisesRegex(ValueError, "--rows"):
            table.enlarged("args: []", {"--rows": 3})

    def test_heuristics_are_the_contracts(self):
        known = table.heuristics((TREE / "crds/bspjob.yaml").read_text())
        self.assertIn("AutoMig", known)
        self.assertIn("Bottleneck", known)


class Tables(unittest.TestCase):
    def test_verdicts(self):
        self.assertEqual(table.verdict(["x", "lu: OK factors crc=0123456789abcdef, 61 supersteps, 4 ranks in a grid of 2 x 2, 4.261 s"]),
                         ("0123456789abcdef", 4.261))
        self.assertEqual(table.verdict(["lattice_boltzmann: OK field crc=0edfcb6cbc25f0a9, 60 supersteps, 4 ranks, 0.007 s", ""]),
                         ("0edfcb6cbc25f0a9", 0.007))
        self.assertEqual(table.verdict(["fractal: FAILED code crc=0123456789abcdef, 4 ranks, 1.0 s"]), (None, None))
        self.assertEqual(table.verdict([]), (None, None))

    def test_the_rest_of_a_run(self):
        samples = [(1.0, 1), (2.0, 2), (4.0, 5), (7.0, 9)]
        self.assertEqual(table.seconds_from(samples, 2), 5.0)
        self.assertEqual(table.seconds_from(samples, 3), 3.0)
        self.assertIsNone(table.seconds_from(samples, 9))
        self.assertIsNone(table.seconds_from([], 1))

    def test_a_table(self):
        runs = {"i": [run_of(20.0), run_of(21.0)], "best": [run_of(10.0, rate=0.5)], "ii Top": [run_of(20.8)],
                "iii Top": [run_of(12.3, moves=2, first_wave=5, rate=0.55)]}
        self.assertEqual("\n".join(table.table("lu", runs)), """\
lu: noise 5.0 % (2 runs of i: 20.00 .. 21.00 s)
  run                   median      least .. most  against i    of best  after wave 1  moves
  i                    20.50 s    20.00 ..  21.00          -   +105.0 %             -  0, 0
  best                 10.00 s    10.00 ..  10.00    -51.2 %     +0.0 %             -  0
  ii Top               20.80 s    20.80 ..  20.80     +1.5 %   +108.0 %             -  0  within noise
  iii Top              12.30 s    12.30 ..  12.30    -40.0 %    +23.0 %       +10.0 %  2
  published          gain 12.1 % (iii against i: -12.1 %), overhead +12.7 %""")

    def test_intervals_of_a_median(self):
        self.assertEqual(table.interval([3, 1, 2]), (1, 3))
        self.assertEqual(table.interval([6, 1, 2, 3, 5, 4]), (1, 6), "1 of 32 chances is outside")
        self.assertEqual(table.interval(range(1, 11)), (2, 9), "of ten the second and the ninth")

    def test_an_overhead(self):
        def took(cpu, *seconds):
            return [{**run_of(one), "helpers_cpu_s": cpu} for one in seconds]
        runs = {"i": took(0.4, 20.0, 20.2, 20.0), "ii": took(0.5, 20.1, 20.2, 20.6), "other i": took(0.4, 20.0, 20.2, 20.4)}
        lines = """\
lu: 3 runs of each at the same time, of 20.00 s
  ii against i     +0.5 % [+0.0 % … +2.0 %]
  i against i      +0.0 % [+0.0 % … +2.0 %]"""
        self.assertEqual("\n".join(table.overhead("lu", runs)), lines + """
  CPU time of operator and sidecars ÷ seconds: i 2.00 %, ii 2.48 %, more +0.49 % [+0.45 % … +0.50 %]""")
        runs["ii"][1]["helpers_cpu_s"] = None
        self.assertEqual("\n".join(table.overhead("lu", runs)), lines)

    def test_a_round_has_every_scenario(self):
        names = [name for name, _ in gain.plan(["Top", "AutoMig"])]
        self.assertEqual(names, ["i", "best", "ii Top", "iii Top", "ii AutoMig", "iii AutoMig", "i", "i"])
        names = [name for name, _ in gain.plan(["Top", "AutoMig"], skip_ii=True)]
        self.assertEqual(names, ["i", "best", "iii Top", "iii AutoMig", "i", "i"])


if __name__ == "__main__":
    unittest.main()
