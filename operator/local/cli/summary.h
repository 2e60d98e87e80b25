// What is left of a run when everything else is gone: the JSON of `--summary`, and the closing lines.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "crds/bspjob.h"
#include "crds/rankmigration.h"

namespace bsp::local {

// {phase, message, makespan_s, rank0_output: [line], migrations: [{rank, from, to, phase, predicted_gain_s,
// realised_gain_s, bytes}], waves: [{epoch, moves, pause_ms, parts}]}. `running`: when every rank first ran.
nlohmann::json summary_of(const crds::BspJob& job, const std::vector<crds::RankMigration>& migrations, Time running,
                          const std::string& rank0_output);

// What rank `rank` has written, in all its pods one after the other. `log_dir`: <store>/logs.
std::string rank_output(const std::string& log_dir, const crds::BspJob& job, std::uint32_t rank);

}  // namespace bsp::local
