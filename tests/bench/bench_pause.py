#!/usr/bin/env python3
"""The whole pause of a move against raw criu: real pods, everything between the last rank's stop and the first rank
computing again.

A job of two ranks under the operator; rank 0, which carries 8, 64, 256 or 1024 MiB, is moved to and fro by hand. In
each pause the pod of the source first takes a raw `criu dump` of the same stopped process (criu_timed.sh), so that both
are measured on the same process in the same container within the same second; the time this takes is deducted from the
pause. The raw restore is that of the move: bsp-init runs a plain `criu restore`.

    ratio = (pause - held up by the raw dump) / (raw dump + restore)

The raw figures hold no transfer, no verification, and no MPI epoch. Arguments: sizes in MiB.
"""
import pathlib
import shutil
import sys
import tempfile

from pods import BenchJob, median, write_json

GOAL = 2.0
PARTS = ["gateMs", "closeMs", "dumpMs", "transferMs", "restoreMs", "commitMs", "openMs"]


def new_lines(file, seen):
    lines = file.read_text().splitlines() if file.exists() else []
    return lines[seen:], len(lines)


def measure(mib, moves):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="bsp-bench-pause-", dir="/tmp"))
    try:
        directory.chmod(0o777)
        shutil.copy(pathlib.Path(__file__).with_name("criu_timed.sh"), directory / "criu")
        (directory / "criu").chmod(0o755)
        samples, seen = [], 0
        with BenchJob("bench-pause", directory, more=["--ballast", str(mib)], env=[("BSP_CRIU", "/bench/criu")]) as job:
            job.starts()
            for number in range(moves + 1):
                status = job.move()
                if (directory / "raw.log").exists():
                    raise RuntimeError("the raw criu dump failed:\n" + (directory / "raw.log").read_text())
                lines, seen = new_lines(directory / "times", seen)  # of an undone one too; the last counts
                if number == 0:
                    continue  # criu and its libraries are read for the first time
                times = {line.split()[0]: [int(w) / 1e3 for w in line.split()[1:]] for line in lines}
                pause = status["pause"]
                held_up = times["dump"][1]
                sample = {part: pause.get(part, 0.0) for part in PARTS}
                sample["dumpMs"] -= held_up
                sample["transferMs"] -= held_up  # bsp-init's own file goes ahead of criu's
                sample |= {"whole_ms": pause["totalMs"] - held_up, "raw_dump_ms": times["dump"][0],
                           "criu_restore_ms": times["restore"][0], "bytes": status.get("bytes", 0)}
                sample["ratio"] = sample["whole_ms"] / (sample["raw_dump_ms"] + sample["criu_restore_ms"])
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
    figures, failed = [], False
    for mib in sizes:
        try:
            samples = measure(mib, moves=4)
        except RuntimeError as error:  # the other sizes' figures are worth having all the same
            print(f"{mib:>5} not measured: {error}", file=sys.stderr)
            failed = True
            continue
        of = {key: median([s[key] for s in samples]) for key in samples[0]}
        ratios = [s["ratio"] for s in samples]
        print(f"{mib:>5} {of['whole_ms']:>11.0f} = {of['dumpMs']:>7.0f} {of['transferMs']:>9.0f} {of['restoreMs']:>8.0f} "
              f"{of['commitMs']:>7.1f} {of['openMs']:>6.0f} | {of['raw_dump_ms']:>8.0f} {of['criu_restore_ms']:>8.0f} | "
              f"{of['ratio']:.2f} ({min(ratios):.2f} .. {max(ratios):.2f})   {'met' if of['ratio'] <= GOAL else 'missed'}",
              flush=True)
        figures.append({"mib": mib, "median": of, "samples": samples})
    write_json({"pause": figures})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or [8, 64, 256, 1024]))
