#!/usr/bin/env python3
"""Manifests sent to a real API server: every invalid one is refused, or answered in the job's status, with the field and the remedy.
Valid ones are accepted, change nothing when applied again, and kubectl explains them.

A row below is one mistake in an otherwise valid manifest: the field, its value, and what the answer must contain.
"""
import copy
import json
import pathlib
import re
import sys
import tempfile
import time
import unittest

import cluster_job
from cluster_job import CHART, ClusterJob, Namespace, bsp_job, columns, helm, kubectl, get_object, lattice_boltzmann, rank_migration, wait_for

NAMESPACE = "e2e-manifests"
GONE = object()  # omits the field
APP = "spec.template.spec.containers.0"
POD = "spec.template.spec"
CHANGED = "delete the job and create it again"

# Refused by the API server: what apply prints.
REFUSED = [
    ("apiVersion", "migbsp.io/v1", ["migbsp.io/v1", "no matches for kind"]),
    ("kind", "BspJob", ["BspJob", "no matches for kind"]),
    ("metadata.name", "with.dot", ["metadata.name", "no dot"]),
    ("metadata.name", "Upper", ["metadata.name", "lower case"]),
    ("metadata.name", "n" * 53, ["metadata.name", "1 to 52"]),
    ("metadata.name", "-dash", ["metadata.name", "start and end with an alphanumeric"]),
    ("spec", GONE, ["spec", "Required value"]),
    ("spec", "two ranks", ["spec", "must be of type object"]),
    ("spec.rank", 2, ["unknown field", "spec.rank"]),
    ("spec.ranks", GONE, ["spec.ranks", "Required value"]),
    ("spec.ranks", 0, ["spec.ranks", "greater than or equal to 1"]),
    ("spec.ranks", -3, ["spec.ranks", "greater than or equal to 1"]),
    ("spec.ranks", 5000000000, ["spec.ranks", "less than or equal to 10000"]),
    ("spec.ranks", "2", ["spec.ranks", "must be of type integer"]),
    ("spec.ranks", 2.5, ["spec.ranks", "must be of type integer"]),
    ("spec.ranks", [2], ["spec.ranks", "must be of type integer"]),
    ("spec.initialMapping", "Contigous", ["spec.initialMapping", "supported values", "Contiguous"]),
    ("spec.initialMapping", "", ["spec.initialMapping", "supported values", "RoundRobin"]),
    ("spec.scheduling.gang", "Gang", ["spec.scheduling.gang", "supported values", "SchedulerPlugins"]),
    ("spec.scheduling.gang", True, ["spec.scheduling.gang", "must be of type string"]),
    ("spec.scheduling.podGroup", "x", ["unknown field", "spec.scheduling.podGroup"]),
    ("spec.mapping", "CPU", ["unknown field", "spec.mapping"]),
    ("spec.sets.names", "slow", ["spec.sets.names", "must be of type array"]),
    ("spec.sets.names", ["slow", "fast", "slow"], ["spec.sets.names", "listed twice; remove one"]),
    ("spec.sets.names", ["slow", ""], ["spec.sets.names[1]", "at least 1 chars"]),
    ("spec.sets.names", ["s" * 64], ["spec.sets.names[0]", "may not be more than 63"]),
    ("spec.sets.names", [f"pool-{i}" for i in range(257)], ["spec.sets.names", "at most 256 items"]),
    ("spec.sets.label", "", ["spec.sets.label", "for example migbsp.io/set"]),
    ("spec.sets.label", "node pool", ["spec.sets.label", "for example migbsp.io/set"]),
    ("spec.sets.lable", "pool", ["unknown field", "spec.sets.lable"]),
    ("spec.rescheduling.heuristc", "Top", ["unknown field", "spec.rescheduling.heuristc"]),
    ("spec.rescheduling.heuristic", "Automig", ["spec.rescheduling.heuristic", "supported values", "AutoMig"]),
    ("spec.rescheduling.mode", "On", ["spec.rescheduling.mode", "supported values", "Migrate"]),
    ("spec.rescheduling.mode", False, ["spec.rescheduling.mode", "must be of type string"]),  # YAML's unquoted off
    ("spec.rescheduling.alpha", 0, ["spec.rescheduling.alpha", "greater than or equal to 1"]),
    ("spec.rescheduling.alpha", 2.5, ["spec.rescheduling.alpha", "must be of type integer"]),
    ("spec.rescheduling.d", 0, ["spec.rescheduling.d", "greater than 0 and less than 1"]),
    ("spec.rescheduling.d", 1, ["spec.rescheduling.d", "greater than 0 and less than 1"]),
    ("spec.rescheduling.d", 25, ["spec.rescheduling.d", "greater than 0 and less than 1"]),
    ("spec.rescheduling.d", "25 %", ["spec.rescheduling.d", "must be of type number"]),
    ("spec.rescheduling.omega", 0, ["spec.rescheduling.omega", "greater than or equal to 1"]),
    ("spec.rescheduling.delta", 1.5, ["spec.rescheduling.delta", "less than or equal to 1"]),
    ("spec.rescheduling.beta", -0.1, ["spec.rescheduling.beta", "greater than or equal to 0"]),
    ("spec.rescheduling.x", 0, ["spec.rescheduling.x", "must be greater than 0"]),
    ("spec.rescheduling.x", 1.01, ["spec.rescheduling.x", "at most 1"]),
    ("spec.rescheduling.horizon", "Run", ["spec.rescheduling.horizon", "supported values", "Window"]),
    ("spec.rescheduling.minGain", 5, ["spec.rescheduling.minGain", "must be at least 0"]),
    ("spec.rescheduling.cooldownSupersteps", -1, ["spec.rescheduling.cooldownSupersteps", "greater than or equal to 0"]),
    ("spec.rescheduling.maxMovesPerWave", -1, ["spec.rescheduling.maxMovesPerWave", "greater than or equal to 0"]),
    ("spec.rescheduling.resize", "Always", ["spec.rescheduling.resize", "supported values", "Auto"]),
    ("spec.rescheduling.resize", False, ["spec.rescheduling.resize", "must be of type string"]),
    ("spec.objective", {"type": "Deadline"}, ["spec.objective.deadline", "is required with type Deadline"]),
    ("spec.objective", {"type": "Price", "deadline": "2h"}, ["spec.objective.deadline", "is for type Deadline"]),
    ("spec.objective", {"deadline": "2h"}, ["spec.rescheduling.expectedSupersteps", "is required with a deadline"]),
    ("spec.objective", {"type": "Cheap"}, ["spec.objective.type", "supported values", "Price"]),
    ("spec.objective", {"deadline": "5 m"}, ["spec.objective.deadline", "a duration such as"]),
    ("spec.superstep.call", "Barrier", ["spec.superstep.call", "for example MPI_Barrier"]),
    ("spec.superstep.call", "MPI_Barier", ["spec.superstep.call", "for example MPI_Barrier"]),
    ("spec.superstep.call", "MPI_Ibarrier", ["spec.superstep.call", "must be Auto or a blocking MPI collective"]),
    ("spec.superstep.stride", 0, ["spec.superstep.stride", "greater than or equal to 1"]),
    ("spec.superstep.every", 3, ["unknown field", "spec.superstep.every"]),
    ("spec.checkpoint.sizeLimit", "2 Gi", ["spec.checkpoint.sizeLimit", "a quantity such as 512Mi or 2Gi"]),
    ("spec.checkpoint.sizeLimit", "2GB", ["spec.checkpoint.sizeLimit", "a quantity such as 512Mi or 2Gi"]),
    ("spec.checkpoint.sizeLimit", -1, ["spec.checkpoint.sizeLimit", "a quantity such as 512Mi or 2Gi"]),
    ("spec.checkpoint.sizeLimit", 0, ["spec.checkpoint.sizeLimit", "a quantity such as 512Mi or 2Gi"]),
    ("spec.checkpoint.sizeLimit", True, ["spec.checkpoint.sizeLimit", "must be of type integer,string"]),
    ("spec.carryPaths", "/data", ["spec.carryPaths", "must be of type array"]),
    ("spec.carryPaths", ["data"], ["spec.carryPaths", "absolute paths without a colon"]),
    ("spec.carryPaths", ["/a:b"], ["spec.carryPaths", "absolute paths without a colon"]),
    ("spec.runPolicy.backoffLimit", -1, ["spec.runPolicy.backoffLimit", "greater than or equal to 0"]),
    ("spec.runPolicy.ttlSecondsAfterFinished", "60s", ["spec.runPolicy.ttlSecondsAfterFinished", "must be of type integer"]),
    ("spec.runPolicy.activeDeadlineSeconds", 0, ["spec.runPolicy.activeDeadlineSeconds", "greater than or equal to 1"]),
    ("spec.runPolicy.cleanPodPolicy", "Finished", ["spec.runPolicy.cleanPodPolicy", "supported values", "Running"]),
    ("spec.runPolicy.suspend", "yes", ["spec.runPolicy.suspend", "must be of type boolean"]),
    ("spec.backoffLimit", 3, ["unknown field", "spec.backoffLimit"]),
    ("spec.template", GONE, ["spec.template", "Required value"]),
    ("spec.template.spec", GONE, ["spec.template.spec", "Required value"]),
    ("spec.template.containers", [], ["unknown field", "spec.template.containers"]),
    ("spec.template.metadta", {}, ["unknown field", "spec.template.metadta"]),
    (f"{POD}.containers", GONE, [f"{POD}.containers", "Required value"]),
    (f"{POD}.containers", [], [f"{POD}.containers", "at least 1 items"]),
    (f"{POD}.nodeName", "fast-1", [f"{POD}.nodeName", "leave it out", "nodeSelector"]),
    (f"{POD}.initContainers", [{"name": "sidecar", "image": "i"}], [f"{POD}.initContainers", "choose another name"]),
    (f"{POD}.volumes", [{"name": "bsp-run", "emptyDir": {}}], [f"{POD}.volumes", "reserved for the operator", "choose another name"]),
    (f"{APP}.name", "main", ["containers", "name exactly one container app"]),
    (f"{APP}.name", GONE, ["containers[0].name", "Required value"]),
    (f"{APP}.image", GONE, ["containers[0].image", "Required value"]),
    (f"{APP}.image", "", ["containers[0].image", "at least 1 chars"]),
    (f"{POD}.containers.1", {"name": "app", "image": "i"}, ["containers", "name exactly one container app"]),
    (f"{POD}.containers.1", {"name": "sidecar", "image": "i"}, ["containers", "choose another name"]),
]

