#!/usr/bin/env python3
"""Jobs whose ranks share pods (spec.ranksPerPod), as a user runs them: real pods, Open MPI over shared memory and TCP, and criu."""
import pathlib
import shutil
import tempfile
import unittest

from failure_matrix_test import command_of, descendants
from local_job import LocalJob, kill, until_told, wait_for

RANKS = 4
POOLS = "slow=2x4x0.2,fast=2x4x0.2"


class Seats(unittest.TestCase):
    def move(self, run, *wishes):
        """Each is (rank, Set); they are asked for together."""
        before = run.objects("RankMigration").keys()
        for rank, to in wishes:
            asked = run.local("migrate", str(rank), "--to", to)
            self.assertEqual(asked.returncode, 0, asked.stdout + asked.stderr + run.output.read_text())

        def ended():
            made = [m for name, m in run.objects("RankMigration").items() if name not in before]
            return len(made) == len(wishes) and all(
                m.get("status", {}).get("phase") in ("Succeeded", "RolledBack", "Failed") for m in made) and made
        made = wait_for(f"the moves {wishes}", lambda: run.ended() or ended(), 180, run.output.read_text)
        self.assertFalse(run.ended(), run.output.read_text())
        for migration in made:
            self.assertEqual(migration["status"]["phase"], "Succeeded", f"{migration}\n{run.output.read_text()}")
        for rank, to in wishes:
            self.assertEqual(run.job()["ranks"][rank]["set"], to)
        run.wait_for_superstep(run.job()["superstep"] + 5)
        return made

    def check_containers(self, run):
        """Each rank has a running container of its own, which `local get` and `local describe` name."""
        ranks = run.job()["ranks"]
        self.assertEqual(len({(rank["pod"], rank["seat"]) for rank in ranks}), RANKS)
        for rank in range(RANKS):
            self.assertTrue(run.container_of(rank))
        pods = run.local("get", "pods").stdout
        described = run.local("describe", "bspjob", "job").stdout
        for rank in ranks:
            self.assertIn(rank["pod"], pods)
            self.assertIn(rank["pod"] + (f"/{rank['container']}" if rank["seat"] else ""), described)

    def run_through_moves(self, seats):
        command = until_told(more=["--progress", "10"])
        with LocalJob(f"e2e-seats-{seats}", command, ranks=RANKS, pools=POOLS, spec=f"ranksPerPod: {seats}") as run:
            run.wait_for_superstep(5)
            self.assertFalse(run.ended(), run.output.read_text())
            self.assertEqual([(rank["pod"], rank["seat"]) for rank in run.job()["ranks"]],
                             [(f"job-r{rank - rank % seats}-g0", rank % seats) for rank in range(RANKS)])
            self.check_containers(run)
            for rank in range(2):
                self.move(run, (rank, "fast"))
                self.check_containers(run)
            # The others together: those of one wave and pod share a pod again.
            moved = self.move(run, (2, "fast"), (3, "fast"))
            waves = {migration["status"]["wave"] for migration in moved}
            pods = {run.job()["ranks"][rank]["pod"] for rank in (2, 3)}
            self.assertEqual(len(pods), len(waves) if seats > 1 else 2, f"{moved}")
            # A pod stays as long as a rank is in it.
            wait_for("the sources to go", lambda: run.objects("Pod").keys() == {rank["pod"] for rank in run.job()["ranks"]},
                     detail=lambda: list(run.objects("Pod")))
            self.move(run, (3, "slow"))
            self.move(run, (3, "fast"), (1, "slow"))  # they swap places
            self.check_containers(run)
            self.move(run, (0, "slow"), (2, "slow"), (3, "slow"))  # home again
            self.check_containers(run)
            self.assertIn("superstep", run.local("logs", "0").stdout)
            run.end_well(command)
            self.assertEqual(run.leftovers(), [])

    def test_a_swap_needs_no_slot_beside_a_free_seat(self):
        """Five slots: four ranks and one that rank 1 takes, so that from then on the seat that it has left is the only room."""
        command = until_told(more=["--progress", "1"])
        with LocalJob("e2e-seats-swap", command, ranks=RANKS, pools="slow=1x2x0.3,fast=1x3x0.3", spec="ranksPerPod: Auto") as run:
            run.wait_for_superstep(5)
            self.assertFalse(run.ended(), run.output.read_text())
            home = [(rank["pod"], rank["seat"]) for rank in run.job()["ranks"]]
            self.assertEqual(home, [("job-r0-g0", 0), ("job-r0-g0", 1), ("job-r2-g0", 0), ("job-r2-g0", 1)])

            def places():
                return [(rank["pod"], rank["seat"]) for rank in run.job()["ranks"]]
            self.move(run, (1, "fast"))
            pods = run.objects("Pod").keys()
            self.assertEqual(pods, {"job-r0-g0", "job-r2-g0", "job-r1-g1"})
            # Together: one takes the free seat, and the other the one that it leaves.
            self.move(run, (2, "slow"), (0, "fast"))
            self.assertEqual(places(), [home[2], ("job-r1-g1", 0), home[1], home[3]])
            self.check_containers(run)
            self.move(run, (0, "slow"), (2, "fast"))
            self.assertEqual(run.objects("Pod").keys(), pods, "no pod was made")
            self.move(run, (1, "slow"))
            self.assertEqual(sorted(places()[:3]), sorted(home[:3]))
            wait_for("the pod that no rank is in to go", lambda: run.objects("Pod").keys() == {"job-r0-g0", "job-r2-g0"},
                     detail=lambda: list(run.objects("Pod")))
            self.check_containers(run)
            lines = run.local("logs", "0").stdout.splitlines()
            done = [int(line.split()[1].split("/")[0]) for line in lines if line.startswith("superstep ")]
            self.assertEqual(done, sorted(set(done)), "its own lines, in order")
            run.end_well(command)
            self.assertEqual(run.leftovers(), [])

    def test_moves_with_one_rank_in_a_pod(self):
        self.run_through_moves(1)

    def test_moves_with_two_ranks_in_a_pod(self):
        self.run_through_moves(2)

    def test_moves_with_four_ranks_in_a_pod(self):
        self.run_through_moves(4)

    def kill_program(self, run, rank):
        init = int(run.container_of(rank, "{{.Pid}}"))
        program, = [pid for pid in descendants(init)[1:] if command_of(pid).startswith("lattice")]
        kill(program)

    def test_a_lost_rank_is_named_with_pod_and_container(self):
        with LocalJob("e2e-seats-lost", until_told(), ranks=RANKS, pools=POOLS, spec="ranksPerPod: 4") as run:
            run.wait_for_superstep(5)
            self.assertFalse(run.ended(), run.output.read_text())
            self.kill_program(run, 3)
            status, output = run.wait()
            self.assertNotEqual(status, 0)
            self.assertIn("job-r0-g0/app-3", output)
            self.assertEqual(run.leftovers(), [])

    def test_an_attempt_goes_on_from_a_set_whose_ranks_share_pods(self):
        directory = tempfile.mkdtemp(prefix="bsp-e2e-seats-", dir="/tmp")
        self.addCleanup(shutil.rmtree, directory, ignore_errors=True)
        command = until_told()
        with LocalJob("e2e-seats-sets", command, ranks=RANKS, pools=POOLS, backoff=1, checkpoints=str(pathlib.Path(directory) / "sets"),
                      spec="ranksPerPod: 2\n  checkpoint: {interval: 2s}") as run:
            run.wait_for_superstep(5)
            self.move(run, (1, "fast"))  # so the next attempt packs the ranks differently
            moved_at = run.job()["superstep"]
            wait_for("a checkpoint set", lambda: run.ended() or run.job().get("checkpoint", {}).get("superstep", 0) > moved_at, 180,
                     run.output.read_text)
            self.assertFalse(run.ended(), run.output.read_text())
            self.kill_program(run, 3)
            wait_for("the next attempt", lambda: run.ended() or
                     (run.job().get("attempt") == 1 and run.job()["phase"] == "Running"), 180, run.output.read_text)
            self.assertFalse(run.ended(), run.output.read_text())
            self.assertIn("restored", run.job()["checkpoint"], "it went on from a set")
            self.check_containers(run)
            run.end_well(command)


if __name__ == "__main__":
    unittest.main(verbosity=2)
