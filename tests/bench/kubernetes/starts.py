#!/usr/bin/env python3
"""Time from `kubectl apply` to the last rank's first line, compared with as many bare pods of the same image and command.

2, 8 and 16 ranks on three nodes, three kinds in turn: bare pods; pods of the same shape as a job's (a native sidecar, an image volume, a
tmpfs) without the operator's programs; the job. The time of a line is containerd's timestamp: nodes and this program share a clock.
Ratios compare neighbouring runs; the output shows medians. Beyond the shape, a job has working programs, a Secret with certificates,
and a container that reports the image's user unless the template names one (it does here).
"""
import datetime
import json
import pathlib
import statistics
import sys
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "e2e"))
from cluster_job import Namespace, api, kubectl, get_object, need_cluster, wait_for  # noqa: E402
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


def shaped(ranks):
    """The time that the kubelet alone takes for pods like a job's."""
    tmpfs, runtime = {"name": "run", "mountPath": "/run/bsp"}, {"name": "runtime", "mountPath": "/bsp", "readOnly": True}
    sidecar = {**CONTAINER, "name": "sidecar", "command": ["sleep", "600"], "restartPolicy": "Always", "volumeMounts": [tmpfs]}
    pods = bare(ranks)
    for pod in pods:
        pod["spec"]["initContainers"] = [sidecar]
        pod["spec"]["containers"] = [{**pod["spec"]["containers"][0], "volumeMounts": [tmpfs, runtime]}]
        pod["spec"]["volumes"] = [{"name": "run", "emptyDir": {"medium": "Memory"}},
                                  {"name": "runtime", "image": {"reference": "localhost/bsp-runtime:dev", "pullPolicy": "IfNotPresent"}}]
    return pods


def job(ranks):
    app = {**CONTAINER, "command": ["sh", "-c", FIRST + "lattice_boltzmann --width 128 --height 32 --supersteps 1000000"]}
    return [{"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "metadata": {"name": "starts"},
             "spec": {"ranks": ranks, "rescheduling": {"mode": "Off"}, "initialMapping": "RoundRobin", "runPolicy": {"backoffLimit": 0},
                      "template": {"metadata": {"labels": {"bench": "starts"}}, "spec": {"containers": [app]}}}}]


def pods(space):
    return get_object(f"/api/v1/namespaces/{space.name}/pods?labelSelector={urllib.parse.quote('bench=starts')}", {}).get("items", [])


def first_line(space, pod):
    """When the program wrote its first line, in seconds since 1970. A container counts as running slightly earlier."""
    def first_line():
        connection = api().open(30)
        connection.request("GET", f"/api/v1/namespaces/{space.name}/pods/{pod}/log?container=app&timestamps=true&limitBytes=200")
        text = connection.getresponse().read().decode().split()
        connection.close()
        return text[0] if text else None
    at = wait_for(f"the first line of {pod}", first_line, 60)
    return datetime.datetime.fromisoformat(at[:26].rstrip("Z") + "+00:00").timestamp()


def running(space, ranks):
    found = pods(space)
    up = [p for p in found if any(c["name"] == "app" and "running" in c["state"] for c in p["status"].get("containerStatuses", []))]
    return [p["metadata"]["name"] for p in up] if len(up) == ranks else None


def measure(space, objects, ranks):
    """Seconds from apply to the last rank's first line; for a job also to the phase Running."""
    began = time.time()
    space.apply(*objects)
    names = wait_for(f"{ranks} running pods", lambda: running(space, ranks), 180)
    took = max(first_line(space, name) for name in names) - began
    space.kubectl("delete", "-f", "-", "--timeout=120s", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    wait_for("the pods to be gone", lambda: not pods(space), 120)
    return took


def main():
    need_cluster()
    results = []
    with Namespace("bench-starts") as space:
        measure(space, job(2), 2)  # the first one fills caches
        print(f"ranks   bare pods   same shape   BSPJob   to bare pods   to the shape   (medians of {ROUNDS}; goal {GOAL} to bare pods)")
        for ranks in RANKS:
            rounds = [[measure(space, kind(ranks), ranks) for kind in (bare, shaped, job)] for _ in range(ROUNDS)]
            of_pods, of_shape, of_job = (statistics.median(column) for column in zip(*rounds))
            to_bare, to_shape = (statistics.median(took[2] / took[i] for took in rounds) for i in (0, 1))
            print(f"{ranks:5}   {of_pods:7.2f} s   {of_shape:8.2f} s   {of_job:4.2f} s   {to_bare:12.2f}   {to_shape:12.2f}", flush=True)
            results.append({"ranks": ranks, "bare_s": of_pods, "shape_s": of_shape, "job_s": of_job, "ratio": to_bare, "to_shape": to_shape,
                            "rounds": rounds})
    out = TREE / "build/bench"
    out.mkdir(parents=True, exist_ok=True)
    (out / "kubernetes_starts.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
