// The whole way of an object that a tenant has written, from JSON to everything that the operator makes of it: nothing on
// it may throw, and what is refused is refused with the field's path. Shared by a property test and a fuzz target.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/json/fields.h"
#include "crds/bspjob.h"
#include "crds/manifest.h"
#include "operator/kinds.h"
#include "operator/local/pod_plan.h"
#include "operator/local/pools.h"
#include "operator/reconcile/kernel/job.h"
#include "operator/reconcile/kernel/pods/lost_pods.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/objects.h"

namespace bsp::reconcile::hostile {

using nlohmann::json;

inline json a_node() {
  return json::parse(
      R"({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "u", "resourceVersion": "7",
      "labels": {"migbsp.io/set": "fast", "disk": "ssd", "kubernetes.io/arch": "amd64"}, "annotations": {"migbsp.io/speed": "0.5"}},
    "spec": {"unschedulable": false, "taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
    "status": {"allocatable": {"cpu": "3920m", "memory": 12582912, "pods": "110", "a.b/gpu": "2"},
      "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}]}})");
}

inline json a_pod() {
  return json::parse(R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job-r1-g0", "namespace": "default",
      "uid": "u", "resourceVersion": "9", "deletionTimestamp": "2026-11-21T05:00:00Z", "labels": {"migbsp.io/job": "job",
        "migbsp.io/rank": "1", "migbsp.io/generation": "0", "migbsp.io/attempt": "0", "migbsp.io/set": "fast",
        "migbsp.io/role": "target", "mine": "x"},
      "ownerReferences": [{"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "name": "job", "uid": "j",
        "controller": true}]},
    "spec": {"nodeName": "n1", "overhead": {"cpu": "10m"}, "resources": {"requests": {"cpu": 1}, "limits": {"cpu": 2,
        "hugepages-2Mi": "4Mi"}}, "containers": [{"name": "app", "resources": {"requests":
        {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": 1, "a.b/gpu": 1}}, "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}],
        "initContainers": [{"name": "sidecar",
        "restartPolicy": "Always", "resources": {"requests": {"cpu": "10m"}}}]},
    "status": {"phase": "Failed", "podIP": "10.0.0.7", "reason": "Evicted", "message": "m", "conditions":
        [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"},
         {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "m"}],
      "containerStatuses": [{"name": "app", "resources": {"limits": {"cpu": "500m"}}, "state": {"terminated": {"exitCode": 1, "reason": "Error", "message": "m"}}},
        {"name": "helper", "state": {"running": {"startedAt": "x"}}}],
      "initContainerStatuses": [{"name": "sidecar", "state": {"waiting": {"reason": "ErrImagePull", "message": "m"}},
        "lastState": {"terminated": {"reason": "OOMKilled"}}}]}})");
}

// Everything that the operator reads, and more.
inline json a_job() {
  return json::parse(R"({"apiVersion": "migbsp.io/v1alpha1", "kind": "BSPJob", "metadata": {"name": "job",
      "namespace": "default", "uid": "j", "resourceVersion": "3", "generation": 1, "labels": {"a": "b"},
      "annotations": {"migbsp.io/fault-points": "yes"}},
    "spec": {"ranks": 2, "sets": {"label": "migbsp.io/set", "names": ["fast"]}, "carryPaths": ["/data"],
      "checkpoint": {"sizeLimit": "1Gi"}, "superstep": {"call": "MPI_Barrier", "stride": 2},
      "rescheduling": {"mode": "Migrate", "heuristic": "AutoMig", "alpha": 5, "resize": "Auto"}, "runPolicy": {"backoffLimit": 2, "suspend": false},
      "template": {"metadata": {"labels": {"app": "x"}, "annotations": {"c": "d"}},
        "spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms":
              [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}],
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchExpressions": []}}]}},
          "securityContext": {"runAsUser": 1000, "runAsGroup": 100, "runAsNonRoot": true, "fsGroup": 5,
            "supplementalGroups": [4, 5], "seccompProfile": {"type": "RuntimeDefault"}},
          "resources": {"requests": {"cpu": 1}, "limits": {"memory": "4Gi"}},
          "nodeSelector": {"disk": "ssd"}, "hostNetwork": false, "hostPID": false, "hostIPC": false, "hostUsers": false,
          "tolerations": [{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule",
            "tolerationSeconds": 5}],
          "terminationGracePeriodSeconds": 30, "hostname": "h", "overhead": {"cpu": "5m"}, "restartPolicy": "Never",
          "imagePullSecrets": [{"name": "s"}], "dnsConfig": {"options": [{"name": "ndots"}]},
          "volumes": [{"name": "e", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "s", "secret": {"secretName": "s", "defaultMode": 420, "items": [{"key": "k", "path": "p"}]}},
            {"name": "c", "configMap": {"name": "c"}}, {"name": "h", "hostPath": {"path": "/tmp", "type": "Directory"}},
            {"name": "i", "image": {"reference": "r", "pullPolicy": "Never"}}],
          "initContainers": [{"name": "first", "image": "x", "restartPolicy": "Always",
            "resources": {"requests": {"memory": "1Mi"}}}],
          "containers": [{"name": "app", "image": "x", "imagePullPolicy": "Never", "command": ["solver"], "args": ["-n"],
              "workingDir": "/", "env": [{"name": "A", "value": "b"}, {"name": "B", "valueFrom": {"fieldRef":
                {"fieldPath": "metadata.labels['app']"}}}, {"name": "C", "valueFrom": {"secretKeyRef": {"name": "s",
                "key": "k"}}}, {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}}], "envFrom": [],
              "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": 0.5}},
              "securityContext": {"runAsUser": 1000, "runAsGroup": 100, "runAsNonRoot": true, "privileged": false,
                "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"add": ["NET_RAW"],
                "drop": ["ALL"]}, "seccompProfile": {"type": "Unconfined"}, "appArmorProfile": {"type": "Unconfined"}},
              "ports": [{"containerPort": 80}], "livenessProbe": {"exec": {"command": ["x"]}},
              "volumeMounts": [{"name": "e", "mountPath": "/e", "subPath": "x", "readOnly": true}]},
            {"name": "helper", "image": "y", "securityContext": {"runAsUser": 64600}}]}}}})");
}

