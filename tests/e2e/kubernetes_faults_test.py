#!/usr/bin/env python3
"""Cluster faults while a rank moves: in each phase of a migration a part of the cluster or of the job fails. Two copies of a rank must
never be able to compute at the same time: the test watches this machine's processes, and the program stamps for the auditor
(tests/audit). The migration must end, and the job must end with the sequential program's field, or Failed with a reason. A fault that
strikes no rank (the operator, the control plane, a kubelet, the target) must not restart the job.

Each case is a separate job, which starts when every node is Ready. Rank 0 is moved by hand from slow to medium, whose only node,
medium-1, holds nothing else of the job. A fault point (base/core/fault.h) delays a sidecar by 2.5 s in the middle of the phase; the fault happens then.

kubernetes_faults_test.py                    today's sixth of the cases (today.py)
kubernetes_faults_test.py all                all cases, a minute each
kubernetes_faults_test.py FAULT[:PHASE] …    these cases
"""
import itertools
import json
import sys
import time
import unittest

import cluster_job
import cluster_nodes
from cluster_job import ClusterJob, Namespace, api, bsp_job, field_of, job_of, get_object, node_sh, sequential_field, wait_for, wait_for_nodes
from local_job import PHASES, on_host
from stamps import Stamps, stamping
from today import PARTS, number_of_today, part_of

TARGET = "medium-1"
# For each phase, a point in the middle of it and the side that passes it. RollingBack begins when the target is evicted while it
# verifies its checkpoint; the source then prepares the rollback epoch.
HOLD = {"Preparing": ("target", "epoch.prepare"), "Pausing": ("source", "gate.armed"), "Checkpointing": ("source", "transfer.sending"),
        "Transferring": ("target", "transfer.verified"), "Restoring": ("target", "restore.begin"), "Resuming": ("target", "epoch.open")}
ROLLBACK = ("source", "epoch.prepare")
# From here on only the target may run the rank: if it is lost the job restarts, unless the source can be named again (operator/migrate).
AFTER_COMMIT = ("Resuming",)
TARGET_HAS_ALL = ("Restoring", "Resuming")  # the source is no longer needed


# --- The faults. Each takes the case, causes the fault, and repairs what it must. ---------------------------------------------------------

def operator_killed(case):
    case.assertTrue(cluster_nodes.kill_process("bsp-operator", HOSTNAME=cluster_job.leader()))


def apiserver_restarted(_):
    node_sh("kill", "control", "apiserver")


def etcd_paused(_):
    node_sh("pause", "control", "etcd")
    time.sleep(20)  # this is the fault
    node_sh("resume", "control", "etcd")


def repair_node(verb, node):
    node_sh(verb, node)
    wait_for_nodes()


def node_killed(case):
    case.later(lambda: repair_node("start", TARGET))
    node_sh("kill", TARGET)


def node_cut_off(case):
    case.later(lambda: repair_node("join", TARGET))
    node_sh("cut", TARGET)


# A job that restarts needs the nodes of its ranks, so they return as soon as the migration has ended.
def rank_node_killed(rank):
    def strike(case):
        node = case.node_of[rank]
        case.after_migration.append(lambda: repair_node("start", node))
        node_sh("kill", node)
    return strike


def rank_node_cut_off(rank):
    def strike(case):
        node = case.node_of[rank]
        case.after_migration.append(lambda: repair_node("join", node))
        node_sh("cut", node)
    return strike


def kubelet_restarted(_):
    node_sh("kill", TARGET, "kubelet")


def target_evicted(case):
    case.evict(case.migration().get("targetPod") or case.target_name)


def source_sidecar_killed(case):
    case.assertTrue(cluster_nodes.kill_process("bsp-sidecar", BSP_POD=case.source))


def target_sidecar_killed(case):
    case.assertTrue(cluster_nodes.kill_process("bsp-sidecar", BSP_POD=case.target_name))


def bystander_sidecar_killed(case):
    case.assertTrue(cluster_nodes.kill_process("bsp-sidecar", BSP_POD=case.bystander))


