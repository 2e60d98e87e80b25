#!/usr/bin/env python3
"""Jobs in a real cluster, with kubectl and Helm as a user runs them: real kubelets, scheduler, Open MPI and criu."""
import json
import re
import signal
import sys
import time
import unittest

import cluster_job
import cluster_nodes
from cluster_job import (TOLD, ClusterJob, Namespace, bsp_job, columns, field_of, helm, job_of, kubectl, lattice_boltzmann,
                         get_object, sequential_field, sized_lattice_boltzmann, until_told, wait_for)

ENDLESS = lattice_boltzmann(supersteps=1000000)


class InANamespace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.space = cls.enterClassContext(Namespace("e2e-" + cls.__name__.lower()))

    def check_field(self, job, command):
        self.assertEqual(field_of(job.log(0)), sequential_field(command, job.log(0)), job.log(0)[-2000:] + job.summary())

    def check_succeeded(self, job, command):
        status = job.ended()
        self.assertEqual((status["phase"], status["reason"]), ("Succeeded", "Completed"), job.summary())
        self.check_field(job, command)
        return status

    def drain_and_end(self, job, rank, command):
        """Drains the rank's node and tells the program to end, which it does in its first attempt, with the right result."""
        node = job.status()["ranks"][rank]["node"]
        self.addCleanup(kubectl, "uncordon", node)
        job.drain(node)
        job.tell()
        status = self.check_succeeded(job, command)
        self.assertEqual(status.get("attempt", 0), 0, job.summary())


class Runs(InANamespace):
    def test_cost_model_moves_a_rank(self):
        command = sized_lattice_boltzmann(0.5, supersteps=72)  # enough where noise hides the gain for some calls
        with job_of(self.space, bsp_job("moves", command, rescheduling={"alpha": 4, "d": 0.25})) as job:
            self.space.kubectl("wait", "--for=condition=Complete", "bspjob/moves", "--timeout=400s", seconds=420)
            status = self.check_succeeded(job, command)
            moves = [m for m in self.space.objects("rankmigrations").values() if m["status"]["phase"] == "Succeeded"]
            self.assertIn((0, "slow", "fast"), [(m["spec"]["rank"], m["status"]["sourceSet"], m["status"]["targetSet"]) for m in moves],
                          job.summary())
            self.assertEqual({r["set"] for r in status["ranks"]}, {"fast"})
            first = min(moves, key=lambda m: m["status"]["startTime"])
            self.assertGreater(first["spec"]["predictedGainSeconds"], 0)
            self.assertIn("realisedGainSeconds", first["status"])
            self.assertGreater(first["status"]["pause"]["totalMs"], 0)
            self.assertGreater(first["status"]["bytes"], 100000)
            for condition in status["conditions"]:
                for field in ("status", "reason", "message", "lastTransitionTime", "observedGeneration"):
                    self.assertTrue(condition.get(field), f"{field} of {condition}")
            events = self.space.events("moves")
            for reason in ("Rescheduled", "RankMoved", "GainMeasured", "Completed"):
                self.assertIn(reason, [r for r, _ in events])
            row, = columns(self.space.kubectl("get", "bspjobs").stdout)
            self.assertEqual((row["PHASE"], row["SUPERSTEP"], row["MOVES"]), ("Succeeded", "72", str(len(moves))))
            text = self.space.kubectl("describe", "bspjob", "moves").stdout
            for word in ("Last Decision", "RankMoved"):
                self.assertIn(word, text)
            # A job succeeds with its ranks; the kubelet then ends their sidecars.
            wait_for("both pods to succeed, without the source of the move",
                     lambda: [p["status"]["phase"] for p in job.pods().values()] == ["Succeeded"] * 2, 60, detail=job.summary)

    def test_advise_moves_no_rank(self):
        with job_of(self.space, bsp_job("advised", sized_lattice_boltzmann(0.5, supersteps=1000000),
                                        rescheduling={"mode": "Advise", "alpha": 4, "d": 0.25})) as job:
            status = job.wait("an advice", lambda s: job.alive(s).get("lastDecision", {}).get("outcome") == "Advised", 240)
            self.assertIn(0, [m["rank"] for m in status["lastDecision"]["moves"]], job.summary())
            after = status["superstep"]
            status = job.wait_for_superstep(after + 6)
            self.assertEqual((status["phase"], status["ranks"][0]["set"]), ("Running", "slow"), job.summary())
            self.assertEqual(self.space.objects("rankmigrations"), {})


