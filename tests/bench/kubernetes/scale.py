#!/usr/bin/env python3
"""How the operator scales: 1,000 jobs of 10 ranks, and one of 1,000, on nodes simulated by KWOK; compared with a ReplicaSet of 1,000 pods.

scale.py [JOBS]. The pods become Running but no sidecar answers in them, so the jobs stay Starting: everything up to that point is
measured. Pods per second come from the pods' creation times, requests from the operator's metric; p99 is that of its reconciles. Its
memory is read when all pods exist. Then the leader is killed, the other replica takes over and reconciles every job again: anything it
writes is unnecessary. All this takes longer than the usual start timeout: install the operator with jobs.startTimeoutSeconds=7200.
"""
import collections
import concurrent.futures
import datetime
import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "e2e"))
from cluster_job import Api, Namespace, kubectl, leader, get_object, need_cluster, release, wait_for  # noqa: E402
from local_job import TREE, on_host  # noqa: E402

FAKE = {"key": "kwok.x-k8s.io/node", "operator": "Exists"}
APP = {"name": "app", "image": "nothing", "command": ["nothing"], "securityContext": {"runAsUser": 1000},
       "resources": {"requests": {"cpu": "10m"}}}
SPEC = {"tolerations": [FAKE], "nodeSelector": {"kwok.x-k8s.io/node": "fake"}, "containers": [APP]}


def job(name, ranks):
    return {"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "metadata": {"name": name, "labels": {"bench": "scale"}},
            "spec": {"ranks": ranks, "rescheduling": {"mode": "Off"}, "sets": {"label": "migbsp.io/set"}, "initialMapping": "RoundRobin",
                     "template": {"spec": SPEC}}}


def metrics():
    """The leader's metrics, {name: value}; labels are part of a name."""
    text = kubectl("get", "--raw", f"/api/v1/namespaces/{release()[1]}/pods/{leader()}:8080/proxy/metrics", check=False).stdout
    return {m[1]: float(m[2]) for m in re.finditer(r"^(\w+(?:\{[^}]*\})?) (\S+)$", text, re.M)}


def writes():
    """Modifying requests of all clients for kinds that the operator owns, from the API server's metric: {request: count}."""
    text = kubectl("get", "--raw", "/metrics").stdout
    found = re.finditer(r'^apiserver_request_total\{([^}]*)\} (\S+)$', text, re.M)
    total = collections.Counter()
    for labels, count in ((dict(re.findall(r'(\w+)="([^"]*)"', m[1])), float(m[2])) for m in found):
        ours = labels["resource"] in ("bspjobs", "rankmigrations", "secrets") or (labels["resource"] == "pods" and not labels["subresource"])
        if ours and labels["verb"] in ("POST", "PUT", "PATCH", "APPLY", "DELETE"):
            total[" ".join(labels[name] for name in ("verb", "resource", "subresource") if labels[name])] += int(count)
    return total


def p99(after, before):
    """Upper bound in seconds of 99 % of the reconciles in between."""
    bounds = sorted(((float(re.search(r'le="([^"]+)"', name)[1]), name) for name in after if "reconcile_seconds_bucket" in name))
    counts = [(bound, after[name] - before.get(name, 0)) for bound, name in bounds]
    return next(bound for bound, count in counts if count >= 0.99 * counts[-1][1])


def created(space):
    """Creation times of all pods of a namespace, in seconds, sorted. They come in pieces: ten thousand at once are 100 MB."""
    times, token = [], ""
    while True:
        page = get_object(f"/api/v1/namespaces/{space.name}/pods?limit=500&continue={token}", {})
        times += [datetime.datetime.fromisoformat(p["metadata"]["creationTimestamp"].replace("Z", "+00:00")).timestamp()
                  for p in page.get("items", [])]
        token = page.get("metadata", {}).get("continue", "")
        if not token:
            return sorted(times)


def count(space):
    page = get_object(f"/api/v1/namespaces/{space.name}/pods?limit=1", {})
    return len(page.get("items", [])) + page.get("metadata", {}).get("remainingItemCount", 0)


