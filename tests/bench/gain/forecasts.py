"""What waves of recorded runs were forecast to gain, and gained: the arithmetic of ./dev bench forecasts, its table and its picture. No clock
and no jobs here.

A wave's gain is the part by which supersteps are shorter than they would have been without it: forecast 1 - after ÷ before of its plan,
realised 1 - Σ seconds ÷ (c · Σ expected) over up to COMPARED supersteps after it. Expected of a superstep is the longest of the ranks' work in it
times their pace before the wave (s a unit of work, over up to COMPARED supersteps), and the communication before it. So work that grows, shrinks or
wanders from rank to rank is no gain. c is by how much the pace of the ranks that stayed, on nodes that the wave doesn't touch, has changed: what
others did on the machine. The error is two standard errors: of how far supersteps are off what is expected of them before and after, and of c
(operator/observe/control.h has the formulas of c).
"""
import math
import pathlib
import sys
from statistics import mean, median

COMPARED = 10  # supersteps on either side of a wave, at most
FEW, FEW_SPREAD, ALONE_SPREAD = 3, 0.02, 0.34  # with fewer ranks that stay, they say so little; with none
BEGIN, END = "<!-- Written by ./dev bench forecasts: -->", "<!-- End of what ./dev bench forecasts writes. -->"
GOALS = "Goals: sign right in at least 95 % of the waves that stand out from the noise, median error at most 10 %."


def supersteps_of(call):
    """The measured supersteps of a call's window. A record omits what is as in the superstep before."""
    known = {}
    for written in call["supersteps"]:
        known = {**known, **written}
        yield known


def seconds_of(superstep):
    """The slowest rank's computation, and the communication that all share."""
    computing = [s for s, work in zip(superstep["computeSeconds"], superstep["instructions"]) if work > 0]
    return (max(computing) if computing else 0) + superstep["communicationSeconds"]


def moved(call):
    """{rank: (source, target)} of a call's wave; processors."""
    moves = call["plan"].get("moves", {})
    return dict(zip(moves.get("rank", []), zip(moves.get("from", []), moves.get("to", []))))


def node(call, processor):
    """Its name. Each snapshot numbers its processors anew, those of the ranks first, and a node's slots are processors of one name."""
    return call["snapshot"]["platform"]["processors"]["name"][processor]


def happened(call, later):
    """Whether the ranks are on their targets at the next call: waves may be rolled back."""
    on = later["snapshot"]["ranks"]["processor"]
    return all(node(later, on[rank]) == node(call, target) for rank, (_, target) in moved(call).items())


def error_of(values):
    """Standard, of the mean: by what each differs from the one before, as work may grow."""
    n = len(values)
    return math.sqrt(sum((b - a) ** 2 for a, b in zip(values, values[1:])) / 2 / (n - 1) / n) if n > 1 else 0


def pace(supersteps, rank):
    """Seconds that it takes for a unit of work; 0: it did none."""
    work = sum(s["instructions"][rank] for s in supersteps)
    return sum(s["computeSeconds"][rank] for s in supersteps) / work if work > 0 else 0


def control(before, after, stayed, noise):
    """(c, standard error of another rank's ratio)."""
    paces = [(pace(before, rank), pace(after, rank)) for rank in stayed]
    logs = [math.log(became / was) for was, became in paces if was > 0 and became > 0]
    if not logs:
        return 1, max(noise, ALONE_SPREAD)
    middle, ranks = median(logs), len(logs)
    spread = 1.4826 * (1 + 2 / ranks) * median(abs(one - middle) for one in logs)
    least = max(FEW_SPREAD, abs(middle) / 2) if ranks < FEW else 0
    return math.exp(middle), max(spread, noise, least) * math.sqrt(1 + 1 / ranks)


def realised(before, after, stayed):
    """(gain, error), as parts of the superstep; supersteps on either side."""
    paces = [pace(before, rank) for rank in range(len(before[0]["instructions"]))]
    rest = mean(s["communicationSeconds"] for s in before)

    def as_before(superstep):
        return max(work * one for work, one in zip(superstep["instructions"], paces)) + rest

    expected, took = [as_before(s) for s in after], [seconds_of(s) for s in after]
    share = mean(took) / mean(expected)
    off = [error_of([seconds_of(s) - as_before(s) for s in before]) / mean(as_before(s) for s in before) * share,
           error_of([t - share * e for t, e in zip(took, expected)]) / mean(expected)]
    noise = math.hypot(*off)
    c, apart = control(before, after, stayed, noise / share)
    return 1 - share / c, 2 * math.hypot(noise / c, apart * share / c)


