// A rank that gets more CPU in place, from the decision to what nodes and API server make of it, in the simulated cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "operator/reconcile/kernel/resize/resize.h"
#include "tests/unit/reconcile/every_place.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using crds::ResizePhase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Resize : public ::testing::Test {
 protected:
  Resize() {
    w.also_seen = [this](Observed& o) { see(o); };
    w.also_done = [this](const Work& work) { take(work); };
    w.job.spec.rescheduling.resize = crds::Resize::kAuto;
    check(w.run_until(crds::JobPhase::kRunning), "the job runs");
  }
  // What API server and nodes say. A node resizes at the next look, unless it is to answer otherwise.
  void see(Observed& o) {
    for (auto& [name, pod] : o.pods) {
      const Cpu& cpu = cpus.try_emplace(name).first->second;
      pod.apps[0].cpu_limit = cpu.limit;
      pod.apps[0].cpu_request = cpu.request;
      pod.apps[0].cpu_given = cpu.given;
      if (cpu.limit == cpu.given) continue;
      pod.resizing = answer;
      pod.resize_message = answer == Resizing::kInProgress ? "" : "Node didn't have enough capacity";
    }
    if (refusal) o.not_resized = {{rank_0(), *refusal}};
    if (asking) o.being_resized = {rank_0()};
  }
  void take(const Work& work) {
    EXPECT_TRUE(work.resize_pods.empty() || w.job.status.phase != crds::JobPhase::kMigrating);
    for (const PodResize& resize : work.resize_pods) {
      asked.push_back(std::format("{} {}/{}", resize.pod, resize.seats[0].limit, resize.seats[0].request));
      if (refusal || silent) continue;
      Cpu& cpu = cpus.at(resize.pod);
      cpu.limit = resize.seats[0].limit;
      cpu.request = resize.seats[0].request;
      if (answer == Resizing::kNo || cpu.limit < cpu.given + 1) cpu.given = cpu.limit;
    }
  }
  void decide() {
    Decided call;
    call.decision.outcome = crds::kResizing;
    call.decision.message = "rank 0 gets more CPU";
    call.resizes = {{.rank = {0}, .node = w.job.status.ranks[0].node, .from_milli = 250, .to_milli = 600}};
    w.decided = call;
  }
  std::string rank_0() { return w.job.status.ranks[0].pod; }
  const crds::RankResize& entry() { return w.job.status.resizes.at(0); }
  bool run_until(ResizePhase phase) {
    return w.run_until([&] { return !w.job.status.resizes.empty() && entry().phase == phase; });
  }
  std::string told(const std::string& reason) {
    std::string all;
    for (const Event& e : w.events)
      if (e.reason == reason) all += e.message + "\n";
    return all;
  }

  struct Cpu {
    std::int64_t limit = 250, request = 200, given = 250;
  };
  sim::World w{{.ranks = 2, .slow = 2, .fast = 2}};
  std::map<std::string, Cpu> cpus;
  Resizing answer = Resizing::kNo;
  std::optional<Error> refusal;
  bool silent = false;  // the API server's answers are lost
  bool asking = false;
  std::vector<std::string> asked;
};

TEST_F(Resize, IsStoredThenAskedForOnceAndTold) {
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kResized)) << w.trace;
  EXPECT_THAT(asked, ElementsAre(rank_0() + " 600/550")) << "the request by as much as the limit";
  EXPECT_EQ(w.job.status.migrations.resized, 1u);
  EXPECT_THAT(told("Resized"), HasSubstr("rank 0 has a CPU limit of 600m instead of 250m on slow-0, without a pause"));
  EXPECT_EQ(w.job.status.last_decision->outcome, crds::kResizing);
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_THAT(asked, SizeIs(1));
  EXPECT_EQ(w.unrest(), "");
  EXPECT_EQ(w.job.status.wave, 0u) << "nobody waited for it";
  EXPECT_EQ(w.violation, "");
}

