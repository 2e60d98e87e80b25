#!/usr/bin/env python3
"""What checkpoint sets cost, and what a lost node costs with them: real pods of the local mode, sets in a directory of this machine.

    checkpoints.py [PART…] [--sizes MIB…] [--sets N] [--seconds S] [--losses N]     parts: pause overhead loss bytes (default: all)

  pause     the ranks' pause for a set ÷ the slowest rank's raw `criu dump`, taken in the same pause of the same process right after the
            set's own (criu_timed.sh); its time is deducted from the pause. Two ranks of each size
  overhead  time of a superstep in stretches of S seconds that begin with a set ÷ in the stretches between them, in one run of 4 ranks
            with 64 MiB each; and between two halves of those without a set, as the noise. From it what a set every S seconds and every
            5 min costs
  loss      from the end of all containers of a node's pods until every rank computes beyond the superstep of the set, 4 ranks in 2 pods
  bytes     what each later set takes of the storage ÷ the first, of 2 ranks with 64 MiB and a field that is a tenth of their memory and
            changes in each superstep; and the most that the storage held ÷ the first, with keep: 2
"""
import argparse
import contextlib
import datetime
import pathlib
import re
import shutil
import tempfile
import threading
import time
from statistics import median

from pods import LocalJob, manifest, on_host, wait_for, write_json
from local_job import lattice_boltzmann

GOALS = {"pause": 1.5, "overhead": 1.02, "every 5 min": 1.005, "loss": 15, "bytes": 0.25, "storage": 3}


class Job(LocalJob):
    """Its /bench and its sets are directories below `directory`."""

    def __init__(self, name, directory, ranks, mib, seats=1, pools="slow=4x1", env=(), width=256):
        self.bench, self.sets = directory / "bench", directory / "sets"
        self.bench.mkdir()
        self.bench.chmod(0o777)
        command = lattice_boltzmann(1000000000, width=width, more=["--ballast", str(mib), "--progress", "20"])
        super().__init__(name, command, pools=pools, checkpoints=str(self.sets), manifest=manifest(
            self.bench, command, env, ranks=ranks, ranksPerPod=seats, checkpoint={"interval": "9h", "keep": 2, "sizeLimit": "5Gi"},
            runPolicy={"backoffLimit": 3, "cleanPodPolicy": "Running"}))

    def starts(self):
        self.wait_for_superstep(3, 300)
        if self.ended():
            raise RuntimeError("the job ended early:\n" + self.output.read_text()[-3000:])

    def make_set(self):
        """The stored set, as the status has it."""
        made = self.local("checkpoint", "--wait")
        if made.returncode != 0:
            raise RuntimeError("no set was stored: " + made.stdout + made.stderr + self.output.read_text()[-2000:])
        return self.job()["checkpoint"]["sets"][-1]

    def held(self):
        """Bytes in the storage."""
        total = 0
        for file in self.sets.rglob("*"):
            with contextlib.suppress(OSError):
                total += file.stat().st_blocks * 512 if file.is_file() else 0
        return total


@contextlib.contextmanager
def scratch():
    directory = pathlib.Path(tempfile.mkdtemp(prefix="bsp-bench-sets-", dir="/tmp"))
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def verdict(value, goal):
    return f"goal {goal:<6} {'met' if value <= goal else 'missed'}"


def pause(options):
    results = {}
    print("the pause for a set, ms; raw: the slowest rank's criu dump into memory")
    for mib in options.sizes:
        with scratch() as directory, Job("bench-sets", directory, 2, mib, env=[("BSP_CRIU", "/bench/criu_of_set")]) as job:
            criu = job.bench / "criu_of_set"
            shutil.copy(pathlib.Path(__file__).with_name("criu_timed.sh"), criu)
            criu.chmod(0o755)
            job.starts()
            samples = []
            for number in range(options.sets + 1):
                with contextlib.suppress(FileNotFoundError):
                    (job.bench / "times").unlink()
                waited = job.make_set()["pauseSeconds"] * 1e3
                if (log := job.bench / "raw.log").exists():
                    raise RuntimeError("the raw criu dump failed:\n" + log.read_text())
                times = [[int(word) / 1e3 for word in line.split()[1:]] for line in (job.bench / "times").read_text().splitlines()]
                raw, delay = max(row[1] for row in times), max(row[2] for row in times)
                if number > 0:  # criu and its libraries are read for the first time
                    samples.append({"pause": waited - delay, "raw": raw, "dump": max(row[0] for row in times), "ratio": (waited - delay) / raw})
        one = {key: median(sample[key] for sample in samples) for key in samples[0]}
        results[mib] = samples
        print(f"{mib:>6} MiB: pause {one['pause']:7.1f}  its criu {one['dump']:7.1f}  raw {one['raw']:7.1f}  ratio {one['ratio']:.2f} "
              f"[{min(s['ratio'] for s in samples):.2f} … {max(s['ratio'] for s in samples):.2f}]  "
              + (verdict(one["ratio"], GOALS["pause"]) if mib >= 64 else "no goal"), flush=True)
    return results


def progress(job):
    """[(seconds, superstep)] of rank 0's progress lines."""
    found = []
    for log in sorted((job.store_here() / "logs").glob("*/app.log")):
        for line in log.read_text(errors="replace").splitlines():
            if told := re.match(r"(\S+) stdout F superstep (\d+)/", line):
                stamp = re.sub(r"(\.\d{6})\d*", r"\1", told.group(1))
                found.append((datetime.datetime.fromisoformat(stamp).timestamp(), int(told.group(2))))
    return sorted(found)


