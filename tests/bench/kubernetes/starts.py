#!/usr/bin/env python3
"""Time from `kubectl apply` to the last rank's first line, compared with as many bare pods of the same image and command.

2, 8 and 16 ranks on three nodes, one rank a pod, three kinds in turn: bare pods; pods of the same shape as a job's (a native sidecar, an
image volume, a tmpfs) without the operator's programs; the job. Then 16 ranks on two nodes, three kinds in turn: two bare pods of eight
containers; the job with eight ranks in a pod; the job with one. The time of a line is containerd's timestamp: nodes and this program share
a clock. Ratios compare neighbouring runs; the output shows medians. Beyond the shape, a job has working programs, a Secret with
certificates, and a container that reports the image's user unless the template names one (it does here).
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
SEATS, NODES, GOAL_TO_PODS = 8, ("all-1", "all-2"), 0.5
CONTAINER = {"name": "app", "image": "localhost/bsp-apps:dev", "securityContext": {"runAsUser": 1000, "runAsGroup": 1000},
             "resources": {"requests": {"cpu": "10m"}}}
FIRST = "echo here; exec "


def on_two_nodes():
    names = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(NODES)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [names]}]}}}


def bare(ranks):
    app = {**CONTAINER, "command": ["sh", "-c", FIRST + "sleep 600"]}
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"bare-{rank}", "labels": {"bench": "starts"}},
             "spec": {"hostUsers": False, "terminationGracePeriodSeconds": 0, "restartPolicy": "Never", "containers": [app]}}
            for rank in range(ranks)]


def bare_seats(ranks):
    """As many containers in one pod a node, as the job with SEATS ranks in a pod has."""
    pods = bare(ranks // SEATS)
    for pod, node in zip(pods, NODES):
        app, = pod["spec"]["containers"]
        pod["spec"].update(nodeName=node, containers=[{**app, "name": f"app-{seat}" if seat else "app"} for seat in range(SEATS)])
    return pods


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


def job(ranks, seats=1, affinity=None):
    app = {**CONTAINER, "command": ["sh", "-c", FIRST + "lattice_boltzmann --width 128 --height 32 --supersteps 1000000"]}
    return [{"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "metadata": {"name": "starts"},
             "spec": {"ranks": ranks, "ranksPerPod": seats, "rescheduling": {"mode": "Off"}, "initialMapping": "RoundRobin", "runPolicy": {"backoffLimit": 0},
                      "template": {"metadata": {"labels": {"bench": "starts"}}, "spec": {"containers": [app], "affinity": affinity or {}}}}}]


def seated(ranks):
    return job(ranks, SEATS, on_two_nodes())


def unseated(ranks):
    return job(ranks, 1, on_two_nodes())


def pods(space):
    return get_object(f"/api/v1/namespaces/{space.name}/pods?labelSelector={urllib.parse.quote('bench=starts')}", {}).get("items", [])


def first_line(space, pod, container):
    """When the program wrote its first line, in seconds since 1970. A container counts as running slightly earlier."""
    def first_line():
        connection = api().open(30)
        connection.request("GET", f"/api/v1/namespaces/{space.name}/pods/{pod}/log?container={container}&timestamps=true&limitBytes=200")
        text = connection.getresponse().read().decode().split()
        connection.close()
        return text[0] if text else None
    at = wait_for(f"the first line of {pod}/{container}", first_line, 60)
    return datetime.datetime.fromisoformat(at[:26].rstrip("Z") + "+00:00").timestamp()


def running(space, ranks):
    """Pod and container of each rank, once all run."""
    up = [(pod["metadata"]["name"], container["name"]) for pod in pods(space) for container in pod["status"].get("containerStatuses", [])
          if "running" in container["state"]]
    return up if len(up) == ranks else None


def measure(space, objects, ranks):
    """Seconds from apply to the last rank's first line."""
    began = time.time()
    space.apply(*objects)
    places = wait_for(f"{ranks} running containers", lambda: running(space, ranks), 180)
    took = max(first_line(space, *place) for place in places) - began
    space.kubectl("delete", "-f", "-", "--timeout=120s", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    wait_for("the pods to be gone", lambda: not pods(space), 120)
    return took


def compared(space, kinds, ranks):
    """Each kind's seconds in each round."""
    return [[measure(space, kind(ranks), ranks) for kind in kinds] for _ in range(ROUNDS)]


def ratio(rounds, of, to):
    return statistics.median(took[of] / took[to] for took in rounds)


def main():
    need_cluster()
    results = []
    with Namespace("bench-starts") as space:
        measure(space, job(2), 2)  # the first one fills caches
        print(f"ranks   bare pods   same shape   BSPJob   to bare pods   to the shape   (medians of {ROUNDS}; goal {GOAL} to bare pods)")
        for ranks in RANKS:
            rounds = compared(space, (bare, shaped, job), ranks)
            of_pods, of_shape, of_job = (statistics.median(column) for column in zip(*rounds))
            to_bare, to_shape = ratio(rounds, 2, 0), ratio(rounds, 2, 1)
            print(f"{ranks:5}   {of_pods:7.2f} s   {of_shape:8.2f} s   {of_job:4.2f} s   {to_bare:12.2f}   {to_shape:12.2f}", flush=True)
            results.append({"ranks": ranks, "bare_s": of_pods, "shape_s": of_shape, "job_s": of_job, "ratio": to_bare, "to_shape": to_shape,
                            "rounds": rounds})
        ranks = SEATS * len(NODES)
        rounds = compared(space, (bare_seats, seated, unseated), ranks)
        of_bare, of_seats, of_pods = (statistics.median(column) for column in zip(*rounds))
        to_bare, to_pods = ratio(rounds, 1, 0), ratio(rounds, 1, 2)
        print(f"{ranks} ranks in {len(NODES)} pods: {of_seats:.2f} s; bare pods of {SEATS} containers {of_bare:.2f} s, {ranks} pods {of_pods:.2f} s; "
              f"{to_bare:.2f} to bare pods (goal {GOAL}), {to_pods:.2f} to {ranks} pods (goal {GOAL_TO_PODS})", flush=True)
        results.append({"ranks": ranks, "seats": SEATS, "bare_s": of_bare, "seats_s": of_seats, "pods_s": of_pods, "ratio": to_bare,
                        "to_pods": to_pods, "rounds": rounds})
    out = TREE / "build/bench"
    out.mkdir(parents=True, exist_ok=True)
    (out / "kubernetes_starts.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
