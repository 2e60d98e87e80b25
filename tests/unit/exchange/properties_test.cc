// Properties that hold for any order and duplication of messages and any losses, on random groups and schedules.
// RapidCheck prints the seed of a failing run (RC_PARAMS="seed=…" repeats it).
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/unit/exchange/group.h"

namespace bsp::exchange {
namespace {

void property(const char* name, auto&& testable) {
  if (!rc::check(name, testable)) ADD_FAILURE() << name;
}

// One schedule: the members' actions and their order, from one seed.
class Chaos {
 public:
  struct Options {
    bool fifo = false;
    bool twice = false;
    int decisions = 2;  // of each member
    std::size_t deaths = 0;
  };

  Chaos(Mechanism mechanism, std::uint32_t members, std::uint64_t seed, Options options)
      : group(mechanism, members, 1, 3),
        options_(options),
        random_(seed),
        left_(members, options.decisions),
        holds_(members) {
    group.start({0});
    group.on_ready = [this](Member m) {
      if (at_ready) at_ready(m);
    };
  }

  // Runs until no member wants to decide, nothing is in flight and all losses are known.
  void run() {
    for (;;) {
      std::vector<std::function<void()>> can;
      for (Member m = 0; m < group.size(); ++m) {
        if (!group.alive[m]) continue;
        if (group.ready[m]) can.emplace_back([this, m] { decide(m); });
        if (left_[m] > 0 && !wanting(m)) can.emplace_back([this, m] { want(m); });
      }
      if (!group.flying.empty())
        for (int weight = 0; weight < 6; ++weight)
          can.emplace_back([this] { group.deliver(choose_, options_.fifo, options_.twice && random_() % 4 == 0); });
      for (const auto& news : obituaries_) can.emplace_back([this, news] { mourn(news.first, news.second); });
      if (dead_ < options_.deaths && random_() % 16 == 0) can.emplace_back([this] { die(); });
      if (can.empty()) return;
      can[random_() % can.size()]();
    }
  }

  [[nodiscard]] bool all_done() const {
    for (Member m = 0; m < group.size(); ++m)
      if (group.alive[m] && (left_[m] > 0 || wants_.contains(m))) return false;
    return true;
  }

  // The load of `m`: what finished decisions assigned to it, less what it has worked off.
  [[nodiscard]] double holds(Member m) const { return holds_[m]; }
  void work_off(Member m, double amount) {
    holds_[m] -= amount;
    group.change(m, -amount);
  }
  std::uint64_t random(std::uint64_t below) { return random_() % below; }

  Group group;
  std::function<void(Member)> at_ready;
  bool work_arrives = false;

 private:
  bool wanting(Member m) const { return wants_.contains(m); }
  void want(Member m) {
    --left_[m];
    wants_[m] = true;
    group.want(m);
  }
  void decide(Member m) {
    std::vector<Assignment> assignments;
    for (std::uint64_t i = random(3); i > 0; --i) {
      const auto to = static_cast<Member>(random(group.size()));
      assignments.push_back({.to = to, .resource = 0, .amount = static_cast<double>(1 + random(9))});
      holds_[to] += assignments.back().amount;
    }
    wants_.erase(m);
    group.decided(m, assignments);
    if (work_arrives)
      for (const Assignment& a : assignments) group.change(a.to, a.amount, true);
  }
  void die() {
    const auto m = static_cast<Member>(random(group.size()));
    if (!group.alive[m]) return;
    ++dead_;
    wants_.erase(m);
    group.kill(m, [this] { return random_() % 2 == 0; });
    for (Member other = 0; other < group.size(); ++other)
      if (group.alive[other]) obituaries_.emplace_back(other, m);
    std::erase_if(obituaries_, [m](const auto& news) { return news.first == m; });
  }
  // A peer learns of a loss: the lost member's messages in flight to it are dropped.
  void mourn(Member to, Member whom) {
    std::erase(obituaries_, std::pair(to, whom));
    std::erase_if(group.flying, [&](const Group::Flying& f) { return f.from == whom && f.to == to; });
    group.report_lost(to, whom);
  }

