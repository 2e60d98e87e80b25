#!/usr/bin/env python3
"""Jobs run by `bsp-operator local run`: real pods, Open MPI and criu."""
import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

from local_job import LocalJob, field_of, kill, lattice_boltzmann, on_host, sequential_field, sized_lattice_boltzmann, until_told, wait_for
from places import with_places
from stamps import Stamps


class Runs(unittest.TestCase):
    def test_cost_model_moves_a_rank(self):
        command = sized_lattice_boltzmann(0.4, supersteps=24)
        with LocalJob("e2e-decided", command, mode="Migrate", pools="slow=1x0.1,fast=2x0.4", record=True) as run:
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            summary = run.summary()
            moved = [m for m in summary["migrations"] if m["phase"] == "Succeeded"]
            self.assertEqual([(m["rank"], m["from"], m["to"]) for m in moved], [(0, "slow", "fast")], output)
            self.assertGreater(moved[0]["predicted_gain_s"], 0)
            self.assertGreater(moved[0]["realised_gain_s"], 0)
            self.assertEqual(field_of("\n".join(summary["rank0_output"])), sequential_field(command), output)
            calls = run.calls()
            self.assertEqual({call["recorded"]["heuristic"] for call in calls}, {"Auto"}, "the default")
            moves = [(m["rank"], m["from"].split("/")[0], m["to"].split("/")[0])
                     for call in calls for m in call["recorded"]["moves"]]
            self.assertEqual(moves, [(0, "slow", "fast")], "the record matches the migrations")
            picture = run.timeline_file.read_text()
            xml.dom.minidom.parseString(picture)
            for text in ("rank 0 in Set slow, ", "rank 0 in Set fast, ", "<title>rank 0 slow→fast: Succeeded", ">α ", ">D ", "Strong part"):
                self.assertIn(text, picture)
            self.assertEqual(run.leftovers(), [])

    def test_a_rank_leaves_its_node_when_that_slows_down(self):
        command = sized_lattice_boltzmann(0.2, supersteps=110, ranks=5)
        with LocalJob("e2e-slows", command, ranks=5, mode="Migrate", pools="a=7x0.22", sets=["a"]) as run:
            run.wait_for_superstep(40)
            place = max(run.job()["ranks"], key=lambda rank: rank["computeSeconds"])
            container, = [name for name in run.containers("{{.Names}}") if place["pod"] in name and name.endswith("app")]
            slowed = on_host("podman", "update", "--cpu-period", "20000", "--cpu-quota", "1600", container)
            self.assertEqual(slowed.returncode, 0, slowed.stderr)
            earlier = sum(m["spec"]["rank"] == place["rank"] for m in run.objects("RankMigration").values())
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            summary = run.summary()
            # Other moves may have come before and beside: besides their quota the nodes share this machine, which makes some slower.
            moves = [m for m in summary["migrations"] if m["rank"] == place["rank"]][earlier:]
            self.assertEqual([m["phase"] for m in moves[:1]], ["Succeeded"], output)
            self.assertGreater(moves[0]["realised_gain_s"] + (moves[0]["realised_gain_error_s"] or 0), 0, output)
            self.assertEqual(field_of("\n".join(summary["rank0_output"])), sequential_field(command), output)

    def test_advise_decides_but_moves_no_rank(self):
        with LocalJob("e2e-advise", sized_lattice_boltzmann(0.4, supersteps=12), mode="Advise",
                      heuristic="AutoMig", pools="slow=1x0.1,fast=2x0.4", record=True) as run:
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            self.assertEqual(run.summary()["migrations"], [])
            self.assertIn("rank 0 moves: slow -> fast", output)
            self.assertIn(0, [m["rank"] for m in run.calls()[0]["recorded"]["moves"]])

    def test_running_pod_sees_a_renewed_secret(self):
        mark = "renewed by the test\n"  # PEM ignores text before a certificate
        with LocalJob("e2e-renewed", lattice_boltzmann(supersteps=1000000)) as run:
            run.wait_for_superstep(3)
            for name, secret in run.objects("Secret").items():
                if "ca.pem" not in secret["data"]:
                    continue  # the operator's own seed
                ca = base64.b64decode(secret["data"]["ca.pem"]).decode()
                secret["data"]["ca.pem"] = base64.b64encode((mark + ca).encode()).decode()
                run.replace("Secret", name, secret)
            for pod in (r["pod"] for r in run.job()["ranks"]):
                uid = run.objects("Pod")[pod]["metadata"]["uid"]
                file, = (run.store_here() / "pods" / f"{pod}.{uid}" / "volumes").glob("*/ca.pem")
                wait_for(f"the renewed file of {pod}", lambda file=file: file.read_text().startswith(mark), 30)
                log = run.store_here() / "logs" / pod / "sidecar.log"
                wait_for(f"the sidecar of {pod} to take it", lambda log=log: "credentials renewed" in log.read_text(), 60)
            run.wait_for_superstep(run.job()["superstep"] + 5)
            self.assertEqual(run.job().get("attempt", 0), 0)

    def test_manual_move_and_the_other_commands(self):
        command = until_told(more=["--progress", "10"])
        with LocalJob("e2e-hand", command) as run:
            run.wait_for_superstep(5)
            refused = run.local("migrate", "0", "--to", "nowhere", "--wait")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("nowhere", refused.stdout + refused.stderr)
            moved = run.local("migrate", "0", "--to", "fast", "--wait")
            self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr + run.output.read_text())
            table = run.local("get", "rankmigrations").stdout
            self.assertRegex(table, r"Succeeded")
            jobs = json.loads(run.local("get", "bspjobs", "job", "-o", "json").stdout)
            self.assertEqual([r["set"] for r in with_places(jobs["status"])["ranks"]], ["fast", "fast"])
            self.assertIn("Rank 0 moved slow→fast", run.local("describe", "bspjob", "job").stdout)
            page = run.local("explain").stdout
            self.assertIn("spec.rescheduling.mode is Off", page)
            self.assertRegex(page, r"rank 0 slow→fast: Succeeded \d+s ago, made by hand, pause \d+")
            self.assertRegex(run.local("top", "--once").stdout, r"fast +rank 1 .*")
            self.assertIn("rank 0 slow→fast: Succeeded", run.local("timeline").stdout)
            self.assertIn("superstep", run.local("logs", "0").stdout)
            run.end_well(command)

    def test_pause_is_what_the_program_loses(self):
        """The status' pause against the time that the program itself sees pass at the barrier. One clock, so the program sees at least as
        much; of several moves one isn't disturbed, between the program's clock and the shim's, by what else this machine does."""
        moves = ["fast", "slow"] * 3
        with tempfile.TemporaryDirectory(prefix="bsp-e2e-stamps-", dir="/tmp") as shared, Stamps("pause", shared, shared) as stamps, \
             LocalJob("e2e-pause", stamps.stamping_until_told(), pools="slow=3x0.4,fast=2x0.4", stamps=stamps) as run:
            run.wait_for_superstep(5)
            for to in moves:
                moved = run.local("migrate", "0", "--to", to, "--wait")
                self.assertEqual(moved.returncode, 0, moved.stdout + moved.stderr + run.output.read_text())
            made = sorted((m["status"] for m in run.objects("RankMigration").values()), key=lambda status: status["wave"])
            told = [status["pause"]["totalMs"] / 1000 for status in made]
            stamps.tell()
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            seen = stamps.pauses(rank=0)
        self.assertEqual(len(seen), len(moves))
        for own, operators in zip(seen, told, strict=True):
            self.assertGreater(own, operators - 0.5e-4, (seen, told))  # which tells tenths of a millisecond
        self.assertLess(min(own / operators for own, operators in zip(seen, told, strict=True)), 1.1, (seen, told))

    def test_move_requested_during_another(self):
        command = until_told()
        with LocalJob("e2e-queue", command, pools="slow=2x0.3,fast=2x0.4") as run:
            run.wait_for_superstep(5)
            self.assertEqual(run.local("migrate", "0", "--to", "fast").returncode, 0)
            wait_for("the first move", lambda: run.objects("RankMigration"))
            second = run.local("migrate", "1", "--to", "fast", "--wait")
            self.assertEqual(second.returncode, 0, second.stdout + second.stderr + run.output.read_text())
            wait_for("the sources to go", lambda: run.objects("Pod").keys() == {"job-r0-g1", "job-r1-g1"},
                     detail=lambda: list(run.objects("Pod")))
            ends = {m["spec"]["rank"]: m["status"]["phase"] for m in run.objects("RankMigration").values()}
            self.assertEqual(ends, {0: "Succeeded", 1: "Succeeded"})
            run.end_well(command)


