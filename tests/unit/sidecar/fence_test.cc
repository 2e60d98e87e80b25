// What a sidecar may conclude from the peers it hears: in a cut-off part of a job no rank stays fresh, and an absent
// operator makes none stale. The clock is the test's; tests/integration/fencing runs real sidecars.
#include "sidecar/agent/fence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace bsp::sidecar {
namespace {

using namespace std::chrono_literals;
using net::SteadyTime;
using ::testing::HasSubstr;

const SteadyTime kStart{1000s};

wire::EpochPlan plan_of(std::uint32_t ranks) {
  wire::EpochPlan plan;
  for (std::uint32_t r = 0; r < ranks; ++r)
    plan.members.push_back(
        {.rank = r, .pod = std::format("job-r{}-g0", r), .pod_uid = "u", .address = "10.0.0.1:7600", .set = 0});
  return plan;
}

net::Answer answer_with(std::uint64_t age) {
  net::Answer answer;
  answer.header[fencing::kAge] = age;
  return answer;
}

TEST(Freshness, IsTheOperatorsLastMessageWithoutPeers) {
  Freshness f(kStart);
  EXPECT_EQ(f.fresh(nullptr, "job-r0-g0", kStart + 40s), kStart);
  f.operator_spoke(kStart + 30s);
  EXPECT_EQ(f.fresh(nullptr, "job-r0-g0", kStart + 40s), kStart + 30s);
}

TEST(Freshness, OfASingleRankNeverEnds) {
  const auto plan = plan_of(1);
  EXPECT_EQ(Freshness(kStart).fresh(&plan, "job-r0-g0", kStart + 24h), kStart + 24h);
}

TEST(Freshness, OfRankZeroIsThatOfTheRankHeardLongestAgo) {
  const auto plan = plan_of(3);
  Freshness f(kStart);
  f.heard("job-r1-g0", kStart + 20s);
  EXPECT_EQ(f.fresh(&plan, "job-r0-g0", kStart + 25s), kStart) << "nothing was heard from rank 2";
  EXPECT_EQ(f.silent_peer(plan, "job-r0-g0", kStart + 1s), "rank 2 (job-r2-g0)");
  f.heard("job-r2-g0", kStart + 15s);
  EXPECT_EQ(f.fresh(&plan, "job-r0-g0", kStart + 25s), kStart + 15s);
  f.heard("job-r2-g0", kStart + 24s);
  EXPECT_EQ(f.fresh(&plan, "job-r0-g0", kStart + 25s), kStart + 20s);
  f.operator_spoke(kStart + 22s);
  EXPECT_EQ(f.fresh(&plan, "job-r0-g0", kStart + 25s), kStart + 22s);
  // The rank has moved: hearing its old pod proves nothing.
  auto moved = plan;
  moved.members[2].pod = "job-r2-g1";
  f.heard("job-r1-g0", kStart + 25s);
  EXPECT_EQ(f.fresh(&moved, "job-r0-g0", kStart + 25s), kStart + 22s);
}

// Ranks 0 and 1 are in one pod, 2 and 3 in another.
TEST(Freshness, CountsPodsNotRanks) {
  auto plan = plan_of(4);
  plan.members[1].pod = plan.members[0].pod;
  plan.members[3].pod = plan.members[2].pod;
  Freshness hub(kStart), other(kStart);
  hub.heard("job-r2-g0", kStart + 20s);
  EXPECT_EQ(hub.fresh(&plan, "job-r0-g0", kStart + 25s), kStart + 20s) << "its own other rank needs no answer";
  EXPECT_EQ(hub.silent_peer(plan, "job-r0-g0", kStart + 21s), "rank 2 (job-r2-g0)");
  other.heard("job-r0-g0", kStart + 20s);
  EXPECT_EQ(other.fresh(&plan, "job-r2-g0", kStart + 25s), kStart) << "rank 0's pod must vouch";
  for (wire::Member& member : plan.members) member.pod = "job-r0-g0";
  EXPECT_EQ(Freshness(kStart).fresh(&plan, "job-r0-g0", kStart + 24h), kStart + 24h) << "no rank is elsewhere";
}

TEST(Freshness, OfTheOthersIsRankZeros) {
  const auto plan = plan_of(3);
  Freshness f(kStart);
  f.heard("job-r2-g0", kStart + 29s);
  EXPECT_EQ(f.fresh(&plan, "job-r1-g0", kStart + 30s), kStart) << "both may be on the same cut-off node";
  f.vouched(kStart + 20s, 5s);
  EXPECT_EQ(f.fresh(&plan, "job-r1-g0", kStart + 30s), kStart + 15s);
  f.vouched(kStart + 25s, 20s);  // an older report doesn't take anything back
  EXPECT_EQ(f.fresh(&plan, "job-r1-g0", kStart + 30s), kStart + 15s);
}

// A job with several ranks, each of which asks every five seconds as Fence does; messages are delayed and some are
// lost.
struct Ranks {
  explicit Ranks(std::uint32_t n, std::uint32_t seed) : plan(plan_of(n)), side(n, 0), random(seed) {
    for (std::uint32_t r = 0; r < n; ++r) ranks.emplace_back(kStart);
  }
  // Five seconds: requests at any time within them, answers up to a second later.
  void round(bool operator_speaks, int lost_of_100 = 0) {
    for (std::uint32_t asking = 0; asking < ranks.size(); ++asking) {
      if (operator_speaks && side[asking] == 0) ranks[asking].operator_spoke(now + milliseconds(4000));
      for (std::uint32_t asked = 0; asked < ranks.size(); ++asked) {
        if (asked == asking || (asking != 0 && asked != 0) || side[asked] != side[asking]) continue;
        if (static_cast<int>(random() % 100) < lost_of_100) continue;
        const auto at = now + milliseconds(4000), answered = at + milliseconds(1000);
        if (asking == 0)
          ranks[0].heard(plan.members[asked].pod, at);
        else
          ranks[asking].vouched(at, answered - ranks[0].fresh(&plan, "job-r0-g0", answered));
      }
    }
    now += 5s;
  }
  std::chrono::milliseconds milliseconds(int below) {
    return std::chrono::milliseconds(random() % static_cast<unsigned>(below));
  }
  SteadyTime fresh(std::uint32_t rank) const { return ranks[rank].fresh(&plan, plan.members[rank].pod, now); }

