// A RankMigration as a person asks for it, checked before it is created. Pure.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/core/error.h"
#include "crds/bspjob.h"
#include "crds/rankmigration.h"

namespace bsp::screens {

struct MoveWish {
  std::uint32_t rank = 0;
  std::string set;   // this …
  std::string node;  // … or this; crds::kAnyOtherNode
};

// The errors name what exists. `nodes`: nullopt if they are not known.
Result<crds::RankMigration> migration_for(const crds::BspJob& job, const MoveWish& wish,
                                          const std::set<std::string>& sets,
                                          const std::optional<std::set<std::string>>& nodes, Time now);

// kInvalid names the ranks that the job has.
Result<void> check_rank(const crds::BspJob& job, std::uint32_t rank);
// "rankmigration.migbsp.io/NAME created", as kubectl says it.
std::string created_line(const crds::RankMigration& migration);
// Says each phase as it begins, and what it waits for, until the move has ended: "Pausing: postponed, for 4 s so far: rank 0: …".
// `read` waits until there may be something new. The exit status: kDone if the move has succeeded.
Result<int> follow(const std::function<Result<crds::RankMigration>()>& read,
                   const std::function<void(const std::string&)>& say);

}  // namespace bsp::screens
