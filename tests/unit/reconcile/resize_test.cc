// Which ranks get more CPU in place, and how much; what a pod's object says of it; and the request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "crds/stored_status.h"
#include "operator/kinds.h"
#include "operator/reconcile/kernel/resize/resize.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/objects.h"
#include "operator/reconcile/shell/resize_keeper.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;
using crds::RankResize;
using crds::ResizePhase;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Four ranks with 200m each, of which rank 3 is throttled, on nodes with a core left.
class Planning : public ::testing::Test {
 protected:
  Planning() {
    sim::World w({.ranks = 4, .slow = 2, .fast = 2});
    check(w.run_until(crds::JobPhase::kRunning), "the job runs");
    w.job.spec.rescheduling.resize = crds::Resize::kAuto;
    o = w.observe();
    for (auto& [name, pod] : o.pods) pod.apps[0].cpu_limit = pod.apps[0].cpu_request = pod.apps[0].cpu_given = 200;
    for (const crds::RankPlace& place : o.job.status.ranks) o.free_cpu[place.node] = 1000;
    sidecar(3).throttled = 0.75;
  }
  const Seat& seat(std::uint32_t rank) { return seats.emplace_back(o.job.status.ranks[rank].seat()); }
  SidecarFacts& sidecar(std::uint32_t rank) { return o.sidecars.at(seat(rank)); }
  AppFacts& app(std::uint32_t rank) { return o.pods.at(seat(rank).pod).apps[0]; }
  std::int64_t& left(std::uint32_t rank) { return o.free_cpu.at(o.job.status.ranks[rank].node); }
  // "3: 200 -> 400" for each rank.
  std::vector<std::string> planned(const std::vector<double>& seconds, const std::set<std::uint32_t>& moves = {}) {
    std::vector<std::string> all;
    for (const auto& r : plan_resizes(o, seconds, moves))
      all.push_back(std::format("{}: {} -> {}", r.rank.value, r.from_milli, r.to_milli));
    return all;
  }
  void have(RankResize resize) {
    const crds::RankPlace& place = o.job.status.ranks[resize.rank.value];
    resize.pod = place.pod;
    resize.node = place.node;
    o.job.status.resizes = {std::move(resize)};
  }

  const std::vector<double> behind{1, 1, 1, 2};
  std::deque<Seat> seats;
  Observed o;
};

TEST_F(Planning, BringsAThrottledRankToTheOthersPaceAndNoFurther) {
  EXPECT_THAT(planned(behind), ElementsAre("3: 200 -> 400"));
  EXPECT_THAT(planned({1, 1.2, 1, 2}), ElementsAre("3: 200 -> 334")) << "whole thousandths, up; rank 1 isn't throttled";
  const auto plan = plan_resizes(o, behind, {});
  EXPECT_EQ(plan[0].superstep_before, 2);
  EXPECT_EQ(plan[0].superstep_after, 1);
  EXPECT_EQ(plan[0].node, o.job.status.ranks[3].node);
}

TEST_F(Planning, GivesNoMoreThanTheRankCanUse) {
  sidecar(3).throttled = 0.2;
  EXPECT_THAT(planned(behind), ElementsAre("3: 200 -> 250")) << "then nothing holds it back";
  sidecar(3).throttled = 1;
  EXPECT_THAT(planned(behind), ElementsAre("3: 200 -> 400")) << "of several threads";
}

TEST_F(Planning, LeavesARankAloneThatIsNotThrottledOrNotBehind) {
  EXPECT_THAT(planned({1, 1, 1, 1.05}), IsEmpty());
  EXPECT_THAT(planned({2, 1, 1, 2}), IsEmpty()) << "another is as slow, and can't be helped";
  EXPECT_THAT(planned({0, 0, 0, 0}), IsEmpty());
  EXPECT_THAT(planned({}), IsEmpty());
  EXPECT_THAT(planned({1, 1}), IsEmpty());
  sidecar(3).throttled = 0.04;
  EXPECT_THAT(planned(behind), IsEmpty());
  sidecar(3).throttled = 0.75;
  o.job.spec.rescheduling.min_gain = 0.6;
  EXPECT_THAT(planned(behind), IsEmpty()) << "spec.rescheduling.minGain";
}