TEST_F(Resize, WhatTheNodeCantGiveIsTakenBackAndTheRankMoves) {
  for (const auto& [said, phase] : {std::pair{Resizing::kDeferred, ResizePhase::kDeferred},
                                    std::pair{Resizing::kInfeasible, ResizePhase::kInfeasible}}) {
    asked.clear();
    w.job.status.resizes.clear();
    answer = said;
    decide();
    ASSERT_TRUE(run_until(phase)) << w.trace;
    EXPECT_THAT(entry().message, HasSubstr("enough capacity"));
    ASSERT_TRUE(w.run_until([&] { return cpus[rank_0()].limit == 250; }));
    EXPECT_THAT(asked, ElementsAre(rank_0() + " 600/550", rank_0() + " 250/200"));
    for (int i = 0; i < 5; ++i) w.tick();
    EXPECT_THAT(asked, SizeIs(2));
  }
  EXPECT_THAT(told("ResizeDeferred"), HasSubstr("rank 0 keeps its CPU limit of 250m on slow-0, and does not get 600m"));
  EXPECT_THAT(told("ResizeInfeasible"), HasSubstr("Node didn't have enough capacity"));
  w.decide({{.migration = "", .rank = 0, .set = "fast", .node = "fast-0"}});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.ranks[0].set == "fast"; })) << w.trace;
  EXPECT_EQ(w.violation, "");
}

TEST_F(Resize, ARefusalByTheAPIServerIsToldOnceAndNotRepeated) {
  refusal = Error{ErrorCode::kRefused, "exceeded quota: compute", true};
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kRefused)) << w.trace;
  EXPECT_LE(asked.size(), 1u);
  refusal.reset();
  for (int i = 0; i < 20; ++i) w.tick();
  EXPECT_LE(asked.size(), 1u);
  EXPECT_THAT(told("ResizeRefused"), HasSubstr("exceeded quota: compute"));
  EXPECT_EQ(std::ranges::count(told("ResizeRefused"), '\n'), 1);
  EXPECT_EQ(w.unrest(), "");
}

// Kubernetes 1.36 says so before the node is asked. It is the node that has too little, and no other rank's.
TEST_F(Resize, MoreThanTheNodeHasIsInfeasibleWhoeverSaysSo) {
  refusal =
      Error{ErrorCode::kRefused,
            "pods \"job-r0-g0\" is forbidden: node didn't have enough allocatable resources: cpu, requested: 600, "
            "allocatable: 300"};
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kInfeasible)) << w.trace;
  EXPECT_THAT(told("ResizeInfeasible"), HasSubstr("does not get 600m: pods \"job-r0-g0\" is forbidden"));
  refusal.reset();
  asked.clear();
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_THAT(asked, IsEmpty()) << "there is nothing to be undone";
  EXPECT_EQ(w.unrest(), "");
}

TEST_F(Resize, AFailureThatMayPassIsWaitedForButNotForEver) {
  refusal = Error{ErrorCode::kUnavailable, "the server is busy", true};
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kAsked));
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(entry().phase, ResizePhase::kAsked);
  ASSERT_TRUE(run_until(ResizePhase::kRefused)) << w.trace;
  EXPECT_EQ(entry().message, "the server is busy");
}

TEST_F(Resize, ANodeThatSaysNothingIsNotWaitedForLong) {
  answer = Resizing::kInProgress;
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kDeferred)) << w.trace;
  EXPECT_THAT(entry().message, HasSubstr("has not done it for 10 s"));
  EXPECT_EQ(asked.back(), rank_0() + " 250/200");
}

