// Checkpoint sets in the life of a job: made, stored, named, and gone on from after a loss; with a storage that fails, hangs, or
// has lost what it was given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <format>
#include <iostream>

#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/checkpoints/resumption.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Checkpoints, AreStoredAgainAndAgain) {
  World w({.ranks = 3});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  EXPECT_TRUE(w.has_event(kCheckpointStored));
  EXPECT_GT(newest(w).superstep.value, 0u);
  EXPECT_EQ(newest(w).bytes, 3 * 50'000'000u);
  EXPECT_EQ(w.job.status.checkpoint->superstep, newest(w).superstep);
  EXPECT_EQ(w.job.status.attempt, 0u);
  ASSERT_TRUE(has_stored(w, 4)) << w.trace;
  EXPECT_EQ(sets_of(w), 2u) << "spec.checkpoint.keep";
  ASSERT_TRUE(w.run_until([&] { return w.storage.begin()->first.first == newest(w).id - 1; }, 50))
      << "what isn't kept is removed";
  EXPECT_LE(w.storage.size(), 3u * 3u) << "keep + 1 sets at most";
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Checkpoints, AreNotMadeWithoutStorage) {
  World w({.ranks = 2});
  w.job.spec.checkpoint.interval = "1s";
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (int i = 0; i < 200; ++i) w.tick();
  EXPECT_EQ(w.job.status.wave, 0u);
  EXPECT_FALSE(w.job.status.checkpoint);
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Checkpoints, WhatWasDoneToSharedFilesIsSaid) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  w.lose_pod(w.job.status.ranks[1].pod);
  ASSERT_TRUE(w.run_until(
      [&] {
        for (auto& [name, pod] : w.pods)
          if (pod.status.transfer.phase == wire::TransferPhase::kRestoring && pod.rank == 1)
            pod.status.transfer.note = "/data/log to 7 bytes";
        return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning;
      },
      2000))
      << w.trace;
  const auto said = std::ranges::find(w.events, std::string(kSharedFiles), &Event::reason);
  ASSERT_NE(said, w.events.end()) << w.trace;
  EXPECT_EQ(said->message, "rank 1: /data/log to 7 bytes");
  EXPECT_EQ(std::ranges::count(w.events, std::string(kSharedFiles), &Event::reason), 1);
}

TEST(Checkpoints, ALossGoesOnFromTheNewest) {
  World w({.ranks = 3, .slow = 3, .fast = 3});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  const std::uint64_t superstep = newest(w).superstep.value, epoch = w.job.status.epoch->epoch;
  w.lose_pod(w.job.status.ranks[1].pod);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }, 2000))
      << w.trace;
  EXPECT_TRUE(w.has_event(kResumedFrom)) << w.trace;
  EXPECT_GT(w.job.status.epoch->epoch, epoch) << "above any that was used";
  ASSERT_TRUE(w.run_until([&] { return w.pod_of(0)->status.completed > 0; }, 100));
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_GE(w.pod_of(rank)->status.completed, superstep) << rank;
  ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > superstep + 5; }, 500)) << w.trace;
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Checkpoints, ALossBeforeTheFirstStartsFromTheBeginning) {
  World w({.ranks = 2, .slow = 3});
  stores_sets(w, "1h");
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.lose_pod(w.job.status.ranks[1].pod);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }, 2000));
  EXPECT_FALSE(w.has_event(kResumedFrom));
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Checkpoints, OnlyAttemptsWithoutProgressCount) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  w.job.spec.run_policy.backoff_limit = 1;
  for (std::uint32_t loss = 0; loss < 5; ++loss) {
    const std::uint64_t id = w.job.status.checkpoint ? w.job.status.checkpoint->ids_used : 0;
    ASSERT_TRUE(has_stored(w, id + 1)) << loss << '\n' << w.trace;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning));
    w.end_program(0, 0, 9);
    ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == loss + 1; }, 200)) << w.trace;
  }
  // From here on it stores nothing.
  w.job.spec.checkpoint.interval = "1h";
  for (int loss = 0; loss < 2; ++loss) {
    ASSERT_TRUE(
        w.run_until([&] { return w.job.status.phase == JobPhase::kRunning || is_finished(w.job.status.phase); }, 2000));
    w.end_program(0, 0, 9);
    for (int i = 0; i < 20; ++i) w.tick();
  }
  EXPECT_EQ(w.job.status.phase, JobPhase::kFailed) << w.trace;
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Checkpoints, OfADamagedOneTheSetBeforeIsUsed) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 3)) << w.trace;
  const crds::StoredSet before = w.job.status.checkpoint->sets.front();
  w.storage_is_damaged = true;
  w.storage.erase({newest(w).id, 1});
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kResumedFrom); }, 2000)) << w.trace;
  EXPECT_TRUE(w.has_event(kSetUnusable));
  EXPECT_EQ(w.job.status.checkpoint->restored, before.id);
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Checkpoints, WithoutAnyThatIsWholeItStartsFromTheBeginning) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  w.job.spec.run_policy.backoff_limit = 1;
  ASSERT_TRUE(has_stored(w, 3)) << w.trace;
  w.storage_is_damaged = true;
  w.storage.clear();
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.phase == JobPhase::kRunning && w.job.status.attempt == 3; }, 3000))
      << w.trace;
  EXPECT_FALSE(w.has_event(kResumedFrom));
  EXPECT_LT(w.job.status.superstep.value, 20u);
  EXPECT_EQ(w.violation, "") << w.trace;
}

