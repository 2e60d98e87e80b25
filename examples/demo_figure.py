#!/usr/bin/env python3
"""demo_figure.py RECORD.jsonl OUT.svg: what a recorded run did to its supersteps: each rank's computing time, by the Set that it was in.

    bsp-operator local run … --record RECORD.jsonl
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "sim"))
import paper  # noqa: E402  (found by the line above)


def supersteps_of(calls):
    """(superstep, rank, Set, seconds) of everything measured, and the supersteps after which ranks were sent away."""
    points, moves = [], []
    for call in calls:
        platform = call["snapshot"]["platform"]
        names = platform["sets"]["name"]
        set_of = [names[platform["processors"]["set"][p]] for p in call["snapshot"]["ranks"]["processor"]]
        for superstep in call["supersteps"]:
            points += [(superstep["superstep"], rank, set_of[rank], seconds)
                       for rank, seconds in enumerate(superstep["computeSeconds"])]
        moved = len(call["plan"].get("moves", {}).get("rank", []))
        if moved and call["params"]["migrates"]:
            moves.append((call["plan"]["superstep"], moved))
    return points, moves


def main():
    record, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    points, moves = supersteps_of([json.loads(line) for line in record.read_text().splitlines()])
    figure, axes = paper.pyplot.subplots(figsize=(6.4, 2.4))
    for at, count in moves:
        axes.axvline(at + 0.5, color="#888888", linewidth=0.8, linestyle="--")
        axes.annotate(f"{count} {'rank moves' if count == 1 else 'ranks move'}", (at + 0.5, 1), xycoords=("data", "axes fraction"),
                      xytext=(4, -4), textcoords="offset points", va="top")
    for i, name in enumerate(sorted({p[2] for p in points})):
        of_set = [p for p in points if p[2] == name]
        axes.plot([p[0] for p in of_set], [p[3] for p in of_set], paper.MARKERS[i], color=paper.COLOURS[i], label=f"a rank in {name}")
    longest = {}
    for superstep, _, _, seconds in points:
        longest[superstep] = max(seconds, longest.get(superstep, 0))
    axes.plot(list(longest), list(longest.values()), color="#000000", linewidth=0.8, drawstyle="steps-mid", label="the superstep")
    axes.set(xlabel="superstep", ylabel="computing (s)", ylim=(0, None))
    axes.legend(loc="lower left", ncols=3)
    paper.save(figure, out)


if __name__ == "__main__":
    main()
