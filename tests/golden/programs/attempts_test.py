#!/usr/bin/env python3
"""tests/e2e/attempts.py: which outputs of killed programs are those of a run without a kill."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "e2e"))
sys.dont_write_bytecode = True
from attempts import differs  # noqa: E402

EXPECTED = ["banner", "", "step 1", "step 2", "done"]


class Differs(unittest.TestCase):
    def test_attempts_repeat_lines(self):
        for seen in (EXPECTED, [*EXPECTED[:4], *EXPECTED[2:]], [*EXPECTED[:3], "ep 1", *EXPECTED[3:]], [*EXPECTED[:4], *EXPECTED[3:4], *EXPECTED[2:]]):
            self.assertEqual(differs(EXPECTED, seen, 2), "", seen)

    def test_survivors_say_why_they_end(self):
        for said in (["lost rank 1"], ["lost rank 1", "", "aborting"], ["", "lost rank 1"], ["", "lost rank 1", ""]):
            self.assertEqual(differs(EXPECTED, [*EXPECTED[:3], *said, *EXPECTED[2:]], 1), "", said)

    def test_the_last_attempt_may_have_nothing_left_to_write(self):
        self.assertEqual(differs(EXPECTED, [*EXPECTED, "lost rank 1", "", "aborting"], 1), "")

    def test_what_a_program_may_not_write(self):
        for seen, why in ((EXPECTED[:-1], "it ends before 'done'"),
                          ([*EXPECTED[:3], *EXPECTED[4:]], "not 'done' but 'step 2'"),
                          ([*EXPECTED, "done"], "not 'done' but 'the end'"),
                          ([*EXPECTED[:3], "step 9", *EXPECTED[3:]], "not 'step 9' but 'step 2'")):
            self.assertEqual(differs(EXPECTED, seen, 0), why)

    def test_no_more_attempts_than_losses(self):
        again = [*EXPECTED[:4], *EXPECTED[2:4], *EXPECTED[2:]]
        self.assertEqual((differs(EXPECTED, again, 2), differs(EXPECTED, again, 1)), ("", "not 'step 1' but 'done'"))

    def test_a_survivor_does_not_hide_what_is_lacking(self):
        self.assertNotEqual(differs(EXPECTED, [*EXPECTED[:3], "", "lost rank 1", *EXPECTED[3:]], 0), "")
        self.assertEqual(differs(EXPECTED, [*EXPECTED[:3], "", "lost rank 1"], 1), "it ends before 'step 2'")


if __name__ == "__main__":
    unittest.main()
