"""Shared by the end-to-end tests in the test cluster: kubectl and helm as a user runs them, the API for frequent reads, namespaces
for each test, and jobs in them.

The cluster is that of tests/cluster (./dev cluster up) with the chart installed; kubernetes_setup.py takes care of both. Without a
cluster the tests are skipped with a reason. Frequent reads share one connection: a kubectl process for each would take more of two
cores than the jobs do.
"""
import base64
import contextlib
import functools
import http.client
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse

from local_job import (ON_HOST, TOLD, TREE, field_of, lattice_boltzmann, on_host, sequential_field, sized_lattice_boltzmann,  # noqa: F401 (for the tests)
                       until_told, wait_for)
from places import with_places

STATE = TREE / "build/cluster"
KUBECTL = str(TREE / "build/bin/kubectl")
HELM = str(TREE / "build/bin/helm")
KUBECONFIG = str(STATE / "kubeconfig")
CHART = str(TREE / "charts/bsp-operator")
SIDECARS = 64600  # the user of the sidecars
SKIPPED = 77  # ctest's SKIP_RETURN_CODE
API = "/apis/migbsp.io/v1alpha1/namespaces"
ENDED = ["Succeeded", "RolledBack", "Failed"]  # of a migration

# An image and a program without a specific user: apart from bsp-init's needs, every pod meets the restricted standard.
TEMPLATE = {"spec": {"containers": [{
    "name": "app", "image": "localhost/bsp-apps:dev", "imagePullPolicy": "IfNotPresent", "command": ["lattice_boltzmann"],
    "securityContext": {"runAsUser": 1000, "runAsGroup": 1000},
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}


def skip(why):
    print(f"skipped: {why}", flush=True)
    sys.exit(SKIPPED)


def need_programs():
    """Skips the test if Kubernetes isn't compiled."""
    lacking = [name for name in ("etcd", "kube-apiserver", "kubelet", "containerd", "bridge", "coredns", "kubectl", "helm")
               if not (STATE / "bin" / name).exists()]
    if lacking:
        skip(f"no Kubernetes is compiled ({lacking[0]} is missing); ./dev cluster up does it once, and needs Go 1.26")


def need_cluster():
    """Skips the test if there is no cluster with the operator."""
    need_programs()
    if not pathlib.Path(KUBECONFIG).exists():
        skip("the cluster is not up; ./dev cluster up starts it")
    if not release():
        skip("the operator is not installed; helm install bsp charts/bsp-operator")


@functools.cache
def release():
    """(name, namespace) of the installed release of the chart; None if there is none."""
    found = json.loads(kubectl("get", "deployments", "-A", "-l", "app.kubernetes.io/name=bsp-operator", "-o", "json").stdout)["items"]
    return (found[0]["metadata"]["name"], found[0]["metadata"]["namespace"]) if found else None


def enable(feature, add_cleanup):
    """Sets the operator chart's value FEATURE.enabled until the test, or its class, cleans up."""
    name, system = release()

    def switch(on):
        helm("upgrade", name, CHART, "-n", system, "--reuse-values", "--set", f"{feature}.enabled={on}", "--wait")
    add_cleanup(switch, "false")
    switch("true")


def run(*words, text=None, check=True, seconds=180):
    done = subprocess.run([ON_HOST, "env", f"KUBECONFIG={KUBECONFIG}", *words], input=text, capture_output=True, text=True, timeout=seconds)
    if check and done.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def kubectl(*words, **options):
    return run(KUBECTL, *words, **options)


def helm(*words, **options):
    return run(HELM, *words, **{"seconds": 900, **options})


def node_sh(*words):
    """tests/cluster/node.sh: faults of a machine."""
    return run(str(TREE / "tests/cluster/node.sh"), *words)


class Api:
    """The API server, accessed with the kubeconfig's client certificate over a persistent connection."""

    def __init__(self):
        view = json.loads(kubectl("config", "view", "--raw", "-o", "json").stdout)
        cluster, user = view["clusters"][0]["cluster"], view["users"][0]["user"]
        self.address = urllib.parse.urlsplit(cluster["server"])
        self.tls = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:
            for part in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[part]).decode())
            pair.flush()
            self.tls.load_cert_chain(pair.name)
        self.connection = None

    def open(self, seconds):
        return http.client.HTTPSConnection(self.address.hostname, self.address.port, context=self.tls, timeout=seconds)

    def ask(self, method, path, body=None):
        """(status, object; of a text: its message). OSError or HTTPException if the server is unreachable."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        for attempt in (1, 2):
            try:
                self.connection = self.connection or self.open(10)
                self.connection.request(method, path, json.dumps(body) if body is not None else None, headers)
                answer = self.connection.getresponse()
                text = answer.read()
                is_json = "json" in answer.getheader("Content-Type", "")
                return answer.status, json.loads(text or "{}") if is_json else {"message": text.decode()}
            except (OSError, http.client.HTTPException, ValueError):
                self.connection.close()
                self.connection = None
                if attempt == 2 or method != "GET":  # the server may have closed a persistent connection
                    raise

    def get(self, path):
        """The object; None if there is none."""
        status, found = self.ask("GET", path)
        if status == 404:
            return None
        if status != 200:
            raise OSError(f"{path}: {found.get('message', status)}")
        return found

    def changes(self, path, name, seconds):
        """Yields the object `name` now and at each change, for `seconds`; ends early if the server is unreachable."""
        deadline = time.monotonic() + seconds
        connection = self.open(seconds)
        try:
            wanted = urllib.parse.quote(f"metadata.name={name}")
            connection.request("GET", f"{path}?watch=1&fieldSelector={wanted}&timeoutSeconds={int(seconds) + 1}")
            answer = connection.getresponse()
            while time.monotonic() < deadline and (line := answer.readline()):
                event = json.loads(line)
                yield event["object"] if event["type"] in ("ADDED", "MODIFIED") else None
        except (OSError, http.client.HTTPException, ValueError):
            return
        finally:
            connection.close()


_api = []


def api():
    if not _api:
        _api.append(Api())
    return _api[0]


def get_object(path, default=None):
    """The object at path; `default` if there is none or the server is unreachable."""
    try:
        return api().get(path) or default
    except (OSError, http.client.HTTPException):
        return default


def is_ready(node):
    """Also without its taints, so that pods can be scheduled to it again."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) and not node["spec"].get("taints")


def wait_for_nodes():
    """Waits until every node that runs containers is Ready: ranks start elsewhere while one isn't, as after a fault of the test before."""
    def real_nodes():
        return [n for n in get_object("/api/v1/nodes", {}).get("items", []) if "node.kubernetes.io/instance-type" in n["metadata"]["labels"]]
    wait_for("every node to be Ready", lambda: (nodes := real_nodes()) and all(map(is_ready, nodes)), 120,
             detail=lambda: [n["metadata"]["name"] for n in real_nodes() if not is_ready(n)])


def shared_directory(test_class, name, user=SIDECARS):
    """An empty directory that all nodes have below /opt/cluster/shared: where it is here, until the class has been tested."""
    here = STATE / "run/shared" / name
    shutil.rmtree(here, ignore_errors=True)
    test_class.addClassCleanup(shutil.rmtree, here, ignore_errors=True)
    here.mkdir(mode=0o700)
    os.chown(here, user, user)
    return here


class Namespace:
    """A namespace with everything a job needs, and additional `labels`, once the nodes are ready. It is deleted with all its contents."""

    def __init__(self, name, level="privileged", labels=None):
        self.name = name
        self.labels = {"pod-security.kubernetes.io/enforce": level, **(labels or {})}

    def __enter__(self):
        self.remove()
        wait_for_nodes()
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name, "labels": self.labels}})
        wait_for(f"the default service account of {self.name}",
                 lambda: get_object(f"/api/v1/namespaces/{self.name}/serviceaccounts/default"), 60)
        return self

    def __exit__(self, *_):
        self.remove()

    def remove(self):
        if get_object(f"/api/v1/namespaces/{self.name}"):
            kubectl("delete", "namespace", self.name, "--wait=false", check=False)
            wait_for(f"namespace {self.name} to be gone", lambda: api().ask("GET", f"/api/v1/namespaces/{self.name}")[0] == 404, 120,
                     detail=lambda: kubectl("get", "namespace", self.name, "-o", "yaml", check=False).stdout)

    def apply(self, *objects, verb="apply", check=True, words=()):
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}) if len(objects) > 1 else json.dumps(objects[0])
        return self.kubectl(verb, "-f", "-", *words, text=text, check=check)

    def kubectl(self, *words, **options):
        return kubectl(*words, "-n", self.name, **options)

    def objects(self, kind, selector=""):
        """{name: object} of a core kind or one of the operator's."""
        base = f"{API}/{self.name}" if kind in ("bspjobs", "rankmigrations") else f"/api/v1/namespaces/{self.name}"
        query = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        return {o["metadata"]["name"]: o for o in get_object(f"{base}/{kind}{query}", {}).get("items", [])}

    def everything(self):
        """Names of all objects of all kinds in the namespace, except events, which expire."""
        kinds = kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").stdout.split()
        kinds = [k for k in kinds if not k.startswith("events")]
        return sorted(self.kubectl("get", ",".join(kinds), "-o", "name", "--ignore-not-found").stdout.split())

    def events(self, regarding):
        """Reasons and notes of the events of an object, oldest first."""
        found = get_object(f"/apis/events.k8s.io/v1/namespaces/{self.name}/events", {}).get("items", [])
        found = [e for e in found if e.get("regarding", {}).get("name") == regarding]
        return [(e.get("reason", ""), e.get("note", "")) for e in sorted(found, key=lambda e: e.get("eventTime") or "")]