# Accepted by the API server and answered by the operator: reason and message of the status, and of the Failed condition
# unless nodes may cure it.
ANSWERED = [
    (f"{POD}.containres", [], "Invalid", [f"{POD}.containres", "did you mean containers?"]),
    (f"{POD}.tolerations2", [], "Invalid", [f"{POD}.tolerations2", "did you mean tolerations?"]),
    (f"{APP}.comand", ["a"], "Invalid", ["containers[0].comand", "did you mean command?"]),
    (f"{APP}.command", "lattice_boltzmann --check", "Invalid", ["containers[0].command", "must be a list of strings"]),
    (f"{APP}.args", ["--width", 512], "Invalid", ["containers[0].args[1]", 'put it in quotes: "512"']),
    (f"{APP}.env", {"A": "b"}, "Invalid", ["containers[0].env", "must be a list, not an object"]),
    (f"{APP}.env", [{"name": "A", "value": 1}], "Invalid", ["containers[0].env[0].value", 'put it in quotes: "1"']),
    (f"{APP}.env", [{"nam": "A"}], "Invalid", ["containers[0].env[0].nam", "did you mean name?"]),
    (f"{APP}.command", GONE, "TemplateIncomplete", ["containers[app].command", "write it there, for example"]),
    (f"{APP}.securityContext", {"runAsNonRoot": True}, "TemplateIncomplete", ["securityContext.runAsUser", "write the uid there"]),
    ("spec.sets.names", ["slow", "quick"], "NoSuchSet", ["spec.sets.names", "quick", "add or label nodes"]),
    ("spec.sets.label", "example.com/nobody", "NoSuchSet", ["spec.sets.names", "slow", "example.com/nobody"]),
    ("spec.ranks", 400, "NoCapacity", ["400 ranks", "or create the job with"]),
    (f"{POD}.nodeSelector", {"disk": "ssd"}, "NoCapacity", ["nodeSelector of spec.template"]),
    (f"{APP}.resources", {"requests": {"cpu": "64"}}, "NoCapacity", ["let the ranks ask for less (requests"]),
    (f"{APP}.resources", {"requests": {"cpu": "much"}}, "Invalid", ["containers[0].resources.requests.cpu", '"much" is not a quantity']),
    (f"{APP}.resources", {"requests": {"memory": "64 Mi"}}, "Invalid", ["containers[0].resources.requests.memory", '"64 Mi" is not a quantity']),
    (f"{APP}.resources", {"limits": {"nvidia.com/gpu": 1}}, "NoCapacity", ["no node of them has nvidia.com/gpu"]),
    (f"{APP}.resources", {"requests": {"cpu": "200m"}, "limits": {"cpu": "100m"}}, "InvalidPod", ["resources.requests", "less than or equal to cpu limit"]),
    (f"{APP}.volumeMounts", [{"name": "data", "mountPath": "/data"}], "InvalidPod", ["volumeMounts[0].name", "Not found", "data"]),
    (f"{APP}.env", [{"name": "A=B", "value": "c"}], "InvalidPod", ["env", "A=B"]),
    (f"{APP}.imagePullPolicy", "Sometimes", "InvalidPod", ["imagePullPolicy", "supported values", "IfNotPresent"]),
    (f"{APP}.livenessProbe", {"periodSeconds": 3}, "InvalidPod", ["livenessProbe", "must specify a handler type"]),
    (f"{POD}.tolerations", [{"operator": "Is"}], "InvalidPod", ["tolerations[0].operator", "supported values"]),
    (f"{POD}.hostname", "Not A Name", "InvalidPod", ["spec.hostname", "lower case"]),
    (f"{POD}.volumes", [{"name": "data", "emptyDir": {}, "configMap": {"name": "c"}}], "InvalidPod", ["volumes[0]", "more than 1 volume type"]),
    ("spec.template.metadata", {"labels": {"a": "b c"}}, "InvalidPod", ["metadata.labels", "b c"]),
]