def seconds_each(lines, begin, end):
    """Of a superstep, between the first and the last line in that stretch."""
    inside = [line for line in lines if begin <= line[0] <= end]
    if len(inside) < 3:
        raise RuntimeError("too few lines of progress in a stretch; --seconds must be longer")
    return (inside[-1][0] - inside[0][0]) / (inside[-1][1] - inside[0][1])


def overhead(options):
    with scratch() as directory, Job("bench-sets", directory, 4, 64) as job:
        job.starts()
        job.make_set()
        stretches, pauses = [], []
        for number in range(2 * options.sets + 1):
            begin = time.time()
            if number % 2 == 1:
                pauses.append(job.make_set()["pauseSeconds"])
            time.sleep(max(0.0, begin + options.seconds - time.time()))
            stretches.append((begin, time.time()))
        lines = progress(job)
    times = [seconds_each(lines, *stretch) for stretch in stretches]
    ratios = [times[i] * 2 / (times[i - 1] + times[i + 1]) for i in range(1, len(times), 2)]
    without = times[0::2]
    noise = [b / a for a, b in zip(without, without[1:])]
    ratio = median(ratios)
    share = (ratio - 1) * options.seconds  # s a set
    print(f"4 ranks × 64 MiB: a set every {options.seconds} s {ratio:.4f} [{min(ratios):.4f} … {max(ratios):.4f}], without ÷ without "
          f"{median(noise):.4f} [{min(noise):.4f} … {max(noise):.4f}]; the pause alone {median(pauses):.3f} s")
    print(f"  every 30 s: {1 + share / 30:.4f}  {verdict(1 + share / 30, GOALS['overhead'])}; "
          f"every 5 min: {1 + share / 300:.4f}  {verdict(1 + share / 300, GOALS['every 5 min'])}", flush=True)
    return {"ratios": ratios, "noise": noise, "pauses": pauses, "seconds": options.seconds}


def loss(options):
    results = []
    with scratch() as directory, Job("bench-sets", directory, 4, 64, seats=2, pools="slow=2x2,fast=2x2") as job:
        job.starts()
        for number in range(options.losses):
            stored = job.make_set()
            job.wait_for_superstep(stored["superstep"] + 5)
            attempt = job.job().get("attempt", 0)
            victim = job.job()["ranks"][-1]["pod"]
            names = [name for name in job.containers("{{.Names}}") if victim in name]
            before = job.job()["superstep"]
            began = time.monotonic()
            killed = on_host("podman", "kill", *names)
            if killed.returncode != 0:
                raise RuntimeError(killed.stderr)
            wait_for("the next attempt", lambda: job.ended() or
                     (job.job().get("attempt", 0) > attempt and job.job()["phase"] == "Running" and
                      job.job().get("superstep", 0) > stored["superstep"]), 300, lambda: job.output.read_text()[-2000:])
            if job.ended():
                raise RuntimeError("the job ended:\n" + job.output.read_text()[-3000:])
            results.append({"seconds": time.monotonic() - began, "computed_again": before - stored["superstep"]})
    took = [one["seconds"] for one in results]
    print(f"a node's containers killed → all ranks compute: {median(took):.1f} s [{min(took):.1f} … {max(took):.1f}]  "
          f"{verdict(median(took), GOALS['loss'])} s", flush=True)
    return results


def stored_bytes(options):
    """Two fields of nine doubles a cell, in columns of 128 cells, change in each superstep; all other memory doesn't."""
    width, ranks = 910, 2
    most, done = [0], threading.Event()
    with scratch() as directory, Job("bench-sets", directory, ranks, 64, width=width) as job:
        def watch():
            while not done.wait(0.05):
                most[0] = max(most[0], job.held())
        job.starts()
        watcher = threading.Thread(target=watch)
        watcher.start()
        sets, files = [], []
        try:
            for _ in range(max(10, options.sets)):  # beyond the first group of 8
                job.wait_for_superstep(job.job()["superstep"] + 5)
                sets.append(job.make_set())
                files.append(sum(path.stat().st_size for path in job.sets.glob(f"*/set-{sets[-1]['id']}/rank-*")))
        finally:
            done.set()
            watcher.join()
    changes = 2 * 72 * 128 * width / sets[0]["bytes"]
    ratios = [size / files[0] for size in files]
    print(f"a field of {changes:.2f} of the memory changes: the second set ÷ the first {ratios[1]:.2f}  {verdict(ratios[1], GOALS['bytes'])}; "
          f"each of them: {' '.join(f'{ratio:.2f}' for ratio in ratios)}; all of 8 sets ÷ 8 whole ones {sum(ratios[:8]) / 8:.2f}")
    held = most[0] / files[0]
    print(f"the most that was in the storage: {held:.2f} sets  {verdict(held, GOALS['storage'])}, keep + 1", flush=True)
    return {"changes": changes, "files": files, "sets": [{key: one.get(key) for key in ("id", "bytes", "storedBytes", "base")} for one in sets],
            "most_held": most[0]}


PARTS = {"pause": pause, "overhead": overhead, "loss": loss, "bytes": stored_bytes}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 64, 256])
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--losses", type=int, default=3)
    options = parser.parse_args()
    write_json({part: PARTS[part](options) for part in options.parts or PARTS})


if __name__ == "__main__":
    main()
