// Pods that are being deleted on a node that does not answer, so nothing reports when their programs end: when they count
// as ended, and their ranks may be restarted.
//
//   the Node is tainted node.kubernetes.io/out-of-service   at once: a person vouches that nothing runs there
//   there is no such Node, as the API server says           fencing::kLimit + kMargin after the last moment at which the job had a
//                                                           pod on another node; its kubelet may still run what it ran
//   it is not ready, or nobody knows of it                  the same; never, if the job had no pod elsewhere
//
// Until then a sidecar there may hear a rank on another node, and its program runs on; afterwards it hears none, and ends
// its program within kLimit (sidecar/agent/fence.h). Only where every rank of a job is on such nodes do they all hear each
// other, as they do when merely the operator is away. The sidecars can't distinguish the two, so such a job is not restarted
// until the node is back or a person vouches for it, as Kubernetes does with the pods of a StatefulSet.
//
// Times are on this operator's steady clock, from when it saw the pod. Neither a node's clock nor that of the controller
// that marks nodes counts, and a new leader waits again. The operator does not talk to a pod that counts as lost.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "crds/wire.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

enum class NodeState { kAnswers, kSilent, kGone, kDead };
// kGone: only a request to the API server shows it; null: the cache has none of that name, which is kSilent until then.
NodeState node_state(const nlohmann::json* node);

class LostPods {
 public:
  using Steady = std::chrono::steady_clock::time_point;

  // Sets `lost` and `abandoned` of a job's pods. Call it in each reconcile, with all pods of the job and its committed
  // epoch (null: no program was let into one).
  void judge(std::map<std::string, PodFacts>& pods, const std::function<NodeState(const std::string& node)>& state,
             const wire::EpochPlan* epoch, Steady now);

 private:
  std::optional<Steady> only_lost_since_;  // no pod of the job is elsewhere
  std::optional<Steady> one_ended_since_;  // the same, and one rank's end is known
  std::set<std::string> ended_;            // uids: abandoned once, abandoned for good
};

// Pods whose objects are gone although nobody has said that their programs have ended: deleted by force, by a garbage collector, or
// while no operator looked. Such a program may run on for as long as its kubelet gives it, or longer where the kubelet is cut off; no
// copy of its rank may run meanwhile.
//
//   the container was seen terminated, or the sidecar said Exited, or the pod never had a node  it has ended
//   else, where its node answers                     it has ended kKubeletHangs + kMargin after the pod's grace period, as its kubelet
//                                                    sees to it; counted anew if the node was silent meanwhile, since that may mean
//                                                    that only the kubelet hung, which asks the program to end once it is back
//   else                                             as a pod that is being deleted there (lost_pods.h)
//
// Until then it stays in Observed::pods, as one that is being deleted; so a pod that is missing there has ended for certain. It stands
// in status.vanished, too, so that a new leader waits as well. A new leader also misses what its status names and it never saw;
// not what vanished before the attempt's first epoch, whose program waits in vain for one until its kubelet ends it.
//
// Times are on this operator's steady clock, from when it missed the pod.
class VanishedPods {
 public:
  // A kubelet that hangs is seen by its Node only after the node-monitor-grace-period: 50 s, 40 s before Kubernetes 1.32.
  static constexpr std::chrono::seconds kKubeletHangs{50};

  // `has_exited`: what the sidecar of that pod has said, also while its object is gone. Call it in each reconcile, with all pods of
  // the job, before LostPods::judge; and settle() with the same ones after that.
  void add(const crds::BspJobStatus& status, const std::function<bool(const std::string& pod)>& has_exited,
           SteadyTime now, std::map<std::string, PodFacts>& pods);
  void settle(const std::map<std::string, PodFacts>& pods, SteadyTime now);

 private:
  struct Seen {
    PodFacts facts;
    bool ended = false;
  };
  struct Missed {
    PodFacts facts;
    SteadyTime since{};
  };
  void note_seen(const std::map<std::string, PodFacts>& pods,
                 const std::function<bool(const std::string& pod)>& has_exited, SteadyTime now);
  void note_stored(const crds::BspJobStatus& status, const std::map<std::string, PodFacts>& pods, SteadyTime now);
  void note_never_seen(const crds::BspJobStatus& status, const std::map<std::string, PodFacts>& pods, SteadyTime now);
  void miss(const std::string& pod, PodFacts facts, SteadyTime now);

  bool looked_ = false;
  std::map<std::string, Seen> seen_;      // by pod, as last seen
  std::map<std::string, Missed> missed_;  // by pod
  std::set<std::string> ended_;           // uids of those that were missed, and have ended since
};

// What is stored of them.
std::vector<crds::VanishedPod> vanished_in(const std::map<std::string, PodFacts>& pods);

}  // namespace bsp::reconcile