# RankMigrations: refused by the API server.
MIGRATIONS_REFUSED = [
    ("metadata.name", "with.dot", ["metadata.name", "no dot"]),
    ("spec", GONE, ["spec", "Required value"]),
    ("spec.job", GONE, ["spec.job", "Required value"]),
    ("spec.job", "", ["spec.job", "at least 1 chars"]),
    ("spec.job", 7, ["spec.job", "must be of type string"]),
    ("spec.rank", GONE, ["spec.rank", "Required value"]),
    ("spec.rank", -1, ["spec.rank", "greater than or equal to 0"]),
    ("spec.rank", "zero", ["spec.rank", "must be of type integer"]),
    ("spec.rank", 5000000000, ["spec.rank", "less than or equal to 4"]),
    ("spec.targetSet", GONE, ["spec", "set either spec.targetSet or spec.targetNode"]),
    ("spec.targetNode", "fast-1", ["spec", "set either spec.targetSet or spec.targetNode"]),
    ("spec.targetSet", "", ["spec.targetSet", "at least 1 chars"]),
    ("spec.targetset", "fast", ["unknown field", "spec.targetset"]),
    ("spec.wave", -1, ["spec.wave", "greater than or equal to 0"]),
    ("spec.force", True, ["unknown field", "spec.force"]),
]