class ByHand(InANamespace):
    def test_move_and_abort_by_deletion(self):
        command = until_told()
        manifest = bsp_job("hand", command, annotations={"migbsp.io/fault-points": "enabled"},
                           sets={"names": ["slow", "fast", "medium"]})
        with job_of(self.space, manifest) as job, cluster_nodes.Copies("hand") as copies:
            job.wait_for_superstep(5)
            job.migrate("to-medium", 0, targetSet="medium")
            ended = job.wait_for_migration("to-medium")
            self.assertEqual((ended["phase"], ended["targetNode"]), ("Succeeded", "medium-1"), ended)
            row, = columns(self.space.kubectl("get", "rm").stdout)
            self.assertEqual((row["FROM"], row["TO"], row["PHASE"]), ("slow", "medium", "Succeeded"))
            self.assertEqual([p["phase"] for p in ended["phaseTimes"]],
                             ["Pending", "Preparing", "Pausing", "Checkpointing", "Transferring", "Restoring", "Resuming", "Succeeded"])
            # The other rank's sidecar is delayed while it prepares, so that there is something to abort.
            place, other = job.status()["ranks"]
            armed = cluster_nodes.arm(lambda: job.pods().get(other["pod"]), "epoch.prepare", "stop:2500")
            job.migrate("aborted", 0, targetNode="fast-1")
            wait_for("the preparation", lambda: cluster_nodes.has_fired(armed))
            target = job.migration("aborted")["targetPod"]
            self.space.kubectl("delete", "rankmigration", "aborted", "--timeout=60s")
            wait_for("the target to be gone", lambda: target not in job.pods(), 60)
            job.wait_for_superstep(job.status()["superstep"] + 5)
            self.assertEqual(job.status()["ranks"][0]["pod"], place["pod"], job.summary())
            self.assertEqual(job.migration("aborted"), {}, "it is not created again")
            job.tell()
            self.check_succeeded(job, command)
            self.assertEqual(job.status().get("attempt", 0), 0, job.summary())
        self.assertEqual(copies.two, [])

    def test_sidecar_killed_out_of_memory(self):
        """The namespace limits containers without requests, such as the sidecars, to 32 MiB, and the checkpoint takes 96."""
        command = until_told()
        limits = {"type": "Container", "default": {"memory": "32Mi"}, "defaultRequest": {"memory": "16Mi"}}
        template = json.loads(json.dumps(cluster_job.TEMPLATE))
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "400Mi"}}
        manifest = bsp_job("starved", [*command, "--ballast", "96"], template=template, sets={"names": ["slow", "fast", "medium"]})
        with Namespace("e2e-starved") as space:
            space.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "few"}, "spec": {"limits": [limits]}})
            with job_of(space, manifest) as job, cluster_nodes.Copies("starved") as copies:
                job.wait_for_superstep(5)
                before = cluster_nodes.killed_for_memory("bsp-sidecar")
                job.migrate("too-large", 0, targetSet="medium")
                ended = job.wait_for_migration("too-large")
                self.assertEqual(ended["phase"], "RolledBack", ended)
                self.assertTrue(ended["message"], ended)
                self.assertTrue(cluster_nodes.killed_for_memory("bsp-sidecar") - before, "the kernel killed no sidecar")
                job.tell()
                self.check_succeeded(job, command)
                self.assertEqual(job.status().get("attempt", 0), 0, job.summary())
            self.assertEqual(copies.two, [])

    def test_clocks_waits_and_messages_continue_on_another_machine(self):
        """To an older machine and to a younger one: each has an uptime of its own (tests/cluster/up.sh)."""
        endless = "1000000000"
        for name, program, result in (("clocks", ["moved_clocks"], "OK clocks"), ("waits", ["shim_blocking_calls", "threads"], "ok blocking calls"),
                                      ("messages", ["shim_undelivered", endless], "ok undelivered")):
            with self.subTest(name), job_of(self.space, bsp_job(name, [*program, TOLD], sets={"names": ["slow", "fast", "medium"]})) as job:
                job.wait_for_superstep(5)
                for target in ("fast", "medium"):
                    job.migrate(f"{name}-to-{target}", 0, targetSet=target)
                    ended = job.wait_for_migration(f"{name}-to-{target}")
                    self.assertEqual(ended["phase"], "Succeeded", f"{ended} {job.log(0)}")
                    job.wait_for_superstep(job.status()["superstep"] + 5)
                job.tell()
                self.assertEqual(job.ended()["phase"], "Succeeded", job.summary() + job.log(0))
                self.assertIn(result, job.log(0))

    def test_delete_a_waiting_migration(self):
        with job_of(self.space, bsp_job("later", runPolicy={"suspend": True})) as job:
            job.wait_for_phase("Suspended")
            job.migrate("waits", 0, targetSet="fast")
            self.space.kubectl("delete", "rankmigration", "waits", "--timeout=30s")
            self.assertEqual(job.migration("waits"), {})