// No attempt starts from it, so it takes no place of one that an attempt can start from.
TEST(Checkpoints, ADamagedOneGoesBeforeAnOlderOne) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 3)) << w.trace;
  const std::uint64_t older = w.job.status.checkpoint->sets.front().id, damaged = newest(w).id;
  w.storage_is_damaged = true;
  w.storage.erase({damaged, 1});
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kResumedFrom); }, 2000)) << w.trace;
  ASSERT_EQ(w.job.status.checkpoint->restored, older);
  ASSERT_TRUE(has_stored(w, damaged + 1)) << w.trace;
  ASSERT_EQ(sets_of(w), 2u);
  EXPECT_EQ(w.job.status.checkpoint->sets.front().id, older);
  EXPECT_EQ(w.violation, "") << w.trace;
}

// It fails in the end, and another job can begin with the set.
TEST(Checkpoints, AStorageThatStaysAwayEndsTheJob) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  w.job.spec.run_policy.backoff_limit = 1;
  w.job.spec.checkpoint.keep = 1;
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  const std::uint64_t last = newest(w).id;
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until(
      [&] {
        for (auto& [name, pod] : w.pods) pod.storage_fails = true;
        return w.job.status.phase == JobPhase::kFailed;
      },
      5000))
      << w.job.status.message;
  EXPECT_THAT(w.job.status.message, HasSubstr("the checkpoint storage does not answer"));
  ASSERT_EQ(sets_of(w), 1u);
  EXPECT_EQ(newest(w).id, last);
  EXPECT_EQ(newest(w).unusable, "");
}

// Each within what a report may hold.
TEST(Checkpoints, OfWhateverSizeTheStatusCanBeRead) {
  World w({.ranks = 3});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  Observed o = w.observe();
  o.job.status.checkpoint->pending.emplace();
  o.job.status.checkpoint->pending->id = 9;
  for (const crds::RankPlace& place : o.job.status.ranks)
    o.sidecars.at(place.seat()).status->save = wire::SaveStatus{.set = 9,
                                                                .phase = wire::SavePhase::kStored,
                                                                .bytes = wire::kMostNs,
                                                                .store_ns = wire::kMostNs,
                                                                .digest = std::string(64, 'a'),
                                                                .stored = wire::kMostNs};
  crds::BspJob job = o.job;
  ASSERT_TRUE(settle_set(o, job.status));
  ASSERT_EQ(job.status.checkpoint->sets.back().id, 9u);
  nlohmann::json stored;
  to_json(stored, job);
  const auto read = crds::bsp_job_from_json(stored);
  EXPECT_TRUE(read) << read.error().message;
}

TEST(Checkpoints, AClockThatIsSetMakesNoPauseLong) {
  struct Steps : World {
    using World::World;
    void step() { start_ns += 300'000'000'000; }
  };
  Steps w({.ranks = 2});
  stores_sets(w);
  ASSERT_TRUE(w.run_until(migrate::Phase::kCheckpointing)) << w.trace;
  w.step();
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  EXPECT_GT(newest(w).pause_seconds, 0);
  EXPECT_LT(newest(w).pause_seconds, 30);
}

TEST(Checkpoints, AStorageThatFailsCostsOnlyTheSet) {
  World w({.ranks = 2});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  const std::uint64_t id = newest(w).id;
  for (auto& [name, pod] : w.pods) pod.storage_fails = true;
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kCheckpointFailed); }, 500)) << w.trace;
  EXPECT_THAT(w.job.status.checkpoint->message, HasSubstr("is full"));
  EXPECT_EQ(newest(w).id, id) << "the older one stays";
  EXPECT_EQ(w.job.status.attempt, 0u);
  for (auto& [name, pod] : w.pods) pod.storage_fails = false;
  ASSERT_TRUE(has_stored(w, id + 2)) << w.trace;
  EXPECT_EQ(w.job.status.checkpoint->message, "");
  EXPECT_EQ(w.violation, "") << w.trace;
}

