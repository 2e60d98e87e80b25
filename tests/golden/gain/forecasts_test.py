#!/usr/bin/env python3
"""./dev bench forecasts: what it makes of records with known results."""
import contextlib
import io
import pathlib
import sys
import tempfile
import types
import unittest

TREE = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TREE / "tests/bench/gain"))
sys.dont_write_bytecode = True
import forecast_programs  # noqa: E402
import forecast_runs  # noqa: E402
import forecasts  # noqa: E402

# Rank 0 on processor 0 goes to 4; ranks 1 to 3 stay on 1 to 3.
HOME, AWAY = [0, 1, 2, 3], [4, 1, 2, 3]


def window(first, count, seconds, load=1.0):
    """Supersteps as a record has them: what is as before is omitted. Rank 0 computes for `seconds`, the others for half of a second."""
    whole = {"superstep": first, "communicationSeconds": 0, "instructions": [1, 1, 1, 1], "computeSeconds": [seconds * load] + [0.5 * load] * 3}
    return [whole] + [{"superstep": first + n, "communicationSeconds": 0} for n in range(1, count)]


def call(supersteps, on, before=1.0, after=None, migrates=True, **rules):
    moves = {} if after is None else {"moves": {"rank": [0], "from": [on[0]], "to": [4 if on[0] == 0 else 0]}}
    platform = {"processors": {"name": ["slow-0", "slow-1", "slow-2", "slow-3", "fast-0"]}}
    return {"snapshot": {"platform": platform, "ranks": {"processor": on}}, "supersteps": supersteps, "params": {"migrates": migrates},
            "plan": {"superstep": supersteps[-1]["superstep"], "forecast": {"before": before, "after": after or before}, "rules": rules, **moves}}


class Waves(unittest.TestCase):
    def test_a_gain_is_a_part_of_the_superstep(self):
        wave, = forecasts.waves([call(window(1, 10, 1.0), HOME, 1.0, 0.75), call(window(11, 10, 0.8), AWAY)])
        self.assertEqual((wave["superstep"], wave["ranks"], wave["takes_back"]), (10, 1, False))
        self.assertAlmostEqual(wave["forecast"], 0.25)
        self.assertAlmostEqual(wave["gain"], 0.2)
        self.assertAlmostEqual(wave["error"], 0)

    def test_each_snapshot_numbers_its_processors_anew(self):
        later = call(window(11, 10, 0.8), [0, 1, 2, 3])
        later["snapshot"]["platform"] = {"processors": {"name": ["fast-0", "slow-1", "slow-2", "slow-3", "slow-0"]}}
        self.assertAlmostEqual(forecasts.waves([call(window(1, 10, 1.0), HOME, 1.0, 0.75), later])[0]["gain"], 0.2)

    def test_what_those_that_stayed_saw_is_no_gain(self):
        wave, = forecasts.waves([call(window(1, 10, 1.0), HOME, 1.0, 0.8), call(window(11, 10, 0.8, load=1.5), AWAY)])
        self.assertAlmostEqual(wave["gain"], 0.2)

    def test_work_that_changes_is_no_gain(self):
        calls = [call(window(1, 10, 1.0), HOME, 1.0, 0.8), call(window(11, 10, 0.8), AWAY)]
        for n, superstep in enumerate(calls[1]["supersteps"]):  # grows, for those who stay by more
            superstep.update(instructions=[2 + n] + [3 + 2 * n] * 3, computeSeconds=[0.8 * (2 + n)] + [0.5 * (3 + 2 * n)] * 3)
        wave, = forecasts.waves(calls)
        self.assertAlmostEqual(wave["gain"], 1 - sum(1.5 + n if n > 0 else 1.6 for n in range(10)) / sum(2 + n for n in range(10)))
        self.assertTrue(forecasts.stands_out(wave))

    def test_who_did_nothing_before_is_as_fast_as_nobody(self):
        calls = [call(window(1, 10, 1.0), HOME, 1.0, 0.8), call(window(11, 10, 0.8), AWAY)]
        calls[0]["supersteps"][0]["instructions"] = [1, 1, 1, 0]
        self.assertAlmostEqual(forecasts.waves(calls)[0]["gain"], 0.2)

    def test_a_node_that_the_wave_touches_is_no_control(self):
        calls = [call(window(1, 10, 1.0), HOME, 1.0, 0.8), call(window(11, 10, 0.8, load=1.5), AWAY)]
        for call_ in calls:
            call_["snapshot"]["ranks"]["processor"] = [call_["snapshot"]["ranks"]["processor"][0]] + [0] * 3
        self.assertAlmostEqual(forecasts.waves(calls)[0]["gain"], 1 - 1.2)

    def test_fewer_than_three_that_stayed_say_little(self):
        calls = [call(window(1, 10, 1.0), HOME, 1.0, 0.8), call(window(11, 10, 0.8), AWAY)]
        calls[0]["snapshot"]["ranks"]["processor"] = [0, 0, 2, 3]
        self.assertGreater(forecasts.waves(calls)[0]["error"], 1.5 * forecasts.FEW_SPREAD)

    def test_noise_has_its_error(self):
        loud = [{**s, "communicationSeconds": 0.2 * (n % 2)} for n, s in enumerate(window(1, 10, 1.0))]
        wave, = forecasts.waves([call(loud, HOME, 1.0, 0.99), call(window(11, 10, 1.09), AWAY)])
        self.assertGreater(wave["error"], 0.03)
        self.assertFalse(forecasts.stands_out(wave))

    def test_only_supersteps_between_the_waves_count(self):
        calls = [call(window(1, 4, 1.0), HOME, 1.0, 0.5), call(window(5, 4, 0.5), AWAY, 0.5, 0.9, takesBack=True), call(window(9, 30, 1.0), HOME)]
        there, back = forecasts.waves(calls)
        self.assertAlmostEqual(there["gain"], 0.5)
        self.assertAlmostEqual(back["gain"], -1)
        self.assertTrue(back["takes_back"])

    def test_what_did_not_happen_or_was_not_seen_has_no_gain(self):
        first = call(window(1, 10, 1.0), HOME, 1.0, 0.8)
        for calls in ([first], [first, call(window(11, 10, 1.0), HOME)], [first, call(window(11, 1, 0.8), AWAY)]):
            self.assertEqual([wave["gain"] for wave in forecasts.waves(calls)], [None])
        self.assertEqual(forecasts.waves([call(window(1, 10, 1.0), HOME, 1.0, 0.8, migrates=False)]), [])
        self.assertEqual(forecasts.waves([]), [])

    def test_ranks_that_do_nothing_are_not_waited_for(self):
        self.assertEqual(forecasts.seconds_of({"instructions": [1, 0], "computeSeconds": [1, 5], "communicationSeconds": 0.5}), 1.5)
        self.assertEqual(forecasts.seconds_of({"instructions": [0, 0], "computeSeconds": [1, 5], "communicationSeconds": 0.5}), 0.5)


