// `drain-plan`: what a drain of a node would do to the jobs with ranks on it. Pure.
//
// A forecast by the operator's own rules (kernel/begin_wave.cc): a seat that another rank of the job has left, or else a free slot,
// of the rank's own Set comes first, then one of the job's other Sets. It doesn't know reservations, nor whether a node has the memory
// for a move; the operator does.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "base/core/error.h"
#include "crds/bspjob.h"
#include "operator/screens/words.h"

namespace bsp::screens {

// As the API server has them. `pods`: of all namespaces, those that have ended left out.
struct ClusterObjects {
  std::vector<nlohmann::json> nodes;
  std::vector<nlohmann::json> pods;
  std::vector<crds::BspJob> jobs;
};

// kInvalid names the nodes that exist.
Result<std::vector<std::string>> drain_plan(const std::string& node, const ClusterObjects& objects, Size size = {});

}  // namespace bsp::screens