TEST_F(Resize, WhoeverElseResizesThePodIsLeftAlone) {
  silent = true;
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kAsked));
  w.tick();
  cpus[rank_0()] = {.limit = 333, .request = 333, .given = 250};
  asked.clear();
  ASSERT_TRUE(run_until(ResizePhase::kRefused)) << w.trace;
  EXPECT_EQ(entry().message, "somebody else has changed it to 333m");
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(Resize, WhoeverLowersItAgainIsLeftAloneForLong) {
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kResized)) << w.trace;
  cpus[rank_0()] = {.limit = 250, .request = 200, .given = 250};
  ASSERT_TRUE(run_until(ResizePhase::kRefused)) << w.trace;
  EXPECT_THAT(told("ResizeRefused"), HasSubstr("does not get 600m: somebody else has changed it to 250m"));
  for (int i = 0; i < 30; ++i) w.tick();
  EXPECT_THAT(asked, SizeIs(1)) << "nobody quarrels";
  EXPECT_EQ(w.unrest(), "");
}

// The node does it after all while the rank is on its way.
TEST_F(Resize, ANodeThatIsLateFindsTheRankMoving) {
  answer = Resizing::kInProgress;
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kDeferred)) << w.trace;
  w.decide({{.migration = "", .rank = 0, .set = "fast", .node = "fast-0"}});
  ASSERT_TRUE(w.run_until(migrate::Phase::kPreparing)) << w.trace;
  cpus[rank_0()] = {.limit = 600, .request = 550, .given = 600};
  ASSERT_TRUE(w.run_until([&] { return w.job.status.ranks[0].set == "fast"; })) << w.trace;
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_EQ(cpus[rank_0()].limit, 250) << "the next pod has what the template gives it";
  EXPECT_EQ(w.violation, "");
}

TEST_F(Resize, APodThatGoesMeanwhileEndsIt) {
  answer = Resizing::kInProgress;
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kAsked));
  w.delete_pod(rank_0());
  ASSERT_TRUE(w.run_until([&] { return w.job.status.resizes.empty() || w.job.status.attempt == 1; })) << w.trace;
  answer = Resizing::kNo;
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == crds::JobPhase::kRunning; }))
      << w.trace;
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_THAT(w.job.status.resizes, IsEmpty());
  EXPECT_EQ(w.violation, "");
}

TEST_F(Resize, NoWaveBeginsBeforeItHasEndedAndNoneIsAskedForInAWave) {
  answer = Resizing::kInProgress;
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kAsked));
  w.migrate_by_hand("by-hand", 0, "fast");
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(w.job.status.wave, 0u);
  EXPECT_EQ(w.migration("by-hand").status.phase, crds::MigrationPhase::kPending);
  answer = Resizing::kNo;
  cpus[rank_0()].given = 600;
  ASSERT_TRUE(w.run_until([&] { return w.migration("by-hand").status.phase == crds::MigrationPhase::kSucceeded; }))
      << w.trace;
  EXPECT_EQ(w.job.status.migrations.resized, 1u);
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_EQ(cpus[rank_0()].limit, 250) << "the next pod has what the template gives it";
  EXPECT_EQ(w.violation, "");
}

TEST_F(Resize, WhatPeopleAskForGoesFirst) {
  w.migrate_by_hand("by-hand", 1, "fast");
  decide();
  ASSERT_TRUE(w.run_until([&] { return w.migration("by-hand").status.phase == crds::MigrationPhase::kSucceeded; }));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(Resize, ARequestUnderWayHoldsAWaveBack) {
  silent = asking = true;
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kAsked));
  w.migrate_by_hand("by-hand", 1, "fast");
  for (int i = 0; i < 100; ++i) w.tick();
  EXPECT_EQ(w.job.status.wave, 0u) << "the API server may carry it out at any time";
  asking = false;
  ASSERT_TRUE(w.run_until([&] { return w.migration("by-hand").status.phase == crds::MigrationPhase::kSucceeded; }))
      << w.trace;
}

