"""Shared by the end-to-end tests: bsp-operator as a user runs it, on the machine itself, in a separate namespace for each test."""
import atexit
import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from places import with_places

TREE = pathlib.Path(__file__).resolve().parents[2]
OPERATOR = str(TREE / "build/bin/bsp-operator")
ON_HOST = str(TREE / "tests/on_host.sh")
TOLD = "/tmp/told"  # in rank 0's container: until_told() programs end
PHASES = ["Preparing", "Pausing", "Checkpointing", "Transferring", "Restoring", "Resuming"]

MANIFEST = """
apiVersion: migbsp.io/v1alpha1
kind: BSPJob
metadata:
  name: job
  annotations: {annotations}
spec:
  ranks: {ranks}
  superstep: {{call: MPI_Barrier}}
  {spec}
  sets: {{names: {sets}}}
  rescheduling: {{mode: {mode}, heuristic: {heuristic}, alpha: {alpha}, d: 0.25}}
  runPolicy: {{backoffLimit: {backoff}, cleanPodPolicy: Running}}
  template:
    spec:
      containers:
      - name: app
        image: {image}
        command: {command}
{volumes}"""


# Any image's program, in a directory of this machine.
PROGRAM_MANIFEST = """
apiVersion: migbsp.io/v1alpha1
kind: BSPJob
metadata: {{name: job}}
spec:
  ranks: {ranks}
  {spec}
  superstep: {superstep}
  rescheduling: {rescheduling}
  runPolicy: {{backoffLimit: 0, cleanPodPolicy: Running}}
  template:
    spec:
      volumes:
      - {{name: data, hostPath: {{path: {directory}}}}}
      containers:
      - name: app
        image: {image}
        command: {command}
        workingDir: /data
        env: {env}
        volumeMounts: [{{name: data, mountPath: /data}}]
"""
SINGLE_THREADED = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "HOME": "/data"}


def program_manifest(directory, image, command, env=None, superstep="{call: Auto}", ranks=2, spec="", rescheduling='{mode: "Off"}'):
    """`spec`: one more line of it."""
    env = [{"name": k, "value": v} for k, v in (SINGLE_THREADED | (env or {})).items()]
    return PROGRAM_MANIFEST.format(directory=directory, image=image, command=json.dumps(command), env=json.dumps(env), superstep=superstep,
                                   ranks=ranks, spec=spec, rescheduling=rescheduling)


def on_host(*words, **options):
    return subprocess.run([ON_HOST, *words], capture_output=True, text=True, **options)


def lattice_boltzmann(supersteps, substeps=4, width=256, height=128, more=()):
    return ["lattice_boltzmann", "--width", str(width), "--height", str(height), "--supersteps", str(supersteps),
            "--substeps", str(substeps), *more]


def until_told(file=TOLD, **options):
    """A program that computes until `file` is there for rank 0. How long a job takes depends on the machine; a test of what happens
    while it runs tells it to end afterwards (LocalJob.tell, ClusterJob.tell)."""
    return lattice_boltzmann(1000000, **{**options, "more": ["--until", file, *options.get("more", ())]})


def field_of(text):
    """The CRC-64 over every bit of the final field; None if the program did not print it."""
    found = re.findall(r"OK field crc=([0-9a-f]{16})", text)
    return found[-1] if found else None


def sequential(command):
    """Its output in one process, followed by the shell's two lines of CPU times, its own and the program's."""
    return on_host("podman", "run", "--rm", "--network", "none", "localhost/bsp-apps:dev", "sh", "-c", '"$@" && times', "sh",
                   *command, "--sequential").stdout


def sequential_field(command, log=None):
    """The sequential program's field; with the log of a program that was told to end, after as many supersteps as that has done."""
    done = re.findall(r"OK field crc=[0-9a-f]{16}, (\d+) supersteps", log or "")
    assert log is None or done, f"no field in the log:\n{log}"
    return field_of(sequential([*command, "--supersteps", done[-1]] if done else command))