TEST_F(Planning, NeedsRoomOnTheNode) {
  left(3) = 100;
  EXPECT_THAT(planned(behind), ElementsAre("3: 200 -> 300"));
  EXPECT_THAT(planned(behind, {3}), IsEmpty()) << "a move brings it all";
  EXPECT_THAT(planned(behind, {2}), SizeIs(1));
  for (const std::int64_t none : {0, 10, -500}) {
    left(3) = none;
    EXPECT_THAT(planned(behind), IsEmpty()) << none;
  }
  o.free_cpu.clear();
  EXPECT_THAT(planned(behind), IsEmpty()) << "nothing is known of it";
}

TEST_F(Planning, ThrottledRanksOfANodeShareItsRoomTheSlowestFirst) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) o.job.status.ranks[rank].node = "fast-0";
  o.free_cpu = {{"fast-0", 350}};
  sidecar(2).throttled = 0.75;
  EXPECT_THAT(planned({1, 1, 2, 3}), ElementsAre("3: 200 -> 550"));
  o.free_cpu = {{"fast-0", 500}};
  EXPECT_THAT(planned({1, 1, 2, 3}), ElementsAre("3: 200 -> 600", "2: 200 -> 300"));
}

TEST_F(Planning, NeedsAContainerThatCanBeResized) {
  EXPECT_THAT(planned(behind), SizeIs(1));
  const auto refuses = [&](auto change) {
    const Observed before = o;
    change();
    const bool none = planned(behind).empty();
    o = before;
    return none;
  };
  EXPECT_TRUE(refuses([&] { o.job.spec.rescheduling.resize = crds::Resize::kOff; }));
  EXPECT_TRUE(refuses([&] { app(3).cpu_limit = 0; })) << "it has no limit";
  EXPECT_TRUE(refuses([&] { app(3).keeps_cpu = true; }));
  EXPECT_TRUE(refuses([&] { app(3).running = false; }));
  EXPECT_TRUE(refuses([&] { app(3).cpu_given = 0; })) << "its node doesn't say what it has";
  EXPECT_TRUE(refuses([&] { app(3).cpu_given = 100; })) << "somebody resizes it";
  EXPECT_TRUE(refuses([&] { o.pods.at(seat(3).pod).resizing = Resizing::kInProgress; }));
  EXPECT_TRUE(refuses([&] { o.pods.at(seat(3).pod).deleting = true; }));
  EXPECT_TRUE(refuses([&] { o.pods.erase(seat(3).pod); }));
  EXPECT_TRUE(refuses([&] { o.sidecars.clear(); }));
}

TEST_F(Planning, WhatWasTriedRests) {
  const auto after = [&](ResizePhase phase, Duration past, std::uint32_t rank = 3) {
    have({.rank = {rank}, .from_milli = 100, .to_milli = 300, .phase = phase, .time = o.now - past});
    return planned(behind).empty();
  };
  EXPECT_TRUE(after(ResizePhase::kAsked, 1h));
  EXPECT_TRUE(after(ResizePhase::kAsked, 1h, 0)) << "of any rank";
  EXPECT_TRUE(after(ResizePhase::kResized, 14s)) << "until throttled tells of the new limit";
  EXPECT_FALSE(after(ResizePhase::kResized, 16s));
  EXPECT_TRUE(after(ResizePhase::kDeferred, 4min));
  EXPECT_FALSE(after(ResizePhase::kDeferred, 4min, 0));
  EXPECT_FALSE(after(ResizePhase::kDeferred, 6min));
  EXPECT_TRUE(after(ResizePhase::kInfeasible, 59min));
  EXPECT_FALSE(after(ResizePhase::kInfeasible, 61min));
  EXPECT_TRUE(after(ResizePhase::kRefused, 29min, 0)) << "of the whole job";
  EXPECT_FALSE(after(ResizePhase::kRefused, 31min));
  have({.rank = {3}, .phase = ResizePhase::kInfeasible, .time = o.now});
  o.job.status.resizes[0].node = "another";
  EXPECT_THAT(planned(behind), SizeIs(1)) << "it has left that node";
}