def bystander_evicted(case):
    case.evict(case.bystander)


FAULTS = {"operator-killed": operator_killed, "apiserver-restarted": apiserver_restarted, "etcd-paused": etcd_paused,
          "node-killed": node_killed, "node-cut-off": node_cut_off, "kubelet-restarted": kubelet_restarted,
          "target-evicted": target_evicted, "source-sidecar-killed": source_sidecar_killed,
          "target-sidecar-killed": target_sidecar_killed, "source-node-killed": rank_node_killed(0),
          "source-node-cut-off": rank_node_cut_off(0), "bystander-node-killed": rank_node_killed(1),
          "bystander-node-cut-off": rank_node_cut_off(1), "bystander-sidecar-killed": bystander_sidecar_killed,
          "bystander-evicted": bystander_evicted}
# These exist before the target does, and end the move in Preparing.
BEFOREHAND = ["image-missing", "quota-reached"]
# These cost no attempt in any phase, because they strike no rank.
NO_RANK = ["operator-killed", "apiserver-restarted", "etcd-paused", "kubelet-restarted", "image-missing", "quota-reached"]
# These strike the target, which is not needed before the commit.
ONLY_TARGET = ["node-killed", "node-cut-off", "target-evicted", "target-sidecar-killed"]
# A rank outlives its sidecar, except while an epoch opens (sidecar/agent/README.md).
ONLY_SIDECAR = ["source-sidecar-killed", "bystander-sidecar-killed"]
# These strike the source's node, which isn't needed once the target holds the whole checkpoint.
ONLY_SOURCE = ["source-node-killed", "source-node-cut-off"]
# The rollback was caused by the target's loss, so another fault of the target has no effect.
WHILE_ROLLING_BACK = [fault for fault in FAULTS if not fault.startswith(("target", "node"))]
# The target's end is certain, and because it was delayed at its first step into the new epoch, no other rank has entered it: the source
# continues.
BACK_TO_THE_SOURCE = [("target-evicted", "Resuming")]
CASES = [*itertools.product(FAULTS, PHASES), *((fault, "RollingBack") for fault in WHILE_ROLLING_BACK),
         *((fault, "Preparing") for fault in BEFOREHAND)]
SHARED = "/opt/cluster/shared"  # the same directory on each node (tests/cluster/up.sh)
HERE_ONLY = "localhost/bsp-e2e-here:1"  # bsp-apps under a name that TARGET's node doesn't have


def image_everywhere_but_there():
    for node in cluster_nodes.machines():
        if node in ("control", "door", "kwok"):
            continue
        ctr = ["podman", "exec", cluster_nodes.container_of(node), "/opt/cluster/bin/ctr", "-n", "k8s.io", "images"]
        on_host(*ctr, "rm", HERE_ONLY)
        if node != TARGET:
            done = on_host(*ctr, "tag", "localhost/bsp-apps:dev", HERE_ONLY)
            assert done.returncode == 0, done.stderr


def stamps_of(name):
    return Stamps(name, cluster_job.STATE / "run/shared", SHARED)


class Missed(Exception):
    """The move had passed the fault point before it could be armed: no fault happened."""


