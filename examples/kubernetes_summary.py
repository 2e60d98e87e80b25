#!/usr/bin/env python3
"""kubernetes_summary.py JOB.json MIGRATIONS.json PODS.json LOG > SUMMARY.json: the equivalent of
`bsp-operator local run --summary` for a job that ran in a cluster.

JOB.json is `kubectl get bspjob NAME -o json`, MIGRATIONS.json and PODS.json the lists of its RankMigrations and pods, LOG the
output of rank 0's last pod. The makespan is the time that the program ran in the pod of a rank that never moved, as its
kubelet reports it (in whole seconds); null if there is none.
"""
import datetime
import json
import sys


def time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def makespan(pods, moved):
    """Seconds from start to end of the app container of the first rank that is not in `moved`."""
    for pod in pods:
        labels = pod["metadata"]["labels"]
        if int(labels["migbsp.io/rank"]) in moved:
            continue
        for status in pod["status"].get("containerStatuses", []):
            ended = status.get("state", {}).get("terminated", {})
            if status["name"] == "app" and ended.get("startedAt") and ended.get("finishedAt"):
                return (time(ended["finishedAt"]) - time(ended["startedAt"])).total_seconds()
    return None


def move(migration):
    status = migration.get("status", {})
    return {"rank": migration["spec"]["rank"], "from": status.get("sourceSet"), "to": status.get("targetSet"),
            "phase": status.get("phase"), "message": status.get("message"),
            "predicted_gain_s": status.get("predictedGainSeconds"), "realised_gain_s": status.get("realisedGainSeconds"),
            "bytes": status.get("bytes", 0)}


def waves(migrations):
    """The waves; moves to the same epoch share one pause."""
    found = {}
    for migration in migrations:
        status = migration.get("status", {})
        pause = status.get("pause", {})
        wave = found.setdefault(status.get("toEpoch", 0), {
            "epoch": status.get("toEpoch", 0), "moves": 0, "pause_ms": pause.get("totalMs", 0),
            "parts_ms": {name.removesuffix("Ms"): ms for name, ms in pause.items() if name != "totalMs"}})
        wave["moves"] += 1
    return [found[epoch] for epoch in sorted(found)]


def main():
    job, migrations, pods = (json.load(open(name)) for name in sys.argv[1:4])
    migrations = [m for m in migrations["items"] if m["spec"]["job"] == job["metadata"]["name"]]
    status = job.get("status", {})
    json.dump({"phase": status.get("phase"), "message": status.get("message"),
               "makespan_s": makespan(pods["items"], {m["spec"]["rank"] for m in migrations}),
               "supersteps": status.get("superstep"), "rank0_output": open(sys.argv[4]).read().splitlines(),
               "migrations": [move(m) for m in migrations], "waves": waves(migrations)}, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