class Life(InANamespace):
    def test_suspended_and_resumed(self):
        command = until_told()
        with job_of(self.space, bsp_job("rests", command)) as job:
            job.wait_for_superstep(5)
            policy = '{"spec": {"runPolicy": {"suspend": %s}}}'
            self.space.kubectl("patch", "bspjob", "rests", "--type=merge", "-p", policy % "true")
            job.wait_for_phase("Suspended")
            wait_for("the pods to be deleted", lambda: not job.pods(), 60)
            self.assertEqual(job.condition("Suspended")["status"], "True")
            self.space.kubectl("patch", "bspjob", "rests", "--type=merge", "-p", policy % "false")
            job.wait_for_phase("Running")
            job.tell()
            status = self.check_succeeded(job, command)
            self.assertEqual(status.get("attempt", 0), 0, "a suspension is not a failure")

    def test_a_removed_status_is_rebuilt_from_the_pods(self):
        command = until_told()
        for patch in ('{"status": null}', '{"status": {"internal": null}}'):
            with self.subTest(patch=patch), job_of(self.space, bsp_job("rebuilt", command)) as job:
                job.wait_for_superstep(5)
                pods = [p["metadata"]["uid"] for p in job.pods().values()]
                self.space.kubectl("patch", "bspjob", "rebuilt", "--subresource=status", "--type=merge", "-p", patch)
                job.wait_for_superstep(10)
                self.assertEqual([p["metadata"]["uid"] for p in job.pods().values()], pods, "no rank starts again")
                job.tell()
                self.check_succeeded(job, command)
                self.space.kubectl("patch", "bspjob", "rebuilt", "--subresource=status", "--type=merge", "-p", '{"status": {"internal": null}}')
                self.assertEqual(job.wait_for_phase("Succeeded")["reason"], "Completed", "it has ended")

    def test_job_deleted_during_a_move_leaves_nothing(self):
        self.space.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-the-user"}, "data": {"a": "b"}})
        before = self.space.everything()
        job = ClusterJob(self.space, bsp_job("deleted", ENDLESS))
        job.wait_for_superstep(3)
        job.migrate("by-the-user", 0, targetSet="fast")
        job.wait_for_migration("by-the-user", ("Preparing", "Pausing", "Checkpointing", "Transferring", "Restoring", "Resuming"))
        job.delete("--timeout=60s")
        by_user = "rankmigration.migbsp.io/by-the-user"
        wait_for("nothing but what the user made", lambda: [n for n in self.space.everything() if n != by_user] == before, 60,
                 detail=lambda: set(self.space.everything()) - set(before))
        self.assertEqual([p for p in cluster_nodes.processes("lattice") if
                          cluster_nodes.environment(p).get("HOSTNAME", "").startswith("deleted-r")], [])
        self.space.kubectl("delete", "rankmigration", "by-the-user", "--ignore-not-found", "--timeout=30s")

    def test_time_to_live(self):
        job = ClusterJob(self.space, bsp_job("brief", lattice_boltzmann(5, width=64, height=32),
                                             runPolicy={"backoffLimit": 0, "ttlSecondsAfterFinished": 2}))
        job.wait("its end", lambda s: s.get("phase") == "Succeeded")
        wait_for("the job to be deleted", lambda: job.object() is None, 60)
        wait_for("its pods and Secrets to go with it", lambda: not job.pods() and not job.secrets(), 60)

    def test_the_users_template_is_preserved(self):
        self.space.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"word": "hello"}},
                         {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "worker"}})
        program = "test $(cat /words/word) = hello && test $(cat /shared/prepared) = yes && test $MINE = mine && exec "
        command = lattice_boltzmann(30)
        app = {"name": "app", "image": "localhost/bsp-apps:dev", "command": ["sh", "-c", program + " ".join(command)],
               "env": [{"name": "MINE", "value": "mine"}], "securityContext": {"runAsUser": 1000, "runAsGroup": 1000},
               "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
               "volumeMounts": [{"name": "words", "mountPath": "/words"}, {"name": "shared", "mountPath": "/shared"}]}
        quiet = {"image": "localhost/bsp-apps:dev", "resources": {"requests": {"cpu": "10m"}},
                 "volumeMounts": [{"name": "shared", "mountPath": "/shared"}], "securityContext": {"runAsUser": 1000}}
        template = {
            "metadata": {"labels": {"team": "blue", "scheduling.x-k8s.io/pod-group": "g"}, "annotations": {"example.com/note": "kept"}},
            "spec": {"serviceAccountName": "worker", "nodeSelector": {"kubernetes.io/os": "linux"},
                     "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
                     "topologySpreadConstraints": [{"maxSkew": 2, "topologyKey": "kubernetes.io/hostname",
                                                    "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"team": "blue"}}}],
                     "initContainers": [{"name": "prepare", "command": ["sh", "-c", "echo yes >/shared/prepared"], **quiet},
                                        {"name": "beside", "command": ["sleep", "infinity"], "restartPolicy": "Always", **quiet}],
                     "containers": [{"name": "helper", "command": ["sh", "-c", "echo helped >/shared/helped"], **quiet}, app],
                     "volumes": [{"name": "words", "configMap": {"name": "words"}}, {"name": "shared", "emptyDir": {}}]}}
        manifest = bsp_job("template")
        manifest["spec"]["template"] = template
        with job_of(self.space, manifest) as job:
            job.wait("pods", lambda s: job.alive(s).get("phase") in ("Running", "Succeeded"))
            pods = job.pods()
            self.assertEqual(set(pods), {"template-r0-g0", "template-r1-g0"})
            for pod in pods.values():
                meta, spec = pod["metadata"], pod["spec"]
                self.assertLessEqual(template["metadata"]["labels"].items(), meta["labels"].items())
                self.assertEqual(meta["annotations"]["example.com/note"], "kept")
                self.assertEqual(meta["ownerReferences"][0]["kind"], "BSPJob")
                self.assertEqual((spec["serviceAccountName"], spec["nodeSelector"]), ("worker", {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}))
                self.assertIn(template["spec"]["tolerations"][0], spec["tolerations"])
                self.assertEqual(len(spec["topologySpreadConstraints"]), 1)
                self.assertEqual([c["name"] for c in spec["initContainers"]], ["sidecar", "prepare", "beside"])
                self.assertEqual([c["name"] for c in spec["containers"]], ["helper", "app"])
                mine, = (c for c in spec["containers"] if c["name"] == "app")
                self.assertIn({"name": "MINE", "value": "mine"}, mine["env"])
                self.assertEqual(mine["resources"]["requests"], {"cpu": "100m", "memory": "64Mi"})
            self.check_succeeded(job, command)


class Failures(InANamespace):
    def fails(self, name, reason, *words, command=("lattice_boltzmann",), change=None, **spec):
        manifest = bsp_job(name, command, **spec)
        if change:
            change(manifest["spec"]["template"]["spec"]["containers"][0])
        with job_of(self.space, manifest) as job:
            status = job.ended(120)
            self.assertEqual((status["phase"], status["reason"]), ("Failed", reason), job.summary())
            for word in words:
                self.assertIn(word, status["message"])
            failed = job.condition("Failed")
            self.assertEqual((failed["status"], failed["reason"]), ("True", reason))
            return status

    def test_exit_code_and_last_lines(self):
        status = self.fails("exits", "RankExited", "exited with code 3", "last words", "attempt 2 of 2",
                            command=["sh", "-c", "echo last words; exit 3"], runPolicy={"backoffLimit": 1})
        self.assertEqual(len(status["restarts"]), 2)

    def test_no_such_command(self):
        self.fails("nocommand", "CannotRun", "no_such_command", command=["no_such_command"])

    def test_no_such_image(self):
        """It may still come, so the job waits for it and says so."""
        manifest = bsp_job("noimage", ["lattice_boltzmann"])
        manifest["spec"]["template"]["spec"]["containers"][0]["image"] = "localhost/bsp-no-such-image:1"
        with job_of(self.space, manifest) as job:
            wait_for("the condition", lambda: job.condition("StartDelayed"), 60, detail=job.summary)
            self.assertIn("container app waits: ", job.condition("StartDelayed")["message"])
            self.assertIn("bsp-no-such-image", job.condition("StartDelayed")["message"])

    def test_invalid_image_name(self):
        self.fails("badimage", "CannotStart", "Not/An:Image", change=lambda app: app.update(image="Not/An:Image:Name"))

    def test_no_mpi(self):
        self.fails("nompi", "NotMpi", "MPI_Init", command=["true"])

    def test_out_of_memory(self):
        limits = {"requests": {"cpu": "100m"}, "limits": {"memory": "48Mi"}}
        self.fails("memory", "RankKilled", "memory limit", command=lattice_boltzmann(10, more=["--ballast", "128"]),
                   change=lambda app: app.update(resources=limits))

    def test_deadline(self):
        self.fails("late", "DeadlineExceeded", "spec.runPolicy.activeDeadlineSeconds (8 s)", command=ENDLESS,
                   runPolicy={"activeDeadlineSeconds": 8, "backoffLimit": 0})


class Limits(InANamespace):
    def test_namespace_that_rejects_the_pods(self):
        with Namespace("e2e-restricted", level="restricted") as space:
            command = lattice_boltzmann(10)
            job = ClusterJob(space, bsp_job("refused", command))
            status = job.wait("the refusal in its status", lambda s: "PodSecurity" in job.alive(s).get("message", ""), 60)
            self.assertEqual(status["phase"], "Starting", "no pod runs, and the phase doesn't claim otherwise")
            self.assertIn("pod-security.kubernetes.io/enforce=privileged", status["message"], "the remedy")
            wait_for("an event", lambda: any(r == "PodNotCreated" and "PodSecurity" in n for r, n in space.events("refused")), 30)
            self.assertEqual(job.pods(), {})
            kubectl("label", "namespace", space.name, "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
            self.check_succeeded(job, command)

    def test_quota_on_cpu_and_memory(self):
        """A quota requires requests and limits of every container, including the operator's; the refusal names the field that sets them."""
        hard = {f"{kind}.{what}": amount for kind in ("requests", "limits") for what, amount in (("cpu", "4"), ("memory", "4Gi"))}
        template = json.loads(json.dumps(cluster_job.TEMPLATE))
        mine = {what: {"cpu": "90m", "memory": "128Mi"} for what in ("requests", "limits")}
        template["spec"]["containers"][0]["resources"] = mine
        command = until_told()
        with Namespace("e2e-quota") as space:
            space.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": hard}})
            job = ClusterJob(space, bsp_job("default", command, template=template))
            status = job.wait("the refusal", lambda s: "must specify limits" in job.alive(s).get("message", ""), 60)
            self.assertIn("spec.sidecar.resources", status["message"], "the remedy")
            self.assertEqual(job.pods(), {})
            job.delete()
            ours = {what: {"cpu": "20m", "memory": "256Mi"} for what in ("requests", "limits")}
            job = ClusterJob(space, bsp_job("given", command, template=template, sidecar={"resources": ours},
                                            sets={"names": ["slow", "fast", "medium"]}))
            job.wait_for_superstep(2)
            self.assertEqual({p["status"]["qosClass"] for p in job.pods().values()}, {"Guaranteed"})
            job.migrate("under-quota", 0, targetSet="medium")
            self.assertEqual(job.wait_for_migration("under-quota")["phase"], "Succeeded", job.summary())
            job.tell()
            self.check_succeeded(job, command)

    def test_namespace_with_an_unstarted_job_can_be_deleted(self):
        with Namespace("e2e-goes") as space:
            job = ClusterJob(space, bsp_job("stuck", template={"spec": {**cluster_job.TEMPLATE["spec"], "schedulerName": "nobody"}}))
            wait_for("its pods", job.pods, 60)

    def test_cpu_throttling_is_reported_until_the_limit_is_raised(self):
        template = json.loads(json.dumps(cluster_job.TEMPLATE))
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "50m"}}
        with job_of(self.space, bsp_job("limited", ENDLESS, template=template, sets={"names": ["medium"]})) as job, \
             job_of(self.space, bsp_job("unlimited", ENDLESS, sets={"names": ["fast"]})) as other:
            def wait(on):
                return job.wait(f"CPUThrottled {'to come' if on else 'to go'}", lambda s: job.alive(s) and on == any(
                    c["type"] == "CPUThrottled" for c in s.get("conditions", [])), 120)
            wait(True)
            text = self.space.kubectl("describe", "bspjob", "limited").stdout
            self.assertRegex(text, r"rank [01] was held back for \d+ % of the time by its CPU limit of 50m")
            self.assertRegex(text, r"Warning +CPUThrottled")
            # What the node gives to all its pods, the most that its kernel lets one have: with two ranks there, none reaches it.
            whole = {"spec": {"containers": [{"name": "app", "resources": {"limits": {"cpu": "240m"}}}]}}
            for pod in job.pods():
                self.space.kubectl("patch", "pod", pod, "--subresource=resize", "--type=strategic", "-p", json.dumps(whole))
            wait(False)
            other.wait_for_superstep(5)
            self.assertEqual(other.condition("CPUThrottled"), {}, "its node is slow, which isn't a limit that the user has set")

    def test_two_jobs_compete_for_one_pool(self):
        """Both have a rank on slow-1 and one in the pool goal, whose three nodes have one slot each: one slot is left for both."""
        lane, mine = "e2e.example.com/lane", "70m"
        lanes = {"slow-1": "slow", "fast-1": "goal", "fast-2": "goal", "fast-3": "goal"}
        template = json.loads(json.dumps(cluster_job.TEMPLATE))
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = mine
        spec = {"rescheduling": {"alpha": 4, "d": 0.25}, "template": template, "sets": {"label": lane, "names": ["slow", "goal"]}}
        command = sized_lattice_boltzmann(0.3, supersteps=24)
        for node, value in lanes.items():
            self.addCleanup(kubectl, "label", "node", node, f"{lane}-")
            kubectl("label", "node", node, f"{lane}={value}", "--overwrite")
        with Namespace("e2e-rival") as other:
            for node in (n for n, value in lanes.items() if value == "goal"):
                filler = {"name": "filler", "image": "localhost/bsp-apps:dev", "command": ["sleep", "infinity"],
                          "resources": {"requests": {"cpu": f"{self.free_milli(node) - 100}m"}}}
                other.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"fills-{node}"},
                             "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [filler]}})
            with job_of(self.space, bsp_job("one", command, **spec)) as one, job_of(other, bsp_job("two", command, **spec)) as two:
                for job in (one, two):
                    status = job.ended(600)
                    self.assertEqual((status["phase"], status.get("attempt", 0)), ("Succeeded", 0), job.summary())
                    self.check_field(job, command)
                moves = [m for space in (self.space, other) for m in space.objects("rankmigrations").values()]
                self.assertIn("Succeeded", [m["status"]["phase"] for m in moves])
                reserved_twice = [m["status"] for m in moves if "nsufficient" in m["status"].get("message", "")]
                self.assertEqual(reserved_twice, [], "no slot is reserved twice")

    def test_two_jobs_start_on_one_pool(self):
        """Three ranks each for the pool's four slots: the jobs run one after the other, and a job that waits holds no slot."""
        template = json.loads(json.dumps(cluster_job.TEMPLATE))
        template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "160m"
        command = lattice_boltzmann(10)
        for again in range(3):
            names = [f"comp-{x}{again}" for x in "ab"]
            self.space.apply(*(bsp_job(name, command, ranks=3, template=template, sets={"names": ["fast"]},
                                       runPolicy={"backoffLimit": 0, "cleanPodPolicy": "All"}) for name in names))
            waited, deadline, statuses = set(), time.monotonic() + 300, {}
            while len([s for s in statuses.values() if s.get("phase") in ("Succeeded", "Failed")]) < 2:
                self.assertLess(time.monotonic(), deadline, statuses)
                pods = self.space.objects("pods", "migbsp.io/job")
                holders = {p["metadata"]["labels"]["migbsp.io/job"] for p in pods.values() if p["status"]["phase"] in ("Pending", "Running")}
                statuses = {name: o.get("status", {}) for name, o in self.space.objects("bspjobs").items() if name in names}
                holders -= {name for name, status in statuses.items() if status.get("phase") == "Succeeded"}  # their pods are being deleted
                self.assertLess(len(holders), 2, "both hold slots")
                waited |= {s["message"] for s in statuses.values() if s.get("reason") == "WaitingForSlots"}
                time.sleep(0.3)
            self.assertEqual({(s["phase"], s.get("attempt", 0)) for s in statuses.values()}, {("Succeeded", 0)}, statuses)
            self.assertTrue([m for m in waited if re.match(rf"waits for 3 slots in fast, held by ({names[0]}|{names[1]}) \(\d free\)", m)], waited)
            self.space.kubectl("delete", "bspjobs", *names)

    @staticmethod
    def free_milli(node):
        """A node's CPU that no pod has requested."""
        def milli(quantity):
            return int(quantity[:-1]) if quantity.endswith("m") else int(float(quantity) * 1000)
        pods = get_object(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}", {}).get("items", [])
        taken = sum(milli(c.get("resources", {}).get("requests", {}).get("cpu", "0")) for p in pods
                    if p["status"].get("phase") not in ("Succeeded", "Failed") for c in p["spec"]["containers"])
        return milli(get_object(f"/api/v1/nodes/{node}")["status"]["allocatable"]["cpu"]) - taken