TEST_F(Planning, TheStatusKeepsOneOfARankAndNotTooMany) {
  crds::BspJobStatus status = o.job.status;
  for (std::uint32_t i = 0; i < crds::kMostResizes; ++i)
    status.resizes.push_back({.rank = {100 + i}, .phase = ResizePhase::kInfeasible, .time = o.now});
  status.resizes[5].rank = {3};
  ask_for(plan_resizes(o, behind, {}), o.now, status);
  ask_for(plan_resizes(o, behind, {}), o.now, status);
  ASSERT_THAT(status.resizes, SizeIs(crds::kMostResizes));
  EXPECT_EQ(std::ranges::count(status.resizes, RankId{3}, &RankResize::rank), 1);
  EXPECT_EQ(status.resizes.back().rank, RankId{3});
  EXPECT_EQ(status.resizes.back().phase, ResizePhase::kAsked);
  EXPECT_EQ(status.resizes.back().to_milli, 400u);
}

// --- What a call says ----------------------------------------------------------------------------------

// A wave that brings both ranks of slow to fast is planned; they take 2 s there, and rank 2 takes one.
TEST_F(Rescheduling, AResizeGoesBeforeAMoveAndStatesBothPrices) {
  o.job.spec.rescheduling.resize = crds::Resize::kAuto;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const crds::RankPlace& place = o.job.status.ranks[rank];
    AppFacts& app = o.pods.at(place.pod).apps[0];
    app.cpu_limit = app.cpu_request = app.cpu_given = 250;
    o.free_cpu[place.node] = 1000;
  }
  Rescheduler unthrottled = rescheduler();
  const auto moved = feed(unthrottled, 1, 4);
  ASSERT_TRUE(moved);
  EXPECT_THAT(moved->moves, SizeIs(2));
  EXPECT_THAT(moved->resizes, IsEmpty()) << "no limit holds them back";

  o.job.status.ranks[1].set = o.job.status.ranks[2].set;  // as fast as rank 2
  o.sidecars.at(o.job.status.ranks[0].seat()).throttled = 0.5;
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  EXPECT_THAT(decided->moves, IsEmpty());
  ASSERT_THAT(decided->resizes, SizeIs(1));
  EXPECT_EQ(decided->decision.outcome, crds::kResizing);
  EXPECT_EQ(decided->decision.planned_moves, 0u);
  ASSERT_THAT(decided->decision.resizes, SizeIs(1));
  const crds::ResizeEntry& entry = decided->decision.resizes[0];
  EXPECT_EQ(entry.to_milli, 500u);
  EXPECT_EQ(entry.move_to, "fast");
  ASSERT_TRUE(entry.move_seconds);
  EXPECT_GT(*entry.move_seconds, 0);
  EXPECT_THAT(decided->decision.message,
              HasSubstr("1 rank gets more CPU in place, without a pause; superstep predicted 2 s → 1 s"));
  EXPECT_THAT(crds::why_lines(decided->decision, 5).front(),
              testing::MatchesRegex(
                  "rank 0 gets a CPU limit of 500m instead of 250m on slow-., without a pause: superstep 2 s → 1 s; a "
                  "move to fast would cost a pause of .* m?s"));

  o.job.spec.rescheduling.mode = crds::ReschedulingMode::kAdvise;
  Rescheduler advises = rescheduler();
  const auto advised = feed(advises, 1, 4);
  ASSERT_TRUE(advised);
  EXPECT_THAT(advised->resizes, IsEmpty());
  EXPECT_THAT(advised->decision.resizes, SizeIs(1));
  EXPECT_EQ(advised->decision.outcome, "Advised");
}

