#!/usr/bin/env python3
"""demo_figure.py RECORD.jsonl SUMMARY.json OUT.svg: how long each rank of a recorded run computed in each superstep, by the Set that it was in.

    bsp-operator local run … --record RECORD.jsonl --summary SUMMARY.json

The record has the supersteps by which calls decided. That of the slowest rank is there for every superstep, by the program itself
(lattice_boltzmann --times).
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "sim"))
import paper  # noqa: E402  (found by the line above)


def supersteps_of(calls):
    """{Set: [(superstep, seconds) of a rank]}, and {superstep of a call: ranks that it moved}. A call records its window."""
    times, moves = {}, {}
    for call in calls:
        platform = call["snapshot"]["platform"]
        sets = [platform["sets"]["name"][platform["processors"]["set"][p]] for p in call["snapshot"]["ranks"]["processor"]]
        for superstep in call["supersteps"]:
            for rank, seconds in enumerate(superstep["computeSeconds"]):
                times.setdefault(sets[rank], []).append((superstep["superstep"], seconds))
        moved = len(call["plan"].get("moves", {}).get("rank", []))
        if moved and call["params"]["migrates"]:
            moves[call["plan"]["superstep"]] = moved
    return times, moves


def slowest_of(output):
    """Seconds that the slowest rank of each superstep computed, from superstep 1 on, as lattice_boltzmann --times prints them."""
    found = [m[1] for m in (re.search(r"slowest rank by superstep:((?: [0-9.]+)+) s", line) for line in output) if m]
    return [float(word) for word in found[-1].split()] if found else []


def main():
    record, summary, out = (pathlib.Path(name) for name in sys.argv[1:4])
    times, moves = supersteps_of([json.loads(line) for line in record.read_text().splitlines()])
    slowest = slowest_of(json.loads(summary.read_text())["rank0_output"])
    if not slowest:
        sys.exit(f"{summary}: the program has not printed its supersteps' times; it needs --times")
    figure, axes = paper.pyplot.subplots(figsize=(6.4, 2.4))
    axes.plot(range(1, len(slowest) + 1), slowest, color="#000000", linewidth=0.8, label="slowest rank")
    for i, (name, points) in enumerate(sorted(times.items())):
        axes.plot(*zip(*points), paper.MARKERS[i], color=paper.COLOURS[i], label=f"a rank in {name}")
    for superstep, count in moves.items():
        axes.axvline(superstep + 0.5, color="#888888", linewidth=0.8, linestyle="--")
        axes.annotate(f"decision: {count} {'rank moves' if count == 1 else 'ranks move'}", (superstep + 0.5, 1),
                      xycoords=("data", "axes fraction"), xytext=(4, -3), textcoords="offset points", va="top")
    axes.set(xlabel="superstep", ylabel="computation (s)", ylim=(0, 1.25 * max(slowest)))
    axes.legend(loc="lower left", ncols=3)
    paper.save(figure, out)


if __name__ == "__main__":
    main()
