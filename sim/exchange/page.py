#!/usr/bin/env python3
"""page.py STUDY.json DOC.md: writes the study of load exchange, and its figure beside it (same name, .svg)."""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import paper  # noqa: E402

MECHANISMS = [("Naive", False), ("Increments", False), ("Snapshot", False), ("Snapshot", True)]
SWEEP = 64  # processes in the table of thresholds
SOURCE_SIZES = [64, 128]  # of the source's tables

MESSAGES = (lambda run: run["messages"], "{:.0f}")
VIEW_ERROR = (lambda run: run["viewError"] * 1e3, "{:.2f}")
PEAK = (lambda run: run["peak"] * 1e3, "{:.2f}")
SLOWDOWN = (lambda run: (run["slowdown"] - 1) * 100, "{:+.1f}")
WAIT = (lambda run: run["wait"] * 1e3, "{:.2f}")
COST = (lambda run: run["waited"] + run["held"], "{:.2f}")  # for one's own view, and for others' decisions


def label(mechanism):
    return mechanism[0] + (", threaded" if mechanism[1] else "")


class Study:
    def __init__(self, data):
        self.data = data
        self.runs = {(r["mechanism"], r["threaded"], r["processes"], r["close"], r["threshold"]): r for r in data["runs"]}

    def run(self, mechanism, processes, close=False, factor=1):
        return self.runs[*mechanism, processes, close, factor * self.data["threshold"]]

    def sizes(self, close=False):
        return [n for n in self.data["sizes"] if (*MECHANISMS[0], n, close, self.data["threshold"]) in self.runs]

    def value(self, quantity, mechanism, processes, close=False):
        return quantity[0](self.run(mechanism, processes, close))


def by_size(study, quantity, close=False):
    rows = [[n] + [quantity[1].format(study.value(quantity, m, n, close)) for m in MECHANISMS] for n in study.sizes(close)]
    return paper.table(["processes"] + [label(m) for m in MECHANISMS], rows)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def findings(study):
    """What the source found, and whether it holds here. exchange.md.in says how each verdict is reached."""
    naive, increments, snapshot, threaded = MECHANISMS
    source = [n for n in SOURCE_SIZES if n in study.sizes()]
    last = source[-1]

    def at(quantity, mechanism, n=last, close=False):
        return study.value(quantity, mechanism, n, close)

    def holds(condition):
        return "the same" if condition else "**differs**"

    ratios = [at(MESSAGES, increments, n) / at(MESSAGES, snapshot, n) for n in source]
    in_range, near = all(25 <= r <= 35 for r in ratios), all(20 <= r <= 40 for r in ratios)
    accurate = all(at(VIEW_ERROR, snapshot, n) < min(at(VIEW_ERROR, m, n) for m in (naive, increments)) for n in study.sizes())
    waits = all(at(WAIT, snapshot, n) > at(WAIT, increments, n) for n in study.sizes())
    furthest = max(at(PEAK, increments, n) - at(PEAK, snapshot, n) for n in study.sizes())
    front = study.data["workload"]["frontSeconds"] * 1e3
    spread = mean(at(PEAK, naive, n) for n in study.sizes(True))
    close = mean(at(PEAK, naive, n, True) for n in study.sizes(True))
    increments_close = mean(at(PEAK, increments, n, True) for n in study.sizes(True))
    factors = [at(COST, snapshot, n) / at(COST, threaded, n) for n in source]
    return paper.table(["the source found", "here", ""], [
        ["Snapshot needs 25 to 35 times fewer messages than Increments at 64 to 128 processes",
         ", ".join(f"{r:.0f} times at {n}" for r, n in zip(ratios, source)),
         "the same" if in_range else "near" if near else "**differs**"],
        ["Snapshot's view is the most accurate",
         f"mean error at {last} processes: Snapshot {at(VIEW_ERROR, snapshot):.1f} ms,"
         f" Increments {at(VIEW_ERROR, increments):.1f}, Naive {at(VIEW_ERROR, naive):.1f}", holds(accurate)],
        ["Snapshot waits more",
         f"for a view at {last} processes: {at(WAIT, snapshot):.0f} ms, Increments {at(WAIT, increments):.2f}", holds(waits)],
        ["Increments is never far from Snapshot in quality",
         f"its slaves' highest load is at most {furthest:.1f} ms further from the possible one, at any size; the median front"
         f" has {front:g} ms", holds(furthest < 0.05 * front)],
        ["Naive is worse where decisions are close in time",
         f"excess of the highest load: Naive {spread:.1f} ms spread, {close:.1f} ms close; Increments"
         f" {increments_close:.1f} ms close", holds(close > spread and close > 2 * increments_close)],
        ["Answering from a second thread cuts what snapshots cost (100 s to 14 s in one case: 7 times)",
         ", ".join(f"{f:.1f} times at {n}" for f, n in zip(factors, source)),
         "**differs**" if any(f <= 4 for f in factors) else
         "the same way, far more" if any(f > 20 for f in factors) else "the same"],
    ], right=None)