class Case:
    """One fault in one phase of one job's migration."""

    def __init__(self, test, space, fault, phase):
        self.test, self.space, self.fault, self.phase = test, space, fault, phase
        self.assertTrue, self.assertIn, self.assertEqual = test.assertTrue, test.assertIn, test.assertEqual
        self.name = f"{fault}-{phase}".lower()
        self.target_name = f"{self.name}-r0-g1"
        self.afterwards, self.after_migration = [], []
        self.stamps = stamps_of(self.name)
        self.command = self.stamps.stamping_until_told()

    def later(self, repair):
        """Registers a repair to call when the job has ended."""
        self.afterwards.append(repair)

    def migration(self):
        return self.job.migration(self.name)

    def evict(self, pod):
        path = f"/api/v1/namespaces/{self.space.name}/pods/{pod}"
        status, answer = api().ask("POST", f"{path}/eviction", {"apiVersion": "policy/v1", "kind": "Eviction",
                                                                "metadata": {"name": pod, "namespace": self.space.name}})
        self.assertIn(status, (200, 201), answer)

    def manifest(self):
        manifest = bsp_job(self.name, self.command, annotations={"migbsp.io/fault-points": "enabled"},
                           sets={"names": ["slow", "fast", "medium"]}, runPolicy={"backoffLimit": 3, "cleanPodPolicy": "Running", "drainTimeoutSeconds": 0})  # no budget
        if self.fault == "image-missing":
            manifest["spec"]["template"]["spec"]["containers"][0]["image"] = HERE_ONLY
        self.stamps.into(manifest["spec"]["template"]["spec"])
        return manifest

    def run(self):
        """Runs the case and returns its outcome in one line."""
        if self.fault == "image-missing":
            image_everywhere_but_there()
        wait_for_nodes()
        self.job = ClusterJob(self.space, self.manifest())
        try:
            with self.stamps, cluster_nodes.Copies(self.name) as self.copies:
                self.job.wait_for_superstep(3)
                ranks = self.job.status()["ranks"]
                self.source, self.bystander = ranks[0]["pod"], ranks[1]["pod"]
                self.node_of = [place["node"] for place in ranks]
                self.test.assertNotIn(TARGET, self.node_of)
                outcome = self.strike()
                self.stamps.tell()
                ended = self.job.ended(420)
                self.assertEqual(self.stamps.findings(), [])
            self.assertEqual(self.copies.two, [], "two copies of a rank could compute")
            return f"{outcome}; {self.check(ended)}"
        finally:
            for repair in self.after_migration + self.afterwards:
                repair()
            self.job.delete("--ignore-not-found", "--timeout=120s")
            self.space.kubectl("delete", "rankmigration", self.name, "--ignore-not-found")  # a retry uses the same name
            self.space.kubectl("delete", "resourcequota", "--all")

    def strike(self):
        if self.fault == "quota-reached":
            self.space.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "full"}, "spec": {"hard": {"pods": "2"}}})
            wait_for("the quota to be counted", lambda: self.quota().get("used", {}).get("pods") == "2", 30)
        if self.fault in BEFOREHAND:
            self.job.migrate(self.name, 0, targetSet="medium")
            ended = self.job.wait_for_migration(self.name, seconds=200)
            self.assertIn("exceeded quota" if self.fault == "quota-reached" else "bsp-e2e-here", ended["message"])
            return f"{ended['phase']}: {ended['message'][:80]}"
        side, point = HOLD.get(self.phase, HOLD["Transferring"])
        self.nodes = cluster_nodes.machines()
        if side == "source":
            armed = self.hold(side, point)
        self.job.migrate(self.name, 0, targetSet="medium")
        if side == "target":
            armed = self.hold(side, point)
        self.wait_until_held(armed, point)
        wait_for(f"the target {self.target_name}", lambda: self.job.pods().get(self.target_name), 30)
        if self.phase == "RollingBack":
            armed = self.hold(*ROLLBACK)
            target_evicted(self)
            self.wait_until_held(armed, ROLLBACK[1])
        FAULTS[self.fault](self)
        ended = self.job.wait_for_migration(self.name, seconds=200)
        while self.after_migration:
            self.after_migration.pop(0)()
        if (self.fault, self.phase) in BACK_TO_THE_SOURCE:
            self.assertEqual(ended["phase"], "RolledBack", ended)
        return f"struck in {self.phase}: {ended['phase']}"

    def hold(self, side, point):
        """Delays the sidecar of that side by 2.5 s at the point."""
        pod = self.source if side == "source" else self.target_name
        return cluster_nodes.arm(lambda: self.job.pods().get(pod), point, "stop:2500", self.nodes)

    def wait_until_held(self, armed, point):
        wait_for(f"{point} to be passed", lambda: cluster_nodes.has_fired(armed) or "completionTime" in self.migration(), 120,
                 detail=lambda: f"{self.migration()} {self.job.summary()}")
        if not cluster_nodes.has_fired(armed):
            raise Missed(f"{self.migration()['phase']} without passing {point}")

    def quota(self):
        return get_object(f"/api/v1/namespaces/{self.space.name}/resourcequotas/full", {}).get("status", {})

    def check(self, ended):
        attempts = ended.get("attempt", 0)
        if ended["phase"] == "Succeeded":
            self.assertEqual(field_of(self.job.log(0)), sequential_field(self.command, self.job.log(0)), self.job.summary())
        else:
            for restart in ended["restarts"]:
                self.assertTrue(restart["reason"] and restart["message"], ended["restarts"])
        harmless = (self.fault in NO_RANK or (self.fault, self.phase) in BACK_TO_THE_SOURCE or
                    (self.fault in ONLY_TARGET + ONLY_SIDECAR and self.phase not in AFTER_COMMIT) or
                    (self.fault in ONLY_SOURCE and self.phase in TARGET_HAS_ALL))
        if harmless:
            self.assertEqual((ended["phase"], attempts), ("Succeeded", 0), self.job.summary())
        for restart in ended.get("restarts", []):
            self.assertIn("rank", restart["message"], restart)
        return f"{ended['phase']}, {attempts} restarts {[r['reason'] for r in ended.get('restarts', [])]}"


