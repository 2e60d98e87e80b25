// Ends the programs of this pod when it is cut off from everyone who could know that they still run.
//
// "Fresh" is the last moment at which this pod knows that it was not cut off:
//
//   every pod            the operator's last message
//   rank 0's pod, else   the last answer of the other pods' sidecars; the oldest of them counts
//   other pods, else     the fresh of rank 0's pod, which it reports as an age, so that no two clocks are compared
//
// A single answering peer proves nothing, because it may be on the same cut-off node. All peers together do: the
// operator restarts no rank until it knows that at least one of them has ended
// (operator/reconcile/kernel/pods/lost_pods.h), and that one no longer answers. So an operator that is away for hours
// harms no job whose pods reach each other, and a job with a single pod, which has no peer to ask, is never ended
// here.
//
// A finished rank also counts as a peer that must answer: to the operator, its missing pod is one of the ends after
// which the others may be restarted. So while the operator is silent, such a pod stays for as long as a peer with an
// unfinished program asks it.
//
// While the operator is heard, this costs a timer and a small file every ten seconds. Otherwise the pod of rank 0 asks every
// other and every other asks it, over the links that an epoch has anyway: each every sixth of the limit, and again at once when a
// question was lost.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/net/link.h"
#include "base/net/loop.h"
#include "crds/fencing.h"
#include "crds/wire.h"

namespace bsp::sidecar {

// What was heard and what follows from it; the time is an argument.
class Freshness {
 public:
  // Counts from `start`, as if the operator had been heard then.
  explicit Freshness(net::SteadyTime start) : operator_spoke_(start) {}

  void operator_spoke(net::SteadyTime at) { operator_spoke_ = at; }
  // Rank 0's pod: that pod has answered a request sent at `asked`.
  void heard(const std::string& pod, net::SteadyTime asked) { heard_[pod] = asked; }
  // The other pods: rank 0's has answered a request sent at `asked` and was fresh `age` before.
  void vouched(net::SteadyTime asked, std::chrono::nanoseconds age) { vouched_ = std::max(vouched_, asked - age); }
  void forget_peers() { heard_.clear(); }

  [[nodiscard]] net::SteadyTime operator_spoke() const { return operator_spoke_; }
  // For `pod` in that epoch; null: in no epoch, so there are no peers.
  [[nodiscard]] net::SteadyTime fresh(const wire::EpochPlan* plan, const std::string& pod, net::SteadyTime now) const;
  // A peer not heard since then, for a message: "rank 3 (job-r3-g0)".
  [[nodiscard]] std::string silent_peer(const wire::EpochPlan& plan, const std::string& pod,
                                        net::SteadyTime since) const;

 private:
  net::SteadyTime operator_spoke_;
  net::SteadyTime vouched_ = net::SteadyTime::min();
  std::map<std::string, net::SteadyTime> heard_;  // by pod
};

// Time limit for a peer's answer to kAlive, as for all requests on the same links.
inline constexpr std::chrono::seconds kAliveTimeout{5};

// Whether the others rely on this pod to hear them.
[[nodiscard]] bool has_rank_zero(const wire::EpochPlan* plan, const std::string& pod);

class Fence {
 public:
  struct Hooks {
    std::function<const wire::EpochPlan*()> plan;  // of the open epoch; null: none is open
    std::function<bool()> computes;  // some program may run on by itself: it has not ended and is not stopped
    std::function<void(const wire::Member&, net::LinkPeer::Done)> ask;  // sends kAlive
    std::function<void(const std::string& why)> end_program;            // all that compute; repeated until none does
    // Reports the moment to bsp-init and saves it for a restarted sidecar: every third of the limit, or sooner.
    std::function<void(net::SteadyTime fresh)> save;
  };
  // `before`: the moment saved by the pod's previous sidecar. A restart gains no time by it except a moment to ask.
  Fence(net::Loop& loop, std::string pod, std::chrono::milliseconds limit, Hooks hooks,
        std::optional<net::SteadyTime> before = std::nullopt);
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  void operator_spoke();
  // The last moment at which this pod was certainly not cut off.
  [[nodiscard]] net::SteadyTime fresh() const;
  // How long ago that was: the answer to kAlive.
  [[nodiscard]] std::chrono::milliseconds age() const;
  [[nodiscard]] bool cut_off() const { return age() >= limit_; }

  // A peer that depends on the answer has asked.
  void asked() { asked_for_ = std::chrono::steady_clock::now(); }
  // Within the last half of the limit.
  [[nodiscard]] bool needed_by_others() const { return asked_for_ > std::chrono::steady_clock::now() - limit_ / 2; }
  // The pod of a program that ended well must not end yet.
  [[nodiscard]] bool must_stay(net::SteadyTime ended) const;

 private:
  void check_due();
  void save(net::SteadyTime fresh);
  [[nodiscard]] bool alone(const wire::EpochPlan& plan) const;  // all of its ranks are in this pod
  void ask(const wire::Member& member, bool answers_for_all);
  void check_at(net::SteadyTime due);
  [[nodiscard]] std::string why() const;

  net::Loop& loop_;
  const std::string pod_;
  const std::chrono::milliseconds limit_;
  Hooks hooks_;
  Freshness freshness_;
  net::SteadyTime earliest_end_;
  net::SteadyTime saved_fresh_ = net::SteadyTime::min();
  net::SteadyTime asked_for_ = net::SteadyTime::min();
  bool asking_ = false;
  struct Asked {
    bool under_way = false;
    net::SteadyTime again{};
  };
  std::map<std::string, Asked> asked_;  // by pod
  struct Next {
    net::Loop::TimerId timer = 0;
    net::SteadyTime due{};    // of the timer
    net::SteadyTime retry{};  // of a question that was lost
  } next_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace bsp::sidecar