def rate(times):
    return (len(times) - 1) / max(1.0, times[-1] - times[0])


def replica_set(space, pods):
    space.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "yardstick"},
                 "spec": {"replicas": pods, "selector": {"matchLabels": {"of": "yardstick"}},
                          "template": {"metadata": {"labels": {"of": "yardstick"}}, "spec": SPEC}}})
    wait_for(f"{pods} pods of a ReplicaSet", lambda: count(space) >= pods, 300)
    return rate(created(space))


def create(space, number, ranks, together=8):
    """Several at a time: otherwise sequential kubectl processes would be the bottleneck."""
    def some(first):
        mine = Api()
        for i in range(first, number, together):
            status, answer = mine.ask("POST", f"/apis/migbsp.io/v1alpha1/namespaces/{space.name}/bspjobs", job(f"j{i}", ranks))
            assert status == 201, answer
    with concurrent.futures.ThreadPoolExecutor(together) as pool:
        list(pool.map(some, range(together)))


def jobs(space, number, ranks):
    before = metrics()
    began = time.monotonic()
    create(space, number, ranks)
    applied = time.monotonic() - began
    wait_for(f"{number * ranks} pods", lambda: count(space) >= number * ranks, 1800)
    after = metrics()
    return {"jobs": number, "ranks": ranks, "pods_per_s": rate(created(space)), "applied_s": applied,
            "requests_per_pod": (after["bsp_operator_api_requests_total"] - before["bsp_operator_api_requests_total"]) / (number * ranks),
            "reconcile_p99_s": p99(after, before), "resident_mib": after["process_resident_memory_bytes"] / 2**20}


def quiet():
    before = writes()
    time.sleep(10)
    return writes() == before


def looked_at_again(number):
    """Writes of the next leader, until it has reconciled every job twice. Waits before until the last pods are scheduled and the jobs show it."""
    wait_for("ten seconds without a write", quiet, 600)
    old, before = leader(), writes()
    kubectl("delete", "pod", old, "-n", release()[1], "--wait=false")
    wait_for("another leader", lambda: leader() not in ("", old) and metrics().get("bsp_operator_leader") == 1, 120)
    wait_for("it to have reconciled every job", lambda: metrics().get("bsp_operator_reconcile_seconds_count", 0) >= 2 * number, 600)
    return writes() - before - collections.Counter({"DELETE pods": 2, "POST pods": 1})  # of the leader's pod, by this script and by its kubelet


def show(name, found):
    print(f"{name}: {found['pods_per_s']:.0f} pods/s, {found['requests_per_pod']:.2f} requests per pod, 99 % of reconciles within "
          f"{found['reconcile_p99_s']} s, {found['resident_mib']:.0f} MiB resident", flush=True)


def main():
    need_cluster()
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    kwok = str(TREE / "tests/cluster/kwok.sh")
    up = on_host(kwok, "up", str(max(20, number * 10 // 100 + 15)))
    assert up.returncode == 0, up.stdout + up.stderr
    out = {}
    try:
        with Namespace("bench-yardstick") as space:
            out["replica_set_pods_per_s"] = replica_set(space, 1000)
            print(f"ReplicaSet controller: {out['replica_set_pods_per_s']:.0f} pods/s", flush=True)
        with Namespace("bench-one") as space:
            out["one"] = jobs(space, 1, 1000)
            show("one job of 1,000 ranks", out["one"])
            space.kubectl("delete", "bspjobs", "--all", "--timeout=600s", seconds=700)
        with Namespace("bench-many") as space:
            out["many"] = jobs(space, number, 10)
            show(f"{number} jobs of 10 ranks", out["many"])
            out["writes_when_looked_at_again"] = looked_at_again(number)
            print("every job reconciled again by another leader: " +
                  (", ".join(f"{n} {what}" for what, n in out["writes_when_looked_at_again"].items()) or "no write"), flush=True)
            space.kubectl("delete", "bspjobs", "--all", "--timeout=1500s", seconds=1600)
    finally:
        on_host(kwok, "down")
        directory = TREE / "build/bench"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "kubernetes_scale.json").write_text(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