def waves(calls):
    """Those of a record: [{superstep, ranks, takes_back, forecast, gain, error}]; gain None: rolled back, or too few supersteps."""
    found = []
    measured = [list(supersteps_of(call)) for call in calls]
    acts = [bool(moved(call)) and call["params"]["migrates"] for call in calls]
    for n, call in enumerate(calls):
        if not acts[n]:
            continue
        forecast, moves = call["plan"]["forecast"], moved(call)
        wave = {"superstep": call["plan"]["superstep"], "ranks": len(moves),
                "takes_back": call["plan"].get("rules", {}).get("takesBack", False),
                "forecast": 1 - forecast["after"] / forecast["before"], "gain": None, "error": None}
        found.append(wave)
        first = max((m + 1 for m in range(n) if acts[m]), default=0)  # the windows since the wave before
        last = next((m for m in range(n + 1, len(calls)) if acts[m]), len(calls) - 1)
        before = [s for window in measured[first:n + 1] for s in window][-COMPARED:]
        after = [s for window in measured[n + 1:last + 1] for s in window][:COMPARED]
        if len(before) < 2 or len(after) < 2 or not happened(call, calls[n + 1]):
            continue
        touched = {node(call, processor) for way in moves.values() for processor in way}
        on = call["snapshot"]["ranks"]["processor"]
        stayed = [rank for rank, there in enumerate(on) if rank not in moves and node(call, there) not in touched]
        wave["gain"], wave["error"] = realised(before, after, stayed)
    return found


def stands_out(wave):
    return wave["gain"] is not None and abs(wave["gain"]) > wave["error"]


def figures(of):
    """Of some waves: how many were measured and stand out from the noise; sign right, median error: None without any. An error is a part of
    the forecast."""
    seen = [wave for wave in of if stands_out(wave)]
    right = [wave["gain"] * wave["forecast"] > 0 for wave in seen]
    off = [abs(wave["gain"] / wave["forecast"] - 1) for wave in seen if wave["forecast"]]
    return {"waves": len(of), "measured": sum(wave["gain"] is not None for wave in of), "seen": len(seen),
            "right": mean(right) if right else None, "error": median(off) if off else None}


def percent(value, digits=0):
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def row(name, runs):
    of = [wave for run in runs for wave in run["waves"]]
    them = figures(of)
    seen = [wave for wave in of if stands_out(wave)]
    return [name, len(runs), them["waves"], them["measured"], them["seen"],
            percent(median(w["forecast"] for w in seen) if seen else None, 1), percent(median(w["gain"] for w in seen) if seen else None, 1),
            percent(them["right"]), percent(them["error"])]


def table(paper, runs):
    """Markdown, a line for each application, quiet and noisy, and for all. A run is {application, noisy, waves}."""
    header = ["runs of", "runs", "waves", "measured", "beyond noise", "forecast, median", "realised, median", "sign right", "median error"]
    rows = []
    for application in dict.fromkeys(run["application"] for run in runs):
        for noisy in (False, True):
            if of := [run for run in runs if run["application"] == application and run["noisy"] == noisy]:
                rows.append(row(application + (", noisy" if noisy else ""), of))
    rows.append(row("**all**", runs))
    return paper.table(header, rows, right=1)


def draw(paper, runs, path):
    figure, axes = paper.pyplot.subplots(figsize=(6.2, 3.6))
    seen = [100 * wave[key] for run in runs for wave in run["waves"] if wave["gain"] is not None for key in ("forecast", "gain")]
    ends = (min([0, *seen]) - 2, max([0, *seen]) + 2)
    axes.plot(ends, ends, color="#888888", linewidth=0.8, linestyle="--")
    for n, application in enumerate(dict.fromkeys(run["application"] for run in runs)):
        for noisy in (False, True):
            points = [w for run in runs if run["application"] == application and run["noisy"] == noisy for w in run["waves"]
                      if w["gain"] is not None]
            if points:
                colour, marker = paper.COLOURS[n % 7], paper.MARKERS[(n + n // 7) % 7]
                axes.errorbar([100 * w["forecast"] for w in points], [100 * w["gain"] for w in points], [100 * w["error"] for w in points],
                              fmt=marker, color=colour, markerfacecolor="none" if noisy else colour,
                              elinewidth=0.6, label=application + (", noisy" if noisy else ""))
    axes.set(xlabel="forecast: superstep shorter by (%)", ylabel="realised (%)")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    paper.save(figure, path)


def section(paper, runs, header, figure):
    """What stands in the document between the two marks."""
    them = figures([wave for run in runs for wave in run["waves"]])
    return "\n".join([BEGIN, "", header, "", table(paper, runs), "", f"![Forecast against realised gain of each wave]({figure})", "",
                      f"Beyond the noise are {them['seen']} waves of {them['measured']} measured; signs are right in {percent(them['right'])}, the median "
                      f"error is {percent(them['error'])} of the forecast.", GOALS, "", END])


def replaced(document, text):
    """The document with that section in place of what stands between the marks."""
    before, mark, rest = document.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"the document has no '{BEGIN}' … '{END}'")
    return before + text + after


def drawing():
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "sim"))
    import paper  # it needs matplotlib
    return paper
