// What tests of the simulated cluster expect of a job, and request of it.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {

inline bool is_true(const World& w, const char* condition) {
  const crds::Condition* c = crds::find_condition(w.job.status.conditions, condition);
  return c && c->status == crds::ConditionStatus::kTrue;
}

// The job has ended (or is suspended): nothing runs, and nothing remains to be done.
inline void expect_quiet(World& w) {
  for (int i = 0; i < 15; ++i) w.tick();
  EXPECT_EQ(w.violation, "") << w.trace;
  EXPECT_TRUE(w.all_ended()) << w.trace;
  EXPECT_EQ(w.unrest(), "") << w.trace;
}

inline std::vector<std::string> pods_of(const World& w) {
  std::vector<std::string> names;
  for (const auto& [name, pod] : w.pods) names.push_back(name);
  return names;
}

inline bool wave_over(const World& w) {
  return w.wave_phase() != migrate::Phase::kPending && crds::is_finished(w.wave_phase()) &&
         w.job.status.phase == crds::JobPhase::kRunning;
}

// The job computes, and nothing of the wave remains to be done.
inline void expect_goes_on(World& w) {
  for (int i = 0; i < 15; ++i) w.tick();
  const std::uint64_t before = w.job.status.superstep.value;
  for (int i = 0; i < 10; ++i) w.tick();
  EXPECT_EQ(w.violation, "") << w.trace;
  EXPECT_GT(w.job.status.superstep.value, before + 5) << w.trace;
  EXPECT_EQ(w.unrest(), "") << w.trace;
  EXPECT_EQ(w.pods.size(), w.job.spec.ranks) << w.trace;
  for (const auto& place : w.job.status.ranks) EXPECT_TRUE(w.pods.contains(place.pod)) << place.pod << "\n" << w.trace;
}

inline std::vector<std::string> phases_of(const crds::RankMigration& m) {
  std::vector<std::string> names;
  for (const auto& t : m.status.phase_times) names.emplace_back(crds::to_string(t.phase));
  return names;
}
}  // namespace bsp::reconcile::sim
