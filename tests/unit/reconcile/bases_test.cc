// Sets whose images build on those of another set: that one stays as long as the status names one of them, whoever removes, and
// no set builds on what another attempt has stored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>

#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using ::testing::HasSubstr;

bool holds(const World& w, std::uint64_t set) {
  return std::ranges::any_of(w.storage, [&](const auto& entry) { return entry.first.first == set; });
}

struct Sharing : World {
  explicit Sharing(Options options) : World(options) {
    stores_sets(*this);
    shares_blocks = true;
  }
};

// Invariant of the world: whatever the status names is complete, and what that builds on.
TEST(Bases, StayAsLongAsASetBuildsOnThem) {
  for (const bool older : {false, true}) {
    Sharing w({.ranks = 3});
    w.removes_as_older = older;
    std::size_t most = 0;
    for (std::uint64_t id = 1; id <= 20; ++id) {
      ASSERT_TRUE(has_stored(w, id)) << w.trace;
      const crds::StoredSet& set = newest(w);
      EXPECT_TRUE(set.base == 0 || set.base == wire::base_of(set.id)) << set.id;
      EXPECT_TRUE(set.id % wire::kSetsPerBase != 2 || set.base != 0) << set.id;
      EXPECT_TRUE(set.base == 0 || set.stored < set.bytes) << set.id;
      most = std::max(most, w.storage.size());
    }
    EXPECT_LE(most, 3u * (2 + 1 + 1)) << "keep, one that is stored, and one that others build on";
    ASSERT_TRUE(w.run_until([&] { return !holds(w, 1) && !holds(w, 9); }, 200)) << "nobody builds on them any more";
    EXPECT_EQ(w.violation, "") << w.trace;
  }
}

TEST(Bases, AreNamedInTheEvent) {
  Sharing w({.ranks = 2});
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  std::vector<std::string> said;
  for (const Event& e : w.events)
    if (e.reason == kCheckpointStored) said.push_back(e.message);
  ASSERT_EQ(said.size(), 2u);
  EXPECT_THAT(said[0], HasSubstr("100 MB in 2 images; the ranks waited"));
  EXPECT_THAT(said[1],
              HasSubstr("100 MB in 2 images, of which 10 MB are stored, the rest is in set 1; the ranks waited"));
}

TEST(Bases, OfAnotherAttemptAreNotBuiltOn) {
  Sharing w({.ranks = 3, .slow = 3, .fast = 3});
  ASSERT_TRUE(has_stored(w, 3)) << w.trace;
  const std::uint64_t before = newest(w).id;
  ASSERT_EQ(wire::base_of(before + 1), 1u);
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until([&] { return newest(w).attempt == 1; }, 3000)) << w.trace;
  ASSERT_LE(newest(w).id, wire::kSetsPerBase);
  EXPECT_EQ(newest(w).base, 0u);
  for (const auto& [name, pod] : w.pods) EXPECT_EQ(pod.save_base, 0u) << name;
  ASSERT_TRUE(has_stored(w, wire::kSetsPerBase + 2)) << w.trace;
  EXPECT_EQ(newest(w).base, wire::kSetsPerBase + 1);
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Bases, ARestartedSidecarStoresItsRankWhole) {
  Sharing w({.ranks = 3});
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  w.restart_sidecar(w.job.status.ranks[1].pod);
  const std::uint64_t id = newest(w).id;
  ASSERT_TRUE(has_stored(w, id + 1)) << w.trace;
  EXPECT_EQ((w.storage.at({newest(w).id, 1}).base), 0u);
  EXPECT_EQ(newest(w).base, 1u) << "the other ranks'";
  ASSERT_TRUE(has_stored(w, id + 3)) << w.trace;
  EXPECT_FALSE(w.storage.contains({1, 1})) << "no set that is kept builds on this one";
  EXPECT_TRUE(w.storage.contains({1, 0}));
  EXPECT_EQ(w.violation, "") << w.trace;
}

// A set that the status doesn't name doesn't exist.
TEST(Bases, ThatWereAbandonedAreNotBuiltOn) {
  Sharing w({.ranks = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.pod_of(1)->storage_fails = true;
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kCheckpointFailed); }, 500)) << w.trace;
  w.pod_of(1)->storage_fails = false;
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  EXPECT_EQ(newest(w).base, 0u);
  EXPECT_EQ(w.pod_of(0)->save_base, 0u);
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(Bases, WhereOneIsGoneTheSetBeforeIsUsed) {
  Sharing w({.ranks = 2, .slow = 3, .fast = 3});
  w.some_are_whole = false;
  ASSERT_TRUE(has_stored(w, 10)) << w.trace;
  ASSERT_EQ(newest(w).id, 10u);
  ASSERT_EQ(newest(w).base, 9u);
  w.storage_is_damaged = true;
  w.storage.erase({9, 1});  // set 9 can't be used either
  w.end_program(0, 0, 9);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kResumedFrom); }, 2000)) << w.trace;
  EXPECT_TRUE(w.has_event(kSetUnusable));
  EXPECT_EQ(w.job.status.checkpoint->restored, 8u);
}