def bsp_job(name, command=("lattice_boltzmann",), ranks=2, template=None, annotations=None, **spec):
    """A BSPJob: by default two ranks, one on each of the pools slow and fast, a pod each, without the scheduler."""
    template = json.loads(json.dumps(template or TEMPLATE))
    app, = (c for c in template["spec"]["containers"] if c["name"] == "app")
    app["command"] = list(command)
    return {"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "metadata": {"name": name, **({"annotations": annotations} if annotations else {})},
            "spec": {"ranks": ranks, "template": template, "superstep": {"call": "MPI_Barrier"}, "sets": {"names": ["slow", "fast"]}, "initialMapping": "RoundRobin",
                     "rescheduling": {"mode": "Off"}, "runPolicy": {"backoffLimit": 0}, "ranksPerPod": 1, **spec}}


def rank_migration(name, job, rank, **target):
    return {"apiVersion": "migbsp.io/v1alpha1", "kind": "RankMigration", "metadata": {"name": name},
            "spec": {"job": job, "rank": rank, **target}}


class ClusterJob:
    """A BSPJob in one of the test's namespaces."""

    def __init__(self, namespace, manifest, words=()):
        self.namespace, self.name = namespace, manifest["metadata"]["name"]
        namespace.apply(manifest, words=words)

    def object(self):
        return get_object(f"{API}/{self.namespace.name}/bspjobs/{self.name}")

    def status(self):
        return with_places((self.object() or {}).get("status", {}))

    def summary(self):
        """The status, for test messages."""
        keys = ("phase", "reason", "message", "superstep", "attempt", "restarts", "ranks", "migrations", "lastDecision")
        return json.dumps({k: v for k, v in self.status().items() if k in keys}, indent=1)

    def wait(self, what, condition, seconds=120):
        """Waits until condition(status) and returns the status. Checks whenever the object changes."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            for found in api().changes(f"{API}/{self.namespace.name}/bspjobs", self.name, left):
                status = with_places((found or {}).get("status", {}))
                if condition(status):
                    return status
            time.sleep(0.1)  # the server is unreachable
        raise AssertionError(f"job {self.name}: {what}: not within {seconds} s; {self.summary()}")

    def wait_for_phase(self, *phases, seconds=120):
        ends = {"Succeeded", "Failed"} - set(phases)
        status = self.wait(" or ".join(phases), lambda s: s.get("phase") in {*phases, *ends}, seconds)
        if status["phase"] in ends:
            raise AssertionError(f"job {self.name} ended: {self.summary()}")
        return status

    def wait_for_superstep(self, superstep, seconds=120):
        return self.wait(f"superstep {superstep}", lambda s: self.alive(s).get("superstep", 0) >= superstep, seconds)

    def alive(self, status):
        if status.get("phase") == "Failed":
            raise AssertionError(f"job {self.name} failed: {self.summary()}")
        return status

    def tell(self):
        """Ends a program that runs until_told()."""
        place = self.status()["ranks"][0]
        kubectl("exec", "-n", self.namespace.name, place["pod"], "-c", place["container"], "--", "touch", TOLD)

    def ended(self, seconds=300):
        return self.wait("the end", lambda s: s.get("phase") in ("Succeeded", "Failed"), seconds)

    def condition(self, kind):
        return next((c for c in self.status().get("conditions", []) if c["type"] == kind), {})

    def log(self, rank):
        """The log of the container that runs the rank, or ran it last."""
        place = self.status()["ranks"][rank]
        return self.namespace.kubectl("logs", place["pod"], "-c", place["container"], check=False).stdout

    def pods(self):
        return self.namespace.objects("pods", f"migbsp.io/job={self.name}")

    def secrets(self):
        return self.namespace.objects("secrets", f"migbsp.io/job={self.name}")

    def migrate(self, name, rank, **target):
        """Creates a RankMigration as a user does."""
        self.namespace.apply(rank_migration(name, self.name, rank, **target), verb="create")

    def migration(self, name):
        return (get_object(f"{API}/{self.namespace.name}/rankmigrations/{name}") or {}).get("status", {})

    def wait_for_migration(self, name, phases=tuple(ENDED), seconds=150):
        return wait_for(f"{' or '.join(phases)} of migration {name}",
                        lambda: self.migration(name).get("phase") in phases and self.migration(name), seconds,
                        detail=lambda: f"{self.migration(name)} {self.summary()}")

    def drain(self, node):
        """kubectl drain of a node, until no rank is there and the job has gone on."""
        done = kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--pod-selector=migbsp.io/job", "--timeout=180s",
                       check=False, seconds=240)
        if done.returncode != 0:
            raise AssertionError(f"kubectl drain {node}: exit status {done.returncode}\n{done.stdout}{done.stderr}{self.summary()}")
        wait_for(f"the ranks to leave {node}", lambda: node not in [place["node"] for place in self.status()["ranks"]], 60,
                 detail=self.summary)
        self.wait_for_superstep(self.status()["superstep"] + 3)

    def delete(self, *words):
        return self.namespace.kubectl("delete", "bspjob", self.name, *words)


@contextlib.contextmanager
def job_of(namespace, manifest):
    """A job that is deleted at the end of the test; then checks that nothing is left."""
    job = ClusterJob(namespace, manifest)
    try:
        yield job
    finally:
        job.delete("--ignore-not-found", "--timeout=90s")


def operator_pods():
    """The operator's pods by name."""
    name, space = release()
    selector = urllib.parse.quote(f"app.kubernetes.io/instance={name},app.kubernetes.io/name=bsp-operator")
    return {p["metadata"]["name"]: p for p in get_object(f"/api/v1/namespaces/{space}/pods?labelSelector={selector}", {}).get("items", [])}


