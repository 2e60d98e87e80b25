#!/usr/bin/env python3
"""How long from `kubectl apply` to the last rank's first line, beside as many bare pods of the same image and command.

2, 8 and 16 ranks on three nodes, the two kinds in turn. The moment of a line is what containerd has written before it: nodes and this
program share a clock. The ratio is that of neighbouring runs; printed are medians. What a job adds to its pods: a native sidecar each, a
Secret each with a certificate, and a container that tells the image's user unless the template names one (it does here).
"""
import datetime
import json
import pathlib
import statistics
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "e2e"))
from cluster_job import Namespace, api, kubectl, look, need_cluster, wait_for  # noqa: E402
from local_job import TREE  # noqa: E402

RANKS, ROUNDS, GOAL = (2, 8, 16), 3, 1.5
CONTAINER = {"name": "app", "image": "localhost/bsp-apps:dev", "securityContext": {"runAsUser": 1000, "runAsGroup": 1000},
             "resources": {"requests": {"cpu": "10m"}}}
FIRST = "echo here; exec "


def bare(ranks):
    app = {**CONTAINER, "command": ["sh", "-c", FIRST + "sleep 600"]}
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"bare-{rank}", "labels": {"bench": "starts"}},
             "spec": {"hostUsers": False, "terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [app]}}
            for rank in range(ranks)]


def job(ranks):
    app = {**CONTAINER, "command": ["sh", "-c", FIRST + "lattice_boltzmann --width 128 --height 32 --supersteps 1000000"]}
    return [{"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "metadata": {"name": "starts"},
             "spec": {"ranks": ranks, "rescheduling": {"mode": "Off"}, "initialMapping": "RoundRobin", "runPolicy": {"backoffLimit": 0},
                      "template": {"metadata": {"labels": {"bench": "starts"}}, "spec": {"containers": [app]}}}}]


def pods(space):
    return look(f"/api/v1/namespaces/{space.name}/pods?labelSelector={urllib.parse.quote('bench=starts')}", {}).get("items", [])


def first_line(space, pod):
    """When the program wrote it, in seconds since 1970."""
    connection = api().open(30)
    connection.request("GET", f"/api/v1/namespaces/{space.name}/pods/{pod}/log?container=app&timestamps=true&limitBytes=200")
    text = connection.getresponse().read().decode().split()[0]
    connection.close()
    return datetime.datetime.fromisoformat(text[:26].rstrip("Z") + "+00:00").timestamp()


def running(space, ranks):
    found = pods(space)
    up = [p for p in found if any(c["name"] == "app" and "running" in c["state"] for c in p["status"].get("containerStatuses", []))]
    return [p["metadata"]["name"] for p in up] if len(up) == ranks else None


def measure(space, objects, ranks):
    """Seconds from apply to the last first line; for a job also to the phase Running."""
    began = time.time()
    space.apply(*objects)
    names = wait_for(f"{ranks} running pods", lambda: running(space, ranks), 180)
    took = max(first_line(space, name) for name in names) - began
    space.kubectl("delete", "-f", "-", "--timeout=120s", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    wait_for("the pods to be gone", lambda: not pods(space), 120)
    return took


def main():
    need_cluster()
    figures = []
    with Namespace("bench-starts") as space:
        measure(space, job(2), 2)  # the first one pays for what stays in memory
        print("ranks   bare pods   BSPJob   ratio   (medians of {}; goal {})".format(ROUNDS, GOAL))
        for ranks in RANKS:
            rounds = [(measure(space, bare(ranks), ranks), measure(space, job(ranks), ranks)) for _ in range(ROUNDS)]
            of_pods, of_job = (statistics.median(column) for column in zip(*rounds))
            ratio = statistics.median(b / a for a, b in rounds)
            print(f"{ranks:5}   {of_pods:7.2f} s   {of_job:5.2f} s   {ratio:5.2f}", flush=True)
            figures.append({"ranks": ranks, "bare_s": of_pods, "job_s": of_job, "ratio": ratio, "rounds": rounds})
    out = TREE / "build/bench"
    out.mkdir(parents=True, exist_ok=True)
    (out / "kubernetes_starts.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