class Endings(unittest.TestCase):
    def test_ctrl_c_leaves_nothing(self):
        with LocalJob("e2e-interrupt", lattice_boltzmann(100000)) as run:
            run.wait_for_superstep(2)
            run.process.send_signal(signal.SIGINT)
            status, output = run.wait(60)
            self.assertEqual(status, 130, output)
            self.assertEqual(run.leftovers(), [])

    def test_a_reader_that_goes_leaves_nothing(self):
        reader = ("bash", "-o", "pipefail", "-c", '"$@" | head -n 3', "bash")
        with LocalJob("e2e-pipe", lattice_boltzmann(100000), under=reader) as run:
            status, output = run.wait(120)
            self.assertEqual(status, 128 + signal.SIGPIPE, output)
            self.assertEqual(run.leftovers(), [])

    def test_the_job_survives_its_operator(self):
        command = until_told()
        with LocalJob("e2e-restart", command) as run:
            run.wait_for_superstep(5)
            kill(run.operator_pid())
            wait_for("another operator", lambda: "restarting it" in run.output.read_text())
            run.wait_for_superstep(run.job()["superstep"] + 5)
            run.end_well(command)

    def test_last_lines_that_the_engine_writes_late(self):
        """Rank 0's log gets its last lines only after the job has succeeded."""
        command = lattice_boltzmann(supersteps=60)
        with LocalJob("e2e-last-lines", command) as run:
            run.wait_for_superstep(5)
            app = next(name for name in run.leftovers() if name.endswith("job-r0-g0-app"))
            engine = int(on_host("podman", "inspect", "--format", "{{.State.ConmonPid}}", app).stdout)
            os.kill(engine, signal.SIGSTOP)
            try:
                wait_for("the job's success", lambda: run.ended() or run.job().get("phase") == "Succeeded")
            finally:
                os.kill(engine, signal.SIGCONT)
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            self.assertEqual(field_of(output), sequential_field(command), output)

    def test_next_operator_completes_the_final_status(self):
        with LocalJob("e2e-last-word", lattice_boltzmann(supersteps=60), pools="slow=2x0.3,fast=2x0.4",
                      under=["env", "BSP_FAULTS=operator.Completed=kill"]) as run:
            run.wait_for_superstep(30)
            for rank in ("0", "1"):
                run.local("migrate", rank, "--to", "fast")
            status, output = run.wait()
            self.assertEqual(status, 0, output)
            for migration in run.summary()["migrations"]:
                self.assertIn(migration["phase"], ["Succeeded", "RolledBack", "Failed"], output)

    def test_checkpoint_over_the_size_limit_rolls_back(self):
        command = until_told()
        with LocalJob("e2e-full", command, spec="checkpoint: {sizeLimit: 2Mi}") as run:
            run.wait_for_superstep(5)
            moved = run.local("migrate", "0", "--to", "fast", "--wait")
            self.assertNotEqual(moved.returncode, 0)
            migration, = run.objects("RankMigration").values()
            self.assertEqual(migration["status"]["phase"], "RolledBack", run.output.read_text())
            self.assertIn("spec.checkpoint.sizeLimit", migration["status"]["message"])
            run.end_well(command)

    def test_delete_after_the_operator_was_killed(self):
        with LocalJob("e2e-killed", lattice_boltzmann(100000)) as run:
            run.wait_for_superstep(2)
            child = run.operator_pid()
            kill(run.process.pid)
            kill(child)
            run.process.wait()
            self.assertNotEqual(run.leftovers(), [])
            deleted = run.local("delete", "job")
            self.assertEqual(deleted.returncode, 0, deleted.stderr)
            self.assertEqual(run.leftovers(), [])


