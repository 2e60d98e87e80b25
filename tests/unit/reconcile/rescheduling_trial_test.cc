// A Set without ranks, of whose speed nothing is known, as the operator's scheduler sees it.
#include <gmock/gmock.h>

#include <format>
#include <memory>

#include "operator/decide/auto/take_back.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"

namespace bsp::reconcile {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Ranks 0 and 1 in slow, rank 2 in fast, which is full; newest, empty, is assumed to be as fast as the mean of both, relative to
// what their nodes give to a rank.
class UntriedSet : public Rescheduling {
 protected:
  UntriedSet() {
    o.job.spec.rescheduling.heuristic = crds::Heuristic::kAuto;
    for (auto& node : o.nodes)
      if (node.set == "fast") node.slots = 1, node.taken = node.name == o.job.status.ranks[2].node ? 0 : 1;
    for (int i = 0; i < 3; ++i) o.nodes.push_back({.name = std::format("newest-{}", i), .set = "newest", .slots = 1});
    o.job.status.epoch->sets.push_back("newest");
    for (auto& [seat, s] : o.sidecars) s.completed = 1;
  }

  // The first call that moves ranks; `t`: the superstep after it.
  std::optional<Decided> first_moves(Rescheduler& r, std::uint64_t& t) const {
    std::optional<Decided> decided;
    while (!decided || decided->moves.empty()) {
      if (t > 60) return std::nullopt;
      decided = feed(r, t++);
    }
    return decided;
  }
};

TEST_F(UntriedSet, IsTriedWithOneRank) {
  std::uint64_t t = 1;
  Rescheduler r = rescheduler();
  const auto decided = first_moves(r, t);
  ASSERT_TRUE(decided);
  ASSERT_THAT(decided->moves, SizeIs(1));
  EXPECT_EQ(decided->moves[0].set, "newest");
  EXPECT_EQ(decided->decision.outcome, crds::kTrying);
  EXPECT_THAT(decided->decision.message, HasSubstr("tries newest, of whose speed nothing is known, with rank "));
  store(r);
  EXPECT_EQ(calibrated("cpu", "newest")->source, crds::CalibrationSource::kAssumed);
}

TEST_F(UntriedSet, IsKnownByABenchmarkOrIfAllNodesSayWhatTheyGive) {
  for (const bool by_benchmark : {true, false}) {
    const Observed before = o;
    if (by_benchmark) {
      for (const crds::RankPlace& place : o.job.status.ranks)
        benchmark(place.pod, place.set == "slow" ? 200'000 : 100'000);
      o.pods["job-r0-g1"].node = "newest-0";
      o.pods["job-r0-g1"].set = "newest";
      o.sidecars[Seat{"job-r0-g1"}].status.emplace();
      benchmark("job-r0-g1", 50'000);
    } else {
      for (auto& node : o.nodes) node.speed_told = true;
    }
    std::uint64_t t = 1;
    Rescheduler r = rescheduler();
    const auto decided = first_moves(r, t);
    ASSERT_TRUE(decided);
    EXPECT_GE(decided->moves.size(), 2u) << by_benchmark;
    EXPECT_EQ(decided->decision.outcome, "Migrating");
    o = before;
  }
}

// It is half as fast as slow, and the rank goes back; or as fast as assumed, and the other one follows. Also if the operator
// is restarted meanwhile.
TEST_F(UntriedSet, IsMeasuredAndThenDecidedOn) {
  for (const bool slower : {true, false})
    for (const bool restarted : {true, false}) {
      const Observed before = o;
      moved_ns = slower ? 4'000'000'000 : 1'000'000'000;
      std::uint64_t t = 1;
      auto r = std::make_unique<Rescheduler>(rescheduler());
      const auto trial = first_moves(*r, t);
      ASSERT_TRUE(trial);
      ASSERT_THAT(trial->moves, SizeIs(1));
      const migrate::Wave wave = begin(*trial);
      store(*r);
      end(wave, migrate::Phase::kSucceeded, t);
      o.migrations.back().status.target_set = "newest";
      const std::uint64_t edge = t;
      feed(*r, t++);
      store(*r);
      if (restarted) r = std::make_unique<Rescheduler>(rescheduler());
      const auto next = first_moves(*r, t);
      ASSERT_TRUE(next) << slower;
      EXPECT_LE(t - edge, 2 + decide::TakeBack::kMeasured) << "soon";
      ASSERT_THAT(next->moves, SizeIs(1)) << next->decision.message;
      if (slower) {
        EXPECT_EQ(next->decision.outcome, crds::kTakingBack) << next->decision.message;
        EXPECT_EQ(next->moves[0].rank, trial->moves[0].rank);
        EXPECT_EQ(next->moves[0].node, before.job.status.ranks[next->moves[0].rank].node);
      } else {
        EXPECT_EQ(next->decision.outcome, "Migrating");
        EXPECT_NE(next->moves[0].rank, trial->moves[0].rank);
        EXPECT_EQ(next->moves[0].set, "newest");
      }
      store(*r);
      EXPECT_EQ(calibrated("cpu", "newest")->source, crds::CalibrationSource::kCounted);
      o = before;
    }
}

// It is assumed to be as fast as slow, and is: a rank finds out once, and neither a restarted operator nor the job's next
// attempt sends another one.
TEST_F(UntriedSet, IsExploredOnce) {
  o.job.spec.rescheduling.expected_supersteps = 100'000;
  const auto speed = [&](const char* set) { return std::ranges::find(o.nodes, set, &observe::NodeFacts::set)->speed; };
  const double as_slow = 1 / (0.5 / speed("slow") + 1 / speed("fast"));  // half of fast, by the mean of both
  for (auto& node : o.nodes)
    if (node.set == "newest") node.speed = as_slow;
  const Observed before = o;
  moved_ns = 2'000'000'000;
  std::uint64_t t = 1;
  auto r = std::make_unique<Rescheduler>(rescheduler());
  const auto explorer = first_moves(*r, t);
  ASSERT_TRUE(explorer);
  ASSERT_THAT(explorer->moves, SizeIs(1));
  EXPECT_EQ(explorer->moves[0].set, "newest");
  EXPECT_EQ(explorer->decision.outcome, crds::kTrying);
  EXPECT_THAT(explorer->decision.message, HasSubstr("if it is 2 times as fast as assumed"));
  const migrate::Wave wave = begin(*explorer);
  store(*r);
  end(wave, migrate::Phase::kSucceeded, t);
  o.migrations.back().status.target_set = "newest";
  feed(*r, t++);
  store(*r);
  for (int restarts = 0; restarts < 5; ++restarts) {
    r = std::make_unique<Rescheduler>(rescheduler());
    for (const std::uint64_t last = t + 30; t < last; ++t) {
      const auto next = feed(*r, t);
      EXPECT_TRUE(!next || next->moves.empty()) << next->decision.message;
    }
    store(*r);
  }
  EXPECT_EQ(calibrated("cpu", "newest")->source, crds::CalibrationSource::kCounted);
  const std::vector<crds::CalibrationEntry> known = o.job.status.calibration;
  o = before;
  o.job.status.calibration = known;
  Rescheduler next_attempt = rescheduler();
  t = 1;
  EXPECT_FALSE(first_moves(next_attempt, t));
}

}  // namespace
}  // namespace bsp::reconcile
