// What the nodes' benchmarks say of their Sets.
#include "operator/observe/benchmarks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "operator/observe/snapshot.h"

namespace bsp::observe {
namespace {

// Pods and what they say.
class Pods {
 public:
  Pods& add(std::string_view set, std::string_view node, const wire::CpuBenchmark& cpu) {
    pods_.push_back({set, node, &said_.emplace_back(cpu)});
    return *this;
  }
  Pods& add(std::string_view set, std::string_view node, std::uint64_t ns) {
    return add(set, node, {.model = "m", .integer_ns = ns, .floating_ns = ns, .memory_ns = ns});
  }
  operator const std::vector<PodBenchmark>&() const { return pods_; }

 private:
  std::deque<wire::CpuBenchmark> said_;
  std::vector<PodBenchmark> pods_;
};

TEST(Benchmarks, ASetHasTheGeometricMeanOfTheThreeKinds) {
  Benchmarks b;
  EXPECT_TRUE(b.relative_to("old").empty());
  b.update(Pods{}
               .add("old", "o", {.model = "", .integer_ns = 100'000, .floating_ns = 200'000, .memory_ns = 400'000})
               .add("new", "n", {.model = "", .integer_ns = 100'000, .floating_ns = 50'000, .memory_ns = 200'000}));
  EXPECT_DOUBLE_EQ(b.speeds().at("old").value, 5000) << "200 us a unit";
  EXPECT_NEAR(b.relative_to("old").at("new"), 2, 1e-12);
  EXPECT_NEAR(b.relative_to("new").at("old"), 0.5, 1e-12);
  EXPECT_TRUE(b.relative_to("unknown").empty());
}

// Other programs only make it longer; one odd node does not count.
TEST(Benchmarks, TheBestOfANodeAndTheMedianOfItsSetCount) {
  Benchmarks b;
  b.update(Pods{}
               .add("s", "n0", 100'000)
               .add("s", "n0", 300'000)
               .add("s", "n1", 101'000)
               .add("s", "n2", wire::kLeastUnitNs)
               .add("", "n3", 100'000)
               .add("s", "", 100'000));
  EXPECT_NEAR(b.speeds().at("s").value, 1e4, 1);
  EXPECT_EQ(b.speeds().at("s").samples, 3u);
  EXPECT_EQ(b.speeds().size(), 1u);
}

// One that was replaced under the same name.
TEST(Benchmarks, AnotherCpuIsAnotherNode) {
  Benchmarks b;
  b.update(Pods{}
               .add("s", "n", {.model = "a", .integer_ns = 100'000, .floating_ns = 100'000, .memory_ns = 100'000})
               .add("s", "n", {.model = "b", .integer_ns = 400'000, .floating_ns = 400'000, .memory_ns = 400'000}));
  EXPECT_EQ(b.speeds().at("s").samples, 2u);
}

TEST(Benchmarks, EqualWithinWhatABenchmarkCanTell) {
  Benchmarks b;
  b.update(Pods{}.add("a", "a", 100'000).add("b", "b", 108'000).add("c", "c", 120'000));
  EXPECT_EQ(b.relative_to("a").at("b"), 1);
  EXPECT_NEAR(b.relative_to("a").at("c"), 1 / 1.2, 1e-12);
}

TEST(Benchmarks, ASetKeepsItsSpeedUnlessMoreIsKnown) {
  Benchmarks b;
  b.update(Pods{}.add("s", "n0", 100'000).add("s", "n1", 100'000).add("s", "n2", 100'000));
  const double speed = b.speeds().at("s").value;
  b.update(Pods{});
  EXPECT_EQ(b.speeds().at("s").value, speed) << "its last pod has gone";
  b.update(Pods{}.add("s", "n0", 105'000).add("s", "n1", 105'000).add("s", "n2", 105'000));
  EXPECT_EQ(b.speeds().at("s").value, speed) << "noise";
  b.update(Pods{}.add("s", "n9", 300'000));
  EXPECT_EQ(b.speeds().at("s").value, speed) << "one against three";
  b.update(Pods{}.add("s", "n8", 200'000).add("s", "n9", 200'000));
  EXPECT_NEAR(b.speeds().at("s").value, speed / 2, 1) << "other machines";
  EXPECT_EQ(b.speeds().at("s").samples, 2u);
  for (int i = 0; i < 2; ++i) {  // and over a restart
    const Benchmarks again = Benchmarks::from_status(b.to_status());
    ASSERT_EQ(again.speeds().size(), 1u);
    EXPECT_EQ(again.speeds().at("s").value, b.speeds().at("s").value);
    EXPECT_EQ(again.speeds().at("s").samples, 2u);
  }
}

TEST(Benchmarks, WhatIsNoMeasurementCountsForNothing) {
  Benchmarks b;
  b.update(Pods{}.add("s", "n", 0).add("s", "m", ~0ull).add("s", "o", wire::kLeastUnitNs - 1));
  EXPECT_TRUE(b.speeds().empty());
  crds::CalibrationEntry e;
  e.name = "cpuBenchmark", e.set = "s", e.value = 1, e.samples = 1;
  EXPECT_EQ(Benchmarks::from_status({e}).speeds().size(), 1u);
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    e.value = bad;
    EXPECT_TRUE(Benchmarks::from_status({e}).speeds().empty()) << bad;
  }
  e.value = 1, e.samples = 0;
  EXPECT_TRUE(Benchmarks::from_status({e}).speeds().empty());
}

// Of a Set without ranks, whatever the unit of work is.
TEST(Benchmarks, SayHowFastASetWithoutRanksIs) {
  const std::vector<NodeFacts> nodes{
      {.name = "a-0", .set = "a"}, {.name = "b-0", .set = "b"}, {.name = "c-0", .set = "c"}};
  Benchmarks b;
  b.update(Pods{}.add("a", "a-0", 200'000).add("b", "b-0", 100'000));
  Calibration measured;
  SuperstepTimes times;
  times.instructions = {3e9};
  times.compute_seconds = {1};
  measured.add_superstep(times, {"a"});
  const decide::Platform p = make_platform({"a", "b", "c"}, nodes, measured, b.relative_to("a"));
  EXPECT_DOUBLE_EQ(p.processors[0].cpu, 3e9);
  EXPECT_NEAR(p.processors[1].cpu, 6e9, 1);
  EXPECT_DOUBLE_EQ(p.processors[2].cpu, 3e9) << "nobody knows";
  EXPECT_EQ(p.processors[1].cpu_origin, decide::Origin::kAssumed) << "no rank has run there";
}

}  // namespace
}  // namespace bsp::observe
