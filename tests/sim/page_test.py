#!/usr/bin/env python3
"""The documents' pages and figures, of results made by hand: every number of a table, and the same bytes in every run."""
import importlib.util
import pathlib
import re
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(TREE / "sim"))
import paper  # noqa: E402


def module(path):
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), TREE / path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


reproduce = module("sim/reproduce/page.py")
held_out = module("sim/reproduce/held_out_page.py")


def cell(row, column, quantity, published, ours):
    difference = None if published is None else 100 * (ours / published - 1)
    return {"row": row, "column": column, "quantity": quantity, "percent": False, "published": published, "ours": ours,
            "difference": difference}


TABLE = {
    "name": "sw", "title": "Smith-Waterman", "keyColumns": ["order"], "valueColumns": ["scenario_i", "a4_ii", "a4_iii"],
    "rows": [["10"], ["25"]], "rowNames": ["10", "25"],
    "cells": [cell(0, "scenario_i", "i", 13.34, 13.2), cell(0, "a4_ii", "ii", 14.71, 14), cell(0, "a4_iii", "iii", 11.94, 12),
              cell(1, "scenario_i", "i", 40.74, 41), cell(1, "a4_ii", "ii", None, 42.5), cell(1, "a4_iii", "iii", 34.82, 35)],
    "medians": [{"quantity": "i", "percent": False, "value": 0.84}, {"quantity": "ii", "percent": False, "value": 4.83}],
    "overhead": {"published": 10.27, "ours": 6.06},
}
RESULTS = {"tables": [TABLE], "statements": [], "orders": [], "yardsticks": [],
           "score": {part: {"of": 0, "exact": 0, "setAndCount": 0} for part in ("said", "implied")}}


class Pages(unittest.TestCase):
    def test_page_shows_every_cell_with_its_difference(self):
        page = reproduce.page(RESULTS, True)
        self.assertIn("| 10 | 13.34 → 13.20 (-1.0 %) | 14.71 → 14.00 (-4.8 %) | 11.94 → 12.00 (+0.5 %) |\n", page)
        self.assertIn("| 25 | 40.74 → 41.00 (+0.6 %) | – → 42.50 | 34.82 → 35.00 (+0.5 %) |\n", page)
        self.assertIn("Medians of the absolute differences: i 0.8 %, ii 4.8 %.\n", page)
        self.assertIn("6 (5 published)", page)
        self.assertIn("published 10.27 %, ours 6.06 %", page)
        self.assertIn("(figures/sw.svg)", page)
        self.assertNotIn("figures", reproduce.page(RESULTS, False))

    def test_held_out_page_names_the_choice_and_both_halves(self):
        def errors(*medians):
            return {"mean": sum(medians) / len(medians), "tables": [{"title": f"T{i}", "median": m} for i, m in enumerate(medians)]}
        page = held_out.page({"candidates": 72, "halves": [{
            "fitted": "odd", "choice": {"imageCopies": 2, "mig": 0.0055, "horizon": "window"},
            "errors": {"fitted": errors(2, 4), "heldOut": errors(3, 5), "calibration": errors(1)}}]})
        self.assertIn("from 72 combinations", page)
        self.assertIn("## Chosen by the odd rows\n\nCopies of an image: 2, Mig 5.5 ms, horizon: window. Held out ÷ fitted: 1.33.", page)
        self.assertIn("| T1 | 4.0 | 5.0 | – |\n| **mean** | **3.0** | **4.0** | **1.0** |", page)

    def test_small_numbers_keep_their_digits(self):
        self.assertEqual([reproduce.number(x) for x in (0, 0.01425, 0.1, 12.345)], ["0.00", "0.01425", "0.10", "12.35"])

    def test_series_are_relative_to_scenario_i_and_omit_what_is_not_published(self):
        (column, published, ours), = reproduce.series(TABLE, "ii")
        self.assertEqual(column, "a4_ii")
        self.assertAlmostEqual(published[0], 100 * (14.71 / 13.34 - 1))
        self.assertEqual(list(published), [0])
        self.assertAlmostEqual(ours[1], 100 * (42.5 / 41 - 1))

    def test_a_figure_has_the_same_bytes_in_every_run(self):
        with tempfile.TemporaryDirectory() as directory:
            files = [pathlib.Path(directory, f"{n}.svg") for n in range(2)]
            for file in files:
                paper.save(reproduce.figure(TABLE), file)
            self.assertEqual(files[0].read_bytes(), files[1].read_bytes())
            self.assertNotRegex(files[0].read_text(), r"\d{4}-\d{2}-\d{2}T")


class Documents(unittest.TestCase):
    """The committed documents are what the pages write."""

    def test_the_templates_and_the_documents_agree(self):
        template = (TREE / "sim/exchange/exchange.md.in").read_text()
        document = (TREE / "docs/exchange.md").read_text()
        pattern = re.sub(r"\\\{[^}]*\\\}", ".*?", re.escape(template))
        self.assertTrue(re.fullmatch(pattern, document, re.S), "docs/exchange.md isn't what sim/exchange/exchange.md.in makes")

    def test_every_figure_exists_and_is_used(self):
        text = "".join(path.read_text() for path in (TREE / "docs").glob("*.md"))
        used = set(re.findall(r"\(figures/(\w+)\.svg\)", text))
        self.assertEqual(used, {path.stem for path in (TREE / "docs/figures").glob("*.svg")})
        self.assertTrue((TREE / "docs/exchange.svg").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
