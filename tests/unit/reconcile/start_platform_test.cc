// Where ranks start if the speeds of nodes are known before: by benchmarks of earlier jobs, and by an earlier attempt.
#include "operator/reconcile/kernel/start/start_platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>

#include "operator/decide/model/mapping.h"
#include "operator/reconcile/shell/node_benchmarks.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using ::testing::ElementsAre;

// Two nodes of one slot in each of a, b and c; nothing is known of them.
Observed three_sets(std::uint32_t ranks) {
  Observed o;
  o.job.metadata.name = "job", o.job.metadata.name_space = "team";
  o.job.spec.ranks = ranks;
  for (const char* set : {"a", "b", "c"})
    for (int i = 0; i < 2; ++i) {
      const std::string name = std::format("{}-{}", set, i);
      o.nodes.push_back({.name = name, .set = set, .slots = 1, .uid = "uid-" + name});
    }
  return o;
}
void set_benchmark(Observed& o, const std::string& set, double speed) {
  for (auto& node : o.nodes)
    if (node.set == set) node.benchmark = speed;
}
std::vector<std::string> nodes_at_start(const Observed& o) {
  const decide::Platform platform = platform_at_start(o, o.nodes);
  std::vector<std::string> nodes;
  const auto mapping = decide::initial_mapping(o.job.spec.initial_mapping, o.job.spec.ranks, platform);
  for (const ProcessorId p : mapping.value()) nodes.push_back(platform.processor(p).name);
  return nodes;
}

TEST(StartPlatform, ContiguousFillsTheFastestSetFirst) {
  Observed o = three_sets(3);
  EXPECT_THAT(nodes_at_start(o), ElementsAre("a-0", "a-1", "b-0")) << "by name";
  set_benchmark(o, "a", 5000), set_benchmark(o, "b", 4000), set_benchmark(o, "c", 9000);
  EXPECT_THAT(nodes_at_start(o), ElementsAre("c-0", "c-1", "a-0"));
  set_benchmark(o, "b", 5300), set_benchmark(o, "c", 5200);
  EXPECT_THAT(nodes_at_start(o), ElementsAre("a-0", "a-1", "b-0")) << "no benchmark is that precise";
}

TEST(StartPlatform, SaysInWhichOrder) {
  sim::World w({.ranks = 3, .slow = 2, .fast = 2});
  w.job.spec.sets.names.clear();
  for (auto& node : w.nodes) node.speed = node.set == "slow" ? 1 : 0.5;
  ASSERT_TRUE(w.run_until(crds::JobPhase::kStarting)) << w.trace;
  EXPECT_EQ(w.job.status.ranks[0].set, "slow");
  EXPECT_EQ(w.job.status.message, "3 ranks are mapped Contiguous, the fastest Set first: slow, fast");
}

TEST(StartPlatform, TheManifestsOrderStays) {
  Observed o = three_sets(3);
  set_benchmark(o, "a", 1000), set_benchmark(o, "b", 9000), set_benchmark(o, "c", 5000);
  o.job.spec.sets.names = {"a", "c"};
  EXPECT_THAT(nodes_at_start(o), ElementsAre("a-0", "a-1", "c-0"));
}

TEST(StartPlatform, TheOtherMappingsGoByBenchmarksToo) {
  Observed o = three_sets(3);
  set_benchmark(o, "a", 1000), set_benchmark(o, "b", 9000), set_benchmark(o, "c", 5000);
  o.job.spec.initial_mapping = crds::InitialMapping::kDescending;
  EXPECT_THAT(nodes_at_start(o), ElementsAre("b-0", "b-1", "c-0"));
  o.job.spec.initial_mapping = crds::InitialMapping::kAscending;
  EXPECT_THAT(nodes_at_start(o), ElementsAre("a-0", "a-1", "c-0"));
  o.job.spec.initial_mapping = crds::InitialMapping::kRoundRobin;
  EXPECT_THAT(nodes_at_start(o), ElementsAre("a-0", "b-0", "c-0")) << "goes by no speed";
}