@functools.cache
def sized_lattice_boltzmann(seconds, supersteps, width=512, height=128, ranks=2):
    """For so many ranks, with as much work in a superstep as takes a core of this machine that long. A move costs what it costs:
    what moves on one machine would stay on a faster one. A superstep has few exchanges, because a rank uses up its CPU quota while
    it polls in MPI, and is then throttled there instead of in its computation."""
    command, measured = lattice_boltzmann(supersteps, 8, width, height), 20
    minutes, rest = re.match(r"(\d+)m([\d.]+)s", sequential([*command, "--supersteps", str(measured)]).splitlines()[-1]).groups()
    took = (60 * int(minutes) + float(rest)) / measured
    factor = max(1, round(seconds / took, 2))
    return [*command, "--work-factor", ",".join(f"{rank}={factor}" for rank in range(ranks))]


def wait_for(what, condition, seconds=60, detail=lambda: ""):
    """Polls until condition() is true and returns its value; on timeout fails with detail()."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"{what}: not within {seconds} s {detail()}")


class LocalJob:
    """One `bsp-operator local run` in namespace `name`, in the background; removes everything that the test leaves: the job when the
    context ends, the files when Python does, so that tests and benchmarks can read them after the run.

    `checkpoints`: a directory of this machine for checkpoint sets; `resumes`: the job whose sets lie there goes on.
    `under`: words before the command, as of env(1) or setpriv(1). `spec`: one more line of the manifest. `stamps`: a program's that
    stamps (stamps.py). `volume`: a directory of this machine, mounted as /data."""

    def __init__(self, name, command, ranks=2, mode="Off", alpha=5, backoff=0, image="localhost/bsp-apps:dev", heuristic="Auto",
                 pools="slow=1x0.2,fast=3x0.3", manifest=None, under=(), spec="", annotations=None, record=False,
                 stamps=None, volume=None, sets=("slow", "fast"), checkpoints=None, resumes=False):
        self.namespace = name
        self.store = pathlib.Path("/run/bsp-operator") / name
        self.directory = tempfile.mkdtemp(prefix=f"bsp-e2e-{name}-", dir="/tmp")
        atexit.register(shutil.rmtree, self.directory, ignore_errors=True)
        os.chmod(self.directory, 0o755)  # the run may use another uid
        self.output = pathlib.Path(self.directory) / "output.txt"
        self.summary_file = pathlib.Path(self.directory) / "summary.json"
        self.record_file = pathlib.Path(self.directory) / "record.jsonl"
        self.timeline_file = pathlib.Path(self.directory) / "timeline.svg"
        file = pathlib.Path(self.directory) / "job.yaml"
        file.write_text(manifest or MANIFEST.format(ranks=ranks, mode=mode, heuristic=heuristic, alpha=alpha,
                                                    backoff=backoff, image=image, spec=spec, sets=json.dumps(sets),
                                                    annotations=json.dumps(annotations or {}),
                                                    command=json.dumps(command), volumes=self.volumes_of(stamps, volume)))
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(
                [ON_HOST, *under, OPERATOR, "local", *(["resume", checkpoints] if resumes else ["run", "-f", str(file)]), "--pools", pools, "-n", name, "--plain",
                 "--summary", str(self.summary_file), *(["--checkpoints", checkpoints] if checkpoints and not resumes else []), *(["--record", str(self.record_file), "--timeline", str(self.timeline_file)] if record else [])],
                stdout=output, stderr=subprocess.STDOUT)

    @staticmethod
    def volumes_of(stamps, volume):
        if volume:
            return (f"        volumeMounts: [{{name: data, mountPath: /data}}]\n"
                    f"      volumes: [{{name: data, hostPath: {{path: {volume}}}}}]\n")
        if not stamps:
            return ""
        app = {"name": "app"}
        pod = {"containers": [app]}
        stamps.into(pod)
        return (f"        env: {json.dumps(app['env'])}\n        volumeMounts: {json.dumps(app['volumeMounts'])}\n"
                f"      volumes: {json.dumps(pod['volumes'])}\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.local("delete", "job")

    def local(self, command, *words):
        return on_host(OPERATOR, "local", command, *words, "-n", self.namespace)

    def wait(self, seconds=300):
        status = self.process.wait(seconds)
        return status, self.output.read_text()

    def summary(self):
        return json.loads(self.summary_file.read_text())

    def calls(self):
        """The recorded rescheduling calls. `advise` decides each again, and fails if a plan differs from the recorded one."""
        advice = on_host(OPERATOR, "advise", "-f", str(self.record_file), "-o", "json")
        assert advice.returncode == 0, advice.stdout + advice.stderr
        return json.loads(advice.stdout)["calls"]

    def objects(self, kind):
        """The store's current objects by name; the files are replaced atomically."""
        found = {}
        for file in (self.store_here() / kind).glob("*.json"):
            with contextlib.suppress(FileNotFoundError):
                item = json.loads(file.read_text())
                found[item["metadata"]["name"]] = item
        return found

    def replace(self, kind, name, item):
        """Writes an object like the store: a new version, atomically."""
        item["metadata"]["resourceVersion"] = str(int(item["metadata"]["resourceVersion"]) + 1)
        file = self.store_here() / kind / f"{name}.json"
        new = file.with_name("." + file.name + ".new")
        new.write_text(json.dumps(item))
        new.rename(file)

    def store_here(self):
        """The host's /run, accessed through one of its processes if this test runs in the development image."""
        host = os.environ.get("BSP_HOST_PID")
        return pathlib.Path(f"/proc/{host}/root{self.store}") if host else self.store

    def run_directory(self, pod):
        """/run/bsp of the pod's containers; None if there is none yet."""
        uid = self.objects("Pod").get(pod, {}).get("metadata", {}).get("uid", "")
        directory = self.store_here() / "pods" / f"{pod}.{uid}" / "volumes" / "bsp-run"
        return directory if os.path.ismount(directory) else None

    def job(self):
        return with_places(self.objects("BSPJob").get("job", {}).get("status", {}))

    def container_of(self, rank, fields="{{.Names}}"):
        """Of the rank's running container: its name, or these fields (podman ps)."""
        place = self.job()["ranks"][rank]
        found, = (line.rsplit(" ", 1)[0] for line in self.containers(fields + " {{.Names}}")
                  if line.endswith(f"{place['pod']}-{place['container']}"))
        return found

    def tell(self):
        """Ends a program that runs until_told()."""
        done = on_host("podman", "exec", self.container_of(0), "touch", TOLD)
        assert done.returncode == 0, done.stderr

    def end_well(self, command):
        """Tells the job, which runs `command`, to end. Its field must be the sequential program's. Returns the run's output."""
        self.tell()
        status, output = self.wait()
        assert status == 0, output
        field, expected = field_of(output), sequential_field(command, output)
        assert field == expected, f"the field is {field}, not {expected}:\n{output}"
        return output

    def wait_for_superstep(self, superstep, seconds=300):
        return wait_for(f"superstep {superstep}; output of the run:\n{self.output.read_text()}",
                        lambda: self.ended() or self.job().get("superstep", 0) >= superstep, seconds)

    def ended(self):
        return self.process.poll() is not None

    def operator_pid(self):
        """The serving process: the child of the one that the user started."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0]) if children else None

    def helpers(self):
        """The process ids of the operator and of the sidecars in this namespace."""
        running = map(str.split, self.containers("{{.Pid}} {{.Names}}"))
        return [self.operator_pid(), *(int(pid) for pid, name in running if "sidecar" in name)]

    def containers(self, fields, *options):
        """A line in the given format (podman ps) for each running container of this namespace; with "-a" for the others too."""
        return on_host("podman", "ps", *options, "--filter", f"label=migbsp.io/store={self.store}", "--format", fields).stdout.splitlines()

    def kill_pods(self, pods):
        """Kills the containers of these pods at once, sidecars and all, as the loss of their nodes does."""
        victims = {name for name in self.containers("{{.Names}}") if any(pod in name for pod in pods)}
        on_host("podman", "kill", *victims)  # it fails if the loss of one has ended another already
        wait_for("the pods' ends", lambda: not victims & set(self.containers("{{.Names}}")))

    def leftovers(self):
        """Containers, mounts and files of this namespace that are still there."""
        containers = self.containers("{{.Names}}", "-a")
        mounts = [line for line in on_host("cat", "/proc/self/mountinfo").stdout.splitlines() if f" {self.store}/" in line]
        files = on_host("sh", "-c", f"ls -A {self.store} 2>/dev/null").stdout.split()
        return containers + mounts + files


def cpu_seconds(pids):
    """CPU time that these processes have used, without that of their children; None once one of them has ended."""
    try:
        fields = [pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    except OSError:
        return None
    return sum(int(of[11]) + int(of[12]) for of in fields) / os.sysconf("SC_CLK_TCK")  # utime, stime


def kill(pid):
    os.kill(pid, signal.SIGKILL)
