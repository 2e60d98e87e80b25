"""EvictionRequests of lifecycle.k8s.io/v1alpha1 in the test cluster, and what makes Evictions of them.

Kubernetes 1.37.2 serves both kinds, checks every write to them, and has no controller: evictionrequest-controller and the responder
imperative-eviction.k8s.io/evictor are in its types' comments only. Controller does what those comments ask of the two, so the API server
judges the operator's part as it will judge it beside theirs.
"""
import http.client
import threading
import time
import traceback

import cluster_job

GROUP = "lifecycle.k8s.io/v1alpha1"
OPERATOR, EVICTOR = "migbsp.io/operator", "imperative-eviction.k8s.io/evictor"
FINAL = ("TargetEvicted", "Failed")


def is_served():
    status, found = cluster_job.api().ask("GET", f"/apis/{GROUP}")
    return status == 200 and "evictionrequests" in [r["name"] for r in found.get("resources", [])]


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def named(objects, name):
    return next((each for each in objects if each["name"] == name), None)


def is_true(eviction, kind):
    return any(c["type"] == kind and c["status"] == "True" for c in eviction.get("status", {}).get("conditions", []))


def is_final(eviction):
    return any(is_true(eviction, kind) for kind in FINAL)


class Controller(threading.Thread):
    """Of one namespace. `refused` has every answer of the API server that the test doesn't expect."""

    def __init__(self, space):
        super().__init__(daemon=True)
        self.api, self.space = cluster_job.Api(), space
        self.path = f"/apis/{GROUP}/namespaces/{space}"
        self.refused, self.made = [], 0
        self.evicted = {}  # uid of an Eviction: when the pod was last asked to go
        self.end = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.end.set()
        self.join()
        if self.api.connection:
            self.api.connection.close()

    def run(self):
        while not self.end.wait(0.3):
            try:
                self.round()
            except (OSError, http.client.HTTPException):
                pass  # the next round asks again
            except Exception:  # a thread's failure is the test's
                self.refused.append(traceback.format_exc())
                return

    def items(self, path):
        return (self.api.get(path) or {}).get("items", [])

    def round(self):
        wanted = {}
        for request in self.items(f"{self.path}/evictionrequests"):
            spec = request["spec"]
            pod = spec["target"]["pod"]
            by = wanted.setdefault(pod["uid"], {"pod": pod, "by": {}})["by"]
            if by.get(spec["requester"]) != "Eviction":  # it may have made several
                by[spec["requester"]] = spec["intent"]
        pods = {p["metadata"]["uid"]: p for p in self.items(f"/api/v1/namespaces/{self.space}/pods")}
        evictions = self.items(f"{self.path}/evictions")
        busy = {e["spec"]["target"]["pod"]["uid"] for e in evictions if not is_final(e) or is_true(e, "TargetEvicted")}
        for uid, each in wanted.items():
            if uid in pods and uid not in busy and "Eviction" in each["by"].values():
                self.made += 1
                self.write("POST", f"{self.path}/evictions", {
                    "apiVersion": GROUP, "kind": "Eviction", "metadata": {"name": f"{each['pod']['name']}-{self.made}", "labels": {
                        **{by: "requester" for by in each["by"]}, **{r["name"]: "responder" for r in self.responders(pods[uid])}}},
                    "spec": {"target": {"pod": each["pod"]}}})
        for eviction in evictions:
            if not is_final(eviction):
                uid = eviction["spec"]["target"]["pod"]["uid"]
                self.advance(eviction, pods.get(uid), wanted.get(uid, {"by": {}})["by"])

    @staticmethod
    def responders(pod):
        return [*pod["spec"].get("evictionResponders", []), {"name": EVICTOR, "priority": 100}]

    def write(self, method, path, body):
        status, answer = self.api.ask(method, path, body)
        if status >= 400 and status != 409 and not (status == 404 and method == "PUT"):
            self.refused.append(f"{method} {path}: {status} {answer.get('message', '')}")

    def advance(self, eviction, pod, by):
        status = eviction.setdefault("status", {})
        before = repr(status)
        status["observedGeneration"] = eviction["metadata"]["generation"]
        intents = {r["name"]: "Withdrawn" for r in status.get("requesters", [])} | by
        status["requesters"] = [{"name": name, "intent": intents[name]} for name in sorted(intents)]
        if not status.get("targetResponders"):
            ordered = sorted(self.responders(pod), key=lambda r: -r["priority"]) if pod else []
            status["targetResponders"] = [{**r, "state": "Inactive" if i else "Active"} for i, r in enumerate(ordered)]
            status["responders"] = [{"name": r["name"], **({} if i else {"startTime": now()})} for i, r in enumerate(ordered)]
        states, parts = status["targetResponders"], status["responders"]
        active = next((r for r in states if r["state"] == "Active"), None)
        part = named(parts, active["name"]) if active else {}
        if not pod or pod["status"].get("phase") in ("Succeeded", "Failed"):
            self.end_by(status, active, "Completed" if "completionTime" in part else "Interrupted", TargetEvicted="PodDeleted")
        elif "Eviction" not in intents.values():
            self.end_by(status, active, "Canceled", Failed="CanceledDueToNoRequesters")
        elif "completionTime" in part:
            active["state"] = "Completed"
            following = next((r for r in states if r["state"] == "Inactive"), None)
            if following:
                following["state"] = "Active"
                named(parts, following["name"])["startTime"] = now()
            else:
                self.end_by(status, None, "", Failed="NoFurtherResponder")
        elif active and active["name"] == EVICTOR:
            self.evict(eviction, part)
        if repr(status) != before:
            self.write("PUT", f"{self.path}/evictions/{eviction['metadata']['name']}/status", eviction)

    def evict(self, eviction, part):
        uid, pod = eviction["metadata"]["uid"], eviction["spec"]["target"]["pod"]["name"]
        if time.monotonic() - self.evicted.get(uid, 0) < 2:
            return
        self.evicted[uid] = time.monotonic()
        status, answer = self.api.ask("POST", f"/api/v1/namespaces/{self.space}/pods/{pod}/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": self.space}})
        part["message"] = answer.get("message", "") if status != 201 else "the pod is asked to end"

    @staticmethod
    def end_by(status, active, state, **true):
        if active:
            active["state"] = state
        other = "EvictionFailed" if "Failed" in true else "Succeeded"
        status["conditions"] = [{"type": kind, "status": "True" if kind in true else "False", "reason": true.get(kind, other),
                                 "lastTransitionTime": now(), "message": ""} for kind in FINAL]