// Whatever becomes of the resize, nobody has to tell the next call that the rank is to move.
TEST_F(Rescheduling, WhereAResizeComesToNothingTheNextCallMovesTheRank) {
  o.job.spec.rescheduling.resize = crds::Resize::kAuto;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    AppFacts& app = o.pods.at(o.job.status.ranks[rank].pod).apps[0];
    app.cpu_limit = app.cpu_request = app.cpu_given = 250;
    o.free_cpu[o.job.status.ranks[rank].node] = 1000;
  }
  o.job.status.ranks[1].set = o.job.status.ranks[2].set;  // as fast as rank 2
  o.sidecars.at(o.job.status.ranks[0].seat()).throttled = 0.5;
  const std::string pod = o.job.status.ranks[0].pod;
  const auto settled = [](Observed& seen) {
    std::vector<Event> events;
    settle_resizes(seen, seen.job.status, events);
    return seen.job.status.resizes.at(0).phase;
  };
  const std::map<ResizePhase, std::function<void(Observed&, AppFacts&)>> ends{
      {ResizePhase::kDeferred,
       [&](Observed& seen, AppFacts& app) { app.cpu_limit = 500, seen.pods.at(pod).resizing = Resizing::kDeferred; }},
      {ResizePhase::kInfeasible,
       [&](Observed& seen, AppFacts& app) { app.cpu_limit = 500, seen.pods.at(pod).resizing = Resizing::kInfeasible; }},
      {ResizePhase::kRefused,
       [&](Observed& seen, AppFacts&) { seen.not_resized = {{pod, {ErrorCode::kRefused, "exceeded quota", true}}}; }},
      // Accepted, and done by nobody.
      {ResizePhase::kAsked, [](Observed& seen, AppFacts& app) { app.cpu_limit = 500, seen.resizing_for = 11s; }},
      // Done, and lowered again.
      {ResizePhase::kResized, [&](Observed& seen, AppFacts& app) {
         app.cpu_limit = app.cpu_given = 500;
         EXPECT_EQ(settled(seen), ResizePhase::kResized);
       }}};
  const Observed before = o;
  for (const auto& [end, happens] : ends) {
    o = before;
    Rescheduler r = rescheduler();
    const auto first = feed(r, 1, 4);
    ASSERT_TRUE(first);
    ASSERT_THAT(first->resizes, SizeIs(1));
    ask_for(first->resizes, o.now, o.job.status);
    EXPECT_FALSE(feed(r, 5, 8)) << "it is under way";
    AppFacts& app = o.pods.at(pod).apps[0];
    happens(o, app);
    const ResizePhase phase = settled(o);
    EXPECT_NE(phase, ResizePhase::kAsked);
    app.cpu_limit = app.cpu_given = 250;
    o.pods.at(pod).resizing = Resizing::kNo;
    if (phase == ResizePhase::kResized) {
      for (auto& [seat, s] : o.sidecars) s.completed = 8;
      EXPECT_EQ(settled(o), ResizePhase::kRefused) << "somebody has lowered it";
      o.now += 1min;
    }
    std::optional<Decided> next;
    for (std::uint64_t t = 9; !next && t < 40; ++t) next = feed(r, t);
    ASSERT_TRUE(next) << static_cast<int>(end);
    EXPECT_THAT(next->resizes, IsEmpty());
    EXPECT_TRUE(std::ranges::contains(next->moves, 0u, &MoveRequest::rank)) << next->decision.message;
  }
}

TEST_F(Rescheduling, NothingIsDecidedWhileAResizeIsUnderWayAndOnlyOnWhatCameAfterIt) {
  Rescheduler r = rescheduler();
  o.job.status.resizes = {{.rank = {0}, .pod = o.job.status.ranks[0].pod, .node = o.job.status.ranks[0].node}};
  EXPECT_FALSE(feed(r, 1, 9));
  o.job.status.resizes[0].phase = ResizePhase::kResized;
  o.job.status.migrations.resized = 1;
  for (auto& [seat, s] : o.sidecars) s.completed = 10;
  EXPECT_FALSE(feed(r, 10, 14)) << "the window begins after superstep 11";
  EXPECT_TRUE(feed(r, 15));
}

// --- What a pod says -----------------------------------------------------------------------------------