def second_thread(study):
    rows = []
    for n in (n for n in SOURCE_SIZES if n in study.sizes()):
        for name in ("Naive", "Increments", "Snapshot"):
            for threaded in (False, True):
                run = study.run((name, threaded), n)
                rows.append([n, name, "a thread" if threaded else "the computing one"]
                            + [q[1].format(q[0](run)) for q in (VIEW_ERROR, PEAK, COST, SLOWDOWN)])
    return paper.table(["processes", "mechanism", "messages read by", "error (ms)", "excess (ms)",
                        "waiting and standing still (s, all)", "makespan above best (%)"], rows,
                       right=3).replace("| --- |", "| ---: |", 1)


def thresholds(study):
    rows = []
    for factor in (0.25, 1, 4, 16):
        increments, naive = (study.run((name, False), SWEEP, factor=factor) for name in ("Increments", "Naive"))
        ratio = increments["messages"] / study.value(MESSAGES, ("Snapshot", False), SWEEP)
        cells = [[q[1].format(q[0](run)) for q in (MESSAGES, VIEW_ERROR, PEAK)] for run in (increments, naive)]
        rows.append([f"{factor * study.data['threshold'] * 1e3:.2f}", cells[0][0], f"× {ratio:.1f}", *cells[0][1:], *cells[1]])
    return paper.table(["threshold (ms)", "Increments: messages", "against Snapshot", "error (ms)", "excess (ms)",
                        "Naive: messages", "error (ms)", "excess (ms)"], rows)


def pools(rows):
    def cells(r):
        decisions = max(1, r["placed"] + r["noSlots"])
        return [r["replicas"], "in bursts" if r["burst"] else "at any time", r["mechanism"], r["placed"],
                f"{r['overbooked']} ({100 * r['overbooked'] / max(1, r['placed']):.1f} %)", r["noSlots"],
                f"{r['messages'] / decisions:.1f}", f"{r['waited'] / decisions * 1e3:.1f}"]
    head = ["replicas", "requests come", "mechanism", "placed", "overbooked", "found no slots", "messages for a decision",
            "wait (ms)"]
    return paper.table(head, [cells(r) for r in rows], right=3).replace("| --- |", "| ---: |", 1)


def pools_sums(rows):
    lines = []
    for mechanism in ("Naive", "Increments", "Snapshot"):
        placed, overbooked, no_slots, waited = (
            sum(r[field] for r in rows if r["mechanism"] == mechanism) for field in ("placed", "overbooked", "noSlots", "waited"))
        lines.append(f"* {mechanism}: {overbooked} of {placed} placements overbooked,"
                     f" {waited / (placed + no_slots) * 1e3:.1f} ms of waiting for a decision.")
    return "\n".join(lines)


def gathering(rows):
    def cells(r):
        return [r["ranks"], r["supersteps"], r["way"], r["messages"], r["operatorMessages"], r["connections"],
                f"{r['operatorBytes'] * 1e-6:.1f}", f"{r['operatorCpu'] * 1e3:.1f}", f"{r['latency'] * 1e3:.1f}"]
    head = ["ranks", "supersteps", "way", "messages", "of them the operator's", "its connections", "it receives (MB)",
            "its CPU (ms)", "latency (ms)"]
    return paper.table(head, [cells(r) for r in rows]).replace("| ---: | ---: | ---: |", "| ---: | ---: | --- |", 1)


def by_sets(rows):
    out = []
    for managers, condensed in zip(rows[::2], rows[1::2]):
        out.append([managers["sets"], managers["operatorMessages"]]
                   + [f"{r[field] * 1e3:.1f}" for r in (managers, condensed) for field in ("operatorCpu", "latency")])
    return paper.table(["Sets", "the operator's messages", "its CPU (ms)", "latency (ms)", "condensed: CPU (ms)",
                        "latency (ms)"], out)