  wire::EpochPlan plan;
  std::vector<int> side;  // of the network, by rank; the operator is on side 0
  std::vector<Freshness> ranks;
  std::mt19937 random;
  SteadyTime now = kStart;
};

TEST(Freshness, EndsInEveryPartitionThatMissesARank) {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    const std::uint32_t n = 2 + seed % 7;
    Ranks job(n, seed);
    for (int i = 0; i < 5; ++i) job.round(seed % 3 != 0);
    const SteadyTime cut = job.now;
    std::uint32_t away = 0;
    for (std::uint32_t r = 0; r < n; ++r)
      away += static_cast<std::uint32_t>(job.side[r] = static_cast<int>(job.random() % 2));
    if (away == 0) job.side[seed % n] = 1;
    if (away == n) job.side[seed % n] = 0;
    // Then the operator ends the ranks on its side and falls silent. The remaining ranks are on the other side.
    for (int i = 0; i < 30; ++i) job.round(false);
    for (std::uint32_t r = 0; r < n; ++r)
      EXPECT_LE(job.fresh(r), cut + 1s) << "rank " << r << " of " << n << ", seed " << seed;
  }
}

TEST(Freshness, SurvivesAnAbsentOperatorAndLostMessages) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    Ranks job(2 + seed % 7, seed);
    for (int i = 0; i < 3; ++i) job.round(true);
    for (int i = 0; i < 200; ++i) {
      job.round(false, i % 20 < 2 ? 50 : 0);
      for (std::uint32_t r = 0; r < job.ranks.size(); ++r)
        ASSERT_LT(job.now - job.fresh(r), fencing::kLimit)
            << "rank " << r << " after " << i << " rounds, seed " << seed;
    }
  }
}

// Runs Fence on a real loop; the test plays its peers.
TEST(Fence, AsksPeersWhenTheOperatorIsSilentThenEndsTheProgramWithAReason) {
  net::Loop loop;
  const auto plan = plan_of(2);
  SteadyTime spoke{};
  int asked = 0, end_requests = 0;
  std::string why;
  Fence fence(loop, "job-r0-g0", 60ms,
              {.plan = [&] { return &plan; },
               .computes = [&] { return end_requests < 2; },
               .ask =
                   [&](const wire::Member& member, net::LinkPeer::Done done) {
                     ++asked;
                     EXPECT_EQ(member.rank, 1u);
                     EXPECT_GE(std::chrono::steady_clock::now() - spoke, 19ms);
                     done(fail(ErrorCode::kTimeout, "no answer"));
                   },
               .end_program =
                   [&](const std::string& reason) {
                     why = reason;
                     if (++end_requests == 2) loop.stop();  // bsp-init was not connected the first time
                   },
               .save = [](SteadyTime) {}});
  int words = 0;
  std::function<void()> speak = [&] {
    fence.operator_spoke();
    spoke = std::chrono::steady_clock::now();
    if (++words < 40) loop.after(1ms, [&] { speak(); });
  };
  speak();
  loop.run();
  EXPECT_EQ(end_requests, 2);
  EXPECT_GT(asked, 0);
  EXPECT_TRUE(fence.cut_off());
  EXPECT_THAT(why, HasSubstr("rank 1 (job-r1-g0) does not answer"));
}

