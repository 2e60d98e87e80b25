// Ends the rank's program when this pod is cut off from everybody who could know that it still runs.
//
// "Fresh" is the last moment of which this pod knows that it was not cut off:
//
//   every rank          when the operator last spoke to it
//   rank 0, else        when the last of all other ranks' sidecars was heard: the oldest of them counts
//   other ranks, else   rank 0's fresh, which rank 0 reports as an age, so that no two clocks are compared
//
// One peer that answers proves nothing, it may be on the same node that is cut off. All of them do: the operator starts
// no rank anew while it doesn't know that at least one of them has ended (operator/reconcile/kernel/lost_pods.h), and that
// one answers no more. So an operator that is away for hours harms no job whose ranks reach each other, and a job with
// one rank, which has nobody to ask, is never ended here.
//
// A rank that has finished is one of those that must be heard: that its pod is gone is, to the operator, one of the
// ends after which the others may start anew. So while the operator is silent such a pod stays, for as long as somebody
// whose program has not ended asks it.
//
// While the operator speaks this costs a timer and a small file every ten seconds. Else rank 0 asks everybody and
// everybody asks rank 0, over the links that an epoch has anyway.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/net/link.h"
#include "base/net/loop.h"
#include "crds/fencing.h"
#include "crds/wire.h"

namespace bsp::sidecar {

// What was heard and what follows from it; the time is an argument.
class Freshness {
 public:
  // From then on, as if the operator had spoken.
  explicit Freshness(net::SteadyTime start) : operator_spoke_(start) {}

  void operator_spoke(net::SteadyTime at) { operator_spoke_ = at; }
  // Rank 0: that pod has answered what it was asked then.
  void heard(const std::string& pod, net::SteadyTime asked) { heard_[pod] = asked; }
  // The other ranks: rank 0 was asked then, and said that it had been fresh so long before.
  void vouched(net::SteadyTime asked, std::chrono::nanoseconds age) { vouched_ = std::max(vouched_, asked - age); }
  void forget_peers() { heard_.clear(); }

  [[nodiscard]] net::SteadyTime operator_spoke() const { return operator_spoke_; }
  // For `rank` in that epoch; null: in none, so there are no others.
  [[nodiscard]] net::SteadyTime fresh(const wire::EpochPlan* plan, std::uint32_t rank, net::SteadyTime now) const;
  // Who was not heard since then, for a message: "rank 3 (job-r3-g0)".
  [[nodiscard]] std::string silent_peer(const wire::EpochPlan& plan, std::uint32_t rank, net::SteadyTime since) const;

 private:
  net::SteadyTime operator_spoke_;
  net::SteadyTime vouched_ = net::SteadyTime::min();
  std::map<std::string, net::SteadyTime> heard_;  // by pod
};

// Of a peer to kAlive, as for all that peers are asked on the same links.
inline constexpr std::chrono::seconds kAliveAnswer{5};

class Fence {
 public:
  struct Hooks {
    std::function<const wire::EpochPlan*()> plan;  // of the open epoch; null: there is none
    std::function<bool()> computes;  // the program may go on by itself: it has not ended, it is not stopped
    std::function<void(const wire::Member&, net::LinkPeer::Done)> ask;  // for kAlive
    std::function<void(const std::string& why)> end_program;            // again and again, until it does not compute
    // For bsp-init, and for the sidecar that is started when this one is killed: every third of the limit, or sooner.
    std::function<void(net::SteadyTime fresh)> keep;
  };
  // `before`: what was kept, if this sidecar is not the pod's first. It gains no time by that, but a moment to ask.
  Fence(net::Loop& loop, std::uint32_t rank, std::chrono::milliseconds limit, Hooks hooks,
        std::optional<net::SteadyTime> before = std::nullopt);
  ~Fence();
  Fence(const Fence&) = delete;
  Fence& operator=(const Fence&) = delete;

  void operator_spoke();
  // When this pod was certainly not cut off, last.
  [[nodiscard]] net::SteadyTime fresh() const;
  // How long ago that was: the answer to kAlive.
  [[nodiscard]] std::chrono::milliseconds age() const;
  [[nodiscard]] bool cut_off() const { return age() >= limit_; }

  // A peer asked that needs the answer.
  void asked() { asked_for_ = std::chrono::steady_clock::now(); }
  // In the last half of the limit.
  [[nodiscard]] bool others_need_us() const { return asked_for_ > std::chrono::steady_clock::now() - limit_ / 2; }
  // The pod of a program that ended well then must not go yet.
  [[nodiscard]] bool must_stay(net::SteadyTime ended) const;

 private:
  void check_due();
  void keep(net::SteadyTime fresh);
  void ask(const wire::Member& member);
  [[nodiscard]] std::string why() const;

  net::Loop& loop_;
  const std::uint32_t rank_;
  const std::chrono::milliseconds limit_;
  Hooks hooks_;
  Freshness freshness_;
  net::SteadyTime may_end_from_;
  net::SteadyTime kept_ = net::SteadyTime::min();
  net::SteadyTime asked_for_ = net::SteadyTime::min();
  bool asking_ = false;
  std::set<std::string> asked_;  // pods that have not answered yet
  net::Loop::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace bsp::sidecar
