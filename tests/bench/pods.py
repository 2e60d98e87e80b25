"""Shared by the benchmarks with real pods: jobs by `bsp-operator local run` (tests/e2e), their processes, their results."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from local_job import LocalJob, lattice_boltzmann, on_host, program_manifest, wait_for  # noqa: E402  (tests/e2e)


def manifest(directory, command, env=(), image="localhost/bsp-apps:dev", **spec):
    """A job without rescheduling, whose /bench is that directory; `env`: pairs."""
    container = {"name": "app", "image": image, "command": command, "env": [{"name": k, "value": v} for k, v in env],
                 "volumeMounts": [{"name": "bench", "mountPath": "/bench"}]}
    template = {"spec": {"volumes": [{"name": "bench", "hostPath": {"path": str(directory)}}], "containers": [container]}}
    return json.dumps({"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "metadata": {"name": "job"},
                       "spec": {"superstep": {"call": "MPI_Barrier"}, "rescheduling": {"mode": "Off"}, **spec, "template": template}})


class BenchJob(LocalJob):
    """Two ranks of lattice_boltzmann; rank 0 can move back and forth. `directory` is /bench in the pods."""

    def __init__(self, name, directory, more=(), env=()):
        command = lattice_boltzmann(1000000000, substeps=4, more=more)
        of_job = manifest(directory, command, env, ranks=2, sets={"names": ["slow", "fast"]}, checkpoint={"sizeLimit": "5Gi"},
                          runPolicy={"cleanPodPolicy": "Running"})
        super().__init__(name, command, manifest=of_job, pools="slow=1x1,fast=2x1")
        self.undone = 0  # moves

    def starts(self, seconds=180):
        self.wait_for_superstep(3, seconds)
        if self.ended():
            raise RuntimeError("the job ended early:\n" + self.output.read_text()[-3000:])

    def move(self):
        """Moves rank 0 to the other pool and returns the RankMigration's status. Retries a move that was rolled back (a busy
        machine may exceed the operator's deadlines)."""
        for _ in range(3):
            status = self.try_to_move()
            if status["phase"] == "Succeeded":
                return status
            self.undone += 1
            why = f"{status.get('reason')}: {status.get('message')}"
            print(f"a move of rank 0 was undone: {why}", file=sys.stderr, flush=True)
        raise RuntimeError(f"three moves of rank 0 were undone, the last because of {why}")

    def try_to_move(self):
        target = "fast" if self.job()["ranks"][0]["set"] == "slow" else "slow"
        before = set(self.objects("RankMigration"))
        moved = self.local("migrate", "0", "--to", target, "--wait")
        name, = (set(self.objects("RankMigration")) - before) or [None]
        if not name:
            raise RuntimeError(f"no move to {target} was begun: {moved.stdout}{moved.stderr}")
        status = self.objects("RankMigration")[name]["status"]
        if status["phase"] not in ("Succeeded", "RolledBack"):
            raise RuntimeError(f"the move to {target} ended {status['phase']}: {moved.stdout}{moved.stderr}")
        self.wait_for_superstep(self.job().get("superstep", 0) + 2)
        # A slot becomes free only when its pod is gone.
        wait_for("the end of the unneeded pod", lambda: set(self.objects("Pod")) == {r["pod"] for r in self.job()["ranks"]}, 120)
        return status


def processes(job):
    """{pod: {container: PID of its first process}}."""
    names = on_host("podman", "ps", "-q", "--filter", f"label=migbsp.io/store={job.store}").stdout.split()
    found = {}
    for c in json.loads(on_host("podman", "inspect", *names).stdout or "[]"):
        pod = c["Config"]["Labels"]["migbsp.io/pod"]
        found.setdefault(pod, {})[c["Name"].removeprefix("/").split(pod + "-", 1)[1]] = c["State"]["Pid"]
    return found


def write_json(results):
    if file := os.environ.get("BSP_BENCH_JSON"):
        pathlib.Path(file).write_text(json.dumps(results, indent=1) + "\n")


__all__ = ["BenchJob", "LocalJob", "on_host", "processes", "program_manifest", "wait_for", "write_json"]
