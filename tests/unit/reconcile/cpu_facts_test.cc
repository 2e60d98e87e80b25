// A rank goes only where the CPU has every feature that its libraries have seen when they chose their code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>

#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/shell/node_benchmarks.h"
#include "tests/unit/reconcile/expectations.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

CpuFeatures named(std::string_view names) { return CpuFeatures::from_names(names).value(); }
const CpuFeatures kAvx2 = named("pni,avx,avx2"), kAvx512 = named("pni,avx,avx2,avx512f,avx512bw");

// What an operator knows of nodes once a pod has been there.
void know(World& w, const std::string& set, CpuFeatures cpu) {
  for (observe::NodeFacts& node : w.nodes)
    if (node.set == set) node.cpu_features = cpu;
}

TEST(CpuFacts, AProgramMayGoToMoreFeaturesAndBack) {
  World w({.ranks = 2, .slow = 3, .fast = 2});
  w.cpus = {{"slow", kAvx2}, {"fast", kAvx512}};
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("there", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.migration("there").status.phase == Phase::kSucceeded; })) << w.trace;
  w.migrate_by_hand("back", 0, "slow");
  ASSERT_TRUE(w.run_until([&] { return w.migration("back").status.phase == Phase::kSucceeded; })) << w.trace;
}

TEST(CpuFacts, ATargetOfWhichNothingWasKnownGoesBackBeforeAnyRankStops) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  w.cpus = {{"slow", kAvx512}, {"fast", kAvx2}};
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("m").status.phase); })) << w.trace;
  const auto& status = w.migration("m").status;
  EXPECT_EQ(status.phase, Phase::kRolledBack);
  EXPECT_EQ(status.reason, "CPUFeaturesDiffer");
  EXPECT_THAT(status.message, HasSubstr("lacks avx512f, avx512bw"));
  EXPECT_EQ(w.job.status.epoch->epoch, 1u) << "nothing was stopped, so no epoch was needed";
}

TEST(CpuFacts, AKnownNodeIsRefusedByNameWithoutAnAttempt) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  w.cpus = {{"slow", kAvx512}, {"fast", kAvx2}};
  know(w, "fast", kAvx2);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  const std::size_t pods = w.created.size();
  w.migrate_by_hand("set", 0, "fast");
  w.migrate_by_hand("node", 1, "", "fast-1");
  for (const char* name : {"set", "node"}) {
    ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration(name).status.phase); })) << w.trace;
    EXPECT_EQ(w.migration(name).status.reason, "CPUFeaturesDiffer");
    EXPECT_THAT(w.migration(name).status.message, HasSubstr("lacks avx512f, avx512bw, which the libraries of rank"));
  }
  EXPECT_EQ(w.created.size(), pods) << "no target was made";
  const auto* condition = crds::find_condition(w.job.status.conditions, "CPUFeaturesDiffer");
  ASSERT_TRUE(condition);
  EXPECT_THAT(condition->message,
              HasSubstr("ranks 0, 1 can't go to Set fast, whose CPUs lack avx512f, avx512bw: their libraries"));
  EXPECT_THAT(condition->message, HasSubstr("; create a job with spec.cpu: Common"));
  EXPECT_TRUE(w.has_event("CPUFeaturesDiffer"));
}

TEST(CpuFacts, ADrainedNodesRankGoesToTheSetThatHasACpuForIt) {
  World w({.ranks = 2, .slow = 3, .fast = 2});
  w.cpus = {{"slow", kAvx512}, {"fast", kAvx2}};
  know(w, "fast", kAvx2);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.cordon("slow-0");
  w.cordon("slow-1");
  const auto on = [&](const std::string& node) {
    return std::ranges::count(w.job.status.ranks, node, &crds::RankPlace::node);
  };
  ASSERT_TRUE(w.run_until([&] { return on("slow-2") == 1; })) << w.trace;
  ASSERT_TRUE(w.run_until([&] {
    const auto* draining = crds::find_condition(w.job.status.conditions, "Draining");
    return draining && draining->reason == "NowhereToGo";
  })) << nlohmann::json(w.job).dump(1);
  EXPECT_EQ(on("fast-0") + on("fast-1"), 0);
}

class CpuRescheduling : public Rescheduling {
 protected:
  CpuRescheduling() {
    for (auto& [seat, sidecar] : o.sidecars) {
      const bool fast = o.pods.at(seat.pod).set == "fast";
      sidecar.status->cpu_features = (fast ? kAvx2 : kAvx512).bits();
      sidecar.status->program_features = sidecar.status->cpu_features;
    }
  }
  static bool moves(const Decided& decided, std::uint32_t rank) {
    return std::ranges::contains(decided.moves, rank, &MoveRequest::rank);
  }
  static std::string reason_of(const Decided& decided, std::uint32_t rank) {
    const auto stay = std::ranges::find(decided.decision.stays, RankId{rank}, &crds::StayEntry::rank);
    return stay == decided.decision.stays.end() ? "" : stay->reason;
  }
};