// So damage to one set costs the job no more than a group, and the storage holds no more than one set more than `keep`.
TEST(Bases, AreNeverTheOnlyOneWhereThereIsRoom) {
  Sharing w({.ranks = 2});
  w.some_are_whole = false;
  std::vector<std::vector<std::uint64_t>> named;
  std::size_t most = 0;
  while (sets_of(w) == 0 || newest(w).id < 19) {
    const std::uint64_t before = sets_of(w) == 0 ? 0 : newest(w).id;
    ASSERT_TRUE(has_stored(w, before + 1)) << w.trace;
    std::vector<std::uint64_t> ids;
    for (const crds::StoredSet& set : w.job.status.checkpoint->sets) ids.push_back(set.id);
    named.push_back(ids);
    std::uint64_t held = 0;
    for (const auto& [of, image] : w.storage) held += image.base == 0 ? 50 : 5;
    most = std::max(most, held);
  }
  const auto after = [&](std::size_t set) { return named[set - 1]; };
  using Ids = std::vector<std::uint64_t>;
  EXPECT_EQ(after(2), (Ids{1, 2}));
  EXPECT_EQ(after(9), (Ids{8, 9}));
  EXPECT_EQ(after(10), (Ids{8, 9, 10}));
  EXPECT_EQ(after(12), (Ids{8, 11, 12}));
  EXPECT_EQ(after(16), (Ids{15, 16})) << "the next one is whole";
  EXPECT_EQ(after(17), (Ids{16, 17}));
  EXPECT_LE(most, 2u * 50u * (2 + 1)) << "keep + 1 sets";
  EXPECT_EQ(w.violation, "") << w.trace;
}

// By a sidecar that lies, or is mistaken: nothing would keep what it builds on.
TEST(Bases, ThatNobodyOfferedCostTheSet) {
  World w({.ranks = 2});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  ASSERT_EQ(newest(w).id, 2u);
  Observed o = w.observe();
  o.job.status.checkpoint->pending.emplace();
  o.job.status.checkpoint->pending->id = 3;
  o.job.status.checkpoint->pending->attempt = o.job.status.attempt;
  const auto settled = [&](std::uint64_t base_of_rank_1) {
    for (const std::uint32_t rank : {0u, 1u})
      o.sidecars.at(w.job.status.ranks[rank].seat()).status->save = wire::SaveStatus{.set = 3,
                                                                                     .phase = wire::SavePhase::kStored,
                                                                                     .bytes = 10,
                                                                                     .digest = std::string(64, 'a'),
                                                                                     .stored = 1,
                                                                                     .base = rank * base_of_rank_1};
    crds::BspJobStatus status = o.job.status;
    EXPECT_TRUE(settle_set(o, status));
    return *status.checkpoint;
  };
  for (const std::uint64_t base : {2u, 3u, 9u}) {
    const crds::CheckpointStatus refused = settled(base);
    EXPECT_THAT(refused.message, HasSubstr(std::format("rank 1 builds on set {}, which it must not", base)));
    EXPECT_EQ(refused.sets.back().id, 2u);
  }
  const crds::CheckpointStatus stored = settled(1);
  EXPECT_EQ(stored.message, "");
  EXPECT_EQ(stored.sets.back().base, 1u);
  EXPECT_EQ(stored.sets.back().stored, 2u);
}

TEST(Bases, AreAskedToBeKept) {
  World w({.ranks = 2});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  Observed o = w.observe();
  auto& sets = o.job.status.checkpoint->sets;
  const auto asked = [&] {
    o.job.status.checkpoint->ids_used = sets.back().id;
    const auto action = remove_older_sets(o);
    return action ? *action->fields : nlohmann::json();
  };
  const auto set = [&](std::uint64_t id, std::uint64_t base) {
    crds::StoredSet s = newest(w);
    s.id = id;
    s.base = base;
    return s;
  };
  sets = {set(8, 1), set(10, 9), set(11, 9)};
  EXPECT_EQ(asked(), nlohmann::json::parse(R"({"below":12,"keep":[8,10,11,1,9],"bases":[1,9]})"));
  sets = {set(9, 0), set(11, 9)};
  EXPECT_EQ(asked(), nlohmann::json::parse(R"({"below":12,"keep":[9,11]})"));
  // Of another job's set, the other job keeps it.
  sets = {set(3, 1), set(12, 0)};
  sets[0].of_job = "another";
  EXPECT_EQ(asked(), nlohmann::json::parse(R"({"below":13,"keep":[3,12]})"));
}

}  // namespace
}  // namespace bsp::reconcile::sim
