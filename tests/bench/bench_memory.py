#!/usr/bin/env python3
"""Resident memory (VmRSS) of the operator's programs in a running job of two ranks, after two moves of 64 MiB.

Sidecar, bsp-init and operator are measured in real pods; the largest of each counts. The shim's share of a program is the
difference between two otherwise equal jobs, with and without it (bench_shim memory): its own mappings, their relocations,
and its memory for handles and counters.
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile

from pods import BenchJob, processes, write_json

GOALS = {"sidecar": 15, "shim + bsp-init": 6, "operator": 32}  # MiB


def status_mib(pid, field):
    found = re.search(rf"^{field}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(found.group(1)) / 1024


def main():
    with tempfile.TemporaryDirectory(prefix="bsp-bench-memory-", dir="/tmp") as directory:
        with BenchJob("bench-memory", directory, more=["--ballast", "64"]) as job:
            job.starts()
            job.move()
            job.move()
            pods = processes(job).values()
            found = {"sidecar": [pod["sidecar"] for pod in pods], "bsp-init": [pod["app"] for pod in pods],
                     "operator": [job.operator_pid()], "operator's parent": [job.process.pid]}
            now = {name: max(status_mib(p, "VmRSS") for p in pids) for name, pids in found.items()}
            peak = {name: max(status_mib(p, "VmHWM") for p in pids) for name, pids in found.items()}
    build = os.environ["BSP_BUILD"]
    shim = json.loads(subprocess.run([f"{build}/bin/bench_shim", "memory"], capture_output=True, text=True, check=True).stdout)
    now["shim + bsp-init"] = now["bsp-init"] + shim["shim_kib"] / 1024
    print(f"{'':<18} {'MiB now':>8} {'at most':>8} {'goal':>5}   of goal")
    for name, mib in now.items():
        goal = GOALS.get(name)
        verdict = f"{goal:>5}   {mib / goal:.2f} {'met' if mib <= goal else 'missed'}" if goal else ""
        print(f"{name:<18} {mib:>8.1f} {peak.get(name, 0) or '':>8.4} {verdict}")
    print(f"the shim adds {shim['shim_kib'] / 1024:.1f} MiB to a program of {shim['program_without_kib'] / 1024:.1f} MiB")
    write_json({"memory_mib": now, "peak_mib": peak, "goals_mib": GOALS, "shim": shim})


if __name__ == "__main__":
    main()
