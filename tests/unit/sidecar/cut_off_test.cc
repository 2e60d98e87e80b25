// Both ends of the fence together: what sidecars conclude (sidecar/agent/fence.h) and how long the operator waits
// (operator/reconcile/kernel/pods/lost_pods.h), in a network that partitions and heals at random. A rank's next copy must
// not start while the last one can still compute, and a job that isn't cut off for good must get a next attempt.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "crds/fencing.h"
#include "operator/reconcile/kernel/pods/lost_pods.h"
#include "sidecar/agent/fence.h"

namespace bsp {
namespace {

using namespace std::chrono_literals;
using net::SteadyTime;
using reconcile::NodeState;

const SteadyTime kStart{10'000s};

// One step is a second. The operator is on side 0 of the network.
struct Machine {
  int side = 0;
  bool kubelet = true;  // independent of the network
  int bad_since = -1;   // the second since which its kubelet can't reach the API server
  bool ready = true;    // as the cluster reports it, with a delay
  bool kubelet_reaches_api() const { return kubelet && side == 0; }
};

struct Rank {
  Rank() : fresh(kStart) {}
  std::size_t node = 0;
  sidecar::Freshness fresh;
  bool computes = true, sidecar = true, object = true, deleting = false;
  int deletion_seen = -1;  // second at which its kubelet saw the deletion
  int grace = 0;           // seconds that its program then takes to end
};

class Cluster {
 public:
  explicit Cluster(std::uint32_t seed) : random_(seed) {
    machines_.resize(static_cast<std::size_t>(1 + random(4)));
    ranks_.resize(static_cast<std::size_t>(1 + random(6)));
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].node = static_cast<std::size_t>(random(static_cast<int>(machines_.size()) - 1));
      plan_.members.push_back(
          {.rank = r, .pod = std::format("job-r{}-g0", r), .pod_uid = "u", .address = "", .set = 0});
    }
  }

  // One second. True once the operator starts the next attempt.
  bool step(bool operator_is_there) {
    now_ += 1s;
    ++second_;
    move_machines();
    move_pods();
    move_sidecars();
    return operator_is_there && operate();
  }
  void change_network() {
    for (Machine& machine : machines_) {
      machine.side = random(2) == 0 ? 1 : 0;
      machine.kubelet = random(3) != 0;
    }
  }
  void heal() {
    for (Machine& machine : machines_) machine.side = 0, machine.kubelet = true;
  }
  void restart_operator() { lost_ = {}; }
  void restart_sidecar() {
    Rank& rank = ranks_[static_cast<std::size_t>(random(static_cast<int>(ranks_.size()) - 1))];
    // It saves its fresh time at least every ten seconds.
    if (rank.sidecar) rank.fresh = sidecar::Freshness(std::min(now_, rank.fresh.operator_spoke()));
  }
  bool anybody_computes() const {
    return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.computes; });
  }
  bool all_are_on_silent_nodes() const {
    return std::ranges::none_of(ranks_, [&](const Rank& rank) { return machines_[rank.node].ready; });
  }
  bool pods_are_left() const {
    return std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.object; });
  }
  bool every_rank_computes() const {
    return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.computes; });
  }
  bool ends = false;  // the operator has begun to end the attempt
  int random(int most) { return std::uniform_int_distribution(0, most)(random_); }

 private:
  void move_machines() {
    for (Machine& machine : machines_) {
      if (machine.kubelet_reaches_api()) {
        machine.bad_since = -1;
        machine.ready = true;
      } else {
        if (machine.bad_since < 0) machine.bad_since = second_;
        if (second_ - machine.bad_since > 16) machine.ready = false;
      }
    }
  }
  void move_pods() {
    for (Rank& rank : ranks_) {
      const Machine& machine = machines_[rank.node];
      if (rank.deleting && rank.deletion_seen < 0 && machine.kubelet_reaches_api()) {
        rank.deletion_seen = second_;
        rank.grace = random(40);
      }
      if (rank.deletion_seen >= 0 && second_ >= rank.deletion_seen + rank.grace) rank.computes = false;
      if (!rank.computes) rank.sidecar = false;
      if (!rank.computes && rank.deleting && machine.kubelet_reaches_api()) rank.object = false;
    }
  }
  void move_sidecars() {
    for (std::size_t a = 0; a < ranks_.size(); ++a) {
      Rank& asking = ranks_[a];
      if (!asking.sidecar) continue;
      if (second_ % 5 == static_cast<int>(a % 5))
        for (std::size_t b = 0; b < ranks_.size(); ++b) {
          if (a == b || (a != 0 && b != 0) || !ranks_[b].sidecar) continue;
          if (machines_[asking.node].side != machines_[ranks_[b].node].side) continue;
          const auto asked = now_ - 400ms;
          if (a == 0)
            asking.fresh.heard(plan_.members[b].pod, asked);
          else
            asking.fresh.vouched(asked, now_ - ranks_[0].fresh.fresh(&plan_, plan_.members[0].pod, now_));
        }
      // bsp-init may take a moment.
      if (now_ - asking.fresh.fresh(&plan_, plan_.members[a].pod, now_) > fencing::kLimit + 3s) asking.computes = false;
    }
  }
  bool operate() {
    std::map<std::string, reconcile::PodFacts> pods;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      if (!rank.object) continue;
      // The cluster itself evicts pods from a node that is not ready.
      if (!machines_[rank.node].ready && second_ - machines_[rank.node].bad_since > 30) rank.deleting = true;
      reconcile::PodFacts facts;
      facts.uid = std::to_string(r);
      facts.node = std::to_string(rank.node);
      facts.deleting = rank.deleting;
      pods[plan_.members[r].pod] = facts;
    }
    lost_.judge(
        pods,
        [&](const std::string& node) {
          return machines_[std::stoul(node)].ready ? NodeState::kAnswers : NodeState::kSilent;
        },
        &plan_, now_);
    bool left = false;
    for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      const auto pod = pods.find(plan_.members[r].pod);
      const bool lost = pod != pods.end() && pod->second.lost;
      if (pod != pods.end() && !pod->second.abandoned) left = true;
      if (pod == pods.end() || lost) {
        ends = true;
        continue;
      }
      const bool heard = rank.sidecar && machines_[rank.node].side == 0;
      if (heard) rank.fresh.operator_spoke(now_);
      silent_[r] = heard ? 0 : silent_[r] + 1;
      if (silent_[r] > 10 || rank.deleting) ends = true;
    }
    if (ends)
      for (Rank& rank : ranks_) rank.deleting = true;
    return ends && !left;
  }

  std::mt19937 random_;
  std::vector<Machine> machines_;
  std::vector<Rank> ranks_;
  std::map<std::uint32_t, int> silent_;
  wire::EpochPlan plan_;
  reconcile::LostPods lost_;
  SteadyTime now_ = kStart;
  int second_ = 0;
};