// No rank waits for it, and the ranks aren't stopped again and again for nothing.
TEST(Checkpoints, AStorageThatHangsStopsNobody) {
  World w({.ranks = 2});
  stores_sets(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (auto& [name, pod] : w.pods) pod.storage_hangs = true;
  ASSERT_TRUE(w.run_until([&] { return w.job.status.checkpoint && w.job.status.checkpoint->pending; }, 500)) << w.trace;
  const std::uint32_t wave = w.job.status.wave;
  const std::uint64_t superstep = w.job.status.superstep.value;
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kCheckpointFailed); }, 4000)) << w.trace;
  EXPECT_THAT(w.job.status.checkpoint->message, HasSubstr("has not taken it within"));
  EXPECT_GT(w.job.status.superstep.value, superstep + 500);
  for (int i = 0; i < 500; ++i) w.tick();
  EXPECT_EQ(w.job.status.wave, wave);
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Checkpoints, ARestartedSidecarGivesUpThePendingSet) {
  World w({.ranks = 2});
  stores_sets(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  for (auto& [name, pod] : w.pods) pod.storage_hangs = true;
  ASSERT_TRUE(w.run_until([&] { return w.job.status.checkpoint && w.job.status.checkpoint->pending; }, 500)) << w.trace;
  w.restart_sidecar(w.job.status.ranks[1].pod);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kCheckpointFailed); }, 100)) << w.trace;
  EXPECT_THAT(w.job.status.checkpoint->message, HasSubstr("rank 1 is gone"));
  EXPECT_EQ(w.job.status.attempt, 0u);
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Checkpoints, AnotherImageIsNotRestored) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  Observed o = w.observe();
  for (auto& [name, pod] : o.pods) pod.image = "registry/app@sha256:b";
  crds::StoredSet set = newest(w);
  set.image = "registry/app@sha256:a";
  const Resumption resumption = resume_from(set, o);
  EXPECT_THAT(resumption.unusable, HasSubstr("sha256:a"));
  EXPECT_THAT(resumption.unusable, HasSubstr("sha256:b"));
  EXPECT_FALSE(resumption.done);
  EXPECT_TRUE(resumption.loads.empty());
}

// A rank cuts shared files off only when no rank refuses the set any more.
TEST(Checkpoints, FilesThatAreAheadAreCutWhenEveryRankHasAccepted) {
  World w({.ranks = 3, .slow = 4, .fast = 4});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  const crds::StoredSet set = newest(w);
  Observed o = w.observe();
  const auto says = [&](std::uint32_t rank) -> wire::TransferStatus& {
    auto& transfer = o.sidecars.at(w.job.status.ranks[rank].seat()).status->transfer;
    transfer.migration = wire::set_name(set.id);
    return transfer;
  };
  const auto resumes = [&] { return resume_from(set, o); };
  for (const std::uint32_t rank : {0u, 1u}) says(rank).phase = wire::TransferPhase::kReceived;
  says(2).phase = wire::TransferPhase::kRestoring;
  EXPECT_TRUE(resumes().loads.empty()) << "rank 2 still compares";
  EXPECT_FALSE(resumes().done);

  says(2).phase = wire::TransferPhase::kRestored;
  const Resumption cuts = resumes();
  EXPECT_FALSE(cuts.done);
  EXPECT_EQ(cuts.unusable, "");
  ASSERT_THAT(cuts.loads, SizeIs(2));
  EXPECT_THAT(cuts.waits, HasSubstr("cut off"));

  says(0).phase = wire::TransferPhase::kRestored;
  EXPECT_FALSE(resumes().done) << "what rank 0 writes now, rank 1 might cut off";
  EXPECT_THAT(resumes().loads, SizeIs(1));
  says(2) = {
      .migration = wire::set_name(set.id), .phase = wire::TransferPhase::kFailed, .error = "x", .unusable = true};
  EXPECT_THAT(resumes().unusable, HasSubstr("rank 2"));
  EXPECT_TRUE(resumes().loads.empty());
}