# RankMigrations of a job that runs with rank 0 in slow and rank 1 in fast: refused by the operator.
MIGRATIONS_ANSWERED = [
    ("spec.rank", 2, "NoSuchRank", ["spec.rank", "ranks 0 to 1"]),
    ("spec.targetSet", "quick", "NoSuchTarget", ["Set quick", "the Sets of this job are slow, fast"]),
    ("spec.targetSet", "medium", "NoSuchTarget", ["spec.sets.names"]),
    ("spec", {"rank": 0, "targetNode": "fast-9"}, "NoSuchTarget", ["node fast-9", "slow, fast"]),
    ("spec", {"rank": 0, "targetNode": "medium-1"}, "NoSuchTarget", ["medium-1", "spec.sets.names"]),
    ("spec", {"rank": 0, "targetSet": "slow"}, "AlreadyThere", ["rank 0", "slow"]),
    ("spec", {"rank": 0, "targetNode": "slow-1"}, "AlreadyThere", ["rank 0", "slow-1"]),
    ("spec.wave", 7, "NoSuchWave", ["wave 7", "leaves spec.wave out"]),
]

# Immutable fields of an existing job.
FIXED = [
    ("spec.ranks", 3, "spec.ranks"),
    ("spec.sets.names", ["fast", "slow"], "spec.sets"),
    ("spec.sets.label", "other", "spec.sets"),
    ("spec.initialMapping", "CPU", "spec.initialMapping"),
    ("spec.rescheduling.heuristic", "Top", "spec.rescheduling"),
    ("spec.scheduling.gang", "PodGroup", "spec.scheduling"),
    ("spec.superstep.stride", 2, "spec.superstep"),
    ("spec.checkpoint.sizeLimit", "1Gi", "spec.checkpoint"),
    ("spec.carryPaths", ["/data"], "spec.carryPaths"),
    (f"{APP}.image", "localhost/other:dev", "spec.template"),
    (f"{APP}.command", ["other"], "spec.template"),
    (f"{POD}.tolerations", [{"operator": "Exists"}], "spec.template"),
    ("spec.template.metadata", {"labels": {"a": "b"}}, "spec.template"),
]


