// Starts that the cluster's scheduler makes all or nothing (spec.scheduling.gang): the operator makes a PodGroup of all ranks,
// then their pods, which name it, and the scheduler gives nodes to all of them or to none.
//
//   Pending ─ PodGroup made ─> Starting: all pods made, none has a node ─ the scheduler has room for all ─> Running
//      └ refused: the job waits (PodGroupRefused)
//
// The operator reserves no slot for such a start and waits for none. The start's time limit doesn't run while all pods wait
// for nodes; spec.runPolicy.activeDeadlineSeconds does.
//
// Where ranks share pods, the group counts pods. How many a start has follows from where its ranks are mapped, so the ranks are
// mapped first, and the group's name has the number: a start that is mapped anew makes another.
//
// Every start has a PodGroup of its own. A pod on a lost node stays in the API until the node is back, and as long as it does, schedulers
// count it, because it has a node (kube-scheduler 1.36: podgroupstate.go; scheduler-plugins 0.31: CalculateAssignedPods). In the group of
// the next start it would stand for a rank, and the others would get nodes without that one.
//
// A group's name holds the job's uid, as that of a Secret does, so one of that name is this job's, and the operator needs no right to
// read it. It goes with the job, by its owner.
//
// Targets of moves: a move must never wait for a gang. In kube-scheduler and scheduler-plugins a pod without a group
// is scheduled by itself, so a target names none. To Volcano every pod belongs to a group: it would make one for the
// target that has to be admitted to a queue first and whose one pod could be preempted alone. So a target joins the job's, which
// is admitted, and satisfied because all ranks run: the one that its source names. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "crds/bspjob.h"
#include "operator/reconcile/kernel/conditions.h"

namespace bsp::reconcile {

struct Observed;
struct PodRequest;

// On a pod, the name of its group: Volcano's.
inline constexpr const char* kGroupAnnotation = "scheduling.k8s.io/group-name";

// What is known of the PodGroup that was last asked for.
struct PodGroupFacts {
  std::string name = {};
  bool made = false;             // since the job last needed one
  std::optional<Error> refused;  // the answer to the last attempt to create it
};

// The cluster's scheduler makes the start all or nothing; false on one machine, which has none.
bool starts_by_scheduler(const Observed& o);
// Every pod of the start is there and none has a node: it holds nothing, and another attempt would only queue again.
bool waits_in_gang(const Observed& o);
bool targets_join_group(const crds::BspJob& job);
// How many pods the ranks are in.
std::uint32_t pods_of(const crds::RankPlaces& ranks);
// Of the start in which rank 0's pod has this generation, and which has so many pods: at most 63 characters, because
// scheduler-plugins has it in a label.
std::string pod_group_name(const crds::BspJob& job, std::uint32_t generation, std::uint32_t pods);
// The object, of the newest API that it may have; null if spec.scheduling.gang is Reserve.
nlohmann::json make_pod_group(const crds::BspJob& job, const std::string& name, std::uint32_t pods);
// The API versions in which this very object may be served, the newest first: Kubernetes 1.37 has v1beta1 and v1alpha3 of its PodGroup and
// no v1alpha2, which 1.36 has alone. What is written is the same in all of them.
std::vector<std::string> pod_group_versions(const nlohmann::json& group);
// Makes `pod` a member of the request's group, or of none, whatever the template says of groups of that kind.
void join_pod_group(nlohmann::json& pod, const crds::BspJob& job, const PodRequest& request);
// The group that a pod names, of those that targets join; "": none.
std::string joined_group(const nlohmann::json& pod);
// Where the template names such a group itself, which the pods then don't have: "spec.template.…"; "" if it names none.
std::string own_pod_group(const crds::BspJobSpec& spec);

// The API server has answered that it serves no such kind in that version. One that can't be reached has not.
bool is_unserved(const Error& error);

// The reason of the condition, and its message with the remedy.
struct GroupRefused {
  std::string reason;
  std::string message;
};
GroupRefused why_no_group(const crds::BspJob& job, const Error& error);

// Of a job that asks for a gang; true if the condition has just become True.
bool warn_of_gang(const Observed& o, crds::BspJobStatus& status);

}  // namespace bsp::reconcile
