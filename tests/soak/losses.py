#!/usr/bin/env python3
"""losses.py: one job with checkpoint sets, of which a part is lost at random again and again: a rank's program or bsp-init, a sidecar, a
pod, or all containers of a node that holds two ranks. Real pods of the local mode, Open MPI and criu.

It runs for BSP_SOAK_SECONDS (default 900) and loses a part every minute on average, or ten in a shorter run, drawn from BSP_SOAK_SEED
(default: the time). In the end the field must equal the sequential program's bit for bit, no rank may ever have run twice (stamps), each
loss must have cost a set at most, and the storage must have held no more than keep + 1 sets and half of one, and what losses have torn off.

Prints a line for each loss."""
import collections
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from failure_matrix_test import Pods, kill_parts  # noqa: E402 (in another directory)
from local_job import LocalJob, field_of, sequential_field, wait_for  # noqa: E402
from stamps import Stamps  # noqa: E402

RANKS, KEEP, INTERVAL = 4, 2, 5
VICTIMS = ["program", "bsp-init", "sidecar", "pod", "node"]
PATIENCE = 240  # for what takes some seconds on an idle machine


class Storage(threading.Thread):
    """Watches the directory of the sets."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.directory, self.most_bytes, self.whole, self.over = pathlib.Path(directory), 0, [], threading.Event()

    def sets(self):
        """{set: its images' bytes}"""
        found = collections.defaultdict(list)
        for image in self.directory.glob("*/set-*/rank-*"):
            try:
                found[image.parent.name].append(image.stat().st_size)
            except FileNotFoundError:
                pass  # of a set that is just being removed
        return found

    def run(self):
        while not self.over.wait(0.2):
            held = 0
            for path, _, files in os.walk(self.directory):
                for file in files:
                    try:
                        held += os.stat(os.path.join(path, file)).st_size
                    except FileNotFoundError:
                        pass
            self.most_bytes = max(self.most_bytes, held)
            self.whole += [sum(sizes) for sizes in self.sets().values() if len(sizes) == RANKS]

    def end(self):
        """The most bytes it has held, in sets of the largest one's size."""
        self.over.set()
        self.join()
        return self.most_bytes / max(self.whole)


class Soak:
    def __init__(self, run, sets, draw):
        self.run, self.sets, self.draw, self.pods = run, pathlib.Path(sets), draw, Pods(run)
        self.torn = 0  # losses since the last set that was stored, at most
        self.most_torn = 0

    def said(self):
        return f"{self.run.job()}\n{self.run.output.read_text()[-3000:]}"

    def newest(self):
        return max((one["id"] for one in self.run.job().get("checkpoint", {}).get("sets", [])), default=0)

    def runs(self):
        assert not self.run.ended(), self.said()
        return self.run.job().get("phase") == "Running"

    def wait_for_set(self, after):
        wait_for(f"a set after {after}", lambda: self.runs() and self.newest() > after, PATIENCE, self.said)
        self.torn = 0
        names = lambda: {f"set-{number}" for one in self.run.job()["checkpoint"]["sets"]  # noqa: E731
                         for number in (one["id"], one.get("base", 0))}
        # One more is being stored, at most.
        wait_for("the removal of older sets", lambda: len({path.name for path in self.sets.glob("*/set-*")} - names()) <= 1, PATIENCE, self.said)

    def lose(self, victim):
        """True if the job had to go back to a set."""
        before = self.run.job()
        attempt, at = before.get("attempt", 0), before.get("superstep", 0)
        places = before["ranks"]
        if victim == "node":
            lost = {place["pod"] for place in self.draw.sample(places, RANKS // 2)}
            self.run.kill_pods(lost)
            struck = True
        else:
            lost = {self.draw.choice(places)["pod"]}
            struck = kill_parts(victim, self.pods.processes().get(next(iter(lost)), {}))
        self.torn += 1
        self.most_torn = max(self.most_torn, self.torn)
        started = time.monotonic()

        def runs_again():
            now = self.run.job() if self.runs() else {}
            # A lost sidecar is started again, and then nothing else is lost.
            again = now.get("attempt", 0) > attempt or victim == "sidecar" or not struck
            return again and now.get("superstep", 0) > 0 and now
        now = wait_for(f"the job to run again after the loss of a {victim}", runs_again, PATIENCE, self.said)
        came_back = now.get("attempt", 0) > attempt
        restored = now["checkpoint"].get("restored")
        assert not came_back or restored, f"it began from nothing: {self.said()}"
        how = f"attempt {now.get('attempt', 0)} from set {restored} after {time.monotonic() - started:.1f} s" if came_back else "went on"
        print(f"  superstep {at:>6}  {victim:<9} {', '.join(sorted(lost)):<20} {how}", flush=True)
        return came_back


def main():
    seconds = float(os.environ.get("BSP_SOAK_SECONDS") or 900)
    every = min(60, seconds / 10)
    seed = int(os.environ.get("BSP_SOAK_SEED") or time.time())
    draw = random.Random(seed)
    print(f"BSP_SOAK_SEED={seed} BSP_SOAK_SECONDS={seconds:.0f}", flush=True)
    directory = tempfile.mkdtemp(prefix="bsp-soak-losses-", dir="/tmp")
    sets = str(pathlib.Path(directory) / "sets")
    counts = collections.Counter()
    try:
        with tempfile.TemporaryDirectory(prefix="bsp-soak-stamps-", dir="/tmp") as shared, Stamps("losses", shared, shared) as stamps:
            command = stamps.stamping_until_told()
            # Stamps of what is lost must stay, so the file is not cut off.
            spec = f"checkpoint: {{interval: {INTERVAL}s, keep: {KEEP}, sharedFiles: Ignore}}"
            with LocalJob("soak-losses", command, ranks=RANKS, pools="slow=6x0.3,fast=6x0.3", backoff=20, spec=spec, stamps=stamps,
                          checkpoints=sets) as run:
                storage, soak = Storage(sets), Soak(run, sets, draw)
                storage.start()
                until = time.monotonic() + seconds
                soak.wait_for_set(0)
                victims = []
                while time.monotonic() < until:
                    time.sleep(min(draw.expovariate(1 / every), 3 * every, max(0, until - time.monotonic())))
                    if not soak.runs():
                        continue
                    # Each kind comes up before any comes up again, so that a short run has all.
                    victims = victims or draw.sample(VICTIMS, len(VICTIMS))
                    victim = victims.pop()
                    newest = soak.newest()
                    counts[victim] += 1
                    counts["attempts"] += soak.lose(victim)
                    if draw.random() < 0.7:  # else the next loss may come before a set
                        soak.wait_for_set(newest)
                soak.wait_for_set(soak.newest())
                stamps.tell()
                status, output = run.wait(PATIENCE)
                assert status == 0, output[-3000:]
                field, expected = field_of(output), sequential_field(["lattice_boltzmann", *command[1:]], output)
                assert field is not None and field == expected, f"the field is {field}, not {expected}:\n{output[-3000:]}"
            found = stamps.findings(RANKS, resumes=True)
            assert found == [], "\n".join(found)
        most = storage.end()
        limit = KEEP + 1.5 + soak.most_torn
        assert most <= limit + 0.05, f"the storage held as much as {most:.2f} sets, not {limit} at most"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    attempts = counts.pop("attempts")
    print(f"{sum(counts.values())} losses ({', '.join(f'{count} × {victim}' for victim, count in sorted(counts.items()))}), {attempts} restarts from a set: "
          f"the field is right ({field}), no rank ran twice, the storage held {most:.2f} sets at most (keep: {KEEP})")


if __name__ == "__main__":
    main()