TEST(StartPlatform, AnEarlierAttemptsMeasurementsCount) {
  Observed o = three_sets(3);
  crds::CalibrationEntry cpu;
  cpu.name = "cpu", cpu.source = crds::CalibrationSource::kCounted, cpu.samples = 9;
  cpu.set = "a", cpu.value = 1e9;
  o.job.status.calibration.push_back(cpu);
  cpu.set = "b", cpu.value = 3e9;
  o.job.status.calibration.push_back(cpu);
  cpu.name = "cpuBenchmark", cpu.set = "a", cpu.value = 1000, cpu.samples = 2;
  o.job.status.calibration.push_back(cpu);
  set_benchmark(o, "c", 5000);
  EXPECT_THAT(nodes_at_start(o), ElementsAre("c-0", "c-1", "b-0")) << "c: five times as fast as a";
}

TEST(StartPlatform, WhatKueueAdmittedStays) {
  Observed o = three_sets(3);
  set_benchmark(o, "c", 9000), set_benchmark(o, "a", 5000);
  o.queued = Queued{"queue", {}};
  EXPECT_THAT(nodes_at_start(o), ElementsAre("a-0", "a-1", "b-0"));
}

// --- The shell's memory --------------------------------------------------------------------------------------------------

void report(Observed& o, const std::string& pod, const std::string& node, const wire::CpuBenchmark& cpu) {
  o.pods[pod].node = node;
  o.sidecars[Seat{pod}].status.emplace();
  o.sidecars[Seat{pod}].status->cpu = cpu;
}
wire::CpuBenchmark cpu(std::uint64_t ns, const std::string& model = "M") {
  return {.model = model, .integer_ns = ns, .floating_ns = ns, .memory_ns = ns};
}
std::optional<double> benchmark_of(NodeBenchmarks& known, Observed o, const std::string& node = "b-0") {
  known.share(o);
  return std::ranges::find(o.nodes, node, &observe::NodeFacts::name)->benchmark;
}

TEST(NodeBenchmarks, OutliveTheirJob) {
  NodeBenchmarks known;
  Observed first = three_sets(1), next = three_sets(1);
  next.job.metadata.name = "next";
  EXPECT_FALSE(benchmark_of(known, next));
  report(first, "job-r0-g0", "b-0", cpu(200'000));
  EXPECT_DOUBLE_EQ(benchmark_of(known, first).value(), 5000);
  EXPECT_DOUBLE_EQ(benchmark_of(known, next).value(), 5000);
  EXPECT_FALSE(benchmark_of(known, next, "b-1")) << "another machine";
  report(first, "job-r0-g0", "b-0", cpu(100'000));
  benchmark_of(known, first);
  report(first, "job-r0-g0", "b-0", cpu(400'000));
  benchmark_of(known, first);
  EXPECT_DOUBLE_EQ(benchmark_of(known, next).value(), 10'000) << "other programs only make it longer";
}

TEST(NodeBenchmarks, EndWithTheMachine) {
  NodeBenchmarks known;
  Observed o = three_sets(1), later = three_sets(1);
  report(o, "job-r0-g0", "b-0", cpu(100'000, "old"));
  benchmark_of(known, o);
  for (auto& node : later.nodes) node.uid += "-anew";
  EXPECT_FALSE(benchmark_of(known, later)) << "a node of that name";
  report(o, "job-r0-g0", "b-0", cpu(200'000, "new"));
  EXPECT_DOUBLE_EQ(benchmark_of(known, o).value(), 5000) << "another CPU model";
}

// A tenant's sidecars may say anything.
TEST(NodeBenchmarks, StayInTheirNamespace) {
  NodeBenchmarks known;
  Observed liar = three_sets(1), other = three_sets(1);
  other.job.metadata.name_space = "another";
  report(liar, "job-r0-g0", "b-0", cpu(wire::kLeastUnitNs));
  report(liar, "job-r1-g0", "no-such-node", cpu(100'000));
  EXPECT_TRUE(benchmark_of(known, liar));
  EXPECT_FALSE(benchmark_of(known, other));
  report(liar, "job-r0-g0", "a-0", cpu(1));
  EXPECT_FALSE(benchmark_of(known, liar, "a-0")) << "no measurement";
}

}  // namespace
}  // namespace bsp::reconcile