def with_mistake(good, path, value):
    """A copy of the manifest with the value at the path; numbers in the path are list indices."""
    made = copy.deepcopy(good)
    *way, last = path.split(".")
    here = made
    for word in way:
        here = here[int(word)] if isinstance(here, list) else here.setdefault(word, {})
    if isinstance(here, list):
        here[int(last):int(last) + 1] = [value]
    elif value is GONE:
        del here[last]
    else:
        here[last] = value
    return made


def describe(path, value):
    return f"{path}: {'left out' if value is GONE else json.dumps(value)[:60]}"


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.since = cluster_job.now()
        cls.space = cls.enterClassContext(Namespace(NAMESPACE))

    def dry_run(self, manifests, command="apply"):
        """{file name: kubectl's output about it}, from a single run for all of them."""
        with tempfile.TemporaryDirectory(prefix="bsp-e2e-", dir="/tmp") as directory:
            for name, manifest in manifests.items():
                (pathlib.Path(directory) / f"{name}.json").write_text(json.dumps(manifest))
            done = self.space.kubectl(command, "-f", directory, "--dry-run=server", check=False, seconds=600)
            text = done.stdout + done.stderr
            answers = {}
            for part in re.split(rf"(?={re.escape(directory)}/)", text):
                if found := re.match(rf"{re.escape(directory)}/([\w-]+)\.json", part):
                    answers[found[1]] = answers.get(found[1], "") + part
            return answers, text

    def refuse_all(self, good, rows):
        manifests = {}
        for i, (path, value, _) in enumerate(rows):
            made = with_mistake(good, path, value)
            if path != "metadata.name":
                made["metadata"]["name"] = f"row-{i}"
            manifests[f"row-{i}"] = made
        answers, text = self.dry_run(manifests)
        for i, (path, value, words) in enumerate(rows):
            with self.subTest(describe(path, value)):
                answer = answers.get(f"row-{i}", "")
                self.assertTrue(answer, f"kubectl printed nothing about row-{i}.json, so it was accepted:\n{text[-2000:]}")
                for word in words:
                    self.assertIn(word, answer)

    def test_refused_by_the_api_server(self):
        self.refuse_all(bsp_job("good"), REFUSED)
        self.refuse_all(rank_migration("good", "good", 0, targetSet="fast"), MIGRATIONS_REFUSED)
        self.assertGreaterEqual(len(REFUSED) + len(ANSWERED) + len(MIGRATIONS_REFUSED) + len(MIGRATIONS_ANSWERED), 60)

    def test_invalid_yaml(self):
        for text, words in [("kind: BSPJob\n  spec: {", ["error converting YAML to JSON", "line 2"]),
                            ("spec: {ranks: 2}\n", ["apiVersion", "kind"]),
                            ("[1, 2]\n", ["invalid object"])]:
            with self.subTest(text):
                done = self.space.kubectl("apply", "--dry-run=server", "-f", "-", text=text, check=False)
                self.assertNotEqual(done.returncode, 0)
                for word in words:
                    self.assertIn(word, done.stderr)

    def test_answered_by_the_operator(self):
        good = bsp_job("good")
        for i, (path, value, _, _) in enumerate(ANSWERED):
            made = with_mistake(good, path, value)
            made["metadata"]["name"] = f"answered-{i}"
            self.space.apply(made)
        for i, (path, value, reason, words) in enumerate(ANSWERED):
            with self.subTest(describe(path, value)):
                at = f"{cluster_job.API}/{NAMESPACE}/bspjobs/answered-{i}"
                status = wait_for("an answer", lambda: (s := get_object(at, {}).get("status", {})).get("reason") == reason and s, 60,
                                  detail=lambda: get_object(at))
                for word in words:
                    self.assertIn(word, status["message"])
                if reason in ("NoCapacity", "NoSuchSet"):
                    self.assertEqual(status["phase"], "Pending", "nodes may still be added")
                    continue
                self.assertEqual(status["phase"], "Failed")
                failed, = (c for c in status["conditions"] if c["type"] == "Failed")
                self.assertEqual((failed["status"], failed["reason"], failed["message"]), ("True", reason, status["message"]))
                self.assertEqual(status["observedGeneration"], get_object(at)["metadata"]["generation"])
        self.assertEqual(self.space.objects("pods"), {}, "nothing was started")
        self.space.kubectl("delete", "bspjobs", "--all", "--timeout=60s")
        self.assertEqual(cluster_job.operator_warnings(self.since), [], "the operator logs no warnings")

    def test_migrations_answered_by_the_operator(self):
        with cluster_job.job_of(self.space, bsp_job("runs", lattice_boltzmann(1000000, width=64, height=32))) as job:
            job.wait_for_superstep(2)
            good = rank_migration("good", "runs", 0, targetSet="fast")
            for i, (path, value, _, _) in enumerate(MIGRATIONS_ANSWERED):
                made = with_mistake(good, path, {"job": "runs", **value} if path == "spec" else value)
                made["metadata"]["name"] = f"asked-{i}"
                self.space.apply(made, verb="create")
            for i, (path, value, reason, words) in enumerate(MIGRATIONS_ANSWERED):
                with self.subTest(describe(path, value)):
                    status = job.wait_for_migration(f"asked-{i}", ("Failed", "Succeeded"))
                    self.assertEqual((status["phase"], status["reason"]), ("Failed", reason), status)
                    for word in words:
                        self.assertIn(word, status["message"])
            self.assertEqual(job.status()["phase"], "Running", "the job is unaffected")
            self.assertEqual(job.status()["migrations"].get("waves", 0), 0)

    def test_migration_without_a_job(self):
        self.space.apply(rank_migration("lonely", "nowhere", 0, targetSet="fast"), verb="create")
        status = wait_for("an answer", lambda: get_object(f"{cluster_job.API}/{NAMESPACE}/rankmigrations/lonely", {}).get("status"), 30)
        self.assertIn("nowhere", status["message"])
        self.assertIn("spec.job", status["message"])

    def test_valid_manifests_are_accepted(self):
        examples = sorted((cluster_job.TREE / "examples").glob("*.yaml"))
        self.assertGreaterEqual(len(examples), 3)
        for file in examples:
            with self.subTest(file.name):
                done = self.space.kubectl("apply", "--dry-run=server", "-f", str(file))
                self.assertIn("created (server dry run)", done.stdout)
                self.assertEqual(done.stderr, "")

    def test_applying_twice_changes_nothing(self):
        for name, words in (("twice", ()), ("twice-by-server", ("--server-side", "--field-manager=e2e"))):
            with self.subTest(name):
                manifest = bsp_job(name, runPolicy={"suspend": True})
                job = ClusterJob(self.space, manifest, words=words)
                job.wait_for_phase("Suspended")
                before = self.at_rest(job)
                self.space.apply(manifest, words=words)
                after = job.object()["metadata"]
                for field in ("generation", "resourceVersion", "uid"):
                    self.assertEqual(after[field], before[field], field)

    @staticmethod
    def at_rest(job):
        """Its metadata once the operator has nothing more to write: unchanged for three seconds."""
        seen = {}

        def same():
            metadata = job.object()["metadata"]
            since = seen.setdefault(metadata["resourceVersion"], time.monotonic())
            return time.monotonic() > since + 3 and metadata
        return wait_for("the operator to rest", same, 60)

    def test_immutable_fields(self):
        manifest = bsp_job("fixed", runPolicy={"suspend": True})
        job = ClusterJob(self.space, manifest)
        job.wait_for_phase("Suspended")
        for path, value, field in FIXED:
            with self.subTest(describe(path, value)):
                done = self.space.apply(with_mistake(manifest, path, value), words=("--dry-run=server",), check=False)
                self.assertNotEqual(done.returncode, 0, done.stdout)
                self.assertIn(field, done.stderr)
                self.assertIn(CHANGED, done.stderr)
        changed = with_mistake(manifest, "spec.runPolicy.ttlSecondsAfterFinished", 3600)
        self.assertIn("configured", self.space.apply(changed).stdout, "runPolicy may be changed")
        changed = with_mistake(changed, "spec.objective", {"type": "Price"})
        self.assertIn("configured", self.space.apply(changed).stdout, "the objective may be changed")
        job.wait("the changes to be seen", lambda s: s.get("observedGeneration") == 3, 30)
        self.space.apply(rank_migration("fixed", "fixed", 0, targetSet="fast"), verb="create")
        done = self.space.kubectl("patch", "rankmigration", "fixed", "--type=merge", "-p", '{"spec": {"rank": 1}}', check=False)
        self.assertIn("delete it and create another", done.stderr)

    def test_printer_columns(self):
        job = ClusterJob(self.space, bsp_job("shown", runPolicy={"suspend": True}))
        job.wait_for_phase("Suspended")
        for word in ("bspjobs", "bspjob", "bj"):
            self.assertIn("shown", self.space.kubectl("get", word).stdout)
        self.assertIn("bspjob.migbsp.io/shown", self.space.kubectl("get", "migbsp", "-o", "name").stdout)
        self.assertIn("bspjob.migbsp.io/shown", self.space.kubectl("get", "all", "-o", "name").stdout)
        row, = (r for r in columns(self.space.kubectl("get", "bj").stdout) if r["NAME"] == "shown")
        self.assertEqual(list(row)[:3], ["NAME", "PHASE", "WAVE"])
        self.assertLessEqual({"SUPERSTEP", "IMBALANCE", "MOVES", "AGE"}, set(row))
        self.assertEqual(row["PHASE"], "Suspended")
        self.assertRegex(row["RANKS"], r"^fast 0/\d+ slow 0/\d+$")  # the capacity depends on what else runs
        wide, = (r for r in columns(self.space.kubectl("get", "bj", "-o", "wide").stdout) if r["NAME"] == "shown")
        self.assertEqual(wide["REASON"], "Suspended")
        self.space.apply(rank_migration("shown", "shown", 1, targetSet="slow"), verb="create")
        row, = (r for r in columns(self.space.kubectl("get", "rm").stdout) if r["NAME"] == "shown")
        self.assertEqual((row["JOB"], row["RANK"]), ("shown", "1"))
        self.assertLessEqual({"FROM", "TO", "PHASE", "PAUSE-MS", "GAIN", "AGE"}, set(row))
        text = self.space.kubectl("describe", "bspjob", "shown").stdout
        for word in ("Phase:", "Suspended", "Conditions:", "Events:"):
            self.assertIn(word, text)

    def test_explain_describes_every_field(self):
        for resource in ("bspjob", "rankmigration"):
            crd = json.loads(kubectl("get", "crd", f"{resource}s.migbsp.io", "-o", "json").stdout)
            schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            paths = [resource]

            def collect(node, path):
                for name, child in node.get("properties", {}).items():
                    if path == resource and name in ("metadata", "apiVersion", "kind"):
                        continue
                    self.assertTrue(child.get("description"), f"{path}.{name} has no description")
                    inner = child.get("items", child)
                    if inner.get("properties"):
                        paths.append(f"{path}.{name}")
                        collect(inner, f"{path}.{name}")
            collect(schema, resource)
            for path in paths:
                if "status" in path.split(".")[1:] and path.count(".") > 1:
                    continue  # each costs a kubectl process; the fields that users write are checked completely
                text = kubectl("explain", path).stdout
                self.assertIn("DESCRIPTION:", text, path)
                self.assertNotIn("<empty>", text, path)
                self.assertNotIn("<no description>", text, path)
        self.assertRegex(kubectl("explain", "bspjob.spec.rescheduling.heuristic").stdout, r"(?s)ENUM:.*AutoMig")

    def test_api_server_accepts_helm_template(self):
        for words in [(), ("--set", f"watchNamespace={NAMESPACE},records.enabled=true,networkPolicy.jobs=false"),
                      ("--set", "metrics.enabled=true,networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.team=monitoring"),
                      ("--set", "jobs.userNamespaces=false,metrics.enabled=false,rbac.userRoles=false,replicas=1")]:
            with self.subTest(words):
                rendered = helm("template", "e2e", CHART, "-n", NAMESPACE, *words).stdout
                done = self.space.kubectl("apply", "--dry-run=server", "-f", "-", text=rendered, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 chart(s) linted, 0 chart(s) failed", helm("lint", CHART, "--strict").stdout)
        for value, words in [("replicas=many", ["replicas", "integer"]), ("replica=2", ["replica"]),
                             ("logLevel=loud", ["logLevel"]), ("image.repository=", ["repository"]),
                             ("watchNamespace=Not_A_Name", ["watchNamespace"]), ("metrics.port=8081", ["port"])]:
            with self.subTest(value):
                done = helm("template", "e2e", CHART, "--set", value, check=False)
                self.assertNotEqual(done.returncode, 0)
                for word in words:
                    self.assertIn(word, done.stderr)


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