def page(study):
    data = study.data
    w, close, c, p, g = (data[part] for part in ("workload", "closeWorkload", "cluster", "pools", "gathering"))
    micro = 1e6
    return (HERE / "exchange.md.in").read_text().format(
        workload=w, task_ms=w["taskSeconds"] * 1e3, panel_ms=w["panelSeconds"] * 1e3, poll_us=c["poll"] * micro,
        send_us=c["send"] * micro, receive_us=c["receive"] * micro, latency_us=c["latency"] * micro,
        threshold_ms=data["threshold"] * 1e3, close_from=close["frontsFrom"] * 100,
        close_to=(close["frontsFrom"] + close["frontsSpread"]) * 100, repeats=data["repeats"], seed=data["seed"],
        findings=findings(study), messages=by_size(study, MESSAGES), view_error=by_size(study, VIEW_ERROR),
        peak=by_size(study, PEAK), slowdown=by_size(study, SLOWDOWN), wait=by_size(study, WAIT), cost=by_size(study, COST),
        close_peak=by_size(study, PEAK, True), close_slowdown=by_size(study, SLOWDOWN, True),
        close_wait=by_size(study, WAIT, True), threads=second_thread(study), sweep=SWEEP,
        sweep_snapshot=study.value(MESSAGES, ("Snapshot", False), SWEEP), threshold_rows=thresholds(study),
        pool=p, pools_wanted=p["wanted"] * 100, pools_thinking_ms=p["thinking"] * 1e3, pools_message_us=p["message"] * micro,
        pools_latency_us=p["latency"] * micro, pools=pools(p["rows"]), pools_sums=pools_sums(p["rows"]),
        gather=g, gather_message_us=g["message"] * micro, gather_byte_ns=g["byte"] * 1e9, gather_gbit=g["interface"] * 8e-9,
        gather_between_us=g["latencyBetween"] * micro, gather_within_us=g["latencyWithin"] * micro,
        gathering=gathering(g["rows"]), by_sets=by_sets(g["bySets"]))


def figure(study):
    figure, axes = paper.pyplot.subplots(3, 2, figsize=(6.6, 7.4))
    panels = [("(a) messages sent", "messages", MESSAGES), ("(b) error of the view", "ms of work", VIEW_ERROR),
              ("(c) waiting for a view", "ms per decision", WAIT), ("(d) makespan above the best", "%", SLOWDOWN)]
    for axis, (title, unit, quantity) in zip(axes.flat, panels):
        for i, mechanism in enumerate(MECHANISMS):
            points = [(n, study.value(quantity, mechanism, n)) for n in study.sizes()]
            if quantity is not SLOWDOWN:
                points = [(n, v) for n, v in points if v > 0]
            axis.plot(*zip(*points) if points else ([], []), color=paper.COLOURS[i], marker=paper.MARKERS[i],
                      label=label(mechanism))
        axis.set_yscale("symlog" if quantity is SLOWDOWN else "log", **({"linthresh": 1} if quantity is SLOWDOWN else {}))
        axis.set(title=title, ylabel=unit, xlabel="deciders", xscale="log")
        axis.set_xticks(study.sizes(), [str(n) for n in study.sizes()])
        axis.minorticks_off()
    axes[0][0].legend()
    rows = [r for r in study.data["gathering"]["rows"] if r["supersteps"] == 1]
    for axis, title, field in ((axes[2][0], "(e) gathering: latency", "latency"),
                               (axes[2][1], "(f) gathering: the operator's CPU time", "operatorCpu")):
        for i, way in enumerate(dict.fromkeys(r["way"] for r in rows)):
            points = [(r["ranks"], r[field] * 1e3) for r in rows if r["way"] == way]
            axis.plot(*zip(*points), color=paper.COLOURS[4 + i], marker=paper.MARKERS[4 + i], label=way)
        axis.set(title=title, ylabel="ms", xlabel="ranks", xscale="log", yscale="log")
        axis.minorticks_off()
    axes[2][0].legend()
    return figure


def main():
    study = Study(json.loads(pathlib.Path(sys.argv[1]).read_text()))
    out = pathlib.Path(sys.argv[2])
    out.write_text(page(study))
    paper.save(figure(study), out.with_suffix(".svg"))


if __name__ == "__main__":
    main()