TEST(Checkpoints, ASuspendedJobGoesOnFromTheNewest) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.job.spec.run_policy.suspend = true;
  ASSERT_TRUE(w.run_until(JobPhase::kSuspended)) << w.trace;
  ASSERT_TRUE(w.run_until([&] { return w.pods.empty(); })) << w.trace;
  w.job.spec.run_policy.suspend = false;
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kResumedFrom); }, 2000)) << w.trace;
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Checkpoints, ManyRanksKeepFewSets) {
  World w;
  stores_sets(w);
  crds::BspJobSpec spec = w.job.spec;
  spec.ranks = 4096;
  spec.checkpoint.keep = 2;
  EXPECT_TRUE(crds::validate(spec));
  spec.checkpoint.keep = 3;
  EXPECT_THAT(crds::validate(spec).error().message, HasSubstr("can keep 2"));
}

// --- Any faults ---------------------------------------------------------------------------------------------
struct Strike {
  int at = 0, kind = 0, amount = 0;
  std::uint32_t rank = 0;
};
std::ostream& operator<<(std::ostream& out, const Strike& s) {
  return out << std::format("{{at {}, kind {}, rank {}, amount {}}}", s.at, s.kind, s.rank, s.amount);
}

void strike(World& w, const Strike& s) {
  const std::string pod = s.rank < w.job.status.ranks.size() ? w.job.status.ranks[s.rank].pod : "";
  switch (s.kind) {
    case 0:
      return w.end_program(s.rank, 0, 9);
    case 1:
      return w.lose_pod(pod);
    case 2:
      return w.restart_sidecar(pod);
    case 3:
      return w.restart_operator(s.amount);
    case 4:
      w.die_after_stores = s.amount % 12;
      return;
    case 5:
      return w.silence(pod, s.amount);
    case 6:
      for (auto& [name, p] : w.pods) p.storage_fails = true;
      return;
    case 7:
      for (auto& [name, p] : w.pods) p.storage_hangs = p.storage_fails = false;
      return;
    case 8:
      if (Pod* p = w.find(pod)) p->storage_hangs = true;
      return;
    case 9:
      w.storage_is_damaged = true;
      if (!w.storage.empty()) w.storage.erase(std::prev(w.storage.end()));
      return;
    case 10:
      if (Pod* p = w.find(pod)) p->criu_fails = s.amount % 2 == 0;
      return;
    case 11:
      w.conflicts = s.amount % 6;
      return;
    case 12:
      return w.migrate_by_hand(std::format("m{}", s.at), s.rank, s.amount % 2 ? "fast" : "slow");
    case 13:
      return w.delete_pod(pod);
    case 14:
      w.job.spec.run_policy.suspend = true;
      return;
    case 15:
      w.job.spec.run_policy.suspend = false;
      return;
    default:
      return w.pause_api(s.amount);
  }
}

TEST(Checkpoints, AnyFaultsEndWell) {
  sim::try_cases(40);
  std::string trace;
  EXPECT_TRUE(rc::check("any faults end well", [&] {
    const auto faults = *rc::gen::container<std::vector<Strike>>(rc::gen::build<Strike>(
        rc::gen::set(&Strike::at, rc::gen::inRange(10, 200)), rc::gen::set(&Strike::kind, rc::gen::inRange(0, 17)),
        rc::gen::set(&Strike::amount, rc::gen::inRange(0, 60)), rc::gen::set(&Strike::rank, rc::gen::inRange(0u, 3u))));
    World w({.ranks = 3, .slow = 5, .fast = 5, .supersteps = 150, .seed = *rc::gen::inRange(0u, 500u)});
    stores_sets(w);
    w.shares_blocks = true;
    w.removes_as_older = *rc::gen::arbitrary<bool>();
    w.job.spec.run_policy.backoff_limit = 3;
    for (int tick = 0; tick < 220 && w.violation.empty(); ++tick) {
      for (const Strike& s : faults)
        if (s.at == tick) strike(w, s);
      w.tick();
    }
    for (auto& [name, p] : w.pods) p.storage_hangs = p.storage_fails = p.criu_fails = false;
    w.job.spec.run_policy.suspend = false;
    const bool ended = w.run_until([&] { return crds::is_finished(w.job.status.phase); }, 6000);
    if (!w.violation.empty() || !ended) trace = w.trace;
    RC_ASSERT(w.violation == std::string());
    RC_ASSERT(ended);
    for (int i = 0; i < 20; ++i) w.tick();
    RC_ASSERT(w.all_ended());
  })) << trace;
}

}  // namespace
}  // namespace bsp::reconcile::sim
