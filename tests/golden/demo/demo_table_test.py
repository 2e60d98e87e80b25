#!/usr/bin/env python3
"""The final table of ./dev demo: golden output for a successful demo, exit status 1 and the reason for each failed one."""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
TABLE = HERE.parents[2] / "examples" / "demo_table.py"
LAST = "lattice_boltzmann: OK field crc=0edfcb6cbc25f0a9, 60 supersteps, 4 ranks, 0.007 s"


def run_of(mode, makespan, migrations=(), waves=(), computing="20.000 19.000 9.900 10.100"):
    return {"job": "lattice-boltzmann", "mode": mode, "phase": "Succeeded", "makespan_s": makespan, "supersteps": 60,
            "rank0_output": ["superstep 60/60", f"lattice_boltzmann: computing by rank: {computing} s", LAST], "migrations": list(migrations), "waves": list(waves)}


GOOD = {
    "Off": run_of("Off", 30.0),
    "Advise": run_of("Advise", 30.3, computing="20.200 19.200 10.000 10.000"),
    "Migrate": run_of("Migrate", 21.0, [
        {"name": "a", "rank": 0, "from": "slow", "to": "fast", "phase": "Succeeded", "predicted_gain_s": 4.5,
         "realised_gain_s": 4.25, "bytes": 20 << 20},
        {"name": "b", "rank": 1, "from": "slow", "to": "fast", "phase": "RolledBack", "predicted_gain_s": 4.5}],
        [{"epoch": 1, "moves": 2, "pause_ms": 310.4}]),
    "sequential": LAST,
}


def set_in(path, value):
    def change(runs):
        *parents, last = path
        place = runs
        for key in parents:
            place = place[key]
        place[last] = value
    return change


BAD = [  # the change, the expected message
    (set_in(["Migrate", "rank0_output"], [LAST.replace("0ed", "0ee")]), "its field is not the sequential program's"),
    (set_in(["Off", "rank0_output"], []), "run (i): its field"),
    (set_in(["Advise", "phase"], "Failed"), "run (ii) ended as Failed"),
    (set_in(["Migrate", "migrations"], []), "no rank was moved"),
    (set_in(["Migrate", "makespan_s"], 30.1), "did not make the job faster: -0.3 %"),
    # Faster by 30 %, while one of the ranks that stay did the same work faster by half, too.
    (set_in(["Migrate", "rank0_output", 1], "lattice_boltzmann: computing by rank: 8.000 8.000 6.600 10.100 s"),
     "did not make the job faster: +30.0 %, with an uncertainty of 51.5 %"),
    (set_in(["Off", "migrations"], GOOD["Migrate"]["migrations"]), "in a run that must not move any"),
    (set_in(["sequential"], "killed"), "the sequential program did not finish"),
]


def table(runs):
    with tempfile.TemporaryDirectory() as place:
        files = [pathlib.Path(place, name) for name in runs]
        for file, content in zip(files, runs.values()):
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        return subprocess.run([sys.executable, TABLE, *files], capture_output=True, text=True,
                              env={**os.environ, "PYTHONIOENCODING": "utf-8"}, encoding="utf-8")


def main():
    golden = HERE / "table.txt"
    good = table(GOOD)
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.write_text(good.stdout, encoding="utf-8")
    failures = []
    if good.returncode != 0 or good.stdout != golden.read_text(encoding="utf-8"):
        failures.append(f"the good demo: status {good.returncode}\n{good.stdout}{good.stderr}")
    for change, reason in BAD:
        runs = copy.deepcopy(GOOD)
        change(runs)
        bad = table(runs)
        if bad.returncode != 1 or reason not in bad.stderr:
            failures.append(f"expected status 1 and '{reason}', got {bad.returncode} and '{bad.stderr}'")
    print("\n".join(failures) or "ok")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