class Faults(unittest.TestCase):
    cases = CASES

    def strike(self, space, fault, phase):
        for again in range(3):
            try:
                return Case(self, space, fault, phase).run()
            except Missed:
                if again == 2:
                    raise

    def test_forged_copy_is_found(self):
        """Proves that the auditor would find a rank that ran twice in two pods of this cluster."""
        with Namespace("e2e-forged") as space, stamps_of("forged") as stamps:
            manifest = bsp_job("forged", stamping(1000000))
            stamps.into(manifest["spec"]["template"]["spec"])
            with job_of(space, manifest) as job:
                job.wait_for_superstep(3)
                self.assertEqual(stamps.findings(), [])
                other = job.status()["ranks"][1]["pod"]
                forged = cluster_job.kubectl("exec", "-n", space.name, other, "-c", "app", "--", *stamps.forgery(rank=0), check=False)
                self.assertIn("exit code 124", forged.stderr)
                found = wait_for("the forged copy to be found", stamps.findings, 30)
                self.assertRegex("\n".join(found), f"^rank 0 ran twice for [0-9.]+ ms: in [^\n]*{other}[^\n]*$")

    def test_every_fault_in_every_phase(self):
        done = 0
        with Namespace("e2e-faults") as space:
            for fault, phase in self.cases:
                done += 1
                with self.subTest(fault=fault, phase=phase):
                    started, outcome = time.monotonic(), "interrupted"
                    try:
                        outcome = self.strike(space, fault, phase)
                    except Exception as error:
                        outcome = f"FAILED: {error}"[:500]
                        raise
                    finally:
                        print(f"{fault:>22} {phase:<14} {outcome}  {time.monotonic() - started:.0f} s", flush=True)
            wait_for("the operator to be whole again",
                     lambda: cluster_job.leader() in cluster_job.operator_pods() and all(
                         c["ready"] for p in cluster_job.operator_pods().values() for c in p["status"].get("containerStatuses", [])), 180,
                     detail=lambda: json.dumps({name: p["status"] for name, p in cluster_job.operator_pods().items()}))
        if not done:
            cluster_job.skip("no time was left for any case")


if __name__ == "__main__":
    cluster_job.need_cluster()
    if not sys.argv[1:]:
        part = number_of_today()
        Faults.cases = part_of(CASES, part)
        print(f"part {part} of {PARTS} (of the date, or BSP_FAULTS_PART): {len(Faults.cases)} of {len(CASES)} cases", flush=True)
    elif sys.argv[1:] != ["all"]:
        Faults.cases = [case for case in CASES if any(":".join(case).startswith(word) for word in sys.argv[1:])]
    sys.exit(unittest.main(argv=sys.argv[:1], verbosity=2))