class Liveness(InANamespace):
    """The sidecar's liveness probe, sent by kubelets."""

    def sidecar(self, pod):
        pod = wait_for(f"pod {pod}", lambda: get_object(f"/api/v1/namespaces/{self.space.name}/pods/{pod}"), 30)  # the server may be slow
        return next(c for c in pod["status"]["initContainerStatuses"] if c["name"] == "sidecar")

    def test_hung_sidecar_is_restarted_but_a_starved_one_is_not(self):
        with job_of(self.space, bsp_job("starves", ENDLESS, sets={"names": ["slow", "fast"]})) as job:
            job.wait_for_superstep(5)
            starved, hung = job.status()["ranks"]
            with cluster_nodes.starved(starved["node"], thousandths=20):
                self.assertTrue(cluster_nodes.kill_process("bsp-sidecar", signal.SIGSTOP, BSP_POD=hung["pod"]))
                began = time.monotonic()
                wait_for("the hung sidecar to be restarted", lambda: self.sidecar(hung["pod"])["restartCount"], 300)
                took = time.monotonic() - began
                self.assertEqual(self.sidecar(starved["pod"])["restartCount"], 0)
                print(f"a hung sidecar is restarted after {took:.0f} s; failed probes of a sidecar on 0.02 of a core meanwhile: "
                      f"{sum('Liveness probe failed' in note for _, note in self.space.events(starved['pod']))}", flush=True)
            job.wait_for_superstep(job.status()["superstep"] + 5)
            self.assertEqual(job.status().get("attempt", 0), 0, job.summary())
            self.assertEqual(self.sidecar(starved["pod"])["restartCount"], 0)