TEST_F(CpuRescheduling, NoHeuristicPlansAMoveToACpuThatLacksSomething) {
  for (const std::string_view name : EnumNames<crds::Heuristic>::names) {
    o.job.spec.rescheduling.heuristic = *enum_named<crds::Heuristic>(name);
    Rescheduler with = rescheduler();
    const auto decided = feed(with, 1, 4);
    ASSERT_TRUE(decided) << name;
    EXPECT_THAT(decided->moves, testing::IsEmpty()) << name;
    EXPECT_EQ(reason_of(*decided, 0), "CPUFeaturesDiffer") << name;
    EXPECT_THAT(decided->text, testing::Contains(HasSubstr("the CPUs of fast lack avx512f, avx512bw"))) << name;
  }
  for (auto& [seat, sidecar] : o.sidecars) sidecar.status->program_features = kAvx2.bits();
  Rescheduler without = rescheduler();
  EXPECT_TRUE(moves(*feed(without, 1, 4), 0)) << "as they start with spec.cpu: Common";
}

TEST_F(CpuRescheduling, AnOddNodeOfASetIsLeftOut) {
  for (observe::NodeFacts& node : o.nodes)
    if (node.set == "fast") node.cpu_features = kAvx512;
  const auto used = std::ranges::find(o.job.status.ranks, "fast", &crds::RankPlace::set)->node;
  std::string odd;
  for (observe::NodeFacts& node : o.nodes)
    if (node.set == "fast" && node.name != used && odd.empty()) odd = node.name, node.cpu_features = kAvx2;
  for (auto& [seat, sidecar] : o.sidecars) sidecar.status->cpu_features = kAvx512.bits();
  const observe::CpuFacts facts = cpu_facts(o);
  EXPECT_TRUE(facts.is_odd(odd));
  EXPECT_THAT(facts.closed_to(0), testing::IsEmpty());
  o.job.spec.rescheduling.heuristic = crds::Heuristic::kTop;  // one rank alone shortens no superstep
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  ASSERT_EQ(decided->moves.size(), 1u);
  EXPECT_NE(decided->moves[0].node, odd);
}

// --- spec.cpu: Common -------------------------------------------------------------------------------------------
TEST(CommonCpu, IsWhatAllSetsHave) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  w.job.spec.cpu = crds::CpuLevel::kCommon;
  w.cpus = {{"slow", kAvx512}};
  know(w, "fast", kAvx2);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  EXPECT_EQ(CpuFeatures(w.job.status.epoch->cpu_level), kAvx2);
  EXPECT_TRUE(w.has_event("CPULevel"));
  const std::string stored = nlohmann::json(w.job).dump();
  EXPECT_THAT(stored, HasSubstr(std::format("'cpu_level':{}", kAvx2.bits()))) << "a later leader knows it";
  w.migrate_by_hand("m", 0, "slow", "slow-1");
  w.run_until([&] { return crds::is_finished(w.migration("m").status.phase); });
  EXPECT_EQ(CpuFeatures(w.job.status.epoch->cpu_level), kAvx2) << "of every epoch";
}

TEST(CommonCpu, NamesTheSetsThatItCantCount) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  w.job.spec.cpu = crds::CpuLevel::kCommon;
  w.cpus = {{"slow", kAvx512}};
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  EXPECT_EQ(CpuFeatures(w.job.status.epoch->cpu_level), kAvx512);
  const auto event = std::ranges::find(w.events, "CPULevel", &Event::reason);
  ASSERT_NE(event, w.events.end());
  EXPECT_THAT(event->message, HasSubstr("nothing is known of the CPUs in fast"));
}

TEST(CommonCpu, HoldsNothingBackWhereNoSidecarKnows) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  w.job.spec.cpu = crds::CpuLevel::kCommon;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  EXPECT_EQ(w.job.status.epoch->cpu_level, 0u);
  EXPECT_TRUE(w.has_event("CPULevelUnknown"));
}

TEST(NativeCpu, LeavesTheProgramAlone) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  w.cpus = {{"slow", kAvx512}};
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  EXPECT_EQ(w.job.status.epoch->cpu_level, 0u);
  EXPECT_FALSE(w.has_event("CPULevel"));
}

// --- The shell's memory -----------------------------------------------------------------------------------------
TEST(NodeCpu, IsRememberedByMachineAndNamespace) {
  NodeBenchmarks known;
  World w({.ranks = 2, .slow = 2, .fast = 2});
  w.cpus = {{"slow", kAvx512}};
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  Observed seen = w.observe();
  for (observe::NodeFacts& node : seen.nodes) node.uid = "uid-" + node.name;
  known.share(seen);
  const auto of_slow_0 = [&](Observed o) {
    o.sidecars.clear();
    known.share(o);
    return std::ranges::find(o.nodes, "slow-0", &observe::NodeFacts::name)->cpu_features;
  };
  EXPECT_EQ(of_slow_0(seen), kAvx512);
  Observed anew = seen, another = seen;
  for (observe::NodeFacts& node : anew.nodes) node.uid += "-anew", node.cpu_features = {};
  EXPECT_FALSE(of_slow_0(anew).known());
  another.job.metadata.name_space = "another";
  for (observe::NodeFacts& node : another.nodes) node.cpu_features = {};
  EXPECT_FALSE(of_slow_0(another).known()) << "a tenant's sidecars may say anything";
}

}  // namespace
}  // namespace bsp::reconcile::sim
