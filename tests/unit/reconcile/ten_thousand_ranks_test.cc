// A job of 10,000 ranks runs through a decision and a wave of 100 moves. Whatever is stored on the way stays below 512 KiB and reads
// back as it was written.
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <set>

#include "operator/reconcile/kernel/rescheduling/rescheduling.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

class TenThousandRanksRun : public testing::Test {
 protected:
  static constexpr std::uint32_t kRanks = 10'000, kMoves = 100, kSlots = 50;
  static constexpr std::size_t kMost = 512 * 1024;  // bytes; etcd refuses more than 1.5 MiB

  TenThousandRanksRun()
      : world({.ranks = kRanks, .slow = kRanks / 2 / kSlots, .fast = kRanks / kSlots, .slots = kSlots}) {
    world.job.spec.rescheduling.alpha = 4;
    world.job.spec.initial_mapping = crds::InitialMapping::kAscending;  // slow is full, half of fast is spare
  }

  // The plan that the scheduler makes of reports in which the ranks of slow need twice the time for their work, and one in 32 of
  // them has four times that of the others, so that one wave is enough.
  Decided decide() {
    Observed o = world.observe();
    Rescheduler rescheduler(o.job, o.job.status.epoch->sets.size());
    std::optional<Decided> decided;
    for (std::uint64_t superstep = 1; superstep <= 4; ++superstep) {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        const bool slow = o.job.status.ranks[rank].set == "slow";
        wire::SuperstepReport s;
        s.superstep = superstep;
        const std::uint64_t part = slow && rank % 32 != 0 ? 4 : 1;
        s.instructions = 1'000'000'000 / part + rank;
        s.compute_ns = (slow ? 2'000'000'000 : 1'000'000'000) / part + 1000 * rank;
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

  // The next operator reads what this one wrote.
  void expect_read_back() const {
    nlohmann::json written, again;
    to_json(written, world.job);
    auto read = crds::bsp_job_from_json(written);
    ASSERT_TRUE(read) << read.error().message;
    to_json(again, *read);
    EXPECT_EQ(written, again);
  }

  sim::World world;
};

TEST_F(TenThousandRanksRun, StaysBelow512KiBInEveryStoredObject) {
  ASSERT_TRUE(world.run_until(crds::JobPhase::kRunning)) << world.violation;
  Decided decided = decide();
  const crds::Decision& shown = decided.decision;
  EXPECT_GT(shown.planned_moves, kMoves);
  EXPECT_EQ(shown.moves.size(), crds::kShownEntries);
  EXPECT_EQ(shown.stays.size(), crds::kShownEntries);
  EXPECT_EQ(shown.potentials.size(), crds::kShownEntries);
  EXPECT_TRUE(std::ranges::contains(shown.levels, shown.chosen_level, &crds::LevelEntry::level));
  std::uint32_t ranks = shown.planned_moves;
  for (const crds::StayCount& stays : shown.stays_by_reason) ranks += stays.ranks;
  EXPECT_EQ(ranks, kRanks) << "every rank moves or has a reason";
  EXPECT_LE(decided.moves.size(), kMostMoves);
  ASSERT_GE(decided.moves.size(), kMoves);
  decided.moves.resize(kMoves);
  world.decided = std::move(decided);

  std::set<migrate::Phase> phases;
  ASSERT_TRUE(world.run_until([&] {
    if (phases.insert(world.wave_phase()).second) expect_read_back();
    EXPECT_LT(world.largest_object, kMost);
    return world.wave_phase() == migrate::Phase::kSucceeded || world.largest_object >= kMost;
  })) << world.violation;
  EXPECT_TRUE(phases.contains(migrate::Phase::kPreparing));
  EXPECT_TRUE(phases.contains(migrate::Phase::kResuming));
  std::cout << std::format("a job of {} ranks, at its largest: {} KiB of {}\n", kRanks, world.largest_object / 1024,
                           kMost / 1024);
}

}  // namespace
}  // namespace bsp::reconcile
