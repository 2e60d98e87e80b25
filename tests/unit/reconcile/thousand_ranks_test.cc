// The status of a job of 1,000 ranks as an API server stores it: through a decision and a wave of 100 moves, the object stays below etcd's
// limit and reads back as it was written.
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <set>

#include "operator/reconcile/kernel/rescheduling.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using crds::JobPhase;
using migrate::Phase;

constexpr std::uint32_t kRanks = 1000, kMoves = 100;
constexpr std::size_t kEtcdLimit = 1536 * 1024;  // bytes of a request (etcd --max-request-bytes)

// What an operator writes at its worst moment: the decision with every PM entry and every reason, and the wave.
class ThousandRanks : public testing::Test {
 protected:
  ThousandRanks() : world({.ranks = kRanks, .slow = kRanks / 2, .fast = kRanks}) {
    world.job.spec.rescheduling.alpha = 4;
    world.job.spec.initial_mapping = crds::InitialMapping::kAscending;  // slow is full, half of fast is spare
  }

  // The plan that the scheduler makes of reports in which the ranks of slow need twice the time.
  Decided decide() {
    Observed o = world.observe();
    Rescheduler rescheduler(o.job, o.job.status.epoch->sets.size());
    std::optional<Decided> decided;
    for (std::uint64_t superstep = 1; superstep <= 4; ++superstep) {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        const bool slow = o.job.status.ranks[rank].set == "slow";
        wire::SuperstepReport s;
        s.superstep = superstep;
        s.instructions = 1'000'000'000 + rank;
        s.compute_ns = (slow ? 2'000'000'000 : 1'000'000'000) + 1000 * rank;
        s.recv_bytes = {4096 + rank, 8192};
        s.recv_ns = {1000, 2000 + rank};
        rescheduler.add(
            {.rank = rank, .completed = superstep, .epoch = 1, .memory_bytes = 64 << 20, .supersteps = {s}});
      }
      if (auto d = rescheduler.advance(o)) decided = std::move(d);
    }
    check(decided.has_value(), "a full window leads to a decision");
    rescheduler.store(world.job.status, o);
    return *decided;
  }

  // Bytes of the object; the next operator reads what this one wrote.
  std::size_t stored() {
    nlohmann::json written;
    to_json(written, world.job);
    const std::string text = written.dump();
    auto read = crds::bsp_job_from_json(nlohmann::json::parse(text));
    EXPECT_TRUE(read) << read.error().message;
    nlohmann::json again;
    if (read) to_json(again, *read);
    EXPECT_EQ(written, again);
    return text.size();
  }

  sim::World world;
};

TEST_F(ThousandRanks, StatusFitsIntoAnObjectInEveryPhaseOfAWave) {
  ASSERT_TRUE(world.run_until(JobPhase::kRunning)) << world.violation;
  Decided decided = decide();
  ASSERT_GT(decided.decision.potentials.size(), kRanks / 3);
  EXPECT_EQ(decided.decision.moves.size() + decided.decision.stays.size(), kRanks)
      << "every rank moves or has a reason";
  decided.moves.resize(std::min<std::size_t>(decided.moves.size(), kMoves));
  ASSERT_EQ(decided.moves.size(), kMoves) << decided.decision.message;
  world.decided = std::move(decided);

  std::size_t largest = 0;
  std::set<Phase> phases;
  ASSERT_TRUE(world.run_until([&] {
    if (phases.insert(world.wave_phase()).second) largest = std::max(largest, stored());
    return world.wave_phase() == Phase::kSucceeded;
  })) << world.violation;
  EXPECT_TRUE(phases.contains(Phase::kPreparing));
  EXPECT_TRUE(phases.contains(Phase::kResuming));
  EXPECT_LT(largest, kEtcdLimit);
  std::cout << std::format("a job of {} ranks, at its largest: {} KiB of {}\n", kRanks, largest / 1024,
                           kEtcdLimit / 1024);
}

}  // namespace
}  // namespace bsp::reconcile
