// From nodes, ranks' places and calibration to the value that operator/decide reads.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "crds/bspjob.h"
#include "operator/decide/model.h"
#include "operator/observe/calibration.h"

namespace bsp::observe {

// One node that ranks may run on.
struct NodeFacts {
  std::string name;
  std::string set;
  double speed = 1;         // nominal, relative: cores it gives to one rank
  std::uint32_t slots = 1;  // ranks it can hold
  std::uint32_t taken = 0;  // slots held by pods that are not a current rank's
  bool cordoned = false;
  std::optional<std::int64_t> memory = {};  // bytes for this job's pods; not set: nobody counts them
};

// The Sets of a job in their fixed order: spec.sets.names, or those found by name. Their position is
// the Set number in epochs and reports.
std::vector<std::string> set_names(const crds::SetsSpec& spec, const std::vector<NodeFacts>& nodes);
std::map<std::string, double> nominal_speeds(const std::vector<NodeFacts>& nodes);

// Nodes of other Sets are left out. processors[i] belongs to the i-th node that is left in.
decide::Platform make_platform(const std::vector<std::string>& sets, const std::vector<NodeFacts>& nodes,
                               const Calibration& calibration);

struct RankFacts {
  std::string node;
  double memory_bytes = 0;
  std::uint64_t last_move = 0;
  std::vector<std::string> left = {};  // nodes that it was moved away from, as far as is known
  std::string blocked_reason;
};
decide::Snapshot make_snapshot(decide::Platform platform, const std::vector<RankFacts>& ranks);

decide::Params make_params(const crds::ReschedulingSpec& spec);

}  // namespace bsp::observe
