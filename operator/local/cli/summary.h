// The outcome of a run, which is all that remains of it: the JSON of `--summary`, and rank 0's output.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "crds/bspjob.h"
#include "crds/rankmigration.h"
#include "operator/local/pod_logs.h"
#include "operator/local/store.h"

namespace bsp::local {

// {phase, message, makespan_s, rank0_output: [line], migrations: [{rank, from, to, phase, predicted_gain_s,
// realised_gain_s, realised_gain_error_s, bytes}], waves: [{epoch, moves, pause_ms, parts}]}. `running`: when all ranks first ran.
nlohmann::json summary_of(const crds::BspJob& job, const std::vector<crds::RankMigration>& migrations, Time running,
                          const std::string& rank0_output);

// Where the rank's output may be, for its RankLog. `log_dir`: <store>/logs.
std::vector<SeatLog> rank_logs(const std::string& log_dir, const crds::BspJob& job, std::uint32_t rank);

// Whether they have the last lines, too: the engine may write them after the job has succeeded, because a sidecar reports its
// program's end at once, but before the node reports the container's end. Of a job that failed, true. True as well ten seconds
// after the end: a node may never report it.
Result<bool> has_all_output(Store& store, const crds::BspJob& job, std::uint32_t rank, Time now);

}  // namespace bsp::local
