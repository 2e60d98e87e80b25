#!/usr/bin/env python3
"""page.py RESULTS.json [DOC.md]: writes the comparison with the published tables, and its figures to figures/ beside it.

RESULTS.json is what bsp-reproduce prints. Without DOC.md the page goes to standard output, without figures.
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import paper  # noqa: E402

FIGURES = "figures"
INTRODUCTION = """\
{made} number below comes from a run of `sim/` (SimGrid around `operator/decide`) with the one
calibration in `sim/applications/calibration.h`. Values are seconds of simulated run time, published → ours (difference).
MigCube's and MigHull's tables come from `sim/grid5000`, the program of their authors written anew, which reads none of that.
Scenario i is the application alone, ii with the scheduler deciding but not migrating, iii with migrations.
"""
SCORE = """\
Of {of} published statements about moves {right} are right in Set and count, {exact} in process and superstep. {said[of]} of them \
stand in
the texts ({said[setAndCount]} and {said[exact]} right), {implied[of]} are cells whose iii equals their ii, so that \
nothing moved ({implied[setAndCount]} right). \
A statement about
five unnamed processes counts as five.
"""
AGAINST_OTHERS = """\
Scenario iii of one run of each application with every heuristic, and with Charm++'s GreedyLB and RefineLB (`sim/yardsticks`) or \
nothing
deciding at the same calls, for the same price.
"""


def number(value):
    return f"{value:.5f}" if value != 0 and abs(value) < 0.1 else f"{value:.2f}"


def unit(percent):
    return " points" if percent else " %"


def cell(c):
    if c["published"] is None:
        return f"– → {number(c['ours'])}"
    return f"{number(c['published'])} → {number(c['ours'])} ({c['difference']:+.1f}{unit(c['percent'])})"


def plain_table(header, rows):
    return paper.table(header, rows, right=None) + "\n"


def cells_table(table):
    rows = [list(row) for row in table["rows"]]
    for c in table["cells"]:
        rows[c["row"]].append(cell(c))
    return plain_table(table["keyColumns"] + table["valueColumns"], rows)


def medians(table):
    texts = [f"{m['quantity']} {m['value']:.1f}{unit(m['percent'])}" for m in table["medians"]]
    return ", ".join(texts) or "nothing published to compare with"


def summary(tables):
    rows = []
    for table in tables:
        published = sum(c["published"] is not None for c in table["cells"])
        overhead = table["overhead"]
        rows.append([table["title"], f"{len(table['cells'])} ({published} published)", medians(table),
                     f"published {overhead['published']:.2f} %, ours {overhead['ours']:.2f} %" if overhead else "–"])
    return plain_table(["table", "cells", "median of the absolute differences", "overhead of deciding, (Σii − Σi)/Σi"], rows)


def score(s):
    said, implied = s["said"], s["implied"]
    return SCORE.format(of=said["of"] + implied["of"], right=said["setAndCount"] + implied["setAndCount"],
                        exact=said["exact"] + implied["exact"], said=said, implied=implied)


def moves(statements):
    def word(holds):
        return "yes" if holds else "no"
    text = plain_table(["run", "the source says", "ours", "process and superstep", "Set and count"],
                       [[s["run"], s["text"], s["ours"], word(s["exact"]), word(s["setAndCount"])]
                        for s in statements if not s["implied"]])
    text += "\nImplied by a printed iii that equals its ii, so nothing moved; ours moved something nevertheless in:\n\n"
    lines = [f"* {s['run']}: {s['ours']}\n" for s in statements if s["implied"] and not s["setAndCount"]]
    return text + ("".join(lines) or "* none of them\n")


def orders(rows):
    return plain_table(["gains compared", "pairs", "in the published order"],
                       [[o["name"], o["pairs"], f"{o['same']} ({100 * o['same'] / max(o['pairs'], 1):.0f} %)"] for o in rows])


def yardsticks(runs):
    heuristics = list(dict.fromkeys(r["heuristic"] for r in runs))
    cases = {}
    for run in runs:
        cases.setdefault(run["case"], {})[run["heuristic"]] = run
    rows = []
    for case in sorted(cases, key=lambda name: name.encode()):
        row = [cases[case][h] for h in heuristics]
        rows.append([case, number(row[0]["alone"])]
                    + [f"{number(r['migrating'])} ({100 * (r['migrating'] / r['alone'] - 1):+.1f} %, {r['moves']} moves)"
                       for r in row])
    return plain_table(["run", "i"] + heuristics, rows)


def page(results, has_figures):
    published = bool(results["yardsticks"])
    parts = ["# The published tables, reproduced\n" if published else "# Tables of your own\n",
             INTRODUCTION.format(made="`./dev reproduce` writes this file: every" if published else "Every"),
             summary(results["tables"])]
    if results["statements"]:
        parts.append(score(results["score"]))
    for table in results["tables"]:
        parts += [f"## {table['title']}\n", f"Medians of the absolute differences: {medians(table)}.\n"]
        if has_figures:
            parts.append(f"![{table['title']}]({FIGURES}/{table['name']}.svg)\n")
        parts.append(cells_table(table))
    if results["orders"]:
        parts += ["## The order of the gains\n", orders(results["orders"])]
    if results["statements"]:
        parts += ["## Moves\n", score(results["score"]), moves(results["statements"])]
    if published:
        parts += ["## Against others\n", AGAINST_OTHERS, yardsticks(results["yardsticks"]), (HERE / "assumptions.md").read_text()]
    return "\n".join(parts)


PANELS = [  # quantity, title; relative to scenario i where the table has one
    ("i", "scenario i"), ("ii", "scenario ii"), ("iii", "scenario iii"), ("i_s", "scenario i besides computation"),
    ("iii_s", "scenario iii besides computation"), ("overhead", "overhead"), ("gain", "gain")]


def series(table, name):
    """For each column of that quantity: its name, and the published and our values by row."""
    alone = {c["row"]: c for c in table["cells"] if c["quantity"] == "i"}

    def relative(c, which):
        base = alone.get(c["row"]) if not c["percent"] else None
        if base is None:
            return c[which]
        return None if c[which] is None or base[which] is None else 100 * (c[which] / base[which] - 1)

    for column in table["valueColumns"]:
        cells = [c for c in table["cells"] if c["column"] == column and c["quantity"] == name]
        if cells:
            yield column, *({c["row"]: v for c in cells if (v := relative(c, which)) is not None}
                            for which in ("published", "ours"))


def figure(table):
    """A panel for each scenario; rows from left to right."""
    has_alone = any(c["quantity"] == "i" for c in table["cells"])
    panels = [(title, name, list(series(table, name))) for name, title in PANELS if not (name == "i" and has_alone)]
    panels = [panel for panel in panels if panel[2]]
    columns = len(table["rows"])
    figure, axes = paper.pyplot.subplots(max(len(panels), 1), 1, sharex=True, squeeze=False,
                                         figsize=(min(max(4.6, 0.3 * columns + 1.8), 8), 2.1 * max(len(panels), 1) + 0.5))
    grey = {"color": "#666666", "marker": "o"}
    styles = [paper.pyplot.Line2D([], [], linestyle="--", fillstyle="none", linewidth=0.8, label="published", **grey),
              paper.pyplot.Line2D([], [], markersize=2.5, label="ours", **grey)]
    for axis, (title, name, lines) in zip(axes[:, 0], panels):
        percent = name in ("overhead", "gain")
        for i, (column, published, ours) in enumerate(lines):
            style = {"color": paper.COLOURS[i % len(paper.COLOURS)], "marker": paper.MARKERS[i % len(paper.MARKERS)]}
            axis.plot(list(published), list(published.values()), linestyle="--", fillstyle="none", linewidth=0.8, **style)
            axis.plot(list(ours), list(ours.values()), label=column, markersize=2.5, **style)
        axis.axhline(0, color="#888888", linewidth=0.6)
        relative = has_alone and not percent
        axis.set(title=title, ylabel="% of scenario i" if relative else "%" if percent else "seconds")
        handles = axis.get_legend_handles_labels()[0] + (styles if axis is axes[0, 0] else [])
        axis.legend(handles=handles, loc="center left", bbox_to_anchor=(1, 0.5))
    axes[-1, 0].set_xticks(range(columns), table["rowNames"], rotation=60, ha="right", rotation_mode="anchor")
    axes[-1, 0].set_xlabel("/".join(table["keyColumns"]))
    return figure


def main():
    results = json.loads(pathlib.Path(sys.argv[1]).read_text())
    if len(sys.argv) < 3:
        sys.stdout.write(page(results, False))
        return
    out = pathlib.Path(sys.argv[2])
    figures = out.parent / FIGURES
    figures.mkdir(parents=True, exist_ok=True)
    for table in results["tables"]:
        paper.save(figure(table), figures / (table["name"] + ".svg"))
    out.write_text(page(results, True))


if __name__ == "__main__":
    main()