class Requests:
    """What requesters do, with kubectl, and what the Evictions say."""

    def __init__(self, space):
        self.space, self.path = space, f"/apis/{GROUP}/namespaces/{space.name}"

    def make(self, name, pod, requester="example.com/drainer"):
        uid = self.space.objects("pods")[pod]["metadata"]["uid"]
        spec = {"target": {"pod": {"name": pod, "uid": uid}}, "requester": requester, "intent": "Eviction"}
        self.space.apply({"apiVersion": GROUP, "kind": "EvictionRequest", "metadata": {"name": name}, "spec": spec}, verb="create")
        return uid

    def withdraw(self, name):
        self.space.kubectl("patch", "evictionrequests.lifecycle.k8s.io", name, "--type=merge", "-p", '{"spec": {"intent": "Withdrawn"}}')

    def remove(self, name):
        self.space.kubectl("delete", "evictionrequests.lifecycle.k8s.io", name)

    def of(self, uid):
        """The last Eviction of the pod with that uid; {} if there is none."""
        found = cluster_job.get_object(f"{self.path}/evictions", {}).get("items", [])
        found = [e for e in found if e["spec"]["target"]["pod"]["uid"] == uid]
        return max(found, key=lambda e: int(e["metadata"]["name"].rpartition("-")[2]), default={})

    def part(self, uid, name=OPERATOR):
        return named(self.of(uid).get("status", {}).get("responders", []), name) or {}

    def state(self, uid, name=OPERATOR):
        return (named(self.of(uid).get("status", {}).get("targetResponders", []), name) or {}).get("state", "")
