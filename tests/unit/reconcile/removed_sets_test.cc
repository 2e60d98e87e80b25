// What is removed from the storage, and when: what the status doesn't name, as soon as nobody writes it any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "tests/unit/reconcile/sets.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;

bool holds_torn(const World& w) {
  const auto& c = w.job.status.checkpoint;
  return std::ranges::any_of(w.storage, [&](const auto& entry) {
    const std::uint64_t id = entry.first.first;
    return (!c->pending || c->pending->id != id) && !std::ranges::contains(c->sets, id, &crds::StoredSet::id);
  });
}

// And not only once another one is stored, which would be one too many until then.
TEST(RemovedSets, WhatIsLeftOfATornOneIsRemovedAtOnce) {
  World w({.ranks = 2});
  stores_sets(w);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  const std::string pod = w.job.status.ranks[0].pod;
  w.find(pod)->storage_hangs = true;
  ASSERT_TRUE(w.run_until([&] { return w.storage.contains({1, 1}); }, 500)) << w.trace;
  w.job.spec.checkpoint.interval = "1h";
  w.restart_sidecar(pod);
  ASSERT_TRUE(w.run_until([&] { return w.has_event(kCheckpointFailed); }, 100)) << w.trace;
  ASSERT_TRUE(w.run_until([&] { return w.storage.empty(); }, 100)) << w.trace;
  EXPECT_TRUE(w.job.status.checkpoint->sets.empty());
  EXPECT_EQ(w.violation, "") << w.trace;
}

TEST(RemovedSets, OfATornOneNothingIsLeftWhenTheNextAttemptComputes) {
  World w({.ranks = 2, .slow = 3, .fast = 3});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 2)) << w.trace;
  w.find(w.job.status.ranks[0].pod)->storage_hangs = true;
  const auto half_stored = [&] {
    const auto& c = *w.job.status.checkpoint;
    return c.pending && w.storage.contains({c.pending->id, 1});
  };
  ASSERT_TRUE(w.run_until(half_stored, 500)) << w.trace;
  const std::uint64_t torn = w.job.status.checkpoint->pending->id;
  w.job.spec.checkpoint.interval = "1h";
  w.lose_pod(w.job.status.ranks[0].pod);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }, 2000))
      << w.trace;
  ASSERT_TRUE(w.run_until([&] { return !w.storage.contains({torn, 1}); }, 50)) << w.trace;
  EXPECT_FALSE(holds_torn(w));
  EXPECT_EQ(sets_of(w), 2u);
  EXPECT_EQ(w.storage.size(), 4u) << "what is named stays";
  EXPECT_EQ(w.violation, "") << w.trace;
}

// Its image would only come afterwards.
TEST(RemovedSets, WhatIsStillBeingStoredOfATornOneIsWaitedFor) {
  World w({.ranks = 2});
  stores_sets(w);
  ASSERT_TRUE(has_stored(w, 1)) << w.trace;
  Observed o = w.observe();
  o.job.status.checkpoint->pending.reset();
  crds::CheckpointStatus& c = *o.job.status.checkpoint;
  c.ids_used = c.sets.back().id + 1;
  auto& facts = o.sidecars.at(o.job.status.ranks[0].seat());
  facts.done.clear();
  const auto below = [&] {
    const auto action = remove_older_sets(o);
    return action ? action->number : 0;
  };
  auto& save = o.sidecars.at(o.job.status.ranks[1].seat()).status->save;
  save = wire::SaveStatus{.set = c.ids_used, .phase = wire::SavePhase::kDumped};
  EXPECT_EQ(below(), c.sets.back().id) << "older sets go";
  save->phase = wire::SavePhase::kStored;
  EXPECT_EQ(below(), c.ids_used + 1);
  facts.done[migrate::ActionKind::kKeepSets] = c.ids_used + 1;
  EXPECT_EQ(below(), 0u) << "once";
  c.pending.emplace().id = ++c.ids_used;
  EXPECT_EQ(below(), 0u) << "nothing more is to be removed";
  facts.done.clear();
  EXPECT_EQ(below(), c.ids_used) << "never the pending one";
}

}  // namespace
}  // namespace bsp::reconcile::sim
