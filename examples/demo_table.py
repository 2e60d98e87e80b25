#!/usr/bin/env python3
"""demo_table.py OFF.json ADVISE.json MIGRATE.json SEQUENTIAL.txt: prints the final table of ./dev demo.

Its input are the summaries by `bsp-operator local run --summary` of the same job (i) without the scheduler, (ii) deciding but
not moving, (iii) with moves, and the output of the sequential program. The exit status is 0 only if every run succeeded, every
field equals the sequential program's bit for bit, ranks were moved, and moving made the job faster by more than the comparison's
uncertainty.

Ranks that never move do the same work with the same share of a CPU in all three runs. By how much the time that they computed
differs all the same, the makespans may differ, too, without any scheduler: that is the uncertainty.
"""
import json
import re
import sys


def field_of(lines):
    """The CRC-64 over every bit of the final field, as lattice_boltzmann prints it; None if it didn't."""
    found = [m[1] for m in (re.search(r"OK field crc=([0-9a-f]{16})", line) for line in lines) if m]
    return found[-1] if found else None


def computing(run):
    """Seconds that each rank computed, as lattice_boltzmann prints them: [rank], or [] if it didn't."""
    found = [m[1] for m in (re.search(r"computing by rank:((?: [0-9.]+)+) s", line) for line in run.get("rank0_output", [])) if m]
    return [float(word) for word in found[-1].split()] if found else []


def uncertainty(runs, unmoved):
    """The largest relative difference between runs in the time that a rank which never moves computed; None if unknown."""
    times = [computing(run) for run in runs]
    ranks = [rank for rank in unmoved if all(rank < len(of_run) and of_run[rank] > 0 for of_run in times)]
    if not ranks:
        return None
    return max(max(of_run[rank] for of_run in times) / min(of_run[rank] for of_run in times) - 1 for rank in ranks)


def same_work(run, base, unmoved):
    """How long the ranks that never move computed, in terms of the base; None if unknown."""
    mine, theirs = computing(run), computing(base)
    total = sum(theirs[rank] for rank in unmoved if rank < len(theirs))
    return sum(mine[rank] for rank in unmoved) / total if total > 0 and len(mine) == len(theirs) else None


def seconds(value):
    return "-" if value is None else f"{value:.2f} s"


def print_moves(migrations):
    print("\nmove                      predicted gain  realised gain       bytes  outcome")
    for m in migrations:
        name = f"rank {m['rank']}  {m['from']} → {m['to']}"
        print(f"{name:<24}  {seconds(m.get('predicted_gain_s')):>14}  {seconds(m.get('realised_gain_s')):>13}"
              f"  {m.get('bytes', 0) / 2**20:>6.1f} MiB  {m['phase']}")


def print_waves(waves):
    for w in waves:
        print(f"wave to epoch {w['epoch']}: {w['moves']} move{'s' if w['moves'] != 1 else ''}, "
              f"the job paused for {w['pause_ms']:.0f} ms")


def main():
    off, advise, migrate = (json.load(open(name)) for name in sys.argv[1:4])
    sequential = field_of(open(sys.argv[4]))
    runs = [("(i)   scheduler off", off), ("(ii)  deciding, not moving", advise), ("(iii) with moves", migrate)]
    base = off["makespan_s"]
    touched = {m["rank"] for run in (off, advise, migrate) for m in run["migrations"]}
    unmoved = [rank for rank in range(len(computing(off))) if rank not in touched]
    unsure = uncertainty([off, advise, migrate], unmoved)

    print("\nrun                          makespan  against (i)  ranks that stay computed  final field")
    failures = [] if sequential else ["the sequential program did not finish"]
    for name, run in runs:
        field = field_of(run.get("rank0_output", []))
        equal = field is not None and field == sequential
        change = "" if run is off else f"{100 * (run['makespan_s'] / base - 1):+.1f} %"
        part = same_work(run, off, unmoved)
        computed = "unknown" if part is None else f"{100 * part:.1f} %"
        verdict = "equal to the sequential program" if equal else f"{field or 'none'}, NOT the sequential program's"
        print(f"{name:<27}  {run['makespan_s']:>6.2f} s  {change:>11}  {computed:>24}  {verdict}")
        if run["phase"] != "Succeeded":
            failures.append(f"run {name.split()[0]} ended as {run['phase']}")
        if not equal:
            failures.append(f"run {name.split()[0]}: its field is not the sequential program's")

    gain = 1 - migrate["makespan_s"] / base
    beside = "unknown" if unsure is None else f"{100 * unsure:.1f} %"
    print(f"\noverhead of deciding (ii against i) {100 * (advise['makespan_s'] / base - 1):+.1f} %    "
          f"gain by moving (iii against i) {100 * gain:+.1f} %    uncertainty of both: {beside}")
    moved = [m for m in migrate["migrations"] if m["phase"] == "Succeeded"]
    print_moves(migrate["migrations"])
    print_waves(migrate["waves"])

    if not moved:
        failures.append("no rank was moved")
    if gain <= (unsure or 0):
        failures.append(f"moving ranks did not make the job faster: {100 * gain:+.1f} %, with an uncertainty of {beside}")
    if off["migrations"] or advise["migrations"]:
        failures.append("ranks were moved in a run that must not move any")
    for failure in failures:
        print(f"demo: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
