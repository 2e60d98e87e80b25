#!/usr/bin/env python3
"""seats.py [many]: jobs of 2 to 64 ranks on nodes with unequal numbers of slots, so that their pods have unequal numbers of seats. Ranks
move one by one, two change places, a whole pod leaves together, and in the end all come home. Real pods of the local mode, Open MPI and criu.

It draws jobs for BSP_SOAK_SECONDS (default 900), from BSP_SOAK_SEED (default: the time), one at least. A move succeeds or says that there is
no room. Each rank has a container of its own at any time, ranks of one pod are on one node, and the field must equal the sequential
program's bit for bit.

`many`: one job of 120 ranks in one pod, of which one moves to another node and comes home.

Prints a line for each job."""
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from local_job import LocalJob, until_told, wait_for  # noqa: E402 (in another directory)

PATIENCE = 400  # for what takes some seconds on an idle machine
ENDS = ("Succeeded", "RolledBack", "Failed")
YIELD = "        env: [{name: OMPI_MCA_mpi_yield_when_idle, value: \"1\"}]\n"  # there are more ranks than cores


class Yielding(LocalJob):
    @staticmethod
    def volumes_of(stamps, volume):
        return YIELD


class Job:
    def __init__(self, run, ranks):
        self.run, self.ranks = run, ranks
        self.moves = self.refused = 0

    def said(self):
        return f"{self.run.job()}\n{self.run.output.read_text()[-3000:]}"

    def starts(self):
        wait_for("the first supersteps", lambda: self.run.ended() or self.run.job().get("superstep", 0) >= 3, PATIENCE, self.said)
        assert not self.run.ended(), self.said()
        self.check()
        self.home = [rank["set"] for rank in self.run.job()["ranks"]]

    def move(self, wishes):
        """Of (rank, Set) together; who is there already stays."""
        places = self.run.job()["ranks"]
        wishes = [(rank, to) for rank, to in wishes if places[rank]["set"] != to]
        if not wishes:
            return
        before = self.run.objects("RankMigration").keys()
        for rank, to in wishes:
            asked = self.run.local("migrate", str(rank), "--to", to)
            assert asked.returncode == 0, asked.stdout + asked.stderr + self.said()

        def ended():
            made = [m for name, m in self.run.objects("RankMigration").items() if name not in before]
            return len(made) == len(wishes) and all(m.get("status", {}).get("phase") in ENDS for m in made) and made
        made = wait_for(f"the moves {wishes}", lambda: self.run.ended() or ended(), PATIENCE, self.said)
        assert not self.run.ended(), self.said()
        to_of = dict(wishes)
        for migration in made:
            status, rank = migration["status"], migration["spec"]["rank"]
            if status["phase"] == "Succeeded":
                self.moves += 1
                assert self.run.job()["ranks"][rank]["set"] == to_of[rank], f"{migration}\n{self.said()}"
            else:
                self.refused += 1
                assert status.get("reason") in ("NoCapacity", "AlreadyThere"), f"{migration}\n{self.said()}"
        superstep = self.run.job()["superstep"]
        wait_for("progress", lambda: self.run.ended() or self.run.job()["superstep"] > superstep + 2, PATIENCE, self.said)
        assert not self.run.ended(), self.said()
        self.check()

    def check(self):
        places = self.run.job()["ranks"]
        assert len({(rank["pod"], rank["seat"]) for rank in places}) == self.ranks, places
        nodes = {}
        for rank in places:
            assert nodes.setdefault(rank["pod"], rank["node"]) == rank["node"], places
        running = set(self.run.containers("{{.Names}}"))
        for rank in places:
            assert any(name.endswith(f"{rank['pod']}-{rank['container']}") for name in running), f"{rank}: {running}"

    def go_home(self):
        """Who finds no room goes when others have left."""
        for _ in range(self.ranks + 1):
            self.move(list(enumerate(self.home)))
            if [rank["set"] for rank in self.run.job()["ranks"]] == self.home:
                return
        raise AssertionError(f"they don't get home: {self.said()}")


def drawn(draw):
    """(ranks, pools as {Set: slots of its nodes}, ranks per pod)"""
    ranks = draw.choice([2, 3, 5, 8, 13, 21, 34, 64])
    pools, slots = {}, 0
    while slots < ranks + 2 or len(pools) < 2:
        nodes, each = draw.randint(1, 3), draw.randint(1, 7)
        if ranks > 20:
            each *= 4
        pools[f"set-{len(pools)}"] = (nodes, each)
        slots += nodes * each
    return ranks, pools, draw.choice(["Auto", "Auto", "2", "3", "5"])


def one_job(seed):
    draw = random.Random(seed)
    ranks, pools, per_pod = drawn(draw)
    command = until_told(width=256, height=max(128, 2 * ranks), more=["--progress", "10"])
    text = ",".join(f"{name}={nodes}x{each}x1" for name, (nodes, each) in pools.items())
    began = time.monotonic()
    with Yielding("soak-seats", command, ranks=ranks, pools=text, sets=list(pools), spec=f"ranksPerPod: {per_pod}") as run:
        job = Job(run, ranks)
        job.starts()
        for _ in range(3):
            job.move([(draw.randrange(ranks), draw.choice(list(pools)))])
            places = run.job()["ranks"]
            a, b = draw.sample(range(ranks), 2)
            if places[a]["set"] != places[b]["set"]:
                job.move([(a, places[b]["set"]), (b, places[a]["set"])])
            pod = draw.choice(places)["pod"]
            to = draw.choice([name for name in pools if any(p["pod"] == pod and p["set"] != name for p in places)])
            job.move([(i, to) for i, place in enumerate(run.job()["ranks"]) if place["pod"] == pod])
        job.go_home()
        run.end_well(command)
        assert run.leftovers() == [], run.leftovers()
    print(f"{ranks} ranks on {text}, {per_pod} a pod: {job.moves} moves, {job.refused} without room, in {time.monotonic() - began:.0f} s; the field "
          "is right", flush=True)


def many():
    ranks = 120
    command = until_told(width=256, height=2 * ranks, more=["--progress", "10"])
    began = time.monotonic()
    with Yielding("soak-many", command, ranks=ranks, pools=f"one=1x{ranks}x1,other=1x1x1", sets=["one", "other"], spec="ranksPerPod: Auto") as run:
        job = Job(run, ranks)
        job.starts()
        started = time.monotonic() - began
        assert len({rank["pod"] for rank in run.job()["ranks"]}) == 1
        job.move([(5, "other")])
        job.go_home()
        assert len({rank["pod"] for rank in run.job()["ranks"]}) == 1
        run.end_well(command)
        assert run.leftovers() == [], run.leftovers()
    pauses = sorted(wave["pause_ms"] for wave in run.summary()["waves"])
    print(f"{ranks} ranks in one pod computed {started:.0f} s after they were asked for; pauses {pauses} ms; the field is right", flush=True)


def main():
    if sys.argv[1:] == ["many"]:
        return many()
    seed = int(os.environ.get("BSP_SOAK_SEED") or time.time())
    over = time.monotonic() + float(os.environ.get("BSP_SOAK_SECONDS") or 900)
    number = 0
    while number < 1 or time.monotonic() < over:
        print(f"BSP_SOAK_SEED={seed + number}", flush=True)
        one_job(seed + number)
        number += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
