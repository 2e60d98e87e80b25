// Objects as whoever may write them can make them, with every value at every place, on every screen.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "crds/fields.h"
#include "crds/reflect.h"
#include "operator/screens/drain_plan.h"
#include "operator/screens/explain.h"
#include "operator/screens/timeline.h"
#include "operator/screens/top.h"
#include "tests/unit/reconcile/every_place.h"
#include "tests/unit/screens/a_job.h"

namespace bsp::screens {
namespace {

using nlohmann::json;
using reconcile::hostile::at_every_place;

Shown everything() {
  Shown shown = a_job(2);
  auto& s = shown.job.status;
  s.realised_gain_seconds = s.pause_seconds = 1.5;
  s.conditions.push_back(
      {.type = "Draining", .status = crds::ConditionStatus::kTrue, .reason = "NowhereToGo", .message = "m"});
  s.restarts.push_back({.attempt = 0, .time = s.start_time, .reason = "r", .message = "m", .rank = RankId{1}});
  crds::Decision d;
  d.time = s.start_time;
  d.outcome = "Migrating";
  d.planned_moves = 1;
  d.moves.push_back({RankId{0}, "slow", "fast", "fast-1", 1});
  d.stays.push_back({RankId{1}, "NoCapacity", "m"});
  d.stays_by_reason = {{"NoCapacity", 1}};
  s.last_decision = d;
  for (const auto phase : {crds::MigrationPhase::kSucceeded, crds::MigrationPhase::kRolledBack})
    shown.migrations.push_back(a_move(0, phase, "2026-11-21T04:55:00Z", "2026-11-21T04:55:01Z"));
  return shown;
}

void show(const json& job, const std::vector<json>& migrations) {
  const auto shown = shown_of(job, migrations);
  if (!shown) return;
  EXPECT_FALSE(has_control(joined(explain(*shown, kNow))));
  EXPECT_FALSE(has_control(joined(top(*shown, kNow))));
  std::vector<CallMade> calls;
  if (shown->job.status.last_decision) calls.push_back(call_of(*shown->job.status.last_decision));
  EXPECT_TRUE(timeline_svg(*shown, calls, Time{}, kNow).ends_with("</svg>\n"));
  const json node = {{"metadata", {{"name", "fast-0"}, {"labels", {{"migbsp.io/set", "fast"}}}}},
                     {"status", {{"allocatable", {{"cpu", "4"}, {"memory", "1Gi"}, {"pods", "10"}}}}}};
  (void)drain_plan("fast-0", {.nodes = {node}, .pods = {}, .jobs = {shown->job}});
}

TEST(Hostile, AJobOnEveryScreen) {
  const Shown good = everything();
  json job = good.job;
  // As older operators stored it, so that every field is a place.
  job["status"] = reflect::write(good.job.status);
  std::vector<json> migrations(good.migrations.begin(), good.migrations.end());
  int places = 0;
  at_every_place(job, [&](const json& changed, const auto& path) {
    // A picture of all ranks that a cluster can have takes a second.
    if (path.to_string() != "/spec/ranks") show(changed, migrations);
    ++places;
  });
  EXPECT_GT(places, 1000);
}

TEST(Hostile, AMigrationOnEveryScreen) {
  const Shown good = everything();
  const json job = good.job;
  for (const crds::RankMigration& migration : good.migrations)
    at_every_place(json(migration), [&](const json& changed, const auto&) { show(job, {changed}); });
}

}  // namespace
}  // namespace bsp::screens
