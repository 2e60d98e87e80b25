"""The arithmetic of ./dev bench gain: evaluates the runs of one application. No clock and no jobs here."""
import pathlib
import re
import sys
from statistics import median

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from paired import interval  # noqa: E402  (tests/bench)

# Gain 1 - iii/i and overhead ii/i - 1, %, where the papers' processes moved (sim/reproduce/published): Lattice Boltzmann 25 processes, 2000
# supersteps, Top; Smith-Waterman order 25 and LU order 1000 with 25 processes, Percentage; fractal domain 20, 25 processes, AutoMig. alpha 4.
PUBLISHED = {"lattice-boltzmann": (14.7, 0.8), "smith-waterman": (14.5, 3.7), "lu": (12.1, 12.7), "fractal": (17.2, None)}


def manifest(text, mode, heuristic=None, mapping=None, image=None):
    """An example's manifest with the job name that the harness deletes, a mode, and the other settings."""
    def changed(pattern, replacement, into):
        new, count = re.subn(pattern, replacement, into, flags=re.M)
        if count != 1:
            raise ValueError(f"{pattern} is in the manifest {count} times, not once")
        return new
    text = changed(r"^  name: .*$", "  name: job", text)
    rescheduling = f'  rescheduling:\n    mode: "{mode}"' + (f"\n    heuristic: {heuristic}" if heuristic else "")
    text = changed(r"^  rescheduling:$", rescheduling, text)
    if mapping:
        text = changed(r"^(  initialMapping:) \w+", rf"\1 {mapping}", text)
    if image:
        text = changed(r"^( *image:) \S+", rf"\1 {image}", text)
    return text


def enlarged(text, arguments):
    """The manifest with other program arguments: {"--rows": "400"}."""
    for name, value in arguments.items():
        text, count = re.subn(rf'({name}, )"?[\w.=,]+"?', rf'\1"{value}"', text)
        if count != 1:
            raise ValueError(f"{name} is in the manifest {count} times, not once")
    return text


def heuristics(crd):
    """The names that the CRD accepts."""
    return re.search(r"heuristic: \{.*?enum: \[([\w, ]+)\]", crd)[1].split(", ")


def verdict(lines):
    """(result, seconds of the supersteps) from a program's last line; (None, None) if there is none."""
    for line in reversed(lines):
        if found := re.search(r": OK .*?crc=([0-9a-f]{16}), .*, ([0-9.]+) s$", line):
            return found[1], float(found[2])
    return None, None


def seconds_from(samples, superstep):
    """Time from the end of a superstep to the last one, from [(seconds, supersteps completed)]; None if the superstep is missing."""
    begins = [seconds for seconds, done in samples if done >= superstep]
    last = samples[-1][1] if samples else 0
    ends = [seconds for seconds, done in samples if done >= last]
    return ends[0] - begins[0] if begins and last > superstep else None


def after_first_wave(run, best):
    """How much longer the run took from the first wave to the end than a run started on the best mapping; None without a wave."""
    if not run["first_wave"]:
        return None
    mine, theirs = seconds_from(run["samples"], run["first_wave"]), seconds_from(best["samples"], run["first_wave"])
    return mine / theirs - 1 if mine and theirs else None


def percent(value):
    return "-" if value is None else f"{100 * value:+.1f} %"


def noise_of(runs):
    """The spread of equal runs."""
    return max(runs) / min(runs) - 1


def table(application, runs):
    """Lines for the runs {name: [run]}, of which "i" and "best" are there; a run is {"seconds", "moves", "undone", "first_wave", "samples"}."""
    base = [run["seconds"] for run in runs["i"]]
    best = runs["best"]
    noise = noise_of(base)
    lines = [f"{application}: noise {100 * noise:.1f} % ({len(base)} runs of i: {min(base):.2f} .. {max(base):.2f} s)",
             f"  {'run':<18} {'median':>9} {'least .. most':>18} {'against i':>10}  {'of best':>9} {'after wave 1':>13}  moves"]
    for name, of in runs.items():
        seconds = [run["seconds"] for run in of]
        change = None if name == "i" else median(seconds) / median(base) - 1
        noise_note = "" if change is None or abs(change) > noise else "  within noise"
        waves = [x for x in (after_first_wave(a, b) for a, b in zip(of, best)) if x is not None]
        moves = ", ".join(f"{run['moves']}" + (f" ({run['undone']} undone)" if run["undone"] else "") for run in of)
        lines.append(f"  {name:<18} {median(seconds):>7.2f} s {min(seconds):>8.2f} .. {max(seconds):>6.2f} {percent(change):>10}  "
                     f"{percent(median(seconds) / median([run['seconds'] for run in best]) - 1):>9} "
                     f"{percent(median(waves) if waves else None):>13}  {moves}{noise_note}")
    gain, overhead = PUBLISHED[application]
    lines.append(f"  published          gain {gain} % (iii against i: {-gain:+.1f} %), overhead "
                 + ("not printed" if overhead is None else f"{overhead:+.1f} %"))
    return lines


def overhead(application, runs):
    """Lines for runs {"i", "ii", "other i"} of which the n-th of each ran at the same time."""
    i, ii, other = ([run["seconds"] for run in runs[name]] for name in ("i", "ii", "other i"))
    lines = [f"{application}: {len(i)} runs of each at the same time, of {median(i):.2f} s"]
    # ii is compared with both, as neither is better.
    for name, changes in (("ii against i", [2 * b / (a + c) - 1 for a, b, c in zip(i, ii, other)]),
                          ("i against i", [c / a - 1 for a, c in zip(i, other)])):
        lines.append(f"  {name:<14} {percent(median(changes)):>8} [{' … '.join(map(percent, interval(changes)))}]")
    used = [[run["helpers_cpu_s"] and run["helpers_cpu_s"] / run["seconds"] for run in runs[name]] for name in ("i", "ii", "other i")]
    if not any(value is None for of in used for value in of):  # the shortest runs end before it is read
        more = [b - (a + c) / 2 for a, b, c in zip(*used)]
        low, high = interval(more)
        lines.append(f"  CPU time of operator and sidecars ÷ seconds: i {100 * median(used[0]):.2f} %, ii {100 * median(used[1]):.2f} %, "
                     f"more {100 * median(more):+.2f} % [{100 * low:+.2f} % … {100 * high:+.2f} %]")
    return lines