  Options options_;
  std::mt19937_64 random_;
  Choose choose_ = [this](std::size_t n) { return static_cast<std::size_t>(random_() % n); };
  std::vector<int> left_;
  std::vector<double> holds_;
  std::map<Member, bool> wants_;
  std::vector<std::pair<Member, Member>> obituaries_;
  std::size_t dead_ = 0;
};

std::uint64_t any_seed() { return *rc::gen::resize(1000, rc::gen::arbitrary<std::uint64_t>()); }

void expect_one_at_a_time(const Group& group) { RC_ASSERT(std::ranges::count(group.ready, true) <= 1); }

TEST(SnapshotProperties, OneDecidesAtATimeOnAnExactViewAndAllGetATurn) {
  property("in any order, twice or once, FIFO or not", [] {
    const auto members = *rc::gen::inRange<std::uint32_t>(1, 9);
    Chaos chaos(Mechanism::kSnapshot, members, any_seed(),
                {.fifo = *rc::gen::arbitrary<bool>(), .twice = *rc::gen::arbitrary<bool>()});
    chaos.work_arrives = *rc::gen::arbitrary<bool>();
    chaos.at_ready = [&](Member m) {
      expect_one_at_a_time(chaos.group);
      for (Member other = 0; other < members; ++other)
        RC_ASSERT(chaos.group[m].view().load(other) == chaos.holds(other));
    };
    chaos.run();
    RC_ASSERT(chaos.all_done());
  });
}

TEST(SnapshotProperties, LossesDuringAnElectionBlockNoMember) {
  property("whoever dies, whatever of its messages arrives", [] {
    const auto members = *rc::gen::inRange<std::uint32_t>(3, 9);
    Chaos chaos(
        Mechanism::kSnapshot, members, any_seed(),
        {.fifo = *rc::gen::arbitrary<bool>(), .twice = *rc::gen::arbitrary<bool>(), .deaths = (members - 1) / 2});
    chaos.at_ready = [&](Member m) {
      expect_one_at_a_time(chaos.group);
      // A dead member's decision counts where it arrived: its receiver knows.
      for (Member other = 0; other < members; ++other) {
        if (chaos.group.alive[other]) RC_ASSERT(chaos.group[m].view().load(other) == chaos.group[other].own()[0]);
      }
    };
    chaos.run();
    RC_ASSERT(chaos.all_done());
  });
}

TEST(SnapshotProperties, ConcurrentRequestsAreServedByRank) {
  property("ranks in order when no message overtakes another's", [] {
    const auto members = *rc::gen::inRange<std::uint32_t>(2, 12);
    Group group(Mechanism::kSnapshot, members);
    group.start({0});
    for (Member m = members; m-- > 0;) group.want(m);
    for (Member m = 0; m < members; ++m) {
      group.settle();
      RC_ASSERT(group.ready[m]);
      group.decided(m, {});
    }
  });
}

// Once everything has arrived and every member has broadcast what is below the threshold, all views are exact.
void maintained_views_agree(Mechanism mechanism) {
  const auto members = *rc::gen::inRange<std::uint32_t>(1, 7);
  Chaos chaos(mechanism, members, any_seed(),
              {.fifo = *rc::gen::arbitrary<bool>(), .twice = *rc::gen::arbitrary<bool>()});
  chaos.work_arrives = true;
  chaos.run();
  RC_ASSERT(chaos.all_done());
  for (Member m = 0; m < members; ++m) chaos.work_off(m, static_cast<double>(chaos.random(7)));
  for (Member m = 0; m < members; ++m) chaos.group.tick(m);
  chaos.run();
  for (Member m = 0; m < members; ++m)
    for (Member other = 0; other < members; ++other) RC_ASSERT(chaos.group[m].view().load(other) == chaos.holds(other));
}

TEST(IncrementsProperties, EveryReservationIsCountedOnce) {
  property("in any order, twice or once", [] { maintained_views_agree(Mechanism::kIncrements); });
}

TEST(NaiveProperties, LastValueWins) {
  property("in any order, twice or once", [] { maintained_views_agree(Mechanism::kNaive); });
}

TEST(MaintainedProperties, LossesBlockNoMember) {
  property("whoever dies", [] {
    const auto members = *rc::gen::inRange<std::uint32_t>(2, 7);
    const auto mechanism = *rc::gen::element(Mechanism::kNaive, Mechanism::kIncrements);
    Chaos chaos(mechanism, members, any_seed(), {.fifo = false, .twice = true, .deaths = members - 1});
    chaos.run();
    RC_ASSERT(chaos.all_done());
  });
}

}  // namespace
}  // namespace bsp::exchange
