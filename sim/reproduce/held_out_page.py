#!/usr/bin/env python3
"""held_out_page.py RESULTS.json [DOC.md]: writes what bsp-reproduce --held-out prints as a page; without DOC.md to standard output."""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import paper  # noqa: E402

INTRODUCTION = """\
# Values chosen by half of the cells

`./dev reproduce held-out` writes this page. Scenario iii and the statements about moves determine three values of
`sim/applications/calibration.h`: how often a move carries an image, the cost Mig of a migration, and the horizon of the viability test.
The runs on Grid'5000 read none of them. Here each half of the rows of every table (even or odd) chooses them anew from {candidates} combinations,
by the mean of the tables' medians of |ours ÷ published − 1| in scenario iii, and predicts the other half. The statements about moves
are not used. Where candidates are equal, the calibration's values stay.
"""
HEADER = ["scenario iii, median of the absolute differences, %", "in the half that chose", "in the other half",
          "the calibration in that other half"]
NAMES = {"even": "even rows", "odd": "odd rows"}


def words(choice):
    return (f"Copies of an image: {choice['imageCopies']:g}, Mig {choice['mig'] * 1e3:g} ms, horizon: {choice['horizon']}")


def rows(errors):
    by_table = {part: {t["title"]: t["median"] for t in errors[part]["tables"]} for part in ("fitted", "heldOut", "calibration")}
    titles = list(by_table["fitted"]) + [t for t in by_table["heldOut"] if t not in by_table["fitted"]]
    for title in titles:
        yield [title, *(f"{by_table[part][title]:.1f}" if title in by_table[part] else "–" for part in by_table)]
    yield ["**mean**", *(f"**{errors[part]['mean']:.1f}**" for part in by_table)]


def page(study):
    parts = [INTRODUCTION.format(candidates=study["candidates"])]
    for fold in study["halves"]:
        errors = fold["errors"]
        ratio = errors["heldOut"]["mean"] / errors["fitted"]["mean"] if errors["fitted"]["mean"] else float("inf")
        parts += [f"## Chosen by the {NAMES[fold['fitted']]}\n",
                  f"{words(fold['choice'])}. Held out ÷ fitted: {ratio:.2f}.\n", paper.table(HEADER, rows(errors), right=1) + "\n"]
    return "\n".join(parts)


def main():
    text = page(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    if len(sys.argv) < 3:
        sys.stdout.write(text)
    else:
        pathlib.Path(sys.argv[2]).write_text(text)


if __name__ == "__main__":
    main()