json a_pod() {
  return json::parse(R"({"metadata": {"name": "job-r0-g0", "labels": {"migbsp.io/rank": "0", "migbsp.io/job": "job"}},
    "spec": {"nodeName": "n", "containers": [{"name": "app", "image": "i", "resources": {"limits": {"cpu": "500m",
      "memory": "1Gi"}, "requests": {"cpu": "0.4", "memory": "1Gi"}}}, {"name": "helper", "resources": {"limits": {"cpu": 4}}}]},
    "status": {"phase": "Running", "containerStatuses": [{"name": "app", "state": {"running": {}}, "allocatedResources":
      {"cpu": "400m"}, "resources": {"limits": {"cpu": "200m", "memory": "1Gi"}}}, {"name": "helper", "resources": {"limits": {"cpu": 4}}}]}})");
}

PodFacts seen(json pod) {
  const PodFacts whole = pod_facts(pod);
  trim_watched(kPod, pod);
  EXPECT_EQ(pod_facts(pod), whole) << "what the cache keeps says the same";
  EXPECT_FALSE(pod["status"]["containerStatuses"][1].contains("resources"))
      << "a helper's would take memory for nothing";
  return whole;
}

TEST(ResizedPod, SaysWhatItAsksForAndWhatItHas) {
  const AppFacts app = seen(a_pod()).app();
  EXPECT_EQ(app.cpu_limit, 500);
  EXPECT_EQ(app.cpu_request, 400);
  EXPECT_EQ(app.cpu_given, 200);
  EXPECT_FALSE(app.keeps_cpu);
  json pod = a_pod();
  pod["spec"]["containers"][0]["resources"].erase("requests");
  EXPECT_EQ(seen(pod).app().cpu_request, 500) << "a limit without a request is one";
  pod["spec"]["containers"][0]["resizePolicy"] = {{{"resourceName", "memory"}, {"restartPolicy", "RestartContainer"}},
                                                  {{"resourceName", "cpu"}, {"restartPolicy", "NotRequired"}}};
  EXPECT_FALSE(seen(pod).app().keeps_cpu);
  pod["spec"]["containers"][0]["resizePolicy"][1]["restartPolicy"] = "RestartContainer";
  EXPECT_TRUE(seen(pod).app().keeps_cpu);
  pod = a_pod();
  pod["spec"]["resources"] = {{"limits", {{"cpu", "4"}}}};
  EXPECT_TRUE(seen(pod).app().keeps_cpu) << "the pod as a whole has it";
}

TEST(ResizedPod, SaysHowItGoes) {
  const auto with = [](std::vector<json> conditions) {
    json pod = a_pod();
    pod["status"]["conditions"] = std::move(conditions);
    return seen(pod);
  };
  const json in_progress = {{"type", "PodResizeInProgress"}, {"status", "True"}};
  json pending = {{"type", "PodResizePending"}, {"status", "True"}, {"reason", "Deferred"}, {"message", "not now"}};
  EXPECT_EQ(with({}).resizing, Resizing::kNo);
  EXPECT_EQ(with({in_progress}).resizing, Resizing::kInProgress);
  EXPECT_EQ(with({in_progress, pending}).resizing, Resizing::kDeferred);
  EXPECT_EQ(with({pending, in_progress}).resizing, Resizing::kDeferred);
  EXPECT_EQ(with({pending, in_progress}).resize_message, "not now");
  pending["reason"] = "Infeasible";
  EXPECT_EQ(with({pending}).resizing, Resizing::kInfeasible);
  pending["status"] = "False";
  EXPECT_EQ(with({pending}).resizing, Resizing::kNo);
}

TEST(ResizedPod, IsAskedForByTheNamesOfItsContainers) {
  EXPECT_EQ(patch_of({"p", {{0, 500, 400}, {2, 250, 250}}}), json::parse(R"({"spec": {"containers": [
    {"name": "app", "resources": {"limits": {"cpu": "500m"}, "requests": {"cpu": "400m"}}},
    {"name": "app-2", "resources": {"limits": {"cpu": "250m"}, "requests": {"cpu": "250m"}}}]}})"));
}

TEST_F(Planning, ThrottlingIsToldByThePodsOwnLimit) {
  EXPECT_THAT(held_back_by_limit(o), ElementsAre(0, 0, 0, 1));
  app(3).cpu_limit = 4000;
  EXPECT_THAT(held_back_by_limit(o), ElementsAre(0, 0, 0, 0)) << "more than its node gives to a rank";
}

}  // namespace
}  // namespace bsp::reconcile