TEST(CutOff, NoNextCopyStartsWhileTheLastOneComputes) {
  int restarted = 0, with_lost = 0;
  for (std::uint32_t seed = 1; seed <= 250; ++seed) {
    Cluster cluster(seed);
    bool next = false;
    for (int second = 0; second < 900 && !next; ++second) {
      if (second >= 30 && second % 60 == 30 && cluster.random(2) == 0) cluster.change_network();
      if (cluster.random(150) == 0) cluster.restart_operator();
      if (cluster.random(400) == 0) cluster.restart_sidecar();
      next = cluster.step(true);
    }
    if (next) {
      ++restarted;
      with_lost += cluster.pods_are_left() ? 1 : 0;
      ASSERT_FALSE(cluster.anybody_computes()) << "seed " << seed;
    }
    cluster.heal();
    for (int second = 0; second < 300 && !next && cluster.ends; ++second) next = cluster.step(true);
    EXPECT_EQ(next, cluster.ends) << "the network has healed, but no attempt begins: seed " << seed;
    if (next) {
      ASSERT_FALSE(cluster.anybody_computes()) << "seed " << seed;
    }
  }
  // Otherwise this test covers nothing.
  EXPECT_GT(restarted, 80);
  EXPECT_GT(with_lost, 5);
}

TEST(CutOff, LostNodeBlocksOnlyAJobThatWasEntirelyOnIt) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    Cluster cluster(seed);
    for (int second = 0; second < 20; ++second) cluster.step(true);
    cluster.change_network();
    bool next = false;
    for (int second = 0; second < 400 && !next; ++second) next = cluster.step(true);
    if (cluster.ends) {
      EXPECT_TRUE(next || cluster.all_are_on_silent_nodes()) << "seed " << seed;
    } else {
      EXPECT_TRUE(cluster.every_rank_computes()) << "seed " << seed;
    }
  }
}

TEST(CutOff, AbsentOperatorEndsNothing) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    Cluster cluster(seed);
    for (int second = 0; second < 600; ++second) {
      cluster.step(second < 30);
      ASSERT_TRUE(cluster.every_rank_computes()) << "second " << second << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace bsp