inline void use_node(json node) {
  for (const bool trimmed : {false, true}) {
    if (trimmed) trim_watched(kNode, node);
    const std::string label = set_label("migbsp.io/set", "", {node});
    (void)node_facts(node, label);
    (void)allocatable_of(node);
    (void)node_state(&node);
    (void)takes_pods_of(node, a_job()["spec"]["template"]);
    (void)local::cpu_of(node);
  }
}

inline void use_pod(json pod) {
  for (const bool trimmed : {false, true}) {
    if (trimmed) trim_watched(kPod, pod);
    (void)pod_facts(pod);
    (void)job_key_of(kPod, pod);
    (void)has_ended(pod);
    (void)request_of(pod);
    NodeUsage usage;
    usage.change(nullptr, &pod);
    usage.change(&pod, nullptr);
  }
}

// "" if it is refused as it should be, or goes all the way; else what is wrong with how it is refused.
inline std::string use_job(json manifest) {
  trim_watched(kBspJob, manifest);
  (void)job_key_of(kBspJob, manifest);
  (void)job_metrics(manifest);
  // Whether or not somebody has validated them.
  const json& written = part_at(manifest, "spec");
  const json& unchecked = part_at(written, "template");
  (void)takes_pods_of(a_node(), asked_of_nodes(unchecked));
  (void)slots_of(allocatable_of(a_node()),
                 requests_of_rank(unchecked, part_at(part_at(written, "sidecar"), "resources")));
  (void)cpu_used_by_rank(unchecked);
  const auto job = crds::bsp_job_from_json(manifest);
  const auto valid = job ? crds::validate(job->spec) : Result<void>();
  if (!job || !valid) {
    const Error& error = job ? valid.error() : job.error();
    // It ends up in a status and in events.
    if (error.code != ErrorCode::kInvalid || json(error.message).dump().empty()) return "is not called invalid";
    return error.message.contains(": ") || error.message.contains("manifest must be an object") ? "" : error.message;
  }
  (void)check_without_image(job->spec);
  const json& spec = job->spec.pod_template.at("spec");
  (void)requests_of(spec);
  (void)takes_pods_of(a_node(), asked_of_nodes(job->spec.pod_template));
  for (const bool scheduled : {false, true})
    for (const bool target : {false, true}) {
      const json pod = make_pod(*job,
                                {.rank = 1,
                                 .generation = 0,
                                 .attempt = 0,
                                 .set = "fast",
                                 .node = "n1",
                                 .pinned = true,
                                 .not_on = "n2",
                                 .target = target,
                                 .migration = "m"},
                                {.entrypoint = {"/entry"}, .command = {"x"}, .user = ""},
                                {.scheduled = scheduled,
                                 .delivery = target ? RuntimeDelivery::kCopy : RuntimeDelivery::kImageVolume,
                                 .user_namespace = true});
      (void)pod.dump();
      use_pod(pod);
      json run = pod;
      run["metadata"]["uid"] = "u";
      const auto plan = local::plan_pod(run, {.store_dir = "/s",
                                              .network_path = "/n",
                                              .pod_ip = "10.0.0.1",
                                              .node_cpu = 0.5,
                                              .lookup = [](const std::string&, const std::string&) -> Result<json> {
                                                return json{{"data", {{"k", "Zm9v"}, {"ca.pem", "Zm9v"}}}};
                                              }});
      if (!plan && plan.error().message.contains("json.exception")) return plan.error().message;
      (void)local::grace_seconds(run);
    }
  Observed o;
  o.job = *job;
  o.now = Time{std::chrono::seconds(1'000'000)};
  o.images_unreadable = true;
  o.nodes = {node_facts(a_node(), "migbsp.io/set")};
  o.nodes[0].slots = 4;
  (void)reconcile_job(o, {.status = o.job.status}, {}, {});
  return "";
}

}  // namespace bsp::reconcile::hostile
