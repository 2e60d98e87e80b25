// What costs a job one of its sets, and what doesn't: accidents of a restore.
#include "operator/reconcile/kernel/checkpoints/resumption.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <functional>

#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "tests/unit/reconcile/expectations.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using ::testing::HasSubstr;

// Nothing says that they are damaged, and what they hold can't be computed again in the time that the storage was away.
TEST(Checkpoints, AStorageThatIsAwayCostsNone) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  w.job.spec.run_policy.backoff_limit = 9;
  ASSERT_TRUE(has_stored(w, 3)) << w.trace;
  const crds::StoredSet last = newest(w);
  w.end_program(0, 0, 9);
  const SteadyTime back = w.steady + std::chrono::minutes(13);
  ASSERT_TRUE(w.run_until(
      [&] {
        for (auto& [name, pod] : w.pods) pod.storage_fails = true;
        return w.steady > back;
      },
      5000))
      << w.violation;
  EXPECT_FALSE(w.has_event(kResumedFrom));
  EXPECT_EQ(w.job.status.attempt, 2u) << "it counts, and the next one tries again";
  EXPECT_FALSE(crds::is_finished(w.job.status.phase)) << w.job.status.message;
  ASSERT_TRUE(is_true(w, kStartDelayed));
  EXPECT_THAT(crds::find_condition(w.job.status.conditions, kStartDelayed)->message,
              HasSubstr("the checkpoint storage does not answer"));
  for (auto& [name, pod] : w.pods) pod.storage_fails = false;
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kResumedFrom); }, 9000)) << w.job.status.message;
  EXPECT_EQ(w.job.status.checkpoint->restored, last.id);
  EXPECT_FALSE(w.has_event(kSetUnusable));
  EXPECT_FALSE(is_true(w, kStartDelayed));
  EXPECT_EQ(w.violation, "");
}

// It may be this set's images alone that the storage doesn't give.
TEST(Checkpoints, OneThatCanNotBeRestoredTwiceComesAfterTheOneBefore) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  w.job.spec.run_policy.backoff_limit = 9;
  ASSERT_TRUE(has_stored(w, 3)) << w.trace;
  const std::uint64_t last = newest(w).id, older = w.job.status.checkpoint->sets.front().id;
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until(
      [&] {
        const auto& c = *w.job.status.checkpoint;
        for (auto& [name, pod] : w.pods) pod.storage_fails = c.restored == last;
        return w.has_event(kResumedFrom);
      },
      9000))
      << w.job.status.message;
  EXPECT_EQ(w.job.status.checkpoint->restored, older);
  EXPECT_EQ(w.job.status.attempt, 3u);
  EXPECT_THAT(w.job.status.checkpoint->sets.back().unusable, HasSubstr("has gone on from set")) << "files have changed";
  EXPECT_EQ(w.violation, "");
}

// A restore that criu refuses, and nothing has ended.
struct Refused {
  World w{{.ranks = 2, .slow = 3, .fast = 3}};
  std::uint64_t last = 0;
  Refused() {
    stores_sets(w);
    w.job.spec.run_policy.backoff_limit = 9;
    EXPECT_TRUE(has_stored(w, 3)) << w.trace;
    last = newest(w).id;
    w.end_program(0, 0, 9);
  }
  // `fails`: of a rank and its node.
  bool resumes(const std::function<std::string(std::uint32_t rank, const std::string& node)>& fails) {
    return w.run_until(
        [&] {
          const bool of_last = w.job.status.checkpoint->restored == last;
          for (const crds::RankPlace& place : w.job.status.ranks)
            if (auto* pod = w.find(place.pod))
              pod->restore_fails = of_last ? fails(place.rank.value, place.node) : std::string();
          return w.has_event(kResumedFrom);
        },
        5000);
  }
};

TEST(Checkpoints, OneThatFailsAlikeOnTwoNodesIsGivenUp) {
  Refused job;
  ASSERT_TRUE(job.resumes([](std::uint32_t rank, const std::string&) {
    return std::format("criu restore failed: can't map {}", 100 + rank);
  })) << job.w.job.status.message;
  EXPECT_TRUE(job.w.has_event(kSetUnusable));
  EXPECT_LT(job.w.job.status.checkpoint->restored, job.last);
  EXPECT_EQ(job.w.violation, "");
}

TEST(Checkpoints, OneThatFailsOnOneNodeOrForTwoReasonsIsTriedAgain) {
  for (const bool both : {false, true}) {
    Refused job;
    int attempts = 0;
    std::uint32_t attempt = 0;
    const bool resumed = job.resumes([&](std::uint32_t rank, const std::string&) {
      if (std::exchange(attempt, job.w.job.status.attempt) != attempt) ++attempts;
      if (attempts > 1) return std::string();
      if (rank == 0) return std::string("criu restore failed: no such device");
      return std::string(both ? "criu restore failed: can't map" : "");
    });
    ASSERT_TRUE(resumed) << job.w.job.status.message;
    EXPECT_EQ(job.w.job.status.checkpoint->restored, job.last) << both;
    EXPECT_FALSE(job.w.has_event(kSetUnusable));
    EXPECT_EQ(job.w.job.status.restarts.back().reason, "RestoreFailed");
    EXPECT_THAT(job.w.job.status.restarts.back().message, HasSubstr("no such device"));
    EXPECT_EQ(job.w.violation, "");
  }
}

TEST(Checkpoints, WhatFailsAlikeInTheNextAttemptOnAnotherNodeIsGivenUp) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  Observed o = w.observe();
  crds::StoredSet set = newest(w);
  set.suspected = "criu restore failed: pid 17 is taken";
  set.suspected_on = "elsewhere";
  const auto transfer_of = [&](std::uint32_t rank) -> wire::TransferStatus& {
    return o.sidecars.at(w.job.status.ranks[rank].seat()).status->transfer;
  };
  auto& transfer = transfer_of(1);
  transfer_of(0) = {.migration = wire::set_name(set.id), .phase = wire::TransferPhase::kRestoring, .error = ""};
  transfer = {.migration = wire::set_name(set.id),
              .phase = wire::TransferPhase::kFailed,
              .error = "criu restore failed: pid 4 is taken",
              .suspect = true};
  EXPECT_THAT(resume_from(set, o).unusable, HasSubstr("on nodes"));
  transfer.error = "criu restore failed: no tty";
  EXPECT_EQ(resume_from(set, o).unusable, "");
  EXPECT_FALSE(resume_from(set, o).suspicion) << "rank 0 may fail alike";
  EXPECT_TRUE(resume_from(set, o).loads.empty());
  transfer_of(0).phase = wire::TransferPhase::kRestored;
  ASSERT_TRUE(resume_from(set, o).suspicion);
  EXPECT_EQ(resume_from(set, o).suspicion->why, transfer.error);
  transfer.error = set.suspected;
  set.suspected_on = w.job.status.ranks[1].node;
  EXPECT_EQ(resume_from(set, o).unusable, "") << "nothing but the node may be to blame";
}

}  // namespace
}  // namespace bsp::reconcile::sim
