// Short phrases that several screens share. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "crds/bspjob.h"
#include "crds/rankmigration.h"
#include "operator/cli/live.h"

namespace bsp::screens {

// What a screen shows: a job and its RankMigrations, as they are stored.
struct Shown {
  crds::BspJob job;
  std::vector<crds::RankMigration> migrations;
};

// From the objects; what can't be read of the RankMigrations is left out.
Result<Shown> shown_of(const nlohmann::json& job, const std::vector<nlohmann::json>& migrations);

using Size = cli::ScreenSize;  // a screen never needs more lines

// "science/weather: Running, superstep 1204, started 12m ago".
std::string headline(const crds::BspJob& job, Time now);
// "imbalance 8.3 %, moves 2 (1 rolled back), gain 10.5 s, pause 812 ms".
std::string result_line(const crds::BspJobStatus& status);
// "rank 2 slow→fast: RolledBack 20m ago: the target is gone".
std::string move_line(const crds::RankMigration& migration, Time now);
// Newest first; those under way before all that have ended.
std::vector<const crds::RankMigration*> newest_first(const std::vector<crds::RankMigration>& migrations);
// "Draining (NowhereToGo): …" of all conditions that are true, but for those that only repeat the phase.
std::vector<std::string> condition_lines(const std::vector<crds::Condition>& conditions);

}  // namespace bsp::screens
