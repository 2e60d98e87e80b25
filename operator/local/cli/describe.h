// `local describe`: everything about one object, for people. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "crds/bspjob.h"
#include "crds/rankmigration.h"

namespace bsp::local {

// `decision`: the last decision as lines (view.h). `events`: the object's, as v1 Event.
std::string describe_job(const crds::BspJob& job, const std::vector<std::string>& decision,
                         const std::vector<nlohmann::json>& events, Time now);
std::string describe_migration(const crds::RankMigration& migration, Time now);

}  // namespace bsp::local
