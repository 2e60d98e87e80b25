// Builds operator/decide's input from nodes, the ranks' places and the calibration.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/core/cpu_features.h"
#include "crds/bspjob.h"
#include "operator/decide/model/model.h"
#include "operator/observe/calibration.h"

namespace bsp::observe {

// One node that ranks may run on.
struct NodeFacts {
  std::string name;
  std::string set;
  double speed = 1;         // nominal, relative: cores it gives to one rank
  std::uint32_t slots = 1;  // ranks it can hold
  std::uint32_t taken = 0;  // slots held by pods other than the current ranks'
  // Ranks that it has CPU for if each uses what it may, at least 1: more slow each other down.
  double at_full_speed = std::numeric_limits<double>::infinity();
  bool cordoned = false;
  std::optional<std::int64_t> memory = {};  // bytes for this job's pods; not set: unlimited
  bool speed_told = false;                  // `speed` is what the node's annotation says, not a default
  std::string uid = {};                     // of the Node object: a node made anew has another one
  CpuFeatures cpu_features = {};            // empty: not known, as no pod of the namespace has said it
  double price = 0;                         // of one of its slots, an hour; 0: not known
  std::string wrong_price = {};             // what its annotation says that is none
  std::string instance_type = {};           // of its cloud's, that may be priced; "": not known
  std::optional<double> benchmark = {};  // units/s (benchmarks.h), of this job's pods or earlier ones of its namespace
};

// The Sets of a job in their fixed order: spec.sets.names, or those found by name. Their position is
// the Set number in epochs and reports.
std::vector<std::string> set_names(const crds::SetsSpec& spec, const std::vector<NodeFacts>& nodes);
// `of_core`: how fast a core of each Set is, relative to one of the others (benchmarks.h); not in there: 1.
std::map<std::string, double> nominal_speeds(const std::vector<NodeFacts>& nodes,
                                             const std::map<std::string, double>& of_core = {});

// The Sets of whose speed nothing is known: none of the ranks has run there, and neither a benchmark (of_core) nor the nodes' own
// word, if they and those of a measured Set give it, compares them with others.
std::set<std::string> untried_sets(const std::vector<NodeFacts>& nodes, const Calibration& calibration,
                                   const std::map<std::string, double>& of_core = {});

// Leaves out nodes of other Sets. processors[i] belongs to the i-th remaining node.
decide::Platform make_platform(const std::vector<std::string>& sets, const std::vector<NodeFacts>& nodes,
                               const Calibration& calibration, const std::map<std::string, double>& of_core = {});

struct RankFacts {
  std::string node;
  double memory_bytes = 0;
  std::uint64_t last_move = 0;
  std::vector<std::string> left = {};  // nodes that it is known to have moved away from
  std::string blocked_reason;
  std::vector<std::string> no_moves_to = {};       // Sets
  std::vector<std::string> cpu_differs = {};       // those of them without a CPU for its program
  std::string cpu_lacks = {};                      // which features these lack
  std::span<const decide::Partner> partners = {};  // the caller's
  double messages_per_byte = 0;                    // in which it hears from them
  std::string pod = {};                            // "": of its own
};
// Seats that their ranks have left, and others may take: by node, the pod of each.
using FreeSeats = std::map<std::string, std::vector<std::string>>;

// `platform`: make_platform's. Each slot of a node becomes a processor with the node's name and the speed that one rank has there, since
// a slot is what a rank requests for itself: ranks of a node don't share its speed, as those on one processor of the
// sources' do. Of a node's free slots there are no more than it has CPU for, and than there are ranks; those on the emptiest nodes
// come first. Ranks on a node that has too little CPU for them do share it: it is one processor. A node's free slots are its free seats
// first.
decide::Snapshot make_snapshot(decide::Platform platform, const std::vector<RankFacts>& ranks,
                               const std::vector<NodeFacts>& nodes, const FreeSeats& free_seats = {});

// How much faster each rank would be if its node had CPU for all of the job's ranks there. By rank.
std::vector<double> slowed_by_each_other(const std::vector<std::string>& node_of_rank,
                                         const std::vector<NodeFacts>& nodes);

decide::Params make_params(const crds::ReschedulingSpec& spec, const crds::ObjectiveSpec& objective = {});

}  // namespace bsp::observe