class Chart(unittest.TestCase):
    def test_helm_test(self):
        name, space = cluster_job.release()
        values = json.loads(helm("get", "values", name, "-n", space, "-a", "-o", "json").stdout)
        self.assertLess(values["test"]["timeoutSeconds"], 300, "on a full pool helm gives up first, and says nothing of slots")
        done = helm("test", name, "-n", space, "--timeout", "5m")
        self.assertRegex(done.stdout, r"Phase:\s+Succeeded")
        self.assertEqual(get_object(f"{cluster_job.API}/{space}/bspjobs/{name}-test"), None)

    def test_runtime_is_copied_without_image_volumes(self):
        name, space = cluster_job.release()
        was = json.loads(helm("get", "values", name, "-n", space, "-a", "-o", "json").stdout)["runtime"]["delivery"]

        def deliver(how):
            helm("upgrade", name, cluster_job.CHART, "-n", space, "--reuse-values", "--set", f"runtime.delivery={how}", "--wait")
        self.addCleanup(deliver, was)
        deliver("Copy")
        command = until_told()
        with Namespace("e2e-copied") as jobs, job_of(jobs, bsp_job("copied", command, sets={"names": ["slow", "fast", "medium"]})) as job:
            job.wait_for_superstep(5)
            for pod in job.pods().values():
                self.assertIn("bsp-runtime", [c["name"] for c in pod["spec"]["initContainers"]])
                self.assertFalse([v for v in pod["spec"]["volumes"] if "image" in v])
            job.migrate("on", 0, targetSet="medium")
            self.assertEqual(job.wait_for_migration("on")["phase"], "Succeeded", job.migration("on"))
            job.tell()
            self.assertEqual(job.ended()["phase"], "Succeeded", job.summary())
            self.assertEqual(field_of(job.log(0)), sequential_field(command, job.log(0)), job.summary())

    def test_probes_and_metrics(self):
        pods = cluster_job.operator_pods()
        self.assertEqual(len(pods), 2)
        self.assertIn(cluster_job.leader(), pods)
        self.assertIn("bsp_operator_leader 1", cluster_job.read_from(cluster_job.leader(), 8080, "/metrics"))
        for pod in pods:
            self.assertIn("ok", cluster_job.read_from(pod, 8081, "/healthz"))

    def test_operator_meets_the_restricted_standard(self):
        with Namespace("e2e-strict", level="restricted") as space:
            for pod in cluster_job.operator_pods().values():
                again = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "again"},
                         "spec": {**{k: v for k, v in pod["spec"].items() if k not in ("serviceAccountName", "serviceAccount")}, "volumes": [],
                                  "containers": [{**c, "volumeMounts": []} for c in pod["spec"]["containers"]]}}
                self.assertIn("created", space.apply(again, words=("--dry-run=server",)).stdout)


if __name__ == "__main__":
    cluster_job.need_cluster()
    sys.exit(unittest.main(verbosity=2))
