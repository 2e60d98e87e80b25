// Who may reach the pods of a job: its own pods, and the operator.
//
// MPI's own connections are neither encrypted nor authenticated; this policy keeps others away from them, where the
// cluster's network enforces policies. Policies add up: to make a container of the template reachable, write another one.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "crds/bspjob.h"

namespace bsp::reconcile {

// How the operator's own pods are recognised.
struct OperatorPods {
  std::string name_space;
  std::map<std::string, std::string> labels;
};

nlohmann::json make_network_policy(const crds::BspJob& job, const OperatorPods& from);

}  // namespace bsp::reconcile