class BadInput(unittest.TestCase):
    """Each reports the problem and the remedy, exits with a non-zero status and leaves nothing behind."""

    def check(self, name, *words, **options):
        with LocalJob(name, **{"command": ["lattice_boltzmann"], **options}) as run:
            status, output = run.wait(120)
            self.assertNotEqual(status, 0, output)
            for word in words:
                self.assertIn(word, output)
            self.assertEqual(run.leftovers(), [], output)

    def test_misspelt_field(self):
        self.check("e2e-field", "spec.rescheduling.heuristc", "heuristic",
                   manifest="apiVersion: migbsp.io/v1alpha1\nkind: BSPJob\nmetadata: {name: job}\n"
                            "spec:\n  ranks: 1\n  rescheduling: {heuristc: Top}\n")

    def test_no_such_pool(self):
        self.check("e2e-pool", "spec.sets.names", "slow", pools="fast=2x0.3")

    def test_too_many_ranks(self):
        self.check("e2e-ranks", "spec.ranks", "5 ranks", ranks=5)

    def test_pools_that_cannot_be_parsed(self):
        self.check("e2e-parse", "slow=", pools="slow=twox0.3")

    def test_no_such_image(self):
        self.check("e2e-image", "localhost/bsp-no-such-image", image="localhost/bsp-no-such-image")

    def test_no_such_command(self):
        self.check("e2e-command", "no_such_command", "rank", command=["no_such_command"])

    def test_program_that_never_calls_mpi_init(self):
        self.check("e2e-nompi", "MPI_Init", command=["true"])

    def test_not_root(self):
        self.check("e2e-user", "must run as root", "sudo",
                   under=["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])

    def test_no_podman(self):
        self.check("e2e-podman", "podman is not installed", "apt-get install podman", under=["env", "PATH=/nowhere"])

    def test_exit_code_and_last_lines(self):
        self.check("e2e-exit", "exited with code 3", "last words",
                   command=["sh", "-c", "echo last words; exit 3"])

    def test_signal(self):
        self.check("e2e-signal", "SIGSEGV", command=["sh", "-c", "kill -SEGV $$$$"])  # Kubernetes reads $$ as $

    def test_statically_linked_program(self):
        self.check("e2e-static", "static", command=["/bsp/bsp-init"])


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