def read_from(pod, port, path):
    """The answer of one of the operator's pods, through kubectl port-forward: the chart's NetworkPolicy blocks access over the network."""
    words = [ON_HOST, "env", f"KUBECONFIG={KUBECONFIG}", KUBECTL, "port-forward", "-n", release()[1], f"pod/{pod}", f":{port}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as forward:
        try:
            line = forward.stdout.readline()
            local = re.match(r"Forwarding from 127\.0\.0\.1:(\d+)", line)
            if not local:
                raise AssertionError(line + forward.stdout.read())
            connection = http.client.HTTPConnection("127.0.0.1", int(local.group(1)), timeout=30)
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            forward.terminate()


def leader():
    """The name of the operator pod that is the leader; "" while there is none."""
    name, space = release()
    lease = get_object(f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases/{name}", {})
    return re.sub(r"_[0-9a-f]{16}$", "", lease.get("spec", {}).get("holderIdentity", ""))


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def operator_warnings(since):
    """The warning and error lines that any replica of the operator has logged since."""
    lines = []
    for name in operator_pods():
        log = kubectl("logs", name, "-n", release()[1], f"--since-time={since}", check=False).stdout
        lines += [line for line in log.splitlines() if re.match(r"\S+ [WE] ", line)]
    return lines


def columns(table):
    """The rows of kubectl's output, each a dictionary by heading; empty cells are not supported."""
    head, *rows = table.splitlines()
    starts = [(m.start(), m.group()) for m in re.finditer(r"\S+", head)]
    ends = [start for start, _ in starts[1:]] + [None]
    return [{name: row[start:end].strip() for (start, name), end in zip(starts, ends)} for row in rows]