def wave_of(forecast, gain, error=0.01):
    return {"superstep": 8, "ranks": 1, "takes_back": False, "forecast": forecast, "gain": gain, "error": error}


RUNS = [{"application": "lu", "noisy": False, "load_before": 0.1, "waves": [wave_of(0.2, 0.19), wave_of(0.1, -0.05), wave_of(0.1, None)]},
        {"application": "lu", "noisy": True, "load_before": 0.2, "waves": [wave_of(0.1, 0.1, 0.5)]}]


class Table(unittest.TestCase):
    def test_figures(self):
        self.assertEqual(forecasts.figures([wave for run in RUNS for wave in run["waves"]]),
                         {"waves": 4, "measured": 3, "seen": 2, "right": 0.5, "error": (0.05 + 1.5) / 2})
        self.assertEqual(forecasts.figures([]), {"waves": 0, "measured": 0, "seen": 0, "right": None, "error": None})

    def test_rows(self):
        self.assertEqual([str(cell) for cell in forecasts.row("lu", RUNS[:1])], ["lu", "1", "3", "2", "2", "15.0 %", "7.0 %", "50 %", "78 %"])
        self.assertEqual([str(cell) for cell in forecasts.row("lu, noisy", RUNS[1:])], ["lu, noisy", "1", "1", "1", "0", "–", "–", "–", "–"])

    def test_only_the_section_is_written(self):
        document = f"a\n{forecasts.BEGIN}\nold\n{forecasts.END}\nz\n"
        self.assertEqual(forecasts.replaced(document, "new"), "a\nnew\nz\n")
        with self.assertRaisesRegex(ValueError, "has no"):
            forecasts.replaced("a\nz\n", "new")

    def test_the_document_has_the_section(self):
        forecasts.replaced(forecast_runs.DOCUMENT.read_text(), "")

    def test_section(self):
        class Paper:
            @staticmethod
            def table(header, rows, right):
                return "\n".join("|".join(map(str, cells)) for cells in [header, *rows])
        text = forecasts.section(Paper, RUNS, "header", "figure.svg")
        self.assertTrue(text.startswith(forecasts.BEGIN) and text.endswith(forecasts.END))
        for line in ("lu|1|3|2|2|15.0 %|7.0 %|50 %|78 %", "lu, noisy|1|1|1|0|–|–|–|–", "**all**|2|4|3|2|15.0 %|7.0 %|50 %|78 %", "2 waves of 3 measured"):
            self.assertIn(line, text)
        self.assertLessEqual(max(map(len, text.splitlines())), 140)


class Programs(unittest.TestCase):
    def test_each_has_its_input(self):
        for name in forecast_programs.PROGRAMS:
            sizes = []
            for smoke in (False, True):
                with self.subTest(name, smoke=smoke), tempfile.TemporaryDirectory() as directory:
                    forecast_programs.prepare(name, pathlib.Path(directory), smoke)
                    sizes.append({path.name: path.read_text() for path in pathlib.Path(directory).iterdir()})
            self.assertNotEqual(*sizes, name)

    def test_an_input_that_has_changed_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            (pathlib.Path(directory) / "in.lj").write_text("run 3\n")
            with self.assertRaisesRegex(ValueError, r"in.lj .* has no \^thermo"):
                forecast_programs.enlarge(pathlib.Path(directory), {"in.lj": {"^run .*": "run 4", "^thermo": ""}})

    def test_without_an_image_they_are_skipped_by_name(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            self.assertEqual(forecast_runs.present(forecast_runs.ALL, ""), list(forecast_runs.gain.SIZES))
            self.assertEqual(forecast_runs.present(["lu"], ""), ["lu"])
        self.assertIn("skipped: lammps, gromacs, pw, icofoam: not in an image", said.getvalue())


class Runs(unittest.TestCase):
    def test_one_that_fails_does_not_lose_the_others(self):
        saved = []

        def run_one(application, number, noisy, _):
            if number == 2:
                raise KeyError("waves")
            return (application, number, noisy)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            runs, failed = forecast_runs.all_runs(["lu", "pw"], types.SimpleNamespace(runs=[1, 1]), run_one, lambda them: saved.append(len(them)))
        self.assertEqual(runs, [("lu", 1, False), ("pw", 3, False), ("pw", 4, True)])
        self.assertTrue(failed)
        self.assertEqual(saved, [1, 1, 2, 3])
        self.assertIn("lu 2: not measured: KeyError: 'waves'", said.getvalue())


if __name__ == "__main__":
    unittest.main()
