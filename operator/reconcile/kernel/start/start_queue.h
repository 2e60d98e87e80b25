// Jobs that wait for the slots of all their ranks, and which of them starts first: the one with the highest
// spec.runPolicy.priority, of equals the oldest. A job holds back those behind it that want a Set which it could use
// itself, so that a large one is not overtaken for ever by small ones; one that can start in other Sets passes by. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "crds/bspjob.h"
#include "operator/reconcile/kernel/conditions.h"

namespace bsp::reconcile {

struct WaitingJob {
  std::string key;  // <namespace>/<name>
  std::int64_t priority = 0;
  Time created{};
  crds::SetsSpec sets;
};

WaitingJob waiting_job(const std::string& key, const crds::BspJob& job);
bool starts_before(const WaitingJob& one, const WaitingJob& other);
// They may want the same nodes.
bool share_a_set(const crds::SetsSpec& one, const crds::SetsSpec& other);
// The key of the first job that starts before `mine` and wants some of its Sets; "": none does.
std::string ahead_of(const WaitingJob& mine, const std::map<std::string, WaitingJob>& waiting);
// Of `sets`, which are `mine`'s, those that none of the jobs which start before it wants.
std::vector<std::string> wanted_by_none_ahead(const WaitingJob& mine, const std::map<std::string, WaitingJob>& waiting,
                                              const std::vector<std::string>& sets);

// What a job that is to start has to know of the others.
struct StartQueue {
  std::string ahead;                             // ahead_of()
  std::vector<std::string> passable = {};        // wanted_by_none_ahead()
  std::vector<std::string> holders;              // keys of jobs that hold slots in its Sets
  std::map<std::string, std::uint64_t> all;      // by Set: slots, were no other BSPJob there
  std::map<std::string, std::uint32_t> on_node;  // the same by node
  std::string lacking = {};                      // what a rank asks for and none of these nodes has (resources.h)
};

// "held by comp-a and 2 jobs of other namespaces": names of other namespaces are nothing to this one. "" for none.
std::string held_by(const std::vector<std::string>& holders, const std::string& name_space);

}  // namespace bsp::reconcile
