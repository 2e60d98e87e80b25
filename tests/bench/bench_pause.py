#!/usr/bin/env python3
"""The complete pause of a move compared with raw criu: real pods, everything between the last rank's arrival at the edge and the last
rank's return from it.

A job of two ranks under the operator; rank 0, with 8, 64, 256 or 1024 MiB of memory, is moved back and forth by hand. The raw
restore is that of the move: bsp-init runs a plain `criu restore`. Right after it, in the same pause, the target's pod takes a
raw `criu dump` of the restored process, which has not run yet (criu_timed.sh). So both are measured on the same process in
containers of the same kind within seconds; the time of the raw dump is deducted from the pause.

    ratio = (pause - delay by the raw dump) / (raw dump + raw restore)

The raw times include no transfer, no verification, and no MPI epoch. Arguments: sizes in MiB.
"""
import pathlib
import re
import shutil
import sys
import tempfile
from statistics import median

from pods import BenchJob, write_json

GOAL = 2.0
PARTS = ["gateMs", "closeMs", "dumpMs", "transferMs", "restoreMs", "commitMs", "openMs"]


class NotMeasured(RuntimeError):
    """With the reason."""


def check_memory(mib):
    """Copies in memory at the same time: the process at the source and at the target, its checkpoint, and the raw dump; and rank 1."""
    free = int(re.search(r"MemAvailable:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1)) // 1024
    needed = 5 * mib + 512
    if free < needed:
        raise NotMeasured(f"takes {needed} MiB of memory, and this machine has {free} MiB left")


def last_times(directory):
    """(restore, raw dump, delay) of the last move, in ms; a rolled back move may have left a line too."""
    if (log := directory / "raw.log").exists():
        raise NotMeasured("the raw criu dump failed:\n" + log.read_text())
    times = directory / "times"
    if not times.exists():
        raise NotMeasured("no restore went through criu_timed.sh: does bsp-init in the image know BSP_CRIU?")
    line = times.read_text().splitlines()[-1]
    times.unlink()
    return [int(word) / 1e3 for word in line.split()[1:]]


def measure(mib, moves):
    check_memory(mib)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="bsp-bench-pause-", dir="/tmp"))
    try:
        directory.chmod(0o777)
        shutil.copy(pathlib.Path(__file__).with_name("criu_timed.sh"), directory / "criu")
        (directory / "criu").chmod(0o755)
        samples = []
        with BenchJob("bench-pause", directory, more=["--ballast", str(mib)], env=[("BSP_CRIU", "/bench/criu")]) as job:
            job.starts()
            for number in range(moves + 1):
                status = job.move()
                restore, raw_dump, held_up = last_times(directory)
                if number == 0:
                    continue  # criu and its libraries are read for the first time
                pause = status["pause"]
                sample = {part: pause.get(part, 0.0) for part in PARTS}
                sample["restoreMs"] -= held_up
                sample |= {"whole_ms": pause["totalMs"] - held_up, "raw_dump_ms": raw_dump, "criu_restore_ms": restore,
                           "bytes": status.get("bytes", 0)}
                sample["ratio"] = sample["whole_ms"] / (raw_dump + restore)
                samples.append(sample)
            if job.undone:
                print(f"{mib:>5} {job.undone} moves were undone by the operator's deadlines and tried again: is this machine busy?")
        return samples
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main(sizes):
    print("medians of the moves, ms; the parts overlap: transfer runs within the dump, open in all pods at once")
    print(f"{'MiB':>5} {'whole pause':>11} = {'dump':>7} {'(stream)':>9} {'restore':>8} {'commit':>7} {'open':>6} | "
          f"{'raw dump':>8} {'restore':>8} | ratio (least .. most)   goal {GOAL:.0f}")
    results, failed = [], False
    for mib in sizes:
        try:
            samples = measure(mib, moves=4)
        except (RuntimeError, AssertionError) as error:  # the other sizes' results are still useful
            print(f"{mib:>5} not measured: {error}", flush=True)
            results.append({"mib": mib, "not_measured": str(error)})
            failed = True
            continue
        of = {key: median([s[key] for s in samples]) for key in samples[0]}
        ratios = [s["ratio"] for s in samples]
        print(f"{mib:>5} {of['whole_ms']:>11.0f} = {of['dumpMs']:>7.0f} {of['transferMs']:>9.0f} {of['restoreMs']:>8.0f} "
              f"{of['commitMs']:>7.1f} {of['openMs']:>6.0f} | {of['raw_dump_ms']:>8.0f} {of['criu_restore_ms']:>8.0f} | "
              f"{of['ratio']:.2f} ({min(ratios):.2f} .. {max(ratios):.2f})   {'met' if of['ratio'] <= GOAL else 'missed'}",
              flush=True)
        results.append({"mib": mib, "median": of, "samples": samples})
    write_json({"pause": results})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or [8, 64, 256, 1024]))