TEST_F(Resize, EveryTypeAtEveryPlaceOfWhatIsStored) {
  answer = Resizing::kInfeasible;
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kInfeasible));
  nlohmann::json object = w.job;
  const nlohmann::json good = {{{"rank", 0},
                                {"pod", rank_0()},
                                {"node", "slow-0"},
                                {"fromMillicores", 250},
                                {"toMillicores", 600},
                                {"phase", "Asked"},
                                {"time", "2026-11-21T04:05:06Z"},
                                {"message", "m"}}};
  int read = 0;
  hostile::at_every_place(good, [&](const nlohmann::json& changed, const auto&) {
    object["status"]["resizes"] = changed;
    const auto job = crds::bsp_job_from_json(object);
    EXPECT_TRUE(job || job.error().message.starts_with("status.resizes")) << job.error().message;
    if (!job) return;
    ++read;
    Observed o = w.observe();
    o.job = *job;
    JobClocks().fill(o);
    const Step out = reconcile_job(o, unadvised(o), w.limits, w.job_limits);
    crds::BspJob next = o.job;
    next.status = status_of(out);
    const auto again = crds::bsp_job_from_json(nlohmann::json(next));
    EXPECT_TRUE(again) << again.error().message;
    (void)plan_resizes(o, std::vector<double>{1, 2}, {});
  });
  EXPECT_GT(read, 20);
}

TEST_F(Resize, RanksOfAPodAreAskedForTogether) {
  sim::World two{{.ranks = 2, .slow = 1, .fast = 1, .slots = 2, .ranks_per_pod = 2}};
  ASSERT_TRUE(two.run_until(crds::JobPhase::kRunning));
  Observed o = two.observe();
  ASSERT_EQ(o.job.status.ranks[0].pod, o.job.status.ranks[1].pod);
  for (AppFacts& app : o.pods.at(o.job.status.ranks[0].pod).apps) app.cpu_limit = app.cpu_request = app.cpu_given = 250;
  ask_for({{.rank = {0}, .node = "slow-0", .from_milli = 250, .to_milli = 500},
           {.rank = {1}, .node = "slow-0", .from_milli = 250, .to_milli = 400}},
          o.now, o.job.status);
  EXPECT_THAT(resizes_to_make(o), ElementsAre(PodResize{o.job.status.ranks[0].pod, {{0, 500, 500}, {1, 400, 400}}}));
}

// After each write of the status in turn.
TEST(ResizeByAFreshOperator, EndsTheSame) {
  for (int stores = 0; stores < 3; ++stores) {
    sim::World w{{.ranks = 2, .slow = 2, .fast = 2}};
    std::int64_t limit = 250, given = 250;
    w.also_seen = [&](Observed& o) {
      for (auto& [name, pod] : o.pods)
        pod.apps[0].cpu_limit = pod.apps[0].cpu_request = limit, pod.apps[0].cpu_given = given;
      given = limit;
    };
    int requests = 0;
    w.also_done = [&](const Work& work) {
      for (const PodResize& resize : work.resize_pods) limit = resize.seats[0].limit, ++requests;
    };
    ASSERT_TRUE(w.run_until(crds::JobPhase::kRunning));
    Decided call;
    call.resizes = {{.rank = {0}, .node = w.job.status.ranks[0].node, .from_milli = 250, .to_milli = 600}};
    w.decided = call;
    w.die_after_stores = stores;
    ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.resized == 1; })) << stores << w.trace;
    EXPECT_EQ(limit, 600);
    EXPECT_LE(requests, 2) << "the same request changes nothing";
    EXPECT_EQ(w.violation, "");
  }
}

// Two leaders for a moment: both ask for the same.
TEST_F(Resize, ASecondLeaderAsksForTheSame) {
  silent = true;
  decide();
  ASSERT_TRUE(run_until(ResizePhase::kAsked));
  const Observed o = w.observe();
  const std::vector<PodResize> one = resizes_to_make(o);
  ASSERT_THAT(one, SizeIs(1));
  Observed later = o;
  later.pods.at(rank_0()).apps[0].cpu_limit = 600;
  EXPECT_THAT(resizes_to_make(later), IsEmpty()) << "the first one's request is there";
  EXPECT_EQ(resizes_to_make(o), one);
}

}  // namespace
}  // namespace bsp::reconcile
