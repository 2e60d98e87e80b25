// Who may reach the pods of a job: its own pods, and the operator.
//
// MPI's own connections are neither encrypted nor authenticated; what keeps others off them is this policy, where the
// cluster's network enforces policies. Policies add up: whoever wants a container of the template reached writes another one.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "crds/bspjob.h"

namespace bsp::reconcile {

// By which the operator's own pods are known.
struct OperatorPods {
  std::string name_space;
  std::map<std::string, std::string> labels;
};

nlohmann::json make_network_policy(const crds::BspJob& job, const OperatorPods& from);

}  // namespace bsp::reconcile