// Every pod is asked once, however many ranks it has.
TEST(Fence, AsksEachPodOnce) {
  net::Loop loop;
  auto plan = plan_of(5);
  plan.members[1].pod = plan.members[0].pod;
  plan.members[3].pod = plan.members[4].pod = plan.members[2].pod;
  std::vector<std::string> asked;
  std::vector<net::LinkPeer::Done> unanswered;
  Fence fence(loop, "job-r0-g0", 30ms,
              {.plan = [&] { return &plan; },
               .computes = [] { return false; },
               .ask =
                   [&](const wire::Member& member, net::LinkPeer::Done done) {
                     asked.push_back(member.pod);
                     unanswered.push_back(std::move(done));
                     loop.after(50ms, [&] { loop.stop(); });
                   },
               .end_program = [](const std::string&) {},
               .save = [](SteadyTime) {}});
  loop.run();
  EXPECT_EQ(asked, std::vector<std::string>{"job-r2-g0"});
}

TEST(Fence, LeavesAStoppedProgramAlone) {
  net::Loop loop;
  const auto plan = plan_of(2);
  int rounds = 0;
  Fence fence(loop, "job-r1-g0", 30ms,
              {.plan = [&] { return &plan; },
               .computes = [&] { return false; },
               .ask =
                   [&](const wire::Member&, net::LinkPeer::Done done) {
                     done(fail(ErrorCode::kUnavailable, "no peer"));
                     if (++rounds == 20) loop.stop();
                   },
               .end_program = [](const std::string&) { FAIL() << "it does not compute"; },
               .save = [](SteadyTime) {}});
  loop.run();
  EXPECT_TRUE(fence.cut_off());
}

TEST(Fence, StaysFreshOnlyAsLongAsRankZeroVouches) {
  for (const auto& [age, ends] : {std::pair{0u, false}, std::pair{4'000'000'000u, true}}) {
    net::Loop loop;
    const auto plan = plan_of(3);
    int rounds = 0;
    bool ended = false;
    Fence fence(loop, "job-r2-g0", 3s,
                {.plan = [&] { return &plan; },
                 .computes = [] { return true; },
                 .ask =
                     [&](const wire::Member& member, net::LinkPeer::Done done) {
                       EXPECT_EQ(member.rank, 0u);
                       done(answer_with(age));
                       if (++rounds == 8) loop.stop();  // 1 s, then every 0.5 s
                     },
                 .end_program = [&](const std::string&) { ended = true; },
                 .save = [](SteadyTime) {}});
    loop.run();
    EXPECT_EQ(ended, ends);
  }
}

TEST(Fence, GainsNoTimeByARestartButAsksFirst) {
  for (const bool answered : {false, true}) {
    net::Loop loop;
    const auto plan = plan_of(2);
    int asked = 0, ended = 0;
    SteadyTime saved{};
    const auto before = std::chrono::steady_clock::now() - 10min;
    Fence fence(loop, "job-r0-g0", 6s,
                {.plan = [&] { return &plan; },
                 .computes = [] { return true; },
                 .ask =
                     [&](const wire::Member&, net::LinkPeer::Done done) {
                       if (++asked == 2 && answered) loop.stop();
                       if (answered)
                         done(answer_with(0));
                       else
                         done(fail(ErrorCode::kTimeout, "no answer"));
                     },
                 .end_program =
                     [&](const std::string&) {
                       ++ended;
                       EXPECT_GT(asked, 0);
                       loop.stop();
                     },
                 .save = [&](SteadyTime fresh) { saved = fresh; }},
                before);
    EXPECT_TRUE(fence.cut_off());
    loop.run();
    EXPECT_EQ(ended, answered ? 0 : 1);
    EXPECT_EQ(saved > before, answered);
    EXPECT_EQ(fence.cut_off(), !answered);
  }
}

}  // namespace
}  // namespace bsp::sidecar
